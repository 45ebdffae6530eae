import assert from "node:assert/strict";
import { test } from "node:test";
import { UNITS } from "../src/claims.js";
import { epsilonText, guesses } from "../src/page/words.js";

test("odds are rounded against the card", () => {
  assert.match(guesses(0n), /at most 50 of 100/);
  // e/(1 + e) is 0.7311.
  assert.match(guesses(UNITS), /at most 74 of 100 times where it was 50/);
  // e^8/(1 + e^8) is 0.99966.
  assert.match(guesses(8n * UNITS), /at most 9997 of 10000/);
  assert.match(guesses(40n * UNITS), /all but certain/);
  assert.match(guesses(undefined), /can know/);
});

test("an epsilon is shown with a few digits, rounded up", () => {
  assert.deepEqual([0n, 1n, UNITS / 2n, UNITS, 8n * UNITS - 1n, 10n * UNITS].map(epsilonText), ["0", "0.001", "0.5", "1", "8", "10"]);
  assert.equal(epsilonText(undefined), "no bound");
});
