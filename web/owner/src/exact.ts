// Exact arithmetic with rationals of at least zero, and enclosures of their exponentials. Nothing here depends on floating point.

/** A rational number in lowest terms. */
export interface Rational {
  readonly numerator: bigint;
  readonly denominator: bigint;
}

function greatestCommonDivisor(a: bigint, b: bigint): bigint {
  while (b !== 0n) [a, b] = [b, a % b];
  return a;
}

export function ratio(numerator: bigint, denominator: bigint): Rational {
  const common = greatestCommonDivisor(numerator, denominator);
  return { numerator: numerator / common, denominator: denominator / common };
}

export const ONE: Rational = { numerator: 1n, denominator: 1n };

export function isAtMost(left: Rational, right: Rational): boolean {
  return left.numerator * right.denominator <= right.numerator * left.denominator;
}

export function times(left: Rational, right: Rational): Rational {
  return ratio(left.numerator * right.numerator, left.denominator * right.denominator);
}

export function plus(left: Rational, right: Rational): Rational {
  const sum = left.numerator * right.denominator + right.numerator * left.denominator;
  return ratio(sum, left.denominator * right.denominator);
}

/** One minus a number of at most one. */
export function complement(part: Rational): Rational {
  return { numerator: part.denominator - part.numerator, denominator: part.denominator };
}

/** Longer than any legitimate number; longer texts are rejected without work. */
const LONGEST_TEXT = 256;
const LARGEST_EXPONENT = 400;

/** Parses `0.05`, `5e-2`, `1/20` or `1/2^64`; `undefined` for any other form. */
export function readRational(text: string): Rational | undefined {
  if (text.length > LONGEST_TEXT) return undefined;
  const fraction = /^(\d+)\/(?:2\^(\d{1,4})|(\d+))$/.exec(text);
  if (fraction) {
    const denominator = fraction[2] === undefined ? BigInt(fraction[3]!) : 1n << BigInt(fraction[2]);
    return denominator === 0n ? undefined : ratio(BigInt(fraction[1]!), denominator);
  }
  return readDecimal(text);
}

/** Parses decimal digits with an optional point and exponent. */
export function readDecimal(text: string): Rational | undefined {
  if (text.length > LONGEST_TEXT) return undefined;
  const parts = /^(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,9}))?$/.exec(text);
  if (!parts) return undefined;
  const [, whole = "", behind = "", power = "0"] = parts;
  const exponent = Number(power) - behind.length;
  if (whole + behind === "" || Math.abs(exponent) > LARGEST_EXPONENT) return undefined;
  const digits = BigInt(whole + behind);
  return exponent < 0 ? ratio(digits, 10n ** BigInt(-exponent)) : ratio(digits * 10n ** BigInt(exponent), 1n);
}

/** The power of a prime in a number, and the remaining factor. */
function divided(number: bigint, prime: bigint): [number, bigint] {
  let power = 0;
  while (number % prime === 0n) [number, power] = [number / prime, power + 1];
  return [power, number];
}

/** The canonical text of a number on a card: a decimal if it terminates, otherwise a ratio. */
export function plainText({ numerator, denominator }: Rational): string {
  const [twos, withoutTwos] = divided(denominator, 2n);
  const [fives, rest] = divided(withoutTwos, 5n);
  const places = Math.max(twos, fives);
  if (rest !== 1n || places > 40) {
    return rest === 1n && fives === 0 ? `${numerator}/2^${twos}` : `${numerator}/${denominator}`;
  }
  const scaled = (numerator * 10n ** BigInt(places)) / denominator;
  const digits = scaled.toString().padStart(places + 1, "0");
  const [whole, part] = [digits.slice(0, digits.length - places), digits.slice(digits.length - places)];
  const zeros = part.length - part.replace(/^0+/, "").length;
  if (whole === "0" && zeros >= 4) {
    const [first, others] = [part.slice(zeros, zeros + 1), part.slice(zeros + 1)];
    return `${first}${others === "" ? "" : "."}${others}e-${zeros + 1}`;
  }
  return places === 0 ? whole : `${whole}.${part}`;
}

// e^x of a rational, enclosed by two integers over 2^320. It does not use the platform's `exp`, so everybody gets the same last
// digit. The method is that of the library's `certified/exponential`.

/** Bits after the binary point. */
export const BITS = 320n;

/** Two numbers over 2^320 between which e^x lies. */
export interface Enclosure {
  readonly lower: bigint;
  readonly upper: bigint;
}

/** e^x for x from zero to a few hundred. */
export function exponential(x: Rational): Enclosure {
  // Halve the argument until the series converges fast, and square the result as often.
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

/** e^−x for the same x. */
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
  // Each rounding loses at most two units of a term; the terms after the last sum to less than one unit.
  return { lower: sum, upper: sum + 3n * terms + 2n };
}
