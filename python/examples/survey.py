"""A survey of 5000 people, from the plan to the estimate; mypy checks this file."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import uptack as up


def count(truths: npt.NDArray[np.bool_]) -> tuple[float, float, float]:
    """Estimates how many truths are yes: the lower end of the interval, the estimate and the upper end."""
    plan: up.Plan = up.plan(owners=len(truths), yes=(0, 500), epsilon=1.0)
    cells: npt.NDArray[np.uint8] = plan.channel.privatize(truths)
    counts = np.bincount(cells, minlength=plan.channel.size)
    estimate: up.Estimate = plan.channel.estimate(plan.channel.publish(counts), confidence=0.95, interval="exact")
    return estimate.low, estimate.value, estimate.high


def given_away(mechanism: str, owners: int) -> float | None:
    """The claimed ε of the published counts."""
    release: up.Bounds | None = up.privacy(mechanism, owners=owners, delta=1e-8).release
    return None if release is None else release.upper


if __name__ == "__main__":
    low, value, high = count(np.arange(5000) < 200)
    print(f"{value:.0f} would say yes, between {low:.0f} and {high:.0f}")
    print("ε", given_away("normal-form(f=0.5,r=0.01)", 5000))
    flips = np.random.default_rng(1)
    audit = up.audit(lambda truth: bool(truth ^ (flips.random() < 0.25)), claimed_epsilon=1.2, samples=20_000)
    print(audit)
