"""Charts: what is asked for is what is written, and their data are at hand."""

from __future__ import annotations

import pathlib
import pickle
import sys

import pandas as pd
import pytest
import uptack as up

figure = pytest.importorskip("matplotlib.figure")


@pytest.fixture(scope="module")
def plan() -> up.Plan:
    return up.plan(owners=2000, yes=100, epsilon=1, linked_epsilon=6, noise="aggregators")


@pytest.fixture(scope="module")
def chart(plan: up.Plan) -> up.Chart:
    return plan.chart()


def test_a_file_is_what_its_name_says(chart: up.Chart, tmp_path: pathlib.Path) -> None:
    for name, start in (("plan.svg", b"<svg"), ("plan.png", b"\x89PNG\r\n"), ("PLAN.PDF", b"%PDF-")):
        chart.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    for name in ("plan.jpeg", "plan", "plan.svg.gz", "plan.csv"):
        with pytest.raises(up.UptackError, match=r"written as \.svg, \.png or \.pdf"):
            chart.save(tmp_path / name)
        assert not (tmp_path / name).exists()


def test_without_matplotlib_it_says_what_to_do(
    chart: up.Chart, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(up.UptackError, match="not installed") as raised:
        chart.save(tmp_path / "plan.png")
    assert raised.value.hint is not None and ".svg" in raised.value.hint
    chart.save(tmp_path / "plan.svg")


def test_the_data_are_columns(plan: up.Plan, chart: up.Chart) -> None:
    frame = pd.DataFrame(chart.data)
    assert list(frame) == ["chart", "series", "x", "y"] and set(frame["chart"]) == set(chart.titles)
    ring = frame[frame["series"] == "the plan"]
    assert len(ring) == len(chart.titles) and (ring["y"] == plan.sd).all()
    by_owners = frame[frame["chart"] == "Error against the number of owners"]
    families = [name for name in by_owners["series"].unique() if name != "the plan"]
    assert families and all(len(by_owners[by_owners["series"] == name]) > 2 for name in families)
    # The plan is the best of its family where it stands, within the accuracy of the charts.
    here = by_owners[(by_owners["x"] == 2000) & (by_owners["series"] != "the plan")]["y"].min()
    assert here == pytest.approx(plan.sd, rel=0.02)


def test_charts_draw_on_axes_of_others(chart: up.Chart) -> None:
    axes = figure.Figure().subplots()
    assert chart.plot(axes, which=1) == [axes]
    assert axes.get_xlabel() == "owners" and axes.get_xscale() == "log"
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels[-1] == "the plan" and len(labels) >= 2
    several = figure.Figure().subplots(len(chart.titles))
    assert chart.plot(several) == list(several)
    assert len(chart.plot()) == len(chart.titles)
    with pytest.raises(up.UptackError, match="counted from 0"):
        chart.plot(axes, which=9)
    with pytest.raises(up.UptackError, match="1 axes for"):
        chart.plot([axes])


def test_a_chart_is_pickled_with_its_data(chart: up.Chart) -> None:
    again = pickle.loads(pickle.dumps(chart))
    assert again == chart and again.data == chart.data
