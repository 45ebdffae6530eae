// What a person allows.

import { UNITS, unitsText } from "./claims.js";
import { readDecimal } from "./exact.js";

/** The largest ε, in units of 10^−12. */
export type Limit = bigint | "unlimited";

/** A limit for each view. */
export interface Limits {
  /** If nobody else is honest. */
  readonly linked: Limit;
  /** If one aggregator is honest, and nobody else. */
  readonly oneAggregator: Limit;
}

/** Whether an ε is within a limit; no guarantee is within none but the unlimited one. */
export function allows(limit: Limit, units: bigint | undefined): boolean {
  return limit === "unlimited" || (units !== undefined && units <= limit);
}

export interface Policy {
  /** What one card may give away. */
  readonly card: Limits;
  /** What all cards together may give away. */
  readonly lifetime: Limits;
  /** The origins of aggregators that reports may go to. */
  readonly aggregators: readonly string[];
  /** Whether both aggregators may be in one hand; whoever runs them then sees the answer. */
  readonly oneOperator: boolean;
  /** The longest time between two moments at which a report may be sent, in seconds. */
  readonly within: number;
}

export const DEFAULT_POLICY: Policy = {
  card: { linked: 8n * UNITS, oneAggregator: UNITS },
  lifetime: { linked: 100n * UNITS, oneAggregator: 10n * UNITS },
  aggregators: [],
  oneOperator: false,
  within: 300,
};

/** A limit as a person writes it; nothing if it is not a number. */
export function readLimit(text: string): Limit | undefined {
  if (text.trim() === "unlimited") return "unlimited";
  const number = readDecimal(text.trim());
  return number && (number.numerator * UNITS) / number.denominator;
}

export function limitText(limit: Limit): string {
  return limit === "unlimited" ? limit : unitsText(limit);
}
