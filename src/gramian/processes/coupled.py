"""Posteriors of latent functions that an approximation has made dependent: the classes of a softmax, which
have independent priors but common data.

    dense       (S(x, z))_cc' = delta_cc' (k_c(x, z) - k_c(x)' E_c k_c(z)) + V_c(x)' V_c'(z),
                V_c(x) = L_M^-1 E_c k_c(x),   f = m + s g
    features    (S(x, z))_cc' = delta_cc' e_c(x, z) + phi_c(x)' (B^-1)_cc' phi_c'(z),
                e_c: what features leave out of the prior

with E_c = R_c'R_c and L_M as in inference/softmax. The first term of each is a Gaussian process for a class
alone, the second is of low rank and common to all: draws need no covariance of C n rows. Cost of b points,
dense: b n kernel values, 3 C b n^2 flops; features: C^2 b m^2. Source: Rasmussen and Williams 2006, algorithm
3.4.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.linalg import blas

from gramian.arrays import Array
from gramian.features.base import FeatureMap
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.linalg.state import ObjectState, entries, joined, numbered, of_parts, root, taken
from gramian.processes.base import Process, blocks_of, semidefinite_root, users, with_noise
from gramian.processes.prior import GaussianProcess
from gramian.processes.state import Context

SHARED = "root.shared"  # of all classes, in a state


@dataclass(frozen=True, eq=False)
class CoupledProcess(Process):
    """One output a class. With several kernels `others` has those of the classes after the first."""

    dependent = True
    many_kernels: ClassVar[bool] = True

    prior: GaussianProcess
    others: tuple[Kernel, ...]

    @property
    def C(self) -> int:
        return len(self.prior.scale)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """One for all classes, or one each."""
        return (self.prior.kernel, *self.others)

    @property
    def kernel_of(self) -> list[int]:
        """For each class, which of them."""
        return list(range(self.C)) if self.others else [0] * self.C

    @abstractmethod
    def _parts(self, X: Array) -> Iterator[tuple[slice, Array, Array, Array]]:
        """A block of rows at a time: the mean of s g (b, C), the variance that a class has alone (b, C), and
        the covariance that it has with others, itself included (b, C, C)."""

    @abstractmethod
    def _covariances(self, X: Array) -> Iterator[tuple[Array, Array]]:
        """Of each class at all pairs of rows: A + V'V, with the same rows of V for all classes."""

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean, joint = self._joint(X)
        return mean, np.einsum("icc->ic", joint).copy()

    def joint(self, X: Array) -> Array:
        return self._joint(X)[1]

    def cov(self, X: Array) -> Array:
        out = np.empty((len(X), len(X), self.C))
        for c, (A, V) in enumerate(self._covariances(X)):
            out[:, :, c] = 0.5 * (A + A.T) + V.T @ V
        np.einsum("iik->ik", out)[...] = self.moments(X)[1]
        return out

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        """Draws (n, C, n_samples) from the joint distribution over all rows and all classes."""
        draws = np.repeat(self.mean(X)[:, :, None], n_samples, axis=2)
        common: Array | None = None  # what all classes share
        for c, (A, V) in enumerate(self._covariances(X)):
            if common is None:
                common = rng.standard_normal((len(V), n_samples))
            draws[:, c] += V.T @ common
            if np.any(A):
                draws[:, c] += semidefinite_root(0.5 * (A + A.T)) @ rng.standard_normal((len(X), n_samples))
        return with_noise(draws, noise, rng)

    def _joint(self, X: Array) -> tuple[Array, Array]:
        mean, joint = self.prior.mean(X), np.empty((len(X), self.C, self.C))
        for at, part, alone, common in self._parts(X):
            mean[at] += part
            joint[at] = common
            # rounding may leave -1e-17 where the data leave nothing open
            np.einsum("icc->ic", joint[at])[...] += np.maximum(alone, 0.0)
        return mean, joint


