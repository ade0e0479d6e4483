"""The contracts of inference.

    Inference       a rule, what a person writes as `inference=`: which Gaussian follows from a likelihood
    Scheme          all that conditions a model on rows: a rule on an engine, or both in one (SVGP, chains)
    RuleOnEngine    the first of these

A search, a plan, an estimator and a model file talk to a Scheme, and ask it what it can do.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from gramian.arrays import Array, Indices
from gramian.engines.base import Engine, Share, Workspace
from gramian.engines.dense import Exact
from gramian.errors import ParameterError, StateError
from gramian.inference.model import Data, Evidence, EvidenceKind, Inferred, Model
from gramian.likelihoods import Likelihood
from gramian.linalg.cost import Cost
from gramian.linalg.threads import one_blas_thread
from gramian.processes.base import Process
from gramian.processes.state import Context

Graded = tuple[Evidence, list[Array]]  # an evidence and its gradient

# for predictions of time: factorisations of one inference that takes several steps, and kernel values that
# take as long as what a step asks the likelihood of a row
STEPS, ASKED = 15, 400
OWN_NOISES = 20  # outputs up to which each has a noise of its own, and so a factor, unless noise is given


class Cavities(NamedTuple):
    """Each row's functions as all the other rows see them, (n, L) each."""

    mean: Array
    var: Array


@dataclass(frozen=True)
class Inference(ABC):
    """A rule: which Gaussian sites stand for a likelihood, and what they say about the parameters."""

    name: ClassVar[str]  # as in `inference=`
    kind: ClassVar[EvidenceKind]  # of its evidence, on an exact engine
    closed: ClassVar[bool] = False  # whether it ends after one step: Gaussian noise
    coupled: ClassVar[bool] = False  # whether its posterior makes the functions of a row depend on each other
    # whether it asks for the variances of all rows at each step, for which as much again as a factor is held
    asks_variances: ClassVar[bool] = False

    @property
    def searched(self) -> Inference:
        """The rule whose evidence its parameters are searched by."""
        return self

    def check(self, likelihood: Likelihood, engine: Engine) -> None:  # noqa: B027 some take everything
        """Raises where the rule makes no sense for the likelihood or the engine."""

    @abstractmethod
    def infer(self, model: Model, data: Data, engine: Engine, report: Share | None = None) -> Inferred:
        """The posterior, the evidence and how it went. `report` is told the share of the work done."""

    @abstractmethod
    def evidence_and_gradient(self, model: Model, data: Data, engine: Engine, workspace: Workspace) -> Graded:
        """The evidence and its gradient, one array a parameter in the order of `model.parameters()`, and a
        last one for the engine's `free` where there is any."""

    @abstractmethod
    def evidence(self, model: Model, data: Data, engine: Engine, workspace: Workspace) -> Evidence:
        """The evidence alone."""

    @abstractmethod
    def cavities(self, model: Model, data: Data, engine: Engine, posterior: Process) -> Cavities:
        """For predictions of each row from all the others; `posterior` is what `infer` gave."""

    def edited(self, model: Model, data: Data, kept: Indices, posterior: Process) -> Inferred | None:
        """What `infer` gives for other rows, from the posterior of before: those of its rows that stay come
        first in `data`. None where it is to be made anew."""
        return None


