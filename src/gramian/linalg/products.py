"""Products of row-major arrays, by the BLAS that SciPy brings, on one thread of BLAS and several of ours.

NumPy and SciPy each bring a BLAS whose threads go on waiting actively after a call. Where products of one
take turns with factorisations of the other, they take each other's cores: 40 ms become 80. So large products
beside LAPACK are made here, without the GIL, which SciPy's wrappers hold. What is large is cut into tiles, a
piece of work each (linalg/threads.py); the cut does not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gramian.arrays import Array
from gramian.linalg import panels
from gramian.linalg.blas import BlasBlock, block_of, gemm, square_triangle, syrk
from gramian.linalg.threads import for_each, one_blas_thread

TILE = 512  # rows and columns of a piece
ALONE_UP_TO = 5e7  # flops, a millisecond: below, handing out costs more than it saves


def times(A: Array, B: Array) -> Array:
    """A B for A (n, k) and B (k, m): (n, m), row-major."""
    out = np.empty((A.shape[0], B.shape[1]))
    (held, left, across), (kept, right, turned) = _as_columns(A), _as_columns(B)
    whole = block_of(out.T)

    def piece(at: tuple[slice, slice]) -> None:
        rows, columns = at  # of `whole`
        a = right[:, rows] if turned else right[rows, :]
        b = left[columns, :] if across else left[:, columns]
        gemm(1.0, a, b, whole[rows, columns], transpose_a=turned, transpose_b=across, beta=0.0)

    if 2.0 * A.shape[0] * A.shape[1] * B.shape[1] <= ALONE_UP_TO:
        pieces = [(slice(None), slice(None))]
    else:
        pieces = [(i, j) for i in _tiles(whole.rows) for j in _tiles(whole.columns)]
    _make(piece, pieces)
    del held, kept
    return out


def transposed_times(A: Array, B: Array) -> Array:
    """A' B for A (n, k) and B (n, m): (k, m), row-major."""
    return times(A.T, B)


def squares(A: Array) -> Array:
    """A' A for A (n, k): all of it, though only one triangle is computed."""
    held, block, turned = _as_columns(A)
    lower = np.zeros((A.shape[1], A.shape[1]), order="F")
    whole = block_of(lower)

    def piece(at: tuple[slice, slice]) -> None:
        rows, columns = at
        a, b = ((block[:, at_] if turned else block[at_, :]) for at_ in at)
        if rows == columns:
            syrk(1.0, a, whole[rows, columns], transpose=turned)
        else:
            gemm(1.0, a, b, whole[rows, columns], transpose_a=turned, transpose_b=not turned)

    if 1.0 * A.shape[0] * A.shape[1] ** 2 <= ALONE_UP_TO:
        pieces = [(slice(None), slice(None))]
    else:
        tiles = _tiles(whole.rows)
        pieces = [(tiles[i], tiles[j]) for i in range(len(tiles)) for j in range(i + 1)]
    _make(piece, pieces)
    del held
    return _mirrored(lower)


def triangle_squares(R: Array) -> Array:
    """R' R for a lower triangle R (k, k) with zeros above: all of it, at a third of the work of `squares`."""
    lower = R.copy(order="F")
    if len(lower) > TILE:
        panels.square(lower)
    else:
        with one_blas_thread():
            square_triangle(block_of(lower))
    return _mirrored(lower)


def _make(piece: Callable[[tuple[slice, slice]], None], pieces: list[tuple[slice, slice]]) -> None:
    with one_blas_thread():
        if len(pieces) == 1:
            piece(pieces[0])
        else:
            for_each(piece, pieces)


def _tiles(n: int) -> list[slice]:
    return [slice(start, min(start + TILE, n)) for start in range(0, n, TILE)]


def _mirrored(lower: Array) -> Array:
    return np.tril(lower, -1).T + lower


def _as_columns(A: Array) -> tuple[Array, BlasBlock, bool]:
    """A' as BLAS reads it, or A itself (True), with the array to keep: a copy where A has neither order."""
    A = np.asarray(A, dtype=np.float64)
    if A.flags.f_contiguous and not A.flags.c_contiguous:
        return A, block_of(A, only_read=True), True
    A = np.ascontiguousarray(A)
    return A, block_of(A.T, only_read=True), False
