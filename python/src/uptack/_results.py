"""The results of the package's functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import _arguments, _core, _frames
from ._channel import Channel
from ._chart import Chart
from ._errors import UptackError
from ._result import Bounds, Result, bounds, claim, nearest, table

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ._arguments import Progress
    from ._contributions import Contributions
    from ._frames import FrameLibrary


class Choice(Result):
    """One mechanism with its error and its guarantees."""

    __slots__ = ()

    @property
    def mechanism(self) -> str:
        """The mechanism."""
        return str(self._document["mechanism"])

    @property
    def channel(self) -> Channel:
        """Its channel, if it is about a yes/no question."""
        return Channel(self.mechanism)

    @property
    def contributions(self) -> Contributions:
        """The mechanism, if it has options."""
        from ._contributions import Contributions

        return Contributions(self.mechanism)

    @property
    def sd(self) -> float:
        """The predicted standard deviation."""
        return float(self._document["sd"])

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval that is to be expected."""
        return float(self._document["interval95_halfwidth"])

    @property
    def views(self) -> dict[str, Any]:
        """The guarantees, as in the document."""
        views: dict[str, Any] = self.to_dict()["views"]
        return views

    @property
    def release(self) -> Optional[Bounds]:
        """ε of the published counts; None if there is no guarantee."""
        return bounds(self._document["views"]["release"], "epsilon")

    @property
    def linked(self) -> Optional[float]:
        """ε of all answers of an owner; None if there is no guarantee."""
        value: Optional[float] = self._document["views"]["linked"]
        return value

    def _shown(self) -> list[tuple[str, str]]:
        release = None if self.release is None else self.release.upper
        return [
            ("mechanism", self.mechanism),
            ("sd", nearest(self.sd)),
            ("release_epsilon", claim(release)),
            ("linked_epsilon", claim(self.linked)),
        ]


class Plan(Choice):
    """The best mechanism for a request, and the best of each other family."""

    __slots__ = ("_asked", "_handle", "_options")
    _asked: dict[str, Any]
    _handle: Optional[_core.Plan]
    _options: Optional[tuple[str, ...]]

    def __init__(
        self,
        document: dict[str, Any],
        asked: dict[str, Any],
        handle: Optional[_core.Plan] = None,
        options: Optional[tuple[str, ...]] = None,
    ) -> None:
        super().__init__(document)
        for name, value in (("_asked", asked), ("_handle", handle), ("_options", options)):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._document, self._asked, None, self._options)

    def _planned(self) -> _core.Plan:
        """The plan behind the document. After unpickling it is planned again, with the same result."""
        handle = self._handle
        if handle is None:
            handle = _core.plan(**self._asked, progress=None)
            object.__setattr__(self, "_handle", handle)
        return handle

    @property
    def contributions(self) -> Contributions:
        """The mechanism with the names of its options, if the plan is about options or counts."""
        from ._contributions import Contributions

        return Contributions(self.mechanism, options=self._options)

    @property
    def tradeoff(self) -> dict[str, list[Any]]:
        """What a limit on the linked ε costs, as the columns linked and sd; None is no limit. Empty without noise."""
        rows = self._document["tradeoff"]
        return {name: [row[name] for row in rows] for name in ("linked", "sd")}

    @property
    def alternatives(self) -> tuple[Choice, ...]:
        """The best mechanism of each other family, best first."""
        return tuple(Choice(choice) for choice in self._document["alternatives"])

    @property
    def solved(self) -> tuple[str, float]:
        """The quantity that was solved for, and its value."""
        return str(self._document["solved"]["name"]), float(self._document["solved"]["value"])

    @property
    def owners(self) -> int:
        """The expected number of owners."""
        return int(self._document["owners"])

    @property
    def minimum_batch(self) -> int:
        """The smallest batch that may be released."""
        return int(self._document["minimum_batch"])

    @property
    def gap(self) -> Optional[float]:
        """The largest possible relative reduction of the error; None if no bound was computed."""
        gap: Optional[float] = self._document["gap"]
        return gap

    @property
    def trust(self) -> str:
        """Who has to be honest for the requested ε."""
        return str(self._document["trust"])

    def card(self, path: Any = None) -> dict[str, Any]:
        """The query card.

        - ``path``: where to write it, too: a file that ends in .toml or .json.
        """
        import json
        from os import fspath

        planned = self._planned()
        text = planned.card_json()
        if path is not None:
            name = fspath(path)
            if not str(name).lower().endswith((".toml", ".json")):
                raise UptackError(f"{name}: a card is written as .toml or .json")
            with open(name, "w", encoding="utf-8") as file:
                file.write(planned.card_toml() if str(name).lower().endswith(".toml") else text + "\n")
        card: dict[str, Any] = json.loads(text)
        return card

    def chart(self, *, progress: Optional[Progress] = None) -> Chart:
        """The error of each family against ε, against the number of owners and, with noise, against the linked ε.

        - ``progress``: is called with the points that are done, and how many there are.
        """
        import json

        svg, panels = self._planned().chart(_arguments.listener(progress))
        return Chart(svg, json.loads(panels))

    def _repr_html_(self) -> str:
        choices: list[Choice] = sorted([self, *self.alternatives], key=lambda choice: choice.sd)
        rows = []
        for choice in choices:
            release = None if choice.release is None else choice.release.upper
            mark = "the plan" if choice is self else ""
            rows.append([choice.mechanism, nearest(choice.sd), claim(release), claim(choice.linked), mark])
        return table(["mechanism", "sd", "ε release", "ε linked", ""], rows)


