"""Mistakes that would give a wrong answer are refused, with what to do instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import uptack as up

CHANNEL = up.Channel("normal-form(f=0.5, r=0.01)")
COUNTS = [100, 400, 500]


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, np.nan, 0.0]),
        np.array([True, None, False], dtype=object),
        pd.Series([True, None, False]),
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([1, None, 0], dtype="Int64"),
        [True, float("nan")],
        pd.Series(["2024-01-01", None]).astype("datetime64[ns]"),
    ],
)
def test_missing_values_are_not_a_no(values: Any) -> None:
    with pytest.raises(up.UptackError, match="missing") as raised:
        CHANNEL.privatize(values)
    assert raised.value.hint is not None and "fillna(False)" in raised.value.hint and "== 1" not in raised.value.hint


def test_values_without_missing_ones_get_the_hint_that_makes_them_truths() -> None:
    with pytest.raises(TypeError, match=r"\(values == 1\)"):
        CHANNEL.privatize(np.array([0, 1, 1]))
    assert len(CHANNEL.privatize(pd.Series([True, False], dtype=object))) == 2
    assert len(CHANNEL.privatize(pd.Series([True, False], dtype="boolean"))) == 2


def test_cells_are_not_counts() -> None:
    cells = CHANNEL.privatize(np.zeros(1000, dtype=bool))
    for values in (cells, list(cells), pd.Series(cells)):
        with pytest.raises(up.UptackError, match="look like the cells of 1000 owners") as raised:
            CHANNEL.estimate(values)
        assert raised.value.hint == "count them first: np.bincount(cells, minlength=3)"
    with pytest.raises(TypeError, match="privatize and count them first"):
        CHANNEL.estimate(np.zeros(1000, dtype=bool))


def test_a_table_has_a_column_for_each_cell() -> None:
    names = [cell.name for cell in CHANNEL.cells]
    rows = [COUNTS, [200, 300, 500]]
    expected = [estimate.to_dict() for estimate in up.estimate_many(CHANNEL, rows)]
    for frame in (pd.DataFrame(rows, columns=names), pd.DataFrame(rows), pd.DataFrame(rows, columns=names)[names[::-1]]):
        assert [estimate.to_dict() for estimate in up.estimate_many(CHANNEL, frame)] == expected
    with pytest.raises(up.UptackError, match="are not the channel's cells") as raised:
        up.estimate_many(CHANNEL, pd.DataFrame(rows, columns=["a", "b", "c"]))
    assert raised.value.hint is not None and names[0] in raised.value.hint
    with pytest.raises(up.UptackError, match="are not the channel's cells"):
        up.estimate_many(CHANNEL, pd.DataFrame(rows)[[0, 1]])


def test_one_row_is_not_many() -> None:
    for row in (COUNTS, np.array(COUNTS)):
        with pytest.raises(TypeError, match="Channel.estimate takes a single row"):
            up.estimate_many(CHANNEL, row)
    with pytest.raises(TypeError, match="one row of counts per query"):
        up.estimate_many(CHANNEL, {"a": COUNTS})
    with pytest.raises(up.UptackError, match="one dimension") as raised:
        CHANNEL.estimate(np.array([COUNTS, COUNTS]))
    assert raised.value.hint is not None and "estimate_many" in raised.value.hint
