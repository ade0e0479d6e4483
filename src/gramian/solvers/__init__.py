"""Solvers: factor K + D once, solve with it many times, and say how it went."""

from gramian.solvers.base import Factor, Solution, SolveOutcome, Solver
from gramian.solvers.cg import CG
from gramian.solvers.cholesky import Cholesky, CholeskyFactor
from gramian.solvers.minres import MINRES

__all__ = ["CG", "MINRES", "Cholesky", "CholeskyFactor", "Factor", "Solution", "SolveOutcome", "Solver"]
