"""Compositions: followed, kept, and exported to another accountant."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import uptack as up
from uptack import _composition, _core

PLAIN = "normal-form(f=0.5, r=0.01)"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """Starts with nothing kept, and lists what is computed."""
    made: list[tuple[str, float]] = []
    real = _core.Composition

    class Counted:
        def __init__(self, *parts: Any) -> None:
            self.inner = real(*parts)

        def epsilon(self, delta: float, progress: Any = None) -> Any:
            made.append(("epsilon", delta))
            return self.inner.epsilon(delta, progress)

        def delta(self, epsilon: float, progress: Any = None) -> Any:
            made.append(("delta", epsilon))
            return self.inner.delta(epsilon, progress)

    monkeypatch.setattr(_core, "Composition", Counted)
    monkeypatch.setattr(_composition, "_KEPT", {})
    return made


def test_a_composition_takes_a_listener(calls: list[tuple[str, float]]) -> None:
    told: list[tuple[int, int]] = []
    composed = up.compose([(PLAIN, 5)], owners=100, progress=lambda *now: told.append(now))
    assert told == []
    composed.epsilon(1e-6)
    assert told and all(total == 0 for _, total in told)
    own: list[tuple[int, int]] = []
    before = len(told)
    composed.epsilon(1e-5, progress=lambda *now: own.append(now))
    assert own and len(told) == before
    assert pickle.loads(pickle.dumps(composed)) == composed
    with pytest.raises(TypeError, match="progress"):
        up.compose([PLAIN], owners=100, progress=3)  # type: ignore[arg-type]


def test_what_was_composed_is_not_composed_again(calls: list[tuple[str, float]]) -> None:
    first = up.compose([PLAIN] * 3, owners=100).epsilon(1e-6)
    assert up.compose([(PLAIN, 3)], owners=100).epsilon(1e-6) == first
    assert calls == [("epsilon", 1e-6)]
    up.compose([PLAIN] * 3, owners=100).delta(1e-6)
    up.compose([PLAIN] * 3, owners=101).epsilon(1e-6)
    up.compose([PLAIN] * 4, owners=100).epsilon(1e-6)
    up.compose([PLAIN] * 3, owners=100, work=2).epsilon(1e-6)
    assert len(calls) == 5


def test_no_more_than_some_results_are_kept(calls: list[tuple[str, float]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_composition, "_MOST_KEPT", 2)
    composed = up.compose(["randomized-response(t=0.6)"], owners=10)
    for delta in (1e-3, 1e-4, 1e-3, 1e-5, 1e-3):
        composed.epsilon(delta)
    # The one that was used last stayed.
    assert calls == [("epsilon", 1e-3), ("epsilon", 1e-4), ("epsilon", 1e-5)]
    assert len(_composition._KEPT) == 2


def test_another_accountant_gets_no_better_claims_than_the_truth() -> None:
    """Against certified lower bounds, which the truth is not below; and not much worse than our own claims."""
    pytest.importorskip("dp_accounting")
    for text in (PLAIN, "randomized-response(t=0.8)", "randomized-response(t=0.99) + laplace(scale=2)"):
        loss = up.loss_distribution(text, owners=300, repetitions=12, smallest_delta=1e-8)
        pld = loss.to_dp_accounting()
        for epsilon in (0.05, 0.2, 0.5, 1.0):
            truth = up.privacy(text, owners=300, epsilon=epsilon, views="release").release
            assert truth is not None
            delta = pld.get_delta_for_epsilon(epsilon)
            assert truth.lower * (1 - 1e-9) <= delta <= 1.05 * truth.upper + 1e-11, (text, epsilon)
        composed = up.compose([(text, 12)], owners=300).epsilon(1e-8)
        assert composed is not None
        epsilon = pld.self_compose(12).get_epsilon_for_delta(1e-8)
        assert composed.lower <= epsilon <= 1.03 * composed.upper, text


def test_losses_are_rounded_up_to_another_interval() -> None:
    pytest.importorskip("dp_accounting")
    loss = up.loss_distribution(PLAIN, owners=300)
    fine = loss.to_dp_accounting()
    coarse = loss.to_dp_accounting(interval=0.1)
    for epsilon in (0.0, 0.13, 0.4, 0.9):
        assert coarse.get_delta_for_epsilon(epsilon) >= fine.get_delta_for_epsilon(epsilon)
    other = up.loss_distribution("randomized-response(t=0.8)", owners=300).to_dp_accounting(interval=0.1)
    assert coarse.compose(other).get_epsilon_for_delta(1e-6) > coarse.get_epsilon_for_delta(1e-6)
    for wrong in (0, -1, float("inf"), float("nan")):
        with pytest.raises(up.UptackError):
            loss.to_dp_accounting(interval=wrong)


def test_a_loss_distribution_is_data() -> None:
    loss = up.loss_distribution(PLAIN, owners=100)
    assert pickle.loads(pickle.dumps(loss)) == loss and hash(loss) == hash(pickle.loads(pickle.dumps(loss)))
    assert (loss.losses % loss.spacing == 0).all() and (loss.masses > 0).all() and loss.infinity_mass >= 0
    assert 1 <= loss.masses.sum() + loss.infinity_mass < 1.01
    with pytest.raises(AttributeError):
        loss.spacing = 1.0
