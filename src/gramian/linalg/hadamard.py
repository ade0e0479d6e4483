"""The fast Walsh-Hadamard transform, row by row.

    H_1 = 1,    H_2d = [[H_d, H_d], [H_d, -H_d]],    X -> X H_d  with  H_d = H_r (x) ... (x) H_r

One factor of the Kronecker product at a time, each of size r = 32: a pass over the data is a product with a
small dense matrix, which BLAS does at full speed while the rows stay in cache. ceil(log_32 d) passes of 32 d
products each: O(d log d) a row. (The textbook's r = 2 takes log2 d passes of sums and differences, which are
limited by memory: several times slower at any d. It is right for the last factor where that is 2 or 4.)

Source: Fino and Algazi 1976, on the transform and its factors.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from gramian.arrays import Array

RADIX = 32
_BY_SUMS = 4  # up to here a factor is cheaper by sums and differences than as a product of tiny matrices
_CHUNK = 2**15  # numbers at a time: 256 kB, which stay in cache from one pass to the next


def padded_size(d: int) -> int:
    """The next power of two."""
    return 1 << max(d - 1, 0).bit_length()


def hadamard_transform(X: Array) -> Array:
    """X H for rows X (n, d) padded with zeros to D, the next power of two: (n, D); H of 1 and -1."""
    n, d = X.shape
    D = padded_size(d)
    X = np.ascontiguousarray(X) if d == D else np.pad(X, [(0, 0), (0, D - d)])
    out = np.empty((n, D))
    for rows in chunks(n, D):
        transform(X[rows], out[rows])
    return out


def chunks(n: int, D: int) -> list[slice]:
    """Parts of n rows that stay in cache."""
    rows = max(1, _CHUNK // D)
    return [slice(start, min(n, start + rows)) for start in range(0, n, rows)]


def transform(X: Array, out: Array) -> None:
    """A chunk of contiguous rows of D numbers into another; the factor of the fastest index first."""
    D, inner = X.shape[1], min(RADIX, X.shape[1])
    np.matmul(X.reshape(-1, inner), _sylvester(inner), out=out.reshape(-1, inner))
    while inner < D:
        r = min(RADIX, D // inner)
        if r > _BY_SUMS:
            stack = out.reshape(-1, r, inner)
            stack[...] = np.matmul(_sylvester(r), stack)
            inner *= r
        else:
            pairs = out.reshape(-1, 2, inner)
            total = pairs[:, 0] + pairs[:, 1]
            np.subtract(pairs[:, 0], pairs[:, 1], out=pairs[:, 1])
            pairs[:, 0] = total
            inner *= 2


@cache
def _sylvester(size: int) -> Array:
    H = np.ones((1, 1))
    while len(H) < size:
        H = np.block([[H, H], [H, -H]])
    return H
