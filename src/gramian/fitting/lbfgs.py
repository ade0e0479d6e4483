"""The one search for hyperparameters: L-BFGS-B from several starting points, the best evaluation kept,
always; then Newton steps from there.

A factorisation that fails makes the search step back: it meets a wall that slopes towards the best point of
the run, instead of an infinite value with no gradient. Time and Ctrl-C end the search with the best point so
far; whether another evaluation fits into the time is judged by the fastest so far but for the first, which
has programs to compile. Source: Byrd, Lu, Nocedal and Zhu 1995, through SciPy.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import fmin_l_bfgs_b

from gramian import clock, journal
from gramian.arrays import Array
from gramian.clock import OutOfTime
from gramian.errors import NumericalError
from gramian.fitting.newton import polish
from gramian.fitting.progress import Report
from gramian.fitting.trace import SearchPath, path_of
from gramian.linalg.factor import finite
from gramian.linalg.threads import one_blas_thread

# A run stops when a step gains less than ftol of |f|, or the largest slope is below gtol nats a unit of
# theta: near enough for Newton's method, which finishes what the best run began. Where it does not apply, a
# last run with the tight tolerances does: predictions must not depend on the units of the data, and they
# follow theta to first order.
USUAL, TIGHT = (1e-9, 1e-3), (1e-13, 1e-5)
LOOSE = (1e-6, 1e-3)  # of a search that need not be finished: a few hundredths of a nat
PATIENCE = 8  # evaluations that must have raised the best by `enough`, all together
NEWTON_UP_TO = 40  # parameters: a Hessian takes one gradient each
# of |f|: what rounding may cost when a Newton step moves to the place where the gradient vanishes
SLACK = 1e-6
MAX_ITERATIONS = 500
MEMORY = 20  # corrections kept: hyperparameters are few, so this is close to full BFGS


@dataclass(frozen=True)
class Search:
    """Where a search ended."""

    theta: Array
    value: float
    stopped: str
    iterations: int
    evaluations: int
    starts: int
    failures: int  # factorisations that failed on the way
    pace: float = math.inf  # seconds of the fastest evaluation but for the first
    paths: tuple[SearchPath, ...] = ()  # what it has seen, and those before it that led there

    def called(self, what: str) -> Search:
        """The same, with a name for what it has seen."""
        return replace(self, paths=tuple(replace(path, what=what) for path in self.paths))


class _Enough(Exception):
    """A search has come as far as it is asked to."""


class _Counted:
    """The objective, with a count of its evaluations, and the best of them."""

    def __init__(self, objective: Callable[[Array], tuple[float, Array]], start: Array) -> None:
        self.objective = objective
        self.warm = getattr(objective, "workspaces", ())  # where its rule begins the next time
        self.theta, self.best = start, -np.inf
        self.gradient: Array | None = None  # at the best
        self.place = b""  # the best, as bytes
        self.seen: list[tuple[int, float, Array]] = []  # each evaluation, its height, and where
        self.evaluations = self.failures = 0
        self.pace = math.inf  # of the fastest but for the first, which has programs to compile
        self.error: NumericalError | None = None

    def __call__(self, theta: Array) -> tuple[float, Array]:
        if self.gradient is not None and theta.tobytes() == self.place:
            return self.best, self.gradient.copy()  # where one run ends, the next begins
        clock.heed()
        try:
            value, gradient, seconds = journal.evaluated(theta, lambda: self._worked(theta), self.warm)
        except NumericalError as error:
            self.failures, self.error = self.failures + 1, error
            self.evaluations += 1
            self.seen.append((self.evaluations, -math.inf, theta.copy()))
            raise
        if self.evaluations:
            self.pace = min(self.pace, seconds)
        self.evaluations += 1
        self.seen.append((self.evaluations, value, theta.copy()))
        if value > self.best:
            self.theta, self.best, self.gradient = theta.copy(), value, gradient.copy()
            self.place = theta.tobytes()
        return value, gradient

    def path(self) -> SearchPath:
        """What it has seen, as a search that has no name yet."""
        return path_of("", self.seen, getattr(self.objective, "space", None))

    def _worked(self, theta: Array) -> tuple[float, Array]:
        """Value and gradient, where there is time for them."""
        if self.evaluations and clock.now() + (self.pace if self.pace < math.inf else 0.0) >= clock.end():
            raise OutOfTime
        with np.errstate(all="ignore"):  # what overflows is refused below
            value, gradient = self.objective(theta)
        if not (math.isfinite(value) and finite(gradient)):
            raise NumericalError(f"The evidence or its gradient is not finite (value {value}).")
        return value, gradient


def maximise(
    objective: Callable[[Array], tuple[float, Array]],
    starts: Sequence[Array],
    limits: Sequence[tuple[float, float]],
    report: Report,
    deadline: float | None = None,
    *,
    finish: bool = True,
    iterations: int = MAX_ITERATIONS,
    enough: float = 0.0,
) -> Search:
    """The best point found from all starts; the first of them where the time allows no evaluation. `deadline`
    is a time of `clock.now()`, and gives an evaluation up that is still at work. `finish`: whether the last
    digits matter; they do not where another search goes on from here, or where the objective is an
    estimate. `iterations`: the most of one run. `enough`: a run ends when PATIENCE evaluations have gained
    less than that, in nats; its place is then where they have led."""
    evaluate = _Counted(objective, starts[0])
    taken = tried = 0
    stopped = "converged"
    theta: Array | None = None

    def run(start: Array, number: int, tolerances: tuple[float, float]) -> None:
        nonlocal taken, stopped
        steps = 0
        run_theta, run_best = start, -np.inf
        path: list[float] = []  # the best after each evaluation

        def negative(theta: Array) -> tuple[float, Array]:
            nonlocal run_theta, run_best
            try:
                value, gradient = evaluate(theta)
            except NumericalError:
                if not np.isfinite(run_best):
                    raise  # nowhere to step back to
                gap, height = theta - run_theta, max(1.0, abs(run_best))
                return -run_best + height * (1 + float(gap @ gap)), 2 * height * gap
            if value > run_best:
                run_theta, run_best = theta.copy(), value
            if not journal.replaying():  # whose pace tells nothing
                report(number, len(starts), evaluate.evaluations, evaluate.best)
            path.append(run_best)
            if len(path) > PATIENCE and run_best - path[-PATIENCE - 1] < enough:
                raise _Enough
            return -value, -gradient

        (ftol, gtol), most = tolerances, {"maxiter": iterations, "maxfun": 10 * iterations}
        own = {"m": MEMORY, "factr": ftol / np.finfo(float).eps, "pgtol": gtol}
        # The first step is as long as the gradient where every entry has two bounds, and of length 1 where
        # one has none: an idle one sees to that.
        bounds = [*limits, (-np.inf, np.inf)]

        def with_idle(longer: Array) -> tuple[float, Array]:
            value, gradient = negative(longer[:-1])
            return value, np.append(gradient, 0.0)

        def counted(_: Array) -> None:
            nonlocal steps
            steps += 1

        # the search's own small systems go through BLAS, too
        with one_blas_thread(), contextlib.suppress(_Enough):
            begin = np.append(start, 0.0)
            fmin_l_bfgs_b(with_idle, begin, bounds=bounds, callback=counted, **own, **most)
        taken += steps
        if run_best == evaluate.best:
            stopped = "iteration limit" if steps >= iterations else "converged"

    try:
        with clock.until(deadline):
            for number, start in enumerate(starts, 1):
                tried = number
                try:
                    run(start, number, USUAL if finish else LOOSE)
                except NumericalError:
                    continue  # this start is no good; another may be
            if finish and np.isfinite(evaluate.best) and stopped == "converged":
                theta = _newton(evaluate, limits)
                if theta is None:
                    run(evaluate.theta, tried, TIGHT)
    except OutOfTime:
        stopped = "time limit"
    except KeyboardInterrupt:
        journal.stop()
        if not np.isfinite(evaluate.best):
            raise
        stopped = "interrupted"
    if not np.isfinite(evaluate.best) and (stopped != "time limit" or evaluate.error is not None):
        raise evaluate.error or NumericalError("The evidence could not be computed at any starting point.")
    found = evaluate.theta if theta is None else theta
    counts = taken, evaluate.evaluations, tried, evaluate.failures
    return Search(found, evaluate.best, stopped, *counts, evaluate.pace, (evaluate.path(),))


def _newton(evaluate: _Counted, limits: Sequence[tuple[float, float]]) -> Array | None:
    """Where Newton's method ends from the best point so far; None where it does not apply."""
    if len(evaluate.theta) > NEWTON_UP_TO:
        return None
    try:
        return polish(evaluate, evaluate.theta, limits, SLACK * max(1.0, abs(evaluate.best)))
    except NumericalError:
        return None
