// A card against everything that a person's browser can check by itself, before any coin is tossed.

import { fromBase64Url, nameOf } from "./canonical.js";
import { chargeText, readCard, WHOLE, type Card, type Channel } from "./card.js";
import { checkClaims, unitsText, type Price } from "./claims.js";
import { isSamePlace, isTrial, keyBytes, readAddress } from "./link.js";
import { channelOfText, isSameChannel } from "./mechanism.js";
import { allows, limitText, type Policy } from "./policy.js";
import { Refusal } from "./refusal.js";

/** A card as a desk serves it. */
export interface SignedCard {
  readonly query: string;
  readonly card: string;
  readonly signature: string;
}

/** Whose card is expected, and which. */
export interface Expected {
  readonly key: string;
  readonly query: string;
}

/** A card that holds what it promises and that the person's policy allows. */
export interface VerifiedCard {
  readonly query: string;
  /** What is paid for once, however many questions a series has. */
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

/** The card's own promises, without the person's policy. */
export async function verifyCard(signed: SignedCard, expected: Expected): Promise<VerifiedCard> {
  const card = readCard(signed.card);
  if (signed.query !== expected.query || (await nameOf(signed.card)) !== expected.query) {
    throw new Refusal("name", "The desk sent another card than the one that your link names.");
  }
  if (card.signer !== expected.key) {
    throw new Refusal("signer", "The card is signed by somebody else than the desk that your link names.");
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

/** What the person allows. `linked` and `one aggregator` are limits of what everything on the card gives away. */
export function checkPolicy(card: VerifiedCard, policy: Policy): void {
  if (card.isOneOperator && !policy.oneOperator) {
    throw new Refusal(
      "aggregators",
      "One operator runs both aggregators of this question, and could see your answer. Your settings refuse that.",
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
      throw new Refusal("limit", `The card gives ${gives} ${who}; your limit for one question is ${limitText(limit)}.`);
    }
  }
}

/** Whether the question can be answered now. */
export function checkTime(card: VerifiedCard, now: number): void {
  if (now < card.opens) throw new Refusal("closed", "The question is not open yet.");
  if (now >= card.closes) throw new Refusal("closed", "The question has closed.");
}

async function checkSignature(signed: SignedCard, key: string): Promise<void> {
  const [bytes, signature] = [keyBytes(key), fromBase64Url(signed.signature)];
  if (!bytes || signature?.length !== 64) throw new Refusal("signature", "The card's signature is malformed.");
  let verifier: CryptoKey;
  try {
    verifier = await crypto.subtle.importKey("raw", bytes, { name: "Ed25519" }, false, ["verify"]);
  } catch (error) {
    if (!(error instanceof DOMException) || error.name !== "NotSupportedError") {
      throw new Refusal("signature", "The desk's key is not one.");
    }
    throw new Refusal("browser", "This browser cannot check Ed25519 signatures. Use a newer one; nothing was answered.");
  }
  const message = new TextEncoder().encode(signed.card);
  if (!(await crypto.subtle.verify({ name: "Ed25519" }, verifier, signature, message))) {
    throw new Refusal("signature", "The card's signature is not the desk's: somebody has changed the card.");
  }
}

function readQuestion(card: Card): string {
  if (!card.asksPerson) {
    throw new Refusal("question", "The card asks what a device knows, not what a person says. This page cannot answer it.");
  }
  if (card.question === undefined || card.question.trim() === "") {
    throw new Refusal("question", "The card asks nothing in words.");
  }
  return card.question;
}

/** The window of a card is a multiple of its length, and in a series that of its number. */
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
      throw new Refusal("window", "The card's window is not the one of its number in the series.");
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
  if (!meant) throw new Refusal("mechanism", "The card uses a mechanism that this page does not know and so cannot check.");
  if (!isSameChannel(channel, meant)) {
    throw new Refusal("mechanism", "The card's probabilities are not those of its mechanism: one of them was changed.");
  }
  // Claims are for this many owners: none are for none.
  const owners = (card.honest.numerator * card.minimumBatch) / card.honest.denominator;
  if (owners < 1n) throw new Refusal("claim", "The card's promises count on nobody.");
}

function readAggregators(card: Card): [URL, URL] {
  if (!card.aggregators) throw new Refusal("aggregators", "The card does not say who adds up the answers.");
  const leader = readAddress(card.aggregators.leader, "leader");
  const helper = readAddress(card.aggregators.helper, "helper");
  if (isSamePlace(leader, helper)) {
    throw new Refusal("aggregators", `Both aggregators are at ${leader.host}, so that they are one, and could see your answer.`);
  }
  return [leader, helper];
}
