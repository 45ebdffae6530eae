// Coins. Both laws are walked whatever the truth, and the truth enters only at the end, by arithmetic. JavaScript gives no
// promise about time; that a report is sent at a moment drawn before hides what is left.

import type { Cell } from "./card.js";

/** Fills bytes with randomness; `crypto.getRandomValues` everywhere but in tests. */
export type Randomness = (bytes: Uint8Array<ArrayBuffer>) => void;

export const systemRandomness: Randomness = (bytes) => {
  crypto.getRandomValues(bytes);
};

/** A uniform integer below 2^64. */
function coin(randomness: Randomness): bigint {
  const bytes = new Uint8Array(8);
  randomness(bytes);
  return new DataView(bytes.buffer).getBigUint64(0, true);
}

/** How many of a law's running sums, the last left out, a coin reaches; every one is looked at. */
function reached(toss: bigint, law: readonly bigint[]): bigint {
  let [sum, count] = [0n, 0n];
  for (const part of law.slice(0, -1)) {
    sum += part;
    count += BigInt(toss >= sum);
  }
  return count;
}

/** The index of the cell that a person of this truth writes. It reads eight bytes. */
export function draw(cells: readonly Cell[], truth: boolean, randomness: Randomness = systemRandomness): number {
  const toss = coin(randomness);
  const yes = reached(toss, cells.map((cell) => cell.yes));
  const no = reached(toss, cells.map((cell) => cell.no));
  const mask = BigInt(truth);
  return Number(yes * mask + no * (1n - mask));
}

/** A uniform whole number from 0 to `most`, which is below 2^32. */
export function uniform(most: number, randomness: Randomness = systemRandomness): number {
  const size = BigInt(most) + 1n;
  // What would make some numbers likelier is thrown away.
  const usable = (1n << 64n) - ((1n << 64n) % size);
  for (;;) {
    const toss = coin(randomness);
    if (toss < usable) return Number(toss % size);
  }
}
