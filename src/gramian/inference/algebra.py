"""A Gaussian prior N(0, K) at the rows of the data, multiplied by Gaussian sites exp(h_i g_i - 1/2 lam_i g_i^2): the linear algebra of every
inference that replaces likelihood terms by such sites.

    S = (K^-1 + Lam)^-1,   mean = S h,   alpha = K^-1 mean = h - Lam mean,   R = (K + Lam^-1)^-1,   log det(I + K Lam)

and the pullback of the symmetric weights 1/2 alpha alpha' - 1/2 R + 1/2 (u alpha' + alpha u') on K, which is the gradient of every evidence here.
Three ways:

    Dense       K + D with D = 1 / lam by Cholesky. Factoring is indifferent to the scale of rows, so this is as accurate as B = I + lam^1/2 K lam^1/2
                (Rasmussen and Williams 2006, section 3.4.3) with one pass over memory less. lam must be positive. n^3 / 3 flops.
    Features    K ~ Phi Phi' by B = I + Phi' Lam Phi, for lam of any sign as long as B is positive definite. n m^2 flops.
    Krylov      K + D by conjugate gradients, log det by stochastic Lanczos quadrature. No variances in less than n solves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from gramian.approx.base import FeatureMap
from gramian.errors import NumericalError
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference.base import GaussianProcess, Process, blocks_of
from gramian.inference.features import FeaturePosterior
from gramian.inference.iterative import Iterative, KrylovPosterior, System
from gramian.inference.lowrank import BLOCK_BYTES, KEEP_BYTES
from gramian.inference.posterior import Posterior
from gramian.kernels.base import Kernel
from gramian.linalg import panels
from gramian.linalg.products import squares, times, transposed_times
from gramian.solvers.cholesky import LAPACK_UP_TO, CholeskyFactor, inverse_root_in_place

Array = NDArray[np.float64]

LEAST = 1e-15  # of 1 / k(x, x): a smaller lam says nothing
LEAST_OF_KRYLOV = 1e-6  # there it decides on the condition of K + D
CANCELLED = 1e-5  # of lam S: below it, S = D - D A^-1 D has lost half its digits


class Sited(ABC):
    """The prior of one latent function with sites: what `Prior.condition` gives."""

    lam: Array  # (n,), as used
    mean: Array  # (n,)
    alpha: Array  # (n,)
    logdet: float
    logdet_error: float = 0.0  # a standard error, where it is an estimate
    solves: int = 0  # steps of an iterative solver
    note: str = ""

    @property
    @abstractmethod
    def var(self) -> Array:
        """The diagonal of S, (n,)."""

    @abstractmethod
    def spread(self, b: Array) -> Array:
        """S b for b (n,)."""

    def release(self) -> None:
        """Gives its memory back for the next one, where that helps; nothing but mean and alpha can be asked afterwards."""
        return


class Term(NamedTuple):
    """What one latent function adds to the gradient of an evidence by K."""

    sited: Sited
    u: Array | None = None  # (n,)
    logdet: bool = True  # whether -1/2 R belongs to it
    by_outside: Array | None = None  # (n,): the weight of k(x, x) - |phi|^2, where variances count it


class Prior(ABC):
    """N(0, K) at the rows of X."""

    @abstractmethod
    def condition(self, lam: Array, h: Array) -> Sited:
        """With the sites lam, h, each (n,)."""

    @abstractmethod
    def times(self, b: Array) -> Array:
        """K b for b (n,)."""

    @abstractmethod
    def pullback(self, terms: Sequence[Term]) -> list[Array]:
        """The gradient by the kernel's parameters (and by learned landmarks, a last array) of the sum of these terms. Uses them up."""

    @abstractmethod
    def posterior(self, prior: GaussianProcess, sited: Sequence[Sited]) -> Process:
        """One output a latent. Uses them up."""

    @property
    def outside(self) -> Array | float:
        """The part of k(x, x) that the prior leaves out at the rows, where variances of the data count it."""
        return 0.0


# Dense. ---------------------------------------------------------------------------------------------------------------------------------------------


