"""MINRES-QLP: minimal residuals, minimum length, on definite, indefinite and singular systems."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.linalg import LinearOperator
from scipy.sparse.linalg import minres as scipy_minres

import gramian as gm
from gramian.errors import ParameterError
from gramian.gram.operator import GramOperator
from gramian.solvers import Cholesky
from gramian.solvers.cg import CG
from gramian.solvers.minres import MINRES, minres_qlp
from gramian.testing import check_factor

INDEFINITE = np.r_[np.linspace(-5, -1, 15), np.linspace(1, 20, 25)]
SINGULAR = np.r_[np.zeros(10), np.linspace(-5, -1, 10), np.linspace(1, 20, 20)]


def symmetric(values, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(len(values), len(values))))[0]
    A = (Q * values) @ Q.T
    return 0.5 * (A + A.T)


def times(A):
    return lambda V: A @ V


def operator(n, noise=0.1, seed=0):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 2))
    return GramOperator(1.2 * gm.RBF(0.9), X, np.full(n, noise))


def dense(op):
    return op.kernel(op.X) + np.diag(op.noise)


@pytest.mark.parametrize("name", ["none", "jacobi", "rpcholesky"])
def test_contract(name):
    check_factor(
        MINRES(tol=1e-9, preconditioner=name, probes=64), rtol=1e-7 if name == "rpcholesky" else 0.02
    )


@pytest.mark.parametrize("n", [799, 800, 801, 3000])
def test_agrees_with_cholesky(n):
    """|x - x*| <= |A^-1| |r| <= tol |b| / noise."""
    op = operator(n, 0.3)
    B = np.random.default_rng(1).normal(size=(n, 3))
    value, outcome = MINRES(tol=1e-8).factor(op).solve(B)
    assert outcome.converged
    assert outcome.residual <= 1e-8
    assert np.all(
        np.linalg.norm(value - Cholesky().factor(op).solve(B).value, axis=0)
        <= 1e-8 / 0.3 * np.linalg.norm(B, axis=0)
    )


@pytest.mark.parametrize("float32", [False, True])
def test_stated_residual_is_the_true_one(float32):
    op = operator(600, 0.01)
    B = np.random.default_rng(1).normal(size=(600, 3)) * [1.0, 1e-40, 0.0]
    value, outcome = MINRES(tol=1e-7, rank=30, float32=float32).factor(op).solve(B)
    true = np.max(np.linalg.norm(B - dense(op) @ value, axis=0)[:2] / np.linalg.norm(B, axis=0)[:2])
    assert outcome.converged
    assert_allclose(outcome.residual, true, rtol=1e-3)
    assert true <= 1e-7
    assert np.all(value[:, 2] == 0)


@pytest.mark.parametrize("values", [np.linspace(1, 20, 40), INDEFINITE])
def test_each_step_minimises_the_residual_over_the_krylov_space(values):
    """What defines MINRES, here by least squares on b, Ab, A^2 b, ...; and the recurrence knows its
    residual."""
    A, b = symmetric(values), np.random.default_rng(1).normal(size=40)
    for m in range(1, 7):
        K = np.linalg.qr(np.column_stack([np.linalg.matrix_power(A, j) @ b for j in range(m)]))[0]
        best = K @ np.linalg.lstsq(A @ K, b, rcond=None)[0]
        done = minres_qlp(times(A), b, max_iter=m)
        assert done.iterations == m
        assert_allclose(done.X, best, rtol=1e-6, atol=1e-8)
        assert_allclose(done.residuals[0], np.linalg.norm(b - A @ best) / np.linalg.norm(b), rtol=1e-9)


def test_takes_the_steps_of_scipys_minres():
    A, b = symmetric(np.linspace(1, 20, 60)), np.random.default_rng(1).normal(size=60)
    for m in (3, 10):
        theirs, _ = scipy_minres(LinearOperator(A.shape, matvec=lambda v: A @ v), b, rtol=1e-16, maxiter=m)
        assert_allclose(minres_qlp(times(A), b, max_iter=m).X, theirs, rtol=1e-6, atol=1e-9)


def test_indefinite_systems():
    """cond = 20, so the error is at most 20 times the residual."""
    A, B = symmetric(INDEFINITE), np.random.default_rng(1).normal(size=(40, 3))
    done = minres_qlp(times(A), B, tol=1e-11)
    assert not done.least_squares
    assert np.all(done.residuals <= 1e-11)
    expected = np.linalg.solve(A, B)
    assert np.linalg.norm(done.X - expected) <= 100 * 1e-11 * np.linalg.norm(expected)


@pytest.mark.parametrize("seed", range(5))
def test_singular_consistent_systems_have_the_shortest_solution(seed):
    A = symmetric(SINGULAR, seed)
    B = A @ np.random.default_rng(seed).normal(size=(40, 2))
    done = minres_qlp(times(A), B, tol=1e-11)
    assert not done.least_squares
    assert_allclose(done.X, np.linalg.pinv(A, rcond=1e-10) @ B, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "values", [SINGULAR, np.r_[np.zeros(37), 1.0, 2.0, -3.0], np.r_[np.zeros(10), np.linspace(1, 20, 30)]]
)
def test_singular_inconsistent_systems_have_the_shortest_least_squares_solution(values, seed):
    """The error is about cond sqrt(eps) at worst, 3e-7: rounding hides the end of the Lanczos process. Plain
    MINRES is far off."""
    A, b = symmetric(values, seed), np.random.default_rng(seed).normal(size=40)
    done = minres_qlp(times(A), b, tol=1e-11)
    expected = np.linalg.pinv(A, rcond=1e-10) @ b
    assert done.least_squares
    assert np.linalg.norm(done.X - expected) <= 1e-6 * np.linalg.norm(expected)
    assert_allclose(done.residuals[0], np.linalg.norm(b - A @ expected) / np.linalg.norm(b), rtol=1e-9)
    theirs, _ = scipy_minres(LinearOperator(A.shape, matvec=lambda v: A @ v), b, rtol=1e-12)
    # or there is nothing that QLP adds
    assert np.linalg.norm(theirs - expected) > 1e-3 * np.linalg.norm(expected)


def test_degenerate_systems():
    b = np.arange(1.0, 4.0)
    assert np.all(minres_qlp(lambda V: 0.0 * V, b).X == 0)
    assert_allclose(minres_qlp(lambda V: -2.0 * V, b).X, -b / 2)
    assert np.all(minres_qlp(lambda V: V, np.zeros(3)).X == 0)
    assert minres_qlp(lambda V: V, np.zeros((3, 0))).X.shape == (3, 0)
    assert_allclose(minres_qlp(lambda V: 4.0 * V, np.array([2.0])).X, [0.5])


def test_columns_share_products_and_leave():
    A = np.diag(np.linspace(1, 100, 50))
    widths = []

    def product(V):
        widths.append(V.shape[1])
        return A @ V

    B = np.column_stack([np.eye(50)[0], np.ones(50)])  # an eigenvector: one step
    done = minres_qlp(product, B, tol=1e-10)
    assert widths[0] == 2
    assert set(widths[1:]) == {1}
    assert_allclose(done.X, np.linalg.solve(A, B), atol=1e-8)


def test_preconditioned_is_plain_on_the_transformed_system():
    """The same iterates as on H^-1 A H^-T, P = H H'; indefinite A, positive definite P."""
    rng = np.random.default_rng(0)
    A, b, h = symmetric(INDEFINITE), rng.normal(size=40), rng.uniform(0.5, 2.0, 40)
    for m in (1, 2, 5, 20):
        ours = minres_qlp(times(A), b, max_iter=m, precondition=lambda V: V / (h**2)[:, None])
        plain = minres_qlp(times(A / np.outer(h, h)), b / h, max_iter=m)
        assert_allclose(ours.X, plain.X / h, rtol=1e-6, atol=1e-9)
        assert_allclose(ours.residuals, plain.residuals, rtol=1e-8)


