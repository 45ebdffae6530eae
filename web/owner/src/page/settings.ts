// The form for the person's limits, which are stored in this browser.

import { readAddress } from "../address.js";
import type { Ledger } from "../ledger.js";
import { DEFAULT_POLICY, type Limit, limitText, type Policy, readLimit } from "../policy.js";
import { element, say } from "./view.js";

export async function readPolicy(ledger: Ledger): Promise<Policy> {
  return (await ledger.setting<Policy>("policy")) ?? DEFAULT_POLICY;
}

export function writePolicy(ledger: Ledger, policy: Policy): Promise<void> {
  return ledger.set("policy", policy);
}

const field = (name: string): HTMLInputElement => element<HTMLFormElement>("limits").elements.namedItem(name) as HTMLInputElement;

function fill(policy: Policy): void {
  field("cardLinked").value = limitText(policy.card.linked);
  field("cardOneAggregator").value = limitText(policy.card.oneAggregator);
  field("lifetimeLinked").value = limitText(policy.lifetime.linked);
  field("lifetimeOneAggregator").value = limitText(policy.lifetime.oneAggregator);
  field("aggregators").value = policy.aggregators.join("\n");
  field("oneOperator").checked = policy.oneOperator;
  field("within").value = policy.within.toString();
}

/** The form's policy, or the name of an invalid field. */
function read(): Policy | string {
  const limit = (name: string): Limit => readLimit(field(name).value) ?? -1n;
  const names = ["cardLinked", "cardOneAggregator", "lifetimeLinked", "lifetimeOneAggregator"];
  const wrong = names.find((name) => limit(name) === -1n);
  const within = Number(field("within").value);
  if (wrong !== undefined) return wrong;
  if (!Number.isInteger(within) || within < 0 || within > 86_400) return "within";
  const origins = field("aggregators").value.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  try {
    return {
      card: { linked: limit("cardLinked"), oneAggregator: limit("cardOneAggregator") },
      lifetime: { linked: limit("lifetimeLinked"), oneAggregator: limit("lifetimeOneAggregator") },
      aggregators: [...new Set(origins.map((text) => readAddress(text, "aggregator").origin))],
      oneOperator: field("oneOperator").checked,
      within,
    };
  } catch {
    return "aggregators";
  }
}

/** Shows the form; calls `changed` when limits are saved. */
export function offerSettings(ledger: Ledger, policy: Policy, changed: () => void): void {
  element("settings").hidden = false;
  fill(policy);
  element<HTMLFormElement>("limits").onsubmit = async (event) => {
    event.preventDefault();
    const policy = read();
    if (typeof policy === "string") {
      say("saved", "This is not a valid number or address.");
      field(policy).focus();
      return;
    }
    await writePolicy(ledger, policy);
    say("saved", "Saved.");
    changed();
  };
}
