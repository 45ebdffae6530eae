// The ledger of this browser's answers and charges, in IndexedDB. Transactions are serialized across tabs: even if two tabs act at
// the same time, a question is charged once and one report is stored.

import { type Price, unitsText } from "./claims.js";
import { allows, type Limits } from "./policy.js";
import { Refusal } from "./refusal.js";

export type State = "charged" | "stored" | "sent" | "lost" | "expired";

/** One question in this browser. */
export interface Entry {
  readonly query: string;
  readonly charge: string;
  readonly number: bigint;
  readonly question: string;
  readonly leader: string;
  readonly closes: number;
  readonly sendAt: number;
  readonly state: State;
  /** The sealed bytes, until they are acknowledged. */
  readonly report?: Uint8Array<ArrayBuffer>;
  readonly credential?: string | undefined;
}

interface Charge extends Price {
  readonly charge: string;
}

/** The amounts spent, in units; `undefined` if a card without a guarantee was answered. */
export type Spent = Price;

const STORES = { entries: "query", charges: "charge", openings: "query", settings: "name" } as const;
type Store = keyof typeof STORES;

function result<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

export class Ledger {
  private constructor(private readonly database: IDBDatabase) {}

  static async open(name = "uptack-owner"): Promise<Ledger> {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => {
      for (const [store, keyPath] of Object.entries(STORES)) request.result.createObjectStore(store, { keyPath });
    };
    try {
      return new Ledger(await result(request));
    } catch {
      throw new Refusal("browser", "This browser stores no data for this page, so your budget could not be tracked.");
    }
  }

  /** Runs a transaction: it is rolled back if `work` fails, and durable when it ends. */
  private async change<T>(stores: Store[], work: (transaction: IDBTransaction) => Promise<T>): Promise<T> {
    const transaction = this.database.transaction(stores, "readwrite", { durability: "strict" });
    const ended = new Promise<void>((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onabort = () => reject(transaction.error ?? new Refusal("browser", "This browser could not save the charge."));
    });
    try {
      const outcome = await work(transaction);
      await ended;
      return outcome;
    } catch (error) {
      ended.catch(() => {});
      try {
        transaction.abort();
      } catch {
        // It has ended already.
      }
      throw error;
    }
  }

  private read<T>(store: Store, key: string): Promise<T | undefined> {
    return result(this.database.transaction(store).objectStore(store).get(key));
  }

  entry(query: string): Promise<Entry | undefined> {
    return this.read("entries", query);
  }

  entries(): Promise<Entry[]> {
    return result(this.database.transaction("entries").objectStore("entries").getAll());
  }

  async spent(): Promise<Spent> {
    return sum(await result(this.database.transaction("charges").objectStore("charges").getAll()));
  }

  /** Whether a charge has been paid, as it has for later questions of a series. */
  async isPaid(charge: string): Promise<boolean> {
    return (await this.read("charges", charge)) !== undefined;
  }

  /** The times for sending that were picked when the question was first opened here; picks them if there are none. */
  sendTimes(query: string, draw: () => number[]): Promise<number[]> {
    return this.change(["openings"], async (transaction) => {
      const openings = transaction.objectStore("openings");
      const known: { moments: number[] } | undefined = await result(openings.get(query));
      if (known) return known.moments;
      const moments = draw();
      openings.put({ query, moments });
      return moments;
    });
  }

  /** Charges for a question once, and records when its report will be sent. */
  charge(entry: Omit<Entry, "state">, price: Price, lifetime: Limits): Promise<Entry> {
    return this.change(["entries", "charges"], async (transaction) => {
      const [entries, charges] = [transaction.objectStore("entries"), transaction.objectStore("charges")];
      const all: Entry[] = await result(entries.getAll());
      const known = all.find(({ query }) => query === entry.query);
      if (known?.state === "charged") {
        // It is paid, but no report was stored: use the time of the new click.
        const again: Entry = { ...known, sendAt: entry.sendAt };
        entries.put(again);
        return again;
      }
      if (known) throw new Refusal("answered", "You have already answered this question in this browser. A question can be answered only once.");
      if (all.some(({ charge, number }) => charge === entry.charge && number === entry.number)) {
        throw new Refusal("answered", "You have already answered this question of the series, on another card.");
      }
      const paid: Charge[] = await result(charges.getAll());
      if (!paid.some(({ charge }) => charge === entry.charge)) {
        checkBudget(sum(paid), price, lifetime);
        charges.add({ charge: entry.charge, ...price });
      }
      const made: Entry = { ...entry, state: "charged" };
      entries.add(made);
      return made;
    });
  }

  /** Stores a report, unless there is already one, which is sent instead. */
  store(query: string, report: Uint8Array<ArrayBuffer>, credential: string | undefined): Promise<void> {
    return this.change(["entries"], async (transaction) => {
      const entries = transaction.objectStore("entries");
      const entry: Entry | undefined = await result(entries.get(query));
      if (entry?.state === "charged") entries.put({ ...entry, state: "stored", report, credential });
    });
  }

  /** Records the final state of a report, and deletes its bytes. */
  settle(query: string, state: "sent" | "lost" | "expired"): Promise<void> {
    return this.change(["entries"], async (transaction) => {
      const entries = transaction.objectStore("entries");
      const entry: Entry | undefined = await result(entries.get(query));
      if (!entry || (entry.state !== "stored" && entry.state !== "charged")) return;
      const { report: _report, credential: _credential, ...rest } = entry;
      entries.put({ ...rest, state });
    });
  }

  async setting<T>(name: string): Promise<T | undefined> {
    return (await this.read<{ value: T }>("settings", name))?.value;
  }

  set(name: string, value: unknown): Promise<void> {
    return this.change(["settings"], async (transaction) => {
      transaction.objectStore("settings").put({ name, value });
    });
  }
}

function sum(charges: readonly Price[]): Spent {
  const total = (view: keyof Price): bigint | undefined =>
    charges.reduce<bigint | undefined>((all, charge) => addCosts(all, charge[view]), 0n);
  return { linked: total("linked"), oneAggregator: total("oneAggregator") };
}

/** The sum of two costs; `undefined` if one of them is. */
export function addCosts(one: bigint | undefined, other: bigint | undefined): bigint | undefined {
  return one === undefined || other === undefined ? undefined : one + other;
}

/** Refuses a question with which all questions together would reveal more than the person's limit. */
export function checkBudget(spent: Spent, price: Price, lifetime: Limits): void {
  for (const view of ["linked", "oneAggregator"] as const) {
    const [cost, limit] = [price[view], lifetime[view]];
    if (limit !== "unlimited" && !allows(limit, addCosts(spent[view], cost))) {
      const left = limit - (spent[view] ?? limit);
      const who = view === "linked" ? "if nobody else is honest" : "if one aggregator is honest";
      const costs = cost === undefined ? "has no guarantee" : `costs ε = ${unitsText(cost)}`;
      throw new Refusal("budget", `Your budget is spent: the question ${costs} ${who}, and only ${unitsText(left > 0n ? left : 0n)} is left.`);
    }
  }
}
