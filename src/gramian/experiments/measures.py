"""What is measured of a run: how far K~ = Phi Phi' is from K, how good predicted probabilities are, and the
peak of memory.

    Frobenius   |K - K~|_F / |K|_F                   root of the sum of squares
    infinity    |K - K~|_oo / |K|_oo                 |A|_oo = the largest sum of absolute values in a row

In row blocks: no n x n array exists. Cost: n^2 kernel values and 2 n^2 m flops; memory of Phi (n, m) and of
one block of rows.

    error    share of rows whose label is not the most probable one
    NLPD, Brier and ECE are those of report.evaluation
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.estimators.predictions import probabilities
from gramian.features.base import FeatureMap
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.likelihoods import Likelihood
from gramian.processes.base import Process, blocks_of
from gramian.report.evaluation import of_classes

EVERY = 0.005  # seconds between looks at the memory: a large array is written for longer than that


class GramError(NamedTuple):
    """Relative errors of a kernel matrix."""

    frobenius: float
    infinity: float


def gram_error(
    kernel: Kernel, X: Array, features: FeatureMap, keeps_diagonal: bool = False, K: Array | None = None
) -> GramError:
    """The errors on the rows of X. `keeps_diagonal`: the approximation has K's own diagonal (FITC). `K` where
    it is at hand already."""
    n, m = len(X), features.n_features
    Phi = np.empty((n, m))
    for at in blocks_of(n, 8 * m):
        Phi[at] = features.block(X[at])
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


def label_scores(
    likelihood: Likelihood, posterior: Process, X: Array, y: Array, at: NDArray[np.intp]
) -> dict[str, float]:
    """The scores at the rows of X with the codes y; those that need variances at the rows `at` only."""
    P = probabilities(likelihood, posterior, X[at])
    P, codes = P / np.sum(P, axis=1, keepdims=True), y[at].astype(int)
    # some rows: by a Krylov solver, which two classes alone can have. Links are symmetric, so the sign of the
    # mean tells the more probable one
    found = posterior.mean(X)[:, 0] > 0 if len(at) < len(X) else np.argmax(P, axis=1)
    scores = of_classes(P, codes).columns[0]
    measured = {"nlpd": scores["log_loss"], "brier": scores["brier"], "ece": scores["ece"]}
    return {"error": float(np.mean(found != y)), **measured}


@dataclass
class Peak:
    """The most resident memory beyond what there was before, in bytes; NaN where it cannot be measured. Known
    when the block has ended."""

    bytes: float = float("nan")


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Watches the resident set of the process inside a `with`, on Linux. Memory that the process holds in
    reserve and uses again does not show."""
    peak, before, done = Peak(), resident_bytes(), threading.Event()

    def watch() -> None:
        ended = False
        while not ended:
            ended = done.wait(EVERY)
            growth = np.maximum(resident_bytes() - before, 0.0)
            peak.bytes = float(np.fmax(peak.bytes, growth))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


def resident_bytes() -> float:
    """What the process holds in memory now; NaN where nobody tells."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return float("nan")
