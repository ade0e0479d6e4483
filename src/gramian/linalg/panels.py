"""Dense Cholesky by tiles, in place, in the lower triangle of one Fortran-ordered array (n, n).

With A split at a panel of columns, rows and columns 0 before it, 1 in it, 2 after it:

    factor           L11 = chol(A11),  L21 = A21 L11^-T,  A22 <- A22 - L21 L21'   first panel to last, n^3 / 3
    inverse root     W21 = -A21 L11^-1,  A20 <- A20 + W21 L10,                    last panel to first, n^3 / 3
                     W11 = L11^-1,  W10 <- W11 L10
    inverse          A00 <- A00 + W10' W10,  A10 = W11' W10,  A11 = W11' W11      first panel to last, n^3 / 3

Each line is cut into square tiles, a task each (linalg/tasks.py): the next panel is factored while the last
one's updates go on. Nearly all flops are products of tiles of 256, at the speed of larger ones (50 GFlop/s on
the core where it was measured); LAPACK sees diagonal tiles alone. (SciPy's threaded dpotrf has been seen to
end the process at n = 23,100.) Extra memory: none, but for `inverse_diagonal` (`STRIP` columns a thread).

The order of the steps matters for rounding. An inverse root from the first panel to the last has a residual
that grew to 1e7 times LAPACK's on a kernel matrix of condition 1e12; from the last to the first W22 L21 is
formed and then divided by L11, as in dtrtri, and W L - I stays small. For the same reason L21 comes from a
triangular solve and not from a product with L11^-1.

Now and then a factor's `report` is told the share of the work done; an exception it raises, or Ctrl-C, ends
the work after the tiles that are being worked on.

Source: Bientinesi, Gunter and van de Geijn 2008, Families of algorithms related to the inversion of a
symmetric positive definite matrix; Du Croz and Higham 1992, Stability of methods for matrix inversion; Golub
and Van Loan, Matrix Computations, section 4.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.linalg import blas
from gramian.linalg.blas import BlasBlock, block_of
from gramian.linalg.tasks import Task, Tile, run
from gramian.linalg.threads import for_each, one_blas_thread

Report = Callable[[float], None]

# columns that dtrsm solves at once, at a third of the speed of a product: larger systems are halved first
LEAF = 64
# right-hand sides that a thread divides at a time: each strip goes through all of L
STRIP = 128


class Sizes(NamedTuple):
    """How a matrix is cut."""

    tile: int  # rows and columns of a tile
    run: int = 1  # tiles down and across that one task updates
    leaf: int = LEAF


def sizes_for(n: int) -> Sizes:
    """Small enough for all threads to find work, and large enough for products at full speed.

    Processor time of factor and inverse at n = 4,000 on two threads, where LAPACK takes 1.40 s on one: tiles
    of 256 in runs of two by two 1.63 s, of 384 1.56 s, of 512 1.50 s. Simulated with the times of single
    tasks, two threads are at work 98 % of the time with the first two, four 95 and 88 %.
    """
    tile = min(max(n // 16 // 64 * 64, 256 if n < 3000 else 384), 1024)
    return Sizes(tile, 2 if n > 7 * tile else 1)


class _Grid(NamedTuple):
    """An array (n, n) in tiles."""

    M: BlasBlock
    tile: int
    run: int
    leaf: int

    @property
    def across(self) -> int:
        return -(-self.M.rows // self.tile)

    def __call__(self, rows: int | range, columns: int | range) -> BlasBlock:
        return self.M[self._at(rows), self._at(columns)]

    def _at(self, tiles: int | range) -> slice:
        first, last = (tiles, tiles + 1) if isinstance(tiles, int) else (tiles.start, tiles.stop)
        return slice(first * self.tile, last * self.tile)

    def runs(self, start: int, stop: int) -> Iterator[range]:
        """Cut at multiples of their length: those of one column then wait for those of another, one each."""
        while start < stop:
            first, start = start, min((start // self.run + 1) * self.run, stop)
            yield range(first, start)


def _grid(A: Array, sizes: Sizes | None) -> _Grid:
    return _Grid(block_of(A), *(sizes or sizes_for(len(A))))


def _area(rows: int | range, columns: int | range) -> tuple[Tile, ...]:
    across = (columns,) if isinstance(columns, int) else columns
    return tuple((i, j) for j in across for i in ((rows,) if isinstance(rows, int) else rows))


def _triangle(at: range) -> tuple[Tile, ...]:
    return tuple((i, j) for j in at for i in range(j, at.stop))


class _NotPositive(Exception):
    """Carries LAPACK's info: one more than the row that fails."""


