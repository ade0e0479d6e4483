"""A Gaussian process as one writes it on paper: prior, data, posterior, evidence.

    f ~ GP(m, k),   y_i ~ p(y | f(x_i))            prior = GP(kernel, mean=..., noise=...)
    f | y                                          post = prior.condition(X, y)
    log p(y | theta), and its gradient             post.evidence, post.evidence_gradient()
    argmax_theta log p(y | theta)                  prior.fit(X, y)

Nothing is scaled, centred or chosen behind one's back: f and y are in the units that were given, parameters
keep their values until `fit` moves them, and a search is asked for by name. A thin layer over engines and
rules of inference; the estimators, which do choose, stand beside it.

Arrays have the shape of y: a vector of targets (n,) gives vectors, a table (n, q) gives a last axis of q
independent functions with one prior. NaN in y: not observed.

Source: Rasmussen and Williams 2006, sections 2.2 and 5.4.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gramian.arrays import Array, real_numbers
from gramian.choose.words import NAMED, RULES, as_method, rule_for
from gramian.data.columns import Columns
from gramian.engines.base import Engine, Workspace
from gramian.errors import InputError, ParameterError
from gramian.fitting.budget import compiling
from gramian.fitting.lbfgs import Search
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report
from gramian.fitting.stages import fit as searched
from gramian.inference.asked import ask
from gramian.inference.base import Inference, Scheme, on_engine
from gramian.inference.conjugate import Conjugate
from gramian.inference.model import Data, Evidence, Model
from gramian.kernels.base import Column, Kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg import memory
from gramian.means import ConstantMean, LinearMean, Mean, ZeroMean
from gramian.params import Parameter, fixed
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess
from gramian.processes.stacked import side_by_side
from gramian.report.insides import Insides
from gramian.solvers.base import SolveOutcome

Seed = int | np.random.Generator
SHORT = "This", "Give fewer rows or points, or close other programs."

MEANS = {"zero": ZeroMean, "constant": ConstantMean, "linear": LinearMean}


class LeftOut(NamedTuple):
    """Each observation as all the others predict it, of the shape of y; NaN where there is none."""

    mean: Array
    var: Array  # of y, noise included
    log_density: Array


class Functions(ABC):
    """What prior and posterior have in common: questions about f at any points."""

    @abstractmethod
    def _process(self, X: ArrayLike) -> tuple[Process, Array, bool]:
        """The process, the points (n, d), and whether answers have an axis of outputs."""

    @memory.translated(*SHORT)
    def mean(self, X: ArrayLike) -> Array:
        """E f(x): (n,), or (n, q)."""
        process, points, several = self._process(X)
        return _shaped(process.mean(points), several)

    @memory.translated(*SHORT)
    def moments(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of f(x)."""
        process, points, several = self._process(X)
        mean, var = process.moments(points)
        return _shaped(mean, several), _shaped(var, several)

    def var(self, X: ArrayLike) -> Array:
        """The variance of f(x)."""
        return self.moments(X)[1]

    @memory.translated(*SHORT)
    def cov(self, X: ArrayLike) -> Array:
        """Covariance of f at all pairs of points: (n, n), or (n, n, q)."""
        process, points, several = self._process(X)
        return _shaped(process.cov(points), several)

    @memory.translated(*SHORT)
    def sample(self, X: ArrayLike, n_samples: int = 1, seed: Seed = 0) -> Array:
        """Joint draws of f: (n, n_samples), or (n, q, n_samples)."""
        process, points, several = self._process(X)
        if isinstance(n_samples, bool) or not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ParameterError(f"n_samples={n_samples!r} must be a whole number from 1 on.")
        draws = process.sample(np.random.default_rng(seed), points, int(n_samples))
        return draws if several else draws[:, 0]

    @memory.translated(*SHORT)
    def gradient(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of df/dx: (n, d) each, or (n, d, q)."""
        process, points, several = self._process(X)
        mean, var = process.gradient(points)
        return _shaped(mean, several), _shaped(var, several)


@dataclass(frozen=True, eq=False, init=False)
class GP(Functions):
    """A Gaussian process prior with what is observed of it.

    `kernel`: one, or a list of one for each latent function of the likelihood. `mean`: a number, "zero",
    "constant", "linear" or a Mean. `noise`: the variance of Gaussian noise, or a list of one for each output
    of a 2-D y; without it f itself is observed.
    `likelihood`: another one instead. Numbers are starting values, which `fit` moves; `gm.fixed(...)` stays.
    """

    model: Model
    search: Search | None = None  # how `fit` ended, where the parameters come from there

    def __init__(
        self,
        kernel: Kernel | Sequence[Kernel],
        mean: float | str | Mean = "zero",
        noise: ArrayLike | Parameter | None = None,
        likelihood: Likelihood | None = None,
    ) -> None:
        kernels = tuple(kernel) if isinstance(kernel, (list, tuple)) else (kernel,)
        if not kernels or not all(isinstance(one, Kernel) for one in kernels):
            raise ParameterError(
                f"GP: kernel={kernel!r} is no gramian kernel. Give one such as 1.0 * gm.RBF(0.5), or a list"
                " of one for each latent function of the likelihood."
            )
        if likelihood is not None and noise is not None:
            both = "were both given, and both say how y arises from f. Give one of them."
            raise ParameterError(f"GP: noise={noise!r} and likelihood={likelihood!r} {both}")
        if likelihood is not None and not isinstance(likelihood, Likelihood):
            raise ParameterError(f"GP: likelihood={likelihood!r} is none. Give one such as gm.Poisson().")
        observed = Gaussian(fixed(0.0) if noise is None else noise) if likelihood is None else likelihood
        if len(kernels) not in (1, observed.latents):
            raise ParameterError(
                f"GP: {len(kernels)} kernels were given, but {type(observed).__name__} has {observed.latents}"
                f" latent function{'s' * (observed.latents > 1)}: one for all, or one each."
            )
        self._set(Model(kernels[0], _mean(mean), observed, kernels[1:]))

    def _set(self, model: Model, search: Search | None = None) -> None:
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "search", search)

    def _with(self, model: Model, search: Search | None = None) -> GP:
        new = object.__new__(GP)
        new._set(model, search)
        return new

    def __repr__(self) -> str:
        kernels = ", ".join(str(kernel) for kernel, _ in self.model.kernels)
        return f"GP({kernels}, mean={self.model.mean!r}, likelihood={self.model.likelihood!r})"

    # Its parameters. ----------------------------------------------------------------------------------------

    @property
    def parameters(self) -> dict[str, Array]:
        """Values by path, as `with_values` and gradients name them."""
        return {path: parameter.value for path, parameter in self.model.parameters().items()}

    def with_values(self, values: Mapping[str, ArrayLike]) -> GP:
        """The same process with other values: prior.with_values({"noise": 0.2})."""
        return self._with(_moved(self.model, values))

    # Before data. -------------------------------------------------------------------------------------------

    def _process(self, X: ArrayLike) -> tuple[Process, Array, bool]:
        points, names = _points(X)
        model, L = _resolved(self.model, names), self.model.likelihood.latents
        whole = GaussianProcess(model.kernel, model.mean, np.ones(L))
        if not model.others:
            return whole, points, L > 1
        parts: list[tuple[Process, list[int]]] = [
            (dataclasses.replace(whole.of_output(k), kernel=kernel), [k])
            for k, (kernel, _) in enumerate(model.kernels)
        ]
        return side_by_side(parts), points, True

    def simulate(self, X: ArrayLike, n_samples: int = 1, seed: Seed = 0) -> Array:
        """Draws of y: f from the prior, and then what is observed of it, (n, n_samples)."""
        rng = np.random.default_rng(seed)
        f = self.sample(X, n_samples, rng)
        likelihood, shape = self.model.likelihood, (len(f), n_samples)
        beside = (np.broadcast_to(column[:, None], shape) for column in _beside(likelihood, len(f)).T)
        return likelihood.draw(rng, np.swapaxes(f, 1, 2) if f.ndim == 3 else f, *beside)

    # With data. ---------------------------------------------------------------------------------------------

    @memory.translated(*SHORT)
    def condition(
        self,
        X: ArrayLike,
        y: ArrayLike,
        method: str | Any = "exact",
        inference: str | Inference | None = None,
        *,
        noise_var: ArrayLike | None = None,
        seed: Seed = 0,
    ) -> ConditionedGP:
        """f given y, with these parameters.

        `method`: an engine, by name or as an object, `gm.Sparse(100)`. `inference`: "laplace", "ep", "vi" or
        a rule; without one, Gaussian noise in closed form, for other likelihoods "laplace" where log p is
        concave and there is one latent function, else "vi". `noise_var` (n,): known noise variances beside
        the noise. `seed`: of landmarks, frequencies and probes.
        """
        model, data, several = self._given(X, y, noise_var)
        scheme = self._scheme(method, inference)
        scheme.check_fits(model, data.X.shape[1])
        _check_room(scheme, len(data.X))
        scheme = scheme.prepared(model, data, np.random.default_rng(seed))
        process, evidence, outcome, _ = scheme.infer(model, data)
        return ConditionedGP(self, process, evidence, outcome, scheme, data, model, several)

    @memory.translated(*SHORT)
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        method: str | Any = "exact",
        inference: str | Inference | None = None,
        *,
        noise_var: ArrayLike | None = None,
        restarts: int = 0,
        seed: Seed = 0,
    ) -> GP:
        """The same process with the parameters of the highest evidence, times the density of their priors
        where they have any; `search` tells how that ended. A search begins at the present values."""
        model, data, _ = self._given(X, y, noise_var)
        scheme = self._scheme(method, inference)
        _check_room(scheme, len(data.X))
        found = searched(model, data, scheme, restarts, np.random.default_rng(seed), Report())
        values = [parameter.value for parameter in found.model.parameters().values()]
        own = self.model.parameters().values()
        parameters = [parameter.with_value(value) for parameter, value in zip(own, values, strict=True)]
        return self._with(self.model.with_parameters(parameters), found.search)

    def _given(self, X: ArrayLike, y: ArrayLike, noise_var: ArrayLike | None) -> tuple[Model, Data, bool]:
        points, names = _points(X)
        model = _resolved(self.model, names)
        Y = _numbers(y, "y")
        if Y.ndim not in (1, 2) or len(Y) != len(points):
            takes = "give one value a row, (n,), or a table (n, q)"
            raise InputError(f"y has shape {Y.shape}, but X has {len(points)} rows: {takes}.")
        known = None if noise_var is None else _numbers(noise_var, "noise_var")
        if known is not None and (
            known.shape != (len(points),) or not np.all((known >= 0) & np.isfinite(known))
        ):
            takes = f"one variance, finite and from 0 on, for each of the {len(points)} rows"
            raise InputError(f"noise_var has shape {known.shape}; give {takes}.")
        if np.any(np.isinf(Y)):
            raise InputError("y has infinite values. Leave them out; NaN says that nothing was observed.")
        several = Y.ndim == 2
        table = Y if several else Y[:, None]
        if np.any(np.all(np.isnan(table), axis=0)):
            raise InputError("y has a column without a single observed value.")
        likelihood = model.likelihood
        if likelihood.conjugate:
            model.gaussian.check_outputs(table.shape[1])
            return model, Data(points, table, np.ones(table.shape[1]), known), several
        columns, name = len(likelihood.columns), type(likelihood).__name__
        if known is not None:
            raise InputError(f"noise_var is for Gaussian noise; {name} has none.")
        if several and Y.shape[1] != columns:
            several_columns = f"the columns {', '.join(likelihood.columns)}"
            takes = "one value a row, (n,)" if columns == 1 else several_columns
            raise InputError(f"y has {Y.shape[1]} columns; {name} takes {takes}.")
        given = (Y if several else likelihood.with_defaults(Y)).reshape(len(points), columns)
        seen = ~np.isnan(given).any(axis=1)
        likelihood.checked(likelihood.y_of(given[seen]))
        L = likelihood.latents
        return model, Data(points[seen], given[seen], np.ones(L)), L > 1

    def _scheme(self, method: Any, inference: str | Inference | None) -> Scheme:
        engine = as_method(method)
        if not isinstance(engine, Engine):
            engines = ", ".join(f'"{name}"' for name in NAMED if name != "svgp")
            raise ParameterError(
                f"GP: method={method!r} finds its parameters and its posterior in one search. Use"
                f" GPRegressor(method={method!r}), or an engine: {engines}."
            )
        rule = inference if isinstance(inference, Inference) else _rule(inference, self.model, engine)
        rule.check(self.model.likelihood, engine)
        return on_engine(engine, rule)


@dataclass(frozen=True, eq=False)
class ConditionedGP(Functions):
    """f after data: what `GP.condition` gives."""

    prior: GP
    process: Process
    evidence: Evidence  # log p(y), with its kind: exact, a bound, an approximation or an estimate
    outcome: SolveOutcome  # how the linear algebra, or the loop of a rule, went
    scheme: Scheme  # the rule on its engine, with landmarks and the like chosen
    data: Data
    model: Model  # the prior's, with column names as indices
    several: bool  # whether answers have an axis of outputs

    def __repr__(self) -> str:
        return f"ConditionedGP({self.prior!r}, on {len(self.data.X):,} rows, log evidence {self.evidence})"

    def _process(self, X: ArrayLike) -> tuple[Process, Array, bool]:
        points, _ = _points(X)
        if points.shape[1] != self.data.X.shape[1]:
            raise InputError(f"X has {points.shape[1]} columns, but the data have {self.data.X.shape[1]}.")
        return self.process, points, self.several

    @memory.translated(*SHORT)
    def predict(self, X: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of a new observation y at x, noise included; where the likelihood reads more
        columns, with their defaults."""
        mean, var = self.process.moments(self._process(X)[1])
        likelihood = self.model.likelihood
        if likelihood.conjugate:
            var = var + self.model.gaussian.variances()
            return _shaped(mean, self.several), _shaped(var, self.several)
        answers = ask(likelihood, "predictive", _beside(likelihood, len(mean)), mean, var)
        return answers[:, 0], answers[:, 1]

    @memory.translated(*SHORT)
    def log_evidence(self, values: Mapping[str, ArrayLike] | None = None) -> float:
        """log p(y) at these values of the parameters, or at the posterior's own; landmarks stay."""
        if not values:
            return self.evidence.value
        return self.scheme.evidence(_moved(self.model, values), self.data, Workspace()).value

    def insides(self) -> Insides:
        """The model, its data and its process: what pictures of them read."""
        columns = Columns(tuple(f"x{j}" for j in range(self.data.X.shape[1])))
        found = () if self.prior.search is None else self.prior.search.paths
        objective = Objective(self.model, self.data, self.scheme)
        read = lambda X: _points(X)[0]  # noqa: E731
        return Insides(objective, self.data.scale, self.process, columns, found, read)

    @memory.translated(*SHORT)
    def evidence_gradient(self, values: Mapping[str, ArrayLike] | None = None) -> dict[str, Array]:
        """d log p(y) / d parameter by path, at the same values; of learned landmarks under "points"."""
        model = _moved(self.model, values or {})
        _, gradients = self.scheme.evidence_and_gradient(model, self.data, Workspace())
        paths = [*model.parameters(), *(["points"] if self.scheme.free.size else [])]
        return {path: np.asarray(slope) for path, slope in zip(paths, gradients, strict=True)}

    @memory.translated(*SHORT)
    def loo(self) -> LeftOut:
        """Each observation as all the others predict it, with these parameters; nothing is fitted again."""
        likelihood, Y = self.model.likelihood, self.data.Y
        mean, var = self.scheme.cavities(self.model, self.data, self.process)
        if not self.scheme.closed:
            answers = ask(likelihood, "predictive", Y[:, 1:], mean, var)
            scores = ask(likelihood, "scored", Y, mean, var)
            return LeftOut(answers[:, 0], answers[:, 1], scores[:, 0])
        known = 0.0 if self.data.noise_var is None else self.data.noise_var[:, None]
        var = var + self.model.gaussian.variances() + known
        away = np.isnan(Y)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = -0.5 * ((Y - mean) ** 2 / var + np.log(2 * np.pi * var))
        return LeftOut(*(_shaped(np.where(away, np.nan, one), self.several) for one in (mean, var, score)))


def _check_room(scheme: Scheme, n: int) -> None:
    """Refuses to compile programs where there is too little room for that."""
    if compiling(scheme, n):
        memory.check_compiler()


def _beside(likelihood: Likelihood, n: int) -> Array:
    """The columns beside y with their defaults, (n, columns - 1)."""
    return np.full((n, len(likelihood.columns) - 1), [likelihood.default(c) for c in likelihood.columns[1:]])


def _rule(given: str | None, model: Model, engine: Engine) -> Inference:
    likelihood = model.likelihood
    if given is None and likelihood.conjugate:
        return Conjugate()
    if given in (None, "laplace", "ep", "vi"):
        return RULES[given or rule_for(likelihood, engine)](likelihood)
    raise ParameterError(
        f'GP: inference={given!r} is not known. Use "laplace", "ep", "vi", a rule such as gm.EP(damping=0.5),'
        ' or None. Chains over parameters: GPRegressor(hyper="mcmc").'
    )


def _mean(given: object) -> Mean:
    if isinstance(given, Mean):
        return given
    if isinstance(given, str) and given in MEANS:
        return MEANS[given]()
    if isinstance(given, (int, float, np.number, np.ndarray, Parameter)) and not isinstance(given, bool):
        return ConstantMean(given)
    cure = 'Use a number, "zero", "constant", "linear", or a gramian.Mean.'
    raise ParameterError(f"GP: mean={given!r} is not known. {cure}")


def _points(X: ArrayLike) -> tuple[Array, list[str]]:
    """A table of finite numbers, and the names of its columns."""
    names = [str(name) for name in X.columns] if hasattr(X, "columns") else None
    points = _numbers(X, "X")
    if points.ndim != 2:
        cure = "X[:, None] for one column" if points.ndim == 1 else "one point a row"
        raise InputError(f"X has shape {points.shape}, but a table (n, d) is expected: {cure}.")
    if not points.size:
        raise InputError("X has no rows or no columns.")
    if not np.all(np.isfinite(points)):
        raise InputError("X has values that are not finite numbers.")
    return points, names or [f"x{j}" for j in range(points.shape[1])]


def _numbers(values: ArrayLike, name: str) -> Array:
    """A copy: a posterior must not change with its data."""
    found = real_numbers(values)
    if found is None:
        cure = "A GP takes numbers; GPRegressor takes text."
        raise InputError(f"{name} has values that are no real numbers. {cure}")
    return found.copy()


def _resolved(model: Model, names: list[str]) -> Model:
    """With columns by index; raises where a kernel does not suit them."""
    columns = [Column(name, False) for name in names]
    for kernel, _ in model.kernels:
        kernel.check_columns(columns)
    first, *others = (kernel.resolve(names) for kernel, _ in model.kernels)
    return dataclasses.replace(model, kernel=first, others=tuple(others))


def _moved(model: Model, values: Mapping[str, ArrayLike]) -> Model:
    unknown = sorted(set(values) - set(model.parameters()))
    if unknown:
        known = ", ".join(model.parameters())
        raise ParameterError(f"There is no parameter {unknown[0]!r}. There are {known}.")
    return model.with_values(values)


def _shaped(values: Array, several: bool) -> Array:
    """Without the axis of outputs where y has none."""
    return values if several else values[..., 0]
