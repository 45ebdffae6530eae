// Links to questions, and the addresses in links and on cards. A link keeps everything in the fragment, which browsers do not
// send to any server.

import { fromBase64Url } from "./canonical.js";
import { Refusal } from "./refusal.js";

export interface Link {
  readonly desk: URL;
  /** The desk's public key, `ed25519:` and 43 characters. */
  readonly key: string;
  /** The name of the query: the hash of its card. */
  readonly query: string;
  /** The secret of an enrolled person, if the link has one. */
  readonly credential: string | undefined;
}

const SCHEME = "ed25519:";

/** The 32 bytes after the scheme; `undefined` if the text has any other form. */
export function keyBytes(text: string, scheme = SCHEME): Uint8Array<ArrayBuffer> | undefined {
  const bytes = text.startsWith(scheme) ? fromBase64Url(text.slice(scheme.length)) : undefined;
  return bytes?.length === 32 ? bytes : undefined;
}

/** Parses a fragment, with or without its `#`; `undefined` if it is empty. */
export function readLink(fragment: string): Link | undefined {
  const text = fragment.replace(/^#/, "");
  if (text === "") return undefined;
  const parts = new URLSearchParams(text);
  const [desk, key, query] = [parts.get("desk"), parts.get("key"), parts.get("query")];
  if (desk === null || key === null || query === null) {
    throw new Refusal("form", "The link is incomplete: it must contain the desk, the desk's key and the query.");
  }
  if (!keyBytes(key)) throw new Refusal("form", "The link's key is not the public key of a desk.");
  if (fromBase64Url(query)?.length !== 32) throw new Refusal("form", "The link does not contain a valid query name.");
  return { desk: readAddress(desk, "desk"), key, query, credential: parts.get("credential") || undefined };
}

// Addresses of desks and aggregators use https, or http on this machine.

function isThisMachine(host: string): boolean {
  const name = host.replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  return /^(127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\]|\[::ffff:0:0\])$/.test(name);
}

/** Parses an address as a base for requests; refuses one whose traffic others could read or change. */
export function readAddress(text: string, whose: string): URL {
  const refuse = (why: string): Refusal => new Refusal("aggregators", `The address of the ${whose} ${why}.`);
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refuse("is not valid");
  }
  const isSafe = url.protocol === "https:" || (url.protocol === "http:" && isThisMachine(url.hostname));
  if (!isSafe || url.hostname === "") throw refuse("is not safe from eavesdroppers: it uses neither https nor this machine");
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw refuse("contains more than a host, a port and a path");
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** Whether two addresses visibly belong to one operator. On the person's own machine, different ports are enough for a trial. */
export function isSameOperator(one: URL, other: URL): boolean {
  if (one.origin === other.origin) return true;
  if (isThisMachine(one.hostname) && isThisMachine(other.hostname)) return false;
  return one.hostname.replace(/\.$/, "") === other.hostname.replace(/\.$/, "");
}

/** Whether both run on the person's own machine, as in a trial. */
export function isTrial(one: URL, other: URL): boolean {
  return isThisMachine(one.hostname) && isThisMachine(other.hostname);
}
