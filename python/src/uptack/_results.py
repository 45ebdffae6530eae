"""The results of the package's functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import _arguments, _core
from ._channel import Channel
from ._result import AboutMechanism, Bounds, Result, bounds, claim, nearest, table

if TYPE_CHECKING:
    from typing import Callable

    Progress = Callable[[int, int], object]


class Privacy(AboutMechanism):
    """The guarantees of a mechanism in every view, certified over every crowd."""

    __slots__ = ()

    @property
    def _open(self) -> str:
        """The request: ε at a δ, or δ at an ε."""
        return "delta" if isinstance(self._document["views"]["release"]["epsilon"], float) else "epsilon"

    @property
    def release(self) -> Optional[Bounds]:
        """Certified ε (or δ, if ε was given) of the published counts; None if there is no guarantee."""
        return bounds(self._document["views"]["release"], self._open)

    @property
    def one_aggregator(self) -> Optional[Bounds]:
        """ε of the published sum if only one aggregator is honest, at δ = 0; None without noise."""
        return bounds(self._document["views"]["one_aggregator"], "epsilon")

    @property
    def owners_alone(self) -> Optional[Bounds]:
        """Like ``release``, but if no aggregator's noise can be relied on; None without noise."""
        return bounds(self._document["views"]["owners_alone"], self._open)

    @property
    def linked(self) -> Optional[float]:
        """ε of all answers of an owner; None if there is no guarantee."""
        value: Optional[float] = self._document["views"]["linked"]
        return value

    @property
    def answers(self) -> tuple[Optional[float], ...]:
        """ε of each answer alone."""
        return tuple(self._document["views"]["answers"])

    @property
    def answers_with_release(self) -> tuple[Optional[Bounds], ...]:
        """The guarantee for each answer of the target together with the published counts."""
        return tuple(bounds(view, self._open) for view in self._document["views"]["answers_with_release"])

    @property
    def closed(self) -> bool:
        """Whether both ends of ``release`` are close to each other."""
        return bool(self._document["views"]["release"]["certificate"]["closed"])

    @property
    def repeated(self) -> Optional[Bounds]:
        """Like ``release``, for all repetitions together, if any were requested."""
        repeated = self._document.get("repeated")
        return None if repeated is None else bounds(repeated["release"], self._open)

    @property
    def statement(self) -> str:
        """The guarantees in words."""
        return str(self._document["statement"])

    def _shown(self) -> list[tuple[str, str]]:
        release = None if self.release is None else self.release.upper
        shown = [("mechanism", self.mechanism), ("owners", str(self.owners)), ("release", claim(release))]
        if self.one_aggregator is not None:
            shown.append(("one_aggregator", claim(self.one_aggregator.upper)))
        return [*shown, ("linked", claim(self.linked)), ("answers", "[" + ", ".join(map(claim, self.answers)) + "]")]


