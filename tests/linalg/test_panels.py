"""Cholesky by panels: what LAPACK gives, to rounding, at any width; no copies; and a report that can stop
it."""

from __future__ import annotations

import threading
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import lapack, solve_triangular

import gramian as gm
from gramian.errors import NumericalError
from gramian.gram.operator import GramOperator
from gramian.linalg import blas, panels, threads
from gramian.linalg import factor as dense
from gramian.linalg.panels import STRIP, Sizes
from gramian.solvers import Cholesky

EPS = np.finfo(float).eps
# below, at and beside whole panels of 64; the last not a whole number of anything
SIZES = [1, 5, 63, 64, 65, 300, 512, 701]


# hundreds of rows then go through every branch that tens of thousands do
SMALL = Sizes(tile=64, run=3, leaf=24)


def kernel_matrix(n, noise=0.1, order=False, seed=0):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 2))
    X = X[np.argsort(X[:, 0])] if order else X
    return np.exp(-0.5 * np.sum((X[:, None] - X[None]) ** 2, axis=2)) + noise * np.eye(n)


def graded(n):
    """A matrix whose rows differ in size by 1e6."""
    size, at = np.geomspace(1, 1e-6, n), np.arange(n)
    return np.outer(size, size) * np.exp(-np.abs(np.subtract.outer(at, at)) / 50)


def lower_only(A):
    """Fortran-ordered, with no number above the diagonal: whatever reads there is found out."""
    out = np.array(A, order="F")
    out[np.triu_indices(len(A), 1)] = np.nan
    return out


def factored(A):
    L = lower_only(A)
    assert panels.factor(L, sizes=SMALL) == 0
    return L


ILL = {
    "kernel": kernel_matrix(600, 1e-10),
    # neighbours in one panel: its diagonal block is as ill-conditioned as the whole
    "sorted": kernel_matrix(600, 1e-10, order=True),
    "graded": graded(600),
}


@pytest.mark.parametrize("n", SIZES)
def test_factor(n):
    """|A - L L'| <= n eps |A|, the bound of Golub and Van Loan's theorem 4.2.1 with a constant of 1; nothing
    above the diagonal is touched."""
    A = kernel_matrix(n)
    L = factored(A)
    assert np.all(np.isnan(L[np.triu_indices(n, 1)]))
    L = np.tril(L)
    assert np.linalg.norm(A - L @ L.T) <= n * EPS * np.linalg.norm(A)
    assert_allclose(L, np.linalg.cholesky(A), rtol=0, atol=n * EPS * np.linalg.cond(A) * np.max(np.abs(A)))


@pytest.mark.parametrize("A", ILL.values(), ids=ILL)
def test_as_accurate_as_lapack_where_it_is_hard(A):
    """Condition 1e12 and more: residuals within three times LAPACK's. (Panels divided by a product with the
    inverse of the diagonal block miss this by orders of magnitude, and so does an inverse root taken from the
    first panel to the last.)"""
    n, eye = len(A), np.eye(len(A))
    reference, info = lapack.dpotrf(A, lower=1)
    assert info == 0
    L = factored(A)
    root, inverse = L.copy(order="F"), L.copy(order="F")
    panels.inverse_root(root, sizes=SMALL)
    panels.inverse(inverse, sizes=SMALL)

    def residuals(L, W, X):
        L, W, X = np.tril(L), np.tril(W), np.tril(X) + np.tril(X, -1).T
        of_root = np.linalg.norm(W @ L - eye) / (np.linalg.norm(W) * np.linalg.norm(L))
        return np.array(
            [
                np.linalg.norm(A - L @ L.T) / np.linalg.norm(A),
                of_root,
                np.linalg.norm(X @ A - eye) / (np.linalg.norm(X) * np.linalg.norm(A)),
            ]
        )

    ours = residuals(L, root, inverse)
    theirs = residuals(reference, lapack.dtrtri(reference, lower=1)[0], lapack.dpotri(reference, lower=1)[0])
    assert np.all(ours <= np.maximum(3 * theirs, EPS)), ours / theirs
    B = np.random.default_rng(0).normal(size=(n, 3))
    X = B.copy(order="F")
    panels.solve(L, X, sizes=SMALL)
    assert np.linalg.norm(A @ X - B) <= 10 * EPS * np.linalg.norm(A) * np.linalg.norm(X)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("k", [1, 3, 200])
