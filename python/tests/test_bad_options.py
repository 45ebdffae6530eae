"""Bad options are refused with their place and what to do; no truth is repeated."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pandas as pd
import pytest
import uptack as up
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NAMES = ["car", "bus", "bike", "walk"]
TRIPS = up.Contributions("choice(k=4, r=0.01)", options=NAMES)
NOISY = up.Contributions("choice(k=4, r=0.01) + laplace(scale=2)", options=NAMES)
VISITS = up.Contributions("contributions(counts=5, most=2, r=0.001)")


@pytest.mark.parametrize(
    ("asked", "truths", "message", "hint"),
    [
        (TRIPS, ["car", "bos"], "truths[1]: not an option", "did you mean `bus`?"),
        (TRIPS, ["car", "secret"], "truths[1]: not an option", "the options are car, bus, bike, walk"),
        (TRIPS, [0, 1, 31337], "truths[2]: not an option", "indices are from 0 to 3"),
        (TRIPS, np.array([0, -1]), "truths[1]: not an option", "indices are from 0 to 3"),
        (TRIPS, np.array([2**64 - 1], dtype=np.uint64), "truths[0]: not an option", "indices"),
        (TRIPS, ["car", None], "truths[1]: the value is missing", "leave this owner out"),
        (TRIPS, pd.Series(["car", np.nan], dtype=object), "truths[1]: the value is missing", "leave this owner out"),
        (TRIPS, ["none"], "truths[0]: not an option", "the options are"),
        (TRIPS, [["car", "bus"]], "truths[0]: 2 options, but an owner has exactly 1", None),
        (TRIPS, [[]], "truths[0]: 0 options, but an owner has exactly 1", None),
        (TRIPS, np.array([[0, 1]]), "truths[0]: 2 options, but an owner has exactly 1", None),
        (VISITS, [[0], [0, 1, 2]], "truths[1]: 3 options, but an owner has at most 2", None),
        (VISITS, np.array([[0, 1, 2]]), "truths[0]: 3 options, but an owner has at most 2", None),
        (VISITS, [[0], [3, 3]], "truths[1]: an option appears twice", None),
        (VISITS, np.array([[0, 1], [3, 3]]), "truths[1]: an option appears twice", None),
        (VISITS, [[0, 31337]], "truths[0, 1]: not an option", "and -1 is none"),
        (VISITS, np.array([[0, 31337]]), "truths[0, 1]: not an option", "and -1 is none"),
        (VISITS, np.array([2**64 - 1], dtype=np.uint64), "truths[0]: not an option", "and -1 is none"),
        (VISITS, [None], "truths[0]: the value is missing", '"none"'),
    ],
)
def test_truths(asked: up.Contributions, truths: Any, message: str, hint: Any) -> None:
    with pytest.raises(up.UptackError) as raised:
        asked.privatize(truths)
    assert message in str(raised.value) and raised.value.kind == "input"
    assert hint is None or (raised.value.hint is not None and hint in raised.value.hint)
    assert "secret" not in str(raised.value) and "31337" not in str(raised.value)


@pytest.mark.parametrize("truths", [None, "car", 3, b"car", {"car": 1}, [True, False], np.array([1j]), [1.5], np.array([0.0, 1.0])])
def test_types_of_truths(truths: Any) -> None:
    with pytest.raises(TypeError, match="truths"):
        TRIPS.privatize(truths)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: up.Contributions("choice(k=1, r=0.1)"), "k = 1"),
        (lambda: up.Contributions("contributions(counts=4, most=5, r=0.01)"), "most = 5"),
        (lambda: up.Contributions("contributions(counts=4, most=0, r=0.01)"), "most = 0"),
        (lambda: up.Contributions("choice(k=4, r=0.3)"), "r"),
        (lambda: up.Contributions("choice(k=70000, r=0)"), "65536"),
        (lambda: up.Contributions("choice(k=4, r=0.1)", options=["a", "b"]), "options: 2 are named, but"),
        (lambda: up.Contributions("choice(k=2, r=0.1)", options=["a", "a"]), "both called `a`"),
        (lambda: up.Contributions("choice(k=2, r=0.1)", options=["a", ""]), "empty name"),
        (lambda: up.Contributions("choice(k=5, r=0.1)", bins=[0, 20, 10]), "not above"),
        (lambda: up.Contributions("choice(k=4, r=0.1)", bins=[0, 1, 2]), "3 edges make 5 options"),
        (lambda: up.Contributions("choice(k=4, r=0.1)", options=NAMES, bins=[0, 1]), "not both"),
        (lambda: up.Contributions("randomized-response(t=0.8)"), "no options"),
        (lambda: up.Channel("choice(k=4, r=0.1)"), "has options"),
        (lambda: TRIPS.publish([1, 2, 3]), "3 counts for 4 options"),
        (lambda: VISITS.publish([1, 2, 3, 4, 5]), "owners: how many are there?"),
        (lambda: VISITS.publish([1, 2, 3, 4, 50], owners=10), "50 of 10 owners"),
        (lambda: TRIPS.publish({"owners": 10, "counts": [1, 2, 3, 4], "options": ["a", "b", "c", "d"]}), "other options"),
        (lambda: NOISY.estimate([1, 2, 3, 4]), "drawn once"),
        (lambda: NOISY.estimate(TRIPS.publish([1, 2, 3, 4])), "another mechanism"),
        (lambda: NOISY.estimate({"owners": 10, "sums": [1, 2, 3]}), "list of 4 numbers"),
        (lambda: TRIPS.estimate([10, 20, 30, 40], values=[1, 2]), "values: 2 for 4 options"),
        (lambda: TRIPS.estimate([10, 20, 30, 40], quantiles=[1.5]), "1.5"),
        (lambda: TRIPS.estimate([10, 20, 30, 40], confidence=2), "2 is not between 0 and 1"),
        (lambda: TRIPS.estimate([10, 20, 30, 40])["bos"], "'bos' is not an option"),
        (lambda: TRIPS.estimate([10, 20, 30, 40]).difference("bus", "bus"), "compared with itself"),
        (lambda: VISITS.estimate([1, 2, 3, 4, 5], owners=50).union([0, 1]), "up to 2 of these options"),
        (lambda: TRIPS.tally(np.array([0, 7])), "another mechanism"),
        (lambda: TRIPS.tally(np.zeros((3, 2), dtype=int)), "names at most 1"),
        (lambda: up.simulate(TRIPS, owners=10, yes=5), "counts: how many owners have each of the 4"),
        (lambda: up.simulate(TRIPS, owners=10, counts=[1, 2, 3, 3]), "sum to 9"),
        (lambda: up.simulate(TRIPS, owners=10, counts=[1, 2, 3]), "3 counts for 4 options"),
        (lambda: up.simulate("randomized-response(t=0.8)", owners=10, counts=[5, 5]), "yes/no question"),
        (lambda: up.plan(options=4, counts=4, owners=100, yes=10, epsilon=1), "not both"),
        (lambda: up.plan(options=4, most_yes=2, owners=100, yes=10, epsilon=1), "most_yes"),
        (lambda: up.plan(options=["a", "a"], owners=100, yes=10, epsilon=1), "both called"),
        (lambda: up.plan(options=4, owners=100, yes=10, epsilon=1, family="normal-form"), "family"),
        (lambda: up.PublishedCounts.from_dict({"mechanism": "choice(k=3,r=0.1)", "owners": 3, "sums": [1, 1, 1]}), "without noise counts"),
        (lambda: up.PublishedCounts.from_json("{"), "not a published result"),
        (lambda: up.estimate_many("choice(k=3,r=0.1)", [[1, 2, 3]]), "has options"),
    ],
)
def test_requests(make: Callable[[], object], message: str) -> None:
    with pytest.raises(up.UptackError) as raised:
        make()
    assert message in str(raised.value), str(raised.value)


VALUES = st.one_of(
    st.integers(-(2**70), 2**70), st.integers(0, 4), st.floats(), st.booleans(), st.none(), st.text(max_size=6),
    st.sampled_from(["car", "none", b"car", object(), [0], ["bus", 1], {"a": 1}, np.array([1, 2]), np.int8(2), 1 + 2j]),
)  # fmt: skip
quick = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(st.one_of(VALUES, st.lists(VALUES, max_size=5)), VALUES, VALUES)
def test_whatever_is_handed_in_there_is_an_answer_or_an_error(many: Any, one: Any, two: Any) -> None:
    bins = up.Contributions("choice(k=4, r=0.01)", bins=[0, 1])
    for work in (
        lambda: TRIPS.privatize(many), lambda: VISITS.privatize(many), lambda: bins.privatize(many),
        lambda: TRIPS.tally(many), lambda: TRIPS.publish(many, owners=one), lambda: NOISY.publish(many, seed=one),
        lambda: TRIPS.estimate(many, values=one, quantiles=two), lambda: TRIPS.estimate([1, 2, 3, 4], values=many, quantiles=many),
        lambda: NOISY.estimate({"owners": one, "sums": many}), lambda: up.Contributions("choice(k=2, r=0.1)", options=many),
        lambda: up.Contributions("choice(k=4, r=0.1)", bins=many), lambda: TRIPS.estimate([1, 2, 3, 4]).union(many),
        lambda: TRIPS.estimate([1, 2, 3, 4]).difference(one, two), lambda: TRIPS.sd(one, two),
        lambda: up.simulate(TRIPS, owners=10, counts=many, trials=2, seed=one),
    ):  # fmt: skip
        try:
            work()
        except (ValueError, TypeError, IndexError) as error:
            assert str(error) and type(error).__name__ != "PanicException"
