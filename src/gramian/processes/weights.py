"""The posterior in weight space: f(x) = m(x) + s (phi(x)' w + e(x)), w ~ N(0, I) before the data.

With B = I + Phi' D^-1 Phi = L_B L_B', after the data

    mean = m(x) + s phi(x)' w,     var = s^2 ([k(x, x) - |phi(x)|^2]_+ + |L_B^-1 phi(x)|^2)

The first term is what the features leave out of the prior: nothing for random features, which are a prior of
their own; for landmarks it keeps the variance honest far from them. A variance is never the difference of two
large numbers: it stays right however small the noise is. Cost of b points: their features, and b m^2 flops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.linalg import blas
from scipy.linalg import qr as scipy_qr

from gramian.arrays import Array
from gramian.features.base import FeatureMap
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.linalg.state import ObjectState, entries, numbered, roots, taken
from gramian.processes.base import Process, blocks_of, users, with_noise
from gramian.processes.posterior import Posterior
from gramian.processes.prior import GaussianProcess
from gramian.processes.state import Context


@dataclass(frozen=True, eq=False)
class FeaturePosterior(Process):
    """A conditioned linear model of features. Outputs that share their noise share a root."""

    kind: ClassVar[str] = "features"

    prior: GaussianProcess
    features: FeatureMap
    weights: Array  # (m, q)
    roots: tuple[Array, ...]  # each L_B^-1 (m, m), lower triangular, Fortran-ordered
    root_of: tuple[int, ...]

    def mean(self, X: Array) -> Array:
        out = self.prior.mean(X)
        for at, Phi in self._blocks(X):
            out[at] += (Phi @ self.weights) * self.prior.scale
        return out

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean = self.prior.mean(X)
        var, outside = np.empty_like(mean), np.zeros((len(X), 1))
        for at, Phi in self._blocks(X):
            if not self.features.spans_prior:
                rest = tiles.diagonal(self.prior.kernel, X[at]) - np.einsum("ij,ij->i", Phi, Phi)
                outside[at, 0] = np.maximum(rest, 0.0)
            part, var[at] = self._of_weights(Phi, outside[at])
            mean[at] += part
        return mean, var

    def cov(self, X: Array) -> Array:
        Phi = self.features.block(X)
        if self.features.spans_prior:
            rest = np.zeros((len(X), len(X)))
        else:
            rest = tiles.cross(self.prior.kernel, X, X)
            rest = 0.5 * (rest + rest.T) - Phi @ Phi.T
        out = np.empty((len(X), len(X), len(self.prior.scale)))
        for r, V in enumerate(self._whitened(Phi)):
            shared = rest + V.T @ V
            for k in users(self.root_of, r):
                out[:, :, k] = shared * self.prior.scale[k] ** 2
        np.einsum("iik->ik", out)[...] = self.moments(X)[1]
        return out

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        """Draws of the weights where they are all there is, so that any number of points costs n m."""
        if not self.features.spans_prior:
            return super().sample(rng, X, n_samples, noise)
        weights = np.empty((*self.weights.shape, n_samples))
        for k, r in enumerate(self.root_of):
            z = rng.standard_normal((len(self.weights), n_samples))
            weights[:, k, :] = self.weights[:, [k]] + self.roots[r].T @ z
        draws = np.repeat(self.prior.mean(X)[:, :, None], n_samples, axis=2)
        for at, Phi in self._blocks(X):
            draws[at] += np.einsum("bm,mqs->bqs", Phi, weights) * self.prior.scale[:, None]
        return with_noise(draws, noise, rng)

    @property
    def landmarks(self) -> Array | None:
        return self.features.landmarks

    @property
    def squared_norms(self) -> Array | None:
        return None if self.features.landmarks is None else np.sum(self.weights**2, axis=0)

    def gradient(self, X: Array) -> tuple[Array, Array]:
        """For random features from their own slopes, which are all there is to it."""
        if not self.features.spans_prior:
            return self.function_space.gradient(X)
        mean = self.prior.mean_slopes(X)
        var = np.empty_like(mean)
        for at in blocks_of(len(X), 8 * self.features.n_features):
            S, T = self.features.slopes(np.asarray(X[at]))
            for j, factor in enumerate(T):
                part, var[at, j] = self._of_weights(S * factor)  # of dphi / dx_j
                mean[at, j] += part
        return mean, var

    def components(self, X: Array, terms: Sequence[Kernel]) -> list[tuple[Array, Array]]:
        """Where features are the prior, each of them stands for a part of one summand."""
        if not self.features.spans_prior:
            return self.function_space.components(X, terms)
        out = []
        for columns in self.features.columns_of(terms):
            mean, var = (np.zeros((len(X), len(self.prior.scale))) for _ in range(2))
            for at, Phi in self._blocks(X):
                mean[at], var[at] = self._of_weights(Phi * columns)
            out.append((mean, var))
        return out

    def _of_weights(self, Phi: Array, outside: Array | float = 0.0) -> tuple[Array, Array]:
        """Mean and variance of s phi'w, with what has a variance `outside` of it: (b, q) each."""
        inside = [np.einsum("ij,ij->j", V, V) for V in self._whitened(Phi)]
        var = (outside + np.stack([inside[r] for r in self.root_of], axis=1)) * self.prior.scale**2
        return (Phi @ self.weights) * self.prior.scale, var

    @cached_property
    def function_space(self) -> Posterior:
        """The same posterior as a function of k(x, Z), for landmarks: mean = m + s k(x, Z) a,
        var = s^2 (k(x, x) - |R k(Z, x)|^2)."""
        L, Z = self.features.L, self.features.landmarks
        assert Z is not None
        alpha = blas.dtrsm(1.0, L, self.weights, lower=1, trans_a=1)
        roots = []
        for root in self.roots:
            C = np.eye(len(L)) - root.T @ root  # I - B^-1
            values, vectors = np.linalg.eigh(C)
            half = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T  # half' half = C
            # Lower triangular R with R'R = L^-T C L^-1: orthogonal factors on the left do not matter, so a QR
            # from the last column on.
            (upper,) = scipy_qr(blas.dtrsm(1.0, L, half.T, lower=1, trans_a=1).T[:, ::-1], mode="r")
            roots.append(np.asfortranarray(upper[::-1, ::-1]))
        return Posterior(self.prior, Z, alpha, tuple(roots), self.root_of)

    def state(self, context: Context) -> ObjectState:
        arrays = {"weights": self.weights, **numbered(self.roots), **self.features.state().arrays}
        return ObjectState({"kind": self.kind, "root_of": list(self.root_of)}, arrays)

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> FeaturePosterior:
        _, root_of = entries(state.described, "posterior", "kind", "root_of")
        features, q = context.features(state.arrays), context.q
        m = features.n_features
        matrices, of = roots(state.arrays, m, root_of, q)
        return cls(context.prior, features, taken(state.arrays, "weights", (m, q)), matrices, of)

    def _blocks(self, X: Array) -> Iterator[tuple[slice, Array]]:
        for at in blocks_of(len(X), 8 * self.features.n_features):
            yield at, self.features.block(np.asarray(X[at]))

    def _whitened(self, Phi: Array) -> Iterator[Array]:
        """L_B^-1 Phi' for each root: (m, b)."""
        for root in self.roots:
            yield blas.dtrmm(1.0, root, Phi.T, lower=1)
