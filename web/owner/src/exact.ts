// Exact numbers of at least zero. A double never decides anything here.

/** A number in lowest terms. */
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

/** 1 − a number of at most one. */
export function complement(part: Rational): Rational {
  return { numerator: part.denominator - part.numerator, denominator: part.denominator };
}

/** Longer than any honest number, so that a hostile one costs nothing. */
const LONGEST_TEXT = 256;
const LARGEST_EXPONENT = 400;

/** Reads `0.05`, `5e-2`, `1/20` or `1/2^64`; nothing if it is none of them. */
export function readRational(text: string): Rational | undefined {
  if (text.length > LONGEST_TEXT) return undefined;
  const fraction = /^(\d+)\/(?:2\^(\d{1,4})|(\d+))$/.exec(text);
  if (fraction) {
    const denominator = fraction[2] === undefined ? BigInt(fraction[3]!) : 1n << BigInt(fraction[2]);
    return denominator === 0n ? undefined : ratio(BigInt(fraction[1]!), denominator);
  }
  return readDecimal(text);
}

/** Reads decimal digits, with a point and an exponent if need be. */
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

/** How often a prime divides, and what is left. */
function divided(number: bigint, prime: bigint): [number, bigint] {
  let power = 0;
  while (number % prime === 0n) [number, power] = [number / prime, power + 1];
  return [power, number];
}

/** The one text of a number on a card: a decimal where it ends, else a ratio. */
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

// e^x of a rational, between two integers over 2^320: no platform's `exp` is involved, so that everybody finds the same
// last digit. The method is that of the library's `certified/exponential`.

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
