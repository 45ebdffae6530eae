"""Options: truths in, reports, counts, published results and estimates out."""

from __future__ import annotations

import json
import pickle
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import uptack as up

NAMES = ["car", "bus", "bike", "walk"]
TRIPS = up.Contributions("choice(k=4, r=0.0004) + laplace(scale=2)", options=NAMES)
EXACT = up.Contributions("choice(k=4, f=0.9, r=0.01)", options=NAMES)
VISITS = up.Contributions("contributions(counts=5, most=2, r=0.001)")
TRUTHS = np.repeat([0, 1, 2, 3], [4000, 3000, 1500, 500])


def test_a_mechanism_tells_its_numbers() -> None:
    assert TRIPS.options == tuple(NAMES) and (TRIPS.counts, TRIPS.most, TRIPS.is_choice) == (4, 1, True)
    assert (TRIPS.told, TRIPS.other, TRIPS.silent) == (1 - 3 * 0.0004, 0.0004, 0.0) and TRIPS.noise == "laplace(scale=2)"
    assert (TRIPS.p, TRIPS.q) == (TRIPS.told, TRIPS.other)
    assert EXACT.silent == pytest.approx(0.1) and EXACT.noise is None
    assert VISITS.options == ("1", "2", "3", "4", "5") and (VISITS.most, VISITS.is_choice) == (2, False)
    assert VISITS.q == pytest.approx(1 - (1 - 0.001) ** 2)
    assert TRIPS.linked_epsilon == pytest.approx(np.log(TRIPS.told / TRIPS.other))
    assert TRIPS.yes_no is None and up.Contributions("choice(k=2, r=0.1)").yes_no == up.Channel("normal-form(f=1, r=0.1)")
    again = up.Contributions.from_json(json.dumps(TRIPS.to_dict()))
    assert again.mechanism == TRIPS.mechanism and again != TRIPS and again.with_options(NAMES) == TRIPS
    for made in (TRIPS, VISITS, up.Contributions("choice(k=6, r=0.01)", bins=[0, 30, 60, 90])):
        assert pickle.loads(pickle.dumps(made)) == made and hash(made) == hash(pickle.loads(pickle.dumps(made)))
        assert "<table>" in made._repr_html_() and repr(made).startswith("Contributions(")


@pytest.mark.parametrize(
    "truths",
    [TRUTHS, TRUTHS.astype(np.uint8), TRUTHS.tolist(), [NAMES[i] for i in TRUTHS], np.array(NAMES)[TRUTHS],
     pd.Series(np.array(NAMES, dtype=object)[TRUTHS]), pd.Series(pd.Categorical.from_codes(TRUTHS, NAMES)), TRUTHS.reshape(-1, 1),
     [f" {i + 1}" for i in TRUTHS]],
)  # fmt: skip
def test_truths_are_indices_or_names(truths: Any) -> None:
    expected = TRIPS.privatize(TRUTHS, seed=1)
    assert expected.dtype == np.int32 and expected.shape == (9000,)
    assert (TRIPS.privatize(truths, seed=1) == expected).all()


def test_reports_follow_the_law() -> None:
    """Chi square with fixed seeds beyond the quantile of 1e-6 with 4 degrees of freedom, 32.8; a told probability that is off by
    2 points is seen almost surely."""
    for truth in range(4):
        reports = EXACT.privatize(np.full(20_000, truth), seed=truth)
        observed = np.bincount(reports + 1, minlength=5)
        law = np.full(5, EXACT.other)
        law[0], law[truth + 1] = EXACT.silent, EXACT.told
        statistic = float(((observed - 20_000 * law) ** 2 / (20_000 * law)).sum())
        assert statistic < 32.8, (truth, statistic)
        broken = law.copy()
        broken[truth + 1], broken[0] = law[truth + 1] - 0.02, law[0] + 0.02
        assert float(((observed - 20_000 * broken) ** 2 / (20_000 * broken)).sum()) > 32.8


