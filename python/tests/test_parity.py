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
