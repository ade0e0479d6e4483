"""Pictures show what the model predicts, say whether the band is of f or of y, and change nothing around
them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import gramian as gm
from gramian.errors import ParameterError
from gramian.plots import plot_predictions

Z95 = 1.959963984540054


@pytest.fixture(scope="module")
def series() -> tuple[gm.GPRegressor, pd.DataFrame]:
    X = pd.DataFrame({"hours": np.linspace(0, 4, 15)})
    return gm.GPRegressor(n_restarts=0, hyper="map").fit(X, 3 + np.sin(2 * X["hours"])), X


@pytest.fixture(scope="module")
def mixed() -> tuple[gm.GPRegressor, pd.DataFrame]:
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"a": rng.normal(size=21), "site": ["n", "s", "n"] * 7, "b": rng.normal(size=21)})
    return gm.GPRegressor(n_restarts=0).fit(X, X["a"] + (X["site"] == "s") + 0.1 * rng.normal(size=21)), X


def band(axis) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper edge of the band, at the points of the line."""
    x = axis.lines[0].get_xdata()
    vertices = next(c for c in axis.collections if "band" in c.get_label()).get_paths()[0].vertices
    pairs = [np.sort(vertices[vertices[:, 0] == at][:, 1]) for at in x]
    return np.array([pair[0] for pair in pairs]), np.array([pair[-1] for pair in pairs])


@pytest.mark.parametrize(
    ("target", "label"),
    [("y", "95 % band of a new observation y"), ("f", "95 % band of the function f, without noise")],
)
def test_line_band_and_data_are_the_models(series, target, label):
    gp, X = series
    figure = plot_predictions(gp, target=target, n_points=50)
    (axis,) = figure.axes
    x = axis.lines[0].get_xdata()
    assert (x[0], x[-1], len(x)) == (0, 4, 50)
    mean, std = gp.predict(pd.DataFrame({"hours": x}), return_std=True, target=target)
    np.testing.assert_allclose(axis.lines[0].get_ydata(), mean, rtol=1e-12)
    low, high = band(axis)
    np.testing.assert_allclose(low, mean - Z95 * std, rtol=1e-10)
    np.testing.assert_allclose(high, mean + Z95 * std, rtol=1e-10)
    points = axis.collections[0].get_offsets()
    np.testing.assert_allclose(points, np.column_stack([X["hours"], 3 + np.sin(2 * X["hours"])]))
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("hours", "y")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["data", label, "mean"]


@pytest.mark.parametrize("target", ["y", "f"])
def test_the_band_of_few_rows_is_that_of_the_average(target):
    X = pd.DataFrame({"hours": np.linspace(0, 4, 8)})
    gp = gm.GPRegressor().fit(X, np.sin(2 * X["hours"]))
    assert gp.fitted_.draws is not None
    (axis,) = plot_predictions(gp, target=target, n_points=50).axes
    points = pd.DataFrame({"hours": axis.lines[0].get_xdata()})
    shown = (axis.lines[0].get_ydata(), *band(axis))
    np.testing.assert_allclose(shown, gp.predict(points, interval=0.95, target=target), rtol=1e-9)


def test_the_rows_given_say_what_range_is_drawn(series):
    gp, _ = series
    axis = plot_predictions(gp, pd.DataFrame({"hours": [1.0, 9.0]}), ylabel="level").axes[0]
    x = axis.lines[0].get_xdata()
    assert (x[0], x[-1]) == (1, 9)
    assert axis.get_ylabel() == "level"


def test_a_transform_takes_all_to_other_units(series):
    gp, _ = series
    plain, taken = plot_predictions(gp).axes[0], plot_predictions(gp, transform=np.exp).axes[0]
    np.testing.assert_allclose(taken.lines[0].get_ydata(), np.exp(plain.lines[0].get_ydata()))
    for there, here in zip(band(taken), band(plain), strict=True):
        np.testing.assert_allclose(there, np.exp(here), rtol=1e-10)
    np.testing.assert_allclose(
        taken.collections[0].get_offsets()[:, 1], np.exp(plain.collections[0].get_offsets()[:, 1])
    )
    assert taken.lines[0].get_label() == "median"  # the exponential of a mean is not a mean


