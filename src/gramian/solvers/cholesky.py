"""Dense Cholesky factorisation as a solver: `Cholesky().factor(K + D)`.

Cost: n^3 / 3 flops for the factor, 2 n^2 for a solve; one array of n^2 doubles, of which the lower triangle
is used. The work, and the jitter where A is not positive definite to rounding, is that of linalg/factor.py;
the outcome says how much was added.
"""

from __future__ import annotations

from dataclasses import dataclass

from gramian.arrays import Array
from gramian.gram.operator import GramOperator
from gramian.linalg import factor as dense
from gramian.linalg import panels
from gramian.solvers.base import Factor, Solution, SolveOutcome, Solver

# rows: up to here a posterior keeps L^-1, whose products make variances; beyond, it keeps L and divides
ROOT_UP_TO = 16_000


@dataclass(frozen=True)
class Cholesky(Solver):
    """Exact to rounding: the fastest exact method while n^2 doubles fit into memory."""

    ladder: tuple[float, ...] = dense.LADDER

    def factor(self, operator: GramOperator) -> CholeskyFactor:
        """L for K + D."""
        return CholeskyFactor(*dense.factored(lambda A, _: operator.fill(A), operator.n, ladder=self.ladder))


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
        """L^-1 B in B's own memory, for B (n, k), Fortran-ordered, without L^-1 ever made."""
        panels.divide(self.L, B)
        return B

    def inverse_diagonal(self) -> Array:
        """The diagonal of A^-1: n^3 / 3 flops, and the memory of one panel."""
        return panels.inverse_diagonal(self.L)
