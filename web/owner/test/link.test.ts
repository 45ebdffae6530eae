import assert from "node:assert/strict";
import { test } from "node:test";
import { fromBase64Url, toBase64Url } from "../src/canonical.js";
import { readLink } from "../src/link.js";
import { checkCredential, credentialFor } from "../src/report.js";

const NAME = toBase64Url(new Uint8Array(32).fill(3));
const KEY = `ed25519:${NAME}`;

test("a link names desk, key and query", () => {
  const link = readLink(`#desk=https%3A%2F%2Fdesk.example%2Fsurvey&key=${KEY}&query=${NAME}`)!;
  assert.deepEqual([link.desk.href, link.key, link.query], ["https://desk.example/survey/", KEY, NAME]);
  assert.equal(link.credential, undefined);
  assert.equal(readLink(`#desk=https://d.example&key=${KEY}&query=${NAME}&credential=`)!.credential, undefined);
  assert.equal(readLink("#"), undefined);
  for (const bad of [
    `desk=https://d.example&key=${KEY}`,
    `desk=http://d.example&key=${KEY}&query=${NAME}`,
    `desk=https://d.example&key=${NAME}&query=${NAME}`,
    `desk=https://d.example&key=${KEY}&query=../key`,
    `desk=javascript:alert(1)&key=${KEY}&query=${NAME}`,
  ]) {
    assert.throws(() => readLink(bad), bad);
  }
});

test("a credential is a signature over one task and one report", async () => {
  const secret = `ed25519-secret:${toBase64Url(new Uint8Array(32).fill(7))}`;
  const report = Uint8Array.from([1, 2, 3]);
  const shown = await credentialFor(secret, NAME, report);
  const [key, signature] = shown.split(".") as [string, string];
  assert.match(key, /^ed25519:[\w-]{43}$/);
  const verifier = await crypto.subtle.importKey("raw", fromBase64Url(key.slice(8))!, { name: "Ed25519" }, false, ["verify"]);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", report));
  const domain = new TextEncoder().encode("uptack: one report of an enrolled owner, version 1");
  const message = Uint8Array.from([...domain, ...fromBase64Url(NAME)!, ...digest]);
  assert.ok(await crypto.subtle.verify({ name: "Ed25519" }, verifier, fromBase64Url(signature)!, message));
  assert.throws(() => checkCredential(undefined), /enrolled/);
  assert.throws(() => checkCredential("secret"), (error: Error) => !error.message.includes("“secret”"));
});
