"""Conjugate gradients for (K + D) X = B, several right-hand sides at once, with a preconditioner P.

    Q = A p,   alpha = r'z / p'Q,   x <- x + alpha p,   r <- r - alpha Q,
    z = P^-1 r,   beta = r'z (new) / r'z (old),   p <- z + beta p

Columns share each product with A and have their own alpha and beta; one that has converged leaves. A solve is
rounds of this (see krylov.py).

The log determinant is estimated by stochastic Lanczos quadrature on probes z = H w, P = H H', w uniform on a
sphere (see lanczos.py), from one run of CG for all probes, with a fixed seed:

    log det A = log det P + E w' log(H^-1 A H^-T) w,      tr(A^-1 M) = E (A^-1 z)' M (P^-1 z)

Cost: one product with A a step, n^2 kernel values; O(n (k + r)) memory. Steps: about sqrt(cond(P^-1 A)) log(1
/ tol) / 2. Sources: Golub and Van Loan, Matrix Computations, section 11.5 (the algorithm) and 11.3; Gardner
et al. 2018 (log determinants from the same run); Wenger, Pleiss, Hennig, Cunningham, Gardner 2022 (with the
preconditioner's own log determinant).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.errors import NumericalError
from gramian.gram.operator import GramOperator
from gramian.solvers import lanczos
from gramian.solvers.base import Factor, Solution, SolveOutcome
from gramian.solvers.krylov import KrylovSolver, Product, Round, Steps, refined
from gramian.solvers.preconditioners import Preconditioner

NOT_DEFINITE = (
    "K + noise is not positive definite to rounding. Let noise be learned or larger, remove rows that repeat"
    " others, or use Cholesky."
)


@dataclass(frozen=True)
class CG(KrylovSolver):
    """Conjugate gradients: for positive definite systems that are too large to factor."""

    def factor(self, operator: GramOperator) -> CGFactor:
        return CGFactor(self, operator, self.preconditioned(operator))


@dataclass(frozen=True, eq=False)
class CGFactor(Factor):
    """A = K + D with its preconditioner, and, once asked for, its probes."""

    solver: KrylovSolver
    operator: GramOperator
    preconditioner: Preconditioner

    def solve(self, B: Array) -> Solution:
        return self.solved(self._steps, B)

    def solved(self, steps: Steps, B: Array) -> Solution:
        """A^-1 B for B (n,) or (n, k) by rounds of these steps."""
        value, outcome, _ = refined(self.operator, self.solver, steps, B.reshape(len(B), -1))
        return Solution(value.reshape(B.shape), outcome)

    def logdet(self) -> float:
        return self.logdet_estimate()[0]

    def logdet_estimate(self) -> tuple[float, float]:
        values = self._probed.logdets
        error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.inf
        return float(np.mean(values)), float(error)

    def probe_pair(self) -> tuple[Array, Array]:
        """U = A^-1 Z and V = P^-1 Z for the probes Z."""
        return self._probed.U, self._probed.V

    @property
    def probe_outcome(self) -> SolveOutcome:
        return self._probed.outcome

    @cached_property
    def _probed(self) -> _Probed:
        P = self.preconditioner
        Z = P.root(lanczos.on_sphere(self.solver.stream(0), P.n, self.solver.probes))
        U, outcome, first = refined(self.operator, self.solver, self._steps, Z, at_once=True)
        if first is None or not all(first.alphas):
            raise NumericalError(f"No log determinant: {NOT_DEFINITE}")
        steps = zip(first.alphas, first.betas, strict=True)
        forms = np.array([lanczos.quadratic_form(alpha, beta, np.log) for alpha, beta in steps])
        return _Probed(P.logdet() + P.n * forms, U, P.solve(Z), outcome)

    def _steps(self, product: Product, R: Array, tol: Array, most: int) -> Round:
        return pcg(product, self.preconditioner.solve, R, tol, most)


class _Probed(NamedTuple):
    logdets: Array  # one estimate of log det A a probe
    U: Array
    V: Array
    outcome: SolveOutcome


def pcg(product: Product, precondition: Product, B: Array, tol: Array | float, max_iter: int) -> Round:
    """CG from zero on each column of B (n, k), until |r| <= tol |b|, tol one or one a column."""
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
            on, rz, pq = on[fine], rz[fine], pq[fine]
            x, r, p, q = (array[:, fine] for array in (x, r, p, q))
            if not len(on):
                break
        steps += 1
        alpha = rz / pq
        x += alpha * p
        r = r - alpha * q
        for c, a in zip(on, alpha, strict=True):
            alphas[c].append(float(a))
        more = np.linalg.norm(r, axis=0) > limit[on]
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
    return Round(X, steps, alphas, betas, note)
