"""Mechanisms with options: one of several, or several contributions among many counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from . import _arguments, _core, _truths
from ._channel import Channel, whole_sum
from ._errors import UptackError
from ._option_results import OptionEstimates
from ._result import AboutMechanism, nearest, table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._arguments import Exact, Interval, Real, Whole

#: A mechanism, or the text of one.
MechanismLike = Union[Channel, "Contributions", str]


class Contributions:
    """A mechanism with options: each owner has one of several, or adds to some of many counts.

    Everything that is published together has one ε.

    >>> import numpy as np, uptack as up
    >>> trips = up.Contributions("choice(k=3, r=0.001) + laplace(scale=2)", options=["car", "bus", "bike"])
    >>> reports = trips.privatize(["bus", "car", "bus", "bike"] * 250)
    >>> published = trips.publish(trips.tally(reports))
    >>> estimates = published.estimate()
    >>> low, high = estimates["bus"].interval
    >>> low < estimates["bus"].estimate < high
    True
    """

    __slots__ = ("_handle",)
    _handle: _core.Contributions

    def __init__(
        self,
        mechanism: str,
        *,
        options: Optional[Sequence[str]] = None,
        bins: Union[Sequence[Real], npt.NDArray[Any], None] = None,
    ) -> None:
        """From its text.

        - ``mechanism``: such as ``choice(k=4, r=0.001)`` for one of four options, or
          ``contributions(counts=288, most=2, r=1e-4)`` for at most two of 288 counts; either may end in ``+ laplace(scale=2)``.
        - ``options``: the names of the options, or of the counts. Without them, they are numbered from 1.
        - ``bins``: the rising edges of ranges of a number, if these are the options. Below the first edge, from the last edge on, and
          *no value* are options of their own, so there are two more options than edges.
        """
        if options is not None and bins is not None:
            raise UptackError("give options or bins, and not both", "request", "bins have names of their own")
        named = None if options is None else _names(options)
        edges = None if bins is None else [_arguments.real(f"bins[{index}]", edge) for index, edge in enumerate(bins)]
        self._hold(_core.Contributions.parse(_arguments.word("mechanism", mechanism), named, edges))

    def _hold(self, core: _core.Contributions) -> None:
        object.__setattr__(self, "_handle", core)

    @classmethod
    def _of(cls, core: _core.Contributions) -> Contributions:
        made = cls.__new__(cls)
        made._hold(core)
        return made

    @classmethod
    def from_json(cls, text: str) -> Contributions:
        """From a document of JSON.

        - ``text``: the document that ``uptack channel --json`` prints.
        """
        return cls._of(_core.Contributions.from_json(_arguments.word("text", text)))

    @property
    def mechanism(self) -> str:
        """The mechanism as text, which every command accepts."""
        return self._handle.mechanism

    @property
    def options(self) -> tuple[str, ...]:
        """The names of the options, or of the counts; ``"1"``, ``"2"``, … if they have none."""
        return tuple(self._handle.names)

    @property
    def bins(self) -> Optional[tuple[float, ...]]:
        """The edges of the ranges that the options are; None if they are not."""
        edges = self._handle.bins
        return None if edges is None else tuple(edges)

    @property
    def is_choice(self) -> bool:
        """Whether every owner has exactly one of the options."""
        return self._handle.is_choice

    @property
    def counts(self) -> int:
        """How many counts are published. Of two options the first is counted, and the second is everybody else."""
        return self._handle.counts

    @property
    def most(self) -> int:
        """How many contributions an owner makes at most."""
        return self._handle.most

    @property
    def told(self) -> float:
        """The probability that a contribution goes where it truly belongs."""
        return float(self.to_dict()["told"])

    @property
    def other(self) -> float:
        """The probability of each other possibility."""
        return float(self.to_dict()["other"])

    @property
    def silent(self) -> float:
        """The probability that a report names no option, whatever the truth is."""
        return float(self.to_dict()["silent"])

    @property
    def p(self) -> float:
        """The probability that an owner who belongs to a count adds to it."""
        return float(self.to_dict()["p"])

    @property
    def q(self) -> float:
        """The probability that an owner who does not belong to a count adds to it."""
        return float(self.to_dict()["q"])

    @property
    def noise(self) -> Optional[str]:
        """The noise that each of two aggregators adds to each count; None if the counts are published without noise."""
        return self._handle.noise

    @property
    def yes_no(self) -> Optional[Channel]:
        """The channel of the yes/no question that this is; None if several counts are published."""
        core = self._handle.yes_no()
        return None if core is None else Channel._of(core)

    @property
    def linked_epsilon(self) -> Optional[float]:
        """ε of everything that one owner sends; None if there is no guarantee."""
        return self._handle.linked_epsilon()

    def with_options(
        self,
        options: Optional[Sequence[str]] = None,
        *,
        bins: Union[Sequence[Real], npt.NDArray[Any], None] = None,
    ) -> Contributions:
        """The same mechanism about other options.

        - ``options``: their names; without them, and without bins, they are numbered.
        - ``bins``: the edges of the ranges that they are.
        """
        return type(self)(self.mechanism, options=options, bins=bins)

    def sd(self, owners: Whole, holders: Real) -> float:
        """The predicted standard deviation of the estimate of one option.

        - ``owners``: how many answer.
        - ``holders``: how many of them have the option.
        """
        return self._handle.sd(_arguments.whole("owners", owners), _arguments.real("holders", holders))

    def privatize(self, truths: Any, *, seed: Optional[Whole] = None) -> npt.NDArray[np.int32]:
        """Draws one report per owner, with randomness from the operating system.

        The result has the index of one option per owner, or -1 if a report names none. If owners make several contributions, it
        has one row per owner: the distinct options that the report names, in ascending order, and -1 in the remaining columns.

        - ``truths``: for each owner the index of an option, from 0, or its name. If the options are bins, a number, or NaN for no
          value. If an owner may belong to none of the counts, -1 or ``"none"`` says so; if to several, give one list per owner, or
          an array with one row per owner and -1 where there is nothing.
        - ``seed``: makes the draw reproducible. Use it only in tests and simulations, because anybody who knows it can compute
          the truths.
        """
        if self.bins is not None:
            indices = _truths.binned(self._handle, truths)
        else:
            indices = _truths.indices(self._handle, truths)
        drawn = self._handle.privatize(indices.reshape(-1), indices.shape[1], _arguments.optional_whole("seed", seed))
        return drawn if self.most == 1 else drawn.reshape(-1, self.most)

    def tally(self, reports: Any) -> dict[str, Any]:
        """Counts reports: how many owners there are, and how many reports name each option.

        - ``reports``: what ``privatize`` returned.
        """
        owners, counts = _truths.counted(self._handle, reports)
        return self._with_names({"owners": owners, "counts": counts})

    def _with_names(self, document: dict[str, Any]) -> dict[str, Any]:
        names = self._handle.given_names
        return document if names is None else {**document, "options": names}

    def publish(self, counts: Any, *, owners: Optional[Whole] = None, seed: Optional[Whole] = None) -> PublishedCounts:
        """Publishes the counts of a crowd, as two aggregators do: once. Keep it, and estimate from it as often as you like.

        If the mechanism has noise, both aggregators draw theirs for each count here, from the operating system. Two published results
        of the same counts reveal more than one does.

        - ``counts``: what ``tally`` returned, or the number of reports that name each option.
        - ``owners``: how many owners there are; it is needed if ``counts`` does not say so, and reports can name no option or several.
        - ``seed``: makes the noise reproducible. Use it only in tests and simulations, because anybody who knows it can take the
          noise off.
        """
        crowd, numbers = self._counted(counts, owners)
        document: dict[str, Any] = {"mechanism": self.mechanism, "owners": crowd}
        if self.noise is None:
            document["counts"] = numbers
        else:
            document["sums"] = self._handle.publish(crowd, numbers, _arguments.optional_whole("seed", seed))
        return PublishedCounts(self._with_names(document))

    def _counted(self, counts: Any, owners: Any) -> tuple[int, list[int]]:
        """The owners, and a count of each option."""
        if isinstance(counts, Mapping):
            if "counts" not in counts:
                raise UptackError("counts: expected owners and counts", "counts", 'such as {"owners": 10, "counts": [2, 8]}')
            self._check_options(counts.get("options"))
            owners = counts.get("owners") if owners is None else owners
            counts = counts["counts"]
        numbers = _arguments.counts(counts, len(self.options), cells="options")
        if owners is None:
            if not self.is_choice or self._handle.has_silence:
                raise UptackError("owners: how many are there?", "counts", "publish(counts, owners=…), or publish(tally(reports))")
            owners = sum(numbers)
        crowd = _arguments.whole("owners", owners, 1)
        if max(numbers) > crowd:
            raise UptackError(f"counts: {max(numbers)} of {crowd} owners", "counts", "an owner adds at most once to each count")
        return crowd, numbers

    def _check_options(self, stated: Any) -> None:
        names = self._handle.given_names
        if stated is not None and names is not None and list(stated) != names:
            raise UptackError("counts of other options", "counts", "were they made from another question?")

    def estimate(
        self,
        published: Any,
        *,
        owners: Optional[Whole] = None,
        options: Optional[Sequence[str]] = None,
        values: Optional[Sequence[Optional[Real]]] = None,
        bins: Union[Sequence[Real], npt.NDArray[Any], None] = None,
        quantiles: Union[Sequence[Real], npt.NDArray[Any]] = (),
        confidence: Exact = 0.95,
        interval: Interval = "auto",
    ) -> OptionEstimates:
        """Estimates how many owners have each option, each with an interval.

        - ``published``: what ``publish`` returned, or a dict with ``owners`` and ``sums``; without noise also counts, as ``publish``
          takes them.
        - ``owners``: how many owners there are, if ``published`` is an array that does not say so.
        - ``options``: the names of the options, if they have none yet.
        - ``values``: a number for each option, or None for an option without one; then the result has a ``mean`` over the owners who
          have a value.
        - ``bins``: the edges of the ranges that the options are; then the mean is computed from the middle of each range.
        - ``quantiles``: shares between 0 and 1, such as 0.5 for the median, in the order of the values or of the options.
        - ``confidence``: how sure each interval is to contain the truth, and all simultaneous ones together.
        - ``interval``: the kind of an option's own interval; see ``Channel.estimate``. Simultaneous ones are exact.

        Counts of a mechanism with noise are refused: publish them first, which draws the noise once.
        """
        if options is not None or bins is not None:
            asked = self.with_options(options, bins=bins)
        else:
            asked = self
        release = asked._published(published, owners)
        numbers = None if values is None else asked._values(values)
        text = asked._handle.estimate(
            json.dumps(release._document),
            numbers,
            [_arguments.real(f"quantiles[{index}]", share) for index, share in enumerate(quantiles)],
            _arguments.exact("confidence", confidence),
            _arguments.word("interval", interval),
        )
        return OptionEstimates(json.loads(text), release)

    def _values(self, values: Any) -> list[Optional[float]]:
        numbers = [_arguments.optional_real(f"values[{index}]", value) for index, value in enumerate(values)]
        if len(numbers) != len(self.options):
            words = f"values: {len(numbers)} for {len(self.options)} options"
            raise UptackError(words, "request", "give one for each option, in their order; None for one without a value")
        return numbers

    def _published(self, given: Any, owners: Any) -> PublishedCounts:
        """The published result that was handed in."""
        if isinstance(given, PublishedCounts):
            if given.mechanism != self.mechanism:
                raise UptackError(f"this result was published for another mechanism, {given.mechanism}", "counts")
            return given
        if isinstance(given, Mapping) and "sums" in given:
            return PublishedCounts.from_dict({"mechanism": self.mechanism, **given})
        if self.noise is not None:
            raise UptackError(
                "these counts are not published: this mechanism's aggregators add noise, which is drawn once",
                "counts",
                "published = contributions.publish(counts), keep it, and contributions.estimate(published)",
            )
        return self.publish(given, owners=owners)

    def to_dict(self) -> dict[str, Any]:
        """The document that ``uptack channel --json`` prints."""
        document: dict[str, Any] = json.loads(self._handle.document())
        return document

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Contributions is frozen: {name} cannot be set")

    def _key(self) -> tuple[Any, ...]:
        return self.mechanism, self._handle.given_names, self.bins

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Contributions) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.mechanism, self.options, self.bins))

    def __reduce__(self) -> tuple[Any, ...]:
        return _contributions, self._key()

    def __repr__(self) -> str:
        if self.bins is not None:
            return f"Contributions({self.mechanism!r}, bins={list(self.bins)})"
        names = self._handle.given_names
        if names is None:
            return f"Contributions({self.mechanism!r})"
        return f"Contributions({self.mechanism!r}, options={_shortened(names)})"

    def _repr_html_(self) -> str:
        from html import escape

        law = self.to_dict()
        rows = [
            ["options", _shortened(list(self.options))],
            ["counts that are published", str(self.counts)],
            ["contributions of an owner", f"at most {self.most}" if not self.is_choice else "exactly 1"],
            ["a contribution goes where it belongs", nearest(law["told"])],
            ["to each other possibility", nearest(law["other"])],
            ["an owner of a count adds to it (p)", nearest(law["p"])],
            ["anybody else does (q)", nearest(law["q"])],
            ["noise of each aggregator", str(self.noise or "none")],
        ]
        return f"<p><code>{escape(self.mechanism)}</code></p>" + table(["", "Contributions"], rows)


class PublishedCounts(AboutMechanism):
    """What is published about the options of a crowd, once: ``Contributions.publish`` makes it, and estimates are made from it.

    Noise is drawn when the counts are published and never again. So keep the result: ``to_json`` and ``from_json``.
    """

    __slots__ = ()

    @property
    def contributions(self) -> Contributions:
        """The mechanism by which the owners answered, with the names of the options."""
        return Contributions(self.mechanism, options=self._document.get("options"))

    @property
    def counts(self) -> Optional[tuple[int, ...]]:
        """How many reports name each option; None if the mechanism has noise."""
        return None if "counts" not in self._document else tuple(self._document["counts"])

    @property
    def sums(self) -> Optional[tuple[int, ...]]:
        """Each count that is published plus both aggregators' noise; None if the mechanism has none."""
        return None if "sums" not in self._document else tuple(self._document["sums"])

    def estimate(
        self,
        *,
        values: Optional[Sequence[Optional[Real]]] = None,
        bins: Union[Sequence[Real], npt.NDArray[Any], None] = None,
        quantiles: Union[Sequence[Real], npt.NDArray[Any]] = (),
        confidence: Exact = 0.95,
        interval: Interval = "auto",
    ) -> OptionEstimates:
        """Estimates how many owners have each option.

        - ``values``: a number for each option; see ``Contributions.estimate``.
        - ``bins``: the edges of the ranges that the options are.
        - ``quantiles``: shares between 0 and 1.
        - ``confidence``: how sure each interval is to contain the truth, and all simultaneous ones together.
        - ``interval``: the kind of an option's own interval; see ``Channel.estimate``.
        """
        return self.contributions.estimate(
            self, values=values, bins=bins, quantiles=quantiles, confidence=confidence, interval=interval
        )

    def to_json(self) -> str:
        """The result as text, with its mechanism."""
        return json.dumps(self._document)

    @classmethod
    def from_json(cls, text: str) -> PublishedCounts:
        """The result that ``to_json`` wrote.

        - ``text``: a document of JSON.
        """
        try:
            document = json.loads(_arguments.word("text", text))
        except ValueError as error:
            raise UptackError(f"not a published result: {error}", "input") from None
        return cls.from_dict(document)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PublishedCounts:
        """The result that ``to_dict`` returned.

        - ``document``: a dict with ``mechanism``, ``owners``, and ``sums`` or ``counts``, and possibly ``options``.
        """
        if not isinstance(document, Mapping) or not {"mechanism", "owners"} <= set(document):
            raise UptackError("not a published result", "input", "it has a mechanism, owners, and sums or counts")
        made = Contributions(_arguments.word("mechanism", document["mechanism"]), options=document.get("options"))
        kind = "counts" if made.noise is None else "sums"
        if ("counts" in document, "sums" in document) != (kind == "counts", kind == "sums"):
            raise UptackError("not a result of this mechanism: with noise there are sums, without noise counts", "input")
        if kind == "counts":
            return made.publish(document["counts"], owners=document["owners"])
        sums = document["sums"]
        if not hasattr(sums, "__len__") or isinstance(sums, (str, bytes)) or len(sums) != made.counts:
            raise UptackError(f"sums: expected a list of {made.counts} numbers", "input")
        checked = {
            "mechanism": made.mechanism,
            "owners": _arguments.whole("owners", document["owners"], 1),
            "sums": [whole_sum(each) for each in sums],
        }
        return cls(made._with_names(checked))

    def _shown(self) -> list[tuple[str, str]]:
        shown = [("mechanism", self.mechanism), ("owners", str(self.owners))]
        name = "sums" if self.counts is None else "counts"
        return [*shown, (name, _shortened(self._document[name]))]