class Scheme(ABC):
    """How to condition a model on data. What is chosen once (landmarks, random frequencies, probes) is chosen
    by `prepared`, before parameters are searched for, so that a search sees one smooth function."""

    name: str  # as in `method=`
    accuracy: str  # what its answer is beside that of exact inference, for people
    # how its parameters are found: by steps of an optimiser, by batches of rows, by batches of rows after a
    # model of one layer, or not at all, being drawn
    search: Literal["steps", "batches", "layers", "none"] = "steps"
    exact: bool = False  # whether its evidence is that of the model itself, to rounding or to a tolerance
    closed: bool = False  # whether it is inference in closed form, under Gaussian noise
    coupled: bool = False  # whether its posterior makes the functions of a row depend on each other
    needs_noise: bool | None = None  # for Gaussian noise alone (True), any other likelihood (False), or both
    between: str = "independent"  # what it makes of several outputs: "coupled", "chained"
    rule_name: str = ""  # the rule that approximates a likelihood, where there is one
    leaves_out_cheaply: bool = True  # whether leaving rows out costs no more than the fit
    # whether value and gradient belong together to rounding, so that a search can be finished to the last
    # digits; estimates do not
    smooth: bool = True
    holds_rows: bool = True  # whether predictions need the rows of the data
    at_points: bool = False  # whether most kernel values are those between rows and landmarks
    values_alone: bool = False  # whether an evidence asks a model for values alone, not for its Parameters
    fit_rows: int | None = None  # how many rows parameters are searched on, where somebody said so
    fit_rule: str = "uniform"  # how rows to search on are chosen among many
    linear: bool = False  # whether its work grows with the rows alone
    local: bool = False  # whether neighbourhoods of rows say nearly all that it can learn about parameters
    programs: int = 6  # that are compiled for it, about

    @property
    @abstractmethod
    def described(self) -> str:
        """What does the work, for people."""

    @property
    def label(self) -> str:
        """The name with its size, and how it chooses where that is not the usual way."""
        return self.name

    @property
    def searched(self) -> Scheme:
        """The scheme whose evidence its parameters are searched by."""
        return self

    def resumed(self, searched: Scheme) -> Scheme:
        """This scheme with the choices that the one it is searched by has made."""
        return searched

    def conjugated(self) -> RuleOnEngine | None:
        """Itself, where it is the formulas of Gaussian noise on an engine."""
        return None

    def on_few_rows(self) -> Scheme:
        """The same inference with the whole of K, for a search on few rows."""
        return self

    def learns_from(self, n: int) -> bool:
        """Whether its evidence on n rows is a guide to parameters."""
        return True

    # Its work. ----------------------------------------------------------------------------------------------

    def check_fits(self, model: Model, d: int) -> None:  # noqa: B027 most have nothing to refuse
        """Refuses, before a fit, what it cannot do for such a model and d columns at any parameters."""

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> Scheme:
        """The same with its choices made for these data and, where it matters, these parameters."""
        return self

    def stale(self, model: Model, data: Data) -> bool:
        """Whether its choices suit this model no more, and a search should go on with others."""
        return False

    @property
    def free(self) -> Array:
        """What a search may move beside parameters: learned landmarks, in units of their columns' spread."""
        return np.zeros(0)

    def with_free(self, values: Array) -> Scheme:
        """The same with `free` moved."""
        return self

    def stored(self) -> Scheme:
        """The same without what only a search needs."""
        return self

    def context(self, model: Model, data: Data, d: int) -> Context:
        """What its processes leave out of their state, after a check that its choices belong to such data."""
        raise StateError(f"its method {type(self).__name__} gives no posterior that can be restored.")

    def until(self, deadline: float) -> Scheme:
        """The same, to end at a time of `clock.now()`, where it can by itself."""
        return self

    @abstractmethod
    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        """The posterior, the evidence and how it went. `report` is told the share of the work done."""

    @abstractmethod
    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> Graded:
        """The evidence and its gradient, by `model.parameters()` in their order and, last, by `free`."""

    @abstractmethod
    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        """The evidence alone."""

    def cavities(self, model: Model, data: Data, posterior: Process) -> Cavities:
        """For predictions of each row from all the others; `posterior` is what `infer` gave."""
        raise ParameterError(
            f"The method {self.name!r} has no closed form for leaving rows out. Use cross-validation, or"
            " another method."
        )

    def edited(
        self, model: Model, data: Data, kept: Indices, inferred: Inferred, rng: np.random.Generator
    ) -> tuple[Scheme, Inferred]:
        """What `infer` gives for other rows, and the scheme with its choices made for them: those of before
        that stay come first in `data`."""
        raise ParameterError(
            f"The method {self.name!r} learns from its rows in many steps, and takes no others afterwards."
            " Fit again, with the fitted kernel to begin with: kernel=model.kernel_; or use another method."
        )

    # Its cost. ----------------------------------------------------------------------------------------------

    @abstractmethod
    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """What one evaluation with gradient costs, or the final inference."""

    def shortest(self, n: int, d: int, q: int) -> Cost:
        """What the final inference costs at least, where it can be cut."""
        return self.work(n, d, q, gradient=False)

    @abstractmethod
    def bytes_needed(self, n: int, d: int, q: int) -> int:
        """Peak memory of fitting n rows, d columns and q outputs."""

    def steps_for(self, n: int) -> int:
        """How many batches a fit to n rows takes, where it goes by batches."""
        return 0


def _said(what: Callable[[RuleOnEngine], Any]) -> Any:
    """A property that the rule or the engine has already."""
    return property(what)


