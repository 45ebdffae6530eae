// How much a card reveals, computed from its integers and rounded up, in units of 10^−12: to somebody who sees the answer itself
// (linked), and to everybody except one honest aggregator.

import { type Card, type Channel, type Claim, WHOLE } from "./card.js";
import { BITS, exponential, inverseExponential, isAtMost, ratio, type Rational } from "./exact.js";
import { Refusal } from "./refusal.js";

/** The number of units in 1: claims are whole multiples of 10^−12. */
export const UNITS = 1_000_000_000_000n;

/** The cost of a card, in units; `undefined` where there is no guarantee. */
export interface Price {
  /** If nobody else is honest. */
  readonly linked: bigint | undefined;
  /** If one aggregator is honest, and nobody else. */
  readonly oneAggregator: bigint | undefined;
}

/** The probabilities of one observation for both truths. */
interface Likelihood {
  readonly yes: bigint;
  readonly no: bigint;
}

/** The smallest number of at least zero for which a monotone test holds; `guess` should be close to it. */
export function smallestThat(holds: (units: bigint) => boolean, guess: bigint): bigint {
  let [below, above, step] = [guess - 1n, guess, 1n];
  while (below >= 0n && holds(below)) [above, below, step] = [below, below - step, 2n * step];
  while (!holds(above)) [below, above, step] = [above, above + step, 2n * step];
  if (below < 0n) below = -1n;
  while (above - below > 1n) {
    const middle = (above + below) / 2n;
    if (holds(middle)) above = middle;
    else below = middle;
  }
  return above;
}

function guessed(epsilon: number): bigint {
  return Number.isFinite(epsilon) && epsilon > 0 ? BigInt(Math.floor(epsilon * 1e12)) : 0n;
}

/** The smallest number of units that is at least ln(large/small). */
function logarithm(large: bigint, small: bigint): bigint {
  const holds = (units: bigint): boolean => exponential(ratio(units, UNITS)).lower * small >= large << BITS;
  return large === small ? 0n : smallestThat(holds, guessed(Math.log1p(Number(large - small) / Number(small))));
}

/** The largest likelihood ratio; `undefined` if some observation determines the truth. */
function largestRatio(seen: readonly Likelihood[]): { large: bigint; small: bigint } | undefined {
  let [large, small] = [1n, 1n];
  for (const { yes, no } of seen.filter(({ yes, no }) => yes + no > 0n)) {
    const [more, less] = yes > no ? [yes, no] : [no, yes];
    if (less === 0n) return undefined;
    if (more * small > large * less) [large, small] = [more, less];
  }
  return { large, small };
}

function answerLikelihoods(channel: Channel, answer: number): Likelihood[] {
  return channel.answers[answer]!.map((output) => {
    const cells = channel.cells.filter((cell) => cell.outputs[answer] === output);
    const sum = (law: "yes" | "no"): bigint => cells.reduce((all, cell) => all + cell[law], 0n);
    return { yes: sum("yes"), no: sum("no") };
  });
}

/** ε of everything that an owner writes, in units. */
export function linkedUnits(channel: Channel): bigint | undefined {
  const found = largestRatio(channel.cells);
  return found && logarithm(found.large, found.small);
}

/**
 * ε of the published sum if one aggregator is honest, in units: the smallest bound on both constant ratios of the laws
 * of one bit plus one draw of noise (docs/accounting.md, section 6).
 */
export function oneAggregatorUnits(yes: bigint, no: bigint, scale: Rational): bigint {
  const [high, low] = yes > no ? [yes, no] : [no, yes];
  if (high === low) return 0n;
  if (high === WHOLE && low === 0n) {
    // The bit is the truth itself: ε = 1/scale.
    return (UNITS * scale.denominator + scale.numerator - 1n) / scale.numerator;
  }
  const decay = inverseExponential({ numerator: scale.denominator, denominator: scale.numerator });
  const one = 1n << BITS;
  const raised = (law: bigint, a: bigint): bigint => law * one + (WHOLE - law) * a;
  const kept = (law: bigint, a: bigint): bigint => WHOLE * one - law * (one - a);
  const [positive, negative] = [raised(high, decay.upper) << BITS, kept(low, decay.upper) << BITS];
  const [less, more] = [raised(low, decay.lower), kept(high, decay.lower)];
  const holds = (units: bigint): boolean => {
    const growth = exponential(ratio(units, UNITS)).lower;
    return growth * less >= positive && growth * more >= negative;
  };
  return smallestThat(holds, guessed(approximate(high, low, Number(scale.numerator) / Number(scale.denominator))));
}

/** The closed form in floating point, used only as a first guess. */
function approximate(high: bigint, low: bigint, scale: number): number {
  const [p, q, one] = [Number(high), Number(low), Number(WHOLE)];
  const [a, difference] = [Math.exp(-1 / scale), (Number(high - low) / one) * -Math.expm1(-1 / scale)];
  const raised = difference / (q / one + (Number(WHOLE - low) / one) * a);
  const lowered = difference / (Number(WHOLE - high) / one + (p / one) * a);
  return Math.log1p(Math.max(raised, lowered));
}

