"""What features promise."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian._conformance.helpers import Subject, by_theta, slope
from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.features.base import Basis, FeatureMap
from gramian.gram import tiles
from gramian.kernels.base import Kernel

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
    it = Subject(type(features).__name__)
    features.ready()
    Phi = features.block(X)
    said = {(len(X), features.n_features), (len(X), basis.n_features)}
    it.must({Phi.shape} == said, f"Phi has the shape {Phi.shape}, but features and basis say {said}.")
    it.must(Phi.dtype == np.float64 and np.isfinite(Phi), "Phi is not of finite numbers.")
    _check_blocks(it, features, X, Phi, tiles.diagonal(kernel, X))
    _check_gram(it, features, kernel, X, Phi)
    _check_summands(it, features, kernel, X, Phi)
    G = rng.standard_normal(Phi.shape)
    _check_pullbacks(it, basis, features, kernel, X, Phi, G)
    _check_factored(it, features, X, Phi, rng)
    if kernel.differentiable:
        _check_inputs(it, features, X, Phi, G)


def _check_blocks(it: Subject, features: FeatureMap, X: Array, Phi: Array, k: Array) -> None:
    """A row of Phi is a function of its row of X alone, to rounding; with a tolerance, to that."""
    cut, size = len(X) // 3, np.sqrt(np.max(k))
    parts = np.concatenate([features.block(X[:cut]), features.block(X[cut:])])
    it.must(np.abs(parts - Phi) <= ROUNDING * size, "a row of Phi depends on the rows beside it.")
    off = np.abs(np.sum(features.block(X, 1e-6) ** 2, axis=1) - np.sum(Phi**2, axis=1))
    it.must(off <= 1e-6 * k + ROUNDING * size**2, "with a tolerance of 1e-6, |phi|^2 is off by more.")


def _check_gram(it: Subject, features: FeatureMap, kernel: Kernel, X: Array, Phi: Array) -> None:
    K = tiles.cross(kernel, X, X)
    k, Q = np.max(np.diag(K)), Phi @ Phi.T
    if features.spans_prior:
        worst, said = np.max(np.abs(Q - K)), features.entry_error * k
        promise = f"promises {said:.3g} (times {DEVIATIONS:g} at most)"
        allowed = DEVIATIONS * said + ROUNDING * k
        it.must(worst <= allowed, f"Phi Phi' is off by {worst:.3g} from K, but {promise}.")
        return
    what = "what is outside the features, K - Phi Phi', is no covariance: it"
    it.semidefinite(0.5 * (K + K.T) - Q, ROUNDING * len(K) * k, what)
    Z = features.landmarks
    if Z is not None:
        there = features.block(Z)
        worst = np.max(np.abs(there @ there.T - tiles.cross(kernel, Z, Z)))
        it.must(worst <= 2 * JITTER * k, f"at the landmarks Phi Phi' must be K, but is off by {worst:.3g}.")
        off = np.abs(there - features.L)
        it.must(off <= 2 * np.sqrt(JITTER * k), "phi of the landmarks must be the root L of their matrix.")


def _check_summands(it: Subject, features: FeatureMap, kernel: Kernel, X: Array, Phi: Array) -> None:
    terms, k = kernel.summands, np.max(tiles.diagonal(kernel, X))
    try:
        masks = features.columns_of(terms)
    except ParameterError:
        return
    one_each = len(masks) == len(terms) and np.sum(masks, axis=0) == 1
    it.must(one_each, "columns_of must give each feature to one summand.")
    for term, mask in zip(terms, masks, strict=True):
        worst = np.max(np.abs(Phi[:, mask] @ Phi[:, mask].T - tiles.cross(term, X, X)))
        allowed = (DEVIATIONS * features.entry_error + ROUNDING) * k
        it.must(worst <= allowed, f"the features of {term} by columns_of are off by {worst:.3g} from it.")


def _check_pullbacks(
    it: Subject, basis: Basis, features: FeatureMap, kernel: Kernel, X: Array, Phi: Array, G: Array
) -> None:
    """d sum(G * Phi), through the rows and through what they share."""
    by_rows, shared = features.pullback(X, G.copy()), features.shared_pullback(G.T @ Phi)
    own = len(kernel.parameters())
    expected = own + bool(basis.learned)
    found = len(by_rows), len(shared)
    it.must(np.equal(found, expected), f"{found} arrays come back for {expected} gradients.")
    gradients = [one + other for one, other in zip(by_rows, shared, strict=True)]
    size, cut = np.sum(np.abs(G * Phi)), len(X) // 3
    halves = (features.pullback(X[at], G[at].copy()) for at in (slice(0, cut), slice(cut, None)))
    for whole, *parts in zip(by_rows, *halves, strict=True):
        what = "the pullbacks of two blocks do not add up to that of both"
        _require_equal(it, sum(parts), whole, size, what)

    def total(at: Kernel, basis: Basis = basis) -> float:
        return float(np.sum(G * basis.at(at).block(X)))

    for path, ours, theirs in by_theta(total, kernel, gradients[:own], STEP):
        _require_slope(it, ours, theirs, size, f"the gradient of sum(G * Phi) by {path}")
    if basis.learned:
        Z, by_Z = basis.landmarks, gradients[-1]
        assert Z is not None
        it.shaped(by_Z, Z.shape, "the gradient of Z")
        V = np.random.default_rng(3).standard_normal(Z.shape)
        theirs = slope(lambda Z: total(kernel, basis.moved(Z)), STEP, Z, V)
        _require_slope(it, np.sum(V * by_Z), theirs, size, "the gradient of sum(G * Phi) by landmarks")


def _check_factored(
    it: Subject, features: FeatureMap, X: Array, Phi: Array, rng: np.random.Generator
) -> None:
    m = Phi.shape[1]
    C, w, a = rng.standard_normal((m, m)), rng.standard_normal((m, 2)), rng.standard_normal((len(X), 2))
    G = Phi @ C + a @ w.T
    size = np.sum(np.abs(G)) * np.max(np.abs(Phi))
    factored = features.factored_pullback(C.copy(), w.copy())(X, Phi.copy(), a.copy())
    for one, other in zip(factored, features.pullback(X, G.copy()), strict=True):
        _require_equal(it, one, other, size, "factored_pullback is not the pullback of Phi C + a w'")


def _check_inputs(it: Subject, features: FeatureMap, X: Array, Phi: Array, G: Array) -> None:
    ours = features.input_pullback(X, G.copy())
    it.shaped(ours, X.shape, "input_pullback")
    size = np.max(np.sum(np.abs(G * Phi), axis=1))
    for c, step in enumerate(np.eye(X.shape[1])):
        theirs = slope(lambda X: np.sum(G * features.block(X), axis=1), STEP, X, step)
        _require_slope(it, ours[:, c], theirs, size, f"input_pullback in column {c}")
    try:
        S, T = features.slopes(X)
    except ParameterError:
        return
    _require_slope(it, (G * S) @ T.T, ours, size, "slopes, weighted by G,")


def _require_equal(it: Subject, one: Any, other: Array, size: float, otherwise: str) -> None:
    off = np.abs(one - other)
    it.must(off <= ROUNDING * max(size, np.max(np.abs(other), initial=0.0)), f"{otherwise}.")


def _require_slope(it: Subject, ours: Any, theirs: Any, size: float, what: str) -> None:
    worst, allowed = np.max(np.abs(ours - theirs)), SLOPES * max(size, np.max(np.abs(theirs)))
    it.must(worst <= allowed, f"{what} is off by {worst:.3g} from differences (+- {allowed:.1g}).")
