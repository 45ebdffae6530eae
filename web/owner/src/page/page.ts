// The page: it shows each step from a link to a delivered answer. The steps themselves are in the package.

import { answerQuestion, clock, deliver, fetchCard, openQuestion, type OpenQuestion } from "../answer.js";
import { type Entry, Ledger, type State, addCosts } from "../ledger.js";
import { type Link, readLink } from "../link.js";
import { limitText, type Policy } from "../policy.js";
import { Refusal } from "../refusal.js";
import { type SignedCard, verifyCard } from "../verify.js";
import { offerSettings, readPolicy, writePolicy } from "./settings.js";
import { element, list, make, say, show, showProgress } from "./view.js";
import { epsilonText, timeText, protectionText, whatWasChecked, whoLearnsWhat } from "./words.js";

/** Shows why the question is not answered. Any other error is a bug in this page; its message, which could reveal something, is not shown. */
function refuse(error: unknown, isCharged = false): void {
  const spent = isCharged ? "The cost was charged to your budget; open the link again to answer." : "Nothing was charged to your budget.";
  say("consequence", `No answer was sent. ${spent}`);
  if (!(error instanceof Refusal)) console.error(error);
  say("reason", error instanceof Refusal ? error.message : "This page has an internal error.");
  element("refused").dataset["fault"] = error instanceof Refusal ? error.fault : "page";
  show("refused");
}

/** The name of the setting that holds a link's secret, so that it need not stay in the address. */
const secretOf = (query: string): string => `credential: ${query}`;

/** Reads the link in the address. Stores a secret in it and removes it from the address. */
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
    throw new Refusal("browser", "This page was served by the desk, so it cannot be trusted to check the desk. Open it from another address.");
  }
  if (window.top !== window.self) {
    throw new Refusal("browser", "This page is embedded in another page, which could trick you into clicking a button.");
  }
}

/** Whether a run is still current: saving limits or opening another link starts a new one. */
type IsCurrent = () => boolean;

async function run(ledger: Ledger, isCurrent: IsCurrent): Promise<void> {
  const link = await takeLink(ledger);
  if (!link) return show("start");
  checkPlace(link);
  const policy = await readPolicy(ledger);
  const known = await ledger.entry(link.query);
  if (known && known.state !== "charged") return await showEntry(known, ledger);
  if (!isCurrent()) return;
  showProgress("Fetching and checking the question …");
  const signed = await fetchCard(link);
  try {
    const question = await openQuestion(link, signed, policy, ledger);
    if (isCurrent()) showQuestion(question, policy, ledger);
  } catch (error) {
    if (!(error instanceof Refusal) || error.fault !== "unlisted") throw error;
    await offerAggregators(link, signed, ledger, error, isCurrent);
  }
}

/** Asks once whether to trust new aggregators; does not ask again after a no. */
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
    const after = addCosts(spent[view], isPaid ? 0n : question.card.price[view]);
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
  say("until", `Open until ${timeText(card.closes)}.`);
  const entries = whoLearnsWhat(card).map(({ who, what }) => {
    const entry = document.createElement("div");
    entry.append(make("dt", who), make("dd", what));
    return entry;
  });
  element("learns").replaceChildren(...entries);
  say("coins", protectionText(card));
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
  stored: ["Your answer is sealed", "It will be sent later."],
  sent: ["Your answer has arrived", "This browser has kept no trace of what it was. A question can be answered only once."],
  lost: ["The leader refused your answer", "It is not counted. Its cost stays charged, because somebody may have seen it."],
  expired: ["The question closed before your answer was sent", "It is not counted. Its cost stays charged."],
};

/** Shows a question that was answered here: waits until its report is sent, in any tab, and shows the result. */
async function showEntry(entry: Entry, ledger: Ledger): Promise<void> {
  if (entry.state === "stored") {
    say("moment", entry.sendAt > clock() ? timeText(entry.sendAt) : "now");
    say("deadline", timeText(entry.closes));
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
