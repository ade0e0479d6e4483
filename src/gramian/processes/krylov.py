"""The posterior of solvers that have no root of K + D: each variance is a solve.

    mean = m + s k(x, X) alpha,      var = s^2 (k(x, x) - k(x, X) A^-1 k(X, x)),      A = K + D

With V ~ A^-1 B and the residual E = B - A V, what the data explain is B'A^-1 B = V'(B + E) + E'A^-1 E.
Without the last term the error is of the order of the tolerance squared, where B'V alone would have one of
the tolerance: small variances are what is left of large numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from gramian.arrays import Array
from gramian.errors import NumericalError, StateError
from gramian.gram.operator import GramOperator
from gramian.linalg.state import ObjectState, entries, joined, numbered, of_parts, taken, typed_list
from gramian.processes.base import users
from gramian.processes.posterior import DualPosterior
from gramian.processes.state import Context
from gramian.solvers.base import Factor, Solver

BLOCK_COLUMNS = 256  # right-hand sides at a time


@dataclass(frozen=True, eq=False)
class System:
    """K + D of some outputs, and how it is solved. What solves share is made when first needed."""

    solver: Solver
    operator: GramOperator

    @cached_property
    def factor(self) -> Factor:
        return self.solver.factor(self.operator)

    def inverse_diagonal(self) -> Array:
        """The diagonal of (K + D)^-1, by solves with the unit vectors."""
        n = self.operator.n
        out = np.empty(n)
        for start in range(0, n, BLOCK_COLUMNS):
            E = np.eye(n, min(BLOCK_COLUMNS, n - start), -start)
            out[start : start + E.shape[1]] = np.diagonal(self.factor.solve(E).value[start:])
        return out


@dataclass(frozen=True, eq=False)
class KrylovPosterior(DualPosterior):
    """A conditioned Gaussian process."""

    kind: ClassVar[str] = "krylov"

    systems: tuple[System, ...]
    system_of: tuple[int, ...]  # for each output, which system

    def precision(self) -> Array:
        """By n solves, exact to the tolerance."""
        diagonals = [system.inverse_diagonal() for system in self.systems]
        return np.stack([diagonals[r] for r in self.system_of], axis=1)

    def state(self, context: Context) -> ObjectState:
        """Each system is that of the context's solver, or of its second attempt. What it has chosen for rows
        of its own goes with it; preconditioners are made again when first needed."""
        first, rows = context.solver, context.own_rows(self.Z)
        solvers = [system.solver for system in self.systems]
        stronger = [solver != first for solver in solvers]
        if any(stronger) and (first is None or not {*solvers} <= {first, first.stronger(len(self.Z))}):
            raise StateError("its solvers are neither that of its method nor that of a second attempt.")
        noises = numbered([system.operator.noise for system in self.systems], "noise.")
        arrays = {"alpha": self.alpha, **noises, **rows}
        if rows:
            chosen = zip(solvers, stronger, strict=True)
            arrays |= joined([{} if again else solver.choices for solver, again in chosen], "solver")
        told = {"kind": self.kind, "stronger": stronger, "system_of": list(self.system_of)}
        return ObjectState(told, arrays)

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> KrylovPosterior:
        _, stronger, system_of = entries(state.described, "posterior", "kind", "stronger", "system_of")
        Z, q, arrays = context.rows(state.arrays), context.q, state.arrays
        n, first = len(Z), context.solver
        stronger, of = typed_list(stronger, bool, "stronger"), typed_list(system_of, int, "system_of")
        if len(of) != q or set(of) != set(range(len(stronger))):
            raise StateError(
                f"stronger has {len(stronger)} entries, and its {q} functions use the systems {of[:8]}: each"
                " must be used."
            )
        systems, choices = [], of_parts(arrays, "solver", len(stronger))
        for r, again in enumerate(stronger):
            noise = taken(arrays, f"noise.{r}", (n,))
            if not np.all(noise >= 0):
                raise StateError(f"its noise.{r} must have variances that are not negative.")
            solver = None if first is None else first.stronger(n) if again else first
            if solver is None:
                raise StateError("its solver has no second attempt, and yet one was made.")
            if Z is not context.X and not again:
                solver = solver.with_choices(choices[r], n)
            systems.append(System(solver, GramOperator(context.prior.kernel, Z, noise)))
        return cls(context.prior, Z, taken(arrays, "alpha", (n, q)), tuple(systems), tuple(of))

    def _slices(self, n: int, columns: int) -> Sequence[slice]:
        step = max(1, BLOCK_COLUMNS // columns)
        return [slice(start, min(start + step, n)) for start in range(0, n, step)]

    def _explained(self, K: Array) -> Iterator[tuple[list[int], Array, Array]]:
        """V ~ A^-1 K' and K' + E, for each system."""
        B = np.ascontiguousarray(K.T)
        for r, system in enumerate(self.systems):
            solution = system.factor.solve(B)
            if not solution.outcome.converged:
                raise NumericalError(f"A variance missed its tolerance: {solution.outcome.note}")
            rest = 2 * B - system.operator.matmul(solution.value)
            yield users(self.system_of, r), solution.value, rest
