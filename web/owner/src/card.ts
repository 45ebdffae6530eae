// The strict parser of query cards: every field is known, every number and the card itself are in canonical form.

import { canonical, type Json } from "./canonical.js";
import { isAtMost, ONE, plainText, ratio, type Rational, readDecimal, readRational } from "./exact.js";
import { Refusal } from "./refusal.js";

/** Probabilities are integers over this number. */
export const WHOLE = 1n << 64n;

export interface Cell {
  readonly outputs: readonly string[];
  readonly yes: bigint;
  readonly no: bigint;
}

export interface Channel {
  readonly answers: readonly (readonly string[])[];
  readonly cells: readonly Cell[];
  /** The scale of the noise that each aggregator adds; `undefined` if they add none. */
  readonly noise: Rational | undefined;
}

/** An ε as the card states it; `undefined` if the card promises nothing. */
export interface Claim {
  readonly text: string;
  readonly epsilon: Rational | undefined;
}

export interface Series {
  readonly times: bigint;
  readonly number: bigint;
  readonly starts: number;
  readonly every: bigint;
}

export interface Card {
  readonly text: string;
  readonly fields: { [key: string]: Json };
  readonly question: string | undefined;
  readonly asksPerson: boolean;
  readonly mechanism: string;
  readonly channel: Channel;
  readonly minimumBatch: bigint;
  readonly honest: Rational;
  readonly delta: Rational;
  readonly answers: readonly Claim[];
  readonly linked: Claim;
  readonly oneAggregator: Claim | undefined;
  readonly answersWithRelease: readonly Claim[];
  readonly whole: { queries: bigint; linked: Claim; oneAggregator: Claim | undefined } | undefined;
  readonly series: Series | undefined;
  readonly opens: number | undefined;
  readonly closes: number | undefined;
  readonly operators: string | undefined;
  readonly enrolment: string | undefined;
  readonly signer: string | undefined;
  readonly aggregators: { leader: string; helper: string } | undefined;
}

type Fields = { [key: string]: Json };

function malformed(where: string, expected: string): Refusal {
  return new Refusal("form", `This is not a card of this version: ${where} is not ${expected}.`);
}

/** An object with exactly these fields; those whose name ends in `?` are optional. */
function fieldsOf(value: Json | undefined, where: string, names: string): Fields {
  if (typeof value !== "object" || Array.isArray(value)) throw malformed(where, "an object");
  const known = names.split(" ").map((name) => ({ name: name.replace("?", ""), optional: name.endsWith("?") }));
  for (const key of Object.keys(value)) {
    if (!known.some(({ name }) => name === key)) {
      throw new Refusal("form", `The card has an unknown field “${key}” in ${where}, which cannot be checked.`);
    }
  }
  for (const { name, optional } of known) {
    if (!optional && !(name in value)) throw new Refusal("form", `The card lacks the field ${where}.${name}.`);
  }
  return value;
}

function textOf(value: Json | undefined, where: string): string {
  if (typeof value !== "string") throw malformed(where, "a text");
  return value;
}

function listOf<T>(value: Json | undefined, where: string, read: (item: Json, where: string) => T): T[] {
  if (!Array.isArray(value)) throw malformed(where, "a list");
  return value.map((item, index) => read(item, `${where}[${index}]`));
}

function optional<T>(value: Json | undefined, read: (value: Json) => T): T | undefined {
  return value === undefined ? undefined : read(value);
}

function oneOf(value: Json, where: string, words: readonly string[]): string {
  const text = textOf(value, where);
  if (!words.includes(text)) throw malformed(where, words.join(" or "));
  return text;
}

/** Digits without sign or leading zeros. */
function wholeNumber(value: Json | undefined, where: string, below = WHOLE): bigint {
  const text = textOf(value, where);
  if (!/^(0|[1-9]\d{0,19})$/.test(text) || BigInt(text) >= below) throw malformed(where, "a whole number");
  return BigInt(text);
}

/** A decimal of at least zero. */
function stated(value: Json | undefined, where: string): Rational {
  const number = readDecimal(textOf(value, where));
  if (!number) throw malformed(where, "a number");
  return number;
}

function claimOf(value: Json | undefined, where: string): Claim {
  const text = textOf(value, where);
  return { text, epsilon: text === "none" ? undefined : stated(value, where) };
}

