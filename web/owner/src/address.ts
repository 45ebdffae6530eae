// The strict reader of addresses. What two programs could read differently is refused, so that leader and helper cannot be one
// host under two spellings. crates/uptack-dap/src/address.rs follows the same rules; vectors/addresses.json checks both.

import { Refusal } from "./refusal.js";

const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const HOST = `\\[[0-9a-f:]+\\]|${LABEL}(?:\\.${LABEL})*`;
const PATH = "(?:/(?:[a-z0-9._~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?";
const ADDRESS = new RegExp(`^https?://(${HOST})(?::([1-9][0-9]{0,4}))?(${PATH})$`, "i");

/** Blocks of IPv6 whose addresses stand for IPv4 addresses: mapped, compatible, translated (NAT64) and tunnelled (6to4). */
const HOLDS_IPV4 = /^\[(::(?!1?\])|0:|64:ff9b:|2002:)/;

/** Parses an address as a base for requests; refuses one whose traffic others could read or change. */
export function readAddress(text: string, whose: string): URL {
  const refuse = (why: string): Refusal => new Refusal("aggregators", `The address of the ${whose} ${why}.`);
  const url = parseStrictly(text);
  if (!url) {
    throw refuse(
      "is not in its one plain form: https://, a host name in ASCII or an IP address in its usual form, and possibly a port and a path",
    );
  }
  if (HOLDS_IPV4.test(url.hostname)) throw refuse("is an IPv4 address written as IPv6");
  if (url.protocol !== "https:" && !isThisMachine(url.hostname)) {
    throw refuse("is not safe from eavesdroppers: it uses neither https nor this machine");
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** Parses an address that is written as the parser prints it, but for the case of scheme and host and the default port. */
function parseStrictly(text: string): URL | undefined {
  const [, host, port, path] = ADDRESS.exec(text) ?? [];
  if (host === undefined || host.length > 253 || Number(port ?? 1) > 65535) return undefined;
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    return undefined;
  }
  const isAsWritten = url.hostname === host.toLowerCase() && url.pathname === (path || "/");
  return isAsWritten ? url : undefined;
}

function isThisMachine(host: string): boolean {
  if (host === "localhost" || host.endsWith(".localhost")) return true;
  return /^(127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\])$/.test(host);
}

/** Whether two addresses visibly belong to one operator. On the person's own machine, different ports are enough for a trial. */
export function isSameOperator(one: URL, other: URL): boolean {
  if (one.origin === other.origin) return true;
  if (isTrial(one, other)) return false;
  return one.hostname === other.hostname;
}

/** Whether both run on the person's own machine, as in a trial. */
export function isTrial(one: URL, other: URL): boolean {
  return isThisMachine(one.hostname) && isThisMachine(other.hostname);
}
