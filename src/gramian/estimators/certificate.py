"""How far an approximate answer can be from the exact posterior of the same model, at the same parameters.

With Q = K_xz K_zz^-1 K_zx <= K for any landmarks, t = tr(K - Q) >= the largest eigenvalue of K - Q, and A = K + D:

    Q + D  <=  A  <=  Q + D + t I,     so for any vector v    v'(Q + D + t I)^-1 v  <=  v'A^-1 v  <=  v'(Q + D)^-1 v

Evidence. Below: the variational bound (Titsias 2009). Above: log N(r; 0, A) <= -1/2 log det(Q + D) - 1/2 r'(Q + D + t I)^-1 r - n/2 log 2 pi
    (Titsias 2014).
Variance. v = k(X, x) gives an interval for k(x, x) - v'A^-1 v, point by point.
Mean. The exact mean f* minimises J(f) = |f|_H^2 + sum_i (r_i - f(x_i))^2 / D_i over the kernel's function space, and J(f) - J(f*) is the squared
    norm of f - f* in the norm whose reproducing kernel is the posterior covariance. So |f(x) - f*(x)| <= sd*(x) sqrt(J(f) - J(f*)). For landmarks
    J(f) = |w|^2 + sum_i (r_i - phi_i'w)^2 / D_i, and J(f*) = r'A^-1 r >= r'(Q + D + t I)^-1 r. For a solver with residual e = r - A alpha the root is
    sqrt(e'A^-1 e) <= |e| / sqrt(min D).

These are bounds: they hold for the data at hand, whatever they are. Where they say little (t / D is large), an exact solve of a random part of
the data, beside the same method on the same part, gives an estimate with a standard error. Means and variances are compared at rows of the data
chosen at random. Cost: three passes over the rows, and n^3 for the part.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from gramian.approx.base import FeatureMap
from gramian.approx.nystrom import NystromBasis, NystromMap
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference import Data, Evidence, Exact, FeaturePosterior, Inference, Model, Posterior, Process
from gramian.inference.base import NoiseGroup, blocks_of, mean_block, noise_groups
from gramian.inference.iterative import KrylovPosterior
from gramian.inference.methods import chosen

Array = NDArray[np.float64]

POINTS = 100  # rows at which means and variances are compared
PART = 1500  # rows of the exact solve on a part
LANDMARKS = 1000  # for bounds of methods that have none of their own


@dataclass(frozen=True)
class Quantity:
    """A number, and what kind of number it is."""

    value: float
    kind: Literal["exact", "bound", "estimate"]
    standard_error: float = 0.0

    def __str__(self) -> str:
        spread = f" +- {self.standard_error:.2g}" if self.kind == "estimate" else ""
        return f"{self.value:.6g}{spread} ({self.kind})"


@dataclass(frozen=True)
class Certificate:
    """How far the answer can be from the exact posterior of the same model at the same parameters.

    Errors are of the latent function, in the units of y, at `points` rows of the data chosen at random.
    """

    evidence_lower: Quantity
    evidence_upper: Quantity
    mean_error: Quantity  # the largest
    std_error: Quantity  # the largest
    mean_error_rms: Quantity  # on a random part of the data
    std_error_rms: Quantity
    typical_std: float  # the median posterior standard deviation at these rows, to measure errors by
    points: int

    def __str__(self) -> str:
        rows = [
            ("log evidence, at least", self.evidence_lower),
            ("log evidence, at most", self.evidence_upper),
            ("error of a mean, largest", self.mean_error),
            ("error of a std, largest", self.std_error),
            ("error of a mean, rms", self.mean_error_rms),
            ("error of a std, rms", self.std_error_rms),
        ]
        lines = [f"  {name:<26}{quantity}" for name, quantity in rows]
        return "\n".join([f"Certificate, at {self.points} rows with a typical std of {self.typical_std:.4g}", *lines])


def certify(model: Model, data: Data, method: Inference, posterior: Process, evidence: Evidence, rng: np.random.Generator) -> Certificate:
    """The certificate of a fitted model."""
    at = np.sort(rng.choice(len(data.X), min(POINTS, len(data.X)), replace=False))
    points = np.asarray(data.X[at], dtype=np.float64)
    var = posterior.moments(points)[1]
    typical = float(np.median(np.sqrt(var)))
    if isinstance(posterior, Posterior):
        value, none = Quantity(evidence.value, "exact"), Quantity(0.0, "exact")
        return Certificate(value, value, none, none, none, none, typical, len(points))
    bounds = _bounds(model, data, _landmarks(model, data, posterior, rng), points)
    std_error = float(np.max(np.maximum(np.sqrt(bounds.var_high) - np.sqrt(var), np.sqrt(var) - np.sqrt(bounds.var_low))))
    mean_error = float(np.max(_mean_bound(model, data, posterior, bounds, points)))
    rms = _on_a_part(model, data, method, posterior, points, rng)
    return Certificate(
        Quantity(bounds.evidence_low, "bound"),
        Quantity(bounds.evidence_high, "bound"),
        Quantity(mean_error, "bound"),
        Quantity(std_error, "bound"),
        *rms,
        typical,
        len(points),
    )


# Bounds from landmarks. -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bounds:
    evidence_low: float
    evidence_high: float
    var_low: Array  # (points, q), of f in the units of y
    var_high: Array
    least: Array  # (q,): r'(Q + D + t I)^-1 r, the least that J can be


def _landmarks(model: Model, data: Data, posterior: Process, rng: np.random.Generator) -> Array:
    if isinstance(posterior, FeaturePosterior) and isinstance(posterior.features, NystromMap):
        return posterior.features.Z
    return chosen(model, data, LANDMARKS, "rpcholesky", rng)


def _bounds(model: Model, data: Data, Z: Array, points: Array) -> _Bounds:
    features = NystromBasis(Z).at(model.kernel)
    n, q = data.Y.shape
    prior_var = tiles.diagonal(model.kernel, points)
    low, high = 0.0, 0.0
    var_low, var_high, least = np.empty((len(points), q)), np.empty((len(points), q)), np.empty(q)
    trace = sum(float(np.sum(outside)) for _, _, outside in _blocks(model, data, features))
    for group in noise_groups(model, data):
        forms, logdet, slack = _forms(model, data, features, group, points, 0.0)
        shifted, _, _ = _forms(model, data, features, group, points, trace)
        k = len(group.outputs)
        constant = -0.5 * k * (logdet + n * float(np.log(2 * np.pi)))
        low += constant - 0.5 * float(np.sum(forms[:k])) - 0.5 * k * slack
        high += constant - 0.5 * float(np.sum(shifted[:k]))
        least[group.outputs] = shifted[:k]
        for j in group.outputs:
            var_low[:, j] = np.maximum(prior_var - forms[k:], 0.0) * data.scale[j] ** 2
            var_high[:, j] = np.maximum(prior_var - shifted[k:], 0.0) * data.scale[j] ** 2
    return _Bounds(low, high, var_low, var_high, least)


def _forms(model: Model, data: Data, features: FeatureMap, group: NoiseGroup, points: Array, shift: float) -> tuple[Array, float, float]:
    """v'(Q + D + shift)^-1 v for the residuals and for k(X, x) of each point; log det (Q + D + shift); sum_i (K - Q)_ii / (D_i + shift)."""
    n, m = len(data.X), features.n_features
    columns = len(group.outputs) + len(points)
    S, b, c, logdet, slack = np.zeros((m, m)), np.zeros((m, columns)), np.zeros(columns), 0.0, 0.0
    for at, Phi, outside in _blocks(model, data, features):
        X = np.asarray(data.X[at], dtype=np.float64)
        R = (np.asarray(data.Y[at]) - mean_block(model.mean, X, data.Y.shape[1])) / data.scale
        D = group.noise(at, n) + shift
        V = np.hstack([R[:, group.outputs], tiles.cross(model.kernel, X, points)]) / np.sqrt(D)[:, None]
        Phi = Phi / np.sqrt(D)[:, None]
        S += Phi.T @ Phi
        b += Phi.T @ V
        c += np.einsum("ij,ij->j", V, V)
        logdet += float(np.sum(np.log(D)))
        slack += float(np.sum(outside / D))
    L = cho_factor(np.eye(m) + S, lower=True)
    forms = c - np.einsum("ij,ij->j", b, cho_solve(L, b))
    return np.maximum(forms, 0.0), logdet + 2 * float(np.sum(np.log(np.diagonal(L[0])))), slack


