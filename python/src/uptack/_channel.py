"""Channels, and estimates from their answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional, Union

from . import _arguments, _core
from ._errors import UptackError
from ._published import Published
from ._result import AboutMechanism, nearest, table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._arguments import Exact, Interval, Real, Whole


class Cell(NamedTuple):
    """A cell and its probability under each truth, as exact integers over 2**64."""

    name: str
    yes: int
    no: int


class Channel:
    """A mechanism as data: for each truth a law over cells, in integers over 2**64.

    >>> import uptack as up
    >>> channel = up.Channel("randomized-response(t=0.8)")
    >>> channel.size, channel.cells[0].yes
    (2, 14757395258967641293)
    """

    __slots__ = ("_handle",)
    _handle: _core.Channel

    #: Integers are over 2**BITS.
    BITS = 64

    def __init__(self, mechanism: str) -> None:
        """From its text.

        - ``mechanism``: such as ``normal-form(f=0.5, r=1e-4)``, ``randomized-response(epsilon=1)`` or
          ``randomized-response(t=0.999) + laplace(scale=1)``.
        """
        self._hold(_core.Channel.parse(_arguments.word("mechanism", mechanism)))

    def _hold(self, core: _core.Channel) -> None:
        object.__setattr__(self, "_handle", core)

    @classmethod
    def _of(cls, core: _core.Channel) -> Channel:
        channel = cls.__new__(cls)
        channel._hold(core)
        return channel

    @classmethod
    def of(cls, name: str, **parameters: Exact) -> Channel:
        """From a family's name and its parameters: ``Channel.of("normal-form", f=0.5, r=1e-4)``.

        - ``name``: the family.
        - ``parameters``: by their names. ``Channel.of("randomized-response", epsilon=1)`` has the largest t whose local ε is at most 1.
        """
        written = ", ".join(f"{key}={_arguments.exact(key, value)}" for key, value in parameters.items())
        return cls(f"{_arguments.word('name', name)}({written})")

    @classmethod
    def from_cells(cls, cells: Mapping[str, tuple[Exact, Exact]]) -> Channel:
        """From each cell's two probabilities, yes first. Each law must sum to exactly one: write thirds as ``"1/3"``.

        - ``cells``: the names of the cells, each with its pair of probabilities.

        >>> Channel.from_cells({"1": (0.3, 0.1), "0": (0.2, 0.4), "⊥": (0.5, 0.5)}).size
        3
        """
        if not hasattr(cells, "items"):
            raise TypeError(f"cells: expected a dict of pairs, got {type(cells).__name__}")
        written = []
        for name, laws in cells.items():
            _arguments.word("cells: a name", name)
            if isinstance(laws, (str, bytes)) or not hasattr(laws, "__len__") or len(laws) != 2:
                raise UptackError(f"cell {name}: expected a pair of probabilities, yes first")
            yes, no = (_arguments.exact(f"cell {name}", law) for law in laws)
            written.append((name, yes, no))
        return cls._of(_core.Channel.from_cells(written))

    @classmethod
    def from_integers(cls, cells: Mapping[str, tuple[int, int]]) -> Channel:
        """From exact integers.

        - ``cells``: for each name its two integers over 2**64, yes first, as ``Channel.cells`` has them.
        """
        one = 2**cls.BITS
        fraction = {}
        for name, laws in cells.items():
            if not isinstance(laws, (tuple, list)) or len(laws) != 2:
                raise UptackError(f"cell {name}: expected a pair of integers, yes first")
            for value in laws:
                if isinstance(value, bool) or not isinstance(value, int):
                    raise TypeError(f"cell {name}: expected integers, got {type(value).__name__}")
            fraction[name] = (f"{laws[0]}/{one}", f"{laws[1]}/{one}")
        return cls.from_cells(fraction)

    @classmethod
    def from_json(cls, text: str) -> Channel:
        """From a document of JSON.

        - ``text``: the document that ``uptack channel --json`` prints.
        """
        return cls._of(_core.Channel.from_json(_arguments.word("text", text)))

    @property
    def mechanism(self) -> str:
        """The mechanism as text, which every command accepts."""
        return self._handle.mechanism

    @property
    def size(self) -> int:
        """The number of cells; ``privatize`` draws numbers below it."""
        return len(self._handle.cells)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells with their integers."""
        return tuple(Cell(*cell) for cell in self._handle.cells)

    @property
    def answers(self) -> tuple[tuple[str, ...], ...]:
        """The outputs of each answer."""
        return tuple(tuple(outputs) for outputs in self._handle.answers)

    @property
    def noise(self) -> Optional[str]:
        """The noise that each of two aggregators adds to the published sum; None if tallies are published without noise."""
        return self._handle.noise

    @property
    def determined(self) -> bool:
        """Whether the tallies determine the count of every cell."""
        return self._handle.determined

    @property
    def linked_epsilon(self) -> Optional[float]:
        """ε of all answers of an owner together; None if there is no guarantee."""
        return self._handle.linked_epsilon()

    def answer_epsilon(self, answer: Whole = 0) -> Optional[float]:
        """ε of a single answer; None if there is no guarantee.

        - ``answer``: which one, from 0.
        """
        return self._handle.answer_epsilon(_arguments.whole("answer", answer))

    def with_noise(self, scale: Exact) -> Channel:
        """The same channel where each of two aggregators adds discrete Laplace noise to the number of answers 1.

        - ``scale``: of the noise; with one honest aggregator, ε is at most 1/``scale``.
        """
        return type(self)(f"{self.mechanism} + laplace(scale={_arguments.exact('scale', scale)})")

    def sd(self, owners: Whole, yes: Real) -> float:
        """The predicted standard deviation of the estimate.

        - ``owners``: how many answer.
        - ``yes``: for how many of them the truth is yes.
        """
        return self._handle.sd(_arguments.whole("owners", owners), _arguments.real("yes", yes))

    def algebra(self) -> str:
        """The channel in the notation of the privacy algebra."""
        return self._handle.algebra()

    def privatize(self, truths: npt.ArrayLike, *, seed: Optional[Whole] = None) -> npt.NDArray[np.uint8]:
        """Draws one cell per owner, as an array of uint8, with randomness from the operating system.

        - ``truths``: an array of bool or a pandas Series, without missing values.
        - ``seed``: makes the draw reproducible. Use it only in tests and simulations, because anybody who knows it can compute
          the truths.
        """
        return self._handle.privatize(_arguments.truths(truths), _arguments.optional_whole("seed", seed))

    def draw_counts(self, owners: Whole, yes: Whole, *, seed: Optional[Whole] = None) -> npt.NDArray[np.uint64]:
        """Draws the cell counts of a simulated crowd, at a cost that does not depend on the number of owners.

        - ``owners``: how many answer.
        - ``yes``: for how many of them the truth is yes.
        - ``seed``: makes the draw reproducible.
        """
        import numpy

        crowd = _arguments.whole("owners", owners), _arguments.whole("yes", yes)
        return numpy.array(self._handle.draw_counts(*crowd, _arguments.optional_whole("seed", seed)), dtype=numpy.uint64)

    def tally(self, counts: Any) -> dict[str, Any]:
        """The tally that follows from cell counts: for each answer, the number of times each output was given.

        - ``counts``: the number of owners in each cell.
        """
        document: dict[str, Any] = json.loads(self._handle.tally_of_cells(_arguments.counts(counts, self.size)))
        return document

    def publish(self, counts: Any, *, seed: Optional[Whole] = None) -> Published:
        """Publishes the result of a crowd, as two aggregators do: once. Keep it, and estimate from it as often as you like.

        If the mechanism has noise, both aggregators draw theirs here, from the operating system. Two published results of the same
        counts reveal more than one does.

        - ``counts``: the number of owners in each cell.
        - ``seed``: makes the noise reproducible. Use it only in tests and simulations, because anybody who knows it can take the
          noise off.

        >>> import uptack as up
        >>> channel = up.Channel("randomized-response(t=0.9) + laplace(scale=2)")
        >>> published = channel.publish([180, 820], seed=1)
        >>> up.Published.from_json(published.to_json()) == published
        True
        >>> channel.estimate(published) == published.estimate()
        True
        """
        cells, drawn = _arguments.counts(counts, self.size), _arguments.optional_whole("seed", seed)
        if self.noise is None:
            tally = self.tally(cells)
            return Published({"mechanism": self.mechanism, "owners": sum(cells), "answers": tally["answers"]})
        owners, total = self._handle.publish(cells, drawn)
        return Published({"mechanism": self.mechanism, "owners": owners, "sums": [total]})

    def estimate(
        self,
        counts: Any = None,
        *,
        owners: Optional[Whole] = None,
        sum: Optional[Whole] = None,
        confidence: Exact = 0.95,
        interval: Interval = "auto",
    ) -> Estimate:
        """Estimates the number of yes-owners, with an interval.

        - ``counts``: what ``publish`` returned; or, without noise, the number of owners in each cell, or a tally as a dict.
        - ``owners``, ``sum``: of a mechanism with noise, if somebody else has published the sum.
        - ``confidence``: how sure the interval is to contain the truth.
        - ``interval``: its kind, ``auto``, ``exact`` (never below its confidence), ``mid-p`` or ``score``.

        Cell counts of a mechanism with noise are refused: publish them first, which draws the noise once.
        """
        level, kind = _arguments.exact("confidence", confidence), _arguments.word("interval", interval)
        published = self._published(counts, owners, sum)
        if published is None and isinstance(counts, Mapping):
            text = self._handle.estimate_tally(json.dumps(plain_tally(counts)), level, kind)
        elif published is None:
            text = self._handle.estimate_cells(_arguments.counts(counts, self.size), level, kind)
        elif published.tally is not None:
            text = self._handle.estimate_tally(json.dumps(published.tally), level, kind)
        else:
            text = self._handle.estimate_sum(published.owners, published._document["sums"][0], level, kind)
        return Estimate(json.loads(text), published)

    def _published(self, counts: Any, owners: Any, total: Any) -> Optional[Published]:
        """The published result that was handed in; None if it is cell counts or a tally."""
        if total is not None:
            if counts is not None:
                raise UptackError("give either counts, or owners and sum")
            numbers = {"owners": _arguments.whole("owners", owners, 1), "sums": [whole_sum(total)]}
            return Published.from_dict({"mechanism": self.mechanism, **numbers})
        if isinstance(counts, Published):
            if counts.mechanism != self.mechanism:
                raise UptackError(f"this result was published for another mechanism, {counts.mechanism}", "counts")
            return counts
        if counts is None:
            raise TypeError("counts: expected an array, got None")
        if isinstance(counts, Mapping) and "sums" in counts:
            return Published.from_dict({"mechanism": self.mechanism, **counts})
        if self.noise is not None:
            raise UptackError(
                "these counts are not published: this mechanism's aggregators add noise, which is drawn once",
                "counts",
                "published = channel.publish(counts), keep it, and channel.estimate(published)",
            )
        return None

    def to_dict(self) -> dict[str, Any]:
        """The document that ``uptack channel --json`` prints."""
        document: dict[str, Any] = json.loads(self._handle.document())
        return document

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Channel is frozen: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Channel) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.mechanism, self.cells))

    def __reduce__(self) -> tuple[Any, ...]:
        return _channel_from_json, (self._handle.document(),)

    def __repr__(self) -> str:
        return f"Channel({self.mechanism!r})"

    def _repr_html_(self) -> str:
        from html import escape

        one = 2.0**self.BITS
        rows = []
        for name, yes, no in self.cells:
            ratio = "never" if yes == no == 0 else "yes only" if no == 0 else "no only" if yes == 0 else nearest(yes / no)
            rows.append([name, nearest(yes / one), nearest(no / one), ratio])
        return f"<p><code>{escape(self.mechanism)}</code></p>" + table(["cell", "yes", "no", "ratio"], rows)


