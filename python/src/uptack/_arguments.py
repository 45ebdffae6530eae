"""Checks of arguments. Errors name the argument, the expected value and, where possible, what to do."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Iterable, Optional, Sequence, SupportsIndex, Union

from ._errors import UptackError

if TYPE_CHECKING:
    from decimal import Decimal
    from fractions import Fraction

    import numpy as np
    import numpy.typing as npt

    from typing import Callable, Literal

    #: A whole number: a Python integer, or one of numpy.
    Whole = SupportsIndex
    #: A number: of Python, or one of numpy.
    Real = Union[int, float, np.integer[Any], np.floating[Any]]
    #: A number that keeps its digits: 0.1 is one tenth, "1/3" a third.
    Exact = Union[Real, str, Fraction, Decimal]
    #: Several numbers.
    Many = Union[Sequence[Real], npt.NDArray[Any], range]
    #: A function that is told how much is done, and of how much; 0 if that is not known.
    Progress = Callable[[int, int], object]

    Interval = Literal["auto", "exact", "mid-p", "score"]
    Sharing = Literal["bonferroni", "sidak"]
    Noise = Literal["aggregators", "none", "any"]
    Trust = Literal["one-aggregator", "owners"]
    Unknown = Literal["error", "epsilon", "owners"]
    Form = Literal["one", "several", "any"]
    Objective = Literal["sd", "paper"]
    Over = Literal["worst", "mean"]
    View = Literal["answers", "linked", "one_aggregator", "release", "owners_alone", "answers_with_release"]

#: Larger than any crowd.
LARGEST = 2**63


def exact(name: str, value: Any) -> str:
    """A number as text that keeps its digits."""
    value = _plain(value)
    if isinstance(value, bool):
        raise TypeError(f"{name}: expected a number, got {value!r}")
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise UptackError(f"{name}: {value} is not a number that can be used")
        return repr(value)
    if isinstance(value, (int, str)):
        return str(value)
    if hasattr(value, "numerator") and hasattr(value, "denominator"):
        return f"{value.numerator}/{value.denominator}"
    if type(value).__name__ == "Decimal":
        return str(value)
    raise TypeError(f"{name}: expected a number, a fraction or a text such as '1/3', got {type(value).__name__}")


def whole(name: str, value: Any, least: int = 0) -> int:
    """An integer from ``least`` to ``LARGEST``."""
    if isinstance(value, bool):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        hint = "; write 10**6 or int(1e6)" if isinstance(value, float) else ""
        raise TypeError(f"{name}: expected a whole number, got {type(value).__name__}{hint}") from None
    if not least <= number <= LARGEST:
        raise UptackError(f"{name}: {number} is not between {least} and 2**63")
    return number


def optional_whole(name: str, value: Any, least: int = 0) -> Optional[int]:
    """The same where nothing may be said."""
    return None if value is None else whole(name, value, least)


def real(name: str, value: Any) -> float:
    """A number."""
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name}: expected a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        raise UptackError(f"{name}: {value} is too large") from None
    if number != number:
        raise UptackError(f"{name}: NaN is not a number")
    return number


def optional_real(name: str, value: Any) -> Optional[float]:
    """The same where nothing may be said."""
    return None if value is None else real(name, value)


def word(name: str, value: Any) -> str:
    """A word or a text."""
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected a text, got {type(value).__name__}")
    return value


def optional_word(name: str, value: Any) -> Optional[str]:
    """The same where nothing may be said."""
    return None if value is None else word(name, value)


def listener(value: Any) -> Any:
    """A callback for progress, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"progress: expected a function of (done, total), got {type(value).__name__}")
    return value


def truths(values: Any) -> npt.NDArray[np.bool_]:
    """One truth per owner."""
    array: npt.NDArray[Any] = _array("truths", values)
    if array.dtype == bool or array.size == 0:
        return array.astype(bool)
    if _has_missing(array):
        # `values == 1` would make them a no, and nobody would notice.
        raise UptackError(
            "truths: some values are missing (None or NaN)",
            "input",
            "leave these owners out, values[values.notna()], or decide what they answer, values.fillna(False)",
        )
    if array.dtype == object and all(type(value).__name__ in ("bool", "bool_") for value in array):
        return array.astype(bool)
    raise TypeError(f"truths: expected an array of bool, got {array.dtype}; (values == 1) makes one of numbers")


def _has_missing(array: Any) -> bool:
    """Whether an array contains None, NaN, or what pandas has for them."""
    if array.dtype.kind in "fcmM":
        return bool((array != array).any())
    if array.dtype != object:
        return False
    return any(
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
        for value in array
    )


