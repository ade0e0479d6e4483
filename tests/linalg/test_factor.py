"""One factorisation for everybody: what it gives, how it climbs its ladder, what it says when that ends."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gramian.errors import NumericalError
from gramian.linalg import factor
from gramian.linalg.factor import LADDER, LAPACK_UP_TO, factored

EPS = np.finfo(float).eps
SIZES = [1, 40, LAPACK_UP_TO, LAPACK_UP_TO + 1, 700]


def kernel_matrix(n, noise=0.1):
    X = np.random.default_rng(n).uniform(-2, 2, (n, 2))
    return np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2)) + noise * np.eye(n)


def filling(A, asked=None):
    """A fill that writes no number above the diagonal, and notes the jitter it was called with."""

    def fill(out, jitter):
        out[...] = np.tril(A)
        out[np.triu_indices(len(A), 1)] = np.nan
        if asked is not None:
            asked.append(jitter)

    return fill


@pytest.mark.parametrize("n", SIZES)
def test_everything_is_made_in_the_array_of_the_factor(n):
    A, B = kernel_matrix(n), np.random.default_rng(1).normal(size=(n, 3))
    expected = np.linalg.inv(A)
    tolerance = n * EPS * np.linalg.cond(A) * np.max(np.abs(expected))
    room = np.empty((n, n), order="F")
    L, jitter = factored(filling(A), room)
    assert jitter == 0
    assert L is room
    assert_allclose(np.tril(L) @ np.tril(L).T, A, rtol=0, atol=n * EPS * np.linalg.norm(A))
    assert_allclose(factor.logdet(L), np.linalg.slogdet(A)[1], rtol=1e-12, atol=1e-12)
    before = B.copy()
    assert_allclose(factor.solve(L, B), expected @ B, rtol=0, atol=10 * tolerance)
    assert_allclose(factor.solve(L, B[:, 0]), factor.solve(L, B[:, :1])[:, 0], rtol=0, atol=0)
    assert_array_equal(B, before)
    inverse = factor.inverse_in_place(L.copy(order="F"))
    assert_allclose(np.tril(inverse), np.tril(expected), rtol=0, atol=tolerance)
    root = factor.inverse_root_in_place(L)
    assert np.shares_memory(root, room)
    assert np.all(np.triu(root, 1) == 0)
    assert_allclose(root.T @ root, expected, rtol=0, atol=tolerance)
    assert_allclose(factor.squared_times(root, B[:, 0]), expected @ B[:, 0], rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("n", [3, 700])
def test_each_rung_is_filled_anew(n):
    """A matrix of ones needs the first rung above nothing; what is added is a share of the mean diagonal."""
    asked = []
    L, jitter = factored(filling(np.full((n, n), 1e5), asked), n)
    assert asked == [0.0, LADDER[1]]
    assert jitter == LADDER[1]
    L = np.tril(L)
    assert_allclose(L @ L.T - 1e5, jitter * 1e5 * np.eye(n), rtol=0, atol=1e5 * n * EPS)


def test_who_never_goes_without_starts_higher():
    for least, first in ((1e-12, 1e-12), (1e-8, 1e-8), (3e-13, 3e-13)):
        assert factored(filling(np.eye(3)), 3, least=least)[1] == first
    asked = []
    with pytest.raises(NumericalError, match="even with 1e-06"):
        factored(filling(-np.eye(3), asked), 3, least=1e-11)
    assert asked == [1e-11, 1e-10, 1e-8, 1e-6]
    assert factored(filling(np.ones((3, 3))), 3, ladder=(1e-8,))[1] == 1e-8


@pytest.mark.parametrize("n", [40, 700])
def test_the_end_of_the_ladder_names_matrix_row_and_cure(n):
    A = np.eye(n)
    A[31, 31] = -1.0
    with pytest.raises(
        NumericalError, match=r"^K_zz is not positive definite even with 1e-06 .* fails at row 31.* Fewer\.$"
    ):
        factored(filling(A), n, what="K_zz", cure="Fewer.")
    with pytest.raises(NumericalError, match=r"^K_zz is not positive definite: it fails at row 31"):
        factored(filling(A), n, ladder=(0.0,), what="K_zz")


def test_a_diagonal_that_overflows_is_told_apart():
    A = np.eye(5)
    A[3, 3] = np.inf
    with pytest.raises(NumericalError, match=r"k\(x, x\) is inf at row 3"):
        factored(filling(A), 5)


@pytest.mark.parametrize("n", [40, 700])
def test_reports_never_fall_from_rung_to_rung(n):
    shares = []
    factored(filling(np.ones((n, n))), n, report=shares.append)
    assert np.all(np.diff(shares) >= 0)
    assert shares[-1] == 1.0
