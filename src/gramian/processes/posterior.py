"""The posterior of every engine:

    mean = m(x) + s k(x, Z) alpha,      var = s^2 (k(x, x) - |R k(Z, x)|^2)

with Z = X, R = L^-1, L L' = K + D for exact inference. Of many rows L is kept instead of R, and R k(Z, x) is
a triangular solve: L^-1 would take as long as L.

Cost of m points from n rows: m n kernel values; m n^2 flops for variances (a triangular matrix product: 1.3
times faster than a triangular solve here). Memory: R, and one block of rows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.linalg import blas

from gramian.arrays import Array
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.linalg import memory, panels
from gramian.linalg.blas import block_of, multiply_triangle
from gramian.linalg.edits import Growing, append_to_factor, append_to_inverse, grown, without
from gramian.linalg.factor import logdet
from gramian.linalg.state import ObjectState, entries, numbered, roots, taken, typed
from gramian.linalg.threads import for_each, one_blas_thread
from gramian.processes.base import Edit, Process, blocks_of, users
from gramian.processes.prior import GaussianProcess
from gramian.processes.state import Context
from gramian.solvers.cholesky import CholeskyFactor

# of n rows one in so many may go: 6 n^2 flops each, at memory's speed, are 450 / n of a new factor
ONE_OF = 450
FEW = 2**16  # values of K: up to so many SciPy's wrapper is quicker; it holds the GIL


@dataclass(frozen=True, eq=False)
class DualPosterior(Process):
    """A posterior as a function of k(x, Z)."""

    prior: GaussianProcess
    Z: Array  # (n, d)
    alpha: Array  # (n, q)

    direct: ClassVar[bool] = False  # whether a block of points takes one thread

    @abstractmethod
    def _explained(self, K: Array) -> Iterator[tuple[list[int], Array, Array]]:
        """Outputs that share their noise, with V and B, V'B being what the data explain; from K = k(x, Z)
        (b, n), which may be overwritten."""

    @abstractmethod
    def _slices(self, n: int, columns: int) -> Sequence[slice]:
        """Blocks of n points, each with as many columns of `_explained`."""

    @property
    def dual(self) -> Array:
        return self.alpha

    def mean(self, X: Array) -> Array:
        out = self.prior.mean(X)
        for at in blocks_of(len(X), 8 * X.shape[1]):
            out[at] += tiles.matmul(self.prior.kernel, X[at], self.Z, self.alpha) * self.prior.scale
        return out

    def moments(self, X: Array) -> tuple[Array, Array]:
        mean, var = self.prior.moments(X)
        blocks, rooms = self._slices(len(X), 1), list[Array]()  # arrays that are used again, one a thread

        def one(at: slice) -> None:
            try:
                room = rooms.pop()
            except IndexError:
                room = np.empty((blocks[0].stop, len(self.Z)))
            K = tiles.cross(self.prior.kernel, X[at], self.Z, room[: at.stop - at.start])
            mean[at] += (K @ self.alpha) * self.prior.scale
            for outputs, V, B in self._explained(K):
                var[at, outputs] -= np.einsum("ij,ij->j", V, B)[:, None] * self.prior.scale[outputs] ** 2
            rooms.append(room)

        if self.direct and len(blocks) > 1:
            with one_blas_thread():
                for_each(one, blocks)
        else:
            for at in blocks:
                one(at)
        return mean, np.maximum(var, 0.0)  # rounding may leave -1e-17 where the data leave nothing open

    def cov(self, X: Array) -> Array:
        out = self.prior.cov(X)
        K = tiles.cross(self.prior.kernel, X, self.Z)
        for outputs, V, B in self._explained(K):
            shared = V.T @ B
            for k in outputs:
                out[:, :, k] -= 0.5 * (shared + shared.T) * self.prior.scale[k] ** 2
        np.einsum("iik->ik", out)[...] = self.moments(X)[1]
        return out

    def components(self, X: Array, terms: Sequence[Kernel]) -> list[tuple[Array, Array]]:
        return [replace(self, prior=self.prior.part(term)).moments(X) for term in terms]

    def gradient(self, X: Array) -> tuple[Array, Array]:
        n, d = X.shape
        mean, var = self.prior.gradient(X)
        for at in self._slices(n, d):
            G = tiles.gradients(self.prior.kernel, X[at], self.Z)  # (b, n, d)
            mean[at] += np.einsum("bnd,nq->bdq", G, self.alpha) * self.prior.scale
            flat = np.ascontiguousarray(np.swapaxes(G, 1, 2)).reshape(-1, len(self.Z))  # (b d, n)
            for outputs, V, B in self._explained(flat):
                explained = np.einsum("ij,ij->j", V, B).reshape(-1, d, 1)
                var[at, :, outputs] -= explained * self.prior.scale[outputs] ** 2
        return mean, np.maximum(var, 0.0)

    def slopes(self, X: Array) -> tuple[Array, Array, Array, Array]:
        """What the data explain is V'B, V and B being linear in k(x, Z) and V'B symmetric: its gradient is
        2 (dV)'B."""
        (n, d), kernel, scale = X.shape, self.prior.kernel, self.prior.scale
        mean, var = self.prior.moments(X)
        by_mean = self.prior.gradient(X)[0]
        own = np.stack([2 * tiles.gradients(kernel, X[[i]], X[[i]])[0, 0] for i in range(n)])
        by_var = own[:, :, None] * scale**2
        for at in self._slices(n, d + 1):
            b = at.stop - at.start
            K, G = tiles.cross(kernel, X[at], self.Z), tiles.gradients(kernel, X[at], self.Z)
            mean[at] += (K @ self.alpha) * scale
            by_mean[at] += np.einsum("bnd,nq->bdq", G, self.alpha) * scale
            flat = np.ascontiguousarray(np.swapaxes(G, 1, 2)).reshape(-1, len(self.Z))  # (b d, n)
            for outputs, V, B in self._explained(np.concatenate([K, flat])):
                square = scale[outputs] ** 2
                var[at, outputs] -= np.einsum("ij,ij->j", V[:, :b], B[:, :b])[:, None] * square
                slope = np.einsum("ibd,ib->bd", V[:, b:].reshape(-1, b, d), B[:, :b])
                by_var[at][:, :, outputs] -= 2 * slope[:, :, None] * square
        return mean, np.maximum(var, 0.0), by_mean, by_var


