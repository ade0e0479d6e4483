"""Lanczos quadrature: the tridiagonal matrix from CG, and the Gauss rule in it, against dense eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.solvers.cg import pcg
from gramian.solvers.lanczos import gauss_rule, on_sphere, quadratic_form, tridiagonal


def spd(n, low=0.5, high=20.0, seed=0):
    Q = np.linalg.qr(np.random.default_rng(seed).normal(size=(n, n)))[0]
    values = np.linspace(low, high, n)
    return (Q * values) @ Q.T, values, Q


def run(A, b, steps=1000, tol=1e-13):
    done = pcg(lambda V: A @ V, lambda V: V.copy(), b[:, None], tol, steps)
    return done.alphas[0], done.betas[0]


def test_tridiagonal_is_that_of_lanczos():
    """T = Q' A Q for an orthonormal basis of the Krylov space, made here by Gram-Schmidt on b, Ab, A^2 b,
    ..."""
    A, _, _ = spd(12)
    b, m = np.random.default_rng(1).normal(size=12), 5
    Q = np.linalg.qr(np.column_stack([np.linalg.matrix_power(A, j) @ b for j in range(m)]))[0]
    expected = Q.T @ A @ Q
    diagonal, beside = tridiagonal(*run(A, b, m))
    assert_allclose(diagonal, np.diag(expected), rtol=1e-8)
    assert_allclose(beside, np.abs(np.diag(expected, 1)), rtol=1e-8)


def test_all_steps_give_all_eigenvalues_and_their_weights():
    A, values, Q = spd(10)
    b = np.random.default_rng(2).normal(size=10)
    nodes, weights = gauss_rule(*run(A, b))
    assert_allclose(nodes, values, rtol=1e-9)
    assert_allclose(weights, (Q.T @ b) ** 2 / (b @ b), atol=1e-9)


@pytest.mark.parametrize("m", [1, 3, 6])
def test_exact_for_polynomials_of_degree_2m_minus_1_and_no_further(m):
    A, _, _ = spd(20, 0.5, 2.0)
    b = np.random.default_rng(3).normal(size=20)
    coefficients = run(A, b, m)
    for degree in range(2 * m):
        exact = b @ np.linalg.matrix_power(A, degree) @ b / (b @ b)
        assert_allclose(quadratic_form(*coefficients, lambda t, k=degree: t**k), exact, rtol=1e-10)
    exact = b @ np.linalg.matrix_power(A, 2 * m) @ b / (b @ b)
    assert abs(quadratic_form(*coefficients, lambda t: t ** (2 * m)) - exact) > 1e-9 * exact


def test_log_converges_while_orthogonality_is_lost():
    """cond = 1e6 and 300 steps on 100 eigenvalues: plain Lanczos repeats some, and the sum is right all the
    same."""
    n = 100
    Q = np.linalg.qr(np.random.default_rng(4).normal(size=(n, n)))[0]
    values = np.geomspace(1e-4, 1e2, n)
    A = (Q * values) @ Q.T
    b = np.random.default_rng(5).normal(size=n)
    alpha, beta = run(A, b, 1000, 1e-12)
    assert len(alpha) > n  # more nodes than eigenvalues
    exact = (Q.T @ b) ** 2 @ np.log(values) / (b @ b)
    assert_allclose(quadratic_form(alpha, beta, np.log), exact, rtol=1e-8)


def test_directions_are_uniform_on_the_sphere():
    W = on_sphere(np.random.default_rng(0), 30, 2000)
    assert_allclose(np.linalg.norm(W, axis=0), np.sqrt(30))
    assert np.all(np.abs(W @ W.T / 2000 - np.eye(30)) < 7 * np.sqrt(2 / 2000))  # 7 standard errors
    assert np.array_equal(on_sphere(np.random.default_rng(0), 30, 5), W[:, :5])
