"""Results about options: their estimates, what follows from several of them, and simulations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Iterator, NamedTuple, Optional, Sequence, Union

from . import _arguments, _core, _frames
from ._chart import BarChart
from ._errors import UptackError
from ._result import AboutMechanism, Result, nearest, table
from ._results import Simulation

if TYPE_CHECKING:
    from ._arguments import Exact
    from ._contributions import PublishedCounts
    from ._frames import FrameLibrary

    #: An option, by its name or by its index from 0.
    OptionLike = Union[str, int]


class OptionEstimate(NamedTuple):
    """How many owners have one option."""

    #: The name of the option.
    name: str
    #: The estimate, unbiased and therefore not clipped.
    estimate: float
    #: Its standard deviation.
    sd: float
    #: An interval for this option by itself.
    interval: tuple[float, float]
    #: An exact interval; those of all options hold at once with the stated confidence.
    simultaneous: tuple[float, float]
    #: The estimate made consistent with the others: not negative, and all of a choice sum to the owners.
    consistent: float
    #: The estimate as a share of the owners.
    share: float


class Quantile(NamedTuple):
    """The option at which a share of the owners is reached."""

    #: The share.
    q: float
    #: The option, by name.
    option: str
    #: The first option of the interval.
    low: str
    #: The last option of the interval.
    high: str


class CombinedEstimate(Result):
    """A number that follows from several options, with an interval."""

    __slots__ = ()

    @property
    def value(self) -> float:
        """The estimate."""
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

    def _shown(self) -> list[tuple[str, str]]:
        return [(name, nearest(getattr(self, name))) for name in ("value", "low", "high", "sd")]


class MeanEstimate(CombinedEstimate):
    """The mean of the options' values over the owners who have one of them."""

    __slots__ = ()

    @property
    def owners(self) -> float:
        """How many owners have a value: all of them, or an estimate."""
        return float(self._document["owners"])

    @property
    def bin_error(self) -> Optional[float]:
        """At most how far the width of the bins can move the mean, on top of everything else; None without bins."""
        error: Optional[float] = self._document["bin_error"]
        return error


class OptionEstimates(AboutMechanism):
    """How many owners have each option: a sequence of ``OptionEstimate``, which names index as well, and a table."""

    __slots__ = ("published",)
    #: The published result that it was made from.
    published: PublishedCounts

    def __init__(self, document: dict[str, Any], published: PublishedCounts) -> None:
        super().__init__(document)
        object.__setattr__(self, "published", published)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._document, self.published)

    @property
    def confidence(self) -> float:
        """The confidence of each interval, and of all simultaneous ones together."""
        return float(self._document["confidence"])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the options."""
        return tuple(str(option["name"]) for option in self._document["options"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know when reading these numbers, such as why an estimate is negative."""
        return tuple(self._document["notes"])

    def __len__(self) -> int:
        return len(self._document["options"])

    def __iter__(self) -> Iterator[OptionEstimate]:
        return map(_option, self._document["options"])

    def __getitem__(self, option: OptionLike) -> OptionEstimate:
        return _option(self._document["options"][self._index(option)])

    def _index(self, option: Any) -> int:
        """The index of an option that is given by its name or by its index."""
        if isinstance(option, str):
            core = _core.Contributions.parse(self.mechanism, list(self.names), None)
            try:
                return core.index(option)
            except UptackError as error:
                raise UptackError(f"{option!r} is not an option", "request", error.hint) from None
        index = _arguments.whole("option", option)
        if index >= len(self):
            # Python's own loops and unpacking end at this error.
            raise IndexError(f"option {index} of {len(self)}, which are counted from 0")
        return index

    @property
    def mean(self) -> MeanEstimate:
        """The mean of the options' values, if ``estimate`` was given values or bins."""
        if "mean" not in self._document:
            raise UptackError("the options have no values", "request", "estimate(…, values=[…]), or bins=[…]")
        return MeanEstimate(self._document["mean"])

    @property
    def quantiles(self) -> tuple[Quantile, ...]:
        """The quantiles that ``estimate`` was asked for."""
        found = self._document.get("quantiles", [])
        return tuple(Quantile(float(each["q"]), each["option"], each["low"], each["high"]) for each in found)

    def union(self, options: Sequence[OptionLike], *, confidence: Optional[Exact] = None) -> CombinedEstimate:
        """How many owners have any of several options of which each owner has at most one.

        - ``options``: their names or indices.
        - ``confidence``: how sure the interval is to contain the truth; by default that of these estimates.
        """
        if isinstance(options, (str, bytes)):
            raise TypeError("options: expected a list of options, got one")
        indices = [self._index(option) for option in options]
        return CombinedEstimate(json.loads(self._core().union(self._tally(), indices, self._level(confidence))))

    def difference(
        self, first: OptionLike, second: OptionLike, *, confidence: Optional[Exact] = None
    ) -> CombinedEstimate:
        """By how many more owners have one option than another one.

        - ``first``: the option, by its name or index.
        - ``second``: the one that is subtracted.
        - ``confidence``: how sure the interval is to contain the truth; by default that of these estimates.
        """
        pair = self._index(first), self._index(second)
        return CombinedEstimate(json.loads(self._core().difference(self._tally(), pair, self._level(confidence))))

    def _core(self) -> _core.Contributions:
        return _core.Contributions.parse(self.mechanism, None, None)

    def _tally(self) -> str:
        return self.published.to_json()

    def _level(self, confidence: Optional[Exact]) -> str:
        return _arguments.exact("confidence", self.confidence if confidence is None else confidence)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """One list per column: option, estimate, sd, low, high, simultaneous_low, simultaneous_high, consistent, share."""
        rows = list(self)
        return {
            "option": [row.name for row in rows],
            "estimate": [row.estimate for row in rows],
            "sd": [row.sd for row in rows],
            "low": [row.interval[0] for row in rows],
            "high": [row.interval[1] for row in rows],
            "simultaneous_low": [row.simultaneous[0] for row in rows],
            "simultaneous_high": [row.simultaneous[1] for row in rows],
            "consistent": [row.consistent for row in rows],
            "share": [row.share for row in rows],
        }

    def to_frame(self, library: Optional[FrameLibrary] = None) -> Any:
        """The columns as a DataFrame.

        - ``library``: ``"pandas"`` or ``"polars"``, neither of which this package needs; by default the first one that is installed.
        """
        return _frames.frame(self.columns, library)

    def chart(self, *, title: str = "How many owners have each option", simultaneous: bool = False) -> BarChart:
        """A bar for each option, with its interval. The largest ones come first if they do not all fit on a page.

        - ``title``: what is written above them.
        - ``simultaneous``: draw the intervals that hold at once.
        """
        words = "All intervals together hold" if simultaneous else "Each interval by itself holds"
        subtitle = f"{words} with confidence {self.confidence}."
        bars = [(row.name, row.estimate, *(row.simultaneous if simultaneous else row.interval)) for row in self]
        return BarChart.of(_arguments.word("title", title), subtitle, bars)

    def _shown(self) -> list[tuple[str, str]]:
        shown = [(row.name, nearest(row.estimate)) for row in list(self)[:8]]
        if len(self) > 8:
            shown.append(("…", f"{len(self)} options"))
        return [*shown, ("confidence", str(self.confidence)), ("owners", str(self.owners))]

    def _repr_html_(self) -> str:
        header = ["option", "estimate", "sd", "interval", "all at once", "consistent", "share"]
        return table(header, [_html_row(row) for row in self])