class Simulation(Result):
    """The outcome of simulated runs."""

    __slots__ = ("_estimates",)
    _estimates: Optional[tuple[float, ...]]

    def __init__(self, document: dict[str, Any], estimates: Optional[tuple[float, ...]] = None) -> None:
        super().__init__(document)
        object.__setattr__(self, "_estimates", estimates)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._document, self._estimates)

    @property
    def estimates(self) -> npt.NDArray[np.float64]:
        """The estimate of each run, in their order, if ``simulate`` was asked to keep them."""
        import numpy

        if self._estimates is None:
            raise UptackError("the estimates of the runs were not kept", "request", "simulate(…, keep_estimates=True)")
        return numpy.array(self._estimates)

    @property
    def rmse(self) -> float:
        """The root mean squared error."""
        return float(self._document["rmse"])

    @property
    def mean(self) -> float:
        """The mean of the estimates."""
        return float(self._document["mean"])

    @property
    def bias(self) -> float:
        """The mean of the estimates minus the truth."""
        return float(self._document["bias"])

    @property
    def predicted_sd(self) -> float:
        """The standard deviation predicted by theory."""
        return float(self._document["predicted_sd"])

    @property
    def coverage(self) -> float:
        """The share of intervals that contained the truth."""
        return float(self._document["coverage"])

    @property
    def trials(self) -> int:
        """The number of runs."""
        return int(self._document["trials"])

    @property
    def seed(self) -> int:
        """The source of randomness."""
        return int(self._document["seed"])

    def _shown(self) -> list[tuple[str, str]]:
        names = ("mean", "bias", "rmse", "predicted_sd", "coverage")
        return [*((name, nearest(getattr(self, name))) for name in names), ("trials", str(self.trials))]


class Algebra(Result):
    """A program of the privacy algebra, compiled."""

    __slots__ = ()

    @property
    def channel(self) -> Channel:
        """Its channel."""
        import json

        return Channel.from_json(json.dumps(self._document["channel"]))

    @property
    def solution(self) -> Optional[dict[str, Any]]:
        """How to solve for YES; None if no tally depends on the truth."""
        solution: Optional[dict[str, Any]] = self.to_dict()["solution"]
        return solution

    @property
    def text(self) -> str:
        """The channel written back as algebra."""
        return str(self._document["algebra"])

    def _shown(self) -> list[tuple[str, str]]:
        solution = self._document["solution"]
        solved = "none" if solution is None else f"{solution['combination']} = {solution['holds']}"
        return [("channel", str(self._document["channel"]["mechanism"])), ("solution", solved)]


