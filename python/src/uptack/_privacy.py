"""The guarantees of mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence, Union, overload

from . import _frames
from ._errors import UptackError
from ._result import AboutMechanism, Bounds, bounds, claim, table

if TYPE_CHECKING:
    from ._frames import FrameLibrary


class Privacy(AboutMechanism):
    """The guarantees of a mechanism, certified over every crowd.

    ``up.privacy`` computes every view, or those that it is asked for; reading another one raises an ``UptackError``.
    """

    __slots__ = ("_given",)
    _given: tuple[str, float]

    def __init__(self, document: dict[str, Any], given: tuple[str, float]) -> None:
        super().__init__(document)
        object.__setattr__(self, "_given", given)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._document, self._given)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and isinstance(other, Privacy) and self._given == other._given

    __hash__ = AboutMechanism.__hash__

    @property
    def delta(self) -> Optional[float]:
        """The δ at which ε was asked for; None if it was the other way round."""
        return self._given[1] if self._given[0] == "delta" else None

    @property
    def epsilon(self) -> Optional[float]:
        """The ε at which δ was asked for; None if it was the other way round."""
        return self._given[1] if self._given[0] == "epsilon" else None

    @property
    def _open(self) -> str:
        """Which of ε and δ was asked for."""
        return "epsilon" if self._given[0] == "delta" else "delta"

    def _view(self, name: str) -> Any:
        try:
            return self._document["views"][name]
        except KeyError:
            if self.mechanism.startswith(("choice(", "contributions(")):
                words = f"{name}: a mechanism with options has no such view"
                raise UptackError(words, "request", "an owner sends one report, which linked is about") from None
            asked = ", ".join(map(repr, self._document["views"]))
            words = f"{name} was not computed, only {asked}"
            raise UptackError(words, "request", f"ask for views=[{asked}, {name!r}], or leave out views") from None

    @property
    def release(self) -> Optional[Bounds]:
        """Certified ε (or δ, if ε was given) of the published counts; None if there is no guarantee."""
        return bounds(self._view("release"), self._open)

    @property
    def one_aggregator(self) -> Optional[Bounds]:
        """ε of the published sum if only one aggregator is honest, at δ = 0; None without noise."""
        return bounds(self._view("one_aggregator"), "epsilon")

    @property
    def owners_alone(self) -> Optional[Bounds]:
        """Like ``release``, but if no aggregator's noise can be relied on; None without noise."""
        return bounds(self._view("owners_alone"), self._open)

    @property
    def linked(self) -> Optional[float]:
        """ε of all answers of an owner; None if there is no guarantee."""
        value: Optional[float] = self._view("linked")
        return value

    @property
    def answers(self) -> tuple[Optional[float], ...]:
        """ε of each answer alone."""
        return tuple(self._view("answers"))

    @property
    def answers_with_release(self) -> tuple[Optional[Bounds], ...]:
        """The guarantee for each answer of the target together with the published counts."""
        return tuple(bounds(view, self._open) for view in self._view("answers_with_release"))

    @property
    def closed(self) -> bool:
        """Whether both ends of ``release`` are close to each other."""
        return bool(self._view("release")["certificate"]["closed"])

    @property
    def repeated(self) -> Optional[Bounds]:
        """Like ``release``, for all repetitions together, if any were requested."""
        repeated = self._document.get("repeated")
        return None if repeated is None else bounds(repeated["release"], self._open)

    @property
    def statement(self) -> str:
        """The guarantees in words."""
        if "statement" not in self._document:
            raise UptackError("statement was not computed, because only some views were", "request", "leave out views")
        return str(self._document["statement"])

    def _rows(self) -> list[tuple[str, str, str, str]]:
        """For each view that was computed: its name, what is written about it in ``repr``, and its ε and δ in tables."""
        views, (given, value) = self._document["views"], self._given
        rows = []
        for name in ("release", "owners_alone"):
            if views.get(name) is not None:
                found = bounds(views[name], self._open)
                upper = claim(None if found is None else found.upper)
                pair = (upper, str(value)) if given == "delta" else (str(value), upper)
                rows.append((name, f"{name}_{self._open}={upper}", *pair))
        if views.get("one_aggregator") is not None:
            upper = claim(views["one_aggregator"]["epsilon"]["upper"])
            rows.append(("one_aggregator", f"one_aggregator_epsilon={upper}", upper, "0"))
        if "linked" in views:
            rows.append(("linked", f"linked_epsilon={claim(views['linked'])}", claim(views["linked"]), "0"))
        if "answers" in views:
            each = list(map(claim, views["answers"]))
            rows.append(("answers", f"answers_epsilon=[{', '.join(each)}]", ", ".join(each), "0"))
        return rows

    def __repr__(self) -> str:
        given, value = self._given
        about = [f"mechanism={self.mechanism}", f"owners={self.owners}", f"{given}={value}"]
        return f"Privacy({', '.join([*about, *(shown for _, shown, _, _ in self._rows())])})"

    def _repr_html_(self) -> str:
        from html import escape

        rows = [[name, epsilon, delta] for name, _, epsilon, delta in self._rows()]
        about = f"<p><code>{escape(self.mechanism)}</code>, {self.owners} owners</p>"
        return about + table(["view", "ε at most", "δ at most"], rows)


