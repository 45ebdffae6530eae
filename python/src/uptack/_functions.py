"""The package's functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

from . import _arguments, _core
from ._channel import Channel, ChannelLike, Estimate, channel_of
from ._errors import UptackError
from ._results import Algebra, Audit, Composition, Evaluation, Plan, Privacy, Simulation, Verification

if TYPE_CHECKING:
    from typing import Callable

    import numpy as np
    import numpy.typing as npt

    from ._arguments import Exact
    from ._results import Progress

#: Larger than any card or record, in bytes.
_LARGEST_FILE = 16 << 20


def plan(
    *,
    yes: Union[int, Sequence[int], range],
    owners: Optional[int] = None,
    epsilon: Optional[float] = None,
    delta: float = 1e-8,
    error: Optional[float] = None,
    answer_epsilon: Optional[float] = None,
    linked_epsilon: Union[float, str, None] = None,
    noise: Optional[str] = None,
    trust: Optional[str] = None,
    participation: Optional[Exact] = None,
    honest: Exact = 1,
    minimum_batch: Optional[int] = None,
    solve: Optional[str] = None,
    form: Optional[str] = None,
    objective: str = "sd",
    over: str = "worst",
    family: Optional[str] = None,
    progress: Optional[Progress] = None,
) -> Plan:
    """Plans the best mechanism. Leave out one of error, epsilon and owners to solve for it.

    ``yes`` is the expected number of yes-owners, or its smallest and largest value. ``noise`` is ``"aggregators"``,
    ``"none"`` or ``"any"``; ``trust`` is ``"one-aggregator"`` or ``"owners"``; ``linked_epsilon`` is a number or
    ``"none"``; ``solve`` is ``"error"``, ``"epsilon"`` or ``"owners"``; ``form`` is ``"one"``, ``"several"`` or
    ``"any"``; ``objective`` is ``"sd"`` or ``"paper"``; ``over`` is ``"worst"`` or ``"mean"``.
    """
    linked = linked_epsilon
    if linked is not None and not isinstance(linked, str):
        linked = repr(_arguments.real("linked_epsilon", linked))
    asked: dict[str, Any] = {
        "yes": _arguments.pair("yes", yes),
        "owners": _arguments.optional_whole("owners", owners),
        "epsilon": _arguments.optional_real("epsilon", epsilon),
        "delta": _arguments.real("delta", delta),
        "error": _arguments.optional_real("error", error),
        "answer_epsilon": _arguments.optional_real("answer_epsilon", answer_epsilon),
        "linked_epsilon": linked,
        "noise": _arguments.optional_word("noise", noise),
        "trust": _arguments.optional_word("trust", trust),
        "participation": None if participation is None else _arguments.exact("participation", participation),
        "honest": _arguments.exact("honest", honest),
        "minimum_batch": _arguments.optional_whole("minimum_batch", minimum_batch),
        "solve": _arguments.optional_word("solve", solve),
        "form": _arguments.optional_word("form", form),
        "objective": _arguments.word("objective", objective),
        "over": _arguments.word("over", over),
        "family": _arguments.optional_word("family", family),
    }
    planned = _core.plan(**asked, progress=_arguments.listener(progress))
    return Plan(json.loads(planned.document()), asked, planned)


def privacy(
    channel: ChannelLike,
    *,
    owners: int,
    delta: Optional[float] = None,
    epsilon: Optional[float] = None,
    repeat: Optional[int] = None,
    honest: Exact = 1,
    work: int = 1,
    progress: Optional[Progress] = None,
) -> Privacy:
    """The guarantee of every view, certified over every crowd: ε at ``delta`` (default 1e-8), or δ at ``epsilon``."""
    if delta is None and epsilon is None:
        delta = 1e-8
    document = _core.privacy(
        channel_of(channel)._handle,
        _arguments.whole("owners", owners),
        delta=_arguments.optional_real("delta", delta),
        epsilon=_arguments.optional_real("epsilon", epsilon),
        repeat=_arguments.optional_whole("repeat", repeat),
        honest=_arguments.exact("honest", honest),
        work=_arguments.whole("work", work, 1),
        progress=_arguments.listener(progress),
    )
    return Privacy(json.loads(document))


def compose(
    channels: Iterable[Union[ChannelLike, tuple[ChannelLike, int]]],
    *,
    owners: int,
    work: int = 1,
) -> Composition:
    """Composes a list of releases that is fixed in advance, each with fresh coins.

    The list contains channels, or pairs of a channel and the number of its releases.
    """
    times: dict[str, int] = {}
    if isinstance(channels, (str, Channel)):
        channels = [channels]
    try:
        listed = list(channels)
    except TypeError:
        raise TypeError(f"channels: expected a list of channels, got {type(channels).__name__}") from None
    # Lists often contain the same channel many times.
    known: dict[int, str] = {}
    for entry in listed:
        channel, count = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, 1)
        text = known.get(id(channel))
        if text is None:
            text = known[id(channel)] = channel_of(channel).mechanism
        times[text] = times.get(text, 0) + _arguments.whole("times", count, 1)
    return Composition(tuple(times.items()), _arguments.whole("owners", owners), _arguments.whole("work", work, 1))


def simulate(
    channel: ChannelLike,
    *,
    owners: int,
    yes: int,
    trials: int = 1000,
    seed: Optional[int] = None,
    confidence: Exact = 0.95,
    interval: str = "auto",
    per_owner: bool = False,
    progress: Optional[Progress] = None,
) -> Simulation:
    """Simulates complete runs, from truths to estimates. Unless ``per_owner``, the cost does not depend on the owners."""
    document = _core.simulate(
        channel_of(channel)._handle,
        owners=_arguments.whole("owners", owners),
        yes=_arguments.whole("yes", yes),
        trials=_arguments.whole("trials", trials),
        seed=_arguments.optional_whole("seed", seed),
        confidence=_arguments.exact("confidence", confidence),
        interval=_arguments.word("interval", interval),
        per_owner=bool(per_owner),
        progress=_arguments.listener(progress),
    )
    return Simulation(json.loads(document))


def algebra(text: str, *, owners: Optional[int] = None, yes: Optional[int] = None) -> Algebra:
    """Compiles the paper's notation to a channel, and solves for YES."""
    owners, yes = _arguments.optional_whole("owners", owners), _arguments.optional_whole("yes", yes)
    _, document = _core.algebra(_arguments.word("text", text), owners=owners, yes=yes)
    return Algebra(json.loads(document))


