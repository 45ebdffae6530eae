// From a link to a delivered report. The order protects the person: verify the card, pick the times for sending, fetch keys; then
// show the question; then charge, randomize, seal and store; then, at one of the chosen times, send the stored bytes.

import { checkBudget, type Entry, type Ledger, type State } from "./ledger.js";
import type { Link } from "./link.js";
import type { Policy } from "./policy.js";
import { draw, drawSendTimes, nextSendTime, pause } from "./random.js";
import { Refusal } from "./refusal.js";
import { checkCredential, credentialFor, HEADER, PLAIN_REQUEST, type Writer, writerFor } from "./report.js";
import { checkPolicy, checkTime, type SignedCard, type VerifiedCard, verifyCard } from "./verify.js";

/** The current Unix time in whole seconds. */
export const clock = (): number => Math.floor(Date.now() / 1000);

/** A question that may be answered. All requests that can be made before the answer have been made. */
export interface OpenQuestion {
  readonly card: VerifiedCard;
  readonly writer: Writer;
  readonly sendTimes: readonly number[];
  readonly credential: string | undefined;
}

/** Fetches the card that a link names, without checking it. */
export async function fetchCard(link: Link): Promise<SignedCard> {
  let response: Response;
  try {
    response = await fetch(new URL(`queries/${link.query}/card`, link.desk), PLAIN_REQUEST);
  } catch {
    throw new Refusal("network", "The desk cannot be reached, or does not allow this page.");
  }
  if (response.status === 404) throw new Refusal("closed", "The desk has no such open question; it may have closed.");
  const card: unknown = response.ok ? await response.json().catch(() => undefined) : undefined;
  const { query, card: text, signature } = (card ?? {}) as Partial<SignedCard>;
  if (typeof query !== "string" || typeof text !== "string" || typeof signature !== "string") {
    throw new Refusal("network", "The desk's response is not a card.");
  }
  return { query, card: text, signature };
}

/** Verifies a card against the person's policy and budget, and prepares everything for an answer. */
export async function openQuestion(
  link: Link,
  signed: SignedCard,
  policy: Policy,
  ledger: Ledger,
  now: () => number = clock,
): Promise<OpenQuestion> {
  const card = await verifyCard(signed, link);
  checkTime(card, now());
  checkPolicy(card, policy);
  if (card.needsCredential) checkCredential(link.credential);
  if (!(await ledger.isPaid(card.charge))) checkBudget(await ledger.spent(), card.price, policy.lifetime);
  const sendTimes = await ledger.sendTimes(card.query, () => drawSendTimes(now(), card.closes, policy.within));
  if (nextSendTime(sendTimes, now()) === undefined) throw tooLate();
  const writer = writerFor(card);
  await writer.fetchKeys();
  return { card, writer, sendTimes, credential: card.needsCredential ? link.credential : undefined };
}

function tooLate(): Refusal {
  return new Refusal("closed", "The question closes too soon for an answer to be sent in time.");
}

/** Charges the ledger, randomizes the answer, seals it and stores the report. Sends nothing; the entry says when it will be sent. */
export async function answerQuestion(
  question: OpenQuestion,
  truth: boolean,
  policy: Policy,
  ledger: Ledger,
  now: () => number = clock,
): Promise<Entry> {
  const { card, writer, sendTimes } = question;
  const sendAt = nextSendTime(sendTimes, now());
  if (sendAt === undefined) throw tooLate();
  const { query, charge, number, closes } = card;
  const noted = { query, charge, number, closes, question: card.question, leader: card.leader.href, sendAt };
  await ledger.charge(noted, card.price, policy.lifetime);
  const report = await writer.seal(draw(card.channel.cells, truth));
  const shown = question.credential && (await credentialFor(question.credential, query, report));
  await ledger.store(query, report, shown);
  return (await ledger.entry(query))!;
}

const sleep = (seconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Waits until the beginning of a second, in short steps, because clocks are adjusted and machines sleep. */
async function waitFor(time: number): Promise<void> {
  for (let left = time - Date.now() / 1000; left > 0; left = time - Date.now() / 1000) await sleep(Math.min(left, 10));
}

/** Sends a stored report at its time, and resends the same bytes until they are accepted or refused. Only one tab does this. */
export async function deliver(query: string, ledger: Ledger): Promise<State | undefined> {
  const send = async (): Promise<State | undefined> => {
    let entry = await ledger.entry(query);
    while (entry?.state === "stored") {
      await waitFor(entry.sendAt);
      const [state, wait] = clock() >= entry.closes ? (["expired", 0] as const) : await sendOnce(entry);
      if (state === undefined) await sleep(wait);
      else await ledger.settle(query, state);
      entry = await ledger.entry(query);
    }
    return entry?.state;
  };
  return "locks" in navigator ? await navigator.locks.request(`uptack-owner: ${query}`, send) : await send();
}

/** The report's final state, or `undefined` and the seconds to wait if it has to be sent again. */
async function sendOnce(entry: Entry): Promise<["sent" | "lost" | undefined, number]> {
  const headers = { "content-type": "application/dap-report", ...(entry.credential && { [HEADER]: entry.credential }) };
  const url = new URL(`tasks/${entry.query}/reports`, entry.leader);
  try {
    const response = await fetch(url, { ...PLAIN_REQUEST, method: "PUT", headers, body: entry.report! });
    if (response.ok) return ["sent", 0];
    const isTemporary = response.status >= 500 || response.status === 429 || response.status === 408;
    return isTemporary ? [undefined, pause(response.headers.get("retry-after"))] : ["lost", 0];
  } catch {
    return [undefined, pause(null)];
  }
}

/** Verifies, answers and delivers in one call, for programs. The policy must list both aggregators. */
export async function answer(link: Link, truth: boolean, policy: Policy, ledger: Ledger): Promise<State | undefined> {
  const known = await ledger.entry(link.query);
  if (known === undefined || known.state === "charged") {
    const question = await openQuestion(link, await fetchCard(link), policy, ledger);
    await answerQuestion(question, truth, policy, ledger);
  }
  return deliver(link.query, ledger);
}
