"""K ~ Phi Phi' in the space of the weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from gramian.errors import NumericalError
from gramian.features.base import FeatureMap
from gramian.gram import tiles
from gramian.inference.algebra.base import Prior, Sited, Term
from gramian.inference.base import GaussianProcess, blocks_of
from gramian.inference.features import FeaturePosterior
from gramian.inference.passes import KEEP_BYTES
from gramian.kernels.base import Kernel
from gramian.linalg.products import squares, times, transposed_times, triangle_squares
from gramian.solvers.cholesky import squared_times

Array = NDArray[np.float64]

# of the features of a block: products run at full speed, and temporary arrays are used again
BLOCK_BYTES = 16 * 2**20


class Features(Prior):
    """K ~ Phi Phi'. With `whole` variances at the rows count what the features leave out of k(x, x): the
    variational treatment of landmarks."""

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
            raise NumericalError(
                "I + Phi' Lam Phi is not positive definite: the sites' curvatures are too negative for the"
                " prior."
            )
        logdet = 2 * float(np.sum(np.log(np.diagonal(L))))
        root, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        w = squared_times(root, b)
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
            inverses.append(triangle_squares(term.sited.root) if term.logdet else None)
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
                for k, part in enumerate(tiles.diagonal_pullback(self.kernel, X, by_diagonal)):
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
        return FeaturePosterior(
            prior, self.features, np.stack(weights, axis=1), tuple(roots), tuple(range(len(sited)))
        )


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
        return self.prior.mapped(squared_times(self.root, self.prior.gathered(b)))
