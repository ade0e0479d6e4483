"""k-means centres as landmarks: new points, with distances as the kernel sees them.

Columns are divided by their lengthscales where the kernel has one set of them, by their spread otherwise.
Lloyd's rounds over all rows, n m d flops each; of many rows, rounds over random ones (mini-batches).
Source: Zhang, Tsang and Kwok 2008.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian import forks
from gramian.arrays import AnyArray, Array, Indices
from gramian.kernels.base import Kernel
from gramian.landmarks import tables
from gramian.landmarks.base import LandmarkRule, Landmarks
from gramian.linalg.threads import one_blas_thread

# rows (or 20 a centre) of a round: all of them up to so many, of more that many at random (mini-batches)
LLOYD_ROWS = 20_000
ROUNDS = 20


@dataclass(frozen=True)
class KMeansRule(LandmarkRule):
    """Centres of m clusters."""

    name = "kmeans"
    takes_rows = False

    def choose(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Landmarks:
        from sklearn.cluster import KMeans, MiniBatchKMeans
        from threadpoolctl import threadpool_limits

        seed, some = int(rng.integers(2**31 - 1)), max(LLOYD_ROWS, 20 * m)
        few = len(X) <= some
        table = tables.take(X, np.arange(len(X)) if few else _some_rows(len(X), some, rng))
        scale = _column_scales(kernel, table)
        unique = np.unique(table, axis=0)
        if len(unique) <= m:
            return Landmarks(unique, None, rule=self.name)
        # scikit-learn limits BLAS itself, and would give its threads back while a fit beside this one works.
        # A fork would wait for ever for its parent's threads of OpenMP.
        with one_blas_thread(), threadpool_limits(1 if forks.forked() else None, user_api="openmp"):
            if few:
                fitted = KMeans(m, n_init=1, random_state=seed).fit(table / scale)
            else:
                fitted = MiniBatchKMeans(m, n_init=1, init_size=some, batch_size=some, random_state=seed)
                fitted.partial_fit(table / scale)
                for _ in range(ROUNDS - 1):
                    fitted.partial_fit(tables.take(X, _some_rows(len(X), some, rng)) / scale)
        return Landmarks(fitted.cluster_centers_ * scale, None, rule=self.name)

    def bytes_needed(self, n: int, m: int) -> int:
        return super().bytes_needed(min(n, max(LLOYD_ROWS, 20 * m)), m)


def _some_rows(n: int, size: int, rng: np.random.Generator) -> Indices:
    return np.sort(rng.choice(n, size, replace=False))  # in order: a file is then read from front to back


def _column_scales(kernel: Kernel, X: Array) -> Array:
    """(d,): the lengthscales where the kernel has one set, for all columns; else the standard deviations."""
    sets = kernel.lengthscales(range(X.shape[1]))
    if len(sets) == 1 and len(sets[0][1]) == X.shape[1]:
        scale = np.empty(X.shape[1])
        scale[list(sets[0][1])] = sets[0][0].value
        return scale
    spread = np.std(X, axis=0)
    return np.where(spread > 0, spread, 1.0)
