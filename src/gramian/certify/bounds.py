"""Bounds of what exact inference would say, for the evidence, for means and for variances, without doing it.

With Q = K_xz K_zz^-1 K_zx <= K for any landmarks, P = Q + D and A = K + D:

    P <= A, so that   v'A^-1 v <= v'P^-1 v   for any vector v.

Solutions. Let w be any approximate solution of A w = v, and e = v - A w what it leaves. Then

    v'A^-1 v = w'v + w'e + e'A^-1 e                        in [w'v + w'e, w'v + w'e + e'P^-1 e]
    u'A^-1 v = x'v + w'd + d'A^-1 e,  d = u - A x          within sqrt(d'P^-1 d  e'P^-1 e) of x'v + w'd

    Both errors are of second order. v = k(X, x) gives variances, v = r the evidence's quadratic term, both
    together means. Up to FACTORED_UP_TO rows w and x come from a Cholesky factor, the cheaper way for so many
    right-hand sides, which has the log determinant, too; up to SOLVED_UP_TO rows from CG with P as its
    preconditioner, in float32: the bounds rest on the residuals alone, which are computed in float64.

Beyond, with t = tr(K - Q) >= the largest eigenvalue of K - Q (Titsias 2014):

    A <= P + t I, so that   v'(P + t I)^-1 v <= v'A^-1 v.

Log determinant. log det A >= log det P. From above, log det being concave, for any M = Q + D + C with C =
diag(c), c >= 0, and s = diag(K - Q)

    log det A  <=  log det M + tr(M^-1 (A - M))  <=  log det M + sum_i s_i / (D_i + c_i) - sum_i c_i (M^-1)_ii

    because K - Q >= 0 and M^-1 <= (D + C)^-1. c = 0 is the variational bound (Titsias 2009). c = s adds at
    most the number of landmarks to the log determinant of fitc's matrix M, however small the noise is. The
    smaller of the two counts.

Means beyond SOLVED_UP_TO rows. The exact mean f* minimises J(f) = |f|_H^2 + sum_i (r_i - f(x_i))^2 / D_i over
the kernel's function space, and J(f) - J(f*) is the squared norm of f - f* in the norm whose reproducing
kernel is the posterior covariance: |f(x) - f*(x)| <= sd*(x) sqrt(J(f) - J(f*)). For landmarks J(f) = |w|^2 +
sum_i (r_i - phi_i'w)^2 / D_i and J(f*) = r'A^-1 r. For dual weights with residual e = r - A alpha, J(f) -
J(f*) = e'D^-1 e - e'A^-1 e <= e'D^-1 e.

Rounding. What is computed is of A + R, with |R_ij| below a few eps sqrt(A_ii A_jj), so that |R| <= rho = 4
eps tr(A). To first order w'A w is off by rho |w|^2, and a residual by rho |w|, which counts once more through
A^-1 <= D^-1. The forms, and differences by Woodbury's identity, are widened by that: nothing at noise that
people meet, and at noise near rounding what keeps a bound a bound.

Cost: n^3 / 3 and n^2 numbers for a factor; `steps(n)` products of n^2 kernel values with all points at once
for CG; passes of n m^2 beside both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from gramian.arrays import Array
from gramian.engines.recipes import chosen
from gramian.errors import NumericalError
from gramian.features.base import FeatureMap
from gramian.features.nystrom import NystromBasis
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference.model import Data, Model, NoiseGroup, noise_groups
from gramian.linalg.weights import inverse_root_of, weights_of
from gramian.processes.base import Process, blocks_of
from gramian.processes.prior import mean_block
from gramian.solvers.cg import CG, CGFactor
from gramian.solvers.cholesky import Cholesky
from gramian.solvers.preconditioners import Preconditioner

ALL = slice(None)
LANDMARKS = 1000  # for bounds of methods that have fewer of their own
FACTORED_UP_TO = 45_000  # rows: 16 GB and some minutes, about what CG takes; fewer where memory ends before
SOLVED_UP_TO = 50_000  # rows: n^2 kernel values a step
TOLERANCE = 1e-6  # of the solves, whose error counts squared
ULPS = 4 * float(np.finfo(float).eps)  # of a kernel value, and of a sum's terms
WOODBURY = 32 * ULPS  # of v'D^-1 v, from which most is taken away again


@dataclass(frozen=True, eq=False)
class Bounds:
    """What the exact answer lies between; of f at the points in the units of y: (points, q)."""

    evidence_low: float
    evidence_high: float
    var_low: Array
    var_high: Array
    mean_error: Array  # how far the posterior's mean can be from the exact one


@dataclass(frozen=True, eq=False)
class _Forms:
    """v'A^-1 v for v = r of each output, then v = k(X, x) of each point; and k(x, X) A^-1 r."""

    low: Array
    high: Array
    mean: Array | None = None  # (points, outputs)
    mean_slack: Array | None = None
    logdet: tuple[float, float] | None = None  # what log det A lies between, where it was computed


