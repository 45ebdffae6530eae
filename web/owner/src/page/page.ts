// The page: from a link to an answer that arrived. Each step is in the package; here it is shown.

import { answerQuestion, clock, deliver, fetchCard, openQuestion, type OpenQuestion } from "../answer.js";
import { Ledger, together, type Entry, type State } from "../ledger.js";
import { readLink, type Link } from "../link.js";
import { limitText, type Policy } from "../policy.js";
import { Refusal } from "../refusal.js";
import { verifyCard, type SignedCard } from "../verify.js";
import { offerSettings, readPolicy, writePolicy } from "./settings.js";
import { element, list, make, say, show, showProgress } from "./view.js";
import { epsilonText, momentText, whatCoinsDo, whatWasChecked, whoLearnsWhat } from "./words.js";

/** Shows why nothing is answered. What is not a refusal is a mistake of this page, and says nothing about the person. */
function refuse(error: unknown, isCharged = false): void {
  const spent = isCharged ? "What it costs is taken from your budget; open the link again to answer." : "Nothing was taken from your budget.";
  say("consequence", `No answer was sent. ${spent}`);
  if (!(error instanceof Refusal)) console.error(error);
  say("reason", error instanceof Refusal ? error.message : "This page has failed.");
  element("refused").dataset["fault"] = error instanceof Refusal ? error.fault : "page";
  show("refused");
}

/** Settings name that holds a link's secret, so that it need not stay in the address. */
const secretOf = (query: string): string => `credential: ${query}`;

/** The link in the address. A secret in it is kept and taken out of sight. */
async function takeLink(ledger: Ledger): Promise<Link | undefined> {
  const link = readLink(location.hash);
  if (!link) return undefined;
  if (link.credential !== undefined) {
    await ledger.set(secretOf(link.query), link.credential);
    const parts = new URLSearchParams(location.hash.slice(1));
    parts.delete("credential");
    history.replaceState(null, "", `#${parts}`);
    return link;
  }
  return { ...link, credential: await ledger.setting<string>(secretOf(link.query)) };
}

function checkPlace(link: Link): void {
  if (link.desk.origin === location.origin) {
    throw new Refusal("browser", "The desk itself serves this page. Such a page cannot check the desk: open it somewhere else.");
  }
  if (window.top !== window.self) {
    throw new Refusal("browser", "Another page shows this one within itself, and could have you click what you do not mean.");
  }
}

/** Whether a run is still the one to be shown: limits that are saved or another link begin a new one. */
type IsCurrent = () => boolean;

async function run(ledger: Ledger, isCurrent: IsCurrent): Promise<void> {
  const link = await takeLink(ledger);
  if (!link) return show("start");
  checkPlace(link);
  const policy = await readPolicy(ledger);
  const known = await ledger.entry(link.query);
  if (known && known.state !== "charged") return await showEntry(known, ledger);
  if (!isCurrent()) return;
  showProgress("Fetching the question and checking it …");
  const signed = await fetchCard(link);
  try {
    const question = await openQuestion(link, signed, policy, ledger);
    if (isCurrent()) showQuestion(question, policy, ledger);
  } catch (error) {
    if (!(error instanceof Refusal) || error.fault !== "unlisted") throw error;
    await offerAggregators(link, signed, ledger, error, isCurrent);
  }
}

/** Asks once whether to trust aggregators that are new; whoever said no is not asked again. */
async function offerAggregators(
  link: Link,
  signed: SignedCard,
  ledger: Ledger,
  refusal: Refusal,
  isCurrent: IsCurrent,
): Promise<void> {
  const { leader, helper } = await verifyCard(signed, link);
  const pair = [leader.origin, helper.origin];
  const declined = `declined: ${pair.join(" ")}`;
  if (await ledger.setting<boolean>(declined)) throw refusal;
  if (!isCurrent()) return;
  list("aggregators", pair);
  element("accept").onclick = async () => {
    const policy = await readPolicy(ledger);
    await writePolicy(ledger, { ...policy, aggregators: [...new Set([...policy.aggregators, ...pair])] });
    start();
  };
  element("decline").onclick = async () => {
    await ledger.set(declined, true);
    refuse(refusal);
  };
  show("unlisted");
}

