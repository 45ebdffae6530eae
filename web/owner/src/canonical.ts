// The canonical form of a card (RFC 8785 for values without numbers), its hash, and base64url.

export type Json = string | Json[] | { [key: string]: Json };

/** JSON with sorted keys, no whitespace and the shortest escapes. */
export function canonical(value: Json): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  // Strings sort by their UTF-16 code units by default, as the RFC requires.
  const field = (key: string): string => `${JSON.stringify(key)}:${canonical(value[key]!)}`;
  return `{${Object.keys(value).sort().map(field).join(",")}}`;
}

/** The name of a text: the SHA-256 of its UTF-8 bytes. */
export async function nameOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return toBase64Url(new Uint8Array(digest));
}

export function toBase64Url(bytes: Uint8Array): string {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Decodes unpadded base64url; `undefined` if the text has any other form. */
export function fromBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return undefined;
  const bytes = Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
  return toBase64Url(bytes) === text ? bytes : undefined;
}
