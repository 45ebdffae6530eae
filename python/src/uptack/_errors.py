"""The package's exception."""

from __future__ import annotations

from typing import Optional


class UptackError(ValueError):
    """A request that cannot be satisfied.

    ``kind`` says what is at fault (``syntax``, ``parameter``, ``law``, ``card``, ``input``, ``counts``, ``request`` or
    ``coins``); ``hint`` says what to do about it, if known.
    """

    def __init__(self, message: str, kind: str = "request", hint: Optional[str] = None) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.message = message
        self.kind = kind
        self.hint = hint

    def __reduce__(self) -> tuple[type[UptackError], tuple[str, str, Optional[str]]]:
        return type(self), (self.message, self.kind, self.hint)