class Dense(Prior):
    """K as a matrix, made once."""

    def __init__(self, kernel: Kernel, X: Array, room: Array | None = None) -> None:
        n = len(X)
        self.kernel, self.X = kernel, X
        self.K = np.empty((n, n), order="F") if room is None else room
        tiles.fill(kernel, X, self.K)
        self.diagonal = np.diagonal(self.K).copy()
        if not np.all(np.isfinite(self.diagonal)):
            row = int(np.argmin(np.isfinite(self.diagonal)))
            raise NumericalError(
                f"k(x, x) is {self.diagonal[row]} at row {row}: the kernel overflows there. Rescale the columns, or bound its parameters."
            )
        self.spare: list[Array] = []

    def condition(self, lam: Array, h: Array) -> DenseSited:
        n = len(h)
        lam = np.maximum(lam, LEAST / np.maximum(self.diagonal, 1e-300))
        A = self.spare.pop() if self.spare else np.empty((n, n), order="F")
        for start in range(0, n, 512):  # the lower triangle, by panels
            A[start:, start : start + 512] = self.K[start:, start : start + 512]
        A.T.reshape(-1)[:: n + 1] += 1 / lam
        if n <= LAPACK_UP_TO:
            _, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
        else:
            info = panels.factor(A)
        if info:
            raise NumericalError(
                f"K with the sites is not positive definite: it fails at row {info - 1}. Bound the kernel's scale, or its lengthscales."
            )
        factor = CholeskyFactor(A)
        alpha = factor.solve(h / lam).value
        return DenseSited(self, lam, self.times(alpha), alpha, factor.logdet() + float(np.sum(np.log(lam))), factor)

    def times(self, b: Array) -> Array:
        return blas.dsymv(1.0, self.K, b, lower=1)

    def pullback(self, terms: Sequence[Term]) -> list[Array]:
        total: Array | None = None
        left, right = [], []
        for term in terms:
            assert isinstance(term.sited, DenseSited)
            a = term.sited.alpha
            left.append(0.5 * a)
            right.append(a)
            if term.u is not None:
                left += [0.5 * term.u, 0.5 * a]
                right += [a, term.u]
            if term.logdet:
                inverse = term.sited.inverse().T  # row-major, upper triangle
                total = inverse if total is None else np.add(total, inverse, out=total)
        pair = np.stack(left, axis=1), np.stack(right, axis=1)
        if total is None:
            return tiles.low_rank_pullback(self.kernel, self.X, *pair)
        return tiles.pullback(self.kernel, self.X, total, factor=-0.5, low_rank=pair)

    def posterior(self, prior: GaussianProcess, sited: Sequence[Sited]) -> Posterior:
        roots = []
        for one in sited:
            assert isinstance(one, DenseSited)
            roots.append(one.root())
        alpha = np.stack([one.alpha for one in sited], axis=1)
        return Posterior(prior, self.X, alpha, tuple(roots), tuple(range(len(sited))))


@dataclass(eq=False)
class DenseSited(Sited):
    """A factor of K + D, and what was made of it in its place."""

    prior: Dense
    lam: Array
    mean: Array
    alpha: Array
    logdet: float
    factor: CholeskyFactor | None
    _root: Array | None = None
    _var: Array | None = None

    def root(self) -> Array:
        """L^-1, in the factor's memory."""
        if self._root is None:
            assert self.factor is not None
            self._root, self.factor = inverse_root_in_place(self.factor), None
        return self._root

    def inverse(self) -> Array:
        """(K + D)^-1 in the lower triangle, in the factor's memory; nothing else can be asked afterwards."""
        _ = self.var
        root, self._root = self.root(), None
        inverse, info = lapack.dlauum(root, lower=1, overwrite_c=1)
        assert info == 0
        return inverse

    @property
    def var(self) -> Array:
        if self._var is None:
            root = self.root()
            precision = np.einsum("ij,ij->j", root, root)
            var = (1 - precision / self.lam) / self.lam
            lost = np.flatnonzero(~(self.lam * var > CANCELLED))
            for start in range(0, len(lost), 256):
                at = lost[start : start + 256]
                K = tiles.cross(self.prior.kernel, self.prior.X[at], self.prior.X)
                V = blas.dtrmm(1.0, root, K.T, lower=1)
                var[at] = self.prior.diagonal[at] - np.einsum("ij,ij->j", V, V)
            self._var = np.maximum(var, 1e-14 * self.prior.diagonal)
        return self._var

    def covariance(self) -> Array:
        """S, all of it, Fortran-ordered."""
        K = np.tril(self.prior.K) + np.tril(self.prior.K, -1).T
        V = blas.dtrmm(1.0, self.root(), np.asfortranarray(K), lower=1)
        return np.asfortranarray(K - V.T @ V)

    def spread(self, b: Array) -> Array:
        Kb = self.prior.times(b)
        if self.factor is not None:
            return Kb - self.prior.times(self.factor.solve(Kb).value)
        half = blas.dtrmv(self.root(), Kb, lower=1)
        return Kb - self.prior.times(blas.dtrmv(self.root(), half, lower=1, trans=1))

    def release(self) -> None:
        array = self.factor.L if self.factor is not None else self._root
        if array is not None:
            self.prior.spare.append(array)
        self.factor = self._root = None


# Features. ------------------------------------------------------------------------------------------------------------------------------------------


