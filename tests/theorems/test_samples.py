"""Draws have the mean and covariance of the process they are drawn from.

With N draws an average has the standard error sd / sqrt(N), and a covariance sqrt((c_ii c_jj + c_ij^2) / N).
A bound of 6 standard errors is passed by chance once in 5e8 entries; a test here has at most 100. Seeds are
fixed besides, so a test passes always or never.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError

N = 20_000


def check_moments(draws, mean, cov):
    assert draws.shape == (len(mean), N)
    variance = np.diag(cov)
    assert np.all(np.abs(draws.mean(axis=1) - mean) <= 6 * np.sqrt(variance / N) + 1e-12)
    errors = np.sqrt((np.outer(variance, variance) + cov**2) / N)
    assert np.all(np.abs(np.cov(draws) - cov) <= 6 * errors + 1e-12)


@pytest.fixture(scope="module")
def gp():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(15, 2))
    return gm.GPRegressor(1.3 * gm.RBF(1.1), noise=4.0, optimize=False).fit(X, 50 + 10 * np.sin(X[:, 0]))


@pytest.mark.parametrize("target", ["f", "y"])
def test_posterior_draws(gp, target):
    Z = np.random.default_rng(2).normal(size=(8, 2))
    mean, cov = gp.predict(Z, return_cov=True, target=target)
    check_moments(gp.sample(Z, N, target=target, random_state=5), mean, cov)


@pytest.mark.parametrize("target", ["f", "y"])
def test_prior_draws(target):
    prior = gm.GPRegressor(0.5 * gm.Matern32(1.0), noise=0.2, mean=gm.ConstantMean(3.0))
    Z = np.random.default_rng(2).normal(size=(8, 2))
    mean, cov = prior.predict(Z, return_cov=True, target=target)
    assert_allclose(mean, 3.0)
    assert_allclose(cov, prior.kernel(Z) + (0.2 * np.eye(8) if target == "y" else 0), rtol=1e-12)
    check_moments(prior.sample(Z, N, target=target, random_state=5), mean, cov)


def test_draws_of_several_outputs_are_independent():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(15, 2))
    gp = gm.GPRegressor(1.3 * gm.RBF(1.1), noise=0.1, optimize=False).fit(
        X, np.column_stack([X[:, 0], 1000 * X[:, 1]])
    )
    Z = rng.normal(size=(4, 2))
    draws = gp.sample(Z, N, random_state=5)
    assert draws.shape == (4, 2, N)
    mean, cov = gp.predict(Z, return_cov=True, target="f")
    for k in range(2):
        check_moments(draws[:, k], mean[:, k], cov[:, :, k])
    across = np.corrcoef(draws[:, 0], draws[:, 1])[:4, 4:]
    assert np.all(np.abs(across) < 6 / np.sqrt(N))


def test_draws_where_the_covariance_is_singular():
    """Equal points get equal values, to the rounding of a variance of 1 (its root is 1e-8); nothing is added
    to the diagonal."""
    prior = gm.GPRegressor(gm.RBF(5.0))
    Z = np.linspace(0, 1, 40)[:, None]
    draws = prior.sample(np.concatenate([Z, Z[:3]]), N, random_state=1)
    assert_allclose(draws[40:], draws[:3], atol=2e-7)
    check_moments(draws[::8], np.zeros(6), prior.kernel(np.concatenate([Z, Z[:3]])[::8]))


def test_seeds(gp):
    Z = [[0.1, 0.2], [0.3, 0.4]]
    assert np.array_equal(gp.sample(Z, 3, random_state=1), gp.sample(Z, 3, random_state=1))
    assert not np.array_equal(gp.sample(Z, 3, random_state=1), gp.sample(Z, 3, random_state=2))
    assert not np.array_equal(gp.sample(Z, 3), gp.sample(Z, 3))
    seeded = gm.GPRegressor(gm.RBF(), random_state=7)
    assert np.array_equal(seeded.sample(Z, 3), seeded.sample(Z, 3))
    assert np.array_equal(seeded.sample(Z, 3), gm.GPRegressor(gm.RBF()).sample(Z, 3, random_state=7))


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "3", None])
def test_number_of_draws_must_be_a_whole_number(gp, n_samples):
    with pytest.raises(ParameterError, match="n_samples"):
        gp.sample([[0.0, 0.0]], n_samples)
