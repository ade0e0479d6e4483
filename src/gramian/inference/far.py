"""Gaussian noise on rows that stay where they are: all that an evidence needs of them are sums.

With features Phi (engines/lowrank.py), y and X in pieces on disks or workers that the caller never sees, and
one noise D an output, lam = 1 / D:

    first pass      Phi' Lam Phi,  Phi' Lam r,  sum r^2 lam,  sum e lam,  sum log c,  sum log w'(y)
    here            B = I + Phi' Lam Phi = L_B L_B',  w = B^-1 b,  log p, and the process of the weights
    second pass     G' Phi,  the way of G = df/dPhi back through each row's features, by mean and level

A piece is cut into chunks of the engine's size, and a chunk is a `FeaturePrior` of a few rows with the
weights of all: the algebra is that of rows in memory. Chunks are added in the order of their rows, pieces in
theirs (linalg/executor.py), so that bits depend on where pieces are cut, and on nothing else. To rows in
memory it is the same to rounding.

Cost: n m^2 flops a pass, shared out; one m x m array a piece travels back, and the features' root once to
each worker. Nothing here has n numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Never, TypeVar

import numpy as np

from gramian.arrays import Array
from gramian.engines.base import Engine, Share, Term, Use, by_output
from gramian.engines.lowrank import (
    FORGIVEN,
    NOISE_FLOOR,
    FeatureConditioned,
    FeaturePrior,
    Outside,
    chunk_rows,
    diagonal_pullback,
    typical_variance,
)
from gramian.errors import ParameterError
from gramian.features.base import FeatureMap
from gramian.inference.model import Data, Evidence, Inferred, Model, NoiseGroup, noise_gradient, noise_groups
from gramian.linalg.executor import Executor, Piece, Threads, added, summed
from gramian.linalg.products import triangle_squares
from gramian.linalg.threads import one_blas_thread
from gramian.linalg.weights import Weights, weights_of
from gramian.processes.prior import mean_rows
from gramian.processes.weights import FeaturePosterior
from gramian.solvers.base import SolveOutcome

LOG_2PI = math.log(2 * math.pi)
R_ = TypeVar("R_")


class FarTable:
    """A table of which only the size and the first rows are here. What asks for more is told that it would
    have to be brought."""

    ndim, dtype = 2, np.dtype(np.float64)

    def __init__(self, rows: int, head: Array) -> None:
        self.shape, self.head = (rows, head.shape[1]), head

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Any) -> Array:
        if isinstance(at, slice) and at.stop is not None and at.stop >= 0 and not at.start:
            return self.head[at]
        return self._refuse()

    def __array__(self, *_: Any, **__: Any) -> Array:
        return self._refuse()

    def _refuse(self) -> Never:
        rows, columns = self.shape
        raise ParameterError(
            f"This would bring all of {rows:,} rows of {columns} columns here, and they were to stay where"
            ' they are. Rows in pieces are for method="vfe", "fitc", "dtc", "nystrom" or "fourier" under'
            ' Gaussian noise, and for "svgp"; for anything else, give an array with some of the rows.'
        )


@dataclass(frozen=True, eq=False)
class FarRows(Data):
    """Rows that stay where they are. X and Y are `FarTable`s with the first rows."""

    parts: tuple[Piece, ...] = ()
    executor: Executor = field(default_factory=Threads)

    @classmethod
    def of(
        cls, head: tuple[Array, Array], scale: Array, parts: Sequence[Piece], executor: Executor
    ) -> FarRows:
        """Rows in pieces, of which X and Y of the first ones are known."""
        n = sum(piece.rows for piece in parts)
        X: Any = FarTable(n, head[0])
        Y: Any = FarTable(n, head[1])
        return cls(X, Y, scale, parts=tuple(parts), executor=executor)

    @property
    def pieces(self) -> Sequence[Piece]:
        return self.parts

    @property
    def here(self) -> bool:
        return not self.parts

    @property
    def missing(self) -> None:  # rows without a target are left out as they are read
        return None

    def take(self, at: Any) -> Data:
        return Data(self.X[at], self.Y[at], self.scale)

    def without_pieces(self) -> FarRows:
        """What a piece may know of the others: how many there are, and the first rows."""
        return replace(self, parts=(), executor=Threads())

    def log_slopes(self, model: Model) -> float:
        return 0.0  # they come with the sums

    def __getstate__(self) -> dict[str, Any]:
        """Without who works: a client is of this process alone."""
        return {**vars(self), "executor": Threads(), "parts": tuple(p.described() for p in self.parts)}


def over_pieces(
    data: Data, work: Callable[[Piece, Any], R_], state: Any, report: Share | None = None
) -> Iterator[R_]:
    """work(piece, state) of all pieces, in their order, for the caller to add up."""
    assert isinstance(data, FarRows)
    rows, n = 0, len(data.X)
    for piece, part in zip(data.parts, data.executor.each(work, data.parts, state), strict=True):
        rows += piece.rows
        if report is not None:
            report(rows / n)
        yield part


@dataclass(frozen=True, eq=False)
class _State:
    """What each piece must know."""

    model: Model
    features: FeatureMap
    outside: Outside
    scale: Array
    groups: list[NoiseGroup]
    lam: list[float]  # one a group
    tolerance: float
    weights: tuple[Weights, ...] = ()  # after the first pass
    inverses: tuple[Array, ...] = ()

    def chunks(self, piece: Piece) -> Iterator[tuple[Array, Array]]:
        X, Y = piece.load()
        size = chunk_rows(self.features.n_features)
        for start in range(0, len(X), size):
            yield X[start : start + size], Y[start : start + size]

    def prior(self, X: Array) -> FeaturePrior:
        made = FeaturePrior(self.features, self.model.kernel, X, self.outside, Use(again=True, whole=True))
        made.tolerance = self.tolerance
        return made

    def sites(self, prior: FeaturePrior, r: Array) -> Iterator[tuple[NoiseGroup, Array, Array]]:
        for group, lam in zip(self.groups, self.lam, strict=True):
            own = r if len(group.outputs) == r.shape[1] else np.ascontiguousarray(r[:, group.outputs])
            yield group, np.full(len(r), lam), lam * own


def first_pass(piece: Piece, state: _State) -> list[Any]:
    """The sums of a piece: log slopes; for each group squares, b, r'Lam r, sum log c, sum e lam."""
    return summed(_first(X, Y, state) for X, Y in state.chunks(piece))


