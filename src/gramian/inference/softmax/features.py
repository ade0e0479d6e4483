"""K_c ~ Phi_c Phi_c', in the space of the weights of all classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from gramian.arrays import Array
from gramian.engines.base import added
from gramian.inference.model import Model
from gramian.inference.softmax.base import Coupled, Coupling, curvature, curved, mirror
from gramian.linalg.blas import check_info
from gramian.linalg.factor import squared_times
from gramian.linalg.products import squares, times, transposed_times
from gramian.linalg.weights import inverse_root_of
from gramian.processes.base import blocks_of
from gramian.processes.coupled import CoupledFeatures, weight_covariances
from gramian.processes.prior import GaussianProcess


class FeatureCoupling(Coupling):
    """K_c ~ Phi_c Phi_c', in the space of the weights of all classes: each a FeaturePrior."""

    def condition(self, pi: Array, h: Array) -> FeatureCoupled:
        C, m = h.shape[1], self.priors[0].features.n_features
        S, b = np.zeros((C * m, C * m), order="F"), np.zeros((C, m))
        of = [slice(c * m, (c + 1) * m) for c in range(C)]
        for at, Phi in self.blocks():
            W = curvature(pi[at], self.scale)
            for c in range(C):
                b[c] += transposed_times(Phi[c], h[at, c][:, None])[:, 0]
                for other in range(c + 1):
                    S[of[c], of[other]] += _weighted(Phi[c], Phi[other], W[:, c, other])
        root, logdet = inverse_root_of(S)
        w = squared_times(root, b.ravel()).reshape(C, m)
        mean = self.mapped(w)
        return FeatureCoupled(self, pi, mean, h - curved(pi, self.scale, mean), logdet, w, root)

    def mapped(self, w: Array) -> Array:
        """Phi_c w_c: (n, C) from (C, m)."""
        out = np.empty((len(self.priors[0].X), len(w)))
        for at, Phi in self.blocks():
            for c in range(len(w)):
                out[at, c] = times(Phi[c], w[c][:, None])[:, 0]
        return out

    def blocks(self) -> Iterator[tuple[slice, list[Array]]]:
        """The features of each class, some rows at a time; classes that share a kernel share the array."""
        for parts in zip(*(prior.blocks() for prior, _ in self.groups), strict=True):
            yield parts[0][0], [parts[k][1] for k in self.group_of]


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
        v = squared_times(self.root, self._gathered(b).ravel())
        return self.prior.mapped(v.reshape(self.w.shape))

    def joint(self) -> Array:
        n, C = self.mean.shape
        S = np.empty((n, C, C))
        for at, Phi in self.prior.blocks():
            for part in blocks_of(at.stop - at.start, 8 * C * self.w.size):
                S[at][part] = weight_covariances(self.root, [P[part] for P in Phi])
        return S

    def pullback(self, alpha: Array, u: Array) -> list[list[Array]]:
        C, m = self.w.shape
        P = self.root.copy(order="F")
        _, info = lapack.dlauum(P, lower=1, overwrite_c=1)
        check_info(info, "dlauum")  # B^-1
        mirror(P)
        P_of = P.T.reshape(C, m, C, m)  # symmetric; the block of two classes: P_of[c, :, other]
        w, Phi_u = self._gathered(alpha), self._gathered(u)
        T = [np.zeros((m, m)) for _ in self.prior.groups]
        totals: list[list[Array]] = [[] for _ in self.prior.groups]
        for at, Phi in self.prior.blocks():
            W = curvature(self.pi[at], self.prior.scale)
            for k, (prior, columns) in enumerate(self.prior.groups):
                a = alpha[at][:, columns]
                G = times(a + u[at][:, columns], w[columns]) + times(a, Phi_u[columns])
                for c in columns:
                    for other in range(C):
                        G -= W[:, c, other][:, None] * times(Phi[other], P_of[other, :, c])
                T[k] += transposed_times(Phi[columns[0]], G)
                own = prior.features.pullback(np.asarray(prior.X[at], dtype=np.float64), G)
                totals[k] = added(totals[k], own)
        return [
            added(total, prior.features.shared_pullback(0.5 * (square + square.T)))
            for (prior, _), total, square in zip(self.prior.groups, totals, T, strict=True)
        ]

    def posterior(self, model: Model, scale: Array) -> CoupledFeatures:
        prior = GaussianProcess(model.kernel, model.mean, scale)
        maps = tuple(own.features for own, _ in self.prior.groups)
        return CoupledFeatures(prior, model.others, maps, self.w.T.copy(), self.root)

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
