// What an enrolled person shows with a report: a key, and a signature over this task and these bytes.

import { fromBase64Url, toBase64Url } from "./canonical.js";
import { keyBytes } from "./link.js";
import { Refusal } from "./refusal.js";

export const HEADER = "uptack-credential";
const SCHEME = "ed25519-secret:";
const DOMAIN = new TextEncoder().encode("uptack: one report of an enrolled owner, version 1");
/** What stands before the 32 bytes of an Ed25519 secret in PKCS #8 (RFC 8410). */
const PKCS8 = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/** The header for one report of one task. */
export async function credentialFor(secret: string, query: string, report: Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = keyBytes(secret, SCHEME);
  if (!bytes) throw new Refusal("enrolment", "The link's credential is not the secret of an enrolled person.");
  const encoded = Uint8Array.from([...PKCS8, ...bytes]);
  const key = await crypto.subtle.importKey("pkcs8", encoded, { name: "Ed25519" }, true, ["sign"]);
  const { x } = await crypto.subtle.exportKey("jwk", key);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", report));
  const message = Uint8Array.from([...DOMAIN, ...fromBase64Url(query)!, ...digest]);
  const signature = await crypto.subtle.sign({ name: "Ed25519" }, key, message);
  return `ed25519:${x}.${toBase64Url(new Uint8Array(signature))}`;
}

/** Refuses a text that is not such a secret, without quoting it. */
export function checkCredential(secret: string | undefined): void {
  if (secret === undefined) {
    throw new Refusal("enrolment", "Only enrolled people may answer, and your link has no credential. Ask for one of your own.");
  }
  if (!keyBytes(secret, SCHEME)) throw new Refusal("enrolment", "The link's credential is not the secret of an enrolled person.");
}