/** The number of queries that a card is charged for: the windows of its series. */
function countedQueries(card: Card): bigint {
  return card.series ? card.series.times : 1n;
}

function tooGood(view: string, claim: Claim, truth: string): Refusal {
  const message = `The card promises ε = ${claim.text} ${view}, but the truth is worse (${truth}).`;
  return new Refusal("claim", `${message} Do not answer such a card.`);
}

/** Formats units as a decimal. */
export function unitsText(units: bigint): string {
  const digits = units.toString().padStart(13, "0");
  const behind = digits.slice(-12).replace(/0+$/, "");
  return behind === "" ? digits.slice(0, -12) : `${digits.slice(0, -12)}.${behind}`;
}

/** Checks a claim about the outputs of a number of queries: e^(claim/queries) must be at least the largest ratio. */
function checkLocal(view: string, claim: Claim, seen: readonly Likelihood[], queries: bigint): void {
  if (!claim.epsilon) return;
  const found = largestRatio(seen);
  if (!found) throw tooGood(view, claim, "there is no guarantee");
  const { numerator, denominator } = claim.epsilon;
  // No ratio of integers up to 2^64 exceeds e^200.
  if (isAtMost(ratio(200n, 1n), ratio(numerator, denominator * queries))) return;
  const growth = exponential(ratio(numerator, denominator * queries)).lower;
  if (growth * found.small < found.large << BITS) {
    throw tooGood(view, claim, `ε = ${unitsText(logarithm(found.large, found.small) * queries)}, rounded up`);
  }
}

/**
 * Checks a claim at δ about an answer seen together with the counts. They reveal at least as much as the answer alone, so the
 * claim is false if the answer's hockey-stick divergence already exceeds δ. No more than that is checked here.
 */
function checkWithCounts(claim: Claim, seen: readonly Likelihood[], delta: Rational): void {
  if (!claim.epsilon || isAtMost(ratio(200n, 1n), claim.epsilon)) return;
  const growth = exponential(claim.epsilon).upper;
  const beyond = (law: "yes" | "no", other: "yes" | "no"): bigint =>
    seen.map((one) => (one[law] << BITS) - growth * one[other]).reduce((sum, part) => (part > 0n ? sum + part : sum), 0n);
  for (const found of [beyond("yes", "no"), beyond("no", "yes")]) {
    if (found * delta.denominator > (delta.numerator * WHOLE) << BITS) {
      throw tooGood("to somebody who sees the answer and the counts", claim, "the answer alone reveals more");
    }
  }
}

function checkOneAggregator(view: string, claim: Claim | undefined, found: bigint | undefined): void {
  if (found === undefined) {
    if (claim) throw new Refusal("claim", `The card makes a promise ${view}, but its aggregators add no noise.`);
    return;
  }
  if (!claim) throw new Refusal("claim", `The card makes no promise ${view}, although its aggregators add noise.`);
  if (claim.epsilon && !isAtMost(ratio(found, UNITS), claim.epsilon)) {
    throw tooGood(view, claim, `ε = ${unitsText(found)}, rounded up`);
  }
}

/** Recomputes the claims that take little time, and returns the cost of the card. */
export function checkClaims(card: Card): Price {
  const { channel } = card;
  if (card.answers.length !== channel.answers.length || card.answersWithRelease.length !== channel.answers.length) {
    throw new Refusal("claim", "The card does not make one claim for each answer.");
  }
  const queries = countedQueries(card);
  if (queries === 0n) throw new Refusal("claim", "The card belongs to a series of no questions.");
  if ((queries > 1n) !== (card.whole !== undefined) || (card.whole && card.whole.queries !== queries)) {
    throw new Refusal("claim", "The card does not say how much all questions of its series together reveal.");
  }
  channel.answers.forEach((_, answer) => {
    const seen = answerLikelihoods(channel, answer);
    checkLocal("to somebody who sees the answer", card.answers[answer]!, seen, 1n);
    checkWithCounts(card.answersWithRelease[answer]!, seen, card.delta);
  });
  checkLocal("if nobody else is honest", card.linked, channel.cells, 1n);
  if (card.whole) checkLocal("for the whole series if nobody else is honest", card.whole.linked, channel.cells, queries);
  const once = oneAggregatorOf(channel);
  checkOneAggregator("if one aggregator is honest", card.oneAggregator, once);
  if (card.whole) {
    const together = once === undefined ? undefined : once * queries;
    checkOneAggregator("for the whole series if one aggregator is honest", card.whole.oneAggregator, together);
  }
  const linked = linkedUnits(channel);
  const all = (units: bigint | undefined): bigint | undefined => (units === undefined ? undefined : units * queries);
  // Without noise, somebody who knows everybody else's answers learns this one from the counts.
  return { linked: all(linked), oneAggregator: all(once ?? linked) };
}

function oneAggregatorOf(channel: Channel): bigint | undefined {
  if (!channel.noise) return undefined;
  const index = channel.answers[0]!.indexOf("1");
  const bit = answerLikelihoods(channel, 0)[index];
  if (!bit) throw new Refusal("mechanism", "The card's aggregators add noise to a number that nobody contributes to.");
  return oneAggregatorUnits(bit.yes, bit.no, channel.noise);
}