@dataclass(frozen=True, eq=False)
class RuleOnEngine(Scheme):
    """A rule of inference on K as an engine treats it."""

    inference: Inference
    engine: Engine = field(default_factory=Exact)

    name = _said(lambda own: own.engine.name)
    accuracy = _said(lambda own: own.engine.accuracy)
    exact = _said(lambda own: own.engine.exact)
    closed = _said(lambda own: own.inference.closed)
    coupled = _said(lambda own: own.inference.coupled)
    needs_noise = _said(lambda own: own.inference.closed)
    rule_name = _said(lambda own: "" if own.inference.closed else own.inference.name)
    leaves_out_cheaply = _said(lambda own: own.engine.variances)
    smooth = _said(lambda own: own.engine.smooth)
    holds_rows = _said(lambda own: not own.engine.streams)
    at_points = _said(lambda own: own.engine.at_points)
    values_alone = _said(lambda own: own.inference.closed and own.engine.values_alone)
    fit_rows = _said(lambda own: own.engine.fit_rows)
    fit_rule = _said(lambda own: own.engine.fit_rule)
    linear = _said(lambda own: own.engine.linear)
    local = _said(lambda own: own.engine.local)
    # a likelihood is asked for values, slopes and gradients
    programs = _said(lambda own: own.engine.programs + (0 if own.inference.closed else 3))
    label = _said(lambda own: own.engine.label)
    free = _said(lambda own: own.engine.free)

    def __post_init__(self) -> None:
        if self.engine.conjugate_only and not self.inference.closed:
            raise ParameterError(
                f'method="{self.engine.name}" approximates K with its noise, and is for Gaussian noise alone,'
                f' not for inference="{self.inference.name}". Use method="vfe", "svgp" or "exact".'
            )

    @property
    def described(self) -> str:
        return f"{self.rule_name}; {self.engine.described}" if self.rule_name else self.engine.described

    @property
    def searched(self) -> RuleOnEngine:
        rule = self.inference.searched
        return self if rule is self.inference else dataclasses.replace(self, inference=rule)

    def resumed(self, searched: Scheme) -> Scheme:
        assert isinstance(searched, RuleOnEngine)  # as `searched` gives it
        return dataclasses.replace(self, engine=searched.engine)

    def conjugated(self) -> RuleOnEngine | None:
        return self if self.inference.closed else None

    def on_few_rows(self) -> RuleOnEngine:
        own = self.engine.dense or self.engine.linear
        return self if own else dataclasses.replace(self, engine=Exact())

    def learns_from(self, n: int) -> bool:
        # An estimate of an approximation is no guide.
        return self.engine.learns_from(n) and (self.inference.closed or self.engine.variances)

    def check_fits(self, model: Model, d: int) -> None:
        self.inference.check(model.likelihood, self.engine)
        for kernel, _ in model.kernels:
            self.engine.check_fits(kernel, d)

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> RuleOnEngine:
        self.inference.check(model.likelihood, self.engine)
        return dataclasses.replace(self, engine=self.engine.prepared(model.kernel, data.X, rng))

    def stale(self, model: Model, data: Data) -> bool:
        return any(self.engine.stale(kernel, data.X) for kernel, _ in model.kernels)

    def stored(self) -> RuleOnEngine:
        return dataclasses.replace(self, engine=self.engine.stored())

    def with_free(self, values: Array) -> RuleOnEngine:
        return dataclasses.replace(self, engine=self.engine.with_free(values))

    def context(self, model: Model, data: Data, d: int) -> Context:
        engine, X = self.engine, data.X if self.holds_rows else None
        engine.check_choices(X, d)
        kinds = tuple(k for k in (*engine.kinds, "stacked") if Process.kinds[k].dependent == self.coupled)
        names, prior = f"{type(self.inference).__name__} on {type(engine).__name__}", data.prior(model)
        basis = engine.basis_at(X)
        return Context(names, kinds, prior, model.others, X, d, lambda k: basis, engine.solver, model, data)

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        with one_blas_thread():
            return self.inference.infer(model, data, self.engine.ready(model.kernel, data.X), report)

    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> Graded:
        engine = self.engine.ready(model.kernel, data.X)
        with one_blas_thread():
            evidence, gradients = self.inference.evidence_and_gradient(model, data, engine, workspace)
        # points that were chosen just now are nobody's to move
        return evidence, gradients if engine is self.engine else gradients[: len(model.parameters())]

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        with one_blas_thread():
            return self.inference.evidence(model, data, self.engine.ready(model.kernel, data.X), workspace)

    def cavities(self, model: Model, data: Data, posterior: Process) -> Cavities:
        with one_blas_thread():
            return self.inference.cavities(model, data, self.engine.ready(model.kernel, data.X), posterior)

    def edited(
        self, model: Model, data: Data, kept: Indices, inferred: Inferred, rng: np.random.Generator
    ) -> tuple[Scheme, Inferred]:
        if not inferred.outcome.jitter:  # of which other rows may want another one
            found = self.inference.edited(model, data, kept, inferred.posterior)
            if found is not None:
                return self, found
        engine = self.engine.on_other_rows(model.kernel, data.X, rng)
        scheme = dataclasses.replace(self, engine=engine)
        return scheme, scheme.infer(model, data)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        if self.inference.closed:
            noises = noises_of(q)
            one = self.engine.work(n, d, 1 if noises > 1 else q, gradient)
            return Cost(*(noises * part for part in one))
        last = self.engine.work(n, d, q, gradient)
        latents, once = max(q, 1), self.engine.work(n, d, q, gradient=False)
        flops, products = STEPS * once.flops + last.flops, STEPS * once.products + last.products
        asked = STEPS * latents * n * ASKED
        return Cost(latents * flops, last.values + asked, last.slopes, latents * products)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        if self.inference.closed:
            further = noises_of(q) - 1
            return self.engine.bytes_needed(n, d, q) + further * self.engine.bytes_of_noise(n, d)
        further = self.engine.bytes_of_noise(n, d) if self.inference.asks_variances else 0
        return self.engine.bytes_of_sites(n, d, max(q, 1)) + further


def noises_of(q: int) -> int:
    """How many different noises q outputs have, by default: each is another factor of the same K."""
    return q if 1 < q <= OWN_NOISES else 1


def on_engine(method: Engine | Scheme, rule: Inference) -> Scheme:
    """A rule on an engine; a method that is both stays as it is."""
    return RuleOnEngine(rule, method) if isinstance(method, Engine) else method
