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
    return gm.GPRegressor(n_restarts=0).fit(X, 3 + np.sin(2 * X["hours"])), X


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
