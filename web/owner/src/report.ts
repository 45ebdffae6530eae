// A report from a cell: two shares, each sealed for one aggregator, by @divviup/dap.

import { Task } from "@divviup/dap";
import type { Cell } from "./card.js";
import { Refusal } from "./refusal.js";
import type { VerifiedCard } from "./verify.js";

/** What is summed: one bit where aggregators add noise, else the cells one-hot. */
export type Sum = { readonly kind: "bits" | "histogram"; readonly length: number; readonly chunkLength: number };

/** How many cells one call of the proof's gadget covers: what makes the proof shortest, longer chunks losing ties. */
export function chunkLength(length: number): number {
  let best = { chunk: 1, proof: Number.POSITIVE_INFINITY };
  for (let log = Math.floor(Math.log2(length + 1)); log >= 1; log--) {
    const calls = 2 ** log - 1;
    const chunk = Math.ceil(length / calls);
    const proof = 2 * chunk + 2 * (2 ** Math.ceil(Math.log2(1 + calls)) - 1);
    if (proof < best.proof) best = { chunk, proof };
  }
  return best.chunk;
}

/** The sum that follows from a card. */
export function sumOf({ channel }: Pick<VerifiedCard, "channel">): Sum {
  const length = channel.noise ? 1 : channel.cells.length;
  return { kind: channel.noise ? "bits" : "histogram", length, chunkLength: chunkLength(length) };
}

/** Nothing is sent along, nothing is cached, and nobody is sent elsewhere. */
export const PLAIN_REQUEST: RequestInit = {
  credentials: "omit",
  cache: "no-store",
  redirect: "error",
  referrerPolicy: "no-referrer",
};

/** Makes reports for one card; holds the aggregators' keys. */
export interface Writer {
  /** Fetches both keys. */
  fetchKeys(): Promise<void>;
  /** The bytes of a report; sends nothing. */
  seal(cell: number): Promise<Uint8Array<ArrayBuffer>>;
}

export function writerFor(card: VerifiedCard): Writer {
  const { kind, length, chunkLength } = sumOf(card);
  const common = {
    id: card.query,
    leader: card.leader,
    helper: card.helper,
    timePrecisionSeconds: card.closes - card.opens,
    length,
    chunkLength,
  };
  const plain = (input: RequestInfo | URL, init?: RequestInit): Promise<Response> => fetch(input, { ...init, ...PLAIN_REQUEST });
  const window = { timestamp: new Date(card.opens * 1000) };
  if (kind === "histogram") {
    const task = new Task({ ...common, type: "histogram" });
    task.fetch = plain;
    return writer(task, (cell) => task.generateReport(cell, window));
  }
  const task = new Task({ ...common, type: "sumVec", bits: 1 });
  task.fetch = plain;
  return writer(task, (cell) => task.generateReport([saysOne(card.channel.cells[cell]!)], window));
}

/** Whether a cell counts in the published sum, without a branch on it. */
function saysOne(cell: Cell): number {
  return Number(cell.outputs[0] === "1");
}

type Sealed = { encode(): Uint8Array };

function writer(task: { fetchKeyConfiguration(): Promise<void> }, report: (cell: number) => Promise<Sealed>): Writer {
  return {
    async fetchKeys() {
      try {
        await task.fetchKeyConfiguration();
      } catch {
        throw new Refusal("network", "An aggregator cannot be reached, or does not let this page in. Try again later.");
      }
    },
    async seal(cell) {
      return Uint8Array.from((await report(cell)).encode());
    },
  };
}
