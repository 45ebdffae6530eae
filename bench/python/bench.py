"""Uptack's Python package against its peers, as ratios within one run.

Every time is processor time of one process; each peer does a part of the work that takes about a second and is scaled up, since
all of them are linear in it. Usage: python bench.py [--owners 10000000]
"""

from __future__ import annotations

import argparse
import math
import os
import time
from typing import Any, Callable

# One thread each: processor time is compared.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import numpy.typing as npt
import uptack as up

EPSILON = 1.0
KEEP = math.exp(EPSILON) / (1 + math.exp(EPSILON))


def processor_time(work: Callable[[], Any], least: float = 0.5) -> float:
    """Seconds of processor time of one call: the best of three, each of as many calls as take a while."""
    best = math.inf
    for _ in range(3):
        calls, start = 0, time.process_time()
        while time.process_time() - start < least:
            work()
            calls += 1
        best = min(best, (time.process_time() - start) / calls)
    return best


def privatize(owners: int) -> None:
    truths = np.arange(owners) % 100 == 0
    channel = up.Channel.of("randomized-response", t=repr(KEEP))
    ours = processor_time(lambda: channel.privatize(truths))
    print(f"privatize {owners:.0e} owners: uptack {ours:.3f} s, {1e9 * ours / owners:.2f} ns per owner")
    part = 2000
    few = truths[:part].tolist()
    for name, make, aim in (("OpenDP", opendp_response, 50), ("multi-freq-ldpy", ldpy_response, 20)):
        draw = make()
        theirs = processor_time(lambda: [draw(truth) for truth in few]) * owners / part
        show(f"  {name}, scaled from {part}", theirs, ours, aim)


def opendp_response() -> Callable[[bool], Any]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp.m.make_randomized_response_bool(KEEP)


def ldpy_response() -> Callable[[bool], Any]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    return lambda truth: GRR_Client(int(truth), 2, EPSILON)


def variation_ratio_delta(epsilon: float, local: float, owners: int) -> float:
    """δ of shuffled ε-private answers by the variation-ratio bound of Wang and others, for randomized response.

    Somebody else's answer is as good as a fair coin with probability 2r; of C such coins A show 1. The target adds 1 to either
    side. Terms further out than ten standard deviations are left out.
    """
    p = math.exp(local)
    n, two_r = owners - 1, 2 / (p + 1)
    mean, sd = n * two_r, math.sqrt(n * two_r * (1 - two_r))
    coins = np.arange(max(0, int(mean - 10 * sd)), min(n, int(mean + 10 * sd)) + 1)
    law = np.exp(log_binomial(n, coins) + coins * math.log(two_r) + (n - coins) * math.log1p(-two_r))
    growth = math.exp(epsilon)
    total = 0.0
    for count, weight in zip(coins.tolist(), law.tolist()):
        half = math.sqrt(count) / 2
        x = np.arange(max(0, int(count / 2 - 10 * half)), min(count + 1, int(count / 2 + 10 * half) + 2) + 1)
        log_pmf = log_binomial(count, np.arange(max(0, x[0] - 1), x[-1] + 1)) - count * math.log(2)
        pmf = np.concatenate([[0.0], np.exp(log_pmf)]) if x[0] == 0 else np.exp(log_pmf)
        one_more, same = pmf[:-1], pmf[1:]
        yes, no = (p * one_more + same) / (p + 1), (one_more + p * same) / (p + 1)
        total += weight * float(np.maximum(yes - growth * no, 0.0).sum())
    return total


_LOG_FACTORIALS: npt.NDArray[np.float64] = np.zeros(1)


def log_binomial(n: int, k: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    global _LOG_FACTORIALS
    if len(_LOG_FACTORIALS) <= n + 1:
        _LOG_FACTORIALS = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 2)))])
    inside = (k >= 0) & (k <= n)
    safe = np.where(inside, k, 0)
    value: npt.NDArray[np.float64] = _LOG_FACTORIALS[n] - _LOG_FACTORIALS[safe] - _LOG_FACTORIALS[n - safe]
    return np.where(inside, value, -np.inf)


def variation_ratio_epsilon(delta: float, local: float, owners: int) -> float:
    low, high = 0.0, local
    for _ in range(20):
        middle = (low + high) / 2
        if variation_ratio_delta(middle, local, owners) > delta:
            low = middle
        else:
            high = middle
    return high


def accounting(owners: int) -> None:
    local = 4.0
    keep = math.exp(local) / (1 + math.exp(local))
    channel = up.Channel.of("randomized-response", t=repr(keep))
    found: list[float] = []
    ours = processor_time(lambda: up.privacy(channel, owners=owners, delta=1e-8), 0.5)
    release = up.privacy(channel, owners=owners, delta=1e-8).release
    assert release is not None
    start = time.process_time()
    found.append(variation_ratio_epsilon(1e-8, local, owners))
    theirs = time.process_time() - start
    print(f"ε(1e-8) of {owners:.0e} owners, all views: uptack {ours:.4f} s: {release}; variation ratio: {found[0]:.6f}")
    show("  variation ratio in numpy", theirs, ours, 50)


def composing(times: int) -> None:
    from dp_accounting.pld import privacy_loss_distribution as pld

    keep = 0.6
    channel = up.Channel("randomized-response(t=0.6)")
    epsilon = up.compose([(channel, times)], owners=1).epsilon(1e-8)
    ours = processor_time(lambda: up.compose([(channel, times)], owners=1).epsilon(1e-8))
    # Theirs replaces the answer by a coin with this probability.
    theirs_value: list[float] = []

    def theirs() -> None:
        one = pld.from_randomized_response(2 * (1 - keep), 2)
        theirs_value.append(one.self_compose(times).get_epsilon_for_delta(1e-8))

    theirs_time = processor_time(theirs)
    print(f"ε(1e-8) of {times} answers: uptack {ours:.4f} s: {epsilon}; dp-accounting: {theirs_value[0]:.6f}")
    show("  dp-accounting", theirs_time, ours, None)


def show(name: str, theirs: float, ours: float, aim: float | None) -> None:
    wanted = "" if aim is None else f" (aim: {aim} ×, {'kept' if theirs / ours >= aim else 'MISSED'})"
    print(f"{name}: {theirs:.4g} s, {theirs / ours:.3g} ×{wanted}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--owners", type=int, default=10_000_000)
    arguments = parser.parse_args()
    privatize(arguments.owners)
    accounting(1_000_000)
    composing(1000)
