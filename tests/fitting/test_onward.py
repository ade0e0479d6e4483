"""Where a search by an approximation begins after exact inference on a part."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.engines.base import Workspace
from gramian.fitting import stages
from gramian.fitting.onward import LEVELS, best_start, with_more_noise
from gramian.fitting.progress import Report
from gramian.inference import Data, Model, closed
from gramian.likelihoods import Gaussian, Poisson
from gramian.means import ZeroMean


def of_noise(noise, kernel=None):
    return Model(kernel or 1.0 * gm.RBF(1.0), ZeroMean(), Gaussian(noise))


def test_only_louder_ones_within_bounds_are_tried():
    Y = 2.0 * np.random.default_rng(0).standard_normal((50, 1))
    values = [float(model.likelihood.noise.value) for model in with_more_noise(of_noise(0.05), Y)]
    np.testing.assert_allclose(values, [0.05, *(level * np.var(Y) for level in LEVELS[3:])])
    bounded = with_more_noise(of_noise(gm.param(1e-3, bounds=(1e-8, 0.05))), Y)
    assert max(float(model.likelihood.noise.value) for model in bounded) <= 0.05
    for still in (of_noise(gm.fixed(1e-8)), Model(1.0 * gm.RBF(1.0), ZeroMean(), Poisson())):
        assert with_more_noise(still, Y) == [still]


def test_each_output_gets_louder_in_its_own_units():
    """What is louder already stays."""
    Y = [1.0, 100.0] * np.random.default_rng(0).standard_normal((50, 2))
    noise = gm.param([0.05, 1e-4], bounds=([1e-8, 1e-8], [1.0, 2500.0]))
    tried = [model.likelihood.noise.value for model in with_more_noise(of_noise(noise), Y)]
    louder = [np.maximum([0.05, 1e-4], level * np.var(Y, axis=0)) for level in LEVELS]
    # the last, 0.3 of a variance of about 1e4, is above its bound
    np.testing.assert_allclose(tried, [[0.05, 1e-4], *louder[:-1]])


def test_the_best_is_that_of_the_highest_evidence():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (200, 1))
    data, method = (
        Data(X, np.sin(9 * X), np.ones(1)),
        closed(gm.Nystrom(5, "uniform")).prepared(of_noise(1e-8), Data(X, X, np.ones(1)), rng),
    )
    short, long = (of_noise(1e-8, 1.0 * gm.RBF(scale)) for scale in (0.2, 5.0))
    tried = [louder for model in (short, long) for louder in with_more_noise(model, data.Y)]
    heights = [method.evidence(model, data, Workspace()).value for model in tried]
    found = best_start([short, long], data, method)
    assert method.evidence(found, data, Workspace()).value == pytest.approx(max(heights))
    assert max(heights) > heights[0] + 1e6


def test_a_bound_does_not_end_in_noise_after_an_exact_fit_without_any(monkeypatch):
    """A function without noise that 12 inducing points cannot hold: from a noise of 1e-8 a first step as long
    as the gradient would lead across everything."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, (900, 2))
    data = Data(X, (np.sin(4 * X[:, 0]) + 0.3 * np.cos(3 * X[:, 1]) * X[:, 0])[:, None], np.ones(1))
    method = closed(gm.Sparse(12))
    monkeypatch.setattr(stages, "parts", lambda *_: [(closed(gm.Exact()), 200), (method, 900)])
    model = of_noise(0.01, 1.0 * gm.Matern32([1.0, 1.0]))
    good = stages.fit(model, data, method, 0, np.random.default_rng(0), Report())
    assert good.search.value > -900  # all noise: -n/2 (log(2 pi var y) + 1), about -1,000
    assert float(good.model.likelihood.noise.value) < 0.5 * np.var(data.Y)
