"""The plan: what each method takes, and what `auto` takes with its reason."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.errors import ParameterError
from gramian.gram import budget
from gramian.plan import Rates, calibrate, show_seconds


def test_a_table_with_every_engine():
    plan = gm.plan((2000, 4))
    assert {option.method.name for option in plan.options} == {"exact", "cg", "vfe", "fitc", "nystrom", "fourier"}
    assert plan.choice.method.name == "exact"
    text = str(plan)
    assert "2,000 rows, 4 columns" in text
    assert 'method="auto" takes exact' in text
    assert all(option.label in text for option in plan.options)


def test_shape_or_table():
    X = np.zeros((300, 2))
    assert gm.plan(X).rows == gm.plan((300, 2)).rows == 300
    for wrong in ((3,), (0, 2), np.zeros(3)):
        with pytest.raises(ParameterError, match="table or its shape"):
            gm.plan(wrong)


def test_kernels_without_a_spectrum_have_no_fourier_row():
    names = [option.method.name for option in gm.plan((1000, 2), gm.Linear()).options]
    assert "fourier" not in names


def test_memory_decides():
    small, large = gm.plan((10_000, 3), memory_limit="200MB"), gm.plan((10_000, 3), memory_limit="2GB")
    assert small.choice.method.name == "vfe"
    assert large.choice.method.name == "exact"
    exact = small.options[0]
    assert not exact.fits
    assert exact.why_not == "needs more memory"
    assert exact.bytes == pytest.approx(8 * 10_000**2, rel=0.1)
    assert all(option.bytes <= small.memory_limit for option in small.options if option.fits)


def test_time_decides():
    slow = gm.plan((30_000, 3), memory_limit="20GB", time_limit=5.0)
    assert slow.choice.method.name == "vfe"
    assert "takes too long" in slow.reason


def test_costs_grow_as_they_should():
    a, b = (gm.plan((n, 3), memory_limit="1TB").options[0] for n in (5_000, 10_000))
    assert b.bytes / a.bytes == pytest.approx(4, rel=0.2)  # and some tiles
    assert 4 < b.evaluation_seconds / a.evaluation_seconds < 9


def test_calibration_is_made_once():
    assert calibrate(3) is calibrate(3)
    rates = calibrate(3)
    assert rates.flops > 1e8
    assert rates.values > 1e5
    assert Rates(2.0, 4.0).seconds(gm.Exact().work(10, 1, 1)._replace(flops=4.0, values=4.0, slopes=0.0)) == pytest.approx(3.0)


def test_people_read_seconds():
    assert [show_seconds(s) for s in (0.001, 0.25, 90, 7200)] == ["< 0.01 s", "0.25 s", "1.5 min", "2 h"]
    assert budget.allowed("1GB") == 10**9
