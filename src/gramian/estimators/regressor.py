"""GPRegressor: Gaussian process regression as a scikit-learn estimator."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.approx.nystrom import NystromMap
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.estimators import building, defaults, health
from gramian.estimators.certificate import Certificate, certify
from gramian.estimators.facts import Facts
from gramian.estimators.inputs import is_frame, read_features, read_noise_var, read_targets, remember_columns
from gramian.estimators.sources import is_source, open_source
from gramian.fitting import FitOutcome, Objective, Search
from gramian.fitting.progress import Report, progress
from gramian.fitting.stages import Fitted, fit
from gramian.gram import budget
from gramian.inference import Data, FeaturePosterior, GaussianProcess, Inference, Model, Posterior, Process
from gramian.inference.base import Inferred, Workspace
from gramian.kernels import Kernel, Sum
from gramian.means import Mean, ZeroMean
from gramian.params import Parameter, ParameterTable
from gramian.plan import Plan, as_method, automatic, check, plan, seconds_of_final
from gramian.solvers import CG, MINRES

Array = NDArray[np.float64]

_FEW_ROWS = 1000  # up to here another starting point costs little


class LeaveOneOut(NamedTuple):
    """Predictions of each training row from all the others."""

    mean: Array
    std: Array
    log_density: Array


class GPRegressor(RegressorMixin, MultiOutputMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """Gaussian process regression with Gaussian noise.

    The model: f(x) = m(x) + s g(x) with g ~ GP(0, kernel), y = f(x) + noise; s is the standard deviation of y (1 with `normalize_y=False`).

    Parameters
    ----------
    kernel : Kernel, optional
        What functions to expect. None: a scaled Matern-5/2 with one lengthscale a column, starting values from the data and weak priors.
        A kernel that is given is fitted by maximum evidence, from its own values, unless its parameters carry priors (then by MAP).
    mean : "constant", "zero", "linear" or a Mean
        What f is far from the data, in the units of y; "zero" is the average of y when y is normalised.
    noise : number or parameter, optional
        The noise variance, in the units of y squared. A number is where fitting starts; `fixed(0.01)` stays, `fixed(0)` interpolates.
        None: from the data.
    method : "auto", "exact", "nystrom", "fourier", "vfe", "fitc", "dtc", "cg", "minres", or an object with its own settings
        The engine. "auto" takes the exact one while it fits into the limits, else the variational bound with as many inducing points as fit.
        Objects: `Exact(fit_rows=3000)`, `Nystrom(rank=800)`, `Fourier(2000)`, `Sparse(500, optimize_inducing=True)`, `CG(tol=1e-8)`, `MINRES()`.
    optimize : bool
        Whether to fit the parameters, or to take them as given.
    n_restarts : int, optional
        Further starting points. None: 1 up to 1,000 rows, else none.
    normalize_y : bool
        Centre y and measure the kernel's variance in units of y's variance.
    random_state : int, RandomState or None
        For the starting points, for what a method draws (landmarks, frequencies, probes), and the default for `sample`.
    memory_limit : int or str, optional
        Bytes, or text such as "2GB". A fit that needs more is refused before it starts. None: 80 % of what is free.
    time_limit : float, optional
        Seconds after which fitting keeps the best model so far.
    verbose : bool, optional
        Progress on standard error: None on a terminal only, True always, False never.

    Attributes
    ----------
    kernel_, noise_, mean_ : the fitted parts (`noise_` in the units of y squared; one number an output where y has several)
    parameters_ : a table of all parameters
    theta_ : the trainable parameters as one unconstrained vector
    evidence_ : log p(y) and its kind
    posterior_ : the posterior process
    certificate_ : how far the answer can be from the exact posterior of the same model
    outcome_ : what happened: method and its reason, what was fitted on what, iterations, jitter, time, notes
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        mean: str | Mean = "constant",
        noise: float | Parameter | None = None,
        method: str | Inference | CG | MINRES = "auto",
        optimize: bool = True,
        n_restarts: int | None = None,
        normalize_y: bool = True,
        random_state: Any = None,
        memory_limit: int | str | None = None,
        time_limit: float | None = None,
        verbose: bool | None = None,
    ) -> None:
        self.kernel = kernel
        self.mean = mean
        self.noise = noise
        self.method = method
        self.optimize = optimize
        self.n_restarts = n_restarts
        self.normalize_y = normalize_y
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.time_limit = time_limit
        self.verbose = verbose

    # Fitting. ---------------------------------------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, noise_var: ArrayLike | None = None) -> Self:
        """Conditions on the rows of X and y, after fitting the parameters.

        X is an array, a DataFrame, a memory map, the path of a CSV or Parquet file with y the name of its target, or a function that returns an
        iterator of blocks (X, y). `noise_var` gives known noise variances, one a row, in units of y squared; `noise`, if given too, comes on top.
        """
        began = time.monotonic()
        building.check_settings(self)
        if not is_frame(X) and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if is_source(X):
            source = open_source(X, y)
            if source.Y is None:
                raise InputError("The target y is missing. Give fit(X, y); for a file, y is the name of its target column.")
            table, columns, Y, single = source.X, source.columns, source.Y, source.single
            self.n_features_in_ = table.shape[1]
            if columns.named:
                self.feature_names_in_: NDArray[np.object_] = np.array(columns.names, dtype=object)
        else:
            table, columns = read_features(X)
            remember_columns(self, X, table, reset=True)
            Y, single = read_targets(y, len(table))
        known_noise = read_noise_var(noise_var, len(table))
        method, reason = self._method(table.shape, Y.shape[1])
        check(method, len(table), table.shape[1], Y.shape[1], self.memory_limit)

        kernel, model, data = building.build(self, table, columns, Y, single, known_noise)
        rng = _generator(self.random_state)
        with progress(self.verbose) as report:
            fitted = self._search(method, model, data, rng, report, began)
            inferred, data, interrupted = self._infer(fitted, data, report)

        model = fitted.model
        self._columns, self._single, self._data, self._model_, self._method_ = columns, single, data, model, fitted.inference
        self.kernel_ = kernel.with_parameters(list(model.kernel.parameters().values()))
        self.mean_ = model.mean
        noise = model.gaussian.variances()
        self.noise_ = float(noise[0]) if noise.size == 1 else noise
        self.theta_ = fitted.search.theta
        self.posterior_ = inferred.posterior
        self.evidence_ = inferred.evidence
        self._certificate: Certificate | None = None
        self._facts = Facts.of(data, health.parameter_notes(model, data, columns))
        notes = interrupted + health.notes(data, columns, fitted.search, inferred.outcome, self._facts.notes)
        self.outcome_ = FitOutcome(
            method=fitted.inference.name,
            reason=reason,
            solver=fitted.inference.solver_name,
            stopped=fitted.search.stopped,
            iterations=fitted.search.iterations,
            evaluations=fitted.search.evaluations,
            starts=fitted.search.starts,
            jitter=inferred.outcome.jitter,
            seconds=time.monotonic() - began,
            notes=tuple(notes),
            stages=tuple(map(str, fitted.stages)),
        )
        return self

    def _method(self, shape: tuple[int, ...], q: int) -> tuple[Inference, str]:
        if isinstance(self.method, str) and self.method == "auto":
            return automatic(shape[0], shape[1], q, building.given(self)[0], self.memory_limit, self.time_limit, self.optimize)
        return as_method(self.method, self.memory_limit), "as given"

    def _plan(self, shape: tuple[int, ...], q: int) -> Plan:
        kernel = building.given(self)[0]
        return plan(tuple(shape), kernel, self.memory_limit, self.time_limit, outputs=q, optimize=self.optimize)

    def _search(self, method: Inference, model: Model, data: Data, rng: np.random.Generator, report: Report, began: float) -> Fitted:
        start = Objective(model, data, method).space.theta
        if not self.optimize or start.size == 0:
            why = "not optimised" if not self.optimize else "nothing to optimise"
            return Fitted(model, method.prepared(model, data, rng), Search(start, np.nan, why, 0, 0, 0, 0), (), data)
        n, q = data.Y.shape
        restarts = self.n_restarts if self.n_restarts is not None else (1 if n <= _FEW_ROWS else 0)
        deadline = None if self.time_limit is None else began + float(self.time_limit)
        after = 0.0 if deadline is None or n <= _FEW_ROWS else seconds_of_final(method, n, data.X.shape[1], q)
        return fit(model, data, method, restarts, rng, report, deadline, after, budget.allowed(self.memory_limit))

    def _infer(self, fitted: Fitted, data: Data, report: Report) -> tuple[Inferred, Data, list[str]]:
        """The posterior of all rows; when somebody stops a long one, that of the rows which the parameters were fitted on."""
        try:
            return fitted.inference.infer(fitted.model, data, report.share), data, []
        except KeyboardInterrupt:
            rows = len(fitted.part.X)
            if rows >= len(data.X):
                raise
            note = f"The final inference on {len(data.X):,} rows was interrupted: this model knows the {rows:,} its parameters were fitted on."
            own = fitted.inference.prepared(fitted.model, fitted.part, _generator(self.random_state))
            return own.infer(fitted.model, fitted.part), fitted.part, [note]

    def plan(self, X: Any, y: Any = None) -> Plan:
        """What each method would take on these data, and which one `method="auto"` takes: memory and time before the fit."""
        building.check_settings(self)
        shape = open_source(X, y).X.shape if is_source(X) else np.shape(X)
        outputs = 1 if y is None or isinstance(y, str) or np.ndim(y) < 2 else np.shape(y)[1]
        return self._plan(shape, outputs)

    # Predicting. ------------------------------------------------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, target: str = "y") -> Any:
        """The mean at the rows of X, and on request the standard deviation or the covariance, of an observation ("y") or of the function ("f").

        Shapes: mean and std (n,), cov (n, n); for 2-D y (n, q) and (n, n, q). Before `fit`, the prior's.
        """
        if return_std and return_cov:
            raise ParameterError("Ask for return_std or return_cov, not both: the standard deviation is the root of the covariance's diagonal.")
        table, process, noise = self._process(X, target)
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused with its row
            return self._predicted(table, process, noise, return_std, return_cov)

    def _predicted(self, table: Array, process: Process, noise: Array, return_std: bool, return_cov: bool) -> Any:
        if return_cov:
            n = len(table)
            needed = 8 * n * n * (2 + 2 * len(noise))
            budget.check_memory(needed, self.memory_limit, f"A covariance of {n:,} points", "Use return_std, or fewer points.")
            cov = process.cov(table)
            var = np.einsum("iik->ik", cov)
            var[...] += noise
            return self._shaped(_finite(process.mean(table), table, var)), cov[:, :, 0] if self._is_single() else cov
        if return_std:
            mean, var = process.moments(table)
            return self._shaped(_finite(mean, table, var)), self._shaped(np.sqrt(var + noise))
        return self._shaped(_finite(process.mean(table), table))

    def sample(self, X: Any, n_samples: int = 1, target: str = "f", random_state: Any = None) -> Array:
        """Joint draws of the function ("f") or of observations ("y") at the rows of X, from the posterior or, before `fit`, from the prior.

        Shape (n, n_samples); for 2-D y (n, q, n_samples). `random_state` defaults to the estimator's.
        """
        if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
            raise ParameterError(f"n_samples={n_samples!r} must be a whole number from 1 on.")
        table, process, noise = self._process(X, target)
        n = len(table)
        needed = 8 * n * (n * (3 + 2 * len(noise)) + len(noise) * int(n_samples))
        budget.check_memory(needed, self.memory_limit, f"Joint draws at {n:,} points", "Draw at fewer points.")
        rng = _generator(self.random_state if random_state is None else random_state)
        draws = process.sample(rng, table, int(n_samples), np.broadcast_to(noise, (n, len(noise))) if target == "y" else None)
        return draws[:, 0, :] if self._is_single() else draws

    def components(self, X: Any) -> dict[str, tuple[Array, Array]]:
        """Mean and standard deviation of each summand of the kernel at the rows of X, by its formula. The means and m(x) add up to f's."""
        check_is_fitted(self, "posterior_")
        table, posterior = self._features(X), self._posterior()
        named = self.kernel_.terms if isinstance(self.kernel_, Sum) else (self.kernel_,)
        kernel = posterior.prior.kernel
        found: dict[str, tuple[Array, Array]] = {}
        for name, term in zip(named, kernel.terms if isinstance(kernel, Sum) else (kernel,), strict=True):
            part = dataclasses.replace(posterior, prior=GaussianProcess(term, ZeroMean(), posterior.prior.scale))
            mean, var = part.moments(table)
            label, k = str(name), 1
            while label in found:
                k += 1
                label = f"{name} #{k}"
            found[label] = (self._shaped(mean), self._shaped(np.sqrt(var)))
        return found

    def predict_gradient(self, X: Any) -> tuple[Array, Array]:
        """Mean and variance of the gradient of f at the rows of X: (n, d) each, or (n, d, q) for 2-D y."""
        check_is_fitted(self, "posterior_")
        if not self.kernel_.differentiable:
            rough = ", ".join(sorted({type(k).__name__ for k in _leaves(self.kernel_) if not k.differentiable}))
            raise ParameterError(
                f"Functions of {self.kernel_} have no gradient, because of {rough}. Smooth kernels have one: RBF, Matern52, Matern32."
            )
        mean, var = self._posterior().gradient_moments(self._features(X))
        return (mean[:, :, 0], var[:, :, 0]) if self._single else (mean, var)

    def loo(self) -> LeaveOneOut:
        """Each training row predicted from all the others, in closed form (Rasmussen and Williams 2006, equations 5.10 to 5.12).

        The standard deviation is of the observation, noise included; the log density is of y in its own units.
        """
        check_is_fitted(self, "posterior_")
        data = self._data
        alpha, precision = self._method_.leave_one_out(self._model_, data, self.posterior_)
        var = 1 / precision  # (n, q), in units of the scale squared
        mean = data.Y - alpha * var * data.scale
        var = var * data.scale**2
        log_density = -0.5 * ((data.Y - mean) ** 2 / var + np.log(2 * np.pi * var))
        return LeaveOneOut(self._shaped(mean), self._shaped(np.sqrt(var)), self._shaped(log_density))

    def log_evidence(self, theta: ArrayLike | None = None, return_grad: bool = False) -> Any:
        """log p(y) in nats at theta (None: as fitted), and with `return_grad` its gradient. With `normalize_y` it is that of y / s."""
        check_is_fitted(self, "posterior_")
        objective = Objective(self._model_, self._data, self._method_)
        at = None if theta is None else Parameter(np.asarray(theta)).value  # refuses what is not a finite number
        if return_grad:
            evidence, gradient = objective.evidence(at if at is None else np.concatenate([at, self._method_.free]))
            gradient = gradient[: self.theta_.size]
            if not np.all(np.isfinite(gradient)):
                raise NumericalError(f"The gradient of the log evidence is not finite at theta={np.array2string(self.theta_ if at is None else at)}.")
            return evidence.value, gradient
        return self._method_.evidence(self._model_ if at is None else objective.at(at), self._data, Workspace()).value

    # Telling. ---------------------------------------------------------------------------------------------------------------------------------------

    @property
    def parameters_(self) -> ParameterTable:
        """All parameters with their values, priors and notes."""
        check_is_fitted(self, "posterior_")
        named = {f"kernel.{path}": p for path, p in self.kernel_.parameters().items()}
        rest = {path: p for path, p in self._model_.parameters().items() if not path.startswith("kernel.")}
        return ParameterTable.of({**named, **rest}, self._facts.notes)

    @property
    def certificate_(self) -> Certificate:
        """How far the answer can be from the exact posterior of the same model: bounds and estimates. Computed when first asked for."""
        check_is_fitted(self, "posterior_")
        if self._certificate is None:
            self._certificate = certify(self._model_, self._data, self._method_, self.posterior_, self.evidence_, _generator(self.random_state))
        return self._certificate

    def summary(self) -> str:
        """The fitted model on a page: parameters, noise, evidence, what happened, and notes with cures."""
        check_is_fitted(self, "posterior_")
        return health.summary(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one file without code in it; `gramian.load` reads it. The file appears whole or not at all."""
        from gramian.modelfile import save

        check_is_fitted(self, "posterior_")
        save(self, path)

    # Helpers. ---------------------------------------------------------------------------------------------------------------------------------------

    def _process(self, X: Any, target: str) -> tuple[Array, Process, Array]:
        """The rows of X, the posterior (or prior), and the noise variance that `target` asks for, one an output."""
        if target not in ("y", "f"):
            raise ParameterError(f'target={target!r} is not known. Use "y" for observations, noise included, or "f" for the function.')
        if not self.__sklearn_is_fitted__():
            return self._prior(X, target)
        noise = np.atleast_1d(self.noise_) if target == "y" else np.zeros(1)
        return self._features(X), self.posterior_, np.broadcast_to(noise, self._facts.scale.shape)

    def _prior(self, X: Any, target: str) -> tuple[Array, Process, Array]:
        building.check_settings(self)
        table, columns = read_features(X)
        given, given_noise = building.given(self)
        kernel = given if given is not None else defaults.default_kernel(table, columns, 1.0)
        kernel.check_columns(columns.described())
        noise = defaults.noise_parameter(given_noise, 1.0, False, defaults.NOISE_FLOOR)
        mean = defaults.mean_function(self.mean, np.zeros(()), columns).adapted(table, np.zeros(()), np.ones(()))
        process = GaussianProcess(kernel.resolve(columns.names), mean, np.ones(1))
        return table, process, noise.value.reshape(1) if target == "y" else np.zeros(1)

    def _features(self, X: Any) -> Array:
        known = self._columns
        if is_source(X):
            table = open_source(X, known=known).X
            if table.shape[1] != len(known.names):
                raise InputError(f"X has {table.shape[1]} features, but GPRegressor is expecting {len(known.names)} features as input.")
            return table
        if is_frame(X) and known.named:
            missing = [name for name in known.names if name not in [str(c) for c in X.columns]]
            if missing:
                raise InputError(
                    f"The feature names should match those that were passed during fit. X has no column {missing[0]!r}; "
                    f"the model was fitted with {', '.join(known.names)}.\nFeature names seen at fit time, yet now missing:\n- {missing[0]}\n"
                )
        if not is_frame(X):
            table, _ = read_features(X, known)
            remember_columns(self, X, table, reset=False)
            return table
        remember_columns(self, X, None, reset=False)
        return read_features(X, known)[0]

    def _posterior(self) -> Posterior:
        """The posterior as a function of k(x, Z), for answers that differentiate or split the kernel."""
        posterior = self.posterior_
        if isinstance(posterior, FeaturePosterior) and isinstance(posterior.features, NystromMap):
            return posterior.function_space()
        if not isinstance(posterior, Posterior):
            raise ParameterError(f"The method {self._method_.name!r} gives no such answer. Use an exact fit, or one with landmarks (nystrom, vfe).")
        return posterior

    def _is_single(self) -> bool:
        return bool(getattr(self, "_single", True))

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._is_single() else values

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False  # predicts from the prior
        return tags


def _leaves(kernel: Kernel) -> list[Kernel]:
    """The kernels that a kernel is made of."""
    children = [child for _, child in kernel.branches() if isinstance(child, Kernel)]
    return [leaf for child in children for leaf in _leaves(child)] or [kernel]


def _generator(random_state: Any) -> np.random.Generator:
    try:
        return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ParameterError(f"random_state={random_state!r}: {error}. Give a whole number from 0 on, a RandomState, or None.") from None


def _finite(mean: Array, table: Array, var: Array | None = None) -> Array:
    """`mean`, or an error that names the row of X where it or the variance is no number."""
    good = np.all(np.isfinite(mean), axis=1) & (True if var is None else np.all(np.isfinite(var), axis=1))
    if not np.all(good):
        row = int(np.argmin(good))
        largest = float(np.max(np.abs(table[row])))
        raise InputError(f"Predictions at row {row} of X leave the range of numbers: it has a value of size {largest:.3g}. Check its units.")
    return mean


__all__ = ["GPRegressor", "LeaveOneOut"]
