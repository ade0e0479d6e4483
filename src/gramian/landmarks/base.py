"""The contract of rules for landmarks, and what they give.

    class Spread(LandmarkRule):
        name = "spread"

        def choose(self, kernel, X, m, rng):
            taken = np.linspace(0, len(X) - 1, m).astype(int)
            return Landmarks(tables.take(X, taken), taken, rule=self.name)

A rule is frozen; its options are its fields. What it costs it says itself, for plans and memory limits.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramian.arrays import AnyArray, Array, Indices
from gramian.kernels.base import Kernel

CANDIDATE_BYTES = 256 * 2**20  # of the numbers that a rule holds in a fit, one a row and landmark


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The points a rule chose, and what is known of the choice."""

    Z: Array  # (m', d); m' is m, or less where no row is left that would add anything
    indices: Indices | None  # (m',), the rows of X they are; None for points that are no rows
    # (m',), 1 / sqrt(m p_i) for rows drawn with replacement and known probabilities; None otherwise
    weights: Array | None = None
    # spent on the probabilities, without the drawing; 0 for rules that have none
    probabilities_seconds: float = 0.0
    rule: str = ""

    def distinct(self) -> Landmarks:
        """Each row once, with weight sqrt(c) w for c copies: K_xz S (S K_zz S)^+ S K_zx stays as it is."""
        if self.indices is None:
            return self
        _, first, inverse, copies = np.unique(
            self.indices, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.sort(first)
        weights = None if self.weights is None else self.weights[order] * np.sqrt(copies[inverse[order]])
        return dataclasses.replace(self, Z=self.Z[order], indices=self.indices[order], weights=weights)


@dataclass(frozen=True)
class LandmarkRule(ABC):
    """How landmarks are chosen."""

    takes_rows: ClassVar[bool] = True  # whether landmarks are rows of X, with `indices`, or new points

    @property
    @abstractmethod
    def name(self) -> str:
        """What it is called in `rule=`, reports and messages."""

    @property
    def replace(self) -> bool:
        """Whether a row may be taken more than once, so that there may be more landmarks than rows."""
        return False

    @abstractmethod
    def choose(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Landmarks:
        """At most m landmarks for the rows of X (n, d), an array or a memory map of finite numbers, at the
        parameters that the kernel has; m <= n unless `replace`."""

    def candidates(self, n: int, m: int) -> int:
        """How many of n rows it should look at for m landmarks of a fit: as many as `CANDIDATE_BYTES` hold
        at a number a row and landmark. Of a million rows, thirty candidates a landmark tell as much as
        all."""
        return min(n, max(10 * m, CANDIDATE_BYTES // (8 * m)))

    def bytes_needed(self, n: int, m: int) -> int:
        """Of a choice among n rows: a number for each row and landmark, and blocks of them."""
        return int(1.15 * 8 * n * m)

    def __str__(self) -> str:
        return self.name
