"""Each K_c as a matrix: factors of n rows, one a class, and one of M."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import blas

from gramian.arrays import Array
from gramian.engines.dense import DenseConditioned
from gramian.errors import NumericalError
from gramian.gram import tiles
from gramian.inference.model import Model
from gramian.inference.softmax.base import Coupled, Coupling, mirror
from gramian.linalg.blas import block_of, gemm, syrk
from gramian.linalg.factor import factor_in_place, inverse_root_in_place, square_in_place, squared_times
from gramian.processes.coupled import CoupledPosterior
from gramian.processes.prior import GaussianProcess
from gramian.solvers.cholesky import CholeskyFactor

BLOCK = 256  # rows of F at a time: enough for products at full speed


class DenseCoupling(Coupling):
    """Each K_c as a matrix: a DensePrior."""

    _room: Array | None = None

    def step(self, pi: Array, h: Array) -> tuple[Array, Array]:
        alpha, E = np.empty_like(h), []
        M = self.room()
        M[...] = 0.0
        for c, sited in self.sites(pi, h):
            alpha[:, c] = sited.alpha[:, 0]
            E.append(sited.inverse())
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
            square_in_place(E)
            _add(E, M, 1 / self.scale[c] ** 2)
            sited.append(one)
        factor = _factored(M)
        logdet = sum(one.logdet for one in sited) + factor.logdet()
        self._room = None  # it is the root's from now on
        found = DenseCoupled(self, sited, inverse_root_in_place(factor.L), h, h, logdet)
        alone = np.hstack([one.alpha for one in sited])
        found.alpha = alone + found.shared(np.sum((h - alone) / self.scale, axis=1))
        found.mean = self.times(found.alpha)
        return found

    def sites(self, pi: Array, h: Array) -> Iterator[tuple[int, DenseConditioned]]:
        """Each class with D_c and h_c, as if it stood alone: its alpha is h - E K h."""
        for c, prior in enumerate(self.priors):
            yield c, prior.condition(pi[:, c] * self.scale[c] ** 2, np.ascontiguousarray(h[:, [c]]))

    def room(self) -> Array:
        if self._room is None:
            n = len(self.priors[0].K)
            self._room = np.empty((n, n), order="F")
        return self._room


@dataclass(eq=False)
class DenseCoupled(Coupled):
    """Inverse roots of K_c + D_c^-1 and of M, and what was made of them in their place."""

    prior: DenseCoupling
    sited: list[DenseConditioned]
    root: Array  # L_M^-1
    mean: Array
    alpha: Array
    logdet: float
    E: list[Array] = field(default_factory=list)  # each (n, n), both triangles
    # sum_c R_cc over the classes of each prior, in the lower triangle
    weights: list[Array] = field(default_factory=list)

    def spread(self, b: Array) -> Array:
        Kb = self.prior.times(b)
        explained = np.stack([self._inverse_times(c, Kb[:, c]) for c in range(len(self.sited))], axis=1)
        return Kb - self.prior.times(explained - self.shared(np.sum(explained / self.prior.scale, axis=1)))

    def shared(self, b: Array) -> Array:
        """E R M^-1 b with R the identities / s_c: (n, C) from (n,)."""
        z = squared_times(self.root, b)
        return np.stack([self._inverse_times(c, z) / s for c, s in enumerate(self.prior.scale)], axis=1)

    def joint(self) -> Array:
        n, C = self.mean.shape
        scale = self.prior.scale
        S = np.zeros((n, C, C))
        for c, one in enumerate(self.sited):
            S[:, c, c] = one.var()
        self._invert()
        groups = zip(self.weights, self.prior.groups, strict=True)
        totals = {c: total for total, (_, columns) in groups for c in columns}
        root, F = block_of(self.root), [np.empty((BLOCK, n), order="F") for _ in range(C)]
        for start in range(0, n, BLOCK):
            stop = min(start + BLOCK, n)
            for c, E in enumerate(self.E):
                F[c][...] = 0.0
                part = block_of(F[c])[: stop - start, :]
                # the root is zero beyond its diagonal
                gemm(1.0, root[start:stop, :stop], block_of(E)[:stop, :], part)
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
            a, v = alpha[:, columns], u[:, columns]
            pair = np.hstack([0.5 * (a + v), 0.5 * a]), np.hstack([a, v])
            parts.append(tiles.pullback(prior.kernel, prior.X, total.T, factor=-0.5, low_rank=pair))
        return parts

    def posterior(self, model: Model, scale: Array) -> CoupledPosterior:
        prior, roots = GaussianProcess(model.kernel, model.mean, scale), tuple(s.root() for s in self.sited)
        X = self.prior.priors[0].X
        return CoupledPosterior(prior, model.others, X, self.alpha, roots, self.root)

    def _invert(self) -> None:
        """E_c in the place of each root, and their sums as the start of `weights`."""
        for one in self.sited:
            E = one.inverse()
            mirror(E)
            self.E.append(E)
        for _, columns in self.prior.groups:
            total = self.E[columns[0]].copy(order="F")
            for c in columns[1:]:
                _add(self.E[c], total, 1.0)
            self.weights.append(total)

    def _inverse_times(self, c: int, b: Array) -> Array:
        return blas.dsymv(1.0, self.E[c], b, lower=1) if self.E else squared_times(self.sited[c].root(), b)


def _factored(M: Array) -> CholeskyFactor:
    """In M's memory, from its lower triangle."""
    info = factor_in_place(M)
    if info:
        raise NumericalError(
            "The sum of (K + 1 / probabilities)^-1 over the classes is not positive definite: it fails at"
            f" row {info - 1}. The kernel is so large that what all classes have in common drowns in"
            " rounding: bound its scale."
        )
    return CholeskyFactor(M)


def _add(A: Array, total: Array, factor: float) -> None:
    """total += factor A, Fortran-ordered, by BLAS: whatever stands in an unused triangle."""
    blas.daxpy(A.T.reshape(-1), total.T.reshape(-1), a=factor)