class Features(Prior):
    """K ~ Phi Phi'. With `whole` variances at the rows count what the features leave out of k(x, x): the variational treatment of landmarks."""

    def __init__(self, features: FeatureMap, kernel: Kernel, X: Array, whole: bool = False) -> None:
        self.features, self.kernel, self.X = features, kernel, X
        self.slices = blocks_of(len(X), 8 * features.n_features, BLOCK_BYTES)
        self.kept: list[Array] | None = [] if 8 * len(X) * features.n_features <= KEEP_BYTES else None
        self._outside: Array | float = 0.0
        if whole and not features.spans_prior:
            rest = tiles.diagonal(kernel, X)
            for at, Phi in self.blocks():
                rest[at] -= np.einsum("ij,ij->i", Phi, Phi)
            self._outside = np.maximum(rest, 0.0)
        self.whole = whole and not features.spans_prior

    @property
    def outside(self) -> Array | float:
        return self._outside

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        if self.kept:
            yield from zip(self.slices, self.kept, strict=True)
            return
        found = []
        for at in self.slices:
            Phi = self.features.block(np.asarray(self.X[at], dtype=np.float64))
            if self.kept is not None:
                found.append(Phi)
            yield at, Phi
        if self.kept is not None:
            self.kept = found

    def condition(self, lam: Array, h: Array) -> FeatureSited:
        m = self.features.n_features
        B, b = np.zeros((m, m)), np.zeros(m)
        for at, Phi in self.blocks():
            if np.all(lam[at] >= 0):
                B += squares(Phi * np.sqrt(lam[at])[:, None])
            else:
                B += transposed_times(Phi, Phi * lam[at][:, None])
            b += transposed_times(Phi, h[at][:, None])[:, 0]
        B = np.asfortranarray(0.5 * (B + B.T))
        B.T.reshape(-1)[:: m + 1] += 1.0
        L, info = lapack.dpotrf(B, lower=1, clean=1, overwrite_a=1)
        if info or not np.all(np.isfinite(np.diagonal(L))):
            raise NumericalError("I + Phi' Lam Phi is not positive definite: the sites' curvatures are too negative for the prior.")
        logdet = 2 * float(np.sum(np.log(np.diagonal(L))))
        root, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        w = blas.dtrmv(root, blas.dtrmv(root, b, lower=1), lower=1, trans=1)
        mean = self.mapped(w)
        return FeatureSited(self, lam, mean, h - lam * mean, logdet, w, root)

    def mapped(self, w: Array) -> Array:
        """Phi w."""
        out = np.empty(len(self.X))
        for at, Phi in self.blocks():
            out[at] = times(Phi, w[:, None])[:, 0]
        return out

    def gathered(self, b: Array) -> Array:
        """Phi' b."""
        return np.sum([transposed_times(Phi, b[at][:, None])[:, 0] for at, Phi in self.blocks()], axis=0)

    def times(self, b: Array) -> Array:
        return self.mapped(self.gathered(b))

    def pullback(self, terms: Sequence[Term]) -> list[Array]:
        m = self.features.n_features
        T, total = np.zeros((m, m)), None
        inverses, gathered = [], []
        for term in terms:
            assert isinstance(term.sited, FeatureSited)
            inverses.append(squares(np.ascontiguousarray(term.sited.root)) if term.logdet else None)
            gathered.append(None if term.u is None else self.gathered(term.u))
        for at, Phi in self.blocks():
            G, by_diagonal = np.zeros_like(Phi), np.zeros(len(Phi))
            for term, inverse, Phi_u in zip(terms, inverses, gathered, strict=True):
                sited = term.sited
                assert isinstance(sited, FeatureSited)
                G += np.multiply.outer(sited.alpha[at], sited.w)
                if inverse is not None:
                    G -= sited.lam[at][:, None] * times(Phi, inverse)
                if term.u is not None and Phi_u is not None:
                    G += np.multiply.outer(term.u[at], sited.w) + np.multiply.outer(sited.alpha[at], Phi_u)
                if term.by_outside is not None:
                    G -= (2 * term.by_outside[at])[:, None] * Phi
                    by_diagonal += term.by_outside[at]
            T += transposed_times(Phi, G)
            X = np.asarray(self.X[at], dtype=np.float64)
            parts = self.features.pullback(X, G)
            if np.any(by_diagonal):
                for k, part in enumerate(tiles.rowwise_pullback(self.kernel, "diagonal", X, by_diagonal)):
                    parts[k] = parts[k] + part
            total = parts if total is None else [a + b for a, b in zip(total, parts, strict=True)]
        assert total is not None
        return [a + b for a, b in zip(total, self.features.shared_pullback(0.5 * (T + T.T)), strict=True)]

    def posterior(self, prior: GaussianProcess, sited: Sequence[Sited]) -> FeaturePosterior:
        roots, weights = [], []
        for one in sited:
            assert isinstance(one, FeatureSited)
            roots.append(one.root)
            weights.append(one.w)
        return FeaturePosterior(prior, self.features, np.stack(weights, axis=1), tuple(roots), tuple(range(len(sited))))


