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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.arrays import Array
from gramian.clock import OutOfTime
from gramian.errors import NumericalError
from gramian.fitting.lbfgs import Search
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report
from gramian.fitting.stages import Searched, Stage
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
    search = Search(theta, run.height, stopped, run.done, run.done + run.failures, 1, run.failures)
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
        self.done = self.failures = 0

    @property
    def height(self) -> float:
        """The bound, averaged over the last steps."""
        last = max(1, min(50, len(self.values) // 2))
        return float(np.mean(self.values[-last:])) if self.values else -np.inf

    def climb(self, bound: Bound, report: Report, deadline: float | None) -> str:
        """Takes all steps, or as many as there is time for; returns why it ended."""
        self.q, n = self.engine.start(bound), len(self.data.X)
        steps, rate = self.method.steps_for(n), self.method.learning_rate
        start, in_a_row = clock.now(), 0
        batches = row_batches(n, min(self.method.batch_size, n), self.rng)
        report.stage(f"{self.method.name} on {n:,} rows", steps)
        try:
            for k, at in zip(range(steps), batches, strict=False):
                now = clock.now()
                if deadline is not None and now >= deadline and self.done:
                    return "time limit"
                share = k / steps
                if deadline is not None:
                    share = max(share, (now - start) / max(deadline - start, 1e-9))
                try:
                    ramp, fall = min(1.0, (k + 1) / RAMP), remaining(share)
                    self._step(at, ramp * max(fall, LAST_STEP) * self.method.natural_step, ramp * fall * rate)
                    in_a_row = 0
                except NumericalError:  # Adam went too far: on from the last good place, with smaller steps
                    self.vector, rate = self.good, rate / 2
                    self.failures, in_a_row = self.failures + 1, in_a_row + 1
                    if in_a_row == FAILURES:
                        raise
                if k % max(1, steps // LINES) == 0:
                    report(1, 1, k + 1, self.height)
        except OutOfTime:
            return "time limit"
        except KeyboardInterrupt:
            if not self.values:
                raise
            return "interrupted"
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


def row_batches(n: int, size: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Endless batches of row numbers, each sorted, from one random order of all rows after another."""
    order = rng.permutation(n)
    while True:
        while len(order) < size:
            order = np.concatenate([order, rng.permutation(n)])
        yield np.sort(order[:size])
        order = order[size:]