def _blocks(model: Model, data: Data, features: FeatureMap) -> Iterator[tuple[slice, Array, Array]]:
    """Rows, their Phi, and k(x, x) - |phi|^2."""
    for at in blocks_of(len(data.X), 8 * features.n_features):
        X = np.asarray(data.X[at], dtype=np.float64)
        Phi = features.block(X)
        yield at, Phi, np.maximum(tiles.diagonal(model.kernel, X) - np.einsum("ij,ij->i", Phi, Phi), 0.0)


# Means. ---------------------------------------------------------------------------------------------------------------------------------------------


def _mean_bound(model: Model, data: Data, posterior: Process, bounds: _Bounds, points: Array) -> Array:
    """For each point and output, how far its mean can be from the exact one."""
    sd = np.sqrt(bounds.var_high)
    if isinstance(posterior, FeaturePosterior) and isinstance(posterior.features, NystromMap):
        return _of_landmarks(model, data, posterior, bounds, sd)
    if isinstance(posterior, KrylovPosterior):
        return sd * _residual(model, data, posterior.alpha)
    # Features with a prior of their own: the dual weights that they imply, in the exact model.
    residual = (np.asarray(data.Y) - posterior.mean(np.asarray(data.X))) / data.scale
    noise = np.stack([group.noise(slice(None), len(data.X)) for group in noise_groups(model, data) for _ in group.outputs], axis=1)
    order = [k for group in noise_groups(model, data) for k in group.outputs]
    alpha = residual / noise[:, np.argsort(order)]
    dual = mean_block(model.mean, points, data.Y.shape[1]) + tiles.matmul(model.kernel, points, np.asarray(data.X), alpha) * data.scale
    return np.abs(posterior.mean(points) - dual) + sd * _residual(model, data, alpha)


