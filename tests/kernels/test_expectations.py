"""Averages of kernels over uncertain points: against Monte Carlo, against dense quadrature, and what they are
without uncertainty."""

from __future__ import annotations

import itertools

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.errors import InputError
from gramian.kernels import RBF, Constant, Linear, Matern32, Matern52, Periodic, Polynomial, RationalQuadratic
from gramian.kernels.expectations import whole

rng = np.random.default_rng(3)
MEAN, Z = rng.standard_normal((5, 2)), rng.standard_normal((4, 2))
VAR = rng.uniform(0.05, 1.5, (5, 2))
VAR[0] = 0.0
CLOSED = {
    "rbf": RBF(0.7),
    "ard": 1.7 * RBF([0.5, 2.0]),
    "linear": Linear([0.5, 2.0]),
    "constant": Constant(2.0),
    "polynomial": Polynomial(2, 0.7, 0.4),
    "sum": RBF([0.5, 2.0]) + 0.5 * Linear() + 0.3,
    "product": RBF(0.8) * Linear([1.0, 0.3]),
    "product of sums": (RBF(0.8) + 0.5) * (0.3 * Linear() + RBF([1.0, 3.0])),
    "power": (Linear(0.5) + 0.4) ** 2,
    "two scales": RBF(0.5) * RBF([1.0, 2.0]),
    "columns": RBF(0.6).on(1) * Linear().on(0) + RBF(2.0).on(0),
    "named": RBF(0.6).named("bumps") + Linear().named("trend"),
}
OPEN = {
    "matern": 1.3 * Matern52([0.8, 1.5]),
    "rough": Matern32(1.0) + Linear(),
    "rational": RationalQuadratic(1.2, 0.7),
    "waves": Periodic(1.5, 3.0),
    "cubed": Linear(0.3) ** 5,
    "matrix": Linear([[1.0, 0.3], [0.3, 0.5]]),
}


def hermite(kernel, mean, var, Z, order=150):
    """The same by a dense grid of Gauss and Hermite."""
    x, w = np.polynomial.hermite_e.hermegauss(order)
    grid = np.array(list(itertools.product(x, repeat=Z.shape[1])))
    weights = np.prod(list(itertools.product(w / w.sum(), repeat=Z.shape[1])), axis=1)
    psi0, psi1, psi2 = [], [], []
    for mu, s in zip(mean, var, strict=True):
        X = mu + np.sqrt(s) * grid
        K = kernel(X, Z)
        psi0.append(weights @ kernel.diag(X))
        psi1.append(weights @ K)
        psi2.append((K * weights[:, None]).T @ K)
    return np.array(psi0), np.array(psi1), np.array(psi2)


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_are_the_integrals(name):
    kernel = CLOSED[name]
    found = kernel.expected(MEAN, VAR, Z)
    assert found.error == 0.0
    # 150 nodes a column: the narrowest Gaussian, 0.35 beside a standard deviation of 1.2, is met to 1e-8
    for ours, theirs in zip(found[:3], hermite(kernel, MEAN, VAR, Z), strict=True):
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("name", OPEN)
def test_rules_are_within_their_error_of_the_integrals(name):
    kernel = OPEN[name]
    found = kernel.expected(MEAN, VAR, Z)
    assert 0.0 < found.error < 0.05 * (1 + np.max(found.squares))
    for ours, theirs in zip(found[:3], hermite(kernel, MEAN, VAR, Z), strict=True):
        # the reference has an error of its own where a kernel has a kink; tenth powers have 1e-6 of their
        # average beyond the outermost node
        assert np.max(np.abs(ours - theirs)) < found.error + 1e-4 + 1e-6 * np.max(np.abs(theirs))


@pytest.mark.parametrize("name", ["sum", "product", "product of sums", "matern"])
def test_averages_are_those_of_many_draws(name):
    kernel, draws = (CLOSED | OPEN)[name], 200_000
    found = kernel.expected(MEAN[1:2], VAR[1:2], Z)
    X = MEAN[1] + np.sqrt(VAR[1]) * np.random.default_rng(0).standard_normal((draws, 2))
    K = kernel(X, Z)
    squares = K[:, :, None] * K[:, None, :]
    for ours, sample in zip(found[:3], (kernel.diag(X), K, squares), strict=True):
        # six standard errors: by chance once in 5e8, for each of 21 numbers
        error = 6 * np.std(sample, axis=0) / np.sqrt(draws) + 1e-12
        assert np.all(np.abs(ours[0] - np.mean(sample, axis=0)) < error)


