"""Products of row-major arrays, by the BLAS that SciPy brings.

NumPy and SciPy each bring a BLAS of their own, with threads of its own that go on waiting actively for a while after a call. Where products of one
take turns with factorisations of the other, they take each other's cores: 40 ms become 80. So large products that stand beside LAPACK are made here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

Array = NDArray[np.float64]


def times(A: Array, B: Array) -> Array:
    """A B for A (n, k) and B (k, m), row-major: (n, m), row-major."""
    return blas.dgemm(1.0, B.T, A.T).T


def transposed_times(A: Array, B: Array) -> Array:
    """A' B for A (n, k) and B (n, m), row-major: (k, m)."""
    return blas.dgemm(1.0, B.T, A.T, trans_b=1).T


def squares(A: Array) -> Array:
    """A' A for A (n, k), row-major: all of it, though only one triangle is computed."""
    lower = blas.dsyrk(1.0, A.T, lower=1)
    return np.tril(lower, -1).T + lower
