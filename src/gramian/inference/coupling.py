"""Latent functions with independent priors N(0, K_c) whose sites couple them: at each row the site is exp(h'g - 1/2 g'W g) with W of the softmax,

    W = diag(s^2 pi) - (s pi)(s pi)',   S = (K^-1 + W)^-1,   mean = S h,   alpha = K^-1 mean,   log det(I + K W)

for C classes with probabilities pi and scales s. Dense, with D_c = diag(s_c^2 pi_c) and E_c = (K_c + D_c^-1)^-1: since the probabilities of a row add
up to one, W is D minus a term of rank n whose capacitance matrix is M = sum_c E_c / s_c^2, and with V_c = E_c / s_c

    S = K - K R K,   R = E - V M^-1 V',   log det(I + K W) = sum_c log det(I + K_c D_c) + log det M

which takes C n^3 flops where a factor of all C n rows would take C^3 n^3 / 3, and C + 3 arrays of n^2. Source: Rasmussen and Williams 2006, section
3.5 and algorithm 3.3. They leave the gradient and the covariances S_i of a row's classes out; these need F_c = L_M^-1 E_c, a block of rows at a time:

    R_cc = E_c - F_c'F_c / s_c^2,     E_c K_c = I - E_c D_c^-1
    (S_i)_cc' = delta_cc' (K_c - K_c E_c K_c)_ii + (L_M^-1 E_c K_c)_i' (L_M^-1 E_c' K_c')_i / (s_c s_c')

With features K_c ~ Phi_c Phi_c' the weights of all classes have the precision B_cc' = delta_cc' I + Phi_c' W_cc' Phi_c': (C m)^2 sums
over blocks of rows, C^2 n m^2 + C^3 m^3 / 3 flops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from gramian.errors import NumericalError
from gramian.gram import tiles
from gramian.inference.algebra import Dense, DenseSited, Features, Prior
from gramian.inference.base import GaussianProcess, Model, Process, blocks_of
from gramian.inference.coupled import CoupledFeatures, CoupledPosterior, weight_covariances
from gramian.linalg import panels
from gramian.linalg.blas import block_of, gemm, syrk
from gramian.linalg.products import squares, times, transposed_times
from gramian.solvers.cholesky import LAPACK_UP_TO, CholeskyFactor, inverse_in_place, inverse_root_in_place

Array = NDArray[np.float64]
Groups = list[tuple[Prior, list[int]]]

BLOCK = 256  # rows of F at a time: enough for products at full speed


class Coupled(ABC):
    """The prior of all classes with sites."""

    mean: Array  # (n, C)
    alpha: Array  # (n, C)
    logdet: float

    @abstractmethod
    def joint(self) -> Array:
        """The covariance of the classes at each row of the data: (n, C, C)."""

    @abstractmethod
    def spread(self, b: Array) -> Array:
        """S b for b (n, C)."""

    @abstractmethod
    def pullback(self, alpha: Array, u: Array) -> list[list[Array]]:
        """The gradient by each prior's parameters of the weights 1/2 a_c a_c' - 1/2 R_cc + 1/2 (u_c a_c' + a_c u_c') on K_c. Uses it up."""

    @abstractmethod
    def posterior(self, model: Model, scale: Array) -> Process:
        """Uses it up."""


class Coupling(ABC):
    """The priors of all classes."""

    @abstractmethod
    def times(self, b: Array) -> Array:
        """K b for b (n, C)."""

    @abstractmethod
    def step(self, pi: Array, h: Array) -> tuple[Array, Array]:
        """mean and alpha, each (n, C), with sites of probabilities pi and h."""

    @abstractmethod
    def condition(self, pi: Array, h: Array) -> Coupled:
        """The same, with all that can be asked of it."""


def coupling(groups: Groups, scale: Array) -> Coupling:
    """For the priors of a problem, each with the classes it is for."""
    return DenseCoupling(groups, scale) if isinstance(groups[0][0], Dense) else FeatureCoupling(groups, scale)


def curvature(pi: Array, scale: Array) -> Array:
    """W for each row: (b, C, C). Its rows add up to zero to the last bit that counts: 1 - pi would leave nothing of a sure class."""
    W = -pi[:, :, None] * pi[:, None, :]
    diagonal = np.einsum("icc->ic", W)
    diagonal[...] = 0.0
    diagonal[...] = -np.sum(W, axis=2)
    W *= np.multiply.outer(scale, scale)
    return W


def curved(pi: Array, scale: Array, g: Array) -> Array:
    """W g for g (n, C)."""
    x = scale * g
    return scale * pi * (x - np.sum(pi * x, axis=1, keepdims=True))


# Dense. ---------------------------------------------------------------------------------------------------------------------------------------------


class DenseCoupling(Coupling):
    """Each K_c as a matrix, made once for all the classes that share it."""

    def __init__(self, groups: Groups, scale: Array) -> None:
        self.groups, self.scale = groups, scale
        found = {c: prior for prior, columns in groups for c in columns}
        self.priors: list[Dense] = []
        for c in range(len(found)):
            prior = found[c]
            assert isinstance(prior, Dense)
            self.priors.append(prior)
        self._room: Array | None = None

    def times(self, b: Array) -> Array:
        return np.stack([prior.times(b[:, c]) for c, prior in enumerate(self.priors)], axis=1)

    def step(self, pi: Array, h: Array) -> tuple[Array, Array]:
        alpha, E = np.empty_like(h), []
        M = self.room()
        M[...] = 0.0
        for c, sited in self.sites(pi, h):
            assert sited.factor is not None
            alpha[:, c] = sited.alpha
            E.append(inverse_in_place(sited.factor))
            _add(E[c], M, 1 / self.scale[c] ** 2)
        z = _factored(M).solve(np.sum((h - alpha) / self.scale, axis=1)).value
        for c, prior in enumerate(self.priors):
            alpha[:, c] += blas.dsymv(1 / self.scale[c], E[c], z, lower=1)
            prior.spare.append(E[c])
        return self.times(alpha), alpha

    def condition(self, pi: Array, h: Array) -> DenseCoupled:
        sited, M, E = [], self.room(), np.empty((len(h), len(h)), order="F")
        M[...] = 0.0
        for c, one in self.sites(pi, h):
            E[...] = one.root()
            _, info = lapack.dlauum(E, lower=1, overwrite_c=1)
            assert info == 0
            _add(E, M, 1 / self.scale[c] ** 2)
            sited.append(one)
        factor = _factored(M)
        logdet = sum(one.logdet for one in sited) + factor.logdet()
        self._room = None  # it is the root's from now on
        found = DenseCoupled(self, sited, inverse_root_in_place(factor), h, h, logdet)
        alone = np.stack([one.alpha for one in sited], axis=1)
        found.alpha = alone + found.shared(np.sum((h - alone) / self.scale, axis=1))
        found.mean = self.times(found.alpha)
        return found

    def sites(self, pi: Array, h: Array) -> Iterator[tuple[int, DenseSited]]:
        """Each class with D_c and h_c, as if it stood alone: its alpha is h - E K h."""
        for c, prior in enumerate(self.priors):
            yield c, prior.condition(pi[:, c] * self.scale[c] ** 2, np.ascontiguousarray(h[:, c]))

    def room(self) -> Array:
        if self._room is None:
            n = len(self.priors[0].K)
            self._room = np.empty((n, n), order="F")
        return self._room


@dataclass(eq=False)
class DenseCoupled(Coupled):
    """Inverse roots of K_c + D_c^-1 and of M, and what was made of them in their place."""

    prior: DenseCoupling
    sited: list[DenseSited]
    root: Array  # L_M^-1
    mean: Array
    alpha: Array
    logdet: float
    E: list[Array] = field(default_factory=list)  # each (n, n), both triangles
    weights: list[Array] = field(default_factory=list)  # sum_c R_cc over the classes of each prior, in the lower triangle

    def spread(self, b: Array) -> Array:
        Kb = self.prior.times(b)
        explained = np.stack([self._inverse_times(c, Kb[:, c]) for c in range(len(self.sited))], axis=1)
        return Kb - self.prior.times(explained - self.shared(np.sum(explained / self.prior.scale, axis=1)))

    def shared(self, b: Array) -> Array:
        """E R M^-1 b with R the identities / s_c: (n, C) from (n,)."""
        z = _squared_times(self.root, b)
        return np.stack([self._inverse_times(c, z) / s for c, s in enumerate(self.prior.scale)], axis=1)

    def joint(self) -> Array:
        n, C = self.mean.shape
        scale = self.prior.scale
        S = np.zeros((n, C, C))
        for c, one in enumerate(self.sited):
            S[:, c, c] = one.var
        self._invert()
        totals = {c: total for total, (_, columns) in zip(self.weights, self.prior.groups, strict=True) for c in columns}
        root, F = block_of(self.root), [np.empty((BLOCK, n), order="F") for _ in range(C)]
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            for c, E in enumerate(self.E):
                F[c][...] = 0.0
                part = block_of(F[c])[: stop - start, :]
                gemm(1.0, root[start:stop, :stop], block_of(E)[:stop, :], part)  # the root is zero beyond its diagonal
                syrk(-1 / scale[c] ** 2, part, block_of(totals[c]), transpose=True)
                V = F[c][: stop - start]
                V /= -self.sited[c].lam * scale[c]
                V[:, :stop] += self.root[start:stop, :stop] / scale[c]
                for other in range(c + 1):
                    S[:, c, other] += np.einsum("ri,ri->i", V, F[other][: stop - start])
        for c in range(C):
            S[:, :c, c] = S[:, c, :c]
        return S

    def pullback(self, alpha: Array, u: Array) -> list[list[Array]]:
        if not self.weights:
            self.joint()
        parts = []
        for (prior, columns), total in zip(self.prior.groups, self.weights, strict=True):
            assert isinstance(prior, Dense)
            a, v = alpha[:, columns], u[:, columns]
            pair = np.hstack([0.5 * (a + v), 0.5 * a]), np.hstack([a, v])
            parts.append(tiles.pullback(prior.kernel, prior.X, total.T, factor=-0.5, low_rank=pair))
        return parts

    def posterior(self, model: Model, scale: Array) -> CoupledPosterior:
        prior = GaussianProcess(model.kernel, model.mean, scale)
        return CoupledPosterior(prior, model.others, self.prior.priors[0].X, self.alpha, tuple(one.root() for one in self.sited), self.root)

    def _invert(self) -> None:
        """E_c in the place of each root, and their sums as the start of `weights`."""
        for one in self.sited:
            E = one.inverse()
            _mirror(E)
            self.E.append(E)
        for _, columns in self.prior.groups:
            total = self.E[columns[0]].copy(order="F")
            for c in columns[1:]:
                _add(self.E[c], total, 1.0)
            self.weights.append(total)

    def _inverse_times(self, c: int, b: Array) -> Array:
        return blas.dsymv(1.0, self.E[c], b, lower=1) if self.E else _squared_times(self.sited[c].root(), b)


# Features. ------------------------------------------------------------------------------------------------------------------------------------------


class FeatureCoupling(Coupling):
    """K_c ~ Phi_c Phi_c', in the space of the weights of all classes."""

    def __init__(self, groups: Groups, scale: Array) -> None:
        self.groups, self.scale = groups, scale
        self.priors: list[Features] = []
        for prior, _ in groups:
            assert isinstance(prior, Features)
            self.priors.append(prior)
        self.prior_of = [k for _, k in sorted((c, k) for k, (_, columns) in enumerate(groups) for c in columns)]
        self.m = self.priors[0].features.n_features

    def times(self, b: Array) -> Array:
        return np.stack([self.priors[k].times(b[:, c]) for c, k in enumerate(self.prior_of)], axis=1)

    def step(self, pi: Array, h: Array) -> tuple[Array, Array]:
        found = self.condition(pi, h)
        return found.mean, found.alpha

    def condition(self, pi: Array, h: Array) -> FeatureCoupled:
        C, m = h.shape[1], self.m
        B, b = np.zeros((C * m, C * m), order="F"), np.zeros((C, m))
        for at, Phi in self.blocks():
            W = curvature(pi[at], self.scale)
            for c in range(C):
                b[c] += transposed_times(Phi[c], h[at, c][:, None])[:, 0]
                for other in range(c + 1):
                    B[c * m : (c + 1) * m, other * m : (other + 1) * m] += _weighted(Phi[c], Phi[other], W[:, c, other])
        B.T.reshape(-1)[:: C * m + 1] += 1.0
        L, info = lapack.dpotrf(B, lower=1, clean=1, overwrite_a=1)
        if info or not np.all(np.isfinite(np.diagonal(L))):
            raise NumericalError("I + Phi' W Phi of all classes is not positive definite: the kernel is too large. Bound its scale.")
        w = CholeskyFactor(L).solve(b.ravel()).value.reshape(C, m)
        mean = np.empty_like(h)
        for at, Phi in self.blocks():
            for c in range(C):
                mean[at, c] = times(Phi[c], w[c][:, None])[:, 0]
        logdet = 2 * float(np.sum(np.log(np.diagonal(L))))
        return FeatureCoupled(self, pi, mean, h - curved(pi, self.scale, mean), logdet, w, L)

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
    L: Array  # (C m, C m), of B; its inverse root takes its place

    @cached_property
    def root(self) -> Array:
        """L_B^-1."""
        return inverse_root_in_place(CholeskyFactor(self.L))

    def spread(self, b: Array) -> Array:
        C, m = self.w.shape
        v = _squared_times(self.root, self._gathered(b).ravel()).reshape(C, m)
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
                S[at.start + part.start : at.start + part.stop] = weight_covariances(self.root, [P[part] for P in Phi])
        return S

    def pullback(self, alpha: Array, u: Array) -> list[list[Array]]:
        C, m = self.w.shape
        P = self.root.copy(order="F")
        _, info = lapack.dlauum(P, lower=1, overwrite_c=1)  # B^-1
        assert info == 0
        _mirror(P)
        w, Phi_u = self._gathered(alpha), self._gathered(u)
        T = [np.zeros((m, m)) for _ in self.prior.priors]
        totals: list[list[Array]] = [[] for _ in self.prior.priors]
        for at, Phi in self.prior.blocks():
            W = curvature(self.pi[at], self.prior.scale)
            for k, (prior, columns) in enumerate(zip(self.prior.priors, (columns for _, columns in self.prior.groups), strict=True)):
                G = times(alpha[at][:, columns] + u[at][:, columns], w[columns]) + times(alpha[at][:, columns], Phi_u[columns])
                for c in columns:
                    for other in range(C):
                        G -= W[:, c, other][:, None] * times(Phi[other], P[other * m : (other + 1) * m, c * m : (c + 1) * m])
                T[k] += transposed_times(Phi[columns[0]], G)
                parts = prior.features.pullback(np.asarray(prior.X[at], dtype=np.float64), G)
                totals[k] = [one + part for one, part in zip(totals[k], parts, strict=True)] if totals[k] else parts
        for k, prior in enumerate(self.prior.priors):
            rest = prior.features.shared_pullback(0.5 * (T[k] + T[k].T))
            totals[k] = [one + part for one, part in zip(totals[k], rest, strict=True)]
        return totals

    def posterior(self, model: Model, scale: Array) -> CoupledFeatures:
        maps = tuple(prior.features for prior in self.prior.priors)
        return CoupledFeatures(GaussianProcess(model.kernel, model.mean, scale), model.others, maps, self.w.T.copy(), self.root)

    def _gathered(self, b: Array) -> Array:
        """Phi_c' b_c: (C, m)."""
        out = np.zeros(self.w.shape)
        for at, Phi in self.prior.blocks():
            for c in range(len(out)):
                out[c] += transposed_times(Phi[c], b[at, c][:, None])[:, 0]
        return out


