"""Noise is drawn when a result is published, once; estimates are made from what was published."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
import uptack as up

NOISY = up.Channel("randomized-response(t=0.9) + laplace(scale=20)")
EXACT = up.Channel("normal-form(f=0.5, r=0.01)")
COUNTS = [180, 820]


def test_estimates_of_one_published_result_share_its_noise() -> None:
    published = NOISY.publish(COUNTS)
    assert len({NOISY.estimate(published).value for _ in range(20)}) == 1
    # Real coins: that all of twenty draws agree has a probability below 1e-30.
    assert len({NOISY.publish(COUNTS).sum for _ in range(20)}) > 1


@pytest.mark.parametrize("counts", [COUNTS, np.array(COUNTS), NOISY.tally(COUNTS)])
def test_counts_of_a_noisy_channel_have_to_be_published_first(counts: Any) -> None:
    with pytest.raises(up.UptackError, match="drawn once") as raised:
        NOISY.estimate(counts)
    assert raised.value.hint is not None and "publish(counts)" in raised.value.hint
    with pytest.raises(up.UptackError, match="drawn once"):
        up.estimate_many(NOISY, [counts, counts])


def test_a_published_result_is_stored_and_read_back() -> None:
    for channel, counts in ((NOISY, COUNTS), (EXACT, [100, 400, 500])):
        published = channel.publish(counts)
        again = up.Published.from_json(published.to_json())
        assert again == published and hash(again) == hash(published) and again.channel == channel
        assert pickle.loads(pickle.dumps(published)) == published
        assert again.estimate(confidence="99%").to_dict() == channel.estimate(published, confidence="99%").to_dict()
        assert channel.estimate(published).published == published
        assert "<table>" in published._repr_html_() and repr(published).startswith("Published(")


def test_with_noise_there_is_a_sum_and_without_noise_a_tally() -> None:
    noisy, exact = NOISY.publish(COUNTS, seed=3), EXACT.publish([100, 400, 500])
    assert noisy.tally is None and isinstance(noisy.sum, int) and noisy.owners == 1000
    assert exact.sum is None and exact.tally is not None and exact.owners == 1000
    assert EXACT.estimate(exact).to_dict() == EXACT.estimate([100, 400, 500]).to_dict()
    assert NOISY.estimate(owners=1000, sum=noisy.sum).to_dict() == noisy.estimate().to_dict()
    assert NOISY.estimate({"owners": 1000, "sums": [noisy.sum]}).to_dict() == noisy.estimate().to_dict()


def test_seeds_repeat_the_noise() -> None:
    assert NOISY.publish(COUNTS, seed=5) == NOISY.publish(COUNTS, seed=5)
    assert len({NOISY.publish(COUNTS, seed=seed).sum for seed in range(20)}) > 1


def test_a_result_of_another_mechanism_is_refused() -> None:
    with pytest.raises(up.UptackError, match="another mechanism"):
        EXACT.estimate(NOISY.publish(COUNTS))


@pytest.mark.parametrize(
    "changes",
    [{"sums": []}, {"sums": [1, 2]}, {"sums": ["1"]}, {"sums": None}, {"owners": 0}, {"owners": -1}, {"mechanism": "x"},
     {"mechanism": EXACT.mechanism}, {"owners": True}],
)  # fmt: skip
def test_documents_that_nobody_published_are_refused(changes: dict[str, Any]) -> None:
    document = {**NOISY.publish(COUNTS).to_dict(), **changes}
    with pytest.raises((up.UptackError, TypeError)):
        up.Published.from_json(json.dumps(document))


def test_many_published_results() -> None:
    results = [NOISY.publish(COUNTS, seed=seed) for seed in (1, 2, 3)]
    estimates = up.estimate_many(NOISY, results)
    assert [estimate.published for estimate in estimates] == results
    assert estimates[0].high - estimates[0].low > results[0].estimate().high - results[0].estimate().low
