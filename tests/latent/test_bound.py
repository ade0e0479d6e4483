"""The bound of the Bayesian GP-LVM: below the evidence, of the cells that are there, with its gradient."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from gramian.fitting.progress import Report
from gramian.kernels import RBF, Linear
from gramian.latent.bound import ObservedTable, Places, value_and_slopes, weights
from gramian.latent.rows import RowModel
from gramian.latent.search import LatentObjective, Position, climb
from gramian.likelihoods import Gaussian
from gramian.params import param

rng = np.random.default_rng(5)
N, Q, M, D = 6, 1, 4, 3
PLACES = Places(rng.standard_normal((N, Q)), rng.uniform(0.05, 0.4, (N, Q)))
Y = np.column_stack([np.sin(2 * PLACES.mean[:, 0]), PLACES.mean[:, 0] ** 2, -PLACES.mean[:, 0]])
Y = Y + 0.1 * rng.standard_normal(Y.shape)
Z = np.linspace(-1.5, 1.5, M)[:, None]
KERNEL = 1.3 * RBF(0.8)
ONE = np.zeros(D, int)


def bound(table, kernel=KERNEL, noise=0.05, places=PLACES, Z=Z):
    variances = np.full(table.seen.shape[1], noise)
    return value_and_slopes(kernel.bare(), variances, Z, places, table, gradient=False)[0]


def log_normal(Y, K):
    """log prod_d N(y_d; 0, K)."""
    L = np.linalg.cholesky(K)
    half = np.linalg.solve(L, Y)
    return -0.5 * np.sum(half**2) - Y.shape[1] * (
        np.sum(np.log(np.diag(L))) + 0.5 * len(Y) * np.log(2 * np.pi)
    )


def position(places, noise=None, units=None):
    noise = Gaussian(param(0.05 if noise is None else noise)).noise
    return Position(KERNEL, noise, np.ones(D) if units is None else units, Z, places)


def test_it_is_below_the_evidence():
    """log p(Y) by importance sampling from a wide version of the best q(X), whose standard error is told by
    the weights themselves."""
    table = ObservedTable.of(Y, ONE)
    best, search, _ = climb(position(PLACES), table, Report(), 200)
    noise, kernel = float(best.noise.value), best.kernel
    draws, mean, std = 4000, best.places.mean, 1.5 * np.sqrt(best.places.var)
    found = []
    random = np.random.default_rng(0)
    for _ in range(draws):
        e = random.standard_normal(mean.shape)
        X = mean + std * e
        prior = -0.5 * np.sum(X**2) - 0.5 * X.size * np.log(2 * np.pi)
        proposal = -0.5 * np.sum(e**2) - np.sum(np.log(std)) - 0.5 * X.size * np.log(2 * np.pi)
        found.append(log_normal(Y, kernel(X) + noise * np.eye(N)) + prior - proposal)
    evidence = logsumexp(found) - np.log(draws)
    share = np.exp(found - np.max(found))
    error = np.std(share) / np.mean(share) / np.sqrt(draws)
    assert error < 0.1
    assert search.value < evidence + 6 * error
    # and not far below: one part of the gap is the mirror image of each place, log 2
    assert evidence - search.value < 6.0


def test_a_point_at_each_certain_place_gives_the_evidence_of_the_points():
    """With var = 0 and Z = X the bound is log p(Y | X) + log p(X)."""
    X = np.linspace(-1.5, 1.5, N)[:, None]
    ours = bound(ObservedTable.of(Y, ONE), places=Places(X, None), Z=X)
    prior = -0.5 * np.sum(X**2) - 0.5 * X.size * np.log(2 * np.pi)
    # the jitter of 1e-8 moves an eigenvalue of K + 0.05 I by 3e-7 of itself
    assert_allclose(ours, log_normal(Y, KERNEL(X) + 0.05 * np.eye(N)) + prior, rtol=1e-5)


def test_a_small_variance_is_nearly_a_point():
    table, tiny = ObservedTable.of(Y, ONE), 1e-9
    points = bound(table, places=Places(PLACES.mean, None))
    entropy = 0.5 * PLACES.mean.size * (1 + np.log(2 * np.pi * tiny))
    close = bound(table, places=Places(PLACES.mean, np.full((N, Q), tiny)))
    assert_allclose(close - entropy, points, rtol=1e-5)


def test_missing_cells_are_left_out():
    """Columns that each have some of the rows: the bound is the sum over columns of bounds on their rows."""
    holes = Y.copy()
    holes[0, 0] = holes[3, 1] = holes[4, 1] = np.nan
    together = bound(ObservedTable.of(holes, ONE))
    divergence = PLACES.divergence()[0]
    apart = 0.0
    for d in range(D):
        rows = ~np.isnan(holes[:, d])
        own = PLACES.take(rows)
        apart += bound(ObservedTable.of(holes[rows, d : d + 1], ONE[:1]), places=own) + own.divergence()[0]
    assert_allclose(together, apart - divergence, rtol=1e-10)


def test_rows_and_columns_without_cells_change_nothing():
    table = ObservedTable.of(Y, ONE)
    more = np.vstack([Y, np.full((2, D), np.nan)])
    prior = Places(np.vstack([PLACES.mean, np.zeros((2, Q))]), np.vstack([PLACES.var, np.ones((2, Q))]))
    assert_allclose(bound(ObservedTable.of(more, ONE), places=prior), bound(table), rtol=1e-12)


def test_columns_are_grouped_by_their_cells_and_noises():
    holes = Y.copy()
    holes[0, 0] = holes[0, 2] = np.nan
    table = ObservedTable.of(holes, ONE)
    assert table.group.tolist() == [0, 1, 0]
    assert_allclose(table.counts, [N - 1, N, N - 1])
    assert ObservedTable.of(holes, np.arange(D)).group.tolist() == [0, 1, 2]


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("noise", [0.05, [0.05, 0.1, 0.02]])
def test_gradients_are_those_of_differences(points, noise):
    holes = Y.copy()
    holes[1, 0] = np.nan
    places = Places(PLACES.mean, None) if points else PLACES
    start = position(places, noise, np.array([1.0, 2.0, 0.5]))
    table = ObservedTable.of(holes, np.arange(D))
    objective = LatentObjective(start, table)
    vector = objective.vector
    _, slope = objective(vector)
    for k in range(len(vector)):
        step = np.zeros(len(vector))
        step[k] = 1e-5
        ends = objective(vector + step)[0] - objective(vector - step)[0]
        assert_allclose(slope[k], ends / 2e-5, rtol=1e-4, atol=1e-5)


def test_rows_are_where_the_bound_has_put_them():
    """At the best position, a row's own part of the bound is flat at its place: what a new row finds with the
    functions held is what the search found with them free."""
    table = ObservedTable.of(Y, ONE)
    best, *_ = climb(position(PLACES), table, Report(), 500)
    q = weights(best.kernel.bare(), best.of_groups(table), best.Z, best.places, table)
    model = RowModel(best.kernel.bare(), best.variances(), best.Z, q, table.group, best.places)
    assert_allclose(model.polished(Y, best.places).mean, best.places.mean, atol=0.02)


def test_moments_of_rows_are_those_of_draws():
    """E f and var f at an uncertain place: an average over the place of the conditional moments."""
    table, kernel = ObservedTable.of(Y, ONE), KERNEL + 0.3 * Linear()
    q = weights(kernel.bare(), np.array([0.05]), Z, PLACES, table)
    model = RowModel(kernel.bare(), np.full(D, 0.05), Z, q, table.group, PLACES)
    mean, var = model.moments(Places(np.array([[0.3]]), np.array([[0.2]])))
    draws = 0.3 + np.sqrt(0.2) * np.random.default_rng(1).standard_normal((20_000, 1))
    own_mean, own_var = model.moments(Places(draws, np.full(draws.shape, 1e-300)))
    # six standard errors of 20,000 draws
    error = 6 * np.std(own_mean, axis=0) / np.sqrt(len(draws))
    assert np.all(np.abs(mean[0] - np.mean(own_mean, axis=0)) < error)
    total = np.mean(own_var + own_mean**2, axis=0) - np.mean(own_mean, axis=0) ** 2
    assert_allclose(var[0], total, rtol=0.1)
