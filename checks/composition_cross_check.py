#!/usr/bin/env python3
"""Compares composed guarantees with Google's dp-accounting.

    python3 -m venv venv && venv/bin/pip install -r checks/requirements.txt
    cargo run --release -p uptack-checks --bin composition_figures | venv/bin/python checks/composition_cross_check.py

Reads the program's JSON on stdin. A row passes if the claimed epsilon is not below the accountant's by more than one
cell of the claim's own grid (and the noise of the accountant's transform), and not above it by more than 2 %; and if the lower bound does not exceed the accountant's
pessimistic value. For Gaussians the exact answer is known too (composed Gaussians are one): the claim may not be below
it at all. Exits with status 1 if any row fails, or if there is nothing to compare.
"""

import json
import math
import sys

from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from scipy import special

MOST_ABOVE = 0.02
# Cells of the accountant's grid for each unit of the smallest loss; a power of two keeps dyadic losses on the grid.
CELLS = 128
# The accountant's transform is not tilted, so its error is absolute. For 10 000 Laplace queries at delta = 1e-10 its epsilon
# scatters between 6.53265 and 6.53392 as its grid varies from 64 to 256 cells, on both sides of the 6.53349 of a
# tilted transform: up to 6e-13 in delta. On some of those grids a row would be "below" without this allowance.
NOISE = 1e-12
KNOWN = {"gaussian", "laplace", "randomized-response", "approximate"}


def distribution(query, interval):
    """One query's privacy loss distribution, pessimistic."""
    name = query["name"]
    if name == "gaussian":
        return pld.from_gaussian_mechanism(query["deviation"], value_discretization_interval=interval)
    if name == "laplace":
        return pld.from_laplace_mechanism(1 / query["epsilon"], value_discretization_interval=interval)
    if name == "randomized-response":
        # The losses are ±epsilon. Given as whole cells, because the accountant's own constructor rounds an inexact
        # quotient up by a whole cell, which ten thousand repetitions would multiply.
        cells = round(query["epsilon"] / interval)
        if abs(cells * interval - query["epsilon"]) > 1e-12:
            raise SystemExit(f"epsilon {query['epsilon']} is not a whole number of the accountant's cells")
        truth = 1 / (1 + math.exp(-query["epsilon"]))
        return pld.PrivacyLossDistribution.create_from_rounded_probability(
            {cells: truth, -cells: 1 - truth}, 0, interval
        )
    if name == "approximate":
        parameters = common.DifferentialPrivacyParameters(query["epsilon"], query["delta"])
        return pld.from_privacy_parameters(parameters, interval)
    raise SystemExit(f"unknown query {name!r}; known names: {sorted(KNOWN)}")


def accountant_epsilon(queries, delta):
    """The accountant's epsilon for the whole list, and the same at a delta larger by the noise of its transform."""
    smallest = min(query.get("epsilon", 1 / query.get("deviation", 1)) for query in queries)
    interval = smallest / CELLS
    total = None
    for query in queries:
        part = distribution(query, interval).self_compose(query["times"])
        total = part if total is None else total.compose(part)
    return total.get_epsilon_for_delta(delta), total.get_epsilon_for_delta(delta + NOISE)


def gaussian_epsilon(queries, delta):
    """The exact epsilon of composed Gaussians, or None for other lists."""
    if any(query["name"] != "gaussian" for query in queries):
        return None
    ratio = math.sqrt(sum(query["times"] / query["deviation"] ** 2 for query in queries))

    def exact(epsilon):
        above = special.log_ndtr(ratio / 2 - epsilon / ratio)
        below = epsilon + special.log_ndtr(-ratio / 2 - epsilon / ratio)
        return math.exp(above) * -math.expm1(below - above)

    low, high = 0.0, 1000.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if exact(middle) > delta else (low, middle)
    return low


def verdict(row, reference, least, exact):
    """What is wrong with a row, or an empty string."""
    if row["upper"] is None:
        return "no guarantee claimed"
    if not math.isfinite(reference):
        return "the accountant has no answer"
    if row["upper"] < least - row["spacing"]:
        return "BELOW"
    if row["upper"] > reference * (1 + MOST_ABOVE):
        return "ABOVE"
    if row["lower"] > reference:
        return "LOWER BOUND ABOVE"
    if exact is not None and not row["lower"] <= exact * (1 + 1e-9) <= row["upper"] * (1 + 2e-9):
        return "EXACT ANSWER OUTSIDE"
    return ""


def describe(queries):
    """A list of queries on one line."""
    def one(query):
        values = ", ".join(f"{query[key]:g}" for key in ("deviation", "epsilon", "delta") if key in query)
        return f"{query['name']}({values})×{query['times']}"

    return " + ".join(one(query) for query in queries)


def main():
    """Prints the table and says whether all rows pass."""
    rows = json.load(sys.stdin)["rows"]
    seen, failures = set(), 0
    print(f"{'queries':<58} {'delta':>7} {'lower':>10} {'claim':>10} {'accountant':>10} {'excess':>8} {'seconds':>8}")
    for row in rows:
        seen.update(query["name"] for query in row["queries"])
        reference, least = accountant_epsilon(row["queries"], row["delta"])
        problem = verdict(row, reference, least, gaussian_epsilon(row["queries"], row["delta"]))
        failures += bool(problem)
        numbers = [float("nan") if row[key] is None else row[key] for key in ("lower", "upper")]
        excess = numbers[1] / reference - 1
        print(
            f"{describe(row['queries']):<58} {row['delta']:>7.0e} {numbers[0]:>10.6f} {numbers[1]:>10.6f}"
            f" {reference:>10.6f} {excess:>+8.3%} {row['seconds']:>8.3f} {problem}"
        )
    missing = KNOWN - seen
    if missing:
        print(f"nothing to compare for {sorted(missing)}")
    print(f"{len(rows)} rows, {failures} failures")
    return 1 if failures or missing else 0


if __name__ == "__main__":
    sys.exit(main())
