"""K by its products alone: systems with A = K + D by a solver, with its log determinant.

    alpha = A^-1 r by CG or MINRES (or any `Solver`),   log det A with a standard error
    tr(A^-1 dA) ~ mean over probes of u' dA v

Probes and pivots of the preconditioner are the same in every evaluation: a search sees one smooth function.

A solve that misses its tolerance is tried again with more effort (`Solver.stronger`), then by Cholesky where
n^2 doubles fit into the memory limit; the outcome says what was done, and whether it converged.

Cost: n^2 kernel values a step; O(n (rank + probes)) memory. Variances of all rows take n solves.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gramian.arrays import Array, plain_numbers
from gramian.engines.base import (
    Columns,
    Conditioned,
    Engine,
    Gradients,
    PartConditioned,
    RowPrior,
    Share,
    Sides,
    SolvedConditioned,
    Term,
    Use,
    Workspace,
    by_output,
)
from gramian.engines.dense import DensePrior
from gramian.errors import NumericalError, ParameterError, StateError
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.kernels.base import Kernel
from gramian.linalg import memory
from gramian.linalg.cost import Cost
from gramian.processes.krylov import BLOCK_COLUMNS, KrylovPosterior, System
from gramian.processes.prior import GaussianProcess
from gramian.solvers.base import SolveOutcome, Solver
from gramian.solvers.cg import CG
from gramian.solvers.cholesky import Cholesky

LEAST = 1e-6  # of 1 / k(x, x): the least lam of a site, which decides on the condition of K + D
FAR = 100.0  # times k(x, x): noise of a row that says little
PROBES, SEED = 32, 0  # of traces, for solvers that have none of their own


@dataclass(frozen=True, eq=False)
class Krylov(Engine):
    """A solver on K + D, with no n x n array: CG(), MINRES(), or one that passes `testing.check_factor`."""

    accuracy = "exact to the solver's tolerance"
    exact = True
    smooth = False
    variances = False
    kinds = "krylov", "exact"  # the second where Cholesky took over

    solver: Solver = dataclasses.field(default_factory=CG)
    # rows that may fall back to Cholesky; None: as many as fit into free memory
    cholesky_up_to: int | None = None

    def __post_init__(self) -> None:
        plain_numbers(self)
        if not isinstance(self.solver, Solver):
            raise ParameterError(
                f"Krylov: solver={self.solver!r} is no solver. Give CG(...), MINRES(...), or your own."
            )
        if self.cholesky_up_to is None:
            object.__setattr__(self, "cholesky_up_to", rows_within(None))

    @property
    def name(self) -> str:
        return self.solver.name

    @property
    def described(self) -> str:
        return self.solver.described

    @property
    def label(self) -> str:
        return self.solver.label

    def check_choices(self, X: Array | None, d: int) -> None:
        self.solver.with_choices(self.solver.choices, 0 if X is None else len(X))
        if (self.cholesky_up_to or 0) < 0:
            raise StateError("its solver has a negative number of rows.")

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Krylov:
        return dataclasses.replace(self, solver=self.solver.prepared(kernel, X, rng))

    def on_other_rows(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Krylov:
        return self.prepared(kernel, X, rng)  # its probes have one number a row

    def at(self, kernel: Kernel, X: Array, use: Use, workspace: Workspace | None = None) -> RowPrior:
        return KrylovPrior(kernel, np.asarray(X, dtype=np.float64), self, use.again, workspace)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        return self.solver.work(n, d, q, gradient)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return self.solver.bytes_needed(n, d, q)


def rows_within(limit: int | float | str | None) -> int:
    """Rows whose Gram matrix fits into a memory limit."""
    return int((memory.allowed(limit) / 10) ** 0.5)


class KrylovPrior(RowPrior):
    """N(0, K) through products with K."""

    def __init__(
        self, kernel: Kernel, X: Array, engine: Krylov, again: bool, workspace: Workspace | None
    ) -> None:
        self.kernel, self.X, self.engine, self.again, self.workspace = kernel, X, engine, again, workspace

    @cached_property
    def diagonal(self) -> Array:
        return tiles.diagonal(self.kernel, self.X)

    def condition(self, lam: Array, h: Array, report: Share | None = None) -> Conditioned:
        least = LEAST / np.maximum(self.diagonal, 1e-300)
        if np.any(lam < -least):  # K + D would be indefinite, and its log determinant nobody's
            raise NumericalError(
                f"{self.engine.name.upper()} has no answer for sites that curve the wrong way, as those of a"
                ' likelihood that is not log-concave may. Use method="exact" or "vfe".'
            )
        lam = np.maximum(lam, least)
        found = self.observe(1 / lam, h / lam[:, None], report)
        if not found.outcome.converged:
            raise NumericalError(
                f"{self.engine.name.upper()} on K with the sites missed its tolerance: {found.outcome.note}"
            )
        return found

    def observe(self, D: Array, r: Array, report: Share | None = None) -> Conditioned:
        seen = np.isfinite(D)
        if not seen.all():
            at = np.flatnonzero(seen)
            own = self.engine.prepared(self.kernel, self.X[at], np.random.default_rng(SEED))
            part = KrylovPrior(self.kernel, self.X[at], own, self.again, self.workspace)
            return PartConditioned(self, part, at, part.observe(D[at], r[at], report))
        operator, solver = GramOperator(self.kernel, self.X, D), self.engine.solver
        system = System(solver, operator)
        # A^-1 D h = h - A^-1 K h: rows of much noise enter by what they add, h = r / D. Their r would make up
        # all of |r|, to which a solver's tolerance is relative, and the other rows would be left unsolved.
        far, h = FAR * self.diagonal < D, np.zeros(r.shape)
        h[far] = r[far] / D[far][:, None]
        right = np.where(far[:, None], 0.0, r) - self.times(h) if far.any() else r
        solution = system.factor.solve(right)
        if solution.outcome.converged:
            return KrylovConditioned(self, D, r, h + solution.value, system, solution.outcome)
        first = f"a first attempt missed its tolerance ({solution.outcome.note})"
        harder = solver.stronger(len(r))
        if harder is not None:
            system = System(harder, operator)
            again = system.factor.solve(right)
            note = f"{first}; {again.outcome.note or f'{harder.label} reached it'}"
            solution = again._replace(outcome=dataclasses.replace(again.outcome, note=note))
        if not solution.outcome.converged and len(r) <= (self.engine.cholesky_up_to or 0):
            whole = DensePrior(self.kernel, self.X, Cholesky(), self.again, self.workspace)
            dense = whole.observe(D, r, report)
            missed = f"{self.engine.name.upper()} missed its tolerance ({solution.outcome.note})"
            note = f"{missed}, so Cholesky took over."
            dense.outcome = dataclasses.replace(dense.outcome, note=note)
            return dense
        return KrylovConditioned(self, D, r, h + solution.value, system, solution.outcome)

    def pullback(self, terms: Sequence[Term]) -> Gradients:
        left, right, by_level = [], [], []
        for term in terms:
            a = term.sited.alpha if term.alpha is None else term.alpha
            left.append(0.5 * a)
            right.append(a)
            if term.u is not None:
                left += [0.5 * term.u, 0.5 * a]
                right += [a, term.u]
            level = 0.5 * np.sum(a**2, axis=0)
            if term.logdet:
                U, V = term.sited.probes()
                q, k = a.shape[1], U.shape[1]
                left += [-0.25 * q / k * U, -0.25 * q / k * V]  # -q/4k (U V' + V U'), symmetric
                right += [V, U]
                level = level - 0.5 * float(np.sum(U * V)) / k
            by_level.append(level)
        pulled = tiles.low_rank_pullback(self.kernel, self.X, np.hstack(left), np.hstack(right))
        return Gradients(pulled, None, np.concatenate(by_level))

    def together(
        self, prior: GaussianProcess, conditioned: Sequence[Any], columns: Columns, sides: Sides = None
    ) -> KrylovPosterior:
        alpha, system_of = by_output([one.alpha for one in conditioned], columns, sides, len(prior.scale))
        return KrylovPosterior(prior, self.X, alpha, tuple(one.system for one in conditioned), system_of)


class KrylovConditioned(SolvedConditioned):
    """By a solver."""

    def __init__(
        self, prior: KrylovPrior, D: Array, r: Array, alpha: Array, system: System, outcome: SolveOutcome
    ) -> None:
        self.prior, self.D, self.r, self._alpha = prior, D, r, alpha
        self.system, self.outcome = system, outcome

    @property
    def logdet_noisy(self) -> float:
        return self._estimate[0]

    @property
    def logdet_error(self) -> float:
        return self._estimate[1]

    @cached_property
    def _estimate(self) -> tuple[float, float]:
        return self.system.factor.logdet_estimate()

    @cached_property
    def mean(self) -> Array:
        return self.prior.times(self._alpha)

    def inverse_times(self, b: Array) -> Array:
        return self.system.factor.solve(b).value

    def var(self) -> Array:
        """By n solves, in blocks."""
        out = np.empty(len(self.D))
        for start in range(0, len(out), BLOCK_COLUMNS):
            at = slice(start, min(start + BLOCK_COLUMNS, len(out)))
            K = tiles.cross(self.prior.kernel, self.prior.X, self.prior.X[at])
            out[at] = self.prior.diagonal[at] - np.einsum("ij,ij->j", K, self.inverse_times(K))
        return np.maximum(out, 0.0)

    def precision(self) -> Array:
        """By solves with the unit vectors, block by block: n solves, exact to the tolerance."""
        return self.system.inverse_diagonal()

    def probes(self) -> tuple[Array, Array]:
        """U and V (n, k) with tr(A^-1 M) ~ sum(U * (M V)) / k."""
        factor = self.system.factor
        pair = factor.probe_pair()
        if not factor.probe_outcome.converged:
            raise NumericalError(f"The probes of the log determinant: {factor.probe_outcome.note}")
        if pair is not None:
            return pair
        rng = np.random.default_rng(SEED)
        Z = np.where(rng.random((len(self.D), PROBES)) < 0.5, -1.0, 1.0)  # E Z Z' = I, of the least variance
        return factor.solve(Z).value, Z
