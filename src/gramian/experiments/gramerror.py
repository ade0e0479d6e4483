"""How far K~ = Phi Phi' is from K, in row blocks: no n x n array exists.

    Frobenius   |K - K~|_F / |K|_F                   root of the sum of squares
    infinity    |K - K~|_oo / |K|_oo                 |A|_oo = the largest sum of absolute values in a row

Cost: n^2 kernel values and 2 n^2 m flops; memory of Phi (n, m) and of one block of rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.features.base import FeatureMap
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.processes.base import blocks_of

Array = NDArray[np.float64]


class GramError(NamedTuple):
    """Relative errors of a kernel matrix."""

    frobenius: float
    infinity: float


def features_of(features: FeatureMap, X: Array) -> Array:
    """Phi (n, m), made block by block."""
    Phi = np.empty((len(X), features.n_features))
    for at in blocks_of(len(X), 8 * features.n_features):
        Phi[at] = features.block(X[at])
    return Phi


def gram_error(
    kernel: Kernel, X: Array, features: FeatureMap, keeps_diagonal: bool = False, K: Array | None = None
) -> GramError:
    """The errors on the rows of X. `keeps_diagonal`: the approximation has K's own diagonal (FITC). `K` where
    it is at hand already."""
    n, Phi = len(X), features_of(features, X)
    squares, squares_K, largest, largest_K = 0.0, 0.0, 0.0, 0.0
    for at in blocks_of(n, 3 * 8 * n):
        rows = tiles.cross(kernel, X[at], X) if K is None else K[at]
        error = Phi[at] @ Phi.T
        np.subtract(rows, error, out=error)
        if keeps_diagonal:
            error[np.arange(len(rows)), np.arange(at.start, at.stop)] = 0.0
        squares += float(np.vdot(error, error))
        squares_K += float(np.vdot(rows, rows))
        largest = max(largest, float(np.max(np.sum(np.abs(error), axis=1))))
        largest_K = max(largest_K, float(np.max(np.sum(np.abs(rows), axis=1))))
    return GramError(float(np.sqrt(squares / squares_K)), largest / largest_K)
