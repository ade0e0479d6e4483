"""Kernels that are a scaled function of one smooth distance, by BLAS and NumPy in the thread that asks.

With points centred and divided by the lengthscale, c r^2 = c (|x|^2 + |z|^2 - 2 x'z) is one product of two
thin matrices, and the rest is a few passes over a strip that fits in cache: half the time of a compiled
program, with no other pool of threads beside those that are at work.

The product knows r^2 to rounding of |x|^2 + |z|^2, not of r^2. Kernels whose slope in r^2 is bounded (not
Matern-1/2, where 1e-16 would become 1e-8) have values wrong by as much; `taken` says no where that is more
than the caller forgives.

Gradient: with V_ij the weight of r2_ij, as in kernels/distance.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.arrays import Array
from gramian.kernels.base import Kernel
from gramian.kernels.profiles import Profile, Radial
from gramian.linalg.threads import each, one_blas_thread

STRIP = 2**16  # values at a time: half a megabyte stays in cache from one pass to the next


@dataclass(frozen=True, eq=False)
class RadialGram:
    """Such a kernel between two sets of points."""

    profile: Profile
    factors: tuple[Any, ...]  # from the outermost on
    lengthscale: Array
    X: Array  # (n, d), centred and divided by the lengthscale
    Z: Array  # (m, d)
    left: Array  # (n, d + 2) and
    right: Array  # (d + 2, m), whose product is u

    def cross(self, out: Array) -> Array:
        """K(X, Z) into a row-major array (n, m), of 32 bits or 64."""
        scale = out.dtype.type(_product(self.factors))

        def one(at: slice) -> None:
            room = out[at]
            k = self.profile.value(self._u(at, room))
            np.multiply(k, scale, out=room)

        self._over_strips(one)
        return out

    def pullback(self, W: Array, *, points: bool, inputs: bool = False) -> list[Array]:
        """Of `tiles.cross_pullback`: by Z with `points`, by X with `inputs`. W is used up."""
        m, d = self.Z.shape
        scale = _product(self.factors)
        dtype = W.dtype
        # V Z and V 1 in one go
        tall = np.concatenate([self.Z, np.ones((m, 1))], axis=1).astype(dtype, copy=False)
        long = np.ones((len(self.X), 1), dtype)
        if points:
            long = np.concatenate([self.X.astype(dtype, copy=False), long], axis=1)

        def one(at: slice) -> tuple[float, Array, Array]:
            V = W[at]
            k, slope = self.profile.both(self._u(at, np.empty_like(V)))
            total = float(np.vdot(V, k))
            V *= slope
            by_row, by_column = V @ tall, long[at].T @ V
            return total, by_row.astype(np.float64, copy=False), by_column.astype(np.float64, copy=False)

        totals, products, sums = zip(*self._over_strips(one), strict=True)
        total, product, columns = sum(totals), np.concatenate(products), sum(sums)
        by_row, by_column = product[:, -1], columns[-1]
        mixed = np.einsum("ij,ij->j", self.X, product[:, :-1])
        squares = by_row @ self.X**2 + by_column @ self.Z**2 - 2 * mixed  # (d,)
        weight = scale * self.profile.slope
        by_lengthscale = -2 * weight * squares / self.lengthscale
        if self.lengthscale.shape != (d,):
            by_lengthscale = np.sum(by_lengthscale).reshape(self.lengthscale.shape)
        found = [np.asarray(total * scale / own) for own in self.factors] + [by_lengthscale]
        if points:
            found.append(2 * weight * (self.Z * by_column[:, None] - columns[:-1].T) / self.lengthscale)
        if inputs:
            found.append(2 * weight * (self.X * by_row[:, None] - product[:, :-1]) / self.lengthscale)
        return found

    def _u(self, at: slice, room: Array) -> Array:
        """c r^2 of some rows: made in 64 bits, and handed over in those of `room`."""
        return np.matmul(self.left[at], self.right, out=room)

    def _over_strips(self, work: Callable[[slice], Any]) -> list[Any]:
        height = max(1, STRIP // max(1, len(self.Z)))
        with one_blas_thread():
            return list(each(work, [slice(start, start + height) for start in range(0, len(self.X), height)]))


def diagonal(kernel: Kernel, X: Array) -> Array | None:
    """k(x, x) of each row, if it is such a kernel."""
    form = _form(kernel)
    return None if form is None else np.full(len(X), _product(form.factors))


def diagonal_pullback(kernel: Kernel, w: Array) -> list[Array] | None:
    """sum_i w_i dk(x_i, x_i)/dtheta, if it is such a kernel."""
    form = _form(kernel)
    if form is None:
        return None
    total = float(np.sum(w)) * _product(form.factors)
    return [np.asarray(total / own) for own in form.factors] + [np.zeros(np.shape(form.lengthscale))]


def _form(kernel: Kernel) -> Radial | None:
    """In numbers; nothing is made of the kernels that have none."""
    return None if kernel.radial() is None else kernel.bare().radial()


def _product(factors: tuple[Any, ...]) -> float:
    return float(np.prod(factors)) if factors else 1.0


def taken(kernel: Kernel, X: Array, Z: Array, error: float) -> RadialGram | None:
    """The kernel between these points, if it is such a kernel and right to `error` of k(x, x)."""
    form = _form(kernel) if error and len(X) and len(Z) else None
    if form is None:
        return None
    profile, factors, lengthscale = form
    centre = np.mean(Z, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        X, Z = (X - centre) / lengthscale, (Z - centre) / lengthscale
        xx, zz = np.einsum("ij,ij->i", X, X), np.einsum("ij,ij->i", Z, Z)
    if not np.finfo(float).eps * (np.max(xx) + np.max(zz)) <= error:
        return None
    left, right = np.ones((len(X), X.shape[1] + 2)), np.ones((X.shape[1] + 2, len(Z)))
    left[:, :-2], left[:, -2] = -2 * profile.c * X, profile.c * xx
    right[:-2], right[-1] = Z.T, profile.c * zz
    return RadialGram(profile, factors, np.asarray(lengthscale), X, Z, left, right)