def test_solves(n, k):
    A = kernel_matrix(n)
    L = factored(A)
    B = np.asfortranarray(np.random.default_rng(n).normal(size=(n, k)))
    divided, solved = B.copy(order="F"), B.copy(order="F")
    panels.divide(L, divided, sizes=SMALL)
    panels.solve(L, solved, sizes=SMALL)
    # condition of L: below 100
    assert_allclose(divided, solve_triangular(np.tril(L), B, lower=True), rtol=0, atol=1e-11)
    assert np.linalg.norm(A @ solved - B) <= 10 * n * EPS * np.linalg.norm(A) * np.linalg.norm(solved)


@pytest.mark.parametrize("n", SIZES)
def test_inverses(n):
    A = kernel_matrix(n)
    expected = np.linalg.inv(A)
    tolerance = n * EPS * np.linalg.cond(A) * np.max(np.abs(expected))
    L = factored(A)
    assert_allclose(panels.inverse_diagonal(L, sizes=SMALL), np.diagonal(expected), rtol=0, atol=tolerance)
    root, inverse = L.copy(order="F"), L.copy(order="F")
    panels.inverse_root(root, sizes=SMALL)
    panels.inverse(inverse, sizes=SMALL)
    assert_allclose(np.tril(root), np.linalg.inv(np.tril(L)), rtol=0, atol=tolerance)
    assert_allclose(np.tril(inverse), np.tril(expected), rtol=0, atol=tolerance)
    assert np.all(np.isnan(inverse[np.triu_indices(n, 1)]))


@pytest.mark.parametrize("row", [0, 63, 64, 200, 299])
def test_the_row_that_fails_is_lapacks(row):
    A = kernel_matrix(300)
    A[row, row] = -1.0
    assert panels.factor(lower_only(A), sizes=SMALL) == lapack.dpotrf(A, lower=1)[1] == row + 1


@pytest.mark.parametrize(("row", "column"), [(0, 0), (70, 70), (299, 299), (200, 10)])
def test_a_pivot_that_is_no_number_fails(row, column):
    A = kernel_matrix(300)
    A[row, column] = np.nan
    assert panels.factor(np.array(A, order="F"), sizes=SMALL) == row + 1


def test_no_large_copies():
    """What is held beside the arrays, as tracemalloc sees it, tasks included: a tenth of the matrix at most,
    though tiles of 64 make it hundreds of tasks. The diagonal of the inverse takes a strip a thread, and one
    that waits."""
    n = 701
    L, B = lower_only(kernel_matrix(n)), np.zeros((n, 100), order="F")

    def peak(work, *arguments):
        tracemalloc.start()
        work(*arguments, sizes=SMALL)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(panels.factor, L) < 0.1 * L.nbytes
    assert peak(panels.solve, L, B) < 0.01 * L.nbytes
    strip = 8 * n * SMALL.tile
    assert strip <= peak(panels.inverse_diagonal, L) < (1.2 + threads.count()) * strip
    assert peak(panels.inverse, L) < 0.1 * L.nbytes


@pytest.fixture
def on_threads():
    """Sets the number of threads for a test."""
    before = threads.count()
    yield threads.set_threads
    threads.set_threads(before)


@pytest.mark.parametrize("n", [1, 64, 500])
@pytest.mark.parametrize("count", [1, 3])
def test_reports_rise_to_one(n, count, on_threads):
    on_threads(count)
    shares = []
    panels.factor(lower_only(kernel_matrix(n)), shares.append, sizes=SMALL)
    assert np.all(np.diff(shares) >= 0)
    assert shares[-1] == 1.0
    assert shares[0] > 0
    # with several threads it is told when this one has finished a tile, however many the others have
    assert n < 500 or count > 1 or (len(shares) >= 8 and shares[0] < 0.5)


@pytest.mark.parametrize("count", [1, 3])
def test_an_interrupt_ends_the_work(count, on_threads):
    """Nobody works on once the caller has the exception: what it then does with its arrays stays."""
    on_threads(count)

    def interrupt(share):
        told.append(share)
        raise KeyboardInterrupt

    told = []
    with pytest.raises(KeyboardInterrupt):
        panels.factor(lower_only(kernel_matrix(500)), interrupt, sizes=SMALL)
    assert len(told) == 1
    assert all(thread.name.startswith(("MainThread", "gramian")) for thread in threading.enumerate())


