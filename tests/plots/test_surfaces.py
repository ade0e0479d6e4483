"""Pictures of a model after its rows: the evidence over two parameters, and covariances before and after."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from gramian.plots import plot_covariance, plot_evidence

X = np.array([[-2.0], [-1.0], [0.5], [2.0]])
Y = np.array([0.3, -0.4, 0.8, 0.1])
POST = gm.GP(1.5 * gm.RBF(0.8), noise=0.1, mean=0.3).condition(X, Y)
RANGES = {"kernel.lengthscale": (0.2, 5.0), "noise": (0.01, 1.0)}


def test_the_surface_is_the_evidence(monkeypatch):
    from matplotlib.axes import Axes

    drawn = []
    whole = Axes.contourf
    monkeypatch.setattr(Axes, "contourf", lambda self, *a, **k: drawn.append(a) or whole(self, *a, **k))
    figure = plot_evidence(POST, "kernel.lengthscale", "noise", ranges=RANGES, n_points=4)
    (x, y, heights, levels), axis = drawn[0], figure.axes[0]
    assert_allclose(x, np.geomspace(0.2, 5.0, 4))
    assert_allclose(y, np.geomspace(0.01, 1.0, 4))
    for i, noise in enumerate(y):
        for j, length in enumerate(x):
            value = POST.log_evidence({"kernel.lengthscale": length, "noise": noise})
            assert_allclose(heights[i, j], value, rtol=1e-10)
    assert_allclose(levels[-1], heights.max())
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")
    assert axis.get_xlabel() == "kernel.lengthscale"
    (cross,) = axis.lines
    assert_allclose(cross.get_xydata(), [[0.8, 0.1]])


def test_a_surface_of_an_estimator_has_names_of_columns_and_finds_its_range():
    table = pd.DataFrame({"temp": X[:, 0], "rain": X[::-1, 0] ** 2})
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), noise=0.1, optimize=False, normalize_y=False).fit(table, Y)
    figure = plot_evidence(gp, "kernel.lengthscale[rain]", "mean.value", n_points=5)
    axis = figure.axes[0]
    assert axis.get_xlabel() == "kernel.lengthscale[rain]"
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "linear")  # a mean may be negative
    low, high = axis.get_xlim()
    assert low < 1.0 < high
    by_number = plot_evidence(gp, "kernel.lengthscale[1]", "noise", n_points=2)
    assert by_number.axes[0].get_xlabel() == "kernel.lengthscale[rain]"


def test_what_is_no_surface():
    with pytest.raises(ParameterError, match=r"no parameter 'noisy' to move\. There are kernel\.scale"):
        plot_evidence(POST, "noise", "noisy")
    with pytest.raises(ParameterError, match="given twice"):
        plot_evidence(POST, "noise", "noise")
    with pytest.raises(ParameterError, match="which is not drawn"):
        plot_evidence(POST, "noise", "kernel.scale", ranges={"mean.value": (0, 1)})
    several = gm.GPClassifier(multiclass="ovr", optimize=False).fit(np.arange(6.0)[:, None], [0, 1, 2] * 2)
    with pytest.raises(ParameterError, match="ask one of estimators_"):
        plot_evidence(several, "kernel.scale", "kernel.lengthscale")


def test_covariances_before_and_after():
    figure = plot_covariance(POST)
    before, after, _ = figure.axes  # and the bar of colours
    t = np.linspace(-2, 2, 201)[:, None]
    assert_allclose(before.images[0].get_array(), POST.prior.cov(t), atol=1e-12)
    assert_allclose(after.images[0].get_array(), POST.cov(t), atol=1e-12)
    assert before.images[0].get_clim() == after.images[0].get_clim()
    assert_allclose(after.lines[0].get_xdata(), X[:, 0])
    assert before.get_xlabel() == "x0"


def test_covariances_along_a_column_by_name():
    table = pd.DataFrame({"temp": X[:, 0], "rain": X[::-1, 0] ** 2})
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), noise=0.1, optimize=False).fit(table, Y)
    axes = Figure().subplots(1, 2)
    assert plot_covariance(gp, column="rain", ax=axes) is axes[0].figure
    assert axes[1].get_xlabel() == "rain"
    t = np.linspace(table["rain"].min(), table["rain"].max(), 201)
    at = pd.DataFrame({"temp": np.full(201, np.median(X)), "rain": t})
    cov = gp.predict(at, target="f", return_cov=True)[1]
    assert_allclose(axes[1].images[0].get_array(), cov, atol=1e-10)
    with pytest.raises(ParameterError, match="There are 2 pictures, but ax has 1 axes"):
        plot_covariance(gp, ax=axes[:1])
    with pytest.raises(ParameterError, match="output=1 does not exist"):
        plot_covariance(gp, output=1)
    words = pd.DataFrame({"site": ["a", "b", "a", "b"], "temp": X[:, 0]})
    gp = gm.GPRegressor(optimize=False).fit(words, Y)
    with pytest.raises(ParameterError, match="site has categories"):
        plot_covariance(gp, column="site")
