"""The matrix of a Gaussian process as solvers see it: A = K(X, X) + D, not yet computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gramian.gram import few, tiles
from gramian.kernels.base import Kernel
from gramian.kernels.host import KernelValues
from gramian.linalg.arrays import Array


@dataclass(frozen=True, eq=False)
class GramOperator:
    """K(X, X) + diag(noise): how to make it, multiply by it, take its diagonal, or pull weights back."""

    kernel: Kernel
    X: Array  # (n, d)
    noise: Array  # (n,), the diagonal D

    @property
    def n(self) -> int:
        return len(self.X)

    def fill(self, out: Array) -> Array:
        """The lower triangle, into a Fortran-ordered array (n, n)."""
        if self._few is not None:
            out.T[...] = self._few.K
        else:
            tiles.fill(self.kernel, self.X, out)
        out.T.reshape(-1)[:: self.n + 1] += self.noise  # a view: the array is contiguous
        return out

    def matmul(self, V: Array, dtype: type[np.float64] | type[np.float32] = np.float64) -> Array:
        """(K + D) V for V (n, k), without storing K; with kernel values in float32 where that is asked
        for."""
        return tiles.matmul(self.kernel, self.X, self.X, V, dtype) + self.noise[:, None] * V

    def diagonal(self) -> Array:
        """The diagonal of K + D."""
        return tiles.diagonal(self.kernel, self.X) + self.noise

    def pullback(
        self, dense: Array, *, factor: float = 1.0, low_rank: tuple[Array, Array] | None = None
    ) -> list[Array]:
        """sum_ij W_ij dk(x_i, x_j)/dtheta, see `tiles.pullback`; of few rows with the values of `fill`."""
        if self._few is not None:
            return few.pulled(self._few, few.weights(dense, factor, low_rank))
        return tiles.pullback(self.kernel, self.X, dense, factor=factor, low_rank=low_rank)

    @cached_property
    def _few(self) -> KernelValues | None:
        """K of few rows, made once for all that is asked of it."""
        return few.block(self.kernel, self.X, self.X)
