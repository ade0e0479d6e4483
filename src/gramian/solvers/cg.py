"""Conjugate gradients for (K + D) X = B, several right-hand sides at once, with a preconditioner P.

Each column takes the direction that is conjugate to all before it, and the step that minimises the error in the energy norm:

    Q = A p,   alpha = r'z / p'Q,   x <- x + alpha p,   r <- r - alpha Q,   z = P^-1 r,   beta = r'z (new) / r'z (old),   p <- z + beta p

Columns share each product with A and have their own alpha and beta; one that has converged leaves. The residual r of the recurrence drifts away
from b - A x, so a solve ends by that of a true product in float64, and starts again on what is left (iterative refinement) while that helps.
This also allows products in float32: they only make the steps, the residual is corrected in float64, which takes over where float32 helps no more.

The log determinant is estimated by stochastic Lanczos quadrature on probes z = H w, P = H H', w uniform on a sphere (see lanczos.py):

    log det A = log det P + E w' log(H^-1 A H^-T) w,      tr(A^-1 M) = E (A^-1 z)' M (P^-1 z)

from one run of CG for all probes. The seed is fixed, so both are functions of the parameters without noise from one call to the next.

Cost: one product with A a step, n^2 kernel values; O(n (k + r)) memory. Steps: about sqrt(cond(P^-1 A)) log(1 / tol) / 2.
Sources: Golub and Van Loan, Matrix Computations, section 11.5 (the algorithm) and 11.3; Gardner et al. 2018 (log determinants from the same run);
Wenger, Pleiss, Hennig, Cunningham, Gardner 2022 (with the preconditioner's own log determinant).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.errors import NumericalError, ParameterError
from gramian.gram.operator import GramOperator
from gramian.solvers import lanczos, preconditioners
from gramian.solvers.base import Factor, Solution, SolveOutcome, Solver
from gramian.solvers.preconditioners import Name, Pivots, Preconditioner

Array = NDArray[np.float64]
Product = Callable[[Array], Array]
Report = Callable[[int, float], None]  # steps so far, largest relative residual

FLOAT32_FROM = 1024  # rows: below, a product takes a millisecond either way, and float32 would only take more steps
ROUND_IN_FLOAT32 = 1e-3  # how far a round of float32 steps reduces the residual; further, its rounding errors would be what is reduced
NOT_DEFINITE = "K + noise is not positive definite to rounding. Let noise be learned or larger, remove rows that repeat others, or use Cholesky."


@dataclass(frozen=True)
class CG(Solver):
    """Conjugate gradients: for positive definite systems that are too large to factor."""

    tol: float = 1e-6  # |A x - b| / |b| of each column
    max_iter: int = 1000  # steps of a solve, each with one product
    preconditioner: Name = "rpcholesky"
    rank: int = 200  # of the preconditioner
    probes: int = 16  # random directions for the log determinant
    seed: int = 0
    float32: bool | None = None  # products in float32, corrected in float64; None: where that is faster

    def __post_init__(self) -> None:
        check_settings(self.tol, self.max_iter, self.probes)
        preconditioners.check(self.preconditioner, self.rank)

    def factor(self, operator: GramOperator, pivots: Pivots | None = None) -> CGFactor:
        """Makes the preconditioner; `pivots` are those of an earlier factor's, for a log determinant that is smooth in the parameters."""
        rng = np.random.default_rng([self.seed, 1])  # not the stream of the probes
        return CGFactor(self, operator, preconditioners.build(self.preconditioner, operator, self.rank, rng, pivots))


@dataclass(frozen=True, eq=False)
class CGFactor(Factor):
    """A = K + D with its preconditioner, and, once asked for, its probes."""

    solver: CG
    operator: GramOperator
    preconditioner: Preconditioner

    def solve(self, B: Array, report: Report | None = None) -> Solution:
        """A^-1 B for B (n,) or (n, k). `report` is called after each step."""
        value, outcome, _ = self._refined(B.reshape(len(B), -1), report)
        return Solution(value.reshape(B.shape), outcome)

    def logdet(self) -> float:
        return self.logdet_estimate()[0]

    def logdet_estimate(self) -> tuple[float, float]:
        """log det A and the standard error of the estimate."""
        values = self._probed.logdets
        return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("inf")

    def probe_pair(self) -> tuple[Array, Array]:
        """U = A^-1 Z and V = P^-1 Z, each (n, k), for the k probes Z: tr(A^-1 M) = E sum(U * (M V)) / k for any M."""
        return self._probed.U, self._probed.V

    @property
    def probe_outcome(self) -> SolveOutcome:
        """How the solves with the probes went, on which logdet and probe_pair stand."""
        return self._probed.outcome

    @cached_property
    def _probed(self) -> _Probed:
        P, k = self.preconditioner, self.solver.probes
        Z = P.root(lanczos.on_sphere(np.random.default_rng([self.solver.seed, 0]), P.n, k))
        U, outcome, first = self._refined(Z, None, at_once=True)
        if first is None or not all(first.alphas):
            raise NumericalError(f"No log determinant: {NOT_DEFINITE}")
        forms = np.array([lanczos.quadratic_form(a, b, np.log) for a, b in zip(first.alphas, first.betas, strict=True)])
        return _Probed(P.logdet() + P.n * forms, U, P.solve(Z), outcome)

    def _refined(self, B: Array, report: Report | None, at_once: bool = False) -> tuple[Array, SolveOutcome, Run | None]:
        def steps(product: Product, R: Array, tol: Array, most: int, report: Report | None) -> Run:
            return pcg(product, self.preconditioner.solve, R, tol, most, report)

        s = self.solver
        return refined(self.operator, steps, B, s.tol, s.max_iter, s.float32, report, at_once)


