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

// When a report is sent. All moments are drawn when the card is opened, before the person has seen the question: the click
// decides only which of them have passed. So neither the button nor the time of thinking shows in them.

/** Between the click and the sending pass at least so many seconds; making a report takes less. */
export const FIXED_DELAY = 3;
/** Longer lists than this are not kept; a page that stays open for longer is opened again. */
const MOST_MOMENTS = 4096;

/** The moments from now to the end of the window, at most `within` seconds and the delay apart. */
export function drawMoments(now: number, closes: number, within: number, randomness: Randomness = systemRandomness): number[] {
  const latest = closes - Math.ceil(Math.max(closes - now, 0) / 10);
  const moments: number[] = [];
  let earliest = now + FIXED_DELAY;
  while (earliest <= latest && moments.length < MOST_MOMENTS) {
    const moment = earliest + uniform(Math.min(within, latest - earliest), randomness);
    moments.push(moment);
    earliest = moment + FIXED_DELAY;
  }
  return moments;
}

/** The first of the moments that is late enough for a click now. */
export function nextMoment(moments: readonly number[], now: number): number | undefined {
  return moments.find((moment) => moment >= now + FIXED_DELAY);
}

/** How long to wait before the same bytes are sent again, in seconds. */
export function pause(retryAfter: string | null, randomness: Randomness = systemRandomness): number {
  const asked = retryAfter !== null && /^\d{1,9}$/.test(retryAfter.trim()) ? Math.min(Number(retryAfter), 3600) : 0;
  return Math.max(1 + uniform(4, randomness), asked);
}
