import assert from "node:assert/strict";
import { test } from "node:test";
import { UNITS } from "../src/claims.js";
import { epsilonText, guessText } from "../src/page/words.js";

test("odds are rounded against the card", () => {
  assert.match(guessText(0n), /at most 50\s%, up from 50\s%/);
  // e/(1 + e) is 0.7311.
  assert.match(guessText(UNITS), /at most 74\s%, up from 50\s%/);
  // e^8/(1 + e^8) is 0.99966.
  assert.match(guessText(8n * UNITS), /at most 99\.97\s%/);
  assert.match(guessText(40n * UNITS), /almost certain/);
  assert.match(guessText(undefined), /can know/);
});

test("an epsilon is shown with a few digits, rounded up", () => {
  assert.deepEqual([0n, 1n, UNITS / 2n, UNITS, 8n * UNITS - 1n, 10n * UNITS].map(epsilonText), ["0", "0.001", "0.5", "1", "8", "10"]);
  assert.equal(epsilonText(undefined), "no bound");
});
