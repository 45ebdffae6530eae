"""Owners' options as arrays of indices. No error repeats a truth; it says where it stands, and what the nearest option is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from . import _core
from ._errors import UptackError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: No option, in arrays.
NONE = -1


def indices(asked: _core.Contributions, truths: Any) -> npt.NDArray[np.int64]:
    """One row per owner with the indices of its options, and -1 where there is none."""
    array = _whole_numbers(truths)
    if array is None:
        return _one_by_one(asked, truths)
    rows = array.reshape(len(array), -1)
    _check_range(asked, rows, array.ndim)
    if rows.shape[1] > 1 or not asked.is_choice:
        _check_several(asked, rows)
    return rows


def _whole_numbers(truths: Any) -> Optional[npt.NDArray[np.int64]]:
    """The truths if they are an array of whole numbers of one or two dimensions; None if they have to be read one by one."""
    import numpy

    if isinstance(truths, (str, bytes, dict)) or truths is None or not hasattr(truths, "__len__"):
        raise TypeError(f"truths: expected an array, got {type(truths).__name__}")
    if not hasattr(truths, "dtype"):
        plain = all(isinstance(truth, int) and not isinstance(truth, bool) for truth in truths)
        if not plain or len(truths) == 0:
            return None
    try:
        array = numpy.asarray(truths)
    except (ValueError, TypeError, OverflowError) as error:
        raise TypeError(f"truths: expected an array: {error}") from None
    if array.ndim not in (1, 2):
        raise UptackError(f"truths: expected one or two dimensions, got {array.ndim}")
    if array.dtype.kind not in "iu":
        if array.dtype == bool or array.dtype.kind == "c":
            raise TypeError(f"truths: expected options by index or by name, got {array.dtype}")
        return None
    if array.dtype.kind == "u":
        # What does not fit into an int64 must not become negative, which would mean none.
        array = numpy.minimum(array, array.dtype.type(min(numpy.iinfo(array.dtype).max, 2**62)))
    return numpy.asarray(array.astype(numpy.int64))


def _check_range(asked: _core.Contributions, rows: npt.NDArray[np.int64], dimensions: int) -> None:
    import numpy

    least = 0 if asked.is_choice else NONE
    bad = numpy.argwhere((rows < least) | (rows >= len(asked.names)))
    if len(bad) > 0:
        place = f"{bad[0][0]}" if dimensions == 1 else f"{bad[0][0]}, {bad[0][1]}"
        raise _not_an_option(asked, place)


def _check_several(asked: _core.Contributions, rows: npt.NDArray[np.int64]) -> None:
    """Refuses an owner with more options than it can have, with none if it must have one, or with one of them twice."""
    import numpy

    given = (rows != NONE).sum(axis=1)
    wrong = given != 1 if asked.is_choice else given > asked.most
    if wrong.any():
        owner = int(numpy.argmax(wrong))
        raise _wrong_number(asked, owner, int(given[owner]))
    ordered = numpy.sort(rows, axis=1)
    twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NONE)).any(axis=1)
    if twice.any():
        raise UptackError(f"truths[{int(numpy.argmax(twice))}]: an option appears twice", "input")


def _not_an_option(asked: _core.Contributions, place: str) -> UptackError:
    hint = f"indices are from 0 to {len(asked.names) - 1}"
    if not asked.is_choice:
        hint += ", and -1 is none"
    return UptackError(f"truths[{place}]: not an option", "input", hint)


def _wrong_number(asked: _core.Contributions, owner: int, given: int) -> UptackError:
    most = "exactly 1" if asked.is_choice else f"at most {asked.most}"
    return UptackError(f"truths[{owner}]: {given} options, but an owner has {most}", "input")


def _one_by_one(asked: _core.Contributions, truths: Any) -> npt.NDArray[np.int64]:
    """Truths that are names, or lists of them."""
    import numpy

    known = {name: index for index, name in enumerate(asked.names)}
    # Plain texts of Python: those of numpy take many times as long to look up.
    truths = truths.tolist() if hasattr(truths, "tolist") else list(truths)
    try:
        return numpy.array([known[truth] for truth in truths], dtype=numpy.int64).reshape(-1, 1)
    except (KeyError, TypeError):
        # Not all of them are names by the letter; read each of them with care, and say which one is wrong.
        pass
    rows = [_owner(asked, known, owner, truth) for owner, truth in enumerate(truths)]
    width = max((len(row) for row in rows), default=1) or 1
    padded = [row + [NONE] * (width - len(row)) for row in rows]
    return numpy.array(padded, dtype=numpy.int64).reshape(-1, width)


def _owner(asked: _core.Contributions, known: dict[str, int], owner: int, truth: Any) -> list[int]:
    """The options of one owner."""
    several = isinstance(truth, (list, tuple, set, frozenset)) or getattr(truth, "ndim", 0) == 1
    parts = list(truth) if several else [truth]
    places = [f"{owner}, {place}" if several else str(owner) for place in range(len(parts))]
    found = [_option(asked, known, place, part) for place, part in zip(places, parts)]
    options = [option for option in found if option != NONE]
    if len(options) > asked.most or (asked.is_choice and len(options) != 1):
        raise _wrong_number(asked, owner, len(options))
    if len(set(options)) < len(options):
        raise UptackError(f"truths[{owner}]: an option appears twice", "input")
    return options


def _option(asked: _core.Contributions, known: dict[str, int], place: str, truth: Any) -> int:
    """The index of an option that is named, or given by its index."""
    if isinstance(truth, str):
        return known[truth] if truth in known else _named(asked, known, place, truth)
    if is_missing(truth):
        hint = "leave this owner out, or give it an option" if asked.is_choice else 'write "none" for no contribution'
        raise UptackError(f"truths[{place}]: the value is missing (None or NaN)", "input", hint)
    if is_bool(truth) or not hasattr(truth, "__index__"):
        raise TypeError(f"truths[{place}]: expected an option by index or by name, got {type(truth).__name__}")
    index = int(truth.__index__())
    if not (0 if asked.is_choice else NONE) <= index < len(asked.names):
        raise _not_an_option(asked, place)
    return index


def _named(asked: _core.Contributions, known: dict[str, int], place: str, text: str) -> int:
    """The option of a text that is not exactly its name. What was found is remembered."""
    if not asked.is_choice and text.strip().lower() == "none":
        return NONE
    try:
        index = asked.index(text)
    except UptackError as error:
        raise UptackError(f"truths[{place}]: {error.message}", "input", error.hint) from None
    known[text] = index
    return index


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or what pandas has for them."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)


def is_bool(value: Any) -> bool:
    """Whether a value is a truth value of Python or of numpy."""
    return type(value).__name__ in ("bool", "bool_")


def binned(asked: _core.Contributions, values: Any) -> npt.NDArray[np.int64]:
    """The options of numbers, one row per owner; a missing number is an option of its own."""
    import numpy

    if isinstance(values, (str, bytes, dict)) or values is None:
        raise TypeError(f"truths: expected an array of numbers, got {type(values).__name__}")
    array = numpy.asarray(values)
    if array.ndim != 1:
        raise UptackError(f"truths: expected one dimension, got {array.ndim}")
    if array.dtype.kind not in "iuf":
        # An array of numbers and texts has turned the numbers into texts.
        listed = values if isinstance(values, (list, tuple)) else array
        array = numpy.array([_number(owner, value) for owner, value in enumerate(listed)], dtype=float)
    return numpy.array(asked.binned(array.astype(float)), dtype=numpy.int64).reshape(-1, 1)


def _number(owner: int, value: Any) -> float:
    if is_missing(value):
        return float("nan")
    if isinstance(value, (str, bytes)) or is_bool(value) or not hasattr(value, "__float__"):
        raise TypeError(f"truths[{owner}]: expected a number, or NaN for no value, got {type(value).__name__}")
    return float(value)


def counted(asked: _core.Contributions, reports: Any) -> tuple[int, list[int]]:
    """How many reports there are, and how many of them name each option."""
    import numpy

    array = numpy.asarray(reports)
    if array.size == 0 or array.dtype.kind not in "iu" or array.ndim not in (1, 2):
        raise TypeError("reports: expected the array that privatize returned")
    rows = numpy.sort(array.reshape(len(array), -1), axis=1)
    if rows.shape[1] > asked.most:
        raise UptackError(f"reports: {rows.shape[1]} options per owner, but an owner names at most {asked.most}", "counts")
    if rows.min() < NONE or rows.max() >= len(asked.names):
        words = f"reports: expected indices from 0 to {len(asked.names) - 1}, and -1"
        raise UptackError(words, "counts", "are they of another mechanism?")
    first = numpy.ones(rows.shape, dtype=bool)
    first[:, 1:] = rows[:, 1:] != rows[:, :-1]
    named = rows[first & (rows != NONE)]
    return len(rows), [int(count) for count in numpy.bincount(named, minlength=len(asked.names))]