@dataclass(eq=False)
class FeatureSited(Sited):
    """The posterior of the weights."""

    prior: Features
    lam: Array
    mean: Array
    alpha: Array
    logdet: float
    w: Array  # (m,)
    root: Array  # L_B^-1

    @cached_property
    def var(self) -> Array:
        out = np.empty(len(self.mean))
        for at, Phi in self.prior.blocks():
            V = blas.dtrmm(1.0, self.root, Phi.T, lower=1)
            out[at] = np.einsum("ij,ij->j", V, V)
        return np.maximum(out, 1e-300)

    def spread(self, b: Array) -> Array:
        half = blas.dtrmv(self.root, self.prior.gathered(b), lower=1)
        return self.prior.mapped(blas.dtrmv(self.root, half, lower=1, trans=1))


# Without the matrix. --------------------------------------------------------------------------------------------------------------------------------


class Krylov(Prior):
    """K through its products alone."""

    def __init__(self, kernel: Kernel, X: Array, engine: Iterative) -> None:
        self.kernel, self.X, self.engine = kernel, np.asarray(X, dtype=np.float64), engine
        self.diagonal = tiles.diagonal(kernel, self.X)

    def condition(self, lam: Array, h: Array) -> KrylovSited:
        lam = np.maximum(lam, LEAST_OF_KRYLOV / np.maximum(self.diagonal, 1e-300))
        operator = GramOperator(self.kernel, self.X, 1 / lam)
        system = self.engine.system(operator)
        solution = system.factor.solve(h / lam)
        if not solution.outcome.converged:
            system = self.engine.system(operator, stronger=True)
            solution = system.factor.solve(h / lam)
        if not solution.outcome.converged:
            raise NumericalError(f"{self.engine.name.upper()} on K with the sites missed its tolerance: {solution.outcome.note}")
        return KrylovSited(self, lam, self.times(solution.value), solution.value, system, solution.outcome.iterations)

    def times(self, b: Array) -> Array:
        return tiles.matmul(self.kernel, self.X, self.X, b[:, None])[:, 0]

    def pullback(self, terms: Sequence[Term]) -> list[Array]:
        left, right = [], []
        for term in terms:
            assert isinstance(term.sited, KrylovSited)
            a = term.sited.alpha[:, None]
            left.append(0.5 * a)
            right.append(a)
            if term.u is not None:
                left += [0.5 * term.u[:, None], 0.5 * a]
                right += [a, term.u[:, None]]
            if term.logdet:
                U, V = term.sited.system.factor.probe_pair()
                left += [-0.25 / U.shape[1] * U, -0.25 / U.shape[1] * V]
                right += [V, U]
        return tiles.low_rank_pullback(self.kernel, self.X, np.hstack(left), np.hstack(right))

    def posterior(self, prior: GaussianProcess, sited: Sequence[Sited]) -> KrylovPosterior:
        systems = []
        for one in sited:
            assert isinstance(one, KrylovSited)
            systems.append(one.system)
        alpha = np.stack([one.alpha for one in sited], axis=1)
        return KrylovPosterior(prior, self.X, alpha, tuple(systems), tuple(range(len(sited))))


@dataclass(eq=False)
class KrylovSited(Sited):
    """A solved system."""

    prior: Krylov
    lam: Array
    mean: Array
    alpha: Array
    system: System
    solves: int

    @cached_property
    def _estimate(self) -> tuple[float, float]:
        value, error = self.system.factor.logdet_estimate()
        return value + float(np.sum(np.log(self.lam))), error

    @property
    def logdet(self) -> float:  # type: ignore[override]  # costly, so only when asked for; nobody sets it
        return self._estimate[0]

    @property
    def logdet_error(self) -> float:  # type: ignore[override]  # the same
        return self._estimate[1]

    @cached_property
    def var(self) -> Array:
        """By n solves, in blocks."""
        out = np.empty(len(self.mean))
        for start in range(0, len(out), 256):
            at = slice(start, min(start + 256, len(out)))
            K = tiles.cross(self.prior.kernel, self.prior.X, self.prior.X[at])
            out[at] = self.prior.diagonal[at] - np.einsum("ij,ij->j", K, self.system.factor.solve(K).value)
        return np.maximum(out, 0.0)

    def spread(self, b: Array) -> Array:
        Kb = self.prior.times(b)
        return Kb - self.prior.times(self.system.factor.solve(Kb).value)


__all__ = ["Dense", "Features", "Krylov", "Prior", "Sited", "Term"]
