"""Laplace's approximation: a Gaussian at the mode of p(f | y), with the curvature there.

Newton's method on Psi(g) = log p(y | f) - 1/2 g'K^-1 g with f = m + s g, in which a step that does not raise
Psi is halved. Each step is one Gaussian inference with the sites lam = -d^2 log p, h = d log p + lam g at the
present g. With lam at the mode, u = (I - Lam S) s2 and s2 = 1/2 diag(S) d^3 log p:

    log q(y) = Psi - 1/2 log det(I + K Lam)
    d log q / dK = 1/2 alpha alpha' - 1/2 A^-1 + 1/2 (u alpha' + alpha u'),     d log q / dm = alpha + u

the terms with u through the mode, which moves with the parameters. Source: Rasmussen and Williams 2006,
algorithms 3.1, 3.2 and 5.1.

Where log p is not concave (Student's t), curvatures of the wrong sign are left out of the steps, which then
still climb; at the mode they count.

`Mode` is the MAP estimate: its value is Psi, which has no maximum in the parameters: a larger kernel always
allows a higher mode. They are Laplace's, and so is the Gaussian at the mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from gramian import clock
from gramian.arrays import Array
from gramian.engines.base import Engine, Share, Term
from gramian.errors import NumericalError, ParameterError
from gramian.inference.model import EvidenceKind
from gramian.inference.problem import Problem, Ran, SiteRule, State, finite, steps_of
from gramian.likelihoods import Likelihood
from gramian.solvers.base import SolveOutcome

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

    name = "laplace"
    kind: ClassVar[EvidenceKind] = "approximation"

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
        answers, `times(alpha)` is K alpha, `step(answers, g)` is where a whole step leads: g and alpha."""
        alpha = g = np.zeros(shape)
        value, answers = psi(g, alpha)
        if start is not None and start.shape == shape:
            at = times(start)
            started, other = psi(at, start)
            if started >= value:
                alpha, g, value, answers = start, at, started, other
        steps, uphill, ended = 0, True, False
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
            ended = bool(gain < self.tol * (1 + abs(value)))
            if ended or clock.over():
                break
        return Climb(g, alpha, value, answers, steps, ended, uphill)

    def missed(self, mode: Climb) -> str:
        """What to say of steps that were used up, or time; nothing where they were not."""
        if mode.ended:
            return ""
        if mode.steps < self.max_iter:
            return f"The time limit ended Newton's method after {steps_of(mode.steps)}, before the mode."
        return f"Newton's method did not reach the mode in {self.max_iter} steps."


@dataclass(frozen=True)
class Laplace(AtMode):
    """A Gaussian at the mode."""

    def check(self, likelihood: Likelihood, engine: Engine) -> None:
        super().check(likelihood, engine)
        if likelihood.latents > 1:
            words = '"laplace", "vi" or "mcmc"' if likelihood.coupled_mode else '"vi" or "mcmc"'
            raise ParameterError(
                f"{type(likelihood).__name__} has several latent functions that interact: use"
                f" inference={words}."
            )

    def run(self, problem: Problem, start: Array | None, report: Share | None = None) -> Ran:
        s, prior, solves = problem.scale, problem.priors[0][0], 0
        zero = np.zeros((problem.n, 1))
        if start is None and not np.any(self._psi(problem, zero, zero)[1][:, 2]):
            raise ParameterError(
                f"log p of {type(problem.model.likelihood).__name__} has no curvature in f for any"
                f' observation, and the Gaussian of inference="{self.name}" has its width from that. Use'
                ' inference="ep", "vi" or "mcmc".'
            )

        def step(answers: Array, g: Array) -> tuple[Array, Array]:
            nonlocal solves
            (sited,) = problem.condition(*self._sites(answers, g, s, clip=True))
            solves += sited.outcome.iterations
            sited.release()
            return sited.mean, sited.alpha

        mode = self.climb(partial(self._psi, problem), prior.times, step, (problem.n, 1), start, report)
        note = self.missed(mode)
        lam, h = self._sites(mode.answers, mode.g, s, clip=False)
        try:
            (sited,) = problem.condition(lam, h)
        except NumericalError:
            lam, h = self._sites(mode.answers, mode.g, s, clip=True)
            (sited,) = problem.condition(lam, h)
            wrong = "At the mode the likelihood curves the wrong way so strongly that this was left out."
            note = note or wrong
        state = State(lam, h, mode.g, mode.alpha, [sited], mode.value, mode.answers)
        return state, SolveOutcome(iterations=solves or mode.steps, converged=mode.ended, note=note)

    def value(self, problem: Problem, state: State) -> float:
        return state.value - 0.5 * state.sited[0].logdet

    def gradient(self, problem: Problem, state: State) -> list[Array]:
        s, sited = problem.scale[0], state.sited[0]
        s2 = 0.5 * sited.var() * (state.answers[:, 3] * s**3)
        spread = sited.spread(s2)
        u = (s2 - state.lam[:, 0] * spread)[:, None]
        ones, zeros = np.ones(problem.n), np.zeros(problem.n)
        weights = np.column_stack([ones, spread * s, 0.5 * sited.var() * s**2, zeros])
        by_likelihood = problem.ask_back("expansion", weights, problem.f(state.mean))
        return problem.gradient([Term(sited, state.alpha, u)], state.alpha + u, by_likelihood)

    @staticmethod
    def _psi(problem: Problem, g: Array, alpha: Array) -> tuple[float, Array]:
        answers = problem.ask("expansion", problem.f(g))
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
            return finite(float(np.sum(answers[:, 0])) - 0.5 * float(np.sum(alpha * g))), answers

    @staticmethod
    def _sites(answers: Array, g: Array, s: Array, clip: bool) -> tuple[Array, Array]:
        lam = -answers[:, [2]] * s**2
        if clip:
            lam = np.maximum(lam, 0.0)
        return lam, answers[:, [1]] * s + lam * g


@dataclass(frozen=True)
class Mode(Laplace):
    """The most probable function: at Laplace's parameters, and with its Gaussian around it."""

    name = "map"
    kind: ClassVar[EvidenceKind] = "joint density"

    @property
    def searched(self) -> Laplace:
        return Laplace(self.tol, self.max_iter)

    def check(self, likelihood: Likelihood, engine: Engine) -> None:
        super().check(likelihood, engine)
        if not engine.variances:
            raise ParameterError(
                f'inference="map" needs a factor of K, and method="{engine.name}" has none. Use'
                ' inference="laplace", or another method.'
            )

    def value(self, problem: Problem, state: State) -> float:
        return state.value

    def gradient(self, problem: Problem, state: State) -> list[Array]:
        weights = np.column_stack([np.ones(problem.n), np.zeros((problem.n, 3))])
        by_likelihood = problem.ask_back("expansion", weights, problem.f(state.mean))
        term = Term(state.sited[0], state.alpha, logdet=False)
        return problem.gradient([term], state.alpha, by_likelihood)
