"""What all results have in common."""

from __future__ import annotations

import json
from typing import Any, Iterable, NamedTuple, Optional

from . import _core


class Bounds(NamedTuple):
    """A number that is certified to be between two others. The upper one is what may be claimed."""

    lower: float
    upper: float


class Result:
    """A frozen document. ``to_dict`` gives all of it: what the command line prints with ``--json``."""

    __slots__ = ("_document",)
    _document: dict[str, Any]

    def __init__(self, document: dict[str, Any]) -> None:
        object.__setattr__(self, "_document", document)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain Python objects, which are yours to change."""
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
        """The names and values that people want to see."""
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
        """How many owners it is about."""
        return int(self._document["owners"])

    @property
    def mechanism(self) -> str:
        """The mechanism that it is about."""
        return str(self._document["mechanism"])


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of HTML."""
    from html import escape

    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def bounds(document: Optional[dict[str, Any]], name: str) -> Optional[Bounds]:
    """The certified ends of a number in a document; none where there is no guarantee."""
    ends = None if document is None else document[name]
    return None if ends is None else Bounds(ends["lower"], ends["upper"])


def claim(value: Optional[float]) -> str:
    """A claim for people: rounded up; ``none`` where there is no guarantee."""
    return _core.claim(value)


def nearest(value: Optional[float]) -> str:
    """A number for people."""
    return "none" if value is None else _core.nearest(value)
