import assert from "node:assert/strict";
import { test } from "node:test";
import { canonical, fromBase64Url, toBase64Url } from "../src/canonical.js";
import { WHOLE } from "../src/card.js";
import { linkedUnits, oneAggregatorUnits, smallestThat, unitsText } from "../src/claims.js";
import { BITS, exponential, inverseExponential, plainText, ratio, readRational } from "../src/exact.js";
import { channelOfText } from "../src/mechanism.js";
import { readLimit } from "../src/policy.js";
import { chunkLength } from "../src/report.js";

test("numbers have one text", () => {
  for (const text of ["0", "1", "0.05", "1/3", "8.2e-5", "0.0020499999999999997", "1.5e-7", "0.001", "1/2^64"]) {
    assert.equal(plainText(readRational(text)!), text);
  }
  for (const [text, plain] of [["10/4", "2.5"], ["0.50", "0.5"], ["5e-2", "0.05"], ["2/6", "1/3"]] as const) {
    assert.equal(plainText(readRational(text)!), plain);
  }
  for (const bad of ["", ".", "1/0", "-1", "0x1", "1e999", "1//2", "NaN", "٣", "1 "]) assert.equal(readRational(bad), undefined, bad);
});

test("exponentials enclose what the platform computes", () => {
  for (const [n, d] of [[0n, 1n], [1n, 1n], [1n, 1_000_000_007n], [355n, 113n], [100n, 1n]] as const) {
    const { lower, upper } = exponential(ratio(n, d));
    assert.ok(lower <= upper);
    const found = Number((lower * 10n ** 15n) >> BITS) / 1e15;
    assert.ok(Math.abs(found / Math.exp(Number(n) / Number(d)) - 1) < 1e-12, `${n}/${d}`);
    const inverse = inverseExponential(ratio(n, d));
    assert.ok(lower * inverse.lower <= 1n << (2n * BITS) && upper * inverse.upper >= 1n << (2n * BITS));
  }
});

test("claims are rounded up", () => {
  assert.equal(unitsText(oneAggregatorUnits(WHOLE, 0n, ratio(3n, 1n))), "0.333333333334");
  assert.equal(unitsText(oneAggregatorUnits(WHOLE, 0n, ratio(2n, 1n))), "0.5");
  // p and q that doubles do not tell from 1 and 0.
  assert.equal(unitsText(oneAggregatorUnits(WHOLE - 1n, 1n, ratio(1n, 50n))).slice(0, 12), "44.357867954");
  const linked = linkedUnits(channelOfText("randomized-response(t=0.7)")!)!;
  assert.ok(Number(linked) / 1e12 >= Math.log(0.7 / 0.3) - 1e-13 && Number(linked) / 1e12 < Math.log(0.7 / 0.3) + 2e-12);
  assert.equal(linkedUnits(channelOfText("randomized-response(t=1)")!), undefined);
  assert.equal(linkedUnits(channelOfText("randomized-response(t=0.5)")!), 0n);
});

test("the smallest number is found from any guess", () => {
  for (const guess of [0n, 1n, 41n, 42n, 43n, 1000n, 10n ** 15n]) assert.equal(smallestThat((n) => n >= 42n, guess), 42n);
  assert.equal(smallestThat(() => true, 5n), 0n);
});

test("the canonical form is sorted and bare", () => {
  const value = JSON.parse('{"b": ["x", "\\u0001é\\n"], "a": {"d": "1", "c": "⊥"}}');
  assert.equal(canonical(value), '{"a":{"c":"⊥","d":"1"},"b":["x","\\u0001é\\n"]}');
});

test("base64url has one spelling", () => {
  const bytes = Uint8Array.from([251, 255, 0, 1]);
  assert.deepEqual(fromBase64Url(toBase64Url(bytes)), bytes);
  for (const bad of ["A", "AB=", "A+", "AB"]) assert.equal(fromBase64Url(bad), undefined, bad);
});

test("limits are what a person writes", () => {
  assert.equal(readLimit(" 1.5 "), 1_500_000_000_000n);
  assert.equal(readLimit("lots"), undefined);
});

test("chunks make the shortest proof", () => {
  assert.deepEqual([1, 2, 3, 6, 10, 100].map(chunkLength), [1, 2, 1, 2, 4, 7]);
});
