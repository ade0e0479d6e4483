"""Likelihoods that are not Gaussian, by Gaussian sites: Laplace, EP and variational inference are one loop.

Each likelihood term p(y_i | f_i) is replaced by exp(h_i g_i - 1/2 lam_i g_i^2), f = m + s g, g ~ N(0, K). The
sites give a Gaussian posterior of g (engines); a rule looks at that posterior and proposes better sites,
until nothing changes. The gradient of each evidence is 1/2 alpha alpha' - 1/2 A^-1 on K, since all three are
stationary in their sites; Laplace, which is stationary in f only, adds a term of rank two. With a Gaussian
likelihood all three are exact inference after one step. Several latent functions have independent priors and
sites, so K may be one matrix for all of them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramian import clock
from gramian.arrays import Array, plain_numbers
from gramian.engines.base import Conditioned, Engine, RowPrior, Share, Term, Use, Workspace
from gramian.errors import NumericalError, ParameterError
from gramian.inference.asked import ask, ask_back
from gramian.inference.base import Cavities, Graded, Inference
from gramian.inference.model import Data, Evidence, Inferred, Model
from gramian.likelihoods import Likelihood
from gramian.processes.base import Process
from gramian.processes.prior import mean_block, mean_gradient
from gramian.processes.stacked import side_by_side
from gramian.solvers.base import SolveOutcome

LEAST_CAVITY = 1e-10


class Problem:
    """A model at the rows of the data: priors of the latents, the likelihood's answers, in the units of g."""

    def __init__(self, model: Model, data: Data, engine: Engine, use: Use) -> None:
        self.model, self.data, self.engine = model, data, engine
        self.latents = model.likelihood.latents
        self.y = model.likelihood.y_of(np.asarray(data.Y, dtype=np.float64))  # (n,), or (n, columns)
        self.scale = np.broadcast_to(data.scale, (self.latents,))
        self.m = mean_block(model.mean, np.asarray(data.X), self.latents)  # (n, L)
        self.priors: list[tuple[RowPrior, list[int]]] = [
            (engine.at(kernel, data.X, use), columns) for kernel, columns in model.kernels
        ]
        of_latent = {k: prior for prior, columns in self.priors for k in columns}
        self.prior_of = [of_latent[k] for k in range(self.latents)]
        self.outside = np.zeros((len(self.y), self.latents))
        for k, prior in enumerate(self.prior_of):
            self.outside[:, k] = prior.outside

    @property
    def n(self) -> int:
        return len(self.y)

    def f(self, g: Array) -> Array:
        """What the likelihood sees, (n, L)."""
        return self.m + self.scale * g

    def ask(self, question: str, *columns: Array, power: float = 1.0) -> Array:
        """The likelihood's answers, (n, k), to a question about y and these columns, each (n,) or (n, L)."""
        return ask(self.model.likelihood, question, self.y, *columns, power=power)

    def ask_back(self, question: str, weights: Array, *columns: Array, power: float = 1.0) -> list[Array]:
        """The gradient by the likelihood's parameters of the answers, weighted and summed."""
        return ask_back(self.model.likelihood, question, weights, self.y, *columns, power=power)

    def concave(self, lam: Array) -> Array:
        """Curvatures without what rounding makes of them: none is negative where log p is concave."""
        return np.maximum(lam, 0.0) if self.model.likelihood.log_concave else lam

    def condition(self, lam: Array, h: Array) -> list[Conditioned]:
        """The latents with sites lam, h, each (n, L)."""
        return [
            prior.condition(np.ascontiguousarray(lam[:, k]), np.ascontiguousarray(h[:, [k]]))
            for k, prior in enumerate(self.prior_of)
        ]

    def gradient(self, terms: list[Term], by_m: Array, by_likelihood: list[Array]) -> list[Array]:
        """By the model's parameters and, last, by learned landmarks. `by_m` is in the units of g."""
        parts = [prior.pullback([terms[k] for k in columns]) for prior, columns in self.priors]
        pulled = [[*part.by_kernel, *([] if part.by_points is None else [part.by_points])] for part in parts]
        return self.assembled(pulled, by_m, by_likelihood)

    def assembled(self, parts: list[list[Array]], by_m: Array, by_likelihood: list[Array]) -> list[Array]:
        """The same from the gradient of each prior."""
        counts = [len(kernel.parameters()) for kernel, _ in self.model.kernels]
        own = [part[:count] for part, count in zip(parts, counts, strict=True)]
        # landmarks are those of all kernels
        points = [part[count] for part, count in zip(parts, counts, strict=True) if len(part) > count]
        free = [self.engine.free_gradient(np.sum(points, axis=0))] if points else []
        by_mean = mean_gradient(self.model.mean, np.asarray(self.data.X), by_m / self.scale)
        rest = [array for part in own[1:] for array in part]
        return [*own[0], *by_mean, *by_likelihood, *rest, *free]

    def posterior(self, sited: list[Conditioned]) -> Process:
        parts: list[tuple[Process, list[int]]] = []
        for (functions, own), (prior, _) in zip(self.model.priors(self.scale), self.priors, strict=True):
            places = [[j] for j in range(len(own))]
            parts.append((prior.process(functions, [sited[k] for k in own], places), own))
        return side_by_side(parts)


