"""Trying a mechanism out: simulations, and audits of its sampler or of anybody's randomizer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Optional, Sequence, Union, overload

from . import _arguments, _core
from ._channel import Channel, ChannelLike
from ._contributions import Contributions, MechanismLike, mechanism_of, with_options
from ._errors import UptackError
from ._option_results import OptionSimulation
from ._results import Audit, Simulation

if TYPE_CHECKING:
    from typing import Callable

    import numpy.typing as npt

    from ._arguments import Exact, Interval, Progress, Real, Whole


@overload
def simulate(
    channel: ChannelLike,
    *,
    owners: Whole,
    yes: Whole,
    trials: Whole = ...,
    seed: Optional[Whole] = ...,
    confidence: Exact = ...,
    interval: Interval = ...,
    per_owner: bool = ...,
    keep_estimates: bool = ...,
    progress: Optional[Progress] = ...,
) -> Simulation: ...
@overload
def simulate(
    channel: Union[Contributions, str],
    *,
    owners: Whole,
    counts: Union[Sequence[Whole], npt.NDArray[Any]],
    trials: Whole = ...,
    seed: Optional[Whole] = ...,
    confidence: Exact = ...,
    interval: Interval = ...,
    per_owner: bool = ...,
    progress: Optional[Progress] = ...,
) -> OptionSimulation: ...
def simulate(
    channel: MechanismLike,
    *,
    owners: Whole,
    yes: Optional[Whole] = None,
    counts: Any = None,
    trials: Whole = 1000,
    seed: Optional[Whole] = None,
    confidence: Exact = 0.95,
    interval: Interval = "auto",
    per_owner: bool = False,
    keep_estimates: bool = False,
    progress: Optional[Progress] = None,
) -> Simulation:
    """Simulates complete runs, from truths to estimates.

    - ``channel``: a channel, a mechanism with options, or the text of either.
    - ``owners``: how many answer.
    - ``yes``: for how many of them the truth is yes.
    - ``counts``: with options, how many of them truly have each. Those of a choice sum to the owners.
    - ``trials``: how many runs.
    - ``seed``: makes the runs reproducible; by default a new one, which the result has.
    - ``confidence``: how sure each interval is to contain the truth.
    - ``interval``: its kind; see ``Channel.estimate``.
    - ``per_owner``: draw every owner by the real sampler. Otherwise the cost does not depend on the number of owners, unless they make
      several contributions.
    - ``keep_estimates``: keep the estimate of each run, as ``estimates`` of the result; not with options.
    - ``progress``: is called with the runs that are done, and how many there are.
    """
    law, crowd = mechanism_of(channel), _arguments.whole("owners", owners)
    asked: dict[str, Any] = {
        "owners": crowd,
        "trials": _arguments.whole("trials", trials),
        "seed": _arguments.optional_whole("seed", seed),
        "confidence": _arguments.exact("confidence", confidence),
        "interval": _arguments.word("interval", interval),
        "per_owner": bool(per_owner),
        "progress": _arguments.listener(progress),
    }
    if isinstance(law, Contributions):
        if keep_estimates:
            raise UptackError("keep_estimates: it is for yes/no questions", "request", "leave it out")
        truths = _true_counts(law, crowd, yes, counts)
        return OptionSimulation(json.loads(_core.simulate_contributions(law._handle, counts=truths, **asked)))
    if counts is not None:
        raise UptackError("counts: this mechanism is about a yes/no question", "request", "give yes")
    document, estimates = _core.simulate(
        law._handle, yes=_arguments.whole("yes", yes), keep_estimates=bool(keep_estimates), **asked
    )
    return Simulation(json.loads(document), tuple(estimates) if keep_estimates else None)


def _true_counts(law: Contributions, owners: int, yes: Any, counts: Any) -> list[int]:
    """How many owners have each option. Of a yes/no question, those who would say yes are enough."""
    if counts is not None:
        if yes is not None:
            raise UptackError("give yes or counts, and not both")
        return _arguments.counts(counts, len(law.options), cells="options")
    if yes is None or law.yes_no is None:
        words = f"counts: how many owners have each of the {len(law.options)} options?"
        raise UptackError(words, "request", "counts=[…], one number for each option")
    said = _arguments.whole("yes", yes)
    if said > owners:
        raise UptackError(f"yes: {said} is more than the {owners} owners")
    return [said, owners - said][: len(law.options)]


def audit(
    randomizer: Union[MechanismLike, Callable[[Any], Any]],
    *,
    claimed_epsilon: Optional[Real] = None,
    claimed_delta: Real = 0.0,
    samples: Optional[Whole] = None,
    confidence: Exact = 0.999,
    vectorized: Union[bool, Whole] = False,
    owners: Whole = 20,
    delta: Real = 1e-8,
    seed: Optional[Whole] = None,
    progress: Optional[Progress] = None,
) -> Audit:
    """Tries to prove the claim about a randomizer wrong.

    - ``randomizer``: any callable. It gets a truth (a bool) and returns whatever an owner would send; the audit looks at the whole
      output, its length and, for numbers, its size. Or a mechanism: then our own sampler is audited against all its claims.
    - ``claimed_epsilon``, ``claimed_delta``: what is claimed of a callable.
    - ``samples``: how many outputs to look at; by default a million, of a channel ten.
    - ``confidence``: how sure all bounds together are to hold.
    - ``vectorized``: the callable gets an array of truths, of this length if it is a number, and returns one output for each.
    - ``owners``, ``delta``: of a channel, the size of the crowds whose release is audited, and the δ of its claim. The claims of a
      mechanism with options have none.
    - ``seed``: of a channel, makes the coins reproducible.
    - ``progress``: is called with the outputs that were seen, and how many there will be.
    """
    level = _arguments.exact("confidence", confidence)
    heard = _arguments.listener(progress)
    if isinstance(randomizer, (str, Channel, Contributions)):
        if claimed_epsilon is not None:
            raise UptackError("claimed_epsilon: what a channel claims follows from it", "request", "leave it out")
        asked: dict[str, Any] = {
            "samples": _arguments.whole("samples", 10_000_000 if samples is None else samples),
            "owners": _arguments.whole("owners", owners),
            "confidence": level,
            "seed": _arguments.optional_whole("seed", seed),
            "progress": heard,
        }
        return _audit_sampler(mechanism_of(randomizer), _arguments.real("delta", delta), asked)
    if not callable(randomizer):
        raise TypeError(f"randomizer: expected a callable or a channel, got {type(randomizer).__name__}")
    if claimed_epsilon is None:
        raise UptackError("claimed_epsilon: what is claimed of the randomizer?")
    batch = None
    if vectorized is not False:
        batch = 1 << 16 if vectorized is True else _arguments.whole("vectorized", vectorized, 1)
    document = _core.audit_callable(
        randomizer,
        str(getattr(randomizer, "__qualname__", type(randomizer).__name__)),
        claimed=(_arguments.real("claimed_epsilon", claimed_epsilon), _arguments.real("claimed_delta", claimed_delta)),
        samples=_arguments.whole("samples", 1_000_000 if samples is None else samples),
        confidence=level,
        batch=batch,
        progress=heard,
    )
    return Audit(json.loads(document))


def _audit_sampler(law: Union[Channel, Contributions], delta: float, asked: dict[str, Any]) -> Audit:
    channel = law if isinstance(law, Channel) else law.yes_no
    if channel is not None:
        document = _core.audit_channel(channel._handle, delta=delta, **asked)
    else:
        document = _core.audit_contributions(with_options(law), **asked)
    return Audit({**json.loads(document), "mechanism": law.mechanism})