def _contributions(mechanism: str, options: Optional[list[str]], bins: Optional[tuple[float, ...]]) -> Contributions:
    return Contributions(mechanism, options=None if bins is not None else options, bins=bins)


def _names(options: Any) -> list[str]:
    if isinstance(options, (str, bytes)) or not hasattr(options, "__iter__"):
        raise TypeError(f"options: expected a list of names, got {type(options).__name__}")
    return [_arguments.word(f"options[{index}]", name) for index, name in enumerate(options)]


def _shortened(values: Sequence[Any]) -> str:
    """A list of which only the beginning is shown if it is long."""
    listed = ", ".join(map(repr, values[:8]))
    return f"[{listed}, … {len(values)} in all]" if len(values) > 8 else f"[{listed}]"


def mechanism_of(value: Any) -> Union[Channel, Contributions]:
    """A mechanism, or the text of one."""
    if isinstance(value, (Channel, Contributions)):
        return value
    if not isinstance(value, str):
        words = "a Channel, Contributions or a text such as 'randomized-response(t=0.8)'"
        raise TypeError(f"channel: expected {words}, got {type(value).__name__}")
    core = _core.mechanism(value)
    return Channel._of(core) if isinstance(core, _core.Channel) else Contributions._of(core)


def with_options(law: Union[Channel, Contributions]) -> _core.Contributions:
    """The handle of a mechanism that is not a channel."""
    assert isinstance(law, Contributions)
    return law._handle