class Verification(Result):
    """The check of a card or a release record."""

    __slots__ = ()

    @property
    def holds(self) -> bool:
        """Whether all checks passed."""
        return bool(self._document["holds"])

    @property
    def document(self) -> str:
        """The kind of document: a card, a signed card or a release record."""
        return str(self._document["document"])

    @property
    def checked(self) -> tuple[dict[str, Any], ...]:
        """Each check: what, stated, recomputed, holds, verdict."""
        return tuple(self.to_dict()["checked"])

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the checks that fail."""
        return tuple(str(check["what"]) for check in self._document["checked"] if not check["holds"])

    def __bool__(self) -> bool:
        return self.holds

    def _shown(self) -> list[tuple[str, str]]:
        shown = [("document", self.document), ("holds", str(self.holds)), ("checks", str(len(self._document["checked"])))]
        return shown if self.holds else [*shown, ("failed", ", ".join(self.failed))]


class Audit(Result):
    """The ε that an adversary could prove."""

    __slots__ = ()

    @property
    def violated(self) -> bool:
        """Whether anything contradicts the claims."""
        return self.verdict == "violated"

    @property
    def verdict(self) -> str:
        """``consistent`` or ``violated``."""
        return str(self._document["verdict"])

    @property
    def samples(self) -> int:
        """The number of outputs in the audit."""
        return int(self._document["samples"])

    @property
    def confidence(self) -> float:
        """The confidence with which all bounds hold together."""
        return float(self._document["confidence"])

    @property
    def findings(self) -> dict[str, dict[str, Any]]:
        """For each view the claimed ε, the proved ε and the event that proves it."""
        found: dict[str, dict[str, Any]] = {}
        for name, finding in self.to_dict()["views"].items():
            if isinstance(finding, list):
                found.update({f"{name}[{index}]": each for index, each in enumerate(finding)})
            elif finding is not None:
                found[name] = finding
        return found

    @property
    def epsilon_lower(self) -> float:
        """The largest ε that is proved for a single output."""
        views = self._document["views"]
        local = [views["linked"]] if "linked" in views else [views[name] for name in ("output", "length", "size")]
        return max(float(view["observed_lower"]) for view in local if view is not None)

    def _shown(self) -> list[tuple[str, str]]:
        subject = self._document.get("mechanism", self._document.get("randomizer"))
        shown = [("subject", str(subject)), ("verdict", self.verdict), ("epsilon_lower", nearest(self.epsilon_lower))]
        return [*shown, ("samples", str(self.samples)), ("confidence", str(self.confidence))]

    def _repr_html_(self) -> str:
        rows = []
        for name, finding in self.findings.items():
            event = "" if finding["event"] is None else str(finding["event"]["description"])
            rows.append([name, claim(finding["claimed"]), nearest(finding["observed_lower"]), finding["verdict"], event])
        return table(["view", "claimed ε", "proved ε", "verdict", "event"], rows)


class Evaluation(Result):
    """The paper's evaluation."""

    __slots__ = ()

    @property
    def rows(self) -> dict[str, list[Any]]:
        """One row per method, comparison and population, as columns: ``pandas.DataFrame(evaluation.rows)``."""
        columns: dict[str, list[Any]] = {}
        flat = [_flat(row) for row in self.to_dict()["rows"]]
        names = list(dict.fromkeys(name for row in flat for name in row))
        for name in names:
            columns[name] = [row.get(name) for row in flat]
        return columns

    def to_frame(self, library: Optional[FrameLibrary] = None) -> Any:
        """The rows as a DataFrame.

        - ``library``: ``"pandas"`` or ``"polars"``; by default the first one that is installed.
        """
        return _frames.frame(self.rows, library)

    @property
    def complete(self) -> bool:
        """Whether the evaluation ran to its end."""
        return bool(self._document["complete"])

    @property
    def findings(self) -> dict[str, Any]:
        """The conclusions."""
        findings: dict[str, Any] = self.to_dict()["findings"]
        return findings

    def _shown(self) -> list[tuple[str, str]]:
        data = self._document["data"]
        return [
            ("data", str(data["origin"])),
            ("vehicles", str(data["vehicles"])),
            ("rows", str(len(self._document["rows"]))),
            ("trials", str(self._document["trials"])),
        ]


def _flat(row: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested dicts, joining their names by dots; lists stay."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        else:
            flat[f"{prefix}{name}"] = value
    return flat