class Chart:
    """A picture, as SVG."""

    __slots__ = ("svg",)
    svg: str

    def __init__(self, svg: str) -> None:
        object.__setattr__(self, "svg", svg)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Chart is frozen: {name} cannot be set")

    def save(self, path: Any) -> None:
        """Writes it into a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def __reduce__(self) -> tuple[Any, ...]:
        return Chart, (self.svg,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Chart) and self.svg == other.svg

    def __hash__(self) -> int:
        return hash(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"Chart({len(self.svg)} characters of SVG)"


class Choice(Result):
    """One mechanism with its error and its guarantees."""

    __slots__ = ()

    @property
    def mechanism(self) -> str:
        """The mechanism."""
        return str(self._document["mechanism"])

    @property
    def channel(self) -> Channel:
        """Its channel."""
        return Channel(self.mechanism)

    @property
    def sd(self) -> float:
        """The predicted standard deviation."""
        return float(self._document["sd"])

    @property
    def half_width(self) -> float:
        """Half the width of a 95 % interval."""
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
            ("release", claim(release)),
            ("linked", claim(self.linked)),
        ]


class Plan(Choice):
    """The best mechanism for a request, and the best of each other family."""

    __slots__ = ("_asked", "_handle")
    _asked: dict[str, Any]
    _handle: Optional[_core.Plan]

    def __init__(self, document: dict[str, Any], asked: dict[str, Any], handle: Optional[_core.Plan] = None) -> None:
        super().__init__(document)
        object.__setattr__(self, "_asked", asked)
        object.__setattr__(self, "_handle", handle)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._document, self._asked)

    def _planned(self) -> _core.Plan:
        """The plan behind the document. After unpickling it is planned again, with the same result."""
        handle = self._handle
        if handle is None:
            handle = _core.plan(**self._asked, progress=None)
            object.__setattr__(self, "_handle", handle)
        return handle

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
        """The query card. Also writes it to ``path``, which ends in .toml or .json, if given."""
        import json
        from os import fspath

        from ._errors import UptackError

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
        """The error of each family against ε and against the number of owners."""
        return Chart(self._planned().chart(_arguments.listener(progress)))

    def _repr_html_(self) -> str:
        choices: list[Choice] = sorted([self, *self.alternatives], key=lambda choice: choice.sd)
        rows = []
        for choice in choices:
            release = None if choice.release is None else choice.release.upper
            mark = "the plan" if choice is self else ""
            rows.append([choice.mechanism, nearest(choice.sd), claim(release), claim(choice.linked), mark])
        return table(["mechanism", "sd", "ε release", "ε linked", ""], rows)


class Composition:
    """The composition of releases of several mechanisms to the same owners, each with fresh coins."""

    __slots__ = ("_parts", "_owners", "_work", "_handle")
    _parts: tuple[tuple[str, int], ...]
    _owners: int
    _work: int
    _handle: _core.Composition

    def __init__(self, parts: tuple[tuple[str, int], ...], owners: int, work: int = 1) -> None:
        handle = _core.Composition(list(parts), owners, work)
        for name, value in (("_parts", parts), ("_owners", owners), ("_work", work), ("_handle", handle)):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Composition is frozen: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._parts, self._owners, self._work)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Composition) and self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash((self._parts, self._owners, self._work))

    @property
    def parts(self) -> tuple[tuple[str, int], ...]:
        """Each mechanism with the number of its releases."""
        return self._parts

    @property
    def owners(self) -> int:
        """The owners of every release."""
        return self._owners

    @property
    def linked(self) -> Optional[float]:
        """ε of all answers of an owner to all of them; None if there is no guarantee."""
        return self._handle.linked()

    def epsilon(self, delta: float, *, progress: Optional[Progress] = None) -> Optional[Bounds]:
        """ε of all releases together at ``delta``; None if there is no guarantee.

        The upper end is the claim. Of different mechanisms nothing is proved from below, and the lower end is 0.
        """
        found = self._handle.epsilon(_arguments.real("delta", delta), _arguments.listener(progress))
        return None if found is None else Bounds(*found)

    def delta(self, epsilon: float, *, progress: Optional[Progress] = None) -> Optional[Bounds]:
        """δ of all releases together at ``epsilon``."""
        found = self._handle.delta(_arguments.real("epsilon", epsilon), _arguments.listener(progress))
        return None if found is None else Bounds(*found)

    def to_dict(self) -> dict[str, Any]:
        """The mechanisms, the owners and the local ε."""
        return {"parts": [{"mechanism": text, "times": times} for text, times in self._parts], "owners": self._owners}

    def __repr__(self) -> str:
        parts = " + ".join(f"{times} × {text}" for text, times in self._parts)
        return f"Composition({parts}, owners={self._owners})"

    def _repr_html_(self) -> str:
        return table(["mechanism", "times"], [[text, str(times)] for text, times in self._parts])


class Simulation(Result):
    """The outcome of simulated runs."""

    __slots__ = ()

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
