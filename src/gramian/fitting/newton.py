"""The last steps to an optimum, by Newton's method on the gradient.

    theta <- theta + B^-1 g,    B = -dg/dtheta, by differences of g

A line search compares values of the objective, and a log evidence is known only to its rounding error: near
the optimum that hides a distance of sqrt(error / curvature). The gradient vanishes there to first order, so
it shows the optimum to error / curvature. Without these steps the same data in other units would end at
visibly other parameters.

Cost: one gradient a free parameter, and one or two more. Source: Nocedal and Wright, Numerical
Optimization, chapter 3.3 and 8.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array

Evaluate = Callable[[Array], tuple[float, Array]]  # value and gradient

# of theta for differences: their error is STEP times a third derivative, which slows the steps down but moves
# nothing
STEP = 1e-4
STEPS = 6  # with one Hessian; each leaves about a thousandth of the distance
SETTLED = 1e-10  # of theta: a step that moves no prediction by more than its rounding
# nats a unit of theta squared: along directions flatter than this the data and the priors say nothing, and
# nothing is done
FLAT = 1e-4


def polish(
    evaluate: Evaluate, theta: Array, limits: Sequence[tuple[float, float]], slack: float
) -> Array | None:
    """A stationary point near `theta`, where a search ended; None when no step helps. `evaluate` gives value
    and gradient of what is maximised.

    A step is kept only when it halves the gradient and costs no more than `slack` of the value; one so short
    that none would follow, at the pace of the one before it, is the last and is not looked at.
    """
    low, high = np.array(limits, dtype=np.float64).T
    best, gradient = evaluate(theta)
    free = _free(theta, gradient, low, high)
    if not np.any(free):
        return theta
    inverse = _inverse_curvature(evaluate, theta, gradient, free, high)
    start, before = theta, np.inf
    for _ in range(STEPS):
        move = inverse @ gradient
        length = float(np.abs(move).max())
        # settled, or too far for a quadratic model: the search did not end at an optimum
        if length < SETTLED or not length < 1.0:
            break
        candidate = np.clip(theta + move, low, high)
        if 0.0 < length * length < SETTLED * before < np.inf:
            theta = candidate  # as the last step went, none is to follow: no need to look
            break
        value, slope = evaluate(candidate)
        if value < best - slack or np.abs(slope[free]).max() > 0.5 * np.abs(gradient[free]).max():
            break
        theta, gradient, before = candidate, slope, length
    return None if theta is start else theta


def _free(theta: Array, gradient: Array, low: Array, high: Array) -> NDArray[np.bool_]:
    """Which entries may move: those not at a bound, or drawn away from it."""
    return ~(((theta <= low) & (gradient <= 0)) | ((theta >= high) & (gradient >= 0)))


def _inverse_curvature(
    evaluate: Evaluate, theta: Array, gradient: Array, free: NDArray[np.bool_], high: Array
) -> Array:
    """B^-1 on the free entries and the directions that are not flat, zero elsewhere."""
    at = np.flatnonzero(free)
    curvatures, directions = np.linalg.eigh(curvature(evaluate, theta, gradient, free, high))
    weights = np.where(curvatures > FLAT, 1 / np.where(curvatures > FLAT, curvatures, 1.0), 0.0)
    inverse = np.zeros((len(theta), len(theta)))
    inverse[np.ix_(at, at)] = (directions * weights) @ directions.T
    return inverse


def curvature(
    evaluate: Evaluate, theta: Array, gradient: Array, free: NDArray[np.bool_], high: Array
) -> Array:
    """B on the free entries, by differences of the gradient that do not leave `high`."""
    at = np.flatnonzero(free)
    B = np.empty((len(at), len(at)))
    for row, j in enumerate(at):
        moved = theta.copy()
        moved[j] += STEP if theta[j] + STEP <= high[j] else -STEP
        B[row] = (gradient - evaluate(moved)[1])[at] / (moved[j] - theta[j])
    return 0.5 * (B + B.T)