def test_gram_matrix_of_repeated_rows_without_noise():
    """Singular: where y agrees the answer is the shortest solution, where it does not, the least-squares one,
    and the outcome says so."""
    X = np.repeat(np.arange(6.0), 2)[:, None]
    op = GramOperator(gm.Matern12(1.0), X, np.zeros(12))
    factor = MINRES(preconditioner="none", tol=1e-9).factor(op)
    inverse = np.linalg.pinv(op.kernel(X), rcond=1e-10)
    agrees = np.repeat(np.random.default_rng(0).normal(size=6), 2)
    value, outcome = factor.solve(agrees)
    assert outcome.converged
    assert_allclose(value, inverse @ agrees, atol=1e-7)
    y = np.random.default_rng(1).normal(size=12)
    value, outcome = factor.solve(y)
    assert not outcome.converged
    assert "outside its range" in outcome.note
    assert_allclose(value, inverse @ y, atol=1e-6)


def test_log_determinant_and_probes_are_those_of_cg():
    op = operator(200, 0.05)
    ours, theirs = (solver(rank=20, seed=3).factor(op) for solver in (MINRES, CG))
    assert ours.logdet_estimate() == theirs.logdet_estimate()
    assert ours.logdet() == ours.logdet_estimate()[0]
    assert all(np.array_equal(a, b) for a, b in zip(ours.probe_pair(), theirs.probe_pair(), strict=True))
    assert ours.probe_outcome == theirs.probe_outcome


def test_residuals_never_grow_and_a_missed_tolerance_is_said():
    op = operator(300, 1e-4)
    left = [minres_qlp(op.matmul, np.ones(300), max_iter=m).residuals[0] for m in range(1, 13)]
    assert all(later <= earlier for earlier, later in pairwise(left))
    solver = MINRES(preconditioner="none", max_iter=12, float32=False)
    outcome = solver.factor(op).solve(np.ones(300)).outcome
    assert outcome.iterations == 12
    assert not outcome.converged
    assert "all that were allowed" in outcome.note
    with pytest.raises(ParameterError, match="tol=2"):
        MINRES(tol=2)