@dataclass(frozen=True, eq=False)
class Posterior(DualPosterior):
    """A conditioned Gaussian process."""

    kind: ClassVar[str] = "exact"
    direct = True

    # each (n, n), in the lower triangle of a Fortran-ordered array: R, or L where `inverted` is False
    roots: tuple[Array, ...]
    root_of: tuple[int, ...]  # for each output, which root
    inverted: bool = True
    stores: tuple[Growing | None, ...] = ()  # what the roots lie in, where rows have come or gone

    def rescaled(self, c: float, prior: GaussianProcess) -> Posterior:
        for root in self.roots:
            root *= c ** (-0.5 if self.inverted else 0.5)
        return replace(self, prior=prior, alpha=self.alpha / c)

    def precision(self) -> Array:
        if self.inverted:
            diagonals = [np.einsum("ij,ij->j", root, root) for root in self.roots]
        else:
            diagonals = [CholeskyFactor(L).inverse_diagonal() for L in self.roots]
        return np.stack([diagonals[r] for r in self.root_of], axis=1)

    def edited(self, edit: Edit) -> Posterior | None:
        n, k = len(self.Z), len(edit.X)
        if n - len(edit.kept) > max(1, n // ONE_OF):
            return None  # a new factor is there sooner
        roots, stores, Z = list(self.roots), list(self.stores or [None] * len(self.roots)), self.Z
        alpha: Array | None = self.alpha
        if len(edit.kept) < n:
            gone = np.setdiff1d(np.arange(n), edit.kept)
            stores = [without(root, gone, self.inverted) for root in roots]
            roots = [store.root(len(edit.kept)) for store in stores if store is not None]
            Z, alpha, n = Z[edit.kept], None, len(edit.kept)
        if k:
            B, C = tiles.strip(self.prior.kernel, edit.X, Z).T, tiles.cross(self.prior.kernel, edit.X, edit.X)
            added = None if alpha is None or not self.inverted else np.pad(alpha, [(0, k), (0, 0)])
            for r, root in enumerate(roots):
                own = users(self.root_of, r)
                stores[r] = store = grown(root, stores[r], k)
                corner = C + np.diag(edit.D[:, own[0]])
                try:
                    if not self.inverted:
                        append_to_factor(store, n, B, corner)
                    else:
                        new = append_to_inverse(store, n, B, corner)
                        if added is not None:
                            added[:, own] += new.T @ (new @ edit.residual[:, own])
                except np.linalg.LinAlgError:
                    return None  # which may add jitter
                roots[r] = store.root(n + k)
            alpha = added
        made = replace(self, Z=edit.rows, roots=tuple(roots), stores=tuple(stores))
        return replace(made, alpha=made.solved(edit.residual) if alpha is None else alpha)

    def solved(self, residual: Array) -> Array:
        """A^-1 r of each output, (n, q)."""
        alpha = np.empty_like(residual)
        for r, root in enumerate(self.roots):
            own = users(self.root_of, r)
            x = np.asfortranarray(residual[:, own])
            if self.inverted:
                multiply_triangle(block_of(root, only_read=True), block_of(x))
                multiply_triangle(block_of(root, only_read=True), block_of(x), transpose=True)
            else:
                panels.solve(root, x)
            alpha[:, own] = x
        return alpha

    def logdet(self, output: int) -> float:
        """log det A of an output."""
        value = logdet(self.roots[self.root_of[output]])
        return -value if self.inverted else value

    def state(self, context: Context) -> ObjectState:
        told = {"kind": self.kind, "root_of": list(self.root_of), "inverted": self.inverted}
        return ObjectState(told, {**context.own_rows(self.Z), "alpha": self.alpha, **numbered(self.roots)})

    @classmethod
    def from_state(cls, state: ObjectState, context: Context) -> Posterior:
        _, root_of, inverted = entries(state.described, "posterior", "kind", "root_of", "inverted")
        Z, q, arrays = context.rows(state.arrays), context.q, state.arrays
        alpha, inverted = taken(arrays, "alpha", (len(Z), q)), typed(inverted, bool, "inverted")
        return cls(context.prior, Z, alpha, *roots(arrays, len(Z), root_of, q), inverted)

    def _slices(self, n: int, columns: int) -> Sequence[slice]:
        return blocks_of(n, 8 * columns * len(self.Z), memory.BLOCK_BYTES // 8)  # several at a time

    def _explained(self, K: Array) -> Iterator[tuple[list[int], Array, Array]]:
        """R K', twice, for each root; K' is Fortran-ordered as BLAS likes it. The last overwrites K."""
        for r, root in enumerate(self.roots):
            V = K.T if r == len(self.roots) - 1 else K.T.copy(order="F")
            if self.inverted and V.size <= FEW and root.flags.f_contiguous:
                V = blas.dtrmm(1.0, root, V, lower=1, overwrite_b=1)
            elif self.inverted:
                multiply_triangle(block_of(root, only_read=True), block_of(V))
            else:
                CholeskyFactor(root).divide_in_place(V)
            yield users(self.root_of, r), V, V
