r"""The same search for many rows, some of them at a time.

First all stages of `search` on some of the rows, drawn at random: that is where the shape of the map is
decided. Then every row is placed on that map, and all of them refine it: a batch of rows finds its places
anew with the functions held (a few steps of BFGS each), q(v) of the whitened inducing variables, N(S eta, S)
with S = Lambda^-1, goes a share rho of its natural gradient,

    Lambda <- (1 - rho) Lambda + rho (I + b (n / batch) L^-1 Psi2 L^-T),   eta <- (1 - rho) eta + rho b (n /
    batch) L^-1 Psi1' y,

and parameters and inducing points take a step of Adam on the estimate of the bound. Steps fall to zero.
Source: Hensman, Fusi and Lawrence 2013, section 4.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gramian import clock, journal
from gramian.arrays import Array, Indices
from gramian.clock import OutOfTime
from gramian.errors import NumericalError
from gramian.fitting.lbfgs import Search
from gramian.fitting.progress import Report
from gramian.fitting.stochastic import Adam
from gramian.forks import compiled
from gramian.kernels.base import Kernel
from gramian.latent import search
from gramian.latent.bound import (
    FunctionWeights,
    ObservedTable,
    Places,
    value_and_slopes,
    weights,
    whitened_root,
    whitened_sums,
)
from gramian.latent.rows import RowModel
from gramian.latent.search import Position
from gramian.params.tree import leaves

SUBSET = 1500  # rows of the first search
FIRST_STEPS, STEPS = 40, 6  # of BFGS for each row: when it is placed, and at each visit
RATE, SHARE = 0.02, 0.3  # of Adam and of the natural gradient, at first
HALF = 0.5  # of a time limit that the first search may take


class Natural(NamedTuple):
    """q(v) of the whitened inducing variables."""

    precision: Any  # (G, m, m)
    linear: Any  # (m, D)


@compiled()
def step(
    kernel: Kernel,
    Z: Any,
    noise: Any,
    q: Natural,
    rho: Any,
    more: Any,
    mean: Any,
    var: Any,
    Y: Any,
    seen: Any,
    group: Any,
) -> Any:
    """The estimate of the bound from a batch that stands for `more` times as many rows, its slopes by the
    kernel, Z and the noise, and the next q."""
    S = jax.vmap(jnp.linalg.inv)(q.precision)
    centre = jnp.einsum("dij,jd->id", S[group], q.linear)

    def bound(kernel: Kernel, Z: Any, noise: Any) -> Any:
        points = var is None
        _, A, c, psi0 = whitened_sums(points, kernel, mean, var, Z, Y, seen)
        b = 1 / noise
        squares, counts = jnp.sum(Y**2, axis=0), jnp.sum(seen, axis=0)[group]
        spread = jnp.einsum("gij,gij->g", A, S) + psi0 - jnp.trace(A, axis1=1, axis2=2)
        of_mean = jnp.einsum("id,dij,jd->d", centre, A[group], centre) - 2 * jnp.sum(centre * c, axis=0)
        each = counts * jnp.log(2 * jnp.pi * noise[group]) + b[group] * (squares + of_mean + spread[group])
        return -0.5 * more * jnp.sum(each), (A, c)

    (value, (A, c)), slopes = jax.value_and_grad(bound, argnums=(0, 1, 2), has_aux=True)(kernel, Z, noise)
    b, eye = 1 / noise, jnp.eye(len(Z), dtype=A.dtype)
    logdet = jnp.linalg.slogdet(q.precision)[1]
    squared = jnp.sum(centre**2, axis=0)
    divergence = 0.5 * jnp.sum((jnp.trace(S, axis1=1, axis2=2) - len(Z) + logdet)[group] + squared)
    precision = (1 - rho) * q.precision + rho * (eye + more * b[:, None, None] * A)
    linear = (1 - rho) * q.linear + rho * more * b[group] * c
    return value - divergence, slopes, Natural(precision, linear)


@compiled()
def known(kernel: Kernel, Z: Any, q: Natural, group: Any) -> Any:
    """What q says of the functions."""
    L, eye = whitened_root(kernel, Z), jnp.eye(len(Z))
    back = jax.scipy.linalg.solve_triangular(L, eye, lower=True)
    S = jax.vmap(jnp.linalg.inv)(q.precision)
    centre = jnp.einsum("dij,jd->id", S[group], q.linear)
    return L, back.T @ centre, jax.vmap(lambda one: back.T @ (eye - one) @ back)(S)


def climb(
    start: Position, table: ObservedTable, report: Report, size: int, passes: int, rng: np.random.Generator
) -> tuple[Position, Search, list[str]]:
    """As `search.climb`, by batches of `size` rows and so many passes over all."""
    n, began = len(table.Y), clock.now()
    chosen = np.sort(rng.choice(n, min(SUBSET, n), replace=False))
    part = dataclasses.replace(start, places=start.places.take(chosen))
    left = clock.end() - clock.now()
    with clock.until(clock.now() + HALF * left):
        position, found, told = search.climb(part, table.take(chosen), report, 500)
    told = [f"{len(chosen):,} rows: {sentence}" for sentence in told]
    some = table.take(chosen)
    short = found.stopped == "interrupted" or journal.chosen("over", bool, clock.over)
    own = (position.kernel.bare(), position.of_groups(some), position.Z, position.places)
    Y = np.where(table.seen[:, table.group] > 0, table.Y, np.nan)
    with clock.until(None, anew=True):  # every row needs a place
        first = weights(*own, some)
        model = RowModel(own[0], position.variances(), position.Z, first, table.group, position.places)
        places = model.nearest(Y, 0 if short else FIRST_STEPS)
    run = _Refinement(dataclasses.replace(position, places=places), table, Y, first)
    stopped = "interrupted" if found.stopped == "interrupted" else "time limit"
    if not short:
        try:
            stopped = run.passes(size, passes, rng, report)
        except (KeyboardInterrupt, OutOfTime) as stop:
            stopped = "interrupted" if isinstance(stop, KeyboardInterrupt) else "time limit"
            if stopped == "interrupted":
                journal.stop()
    position = run.position
    with clock.until(None, anew=True):
        value, _ = value_and_slopes(
            position.kernel.bare(), position.of_groups(table), position.Z, position.places, table, False
        )
    told.append(f"all {n:,} rows: {run.done} batches of {size}, {clock.now() - began:.1f} s in all")
    counts = found.iterations + run.done, found.evaluations + run.done, 1, found.failures + run.failures
    ended = Search(position.space.theta, value, stopped, *counts)
    return position, ended, told


class _Refinement:
    """Where the second part is."""

    def __init__(self, position: Position, table: ObservedTable, Y: Array, first: FunctionWeights) -> None:
        self.position, self.table, self.Y = position, table, Y
        self.theta, self.Z = position.space.theta, position.Z
        self.limits = np.array(position.space.limits).reshape(-1, 2)
        # q at the first weights: S = I - L' less L, S eta = L' mean
        L, eye = first.root, np.eye(len(self.Z))
        precision = np.linalg.inv(eye - np.swapaxes(L, 0, 1) @ first.less @ L)
        linear = np.einsum("dij,jd->id", precision[table.group], L.T @ first.mean)
        more = len(Y) / max(1, min(SUBSET, len(Y)))
        self.q = Natural(eye + more * (precision - eye), more * linear)
        self.adam = Adam(self.theta.size + self.Z.size)
        self.done = self.failures = 0

    def passes(self, size: int, count: int, rng: np.random.Generator, report: Report) -> str:
        n, place = len(self.Y), journal.Place("places")
        steps, each = count * -(-n // size), n // size
        before = journal.dice(rng)  # of the order of this pass
        if place.found:
            before = self._restored(place)
            journal.cast(rng, before)
        report.stage(f"{n:,} rows in batches", steps)
        order = rng.permutation(n)
        while self.done < count * each:
            if clock.over():
                place.end("time limit", partial(self._state, before))
                return "time limit"
            begin = self.done % each * size
            fall = 0.5 * (1 + np.cos(np.pi * self.done / steps))
            value = self._step(np.sort(order[begin : begin + size]), fall, n / size)
            self.done += 1
            if self.done % each == 0 and self.done < count * each:
                before = journal.dice(rng)
                order = rng.permutation(n)
            place.keep(partial(self._state, before))
            report(1, 1, self.done, value)
        return "converged"

    def _state(self, before: dict[str, Any]) -> journal.LoopState:
        """All that the next step depends on."""
        told = {"done": self.done, "failures": self.failures, "adam": self.adam.count, "dice": before}
        mean, var = self.position.places
        arrays = {"theta": self.theta, "Z": self.Z, "precision": self.q.precision, "linear": self.q.linear}
        arrays |= {"first": self.adam.first.copy(), "second": self.adam.second.copy(), "mean": mean.copy()}
        return journal.LoopState(self.done, told, arrays if var is None else {**arrays, "var": var.copy()})

    def _restored(self, place: journal.Place) -> dict[str, Any]:
        """Goes to where a state was kept; gives that of the random numbers before the pass."""
        self.done, self.failures = place.value("done", int), place.value("failures", int)
        self.theta, self.Z = place.array("theta", self.theta), place.array("Z", self.Z)
        precision = place.array("precision", np.asarray(self.q.precision))
        self.q = Natural(precision, place.array("linear", np.asarray(self.q.linear)))
        self.adam.count = place.value("adam", int)
        self.adam.first = place.array("first", self.adam.first)
        self.adam.second = place.array("second", self.adam.second)
        mean, var = self.position.places
        places = Places(place.array("mean", mean), None if var is None else place.array("var", var))
        self.position = self.position.moved(self.theta, self.Z, places)
        return place.value("dice", dict)

    def _step(self, rows: Indices, fall: float, more: float) -> float:
        position, table = self.position, self.table
        kernel, noise = position.kernel.bare(), position.of_groups(table)
        with jax.enable_x64(True):
            own = FunctionWeights(*map(np.asarray, known(kernel, self.Z, self.q, table.group)))
        model = RowModel(kernel, position.variances(), self.Z, own, table.group, position.places)
        places = model.polished(self.Y[rows], position.places.take(rows), STEPS)
        position.places.mean[rows] = places.mean
        if position.places.var is not None and places.var is not None:
            position.places.var[rows] = places.var
        with jax.enable_x64(True):
            given = (places.mean, places.var, table.Y[rows], table.seen[rows], table.group)
            value, slopes, q = step(kernel, self.Z, noise, self.q, SHARE * fall, more, *given)
            value, slopes = float(value), jax.tree_util.tree_map(np.asarray, slopes)
            q = Natural(*map(np.asarray, q))
        divergence, *_ = places.divergence()
        space = position.space
        by_kernel, by_Z, by_noise = slopes
        by_values = [*leaves(by_kernel), position.by_noise(table, by_noise)]
        by_theta = space.pullback(self.theta, by_values) + space.log_prior(self.theta)[1]
        gradient = np.concatenate([by_theta, by_Z.ravel()])
        if not (np.isfinite(value) and np.all(np.isfinite(gradient)) and np.all(np.isfinite(q.linear))):
            self.failures += 1
            if self.failures > 10:
                cure = "Take fewer inducing points, or a larger first noise."
                raise NumericalError(f"The bound of a batch was not finite ten times. {cure}")
            return value
        move = self.adam.step(gradient, RATE * fall)
        low, high = self.limits.T
        self.theta = np.clip(self.theta + move[: self.theta.size], low, high)
        self.Z = self.Z + move[self.theta.size :].reshape(self.Z.shape)
        self.q = q
        self.position = position.moved(self.theta, self.Z, position.places)
        return value - more * divergence
