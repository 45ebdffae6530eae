"""How results look, and that they are frozen and can be pickled."""

from __future__ import annotations

import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import uptack as up

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
CHANNEL = up.Channel("normal-form(f=0.5, r=0.01)")


@pytest.fixture(scope="module")
def plan() -> up.Plan:
    return up.plan(owners=50_000, yes=500, epsilon=1, linked_epsilon=9, noise="aggregators")


def everything(plan: up.Plan) -> list[Any]:
    return [
        CHANNEL,
        CHANNEL.estimate([1, 2, 3]),
        CHANNEL.publish([1, 2, 3]),
        up.privacy(CHANNEL, owners=100),
        plan,
        plan.alternatives[0] if plan.alternatives else plan,
        up.compose([CHANNEL, (CHANNEL, 3), "randomized-response(t=0.8)"], owners=100),
        up.simulate(CHANNEL, owners=100, yes=10, trials=10, seed=1),
        up.simulate(CHANNEL, owners=100, yes=10, trials=10, seed=1, keep_estimates=True),
        up.algebra((EXAMPLES / "cancelling.alg").read_text(encoding="utf-8")),
        up.verify(plan.card()),
        up.audit(lambda truth: 1, claimed_epsilon=0.0, samples=1000),
    ]


def test_results_are_frozen_readable_and_pickled(plan: up.Plan) -> None:
    for result in everything(plan):
        assert repr(result).startswith(type(result).__name__ + "(") and len(repr(result)) < 2000
        assert "<table>" in result._repr_html_()
        again = pickle.loads(pickle.dumps(result))
        assert again == result and hash(again) == hash(result) and again.to_dict() == result.to_dict()
        with pytest.raises(AttributeError):
            result.anything = 1
        changed = result.to_dict()
        changed.clear()
        assert result.to_dict()


def test_the_example_of_the_issue(plan: up.Plan) -> None:
    truths = np.arange(50_000) < 500
    cells = plan.channel.privatize(truths)
    assert cells.dtype == np.uint8 and len(cells) == 50_000
    published = plan.channel.publish(np.bincount(cells, minlength=plan.channel.size))
    est = plan.channel.estimate(published, confidence=0.95)
    # Real coins: six standard deviations.
    assert abs(est.value - 500) < 6 * est.sd and est.low <= est.value <= est.high
    assert est.published == published and published.owners == 50_000
    release = up.privacy("normal-form(f=0.5,r=8.2e-5)", owners=50_000, delta=1e-8).release
    assert release is not None and release.lower <= release.upper <= 1.01
    composed = up.compose([plan.channel] * 288, owners=50_000).epsilon(1e-8)
    assert composed is not None and composed.upper > 1
    assert up.simulate(plan.channel, owners=10**9, yes=500, trials=200, seed=1).rmse > 0
    assert up.Channel.from_cells({"1": (0.3, 0.1), "0": (0.2, 0.4), "⊥": (0.5, 0.5)}).size == 3
    assert up.algebra((EXAMPLES / "plausible-deniability.alg").read_text(encoding="utf-8")).channel.size > 1


def test_charts_and_cards(plan: up.Plan, tmp_path: pathlib.Path) -> None:
    chart = plan.chart()
    assert chart.svg.startswith("<svg") and chart._repr_svg_() == chart.svg
    again = pickle.loads(pickle.dumps(plan))
    assert again.card() == plan.card()
    plan.card(tmp_path / "card.toml")
    assert up.verify(tmp_path / "card.toml").holds
    card = plan.card()
    card["claims"]["linked"] = "0.5"
    found = up.verify(card)
    assert not found and found.failed
    with pytest.raises(up.UptackError):
        plan.card(tmp_path / "card.yaml")


def test_pandas_is_taken_and_not_imported() -> None:
    truths = pd.Series([True, False] * 500)
    cells = pd.Series(CHANNEL.privatize(truths))
    counts = cells.value_counts().reindex(range(CHANNEL.size), fill_value=0)
    assert CHANNEL.estimate(counts).owners == 1000
    code = "import sys, uptack; assert not {'numpy', 'pandas'} & set(sys.modules), 'imported'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_many_queries() -> None:
    counts = np.array([CHANNEL.draw_counts(1000, yes, seed=yes) for yes in (100, 300, 600)])
    estimates = up.estimate_many(CHANNEL, counts)
    alone = CHANNEL.estimate(counts[0])
    assert estimates[0].high - estimates[0].low > alone.high - alone.low
    # All of them hold at once with at least that confidence, which `auto` does not promise.
    assert {estimate.interval_kind for estimate in estimates} == {"exact"}
    values, sds = up.consistent([e.value for e in estimates], [e.sd for e in estimates], owners=1000)
    assert abs(values.sum() - 1000) < 1e-6 and (values >= 0).all() and len(sds) == 3
    assert up.simultaneous(0.95, 100) == pytest.approx(0.9995)


def test_simulations_keep_their_estimates_if_asked() -> None:
    crowd: dict[str, Any] = {"owners": 1000, "yes": 100, "trials": 300, "seed": 1}
    kept, summary = up.simulate(CHANNEL, **crowd, keep_estimates=True), up.simulate(CHANNEL, **crowd)
    assert kept.to_dict() == summary.to_dict() and len(kept.estimates) == 300
    assert kept.estimates.mean() == pytest.approx(kept.mean) and kept.rmse == pytest.approx(((kept.estimates - 100) ** 2).mean() ** 0.5)
    assert (pickle.loads(pickle.dumps(kept)).estimates == kept.estimates).all()
    with pytest.raises(up.UptackError, match="not kept"):
        summary.estimates


def test_seeds_repeat_and_coins_do_not() -> None:
    truths = np.zeros(1000, dtype=bool)
    assert (CHANNEL.privatize(truths, seed=5) == CHANNEL.privatize(truths, seed=5)).all()
    assert (CHANNEL.privatize(truths) != CHANNEL.privatize(truths)).any()


def test_mixed_compositions_are_at_most_the_sum() -> None:
    one, other = up.Channel("randomized-response(t=0.6)"), up.Channel("normal-form(f=0.5, r=0.01)")
    both = up.compose([one, other], owners=300).epsilon(1e-6)
    alone = [up.privacy(channel, owners=300, delta=5e-7).release for channel in (one, other)]
    assert both is not None and all(release is not None for release in alone)
    assert 0 < both.upper <= 1.02 * sum(release.upper for release in alone if release is not None)
    delta = up.compose([one, other], owners=300).delta(both.upper)
    assert delta is not None and delta.upper <= 1.1e-6