def _option(document: dict[str, Any]) -> OptionEstimate:
    interval, simultaneous = document["interval"], document["simultaneous"]
    return OptionEstimate(
        str(document["name"]),
        float(document["estimate"]),
        float(document["sd"]),
        (float(interval[0]), float(interval[1])),
        (float(simultaneous[0]), float(simultaneous[1])),
        float(document["consistent"]),
        float(document["share"]),
    )


def _html_row(row: OptionEstimate) -> list[str]:
    def ends(pair: tuple[float, float]) -> str:
        return f"{nearest(pair[0])} to {nearest(pair[1])}"

    numbers = [nearest(row.estimate), nearest(row.sd), ends(row.interval), ends(row.simultaneous)]
    return [row.name, *numbers, nearest(row.consistent), f"{100 * row.share:.1f} %"]


class OptionSimulation(Simulation):
    """The outcome of simulated runs of a mechanism with options.

    ``rmse``, ``mean``, ``bias``, ``predicted_sd`` and ``coverage`` are those of the count of a yes/no question; of several options
    ``columns`` has them for each.
    """

    __slots__ = ()

    def _of_one_count(self, name: str) -> float:
        if name not in self._document:
            raise UptackError(f"{name}: there is one for each option", "request", f"columns[{name!r}]")
        return float(self._document[name])

    @property
    def rmse(self) -> float:
        """The root mean squared error."""
        return self._of_one_count("rmse")

    @property
    def mean(self) -> float:
        """The mean of the estimates."""
        return self._of_one_count("mean")

    @property
    def bias(self) -> float:
        """The mean of the estimates minus the truth."""
        return self._of_one_count("bias")

    @property
    def predicted_sd(self) -> float:
        """The standard deviation predicted by theory."""
        return self._of_one_count("predicted_sd")

    @property
    def coverage(self) -> float:
        """The share of intervals that contained the truth."""
        return self._of_one_count("coverage")

    @property
    def simultaneous_coverage(self) -> float:
        """The share of runs in which the simultaneous intervals of all options contained the truth."""
        return float(self._document["simultaneous_coverage"])

    @property
    def columns(self) -> dict[str, list[Any]]:
        """One list per column: option, count, bias, rmse, predicted_sd, coverage."""
        rows = self._document["options"]
        names = ("count", "bias", "rmse", "predicted_sd", "coverage")
        return {"option": [row["name"] for row in rows], **{name: [row[name] for row in rows] for name in names}}

    def to_frame(self, library: Optional[FrameLibrary] = None) -> Any:
        """The columns as a DataFrame.

        - ``library``: ``"pandas"`` or ``"polars"``; by default the first one that is installed.
        """
        return _frames.frame(self.columns, library)

    def _shown(self) -> list[tuple[str, str]]:
        shown = [("options", str(len(self._document["options"]))), ("trials", str(self.trials))]
        return [*shown, ("simultaneous_coverage", nearest(self.simultaneous_coverage))]

    def _repr_html_(self) -> str:
        columns = self.columns
        rows = zip(*([str(each) if isinstance(each, (str, int)) else nearest(each) for each in column] for column in columns.values()))
        return table(columns, [list(row) for row in rows])
