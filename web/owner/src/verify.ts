// Checks a card in every way that a person's browser can by itself, before the answer is randomized.

import { isSameOperator, isTrial, readAddress } from "./address.js";
import { fromBase64Url, nameOf } from "./canonical.js";
import { type Card, type Channel, chargeText, readCard, WHOLE } from "./card.js";
import { checkClaims, type Price, unitsText } from "./claims.js";
import { isWeakPoint, readPublicKey } from "./key.js";
import { channelOfText, isSameChannel } from "./mechanism.js";
import { allows, limitText, type Policy } from "./policy.js";
import { Refusal } from "./refusal.js";

/** A card as a desk serves it. */
export interface SignedCard {
  readonly query: string;
  readonly card: string;
  readonly signature: string;
}

/** The desk's key and the query's name that the card must have. */
export interface Expected {
  readonly key: string;
  readonly query: string;
}

/** A card whose promises hold. */
export interface VerifiedCard {
  readonly query: string;
  /** The name of the charge, which is the same for all questions of a series. */
  readonly charge: string;
  readonly number: bigint;
  readonly question: string;
  readonly channel: Channel;
  readonly price: Price;
  readonly opens: number;
  readonly closes: number;
  readonly leader: URL;
  readonly helper: URL;
  /** Both aggregators run on this machine: a trial. */
  readonly isTrial: boolean;
  readonly isOneOperator: boolean;
  readonly needsCredential: boolean;
  readonly repetitions: bigint;
}

/** Checks the card's own promises, without the person's policy. */
export async function verifyCard(signed: SignedCard, expected: Expected): Promise<VerifiedCard> {
  const card = readCard(signed.card);
  if (signed.query !== expected.query || (await nameOf(signed.card)) !== expected.query) {
    throw new Refusal("name", "The desk sent another card than the one in your link.");
  }
  if (card.signer !== expected.key) {
    throw new Refusal("signer", "The card is not signed by the desk in your link.");
  }
  await checkSignature(signed, expected.key);
  const question = readQuestion(card);
  const [opens, closes] = readWindow(card);
  checkMechanism(card);
  const price = checkClaims(card);
  const [leader, helper] = readAggregators(card);
  return {
    query: expected.query,
    charge: await nameOf(chargeText(card)),
    number: card.series?.number ?? 1n,
    question,
    channel: card.channel,
    price,
    opens,
    closes,
    leader,
    helper,
    isTrial: isTrial(leader, helper),
    isOneOperator: card.operators !== "two",
    needsCredential: card.enrolment === "required",
    repetitions: card.series?.times ?? 1n,
  };
}

/** Checks the person's limits. They apply to everything on the card together. */
export function checkPolicy(card: VerifiedCard, policy: Policy): void {
  if (card.isOneOperator && !policy.oneOperator) {
    throw new Refusal(
      "aggregators",
      "One operator runs both aggregators of this question, and could see your answer. Your settings do not allow that.",
    );
  }
  for (const [whose, url] of [["leader", card.leader], ["helper", card.helper]] as const) {
    if (!policy.aggregators.includes(url.origin)) {
      throw new Refusal("unlisted", `The ${whose} ${url.origin} is not on your list of aggregators.`);
    }
  }
  for (const view of ["linked", "oneAggregator"] as const) {
    const [cost, limit] = [card.price[view], policy.card[view]];
    if (!allows(limit, cost)) {
      const who = view === "linked" ? "if nobody else is honest" : "if one aggregator is honest";
      const gives = cost === undefined ? "no guarantee" : `ε = ${unitsText(cost)}`;
      throw new Refusal("limit", `The card has ${gives} ${who}; your limit for one question is ${limitText(limit)}.`);
    }
  }
}

/** Whether the question can be answered now. */
export function checkTime(card: VerifiedCard, now: number): void {
  if (now < card.opens) throw new Refusal("closed", "The question is not open yet.");
  if (now >= card.closes) throw new Refusal("closed", "The question has closed.");
}

async function checkSignature(signed: SignedCard, key: string): Promise<void> {
  const [bytes, signature] = [readPublicKey(key), fromBase64Url(signed.signature)];
  if (!bytes) throw new Refusal("signature", "The desk's key is not valid.");
  if (signature?.length !== 64 || isWeakPoint(signature.subarray(0, 32))) {
    throw new Refusal("signature", "The card's signature is malformed.");
  }
  let verifier: CryptoKey;
  try {
    verifier = await crypto.subtle.importKey("raw", bytes, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== "NotSupportedError") {
      throw new Refusal("signature", "The desk's key is not valid.");
    }
    throw new Refusal("browser", "This browser cannot check Ed25519 signatures. Use a newer one; nothing was answered.");
  }
  const message = new TextEncoder().encode(signed.card);
  if (!(await crypto.subtle.verify({ name: "Ed25519" }, verifier, signature, message))) {
    throw new Refusal("signature", "The card's signature is wrong: somebody has changed the card.");
  }
}

function readQuestion(card: Card): string {
  if (!card.asksPerson) {
    throw new Refusal("question", "The card is for devices, not for people. This page cannot answer it.");
  }
  if (card.question === undefined || card.question.trim() === "") {
    throw new Refusal("question", "The card contains no question.");
  }
  return card.question;
}

/** The window of a card. It starts at a multiple of its length and, in a series, matches the card's number. */
function readWindow(card: Card): [number, number] {
  const { opens, closes, series } = card;
  if (opens === undefined || closes === undefined || opens >= closes) {
    throw new Refusal("window", "The card does not say when it opens and closes.");
  }
  if (opens % (closes - opens) !== 0) throw new Refusal("window", "The card's window does not begin at a multiple of its length.");
  if (series) {
    const before = series.number - 1n;
    const starts = BigInt(series.starts) + before * series.every;
    const fits = before >= 0n && series.number <= series.times && series.every > 0n;
    if (!fits || starts !== BigInt(opens) || starts + series.every !== BigInt(closes)) {
      throw new Refusal("window", "The card's window does not match its number in the series.");
    }
  }
  return [opens, closes];
}

function checkMechanism(card: Card): void {
  const { channel } = card;
  for (const law of ["yes", "no"] as const) {
    if (channel.cells.reduce((sum, cell) => sum + cell[law], 0n) !== WHOLE) {
      throw new Refusal("mechanism", `The card's probabilities for ${law} do not sum to one.`);
    }
  }
  const meant = channelOfText(card.mechanism);
  if (!meant) throw new Refusal("mechanism", "The card uses a mechanism that this page does not know and therefore cannot check.");
  if (!isSameChannel(channel, meant)) {
    throw new Refusal("mechanism", "The card's probabilities do not match its mechanism: somebody has changed one of them.");
  }
  // Claims are certified for this many owners; without any owner they mean nothing.
  const owners = (card.honest.numerator * card.minimumBatch) / card.honest.denominator;
  if (owners < 1n) throw new Refusal("claim", "The card's promises are for zero owners.");
}

function readAggregators(card: Card): [URL, URL] {
  if (!card.aggregators) throw new Refusal("aggregators", "The card does not name its aggregators.");
  const leader = readAddress(card.aggregators.leader, "leader");
  const helper = readAddress(card.aggregators.helper, "helper");
  if (isSameOperator(leader, helper)) {
    throw new Refusal("aggregators", `Both aggregators are at ${leader.host}, so one operator runs both and could see your answer.`);
  }
  return [leader, helper];
}
