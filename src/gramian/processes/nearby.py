"""A posterior from the rows that are near: f at x given y at the 2 m nearest rows, found in inputs divided
by the kernel's lengthscales.

    mean = m(x) + s k_N'A_NN^-1 r_N,    var = s^2 (k(x, x) - k_N'A_NN^-1 k_N),    A = K + D

Two points have the covariance of their errors f(x) - k_N'A_NN^-1 y_N as the prior has it, from all pairs of
their neighbours: what is said of each point alone, and of draws at several, belongs together. Where the
neighbours of a point change from place to place, the mean has steps; with noise and 30 neighbours these are
small beside its standard deviation.

Cost of a point: a query of the tree, m^2 kernel values and m^3 / 3 flops. Source: Katzfuss, Guinness, Gong
and Zilber 2020, Vecchia approximations of Gaussian-process predictions ("response first", full
conditioning on data).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.spatial import KDTree

from gramian.arrays import Array
from gramian.errors import StateError
from gramian.gram import nearby, tiles
from gramian.gram.nearby import Around, Given, Places
from gramian.kernels.base import Kernel
from gramian.linalg.state import ObjectState, entries, numbered, taken, typed, typed_list
from gramian.linalg.threads import count
from gramian.processes.base import InGaps, Process, blocks_of, users
from gramian.processes.prior import GaussianProcess
from gramian.processes.state import Context

# times as many neighbours as rows have of each other: a point in a gap has the nearest all on one side
# (105,569 land temperatures, others under clouds, Matern-1/2: RMSE 1.56 from 31 rows, 1.48 from 61)
MORE = 2
# of the rows, that lie in gaps which are made to see how rows in gaps are foretold, and how many gaps at
# least: rows of the same gap are missed alike
IN_GAPS, FEWEST_GAPS = 0.2, 20
REFINED = 4  # times as many neighbours: what is left of the error is then small beside it


@dataclass(frozen=True, eq=False)
class NearbyPosterior(Process):
    """A Gaussian process conditioned on what is near."""

    kind: ClassVar[str] = "nearby"

    prior: GaussianProcess
    Z: Array  # (n, d)
    r: Array  # (n, q): residuals (y - m) / s
    noises: tuple[Array, ...]  # (n,) each
    noise_of: tuple[int, ...]  # for each output, which noise
    lengths: Array  # (d,): by which inputs are divided for distances
    m: int

    @cached_property
    def tree(self) -> KDTree:
        return KDTree(self.Z / self.lengths)

    def mean(self, X: Array) -> Array:
        return self.moments(X)[0]

    def moments(self, X: Array) -> tuple[Array, Array]:
        return self._moments(X, self.prior, None)

    def components(self, X: Array, terms: Sequence[Kernel]) -> list[tuple[Array, Array]]:
        return [self._moments(X, self.prior.part(term), term) for term in terms]

    def gradient(self, X: Array) -> tuple[Array, Array]:
        mean, var = self.prior.gradient(X)
        kernel, scale = self.prior.kernel, self.prior.scale
        for _, outputs, around in self._around(X):
            found = nearby.given(kernel, around, solved=True)
            for at in nearby.blocks(around):
                G = nearby.slopes(kernel, around, at)  # (., m, d)
                mean[at][:, :, outputs] += np.einsum("nmd,nqm->ndq", G, found.c[at]) * scale[outputs]
                known = nearby.explained(kernel, around, at, np.swapaxes(G, 1, 2))
                var[at][:, :, outputs] -= known[:, :, None] * scale[outputs] ** 2
        return mean, np.maximum(var, 0.0)

    def cov(self, X: Array) -> Array:
        out, kernel, (n, p) = self.prior.cov(X), self.prior.kernel, (len(self.Z), len(X))
        for r, outputs, around in self._around(X):
            found, at = nearby.given(kernel, around), around.at[:, :-1]
            rows = np.repeat(np.arange(p), at.shape[1])
            W = sparse.csr_matrix((found.b.ravel(), (rows, at.ravel())), shape=(p, n))
            used = np.unique(at)
            W, Z, D = W[:, used], self.Z[used], self.noises[r][used]
            # Cov(f_i - b_i'y, f_j - b_j'y)
            crossed = W @ tiles.cross(kernel, Z, X)
            twice = tiles.matmul(kernel, Z, Z, np.ascontiguousarray(W.T.toarray()))
            shared = crossed + crossed.T - W @ twice - (W.multiply(D) @ W.T).toarray()
            shared = 0.5 * (shared + shared.T)
            for k in outputs:
                out[:, :, k] -= shared * self.prior.scale[k] ** 2
        np.einsum("iik->ik", out)[...] = self.moments(X)[1]
        return out

    def refined(self) -> NearbyPosterior:
        return replace(self, m=REFINED * self.m)

    def in_gaps(self, size: int, most: int, rng: np.random.Generator) -> InGaps | None:
        n, scaled = len(self.Z), self.Z / self.lengths
        centres = rng.choice(n, int(IN_GAPS * n / size), replace=False)
        if len(centres) < FEWEST_GAPS:
            return None
        near = self.tree.query(scaled[centres], k=np.arange(1, size + 1), workers=count())[1]
        missing = np.unique(near)
        stay = np.setdiff1d(np.arange(n), missing)
        noises = tuple(noise[stay] for noise in self.noises)
        others = replace(self, Z=self.Z[stay], r=self.r[stay], noises=noises)
        rows = np.sort(rng.choice(missing, min(most, len(missing)), replace=False))
        return InGaps(rows, *others.moments(self.Z[rows]))

    def rescaled(self, c: float, prior: GaussianProcess) -> NearbyPosterior:
        return replace(self, prior=prior, noises=tuple(c * noise for noise in self.noises))

    def state(self, context: Context) -> ObjectState:
        told = {"kind": self.kind, "noise_of": list(self.noise_of), "neighbours": self.m}
        arrays = {"residual": self.r, "lengths": self.lengths, **numbered(self.noises, "noise.")}
        return ObjectState(told, {**context.own_rows(self.Z), **arrays})

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> NearbyPosterior:
        _, noise_of, m = entries(state.described, "posterior", "kind", "noise_of", "neighbours")
        of, m = tuple(typed_list(noise_of, int, "noise_of")), typed(m, int, "neighbours")
        Z, q, arrays = context.rows(state.arrays), context.q, state.arrays
        several = 1 + max(of, default=-1)
        if len(of) != q or set(of) != set(range(several)) or m < 1:
            raise StateError(f"its {q} functions use the noises {list(of)[:8]}, with {m} neighbours.")
        r, lengths = taken(arrays, "residual", (len(Z), q)), taken(arrays, "lengths", (context.d,))
        noises = tuple(taken(arrays, f"noise.{k}", (len(Z),)) for k in range(several))
        if not all(np.all(noise >= 0) for noise in noises) or not np.all(lengths > 0):
            raise StateError("its noises must not be negative, and its lengths must be positive.")
        with np.errstate(over="ignore"):
            if not np.all(np.isfinite(Z / lengths)):
                raise StateError("its rows are beyond all numbers in units of its lengths.")
        return cls(context.prior, Z, r, noises, of, lengths, m)

    def _moments(self, X: Array, prior: GaussianProcess, part: Kernel | None) -> tuple[Array, Array]:
        mean, var = prior.moments(X)
        for at in blocks_of(len(X), 24 * (self.m + 1)):
            for _, outputs, around in self._around(X[at]):
                found: Given = nearby.given(self.prior.kernel, around, part=part)
                mean[at][:, outputs] -= found.e * prior.scale[outputs]  # e = 0 - b'r_N
                var[at][:, outputs] = found.F[:, None] * prior.scale[outputs] ** 2
        return mean, np.maximum(var, 0.0)

    def _around(self, X: Array) -> list[tuple[int, list[int], Around]]:
        """The points with their neighbours, for each noise: its number, its outputs, and the points."""
        n, p = len(self.Z), len(X)
        m = min(MORE * self.m, n)
        near = self.tree.query(X / self.lengths, k=np.arange(1, m + 1), workers=count())[1]
        at: Places = np.concatenate([near, n + np.arange(p)[:, None]], axis=1).astype(np.int32)
        points = np.concatenate([self.Z, X])
        found = []
        for r, noise in enumerate(self.noises):
            outputs = users(self.noise_of, r)
            right = np.concatenate([self.r[:, outputs], np.zeros((p, len(outputs)))])
            found.append((r, outputs, Around(at, points, np.concatenate([noise, np.zeros(p)]), right)))
        return found
