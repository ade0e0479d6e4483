"""Passes over the rows, for inference with features: chunks of rows, a thread each, and sums over them in one
fixed order.

A chunk has twice as many rows as features (in whole tiles), so that adding its sums up costs little beside
making them. A thread makes the features of a chunk and all products with them, with BLAS on that one thread:
threads that share a product wait for each other. Beyond `SHARED_UP_TO` features BLAS shares each chunk out,
because the sums of several would take too much memory.

The first pass makes `Sums`, the second `Slopes`; the formulas are in `inference/lowrank.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramian.features.base import FeatureMap
from gramian.gram import tiles
from gramian.inference.base import Data, Model, Share, mean_block, mean_gradient, noise_gradient, noise_groups
from gramian.linalg.blas import block_of, syrk
from gramian.linalg.products import times, transposed_times
from gramian.linalg.threads import THREADS, each, threads_for

Array = NDArray[np.float64]
T_ = TypeVar("T_")
R_ = TypeVar("R_")
Kind = Literal["dtc", "vfe", "fitc"]

SHARED_UP_TO = 2048  # features
KEEP_BYTES = 512 * 2**20  # of features that are kept from the first pass to the second, instead of made again
NOISE_FLOOR = 1e-14  # times n, of the mean k(x, x)
FORGIVEN = 1e-5  # the error of sum_i (k_i - q_i) / D_i, in the evidence


class Rows(NamedTuple):
    """Some of the data."""

    at: slice  # where they lie
    X: Array  # (b, d)
    R: Array  # (b, q): residuals in units of the scale
    prior_var: Array  # (b,): k(x, x), where something of it may lie outside the features


class Block(NamedTuple):
    """Some rows, ready for sums."""

    rows: Rows
    Phi: Array  # (b, m)
    outside: Array  # (b,): k(x, x) - |phi|^2, not negative
    D: list[Array]  # one (b,) a group
    raised: bool  # whether the noise of a row was too low to be told from zero


@dataclass
class Sums:
    """What some rows say about the weights of a group of outputs."""

    outputs: list[int]
    S: Array  # (m, m), the lower triangle, zeros above; Fortran-ordered
    b: Array  # (m, q)
    c: Array  # (q,)
    logdet_D: float
    slack: float  # sum_i (k_i - q_i) / D_i
    level: float | None  # the noise of all rows, where it is one
    raised: bool

    @classmethod
    def of(cls, block: Block, D: Array, outputs: list[int]) -> Sums:
        m = block.Phi.shape[1]
        level = float(D[0]) if np.all(D[0] == D) else None
        # One level of noise, which is the rule, is a factor: no second copy of Phi.
        Phi = block.Phi if level is not None else block.Phi / np.sqrt(D)[:, None]
        S = np.zeros((m, m), order="F")
        syrk(1.0 if level is None else 1 / level, block_of(Phi.T), block_of(S))
        R = block.rows.R[:, outputs]
        b, c = transposed_times(block.Phi, R / D[:, None]), np.einsum("ij,ij->j", R, R / D[:, None])
        return cls(
            outputs, S, b, c, float(np.sum(np.log(D))), float(np.sum(block.outside / D)), level, block.raised
        )

    def add(self, other: Sums) -> None:
        self.S += other.S
        self.b += other.b
        self.c += other.c
        self.logdet_D += other.logdet_D
        self.slack += other.slack
        self.level = self.level if self.level == other.level else None
        self.raised = self.raised or other.raised


@dataclass
class Slopes:
    """The part of some rows in the gradient."""

    by_kernel: list[Array]  # through the features
    by_noise: float
    X: Array  # (b, d)
    by_prior_var: Array  # (b,)
    by_residual: Array  # (b, q)
    T: Array | None = None  # of G' Phi the part that has no closed form


class Gathered:
    """The sum of such parts, in the model's parameters. What goes through single rows waits until there are
    many."""

    def __init__(self, model: Model, objective: Kind) -> None:
        self.model, self.objective = model, objective
        self.by_kernel: list[Array] = []
        self.by_mean = [np.zeros(p.value.shape) for p in model.mean.parameters().values()]
        self.by_noise = 0.0
        self.T: Array | None = None
        self._waiting: list[Slopes] = []

    def add(self, part: Slopes) -> None:
        self.by_kernel = _added(self.by_kernel, part.by_kernel)
        self.by_noise += part.by_noise
        if part.T is not None:
            self.T = part.T if self.T is None else self.T + part.T
        self._waiting.append(part)
        if sum(len(own.X) for own in self._waiting) >= tiles.LONG_BLOCK:
            self.flush()

    def flush(self) -> None:
        if not self._waiting:
            return
        X, by_prior_var, by_residual = (
            np.concatenate(v)
            for v in zip(*((p.X, p.by_prior_var, p.by_residual) for p in self._waiting), strict=True)
        )
        self._waiting = []
        if self.objective != "dtc":
            own = tiles.diagonal_pullback(self.model.kernel, X, by_prior_var)
            self.by_kernel = [*_added(self.by_kernel[: len(own)], own), *self.by_kernel[len(own) :]]
        self.by_mean = _added(self.by_mean, mean_gradient(self.model, X, by_residual))


def _added(total: list[Array], part: list[Array]) -> list[Array]:
    return [one + more for one, more in zip(total, part, strict=True)] if total else part


class Weights(NamedTuple):
    """The posterior of the weights of a group, and its part of the evidence."""

    w: Array  # (m, q)
    root: Array  # L_B^-1, lower triangular, Fortran-ordered
    value: float


class Passes:
    """The rows of a fit at given parameters."""

    def __init__(self, features: FeatureMap, model: Model, data: Data, objective: Kind) -> None:
        self.features, self.model, self.data, self.objective = features, model, data, objective
        self.groups = noise_groups(model, data)
        prior_var = typical_variance(model, data)
        self.floor = NOISE_FLOOR * len(data.X) * prior_var
        least = min(max(group.level, self.floor) for group in self.groups)
        self.tolerance = FORGIVEN * least / (len(data.X) * prior_var) if prior_var > 0 else 0.0
        self.kept: list[Block] = []
        features.ready()

    def rows(self) -> Iterator[Rows]:
        """All rows in chunks. What is asked of single rows is made for many at once: a call costs more than
        they do."""
        n, size = len(self.data.X), chunk_rows(self.features.n_features)
        for start in range(0, n, max(1, tiles.LONG_BLOCK // size) * size):
            at = slice(start, min(start + max(1, tiles.LONG_BLOCK // size) * size, n))
            X, Y = np.asarray(self.data.X[at]), np.asarray(self.data.Y[at])
            R = (Y - mean_block(self.model.mean, X, Y.shape[1])) / self.data.scale
            prior_var = np.zeros(0) if self.features.spans_prior else tiles.diagonal(self.model.kernel, X)
            for first in range(0, len(X), size):
                part = slice(first, first + size)
                yield Rows(
                    slice(start + first, min(start + first + size, n)), X[part], R[part], prior_var[part]
                )

    def block(self, rows: Rows) -> Block:
        Phi = self.features.block(rows.X, self.tolerance)
        outside = (
            np.zeros(len(Phi))
            if self.features.spans_prior
            else np.maximum(rows.prior_var - np.einsum("ij,ij->i", Phi, Phi), 0.0)
        )
        noise = [group.noise(rows.at, len(self.data.X)) for group in self.groups]
        D = [np.maximum(own, self.floor) + (outside if self.objective == "fitc" else 0.0) for own in noise]
        return Block(rows, Phi, outside, D, any(bool(np.any(own < self.floor)) for own in noise))

    def first(self, report: Share | None = None, *, keep: bool = False) -> list[Sums]:
        """The sums of each group of outputs. `keep`: the features, for a second pass, where they fit."""
        keep = keep and 8 * len(self.data.X) * self.features.n_features <= KEEP_BYTES

        def one(rows: Rows) -> tuple[Block, list[Sums]]:
            block = self.block(rows)
            return block, [
                Sums.of(block, D, group.outputs) for group, D in zip(self.groups, block.D, strict=True)
            ]

        total: list[Sums] = []
        for block, parts in self._over(one, self.rows()):
            for group, part in zip(total, parts, strict=False):
                group.add(part)
            total = total or parts
            if keep:
                self.kept.append(block)
            if report is not None:
                report(block.rows.at.stop / len(self.data.X))
        return total

    def second(self, sums: list[Sums], found: list[Weights], inverses: list[Array]) -> Gathered:
        """The gradient by what rows have of their own. `inverses` are I - B^-1 for vfe, else B^-1."""
        sign = 1.0 if self.objective == "vfe" else -1.0
        level = [None if self.objective == "fitc" else group.level for group in sums]
        pulls = [
            (
                self.features.factored_pullback((sign * len(group.outputs) / D) * inverse, w.w)
                if D is not None
                else None
            )
            for group, w, inverse, D in zip(sums, found, inverses, level, strict=True)
        ]

        def one(block: Block) -> Slopes:
            X, R = block.rows.X, block.rows.R
            total = Slopes([], 0.0, X, np.zeros(len(X)), np.zeros(R.shape))
            for group, w, inverse, pull, D in zip(sums, found, inverses, pulls, block.D, strict=True):
                a = (R[:, group.outputs] - times(block.Phi, w.w)) / D[:, None]
                total.by_residual[:, group.outputs] = a / self.data.scale[group.outputs]
                if pull is not None:
                    by_kernel = pull(X, block.Phi, a)
                    total.by_noise += self._by_level(block, group, D, a)
                else:
                    by_kernel = self._row_by_row(block, group, w, inverse, D, a, total)
                if self.objective == "vfe":
                    total.by_prior_var -= 0.5 * len(group.outputs) / D
                total.by_kernel = _added(total.by_kernel, by_kernel)
            return total

        gathered = Gathered(self.model, self.objective)
        for part in (
            self._over(one, self.kept)
            if self.kept
            else self._over(lambda rows: one(self.block(rows)), self.rows())
        ):
            gathered.add(part)
        gathered.flush()
        return gathered

    def _by_level(self, block: Block, group: Sums, D: Array, a: Array) -> float:
        """One level of noise: of df/dD only the sum counts, whose traces are known in closed form once all
        rows are seen."""
        by_level = 0.5 * np.sum(a**2, axis=0)
        if self.objective == "vfe":
            by_level += 0.5 * float(np.sum(block.outside / D**2))
        return noise_gradient(self.model, self.data, group.outputs, by_level)

    def _row_by_row(
        self, block: Block, group: Sums, w: Weights, inverse: Array, D: Array, a: Array, total: Slopes
    ) -> list[Array]:
        """Noise that differs between rows: the gradient through the features; the rest is added to
        `total`."""
        q = len(group.outputs)
        G = times(block.Phi, inverse)
        explained = np.einsum("ij,ij->i", G, block.Phi)  # phi' B^-1 phi, or for vfe phi' (I - B^-1) phi
        if self.objective == "vfe":
            explained = np.einsum("ij,ij->i", block.Phi, block.Phi) - explained
        slope = 0.5 * a**2 - 0.5 * (1 / D - explained / D**2)[:, None]  # df/dD, one column an output
        G *= ((q if self.objective == "vfe" else -q) / D)[:, None]
        for k in range(q):
            G += a[:, [k]] * w.w[:, k]
        if self.objective == "vfe":
            slope += (0.5 * block.outside / D**2)[:, None]
        elif self.objective == "fitc":
            g = slope.sum(axis=1)
            G -= block.Phi * (2 * g)[:, None]
            total.by_prior_var += g
            T = -2 * transposed_times(block.Phi, block.Phi * g[:, None])
            total.T = T if total.T is None else total.T + T
        total.by_noise += noise_gradient(self.model, self.data, group.outputs, slope.sum(axis=0))
        return self.features.pullback(block.rows.X, G)

    def _over(self, work: Callable[[T_], R_], items: Iterable[T_]) -> Iterator[R_]:
        with alone(self.features.n_features):
            yield from (map if self.features.n_features > SHARED_UP_TO else each)(work, items)


def alone(m: int) -> AbstractContextManager[None]:
    """Within it, BLAS has one thread where chunks of rows have one each. Also for what is done between
    passes: threads of BLAS go on waiting actively after a product that they shared, and would take the cores
    from the next pass."""
    return threads_for(1) if m <= SHARED_UP_TO else nullcontext()


def chunk_rows(m: int) -> int:
    """Rows of a chunk with m features."""
    tile = tiles.LARGEST_TILE
    return -(-2 * min(m, SHARED_UP_TO) // tile) * tile


def chunks_at_once(m: int) -> int:
    """Chunks whose features and sums are in memory at a time."""
    return THREADS + 1 if m <= SHARED_UP_TO else 1


def typical_variance(model: Model, data: Data) -> float:
    """The mean k(x, x) of some rows."""
    return float(np.mean(tiles.diagonal(model.kernel, np.asarray(data.X[: tiles.LARGEST_TILE]))))
