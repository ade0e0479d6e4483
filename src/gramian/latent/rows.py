r"""What a fitted model says of single rows: where a row lies, how probable it is, and what its cells are.

With the functions known up to q(u_d) (`bound.FunctionWeights`), f_d has E f_d = a_d' psi1 and E f_d^2 =
psi0 + tr(H_d psi2), H_d = a_d a_d' - less_g, at a place x ~ N(mean, diag(var)). A row y with the cells S
adds to the bound

    sum_{d in S} [-1/2 log(2 pi noise_d) - (y_d^2 - 2 y_d E f_d + E f_d^2) / (2 noise_d)] - KL(q(x) || p(x)),

a function of its own q(x) alone: v' psi1 - 1/2 (c psi0 + tr(T psi2)) + constant with v = sum_d y_d a_d /
noise_d, T = sum_d H_d / noise_d, c = sum_d 1 / noise_d. Its largest value is what `score` gives. It may
have several hills (the same pressure in two kinds of flow), so each row climbs from the training places at
which it is most probable, which are compared by two matrix products.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array, Indices
from gramian.errors import InputError
from gramian.fitting.rowwise import maximise_rows
from gramian.forks import compiled
from gramian.kernels.base import Kernel
from gramian.latent.bound import FunctionWeights, Places
from gramian.latent.search import LEAST_VAR, MOST_VAR
from gramian.linalg.threads import each

ROWS = 64  # of a block
STARTS = 6  # hills that a row may climb
GLANCE, BEHIND = 15, 10.0  # iterations after which a hill so many nats below another is given up
SAME = 0.1  # of the spread of all places: how far apart two hills are, at least
CANDIDATES = 1000  # training places among which these are looked for
APART = 0.5  # of the spread of places: how far starts of a row are from each other, at least


class RowTerms(NamedTuple):
    """What rows ask of the functions: v (r, m), T as pairs (r, P), c (r,), and the constant (r,)."""

    linear: Array
    square: Array
    diagonal: Array
    constant: Array


def _statistics(points: bool, kernel: Kernel, mean: Any, var: Any, Z: Any) -> Any:
    if not points:
        return kernel.expectations(mean, var, Z)[:3]
    phi, (i, j) = kernel.cross(mean, Z), np.tril_indices(Z.shape[0])
    return kernel.diagonal(mean), phi, phi[:, i] * phi[:, j]


@compiled(static=(0,))
def statistics(points: bool, kernel: Kernel, mean: Any, var: Any, Z: Any) -> Any:
    return _statistics(points, kernel, mean, var, Z)


@compiled(static=(0,))
def fits(points: bool, kernel: Kernel, x: Any, Z: Any, linear: Any, square: Any, diagonal: Any) -> Any:
    """What rows gain at x = (mean, log var), and its slope."""

    def total(x: Any) -> Any:
        if points:
            mean, var = x, jnp.zeros_like(x)
            less = 0.5 * jnp.sum(mean**2, axis=1) + 0.5 * x.shape[1] * jnp.log(2 * jnp.pi)
        else:
            mean, log_var = jnp.split(x, 2, axis=1)
            var = jnp.exp(log_var)
            less = 0.5 * jnp.sum(mean**2 + var - log_var - 1, axis=1)
        psi0, psi1, psi2 = _statistics(points, kernel, mean, var, Z)
        gains = jnp.sum(linear * psi1, axis=1)
        gains -= 0.5 * (diagonal * psi0 + jnp.sum(square * psi2, axis=1)) + less
        return jnp.sum(gains), gains

    slope, gains = jax.grad(total, has_aux=True)(x)
    return gains, slope


class Hills(NamedTuple):
    """Places of rows, several for each, the best first."""

    mean: Array  # (r, s, Q)
    var: Array
    share: Array  # (r, s): the weight of each, 0 for one that was given up
    score: Array  # (r,): the bound on log p of the row, at the best


@dataclass(frozen=True)
class RowModel:
    """The functions of a fitted model, for rows whose cells are scaled as its own were."""

    kernel: Kernel  # bare
    noise: Array  # (D,)
    Z: Array
    weights: FunctionWeights
    group: Indices  # (D,)
    known: Places  # of training rows

    @property
    def points(self) -> bool:
        return self.known.var is None

    @cached_property
    def squares(self) -> Array:
        """H_d as pairs, (D, P): those off the diagonal count twice."""
        i, j = np.tril_indices(len(self.Z))
        a = self.weights.mean
        H = a[i] * a[j] - self.weights.less[:, i, j][self.group].T  # (P, D)
        return np.ascontiguousarray((H * np.where(i == j, 1.0, 2.0)[:, None]).T)

    def moments(self, places: Places) -> tuple[Array, Array]:
        """Mean and variance of each f_d (n, D) at these places."""
        means, variances = [], []
        for psi0, psi1, psi2 in self._statistics(places):
            mean = psi1 @ self.weights.mean
            means.append(mean)
            variances.append(np.maximum(psi0[:, None] + psi2 @ self.squares.T - mean**2, 0.0))
        return np.concatenate(means), np.concatenate(variances)

    def averaged(self, hills: Hills) -> tuple[Array, Array]:
        """Mean and variance of each f_d over all hills of each row."""
        total, square = np.zeros((2, len(hills.share), len(self.group)))
        for k in range(hills.share.shape[1]):
            share = hills.share[:, k]
            rows = np.flatnonzero(share > 0)
            if len(rows):
                var = None if self.points else hills.var[rows, k]
                mean, own = self.moments(Places(hills.mean[rows, k], var))
                total[rows] += share[rows, None] * mean
                square[rows] += share[rows, None] * (own + mean**2)
        return total, np.maximum(square - total**2, 0.0)

    def asked(self, Y: Array) -> RowTerms:
        """Of rows (r, D), nan where a cell is missing."""
        seen = ~np.isnan(Y)
        precision = seen / self.noise
        filled = np.where(seen, Y, 0.0)
        constant = -0.5 * np.sum(seen * np.log(2 * np.pi * self.noise) + filled**2 * precision, axis=1)
        linear = (filled * precision) @ self.weights.mean.T
        return RowTerms(linear, precision @ self.squares, np.sum(precision, axis=1), constant)

    def place(self, Y: Array) -> Hills:
        """Where rows lie: the hills of each, the best first, with their shares."""
        found = [self._place(Y, start) for start in range(0, len(Y), CANDIDATES)]
        return Hills(*(np.concatenate(part) for part in zip(*found, strict=True)))

    def polished(self, Y: Array, places: Places, iterations: int = 300) -> Places:
        """Places of these rows once more, from where they are."""
        found = []
        for start in range(0, len(Y), CANDIDATES):
            rows = slice(start, start + CANDIDATES)
            asked = self.asked(Y[rows])
            first = _vector(places.take(rows))
            found.append(maximise_rows(partial(self._fits, asked), first, iterations)[0])
        return self._read(np.concatenate(found))

    def nearest(self, Y: Array, iterations: int) -> Places:
        """Places of rows from the known place at which each is most probable, with so many steps."""
        first = []
        for start in range(0, len(Y), CANDIDATES):
            asked = self.asked(Y[start : start + CANDIDATES])
            first.append(self._candidates.x[self._starts(asked, 1)[:, 0]])
        places = self._read(np.concatenate(first))
        return self.polished(Y, places, iterations) if iterations else places

    def _place(self, Y: Array, start: int) -> Hills:
        asked = self.asked(Y[start : start + CANDIDATES])
        starts = self._starts(asked)  # (r, s)
        r, s = starts.shape
        rows = np.repeat(np.arange(r), s)
        x, value = maximise_rows(
            lambda x, at: self._fits(asked, x, rows[at]), self._candidates.x[starts.ravel()], GLANCE
        )
        if not np.all(np.isfinite(value)):
            row = start + int(rows[np.argmin(np.isfinite(value))])
            raise InputError(f"Places of row {row} of X leave the range of numbers. Check its units.")
        # those that are far behind are left where they are
        best = np.max(value.reshape(r, s), axis=1)[rows]
        left = np.flatnonzero(value >= best - BEHIND)
        x[left], value[left] = maximise_rows(lambda x, at: self._fits(asked, x, rows[left[at]]), x[left])
        value = np.where(value >= best - BEHIND, value, -np.inf)
        order = np.argsort(-value.reshape(r, s), axis=1, kind="stable")
        at = np.arange(r)[:, None]
        x, value = x.reshape(r, s, -1)[at, order], value.reshape(r, s)[at, order]
        places = self._read(x)
        # several starts may have ended on one hill, which counts once
        for k in range(1, s):
            for other in range(k):
                gap = np.sum((places.mean[:, k] - places.mean[:, other]) ** 2, axis=1)
                value[gap < SAME**2, k] = -np.inf
        share = np.exp(value - value[:, :1])
        var = np.zeros_like(places.mean) if places.var is None else places.var
        return Hills(places.mean, var, share / np.sum(share, axis=1)[:, None], value[:, 0] + asked.constant)

    def _read(self, x: Array) -> Places:
        """Places from vectors (..., p)."""
        if self.points:
            return Places(x, None)
        mean, log_var = np.split(x, 2, axis=-1)
        return Places(mean, np.clip(np.exp(log_var), LEAST_VAR, MOST_VAR))

    def _starts(self, asked: RowTerms, count: int = STARTS) -> Array:
        """The training places at which rows are most probable, some way from each other."""
        psi0, psi1, psi2 = self._candidates.statistics
        gains = asked.linear @ psi1.T - 0.5 * (asked.diagonal[:, None] * psi0 + asked.square @ psi2.T)
        gains -= self._candidates.less
        near, chosen = self._candidates.near, []
        for _ in range(min(count, len(psi0))):
            best = np.argmax(gains, axis=1)
            chosen.append(best)
            gains[near[best]] = -np.inf  # (r, candidates)
            gains[np.arange(len(best)), best] = -np.inf
        return np.stack(chosen, axis=1)

    @cached_property
    def _candidates(self) -> _Candidates:
        n = len(self.known.mean)
        at = np.arange(n) if n <= CANDIDATES else np.linspace(0, n - 1, CANDIDATES).astype(int)
        mean = self.known.mean[at]
        var = None if self.known.var is None else self.known.var[at]
        parts = list(zip(*self._statistics(Places(mean, var)), strict=True))
        psi = tuple(np.concatenate(part) for part in parts)
        less = 0.5 * np.sum(mean**2, axis=1)
        if var is not None:
            less += 0.5 * np.sum(var - np.log(var) - 1, axis=1)
        # alike as the functions see them: by the kernel's values at Z
        unit = psi[1] / np.maximum(np.linalg.norm(psi[1], axis=1), 1e-300)[:, None]
        apart = 1 - unit @ unit.T
        return _Candidates(_vector(Places(mean, var)), psi, less, apart < APART * np.median(apart))

    def _statistics(self, places: Places) -> Any:
        """Blocks of psi0, psi1 and psi2."""
        mean, var = places.mean, places.var
        points = var is None
        var = np.zeros_like(mean) if var is None else var

        def block(start: int) -> Any:
            at = slice(start, start + ROWS)
            rows = len(mean[at])
            with jax.enable_x64(True):
                found = statistics(points, self.kernel, _full(mean[at]), _full(var[at]), self.Z)
                return tuple(np.asarray(part)[:rows] for part in found)

        return each(block, range(0, len(mean), ROWS))

    def _fits(self, asked: RowTerms, x: Array, rows: Indices) -> tuple[Array, Array]:
        def block(start: int) -> Any:
            at = slice(start, start + ROWS)
            own = rows[at]
            given = (x[at], asked.linear[own], asked.square[own], asked.diagonal[own])
            first, *rest = map(_full, given)
            with jax.enable_x64(True):
                found = fits(self.points, self.kernel, first, self.Z, *rest)
                return tuple(np.asarray(part)[: len(own)] for part in found)

        gains, slopes = zip(*each(block, range(0, len(x), ROWS)), strict=True)
        return np.concatenate(gains), np.concatenate(slopes)


class _Candidates(NamedTuple):
    """Training places from which rows may start."""

    x: Array  # (c, p)
    statistics: Any
    less: Array
    near: Array  # (c, c)


def _vector(places: Places) -> Array:
    if places.var is None:
        return places.mean
    return np.concatenate([places.mean, np.log(places.var)], axis=-1)


def _full(block: Array) -> Array:
    """Padded to a whole block."""
    more = ROWS - len(block)
    return block if not more else np.concatenate([block, np.repeat(block[:1], more, axis=0)])