@dataclass(frozen=True, eq=False)
class CoupledPosterior(CoupledProcess):
    """From all rows of the data."""

    kind: ClassVar[str] = "coupled"

    Z: Array  # (n, d)
    alpha: Array  # (n, C)
    roots: tuple[Array, ...]  # for each class R_c (n, n), lower triangular, Fortran-ordered
    shared_root: Array  # L_M^-1, in the same way

    def mean(self, X: Array) -> Array:
        out = self.prior.mean(X)
        for at in blocks_of(len(X), 8 * X.shape[1]):
            for k, kernel in enumerate(self.kernels):
                own = users(self.kernel_of, k)
                product = tiles.matmul(kernel, X[at], self.Z, self.alpha[:, own])
                out[at, own] += product * self.prior.scale[own]
        return out

    def _parts(self, X: Array) -> Iterator[tuple[slice, Array, Array, Array]]:
        scale = self.prior.scale
        for at in blocks_of(len(X), 8 * len(self.Z) * (self.C + 2 + len(self.others))):
            K = [tiles.cross(kernel, X[at], self.Z) for kernel in self.kernels]
            variances = [tiles.diagonal(kernel, X[at]) for kernel in self.kernels]
            alone = np.stack([variances[k] for k in self.kernel_of], axis=1)
            mean, V = np.empty(alone.shape), []
            for c, k in enumerate(self.kernel_of):
                A, common = self._whitened(c, K[k])
                mean[:, c] = (K[k] @ self.alpha[:, c]) * scale[c]
                alone[:, c] -= np.einsum("ij,ij->j", A, A)
                V.append(common)
            yield at, mean, alone * scale**2, _products(V, [0] * self.C)

    def _covariances(self, X: Array) -> Iterator[tuple[Array, Array]]:
        for c, k in enumerate(self.kernel_of):
            kernel, s = self.kernels[k], self.prior.scale[c]
            A, V = self._whitened(c, tiles.cross(kernel, X, self.Z))
            yield s**2 * (tiles.cross(kernel, X, X) - A.T @ A), V

    def state(self, context: Context) -> ObjectState:
        arrays = {"alpha": self.alpha, **numbered(self.roots), SHARED: self.shared_root}
        return ObjectState({"kind": self.kind}, {**context.own_rows(self.Z), **arrays})

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> CoupledPosterior:
        entries(state.described, "posterior", "kind")
        Z, C, arrays = context.rows(state.arrays), context.q, state.arrays
        n = len(Z)
        alpha, roots = taken(arrays, "alpha", (n, C)), tuple(root(arrays, str(c), n) for c in range(C))
        return cls(context.prior, context.others, Z, alpha, roots, root(arrays, "shared", n))

    def _whitened(self, c: int, K: Array) -> tuple[Array, Array]:
        """R_c k and L_M^-1 E_c k of a class, (n, b) each; in units of f the scale is gone from the second."""
        A = blas.dtrmm(1.0, self.roots[c], K.T, lower=1)
        E = blas.dtrmm(1.0, self.roots[c], A, lower=1, trans_a=1)
        return A, blas.dtrmm(1.0, self.shared_root, E, lower=1, overwrite_b=1)