def test_nobody_writes_after_an_interrupt(on_threads):
    on_threads(3)

    def interrupt(share):
        raise KeyboardInterrupt

    for _ in range(20):
        A = lower_only(kernel_matrix(300))
        with pytest.raises(KeyboardInterrupt):
            panels.factor(A, interrupt, sizes=SMALL)
        A[...] = 7.0
        panels.factor(lower_only(kernel_matrix(100)), sizes=SMALL)  # some time
        assert np.all(A == 7.0)


@pytest.mark.parametrize("work", [panels.factor, panels.inverse_root, panels.inverse, panels.square])
def test_any_number_of_threads_gives_the_same_bits(work, on_threads):
    """Each tile sees the same operations in the same order."""
    start = np.tril(kernel_matrix(701) if work is panels.factor else factored(kernel_matrix(701)))
    found = []
    for count in (1, 2, 5):
        on_threads(count)
        for _ in range(5):
            A = start.copy(order="F")
            work(A, sizes=SMALL)
            found.append(np.tril(A))
    for other in found[1:]:
        assert_array_equal(other, found[0])


@pytest.mark.parametrize("n", SIZES)
def test_square(n):
    W = np.tril(np.random.default_rng(n).normal(size=(n, n)))
    A = lower_only(W)
    panels.square(A, sizes=SMALL)
    assert_allclose(np.tril(A), np.tril(W.T @ W), rtol=0, atol=10 * n * EPS * n)
    assert np.all(np.isnan(A[np.triu_indices(n, 1)]))


def test_sizes_follow_the_rows():
    assert [panels.sizes_for(n).tile for n in (1, 2_000, 8_192, 16_384, 40_000)] == [
        256,
        256,
        512,
        1024,
        1024,
    ]


def test_blocks_are_views():
    """A product of two blocks of an array into a third: that block alone changes."""
    array = np.random.default_rng(0).normal(size=(9, 7)).copy(order="F")
    expected = array.copy()
    expected[5:8, 4:6] -= 2.0 * array[1:5, 0:3].T @ array[5:7, 0:4].T
    M = blas.block_of(array)
    blas.gemm(-2.0, M[1:5, 0:3], M[5:7, 0:4], M[5:8, 4:6], transpose_a=True, transpose_b=True)
    assert_allclose(array, expected, rtol=1e-14, atol=1e-14)
    with pytest.raises(AssertionError):
        blas.block_of(np.ones((2, 3)))  # row-major


def operator(n, noise=0.1, seed=0):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 2))
    return GramOperator(1.2 * gm.RBF(0.9), X, np.full(n, noise))


def test_tiles_give_what_lapack_gives():
    """The functions that choose between them have LAPACK for so few rows."""
    A, B = kernel_matrix(300), np.asfortranarray(np.random.default_rng(1).normal(size=(300, 2 * STRIP + 3)))
    L, by_tiles = lower_only(A), factored(A)
    assert dense.factor_in_place(L) == 0
    X = B.copy(order="F")
    panels.solve(by_tiles, X, sizes=SMALL)
    root, inverse = by_tiles.copy(order="F"), by_tiles.copy(order="F")
    panels.inverse_root(root, sizes=SMALL)
    panels.inverse(inverse, sizes=SMALL)
    pairs = [
        (np.tril(by_tiles), np.tril(L)),
        (X, dense.solve(L, B)),
        (np.tril(inverse), np.tril(dense.inverse_in_place(L.copy(order="F")))),
        (np.tril(root), dense.inverse_root_in_place(L)),
    ]
    for ours, theirs in pairs:
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)  # condition 1e3 times 300 eps, and room


def test_solve_leaves_its_argument_alone():
    B = np.ones((600, 2), order="F")
    Cholesky().factor(operator(600)).solve(B)
    assert_array_equal(B, 1.0)


def test_the_ladder_climbs_by_panels_and_its_report_never_falls():
    shares, ones = [], np.ones((600, 600))
    L, jitter = dense.factored(lambda A, _: np.copyto(A, ones), 600, report=shares.append)
    assert jitter == dense.LADDER[1]
    assert np.all(np.diff(shares) >= 0)
    assert shares[-1] == 1.0
    L = np.tril(L)
    assert_allclose(L @ L.T - ones, jitter * np.eye(600), atol=600 * EPS)


def test_what_is_not_positive_definite_is_refused_with_the_row():
    noise = np.full(600, 0.1)
    noise[222] = -5.0
    with pytest.raises(NumericalError, match="fails at row 222"):
        Cholesky().factor(GramOperator(gm.RBF(0.01), operator(600).X, noise))
