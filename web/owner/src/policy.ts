// The person's limits.

import { UNITS, unitsText } from "./claims.js";
import { readDecimal } from "./exact.js";

/** The largest allowed ε, in units of 10^−12. */
export type Limit = bigint | "unlimited";

/** A limit for each view. */
export interface Limits {
  /** If nobody else is honest. */
  readonly linked: Limit;
  /** If one aggregator is honest, and nobody else. */
  readonly oneAggregator: Limit;
}

/** Whether an ε is within a limit. `undefined`, no guarantee, is within `unlimited` only. */
export function allows(limit: Limit, units: bigint | undefined): boolean {
  return limit === "unlimited" || (units !== undefined && units <= limit);
}

export interface Policy {
  /** The most that one card may reveal. */
  readonly card: Limits;
  /** The most that all cards together may reveal. */
  readonly lifetime: Limits;
  /** The origins of accepted aggregators. */
  readonly aggregators: readonly string[];
  /** Whether one operator may run both aggregators; that operator can see the answer. */
  readonly oneOperator: boolean;
  /** The longest time between two times at which a report may be sent, in seconds. */
  readonly within: number;
}

export const DEFAULT_POLICY: Policy = {
  card: { linked: 8n * UNITS, oneAggregator: UNITS },
  lifetime: { linked: 100n * UNITS, oneAggregator: 10n * UNITS },
  aggregators: [],
  oneOperator: false,
  within: 300,
};

/** Parses a limit as a person writes it; `undefined` if it is not a number. */
export function readLimit(text: string): Limit | undefined {
  if (text.trim() === "unlimited") return "unlimited";
  const number = readDecimal(text.trim());
  return number && (number.numerator * UNITS) / number.denominator;
}

export function limitText(limit: Limit): string {
  return limit === "unlimited" ? limit : unitsText(limit);
}
