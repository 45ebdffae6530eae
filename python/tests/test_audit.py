"""Anybody's randomizer: wrong ones are found, right ones are not accused. All coins are seeded."""

from __future__ import annotations

import math
import random
from typing import Any, Callable

import numpy as np
import pytest
import uptack as up


def response(seed: int, keep: float) -> Callable[[bool], int]:
    coins = random.Random(seed)
    return lambda truth: int(truth) if coins.random() < keep else 1 - int(truth)


def laplace(seed: int, scale: float) -> Callable[[bool], float]:
    coins = np.random.default_rng(seed)
    return lambda truth: float(truth) + float(coins.laplace(0, scale))


def geometric(seed: int, epsilon: float) -> Callable[[bool], int]:
    coins = np.random.default_rng(seed)
    p = 1 - math.exp(-epsilon)
    return lambda truth: int(truth) + int(coins.geometric(p)) - int(coins.geometric(p))


def channel(seed: int, text: str) -> Callable[[Any], Any]:
    law, seeds = up.Channel(text), iter(range(seed, 10**9))
    return lambda truths: law.privatize(truths, seed=next(seeds))


RIGHT: list[tuple[Callable[[Any], Any], float, bool]] = [
    (response(1, math.e / (1 + math.e)), 1.0, False),
    (response(2, 0.75), math.log(3), False),
    (response(3, 0.9), math.log(9), False),
    (response(4, 0.5), 0.0, False),
    (laplace(5, 1.0), 1.0, False),
    (laplace(6, 0.5), 2.0, False),
    (geometric(7, 1.0), 1.0, False),
    (geometric(8, 0.5), 0.5, False),
    (channel(9, "randomized-response(t=0.8)"), math.log(4), True),
    (channel(10_000, "custom(1=0.4:0.1, 2=0.3:0.2, 3=0.2:0.3, 4=0.1:0.4)"), math.log(4), True),
]


@pytest.mark.parametrize("number", range(len(RIGHT)))
def test_right_ones_are_not_accused(number: int) -> None:
    randomizer, epsilon, vectorized = RIGHT[number]
    audit = up.audit(randomizer, claimed_epsilon=epsilon, samples=40_000, confidence=0.95, vectorized=vectorized)
    assert not audit.violated, audit.to_dict()
    assert audit.epsilon_lower >= 0.6 * epsilon


def test_a_bias_of_one_face_is_found() -> None:
    """Of a hundred faces 75 should keep the truth; comparing with <= keeps it with 76."""
    coins = random.Random(1)

    def off_by_one(truth: bool) -> bool:
        return truth if coins.randrange(100) <= 75 else not truth

    audit = up.audit(off_by_one, claimed_epsilon=math.log(3), samples=400_000, confidence=0.95)
    assert audit.violated and audit.findings["output"]["event"]["yes"]["hits"] > 0


def test_a_leak_by_length_is_found() -> None:
    """What it says is random, and never the same twice; how long it is depends on the truth."""
    coins = random.Random(2)

    def padded(truth: bool) -> bytes:
        return coins.randbytes(17 if truth else 16)

    audit = up.audit(padded, claimed_epsilon=1.0, samples=20_000, confidence=0.95)
    assert audit.findings["length"]["verdict"] == "violated"
    assert audit.findings["output"]["verdict"] == "consistent"


def test_noise_of_too_small_a_scale_is_found() -> None:
    audit = up.audit(laplace(3, 0.8), claimed_epsilon=1.0, samples=60_000, confidence=0.95)
    assert audit.findings["size"]["verdict"] == "violated"


def test_outputs_of_any_type() -> None:
    for say in (lambda t: None, lambda t: (1, "a"), lambda t: np.arange(3), lambda t: "\ud800", lambda t: np.int8(1)):
        audit = up.audit(say, claimed_epsilon=0.0, samples=1000)
        assert not audit.violated and audit.epsilon_lower == 0.0


def test_errors_of_the_randomizer_are_its_own() -> None:
    def broken(truth: bool) -> bool:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        up.audit(broken, claimed_epsilon=1.0, samples=1000)
    with pytest.raises(up.UptackError, match="1 outputs for"):
        up.audit(lambda truths: [1], claimed_epsilon=1.0, samples=1000, vectorized=100)
    with pytest.raises(up.UptackError, match="claimed"):
        up.audit(broken)
    with pytest.raises(TypeError, match="callable"):
        up.audit(7)  # type: ignore[arg-type]
