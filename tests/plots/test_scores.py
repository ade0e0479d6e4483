"""Pictures of residuals and calibration show the numbers of left-out or given rows."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.sin(X[:, 0]) + 0.2 * RNG.normal(size=60)


@pytest.fixture(scope="module")
def gp():
    return gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), noise=0.04, optimize=False).fit(X, Y)


def test_residuals_are_those_of_left_out_rows(gp):
    figure = gp.plot_residuals()
    first, *along = figure.axes
    assert [axis.get_xlabel() for axis in figure.axes] == ["foretold y", "x0", "x1"]
    loo = gp.loo()
    dots = next(line for line in first.lines if line.get_marker() == "o")
    assert_allclose(dots.get_xdata(), loo.mean)
    assert_allclose(dots.get_ydata(), Y)
    z = (Y - loo.mean) / loo.std
    for j, axis in enumerate(along):
        dots = next(line for line in axis.lines if line.get_marker() == "o")
        assert_allclose(dots.get_xdata(), X[:, j])
        assert_allclose(dots.get_ydata(), z, atol=1e-8)


def test_calibration_counts_every_row_once(gp):
    pit, coverage = gp.plot_calibration(X[:40], Y[:40]).axes
    assert sum(bar.get_height() for bar in pit.patches) == 40
    line = next(line for line in coverage.lines if line.get_marker() == "o")
    promised, held = line.get_data()
    assert_allclose(held[promised.tolist().index(90.0)], 100 * gp.evaluate(X[:40], Y[:40])["coverage90"])


def test_labels_have_reliability():
    gp = gm.GPClassifier(4.0 * gm.RBF([1.0, 1.0]), optimize=False).fit(X, Y > 0)
    (axis,) = gp.plot_calibration().axes
    assert axis.get_xlabel() == "probability (%)"
    with pytest.raises(ParameterError, match="plot_calibration shows"):
        gp.plot_residuals()


def test_axes_and_columns_of_your_own(gp):
    axes = Figure().subplots(1, 2)
    assert gp.plot_residuals(along="x1", ax=axes) is axes[0].figure
    assert axes[1].get_xlabel() == "x1"
    with pytest.raises(ParameterError, match="There are 3 panels, but ax has 2 axes"):
        gp.plot_residuals(ax=axes)
    with pytest.raises(ParameterError, match="output=1 does not exist"):
        gp.plot_calibration(output=1)


def test_rows_that_cannot_be_left_out():
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), noise=0.04, method="cg", optimize=False).fit(X, Y)
    with pytest.raises(ParameterError, match=r"a solve for each\. Give X and y"):
        gp.plot_calibration()
    assert len(gp.plot_calibration(X[:30], Y[:30]).axes) == 2