def _first(X: Array, Y: Array, state: _State) -> list[Any]:
    given = Data(X, Y, state.scale)
    data, prior = given.under(state.model), state.prior(X)
    r = (data.Y - mean_rows(state.model.mean, X, Y.shape[1]).values) / state.scale
    out: list[Any] = [np.float64(given.log_slopes(state.model))]
    for _, lam, h in state.sites(prior, r):
        squares, b = prior.sums(lam, h)
        c = 1 / (1 + lam * prior.left_out) if prior.kind == "noise" else np.ones(len(lam))
        out += [squares, b, (c / lam) @ h**2, np.sum(np.log(c)), np.sum(prior.outside * lam)]
    return out


def second_pass(piece: Piece, state: _State) -> list[Any]:
    """For each group G'Phi, by the level, by kernel and points; then by the mean and by the warp."""
    return summed(_second(X, Y, state) for X, Y in state.chunks(piece))


def _second(X: Array, Y: Array, state: _State) -> list[Any]:
    model, prior = state.model, state.prior(X)
    data = Data(X, Y, state.scale).under(model)
    mean = mean_rows(model.mean, X, Y.shape[1])
    by_mean, out = np.empty(Y.shape), list[Any]()
    pairs = zip(
        state.sites(prior, (data.Y - mean.values) / state.scale), state.weights, state.inverses, strict=True
    )
    for (group, lam, h), weights, inverse in pairs:
        sited, q = FeatureConditioned(prior, lam, h, np.zeros((0, 0)), weights), len(group.outputs)
        vars(sited)["inverse"] = inverse
        bound = prior.kind == "bound"
        term = Term(sited, by_outside=-0.5 * q * lam if bound else None)
        own, T, by_diagonal, level = prior.rows_back([term])
        if by_diagonal is not None:
            pulled = diagonal_pullback(model.kernel, X, by_diagonal)
            own = [g + pulled[k] if k < len(pulled) else g for k, g in enumerate(own)]
        level = level + 0.5 * float(np.sum(prior.outside * lam**2)) if bound else level
        by_mean[:, group.outputs] = sited.alpha / state.scale[group.outputs]
        out += [T, level, *own]
    by_warp = [] if model.warp is None else model.warp.pull(Y, -by_mean)
    return [*out, *mean.pull(by_mean), *by_warp]