def test_several_columns_are_slices_at_the_medians(mixed):
    gp, X = mixed
    figure = plot_predictions(gp, n_points=30)
    assert [axis.get_xlabel() for axis in figure.axes] == ["a", "site", "b"]
    for name, axis in zip(("a", "b"), (figure.axes[0], figure.axes[2]), strict=True):
        x = axis.lines[0].get_xdata()
        # n is the more frequent category
        rows = pd.DataFrame({"a": X["a"].median(), "site": "n", "b": X["b"].median()}, index=range(30))
        rows[name] = x
        np.testing.assert_allclose(axis.lines[0].get_ydata(), gp.predict(rows), rtol=1e-10)
    sites = pd.DataFrame({"a": X["a"].median(), "site": ["n", "s"], "b": X["b"].median()})
    np.testing.assert_allclose(figure.axes[1].lines[0].get_ydata(), gp.predict(sites), rtol=1e-10)
    assert [text.get_text() for text in figure.axes[1].get_xticklabels()] == ["n", "s"]
    assert "mean, other columns at their medians" in [
        text.get_text() for text in figure.legends[0].get_texts()
    ]


def test_axes_of_ones_own(series, mixed):
    axis = Figure().subplots()
    assert plot_predictions(series[0], ax=axis, data=False) is axis.figure
    assert [text.get_text() for text in axis.get_legend().get_texts()] == [
        "95 % band of a new observation y",
        "mean",
    ]
    axes = Figure().subplots(1, 3)
    plot_predictions(mixed[0], ax=axes)
    assert all(axis.lines for axis in axes)
    with pytest.raises(ParameterError, match="3 columns, one panel each, but ax has 1"):
        plot_predictions(mixed[0], ax=axis)


def test_one_of_several_outputs():
    X = pd.DataFrame({"x": np.arange(8.0)})
    gp = gm.GPRegressor(n_restarts=0).fit(X, np.column_stack([np.sin(X["x"]), 10 + X["x"]]))
    axis = plot_predictions(gp, output=1).axes[0]
    expected = gp.predict(pd.DataFrame({"x": axis.lines[0].get_xdata()}))[:, 1]
    np.testing.assert_allclose(axis.lines[0].get_ydata(), expected, rtol=1e-12)
    with pytest.raises(ParameterError, match="output=2 does not exist: the model has 2"):
        plot_predictions(gp, output=2)


# Before a fit.


def test_before_a_fit_it_is_the_prior_that_is_drawn():
    gp = gm.GPRegressor(4.0 * gm.RBF(0.5), noise=0.25, mean="zero")
    figure = gp.plot()
    (axis,) = figure.axes
    mean, *draws = axis.lines
    x = mean.get_xdata()
    assert (x[0], x[-1]) == (-1.5, 1.5)  # three lengthscales to either side
    assert not np.any(mean.get_ydata())
    assert len(draws) == 5
    low, high = band(axis)
    np.testing.assert_allclose([low, high], np.array([[-Z95], [Z95]]) * np.sqrt(4.25) + np.zeros(len(x)))
    assert "before any data" in " ".join(text.get_text() for text in figure.legends[0].get_texts())
    low, high = band(gp.plot(target="f").axes[0])
    np.testing.assert_allclose(high, Z95 * 2.0)
    # a fit afterwards is drawn as any other
    assert gp.fit(np.arange(5.0)[:, None], np.arange(5.0)).plot().axes[0].get_ylabel() == "y"


def test_a_prior_has_the_columns_and_the_range_that_one_gives(mixed):
    figure = gm.GPRegressor().plot(mixed[1])  # the default kernel, with categories
    assert [axis.get_xlabel() for axis in figure.axes] == ["a", "site", "b"]
    figure = gm.GPRegressor(gm.RBF(2.0).on("age") + gm.Linear().on("bmi")).plot()
    assert [axis.get_xlabel() for axis in figure.axes] == ["age", "bmi"]
    assert [axis.lines[0].get_xdata()[-1] for axis in figure.axes] == [6, 3]
    assert len(gm.GPRegressor(gm.RBF([1.0, 2.0, 3.0])).plot().axes) == 3
    axis = gm.GPRegressor(likelihood=gm.Poisson()).plot([[0.0], [8.0]]).axes[0]
    assert (axis.lines[0].get_xdata()[-1], axis.get_ylabel()) == (8, "f")
    with pytest.raises(ParameterError, match="Give X, the rows whose range"):
        gm.GPRegressor(gm.RBF(1.0).on("age") + gm.RBF(1.0).on(0)).plot()


# What a person sees.


def test_a_season_is_drawn_as_often_as_it_comes():
    """400 points over 300 years are no picture of a yearly season: every year must have its top."""
    t = np.linspace(0, 300, 61)[:, None]
    gp = gm.GPRegressor(gm.Periodic(1.0, gm.fixed(1.0)), noise=1e-4, optimize=False)
    gp.fit(t + np.arange(61)[:, None] / 61, np.cos(2 * np.pi * np.arange(61) / 61))
    fine = gp.predict(np.linspace(0, 1, 1001)[:, None])
    for years, rtol in ((100, 0.01), (300, 0.2)):  # the last has fewer points than it needs, each year some
        line = gp.plot([[0.0], [years]], data=False).axes[0].lines[0]
        x, y = line.get_xdata(), line.get_ydata()
        assert len(x) <= 4000
        tops = np.array([y[(x >= k) & (x <= k + 1)].max() for k in range(years)])
        assert np.all(tops >= fine.max() - rtol * np.ptp(fine))
    assert len(gp.plot([[0.0], [1.0]]).axes[0].lines[0].get_xdata()) == 400


