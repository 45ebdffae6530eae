// What a link says, all of it in the fragment, which browsers do not send to anybody.

import { readAddress } from "./addresses.js";
import { fromBase64Url } from "./canonical.js";
import { Refusal } from "./refusal.js";

export interface Link {
  readonly desk: URL;
  /** The desk's public key, `ed25519:` and 43 characters. */
  readonly key: string;
  /** The name of the query: the hash of its card. */
  readonly query: string;
  /** The secret of an enrolled person, where there is one. */
  readonly credential: string | undefined;
}

const SCHEME = "ed25519:";

/** The 32 bytes behind a scheme; nothing if it is written in any other way. */
export function keyBytes(text: string, scheme = SCHEME): Uint8Array<ArrayBuffer> | undefined {
  const bytes = text.startsWith(scheme) ? fromBase64Url(text.slice(scheme.length)) : undefined;
  return bytes?.length === 32 ? bytes : undefined;
}

/** Reads a fragment, with or without its `#`; nothing if it is empty. */
export function readLink(fragment: string): Link | undefined {
  const text = fragment.replace(/^#/, "");
  if (text === "") return undefined;
  const parts = new URLSearchParams(text);
  const [desk, key, query] = [parts.get("desk"), parts.get("key"), parts.get("query")];
  if (desk === null || key === null || query === null) {
    throw new Refusal("form", "The link is incomplete: it has to name the desk, the desk's key and the query.");
  }
  if (!keyBytes(key)) throw new Refusal("form", "The link's key is not the public key of a desk.");
  if (fromBase64Url(query)?.length !== 32) throw new Refusal("form", "The link's query is not the name of one.");
  return { desk: readAddress(desk, "desk"), key, query, credential: parts.get("credential") || undefined };
}
