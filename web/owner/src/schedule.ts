// When a report is sent. All moments are drawn when the card is opened, before the person has seen the question: the click
// decides only which of them have passed. So neither the button nor the time of thinking shows in them.

import { systemRandomness, uniform, type Randomness } from "./coins.js";

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
