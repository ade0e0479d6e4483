"""Solvers: factor K + D once, solve with it many times, and say how it went."""

from gramian.solvers.base import Factor, Solution, SolveOutcome, Solver
from gramian.solvers.cholesky import Cholesky, CholeskyFactor

__all__ = ["Cholesky", "CholeskyFactor", "Factor", "Solution", "SolveOutcome", "Solver"]