class PrivacyTable(Sequence["Privacy"]):
    """The guarantees for several numbers of owners, ε or δ: a sequence of ``Privacy``, and a table.

    ``to_frame()`` makes a DataFrame of it.
    """

    __slots__ = ("_rows",)
    _rows: tuple[Privacy, ...]

    def __init__(self, rows: Iterable[Privacy]) -> None:
        object.__setattr__(self, "_rows", tuple(rows))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"PrivacyTable is frozen: {name} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._rows,)

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Privacy: ...
    @overload
    def __getitem__(self, index: slice) -> PrivacyTable: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Privacy, PrivacyTable]:
        return PrivacyTable(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrivacyTable) and self._rows == other._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    @property
    def columns(self) -> dict[str, list[Any]]:
        """One list per column: owners, epsilon and delta (one given, the other certified from above), closed, linked, and so on.

        Only views that were computed have a column; None means that there is no guarantee.
        """
        rows = [_flat_row(row) for row in self._rows]
        names = list(dict.fromkeys(name for row in rows for name in row))
        return {name: [row.get(name) for row in rows] for name in names}

    def to_frame(self, library: Optional[FrameLibrary] = None) -> Any:
        """The columns as a DataFrame.

        - ``library``: ``"pandas"`` or ``"polars"``; by default the first one that is installed.
        """
        return _frames.frame(self.columns, library)

    def __repr__(self) -> str:
        return f"PrivacyTable({len(self)} rows: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        columns = self.columns
        rows = zip(*(map(_cell, column) for column in columns.values()))
        return table(columns, [list(row) for row in rows])


def _flat_row(row: Privacy) -> dict[str, Any]:
    flat: dict[str, Any] = {"owners": row.owners}
    views = row._document["views"]
    if "release" in views:
        release = row.release
        upper, lower = (None, None) if release is None else (release.upper, release.lower)
        flat["epsilon"], flat["delta"] = (row.epsilon, upper) if row.delta is None else (upper, row.delta)
        flat["lower"], flat["closed"] = lower, row.closed
    else:
        flat["epsilon"], flat["delta"] = row.epsilon, row.delta
    for name in ("one_aggregator", "owners_alone"):
        if name in views:
            found = getattr(row, name)
            flat[name] = None if found is None else found.upper
    if "linked" in views:
        flat["linked"] = row.linked
    return flat


def _cell(value: Any) -> str:
    return claim(value) if value is None or isinstance(value, float) else str(value)
