// What the numbers mean, in words. Every number is rounded against the card.

import { UNITS } from "../claims.js";
import type { VerifiedCard } from "../verify.js";

/** How often the best guess is right at most where it was even before, in words. */
export function guesses(units: bigint | undefined): string {
  if (units === undefined) return "can know your answer";
  const share = 1 / (1 + Math.exp(-Number(units) / Number(UNITS)));
  for (const times of [100, 10_000]) {
    // Doubles are off by far less than what is added; without any ε there is nothing to be off.
    const right = Math.ceil(times * share + (units === 0n ? 0 : 1e-7));
    if (right < times) return `can guess your answer right at most ${right} of ${times} times where it was ${times / 2} before`;
  }
  return "can be all but certain of your answer";
}

/** An ε of at most four digits, rounded up. */
export function epsilonText(units: bigint | undefined): string {
  if (units === undefined) return "no bound";
  const thousandths = (units * 1000n + UNITS - 1n) / UNITS;
  const digits = thousandths.toString().padStart(4, "0");
  return `${digits.slice(0, -3)}.${digits.slice(-3)}`.replace(/\.?0+$/, "") || "0";
}

interface Learns {
  readonly who: string;
  readonly what: string;
}

/** Who can learn what from an answer. */
export function whoLearnsWhat(card: VerifiedCard): Learns[] {
  const times = card.repetitions > 1n ? ` from all ${card.repetitions} questions of this series together` : "";
  const odds = (units: bigint | undefined): string =>
    units === undefined ? `${guesses(units)}.` : `${guesses(units)}${times} (ε = ${epsilonText(units)}).`;
  const everybody = card.isOneOperator
    ? { who: "Everybody but the operator of both aggregators", what: odds(card.price.oneAggregator) }
    : { who: "Everybody, as long as one of the two aggregators is honest", what: odds(card.price.oneAggregator) };
  const together = card.isOneOperator
    ? { who: "The operator of both aggregators", what: odds(card.price.linked) }
    : { who: "Both aggregators and everybody else, if they work together", what: odds(card.price.linked) };
  return [
    everybody,
    together,
    { who: "The leader", what: "sees that you answered, when, and your network address." },
    { who: "The desk", what: "sees that somebody at your network address read the question." },
  ];
}

/** What the coins are good for. */
export function whatCoinsDo(card: VerifiedCard): string {
  return card.price.linked === undefined
    ? "This question has no coins that could hide your answer: whoever puts both halves together sees it."
    : "Your browser tosses coins before anything leaves it, so that nobody can be certain of your answer.";
}

/** What this page checked, and what it could not. */
export function whatWasChecked(card: VerifiedCard): string[] {
  return [
    "The card is the one that your link names, byte by byte, and is signed by the desk’s key.",
    "Its probabilities are those of its mechanism, and both promises above follow from them. They were computed here.",
    `The aggregators are two: ${card.leader.host} and ${card.helper.host}, both on your list.`,
    card.isTrial ? "Both run on your own machine: this is a trial." : "That they belong to two operators is the desk’s word.",
    "Not checked: what the card says about crowds, which rests on other people’s coins. Nothing above counts on it.",
    "Not checkable by anybody: that an aggregator draws its noise.",
  ];
}

const TIME: Intl.DateTimeFormatOptions = { weekday: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" };

export function momentText(seconds: number): string {
  return new Intl.DateTimeFormat("en", TIME).format(new Date(seconds * 1000));
}