def test_real_coins_differ_and_seeds_repeat() -> None:
    # Real coins: that two draws of 9000 reports with 900 silent ones agree has a probability below 1e-100.
    assert (EXACT.privatize(TRUTHS) != EXACT.privatize(TRUTHS)).any()
    assert (EXACT.privatize(TRUTHS, seed=3) == EXACT.privatize(TRUTHS, seed=3)).all()
    assert (EXACT.privatize(TRUTHS, seed=3) != EXACT.privatize(TRUTHS, seed=4)).any()


def test_two_options_and_a_single_count_tell_silence_from_the_second() -> None:
    two = up.Contributions("choice(k=2, f=0.5, r=0.01)", options=["yes", "no"])
    reports = two.privatize(["no"] * 10_000, seed=1)
    assert set(reports.tolist()) == {-1, 0, 1} and two.counts == 1
    cells = two.yes_no.privatize(np.zeros(10_000, dtype=bool), seed=1)  # type: ignore[union-attr]
    assert two.tally(reports)["counts"] == np.bincount(cells, minlength=3)[:2].tolist()
    single = up.Contributions("contributions(counts=1, most=1, r=0.01)")
    assert set(single.privatize(["none"] * 5000, seed=1).tolist()) == {-1, 0}


def test_several_contributions_are_rows() -> None:
    truths = [[0, 3], [], [1], ["5"], ("2", 4)] * 200
    reports = VISITS.privatize(truths, seed=1)
    assert reports.shape == (1000, 2)
    padded = np.array([[0, 3], [-1, -1], [1, -1], [4, -1], [1, 4]] * 200)
    assert (VISITS.privatize(padded, seed=1) == reports).all()
    # Most contributions are told; reports are in ascending order, and what is left is -1.
    assert (reports == padded).all(axis=1).mean() > 0.9
    both = reports[(reports != -1).all(axis=1)]
    assert (both[:, 0] < both[:, 1]).all() and (reports[reports[:, 1] != -1][:, 0] != -1).all()
    tally = VISITS.tally(reports)
    assert tally["owners"] == 1000 and tally["counts"] == [int((reports == option).any(axis=1).sum()) for option in range(5)]
    one = up.Contributions("contributions(counts=5, most=1, r=0.001)")
    assert one.privatize([0, -1, 4, -1]).shape == (4,) and one.privatize(["none", "3"]).shape == (2,)


def test_numbers_fall_into_bins() -> None:
    speeds = up.Contributions("choice(k=6, r=0) + laplace(scale=1)", bins=[0, 30, 60, 90])
    assert speeds.options == ("under 0", "0 to 30", "30 to 60", "60 to 90", "90 or more", "no value") and speeds.bins == (0, 30, 60, 90)
    values = [-1, 0, 29.9, 30, 60.0, 90, 1e9, float("nan"), float("inf")]
    expected = [0, 1, 1, 2, 3, 4, 4, 5, 4]
    assert speeds.privatize(values).tolist() == expected
    assert speeds.privatize(pd.Series(values)).tolist() == expected
    assert speeds.privatize(pd.Series([1, None, 70], dtype="Int64")).tolist() == [1, 5, 3]
    assert speeds.privatize(np.array([None, 45], dtype=object)).tolist() == [5, 2]
    estimates = speeds.publish([0, 100, 300, 100, 0, 10], seed=1).estimate(bins=[0, 30, 60, 90], quantiles=[0.5])
    assert estimates.mean.value == pytest.approx(45, abs=1) and estimates.mean.bin_error == 15
    assert estimates.mean.low < 45 < estimates.mean.high and estimates.quantiles[0].option == "30 to 60"
    with pytest.raises(TypeError, match=r"truths\[1\]: expected a number"):
        speeds.privatize([1, "fast"])


