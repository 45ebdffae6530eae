import assert from "node:assert/strict";
import { test } from "node:test";
import { WHOLE } from "../src/card.js";
import { channelOfText } from "../src/mechanism.js";
import { draw, drawSendTimes, FIXED_DELAY, nextSendTime, pause, type Randomness, uniform } from "../src/random.js";

/** Coins of a test, and how many bytes were read. */
function coins(...values: bigint[]): { randomness: Randomness; read: () => number } {
  let [next, read] = [0, 0];
  const randomness: Randomness = (bytes) => {
    read += bytes.length;
    new DataView(bytes.buffer).setBigUint64(0, values[next++ % values.length]!, true);
  };
  return { randomness, read: () => read };
}

test("a coin chooses the cell whose share of 2^64 it falls into, by the truth's law", () => {
  const { cells } = channelOfText("normal-form(f=0.5,r=0.125)")!;
  const drawn = (coin: bigint, truth: boolean) => cells[draw(cells, truth, coins(coin).randomness)]!.outputs[0];
  const eighth = WHOLE / 8n;
  for (const [coin, yes, no] of [
    [0n, "1", "1"],
    [eighth - 1n, "1", "1"],
    [eighth, "1", "0"],
    [3n * eighth - 1n, "1", "0"],
    [3n * eighth, "0", "0"],
    [4n * eighth - 1n, "0", "0"],
    [4n * eighth, "⊥", "⊥"],
    [WHOLE - 1n, "⊥", "⊥"],
  ] as const) {
    assert.deepEqual([drawn(coin, true), drawn(coin, false)], [yes, no], coin.toString());
  }
});

test("certain outcomes need no luck", () => {
  const { cells } = channelOfText("randomized-response(t=1)")!;
  for (const coin of [0n, WHOLE / 2n, WHOLE - 1n]) {
    assert.equal(draw(cells, true, coins(coin).randomness), 0);
    assert.equal(draw(cells, false, coins(coin).randomness), 1);
  }
});

test("either truth reads eight bytes", () => {
  const { cells } = channelOfText("tuned(sy1=0.5,sy2=0.2,p1=0.9,p2=0.8,sn=0.6,p3=0.3)")!;
  for (const truth of [true, false]) {
    const tossed = coins(123_456_789n);
    draw(cells, truth, tossed.randomness);
    assert.equal(tossed.read(), 8);
  }
});

/** A generator with a seed (splitmix64), for the frequencies below. */
function seeded(seed: bigint): Randomness {
  let state = seed;
  const mask = WHOLE - 1n;
  return (bytes) => {
    state = (state + 0x9e3779b97f4a7c15n) & mask;
    let mixed = state;
    mixed = ((mixed ^ (mixed >> 30n)) * 0xbf58476d1ce4e5b9n) & mask;
    mixed = ((mixed ^ (mixed >> 27n)) * 0x94d049bb133111ebn) & mask;
    new DataView(bytes.buffer).setBigUint64(0, mixed ^ (mixed >> 31n), true);
  };
}

test("frequencies are those of the law", () => {
  const { cells } = channelOfText("normal-form(f=0.8,r=0.2)")!;
  const [randomness, draws] = [seeded(1n), 20_000];
  for (const truth of [true, false]) {
    const counts = cells.map(() => 0);
    for (let i = 0; i < draws; i++) counts[draw(cells, truth, randomness)]! += 1;
    counts.forEach((count, index) => {
      const p = Number(truth ? cells[index]!.yes : cells[index]!.no) / Number(WHOLE);
      // Six comparisons at 4.5 standard deviations each: a false alarm for fewer than 1 in 20 000 seeds.
      assert.ok(Math.abs(count - draws * p) < 4.5 * Math.sqrt(draws * p * (1 - p)), `${truth} ${index}: ${count}`);
    });
  }
});

test("uniform numbers reach both ends and nothing else", () => {
  const randomness = seeded(2n);
  const seen = new Set(Array.from({ length: 400 }, () => uniform(6, randomness)));
  assert.deepEqual([...seen].sort(), [0, 1, 2, 3, 4, 5, 6]);
  // What would be likelier than the rest is thrown away.
  assert.equal(uniform(2, coins(WHOLE - 1n, 5n).randomness), 2);
});

test("times for sending are picked before the person answers, and the click only skips some of them", () => {
  for (let seed = 0n; seed < 200n; seed++) {
    const times = drawSendTimes(1000, 2000, 120, seeded(seed));
    assert.ok(times[0]! >= 1000 + FIXED_DELAY && times.at(-1)! <= 1900);
    times.slice(1).forEach((time, index) => {
      const gap = time - times[index]!;
      assert.ok(gap >= FIXED_DELAY && gap <= FIXED_DELAY + 120);
    });
    for (const click of [1000, 1040, 1500]) {
      const chosen = nextSendTime(times, click);
      assert.ok(chosen === undefined || (times.includes(chosen) && chosen >= click + FIXED_DELAY));
    }
  }
  assert.deepEqual(drawSendTimes(1000, 1003, 60, seeded(1n)), []);
  assert.equal(nextSendTime([1010], 1008), undefined);
});

test("a pause is what a server asks for, within an hour", () => {
  assert.equal(pause("7", coins(0n).randomness), 7);
  assert.equal(pause("999999", coins(0n).randomness), 3600);
  assert.equal(pause("soon", coins(0n).randomness), 1);
});
