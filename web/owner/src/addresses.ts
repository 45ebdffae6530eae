// Addresses of desks and aggregators: https, or http to this very machine; nobody else's ears in between.

import { Refusal } from "./refusal.js";

function isThisMachine(host: string): boolean {
  const name = host.replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost")) return true;
  return /^(127\.\d+\.\d+\.\d+|0\.0\.0\.0|\[::1?\]|\[::ffff:7f[0-9a-f]{2}:[0-9a-f]+\]|\[::ffff:0:0\])$/.test(name);
}

/** The address as a base for requests, if its traffic cannot be read or changed by others. */
export function readAddress(text: string, whose: string): URL {
  const refuse = (why: string): Refusal => new Refusal("aggregators", `The address of the ${whose} ${why}.`);
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw refuse("is not one");
  }
  const isSafe = url.protocol === "https:" || (url.protocol === "http:" && isThisMachine(url.hostname));
  if (!isSafe || url.hostname === "") throw refuse("is not safe from listeners: it begins with neither https nor this machine");
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw refuse("has more than a host, a port and a path");
  }
  if (!url.pathname.endsWith("/")) url.pathname += "/";
  return url;
}

/** Whether two addresses are in one hand as far as that can be seen. Ports of one machine tell trials apart, not operators. */
export function isSamePlace(one: URL, other: URL): boolean {
  if (one.origin === other.origin) return true;
  if (isThisMachine(one.hostname) && isThisMachine(other.hostname)) return false;
  return one.hostname.replace(/\.$/, "") === other.hostname.replace(/\.$/, "");
}

/** Whether both run on the person's own machine, as in a trial. */
export function isTrial(one: URL, other: URL): boolean {
  return isThisMachine(one.hostname) && isThisMachine(other.hostname);
}
