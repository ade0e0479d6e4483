"""Preconditioners: P is what its definition says, in every form in which it is used."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import NumericalError, ParameterError
from gramian.gram.operator import GramOperator
from gramian.solvers import preconditioners
from gramian.solvers.preconditioners import FLOOR, Preconditioner, build


def operator(n=60, noise=(0.05, 0.5), seed=0):
    rng = np.random.default_rng(seed)
    return GramOperator(1.3 * gm.RBF(0.8), rng.uniform(-2, 2, (n, 2)), rng.uniform(*noise, n))


def dense(op):
    return op.kernel(op.X) + np.diag(op.noise)


def rng(seed=0):
    return np.random.default_rng(seed)


def matrix_of(P):
    return np.linalg.inv(P.solve(np.eye(P.n)))


def test_none_is_the_identity_and_jacobi_the_diagonal():
    op = operator()
    assert_allclose(build("none", op, 5, rng()).solve(np.eye(60)), np.eye(60))
    assert_allclose(
        build("jacobi", op, 5, rng()).solve(np.eye(60)), np.diag(1 / np.diag(dense(op))), rtol=1e-13
    )
    assert build("jacobi", op, 5, rng()).rank == 0


@pytest.mark.parametrize("name", ["pivoted", "rpcholesky"])
def test_low_rank_is_nystrom_from_its_pivots_plus_the_noise(name):
    """F F' = K(:, S) K(S, S)^-1 K(S, :), whatever the way to the pivots S; cond(K_SS) is 1e4 here, so 1e-9 is
    ample."""
    op = operator()
    P = build(name, op, 12, rng())
    assert P.rank == len(P.pivots) <= 12
    K, S = op.kernel(op.X), P.pivots
    expected = K[:, S] @ np.linalg.solve(K[np.ix_(S, S)], K[S]) + np.diag(op.noise)
    assert_allclose(matrix_of(P), expected, atol=1e-9)


@pytest.mark.parametrize("name", preconditioners.NAMES)
def test_all_faces_are_of_one_matrix(name):
    P = build(name, operator(), 12, rng())
    matrix = matrix_of(P)
    assert_allclose(P.logdet(), np.linalg.slogdet(matrix)[1], rtol=1e-10, atol=1e-10)
    H = P.root(np.eye(60))
    assert_allclose(H @ H.T, matrix, atol=1e-10)
    B = rng(1).normal(size=(60, 3))
    assert_allclose(matrix @ P.solve(B), B, atol=1e-9)


def test_greedy_pivots_take_the_largest_conditional_variance():
    """The first pivot is the first row (all variances are equal), the next the row that it determines
    least."""
    op = operator()
    K = op.kernel(op.X)
    pivots = build("pivoted", op, 2, rng()).pivots
    assert pivots[0] == 0
    assert pivots[1] == np.argmax(np.diag(K) - K[:, 0] ** 2 / K[0, 0])


def test_full_rank_is_the_matrix_itself():
    op = operator()
    assert_allclose(matrix_of(build("rpcholesky", op, 60, rng())), dense(op), atol=1e-9)
    assert_allclose(matrix_of(build("pivoted", op, 1000, rng())), dense(op), atol=1e-9)  # no more than n


def test_the_same_pivots_give_the_same_matrix():
    op = operator()
    P = build("rpcholesky", op, 12, rng(3))
    again = build("rpcholesky", op, 12, rng(4), P.pivots)
    assert np.array_equal(again.pivots, P.pivots)
    assert_allclose(matrix_of(again), matrix_of(P), atol=1e-9)


def test_pivots_that_repeat_each_other_are_survived():
    X = np.repeat(np.arange(4.0), 2)[:, None]
    op = GramOperator(gm.RBF(1.0), X, np.full(8, 0.1))
    P = build("rpcholesky", op, 4, rng(), np.array([0, 1, 2, 3]))
    expected = op.kernel(X[:, :])[:, [0, 2]] @ np.linalg.solve(
        op.kernel(X[[0, 2]]), op.kernel(X[[0, 2]], X)
    ) + 0.1 * np.eye(8)
    assert_allclose(matrix_of(P), expected, atol=1e-6)


def test_draws_have_covariance_P():
    """20,000 draws: 7 standard errors of each covariance, which a correct draw passes with odds of 1e11 to 1
    an entry."""
    P = build("rpcholesky", operator(12), 5, rng())
    matrix, N = matrix_of(P), 20_000
    Z = P.root(rng(1).standard_normal((N, 12)).T)
    assert Z.shape == (12, N)
    var = np.diag(matrix)
    assert np.all(np.abs(Z @ Z.T / N - matrix) <= 7 * np.sqrt((np.outer(var, var) + matrix**2) / N))


def test_without_noise_D_is_a_small_share_of_the_diagonal():
    for scale in (1e-6, 1.0, 1e6):
        op = GramOperator(scale * gm.RBF(1.0), np.arange(5.0)[:, None], np.zeros(5))
        assert_allclose(build("pivoted", op, 2, rng()).D, FLOOR * scale)


@pytest.mark.parametrize("power", [4, 8, 12])
def test_stays_positive_definite_at_any_condition_number(power):
    """cond(P) = 1e4 to 1e13: solve(P v) returns v in the direction of the largest eigenvalue, where Woodbury
    with a Cholesky factor has no digits."""
    n, noise = 40, 10.0**-power
    F = np.linalg.qr(rng().normal(size=(n, 3)))[0] * np.sqrt([10.0, 1.0, 0.1])
    P = Preconditioner.from_factor(F.copy(), np.full(n, noise))
    V = F / np.linalg.norm(F, axis=0)
    assert_allclose(
        np.diag(V.T @ P.solve(V)), 1 / (np.array([10.0, 1.0, 0.1]) + noise), rtol=1e-15 * 10.0 ** (power + 2)
    )
    assert np.linalg.eigvalsh(P.solve(np.eye(n)) + P.solve(np.eye(n)).T).min() > 0


def test_errors():
    with pytest.raises(ParameterError, match=r"'ilu' is not known. Give one of 'none', 'jacobi'"):
        build("ilu", operator(), 5, rng())
    for rank in (0, -3, 2.5, True):
        with pytest.raises(ParameterError, match="positive whole number"):
            build("pivoted", operator(), rank, rng())
    with pytest.raises(NumericalError, match=r"k\(x, x\) is inf at row 1"):
        build("jacobi", GramOperator(gm.Linear(1.0), np.array([[1.0], [1e200]]), np.ones(2)), 1, rng())
