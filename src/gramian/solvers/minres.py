"""MINRES-QLP: symmetric systems A x = b that may be indefinite or singular; of all least-squares solutions
the shortest.

The Lanczos process A V_k = V_(k+1) T_k, T_k tridiagonal (k + 1, k), turns min |A x - b| over the Krylov space
into min |T_k y - beta_1 e_1|. MINRES (Paige and Saunders 1975) solves that by reflections from the left, Q_k
T_k = R_k. MINRES-QLP adds reflections from the right, R_k P_k = L_k, lower triangular with three diagonals,
which reveal the rank: when the last entry gamma of L_k vanishes, the component u of the solution that belongs
to it is set to 0, and x, a combination of the columns w of W = V P, has minimum length:

    x_k = ... + w_(k-2) ul2 + w_(k-1) ul + w_k u,         L_k (..., ul2, ul, u)' = (..., taul2, taul, tau)'

All steps are QLP steps (the published code may begin with cheaper MINRES steps; the products dominate here).
Each column has its own coefficients; columns share the products and leave when they have converged.

With a preconditioner P = H H' this is the algorithm for H^-1 A H^-T: residuals are minimal in the norm of
P^-1, and lengths in that of P. So for the shortest solution of a singular system take none. With b outside
its range, rounding limits the relative error to about cond sqrt(eps), cond of the part that is not singular.

Cost: one product with A a step, n^2 kernel values; ten vectors a column. Steps: about as many as CG on
definite systems; residuals never grow. Sources: Choi, Paige, Saunders 2011, "MINRES-QLP: a Krylov subspace
method for indefinite or singular symmetric systems", SIAM J. Sci. Comput. 33(4); Paige, Saunders 1975,
"Solution of sparse indefinite systems of linear equations".
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.gram.operator import GramOperator
from gramian.solvers.base import Solution
from gramian.solvers.cg import CGFactor
from gramian.solvers.krylov import KrylovSolver, Product, Round

# |A r| / (|A| |r|), the share of the residual that some x could still reduce. Rounding keeps it above about
# sqrt(eps) in a singular system whose right-hand side lies outside the range; afterwards the Lanczos process,
# which ought to have ended, begins anew and it rises.
LEAST_SQUARES = 1e-10  # surely the least-squares residual
NEARLY = 1e-6  # the least-squares residual if it is the smallest for long, and the residual falls no more
RANK = 1e-13  # gamma / |A| from which A counts as singular
OUTSIDE = (
    "the matrix is singular to rounding and the right-hand side lies outside its range, so this is the"
    " least-squares solution. Add noise."
)


@dataclass(frozen=True)
class MINRES(KrylovSolver):
    """Minimum residuals (MINRES-QLP): for systems that are too large to factor, and possibly singular."""

    def factor(self, operator: GramOperator) -> MINRESFactor:
        return MINRESFactor(self, operator, self.preconditioned(operator))


@dataclass(frozen=True, eq=False)
class MINRESFactor(CGFactor):
    """A = K + D with its preconditioner. Log determinant and probes are CG's: for definite A alone."""

    def solve(self, B: Array) -> Solution:
        plain = self.solver.preconditioner == "none"
        slack = 1.0 if plain else 0.1  # the recurrence knows its residual in the norm of P^-1 alone
        precondition = None if plain else self.preconditioner.solve

        def steps(product: Product, R: Array, tol: Array, most: int) -> Round:
            done = minres_qlp(product, R, tol=slack * tol, max_iter=most, precondition=precondition)
            return Round(done.X, done.iterations, [], [], OUTSIDE if done.least_squares else "")

        return self.solved(steps, B)


class Minimised(NamedTuple):
    """What MINRES-QLP gives back."""

    X: Array
    iterations: int
    residuals: Array  # (k,), |A x - b| / |b| by the recurrence, in the norm of P^-1
    # some column ended because its residual cannot be reduced: A is singular and b outside its range
    least_squares: bool


def minres_qlp(
    product: Product,
    B: Array,
    *,
    tol: Array | float = 1e-10,
    max_iter: int | None = None,
    precondition: Product | None = None,
) -> Minimised:
    """The shortest of all x that minimise |A x - b|, for each column of B, (n,) or (n, k); A is any symmetric
    matrix, as V -> A V for V (n, k).

    A column ends when |r| <= tol |b|, when no x can reduce r further, or after `max_iter` steps (5 n by
    default). `precondition` is V -> P^-1 V, P positive definite.
    """
    columns = B.reshape(len(B), -1)
    n, k = columns.shape
    most = 5 * n if max_iter is None else max_iter
    work = [_column(columns[:, c], float(t), most) for c, t in enumerate(np.broadcast_to(tol, (k,)))]
    # a column of zeros is solved by zeros
    asked = {c: next(w) for c, w in enumerate(work) if np.any(columns[:, c])}
    ends = {c: _End(np.zeros(n), 0.0, False) for c in range(k)}
    by_P = precondition or np.copy
    times, steps = by_P, 0
    while asked:  # all columns want the same in turn: P^-1, then A and P^-1 a step
        answers = times(np.column_stack(list(asked.values())))
        steps += times is product
        for c, answer in zip(list(asked), answers.T, strict=True):
            try:
                asked[c] = work[c].send(np.ascontiguousarray(answer))
            except StopIteration as stop:
                ends[c] = stop.value
                del asked[c]
        times = product if times is by_P else by_P
    X = np.column_stack([end.x for end in ends.values()]) if k else np.zeros((n, 0))
    residuals = np.array([end.left for end in ends.values()])
    return Minimised(X.reshape(B.shape), steps, residuals, any(end.least_squares for end in ends.values()))


