"""Partial Cholesky factors with pivots: the greedy ones and the random ones, against the column by column
algorithm and what is proved of them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gramian as gm
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.landmarks import pivoted
from gramian.landmarks.pivoted import pivoted_cholesky
from gramian.landmarks.rules import landmarks
from tests.landmarks.test_landmarks import KERNEL, cluster_and_few, nystrom


@pytest.fixture
def X(rng):
    return rng.normal(size=(70, 2))


@pytest.fixture
def uneven(rng):
    return cluster_and_few(rng)


def greedy(K, m):
    """Pivoted Cholesky column by column."""
    residual, pivots = K.copy(), []
    for _ in range(m):
        p = int(np.argmax(np.diag(residual)))
        pivots.append(p)
        residual = residual - np.outer(residual[p], residual[p]) / residual[p, p]
    return pivots, residual


@pytest.mark.parametrize(("candidates", "at_once"), [(2048, 64), (8, 3), (1, 1), (16, 64)])
def test_greedy_pivots_are_those_of_the_column_by_column_algorithm(candidates, at_once, X, monkeypatch):
    monkeypatch.setattr(pivoted, "CANDIDATES", candidates)
    monkeypatch.setattr(pivoted, "MOST_AT_ONCE", at_once)
    expected, residual = greedy(KERNEL(X), 25)
    found = pivoted_cholesky(KERNEL, X, 25)
    assert_array_equal(found.pivots, expected)
    assert_allclose(found.residual_diagonal, np.diag(residual), atol=1e-12)
    assert_array_equal(landmarks(KERNEL, X, 25, "pivoted").indices, expected)
    # at first all rows are equal
    assert_array_equal(pivoted_cholesky(gm.RBF(0.5), X, 10).pivots, greedy(gm.RBF(0.5)(X), 10)[0])


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "pivoted"},
        {"rule": "rpcholesky"},
        {"rule": "rpcholesky", "block": 1},
        {"rule": "rpcholesky", "block": 30},
    ],
)
def test_the_factor_is_the_nystrom_approximation_from_its_pivots(options, X, rng):
    K = KERNEL(X)
    found = pivoted_cholesky(KERNEL, X, 30, rng, **options)
    assert found.F.shape == (70, 30)
    assert len(set(found.pivots)) == 30
    error = K - found.F @ found.F.T
    assert_allclose(error[found.pivots], 0.0, atol=1e-10)  # exact where it was taken from
    assert_allclose(found.F @ found.F.T, nystrom(K, found.pivots), atol=1e-8)
    assert_allclose(np.diag(error), found.residual_diagonal, atol=1e-12)
    assert np.all(found.residual_diagonal >= 0)
    # lower triangular in the order of the pivots
    assert_allclose(np.triu(found.F[found.pivots], 1), 0.0, atol=1e-9)


@pytest.mark.parametrize("rule", ["pivoted", "rpcholesky"])
def test_no_more_pivots_than_the_kernel_has_dimensions(rule, X, rng):
    found = pivoted_cholesky(gm.Linear(), X, 20, rng, rule=rule)
    assert len(found.pivots) == found.F.shape[1] == 2
    assert_allclose(found.residual_diagonal, 0.0, atol=1e-12)
    twice = landmarks(gm.Matern12(0.3), np.concatenate([X, X]), 140, rule, 0)
    assert len(twice.indices) == 70
    assert len(np.unique(twice.Z, axis=0)) == 70


def test_simple_rpcholesky_draws_pairs_with_the_chances_of_its_definition(rng):
    X = np.array([[0.0, 1.0], [0.3, 1.0], [2.0, 0.0], [-1.0, -1.0]])
    K = KERNEL(X)
    chances = np.zeros((4, 4))
    for i in range(4):
        left = np.diag(K) - K[:, i] ** 2 / K[i, i]
        left[i] = 0.0
        chances[i] = K[i, i] / np.trace(K) * left / np.sum(left)
    counts, draws = np.zeros((4, 4)), 1200
    for _ in range(draws):
        i, j = pivoted_cholesky(KERNEL, X, 2, rng, rule="rpcholesky", block=1).pivots
        counts[i, j] += 1
    deviation = (counts - draws * chances) / np.sqrt(np.maximum(draws * chances * (1 - chances), 1.0))
    # 12 numbers that are nearly normal or have expectation below 1: 1e-5, for the one seed there is
    assert np.max(np.abs(deviation)) < 5


@pytest.mark.parametrize("block", [1, None])
def test_rpcholesky_keeps_the_bound_on_its_expected_error(block, uneven):
    """Theorem 3.1: E trace(K - F F') <= (1 + eps) sum_{j > r} s_j once m >= r / eps + r log(1 / (eps eta)),
    eta that sum's share of the trace."""
    kernel, r, eps = gm.RBF(0.5), 12, 0.5
    K = kernel(uneven)
    values = np.linalg.eigvalsh(K)
    tail = np.sum(values[:-r])
    m = int(np.ceil(r / eps + r * np.log(np.trace(K) / (eps * tail))))
    assert m < 100
    errors = [
        np.sum(
            pivoted_cholesky(
                kernel, uneven, m, np.random.default_rng(seed), rule="rpcholesky", block=block
            ).residual_diagonal
        )
        for seed in range(20)
    ]
    assert np.mean(errors) <= (1 + eps) * tail


def test_a_block_leaves_out_what_the_rest_of_it_explains(rng):
    """Greedy within the block, until less than 1/b of its trace is left."""
    A = rng.normal(size=(12, 4)) * [3.0, 1.0, 0.1, 0.01]
    R = A @ A.T + 1e-6 * np.eye(12)
    kept, L = pivoted._without_redundant(R.copy(), 12)
    expected, _ = greedy(R, 12)
    left = [np.trace(greedy(R, j)[1]) / np.trace(R) for j in range(13)]
    enough = next(j for j in range(13) if left[j] < 1 / 12)
    assert 1 < enough < 4
    assert_array_equal(kept, expected[:enough])
    assert_allclose(L @ L.T, R[np.ix_(kept, kept)], rtol=1e-12)


def test_blocks_do_not_fill_up_with_one_cluster(rng):
    """A tight cluster has nearly all the trace and one dimension: without the filter a block of 20 would take
    some 19 rows of it."""
    X = np.concatenate([1e-3 * rng.normal(size=(2000, 2)), rng.uniform(-50, 50, (100, 2))])
    for seed in range(5):
        found = landmarks(gm.RBF(1.0), X, 60, "rpcholesky", seed, block=20)
        # the cluster's few dimensions above rounding, at most two a round
        assert np.sum(found.indices < 2000) <= 12
        assert len(found.indices) == 60


class Broken(gm.Kernel):
    """Finite on the diagonal only."""

    def pair(self, x, z):
        return jnp.where(jnp.all(x == z), 1.0, jnp.nan)


@pytest.mark.parametrize("rule", ["pivoted", "rpcholesky"])
def test_a_kernel_without_numbers_is_an_error(rule, X):
    with pytest.raises(NumericalError, match="no finite number"):
        landmarks(Broken(), X, 5, rule, 0)


def test_the_factor_alone_says_what_it_needs(X):
    for options, message in [
        ({"m": 71}, "1 to 70 columns, not 71"),
        ({"m": 5, "rule": "x"}, "no rule for pivots"),
        ({"m": 5, "block": 2}, "for rpcholesky"),
    ]:
        with pytest.raises((InputError, ParameterError), match=message):
            pivoted_cholesky(KERNEL, X, **options)
    with pytest.raises(ParameterError, match="at least one pivot"):
        pivoted_cholesky(KERNEL, X, 5, rule="rpcholesky", block=0)