def bounds_of(
    model: Model, data: Data, posterior: Process, points: Array, rng: np.random.Generator, memory: float
) -> Bounds:
    """Bounds for a posterior of the model, at points. `memory`: the bytes that they may take."""
    n, q = data.Y.shape
    groups = noise_groups(model, data)
    if min(float(np.min(group.noise(n))) for group in groups) <= 0:
        raise NumericalError(
            "There is no certificate without noise: K alone may be singular to rounding. Give noise above"
            " zero, or use exact inference."
        )
    Z = _landmarks(model, data, posterior, rng)
    features = NystromBasis(Z).at(model.kernel)
    in_memory = n <= SOLVED_UP_TO and 40 * n * len(Z) <= memory  # Phi, and what a QR of it takes
    prior_var = tiles.diagonal(model.kernel, points)
    prior_mean, given = mean_block(model.mean, points, q), posterior.mean(points)
    low, high = 0.0, 0.0
    var_low, var_high, error = (np.empty((len(points), q)) for _ in range(3))
    for group in groups:
        k, part = len(group.outputs), _SharedNoise(model, data, features, group)
        forms = part.solved(points, memory) if in_memory else part.streamed(points)
        det_low, det_high = forms.logdet or part.log_determinants()
        constant = -0.5 * k * n * float(np.log(2 * np.pi))
        low += constant - 0.5 * (k * det_high + float(np.sum(forms.high[:k])))
        high += constant - 0.5 * (k * det_low + float(np.sum(forms.low[:k])))
        for i, j in enumerate(group.outputs):
            scale = float(data.scale[j])
            var_low[:, j] = np.maximum(prior_var - forms.high[k:], 0.0) * scale**2
            var_high[:, j] = np.maximum(prior_var - forms.low[k:], 0.0) * scale**2
            above = part.above_least(posterior, j, float(forms.low[i]))
            error[:, j] = np.sqrt(var_high[:, j]) * np.sqrt(above)
            error[:, j] += np.abs(given[:, j] - part.judged(posterior, j, points))
            if forms.mean is not None and forms.mean_slack is not None:
                exact = prior_mean[:, j] + scale * forms.mean[:, i]
                known = np.abs(given[:, j] - exact) + scale * forms.mean_slack[:, i]
                error[:, j] = np.minimum(error[:, j], known)
    return Bounds(low, high, var_low, var_high, error)


def steps(n: int) -> int:
    """Steps of the solves: as many as a few minutes allow."""
    return int(np.clip(5e10 / n**2, 20, 100))


def _landmarks(model: Model, data: Data, posterior: Process, rng: np.random.Generator) -> Array:
    """The posterior's own, where it has any; more, where they are few and the rows not too many."""
    own = posterior.landmarks
    if own is not None and (len(own) >= LANDMARKS or len(data.X) > SOLVED_UP_TO):
        return own
    return chosen(model.kernel, data.X, LANDMARKS, "rpcholesky", rng)


