"""Guarantees: which number is which, some views alone, and many at once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import uptack as up

PLAIN = "normal-form(f=0.5, r=0.01)"
NOISY = "randomized-response(t=0.99) + laplace(scale=2)"
PAIRS = "paired(b=0.5, sy=0.2, sn=0.05)"
VIEWS = ("answers", "linked", "one_aggregator", "release", "owners_alone", "answers_with_release")


def test_the_text_says_which_number_is_epsilon_and_which_delta() -> None:
    at_delta, at_epsilon = up.privacy(NOISY, owners=50, delta=1e-6), up.privacy(NOISY, owners=50, epsilon=0.25)
    shown = repr(at_delta)
    for part in ("delta=1e-06", "release_epsilon=", "one_aggregator_epsilon=", "linked_epsilon=", "answers_epsilon=["):
        assert part in shown, shown
    assert "epsilon=0.25" in repr(at_epsilon) and "release_delta=" in repr(at_epsilon)
    assert "release_epsilon" not in repr(at_epsilon)
    for result, value in ((at_delta, "1e-06"), (at_epsilon, "0.25")):
        html = result._repr_html_()
        assert ">ε at most<" in html and ">δ at most<" in html and f">{value}<" in html
    assert (at_delta.delta, at_delta.epsilon) == (1e-6, None) and (at_epsilon.delta, at_epsilon.epsilon) == (None, 0.25)
    choice = up.plan(owners=500, yes=10, epsilon=1, family="randomized-response")
    assert "release_epsilon=" in repr(choice) and "linked_epsilon=" in repr(choice)


@pytest.mark.parametrize("text", [PLAIN, NOISY, PAIRS])
@pytest.mark.parametrize("target", [{"delta": 1e-5}, {"epsilon": 0.5}])
def test_a_view_alone_is_the_view_among_all(text: str, target: dict[str, Any]) -> None:
    whole = up.privacy(text, owners=12, repeat=2, **target).to_dict()
    for view in VIEWS:
        alone = up.privacy(text, owners=12, views=view, **target).to_dict()  # type: ignore[call-overload]
        assert alone["views"] == {view: whole["views"][view]}
        assert (alone["owners"], alone["mechanism"]) == (whole["owners"], whole["mechanism"])
    repeated = up.privacy(text, owners=12, views=["release", "linked"], repeat=2, **target).to_dict()
    assert set(repeated["views"]) == {"release", "linked"} and repeated["repeated"] == whole["repeated"]


def test_one_view_takes_its_own_steps_alone() -> None:
    """The steps of one certificate, of the four that all views of two answers and the release take."""
    def steps(**views: Any) -> int:
        totals = set()
        up.privacy("paired(b=0.5, sy=0.2, sn=0.05)", owners=40, progress=lambda _, total: totals.add(total), **views)
        (total,) = totals
        return total

    assert steps(views="release") * 3 == steps()
    assert steps(views="linked") == 0


def test_other_views_are_not_no_guarantee() -> None:
    release = up.privacy(PLAIN, owners=12, views="release")
    assert release.release is not None and release.closed
    for name in ("linked", "answers", "one_aggregator", "owners_alone", "answers_with_release", "statement"):
        with pytest.raises(up.UptackError, match="was not computed"):
            getattr(release, name)
    for wrong in ("relase", ["release", "x"]):
        with pytest.raises(up.UptackError, match="unknown"):
            up.privacy(PLAIN, owners=12, views=wrong)  # type: ignore[call-overload]


def test_arrays_of_owners_epsilons_and_deltas() -> None:
    owners = np.array([10, 20, 40])
    table = up.privacy(PLAIN, owners=owners, delta=[1e-4, 1e-5, 1e-6])
    assert isinstance(table, up.PrivacyTable) and len(table) == 3
    for row, crowd, delta in zip(table, owners, (1e-4, 1e-5, 1e-6)):
        assert row == up.privacy(PLAIN, owners=crowd, delta=delta)
    columns = table.columns
    assert columns["owners"] == [10, 20, 40] and columns["delta"] == [1e-4, 1e-5, 1e-6]
    assert columns["epsilon"] == [row.release.upper for row in table if row.release is not None]
    at_epsilon = up.privacy(PLAIN, owners=12, epsilon=pd.Series([0.5, 1.0]), views="release")
    assert at_epsilon.columns["epsilon"] == [0.5, 1.0] and at_epsilon.columns["delta"][0] > at_epsilon.columns["delta"][1]
    assert len(up.privacy(PLAIN, owners=range(10, 13), views="linked")) == 3
    assert pickle.loads(pickle.dumps(table)) == table and table[:2].columns["owners"] == [10, 20]
    assert "<table>" in table._repr_html_() and repr(table).startswith("PrivacyTable(3 rows")
    assert list(pd.DataFrame(table.columns)["closed"]) == [row.closed for row in table]
    with pytest.raises(up.UptackError, match="different lengths: owners 3, delta 2"):
        up.privacy(PLAIN, owners=owners, delta=[1e-4, 1e-5])
    told: list[tuple[int, int]] = []
    up.privacy(PLAIN, owners=[10, 20], views="linked", progress=lambda *now: told.append(now))
    assert told == [(1, 2), (2, 2)]


def test_a_randomized_response_of_a_given_epsilon() -> None:
    channel = up.Channel.of("randomized-response", epsilon=1)
    assert channel == up.Channel("randomized-response(epsilon=1)") == up.Channel(channel.mechanism)
    assert channel.linked_epsilon is not None and 1 - 1e-10 < channel.linked_epsilon <= 1
    noisy = up.Channel("randomized-response(epsilon=2) + laplace(scale=1)")
    assert noisy.noise is not None and noisy.linked_epsilon is not None and noisy.linked_epsilon <= 2
