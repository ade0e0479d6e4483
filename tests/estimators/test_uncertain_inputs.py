"""Inputs that are known up to a variance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gramian as gm
from gramian.errors import InputError, ParameterError
from gramian.estimators.uncertain import nodes

KERNEL = 1.0 * gm.RBF(0.8)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 1))
    y = np.sin(2 * X[:, 0]) + 0.05 * rng.standard_normal(40)
    return X, y, gm.GPRegressor(KERNEL, n_restarts=0).fit(X, y)


def test_nodes_have_the_moments_of_the_normal():
    for columns in (1, 2, 5):
        assert_allclose(np.mean(nodes(columns), axis=0), 0.0, atol=1e-12)
        assert_allclose(np.mean(nodes(columns) ** 2, axis=0), 1.0)


def test_without_variance_nothing_changes(fitted):
    X, y, gp = fitted
    for plain, ours in zip(
        gp.predict(X, return_std=True), gp.predict(X, return_std=True, X_var=0.0), strict=True
    ):
        assert_allclose(ours, plain, rtol=1e-12)
    again = gm.GPRegressor(KERNEL, n_restarts=0).fit(X, y, X_var=[0.0])
    assert_array_equal(again.predict(X), gp.predict(X))


def test_predictions_are_averages_over_inputs(fitted):
    """Against the closed averages of the kernel: E f = psi1 alpha, E f^2 = psi0 - tr((K^-1 - alpha alpha')
    psi2)."""
    X, y, gp = fitted
    kernel, noise = gp.kernel_, float(gp.likelihood_.variances()[0])
    s2, mu = np.var(y), float(np.asarray(gp.predict([[1e6]], target="f"))[0])
    K = s2 * kernel(X) + noise * np.eye(len(X))
    alpha = np.linalg.solve(K, y - mu)
    new = np.array([[0.3], [1.0], [-0.7]])
    psi = kernel.expected(new, 0.1, X)
    mean = mu + s2 * psi.cross @ alpha
    inner = np.linalg.inv(K) - np.outer(alpha, alpha)
    var = s2 * psi.diagonal - np.einsum("ij,nji->n", s2**2 * inner, psi.squares) - (mean - mu) ** 2
    ours, std = gp.predict(new, return_std=True, target="f", X_var=0.1)
    # 100 equally probable nodes: an error of about one in a hundred of the spread
    assert_allclose(ours, mean, atol=0.01)
    assert_allclose(std, np.sqrt(var), rtol=0.03)


def test_intervals_and_quantiles_are_of_the_mixture(fitted):
    _, _, gp = fitted
    mean, low, high = gp.predict([[0.3]], interval=0.9, X_var=0.2)
    _, narrow, wide = gp.predict([[0.3]], interval=0.9)
    assert low < narrow < wide < high
    assert low < mean < high
    assert_allclose(gp.predict([[0.3]], quantiles=[0.05], X_var=0.2)[0, 0], low[0])


def test_a_fit_with_uncertain_inputs_finds_less_noise():
    """Steep where inputs are uncertain: what the error of x does is not the noise of y."""
    rng = np.random.default_rng(2)
    x = rng.uniform(-2, 2, 120)
    y = np.sin(2 * x) + 0.05 * rng.standard_normal(120)
    seen = (x + 0.15 * rng.standard_normal(120))[:, None]
    plain = gm.GPRegressor(KERNEL, n_restarts=0).fit(seen, y)
    aware = gm.GPRegressor(KERNEL, n_restarts=0).fit(seen, y, X_var=0.15**2)
    level = [float(np.sqrt(gp.likelihood_.variances()[0])) for gp in (plain, aware)]
    assert level[1] < 0.6 * level[0]
    grid = np.linspace(-1.8, 1.8, 100)[:, None]
    # where the function is flat, an observation is as sure as y is
    _, std = aware.predict([[np.pi / 4]], return_std=True)
    assert std[0] < 0.7 * plain.predict([[np.pi / 4]], return_std=True)[1][0]
    assert np.sqrt(np.mean((aware.predict(grid) - np.sin(2 * grid[:, 0])) ** 2)) < 0.2
    assert any("X_var" in note for note in aware.outcome_.notes)


@pytest.mark.parametrize("X_var", [-1.0, np.nan, [1.0, 2.0], "much"])
def test_impossible_variances(fitted, X_var):
    X, _, gp = fitted
    with pytest.raises(InputError, match="X_var"):
        gp.predict(X, X_var=X_var)


def test_what_uncertain_inputs_do_not_go_with(fitted):
    X, _, gp = fitted
    with pytest.raises(ParameterError, match="return_cov"):
        gp.predict(X, return_cov=True, X_var=0.1)
    with pytest.raises(ParameterError, match="Gaussian noise"):
        gm.GPRegressor(likelihood=gm.Poisson()).fit(X, np.ones(len(X)), X_var=0.1)