function fractionOf(value: Json | undefined, where: string): Rational {
  const text = textOf(value, where);
  const number = readRational(text);
  if (!number || plainText(number) !== text || !isAtMost(number, ONE)) throw malformed(where, "a share in canonical form");
  return number;
}

/** A time in seconds since the epoch, in the form `2026-11-15T08:30:00Z` only. */
export function timeOf(value: Json | undefined, where: string): number {
  const text = textOf(value, where);
  const seconds = /^(?:19[7-9]|[2-9]\d\d)\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(text) ? Date.parse(text) / 1000 : Number.NaN;
  // A date out of range, such as the 30th of February, is not printed as it was written.
  const again = Number.isInteger(seconds) ? new Date(seconds * 1000).toISOString().replace(".000Z", "Z") : "";
  if (again !== text) throw malformed(where, "a time such as 2026-11-15T08:30:00Z");
  return seconds;
}

function scaleOf(value: Json | undefined, where: string): Rational {
  const text = textOf(value, where);
  const scale = readRational(text);
  const within = scale && isAtMost(ratio(1n, 100n), scale) && isAtMost(scale, ratio(1_000_000_000n, 1n));
  if (!within || plainText(scale) !== text || scale.numerator >= WHOLE || scale.denominator >= WHOLE) {
    throw malformed(where, "a scale from 0.01 to 1000000000 in canonical form");
  }
  return scale;
}

function outputOf(value: Json, where: string): string {
  const text = textOf(value, where);
  if (!/^[0-9⊥]$/.test(text)) throw malformed(where, "an output");
  return text;
}

function cellOf(value: Json, where: string): Cell {
  const fields = fieldsOf(value, where, "outputs yes no");
  return {
    outputs: listOf(fields["outputs"], `${where}.outputs`, outputOf),
    yes: wholeNumber(fields["yes"], `${where}.yes`, WHOLE + 1n),
    no: wholeNumber(fields["no"], `${where}.no`, WHOLE + 1n),
  };
}

function channelOf(value: Json | undefined): Channel {
  const fields = fieldsOf(value, "channel", "bits answers cells noise?");
  if (fields["bits"] !== "64") throw malformed("channel.bits", "64");
  const noise = optional(fields["noise"], (noise) => fieldsOf(noise, "channel.noise", "law scale"));
  if (noise && noise["law"] !== "discrete-laplace") throw malformed("channel.noise.law", "discrete-laplace");
  return {
    answers: listOf(fields["answers"], "channel.answers", (answer, where) => listOf(answer, where, outputOf)),
    cells: listOf(fields["cells"], "channel.cells", cellOf),
    noise: noise && scaleOf(noise["scale"], "channel.noise.scale"),
  };
}

function seriesOf(value: Json): Series {
  const fields = fieldsOf(value, "series", "times number starts every");
  return {
    times: wholeNumber(fields["times"], "series.times"),
    number: wholeNumber(fields["number"], "series.number"),
    starts: timeOf(fields["starts"], "series.starts"),
    every: wholeNumber(fields["every"], "series.every"),
  };
}

const NEIGHBOURING = "one owner's truth is substituted, the number of owners is public";
const FIELDS =
  "version question? predicate? ballot? series? attributes? mechanism owners minimum_batch honest neighbouring opens? " +
  "closes? operators? enrolment? signer? channel claims predicted aggregators?";

/** Values of a card are strings, lists and objects; anything else could be written in two ways. */
function isJson(value: unknown): value is Json {
  if (typeof value === "string") return isWellFormed(value);
  if (typeof value !== "object" || value === null) return false;
  return (Array.isArray(value) ? value : Object.entries(value).flat()).every(isJson);
}