def test_estimates_are_a_table(tmp_path: Any) -> None:
    published = TRIPS.publish(TRIPS.tally(TRIPS.privatize(TRUTHS, seed=1)), seed=2)
    estimates = published.estimate(values=[1, 2, 3, None], quantiles=[0.25, 0.75])
    assert len(estimates) == 4 and estimates.names == tuple(NAMES) and estimates.owners == 9000
    assert estimates["bus"] == estimates[1] == list(estimates)[1]
    for row, truth in zip(estimates, [4000, 3000, 1500, 500]):
        # Seeded: all true counts lie in the simultaneous intervals, which are wider than the others.
        assert row.simultaneous[0] <= truth <= row.simultaneous[1]
        assert row.simultaneous[0] <= row.interval[0] <= row.estimate <= row.interval[1] <= row.simultaneous[1]
        assert row.share == row.estimate / 9000
    assert sum(row.consistent for row in estimates) == pytest.approx(9000)
    assert estimates.mean.value == pytest.approx((4000 + 6000 + 4500) / 8500, abs=0.01)
    assert [quantile.option for quantile in estimates.quantiles] == ["car", "bus"]
    both = estimates.union(["car", "bus"])
    assert both.low <= 7000 <= both.high and estimates.union([0, 1]) == both
    more = estimates.difference("car", "bus", confidence="99%")
    assert more.low <= 1000 <= more.high and more.low < estimates.difference("car", "bus").low
    assert pickle.loads(pickle.dumps(estimates)) == estimates and "<table>" in estimates._repr_html_()
    assert repr(estimates).startswith("OptionEstimates(car=") and estimates.published == published
    with pytest.raises(up.UptackError, match="no values"):
        published.estimate().mean


def test_a_rare_option_may_be_negative_and_says_why() -> None:
    estimates = EXACT.estimate({"owners": 1000, "counts": [0, 500, 300, 100]})
    assert estimates["car"].estimate < 0 and estimates["car"].consistent == 0
    assert any("below 0" in note for note in estimates.notes)


def test_frames_are_made_if_their_library_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    estimates = EXACT.estimate([300, 400, 100, 100], owners=1000)
    frame = estimates.to_frame()
    assert list(frame) == list(estimates.columns) and frame["option"].tolist() == NAMES
    assert estimates.to_frame("pandas").equals(frame) and (frame["low"] <= frame["high"]).all()
    simulated = up.simulate(EXACT, owners=100, counts=[10, 20, 30, 40], trials=50, seed=1)
    assert simulated.to_frame()["count"].tolist() == [10, 20, 30, 40]
    assert up.privacy(EXACT, owners=[10, 20]).to_frame()["owners"].tolist() == [10, 20]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(up.UptackError, match="polars is not installed") as raised:
        estimates.to_frame("polars")
    assert raised.value.hint is not None and "pip install polars" in raised.value.hint
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(up.UptackError, match="neither pandas nor polars"):
        estimates.to_frame()
    monkeypatch.setitem(sys.modules, "polars", FakePolars)
    assert estimates.to_frame() == estimates.columns
    with pytest.raises(up.UptackError, match="unknown"):
        estimates.to_frame("excel")  # type: ignore[arg-type]


class FakePolars:
    """A library whose tables are dicts."""

    DataFrame = dict


def test_published_counts_are_stored_and_share_their_noise() -> None:
    noisy = up.Contributions("choice(k=3, r=0.01) + laplace(scale=20)", options=["a", "b", "c"])
    published = noisy.publish([500, 300, 200])
    assert published.owners == 1000 and published.counts is None and published.sums is not None
    assert len({noisy.estimate(published)[0].estimate for _ in range(5)}) == 1
    # Real coins: that all of twenty draws agree has a probability below 1e-30.
    assert len({noisy.publish([500, 300, 200]).sums for _ in range(20)}) > 1
    assert noisy.publish([500, 300, 200], seed=1) == noisy.publish([500, 300, 200], seed=1)
    again = up.PublishedCounts.from_json(published.to_json())
    assert again == published and again.contributions == noisy and again.estimate() == published.estimate()
    assert pickle.loads(pickle.dumps(published)) == published and "sums" in repr(published)
    plain = noisy.with_options().estimate({"owners": 1000, "sums": list(published.sums)})
    assert plain.names == ("1", "2", "3") and plain[0].estimate == published.estimate()[0].estimate
    exact = EXACT.publish(EXACT.tally(EXACT.privatize(TRUTHS, seed=1)))
    assert exact.sums is None and exact.counts is not None and len(exact.counts) == 4
    assert up.PublishedCounts.from_json(exact.to_json()) == exact
    two = up.Contributions("choice(k=2, r=0.01) + laplace(scale=2)").publish([300, 700], seed=1)
    assert two.sums is not None and len(two.sums) == 1 and len(two.estimate()) == 2
    assert up.PublishedCounts.from_json(two.to_json()) == two