def test_axes_have_the_names_of_columns_and_targets(mixed):
    X = mixed[1]
    table = pd.DataFrame({"price": X["a"], "rent": X["b"]})
    gp = gm.GPRegressor(optimize=False).fit(X, table)
    assert gp.plot().axes[0].get_ylabel() == "price"
    assert gp.plot(output=1).axes[0].get_ylabel() == "rent"
    assert gp.plot(ylabel="euros").axes[0].get_ylabel() == "euros"


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_a_legend_is_inside_the_figure(d):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(12, d)), columns=[f"column {j}" for j in range(d)])
    figure = gm.GPRegressor(optimize=False).fit(X, X.sum(axis=1)).plot()
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.x1
    assert box.y1 <= figure.bbox.y1 + 1


def test_many_rows_do_not_hide_the_band():
    rng = np.random.default_rng(1)
    faint = []
    for n in (20, 600, 8000):
        X = rng.uniform(0, 1, (n, 1))
        gp = gm.GPRegressor(1.0 * gm.RBF(0.3), method=gm.Nystrom(5), optimize=False).fit(
            X, np.sin(5 * X[:, 0])
        )
        figure = gp.plot()
        dots = figure.axes[0].collections[0]
        faint.append((dots.get_alpha(), dots.get_sizes()[0]))
        assert (dots.get_zorder() < 2) == (n > 20)  # the band's
        assert len(dots.get_offsets()) == min(n, 5000)
    assert faint == sorted(faint, reverse=True)
    assert figure.legends[0].get_texts()[0].get_text() == "data (5,000 of 8,000 rows)"
    # a part of the range has the dots of that part, a forecast has all
    assert len(gp.plot([[0.25], [0.5]]).axes[0].collections[0].get_offsets()) == np.sum(
        (X > 0.25) & (X < 0.5)
    )
    assert len(gp.plot([[0.25], [2.0]]).axes[0].collections[0].get_offsets()) == 5000


def test_of_many_columns_those_are_drawn_that_change_f_most():
    rng = np.random.default_rng(2)
    lengthscales = np.full(30, 1e3)
    lengthscales[[3, 17, 29]] = 1.0
    X = rng.normal(size=(20, 30))
    gp = gm.GPRegressor(1.0 * gm.RBF(lengthscales), optimize=False).fit(X, X[:, 3])
    names = [axis.get_xlabel() for axis in gp.plot().axes]
    assert len(names) == 12
    assert {"x3", "x17", "x29"} <= set(names)
    assert [axis.get_xlabel() for axis in gp.plot(columns=["x5", 17]).axes] == ["x5", "x17"]
    with pytest.raises(ParameterError, match="columns has 'age', which the model does not have"):
        gp.plot(columns="age")


def test_a_model_without_its_rows_asks_for_a_range(tmp_path):
    X = np.linspace(0, 1, 30)[:, None]
    gm.GPRegressor(gm.RBF(0.3), method=gm.Nystrom(5), optimize=False).fit(X, X[:, 0]).save(tmp_path / "m.gm")
    gp = gm.load(tmp_path / "m.gm")
    with pytest.raises(ParameterError, match="Give X, the rows whose range is to be drawn"):
        gp.plot()
    assert len(gp.plot(X).axes[0].lines) == 1


def test_targets_that_are_not_known(series):
    with pytest.raises(ParameterError, match="target='z' is not known"):
        plot_predictions(series[0], target="z")


def test_global_settings_are_left_alone(series, tmp_path):
    before = dict(matplotlib.rcParams)
    plot_predictions(series[0]).savefig(tmp_path / "p.png")
    assert dict(matplotlib.rcParams) == before


def test_no_display_and_no_pyplot_are_needed(series, tmp_path):
    series[0].save(tmp_path / "m.gm")
    # this very package, from any folder
    environment = {**os.environ, "PYTHONPATH": str(Path(gm.__file__).parent.parent)}
    environment.pop("DISPLAY", None)
    program = (
        "import sys; from gramian.modelfile import load; import gramian.plots; assert 'matplotlib' not in"
        " sys.modules; gramian.plots.plot_predictions(load('m.gm')).savefig('p.png'); assert"
        " 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], cwd=tmp_path, env=environment, check=True)
    assert Path(tmp_path, "p.png").read_bytes().startswith(b"\x89PNG")