@dataclass
class State:
    """Where the loop is: sites, and the posterior they give."""

    lam: Array  # (n, L)
    h: Array
    mean: Array  # (n, L), of g
    alpha: Array
    sited: list[Conditioned]
    value: float  # what the rule watches: its evidence, or the log posterior density of f
    answers: Array  # of the likelihood, one row an observation
    coupled: Any = None  # the Gaussian of all latents, where the rule makes them dependent

    @property
    def var(self) -> Array:
        """Of g, (n, L)."""
        return np.stack([one.var() for one in self.sited], axis=1)

    def release(self) -> None:
        """Gives the memory of its factors back."""
        for one in self.sited:
            one.release()


Ran = tuple[State, SolveOutcome]


@dataclass(frozen=True)
class SiteRule(Inference):
    """Laplace, EP or variational inference: a loop over sites."""

    tol: float = 1e-8
    max_iter: int = 200

    whole: ClassVar[bool] = False  # whether the variances at the data count what landmarks leave out

    def __post_init__(self) -> None:
        plain_numbers(self)

    def check(self, likelihood: Likelihood, engine: Engine) -> None:
        if not likelihood.smooth:
            raise ParameterError(
                f"{type(likelihood).__name__} has no derivatives, which inference={self.name!r} needs. Use"
                ' inference="vi" or "mcmc".'
            )

    @abstractmethod
    def run(self, problem: Problem, start: Array | None, report: Share | None = None) -> Ran:
        """The state at convergence. `start` is what `kept` gave for neighbouring parameters."""

    def kept(self, state: State) -> Array:
        """What makes a good start for neighbouring parameters."""
        return np.stack([state.lam, state.h])

    @abstractmethod
    def value(self, problem: Problem, state: State) -> float:
        """The evidence at a converged state."""

    @abstractmethod
    def gradient(self, problem: Problem, state: State) -> list[Array]:
        """Of the evidence. Uses the state up."""

    def posterior(self, problem: Problem, state: State) -> Process:
        """At a converged state, which is used up."""
        return problem.posterior(state.sited)

    def without_own_site(self, problem: Problem, state: State) -> Cavities:
        """Mean and variance of each latent at each row, without that row's own site."""
        lam = np.stack([one.lam for one in state.sited], axis=1)
        mean, var = cavity(state.mean, state.var, lam, state.h)
        return Cavities(problem.f(mean), (var + problem.outside) * problem.scale**2)

    def infer(self, model: Model, data: Data, engine: Engine, report: Share | None = None) -> Inferred:
        problem, state, outcome = self._ran(model, data, engine, None, report)
        evidence = self._evidence(problem, state)
        return Inferred(self.posterior(problem, state), evidence, outcome)

    def evidence(self, model: Model, data: Data, engine: Engine, workspace: Workspace) -> Evidence:
        problem, state, _ = self._ran(model, data, engine, workspace, None)
        return self._evidence(problem, state)

    def evidence_and_gradient(self, model: Model, data: Data, engine: Engine, workspace: Workspace) -> Graded:
        problem, state, _ = self._ran(model, data, engine, workspace, None)
        return self._evidence(problem, state), self.gradient(problem, state)

    def cavities(self, model: Model, data: Data, engine: Engine, posterior: Process) -> Cavities:
        problem, state, _ = self._ran(model, data, engine, None, None)
        return self.without_own_site(problem, state)

    def _ran(
        self, model: Model, data: Data, engine: Engine, workspace: Workspace | None, report: Share | None
    ) -> tuple[Problem, State, SolveOutcome]:
        self.check(model.likelihood, engine)
        use = Use(again=True, signed=not model.likelihood.log_concave, whole=self.whole)
        problem = Problem(model, data, engine, use)
        state, outcome = self.run(problem, workspace.start if workspace is not None else None, report)
        if workspace is not None:  # a search
            # a bound is one wherever the loop ends; anything else must have converged to mean something
            if not outcome.converged:
                clock.check()  # where the time has ended it, the search ends, too
                if self.kind != "lower bound":
                    raise NumericalError(outcome.note)
            workspace.start = self.kept(state)
        return problem, state, outcome

    def _evidence(self, problem: Problem, state: State) -> Evidence:
        error = 0.5 * float(np.sqrt(sum(one.logdet_error**2 for one in state.sited)))
        value = self.value(problem, state)
        if problem.model.likelihood.location:
            value += problem.n * float(np.log(problem.scale[0]))  # of y / s, as every evidence is
        if error:
            return Evidence(value, "estimate", error)
        # a bound of another model's evidence is none of this one's
        lost = self.kind == "lower bound" and not (problem.engine.exact or problem.engine.bound)
        return Evidence(value, "approximation" if lost else self.kind)


def steps_of(count: int, what: str = "step") -> str:
    """1 -> "1 step"."""
    return f"{count} {what}{'s' * (count != 1)}"


def finite(value: float) -> float:
    """An objective; minus infinity where it is no number."""
    return value if np.isfinite(value) else -np.inf


def cavity(mean: Array, var: Array, lam: Array, h: Array, power: float = 1.0) -> tuple[Array, Array]:
    """Mean and variance of marginals N(mean, var) without that power of their sites. A precision is never
    less than LEAST_CAVITY of the marginal's, where a site of another sweep says more than all."""
    precision = np.maximum(1 / var - power * lam, LEAST_CAVITY / var)
    return (mean / var - power * h) / precision, 1 / precision