@dataclass(frozen=True, eq=False)
class CoupledFeatures(CoupledProcess):
    """In the space of the weights, N(weights, B^-1) for those of all classes together."""

    kind: ClassVar[str] = "coupled features"

    features: tuple[FeatureMap, ...]  # one for each kernel
    weights: Array  # (m, C)
    # L_B^-1 (C m, C m), lower triangular, Fortran-ordered: the weights of one class after those of another
    root: Array

    def mean(self, X: Array) -> Array:
        out = self.prior.mean(X)
        for at, Phi in self._blocks(X):
            out[at] += self._mapped(Phi)
        return out

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        """Over all rows and all classes jointly; of random features any number of rows costs n m."""
        if not all(features.spans_prior for features in self.features):
            return super().sample(rng, X, n_samples, noise)
        draws = np.repeat(self.prior.mean(X)[:, :, None], n_samples, axis=2)
        weights = self.root.T @ rng.standard_normal((len(self.root), n_samples))
        weights = weights.reshape(self.C, -1, n_samples) + self.weights.T[:, :, None]
        for at, Phi in self._blocks(X):
            for c, k in enumerate(self.kernel_of):
                draws[at, c] += (Phi[k] @ weights[c]) * self.prior.scale[c]
        return with_noise(draws, noise, rng)

    def _parts(self, X: Array) -> Iterator[tuple[slice, Array, Array, Array]]:
        scale = self.prior.scale
        for at, Phi in self._blocks(X):
            alone = np.zeros((len(Phi[0]), self.C))
            for k, features in enumerate(self.features):
                if not features.spans_prior:
                    rest = tiles.diagonal(self.kernels[k], X[at]) - np.einsum("ij,ij->i", Phi[k], Phi[k])
                    alone[:, users(self.kernel_of, k)] = rest[:, None]
            common = weight_covariances(self.root, [Phi[k] for k in self.kernel_of])
            yield at, self._mapped(Phi), alone * scale**2, common * np.multiply.outer(scale, scale)

    def _covariances(self, X: Array) -> Iterator[tuple[Array, Array]]:
        Phi = [features.block(X) for features in self.features]
        for c, k in enumerate(self.kernel_of):
            rest = np.zeros((len(X), len(X)))
            if not self.features[k].spans_prior:
                rest = tiles.cross(self.kernels[k], X, X) - Phi[k] @ Phi[k].T
            m, s = len(self.weights), self.prior.scale[c]
            yield s**2 * rest, s * (self.root[:, c * m : (c + 1) * m] @ Phi[k].T)

    def state(self, context: Context) -> ObjectState:
        maps = joined([features.state().arrays for features in self.features], "map")
        return ObjectState({"kind": self.kind}, {"weights": self.weights, SHARED: self.root, **maps})

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> CoupledFeatures:
        entries(state.described, "posterior", "kind")
        C, arrays = context.q, state.arrays
        inside = of_parts(arrays, "map", len(context.kernels))
        maps = tuple(context.features(own, k) for k, own in enumerate(inside))
        m = maps[0].n_features
        weights, shared = taken(arrays, "weights", (m, C)), root(arrays, "shared", C * m)
        return cls(context.prior, context.others, maps, weights, shared)

    def _blocks(self, X: Array) -> Iterator[tuple[slice, list[Array]]]:
        for at in blocks_of(len(X), 8 * len(self.root) * self.C):
            yield at, [features.block(np.asarray(X[at])) for features in self.features]

    def _mapped(self, Phi: list[Array]) -> Array:
        columns = [Phi[k] @ self.weights[:, c] for c, k in enumerate(self.kernel_of)]
        return np.stack(columns, axis=1) * self.prior.scale


def weight_covariances(root: Array, Phi: Sequence[Array]) -> Array:
    """phi_c' (root'root)_cc' phi_c' for each row: (b, C, C) from C arrays (b, m)."""
    m = Phi[0].shape[1]
    # A column of blocks of the root begins at the diagonal, so that a class's V has less rows than the one
    # before.
    V = [blas.dgemm(1.0, root[c * m :, c * m : (c + 1) * m], P.T) for c, P in enumerate(Phi)]
    return _products(V, [c * m for c in range(len(Phi))])


def _products(V: list[Array], first: list[int]) -> Array:
    """V_c' V_c' for each column: (b, C, C). The rows of V_c begin at row first_c of all rows."""
    C, b = len(V), V[0].shape[1]
    out = np.empty((b, C, C))
    for c in range(C):
        for other in range(c + 1):
            rows = V[other][first[c] - first[other] :]
            out[:, c, other] = out[:, other, c] = np.einsum("ri,ri->i", V[c], rows)
    return out
