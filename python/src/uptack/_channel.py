"""Channels, and what is estimated from their answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Mapping, NamedTuple, Optional, Union

from . import _arguments, _core
from ._errors import UptackError
from ._result import AboutMechanism, nearest, table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._arguments import Exact


class Cell(NamedTuple):
    """What one owner writes, and how likely it is under each truth, as exact integers over 2**64."""

    name: str
    yes: int
    no: int


class Published(NamedTuple):
    """What two aggregators publish: how many owners answered, and the number of answers 1 with the noise of both."""

    owners: int
    sum: int


class Channel:
    """For each truth a law over cells, in integers over 2**64: the whole of a mechanism.

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
        """From a text such as ``normal-form(f=0.5, r=1e-4)`` or ``randomized-response(t=0.999) + laplace(scale=1)``."""
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
        """From a family's name and its parameters: ``Channel.of("normal-form", f=0.5, r=1e-4)``."""
        written = ", ".join(f"{key}={_arguments.exact(key, value)}" for key, value in parameters.items())
        return cls(f"{_arguments.word('name', name)}({written})")

    @classmethod
    def from_cells(cls, cells: Mapping[str, tuple[Exact, Exact]]) -> Channel:
        """From each cell's two probabilities, yes first. Each law must sum to exactly one: write thirds as ``"1/3"``.

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
        """From each cell's two exact integers over 2**64, as ``Channel.cells`` has them."""
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
        """From what ``uptack channel --json`` prints."""
        return cls._of(_core.Channel.from_json(_arguments.word("text", text)))

    @property
    def mechanism(self) -> str:
        """As text that every command takes."""
        return self._handle.mechanism

    @property
    def size(self) -> int:
        """How many cells there are: what ``privatize`` draws is below it."""
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
        """What each of two aggregators adds to the published sum; none where all tallies are published as they are."""
        return self._handle.noise

    @property
    def determined(self) -> bool:
        """Whether the tallies fix the count of every cell."""
        return self._handle.determined

    @property
    def linked_epsilon(self) -> Optional[float]:
        """What all answers of an owner give away by themselves; none where there is no guarantee."""
        return self._handle.linked_epsilon()

    def answer_epsilon(self, answer: int = 0) -> Optional[float]:
        """What one answer gives away by itself; none where there is no guarantee."""
        return self._handle.answer_epsilon(_arguments.whole("answer", answer))

    def with_noise(self, scale: Exact) -> Channel:
        """The same channel where each of two aggregators adds discrete Laplace noise to the number of answers 1."""
        return type(self)(f"{self.mechanism} + laplace(scale={_arguments.exact('scale', scale)})")

    def sd(self, owners: int, yes: float) -> float:
        """The predicted standard deviation of the estimate."""
        return self._handle.sd(_arguments.whole("owners", owners), _arguments.real("yes", yes))

    def algebra(self) -> str:
        """The channel in the notation of the privacy algebra."""
        return self._handle.algebra()

    def privatize(self, truths: npt.ArrayLike, *, seed: Optional[int] = None) -> npt.NDArray[np.uint8]:
        """One cell an owner, as an array of uint8, drawn with the operating system's coins.

        ``truths`` is an array of bool; a pandas Series will do. A ``seed`` makes the draw reproducible: for tests only,
        since whoever knows it knows the truths.
        """
        return self._handle.privatize(_arguments.truths(truths), _arguments.optional_whole("seed", seed))

    def draw_counts(self, owners: int, yes: int, *, seed: Optional[int] = None) -> npt.NDArray[np.uint64]:
        """How many owners of a simulated crowd are in each cell, at a cost that does not depend on the owners."""
        import numpy

        owners, yes = _arguments.whole("owners", owners), _arguments.whole("yes", yes)
        return numpy.array(self._handle.draw_counts(owners, yes, _arguments.optional_whole("seed", seed)), dtype=numpy.uint64)

    def tally(self, counts: Any) -> dict[str, Any]:
        """What is published of counted cells: for each answer how often each output was given."""
        document: dict[str, Any] = json.loads(self._handle.tally_of_cells(_arguments.counts(counts, self.size)))
        return document

    def publish(self, counts: Any, *, seed: Optional[int] = None) -> Published:
        """What two aggregators publish of counted cells if the mechanism has noise, drawn anew each time."""
        cells = _arguments.counts(counts, self.size)
        return Published(*self._handle.publish(cells, _arguments.optional_whole("seed", seed)))

    def estimate(
        self,
        counts: Any = None,
        *,
        owners: Optional[int] = None,
        sum: Optional[int] = None,
        confidence: Exact = 0.95,
        interval: str = "auto",
    ) -> Estimate:
        """How many owners would say yes, with an interval of the kind ``auto``, ``exact``, ``mid-p`` or ``score``.

        ``counts`` is how many owners are in each cell, or a tally as a dict. If the mechanism has noise, what is published
        is a sum: give ``owners`` and ``sum``. From counts of cells that sum is made here, with fresh noise of both
        aggregators each time.
        """
        level, kind = _arguments.exact("confidence", confidence), _arguments.word("interval", interval)
        published = None
        if sum is not None:
            if counts is not None:
                raise UptackError("give counts, or owners and sum, and not both")
            total = _sum(sum)
            text = self._handle.estimate_sum(_arguments.whole("owners", owners), total, level, kind)
            published = Published(_arguments.whole("owners", owners), total)
        elif isinstance(counts, Mapping):
            text = self._handle.estimate_tally(json.dumps(_plain_tally(counts)), level, kind)
        elif counts is None:
            raise TypeError("counts: expected an array, got None")
        elif self.noise is not None:
            published = self.publish(counts)
            text = self._handle.estimate_sum(published.owners, published.sum, level, kind)
        else:
            text = self._handle.estimate_cells(_arguments.counts(counts, self.size), level, kind)
        return Estimate(json.loads(text), published)

    def to_dict(self) -> dict[str, Any]:
        """What ``uptack channel --json`` prints."""
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


def _sum(value: Any) -> int:
    """A published sum, which may be negative."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"sum: expected a whole number, got {type(value).__name__}")
    total = int(value.__index__())
    if abs(total) > 2**62:
        raise UptackError(f"sum: {total} is too large", "counts")
    return total


def _plain_tally(tally: Mapping[str, Any]) -> dict[str, Any]:
    """A tally whose counts are Python's own numbers."""
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
    """How many owners' truth is yes, estimated from their answers."""

    __slots__ = ("published",)
    #: What was published, if the mechanism has noise.
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
        """At least so many, with the stated confidence."""
        return float(self._document["interval"][0])

    @property
    def high(self) -> float:
        """At most so many."""
        return float(self._document["interval"][1])

    @property
    def interval_kind(self) -> str:
        """How the interval was made."""
        return str(self._document["interval_kind"])

    @property
    def confidence(self) -> float:
        """How sure it is to hold the truth."""
        return float(self._document["confidence"])

    @property
    def parts(self) -> dict[str, float]:
        """What of the standard deviation is from sampling, from the owners' coins and from the aggregators' noise."""
        return {name: float(self._document[f"{name}_sd"]) for name in ("sampling", "privacy", "aggregator")}

    def _shown(self) -> list[tuple[str, str]]:
        names = ("value", "low", "high", "sd")
        shown = [(name, nearest(getattr(self, name))) for name in names]
        return [*shown, ("confidence", str(self.confidence)), ("owners", str(self.owners))]


