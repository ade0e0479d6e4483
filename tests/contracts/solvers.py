"""Solvers as a person might write them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gramian.solvers import Factor, Solution, SolveOutcome, Solver


@dataclass(frozen=True)
class Direct(Solver):
    """`solve` and `logdet`, and nothing else."""

    def factor(self, operator):
        return DirectFactor(operator.kernel(operator.X) + np.diag(operator.noise))


@dataclass(frozen=True, eq=False)
class DirectFactor(Factor):
    A: np.ndarray

    def solve(self, B):
        return Solution(np.linalg.solve(self.A, B), SolveOutcome())

    def logdet(self):
        return float(np.linalg.slogdet(self.A)[1])


@dataclass(frozen=True)
class UnitProbes(Direct):
    """The unit vectors as probes: traces are exact, or wrong by a factor."""

    factor_of_traces: float = 1.0

    def factor(self, operator):
        return UnitFactor(super().factor(operator).A, self.factor_of_traces)


@dataclass(frozen=True, eq=False)
class UnitFactor(DirectFactor):
    share: float

    def probe_pair(self):
        inverse = np.linalg.inv(self.A)
        return self.share * len(inverse) * inverse, np.eye(len(inverse))
