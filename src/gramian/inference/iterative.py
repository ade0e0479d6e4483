"""Exact inference without the matrix: systems with K + D by Krylov solvers, the log determinant by stochastic
Lanczos quadrature.

    log p = -1/2 r' alpha - 1/2 log det A - n/2 log 2 pi,
        alpha = A^-1 r by CG or MINRES, log det A an estimate with a standard error
    d log p / dtheta = 1/2 alpha' dA alpha - 1/2 tr(A^-1 dA),     tr(A^-1 dA) ~ mean over probes of u' dA v

The probes are the same in every evaluation, and so are the pivots of the preconditioner: a search sees one
smooth function of the parameters.

A solve that misses its tolerance is tried again with a preconditioner of four times the rank and four times
the steps, then by Cholesky where n^2 doubles fit into the memory limit; what was done is in the outcome.
Where nothing helps, the outcome says that it did not converge.

Cost: n^2 kernel values a step; O(n (rank + probes)) memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gramian.errors import NumericalError
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference.base import (
    Data,
    Evidence,
    GaussianProcess,
    Inference,
    Inferred,
    LeftOut,
    Model,
    Process,
    Share,
    Work,
    Workspace,
    blocks_of,
    mean_gradient,
    noise_gradient,
)
from gramian.inference.exact import Exact, Group, groups
from gramian.inference.posterior import mean_slopes
from gramian.linalg import memory
from gramian.linalg.threads import THREADS
from gramian.solvers.base import SolveOutcome
from gramian.solvers.cg import CG, CGFactor
from gramian.solvers.minres import MINRES, MINRESFactor
from gramian.solvers.preconditioners import Pivots

Array = NDArray[np.float64]
Krylov = CG | MINRES
KrylovFactor = CGFactor | MINRESFactor

STRONGER = 4  # times the rank and the steps, for the second attempt
STEPS = 60  # of a solve with a good preconditioner, for predictions of time
BLOCK_COLUMNS = 256  # right-hand sides at a time, for variances


class Missed(NumericalError):
    """A solve that stayed above its tolerance."""


@dataclass(frozen=True, eq=False)
class System:
    """K + D of some outputs, and how it is solved. The preconditioner is made when first needed, the same
    from the same fields."""

    solver: Krylov
    operator: GramOperator
    pivots: Pivots | None
    stronger: bool  # whether this is the second attempt

    @cached_property
    def factor(self) -> KrylovFactor:
        return self.solver.factor(self.operator, self.pivots)


@dataclass(frozen=True, eq=False)
class Iterative(Inference):
    """CG or MINRES on K + D, with no n x n array anywhere."""

    solver: Krylov
    pivots: Pivots | None = None  # of the preconditioner, as chosen before a search
    cholesky_up_to: int = 0  # rows that may fall back to Cholesky

    @property
    def name(self) -> str:
        return type(self.solver).__name__.lower()

    @property
    def solver_name(self) -> str:
        s = self.solver
        rank = f" of rank {s.rank}" if s.preconditioner in ("pivoted", "rpcholesky") else ""
        return f"{type(s).__name__} to {s.tol:g}, preconditioner {s.preconditioner}{rank}"

    @property
    def smooth(self) -> bool:
        return False

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> Iterative:
        group = next(iter(groups(model, data)))
        pivots = self.solver.factor(group.operator).preconditioner.pivots
        return dataclasses.replace(self, pivots=pivots, solver=self.solver.seeded(rng))

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        n, q = data.Y.shape
        alpha, value, variance = np.empty((n, q)), 0.0, 0.0
        systems: list[System] = []
        system_of, outcomes = [0] * q, []
        for group in groups(model, data):
            system, solved, outcome = self._solved(group)
            alpha[:, group.outputs] = solved
            logdet, error = system.factor.logdet_estimate()
            value += _log_density(group.R, solved, logdet)
            variance += (0.5 * len(group.outputs) * error) ** 2
            outcomes.append(outcome)
            for k in group.outputs:
                system_of[k] = len(systems)
            systems.append(system)
        worst = max(outcomes, key=lambda o: (not o.converged, o.residual or 0.0))
        if not worst.converged and n <= self.cholesky_up_to:
            exact = Exact().infer(model, data, report)
            note = f"{self.name.upper()} missed its tolerance ({worst.note}), so Cholesky took over."
            return exact._replace(outcome=dataclasses.replace(exact.outcome, note=note))
        prior = GaussianProcess(model.kernel, model.mean, data.scale)
        posterior = KrylovPosterior(prior, data.X, alpha, tuple(systems), tuple(system_of))
        return Inferred(posterior, Evidence(value, "estimate", float(np.sqrt(variance))), worst)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        value, variance = 0.0, 0.0
        try:
            for group in groups(model, data):
                factor, alpha = self._must_solve(group)
                logdet, error = factor.logdet_estimate()
                value += _log_density(group.R, alpha, logdet)
                variance += (0.5 * len(group.outputs) * error) ** 2
        except Missed:
            if len(data.X) > self.cholesky_up_to:
                raise
            return Exact().evidence(model, data, workspace)
        return Evidence(value, "estimate", float(np.sqrt(variance)))

    def evidence_and_gradient(
        self, model: Model, data: Data, workspace: Workspace
    ) -> tuple[Evidence, list[Array]]:
        try:
            return self._estimates(model, data)
        except Missed:
            if len(data.X) > self.cholesky_up_to:
                raise
            return Exact().evidence_and_gradient(model, data, workspace)

    def _estimates(self, model: Model, data: Data) -> tuple[Evidence, list[Array]]:
        value, variance, by_noise, by_mean = 0.0, 0.0, 0.0, np.zeros_like(data.Y)
        by_kernel = [np.zeros(p.value.shape) for p in model.kernel.parameters().values()]
        for group in groups(model, data):
            factor, alpha = self._must_solve(group)
            logdet, error = factor.logdet_estimate()
            if not factor.probe_outcome.converged:
                raise Missed(f"The probes of the log determinant: {factor.probe_outcome.note}")
            U, V = factor.probe_pair()
            q, k = alpha.shape[1], U.shape[1]
            value += _log_density(group.R, alpha, logdet)
            variance += (0.5 * q * error) ** 2
            by_level = 0.5 * np.sum(alpha**2, axis=0) - 0.5 * np.sum(U * V) / k
            by_noise += noise_gradient(model, data, group.outputs, by_level)
            by_mean[:, group.outputs] = alpha / data.scale[group.outputs]
            # 1/2 alpha alpha' - q/4k (U V' + V U'), symmetric
            left = np.hstack([0.5 * alpha, -0.25 * q / k * U, -0.25 * q / k * V])
            for total, part in zip(
                by_kernel,
                tiles.low_rank_pullback(model.kernel, data.X, left, np.hstack([alpha, V, U])),
                strict=True,
            ):
                total += part
        gradients = [*by_kernel, *mean_gradient(model, data.X, by_mean), np.asarray(by_noise)]
        return Evidence(value, "estimate", float(np.sqrt(variance))), gradients

    def leave_one_out(self, model: Model, data: Data, posterior: Process) -> LeftOut:
        """The diagonal of A^-1 by solves with unit vectors, block by block: n solves, exact to the
        tolerance."""
        if not isinstance(posterior, KrylovPosterior):
            return Exact().leave_one_out(model, data, posterior)
        return LeftOut(posterior.alpha, posterior.precision_diagonal())

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Work:
        columns, rank = self.solver.probes + q, self.solver.rank
        product = STEPS * float(n) ** 2
        return Work(
            2 * product * columns + 6.0 * n * rank**2,
            float(n) * rank,
            n * n / 2 if gradient else 0.0,
            product,
        )

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        rank = self.solver.rank if self.solver.preconditioner in ("pivoted", "rpcholesky") else 0
        return 8 * (
            n * (3 * min(rank, n) + 6 * (self.solver.probes + q) + d) + 8 * THREADS * tiles.LARGEST_TILE**2
        )

    def system(self, operator: GramOperator, stronger: bool = False) -> System:
        """How K + D is solved: as the settings say, or with the effort of a second attempt."""
        s = self.solver
        if not stronger:
            return System(s, operator, self.pivots, False)
        rank, steps = min(STRONGER * s.rank, operator.n), STRONGER * s.max_iter
        return System(
            dataclasses.replace(s, preconditioner="rpcholesky", rank=rank, max_iter=steps),
            operator,
            None,
            True,
        )

    def _solved(self, group: Group) -> tuple[System, Array, SolveOutcome]:
        """The solution, after a second attempt with more effort where the first missed its tolerance."""
        system = self.system(group.operator)
        solution = system.factor.solve(group.R)
        if solution.outcome.converged:
            return system, solution.value, solution.outcome
        second = self.system(group.operator, stronger=True)
        again = second.factor.solve(group.R)
        note = f"a first attempt missed its tolerance ({solution.outcome.note})"
        outcome = dataclasses.replace(
            again.outcome, note=f"{note}; {again.outcome.note or f'rank {second.solver.rank} reached it'}"
        )
        return second, again.value, outcome

    def _must_solve(self, group: Group) -> tuple[KrylovFactor, Array]:
        system, alpha, outcome = self._solved(group)
        if not outcome.converged:
            raise Missed(f"{self.name.upper()}: {outcome.note}")
        return system.factor, alpha


@dataclass(frozen=True, eq=False)
class KrylovPosterior(Process):
    """mean = m + s k(x, X) alpha; var = s^2 (k(x, x) - k(x, X) A^-1 k(X, x)), each by a solve.

    With V ~ A^-1 B and the residual E = B - A V, what the data explain is B'A^-1 B = V'(B + E) + E'A^-1 E.
    Without the last term the error is of the order of the tolerance squared, where B'V alone would have one
    of the tolerance: small variances are what is left of large numbers.
    """

    prior: GaussianProcess
    Z: Array  # (n, d)
    alpha: Array  # (n, q)
    systems: tuple[System, ...]
    system_of: tuple[int, ...]  # for each output, which system

    def mean(self, X: Array) -> Array:
        return self.prior.mean(X) + tiles.matmul(self.prior.kernel, X, self.Z, self.alpha) * self.prior.scale

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

    def gradient_moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of the gradient of f, (n, d, q) each: a solve for each point and column."""
        d = X.shape[1]
        mean = mean_slopes(self.prior, X)
        var = tiles.gradient_variances(self.prior.kernel, X)[:, :, None] * self.prior.scale**2
        step = max(1, BLOCK_COLUMNS // d)
        for at in (slice(start, min(start + step, len(X))) for start in range(0, len(X), step)):
            G = tiles.gradients(self.prior.kernel, X[at], self.Z)  # (b, n, d)
            mean[at] += np.einsum("bnd,nq->bdq", G, self.alpha) * self.prior.scale
            flat = np.swapaxes(G, 1, 2).reshape(-1, len(self.Z))  # (b d, n)
            explained = [np.einsum("ij,ij->j", V, B).reshape(-1, d) for V, B in self._solved(flat)]
            for k, r in enumerate(self.system_of):
                var[at, :, k] -= explained[r] * self.prior.scale[k] ** 2
        return mean, np.maximum(var, 0.0)

    def precision_diagonal(self) -> Array:
        """The diagonal of A^-1 for each output, by solves with the unit vectors."""
        n = len(self.Z)
        diagonals = np.empty((n, len(self.systems)))
        for start in range(0, n, BLOCK_COLUMNS):
            at = np.arange(start, min(start + BLOCK_COLUMNS, n))
            E = np.zeros((n, len(at)))
            E[at, np.arange(len(at))] = 1.0
            for r, system in enumerate(self.systems):
                diagonals[at, r] = system.factor.solve(E).value[at, np.arange(len(at))]
        return np.stack([diagonals[:, r] for r in self.system_of], axis=1)

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


def krylov(solver: Krylov, limit: int | float | str | None = None) -> Iterative:
    """Inference by that solver; rows whose Gram matrix fits into the memory limit may fall back to
    Cholesky."""
    return Iterative(solver, cholesky_up_to=int((memory.allowed(limit) / 10) ** 0.5))


def _log_density(R: Array, alpha: Array, logdet: float) -> float:
    n, q = R.shape
    return float(-0.5 * np.sum(R * alpha) - 0.5 * q * (logdet + n * np.log(2 * np.pi)))