def _began(model: Model, data: Data, engine: Engine, report: Share | None) -> tuple[_State, list[Any], float]:
    """The state with weights, the sums of the first pass, and what was added to noise."""
    basis = engine.chosen_basis
    if basis is None:
        data.take(slice(0, None))  # which refuses
    assert basis is not None
    n, groups = len(data.X), noise_groups(model, data)
    typical = typical_variance(model.kernel, data.X)
    floor = NOISE_FLOOR * n * typical
    D = [max(group.level, floor) for group in groups]
    features = basis.at(model.kernel)
    with one_blas_thread():
        features.ready()
    tolerance = FORGIVEN * min(D) / (n * typical) if typical > 0 else 0.0
    outside: Any = getattr(engine, "outside", "nothing")
    state = _State(model, features, outside, data.scale, groups, [1 / d for d in D], tolerance)
    sums = summed(over_pieces(data, first_pass, state, report))
    with one_blas_thread():
        weights = tuple(weights_of(squares, b) for squares, b in zip(sums[1::5], sums[2::5], strict=True))
    raised = NOISE_FLOOR * n if any(group.level < floor for group in groups) else 0.0
    return replace(state, weights=weights), sums, raised


def _evidence(state: _State, sums: list[Any], engine: Engine, n: int) -> Evidence:
    value = float(sums[0])
    for k, (group, lam, weights) in enumerate(zip(state.groups, state.lam, state.weights, strict=True)):
        q, (quad, log_c, outside) = len(group.outputs), sums[3 + 5 * k : 6 + 5 * k]
        logdet = weights.logdet - float(log_c) - n * math.log(lam)
        value -= 0.5 * float(np.sum(quad - weights.explained)) + 0.5 * q * (logdet + n * LOG_2PI)
        if engine.bound:
            value -= 0.5 * q * float(outside)
    return Evidence(value, "lower bound" if engine.bound else "approximation")


def infer(model: Model, data: Data, engine: Engine, report: Share | None = None) -> Inferred:
    """The posterior of the weights, and the evidence, in one pass."""
    state, sums, raised = _began(model, data, engine, report)
    columns = [group.outputs for group in state.groups]
    weights, root_of = by_output([one.w for one in state.weights], columns, None, len(data.scale))
    roots = tuple(one.root for one in state.weights)
    process = FeaturePosterior(data.prior(model), state.features, weights, roots, root_of)
    evidence = _evidence(state, sums, engine, len(data.X))
    return Inferred(process, evidence, SolveOutcome(jitter=raised))


def evidence_and_gradient(model: Model, data: Data, engine: Engine) -> tuple[Evidence, list[Array]]:
    """In two passes."""
    state, sums, _ = _began(model, data, engine, None)
    with one_blas_thread():
        inverses = tuple(triangle_squares(one.root) for one in state.weights)
    parts = summed(over_pieces(data, second_pass, replace(state, inverses=inverses)))
    count, by_level = len(model.kernel.parameters()), np.empty(len(data.scale))
    learned = engine.free.size > 0
    everything: list[Any] = []
    for group in state.groups:
        T, level, *own = parts[: 2 + count + learned]
        parts = parts[2 + count + learned :]
        by_level[group.outputs] = level
        with one_blas_thread():
            shared = state.features.shared_pullback(0.5 * (T + T.T))
        everything = added(everything, [one + more for one, more in zip(own, shared, strict=True)])
    free = [engine.free_gradient(everything[count])] if learned else []
    of_mean = len(model.mean.parameters())
    by_noise = np.asarray(noise_gradient(model, data, by_level))
    gradient = [*everything[:count], *parts[:of_mean], by_noise, *parts[of_mean:], *free]
    return _evidence(state, sums, engine, len(data.X)), gradient
