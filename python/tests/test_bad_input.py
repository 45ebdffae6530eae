"""Whatever is handed in, there is an answer, a ValueError or a TypeError."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any, Callable

import numpy as np
import pandas as pd
import pytest
import uptack as up
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CHANNEL = up.Channel("normal-form(f=0.5, r=0.01)")
NOISY = up.Channel("randomized-response(t=0.9) + laplace(scale=2)")

NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
    st.none(),
    st.text(max_size=8),
    st.fractions(),
    st.decimals(allow_nan=True),
    st.sampled_from([np.int8(-1), np.uint64(2**64 - 1), np.float32(0.5), np.bool_(True), np.array(3), np.array([1, 2])]),
    st.sampled_from(["1/3", "95%", "1e-400", "0.1e99999999", "⊥", "none", b"0.5", object(), [0.5], {"a": 1}, 1 + 2j]),
)

DTYPES = ["bool", "int8", "int64", "uint8", "uint64", "float32", "float64", "complex64", "U3", "S2", "O", "M8[s]"]

quick = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


def survives(work: Callable[[], object]) -> None:
    try:
        work()
    except (ValueError, TypeError) as error:
        assert str(error)
        assert type(error).__name__ != "PanicException"


@quick
@given(st.text(max_size=60))
def test_mechanisms(text: str) -> None:
    survives(lambda: up.Channel(text))
    survives(lambda: up.Channel(f"custom({text})"))
    survives(lambda: up.Channel.from_json(text))
    survives(lambda: up.algebra(text))


@quick
@given(st.dictionaries(st.sampled_from(["1", "0", "⊥", "12", "", 7, None]), st.tuples(NUMBERS, NUMBERS) | NUMBERS, max_size=4))
def test_cells(cells: dict[Any, Any]) -> None:
    survives(lambda: up.Channel.from_cells(cells))
    survives(lambda: up.Channel.from_integers(cells))


@quick
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_numbers(one: Any, two: Any, three: Any, four: Any) -> None:
    survives(lambda: up.privacy(CHANNEL, owners=small(one), delta=two, honest=three))
    survives(lambda: up.privacy(CHANNEL, owners=5, epsilon=two, repeat=small(four)))
    survives(lambda: up.simulate(CHANNEL, owners=one, yes=two, trials=small(three), seed=four))
    survives(lambda: up.compose([(CHANNEL, small(one))], owners=small(two)).epsilon(three))
    survives(lambda: CHANNEL.estimate([5, 5, 5], confidence=one, interval=two))
    survives(lambda: NOISY.estimate(owners=one, sum=two, confidence=three))
    survives(lambda: CHANNEL.sd(one, two))
    survives(lambda: CHANNEL.draw_counts(one, two, seed=three))
    survives(lambda: up.Channel.of("randomized-response", t=one))
    survives(lambda: CHANNEL.with_noise(one))
    survives(lambda: up.simultaneous(one, two, sharing=three))
    survives(lambda: up.consistent([one, two], [three, four], owners=10))
    survives(lambda: up.audit(lambda truth: truth, claimed_epsilon=one, claimed_delta=two, samples=small(three), confidence=four))


def small(value: Any) -> Any:
    """Nobody waits for large ones."""
    return value % 2000 if isinstance(value, int) and not isinstance(value, bool) and value > 2000 else value


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_plans(one: Any, two: Any, three: Any, four: Any) -> None:
    survives(lambda: up.plan(owners=one, yes=two, epsilon=three, delta=four, family="randomized-response"))
    survives(lambda: up.plan(owners=100, yes=5, epsilon=1, noise=one, trust=two, form=three, solve=four))
    survives(lambda: up.plan(owners=100, yes=(one, two), epsilon=1, honest=three, family="randomized-response"))


@quick
@given(st.sampled_from(DTYPES), st.integers(0, 20), st.integers(1, 3), st.randoms(use_true_random=False))
def test_arrays(dtype: str, length: int, dimensions: int, random: Any) -> None:
    array = np.array([random.randint(-3, 3) for _ in range(length)]).astype("int64")
    try:
        array = array.astype(dtype)
    except (TypeError, ValueError):
        return
    shaped = array.reshape((1,) * (dimensions - 1) + (length,))
    for each in (array, shaped, array[::2], array[::-1], pd.Series(array), list(array), memoryview(b"abc")):
        survives(lambda each=each: CHANNEL.privatize(each))
        survives(lambda each=each: CHANNEL.estimate(each))
        survives(lambda each=each: NOISY.publish(each))


@pytest.mark.parametrize(
    ("counts", "error", "part"),
    [
        (np.array([1.0, 2.0, 3.0]), TypeError, "float64"),
        (np.array([1, np.nan, 3]), TypeError, "float64"),
        (np.array([1, -2, 3]), up.UptackError, "counts[1]: -2"),
        ([1, -2, 3], up.UptackError, "counts[1]: -2"),
        ([1, 2], up.UptackError, "2 counts for 3 cells"),
        ([1, 2, 3, 4], up.UptackError, "4 counts for 3 cells"),
        ([2**63, 2**63, 2**63], up.UptackError, "2^63"),
        (np.array([2**64 - 1, 1, 1], dtype="uint64"), up.UptackError, "counts[0]"),
        (np.zeros((3, 3), dtype=int), up.UptackError, "one dimension"),
        ([0, 0, 0], up.UptackError, "no owners"),
        ("123", TypeError, "str"),
        (None, TypeError, "None"),
    ],
)
def test_counts_say_where(counts: Any, error: type[Exception], part: str) -> None:
    with pytest.raises(error) as raised:
        CHANNEL.estimate(counts)
    assert part in str(raised.value)
    assert isinstance(raised.value, (TypeError, ValueError))


@pytest.mark.parametrize("truths", [np.array([0, 1]), np.array([0.5, np.nan]), ["yes"], np.array([None, True]), 1, "101"])
def test_truths_are_bool(truths: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        CHANNEL.privatize(truths)


def test_errors_have_kinds_and_hints() -> None:
    with pytest.raises(up.UptackError) as raised:
        up.Channel("randomized-response(t=2)")
    assert (raised.value.kind, isinstance(raised.value, ValueError)) == ("parameter", True) or raised.value.kind == "syntax"
    with pytest.raises(up.UptackError) as raised:
        up.plan(yes=5, owners=100)
    assert raised.value.kind == "request" and raised.value.hint is not None and "epsilon" in raised.value.hint
    with pytest.raises(up.UptackError, match="does not exist|no such|unknown|not a"):
        up.plan(yes=5, owners=100, epsilon=1, noise="loud")
    with pytest.raises(FileNotFoundError):
        up.verify("there-is-no-such-record.json")
    with pytest.raises(up.UptackError):
        up.verify({"counts": [1, 2]})


def test_exact_numbers_keep_their_digits() -> None:
    third = up.Channel.of("randomized-response", t=Fraction(1, 3))
    assert third == up.Channel("randomized-response(t=1/3)")
    assert up.Channel.of("randomized-response", t=Decimal("0.1")) == up.Channel("randomized-response(t=0.1)")
    assert up.Channel.of("randomized-response", t=np.float64(0.1)) == up.Channel("randomized-response(t=0.1)")


def test_large_and_empty_arrays() -> None:
    assert CHANNEL.privatize(np.zeros(0, dtype=bool)).shape == (0,)
    assert CHANNEL.privatize([]).dtype == np.uint8
    cells = CHANNEL.privatize(np.zeros(3_000_001, dtype=bool)[::-1])
    assert cells.shape == (3_000_001,) and cells.max() < CHANNEL.size
