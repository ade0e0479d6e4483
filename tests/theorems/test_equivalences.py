"""Gaussian process regression is other methods in disguise: kernel ridge, Bayesian linear regression,
interpolation, sums of processes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.kernel_ridge import KernelRidge

import gramian as gm


def given(kernel, noise, **settings):
    """A process with its parameters as they are, of mean zero, in the units of y."""
    return gm.GPRegressor(
        kernel,
        noise=gm.fixed(noise),
        **({"mean": "zero", "normalize_y": False, "optimize": False} | settings),
    )


@pytest.mark.parametrize(
    "kernel", [1.4 * gm.RBF([0.8, 2.0]), gm.Matern12(1.0) + gm.Constant(0.3), gm.Polynomial(3)], ids=str
)
def test_mean_is_kernel_ridge_regression(kernel, rng):
    """Ridge parameter = noise variance. Condition numbers up to 1e5 (the polynomial): 1e5 * 40 * 2e-16 =
    1e-9."""
    X, Z = rng.normal(size=(40, 2)), rng.normal(size=(15, 2))
    y = np.sin(X[:, 0]) + X[:, 1]
    ridge = KernelRidge(alpha=0.2, kernel=kernel).fit(X, y)
    assert_allclose(given(kernel, 0.2).fit(X, y).predict(Z), ridge.predict(Z), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(
    "V",
    [0.7, np.array([0.5, 2.0, 0.1]), np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 0.8]])],
    ids=["one variance", "a variance each", "a matrix"],
)
def test_linear_kernel_is_bayesian_linear_regression(V, rng):
    """y = w'x + e, w ~ N(0, V): closed forms in the space of weights (Rasmussen and Williams 2006, 2.1;
    Bishop 2006, 3.5.1)."""
    n, d, noise = 30, 3, 0.25
    X, Z = rng.normal(size=(n, d)), rng.normal(size=(12, d))
    y = X @ [1.0, -2.0, 0.5] + 0.5 * rng.normal(size=n)
    precision = np.linalg.inv(V * np.eye(d) if np.ndim(V) < 2 else V)
    A = X.T @ X / noise + precision
    w = np.linalg.solve(A, X.T @ y) / noise
    logdets = np.linalg.slogdet(precision)[1] - np.linalg.slogdet(A)[1]
    evidence = (
        0.5 * logdets
        - 0.5 * n * np.log(2 * np.pi * noise)
        - 0.5 * np.sum((y - X @ w) ** 2) / noise
        - 0.5 * w @ precision @ w
    )

    gp = given(gm.Linear(V), noise).fit(X, y)
    mean, cov = gp.predict(Z, return_cov=True, target="f")
    assert_allclose(mean, Z @ w, rtol=1e-9, atol=1e-10)
    assert_allclose(cov, Z @ np.linalg.inv(A) @ Z.T, rtol=1e-9, atol=1e-10)
    assert_allclose(gp.log_evidence(), evidence, rtol=1e-10)
    slope, slope_variance = gp.predict_gradient(Z)  # the weights themselves, everywhere
    assert_allclose(slope, np.tile(w, (12, 1)), rtol=1e-9)
    assert_allclose(slope_variance, np.tile(np.diag(np.linalg.inv(A)), (12, 1)), rtol=1e-8)


def test_constant_kernel_is_the_normal_mean_with_known_variance(rng):
    """n observations of one number: posterior precision 1 / v + n / noise."""
    y = 3 + rng.normal(size=20)
    gp = given(gm.Constant(4.0), 1.0).fit(rng.normal(size=(20, 1)), y)
    mean, std = gp.predict([[0.0], [100.0]], return_std=True, target="f")
    precision = 1 / 4 + 20
    assert_allclose(mean, y.sum() / precision, rtol=1e-12)
    assert_allclose(std**2, 1 / precision, rtol=1e-10)


@pytest.mark.parametrize(
    "kernel", [gm.Matern12(0.7), gm.Matern32(0.7), gm.Matern52(0.7), 2.0 * gm.RBF(0.1)], ids=str
)
def test_without_noise_it_interpolates(kernel, rng):
    X = np.linspace(0, 3, 16)[:, None]
    y = np.cos(4 * X[:, 0]) + 10
    gp = given(kernel, 0).fit(X, y)
    mean, std = gp.predict(X, return_std=True)
    # Condition numbers up to 1e7 (Matern52), so 1e-9 of the data; a standard deviation is the root of a
    # variance known to 1e-15 or so.
    assert_allclose(mean, y, rtol=1e-8)
    assert_allclose(std, 0, atol=1e-6)
    assert gp.outcome_.jitter == 0
    assert np.all(gp.predict(X[:-1] + 0.1, return_std=True)[1] > 0.01)
    assert_allclose(gp.sample(X, 3), np.tile(y[:, None], (1, 3)), rtol=1e-6)


def test_brownian_motion_without_noise_is_linear_interpolation(rng):
    """Between two observations the Brownian bridge: mean on the straight line, variance (t - a)(b - t) / (b -
    a)."""
    t = np.sort(rng.uniform(0.1, 5, 12))
    y = rng.normal(size=12)
    gp = given(gm.Brownian(), 0).fit(t[:, None], y)
    z = rng.uniform(t[0], t[-1], 40)
    right = np.searchsorted(t, z)
    a, b = t[right - 1], t[right]
    mean, std = gp.predict(z[:, None], return_std=True)
    assert_allclose(mean, np.interp(z, t, y), rtol=1e-9, atol=1e-10)
    assert_allclose(std**2, (z - a) * (b - z) / (b - a), rtol=1e-9, atol=1e-11)
    after = gp.predict([[t[-1] + 2.0]], return_std=True)
    assert_allclose(after, [[y[-1]], [np.sqrt(2.0)]], rtol=1e-9)


def test_matern12_has_no_memory(rng):
    """In one dimension it is a Markov process: beyond the last observation nothing but that one matters."""
    x = np.sort(rng.uniform(0, 4, 15))
    y = rng.normal(size=15)
    gp = given(1.5 * gm.Matern12(0.8), 0).fit(x[:, None], y)
    rho = np.exp(-0.6 / 0.8)
    mean, std = gp.predict([[x[-1] + 0.6]], return_std=True)
    assert_allclose(mean, rho * y[-1], rtol=1e-10)
    assert_allclose(std**2, 1.5 * (1 - rho**2), rtol=1e-9)


def test_sum_of_kernels_is_the_sum_of_independent_processes(rng):
    """f = f1 + f2 with f1 and f2 independent: conditioned jointly on y, their means and covariances add up to
    those of the sum kernel."""
    X, Z = rng.normal(size=(20, 2)), rng.normal(size=(7, 2))
    y = rng.normal(size=20)
    k1, k2 = 0.7 * gm.RBF(1.2), gm.Matern32([0.5, 2.0])
    A = k1(X) + k2(X) + 0.1 * np.eye(20)
    joint = np.block([[k1(Z), np.zeros((7, 7))], [np.zeros((7, 7)), k2(Z)]])  # prior of (f1, f2) at Z
    with_y = np.vstack([k1(Z, X), k2(Z, X)])
    mean = with_y @ np.linalg.solve(A, y)
    cov = joint - with_y @ np.linalg.solve(A, with_y.T)
    S = np.hstack([np.eye(7), np.eye(7)])
    gp = given(k1 + k2, 0.1).fit(X, y)
    ours, ours_cov = gp.predict(Z, return_cov=True, target="f")
    assert_allclose(ours, S @ mean, rtol=1e-10, atol=1e-11)
    assert_allclose(ours_cov, S @ cov @ S.T, rtol=1e-10, atol=1e-11)
    for part, (component, deviation) in zip(
        (slice(0, 7), slice(7, 14)), gp.components(Z).values(), strict=True
    ):
        assert_allclose(component, mean[part], rtol=1e-10, atol=1e-11)
        assert_allclose(deviation**2, np.diag(cov)[part], rtol=1e-9)


def test_two_observations_of_a_row_are_one_with_half_the_noise(rng):
    """Each row seen twice with noise v tells of f what one row with the average of y and noise v / 2
    tells."""
    X = rng.normal(size=(12, 2))
    y = rng.normal(size=(2, 12))
    Z = rng.normal(size=(6, 2))
    twice = given(gm.RBF(1.0), 0.3).fit(np.concatenate([X, X]), y.ravel())
    once = given(gm.RBF(1.0), 0.15).fit(X, y.mean(axis=0))
    for a, b in zip(
        twice.predict(Z, return_std=True, target="f"),
        once.predict(Z, return_std=True, target="f"),
        strict=True,
    ):
        assert_allclose(a, b, rtol=1e-10)


def test_rows_with_enormous_noise_tell_nothing(rng):
    X = rng.normal(size=(20, 2))
    y = rng.normal(size=20)
    noise = np.where(np.arange(20) < 12, 0.1, 1e14)
    Z = rng.normal(size=(6, 2))
    all_rows = given(gm.RBF(1.0), 0).fit(X, y, noise_var=noise)
    few = given(gm.RBF(1.0), 0.1).fit(X[:12], y[:12])
    for a, b in zip(
        all_rows.predict(Z, return_std=True, target="f"),
        few.predict(Z, return_std=True, target="f"),
        strict=True,
    ):
        assert_allclose(a, b, rtol=1e-9)


def test_order_of_rows_does_not_matter(rng):
    X = rng.normal(size=(30, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)
    Z = rng.normal(size=(6, 2))
    order = rng.permutation(30)
    first = gm.GPRegressor(n_restarts=0).fit(X, y).predict(Z, return_std=True)
    second = gm.GPRegressor(n_restarts=0).fit(X[order], y[order]).predict(Z, return_std=True)
    for a, b in zip(first, second, strict=True):
        assert_allclose(a, b, rtol=1e-8)