#: A channel, or the text of one.
ChannelLike = Union[Channel, str]


def _channel_from_json(text: str) -> Channel:
    return Channel.from_json(text)


def whole_sum(value: Any) -> int:
    """A published sum, which may be negative."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"sum: expected a whole number, got {type(value).__name__}")
    total = int(value.__index__())
    if abs(total) > 2**62:
        raise UptackError(f"sum: {total} is too large", "counts")
    return total


def plain_tally(tally: Mapping[str, Any]) -> dict[str, Any]:
    """A tally whose counts are plain Python integers."""
    answers = tally.get("answers")
    if not isinstance(answers, (list, tuple)) or not all(isinstance(answer, Mapping) for answer in answers):
        raise UptackError("a tally has answers, a list of dicts", "counts", 'such as {"answers": [{"1": 260, "0": 240}]}')
    plain = [
        {str(output): _arguments.whole(f"answers[{index}][{output!r}]", count) for output, count in answer.items()}
        for index, answer in enumerate(answers)
    ]
    document: dict[str, Any] = {"answers": plain}
    if tally.get("owners") is not None:
        document["owners"] = _arguments.whole("owners", tally["owners"])
    return document


def channel_of(value: Any) -> Channel:
    """A channel, or the text of one."""
    if isinstance(value, Channel):
        return value
    if isinstance(value, str):
        return Channel(value)
    raise TypeError(f"channel: expected a Channel or a text such as 'randomized-response(t=0.8)', got {type(value).__name__}")


class Estimate(AboutMechanism):
    """An estimate of the number of owners whose truth is yes."""

    __slots__ = ("published",)
    #: The published result that it was made from; None if that was cell counts or a tally.
    published: Optional[Published]

    def __init__(self, document: dict[str, Any], published: Optional[Published] = None) -> None:
        super().__init__(document)
        object.__setattr__(self, "published", published)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._document, self.published)

    @property
    def value(self) -> float:
        """The estimate, unbiased and therefore not clipped."""
        return float(self._document["estimate"])

    @property
    def sd(self) -> float:
        """Its standard deviation."""
        return float(self._document["sd"])

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return float(self._document["interval"][0])

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return float(self._document["interval"][1])

    @property
    def interval_kind(self) -> str:
        """The kind of interval."""
        return str(self._document["interval_kind"])

    @property
    def confidence(self) -> float:
        """The confidence of the interval."""
        return float(self._document["confidence"])

    @property
    def parts(self) -> dict[str, float]:
        """The parts of the standard deviation due to sampling, the owners' coins and the aggregators' noise."""
        return {name: float(self._document[f"{name}_sd"]) for name in ("sampling", "privacy", "aggregator")}

    def _shown(self) -> list[tuple[str, str]]:
        names = ("value", "low", "high", "sd")
        shown = [(name, nearest(getattr(self, name))) for name in names]
        return [*shown, ("confidence", str(self.confidence)), ("owners", str(self.owners))]


