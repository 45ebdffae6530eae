// Ed25519 keys as text. A point of small order is refused: under such a key one signature fits many messages, so that anybody can
// sign. Browsers do not refuse it by themselves.

import { fromBase64Url } from "./canonical.js";

const SCHEME = "ed25519:";
const PRIME = (1n << 255n) - 19n;
const ORDER_8 = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n;
/** The y of the points whose order is 1, 2, 4 and 8, whatever the sign of x. */
const SMALL_ORDER = [1n, PRIME - 1n, 0n, ORDER_8, PRIME - ORDER_8];

/** The 32 bytes after a scheme; `undefined` if the text has any other form. */
export function keyBytes(text: string, scheme: string): Uint8Array<ArrayBuffer> | undefined {
  const bytes = text.startsWith(scheme) ? fromBase64Url(text.slice(scheme.length)) : undefined;
  return bytes?.length === 32 ? bytes : undefined;
}

/** The bytes of a public key; `undefined` if the text has any other form, or anybody could sign under the key. */
export function readPublicKey(text: string): Uint8Array<ArrayBuffer> | undefined {
  const bytes = keyBytes(text, SCHEME);
  return bytes && !isWeakPoint(bytes) ? bytes : undefined;
}

/** Whether 32 bytes encode a point of small order, or are a second encoding of a point. */
export function isWeakPoint(bytes: Uint8Array): boolean {
  const number = bytes.reduceRight((all, byte) => (all << 8n) | BigInt(byte), 0n);
  // The highest bit is the sign of x.
  const y = BigInt.asUintN(255, number);
  return y >= PRIME || SMALL_ORDER.includes(y);
}
