"""Dense Cholesky factorisation as a solver: `Cholesky().factor(K + D)`.

Cost: n^3 / 3 flops for the factor, 2 n^2 for a solve; one array of n^2 doubles, of which the lower triangle
is used. `inverse_in_place` takes another 2 n^3 / 3 and no memory: that is all a gradient of the evidence
needs. The work, and the jitter where A is not positive definite to rounding, is that of linalg/factor.py; the
outcome says how much was added.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramian.gram.operator import GramOperator
from gramian.linalg import factor as dense
from gramian.linalg import panels
from gramian.linalg.factor import LADDER, LAPACK_UP_TO, factor_in_place, squared_times
from gramian.solvers.base import Factor, Solution, SolveOutcome, Solver

__all__ = [
    "LADDER",
    "LAPACK_UP_TO",
    "ROOT_UP_TO",
    "Cholesky",
    "CholeskyFactor",
    "factor_in_place",
    "inverse_in_place",
    "inverse_root_in_place",
    "squared_times",
]

Array = NDArray[np.float64]

# rows: as long as L^-1 takes seconds, a posterior keeps it, and its variances are products; beyond, it keeps
# L and divides
ROOT_UP_TO = 16_000


@dataclass(frozen=True)
class Cholesky(Solver):
    """Exact to rounding: the fastest exact method while n^2 doubles fit into memory."""

    ladder: tuple[float, ...] = LADDER

    def factor(
        self, operator: GramOperator, out: Array | None = None, report: panels.Report | None = None
    ) -> CholeskyFactor:
        """L for K + D. `out` is an array (n, n), Fortran-ordered, to work in; a fresh one otherwise.

        `report` is told the share of the work done, from time to time and never less than before; what it
        raises ends the work.
        """
        room = operator.n if out is None else out
        return CholeskyFactor(
            *dense.factored(lambda A, _: operator.fill(A), room, ladder=self.ladder, report=report)
        )


@dataclass(frozen=True, eq=False)
class CholeskyFactor(Factor):
    """L with L L' = A, in the lower triangle of a Fortran-ordered array."""

    L: Array
    jitter: float = 0.0

    def solve(self, B: Array) -> Solution:
        return Solution(dense.solve(self.L, B), SolveOutcome(jitter=self.jitter))

    def logdet(self) -> float:
        return dense.logdet(self.L)

    def divide_in_place(self, B: Array) -> Array:
        """L^-1 B in B's own memory, for B (n, k), Fortran-ordered: the part of k(X, x) that the data explain,
        without L^-1 ever made."""
        panels.divide(self.L, B)
        return B

    def inverse_diagonal(self, report: panels.Report | None = None) -> Array:
        """The diagonal of A^-1: n^3 / 3 flops, and the memory of one panel."""
        return panels.inverse_diagonal(self.L, report)


def inverse_in_place(factor: CholeskyFactor, report: panels.Report | None = None) -> Array:
    """A^-1 in the lower triangle of the factor's own memory; the factor is used up."""
    return dense.inverse_in_place(factor.L, report)


def inverse_root_in_place(factor: CholeskyFactor, report: panels.Report | None = None) -> Array:
    """L^-1 in the lower triangle of the factor's own memory, zeros above; the factor is used up."""
    return dense.inverse_root_in_place(factor.L, report)
