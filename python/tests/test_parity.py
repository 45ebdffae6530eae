"""Documents equal those of the command line, digit by digit."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import mechanisms
import numpy as np
import pytest
import uptack as up

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("text", mechanisms.ALL)
def test_mechanisms(command: Any, text: str) -> None:
    channel = up.Channel(text)
    assert channel.to_dict() == command("channel", text)
    owners = "12"
    assert up.privacy(channel, owners=12).to_dict() == command("privacy", text, "--owners", owners)
    repeated = up.privacy(text, owners=12, delta=1e-4, repeat=3, honest=0.9)
    found = command("privacy", text, "--owners", owners, "--delta", "1e-4", "--repeat", "3", "--honest", "90%")
    assert repeated.to_dict() == found
    at_epsilon = up.privacy(text, owners=12, epsilon=0.5)
    assert at_epsilon.to_dict() == command("privacy", text, "--owners", owners, "--epsilon", "0.5")
    simulated = up.simulate(channel, owners=1000, yes=200, trials=100, seed=7)
    words = ["--owners", "1000", "--yes", "200", "--trials", "100", "--seed", "7"]
    assert simulated.to_dict() == command("simulate", text, *words)
    for kind in ["auto", "exact", "mid-p", "score"]:
        estimates(command, channel, kind)


def estimates(command: Any, channel: up.Channel, kind: str) -> None:
    counts = channel.draw_counts(1000, 200, seed=1)
    if channel.noise is None:
        estimate = channel.estimate(counts, confidence="99%", interval=kind)
        published: Any = channel.tally(counts)
    else:
        result = channel.publish(counts, seed=1)
        estimate = channel.estimate(result, confidence="99%", interval=kind)  # type: ignore[arg-type]
        published = {"owners": result.owners, "sums": [result.sum]}
    words = ["--confidence", "0.99", "--interval", kind]
    assert estimate.to_dict() == command("estimate", channel.mechanism, *words, text=json.dumps(published))


OPTIONS: list[tuple[str, list[int]]] = [
    ("choice(k=4, r=0.0004) + laplace(scale=2)", [400, 300, 200, 100]),
    ("choice(k=4, f=0.9, r=0.01)", [400, 300, 200, 100]),
    ("choice(k=3, r=1/30)", [900, 100, 0]),
    ("choice(k=2, f=0.5, r=0.01)", [250, 750]),
    ("choice(k=2, r=0.01) + laplace(scale=1)", [250, 750]),
    ("contributions(counts=1, most=1, r=0.01)", [200]),
    ("contributions(counts=5, most=1, r=0.001) + laplace(scale=3)", [100, 50, 0, 20, 300]),
    ("contributions(counts=5, most=2, r=0.001)", [400, 300, 0, 20, 300]),
]


@pytest.mark.parametrize(("text", "counts"), OPTIONS)
def test_options(command: Any, text: str, counts: list[int]) -> None:
    made = up.Contributions(text)
    assert made.to_dict() == command("channel", text)
    assert up.privacy(text, owners=50).to_dict() == command("privacy", text, "--owners", "50")
    words = "--owners 50 --delta 1e-4 --repeat 3 --honest 90%".split()
    assert up.privacy(made, owners=50, delta=1e-4, repeat=3, honest=0.9).to_dict() == command("privacy", text, *words)
    assert up.privacy(made, owners=50, epsilon=0.5).to_dict() == command("privacy", text, "--owners", "50", "--epsilon", "0.5")
    simulated = up.simulate(made, owners=1000, counts=counts, trials=50, seed=7)
    words = ["--owners", "1000", "--counts", ",".join(map(str, counts)), "--trials", "50", "--seed", "7"]
    assert simulated.to_dict() == command("simulate", text, *words)
    found = up.audit(text, samples=200_000, seed=1)
    assert found.to_dict() == command("audit", text, "--samples", "2e5", "--seed", "1") and not found.violated


@pytest.mark.parametrize(("text", "counts"), OPTIONS)
def test_estimates_of_options(command: Any, text: str, counts: list[int]) -> None:
    names = [f"option {number}" for number in range(len(counts))]
    made = up.Contributions(text, options=names)
    published = made.publish(counts, owners=1000, seed=1)
    shares = ["--quantiles", "0.25,0.5"] if len(counts) > 1 and made.most == 1 else []
    values = list(range(len(counts), 0, -1)) if shares and made.is_choice else None
    words = [*shares, *(["--values", ",".join(map(str, values))] if values else [])]
    for kind in ["auto", "exact", "mid-p"]:
        estimates = made.estimate(
            published, values=values, quantiles=[0.25, 0.5] if shares else (), confidence="99%", interval=kind  # type: ignore[arg-type]
        )
        asked = ["--confidence", "0.99", "--interval", kind, *words]
        assert estimates.to_dict() == command("estimate", text, *asked, text=published.to_json())


def test_bins_and_counted_rows(command: Any, tmp_path: pathlib.Path) -> None:
    speeds = up.Contributions("choice(k=6, f=0.9, r=0.01)", bins=[0, 30, 60, 90])
    reports = speeds.privatize(np.arange(2000) % 95 - 2.0, seed=1)
    rows = tmp_path / "rows.csv"
    lines = ["⊥" if report < 0 else speeds.options[report] for report in reports]
    rows.write_text("\n".join([f"choice of {';'.join(speeds.options)}", *lines]) + "\n", encoding="utf-8")
    tally = speeds.tally(reports)
    assert tally == command("tally", str(rows))
    estimates = speeds.estimate(tally, quantiles=[0.5])
    words = ["--bins", "0,30,60,90", "--quantiles", "0.5"]
    assert estimates.to_dict() == command("estimate", speeds.mechanism, *words, text=json.dumps(tally))


OPTION_PLANS: list[tuple[dict[str, Any], list[str]]] = [
    ({"options": 4, "owners": 9000, "yes": 2000, "epsilon": 1}, "--options 4 --owners 9000 --yes 2000 --epsilon 1".split()),
    (
        {"options": ["a", "b", "c"], "owners": 9000, "yes": (0, 500), "error": 8},
        "--options a,b,c --owners 9000 --yes 0..500 --error 8".split(),
    ),
    (
        {"options": 12, "owners": 50_186, "yes": 0, "epsilon": 1, "trust": "owners"},
        "--options 12 --owners 50186 --yes 0 --epsilon 1 --trust owners".split(),
    ),
    ({"options": 2, "owners": 9000, "yes": 2000, "epsilon": 1}, "--options 2 --owners 9000 --yes 2000 --epsilon 1".split()),
    (
        {"counts": 288, "most_yes": 2, "owners": 50_000, "yes": 100, "epsilon": 1, "linked_epsilon": 12},
        "--counts 288 --most-yes 2 --owners 50000 --yes 100 --epsilon 1 --linked-epsilon 12".split(),
    ),
]


@pytest.mark.parametrize(("keywords", "words"), OPTION_PLANS)
def test_plans_of_options(command: Any, keywords: dict[str, Any], words: list[str]) -> None:
    assert up.plan(**keywords).to_dict() == command("plan", *words)


PLANS: list[tuple[dict[str, Any], list[str]]] = [
    ({"owners": 5000, "yes": 50, "epsilon": 1}, ["--owners", "5000", "--yes", "50", "--epsilon", "1"]),
    (
        {"owners": 50_000, "yes": 500, "epsilon": 1, "linked_epsilon": 9, "noise": "aggregators"},
        "--owners 50000 --yes 500 --epsilon 1 --linked-epsilon 9 --noise aggregators".split(),
    ),
    (
        {"owners": 50_000, "yes": (0, 500), "over": "mean", "linked_epsilon": 1.5},
        "--owners 50000 --yes 0..500 --over mean --linked-epsilon 1.5".split(),
    ),
    (
        {"owners": 2000, "yes": 20, "error": 12.5, "noise": "aggregators"},
        "--owners 2000 --yes 20 --error 12.5 --noise aggregators".split(),
    ),
]


@pytest.mark.parametrize(("keywords", "words"), PLANS)
def test_plans(command: Any, tmp_path: pathlib.Path, keywords: dict[str, Any], words: list[str]) -> None:
    plan = up.plan(**keywords)
    assert plan.to_dict() == command("plan", *words)
    path = tmp_path / "card.json"
    plan.card(path)
    assert up.verify(path).to_dict() == command("verify", str(path))
    assert up.verify(path)


@pytest.mark.parametrize("name", ["plausible-deniability", "cancelling", "first-attempt", "third-output", "tuned"])
def test_algebra(command: Any, name: str) -> None:
    path = EXAMPLES / f"{name}.alg"
    program = up.algebra(path.read_text(encoding="utf-8"), owners=50_000, yes=500)
    assert program.to_dict() == command("algebra", str(path), "--owners", "50000", "--yes", "500")
    assert program.channel.to_dict() == command("channel", str(path))


@pytest.mark.parametrize("text", [mechanisms.ALL[0], mechanisms.ALL[16], mechanisms.NOISY[0]])
def test_audit(command: Any, text: str) -> None:
    found = up.audit(text, samples=200_000, seed=1)
    assert found.to_dict() == command("audit", text, "--samples", "2e5", "--seed", "1")
    assert not found.violated


def test_evaluation(command: Any) -> None:
    evaluation = up.evaluate(trials=2, factors=[1])
    assert evaluation.to_dict() == command("evaluate", "--trials", "2", "--factors", "1")
    rows = evaluation.rows
    assert len({len(column) for column in rows.values()}) == 1 and "rmse" in rows and "views.linked" in rows


def test_compositions_are_those_of_repetition(command: Any) -> None:
    text = "normal-form(f=0.5, r=0.01)"
    composed = up.compose([up.Channel(text)] * 12, owners=500)
    found = command("privacy", text, "--owners", "500", "--repeat", "12")["repeated"]
    assert composed.epsilon(1e-8) == up.Bounds(**found["release"]["epsilon"])
    assert composed.linked == found["linked"]


def test_the_same_integers() -> None:
    for text in mechanisms.ALL:
        channel = up.Channel(text)
        exact = channel.to_dict()["exact"]["cells"]
        assert [(cell.yes, cell.no) for cell in channel.cells] == [(int(cell["yes"]), int(cell["no"])) for cell in exact]
        assert sum(cell.yes for cell in channel.cells) == sum(cell.no for cell in channel.cells) == 2**64
        if channel.noise is None:
            again = up.Channel.from_integers({cell.name: (cell.yes, cell.no) for cell in channel.cells})
            assert again.cells == channel.cells


def test_the_law_drawn_is_the_law_stated() -> None:
    """Chi square with fixed seeds: of 50 channels and two truths none beyond the quantile of 1e-6."""
    for text in mechanisms.ALL:
        channel = up.Channel(text)
        for truth in (False, True):
            cells = channel.privatize(np.full(20_000, truth), seed=11)
            observed = np.bincount(cells, minlength=channel.size)
            law = np.array([(cell.yes if truth else cell.no) / 2**64 for cell in channel.cells])
            assert observed[law == 0].sum() == 0
            expected = 20_000 * law[law > 0]
            statistic = float(((observed[law > 0] - expected) ** 2 / expected).sum())
            freedom = len(expected) - 1
            # Wilson and Hilferty's quantile, far out.
            bound = max(freedom, 1) * (1 - 2 / (9 * max(freedom, 1)) + 5.5 * (2 / (9 * max(freedom, 1))) ** 0.5) ** 3
            assert statistic <= bound, (text, truth, statistic)
