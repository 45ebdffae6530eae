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
