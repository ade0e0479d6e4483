r"""Sums over the patches of images, by BLAS and NumPy in the thread that asks.

    k(x, u) = c sum_p w_p base(x[p], u),      k(x, x) = c sum_pq w_p w_q base(x[p], x[q])

for a base that is a function of one smooth distance (gram/radial.py). An image at a time: the distances of
its patches to all points are one thin product, the base one pass over it in cache, the sum over patches a
product with the weights. Nothing of images x patches x points is ever held; the way back makes the values
again, and all that the gradients need of them is one more thin product.

Equal patches are merged, which is exact: of the patches without a mark (all pixels as the first of the image)
one is kept, and has the weights of all. Of MNIST's 576 patches of 5 x 5 some 330 are left. Where a patch says
something else at another place, the place is two more columns of it, and none are equal.

Cost of an image with P' patches left and m points of D columns: P' m values of the base and 2 P' m D flops,
on the way back the values again and twice the flops; k(x, x): the same with P' for m. In 32 bits where the
caller works in those.

Source: van der Wilk, Rasmussen and Hensman 2017, equations 15 to 17; Dutordoir et al. 2020 (places).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.kernels.base import Kernel
from gramian.kernels.profiles import PatchSum
from gramian.linalg.threads import each, one_blas_thread

IMAGES = 16  # that a thread works on before it takes the next
_here = threading.local()


@dataclass(frozen=True, eq=False)
class PatchGram:
    """Such a kernel at some images; U are patches, centred and divided by the lengthscale."""

    form: PatchSum
    centre: Array  # (D,)
    start: NDArray[np.intp]  # (n + 1,): where the patches of an image begin
    owner: NDArray[np.intp]  # (n, P): which patch stands for each
    left: Array  # (N, D + 2): U, 1, c |U|^2 of the patches that are left
    shares: Array  # (N,): the weights of all that a patch stands for

    @property
    def level(self) -> float:
        inner = (factor for radial in self.form.radials for factor in radial.factors)
        return float(np.prod([*self.form.outer, *inner]))

    @property
    def lengthscale(self) -> Array:
        """(D,): of each column of a patch, and of its place."""
        return lengths_of(self.form, len(self.centre))

    def cross(self, Z: Array, out: Array) -> Array:
        """K(X, Z) into a row-major array (n, m)."""
        right, profile = self._right(self._points(Z)), self.form.base.profile
        shares = (self.level * self.shares).astype(self.left.dtype)

        def some(group: range) -> None:
            for i in group:
                at = self._at(i)
                out[i] = shares[at] @ profile.value(self.left[at] @ right)

        self._over_images(some)
        return out

    def pullback(self, Z: Array, W: Array, *, points: bool) -> list[Array]:
        """sum_ij W_ij dk(x_i, z_j), by the parameters, and by Z with `points`."""
        U, profile = self._points(Z), self.form.base.profile
        right, weighted = self._right(U), self._weighted()
        W = W.astype(self.left.dtype, copy=False)
        sums = np.empty((2, len(self.left)))  # of a patch: sum_j W_ij base, and sum_j W_ij slope

        def one(i: int) -> Array:
            at = self._at(i)
            k, slope = profile.both(self.left[at] @ right)
            sums[0, at] = k @ W[i]
            sums[1, at] = sums[0, at] if slope is k else slope @ W[i]
            return np.asarray(W[i] * (weighted[at].T @ slope))  # (D + 1, m)

        columns = self._summed(one, (weighted.shape[1], len(Z)))
        by_column, mixed = columns[-1], columns[:-1].T
        squares = (self.shares * sums[1]) @ self.left[:, :-2] ** 2 + by_column @ U**2
        squares -= 2 * np.einsum("ij,ij->j", U, mixed)
        found = self._by_parameters(sums[0], float(self.shares @ sums[0]), squares)
        if points:
            weight = 2 * self.level * profile.slope
            by_Z = np.zeros_like(Z)
            by_Z[:, : len(self.centre)] = weight * (U * by_column[:, None] - mixed) / self.lengthscale
            found.append(by_Z)
        return found

    def diagonal(self) -> Array:
        """k(x, x) of each image."""
        profile, shares = self.form.base.profile, self.shares.astype(self.left.dtype)
        found = np.empty(len(self.owner))

        def some(group: range) -> None:
            for i in group:
                at = self._at(i)
                k = profile.value(self.left[at] @ self._right(self.left[at, :-2]))
                found[i] = shares[at] @ (k @ shares[at])

        self._over_images(some)
        return self.level * found

    def diagonal_pullback(self, w: Array) -> list[Array]:
        """sum_i w_i dk(x_i, x_i), by the parameters."""
        profile, weighted = self.form.base.profile, self._weighted()
        sums = np.empty(len(self.left))

        def one(i: int) -> Array:
            at = self._at(i)
            U, own = self.left[at, :-2], weighted[at]
            k, slope = profile.both(self.left[at] @ self._right(U))
            product = slope @ own
            sums[at] = w[i] * (product[:, -1] if slope is k else k @ own[:, -1])
            # sum_pq V (u_p - u_q)^2, both halves of which are alike
            gap = np.einsum("pj,pj->j", own[:, :-1], product[:, -1:] * U - product[:, :-1])
            return np.asarray(2 * w[i] * gap)

        squares = self._summed(one, (weighted.shape[1] - 1,))
        return self._by_parameters(2 * sums, float(self.shares @ sums), squares)

    # Parts of these. ----------------------------------------------------------------------------------------

    def _by_parameters(self, by_share: Array, total: float, squares: Array) -> list[Array]:
        """From sums at level 1: by the shares of the patches left, of k, and of V r^2 a column."""
        form, level = self.form, self.level
        by_weight = level * np.sum(by_share[self.owner], axis=0) / self.owner.shape[1]
        shape = np.shape(form.weights)
        if shape != by_weight.shape:
            by_weight = np.sum(by_weight).reshape(shape)
        by_length = -2 * level * form.base.profile.slope * squares / self.lengthscale
        found = [*(np.asarray(total * level / own) for own in form.outer), by_weight]
        cut = len(squares) - (2 if form.place is not None else 0)
        for radial, own in zip(form.radials, (by_length[:cut], by_length[cut:]), strict=False):
            shape = np.shape(radial.lengthscale)
            found += [np.asarray(total * level / factor) for factor in radial.factors]
            found.append(own if shape == own.shape else np.sum(own).reshape(shape))
        return found

    def _at(self, i: int) -> slice:
        return slice(self.start[i], self.start[i + 1])

    def _points(self, Z: Array) -> Array:
        return np.asarray((Z[:, : len(self.centre)] - self.centre) / self.lengthscale)

    def _weighted(self) -> Array:
        """U and 1, times the shares: (N, D + 1)."""
        return np.asarray(self.left[:, :-1] * self.shares[:, None].astype(self.left.dtype))

    def _right(self, U: Array) -> Array:
        """(D + 2, m), whose product with `left` is c r^2."""
        c, right = self.form.base.profile.c, np.ones((U.shape[1] + 2, len(U)), self.left.dtype)
        np.multiply(U.T, -2 * c, out=right[:-2], casting="same_kind")
        right[-2] = c * np.einsum("ij,ij->i", U, U)
        return right

    def _over_images(self, work: Callable[[range], Any]) -> list[Any]:
        n = len(self.owner)
        with one_blas_thread():
            return list(each(work, [range(at, min(at + IMAGES, n)) for at in range(0, n, IMAGES)]))

    def _summed(self, work: Callable[[int], Array], shape: tuple[int, ...]) -> Array:
        """The sum over images, in their order, in 64 bits."""

        def of_group(group: range) -> Array:
            part = np.zeros(shape)
            for i in group:
                part += work(i)
            return part

        return reduce(np.add, self._over_images(of_group))


def taken(kernel: Kernel, X: Array, error: float, *, low: bool = False) -> PatchGram | None:
    """The kernel at these images, if it is such a sum and right to `error` of k(x, x); with `low` whatever
    numbers of 32 bits know."""
    form = kernel.patch_sum() if error and len(X) else None
    if form is None or X.shape[1] != form.columns:
        return None
    known = getattr(_here, "known", None)
    if known is None:
        return _made(kernel, X, error, low)
    key = id(kernel), id(X), 0.0 if low else error
    if key not in known:
        # with what it is of, so that no other has its id
        known[key] = kernel, X, _made(kernel, X, error, low)
    made: PatchGram | None = known[key][2]
    return made


@contextmanager
def remembered() -> Iterator[None]:
    """Within it this thread keeps the patches of rows, which must not change meanwhile. A batch is asked four
    times, for values and gradients, with points and of itself; to cut it takes a twentieth of that."""
    before, _here.known = getattr(_here, "known", None), {}
    try:
        yield
    finally:
        _here.known = before


def _made(kernel: Kernel, X: Array, error: float, low: bool) -> PatchGram | None:
    form, dtype = kernel.bare().patch_sum(), np.float32 if low else np.float64
    assert form is not None
    table, start, owner = _merged(X.astype(dtype, copy=False), form)
    centre, c = np.asarray(np.mean(table, axis=0, dtype=np.float64)), form.base.profile.c
    left = np.ones((len(table), table.shape[1] + 2), dtype)
    U = left[:, :-2]
    with np.errstate(over="ignore", invalid="ignore"):
        np.subtract(table, centre.astype(dtype), out=U)
        U /= lengths_of(form, U.shape[1]).astype(dtype)
        left[:, -1] = squares = np.einsum("ij,ij->i", U, U)
    if not low and not 2 * np.finfo(float).eps * float(np.max(squares)) <= error:
        return None
    left[:, -1] *= c
    weights = np.broadcast_to(np.asarray(form.weights) / owner.shape[1], owner.shape)
    shares = np.asarray(np.bincount(owner.ravel(), weights.ravel(), len(table)), np.float64)
    return PatchGram(form, centre, start, owner, left, shares)


def lengths_of(form: PatchSum, columns: int) -> Array:
    """(columns,): the lengthscale of each column of a patch, and of its place."""
    if form.place is None:
        return np.broadcast_to(np.asarray(form.base.lengthscale), (columns,))
    own = np.broadcast_to(np.asarray(form.base.lengthscale), (columns - 2,))
    return np.concatenate([own, np.broadcast_to(np.asarray(form.place.lengthscale), (2,))])


def _merged(X: Array, form: PatchSum) -> tuple[Array, NDArray[np.intp], NDArray[np.intp]]:
    """The patches (N, D) of images X (n, columns) that are left where those without a mark are one; where
    those of an image begin (n + 1,), and which stands for each (n, P). With places all are left."""
    (rows, columns), (height, width) = form.patch, form.image
    n, across = len(X), width - columns + 1
    images = X.reshape(n, height, width, -1)
    marks = np.any(images != images[:, :1, :1], axis=3)
    # along one side, and then along the other
    lines = np.any(sliding_window_view(marks, rows, axis=1), axis=-1)
    marked = np.any(sliding_window_view(lines, columns, axis=2), axis=-1).reshape(n, -1)
    if form.place is not None:
        marked = np.ones_like(marked)
    every, first = np.arange(n), np.argmin(marked, axis=1)  # the first without a mark, if there is one
    kept = marked.copy()
    kept[every, first] = True
    index = np.cumsum(kept.ravel()).reshape(kept.shape) - 1
    owner = np.where(marked, index, index[every, first][:, None])
    start = np.concatenate([[0], np.cumsum(np.sum(kept, axis=1))])
    i, p = np.nonzero(kept)
    channels = images.shape[3]
    corner = (i * height + p // across) * width + p % across  # the first pixel, among those of all images
    inside = np.arange(rows)[:, None] * width + np.arange(columns)
    within = (inside[..., None] * channels + np.arange(channels)).ravel()
    table = np.ravel(X)[(corner * channels)[:, None] + within]
    if form.place is not None:
        table = np.hstack([table, np.stack(np.divmod(p, across), axis=1).astype(X.dtype)])
    return table, start, owner