@pytest.mark.parametrize("name", [*CLOSED, *OPEN])
def test_without_variance_they_are_the_kernel(name):
    kernel = (CLOSED | OPEN)[name]
    found, K = kernel.expected(MEAN, 0.0, Z), kernel(MEAN, Z)
    assert_allclose(found.diagonal, kernel.diag(MEAN), rtol=1e-12)
    assert_allclose(found.cross, K, rtol=1e-12, atol=1e-14)
    assert_allclose(found.squares, K[:, :, None] * K[:, None, :], rtol=1e-12, atol=1e-14)


def test_many_columns_are_averaged_over_points_of_sobol():
    rng = np.random.default_rng(0)
    mean, Z = rng.standard_normal((3, 5)), rng.standard_normal((2, 5))
    plain, nearly = RBF(2.0), RationalQuadratic(2.0, 1e6)  # which has no closed form
    ours, theirs = nearly.expected(mean, 0.3, Z), plain.expected(mean, 0.3, Z)
    assert 0 < ours.error < 0.05
    assert_allclose(ours.cross, theirs.cross, atol=ours.error)
    assert_allclose(ours.squares, theirs.squares, atol=ours.error)


@pytest.mark.parametrize("name", ["ard", "product of sums", "columns", "rational"])
def test_gradients_are_those_of_differences(name):
    kernel = (CLOSED | OPEN)[name].bare()
    weights = np.random.default_rng(1).standard_normal((5, 10))

    def total(arrays):
        kernel, mean, var, Z = arrays
        psi0, psi1, psi2, _ = kernel.expectations(mean, var, Z)
        return psi0 @ weights[:, 0] + (psi1 * weights[:, 1:5]).sum() + (psi2 * weights).sum()

    with jax.enable_x64(True):
        start = (kernel, MEAN[1:], VAR[1:], Z)
        weights = weights[1:]
        leaves, structure = jax.tree_util.tree_flatten(start)
        gradient = jax.tree_util.tree_leaves(jax.grad(total)(start))
        value = jax.jit(total)
        for k, leaf in enumerate(leaves):
            for at in np.ndindex(np.shape(leaf)):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = np.array(leaf, dtype=float)
                    moved[at] += step
                    ends.append(float(value(structure.unflatten([*leaves[:k], moved, *leaves[k + 1 :]]))))
                assert_allclose(gradient[k][at], (ends[0] - ends[1]) / 2e-5, rtol=1e-5, atol=1e-6)


def test_far_from_the_origin_no_digits_are_lost():
    near, far = RBF(0.5).expected(MEAN, VAR, Z), RBF(0.5).expected(MEAN + 2.0**20, VAR, Z + 2.0**20)
    assert_allclose(far.squares, near.squares, atol=1e-8)  # 1e6 eps of the points themselves


def test_pairs_fill_a_symmetric_matrix():
    pairs = np.arange(6.0)
    full = np.asarray(whole(pairs, 3))
    assert_allclose(full, full.T)
    assert_allclose(full[np.tril_indices(3)], pairs)


def test_a_kernel_with_new_values_does_not_inherit_the_averages_of_the_old_ones():
    class Halved(RBF):
        def profile(self, r2):
            return 0.5 * super().profile(r2) + 0.5

    found = Halved(1.0).expected(MEAN, VAR, Z)
    assert found.error > 0
    assert_allclose(found.cross, 0.5 * RBF(1.0).expected(MEAN, VAR, Z).cross + 0.5, atol=1e-6)


@pytest.mark.parametrize("var", [-1.0, np.nan, [1.0, 2.0, 3.0], "much"])
def test_impossible_variances_are_refused(var):
    with pytest.raises(InputError, match="var"):
        RBF().expected(MEAN, var, Z)
