"""Periods that are given as text, in the units of a column of dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.errors import ParameterError
from gramian.kernels.base import Column
from gramian.kernels.times import days_of


@pytest.mark.parametrize(
    ("text", "days"),
    [("1 year", 365.2425), ("year", 365.2425), ("2 weeks", 14.0), ("12 Hours", 0.5), ("1.5 days", 1.5)],
)
def test_periods_in_days(text, days):
    assert days_of(text) == pytest.approx(days, rel=1e-15)


@pytest.mark.parametrize("text", ["", "soon", "0 days", "-1 day", "1 fortnight"])
def test_what_is_no_period(text):
    with pytest.raises(ParameterError, match=r"is no period\. Write a number and a unit"):
        gm.Periodic(period=text)


@pytest.mark.parametrize(("unit", "expected"), [(365.2425, 1.0), (1.0, 365.2425), (1 / 24, 24 * 365.2425)])
def test_a_period_is_resolved_by_the_unit_of_its_column(unit, expected):
    kernel = 2.0 * gm.Periodic(1.3, "1 year").on("day") * gm.RBF(1.0).on("x") + gm.Cosine("1 year").on("day")
    columns = [Column("x"), Column("day", False, unit)]
    found = kernel.in_units(columns)
    periods = [p for name, p in found.parameters().items() if name.endswith("period")]
    assert [float(p.value) for p in periods] == pytest.approx([expected] * 2, rel=1e-12)
    assert not any(p.trainable for p in periods)
    assert found.in_units(columns) is found
    assert gm.parse_kernel(repr(kernel)) == kernel


def test_a_season_of_dates_is_found_whatever_the_span():
    days = pd.date_range("2001-01-01", "2015-12-31", freq="40D")
    season = np.sin(2 * np.pi * (days.day_of_year - 1) / 365.2425)
    frame = pd.DataFrame({"day": days})
    for rows in (slice(None), slice(0, 60)):  # years, then days
        gp = gm.GPRegressor(gm.Periodic(period="1 year").on("day"), noise=1e-3, optimize=False)
        gp.fit(frame[rows], season[rows])
        # leap years shift the day of the year against the average one, by 0.02
        np.testing.assert_allclose(gp.predict(frame[rows]), season[rows], atol=0.05)
    assert "Periodic(period=fixed(1)).on('day')" in str(
        gm.GPRegressor(gp.kernel, optimize=False).fit(frame, season).kernel_
    )


def test_a_period_on_a_column_of_numbers_is_refused():
    with pytest.raises(ParameterError, match=r"column 'x0' holds no dates or times.*\.on\('date'\)"):
        gm.GPRegressor(gm.Periodic(period="1 year")).fit(np.arange(5.0)[:, None], np.arange(5.0))


def test_a_model_file_keeps_the_text_of_a_period(tmp_path):
    frame = pd.DataFrame({"day": pd.date_range("2001-01-01", periods=20)})
    gp = gm.GPRegressor(gm.Periodic(period="7 days").on("day"), optimize=False).fit(frame, np.arange(20.0))
    gp.save(tmp_path / "m.gm")
    loaded = gm.load(tmp_path / "m.gm")
    assert loaded.kernel == gp.kernel
    np.testing.assert_array_equal(loaded.predict(frame), gp.predict(frame))
