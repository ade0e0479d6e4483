"""Rows drawn by probabilities, p_i in proportion to a score.

    uniform        all alike
    diagonal       K_ii^2         n kernel values
    column-norm    |K_:i|^2       n^2 / 2 kernel values in blocks, no n x n array

Drawn with replacement, each column is scaled by 1 / sqrt(m p_i): then E[K_xz S S K_zx] = K^2. Without
truncation K_xz S (S K_zz S)^+ S K_zx does not depend on the scaling; its best rank-k part, which is what
Drineas and Mahoney bound, does.

Sources: Williams and Seeger 2001 (uniform); Drineas and Mahoney 2005 (diagonal); Drineas, Kannan, Mahoney
2006 (column norms). Leverage scores are in `leverage.py`.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from gramian.arrays import AnyArray, Array
from gramian.errors import InputError, ParameterError
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.landmarks import tables
from gramian.landmarks.base import LandmarkRule, Landmarks

NORM_ROWS = 2048  # a side of the blocks whose squares are summed


@dataclass(frozen=True)
class SampledRule(LandmarkRule):
    """Rows drawn by a score."""

    replace: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.replace, (bool, np.bool_)):
            raise ParameterError(
                f"replace={self.replace!r}: give True, False or None (the rule's own default)."
            )

    @abstractmethod
    def scores(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Array | None:
        """(n,), not negative; None for all alike."""

    def choose(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Landmarks:
        began = time.perf_counter()
        raw = self.scores(kernel, X, m, rng)
        seconds = 0.0 if raw is None else time.perf_counter() - began
        p = np.full(len(X), 1 / len(X)) if raw is None else self._probabilities(raw)
        if self.replace:
            indices = rng.choice(len(X), m, p=p)
            weights = 1.0 / np.sqrt(m * p[indices])
        else:
            most = min(m, int(np.count_nonzero(p)))
            indices, weights = rng.choice(len(X), most, replace=False, p=None if raw is None else p), None
        return Landmarks(tables.take(X, indices), indices, weights, seconds, self.name)

    def _probabilities(self, scores: Array) -> Array:
        total = float(np.sum(scores))
        if not 0 < total < float("inf"):
            raise InputError(
                f'rule="{self.name}" finds no row that matters: all its scores sum to {total:g}. Take'
                ' rule="uniform", or look at the kernel\'s scale.'
            )
        return scores / total


@dataclass(frozen=True)
class UniformRule(SampledRule):
    """All rows alike."""

    name = "uniform"

    def scores(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Array | None:
        return None

    def candidates(self, n: int, m: int) -> int:
        return n

    def bytes_needed(self, n: int, m: int) -> int:
        return 0


@dataclass(frozen=True)
class DiagonalRule(UniformRule):
    """By K_ii^2."""

    replace: bool = True
    name = "diagonal"

    def scores(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Array:
        d = tables.diagonal(kernel, X)
        # scaled first: only ratios matter, and squares may overflow
        return (d / max(float(np.max(d)), np.finfo(float).tiny)) ** 2


@dataclass(frozen=True)
class ColumnNormRule(SampledRule):
    """By |K_:i|^2, from the blocks on and above the diagonal."""

    replace: bool = True
    name = "column-norm"

    def scores(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Array:
        total = np.zeros(len(X))
        for at_i, X_i in tables.blocks(X, NORM_ROWS):
            for offset, X_j in tables.blocks(X[at_i.start :], NORM_ROWS):
                at_j = slice(at_i.start + offset.start, at_i.start + offset.stop)
                K = tiles.cross(kernel, X_i, X_j)
                total[at_i] += np.einsum("ij,ij->i", K, K)
                if at_j != at_i:
                    total[at_j] += np.einsum("ij,ij->j", K, K)
        return total

    def bytes_needed(self, n: int, m: int) -> int:
        return 2 * 8 * min(n, NORM_ROWS) ** 2  # a block of K, and the last one until it is overwritten