def _of_landmarks(model: Model, data: Data, posterior: FeaturePosterior, bounds: _Bounds, sd: Array) -> Array:
    """sqrt(J(f) - J(f*)), with J of the mean as it is: fitc's noise is not the model's, so its mean is not the minimiser for these landmarks."""
    J = np.zeros(data.Y.shape[1])
    for group in noise_groups(model, data):
        w = posterior.weights[:, group.outputs]
        J[group.outputs] = np.einsum("ij,ij->j", w, w)
        for at, Phi, _ in _blocks(model, data, posterior.features):
            X = np.asarray(data.X[at], dtype=np.float64)
            R = ((np.asarray(data.Y[at]) - mean_block(model.mean, X, data.Y.shape[1])) / data.scale)[:, group.outputs]
            J[group.outputs] += np.sum((R - Phi @ w) ** 2 / group.noise(at, len(data.X))[:, None], axis=0)
    return sd * np.sqrt(np.maximum(J - bounds.least, 0.0))


def _residual(model: Model, data: Data, alpha: Array) -> Array:
    """|r - A alpha| / sqrt(min D) for each output."""
    n = len(data.X)
    X = np.asarray(data.X, dtype=np.float64)
    R = (np.asarray(data.Y) - mean_block(model.mean, X, data.Y.shape[1])) / data.scale
    out = np.empty(data.Y.shape[1])
    for group in noise_groups(model, data):
        D = group.noise(slice(None), n)
        e = R[:, group.outputs] - GramOperator(model.kernel, X, D).matmul(alpha[:, group.outputs])
        least = float(np.min(D))
        out[group.outputs] = np.linalg.norm(e, axis=0) / np.sqrt(least) if least > 0 else np.inf
    return out


# An exact solve on a part. --------------------------------------------------------------------------------------------------------------------------


def _on_a_part(model: Model, data: Data, method: Inference, posterior: Process, points: Array, rng: np.random.Generator) -> tuple[Quantity, Quantity]:
    """The root of the mean squared error of means and standard deviations, when method and exact inference both see the same random rows."""
    at = np.sort(rng.choice(len(data.X), min(PART, len(data.X)), replace=False))
    part = replace(
        data,
        X=np.asarray(data.X[at], dtype=np.float64),
        Y=np.asarray(data.Y[at], dtype=np.float64),
        noise_var=None if data.noise_var is None else data.noise_var[at],
    )
    if len(at) < len(data.X):
        posterior = method.prepared(model, part, rng).infer(model, part).posterior  # the same basis; a preconditioner, being of rows, is a new one
    ours, exact = posterior.moments(points), Exact().infer(model, part).posterior.moments(points)
    errors = (ours[0] - exact[0]) ** 2, (np.sqrt(ours[1]) - np.sqrt(exact[1])) ** 2
    found = []
    for squares in errors:
        mean = float(np.mean(squares))
        spread = float(np.std(squares)) / np.sqrt(max(squares.size - 1, 1))
        root = float(np.sqrt(mean))
        found.append(Quantity(root, "estimate", spread / (2 * root) if root > 0 else 0.0))
    return found[0], found[1]
