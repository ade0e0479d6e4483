"""Full variational inference: the Gaussian closest to the posterior in Kullback-Leibler divergence, by
natural gradients on sites.

The best Gaussian has the precision K^-1 + Lam with one number a row (Opper and Archambeau 2009). With
marginals N(m, v) of the present sites the natural gradient of the bound

    ELBO = sum_i E log p(y_i | f_i) - KL,     KL = 1/2 [log det(I + K Lam) - sum_i lam_i v_i + mean'alpha]

leads to the sites lam = -2 dE log p/dv, h = dE log p/dm + lam m; a step of size rho goes that share of the
way in (lam, h). A step that lowers the bound is halved, so that the bound never falls. Steps are accelerated
from their own history (anderson.py), as long as that raises the bound. Where landmarks leave a part e_i of
k(x, x) out, v_i counts it in E log p: with Gaussian noise this is the collapsed bound of Titsias.

At the optimum dELBO/dK = 1/2 alpha alpha' - 1/2 A^-1, and dELBO/de_i = dE log p/dv_i. Source: Khan and Lin
2017 (conjugate-computation variational inference); Challis and Barber 2013 for concavity.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gramian import clock
from gramian.arrays import Array
from gramian.engines.base import Engine, Share, Term
from gramian.errors import NumericalError, ParameterError
from gramian.inference.anderson import Anderson
from gramian.inference.model import EvidenceKind
from gramian.inference.problem import Problem, Ran, SiteRule, State, finite, steps_of
from gramian.likelihoods import Likelihood
from gramian.solvers.base import SolveOutcome

LOWEST = -np.finfo(np.float64).max  # of finite numbers
RELAXED = 0.3  # of a limited time, for the start by a smoother likelihood
PAUSE = 6  # steps without acceleration, after one that lowered the bound


@dataclass(frozen=True)
class VI(SiteRule):
    """The evidence lower bound, and the Gaussian that reaches it."""

    name = "vi"
    kind: ClassVar[EvidenceKind] = "lower bound"
    whole = asks_variances = True

    tol: float = 1e-9  # of the bound: what a step must gain to go on

    def check(self, likelihood: Likelihood, engine: Engine) -> None:
        if not engine.variances:
            cure = 'Use inference="laplace" with it' if likelihood.latents == 1 else "Use another method"
            raise ParameterError(
                f"Variational inference needs the variance of every row, which {engine.name!r} does not give."
                f" {cure}."
            )

    def run(self, problem: Problem, start: Array | None, report: Share | None = None) -> Ran:
        shape = (problem.n, problem.latents)
        state = self._from(problem, start) if start is not None and start.shape == (2, *shape) else None
        if state is None and problem.model.likelihood.relaxed is not None:
            state = self._from(problem, self._relaxed(problem))
        state = state or self._state(problem, self._narrow(problem), np.zeros(shape))
        # Where log p is not concave the climb has a long tail of no consequence.
        tol = self.tol if problem.model.likelihood.log_concave else max(self.tol, 1e-6)
        size, small, rest, history = 1.0, 0, 0, Anderson()
        for steps in range(1, self.max_iter + 1):
            at, mapped = np.stack([state.lam, state.h]), np.stack(self._proposed(problem, state))
            var = state.var
            leap = history.propose(at, mapped, np.stack([var, np.sqrt(var)]))
            state.release()  # before there is another: the factors of two would be in memory beside K
            new = None if leap is None or steps < rest else self._risen(problem, state, leap)
            if leap is not None and new is None and steps >= rest:
                history.reset()
                rest = steps + PAUSE
            if new is None:
                size = min(1.0, 1.3 * size)
            while new is None:
                new = self._risen(problem, state, at + size * (mapped - at))
                if new is None:
                    size /= 2
                if size < 1e-6:  # no step gains: the optimum, to rounding
                    return self._state(problem, state.lam, state.h), SolveOutcome(iterations=steps)
            gain, state = new.value - state.value, new
            if report is not None:
                report(1 - 1 / (1 + steps))
            small = small + 1 if gain < tol * (1 + abs(state.value)) else 0
            if small >= 2:
                return state, SolveOutcome(iterations=steps)
            if clock.over():
                break
        note = f"The variational bound still rose after {steps_of(steps)}; it is a bound all the same."
        if steps < self.max_iter:
            note = f"The time limit ended variational inference: {note[0].lower()}{note[1:]}"
        return state, SolveOutcome(iterations=steps, converged=False, note=note)

    def _narrow(self, problem: Problem) -> Array:
        """Sites that leave no f a variance above 1, to begin with.

        A wide prior has E exp(f) = exp(v / 2), and the first step sites of that size, whose lam v - 1 is
        nothing but rounding: a bound of 1e13 was taken for the highest, where the log evidence is -70
        (counts, v = 74).
        """
        lam = np.zeros((problem.n, problem.latents))
        for kernel, columns in problem.model.kernels:
            prior = np.maximum(kernel.diag(np.asarray(problem.data.X)), np.finfo(np.float64).tiny)
            for k in columns:
                lam[:, k] = np.maximum(problem.scale[k] ** 2 - 1 / prior, 0.0)
        return lam

    def _relaxed(self, problem: Problem) -> Array:
        """The sites of a smoother likelihood: a start from which a class with few rows is not lost."""
        easier = copy.copy(problem)
        likelihood = problem.model.likelihood.relaxed
        assert likelihood is not None
        easier.model = dataclasses.replace(problem.model, likelihood=likelihood)
        now = clock.now()  # which has no limit without one
        with clock.until(now + RELAXED * (clock.end() - now), math.inf):
            found, _ = dataclasses.replace(self, tol=1e-4).run(easier, None)
        found.release()
        return np.stack([found.lam, found.h])

    def _from(self, problem: Problem, sites: Array, least: float = LOWEST) -> State | None:
        """The state with these sites, where they make a posterior whose bound is no lower than `least`."""
        try:
            state = self._state(problem, sites[0], sites[1])
        except NumericalError:
            return None
        if state.value >= least:
            return state
        state.release()
        return None

    def _risen(self, problem: Problem, state: State, sites: Array) -> State | None:
        """The state with these sites, where its bound is no lower."""
        sites = np.stack([problem.concave(sites[0]), sites[1]])
        return self._from(problem, sites, state.value - 1e-13 * (1 + abs(state.value)))

    def value(self, problem: Problem, state: State) -> float:
        return state.value

    def gradient(self, problem: Problem, state: State) -> list[Array]:
        weights = np.zeros(state.answers.shape)
        weights[:, 0] = 1.0
        by_likelihood = problem.ask_back("expected", weights, *self._seen(problem, state))
        by_outside = (state.answers[:, 1 + problem.latents :] * problem.scale**2).T
        terms = [
            Term(one, by_outside=weight if np.any(outside) else None)
            for one, weight, outside in zip(state.sited, by_outside, problem.outside.T, strict=True)
        ]
        return problem.gradient(terms, state.alpha, by_likelihood)

    def _state(self, problem: Problem, lam: Array, h: Array) -> State:
        sited = problem.condition(lam, h)
        mean, alpha = np.hstack([one.mean for one in sited]), np.hstack([one.alpha for one in sited])
        state = State(lam, h, mean, alpha, sited, 0.0, np.zeros((0, 1)))
        state.answers = problem.ask("expected", *self._seen(problem, state))
        logdets, used = sum(one.logdet for one in sited), np.stack([one.lam for one in sited], axis=1)
        divergence = 0.5 * (logdets - float(np.sum(used * state.var)) + float(np.sum(mean * alpha)))
        state.value = finite(float(np.sum(state.answers[:, 0])) - divergence)
        return state

    def _seen(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """The marginals as the likelihood sees them."""
        return problem.f(state.mean), (state.var + problem.outside) * problem.scale**2

    def _proposed(self, problem: Problem, state: State) -> tuple[Array, Array]:
        L, s = problem.latents, problem.scale
        lam = problem.concave(-2 * state.answers[:, 1 + L :] * s**2)
        return lam, state.answers[:, 1 : 1 + L] * s + lam * state.mean