def factor(A: Array, report: Report | None = None, *, sizes: Sizes | None = None) -> int:
    """L with L L' = A. Returns 0, or one more than the row whose pivot is not a positive number."""
    try:
        run(_factor(_grid(A, sizes), np.diagonal(A)), len(A) ** 3 / 3, report)
    except _NotPositive as failed:
        return int(failed.args[0])
    return 0


def _factor(at: _Grid, diagonal: Array) -> Iterator[Task]:
    T, b = at.across, at.tile

    def pivots(k: int) -> None:
        info = blas.potrf(at(k, k))
        # NaN passes LAPACK's test of a pivot
        finite = np.isfinite(diagonal[k * b : (k + 1) * b if info == 0 else k * b + info])
        if info or not finite.all():
            raise _NotPositive(k * b + (int(np.argmin(finite)) + 1 if not finite.all() else info))

    # the urgent ones are those of the first columns, which the next panels wait for
    for k in range(T):
        yield Task(partial(pivots, k), ((k, k),), (), k, b**3 / 3)
        for i in at.runs(k + 1, T):
            divide = partial(_divide_right, at(k, k), at(i, k), at.leaf, transpose=True)
            yield Task(divide, _area(i, k), ((k, k),), k, len(i) * b**3)
        for j in at.runs(k + 1, T):
            subtract = partial(blas.syrk, -1.0, at(j, k), at(j, j))
            yield Task(subtract, _triangle(j), _area(j, k), j[0], len(j) ** 2 * b**3)
            for i in at.runs(j.stop, T):
                update = partial(blas.gemm, -1.0, at(i, k), at(j, k), at(i, j), transpose_b=True)
                reads = _area(i, k) + _area(j, k)
                yield Task(update, _area(i, j), reads, j[0], 2 * len(i) * len(j) * b**3)


def inverse_root(L: Array, *, sizes: Sizes | None = None) -> None:
    """L <- L^-1."""
    run(_inverse_root(_grid(L, sizes)), len(L) ** 3 / 3)


def _inverse_root(at: _Grid) -> Iterator[Task]:
    T, b = at.across, at.tile
    for k in reversed(range(T)):
        for i in at.runs(k + 1, T):
            divide = partial(_divide_right, at(k, k), at(i, k), at.leaf, alpha=-1.0)
            yield Task(divide, _area(i, k), ((k, k),), -k, len(i) * b**3)
        for j in reversed([*at.runs(0, k)]):
            for i in at.runs(k + 1, T):
                update = partial(blas.gemm, 1.0, at(i, k), at(k, j), at(i, j))
                reads = _area(i, k) + _area(k, j)
                yield Task(update, _area(i, j), reads, -j[-1], 2 * len(i) * len(j) * b**3)
        yield Task(partial(_invert, at(k, k), at.leaf), ((k, k),), (), -k, b**3 / 3)
        for j in at.runs(0, k):
            multiply = partial(blas.multiply_triangle, at(k, k), at(k, j))
            yield Task(multiply, _area(k, j), ((k, k),), -j[-1], len(j) * b**3)


def inverse(L: Array, *, sizes: Sizes | None = None) -> None:
    """L <- the lower triangle of (L L')^-1."""
    grid = _grid(L, sizes)
    run(chain(_inverse_root(grid), _square(grid)), 2 * len(L) ** 3 / 3)


def square(W: Array, *, sizes: Sizes | None = None) -> None:
    """W <- the lower triangle of W' W, for a lower triangle W."""
    run(_square(_grid(W, sizes)), len(W) ** 3 / 3)


def _square(at: _Grid) -> Iterator[Task]:
    T, b = at.across, at.tile
    for k in range(T):
        for j in at.runs(0, k):
            add = partial(blas.syrk, 1.0, at(k, j), at(j, j), transpose=True)
            yield Task(add, _triangle(j), _area(k, j), k, len(j) ** 2 * b**3)
            for i in at.runs(j.stop, k):
                update = partial(blas.gemm, 1.0, at(k, i), at(k, j), at(i, j), transpose_a=True)
                reads = _area(k, i) + _area(k, j)
                yield Task(update, _area(i, j), reads, k, 2 * len(i) * len(j) * b**3)
        for j in at.runs(0, k):
            multiply = partial(blas.multiply_triangle, at(k, k), at(k, j), transpose=True)
            yield Task(multiply, _area(k, j), ((k, k),), k, len(j) * b**3)
        yield Task(partial(blas.square_triangle, at(k, k)), ((k, k),), (), k, b**3 / 3)


