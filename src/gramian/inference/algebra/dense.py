"""K as a matrix, by Cholesky on K + D."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from gramian.errors import NumericalError
from gramian.gram import tiles
from gramian.inference.algebra.base import Prior, Sited, Term
from gramian.inference.base import GaussianProcess
from gramian.inference.posterior import Posterior
from gramian.kernels.base import Kernel
from gramian.linalg import panels
from gramian.solvers.cholesky import LAPACK_UP_TO, CholeskyFactor, inverse_root_in_place, squared_times

Array = NDArray[np.float64]

LEAST = 1e-15  # of 1 / k(x, x): a smaller lam says nothing
CANCELLED = 1e-5  # of lam S: below it, S = D - D A^-1 D has lost half its digits


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
                f"k(x, x) is {self.diagonal[row]} at row {row}: the kernel overflows there. Rescale the"
                " columns, or bound its parameters."
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
                f"K with the sites is not positive definite: it fails at row {info - 1}. Bound the kernel's"
                " scale, or its lengthscales."
            )
        factor = CholeskyFactor(A)
        alpha = factor.solve(h / lam).value
        return DenseSited(
            self, lam, self.times(alpha), alpha, factor.logdet() + float(np.sum(np.log(lam))), factor
        )

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
        return Kb - self.prior.times(squared_times(self.root(), Kb))

    def release(self) -> None:
        array = self.factor.L if self.factor is not None else self._root
        if array is not None:
            self.prior.spare.append(array)
        self.factor = self._root = None
