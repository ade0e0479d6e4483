"""The search of SVGP: a few rows at a time, natural gradients for q, Adam for parameters and inducing points.

One batch gives both gradients, at the same point: q goes the share rho of the way of its natural gradient,
and theta (with the points, in units of their columns' spread) takes a step of Adam on the estimate of bound +
log prior. Both start gently, because the first q, the prior, says little about parameters; both fall towards
the end, which averages the noise of the batches out.

Rows come in an order drawn anew for each epoch, and each batch is read sorted, so that a file is read from
front to back. A batch that crosses the end of an epoch goes on with the next: all batches have one size.

Source: Hensman et al. 2013, 2015; Salimbeni et al. 2018 (natural gradients and Adam side by side); Kingma and
Ba 2015, algorithm 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian import clock, journal
from gramian.arrays import Array
from gramian.clock import OutOfTime
from gramian.errors import CheckpointError, NumericalError
from gramian.fitting.lbfgs import Search
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report
from gramian.fitting.stages import Searched, Stage
from gramian.fitting.trace import path_of
from gramian.inference.model import Data, Model
from gramian.inference.svgp.bound import Bound, BoundSums, VariationalWeights
from gramian.inference.svgp.inducing import POLISH, POLISH_TOLERANCE, SVGP, SparseVariational
from gramian.linalg.threads import each

FIRST_MOMENT, SECOND_MOMENT, TINY = 0.9, 0.999, 1e-8  # of Adam, as its authors recommend
RAMP = 20  # steps in which both sizes of step grow to their own
CONSTANT = 0.5  # the share of the steps after which both fall, to LAST_RATE and LAST_STEP of themselves
LAST_RATE, LAST_STEP = 0.02, 0.1
LINES = 100  # of progress
CANDIDATES = 20  # rows for each point, among which it is chosen where time is limited
FAILURES = 10  # steps in a row that may fail before the fit does
COUNTS, WEIGHTS = ("taken", "done", "failures", "in_a_row"), ("B", "h", "mu", "root")  # of a state


class Adam:
    """Ascent with steps of about `rate` in every coordinate."""

    def __init__(self, size: int) -> None:
        self.first, self.second, self.count = np.zeros(size), np.zeros(size), 0

    def step(self, gradient: Array, rate: float) -> Array:
        self.count += 1
        self.first += (1 - FIRST_MOMENT) * (gradient - self.first)
        self.second += (1 - SECOND_MOMENT) * (gradient**2 - self.second)
        first = self.first / (1 - FIRST_MOMENT**self.count)
        second = self.second / (1 - SECOND_MOMENT**self.count)
        return rate * first / (np.sqrt(second) + TINY)


def fit(
    model: Model,
    data: Data,
    method: SVGP,
    rng: np.random.Generator,
    report: Report,
    deadline: float | None = None,
) -> Searched:
    """Fits parameters, inducing points and q. `deadline` is a time of `clock.now()`; at it, or at
    Ctrl-C, the last step is the result."""
    began = clock.now()
    # Without points there is nothing to fit: they are chosen whatever the time is, but among fewer rows.
    n, few = len(data.X), CANDIDATES * method.size(len(data.X))
    some = data if deadline is None or n <= few else data.take(np.sort(rng.choice(n, few, replace=False)))
    with clock.until(None, anew=True):
        engine = method.prepared(model, some, rng)
    run = _Run(model, data, method, engine, rng)
    with engine.bound(model, data) as bound:
        stopped = run.climb(bound, report, deadline)
    theta, moved = run.objective.split(run.vector)
    assert isinstance(moved, SparseVariational)
    polished = dataclasses.replace(moved, q=run.q, passes=POLISH, tolerance=POLISH_TOLERANCE)
    path = path_of(f"{method.name} on {n:,} rows", run.path, run.objective.space)
    counts = run.done, run.done + run.failures, 1, run.failures
    search = Search(theta, run.height, stopped, *counts, paths=(path,))
    took = clock.now() - began
    stage = Stage(method.name, n, n, "at random", run.done, stopped, took)
    return Searched(run.objective.at(theta), polished, search, (stage,), data, data)


class _Run:
    """Where a search is."""

    def __init__(
        self, model: Model, data: Data, method: SVGP, engine: SparseVariational, rng: np.random.Generator
    ) -> None:
        self.data, self.method, self.engine, self.rng = data, method, engine, rng
        self.objective = Objective(model, data, engine)
        # where the next step is tried, and where the last one was
        self.vector = self.good = self.objective.start
        self.low, self.high = np.array(self.objective.limits).reshape(-1, 2).T
        self.adam = Adam(len(self.vector))
        self.q: tuple[VariationalWeights, ...] = ()
        self.bound: Bound | None = None  # at the vector
        self.values: list[float] = []  # of the bound with the log prior, one a step
        self.path: list[tuple[int, float, Array]] = []  # some steps, with height and vector
        self.rate = method.learning_rate
        # steps that were tried, those that did not fail, and those that did, in all and in a row
        self.taken = self.done = self.failures = self.in_a_row = 0

    @property
    def height(self) -> float:
        """The bound, averaged over the last steps."""
        last = max(1, min(50, len(self.values) // 2))
        return float(np.mean(self.values[-last:])) if self.values else -np.inf

    def climb(self, bound: Bound, report: Report, deadline: float | None) -> str:
        """Takes all steps, or as many as there is time for; returns why it ended."""
        self.q, n = self.engine.start(bound), len(self.data.X)
        batches = RowBatches(n, min(self.method.batch_size, n), self.rng)
        steps, place = self.method.steps_for(n), journal.Place("batches")
        if place.found:
            restore(self, place, batches)
        if place.ended:
            return place.ended
        report.stage(f"{self.method.name} on {n:,} rows", steps)
        try:
            why = self._climbed(batches, steps, report, deadline, place)
        except OutOfTime:
            why = "time limit"
        except KeyboardInterrupt:
            journal.stop()
            if not self.values:
                raise
            return "interrupted"
        place.end(why, lambda: state_of(self, batches))
        return why

    def _climbed(
        self, batches: RowBatches, steps: int, report: Report, deadline: float | None, place: journal.Place
    ) -> str:
        start, begun = clock.now(), self.taken / steps
        while self.taken < steps:
            k, now = self.taken, clock.now()
            if deadline is not None and now >= deadline and self.done:
                return "time limit"
            share = k / steps
            if deadline is not None:
                share = max(share, begun + (1 - begun) * (now - start) / max(deadline - start, 1e-9))
            at = next(batches)
            try:
                ramp, fall = min(1.0, (k + 1) / RAMP), remaining(share)
                natural = ramp * max(fall, LAST_STEP) * self.method.natural_step
                self._step(at, natural, ramp * fall * self.rate)
                self.in_a_row = 0
            except NumericalError:  # Adam went too far: on from the last good place, with smaller steps
                self.vector, self.rate = self.good, self.rate / 2
                self.failures, self.in_a_row = self.failures + 1, self.in_a_row + 1
                if self.in_a_row == FAILURES:
                    raise
            self.taken += 1
            place.keep(lambda: state_of(self, batches))
            if k % max(1, steps // LINES) == 0:
                report(1, 1, k + 1, self.height)
                self.path.append((k + 1, self.height, self.good))
        return "converged" if settled(self.values) else "iteration limit"

    def _step(self, at: NDArray[np.intp], rho: float, rate: float) -> None:
        """One batch. While q moves on one thread, another goes from the gradient to the next place, and
        prepares the bound there."""
        bound = self.bound or self._bound_at(self.vector)
        sums = bound.sums(self.q, [self.data.take(at)], gradient=True, signed=False)
        sums = sums.scaled(len(self.data.X) / len(at))
        moves = (partial(w.moved, S, b, rho) for w, S, b in zip(self.q, sums.S, sums.b, strict=True))
        tasks: list[Callable[[], Any]] = [partial(self._onward, bound, sums, rate), *moves]
        self.bound = None  # of no use where something fails
        (value, vector, ahead), *q = each(lambda task: task(), tasks)
        self.good, self.vector, self.bound, self.q = self.vector, vector, ahead, tuple(q)
        self.done += 1
        self.values.append(value)

    def _bound_at(self, vector: Array) -> Bound:
        theta, engine = self.objective.split(vector)
        assert isinstance(engine, SparseVariational)
        return Bound(self.objective.at(theta), self.data, engine.Z, engine.learned, low=True)

    def _onward(self, bound: Bound, sums: BoundSums, rate: float) -> tuple[float, Array, Bound]:
        """The height here, with the log prior; where Adam goes, and the bound there."""
        theta, _ = self.objective.split(self.vector)
        gradients = self.engine.in_units(bound.gradient(sums))
        space, paths = self.objective.space, list(self.objective.model.parameters())
        prior, by_prior = space.log_prior(theta)
        by_theta = space.pullback(theta, dict(zip(paths, gradients, strict=False))) + by_prior
        gradient = np.concatenate([by_theta, *(np.ravel(own) for own in gradients[len(paths) :])])
        value = sums.value - sum(w.divergence for w in self.q) + prior
        if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
            raise NumericalError(f"The bound or its gradient is not finite (value {value}).")
        vector = np.clip(self.vector + self.adam.step(gradient, rate), self.low, self.high)
        return value, vector, self._bound_at(vector)


def settled(values: Sequence[float]) -> bool:
    """Whether the last tenth of the steps brought no more than a ten-thousandth, or than the noise of the
    batches can hide."""
    tenth = max(1, len(values) // 10)
    last, before = np.array(values[-tenth:]), np.array(values[-2 * tenth : -tenth])
    if not len(before):
        return False
    noise = np.sqrt((np.var(last) + np.var(before)) / tenth)
    return bool(np.mean(last) - np.mean(before) <= max(1e-4 * abs(np.mean(last)), noise))


def remaining(share: float) -> float:
    """What is left of the sizes of step, at a share of all steps: constant, then down along a cosine."""
    late = min(max((share - CONSTANT) / (1 - CONSTANT), 0.0), 1.0)
    return LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + float(np.cos(np.pi * late)))


class RowBatches:
    """Endless batches of row numbers, each sorted, from one random order of all rows after another."""

    def __init__(self, n: int, size: int, rng: np.random.Generator) -> None:
        self.n, self.size, self.rng = n, size, rng
        self._drawn()

    def _drawn(self) -> None:
        self.before = journal.dice(self.rng)  # from which the order can be drawn again
        self.order = self.rng.permutation(self.n)

    def __next__(self) -> NDArray[np.intp]:
        order = self.order
        while len(order) < self.size:
            self._drawn()
            order = np.concatenate([order, self.order])
        self.order = order[self.size :]  # of the last order alone, which came because there were too few
        return np.sort(order[: self.size])

    @property
    def told(self) -> dict[str, Any]:
        """Where it is, as plain values."""
        return {"before": self.before, "left": len(self.order), "now": journal.dice(self.rng)}

    def restore(self, told: dict[str, Any]) -> None:
        """Goes to where it was then, its generator included."""
        journal.cast(self.rng, told.get("before"))
        self._drawn()
        left = told.get("left")
        if type(left) is not int or not 0 <= left <= self.n:
            raise CheckpointError(journal.damaged(f"{left} rows of {self.n:,} are left"))
        self.order = self.order[self.n - left :]
        journal.cast(self.rng, told.get("now"))


class Climber(Protocol):
    """A search by batches: all that its next step depends on, beside what was chosen before it began."""

    vector: Array
    good: Array
    q: tuple[VariationalWeights, ...]
    adam: Adam
    rate: float
    values: list[float]
    taken: int
    done: int
    failures: int
    in_a_row: int


def state_of(run: Climber, batches: RowBatches) -> journal.LoopState:
    """The state of a search, for a journal."""
    counts = {name: getattr(run, name) for name in COUNTS}
    told = {**counts, "rate": float(run.rate), "adam": run.adam.count, "dice": batches.told}
    arrays = {"vector": run.vector, "good": run.good, "values": np.array(run.values, dtype=np.float64)}
    arrays |= {"first": run.adam.first.copy(), "second": run.adam.second.copy()}
    arrays |= {f"{name}{k}": getattr(w, name) for k, w in enumerate(run.q) for name in WEIGHTS}
    arrays["divergences"] = np.array([w.divergence for w in run.q])
    return journal.LoopState(run.taken, told, arrays)


def restore(run: Climber, place: journal.Place, batches: RowBatches) -> None:
    """Takes a search to where its state was kept."""
    for name in COUNTS:
        setattr(run, name, place.value(name, int))
    run.rate, run.adam.count = place.value("rate", float), place.value("adam", int)
    run.vector, run.good = place.array("vector", run.vector), place.array("good", run.vector)
    run.adam.first, run.adam.second = place.array("first", run.vector), place.array("second", run.vector)
    run.values = place.array("values").tolist()
    apart = place.array("divergences", np.zeros(len(run.q)))
    run.q = tuple(_kept_weights(place, k, w, float(apart[k])) for k, w in enumerate(run.q))
    batches.restore(place.value("dice", dict))


def _kept_weights(place: journal.Place, k: int, like: VariationalWeights, apart: float) -> VariationalWeights:
    B, h, mu, root = (place.array(f"{name}{k}", getattr(like, name)) for name in WEIGHTS)
    return VariationalWeights(B, h, mu, root, apart)
