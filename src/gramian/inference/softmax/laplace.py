"""Laplace's approximation for one of C classes, p(y | f) = softmax(f)_y: a Gaussian at the mode of all C
latent functions together.

Newton's method on Psi (`AtMode`). The curvature W couples the classes of a row, and a step takes C n^3 flops
instead of C^3 n^3 (coupling). With S = (K^-1 + W)^-1 at the mode, S_i the covariance of row i's classes, and

    s2_ic = -1/2 d tr(S_i W_i) / dg_c = -1/2 s_c pi_c [T_cc - 2 (T pi)_c - sum_a pi_a (T_aa - 2 (T pi)_a)],
        T = s S_i s,     u = (I - W S) s2

the evidence and its gradient are

    log q(y) = Psi - 1/2 log det(I + K W)
    d log q / dK_c = 1/2 alpha_c alpha_c' - 1/2 R_cc + 1/2 (u_c alpha_c' + alpha_c u_c'),
    d log q / dm = (alpha + u) / s

the terms with u through the mode, which moves with the parameters. Source: Rasmussen and Williams 2006,
section 3.5 and algorithm 3.3; the gradient as in their section 5.5.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from gramian.arrays import Array
from gramian.engines.base import Engine, Share
from gramian.errors import ParameterError
from gramian.inference.base import Cavities
from gramian.inference.laplace import AtMode, Laplace
from gramian.inference.problem import Problem, Ran, SiteRule, State, finite
from gramian.inference.softmax.base import Coupling, Groups, curvature, curved
from gramian.inference.softmax.dense import DenseCoupling
from gramian.inference.softmax.features import FeatureCoupling
from gramian.likelihoods import Likelihood
from gramian.processes.base import Process
from gramian.solvers.base import SolveOutcome


def laplace_for(likelihood: Likelihood) -> SiteRule:
    """Laplace's approximation, in the form that suits the likelihood."""
    return SoftmaxLaplace() if likelihood.coupled_mode else Laplace()


def coupling(groups: Groups, scale: Array) -> Coupling:
    """For the priors of a problem, each with the classes it is for."""
    kind = DenseCoupling if groups[0][0].features is None else FeatureCoupling
    return kind(groups, scale)


@dataclass(frozen=True)
class SoftmaxLaplace(AtMode):
    """A Gaussian at the mode of all classes. The `answers` of its state are their probabilities."""

    coupled = True

    def check(self, likelihood: Likelihood, engine: Engine) -> None:
        super().check(likelihood, engine)
        if not likelihood.coupled_mode:
            raise ParameterError(
                f"SoftmaxLaplace is for the Softmax likelihood, not for {type(likelihood).__name__}: use"
                " laplace_for(likelihood)."
            )
        if not engine.variances:
            raise _without_inverses(engine)

    def run(self, problem: Problem, start: Array | None, report: Share | None = None) -> Ran:
        if not all(prior.rooted or prior.features is not None for prior, _ in problem.priors):
            raise _without_inverses(problem.engine)
        prior = coupling(problem.priors, problem.scale)

        def step(pi: Array, g: Array) -> tuple[Array, Array]:
            return prior.step(pi, _linear(problem, pi, g))

        shape = (problem.n, problem.latents)
        mode = self.climb(partial(_psi, problem), prior.times, step, shape, start, report)
        note = self.missed(mode)
        if not mode.uphill:
            hidden = "Newton's method found no step that leads uphill: rounding hides it."
            note = f"{hidden} Bound the kernel's scale."
        pi, h = mode.answers, _linear(problem, mode.answers, mode.g)
        lam, coupled = pi * problem.scale**2, prior.condition(pi, h)
        state = State(lam, h, mode.g, mode.alpha, [], mode.value, pi, coupled)
        return state, SolveOutcome(iterations=mode.steps, converged=not note, note=note)

    def value(self, problem: Problem, state: State) -> float:
        return state.value - 0.5 * state.coupled.logdet

    def gradient(self, problem: Problem, state: State) -> list[Array]:
        s, pi, coupled = problem.scale, state.answers, state.coupled
        T = coupled.joint() * np.multiply.outer(s, s)
        inner = np.einsum("icc->ic", T) - 2 * np.einsum("icd,id->ic", T, pi)
        s2 = -0.5 * s * pi * (inner - np.sum(pi * inner, axis=1, keepdims=True))
        u = s2 - curved(pi, s, coupled.spread(s2))
        return problem.assembled(coupled.pullback(state.alpha, u), state.alpha + u, [])

    def posterior(self, problem: Problem, state: State) -> Process:
        return state.coupled.posterior(problem.model, problem.scale)

    def without_own_site(self, problem: Problem, state: State) -> Cavities:
        # Without its own site a row's classes have the covariance (S_i^-1 - W_i)^-1 = S_i (I - W_i S_i)^-1.
        s, pi = problem.scale, state.answers
        S = state.coupled.joint()
        rest = np.linalg.solve(np.eye(problem.latents) - S @ curvature(pi, s), S)
        mean = state.mean - np.einsum("icd,id->ic", rest, _slope(problem, pi))
        return Cavities(problem.f(mean), np.maximum(np.einsum("icc->ic", rest), 0.0) * s**2)


def _without_inverses(engine: Engine) -> ParameterError:
    return ParameterError(
        "Laplace's approximation of a softmax needs the inverses of K with each class's sites, which"
        f' {engine.name!r} does not give. Use method="exact", "nystrom" or "fourier", or classes one against'
        " the rest."
    )


def _psi(problem: Problem, g: Array, alpha: Array) -> tuple[float, Array]:
    """Psi, and the probabilities of the classes (n, C)."""
    f = problem.f(g)
    f = f - np.max(f, axis=1, keepdims=True)
    logs = f - np.log(np.sum(np.exp(f), axis=1, keepdims=True))
    fit = float(np.sum(logs[np.arange(problem.n), problem.y.astype(int)]))
    return finite(fit - 0.5 * float(np.sum(alpha * g))), np.exp(logs)


def _slope(problem: Problem, pi: Array) -> Array:
    """d log p / dg, (n, C)."""
    return problem.scale * ((problem.y[:, None] == np.arange(problem.latents)) - pi)


def _linear(problem: Problem, pi: Array, g: Array) -> Array:
    """The sites' h = d log p / dg + W g."""
    return _slope(problem, pi) + curved(pi, problem.scale, g)
