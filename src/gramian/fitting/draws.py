"""Draws of the parameters from their posterior p(theta | y), for predictions that average over them.

With few rows a search's best theta is one of many that the data allow, and predictions from it alone are too
sure of themselves. Hamiltonian Monte Carlo draws others: theta moves with a random momentum r through the
landscape of h = log p(y | theta) + log p(theta), and the end of each path is taken or refused so that the
draws are of exp(h):

    r <- r + e/2 C dh/dtheta,   theta <- theta + e C r,   r <- r + e/2 C dh/dtheta          (STEPS times)

C C = B^-1, with B the curvature of -h at the best theta: in these coordinates the posterior is round where
the data say much, so that STEPS steps of a length of order 1 lead to a draw that hardly remembers the last
one. That is why so few suffice: DRAWS leave a quarter of the posterior's spread as the error of a mean.

The random numbers are the same ones in every fit, so that the same data give the same predictions.
Cost: (WARMUP + DRAWS) STEPS evidences with gradient, twice as many below FEW rows, one a parameter for B, and
what is left of the way to the top.
Source: Neal 2011, MCMC using Hamiltonian dynamics, section 3; 4.2 for the length of steps, 4.1 for C.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gramian import clock, journal
from gramian.arrays import Array
from gramian.errors import NumericalError
from gramian.fitting.lbfgs import maximise
from gramian.fitting.newton import curvature
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report

DRAWS, WARMUP, STEPS = 16, 3, 8
# below so many rows there are twice as many draws: the posterior is far wider than at its top, paths are
# short beside it, each of its corners widens the intervals, and evidences cost next to nothing
FEW = 30
# of steps, with 4 parameters: half as long with 64, so that as many paths are taken (Neal 2011, 4.4). Paths
# differ in length, or a direction in which they come back to their start would never be left.
LENGTH = (0.35, 0.65)
FLATTEST = 0.1  # curvature: a direction is at most sqrt(10) wide, priors have 1.5 or 2
SPREAD = 2.0  # the standard deviation of a parameter without a prior around its best value, as chains have it


class ParameterDraws(NamedTuple):
    """Draws, and what they took."""

    thetas: Array  # (DRAWS, p), or twice as many
    evaluations: int

    def __str__(self) -> str:
        what = f"predictions averaged over {len(self.thetas)} draws of the parameters from their posterior"
        return f"{what}: {self.evaluations} evaluations"


class _Landscape:
    """h and its gradient; None beyond the limits, and where there is no evidence."""

    def __init__(self, objective: Objective, best: Array) -> None:
        self._objective, self._best = objective, best
        self._low, self._high = np.array(objective.limits, dtype=np.float64).T
        self._weak = np.zeros(len(best))
        for piece in objective.space.pieces:
            if piece.parameter.prior is None:
                self._weak[piece.at] = 1 / SPREAD**2
        self.evaluations = 0

    def __call__(self, theta: Array) -> tuple[float, Array]:
        self.evaluations += 1
        value, slope, _ = journal.evaluated(theta, lambda: self._objective(theta), self._objective.workspaces)
        off = theta - self._best
        return value - 0.5 * float(np.sum(self._weak * off**2)), slope - self._weak * off

    def asked(self, theta: Array) -> tuple[float, Array] | None:
        if not np.all((self._low <= theta) & (theta <= self._high)):
            return None
        try:
            value, slope = self(theta)
        except NumericalError:
            return None
        return (value, slope) if np.isfinite(value) and np.all(np.isfinite(slope)) else None

    def root(self, slope: Array) -> Array:
        """C at the best theta."""
        everywhere = np.ones(len(slope), dtype=bool)
        B = curvature(self, self._best, slope, everywhere, self._high)
        curvatures, directions = np.linalg.eigh(B)
        return np.asarray((directions / np.sqrt(np.maximum(np.abs(curvatures), FLATTEST))) @ directions.T)


@np.errstate(all="ignore")  # a path may lead where numbers end, and is then refused
def drawn(objective: Objective, best: Array, report: Report) -> ParameterDraws:
    """Draws of theta, after a search that has ended at `best`. They begin at the top of the landscape itself:
    where a search stops short of it depends on rounding, and draws should not."""
    top = maximise(objective, [best], objective.limits, report)
    if top.stopped == "interrupted":
        raise KeyboardInterrupt
    best = top.theta
    landscape, rng = _Landscape(objective, best), np.random.default_rng(0)
    here = landscape(best)
    C, theta = landscape.root(here[1]), best
    longest = np.array(LENGTH) * (4 / max(len(best), 4)) ** 0.25
    times = 2 if len(objective.data.X) < FEW else 1
    thetas = np.empty((DRAWS * times, len(best)))
    for k in range(-WARMUP * times, DRAWS * times):
        clock.check()
        r, e, level = rng.standard_normal(len(best)), rng.uniform(*longest), np.log(1 - rng.random())
        level += here[0] - 0.5 * float(r @ r)
        there, end = here, theta
        for _ in range(STEPS):
            r = r + 0.5 * e * (C @ there[1])
            end = end + e * (C @ r)
            found = landscape.asked(end)
            if found is None:
                break
            there = found
            r = r + 0.5 * e * (C @ there[1])
        else:
            if there[0] - 0.5 * float(r @ r) >= level:
                here, theta = there, end
        if k >= 0:
            thetas[k] = theta
    return ParameterDraws(thetas, top.evaluations + landscape.evaluations)
