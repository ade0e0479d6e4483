"""Dense Cholesky: in place, exact to rounding, and honest about jitter."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import NumericalError
from gramian.gram.operator import GramOperator
from gramian.linalg.factor import LADDER, inverse_in_place, inverse_root_in_place
from gramian.solvers import Cholesky


def operator(n, noise=0.1, seed=0):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 2))
    return GramOperator(1.2 * gm.RBF(0.9), X, np.full(n, noise))


def dense(op):
    return op.kernel(op.X) + np.diag(op.noise)


@given(n=st.integers(1, 40), noise=st.floats(1e-6, 10.0), c=st.floats(1e-3, 1e3), seed=st.integers(0, 1000))
def test_logdet_of_a_multiple(n, noise, c, seed):
    """logdet(c A) = n log c + logdet A, to the rounding of n logarithms of size 15."""
    op = operator(n, noise, seed)
    scaled = GramOperator(op.kernel * c, op.X, c * op.noise)
    assert_allclose(
        Cholesky().factor(scaled).logdet(), n * np.log(c) + Cholesky().factor(op).logdet(), atol=1e-8 * n
    )


@given(n=st.integers(1, 40), noise=st.floats(1e-6, 10.0), seed=st.integers(0, 1000))
def test_residual(n, noise, seed):
    """|A x - b| <= 10 n eps |A| |x|: what backward stability promises, whatever the condition number."""
    op = operator(n, noise, seed)
    A = dense(op)
    b = np.random.default_rng(seed).normal(size=n)
    x = Cholesky().factor(op).solve(b).value
    assert np.linalg.norm(A @ x - b) <= 10 * n * 2.3e-16 * np.linalg.norm(A, 2) * np.linalg.norm(x) + 1e-300


@pytest.mark.parametrize("n", [1, 5, 700])
def test_inverses_in_place(n):
    A = dense(operator(n))
    expected = np.linalg.inv(A)
    factor = Cholesky().factor(operator(n))
    inverse = inverse_in_place(factor.L)
    assert np.shares_memory(inverse, factor.L)
    assert_allclose(np.tril(inverse), np.tril(expected), rtol=1e-7, atol=1e-9)
    factor = Cholesky().factor(operator(n))
    root = inverse_root_in_place(factor.L)
    assert np.shares_memory(root, factor.L)
    assert np.all(np.triu(root, 1) == 0)
    assert_allclose(root.T @ root, expected, rtol=1e-7, atol=1e-9)


def test_jitter_starts_at_nothing_and_climbs_the_ladder():
    assert Cholesky().factor(operator(20)).jitter == 0
    X = np.zeros((3, 1))  # a matrix of ones
    factor = Cholesky().factor(GramOperator(gm.RBF(1.0), X, np.zeros(3)))
    assert factor.jitter == LADDER[1]
    assert factor.solve(np.ones(3)).outcome.jitter == LADDER[1]
    A = np.tril(factor.L) @ np.tril(factor.L).T
    assert_allclose(A - np.ones((3, 3)), LADDER[1] * np.eye(3), atol=1e-15)


def test_jitter_is_relative_to_the_diagonal():
    for scale in (1e-8, 1.0, 1e8):
        factor = Cholesky().factor(GramOperator(scale * gm.RBF(1.0), np.zeros((3, 1)), np.zeros(3)))
        assert factor.jitter == LADDER[1]


class Indefinite(gm.Kernel):
    """Not a kernel at all: negative on the diagonal."""

    def pair(self, x, z):
        return -1.0 - 0.0 * (x[0] + z[0])


def test_what_is_not_positive_definite_is_refused_with_the_row():
    with pytest.raises(
        NumericalError, match=r"not positive definite even with 1e-06.*fails at row 0"
    ) as caught:
        Cholesky().factor(GramOperator(Indefinite(), np.zeros((3, 1)), np.zeros(3)))
    assert "noise" in str(caught.value)
    with pytest.raises(NumericalError, match="even with 1e-12"):
        Cholesky(ladder=(0.0, 1e-12)).factor(GramOperator(Indefinite(), np.zeros((3, 1)), np.zeros(3)))


class Undefined(gm.Kernel):
    """Fine on the diagonal, no number beside it."""

    def pair(self, x, z):
        return (
            1.0 + 0.0 / (x[0] - z[0] + (x[0] == z[0]) * 1.0) + (x[0] != z[0]) * (x[0] - z[0]) * float("nan")
        )


def test_numbers_that_are_none_are_refused():
    with pytest.raises(NumericalError):
        Cholesky().factor(GramOperator(Undefined(), np.arange(3.0)[:, None], np.ones(3)))
    with pytest.raises(NumericalError, match=r"k\(x, x\) is inf at row 1"):
        Cholesky().factor(GramOperator(gm.Linear(1.0), np.array([[1.0], [1e200]]), np.ones(2)))


def test_a_solver_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Cholesky().ladder = (0.0,)
