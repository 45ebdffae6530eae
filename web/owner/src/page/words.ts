// The numbers of a card in words. Every number is rounded so that the card looks no better than it is.

import { UNITS } from "../claims.js";
import type { VerifiedCard } from "../verify.js";

/** The largest probability of a correct guess, starting from even odds, in words. */
export function guessText(units: bigint | undefined): string {
  if (units === undefined) return "can know your answer";
  const share = 1 / (1 + Math.exp(-Number(units) / Number(UNITS)));
  for (const decimals of [0, 2]) {
    const whole = 100 * 10 ** decimals;
    // The error of floating point is far below 1e-7; at ε = 0 the share is exact.
    const right = Math.ceil(whole * share + (units === 0n ? 0 : 1e-7));
    const percent = (right / 10 ** decimals).toFixed(decimals);
    if (right < whole) return `can guess your answer correctly with a probability of at most ${percent}\u00a0%, up from 50\u00a0%`;
  }
  return "can be almost certain of your answer";
}

/** An ε with at most three decimals, rounded up. */
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
  const times = card.repetitions > 1n ? `, from all ${card.repetitions} questions of this series together` : "";
  const odds = (units: bigint | undefined): string =>
    units === undefined ? `${guessText(units)}.` : `${guessText(units)}${times} (ε = ${epsilonText(units)}).`;
  const everybody = card.isOneOperator
    ? { who: "Everybody except the operator of both aggregators", what: odds(card.price.oneAggregator) }
    : { who: "Everybody, as long as one of the two aggregators is honest", what: odds(card.price.oneAggregator) };
  const together = card.isOneOperator
    ? { who: "The operator of both aggregators", what: odds(card.price.linked) }
    : { who: "Both aggregators and everybody else, if they collude", what: odds(card.price.linked) };
  return [
    everybody,
    together,
    { who: "The leader", what: "sees that you answered, when, and your network address." },
    { who: "The desk", what: "sees that somebody at your network address opened the question." },
  ];
}

/** How randomness on the device protects the answer. */
export function protectionText(card: VerifiedCard): string {
  return card.price.linked === undefined
    ? "Your browser does not randomize this answer: anybody who combines both halves of it can see it."
    : "Your browser randomizes your answer before anything leaves it, so nobody can be certain of it.";
}

/** The checks that this page made, and those that it could not make. */
export function whatWasChecked(card: VerifiedCard): string[] {
  return [
    "The card is exactly the one in your link, and it is signed with the desk’s key.",
    "Its probabilities match its mechanism, and both promises above follow from them. They were computed here.",
    `There are two aggregators, ${card.leader.host} and ${card.helper.host}, both on your list.`,
    card.isTrial ? "Both run on your own machine: this is a trial." : "Only the desk says that they belong to two operators.",
    "Not checked: the card’s claims about crowds, which depend on other people’s randomness. Nothing above relies on them.",
    "Nobody can check that an aggregator adds its noise.",
  ];
}

const TIME: Intl.DateTimeFormatOptions = { weekday: "short", hour: "2-digit", minute: "2-digit", second: "2-digit" };

export function timeText(seconds: number): string {
  return new Intl.DateTimeFormat("en", TIME).format(new Date(seconds * 1000));
}