@dataclass(frozen=True, eq=False)
class _SharedNoise:
    """The outputs that share their noise."""

    model: Model
    data: Data
    features: FeatureMap
    group: NoiseGroup

    # Quadratic forms. ---------------------------------------------------------------------------------------

    def solved(self, points: Array, memory: float) -> _Forms:
        X, D, k = self._rows(), self._noise(), len(self.group.outputs)
        n, operator = len(X), GramOperator(self.model.kernel, X, D)
        P = Preconditioner.from_factor(self.features.block(X), D)
        V = np.hstack([self._residuals(), tiles.cross(self.model.kernel, X, points)])
        logdet = None
        # the factor, and Phi with what P makes of it
        if n <= FACTORED_UP_TO and 9 * n * n + 16 * n * self.features.n_features <= memory:
            factor = Cholesky().factor(operator)
            W, logdet = factor.solve(V).value, factor.logdet() if factor.jitter == 0 else None
            del factor
        else:
            W = CGFactor(CG(tol=TOLERANCE, max_iter=steps(n)), operator, P).solve(V).value
        rho, sizes = ULPS * float(np.sum(operator.diagonal())), np.sqrt(_sums(W, W))  # see Rounding
        E = V - operator.matmul(W)
        low = _sums(W, V + E)
        left = np.maximum(_sums(E, P.solve(E)), 0.0) + WOODBURY * _sums(E / D[:, None], E)
        left = (np.sqrt(left) + rho * sizes / np.sqrt(np.min(D))) ** 2
        mean = V[:, k:].T @ W[:, :k] + W[:, k:].T @ E[:, :k]
        slack = np.sqrt(np.outer(left[k:], left[:k])) + rho * np.outer(sizes[k:], sizes[:k])
        plain = _sums(V, P.solve(V)) + WOODBURY * _sums(V / D[:, None], V)
        high = low + left + rho * sizes**2
        high = np.where(plain > low, np.minimum(high, plain), high)  # below only by rounding
        low = np.maximum(low - rho * sizes**2, 0.0)
        return _Forms(low, high, mean, slack, None if logdet is None else _widened(logdet, rho, D))

    def streamed(self, points: Array) -> _Forms:
        trace = sum(float(np.sum(outside)) for _, _, outside in self._blocks())
        (low, under), (high, over) = (self._shifted(points, shift) for shift in (trace, 0.0))
        return _Forms(np.maximum(low - under, 0.0), high + over)

    def _shifted(self, points: Array, shift: float) -> tuple[Array, Array]:
        """v'(Q + D + shift)^-1 v, and its rounding error at most."""
        m, columns = self.features.n_features, len(self.group.outputs) + len(points)
        S, b, c = np.zeros((m, m)), np.zeros((m, columns)), np.zeros(columns)
        for at, Phi, _ in self._blocks():
            root = np.sqrt(self._noise(at) + shift)[:, None]
            kernel = tiles.cross(self.model.kernel, self._rows(at), points)
            V, Phi = np.hstack([self._residuals(at), kernel]) / root, Phi / root
            S += Phi.T @ Phi
            b += Phi.T @ V
            c += _sums(V, V)
        weights = weights_of(S, b)
        rounding = c + (m + float(np.trace(S))) * _sums(weights.w, weights.w)
        return np.maximum(c - weights.explained, 0.0), ULPS * rounding

    # Log determinants. --------------------------------------------------------------------------------------

    def log_determinants(self) -> tuple[float, float]:
        """What log det A lies between."""
        m = self.features.n_features
        plain, fitc, logs, slack = np.zeros((m, m)), np.zeros((m, m)), np.zeros(2), 0.0
        for at, Phi, outside in self._blocks():
            D = self._noise(at)
            logs += np.sum(np.log(D)), np.sum(np.log(D + outside))
            slack += float(np.sum(outside / D))
            for total, diagonal in ((plain, D), (fitc, D + outside)):
                scaled = Phi / np.sqrt(diagonal)[:, None]
                total += scaled.T @ scaled
        (_, lowest), (root, highest) = (inverse_root_of(total) for total in (plain, fitc))
        lowest, highest = lowest + float(logs[0]), highest + float(logs[1])
        for at, Phi, outside in self._blocks():
            whole = self._noise(at) + outside
            inside = blas.dtrmm(1.0, root, Phi.T, lower=1)
            # 1 / (D + c) - (M^-1)_ii by Woodbury
            highest += float(np.sum(outside * _sums(inside, inside) / whole**2))
        rounding = m * float(np.log1p(ULPS * (m + np.trace(plain))))  # I + either is I at least
        return lowest - rounding, min(lowest + slack, highest) + rounding

    # Means. -------------------------------------------------------------------------------------------------

    def above_least(self, posterior: Process, j: int, least: float) -> float:
        """J(f) - J(f*) at most, for the mean of output j or what it is judged by; J(f*) >= least."""
        data, norms = self.data, posterior.squared_norms
        if norms is not None:
            # J as it is: fitc's noise is not the model's, so its mean is not the minimiser for its landmarks
            J, s = float(norms[j]), float(data.scale[j])
            for at in blocks_of(len(data.X), 8 * data.X.shape[1]):
                gap = (np.asarray(data.Y[at])[:, j] - posterior.mean(self._rows(at))[:, j]) / s
                J += float(np.sum(gap**2 / self._noise(at)))
            return max(J - least, 0.0)
        D, r = self._noise(), self._residuals()[:, [self.group.outputs.index(j)]]
        e = r - GramOperator(self.model.kernel, self._rows(), D).matmul(self._dual(posterior, j))
        return float(np.sum(e[:, 0] ** 2 / D))

    def judged(self, posterior: Process, j: int, points: Array) -> Array:
        """What `above_least` is about: the mean, or, of features that span their prior, the dual weights'."""
        if posterior.dual is not None or posterior.squared_norms is not None:
            return np.asarray(posterior.mean(points)[:, j])
        product = tiles.matmul(self.model.kernel, points, self._rows(), self._dual(posterior, j))[:, 0]
        mean = mean_block(self.model.mean, points, self.data.Y.shape[1])[:, j]
        return mean + product * float(self.data.scale[j])

    def _dual(self, posterior: Process, j: int) -> Array:
        """alpha (n, 1): a solver's, or D^-1 (y - f(X)), which it is for any posterior of a linear model."""
        if posterior.dual is not None:
            return posterior.dual[:, [j]]
        data = self.data
        residual = (np.asarray(data.Y)[:, [j]] - posterior.mean(np.asarray(data.X))[:, [j]]) / data.scale[j]
        return np.asarray(residual / self._noise()[:, None])

    # Shared. ------------------------------------------------------------------------------------------------

    def _rows(self, at: slice = ALL) -> Array:
        return np.asarray(self.data.X[at], dtype=np.float64)

    def _noise(self, at: slice = ALL) -> Array:
        return self.group.noise(len(self.data.X))[at]

    def _residuals(self, at: slice = ALL) -> Array:
        """r = (y - m) / s of the group's outputs: (rows, outputs)."""
        mean = mean_block(self.model.mean, self._rows(at), self.data.Y.shape[1])
        return ((np.asarray(self.data.Y[at]) - mean) / self.data.scale)[:, self.group.outputs]

    def _blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Rows, their Phi, and k(x, x) - |phi|^2."""
        for at in blocks_of(len(self.data.X), 8 * self.features.n_features):
            X = self._rows(at)
            Phi = self.features.block(X)
            outside = tiles.diagonal(self.model.kernel, X) - np.einsum("ij,ij->i", Phi, Phi)
            yield at, Phi, np.maximum(outside, 0.0)


def _widened(logdet: float, rho: float, D: Array) -> tuple[float, float]:
    """A log determinant of A >= D that was computed of A + R. log det is concave, and rho bounds R in the
    Frobenius norm, too: both differ by at most |A^-1|_F |R|_F, or the same with A + R."""
    share, n = rho / float(np.min(D)), len(D)
    above = float(np.sqrt(n)) * share / (1 - share) if share < 0.5 else n * float(np.log1p(share))
    return max(logdet - float(np.sqrt(n)) * share, float(np.sum(np.log(D)))), logdet + above


def _sums(A: Array, B: Array) -> Array:
    """The sums of products, column by column."""
    return np.asarray(np.einsum("ij,ij->j", A, B))