def divide(L: Array, B: Array, *, sizes: Sizes | None = None) -> None:
    """B <- L^-1 B for B (n, k), Fortran-ordered."""
    _by_strips([_forward], _grid(L, sizes), B)


def solve(L: Array, B: Array, *, sizes: Sizes | None = None) -> None:
    """B <- (L L')^-1 B for B (n, k), Fortran-ordered."""
    _by_strips([_forward, _backward], _grid(L, sizes), B)


def _by_strips(steps: list[Callable[[_Grid, BlasBlock], None]], at: _Grid, B: Array) -> None:
    """Strips of columns are independent. One alone is done here: it takes a thousandth of a factor's time."""
    right = block_of(B)

    def work(start: int) -> None:
        for step in steps:
            step(at, right[:, start : start + STRIP])

    with one_blas_thread():
        if right.columns <= STRIP:
            work(0)
        else:
            for_each(work, range(0, right.columns, STRIP))


def inverse_diagonal(L: Array, *, sizes: Sizes | None = None) -> Array:
    """The diagonal of (L L')^-1: squares of the columns of L^-1, made a strip at a time. n^3 / 3 flops."""
    at, n = _grid(L, sizes), len(L)
    out, b = np.empty(n), at.tile
    width = min(STRIP, b)

    def work(start: int) -> None:
        k = start // b * b  # the rows of L^-1 above the strip are zero
        X = np.zeros((n - k, min(width, n - start)), order="F")
        np.fill_diagonal(X[start - k :], 1.0)
        _forward(at._replace(M=at.M[k:, k:]), block_of(X))
        np.einsum("ij,ij->j", X, X, out=out[start : start + width])

    with one_blas_thread():
        for_each(work, range(0, n, width))
    return out


def _forward(at: _Grid, B: BlasBlock) -> None:
    T, b = at.across, at.tile
    for k in range(T):
        here, below = B[k * b : (k + 1) * b, :], B[(k + 1) * b :, :]
        _divide_left(at(k, k), here, at.leaf)
        blas.gemm(-1.0, at(range(k + 1, T), k), here, below)


def _backward(at: _Grid, B: BlasBlock) -> None:
    T, b = at.across, at.tile
    for k in reversed(range(T)):
        here, below = B[k * b : (k + 1) * b, :], B[(k + 1) * b :, :]
        blas.gemm(-1.0, at(range(k + 1, T), k), below, here, transpose_a=True)
        _divide_left(at(k, k), here, at.leaf, transpose=True)


def _divide_right(
    L: BlasBlock, B: BlasBlock, leaf: int, *, transpose: bool = False, alpha: float = 1.0
) -> None:
    """B <- alpha B L^-1, or alpha B L^-T; alpha is 1 or -1."""
    if L.rows <= leaf:
        blas.solve_triangle(L, B, right=True, transpose=transpose, alpha=alpha)
        return
    h = _half(L.rows, leaf)
    halves = slice(None, h), slice(h, None)
    first, last = halves if transpose else halves[::-1]
    _divide_right(L[first, first], B[:, first], leaf, transpose=transpose, alpha=alpha)
    blas.gemm(-alpha, B[:, first], L[h:, :h], B[:, last], transpose_b=transpose)
    _divide_right(L[last, last], B[:, last], leaf, transpose=transpose, alpha=alpha)


def _divide_left(L: BlasBlock, B: BlasBlock, leaf: int, *, transpose: bool = False) -> None:
    """B <- L^-1 B, or L^-T B."""
    if L.rows <= leaf:
        blas.solve_triangle(L, B, transpose=transpose)
        return
    h = _half(L.rows, leaf)
    halves = slice(None, h), slice(h, None)
    first, last = halves[::-1] if transpose else halves
    _divide_left(L[first, first], B[first, :], leaf, transpose=transpose)
    blas.gemm(-1.0, L[h:, :h], B[first, :], B[last, :], transpose_a=transpose)
    _divide_left(L[last, last], B[last, :], leaf, transpose=transpose)


def _invert(L: BlasBlock, leaf: int) -> None:
    """L <- L^-1 for a tile, last to first as for the whole: LAPACK has a fifth of the speed of a product."""
    for k in reversed(range(0, L.rows, leaf)):
        r = min(k + leaf, L.rows)
        D, row = L[k:r, k:r], L[k:r, :k]
        blas.solve_triangle(D, L[r:, k:r], right=True, alpha=-1.0)
        blas.gemm(1.0, L[r:, k:r], row, L[r:, :k])
        blas.invert_triangle(D)
        blas.multiply_triangle(D, row)


def _half(rows: int, leaf: int) -> int:
    """About half, in whole leaves."""
    return max(rows // 2 // leaf, 1) * leaf
