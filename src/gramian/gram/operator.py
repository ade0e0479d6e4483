"""The matrix of a Gaussian process as solvers see it: A = K(X, X) + D, not yet computed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.arrays import Array
from gramian.gram import tiles
from gramian.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class GramOperator:
    """K(X, X) + diag(noise): how to make it, multiply by it, or take its diagonal."""

    kernel: Kernel
    X: Array  # (n, d)
    noise: Array  # (n,), the diagonal D

    @property
    def n(self) -> int:
        return len(self.X)

    def fill(self, out: Array) -> Array:
        """The lower triangle, into a Fortran-ordered array (n, n)."""
        tiles.fill(self.kernel, self.X, out)
        out.T.reshape(-1)[:: self.n + 1] += self.noise  # a view: the array is contiguous
        return out

    def matmul(self, V: Array, dtype: type[np.float64] | type[np.float32] = np.float64) -> Array:
        """(K + D) V for V (n, k), without storing K; kernel values in float32 where asked for."""
        return tiles.matmul(self.kernel, self.X, self.X, V, dtype) + self.noise[:, None] * V

    def diagonal(self) -> Array:
        """The diagonal of K + D."""
        return tiles.diagonal(self.kernel, self.X) + self.noise
