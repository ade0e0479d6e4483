"""Pictures of layers: a panel for what each layer sees and one for f, coloured by the input."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.errors import ParameterError
from gramian.plots import plot_layers

DEEP = [gm.Layer(0.5 * gm.RBF(0.3)), gm.Layer(0.5 * gm.RBF(0.3)), gm.Layer(1.0 * gm.RBF(0.5))]


@pytest.mark.parametrize("columns", [1, 2])
def test_draws_of_the_prior(columns):
    X = np.random.default_rng(0).uniform(0, 1, (20, columns))
    gp = gm.DeepGPRegressor(DEEP)
    figure = plot_layers(gp, X, draws=2)
    axes = figure.axes[:3]
    assert [axis.get_title() for axis in axes] == ["what layer 2 sees", "what layer 3 sees", "f"]
    first, second, third, f = gp.sample_layers(X, random_state=[0, 0])
    for axis, along, up in (
        (axes[0], second[:, 0] if columns == 2 else first[:, 0], second[:, -1]),
        (axes[1], third[:, 0] if columns == 2 else first[:, 0], third[:, -1]),
        (axes[2], first[:, 0], f[:, 0]),
    ):
        assert len(axis.collections) == 2  # a scatter a draw
        np.testing.assert_allclose(axis.collections[0].get_offsets(), np.column_stack([along, up]))
        np.testing.assert_allclose(axis.collections[0].get_array(), X[:, 0])


def test_what_cannot_be_drawn():
    with pytest.raises(ParameterError, match="draws a deep model, not GPRegressor"):
        plot_layers(gm.GPRegressor())
    with pytest.raises(ParameterError, match="give X"):
        gm.DeepGPRegressor(2).plot_layers()
    with pytest.raises(ParameterError, match="draws=0"):
        gm.DeepGPRegressor(2).plot_layers(np.zeros((3, 1)), draws=0)
