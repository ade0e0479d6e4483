"""A kernel's picture shows its values, and functions drawn from it have its covariance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError


def test_draws_have_the_covariance_of_the_kernel():
    """Of 4,000 draws each entry of the covariance is within five standard errors, sqrt(2 / 4000) at most:
    odds below 1e-5 for 25 entries."""
    kernel, X = 2.0 * gm.RBF(1.0), np.linspace(0, 3, 5)[:, None]
    F = kernel.sample(X, 4000)
    assert_allclose(F @ F.T / 4000, kernel(X), atol=5 * 2 * np.sqrt(2 / 4000))
    assert_allclose(kernel.sample(X, 3, seed=1), kernel.sample(X, 3, seed=1), rtol=0)
    assert kernel.sample(np.zeros((1, 1))).shape == (1, 1)
    same = kernel.sample(np.zeros((4, 1)), 2)  # singular, and no jitter
    assert_allclose(same, np.tile(same[:1], (4, 1)), atol=1e-7)
    with pytest.raises(ParameterError, match="n_samples=0"):
        kernel.sample(X, 0)


def test_shape_matrix_and_draws():
    kernel = 1.5 * gm.Periodic(1.0, 2.0)
    figure = kernel.plot(np.array([[0.0], [6.0]]))
    shape, matrix, functions, _ = figure.axes  # and the bar of colours
    x, k = shape.lines[0].get_data()
    assert (x[0], x[-1]) == (0.0, 6.0)
    assert_allclose(k, kernel(x[:, None], np.array([[3.0]]))[:, 0], rtol=1e-12)
    assert_allclose(matrix.images[0].get_array(), kernel(x[:, None]), rtol=1e-12)
    assert len(functions.lines) == 3


def test_columns_by_name_and_axes_of_your_own():
    kernel = gm.RBF(1.0).on("temp") * gm.Linear().on("rain")
    X = pd.DataFrame({"temp": [0.0, 4.0], "rain": [1.0, 3.0]})
    axes = Figure().subplots(1, 3)
    assert kernel.plot(X, column="rain", ax=axes) is axes[0].figure
    assert axes[0].get_xlabel() == "rain"
    x, k = axes[0].lines[0].get_data()
    assert_allclose(k, 2.0 * x)  # temp at its median, and 2 is in the middle
    assert gm.RBF(0.5).plot().axes[0].get_xlim()[0] < -1
    with pytest.raises(ParameterError, match="3 panels, but ax has 2"):
        kernel.plot(X, ax=axes[:2])
    with pytest.raises(ParameterError, match="n_samples=9 must be"):
        kernel.plot(X, n_samples=9)
    words = pd.DataFrame({"site": ["a", "b"], "temp": [0.0, 1.0]})
    with pytest.raises(ParameterError, match="site has categories"):
        gm.Categorical().on("site").plot(words, column="site")
