"""Pictures of points that stand for rows: landmarks among them, and patches of images."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from gramian.plots import plot_landmarks, plot_patches

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(RNG.uniform(0, 1, (40, 3)), columns=["a (m)", "b", "c"])
Y = np.sin(6 * TABLE["c"]) + TABLE["a (m)"]
IMAGES = RNG.normal(size=(12, 25))
LABELS = IMAGES[:, :5].sum(axis=1)


def test_landmarks_over_two_columns():
    kernel = 1.0 * gm.RBF([0.5, 50.0, 0.2])
    gp = gm.GPRegressor(kernel, method=gm.Sparse(7), noise=0.01, optimize=False).fit(TABLE, Y)
    (axis,) = gp.plot_landmarks().axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("a (m)", "c")  # f does not change along b
    (circles,) = axis.lines
    assert_allclose(circles.get_xydata(), gp.posterior_.landmarks[:, [0, 2]])
    assert_allclose(axis.collections[0].get_offsets(), TABLE[["a (m)", "c"]])
    (axis,) = plot_landmarks(gp, ["c", "b"]).axes
    assert_allclose(axis.lines[0].get_xydata(), gp.posterior_.landmarks[:, [2, 1]])


def test_landmarks_of_one_column_stand_below_the_rows():
    gp = gm.GPRegressor(gm.RBF(0.3), method=gm.Sparse(5), noise=0.01, optimize=False).fit(TABLE[["c"]], Y)
    (axis,) = gp.plot_landmarks().axes
    mean, marks = axis.lines
    assert_allclose(marks.get_xdata(), gp.posterior_.landmarks[:, 0])
    assert max(marks.get_ydata()) < min(Y.min(), mean.get_ydata().min())
    at = pd.DataFrame({"c": mean.get_xdata()})
    assert_allclose(mean.get_ydata(), gp.predict(at), rtol=1e-9)


def test_models_without_landmarks():
    gp = gm.GPRegressor(gm.RBF(0.3), optimize=False).fit(TABLE, Y)
    with pytest.raises(ParameterError, match="no landmarks: it was fitted by exact"):
        gp.plot_landmarks()
    with pytest.raises(ParameterError, match="draws models of patches"):
        plot_patches(gp)


@pytest.fixture(scope="module")
def convolutional():
    weights = np.linspace(-1, 2, 9)
    kernel = 2.0 * gm.Convolutional(gm.RBF(2.0), patch=3, image=5, weights=weights)
    given = {"mean": gm.ConstantMean(0.5), "noise": 0.1, "optimize": False, "normalize_y": False}
    return gm.GPRegressor(kernel, method=gm.Sparse(6), random_state=0, **given).fit(IMAGES, LABELS)


def test_the_average_of_a_map_is_f_but_for_the_mean(convolutional):
    figure = plot_patches(convolutional, IMAGES[:2])
    shown = [axis.images[0].get_array() for axis in figure.axes if axis.images]
    weights, first, second, mosaic, *maps = shown
    assert_allclose(weights, np.linspace(-1, 2, 9).reshape(3, 3))
    assert_allclose(first, IMAGES[0].reshape(5, 5))
    assert_allclose(second, IMAGES[1].reshape(5, 5))
    f = convolutional.predict(IMAGES[:2], target="f") - 0.5
    assert_allclose([np.mean(one) for one in maps], f, rtol=1e-8)
    tiles = mosaic.filled(np.nan) if np.ma.isMaskedArray(mosaic) else mosaic
    found = {np.round(tiles[1:4, 1:4], 8).tobytes()}
    patches = {np.round(Z.reshape(3, 3), 8).tobytes() for Z in convolutional.posterior_.landmarks}
    assert found < patches
    with pytest.raises(ParameterError, match="patches of images"):
        convolutional.plot_landmarks()


def test_patches_that_know_their_place_and_exact_inference():
    kernel = gm.Convolutional(gm.RBF(2.0), patch=3, image=5, place=gm.RBF(2.0))
    gp = gm.GPRegressor(kernel, noise=0.1, optimize=False, normalize_y=False, mean="zero").fit(IMAGES, LABELS)
    figure = plot_patches(gp, n_images=2)
    maps = [axis.images[0].get_array() for axis in figure.axes if axis.images][2:]
    assert_allclose([np.mean(one) for one in maps], gp.predict(IMAGES[:2], target="f"), rtol=1e-8)
    with pytest.raises(ParameterError, match="There are 4 pictures, but ax has 3 axes"):
        plot_patches(gp, n_images=2, ax=figure.axes[:3])
    with pytest.raises(ParameterError, match="n_images=0"):
        plot_patches(gp, n_images=0)