class _End(NamedTuple):
    x: Array
    left: float  # |r| / |b|
    least_squares: bool


def _column(b: Array, tol: float, max_iter: int) -> Generator[Array, Array, _End]:
    """MINRES-QLP for one right-hand side, in the symbols of its authors (`l`, `l2`: one and two steps before;
    `n`: the next). It asks for products.

    T has the entries alfa, beta; R gama, dlta, epln; L gama on its diagonal, vepln and eta below; tau and phi
    are the entries of Q beta1 e_1.
    """
    eps = float(np.finfo(np.float64).eps)
    r1, r2 = np.zeros(len(b)), b
    r3 = yield b
    beta1 = sqrt(max(float(r2 @ r3), 0.0))
    x, xl2 = np.zeros(len(b)), np.zeros(len(b))
    w, wl = np.zeros(len(b)), np.zeros(len(b))
    if beta1 == 0:
        return _End(x, 1.0, False)
    beta, betan, phi = 0.0, beta1, beta1
    cs, sn, cr1, sr1, cr2, sr2 = -1.0, 0.0, -1.0, 0.0, -1.0, 0.0
    dltan = eplnn = gama = gamal = eta = etal = vepln = veplnl = 0.0
    tau = taul = ul3 = ul2 = ul = 0.0
    Anorm = xl2norm = 0.0
    # of the step whose residual came closest to one that no x can reduce
    best_share, best_x, best_phi = float("inf"), None, 0.0
    for step in range(1, max_iter + 1):
        # Lanczos.
        betal, beta = beta, betan
        v = r3 / beta
        r3 = yield v
        if step > 1:
            r3 -= (beta / betal) * r1
        alfa = float(v @ r3)
        r3 -= (alfa / beta) * r2
        r1, r2 = r2, r3
        r3 = yield r2
        betan = sqrt(max(float(r2 @ r3), 0.0))

        # The left reflection of the step before on the new column of T, and this step's.
        dbar = dltan
        dlta = cs * dbar + sn * alfa
        gbar = sn * dbar - cs * alfa
        eplnn, dltan = sn * betan, -cs * betan
        gamal2, gamal = gamal, gama
        cs, sn, gama = _reflection(gbar, betan)
        Anorm = max(Anorm, hypot(betal, alfa, betan), abs(gama))
        # |A r| / (|A| |r|) of the residual that the step before has left
        share = hypot(gbar, dltan) / Anorm if Anorm else 0.0
        taul2, taul, tau = taul, tau, cs * phi
        phil, phi = phi, sn * phi

        # The right reflections: P_(k-2,k) of the step before, P_(k-1,k) of this one.
        etal2, veplnl2 = etal, veplnl
        if step > 2:
            etal = eta
            dlta, veplnl = sr2 * vepln - cr2 * dlta, cr2 * vepln + sr2 * dlta
            eta, gama = sr2 * gama, -cr2 * gama
        if step > 1:
            cr1, sr1, gamal = _reflection(gamal, dlta)
            vepln, gama = sr1 * gama, -cr1 * gama

        # The components of the solution that this step changes; the last is 0 where L has no rank for it.
        ul4, ul3 = ul3, ul2
        if step > 2:
            ul2 = (taul2 - etal2 * ul4 - veplnl2 * ul3) / gamal2
        if step > 1:
            ul = (taul - etal * ul3 - veplnl * ul2) / gamal
        singular = share <= LEAST_SQUARES or abs(gama) <= RANK * Anorm
        u = 0.0 if singular else (tau - eta * ul2 - vepln * ul) / gama
        xl2norm = hypot(xl2norm, ul2)

        # The directions W = V P, and x.
        if step == 1:
            wl, w = v * sr1, -cr1 * v
        elif step == 2:
            wl, w = cr1 * w + sr1 * v, sr1 * w - cr1 * v
        else:
            wl2 = cr2 * wl + sr2 * v
            new = sr2 * wl - cr2 * v
            wl, w = cr1 * w + sr1 * new, sr1 * w - cr1 * new
            xl2 += ul2 * wl2
        x = xl2 + ul * wl
        if share < min(NEARLY, best_share):
            best_share, best_x, best_phi = share, x, phil
        if singular or (share > 30 * best_share and phi > (1 - 1e-9) * best_phi):
            found, left = (x, phil) if best_x is None else (best_x, best_phi)
            return _End(found, left / beta1, phil > tol * beta1)
        x = x + u * w
        if phi <= tol * beta1 or phi <= eps * (Anorm * hypot(xl2norm, ul, u) + beta1):
            break
        cr2, sr2, gamal = _reflection(gamal, eplnn)
    return _End(x, phi / beta1, False)


def _reflection(a: float, b: float) -> tuple[float, float, float]:
    """c, s, r with c a + s b = r >= 0 and s a - c b = 0."""
    r = hypot(a, b)
    return (a / r, b / r, r) if r > 0 else (1.0, 0.0, 0.0)
