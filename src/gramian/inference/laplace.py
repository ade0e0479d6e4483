"""Laplace's approximation: a Gaussian at the mode of p(f | y), with the curvature there.

Newton's method on Psi (mode.py), each step one Gaussian inference with the sites lam = -d^2 log p, h = d log
p + lam g at the present g. With lam at the mode, u = (I - Lam S) s2 and s2 = 1/2 diag(S) d^3 log p:

    log q(y) = Psi - 1/2 log det(I + K Lam)
    d log q / dK = 1/2 alpha alpha' - 1/2 A^-1 + 1/2 (u alpha' + alpha u'),     d log q / dm = alpha + u

the terms with u through the mode, which moves with the parameters. Source: Rasmussen and Williams 2006,
algorithms 3.1, 3.2 and 5.1.

`Mode` is the MAP estimate: its value is Psi, the joint density of y and the most probable f. Parameters are
not searched by it, because it has no maximum: a larger kernel always allows a higher mode. They are
Laplace's, and so is the Gaussian at the mode.

Where log p is not concave (Student's t), curvatures of the wrong sign are left out of the steps, which then
still climb; at the mode they count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from gramian.engines.base import Engine, Share, Term
from gramian.errors import NumericalError, ParameterError
from gramian.inference.asked import ask, ask_back
from gramian.inference.mode import AtMode
from gramian.inference.model import EvidenceKind
from gramian.inference.problem import Problem, State
from gramian.likelihoods import Likelihood, Softmax
from gramian.solvers.base import SolveOutcome

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Laplace(AtMode):
    """A Gaussian at the mode."""

    def check(self, likelihood: Likelihood, engine: Engine) -> None:
        super().check(likelihood, engine)
        if likelihood.latents > 1:
            words = '"laplace", "vi" or "mcmc"' if isinstance(likelihood, Softmax) else '"vi" or "mcmc"'
            raise ParameterError(
                f"{type(likelihood).__name__} has several latent functions that interact: use"
                f" inference={words}."
            )

    def run(
        self, problem: Problem, start: Array | None, report: Share | None = None
    ) -> tuple[State, SolveOutcome]:
        s, prior, solves = problem.scale, problem.priors[0][0], 0
        zero = np.zeros((problem.n, 1))
        if start is None and not np.any(self._psi(problem, zero, zero)[1][:, 2]):
            raise ParameterError(
                f"log p of {type(problem.model.likelihood).__name__} has no curvature in f for any"
                " observation, and the Gaussian of "
                f'inference="{self.name}" has its width from that. Use inference="ep", "vi" or "mcmc".'
            )

        def step(answers: Array, g: Array) -> tuple[Array, Array]:
            nonlocal solves
            (sited,) = problem.condition(*self._sites(answers, g, s, clip=True))
            solves += sited.outcome.iterations
            sited.release()
            return sited.mean, sited.alpha

        mode = self.climb(partial(self._psi, problem), prior.times, step, (problem.n, 1), start, report)
        note = "" if mode.ended else self.missed()
        lam, h = self._sites(mode.answers, mode.g, s, clip=False)
        try:
            (sited,) = problem.condition(lam, h)
        except NumericalError:
            lam, h = self._sites(mode.answers, mode.g, s, clip=True)
            (sited,) = problem.condition(lam, h)
            note = (
                note or "At the mode the likelihood curves the wrong way so strongly that this was left out."
            )
        state = State(lam, h, mode.g, mode.alpha, [sited], mode.value, mode.answers)
        return state, SolveOutcome(iterations=solves or mode.steps, converged=mode.ended, note=note)

    def value(self, problem: Problem, state: State) -> float:
        return state.value - 0.5 * state.sited[0].logdet

    def gradient(self, problem: Problem, state: State) -> list[Array]:
        s, likelihood, sited = problem.scale, problem.model.likelihood, state.sited[0]
        third = state.answers[:, 3] * s[0] ** 3
        s2 = 0.5 * sited.var() * third
        spread = sited.spread(s2)
        u = s2 - state.lam[:, 0] * spread
        weights = np.column_stack(
            [np.ones(problem.n), spread * s[0], 0.5 * sited.var() * s[0] ** 2, np.zeros(problem.n)]
        )
        by_likelihood = ask_back(likelihood, "expansion", weights, problem.y, problem.f(state.mean))
        term = Term(sited, state.alpha, u[:, None])
        return problem.gradient([term], state.alpha + u[:, None], by_likelihood)

    @staticmethod
    def _psi(problem: Problem, g: Array, alpha: Array) -> tuple[float, Array]:
        answers = ask(problem.model.likelihood, "expansion", problem.y, problem.f(g))
        value = float(np.sum(answers[:, 0])) - 0.5 * float(np.sum(alpha * g))
        return (value if np.isfinite(value) else -np.inf), answers

    @staticmethod
    def _sites(answers: Array, g: Array, s: Array, clip: bool) -> tuple[Array, Array]:
        lam = -answers[:, [2]] * s**2
        if clip:
            lam = np.maximum(lam, 0.0)
        return lam, answers[:, [1]] * s + lam * g


@dataclass(frozen=True)
class Mode(Laplace):
    """The most probable function: at Laplace's parameters, and with its Gaussian around it."""

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

    @property
    def name(self) -> str:
        return "map"

    @property
    def kind(self) -> EvidenceKind:
        return "joint density"

    def value(self, problem: Problem, state: State) -> float:
        return state.value

    def gradient(self, problem: Problem, state: State) -> list[Array]:
        weights = np.column_stack([np.ones(problem.n), np.zeros((problem.n, 3))])
        by_likelihood = ask_back(
            problem.model.likelihood, "expansion", weights, problem.y, problem.f(state.mean)
        )
        term = Term(state.sited[0], state.alpha, logdet=False)
        return problem.gradient([term], state.alpha, by_likelihood)
