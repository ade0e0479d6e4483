"""Products of row-major arrays, by the BLAS that SciPy brings.

NumPy and SciPy each bring a BLAS of their own, with threads of its own that go on waiting actively for a
while after a call. Where products of one take turns with factorisations of the other, they take each other's
cores: 40 ms become 80. So large products that stand beside LAPACK are made here. They let go of the GIL,
which SciPy's own wrappers do not: two threads with a product each would take turns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.linalg.blas import Block, block_of, gemm, square_triangle, syrk

Array = NDArray[np.float64]


def times(A: Array, B: Array) -> Array:
    """A B for A (n, k) and B (k, m): (n, m), row-major."""
    out = np.empty((A.shape[0], B.shape[1]))
    (held, left, across), (kept, right, turned) = _as_columns(A), _as_columns(B)
    gemm(1.0, right, left, block_of(out.T), transpose_a=turned, transpose_b=across, beta=0.0)
    del held, kept
    return out


def transposed_times(A: Array, B: Array) -> Array:
    """A' B for A (n, k) and B (n, m): (k, m), row-major."""
    return times(A.T, B)


def squares(A: Array) -> Array:
    """A' A for A (n, k): all of it, though only one triangle is computed."""
    held, block, turned = _as_columns(A)
    lower = np.zeros((A.shape[1], A.shape[1]), order="F")
    syrk(1.0, block, block_of(lower), transpose=turned)
    del held
    return _mirrored(lower)


def triangle_squares(R: Array) -> Array:
    """R' R for a lower triangle R (k, k) with zeros above: all of it, at a third of the work of `squares`."""
    lower = R.copy(order="F")
    square_triangle(block_of(lower))
    return _mirrored(lower)


def _mirrored(lower: Array) -> Array:
    return np.tril(lower, -1).T + lower


def _as_columns(A: Array) -> tuple[Array, Block, bool]:
    """A' as BLAS reads it, or A itself (True); with the array that has to live as long, a copy only where A
    is neither row- nor column-major."""
    A = np.asarray(A, dtype=np.float64)
    if A.flags.f_contiguous and not A.flags.c_contiguous:
        return A, block_of(A, only_read=True), True
    A = np.ascontiguousarray(A)
    return A, block_of(A.T, only_read=True), False
