// Reports: a cell as two shares, each sealed for one aggregator by @divviup/dap; and the credential that an enrolled person sends
// along.

import { Task } from "@divviup/dap";
import { fromBase64Url, toBase64Url } from "./canonical.js";
import type { Cell } from "./card.js";
import { keyBytes } from "./key.js";
import { Refusal } from "./refusal.js";
import type { VerifiedCard } from "./verify.js";

/** The sum that aggregators compute: one bit if they add noise, otherwise the cells as a one-hot vector. */
export type Sum = { readonly kind: "bits" | "histogram"; readonly length: number; readonly chunkLength: number };

/** The number of cells per call of the proof's gadget that makes the proof shortest; the shorter chunk wins ties. */
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

/** Without cookies, cache, redirects or referrer. */
export const PLAIN_REQUEST: RequestInit = {
  credentials: "omit",
  cache: "no-store",
  redirect: "error",
  referrerPolicy: "no-referrer",
};

/** Makes reports for one card, with the aggregators' keys. */
export interface Writer {
  /** Fetches both keys. */
  fetchKeys(): Promise<void>;
  /** Makes the bytes of a report. Sends nothing. */
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
  return writer(task, (cell) => task.generateReport([countsAsOne(card.channel.cells[cell]!)], window));
}

/** Whether a cell counts in the published sum, as 1 or 0, without a branch. */
function countsAsOne(cell: Cell): number {
  return Number(cell.outputs[0] === "1");
}

type Sealed = { encode(): Uint8Array };

function writer(task: { fetchKeyConfiguration(): Promise<void> }, report: (cell: number) => Promise<Sealed>): Writer {
  return {
    async fetchKeys() {
      try {
        await task.fetchKeyConfiguration();
      } catch {
        throw new Refusal("network", "An aggregator cannot be reached, or does not allow this page. Try again later.");
      }
    },
    async seal(cell) {
      return Uint8Array.from((await report(cell)).encode());
    },
  };
}

// A credential is a public key and a signature over one task and the bytes of one report.

export const HEADER = "uptack-credential";
const SCHEME = "ed25519-secret:";
const DOMAIN = new TextEncoder().encode("uptack: one report of an enrolled owner, version 1");
/** The PKCS #8 bytes before the 32 bytes of an Ed25519 secret (RFC 8410). */
const PKCS8 = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/** The value of the header for one report of one task. */
export async function credentialFor(secret: string, query: string, report: Uint8Array<ArrayBuffer>): Promise<string> {
  const bytes = keyBytes(secret, SCHEME);
  if (!bytes) throw new Refusal("enrolment", "The link's credential is not the secret of an enrolled person.");
  const encoded = Uint8Array.from([...PKCS8, ...bytes]);
  const key = await crypto.subtle.importKey("pkcs8", encoded, { name: "Ed25519" }, true, ["sign"]);
  const { x } = await crypto.subtle.exportKey("jwk", key);
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", report));
  const message = Uint8Array.from([...DOMAIN, ...fromBase64Url(query)!, ...digest]);
  const signature = await crypto.subtle.sign({ name: "Ed25519" }, key, message);
  return `ed25519:${x}.${toBase64Url(new Uint8Array(signature))}`;
}

/** Refuses a text that is not a secret of this form, without quoting it. */
export function checkCredential(secret: string | undefined): void {
  if (secret === undefined) {
    throw new Refusal("enrolment", "Only enrolled people may answer, and your link has no credential. Ask for your own link.");
  }
  if (!keyBytes(secret, SCHEME)) throw new Refusal("enrolment", "The link's credential is not the secret of an enrolled person.");
}
