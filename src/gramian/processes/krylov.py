"""The posterior of solvers that have no root of K + D: each variance is a solve.

    mean = m + s k(x, X) alpha,      var = s^2 (k(x, x) - k(x, X) A^-1 k(X, x)),      A = K + D

With V ~ A^-1 B and the residual E = B - A V, what the data explain is B'A^-1 B = V'(B + E) + E'A^-1 E.
Without the last term the error is of the order of the tolerance squared, where B'V alone would have one of
the tolerance: small variances are what is left of large numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from gramian.errors import NumericalError, StateError
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.kernels.base import Kernel
from gramian.linalg.state import ObjectState, entries, joined, numbered, of_part, taken, typed_list
from gramian.processes.base import Array, Process, blocks_of
from gramian.processes.prior import GaussianProcess
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
            at = np.arange(start, min(start + BLOCK_COLUMNS, n))
            E = np.zeros((n, len(at)))
            E[at, np.arange(len(at))] = 1.0
            out[at] = self.factor.solve(E).value[at, np.arange(len(at))]
        return out


@dataclass(frozen=True, eq=False)
class KrylovPosterior(Process):
    """A conditioned Gaussian process. Outputs that share their noise share a system."""

    kind: ClassVar[str] = "krylov"

    prior: GaussianProcess
    Z: Array  # (n, d)
    alpha: Array  # (n, q)
    systems: tuple[System, ...]
    system_of: tuple[int, ...]  # for each output, which system

    @property
    def dual(self) -> Array:
        return self.alpha

    def mean(self, X: Array) -> Array:
        product = tiles.matmul(self.prior.kernel, X, self.Z, self.alpha)
        return self.prior.mean(X) + product * self.prior.scale

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean, var = self.prior.moments(X)
        for at, K in self._blocks(X):
            mean[at] += (K @ self.alpha) * self.prior.scale
            explained = [np.einsum("ij,ij->j", V, B) for V, B in self._solved(K)]
            for k, r in enumerate(self.system_of):
                var[at, k] -= explained[r] * self.prior.scale[k] ** 2
        return mean, np.maximum(var, 0.0)

    def cov(self, X: Array) -> Array:
        out = self.prior.cov(X)
        K = tiles.cross(self.prior.kernel, X, self.Z)
        for r, (V, B) in enumerate(self._solved(K)):
            shared = V.T @ B
            for k in (k for k, mine in enumerate(self.system_of) if mine == r):
                out[:, :, k] -= 0.5 * (shared + shared.T) * self.prior.scale[k] ** 2
        np.einsum("iik->ik", out)[...] = self.moments(X)[1]
        return out

    def precision(self) -> Array:
        """By n solves, exact to the tolerance."""
        diagonals = [system.inverse_diagonal() for system in self.systems]
        return np.stack([diagonals[r] for r in self.system_of], axis=1)

    def components(self, X: Array, terms: Sequence[Kernel]) -> list[tuple[Array, Array]]:
        return [replace(self, prior=self.prior.part(term)).moments(X) for term in terms]

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """A solve for each point and column."""
        d = X.shape[1]
        mean, var = self.prior.gradient(X)
        step = max(1, BLOCK_COLUMNS // d)
        for at in (slice(start, min(start + step, len(X))) for start in range(0, len(X), step)):
            G = tiles.gradients(self.prior.kernel, X[at], self.Z)  # (b, n, d)
            mean[at] += np.einsum("bnd,nq->bdq", G, self.alpha) * self.prior.scale
            flat = np.swapaxes(G, 1, 2).reshape(-1, len(self.Z))  # (b d, n)
            explained = [np.einsum("ij,ij->j", V, B).reshape(-1, d) for V, B in self._solved(flat)]
            for k, r in enumerate(self.system_of):
                var[at, :, k] -= explained[r] * self.prior.scale[k] ** 2
        return mean, np.maximum(var, 0.0)

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
        return ObjectState(
            {"kind": self.kind, "stronger": stronger, "system_of": list(self.system_of)}, arrays
        )

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
        systems = []
        for r, again in enumerate(stronger):
            noise = taken(arrays, f"noise.{r}", (n,))
            if not np.all(noise >= 0):
                raise StateError(f"its noise.{r} must have variances that are not negative.")
            solver = None if first is None else first.stronger(n) if again else first
            if solver is None:
                raise StateError("its solver has no second attempt, and yet one was made.")
            if Z is not context.X and not again:
                solver = solver.with_choices(of_part(arrays, f"solver{r}"), n)
            systems.append(System(solver, GramOperator(context.prior.kernel, Z, noise)))
        return cls(context.prior, Z, taken(arrays, "alpha", (n, q)), tuple(systems), tuple(of))

    def _blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        for at in blocks_of(len(X), 8 * len(self.Z)):
            for start in range(at.start, at.stop, BLOCK_COLUMNS):
                part = slice(start, min(start + BLOCK_COLUMNS, at.stop))
                yield part, tiles.cross(self.prior.kernel, X[part], self.Z)

    def _solved(self, K: Array) -> Iterator[tuple[Array, Array]]:
        """V ~ A^-1 K' and K' + E, for each system."""
        B = np.ascontiguousarray(K.T)
        for system in self.systems:
            solution = system.factor.solve(B)
            if not solution.outcome.converged:
                raise NumericalError(f"A variance missed its tolerance: {solution.outcome.note}")
            yield solution.value, 2 * B - system.operator.matmul(solution.value)
