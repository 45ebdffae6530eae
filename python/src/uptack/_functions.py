"""The package's functions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union, overload

from . import _arguments, _core
from ._channel import Channel, ChannelLike, Estimate, channel_of
from ._composition import Composition, LossDistribution
from ._contributions import Contributions, MechanismLike, mechanism_of, with_options
from ._errors import UptackError
from ._privacy import Privacy, PrivacyTable
from ._results import Algebra, Evaluation, Plan, Verification

if TYPE_CHECKING:
    from typing import Literal

    import numpy as np
    import numpy.typing as npt

    from ._arguments import (
        Exact,
        Form,
        Interval,
        Many,
        Noise,
        Objective,
        Over,
        Progress,
        Real,
        Sharing,
        Trust,
        Unknown,
        View,
        Whole,
    )

#: Larger than any card or record, in bytes.
_LARGEST_FILE = 16 << 20


def plan(
    *,
    yes: Union[Whole, Sequence[Whole], range],
    options: Union[Whole, Sequence[str], None] = None,
    counts: Optional[Whole] = None,
    most_yes: Optional[Whole] = None,
    owners: Optional[Whole] = None,
    epsilon: Optional[Real] = None,
    delta: Real = 1e-8,
    error: Optional[Real] = None,
    answer_epsilon: Optional[Real] = None,
    linked_epsilon: Union[Real, Literal["none"], None] = None,
    noise: Optional[Noise] = None,
    trust: Optional[Trust] = None,
    participation: Optional[Exact] = None,
    honest: Exact = 1,
    minimum_batch: Optional[Whole] = None,
    solve: Optional[Unknown] = None,
    form: Optional[Form] = None,
    objective: Objective = "sd",
    over: Over = "worst",
    family: Optional[str] = None,
    progress: Optional[Progress] = None,
) -> Plan:
    """Plans the best mechanism. Leave out one of ``error``, ``epsilon`` and ``owners`` to solve for it.

    - ``yes``: the expected number of yes-owners, or its smallest and largest value; with options, of owners who have one of them.
    - ``options``: each owner has one of these options: their names, or how many there are. Then the plan is about all of them
      together, and its ``contributions`` are the mechanism.
    - ``counts``: this many counts are published instead, such as the windows of a series.
    - ``most_yes``: to how many of the counts one owner adds at most, by default 1.
    - ``owners``: how many are expected to answer.
    - ``epsilon``: the largest ε of what is published; ``trust`` says who has to be honest for it.
    - ``delta``: the δ of that ε. It is not used if one honest aggregator is enough, because then δ is 0.
    - ``error``: the largest standard deviation of the estimate.
    - ``answer_epsilon``: the largest local ε of a single answer.
    - ``linked_epsilon``: the largest local ε of all answers of an owner together, which holds if nobody is honest; ``"none"`` for
      no limit.
    - ``noise``: whether two aggregators add noise to what they publish: ``"aggregators"``, ``"none"``, or ``"any"`` for the better of
      both.
    - ``trust``: who has to be honest for ``epsilon``: ``"one-aggregator"``, or the other ``"owners"``.
    - ``participation``: the largest share of the owners who may answer anything but ⊥.
    - ``honest``: the share of the owners whose coins are counted on.
    - ``minimum_batch``: the smallest number of answers that is published; the guarantee is computed for it.
    - ``solve``: what to solve for, ``"error"``, ``"epsilon"`` or ``"owners"``, if that does not follow from what is left out.
    - ``form``: mechanisms of ``"one"`` answer, of ``"several"``, or of ``"any"`` number.
    - ``objective``: what is made small, ``"sd"``, or ``"paper"`` for the paper's own measure.
    - ``over``: the error is the ``"worst"`` one within ``yes``, or the ``"mean"``.
    - ``family``: the name of the only family to search.
    - ``progress``: is called with the steps that are done, and how many there are.
    """
    linked: Optional[str] = linked_epsilon if isinstance(linked_epsilon, str) else None
    if linked_epsilon is not None and linked is None:
        linked = repr(_arguments.real("linked_epsilon", linked_epsilon))
    names = None if options is None or hasattr(options, "__index__") else _option_names(options)
    asked: dict[str, Any] = {
        "yes": _arguments.pair("yes", yes),
        "options": len(names) if names is not None else _arguments.optional_whole("options", options),
        "counts": _arguments.optional_whole("counts", counts),
        "most_yes": _arguments.optional_whole("most_yes", most_yes),
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
    return Plan(json.loads(planned.document()), asked, planned, names)


def _option_names(options: Any) -> tuple[str, ...]:
    if isinstance(options, (str, bytes)) or not hasattr(options, "__iter__"):
        raise TypeError(f"options: expected a list of names or a number, got {type(options).__name__}")
    names = tuple(_arguments.word(f"options[{index}]", name) for index, name in enumerate(options))
    # Names that no mechanism with options accepts are refused before a plan is made for them.
    if len(names) >= 2:
        Contributions(f"choice(k={len(names)}, r=0)", options=names)
    return names


@overload
def privacy(
    channel: MechanismLike,
    *,
    owners: Union[int, np.integer[Any]],
    delta: Optional[Real] = ...,
    epsilon: Optional[Real] = ...,
    repeat: Optional[Whole] = ...,
    honest: Exact = ...,
    views: Union[View, Sequence[View], None] = ...,
    work: Whole = ...,
    progress: Optional[Progress] = ...,
) -> Privacy: ...
@overload
def privacy(
    channel: MechanismLike,
    *,
    owners: Many,
    delta: Union[Real, Many, None] = ...,
    epsilon: Union[Real, Many, None] = ...,
    repeat: Optional[Whole] = ...,
    honest: Exact = ...,
    views: Union[View, Sequence[View], None] = ...,
    work: Whole = ...,
    progress: Optional[Progress] = ...,
) -> PrivacyTable: ...
@overload
def privacy(
    channel: MechanismLike,
    *,
    owners: Union[int, np.integer[Any]],
    delta: Many,
    epsilon: None = ...,
    repeat: Optional[Whole] = ...,
    honest: Exact = ...,
    views: Union[View, Sequence[View], None] = ...,
    work: Whole = ...,
    progress: Optional[Progress] = ...,
) -> PrivacyTable: ...
@overload
def privacy(
    channel: MechanismLike,
    *,
    owners: Union[int, np.integer[Any]],
    delta: None = ...,
    epsilon: Many,
    repeat: Optional[Whole] = ...,
    honest: Exact = ...,
    views: Union[View, Sequence[View], None] = ...,
    work: Whole = ...,
    progress: Optional[Progress] = ...,
) -> PrivacyTable: ...
def privacy(
    channel: MechanismLike,
    *,
    owners: Any,
    delta: Any = None,
    epsilon: Any = None,
    repeat: Optional[Whole] = None,
    honest: Exact = 1,
    views: Union[View, Sequence[View], None] = None,
    work: Whole = 1,
    progress: Optional[Progress] = None,
) -> Union[Privacy, PrivacyTable]:
    """The guarantee of every view, certified over every crowd: ε at a δ, or δ at an ε.

    Any of ``owners``, ``delta`` and ``epsilon`` may be an array. Then the result is a ``PrivacyTable`` with one row for each element;
    arrays have the same length, and single numbers count for all rows.

    - ``channel``: a channel, a mechanism with options, or the text of either.
    - ``owners``: how many owners there are; their number is public.
    - ``delta``: the δ at which ε is wanted, 1e-8 by default.
    - ``epsilon``: the ε at which δ is wanted instead.
    - ``repeat``: also the guarantee of that many releases together.
    - ``honest``: the share of the owners whose coins are counted on.
    - ``views``: one or more of ``"release"``, ``"linked"``, ``"answers"``, ``"one_aggregator"``, ``"owners_alone"`` and
      ``"answers_with_release"``; only these are computed. By default all. A mechanism with options has no answers.
    - ``work``: how many times the usual limit on the work the certificates may take.
    - ``progress``: is called with the steps that are done, and how many there are at most; for arrays, with the rows.
    """
    law, listener = mechanism_of(channel), _arguments.listener(progress)
    options = (
        _arguments.optional_whole("repeat", repeat),
        _arguments.exact("honest", honest),
        None if views is None else _arguments.words("views", views),
        _arguments.whole("work", work, 1),
    )
    given = {"owners": owners, "delta": delta, "epsilon": epsilon}
    lengths = {name: len(value) for name, value in given.items() if _arguments.is_many(value)}
    if not lengths:
        return _one_privacy(law, owners, delta, epsilon, options, listener)
    if len(set(lengths.values())) > 1:
        stated = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise UptackError(f"arrays of different lengths: {stated}")
    count, rows = max(lengths.values()), []
    columns = {name: list(value) if name in lengths else [value] * count for name, value in given.items()}
    for index, row in enumerate(zip(columns["owners"], columns["delta"], columns["epsilon"])):
        rows.append(_one_privacy(law, *row, options, None))
        if listener is not None:
            listener(index + 1, count)
    return PrivacyTable(rows)


def _one_privacy(
    law: Union[Channel, Contributions], owners: Any, delta: Any, epsilon: Any, options: tuple[Any, ...], listener: Any
) -> Privacy:
    repeat, honest, views, work = options
    if delta is None and epsilon is None:
        delta = 1e-8
    asked: dict[str, Any] = {
        "delta": _arguments.optional_real("delta", delta),
        "epsilon": _arguments.optional_real("epsilon", epsilon),
        "repeat": repeat,
        "honest": honest,
        "work": work,
        "progress": listener,
    }
    crowd = _arguments.whole("owners", owners)
    channel = law if isinstance(law, Channel) else law.yes_no
    if channel is None:
        document = _core.contribution_privacy(with_options(law), crowd, views=views, **asked)
    elif views is None:
        document = _core.privacy(channel._handle, crowd, **asked)
    else:
        document = _core.some_views(channel._handle, crowd, views=views, **asked)
    given = ("delta", asked["delta"]) if asked["epsilon"] is None else ("epsilon", asked["epsilon"])
    return Privacy({**json.loads(document), "mechanism": law.mechanism}, given)


def loss_distribution(
    channel: MechanismLike,
    *,
    owners: Whole,
    repetitions: Whole = 1,
    smallest_delta: Real = 1e-10,
    honest: Exact = 1,
    work: Whole = 1,
    progress: Optional[Progress] = None,
) -> LossDistribution:
    """A measure on privacy losses that dominates one release, for accountants other than ``compose``.

    - ``channel``: a channel, a mechanism with options, or the text of either.
    - ``owners``: how many owners there are.
    - ``repetitions``: how many releases it is to be precise for when they are composed.
    - ``smallest_delta``: the smallest δ that it is to be precise for; smaller ones are bounded, too, but less sharply.
    - ``honest``: the share of the owners whose coins are counted on.
    - ``work``: how many times the usual limit on the work each certificate may take.
    - ``progress``: is called with the steps that are done, and 0, because nobody knows how many there are.
    """
    spacing, losses, masses, infinity = _core.release_loss(
        mechanism_of(channel).mechanism,
        _arguments.whole("owners", owners),
        repetitions=_arguments.whole("repetitions", repetitions, 1),
        smallest_delta=_arguments.real("smallest_delta", smallest_delta),
        honest=_arguments.exact("honest", honest),
        work=_arguments.whole("work", work, 1),
        progress=_arguments.listener(progress),
    )
    return LossDistribution(spacing, tuple(losses), tuple(masses), infinity)


def compose(
    channels: Iterable[Union[MechanismLike, tuple[MechanismLike, Whole]]],
    *,
    owners: Whole,
    work: Whole = 1,
    progress: Optional[Progress] = None,
) -> Composition:
    """Composes a list of releases that is fixed in advance, each with fresh coins.

    Nothing is computed yet: ``epsilon()`` and ``delta()`` of the result do that, and keep what they found.

    - ``channels``: channels or mechanisms with options, or pairs of one and the number of its releases.
    - ``owners``: the owners of every release.
    - ``work``: how many times the usual limit on the work each certificate may take.
    - ``progress``: is called with the steps that are done whenever the result computes something, and 0, because nobody knows how
      many there are.
    """
    times: dict[str, int] = {}
    if isinstance(channels, (str, Channel, Contributions)):
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
            text = known[id(channel)] = mechanism_of(channel).mechanism
        times[text] = times.get(text, 0) + _arguments.whole("times", count, 1)
    crowd, factor = _arguments.whole("owners", owners), _arguments.whole("work", work, 1)
    return Composition(tuple(times.items()), crowd, factor, _arguments.listener(progress))


def algebra(text: str, *, owners: Optional[Whole] = None, yes: Optional[Whole] = None) -> Algebra:
    """Compiles the paper's notation to a channel, and solves for YES.

    - ``text``: a program of the privacy algebra.
    - ``owners``, ``yes``: a crowd, for which the standard deviation of the solution is predicted.
    """
    crowd = {"owners": _arguments.optional_whole("owners", owners), "yes": _arguments.optional_whole("yes", yes)}
    _, document = _core.algebra(_arguments.word("text", text), **crowd)
    return Algebra(json.loads(document))


def verify(
    document: Any,
    *,
    desk_key: Optional[str] = None,
    allow_wider: bool = False,
    work: Whole = 1,
    progress: Optional[Progress] = None,
) -> Verification:
    """Recomputes everything that a card or a release record states.

    The result lists the checks that fail; only a document that cannot be read raises.

    - ``document``: the path of a card (.toml or JSON), a signed card or a record, or such a document as a dict.
    - ``desk_key``: the key that must have signed the card, such as ``"ed25519:…"``; by default the one that the card names.
    - ``allow_wider``: accept claims that are sound but promise less than is true.
    - ``work``: how many times the usual limit on the work each claim may take.
    - ``progress``: is called with the steps that are done, and how many there are at most.
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