/** Whether a string has no unpaired surrogate, which UTF-8 cannot encode. */
function isWellFormed(text: string): boolean {
  return !/[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/.test(text);
}

/** More characters than any card that a desk serves. */
const LARGEST = 4 * 1024 * 1024;

/** Contributions are for devices, which answer the whole of a ballot or a series with coins that they toss once. */
function refuseContributions(mechanism: string): void {
  if (/^(choice|contributions)\(/.test(mechanism)) {
    throw new Refusal("question", "The card is for devices, not for people. This page cannot answer it.");
  }
}

/** Parses the canonical text of a card. */
export function readCard(text: string): Card {
  let value: unknown;
  try {
    value = text.length > LARGEST ? undefined : JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (!isJson(value)) throw new Refusal("form", "The desk did not send a valid card.");
  if (canonical(value) !== text) {
    throw new Refusal("canonical", "The card is not in canonical form, so its name could refer to a different card.");
  }
  const fields = fieldsOf(value, "card", FIELDS);
  if (fields["version"] !== "2") throw malformed("version", "2");
  refuseContributions(textOf(fields["mechanism"], "mechanism"));
  if (fields["neighbouring"] !== NEIGHBOURING) throw malformed("neighbouring", "the relation of this version");
  wholeNumber(fields["owners"], "owners");
  const predicted = fieldsOf(fields["predicted"], "predicted", "yes_low yes_high sd");
  wholeNumber(predicted["yes_low"], "predicted.yes_low");
  wholeNumber(predicted["yes_high"], "predicted.yes_high");
  stated(predicted["sd"], "predicted.sd");
  const attributes = optional(fields["attributes"], (list) => listOf(list, "attributes", textOf));
  if (attributes?.length === 0) throw malformed("attributes", "a list of at least one");
  const addresses = optional(fields["aggregators"], (value) => fieldsOf(value, "aggregators", "leader helper"));
  return {
    text,
    fields,
    question: optional(fields["question"], (value) => textOf(value, "question")),
    asksPerson: !("predicate" in fields) && !("ballot" in fields) && !attributes,
    mechanism: textOf(fields["mechanism"], "mechanism"),
    channel: channelOf(fields["channel"]),
    minimumBatch: wholeNumber(fields["minimum_batch"], "minimum_batch"),
    honest: fractionOf(fields["honest"], "honest"),
    ...claimsOf(fields["claims"]),
    series: optional(fields["series"], seriesOf),
    opens: optional(fields["opens"], (value) => timeOf(value, "opens")),
    closes: optional(fields["closes"], (value) => timeOf(value, "closes")),
    operators: optional(fields["operators"], (value) => oneOf(value, "operators", ["one", "two"])),
    enrolment: optional(fields["enrolment"], (value) => oneOf(value, "enrolment", ["none", "required"])),
    signer: optional(fields["signer"], (value) => textOf(value, "signer")),
    aggregators: addresses && {
      leader: textOf(addresses["leader"], "aggregators.leader"),
      helper: textOf(addresses["helper"], "aggregators.helper"),
    },
  };
}

function claimsOf(value: Json | undefined): Pick<Card, "delta" | "answers" | "linked" | "oneAggregator" | "answersWithRelease" | "whole"> {
  const names = "delta answers linked one_aggregator? release answers_with_release whole?";
  const fields = fieldsOf(value, "claims", names);
  const delta = stated(fields["delta"], "claims.delta");
  if (delta.numerator === 0n || !isAtMost(delta, ONE)) throw malformed("claims.delta", "above 0 and at most 1");
  claimOf(fields["release"], "claims.release");
  return {
    delta,
    answers: listOf(fields["answers"], "claims.answers", claimOf),
    linked: claimOf(fields["linked"], "claims.linked"),
    oneAggregator: optional(fields["one_aggregator"], (value) => claimOf(value, "claims.one_aggregator")),
    answersWithRelease: listOf(fields["answers_with_release"], "claims.answers_with_release", claimOf),
    whole: optional(fields["whole"], wholeOf),
  };
}

function wholeOf(value: Json): NonNullable<Card["whole"]> {
  const fields = fieldsOf(value, "claims.whole", "queries linked one_aggregator? release");
  claimOf(fields["release"], "claims.whole.release");
  return {
    queries: wholeNumber(fields["queries"], "claims.whole.queries"),
    linked: claimOf(fields["linked"], "claims.whole.linked"),
    oneAggregator: optional(fields["one_aggregator"], (value) => claimOf(value, "claims.whole.one_aggregator")),
  };
}

/** The text whose hash names the charge: the card without the fields in which the cards of a series differ. */
export function chargeText(card: Card): string {
  if (!card.series) return card.text;
  const { opens: _opens, closes: _closes, series, ...rest } = card.fields as Fields & { series: Fields };
  return canonical({ ...rest, series: { ...series, number: "" } });
}
