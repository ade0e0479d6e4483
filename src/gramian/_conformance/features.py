"""What features promise."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramian._conformance.helpers import require
from gramian.errors import ParameterError
from gramian.features.base import Basis, FeatureMap
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.params import ParameterSpace

Array = NDArray[np.float64]

# Of N cosines that are averaged, Hoeffding: P(|error| > 6 / sqrt(N)) < 2 exp(-18) = 3e-8, for 400 entries of
# K together 1e-5 a draw.
DEVIATIONS = 6.0
JITTER = 1e-6  # of k(x, x): what may be added to the landmarks' matrix
ROUNDING = 1e-9  # beside k(x, x): eps times a condition of 1e6
# Steps of differences, with four points a derivative: (2 pi f h)^4 / 30 = 1e-10 for a wave of f = 500 turns a
# unit, and eps / h = 2e-11 of rounding, which a condition of 1e4 makes 2e-7.
STEP = 1e-5
SLOPES = 1e-6


def check_features(basis: Basis, kernel: Kernel, d: int, X: Array | None = None) -> None:
    """Raises AssertionError unless `basis`, chosen for `kernel` on d columns, keeps the contract of features.

    K ~ Phi Phi' as closely as the basis promises (where it has landmarks: exact there, and nowhere above K);
    gradients by parameters, landmarks and inputs equal to differences; blocks that do not depend on each
    other. `X` (n, d): rows to check it on, random ones by default. Landmarks should not be nearer to each
    other than the kernel's values can tell (a condition up to 1e4), or differences are rounding.
    """
    rng = np.random.default_rng(20240523)
    X = rng.standard_normal((20, d)) if X is None else np.asarray(X, dtype=np.float64)
    features = basis.at(kernel)
    name = type(features).__name__
    features.ready()
    Phi = features.block(X)
    require(
        basis.n_features == features.n_features and Phi.shape == (len(X), features.n_features),
        f"{name}: Phi has the shape {Phi.shape}, but {len(X)} rows and {features.n_features} features"
        f" ({basis.n_features} of the basis) are said.",
    )
    require(
        Phi.dtype == np.float64 and bool(np.all(np.isfinite(Phi))), f"{name}: Phi is not of finite numbers."
    )
    _check_blocks(features, X, Phi, tiles.diagonal(kernel, X))
    _check_gram(features, kernel, X, Phi)
    _check_summands(features, kernel, X, Phi)
    G = rng.standard_normal(Phi.shape)
    _check_pullbacks(basis, features, kernel, X, Phi, G)
    _check_factored(features, X, Phi, rng)
    if kernel.differentiable:
        _check_inputs(features, X, Phi, G)


def _check_blocks(features: FeatureMap, X: Array, Phi: Array, k: Array) -> None:
    """A row of Phi is a function of its row of X alone, to rounding; with a tolerance, to that."""
    name, cut = type(features).__name__, len(X) // 3
    parts = np.concatenate([features.block(X[:cut]), features.block(X[cut:])])
    size = np.sqrt(np.max(k))
    require(
        float(np.max(np.abs(parts - Phi))) <= ROUNDING * size,
        f"{name}: a row of Phi depends on the rows beside it.",
    )
    rough = np.sum(features.block(X, 1e-6) ** 2, axis=1)
    require(
        bool(np.all(np.abs(rough - np.sum(Phi**2, axis=1)) <= 1e-6 * k + ROUNDING * size**2)),
        f"{name}: with a tolerance of 1e-6, |phi|^2 is off by more.",
    )


def _check_gram(features: FeatureMap, kernel: Kernel, X: Array, Phi: Array) -> None:
    name, K = type(features).__name__, tiles.cross(kernel, X, X)
    k, Q = float(np.max(np.diag(K))), Phi @ Phi.T
    if features.spans_prior:
        allowed = (DEVIATIONS * features.entry_error + ROUNDING) * k
        worst = float(np.max(np.abs(Q - K)))
        require(
            worst <= allowed,
            f"{name}: Phi Phi' is off by {worst:.3g} from K, but promises {features.entry_error * k:.3g}"
            f" (times {DEVIATIONS:g} at most).",
        )
        return
    lowest = float(np.linalg.eigvalsh(0.5 * (K + K.T) - Q)[0])
    require(
        lowest >= -ROUNDING * len(K) * k,
        f"{name}: what is outside the features, K - Phi Phi', is no covariance: its eigenvalue {lowest:.3g}.",
    )
    Z = features.landmarks
    if Z is not None:
        there = features.block(Z)
        worst = float(np.max(np.abs(there @ there.T - tiles.cross(kernel, Z, Z))))
        require(
            worst <= 2 * JITTER * k,
            f"{name}: at the landmarks Phi Phi' must be K, but is off by {worst:.3g}.",
        )
        root = features.L
        require(
            float(np.max(np.abs(there - root))) <= 2 * np.sqrt(JITTER * k),
            f"{name}: phi of the landmarks must be the root L of their matrix.",
        )


def _check_summands(features: FeatureMap, kernel: Kernel, X: Array, Phi: Array) -> None:
    name, terms = type(features).__name__, kernel.summands
    try:
        masks = features.columns_of(terms)
    except ParameterError:
        return
    require(
        len(masks) == len(terms) and bool(np.all(np.sum(masks, axis=0) == 1)),
        f"{name}: columns_of must give each feature to one summand.",
    )
    k = float(np.max(tiles.diagonal(kernel, X)))
    for term, mask in zip(terms, masks, strict=True):
        part = Phi[:, mask]
        worst = float(np.max(np.abs(part @ part.T - tiles.cross(term, X, X))))
        require(
            worst <= (DEVIATIONS * features.entry_error + ROUNDING) * k,
            f"{name}: the features of {term} by columns_of are off by {worst:.3g} from it.",
        )


def _check_pullbacks(
    basis: Basis, features: FeatureMap, kernel: Kernel, X: Array, Phi: Array, G: Array
) -> None:
    """d sum(G * Phi), through the rows and through what they share."""
    name = type(features).__name__
    by_rows, shared = features.pullback(X, G.copy()), features.shared_pullback(G.T @ Phi)
    own = list(kernel.parameters())
    expected = len(own) + bool(basis.learned)
    require(
        len(by_rows) == len(shared) == expected,
        f"{name}: {len(by_rows)} and {len(shared)} arrays come back for {expected} gradients.",
    )
    cut = len(X) // 3
    halves = [features.pullback(X[at], G[at].copy()) for at in (slice(0, cut), slice(cut, None))]
    gradients = [one + other for one, other in zip(by_rows, shared, strict=True)]
    size = float(np.sum(np.abs(G * Phi)))
    for whole, first, second in zip(by_rows, *halves, strict=True):
        require(
            float(np.max(np.abs(first + second - whole), initial=0.0))
            <= ROUNDING * max(size, float(np.max(np.abs(whole), initial=0.0))),
            f"{name}: the pullbacks of two blocks do not add up to that of both.",
        )

    free = kernel.with_parameters([dataclasses.replace(p, bounds=None) for p in kernel.parameters().values()])
    space = ParameterSpace(free.parameters())
    ours = space.pullback(space.theta, dict(zip(own, gradients, strict=False)))

    def total(step: Array, h: float) -> float:
        moved = free.with_values(space.values(space.theta + h * step))
        return float(np.sum(G * basis.at(moved).block(X)))

    for path, own_slope, step in zip(space.names, ours, np.eye(len(ours)), strict=True):
        slope = _difference(partial(total, step))
        _require_slope(own_slope, slope, size, f"{name}: the gradient of sum(G * Phi) by {path}")
    if basis.learned:
        Z = basis.landmarks
        assert Z is not None
        require(gradients[-1].shape == Z.shape, f"{name}: the gradient of Z has shape {gradients[-1].shape}.")
        V = np.random.default_rng(3).standard_normal(Z.shape)
        slope = _difference(lambda h: float(np.sum(G * basis.moved(Z + h * V).at(kernel).block(X))))
        _require_slope(
            float(np.sum(V * gradients[-1])),
            slope,
            size,
            f"{name}: the gradient of sum(G * Phi) by landmarks",
        )


def _check_factored(features: FeatureMap, X: Array, Phi: Array, rng: np.random.Generator) -> None:
    m = Phi.shape[1]
    C, w, a = rng.standard_normal((m, m)), rng.standard_normal((m, 2)), rng.standard_normal((len(X), 2))
    G = Phi @ C + a @ w.T
    size = float(np.sum(np.abs(G)) * np.max(np.abs(Phi)))
    whole = features.pullback(X, G.copy())
    factored = features.factored_pullback(C.copy(), w.copy())(X, Phi.copy(), a.copy())
    for one, other in zip(factored, whole, strict=True):
        require(
            float(np.max(np.abs(one - other), initial=0.0))
            <= ROUNDING * max(size, float(np.max(np.abs(other), initial=0.0))),
            f"{type(features).__name__}: factored_pullback is not the pullback of Phi C + a w'.",
        )


def _check_inputs(features: FeatureMap, X: Array, Phi: Array, G: Array) -> None:
    name = type(features).__name__
    ours = features.input_pullback(X, G.copy())
    require(ours.shape == X.shape, f"{name}: input_pullback gives the shape {ours.shape}, not that of X.")
    size = float(np.max(np.sum(np.abs(G * Phi), axis=1)))

    def weighted(step: Array, h: float) -> Array:
        return np.einsum("ij,ij->i", G, features.block(X + h * step))

    for c, step in enumerate(np.eye(X.shape[1])):
        slope = _difference(partial(weighted, step))
        _require_slope(ours[:, c], slope, size, f"{name}: input_pullback in column {c}")
    try:
        S, T = features.slopes(X)
    except ParameterError:
        return
    _require_slope((G * S) @ T.T, ours, size, f"{name}: slopes, weighted by G,")


def _difference(f: Callable[[float], Array | float]) -> Array | float:
    h = STEP
    return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h)


def _require_slope(ours: Array | float, slope: Array | float, size: float, what: str) -> None:
    worst = float(np.max(np.abs(np.asarray(ours) - slope)))
    allowed = SLOPES * max(size, float(np.max(np.abs(slope))))
    require(worst <= allowed, f"{what} is off by {worst:.3g} from differences (+- {allowed:.1g}).")
