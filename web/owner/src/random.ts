// Randomness: the draw of a cell, and the times for sending. A draw evaluates both laws for either truth, and the truth selects one
// by arithmetic at the end. JavaScript guarantees nothing about timing; sending at a time chosen beforehand hides the rest.

import type { Cell } from "./card.js";

/** Fills bytes with randomness; `crypto.getRandomValues` except in tests. */
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

/** The number of a law's cumulative sums, without the last, that a coin reaches. Compares with every one of them. */
function sumsReached(drawn: bigint, law: readonly bigint[]): bigint {
  let [sum, count] = [0n, 0n];
  for (const part of law.slice(0, -1)) {
    sum += part;
    count += BigInt(drawn >= sum);
  }
  return count;
}

/** Draws the index of a cell by the law of a truth. Reads eight bytes for either truth. */
export function draw(cells: readonly Cell[], truth: boolean, randomness: Randomness = systemRandomness): number {
  const drawn = coin(randomness);
  const yes = sumsReached(drawn, cells.map((cell) => cell.yes));
  const no = sumsReached(drawn, cells.map((cell) => cell.no));
  const mask = BigInt(truth);
  return Number(yes * mask + no * (1n - mask));
}

/** A uniform integer from 0 to `most`, which must be below 2^32. */
export function uniform(most: number, randomness: Randomness = systemRandomness): number {
  const size = BigInt(most) + 1n;
  // Reject draws that would make some numbers more likely than others.
  const usable = (1n << 64n) - ((1n << 64n) % size);
  for (;;) {
    const drawn = coin(randomness);
    if (drawn < usable) return Number(drawn % size);
  }
}

// When a report is sent. All times are picked when the card is opened, before the person has seen the question: the click decides
// only which of them have passed. So they reveal neither the button nor the time spent thinking.

/** The least number of seconds between the click and the sending; making a report takes less. */
export const FIXED_DELAY = 3;
/** The most times that are stored; a page that stays open for longer has to be opened again. */
const MOST_SEND_TIMES = 4096;

/** Picks times from now to the last tenth of the window, at most `within` seconds plus the delay apart. */
export function drawSendTimes(now: number, closes: number, within: number, randomness: Randomness = systemRandomness): number[] {
  const latest = closes - Math.ceil(Math.max(closes - now, 0) / 10);
  const times: number[] = [];
  let earliest = now + FIXED_DELAY;
  while (earliest <= latest && times.length < MOST_SEND_TIMES) {
    const time = earliest + uniform(Math.min(within, latest - earliest), randomness);
    times.push(time);
    earliest = time + FIXED_DELAY;
  }
  return times;
}

/** The first of the times that is late enough for a click now. */
export function nextSendTime(times: readonly number[], now: number): number | undefined {
  return times.find((time) => time >= now + FIXED_DELAY);
}

/** The number of seconds to wait before the same bytes are sent again. */
export function pause(retryAfter: string | null, randomness: Randomness = systemRandomness): number {
  const asked = retryAfter !== null && /^\d{1,9}$/.test(retryAfter.trim()) ? Math.min(Number(retryAfter), 3600) : 0;
  return Math.max(1 + uniform(4, randomness), asked);
}
