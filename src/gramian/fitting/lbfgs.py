"""The one search for hyperparameters: L-BFGS-B from several starting points, the best evaluation kept, always.

A factorisation that fails makes the search step back: it meets a wall that slopes towards the best point of the run, instead of an infinite value
with no gradient. Time and Ctrl-C end the search between evaluations, with the best point so far.
Source: Byrd, Lu, Nocedal and Zhu 1995, through SciPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from gramian.errors import NumericalError
from gramian.fitting.progress import Report

Array = NDArray[np.float64]

# Stop when a step gains less than FTOL of |f|, or the largest slope is below GTOL nats a unit of theta. The tolerances are tight because
# predictions must not depend on the units of the data: they follow theta to first order, and f to second order only.
FTOL = 1e-13
GTOL = 1e-5
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


class _Stop(Exception):
    """Ends SciPy's loop from inside an evaluation."""


def maximise(
    objective: Callable[[Array], tuple[float, Array]],
    starts: Sequence[Array],
    limits: Sequence[tuple[float, float]],
    report: Report,
    deadline: float | None = None,
) -> Search:
    """The best point found from all starts. `deadline` is a time of `time.monotonic()`."""
    best_theta, best = starts[0], -np.inf
    evaluations = failures = iterations = tried = 0
    slowest = 0.0
    stopped, last_error = "converged", None
    try:
        for number, start in enumerate(starts, 1):
            run_theta, run_best = start, -np.inf
            tried = number

            def negative(theta: Array) -> tuple[float, Array]:
                nonlocal best_theta, best, run_theta, run_best, evaluations, failures, slowest, last_error
                # What is still to come after this evaluation is a last factorisation, of about its length.
                if deadline is not None and evaluations and time.monotonic() + 2 * slowest > deadline:
                    raise _Stop
                began = time.monotonic()
                evaluations += 1
                try:
                    value, gradient = objective(theta)
                    if not (np.isfinite(value) and np.all(np.isfinite(gradient))):
                        raise NumericalError(f"The evidence or its gradient is not finite (value {value}).")
                except NumericalError as error:
                    failures, last_error = failures + 1, error
                    if not np.isfinite(run_best):
                        raise  # nowhere to step back to
                    gap, height = theta - run_theta, max(1.0, abs(run_best))
                    return -run_best + height * (1 + float(gap @ gap)), 2 * height * gap
                slowest = max(slowest, time.monotonic() - began)
                if value > run_best:
                    run_theta, run_best = theta.copy(), value
                if value > best:
                    best_theta, best = theta.copy(), value
                report(number, len(starts), evaluations, best)
                return -value, -gradient

            try:
                options = {"maxiter": MAX_ITERATIONS, "maxfun": 10 * MAX_ITERATIONS, "ftol": FTOL, "gtol": GTOL, "maxcor": MEMORY}
                result = minimize(negative, start, jac=True, method="L-BFGS-B", bounds=limits, options=options)
                iterations += int(result.nit)
                if result.nit >= MAX_ITERATIONS and run_best == best:
                    stopped = "iteration limit"
            except NumericalError:
                continue  # this start is no good; another may be
    except _Stop:
        stopped = "time limit"
    except KeyboardInterrupt:
        if not np.isfinite(best):
            raise
        stopped = "interrupted"
    if not np.isfinite(best):
        raise last_error or NumericalError("The evidence could not be computed at any starting point.")
    return Search(best_theta, best, stopped, iterations, evaluations, tried, failures)
