"""The prior: f(x) = m(x) + s g(x), g ~ GP(0, k), with s the scale of each output.

A kernel of unit variance is then a sensible prior in any units of y.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.arrays import Array
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.means import HostBlock, Mean, OneOutput, ZeroMean
from gramian.processes.base import Process


@dataclass(frozen=True, eq=False)
class GaussianProcess(Process):
    """f = m + s g."""

    kernel: Kernel
    mean_function: Mean
    scale: Array  # (q,)

    def mean(self, X: Array) -> Array:
        return mean_block(self.mean_function, X, len(self.scale))

    def moments(self, X: Array) -> tuple[Array, Array]:
        return self.mean(X), np.maximum(tiles.diagonal(self.kernel, X), 0.0)[:, None] * self.scale**2

    def cov(self, X: Array) -> Array:
        K = tiles.cross(self.kernel, X, X)
        K = 0.5 * (K + K.T)
        np.fill_diagonal(K, np.maximum(tiles.diagonal(self.kernel, X), 0.0))
        return K[:, :, None] * self.scale**2

    def mean_slopes(self, X: Array) -> Array:
        """The gradient of the mean function: (n, d, q)."""
        slopes = tiles.rowwise(self.mean_function, "slopes", X)
        slopes = slopes[:, :, None] if slopes.ndim == 2 else np.swapaxes(slopes, 1, 2)
        return np.broadcast_to(slopes, (*X.shape, len(self.scale))).copy()

    def gradient(self, X: Array) -> tuple[Array, Array]:
        var = tiles.gradient_variances(self.kernel, X)[:, :, None] * self.scale**2
        return self.mean_slopes(X), var

    def part(self, kernel: Kernel) -> GaussianProcess:
        """A summand of g alone, without m."""
        return GaussianProcess(kernel, ZeroMean(), self.scale)

    def of_output(self, k: int) -> GaussianProcess:
        """One of the outputs alone."""
        if len(self.scale) == 1:
            return self
        return GaussianProcess(self.kernel, OneOutput(self.mean_function, k), self.scale[[k]])


def mean_rows(mean: Mean, X: Array, q: int) -> HostBlock:
    """m(x) for each row and output, (n, q), and what `mean_gradient` makes of weights."""
    found = mean.bare().on_host(X)
    if found is None:
        return HostBlock(mean_block(mean, X, q), lambda w: mean_gradient(mean, X, w))
    values, pull = found
    if values.ndim == 2:
        return HostBlock(np.broadcast_to(values, (len(X), q)), pull)
    if q == 1:
        return HostBlock(values[:, None], lambda w: pull(w[:, 0]))
    return HostBlock(np.broadcast_to(values[:, None], (len(X), q)), lambda w: pull(w.sum(axis=1)))


def mean_block(mean: Mean, X: Array, q: int) -> Array:
    """m(x) for each row and output: (n, q)."""
    if type(mean) is ZeroMean:
        return np.zeros((len(X), q))
    values = tiles.rowwise(mean, "block", X)
    return np.broadcast_to(values.reshape(len(X), -1), (len(X), q)).copy()


def mean_gradient(mean: Mean, X: Array, by_mean: Array) -> list[Array]:
    """The gradient by the mean's parameters from that by m(x), (n, q)."""
    if not mean.parameters():
        return []
    shared = tiles.rowwise(mean, "block", X[:1]).ndim == 1
    return tiles.rowwise_pullback(mean, "block", X, by_mean.sum(axis=1) if shared else by_mean)
