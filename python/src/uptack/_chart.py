"""Charts: a picture, and the data behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import _core
from ._errors import UptackError

if TYPE_CHECKING:
    from typing import Sequence, Union

    from matplotlib.axes import Axes


class Chart:
    """One or more charts below one another: as SVG, as data, and on matplotlib's axes."""

    __slots__ = ("svg", "_panels")
    #: The picture, as SVG.
    svg: str
    _panels: list[dict[str, Any]]

    def __init__(self, svg: str, panels: list[dict[str, Any]]) -> None:
        object.__setattr__(self, "svg", svg)
        object.__setattr__(self, "_panels", panels)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Chart is frozen: {name} cannot be set")

    @property
    def titles(self) -> tuple[str, ...]:
        """The title of each chart, from the top."""
        return tuple(str(panel["title"]) for panel in self._panels)

    @property
    def data(self) -> dict[str, list[Any]]:
        """All points, as the columns chart, series, x and y: ``pandas.DataFrame(chart.data)``.

        A ``y`` of None means that no mechanism of this family keeps the constraints.
        """
        columns: dict[str, list[Any]] = {"chart": [], "series": [], "x": [], "y": []}
        for panel in self._panels:
            for series in panel["series"]:
                points = len(series["x"])
                columns["chart"] += [panel["title"]] * points
                columns["series"] += [series["name"]] * points
                columns["x"] += series["x"]
                columns["y"] += series["y"]
        return columns

    def save(self, path: Any) -> None:
        """Writes the picture into a file.

        - ``path``: its ending says what is written: .svg, which needs nothing else, or .png or .pdf, which matplotlib draws.
        """
        from os import fspath

        name = str(fspath(path))
        ending = name.lower().rpartition(".")[2] if "." in name else ""
        if ending == "svg":
            with open(path, "w", encoding="utf-8") as file:
                file.write(self.svg)
        elif ending in ("png", "pdf"):
            _figure(self).savefig(path, bbox_inches="tight", dpi=200)
        else:
            raise UptackError(f"{name}: a chart is written as .svg, .png or .pdf")

    def plot(self, ax: Union[Axes, Sequence[Axes], None] = None, *, which: int = 0) -> list[Axes]:
        """Draws the charts with matplotlib, and returns the axes that were drawn on.

        - ``ax``: the axes for one of the charts, or axes for each of them. Without it, a new figure gets all of them.
        - ``which``: the chart to draw, from 0, if ``ax`` is a single one.
        """
        if ax is None:
            return list(_figure(self).axes)
        if hasattr(ax, "plot"):
            if not 0 <= which < len(self._panels):
                raise UptackError(f"which: there are {len(self._panels)} charts, counted from 0")
            return self._draw_on([ax], [self._panels[which]])
        axes: list[Any] = list(ax)
        if len(axes) != len(self._panels):
            raise UptackError(f"ax: {len(axes)} axes for {len(self._panels)} charts")
        return self._draw_on(axes, self._panels)

    @staticmethod
    def _draw_on(axes: list[Any], panels: list[dict[str, Any]]) -> list[Axes]:
        for each, panel in zip(axes, panels):
            _draw(each, panel)
        return axes

    def __reduce__(self) -> tuple[Any, ...]:
        return Chart, (self.svg, self._panels)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chart) and self.svg == other.svg

    def __hash__(self) -> int:
        return hash(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.titles)})"


class BarChart(Chart):
    """Bars with intervals, one below the other: as SVG, as data, and on matplotlib's axes."""

    __slots__ = ()

    @classmethod
    def of(cls, title: str, subtitle: str, bars: Sequence[tuple[str, float, float, float]]) -> BarChart:
        """A chart of bars. If there are more than fit on a page, the largest come first.

        - ``title``, ``subtitle``: what is written above them.
        - ``bars``: for each its name, its length, and the ends of its interval.
        """
        shown = list(bars) if len(bars) <= _MOST_BARS else sorted(bars, key=lambda bar: -bar[1])
        return cls(_core.bars(title, subtitle, shown), [{"title": title, "subtitle": subtitle, "bars": shown}])

    @property
    def data(self) -> dict[str, list[Any]]:
        """All bars, as the columns name, value, low and high: ``pandas.DataFrame(chart.data)``."""
        bars = self._panels[0]["bars"]
        return {name: [bar[index] for bar in bars] for index, name in enumerate(("name", "value", "low", "high"))}

    def __reduce__(self) -> tuple[Any, ...]:
        return BarChart, (self.svg, self._panels)


#: More bars than this do not fit on a page.
_MOST_BARS = 40


def _figure(chart: Chart) -> Any:
    """A figure of matplotlib with all charts, which no window shows."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        words = "matplotlib, which draws .png, .pdf and axes, is not installed"
        raise UptackError(words, "request", "install matplotlib, or save the chart as .svg") from None
    figure = Figure(figsize=(7.2, 5.0 * len(chart._panels)), layout="constrained")
    axes = figure.subplots(len(chart._panels), squeeze=False)
    chart.plot(list(axes[:, 0]))
    return figure


def _draw(axes: Any, panel: dict[str, Any]) -> None:
    """One chart. The plan is a ring; families that coincide have different markers and dashes."""
    if "bars" in panel:
        return _draw_bars(axes, panel)
    styles = ["-", "--", "-.", ":"]
    for number, series in enumerate(panel["series"]):
        x, y = series["x"], [float("nan") if value is None else value for value in series["y"]]
        if len(x) == 1:
            axes.plot(x, y, linestyle="none", marker="o", markersize=13, fillstyle="none", color="black", label=series["name"])
        else:
            marker: Optional[str] = "osD^vPX*"[number % 8]
            axes.plot(x, y, linestyle=styles[number % 4], marker=marker, markersize=4, label=series["name"])
    axes.set_title(f"{panel['title']}\n{panel['subtitle']}", fontsize="medium")
    for name, axis in (("x", panel["x"]), ("y", panel["y"])):
        getattr(axes, f"set_{name}label")(axis["label"])
        getattr(axes, f"set_{name}scale")("log" if axis["logarithmic"] else "linear")
    axes.legend(fontsize="small")


def _draw_bars(axes: Any, panel: dict[str, Any]) -> None:
    """Bars from the top, with whiskers."""
    bars = panel["bars"][:_MOST_BARS]
    places = range(len(bars))
    axes.barh(places, [bar[1] for bar in bars], color="#0072B2", alpha=0.55)
    axes.hlines(places, [bar[2] for bar in bars], [bar[3] for bar in bars], color="black")
    axes.set_yticks(places, [bar[0] for bar in bars])
    axes.invert_yaxis()
    left_out = len(panel["bars"]) - len(bars)
    axes.set_xlabel("owners" if left_out == 0 else f"owners; and {left_out} more, each of them smaller")
    axes.set_title(f"{panel['title']}\n{panel['subtitle']}", fontsize="medium")
