"""Inference with likelihoods that are not Gaussian, by Gaussian sites: Laplace, expectation propagation and
variational inference are one loop.

Each likelihood term p(y_i | f_i) is replaced by exp(h_i g_i - 1/2 lam_i g_i^2), f = m + s g, g ~ N(0, K). The
sites give a Gaussian posterior of g (algebra); a rule looks at that posterior and proposes better sites,
until nothing changes:

    Laplace         the second-order expansion of log p at the mode                laplace.py
    EP              the site that gives the moments of cavity times likelihood     ep.py
    Variational     the natural gradient of the evidence lower bound               variational.py

The gradient of each evidence is 1/2 alpha alpha' - 1/2 R on K, since all three are stationary in their sites;
Laplace, which is stationary in f only, adds a term of rank two. With a Gaussian likelihood all three are
exact inference after one step.

Several latent functions have independent priors and sites, so K may be one matrix for all of them.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gramian.errors import NumericalError, ParameterError
from gramian.features.nystrom import NystromBasis
from gramian.gram.operator import GramOperator
from gramian.inference.algebra import Dense, Features, Krylov, Prior, Sited, Term
from gramian.inference.base import (
    Data,
    Evidence,
    GaussianProcess,
    Inference,
    Inferred,
    LeftOut,
    Model,
    Process,
    Share,
    Stacked,
    Work,
    Workspace,
    mean_block,
    mean_gradient,
)
from gramian.inference.exact import Exact
from gramian.inference.iterative import Iterative
from gramian.inference.lowrank import LowRank
from gramian.inference.methods import Recipe
from gramian.kernels.base import Kernel
from gramian.likelihoods import Likelihood
from gramian.linalg.threads import threads_for
from gramian.means import OneOutput
from gramian.solvers.base import SolveOutcome

Array = NDArray[np.float64]

Kind = Literal["approximation", "lower bound", "joint density"]

EVALUATIONS = 10  # factorisations of one inference, for predictions of time


class Problem:
    """A model at the rows of the data: priors of the latents, and the likelihood's answers, in the units of
    g."""

    def __init__(
        self, model: Model, data: Data, engine: Inference, whole: bool = False, signed: bool = False
    ) -> None:
        self.model, self.data = model, data
        self.L = model.likelihood.latents
        self.y = np.asarray(data.Y, dtype=np.float64)[:, 0]
        self.scale = np.broadcast_to(data.scale, (self.L,))
        self.m = mean_block(model.mean, np.asarray(data.X), self.L)  # (n, L)
        if data.offset is not None:
            self.m = self.m + data.offset[:, None]
        self.priors = [
            (_prior(kernel, data, engine, whole, signed), columns) for kernel, columns in model.kernels
        ]
        self.outside = np.zeros((len(self.y), self.L))
        for prior, columns in self.priors:
            for k in columns:
                self.outside[:, k] = prior.outside

    @property
    def n(self) -> int:
        return len(self.y)

    def f(self, g: Array) -> Array:
        """What the likelihood sees, (n, L)."""
        return self.m + self.scale * g

    def condition(self, lam: Array, h: Array) -> list[Sited]:
        """The latents with sites lam, h, each (n, L)."""
        found: dict[int, Sited] = {}
        for prior, columns in self.priors:
            for k in columns:
                found[k] = prior.condition(np.ascontiguousarray(lam[:, k]), np.ascontiguousarray(h[:, k]))
        return [found[k] for k in range(self.L)]

    def gradient(self, terms: list[Term], by_m: Array, by_likelihood: list[Array]) -> list[Array]:
        """In the order of the model's parameters, and a last one for learned landmarks. `by_m` is in the
        units of g."""
        parts = [prior.pullback([terms[k] for k in columns]) for prior, columns in self.priors]
        return self.assembled(parts, by_m, by_likelihood)

    def assembled(self, parts: list[list[Array]], by_m: Array, by_likelihood: list[Array]) -> list[Array]:
        """The same from the gradient of each prior."""
        counts = [len(kernel.parameters()) for kernel, _ in self.model.kernels]
        own = [part[:count] for part, count in zip(parts, counts, strict=True)]
        # landmarks are those of all kernels
        free = zip(*(part[count:] for part, count in zip(parts, counts, strict=True)), strict=True)
        by_mean = mean_gradient(self.model, np.asarray(self.data.X), by_m / self.scale)
        return [
            *own[0],
            *by_mean,
            *by_likelihood,
            *(array for part in own[1:] for array in part),
            *(np.sum(arrays, axis=0) for arrays in free),
        ]

    def posterior(self, sited: list[Sited]) -> Process:
        processes = []
        for (kernel, columns), (prior, _) in zip(self.model.kernels, self.priors, strict=True):
            mean = self.model.mean if len(columns) == self.L else OneOutput(self.model.mean, columns[0])
            processes.append(
                prior.posterior(
                    GaussianProcess(kernel, mean, self.scale[columns]), [sited[k] for k in columns]
                )
            )
        return (
            processes[0]
            if len(processes) == 1
            else Stacked(tuple(processes), tuple(tuple(columns) for _, columns in self.priors))
        )


@dataclass
class State:
    """Where the loop is: sites, and the posterior they give."""

    lam: Array  # (n, L)
    h: Array
    mean: Array  # (n, L), of g
    alpha: Array
    sited: list[Sited]
    value: float  # what the rule watches: its evidence, or the log posterior density of f
    answers: Array  # of the likelihood, one row an observation


@dataclass(frozen=True)
class Rule(ABC):
    """Laplace, EP or variational inference."""

    tol: float = 1e-8
    max_iter: int = 200

    @property
    @abstractmethod
    def name(self) -> str:
        """For people."""

    @property
    @abstractmethod
    def kind(self) -> Kind:
        """Of its evidence."""

    @property
    def whole(self) -> bool:
        """Whether the variances at the data count what landmarks leave out."""
        return False

    @property
    def signed(self) -> bool:
        """Whether its sites may curve the wrong way where log p is not concave."""
        return True

    @property
    def searched(self) -> Rule:
        """The rule whose evidence its parameters are searched by."""
        return self

    def check(self, likelihood: Likelihood, engine: Inference) -> None:
        """Raises where the rule makes no sense for the likelihood or the engine."""
        if not likelihood.smooth:
            raise ParameterError(
                f"{type(likelihood).__name__} has no derivatives, which inference={self.name!r} needs. Use"
                ' inference="vi" or "mcmc".'
            )

    @abstractmethod
    def run(
        self, problem: Problem, start: Array | None, report: Share | None = None
    ) -> tuple[State, SolveOutcome]:
        """To convergence. `start` is `State.alpha`-like: what `kept` gave for neighbouring parameters."""

    def kept(self, state: State) -> Array:
        """What makes a good start for neighbouring parameters."""
        return np.stack([state.lam, state.h])

    @abstractmethod
    def evidence(self, problem: Problem, state: State) -> float:
        """At a converged state."""

    @abstractmethod
    def gradient(self, problem: Problem, state: State) -> list[Array]:
        """Of the evidence. Uses the state up."""

    def posterior(self, problem: Problem, state: State) -> Process:
        """At a converged state, which is used up."""
        return problem.posterior(state.sited)

    def cavities(self, problem: Problem, state: State) -> tuple[Array, Array]:
        """Mean and variance of each latent at each row, without that row's own site: (n, L) each, with the
        offset."""
        var = np.stack([one.var for one in state.sited], axis=1)
        lam = np.stack([one.lam for one in state.sited], axis=1)
        precision = np.maximum(1 / var - lam, 1e-10 / var)
        mean = (state.mean / var - state.h) / precision
        return problem.f(mean), (1 / precision + problem.outside) * problem.scale**2


@dataclass(frozen=True, eq=False)
class Sites(Inference):
    """A rule on an engine: any likelihood, with the linear algebra of regression."""

    rule: Rule
    engine: Inference = field(default_factory=Exact)

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def solver_name(self) -> str:
        return f"{self.rule.name}; {self.engine.solver_name}"

    @property
    def smooth(self) -> bool:
        return self.engine.smooth

    def learns_from(self, n: int) -> bool:
        return self.engine.learns_from(n) and not isinstance(self.engine, Iterative)

    @property
    def free(self) -> Array:
        return self.engine.free

    def with_free(self, values: Array) -> Inference:
        return dataclasses.replace(self, engine=self.engine.with_free(values))

    @property
    def searched(self) -> Inference:
        return self if self.rule.searched is self.rule else dataclasses.replace(self, rule=self.rule.searched)

    def check_fits(self, model: Model, d: int) -> None:
        self.rule.check(model.likelihood, self.engine)
        for kernel, _ in model.kernels:
            self.engine.check_fits(dataclasses.replace(model, kernel=kernel, others=()), d)

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> Inference:
        self.rule.check(model.likelihood, self.engine)
        if isinstance(self.engine, Iterative):
            # a logistic likelihood's largest curvature is 1 / 4
            typical = np.full(len(data.X), 4 / max(float(np.min(data.scale)) ** 2, 1e-300))
            factor = self.engine.solver.factor(GramOperator(model.kernel, np.asarray(data.X), typical))
            solver = self.engine.solver.seeded(rng)
            return dataclasses.replace(
                self,
                engine=dataclasses.replace(self.engine, pivots=factor.preconditioner.pivots, solver=solver),
            )
        return dataclasses.replace(self, engine=self.engine.prepared(model, data, rng))

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        with threads_for(self._size(data)):
            problem, state, outcome = self._run(model, data, None, report)
            evidence = self._evidence(problem, state)
            return Inferred(self.rule.posterior(problem, state), evidence, outcome)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        with threads_for(self._size(data)):
            problem, state, outcome = self._run(model, data, workspace)
            self._insist(outcome)
            return self._evidence(problem, state)

    def evidence_and_gradient(
        self, model: Model, data: Data, workspace: Workspace
    ) -> tuple[Evidence, list[Array]]:
        with threads_for(self._size(data)):
            problem, state, outcome = self._run(model, data, workspace)
            self._insist(outcome)
            evidence = self._evidence(problem, state)
            gradient = self.rule.gradient(problem, state)
        if self.free.size:
            assert isinstance(self.engine, LowRank)
            gradient[-1] = gradient[-1] * self.engine.spread
        return evidence, gradient

    def leave_one_out(self, model: Model, data: Data, posterior: Process) -> LeftOut:
        raise ParameterError(
            f"Leave-one-out predictions in closed form need Gaussian noise; inference {self.rule.name!r} has"
            " cavities instead."
        )

    def cavities(self, model: Model, data: Data) -> tuple[Array, Array]:
        """Mean and variance of each latent at each row, without that row's own site: (n, L) each, with the
        offset."""
        with threads_for(self._size(data)):
            problem, state, _ = self._run(model, data, None)
            return self.rule.cavities(problem, state)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Work:
        once, last = self.engine.work(n, d, q, gradient=False), self.engine.work(n, d, q, gradient)
        return Work(
            EVALUATIONS * once.flops + last.flops,
            last.values,
            last.slopes,
            EVALUATIONS * once.products + last.products,
        )

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        own, latents = self.engine.bytes_needed(n, d, 1), max(q, 1)
        if isinstance(self.engine, Exact):
            return (2 if latents == 1 else latents + 3) * own  # K beside its factors
        m = (
            self.engine.size(n)
            if isinstance(self.engine, Recipe)
            else self.engine.basis.n_features
            if isinstance(self.engine, LowRank)
            else 0
        )
        return own + 8 * (10 * n * latents + (3 * (latents * m) ** 2 if latents > 1 else 0))

    def _size(self, data: Data) -> int:
        return self.engine.basis.n_features if isinstance(self.engine, LowRank) else len(data.X)

    def _run(
        self, model: Model, data: Data, workspace: Workspace | None, report: Share | None = None
    ) -> tuple[Problem, State, SolveOutcome]:
        self.rule.check(model.likelihood, self.engine)
        engine = (
            self.engine.prepared(model, data, np.random.default_rng(0))
            if isinstance(self.engine, Recipe)
            else self.engine
        )
        problem = Problem(
            model, data, engine, self.rule.whole, self.rule.signed and not model.likelihood.log_concave
        )
        start = workspace.start if workspace is not None else None
        state, outcome = self.rule.run(problem, start, report)
        if workspace is not None and (outcome.converged or self.rule.kind == "lower bound"):
            workspace.start = self.rule.kept(state)
        return problem, state, outcome

    def _insist(self, outcome: SolveOutcome) -> None:
        """A bound is one wherever the loop ends; anything else must have converged to mean something."""
        if not outcome.converged and self.rule.kind != "lower bound":
            raise NumericalError(outcome.note)

    def _evidence(self, problem: Problem, state: State) -> Evidence:
        error = 0.5 * float(np.sqrt(sum(one.logdet_error**2 for one in state.sited)))
        value = self.rule.evidence(problem, state)
        if problem.model.likelihood.location:
            value += problem.n * float(np.log(problem.scale[0]))  # of y / s, as every evidence is
        return Evidence(value, "estimate", error) if error else Evidence(value, self.rule.kind)


def _prior(kernel: Kernel, data: Data, engine: Inference, whole: bool, signed: bool) -> Prior:
    if isinstance(engine, Iterative):
        return Krylov(kernel, np.asarray(data.X), engine)
    if isinstance(engine, LowRank):
        if engine.objective == "fitc":
            raise ParameterError(
                '"fitc" is for Gaussian noise. With another likelihood use "vfe" (with inference="vi"),'
                ' "nystrom" or "fourier".'
            )
        return Features(engine.basis.at(kernel), kernel, data.X, whole and engine.objective == "vfe")
    if signed:
        # Sites may have negative curvature: in coordinates where the prior is white that is no problem.
        return Features(NystromBasis(np.asarray(data.X)).at(kernel), kernel, np.asarray(data.X))
    return Dense(kernel, np.asarray(data.X))
