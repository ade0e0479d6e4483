"""A picture of a search shows each of its evaluations."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from gramian.plots import plot_search

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 5, (30, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.standard_normal(30)


@pytest.fixture(scope="module")
def gp():
    return gm.GPRegressor(gm.RBF(1.0), noise=0.1, random_state=0, n_restarts=0).fit(X, Y)


def test_a_path_has_every_evaluation_with_its_place(gp):
    (path,) = gp.outcome_.trace
    assert len(path.heights) == gp.outcome_.evaluations == path.at[-1]
    assert path.what == "exact on 30 rows"
    best = int(np.argmax(path.heights))
    theta = path.thetas[best]
    assert_allclose(path.heights[best], gp.log_evidence(theta) + path.space.log_prior(theta)[0], rtol=1e-9)
    assert path.names == list(gp.fitted_.first.insides(gp.read).objective.space.names)
    assert_allclose(path.values[best][path.names.index("noise")], gp.noise_, rtol=1e-3)


def test_heights_and_parameters_are_drawn(gp):
    height, *panels = gp.plot_search(parameters=2).axes
    (path,) = gp.outcome_.trace
    (line,) = height.lines
    assert_allclose(line.get_xdata(), path.at)
    assert_allclose(line.get_ydata(), path.heights)
    moved = np.ptp(path.thetas, axis=0)
    for panel, j in zip(panels, np.sort(np.argsort(-moved)[:2]), strict=True):
        assert panel.get_title(loc="left") == path.names[j]
        assert_allclose(panel.lines[0].get_ydata(), path.values[:, j])


def test_searches_follow_each_other():
    prior = gm.GP(1.0 * gm.RBF(1.0), noise=0.1).fit(X, Y)
    post = prior.condition(X, Y)
    (path,) = prior.search.paths
    assert len(plot_search(post, parameters=0).axes) == 1
    gp = gm.GPRegressor("rbf", method=gm.Sparse(8), random_state=0).fit(X, Y)
    assert len(gp.outcome_.trace) > 1
    height = gp.plot_search().axes[0]
    assert [line.get_label() for line in height.lines] == [path.what for path in gp.outcome_.trace]
    ends = [line.get_xdata()[-1] for line in height.lines]
    assert ends == list(np.cumsum([path.at[-1] for path in gp.outcome_.trace]))
    assert_allclose(path.heights.max(), prior.search.value)


def test_what_a_file_does_not_hold(gp, tmp_path):
    gp.save(tmp_path / "model.gm")
    loaded = gm.load(tmp_path / "model.gm")
    assert loaded.outcome_ == gp.outcome_
    assert loaded.outcome_.trace == ()
    with pytest.raises(ParameterError, match="from a file, which does not hold"):
        loaded.plot_search()
    with pytest.raises(ParameterError, match="nothing was optimised"):
        gm.GPRegressor(gm.RBF(1.0), optimize=False).fit(X, Y).plot_search()


def test_axes_of_your_own(gp):
    axes = Figure().subplots(1, 2)
    assert gp.plot_search(parameters=1, ax=axes) is axes[0].figure
    with pytest.raises(ParameterError, match="There are 3 panels, but ax has 2 axes"):
        gp.plot_search(parameters=2, ax=axes)


def test_batches_leave_a_path_of_some_of_their_steps():
    many = RNG.uniform(0, 5, (60, 1))
    method = gm.SVGP(8, steps=300, batch_size=20)
    gp = gm.GPRegressor("rbf", method=method, random_state=0).fit(many, np.sin(many[:, 0]))
    path = gp.outcome_.trace[-1]
    assert 90 <= len(path.at) <= 110
    assert 1 == path.at[0] < path.at[-1] <= 300
    assert path.values.shape == (len(path.at), len(path.names))
    assert path.heights[-1] > path.heights[0]
