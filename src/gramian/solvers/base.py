"""The contract of solvers: `Solver.factor(operator) -> Factor`, and what a Factor can do.

A solver is a small immutable value with its choices as fields. A solve returns its value and an outcome, so
nothing is silently inaccurate. A square root of the matrix is not part of the contract: iterative solvers
have none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.gram.operator import GramOperator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SolveOutcome:
    """How a solve went."""

    iterations: int = 0  # 0 for a direct solver
    residual: float | None = None  # |A x - b| / |b|, where the solver measures it
    jitter: float = 0.0  # added to the diagonal, as a share of its mean
    converged: bool = True
    note: str = ""


class Solution(NamedTuple):
    """What a solve returns."""

    value: Array
    outcome: SolveOutcome


class Factor(ABC):
    """A matrix A = K + D, prepared for solving."""

    @abstractmethod
    def solve(self, B: Array) -> Solution:
        """A^-1 B for B (n,) or (n, k)."""

    @abstractmethod
    def logdet(self) -> float:
        """log det A."""

    def quad(self, b: Array) -> float:
        """b' A^-1 b, summed over columns."""
        return float(np.sum(b * self.solve(b).value))


class Solver(ABC):
    """How to prepare A = K + D for solving."""

    @abstractmethod
    def factor(self, operator: GramOperator) -> Factor:
        """Does the work that all solves share."""