def counts(values: Any, size: int, name: str = "counts", cells: str = "cells") -> list[int]:
    """A count for each of ``size`` cells, or options."""
    if isinstance(values, (list, tuple)):
        numbers = [whole(f"{name}[{index}]", value) for index, value in enumerate(values)]
    else:
        array = _array(name, values)
        if array.dtype == bool:
            raise TypeError(f"{name}: expected an array of whole numbers, got truths; privatize and count them first")
        if array.dtype.kind not in "iu":
            raise TypeError(f"{name}: expected an array of whole numbers, got {array.dtype}; np.bincount makes one of cells")
        numbers = array.tolist()
        for index, number in enumerate(numbers):
            if not 0 <= number <= LARGEST:
                raise UptackError(f"{name}[{index}]: {number} is not between 0 and 2**63", "counts")
    if len(numbers) != size:
        raise _wrong_number(name, numbers, size) if cells == "cells" else _other_options(name, len(numbers), size)
    return numbers


def _wrong_number(name: str, numbers: list[int], size: int) -> UptackError:
    count = f"np.bincount(cells, minlength={size})"
    if len(numbers) > size and max(numbers) < size:
        words = f"{name}: {len(numbers)} numbers below {size} look like the cells of {len(numbers)} owners, not like counts"
        return UptackError(words, "counts", f"count them first: {count}")
    hint = count if len(numbers) < size else "are they of another mechanism?"
    return UptackError(f"{name}: {len(numbers)} counts for {size} cells", "counts", hint)


def _other_options(name: str, found: int, size: int) -> UptackError:
    return UptackError(f"{name}: {found} counts for {size} options", "counts", "tally(reports) counts what privatize returned")


def rows(values: Any, names: Sequence[str], name: str = "counts") -> list[Any]:
    """One row of counts per query; the columns of a table are the cells, by name or by number."""
    if hasattr(values, "columns") and hasattr(values, "to_numpy"):
        labels = list(values.columns)
        cells: list[Any] = list(names)
        if sorted(map(str, labels)) != sorted(cells):
            cells = list(range(len(names)))
        try:
            return list(values[cells].to_numpy())
        except KeyError:
            hint = "one row per query, one column per cell: " + ", ".join(map(repr, names)) + f", or 0 to {len(names) - 1}"
            raise UptackError(f"{name}: the columns {labels} are not the channel's cells", "counts", hint) from None
    if isinstance(values, (str, bytes)) or hasattr(values, "items") or not isinstance(values, Iterable):
        raise TypeError(f"{name}: expected one row of counts per query, got {type(values).__name__}")
    listed = list(values)
    if listed and all(isinstance(value, SupportsIndex) and getattr(value, "ndim", 0) == 0 for value in listed):
        raise TypeError(f"{name}: expected one row of counts per query, got one row; Channel.estimate takes a single row")
    return listed


def _array(name: str, values: Any) -> Any:
    import numpy

    if isinstance(values, (str, bytes, dict)) or values is None:
        raise TypeError(f"{name}: expected an array, got {type(values).__name__}")
    try:
        array = numpy.asarray(values)
    except (ValueError, TypeError) as error:
        raise TypeError(f"{name}: expected an array: {error}") from None
    if array.ndim != 1:
        hint = "estimate_many takes one row of counts per query" if name == "counts" and array.ndim == 2 else None
        raise UptackError(f"{name}: expected one dimension, got {array.ndim}", "request", hint)
    return array


def _plain(value: Any) -> Any:
    """A numpy scalar as a Python number."""
    if hasattr(value, "item") and hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0:
        return value.item()
    return value


def pair(name: str, value: Any) -> tuple[int, int]:
    """A number as a range of one, or the smallest and the largest number of a range."""
    if isinstance(value, range) and value.step == 1 and len(value) > 0:
        return whole(name, value[0]), whole(name, value[-1])
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        if len(value) != 2:
            raise UptackError(f"{name}: expected a number or a pair, got {len(value)} numbers")
        return whole(f"{name}[0]", value[0]), whole(f"{name}[1]", value[1])
    number = whole(name, value)
    return number, number


def is_many(value: Any) -> bool:
    """Whether there are several values: a sequence, or an array of one dimension."""
    return not isinstance(value, (str, bytes)) and hasattr(value, "__len__") and getattr(value, "ndim", 1) == 1


def words(name: str, value: Any) -> list[str]:
    """One word, or several."""
    if isinstance(value, str):
        return [value]
    try:
        return [word(f"{name}[{index}]", each) for index, each in enumerate(value)]
    except TypeError:
        raise TypeError(f"{name}: expected a text or several, got {type(value).__name__}") from None
