"""Axes along columns that are no plain numbers: dates, words, spans with their unit."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import gramian as gm

pytest.importorskip("matplotlib")

N = 30


def drawn(made, column, y):
    """The axis along one column, after it was drawn; with the words at its ticks."""
    figure = made.fit(pd.DataFrame({"when": column}), y).plot()
    figure.draw_without_rendering()
    axis = figure.axes[-1].xaxis
    return axis, [label.get_text() for label in axis.get_ticklabels()]


@pytest.mark.parametrize("made", [gm.GPRegressor(optimize=False), gm.GPClassifier(optimize=False)])
def test_dates_stand_at_the_ticks(made):
    y = np.arange(N) % 2 if isinstance(made, gm.GPClassifier) else np.sin(np.arange(N))
    for step, words, offset in (
        ("90D", {"2016", "2018"}, ""),
        ("2D", {"Jan", "Feb"}, "2015"),
        ("20min", {"04:00", "06:00"}, "2015-Jan-01"),
    ):
        axis, labels = drawn(made, pd.date_range("2015-01-01", periods=N, freq=step), y)
        assert words <= set(labels), labels
        assert offset in axis.get_offset_text().get_text()
        assert 3 <= len(labels) <= 9


def test_a_tick_stands_where_its_date_is():
    """Years count 365.2425 days, and dates of the calendar lie where they lie."""
    days = pd.date_range("2001-01-01", periods=N, freq="200D")
    axis, labels = drawn(gm.GPRegressor(optimize=False), days, np.sin(np.arange(N)))
    at = dict(zip(labels, axis.get_ticklocs(), strict=True))
    years = [label for label in labels if label.isdecimal() and len(label) == 4]
    assert len(years) > 2
    for year in years:
        since = (pd.Timestamp(f"{year}-01-01") - days[0]).days
        assert at[year] == pytest.approx(since / 365.2425, abs=1e-9)


def test_words_and_spans_have_their_names():
    y = np.sin(np.arange(N))
    _, labels = drawn(gm.GPRegressor(optimize=False), np.arange(N) % 2 == 0, y)
    assert labels == ["false", "true"]
    ranks = pd.Categorical(["low", "mid", "high"] * 10, ["low", "mid", "high"], ordered=True)
    _, labels = drawn(gm.GPRegressor(optimize=False), ranks, y)
    assert labels == ["low", "mid", "high"]
    axis, _ = drawn(gm.GPRegressor(optimize=False), pd.to_timedelta(np.arange(N), unit="h"), y)
    assert axis.get_label_text() == "when (hours)"


def test_an_output_without_a_name_is_called_by_its_number():
    figure = gm.GPRegressor(optimize=False).fit(np.arange(9.0)[:, None], np.ones((9, 2))).plot(output=1)
    assert figure.axes[0].get_ylabel() == "y, output 1"


def test_long_names_stand_in_lines_within_their_axes():
    """Of the target beside each row of panels, and of columns that differ in the middle."""
    names = [f"measurement of sensor {k} in the northern hall (°C)" for k in range(5)]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(N, 5)), columns=names)
    y = pd.Series(X.sum(axis=1), name="electrical consumption of the whole building, in kWh a square metre")
    gp = gm.GPRegressor("rbf", optimize=False).fit(X, y)
    for figure in (gp.plot(), gp.plot_residuals()):
        figure.draw_without_rendering()
        for axes in figure.axes:
            room, beside = axes.bbox, axes.yaxis.label.get_window_extent()
            assert beside.height <= room.height
            label = axes.xaxis.label.get_text().replace("\n", " ")
            assert label in names or label.startswith("foretold electrical")
    # bars with their names and the name of their axis lie within the picture
    figure = gp.plot_relevance()
    figure.draw_without_rendering()
    label = figure.axes[0].xaxis.label.get_window_extent()
    assert label.x0 >= 0
    assert label.x1 <= figure.bbox.width


def test_many_categories_do_not_overlap():
    towns = np.array([f"municipality no. {k}" for k in range(40)])[np.arange(80) % 40]
    X = pd.DataFrame({"town": towns, "area": np.linspace(0, 1, 80)})
    figure = gm.GPRegressor("rbf", optimize=False).fit(X, np.sin(np.arange(80))).plot()
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert len(boxes) >= 13  # every third town at least has its name
    assert all(a.x1 <= b.x0 + 1 for a, b in pairwise(boxes))


def test_a_single_row_has_a_band_around_it():
    figure = gm.GPRegressor("rbf", optimize=False, noise=0.1).fit([[5.0]], [1.0]).plot()
    assert np.ptp(figure.axes[0].lines[0].get_xdata()) == 2
