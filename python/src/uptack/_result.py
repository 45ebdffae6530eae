"""The base of all results."""

from __future__ import annotations

import json
from typing import Any, Iterable, NamedTuple, Optional

from . import _core


class Bounds(NamedTuple):
    """Certified bounds on a number. The upper one may be claimed."""

    lower: float
    upper: float


class Result:
    """An immutable document. ``to_dict`` returns all of it, as the command line prints it with ``--json``."""

    __slots__ = ("_document",)
    _document: dict[str, Any]

    def __init__(self, document: dict[str, Any]) -> None:
        object.__setattr__(self, "_document", document)

    def to_dict(self) -> dict[str, Any]:
        """A copy of the document as plain Python objects."""
        copy: dict[str, Any] = json.loads(json.dumps(self._document))
        return copy

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} cannot be deleted")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Result) and self._document == other._document

    def __hash__(self) -> int:
        return hash((type(self).__name__, json.dumps(self._document, sort_keys=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._document,)

    def _shown(self) -> list[tuple[str, str]]:
        """The names and values to show in ``repr`` and in notebooks."""
        return []

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value}" for name, value in self._shown())
        return f"{type(self).__name__}({parts})"

    def _repr_html_(self) -> str:
        return table(["", type(self).__name__], [[name, value] for name, value in self._shown()])


class AboutMechanism(Result):
    """A result about a mechanism and its owners."""

    __slots__ = ()

    @property
    def owners(self) -> int:
        """The number of owners."""
        return int(self._document["owners"])

    @property
    def mechanism(self) -> str:
        """The mechanism, as text."""
        return str(self._document["mechanism"])


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """An HTML table."""
    from html import escape

    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def bounds(document: Optional[dict[str, Any]], name: str) -> Optional[Bounds]:
    """The certified bounds of a number in a document; None if there is no guarantee."""
    ends = None if document is None else document[name]
    return None if ends is None else Bounds(ends["lower"], ends["upper"])


def claim(value: Optional[float]) -> str:
    """A claim as text, rounded up; ``none`` if there is no guarantee."""
    return _core.claim(value)


def nearest(value: Optional[float]) -> str:
    """A number as text, rounded to nearest."""
    return "none" if value is None else _core.nearest(value)
