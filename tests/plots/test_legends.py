"""Legends lie within the picture and beside the data, on figures of any size."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

import gramian as gm

SIZES = [(7.0, 4.2), (6.0, 4.0), (4.0, 3.0)]


def table():
    x = np.linspace(0, 10, 40)
    return pd.DataFrame({"depth (m)": x}), pd.Series(20 + 3 * np.sin(x), name="yield (t/ha)")


def regression():
    return gm.GPRegressor(1.0 * gm.Matern52(1.5), noise=0.16, optimize=False).fit(*table())


def classification():
    X, y = table()
    labels = np.where(y > 20, "good harvest", "bad harvest")
    return gm.GPClassifier(4.0 * gm.RBF(1.5), optimize=False).fit(X, labels)


def prior():
    return gm.GPRegressor(1.0 * gm.RBF(1.0))


MODELS = [regression, classification, prior]


def drawn_tops(axis):
    """The highest pixel of each line, band and set of dots."""
    return [
        float(axis.transData.transform((0.0, artist.get_datalim(axis.transData).y1))[1])
        if hasattr(artist, "get_datalim")
        else float(axis.transData.transform(np.column_stack(artist.get_data()))[:, 1].max())
        for artist in (*axis.collections, *(line for line in axis.lines if len(line.get_xdata()) > 2))
    ]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("made", MODELS)
def test_a_legend_on_axes_of_ones_own_is_above_the_data_and_within(made, size):
    figure = Figure(figsize=size)
    axis = figure.subplots()
    made().plot(ax=axis)
    figure.draw_without_rendering()
    legend = axis.get_legend().get_window_extent()
    assert axis.bbox.x0 <= legend.x0
    assert legend.x1 <= axis.bbox.x1
    assert legend.y1 <= axis.bbox.y1
    assert max(drawn_tops(axis)) <= legend.y0 + 2.0  # pixels: half a line


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("made", MODELS)
def test_a_legend_above_fits_figures_that_are_made_smaller(made, size):
    figure = made().plot()
    figure.set_size_inches(size)
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1
    assert all(axis.get_window_extent().y1 <= legend.y0 + 1 for axis in figure.axes)


def test_limits_that_a_person_has_set_are_kept():
    figure = Figure(figsize=(6, 4))
    axis = figure.subplots()
    axis.set_ylim(10, 30)
    regression().plot(ax=axis)
    assert axis.get_ylim() == (10, 30)


def test_long_categories_do_not_lie_over_each_other():
    rng = np.random.default_rng(0)
    towns = np.array(["Kiel", "Ulm", "Oldenburg in Holstein"])[np.arange(60) % 3]
    X = pd.DataFrame({"area": rng.uniform(20, 200, 60), "town": towns})
    kernel = 1.0 * gm.RBF(50.0).on("area") * gm.Categorical(0.5).on("town")
    gp = gm.GPRegressor(kernel, noise=0.1, optimize=False).fit(X, rng.normal(size=60))
    for size in SIZES:
        figure = gp.plot()
        figure.set_size_inches(size)
        figure.draw_without_rendering()
        words = figure.axes[1].get_xticklabels()
        assert [word.get_text() for word in words] == ["Kiel", "Oldenburg in Holstein", "Ulm"]
        assert all(word.get_rotation() == 30 for word in words)
    short = gm.GPRegressor(kernel, noise=0.1, optimize=False).fit(
        X.assign(town=[town[:2] for town in towns]), rng.normal(size=60)
    )
    assert all(word.get_rotation() == 0 for word in short.plot().axes[1].get_xticklabels())
