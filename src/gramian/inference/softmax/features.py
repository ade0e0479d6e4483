"""K_c ~ Phi_c Phi_c', in the space of the weights of all classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import lapack

from gramian.inference.model import Array, Model
from gramian.inference.softmax.base import Coupled, Coupling, Groups, curvature, curved, mirror
from gramian.linalg.factor import squared_times
from gramian.linalg.products import squares, times, transposed_times
from gramian.linalg.weights import inverse_root_of
from gramian.processes.base import blocks_of
from gramian.processes.coupled import CoupledFeatures, weight_covariances
from gramian.processes.prior import GaussianProcess


class FeatureCoupling(Coupling):
    """K_c ~ Phi_c Phi_c', in the space of the weights of all classes."""

    def __init__(self, groups: Groups, scale: Array) -> None:
        self.groups, self.scale = groups, scale
        self.priors: list[Any] = [prior for prior, _ in groups]  # each a FeaturePrior
        self.prior_of = [
            k for _, k in sorted((c, k) for k, (_, columns) in enumerate(groups) for c in columns)
        ]
        self.m = self.priors[0].features.n_features

    def times(self, b: Array) -> Array:
        return np.stack([self.priors[k].times(b[:, c]) for c, k in enumerate(self.prior_of)], axis=1)

    def step(self, pi: Array, h: Array) -> tuple[Array, Array]:
        found = self.condition(pi, h)
        return found.mean, found.alpha

    def condition(self, pi: Array, h: Array) -> FeatureCoupled:
        C, m = h.shape[1], self.m
        S, b = np.zeros((C * m, C * m), order="F"), np.zeros((C, m))
        for at, Phi in self.blocks():
            W = curvature(pi[at], self.scale)
            for c in range(C):
                b[c] += transposed_times(Phi[c], h[at, c][:, None])[:, 0]
                for other in range(c + 1):
                    S[c * m : (c + 1) * m, other * m : (other + 1) * m] += _weighted(
                        Phi[c], Phi[other], W[:, c, other]
                    )
        root, logdet = inverse_root_of(S)
        w = squared_times(root, b.ravel()).reshape(C, m)
        mean = np.empty_like(h)
        for at, Phi in self.blocks():
            for c in range(C):
                mean[at, c] = times(Phi[c], w[c][:, None])[:, 0]
        return FeatureCoupled(self, pi, mean, h - curved(pi, self.scale, mean), logdet, w, root)

    def blocks(self) -> Iterator[tuple[slice, list[Array]]]:
        """The features of each class, some rows at a time; classes that share a kernel share the array."""
        for parts in zip(*(prior.blocks() for prior in self.priors), strict=True):
            yield parts[0][0], [parts[k][1] for k in self.prior_of]


@dataclass(eq=False)
class FeatureCoupled(Coupled):
    """The posterior of the weights of all classes."""

    prior: FeatureCoupling
    pi: Array
    mean: Array
    alpha: Array
    logdet: float
    w: Array  # (C, m)
    root: Array  # L_B^-1 (C m, C m)

    def spread(self, b: Array) -> Array:
        C, m = self.w.shape
        v = squared_times(self.root, self._gathered(b).ravel()).reshape(C, m)
        out = np.empty_like(b)
        for at, Phi in self.prior.blocks():
            for c in range(C):
                out[at, c] = times(Phi[c], v[c][:, None])[:, 0]
        return out

    def joint(self) -> Array:
        n, C = self.mean.shape
        S = np.empty((n, C, C))
        for at, Phi in self.prior.blocks():
            for part in blocks_of(at.stop - at.start, 8 * C * C * self.prior.m):
                S[at.start + part.start : at.start + part.stop] = weight_covariances(
                    self.root, [P[part] for P in Phi]
                )
        return S

    def pullback(self, alpha: Array, u: Array) -> list[list[Array]]:
        C, m = self.w.shape
        P = self.root.copy(order="F")
        _, info = lapack.dlauum(P, lower=1, overwrite_c=1)  # B^-1
        assert info == 0
        mirror(P)
        w, Phi_u = self._gathered(alpha), self._gathered(u)
        T = [np.zeros((m, m)) for _ in self.prior.priors]
        totals: list[list[Array]] = [[] for _ in self.prior.priors]
        for at, Phi in self.prior.blocks():
            W = curvature(self.pi[at], self.prior.scale)
            for k, (prior, columns) in enumerate(
                zip(self.prior.priors, (columns for _, columns in self.prior.groups), strict=True)
            ):
                G = times(alpha[at][:, columns] + u[at][:, columns], w[columns]) + times(
                    alpha[at][:, columns], Phi_u[columns]
                )
                for c in columns:
                    for other in range(C):
                        G -= W[:, c, other][:, None] * times(
                            Phi[other], P[other * m : (other + 1) * m, c * m : (c + 1) * m]
                        )
                T[k] += transposed_times(Phi[columns[0]], G)
                parts = prior.features.pullback(np.asarray(prior.X[at], dtype=np.float64), G)
                totals[k] = (
                    [one + part for one, part in zip(totals[k], parts, strict=True)] if totals[k] else parts
                )
        for k, prior in enumerate(self.prior.priors):
            rest = prior.features.shared_pullback(0.5 * (T[k] + T[k].T))
            totals[k] = [one + part for one, part in zip(totals[k], rest, strict=True)]
        return totals

    def posterior(self, model: Model, scale: Array) -> CoupledFeatures:
        maps = tuple(prior.features for prior in self.prior.priors)
        return CoupledFeatures(
            GaussianProcess(model.kernel, model.mean, scale), model.others, maps, self.w.T.copy(), self.root
        )

    def _gathered(self, b: Array) -> Array:
        """Phi_c' b_c: (C, m)."""
        out = np.zeros(self.w.shape)
        for at, Phi in self.prior.blocks():
            for c in range(len(out)):
                out[c] += transposed_times(Phi[c], b[at, c][:, None])[:, 0]
        return out


def _weighted(A: Array, B: Array, w: Array) -> Array:
    """A' diag(w) B, where w has one sign: half the work where A is B."""
    if A is not B:
        return transposed_times(A, B * w[:, None])
    return float(np.sign(np.sum(w))) * squares(A * np.sqrt(np.abs(w))[:, None])