async function showBudget(question: OpenQuestion, policy: Policy, ledger: Ledger): Promise<void> {
  const [spent, isPaid] = [await ledger.spent(), await ledger.isPaid(question.card.charge)];
  const rows = (["oneAggregator", "linked"] as const).map((view) => {
    const after = together(spent[view], isPaid ? 0n : question.card.price[view]);
    const [row, bar] = [make("div", "", "budget"), document.createElement("progress")];
    const name = view === "linked" ? "If nobody else is honest" : "If one aggregator is honest";
    const limit = policy.lifetime[view];
    [bar.max, bar.value] = limit === "unlimited" ? [1, 0] : [Number(limit), Number(after ?? limit)];
    bar.setAttribute("aria-label", name);
    const text = `ε ${epsilonText(spent[view])} → ${epsilonText(after)} of ${limitText(limit)}`;
    row.append(make("span", name), make("span", text), bar);
    return row;
  });
  element("budget").replaceChildren(...rows);
}

function showQuestion(question: OpenQuestion, policy: Policy, ledger: Ledger): void {
  const { card } = question;
  say("asked", card.question);
  say("until", `Open until ${momentText(card.closes)}.`);
  const entries = whoLearnsWhat(card).map(({ who, what }) => {
    const entry = document.createElement("div");
    entry.append(make("dt", who), make("dd", what));
    return entry;
  });
  element("learns").replaceChildren(...entries);
  say("coins", whatCoinsDo(card));
  list("checked", whatWasChecked(card));
  void showBudget(question, policy, ledger);
  const buttons = [element<HTMLButtonElement>("yes"), element<HTMLButtonElement>("no")];
  const click = async (truth: boolean): Promise<void> => {
    for (const button of buttons) button.disabled = true;
    try {
      await showEntry(await answerQuestion(question, truth, policy, ledger), ledger);
    } catch (error) {
      // Another tab may have been first.
      const known = await ledger.entry(card.query);
      if (known && known.state !== "charged") await showEntry(known, ledger);
      else refuse(error, known !== undefined);
    }
  };
  buttons.forEach((button, index) => {
    button.disabled = false;
    button.onclick = () => void click(index === 0);
  });
  show("question");
}

const OUTCOMES: { readonly [state in State]: readonly [string, string] } = {
  charged: ["Nothing was sent", "Open the link again to answer."],
  stored: ["Your answer is sealed", "It is sent later."],
  sent: ["Your answer has arrived", "This browser keeps no trace of what it was. A question is answered once."],
  lost: ["The leader refused your answer", "It is not counted. What it cost stays spent, because somebody may have seen it."],
  expired: ["The question closed before your answer was sent", "It is not counted. What it cost stays spent."],
};

/** A question that was answered here: waits for its moment, in whichever tab, and tells what became of it. */
async function showEntry(entry: Entry, ledger: Ledger): Promise<void> {
  if (entry.state === "stored") {
    say("moment", entry.sendAt > clock() ? momentText(entry.sendAt) : "now");
    say("deadline", momentText(entry.closes));
    show("waiting");
  }
  const state = entry.state === "stored" ? await deliver(entry.query, ledger) : entry.state;
  const [heading, detail] = OUTCOMES[state ?? "lost"];
  say("outcome", heading);
  say("outcome-detail", detail);
  element("done").dataset["state"] = state;
  show("done");
}

let opened: Promise<Ledger> | undefined;
let latest = 0;

function start(): void {
  const mine = ++latest;
  const isCurrent = (): boolean => mine === latest;
  const begin = async (): Promise<void> => {
    const ledger = await (opened ??= Ledger.open());
    offerSettings(ledger, await readPolicy(ledger), start);
    await run(ledger, isCurrent);
  };
  begin().catch((error: unknown) => {
    if (isCurrent()) refuse(error);
  });
}

element<HTMLFormElement>("paste").onsubmit = (event) => {
  event.preventDefault();
  const text = element<HTMLInputElement>("link").value;
  location.hash = text.slice(text.indexOf("#"));
};
say("place", `This page was served by ${location.host || "your own disk"}.`);
window.addEventListener("hashchange", start);
start();
