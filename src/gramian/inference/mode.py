"""The mode of p(f | y): Newton's method on Psi(g) = log p(y | f) - 1/2 g'K^-1 g with f = m + s g, in which a
step that does not raise Psi is halved.

Source: Rasmussen and Williams 2006, algorithms 3.1 and 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.engines.base import Share
from gramian.inference.model import EvidenceKind
from gramian.inference.problem import SiteRule, State

Array = NDArray[np.float64]

HALVINGS = 30
# of Psi. Where it says no more the last Newton step still counts: log det depends on the mode itself, not on
# its square
ROUNDING = 1e-13


class Climb(NamedTuple):
    """Where the steps ended."""

    g: Array  # (n, L)
    alpha: Array  # (n, L): K^-1 g
    value: float  # Psi
    answers: Array  # of the likelihood, one row an observation
    steps: int
    ended: bool  # before the steps were used up
    uphill: bool  # whether the last step led there; else rounding hides the way


@dataclass(frozen=True)
class AtMode(SiteRule):
    """A rule that puts a Gaussian at the mode."""

    @property
    def name(self) -> str:
        return "laplace"

    @property
    def kind(self) -> EvidenceKind:
        return "approximation"

    def kept(self, state: State) -> Array:
        return state.alpha

    def climb(
        self,
        psi: Callable[[Array, Array], tuple[float, Array]],
        times: Callable[[Array], Array],
        step: Callable[[Array, Array], tuple[Array, Array]],
        shape: tuple[int, int],
        start: Array | None,
        report: Share | None,
    ) -> Climb:
        """From alpha = `start` where that is higher than 0. `psi(g, alpha)` gives Psi and the likelihood's
        answers, `times(alpha)` is K alpha, and `step(answers, g)` is where a whole step leads: g and alpha.
        """
        alpha = g = np.zeros(shape)
        value, answers = psi(g, alpha)
        if start is not None and start.shape == shape:
            at = times(start)
            started, other = psi(at, start)
            if started >= value:
                alpha, g, value, answers = start, at, started, other
        steps, uphill = 0, True
        for steps in range(1, self.max_iter + 1):
            to_g, to_alpha = step(answers, g)
            step_g, step_alpha = to_g - g, to_alpha - alpha
            gain, size, allowed = -np.inf, 1.0, -ROUNDING * (1 + abs(value))
            for _ in range(HALVINGS):
                new_value, new_answers = psi(g + size * step_g, alpha + size * step_alpha)
                gain = new_value - value
                if gain >= allowed:
                    break
                size /= 2
            uphill = bool(gain >= allowed)
            if uphill:
                alpha, g = alpha + size * step_alpha, g + size * step_g
                value, answers = new_value, new_answers
            if report is not None:
                report(1 - 1 / (1 + steps))
            # Newton squares its error: after a full step that gained delta, what is left to gain is of the
            # order of delta squared.
            if gain < self.tol * (1 + abs(value)):
                return Climb(g, alpha, value, answers, steps, True, uphill)
        return Climb(g, alpha, value, answers, steps, False, uphill)

    def missed(self) -> str:
        """What to say of steps that were used up."""
        return f"Newton's method did not reach the mode in {self.max_iter} steps."