def verify(
    document: Any,
    *,
    desk_key: Optional[str] = None,
    allow_wider: bool = False,
    work: int = 1,
    progress: Optional[Progress] = None,
) -> Verification:
    """Recomputes everything that a card or a release record states.

    ``document`` is the path of a card (.toml or JSON), a signed card or a record, or such a document as a dict. The
    result lists the checks that fail; only a document that cannot be read raises.
    """
    toml = False
    if isinstance(document, Mapping):
        text = json.dumps(document)
    else:
        from os import fspath

        try:
            path = fspath(document)
        except TypeError:
            raise TypeError(f"document: expected a path or a dict, got {type(document).__name__}") from None
        with open(path, "rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            raise UptackError(f"{path!r}: larger than 16 MiB", "input")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise UptackError(f"{path!r}: not UTF-8 text", "input") from None
        toml = str(path).lower().endswith(".toml")
    found = _core.verify(
        text,
        toml=toml,
        desk_key=_arguments.optional_word("desk_key", desk_key),
        allow_wider=bool(allow_wider),
        work=_arguments.whole("work", work, 1),
        progress=_arguments.listener(progress),
    )
    return Verification(json.loads(found))


def audit(
    randomizer: Union[ChannelLike, Callable[[Any], Any]],
    *,
    claimed_epsilon: Optional[float] = None,
    claimed_delta: float = 0.0,
    samples: Optional[int] = None,
    confidence: Exact = 0.999,
    vectorized: Union[bool, int] = False,
    owners: int = 20,
    delta: float = 1e-8,
    seed: Optional[int] = None,
    progress: Optional[Progress] = None,
) -> Audit:
    """Tries to prove the claim about a randomizer wrong.

    ``randomizer`` is any callable: it gets a truth (a bool) and returns whatever an owner would send. The audit looks at
    the whole output, its length and, for numbers, its size. With ``vectorized`` the callable gets an array of truths (of
    that length, if ``vectorized`` is a number) and returns one output for each. For a channel, our own sampler is audited
    against all claims of the channel, in crowds of ``owners`` with the ``delta`` of their release.
    """
    level = _arguments.exact("confidence", confidence)
    heard = _arguments.listener(progress)
    if isinstance(randomizer, (str, Channel)):
        if claimed_epsilon is not None:
            raise UptackError("claimed_epsilon: what a channel claims follows from it", "request", "leave it out")
        document = _core.audit_channel(
            channel_of(randomizer)._handle,
            samples=_arguments.whole("samples", 10_000_000 if samples is None else samples),
            owners=_arguments.whole("owners", owners),
            delta=_arguments.real("delta", delta),
            confidence=level,
            seed=_arguments.optional_whole("seed", seed),
            progress=heard,
        )
        return Audit(json.loads(document))
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


def evaluate(
    *,
    data: Any = None,
    at: Optional[str] = None,
    trials: int = 200,
    factors: Sequence[int] = (1, 10, 100, 1000),
    seed: int = 1,
    progress: Optional[Progress] = None,
) -> Evaluation:
    """Runs the paper's evaluation on a snapshot of traffic, or on generated traffic with a similar distribution."""
    from os import fspath

    minutes = None
    if at is not None:
        hour, _, minute = _arguments.word("at", at).partition(":")
        if not (hour.isdecimal() and minute.isdecimal() and int(hour) < 24 and int(minute) < 60):
            raise UptackError(f"at: {at!r} is not a time such as 00:55")
        minutes = 60 * int(hour) + int(minute)
    document = _core.evaluate(
        data=None if data is None else str(fspath(data)),
        at=minutes,
        trials=_arguments.whole("trials", trials),
        factors=[_arguments.whole(f"factors[{index}]", factor, 1) for index, factor in enumerate(factors)],
        seed=_arguments.whole("seed", seed),
        progress=_arguments.listener(progress),
    )
    return Evaluation(json.loads(document))


def simultaneous(confidence: Exact, queries: int, *, sharing: str = "bonferroni") -> float:
    """The confidence that each of ``queries`` intervals needs for all of them to hold at once."""
    level, count = _arguments.exact("confidence", confidence), _arguments.whole("queries", queries, 1)
    return 1.0 - _core.each_confidence(level, count, _arguments.word("sharing", sharing))


def estimate_many(
    channel: ChannelLike,
    counts: Any,
    *,
    confidence: Exact = 0.95,
    interval: str = "auto",
    sharing: str = "bonferroni",
) -> list[Estimate]:
    """Estimates for many queries, one row of counts each, with intervals that all hold at once."""
    channel = channel_of(channel)
    rows = list(counts)
    each = simultaneous(confidence, max(len(rows), 1), sharing=sharing)
    return [channel.estimate(row, confidence=each, interval=interval) for row in rows]


def consistent(
    values: Any, sds: Any, *, owners: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Adjusts estimates for questions of which each owner says yes to exactly one: nonnegative, with sum ``owners``."""
    import numpy

    first = [_arguments.real(f"values[{index}]", value) for index, value in enumerate(values)]
    second = [_arguments.real(f"sds[{index}]", value) for index, value in enumerate(sds)]
    if len(first) != len(second):
        raise UptackError(f"{len(first)} values and {len(second)} standard deviations")
    adjusted = _core.consistent(list(zip(first, second)), _arguments.whole("owners", owners))
    return numpy.array([value for value, _ in adjusted]), numpy.array([sd for _, sd in adjusted])
