// Links to questions. A link keeps everything in the fragment, which browsers do not send to any server.

import { readAddress } from "./address.js";
import { fromBase64Url } from "./canonical.js";
import { readPublicKey } from "./key.js";
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

/** Parses a fragment, with or without its `#`; `undefined` if it is empty. */
export function readLink(fragment: string): Link | undefined {
  const text = fragment.replace(/^#/, "");
  if (text === "") return undefined;
  const parts = new URLSearchParams(text);
  const [desk, key, query] = [parts.get("desk"), parts.get("key"), parts.get("query")];
  if (desk === null || key === null || query === null) {
    throw new Refusal("form", "The link is incomplete: it must contain the desk, the desk's key and the query.");
  }
  if (!readPublicKey(key)) throw new Refusal("form", "The link's key is not the public key of a desk.");
  if (fromBase64Url(query)?.length !== 32) throw new Refusal("form", "The link does not contain a valid query name.");
  return { desk: readAddress(desk, "desk"), key, query, credential: parts.get("credential") || undefined };
}