def evaluate(
    *,
    data: Any = None,
    at: Optional[str] = None,
    trials: Whole = 200,
    factors: Sequence[Whole] = (1, 10, 100, 1000),
    seed: Whole = 1,
    progress: Optional[Progress] = None,
) -> Evaluation:
    """Runs the paper's evaluation.

    - ``data``: the path of a file with traffic of Caltrans; by default, traffic with a similar distribution is generated.
    - ``at``: the time of the snapshot, such as ``"00:55"``.
    - ``trials``: how many runs each error is measured with.
    - ``factors``: how many times as many owners as there are vehicles.
    - ``seed``: the source of randomness.
    - ``progress``: is called with the steps that are done, and how many there are.
    """
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


def simultaneous(confidence: Exact, queries: Whole, *, sharing: Sharing = "bonferroni") -> float:
    """The confidence that each of several intervals needs for all of them to hold at once.

    - ``confidence``: of all of them together.
    - ``queries``: how many there are.
    - ``sharing``: ``"bonferroni"``, or ``"sidak"`` if they are independent.
    """
    level, count = _arguments.exact("confidence", confidence), _arguments.whole("queries", queries, 1)
    return 1.0 - _core.each_confidence(level, count, _arguments.word("sharing", sharing))


def estimate_many(
    channel: ChannelLike,
    counts: Any,
    *,
    confidence: Exact = 0.95,
    interval: Interval = "auto",
    sharing: Sharing = "bonferroni",
) -> list[Estimate]:
    """Estimates for many queries, with intervals that all hold at once.

    - ``channel``: a channel, or its text.
    - ``counts``: for each query what ``Channel.estimate`` takes: a published result, or one row of counts. Or a DataFrame with one row
      per query, whose columns are the channel's cells, by name or by number.
    - ``confidence``: how sure all intervals together are to contain their truths.
    - ``interval``: their kind; see ``Channel.estimate``. Here ``"auto"`` means ``"exact"``: alone it may miss a tenth more often than it
      says.
    - ``sharing``: how the confidence is shared; see ``simultaneous``.
    """
    law = channel_of(channel)
    rows = _arguments.rows(counts, [cell.name for cell in law.cells])
    each = simultaneous(confidence, max(len(rows), 1), sharing=sharing)
    kind: Any = _core.simultaneous_kind(_arguments.word("interval", interval))
    return [law.estimate(row, confidence=each, interval=kind) for row in rows]


def consistent(
    values: Any, sds: Any, *, owners: Whole
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Adjusts estimates for questions of which each owner says yes to exactly one: nonnegative, with sum ``owners``.

    - ``values``: the estimates.
    - ``sds``: their standard deviations.
    - ``owners``: how many owners answered all of the questions.
    """
    import numpy

    first = [_arguments.real(f"values[{index}]", value) for index, value in enumerate(values)]
    second = [_arguments.real(f"sds[{index}]", value) for index, value in enumerate(sds)]
    if len(first) != len(second):
        raise UptackError(f"{len(first)} values and {len(second)} standard deviations")
    adjusted = _core.consistent(list(zip(first, second)), _arguments.whole("owners", owners))
    return numpy.array([value for value, _ in adjusted]), numpy.array([sd for _, sd in adjusted])
