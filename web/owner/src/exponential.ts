// e^x of a rational, between two integers over 2^320: no platform's `exp` is involved, so that everybody finds the same
// last digit. The method is that of the library's `certified/exponential`.

import type { Rational } from "./rational.js";

/** Bits behind the point. */
export const BITS = 320n;

/** Two numbers over 2^320 between which e^x lies. */
export interface Enclosure {
  readonly lower: bigint;
  readonly upper: bigint;
}

/** e^x for x of at least zero and at most some hundred. */
export function exponential(x: Rational): Enclosure {
  // Halve until the series converges fast, and square as often.
  const whole = x.numerator / x.denominator;
  const halvings = BigInt((whole === 0n ? 0 : whole.toString(2).length) + 4);
  const scaled = (x.numerator << BITS) / (x.denominator << halvings);
  let { lower, upper } = series(scaled);
  // The argument was rounded down by less than one unit, which moves e^x by less than two.
  upper += 2n;
  for (let i = 0n; i < halvings; i++) {
    lower = (lower * lower) >> BITS;
    upper = ((upper * upper) >> BITS) + 1n;
  }
  return { lower, upper };
}

/** e^−x likewise. */
export function inverseExponential(x: Rational): Enclosure {
  const { lower, upper } = exponential(x);
  const one = 1n << (2n * BITS);
  return { lower: one / upper, upper: one / lower + 1n };
}

/** Σ x^k/k! for x below 1/8, every term rounded down. */
function series(x: bigint): Enclosure {
  let term = 1n << BITS;
  let sum = term;
  let terms = 0n;
  while (term !== 0n) {
    terms += 1n;
    term = ((term * x) >> BITS) / terms;
    sum += term;
  }
  // Each rounding loses at most two units of a term; what follows the last term is less than one.
  return { lower: sum, upper: sum + 3n * terms + 2n };
}