# Helpers. -------------------------------------------------------------------------------------------------------------------------------------------


def _factored(M: Array) -> CholeskyFactor:
    """In M's memory, from its lower triangle."""
    info = lapack.dpotrf(M, lower=1, clean=0, overwrite_a=1)[1] if len(M) <= LAPACK_UP_TO else panels.factor(M)
    if info or not np.all(np.isfinite(np.diagonal(M))):
        raise NumericalError(
            f"The sum of (K + 1 / probabilities)^-1 over the classes is not positive definite: it fails at row {info - 1}. "
            "The kernel is so large that what all classes have in common drowns in rounding: bound its scale."
        )
    return CholeskyFactor(M)


def _add(A: Array, total: Array, factor: float) -> None:
    """total += factor A, Fortran-ordered. By BLAS, which does not care about what stands in an unused triangle."""
    blas.daxpy(A.T.reshape(-1), total.T.reshape(-1), a=factor)


def _mirror(A: Array) -> None:
    """The lower triangle of A into the upper one, by panels."""
    for start in range(0, len(A), 128):
        stop = start + 128
        A[start:stop, stop:] = A[stop:, start:stop].T
        block = np.tril(A[start:stop, start:stop])
        A[start:stop, start:stop] = block + np.tril(block, -1).T


def _weighted(A: Array, B: Array, w: Array) -> Array:
    """A' diag(w) B, where w has one sign: half the work where A is B."""
    if A is not B:
        return transposed_times(A, B * w[:, None])
    return float(np.sign(np.sum(w))) * squares(A * np.sqrt(np.abs(w))[:, None])


def _squared_times(root: Array, b: Array) -> Array:
    """root' root b for a lower triangular root."""
    return blas.dtrmv(root, blas.dtrmv(root, b, lower=1), lower=1, trans=1)
