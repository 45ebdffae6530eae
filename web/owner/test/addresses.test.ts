// The shared vectors of addresses and keys: this page reads what the library reads, and refuses what it refuses.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { isSameOperator, readAddress } from "../src/address.js";
import { fromBase64Url, toBase64Url } from "../src/canonical.js";
import { isWeakPoint, readPublicKey } from "../src/key.js";
import { readLink } from "../src/link.js";
import { Refusal } from "../src/refusal.js";

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../../vectors/${name}`, import.meta.url), "utf8"));
const NAME = toBase64Url(new Uint8Array(32).fill(3));

test("an address reads as it does in the library, or is refused as it is there", () => {
  const { rows } = read("addresses.json") as { rows: { text: string; reads: string | null }[] };
  assert.ok(rows.length > 90);
  const reading = (text: string): string | null => {
    try {
      return readAddress(text, "leader").href;
    } catch (error) {
      assert.ok(error instanceof Refusal && error.message.endsWith("."), `${JSON.stringify(text)}: ${error}`);
      assert.ok(!error.message.includes("secret"), error.message);
      return null;
    }
  };
  const wrong = rows.filter(({ text, reads }) => reading(text) !== reads).map(({ text }) => [text, reading(text)]);
  assert.deepEqual(wrong, []);
});

test("leader and helper at one host are one place, however the host is written", () => {
  const { hosts } = read("addresses.json") as { hosts: { one: string; other: string; same: boolean }[] };
  for (const { one, other, same } of hosts) {
    assert.equal(isSameOperator(readAddress(one, "leader"), readAddress(other, "helper")), same, `${one} ${other}`);
  }
  // On the person's own machine, a port is enough for a trial.
  const at = (text: string) => readAddress(text, "leader");
  assert.ok(isSameOperator(at("http://127.0.0.1:1"), at("http://127.0.0.1:1/x")));
  assert.ok(!isSameOperator(at("http://127.0.0.1:1"), at("http://127.0.0.1:2")));
});

test("a key under which anybody can sign is refused, in a link and elsewhere", () => {
  const { rows } = read("keys.json") as { rows: { key: string; is: string; accepted: boolean }[] };
  assert.ok(rows.length > 20);
  for (const { key, is, accepted } of rows) {
    assert.equal(readPublicKey(key) !== undefined, accepted, `${is}: ${key}`);
    const open = () => readLink(`desk=https://desk.example&key=${encodeURIComponent(key)}&query=${NAME}`);
    if (accepted) assert.equal(open()?.key, key);
    else assert.throws(open, Refusal, `${is}: ${key}`);
  }
});

test("a commitment of small order is no part of a signature", () => {
  const neutral = fromBase64Url("AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")!;
  assert.ok(isWeakPoint(neutral));
  assert.ok(!isWeakPoint(fromBase64Url("_FHNjmIYoaONpH7QAjDwWAgW7RO6MwOsXeuRFUiQgCU")!));
});
