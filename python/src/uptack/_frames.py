"""Tables of other packages, which are imported only if somebody asks for one."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Optional

from ._errors import UptackError

if TYPE_CHECKING:
    from typing import Literal

    FrameLibrary = Literal["pandas", "polars"]

_LIBRARIES = ("pandas", "polars")


def frame(columns: dict[str, list[Any]], library: Optional[str]) -> Any:
    """The columns as a DataFrame of a library, by default of the first one that is installed."""
    if library is not None and library not in _LIBRARIES:
        raise UptackError(f"library: {library!r} is unknown", "request", "it is one of pandas, polars")
    for name in _LIBRARIES if library is None else (library,):
        try:
            module = import_module(name)
        except ImportError:
            continue
        return module.DataFrame(columns)
    if library is None:
        raise UptackError("neither pandas nor polars is installed", "request", "pip install pandas, or use columns")
    raise UptackError(f"{library} is not installed", "request", f"pip install {library}, or use columns")
