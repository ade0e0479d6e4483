"""GPRegressor: Gaussian process regression as a scikit-learn estimator."""

from __future__ import annotations

import dataclasses
import numbers
import os
import time
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.errors import InputError, NumericalError, ParameterError
from gramian.estimators import defaults, health
from gramian.estimators.inputs import Columns, is_frame, read_features, read_noise_var, read_targets, remember_columns
from gramian.fitting import FitOutcome, Objective, maximise
from gramian.fitting.lbfgs import Search
from gramian.fitting.progress import progress
from gramian.gram import budget
from gramian.inference import Data, Exact, GaussianProcess, Inference, Model, Posterior, Process
from gramian.inference.base import Workspace
from gramian.kernels import Kernel, Sum
from gramian.kernels.convert import Converted
from gramian.likelihoods import Gaussian
from gramian.means import Mean, ZeroMean
from gramian.params import Parameter, ParameterTable, fixed

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
    method : "auto" or "exact"
        The engine. "auto" takes the exact one.
    optimize : bool
        Whether to fit the parameters, or to take them as given.
    n_restarts : int, optional
        Further starting points. None: 1 up to 1,000 rows, else none.
    normalize_y : bool
        Centre y and measure the kernel's variance in units of y's variance.
    random_state : int, RandomState or None
        For the starting points, and the default for `sample`.
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
    outcome_ : what happened: solver, iterations, jitter, time, notes
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        mean: str | Mean = "constant",
        noise: float | Parameter | None = None,
        method: str | Inference = "auto",
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

    def fit(self, X: Any, y: Any, noise_var: ArrayLike | None = None) -> Self:
        """Conditions on the rows of X and y, after fitting the parameters.

        `noise_var` gives known noise variances, one a row, in units of y squared; `noise`, if given too, comes on top of them.
        """
        began = time.monotonic()
        inference, reason = self._inference()
        self._check_settings()
        if not is_frame(X) and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        table, columns = read_features(X)
        remember_columns(self, X, table, reset=True)
        Y, single = read_targets(y, len(table))
        known_noise = read_noise_var(noise_var, len(table))
        n, d = table.shape
        what, cure = f"Inference by the method {inference.name!r} on {n:,} rows", "Raise memory_limit, or fit fewer rows."
        budget.check_memory(inference.bytes_needed(n, d, Y.shape[1]), self.memory_limit, what, cure)

        kernel, model, data = self._model(table, columns, Y, single, known_noise)
        objective = Objective(model, data, inference)
        search = self._search(objective, n, began)
        fitted = objective.at(search.theta) if search.evaluations else model  # as given, not to rounding through their logarithms
        objective.workspace.release()
        inferred = inference.infer(fitted, data)

        self._columns, self._single, self._data, self._model_ = columns, single, data, fitted
        self.kernel_ = kernel.with_parameters(list(fitted.kernel.parameters().values()))
        self.mean_ = fitted.mean
        noise = fitted.likelihood.variances()
        self.noise_ = float(noise[0]) if noise.size == 1 else noise
        self.theta_ = search.theta
        self.posterior_ = inferred.posterior
        self.evidence_ = inferred.evidence
        notes = health.notes(fitted, data, columns, search, inferred.outcome.jitter)
        self.outcome_ = FitOutcome(
            method=inference.name,
            reason=reason,
            solver=inference.solver_name,
            stopped=search.stopped,
            iterations=search.iterations,
            evaluations=search.evaluations,
            starts=search.starts,
            jitter=inferred.outcome.jitter,
            seconds=time.monotonic() - began,
            notes=tuple(notes),
        )
        return self

    def _inference(self) -> tuple[Inference, str]:
        if isinstance(self.method, Inference):
            return self.method, "as given"
        if self.method in ("auto", "exact"):
            return Exact(), "as given" if self.method == "exact" else "it fits into the memory limit"
        raise ParameterError(f'method={self.method!r} is not known. Use "auto", "exact", or an inference object.')

    def _check_settings(self) -> None:
        if self.kernel is not None and not isinstance(self.kernel, (Kernel, Converted)):
            raise ParameterError(
                f"kernel must be a gramian kernel or None, not {self.kernel!r}. For a scikit-learn kernel: gramian.from_sklearn(kernel)."
            )
        if self.time_limit is not None and not (isinstance(self.time_limit, numbers.Real) and self.time_limit > 0):
            raise ParameterError(f"time_limit={self.time_limit!r} must be a positive number of seconds.")
        if self.n_restarts is not None and (not isinstance(self.n_restarts, (int, np.integer)) or self.n_restarts < 0):
            raise ParameterError(f"n_restarts={self.n_restarts!r} must be a whole number from 0 on.")
        if self.memory_limit is not None:
            budget.parse_bytes(self.memory_limit)
        for name in ("optimize", "normalize_y"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ParameterError(f"{name}={getattr(self, name)!r} must be True or False.")

    def _given(self) -> tuple[Kernel | None, float | Parameter | None]:
        """The kernel and the noise as given; a converted scikit-learn kernel brings its noise along."""
        if isinstance(self.kernel, Converted):
            return self.kernel.kernel, self.kernel.noise if self.noise is None else self.noise
        return self.kernel, self.noise

    def _model(self, X: Array, columns: Columns, Y: Array, single: bool, noise_var: Array | None) -> tuple[Kernel, Model, Data]:
        """The kernel as people wrote it, the model with column indices, and the data."""
        given, given_noise = self._given()
        spread = defaults.output_spread(Y, single)
        scale = spread if self.normalize_y else np.ones_like(spread)
        average = np.mean(Y, axis=0)
        zero = average if self.normalize_y else np.zeros_like(spread)
        # A constant that is to be fitted starts at the average; one that is taken as it is, is zero unless y is centred.
        loc = average if self.optimize and self.mean != "zero" else zero
        kernel = given if given is not None else defaults.default_kernel(X, columns, float(np.mean((spread / scale) ** 2)))
        kernel.check_columns(columns.described())
        # Noise is in the units of y. Several outputs of different spread share one relative noise, and so one factorisation, unless noise is given.
        relative = given_noise is None and noise_var is None and Y.shape[1] > 1
        unit = tuple(map(float, scale**2)) if relative else (1.0,)
        variance = float(np.mean(spread**2 / (scale**2 if relative else 1.0)))
        floor = defaults.NOISE_FLOOR * float(np.min(spread**2))
        if given_noise is None and noise_var is not None:
            given_noise = fixed(0.0)  # known variances are all the noise there is, unless some is asked for beside them
        noise = defaults.noise_parameter(given_noise, variance, given is None, floor)
        start = loc[0] if single else loc
        mean = defaults.mean_function(self.mean, start, columns).adapted(X, start, spread[0] if single else spread)
        model = Model(kernel.resolve(columns.names), mean, Gaussian(noise, unit))
        data = Data(X, Y, scale, noise_var)
        health.refuse_contradictions(data, model)
        return kernel, model, data

    def _search(self, objective: Objective, n: int, began: float) -> Search:
        space = objective.space
        start = space.theta
        if not self.optimize or start.size == 0:
            why = "not optimised" if not self.optimize else "nothing to optimise"
            return Search(start, np.nan, why, 0, 0, 0, 0)
        restarts = self.n_restarts if self.n_restarts is not None else (1 if n <= _FEW_ROWS else 0)
        rng = _generator(self.random_state) if restarts else np.random.default_rng(0)
        starts = [start, *space.restarts(restarts, rng)]
        deadline = None if self.time_limit is None else began + float(self.time_limit)
        with progress(self.verbose) as report:
            return maximise(objective, starts, objective.limits, report, deadline)

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
        posterior, data = self._posterior(), self._data
        var = 1 / posterior.precision_diagonal()  # (n, q), in units of the scale squared
        mean = data.Y - posterior.alpha * var * data.scale
        var = var * data.scale**2
        log_density = -0.5 * ((data.Y - mean) ** 2 / var + np.log(2 * np.pi * var))
        return LeaveOneOut(self._shaped(mean), self._shaped(np.sqrt(var)), self._shaped(log_density))

    def log_evidence(self, theta: ArrayLike | None = None, return_grad: bool = False) -> Any:
        """log p(y) in nats at theta (None: as fitted), and with `return_grad` its gradient. With `normalize_y` it is that of y / s."""
        check_is_fitted(self, "posterior_")
        inference, _ = self._inference()
        objective = Objective(self._model_, self._data, inference)
        at = None if theta is None else Parameter(np.asarray(theta)).value  # refuses what is not a finite number
        if return_grad:
            evidence, gradient = objective.evidence(at)
            if not np.all(np.isfinite(gradient)):
                raise NumericalError(f"The gradient of the log evidence is not finite at theta={np.array2string(self.theta_ if at is None else at)}.")
            return evidence.value, gradient
        return inference.evidence(self._model_ if at is None else objective.at(at), self._data, Workspace()).value

    # Telling. ---------------------------------------------------------------------------------------------------------------------------------------

    @property
    def parameters_(self) -> ParameterTable:
        """All parameters with their values, priors and notes."""
        check_is_fitted(self, "posterior_")
        named = {f"kernel.{path}": p for path, p in self.kernel_.parameters().items()}
        rest = {path: p for path, p in self._model_.parameters().items() if not path.startswith("kernel.")}
        return ParameterTable.of({**named, **rest}, health.parameter_notes(self._model_, self._data, self._columns))

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
        return self._features(X), self.posterior_, np.broadcast_to(noise, self._data.scale.shape)

    def _prior(self, X: Any, target: str) -> tuple[Array, Process, Array]:
        self._check_settings()
        table, columns = read_features(X)
        given, given_noise = self._given()
        kernel = given if given is not None else defaults.default_kernel(table, columns, 1.0)
        kernel.check_columns(columns.described())
        noise = defaults.noise_parameter(given_noise, 1.0, False, defaults.NOISE_FLOOR)
        mean = defaults.mean_function(self.mean, np.zeros(()), columns).adapted(table, np.zeros(()), np.ones(()))
        process = GaussianProcess(kernel.resolve(columns.names), mean, np.ones(1))
        return table, process, noise.value.reshape(1) if target == "y" else np.zeros(1)

    def _features(self, X: Any) -> Array:
        known = self._columns
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
        if not isinstance(self.posterior_, Posterior):
            raise ParameterError(f"method={self.method!r} gives no such answer.")
        return self.posterior_

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
