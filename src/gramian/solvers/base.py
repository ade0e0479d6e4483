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

from gramian.arrays import Array
from gramian.errors import StateError
from gramian.gram.operator import GramOperator
from gramian.kernels.base import Kernel
from gramian.linalg.cost import Cost
from gramian.linalg.state import Arrays


@dataclass(frozen=True)
class SolveOutcome:
    """How a solve went."""

    iterations: int = 0  # 0 for a direct solver
    residual: float | None = None  # |A x - b| / |b|, where the solver measures it
    jitter: float = 0.0  # added to the diagonal, as a share of its mean
    converged: bool = True
    note: str = ""
    stopped: str = ""  # "time limit" or "interrupted", where that ended it


class Solution(NamedTuple):
    """What a solve returns."""

    value: Array
    outcome: SolveOutcome


class Factor(ABC):
    """A = K + D, prepared for solving. `solve` and `logdet` suffice; a solver that estimates says more."""

    @abstractmethod
    def solve(self, B: Array) -> Solution:
        """A^-1 B for B (n,) or (n, k)."""

    @abstractmethod
    def logdet(self) -> float:
        """log det A."""

    def quad(self, b: Array) -> float:
        """b' A^-1 b, summed over columns."""
        return float(np.sum(b * self.solve(b).value))

    def logdet_estimate(self) -> tuple[float, float]:
        """log det A, and its standard error where it is an estimate."""
        return self.logdet(), 0.0

    def probe_pair(self) -> tuple[Array, Array] | None:
        """U and V (n, k) with tr(A^-1 M) = E sum(U * (M V)) / k for any M, where the solver has such; None:
        whoever needs a trace takes probes of its own."""
        return None

    @property
    def probe_outcome(self) -> SolveOutcome:
        """How the solves went on which `logdet_estimate` and `probe_pair` stand."""
        return SolveOutcome()


class Solver(ABC):
    """How to prepare A = K + D for solving."""

    @abstractmethod
    def factor(self, operator: GramOperator) -> Factor:
        """Does the work that all solves share."""

    @property
    def name(self) -> str:
        """In lower case, as in `method=`."""
        return type(self).__name__.lower()

    @property
    def described(self) -> str:
        """For people."""
        return type(self).__name__

    @property
    def label(self) -> str:
        """The name with its size."""
        return self.name

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Solver:
        """The same with what is chosen once for these rows, so that a search sees one smooth function."""
        return self

    @property
    def choices(self) -> Arrays:
        """What `prepared` has chosen for its rows, as arrays."""
        return {}

    def with_choices(self, choices: Arrays, n: int) -> Solver:
        """The same with these choices, after a check that they are some for n rows."""
        if choices:
            raise StateError(f"its solver {type(self).__name__} has nothing to choose, and yet choices.")
        return self

    def stronger(self, n: int) -> Solver | None:
        """With more effort, for a second attempt; None where there is none."""
        return None

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """Of one evaluation with gradient, or of the final inference."""
        cubes = 1.0 if gradient else 1 / 3
        return Cost(cubes * float(n) ** 3, n * n / 2, n * n / 2 if gradient else 0.0)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        """Peak memory of solving with n rows."""
        return 8 * (n * n + n * (d + q))
