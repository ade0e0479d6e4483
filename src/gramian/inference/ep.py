"""Expectation propagation: each site is such that the posterior has the moments of cavity times likelihood.

With the marginal N(m, v) of a row, its site (lam, h) and a power a (1: EP), the cavity has 1/v_c = 1/v - a
lam, m_c/v_c = m/v - a h; the tilted distribution p(y | f)^a N(f; m_c, v_c) / Z has mean m_t and variance v_t,
and the new site is

    lam = (1/v_t - 1/v_c) / a,     h = (m_t/v_t - m_c/v_c) / a

    log Z_EP = -1/2 log det(I + K Lam) + 1/2 h'mean + 1/a sum_i [log Z_i + A(m_c, v_c) - A(m, v)],
        A(m, v) = 1/2 log v + m^2 / 2v

`parallel` renews all sites at once, damped, and factors once a sweep; `sequential` renews one after the other
with a rank-one update of the posterior, as the algorithm was published, and factors after each sweep. Both
have the same fixed points, and are accelerated (anderson.py). At a fixed point d log Z / dK = 1/2 alpha
alpha' - 1/2 A^-1. Sources: Minka 2001; Rasmussen and Williams 2006, algorithms 3.5, 3.6 and 5.2; Minka 2004
(power EP).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from scipy.linalg import blas

from gramian import clock
from gramian.arrays import Array, plain_numbers
from gramian.engines.base import Engine, Share, Term
from gramian.errors import NumericalError, ParameterError
from gramian.inference.anderson import Anderson
from gramian.inference.asked import ask
from gramian.inference.model import EvidenceKind
from gramian.inference.problem import Problem, Ran, SiteRule, State, cavity, steps_of
from gramian.likelihoods import Likelihood
from gramian.solvers.base import SolveOutcome


@dataclass(frozen=True)
class EP(SiteRule):
    """Expectation propagation, or power EP."""

    name = "ep"
    kind: ClassVar[EvidenceKind] = "approximation"
    asks_variances = True

    schedule: Literal["parallel", "sequential"] = "parallel"
    damping: float = 0.9  # the share of a new site that a parallel sweep takes
    power: float = 1.0
    tol: float = 1e-7

    def __post_init__(self) -> None:
        plain_numbers(self)
        if self.schedule not in ("parallel", "sequential"):
            raise ParameterError(
                f'EP: schedule={self.schedule!r} is not known. Use "parallel" or "sequential".'
            )
        if not 0 < self.damping <= 1 or not 0 < self.power <= 1:
            raise ParameterError(
                f"EP: damping={self.damping!r} and power={self.power!r} must be above 0 and at most 1."
            )

    def check(self, likelihood: Likelihood, engine: Engine) -> None:
        if likelihood.latents > 1:
            # Laplace's has a form for softmax alone
            words = '"vi", "laplace" or "mcmc"' if likelihood.coupled_mode else '"vi" or "mcmc"'
            raise ParameterError(
                f"{type(likelihood).__name__} has several latent functions: use inference={words}."
            )
        if not engine.variances:
            raise ParameterError(
                f"EP needs the variance of every row at every sweep, which {engine.name!r} does not give. Use"
                ' inference="laplace" with it.'
            )

    def run(self, problem: Problem, start: Array | None, report: Share | None = None) -> Ran:
        state = self._start(problem, start)
        sequential = self.schedule == "sequential"
        damping, last, least, history = (1.0 if sequential else self.damping), np.inf, np.inf, Anderson()
        for sweeps in range(1, self.max_iter + 1):
            at = np.stack([state.lam, state.h])
            mapped = np.stack(self._swept(problem, state) if sequential else self._renewed(problem, state))
            var = state.sited[0].var()[:, None]
            weight = np.stack([var, np.sqrt(var)])
            left = float(np.linalg.norm((mapped - at) * weight))
            if left > 2 * least:
                # a leap went astray: from here on in ordinary steps, until there is a history again
                history.reset()
            least = min(least, left)
            leap = history.propose(at, mapped, weight)
            mean = state.mean
            state.release()  # before there is another: two factors beside K would be a third array
            state = self._moved(problem, at, mapped, leap, damping)
            change = self._change(mean[:, 0], var[:, 0], state)
            if report is not None:
                report(1 - 1 / (1 + sweeps))
            if change < self.tol:
                return state, SolveOutcome(iterations=sweeps)
            if change > last and sweeps > 3:
                damping = max(0.5 * damping, 0.05)  # it goes in circles
            last = change
            if clock.over():
                break
        still = f"moments still change by {last:.2g} of a standard deviation"
        note = f"EP did not converge in {self.max_iter} sweeps: {still}. Use a smaller damping."
        if sweeps < self.max_iter:
            note = f"The time limit ended EP after {steps_of(sweeps, 'sweep')}: {still}."
        return state, SolveOutcome(iterations=sweeps, residual=last, converged=False, note=note)

    def value(self, problem: Problem, state: State) -> float:
        m, v = state.mean[:, 0], state.sited[0].var()
        m_c, v_c = self._cavity(state)
        terms = state.answers[:, 0] + 0.5 * np.log(v_c / v) + 0.5 * (m_c**2 / v_c - m**2 / v)
        total = float(np.sum(terms) / self.power)
        return total - 0.5 * state.sited[0].logdet + 0.5 * float(state.h[:, 0] @ m)

    def gradient(self, problem: Problem, state: State) -> list[Array]:
        weights = np.zeros((problem.n, 3))
        weights[:, 0] = 1 / self.power
        by_likelihood = problem.ask_back("tilted", weights, *self._seen(problem, state), power=self.power)
        return problem.gradient([Term(state.sited[0])], state.alpha, by_likelihood)

    def _start(self, problem: Problem, sites: Array | None) -> State:
        """With the sites of other parameters, where they make a posterior with these; else with none."""
        if sites is not None and sites.shape[1] == problem.n:
            with contextlib.suppress(NumericalError):
                return self._state(problem, sites[0], sites[1])
        return self._state(problem, np.zeros((problem.n, 1)), np.zeros((problem.n, 1)))

    def _moved(self, problem: Problem, at: Array, mapped: Array, leap: Array | None, damping: float) -> State:
        """The leap, where it leads to a posterior; else a damped step, as short as it must be."""
        if leap is not None:
            with contextlib.suppress(NumericalError):
                return self._state(problem, problem.concave(leap[0]), leap[1])
        while True:
            try:
                return self._state(problem, *(at + damping * (mapped - at)))
            except NumericalError:
                damping /= 2
                if damping < 1e-4:
                    raise

    def _state(self, problem: Problem, lam: Array, h: Array) -> State:
        (sited,) = problem.condition(lam, h)
        state = State(lam, h, sited.mean, sited.alpha, [sited], 0.0, np.zeros((0, 3)))
        state.answers = problem.ask("tilted", *self._seen(problem, state), power=self.power)
        return state

    def _cavity(self, state: State) -> tuple[Array, Array]:
        return cavity(state.mean[:, 0], state.sited[0].var(), state.lam[:, 0], state.h[:, 0], self.power)

    def _seen(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """The cavity as the likelihood sees it."""
        m_c, v_c = self._cavity(state)
        return problem.f(m_c[:, None])[:, 0], v_c * problem.scale[0] ** 2

    def _renewed(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """All sites from the present posterior."""
        m_c, v_c = self._cavity(state)
        s = problem.scale[0]
        mean = (state.answers[:, 1] - problem.m[:, 0]) / s
        return self._site(problem, m_c, v_c, mean, state.answers[:, 2] / s**2)

    def _site(self, problem: Problem, m_c: Array, v_c: Array, mean: Array, var: Array) -> tuple[Array, Array]:
        var = np.maximum(var, 1e-12 * v_c)
        lam = problem.concave((1 / var - 1 / v_c) / self.power)
        return lam[:, None], ((mean / var - m_c / v_c) / self.power)[:, None]

    def _swept(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """One site after the other, with the posterior covariance kept up to date by rank-one updates."""
        s, a = problem.scale[0], self.power
        S = state.sited[0].covariance()
        lam, h = state.lam[:, 0].copy(), state.h[:, 0].copy()
        mean = S @ h
        for i in range(problem.n):
            v = S[i, i]
            m_c, v_c = cavity(mean[i], v, lam[i], h[i], a)
            seen = np.array([problem.m[i, 0] + s * m_c]), np.array([v_c * s**2])
            _, m_t, v_t = ask(problem.model.likelihood, "tilted", problem.y[i : i + 1], *seen, power=a)[0]
            moments = np.array([[m_c], [v_c], [(m_t - problem.m[i, 0]) / s], [v_t / s**2]])
            new_lam, new_h = self._site(problem, *moments)
            d_lam, d_h = float(new_lam[0, 0]) - lam[i], float(new_h[0, 0]) - h[i]
            lam[i], h[i] = lam[i] + d_lam, h[i] + d_h
            column = S[:, i].copy()
            gain = d_lam / (1 + d_lam * v)
            S = blas.dger(-gain, column, column, a=S, overwrite_a=1)
            mean += column * (d_h - gain * (mean[i] + d_h * v))
        return lam[:, None], h[:, None]

    @staticmethod
    def _change(mean: Array, var: Array, new: State) -> float:
        """The largest change of a marginal from such moments, in standard deviations."""
        now = new.sited[0].var()
        means = np.abs(new.mean[:, 0] - mean) / np.sqrt(now)
        return float(max(np.max(means), np.max(np.abs(np.log(now / var)))))