def test_plans_have_the_mechanism_and_its_options() -> None:
    plan = up.plan(options=NAMES, owners=9000, yes=2000, epsilon=1)
    assert plan.contributions.options == tuple(NAMES) and plan.release is not None and plan.release.upper <= 1
    assert plan.sd == pytest.approx(plan.contributions.sd(9000, 2000), rel=1e-9)
    assert pickle.loads(pickle.dumps(plan)).contributions == plan.contributions
    assert plan.tradeoff["sd"] == sorted(plan.tradeoff["sd"]) and "<table>" in plan._repr_html_()
    series = up.plan(counts=288, most_yes=2, owners=50_000, yes=100, epsilon=1, linked_epsilon=12)
    assert (series.contributions.counts, series.contributions.most) == (288, 2) and series.sd == pytest.approx(24.1, rel=0.005)
    for refused in (lambda: plan.channel, plan.chart, plan.card, lambda: up.plan(owners=2000, yes=20, epsilon=1).contributions):
        with pytest.raises(up.UptackError):
            refused()


def test_guarantees_of_options() -> None:
    found = up.privacy(TRIPS, owners=9000)
    assert found.one_aggregator is not None and found.release is not None
    assert found.release.upper <= found.one_aggregator.upper < 1 and found.linked == TRIPS.linked_epsilon
    assert "option" in found.statement or "owner" in found.statement
    some = up.privacy(TRIPS.mechanism, owners=9000, views=["linked", "one_aggregator"])
    assert (some.linked, some.one_aggregator) == (found.linked, found.one_aggregator)
    with pytest.raises(up.UptackError, match="no such view"):
        found.answers
    with pytest.raises(up.UptackError, match="views: `answers` is unknown"):
        up.privacy(TRIPS, owners=9000, views="answers")


def test_compositions_of_options() -> None:
    exact = up.Contributions("choice(k=12, r=0.0012)")
    repeated = up.privacy(exact, owners=5000, repeat=4).repeated
    assert up.compose([exact] * 4, owners=5000).epsilon(1e-8) == repeated
    mixed = up.compose([(exact, 3), ("normal-form(f=0.5, r=0.01)", 1)], owners=5000)
    alone = up.compose([(exact, 3)], owners=5000).epsilon(1e-8)
    assert alone is not None and alone.upper < mixed.epsilon(1e-8).upper < repeated.upper + 1  # type: ignore[union-attr]
    noisy = up.compose([TRIPS, exact], owners=9000)
    assert noisy.linked == pytest.approx(TRIPS.linked_epsilon + exact.linked_epsilon)  # type: ignore[operator]
    loss = up.loss_distribution(exact, owners=5000)
    release = up.privacy(exact, owners=5000).release
    assert release is not None
    delta = loss.infinity_mass + float((loss.masses * -np.expm1(release.upper - loss.losses))[loss.losses > release.upper].sum())
    assert 0.99e-8 <= delta <= 1.05e-8


def test_charts_of_options(tmp_path: Any) -> None:
    estimates = EXACT.estimate([300, 400, 100, 100], owners=1000)
    chart = estimates.chart(title="Trips <today>")
    assert "Trips &lt;today&gt;" in chart.svg and all(name in chart.svg for name in NAMES)
    assert chart.data["name"] == NAMES and chart.data["low"] == estimates.columns["low"]
    assert estimates.chart(simultaneous=True).data["low"] == estimates.columns["simultaneous_low"]
    assert pickle.loads(pickle.dumps(chart)) == chart and repr(chart).startswith("BarChart(")
    chart.save(tmp_path / "trips.svg")
    pytest.importorskip("matplotlib.figure")
    chart.save(tmp_path / "trips.png")
    assert (tmp_path / "trips.png").read_bytes().startswith(b"\x89PNG")
    many = up.Contributions("choice(k=60, r=0.001)").estimate([10] * 59 + [500]).chart()
    assert many.data["name"][0] == "60" and "and 20 more" in many.svg
    assert len(many.plot()) == 1