def refined(
    A: GramOperator, steps: Steps, B: Array, tol: float, max_iter: int, float32: bool | None, report: Report | None, at_once: bool = False
) -> tuple[Array, SolveOutcome, Run | None]:
    """Rounds of an iteration, each on the true residual that the last has left; also the first round, which `at_once` runs down to `tol`."""
    low = float32 if float32 is not None else A.n >= FLOAT32_FROM
    size = np.linalg.norm(B, axis=0)
    size[size == 0] = 1.0  # a column of zeros is solved by zeros
    X, R = np.zeros(B.shape), B.copy()
    left = np.linalg.norm(R, axis=0) / size
    count, first, note = 0, None, ""
    while count < max_iter and np.any(left > tol):
        todo = np.flatnonzero(left > tol)
        goal = 0.9 * tol / left[todo]
        if low and not at_once:
            goal = np.maximum(goal, ROUND_IN_FLOAT32)
        product = (lambda V: A.matmul(V, np.float32)) if low else A.matmul
        run = steps(product, R[:, todo], goal, max_iter - count, _scaled_report(report, count, float(np.max(left))))
        first, at_once, count = first or run, False, count + run.iterations
        tried = X[:, todo] + run.X
        residual = B[:, todo] - A.matmul(tried)
        now = np.linalg.norm(residual, axis=0) / size[todo]
        better = now < left[todo]  # False for what is not a number
        helped = bool(np.all(now < 0.5 * left[todo]))
        X[:, todo[better]], R[:, todo[better]], left[todo[better]] = tried[:, better], residual[:, better], now[better]
        note = run.note or note
        if not helped:
            if not low:
                break
            low = False
    worst = float(np.max(left, initial=0.0))
    return X, SolveOutcome(count, worst, converged=worst <= tol, note=_note(worst, tol, count, max_iter, note)), first


class _Probed(NamedTuple):
    logdets: Array  # one estimate of log det A a probe
    U: Array
    V: Array
    outcome: SolveOutcome


class Run(NamedTuple):
    """What CG give back: the solution, and their step lengths column by column."""

    X: Array
    iterations: int
    alphas: list[list[float]]
    betas: list[list[float]]
    note: str = ""  # why some column could not go on


Steps = Callable[[Product, Array, Array, int, "Report | None"], Run]


def pcg(product: Product, precondition: Product, B: Array, tol: Array | float, max_iter: int, report: Report | None = None) -> Run:
    """CG from zero on each column of B (n, k), until |r| <= tol |b| by the recurrence; `tol` may be one a column."""
    n, k = B.shape
    X = np.zeros((n, k))
    alphas: list[list[float]] = [[] for _ in range(k)]
    betas: list[list[float]] = [[] for _ in range(k)]
    size, note, steps = np.linalg.norm(B, axis=0), "", 0
    limit = np.broadcast_to(tol, (k,)) * size
    on = np.flatnonzero(size > limit)  # the columns still at work; x, r, p, rz hold only these
    x, r = X[:, on], B[:, on]
    p = precondition(r)
    rz = np.sum(r * p, axis=0)
    while len(on) and steps < max_iter:
        q = product(p)
        pq = np.sum(p * q, axis=0)
        fine = (pq > 0) & (rz > 0) & np.isfinite(pq)
        if not np.all(fine):
            note = NOT_DEFINITE
            X[:, on[~fine]] = x[:, ~fine]
            on, x, r, p, rz, q, pq = on[fine], x[:, fine], r[:, fine], p[:, fine], rz[fine], q[:, fine], pq[fine]
            if not len(on):
                break
        steps += 1
        alpha = rz / pq
        x += alpha * p
        r = r - alpha * q
        for c, a in zip(on, alpha, strict=True):
            alphas[c].append(float(a))
        norms = np.linalg.norm(r, axis=0)
        if report is not None:
            report(steps, float(np.max(norms / size[on])))
        more = norms > limit[on]
        if not np.all(more):
            X[:, on[~more]] = x[:, ~more]
            on, x, r, p, rz = on[more], x[:, more], r[:, more], p[:, more], rz[more]
        if len(on):
            z = precondition(r)
            before, rz = rz, np.sum(r * z, axis=0)
            beta = rz / before
            p = z + beta * p
            for c, b in zip(on, beta, strict=True):
                betas[c].append(float(b))
    X[:, on] = x
    return Run(X, steps, alphas, betas, note)


def check_settings(tol: float, max_iter: int, probes: int) -> None:
    """Refuses settings with which no solve could succeed."""
    if not 0 < tol < 1:
        raise ParameterError(f"tol={tol!r} is a relative residual: give a number between 0 and 1, such as 1e-6.")
    for name, value in (("max_iter", max_iter), ("probes", probes)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{name}={value!r} must be a positive whole number.")


def _scaled_report(report: Report | None, steps: int, left: float) -> Report | None:
    """Steps and residuals of the whole solve, from those of one round of it."""
    return None if report is None else lambda step, residual: report(steps + step, left * residual)


def _note(worst: float, tol: float, steps: int, max_iter: int, reason: str) -> str:
    if worst <= tol:
        return ""
    missed = f"the relative residual is {worst:.2g}, {worst / tol:.2g} times the tolerance {tol:g}, after {steps} steps"
    if steps >= max_iter:
        return f"{missed}, all that were allowed. Raise max_iter or the rank of the preconditioner, let noise be larger, or use Cholesky."
    return f"{missed}: {reason or 'rounding allows no better. Accept a larger tol, let noise be larger, or use Cholesky.'}"
