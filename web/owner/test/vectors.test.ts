// The shared vectors of the library: what its client refuses, this code refuses, and what it accepts, this accepts.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { oneAggregatorUnits, UNITS, unitsText } from "../src/claims.js";
import { isAtMost, ratio, readDecimal, readRational } from "../src/exact.js";
import { channelOfText } from "../src/mechanism.js";
import { DEFAULT_POLICY, type Policy } from "../src/policy.js";
import { Refusal } from "../src/refusal.js";
import { sumOf } from "../src/report.js";
import { checkPolicy, checkTime, type SignedCard, verifyCard } from "../src/verify.js";

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../../vectors/${name}`, import.meta.url), "utf8"));

interface Row {
  name: string;
  refused_by: string[];
  signed: SignedCard;
  sum?: { kind: string; length: number; chunk_length: number };
  charge?: string;
}

/** Refuses nothing that is true. */
const generous: Policy = {
  ...DEFAULT_POLICY,
  card: { linked: 1000n * UNITS, oneAggregator: 1000n * UNITS },
  aggregators: ["https://leader.example", "https://helper.example"],
};

test("every falsified card is refused with a reason, and no honest one", async () => {
  const { key, now, rows } = read("cards.json") as { key: string; now: number; rows: Row[] };
  assert.ok(rows.length > 60);
  for (const row of rows) {
    const refusal = await verifyCard(row.signed, { key, query: row.signed.query }).then(
      (card) => {
        try {
          checkTime(card, now);
          checkPolicy(card, generous);
        } catch (error) {
          return error;
        }
        assert.deepEqual(
          { kind: row.sum?.kind, length: row.sum?.length, chunkLength: row.sum?.chunk_length },
          row.sum ? sumOf(card) : { kind: undefined, length: undefined, chunkLength: undefined },
        );
        if (row.charge) assert.equal(card.charge, row.charge);
        return undefined;
      },
      (error: unknown) => error,
    );
    assert.equal(refusal !== undefined, row.refused_by.includes("page"), `${row.name}: ${refusal}`);
    if (refusal !== undefined) assert.ok(refusal instanceof Refusal && refusal.message.endsWith("."), `${row.name}: ${refusal}`);
  }
});

test("a card under another name than the link's is refused", async () => {
  const { key, rows } = read("cards.json") as { key: string; rows: Row[] };
  const honest = rows.filter((row) => row.refused_by.length === 0);
  await assert.rejects(verifyCard(honest[0]!.signed, { key, query: honest[1]!.signed.query }), /another card/);
});

test("the claim of one honest aggregator is the library's to the last digit", () => {
  const rows = read("one_aggregator.json") as { mechanism: string; yes: string; no: string; scale: string; claim: string; valid: boolean }[];
  assert.ok(rows.length > 50);
  for (const { yes, no, scale, claim, valid, mechanism } of rows) {
    const units = oneAggregatorUnits(BigInt(yes), BigInt(no), readRational(scale)!);
    assert.equal(isAtMost(ratio(units, UNITS), readDecimal(claim)!), valid, `${mechanism} ${scale}: ${unitsText(units)}`);
    const stated = (readDecimal(claim)!.numerator * UNITS) / readDecimal(claim)!.denominator;
    assert.equal(units, valid ? stated : stated + 1n, `${mechanism} ${scale}`);
  }
});

test("a mechanism's text yields the library's integers", () => {
  const rows = read("one_aggregator.json") as { mechanism: string; yes: string; no: string }[];
  for (const { mechanism, yes, no } of rows) {
    const channel = channelOfText(mechanism);
    if (!channel) continue;
    assert.deepEqual([channel.cells[0]!.yes, channel.cells[0]!.no], [BigInt(yes), BigInt(no)], mechanism);
  }
  assert.equal(channelOfText("constructor(t=1)"), undefined);
});
