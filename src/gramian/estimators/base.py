"""What all estimators share: from a model and data to a fitted posterior, and everything that is told about
it.

A subclass reads y, builds the model, calls `_condition`, and turns the posterior of its latent functions into
predictions.
"""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.certify.certificate import Certificate
from gramian.choose.plan import Plan, seconds_of_final
from gramian.data.inputs import Columns, is_frame, read_features, remember_columns
from gramian.data.sources import is_source, open_source
from gramian.engines.base import Workspace
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.estimators import build
from gramian.fitting import FitOutcome, Objective, Search, level
from gramian.fitting.progress import Report, progress
from gramian.fitting.stages import Fitted, Hold, fit
from gramian.inference import Data, Inferred, Model, Scheme
from gramian.kernels import Kernel
from gramian.linalg import memory
from gramian.params import Parameter, ParameterTable
from gramian.processes.base import Process
from gramian.report import notes as health
from gramian.report.facts import Facts

Array = NDArray[np.float64]

FEW_ROWS = 1000  # up to here another starting point costs little


class Estimator(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is not typed
    """Parent of GPRegressor and GPClassifier."""

    # Settings that all have; their meaning is in the subclasses' docstrings.
    kernel: Any
    mean: Any
    method: Any
    optimize: bool
    n_restarts: int | None
    inference: Any
    hyper: str
    stages: Any
    random_state: Any
    memory_limit: int | str | None
    time_limit: float | None
    verbose: bool | None

    _certificate: Certificate | None

    # Fitting. -----------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any) -> tuple[Array, Columns, Any]:
        """The rows of X, their columns, and y as it came (for a file, its target columns)."""
        if not is_frame(X) and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        if not is_source(X):
            table, columns = read_features(X)
            remember_columns(self, X, table, reset=True)
            return table, columns, y
        source = open_source(X, y, memory_limit=self.memory_limit)
        if source.Y is None:
            raise InputError(
                "The target y is missing. Give fit(X, y); for a file, y is the name of its target column."
            )
        self.n_features_in_ = source.X.shape[1]
        if source.columns.named:
            self.feature_names_in_: NDArray[np.object_] = np.array(source.columns.names, dtype=object)
        return source.X, source.columns, source.Y[:, 0] if source.single else source.Y

    def _condition(
        self,
        kernel: Kernel,
        model: Model,
        data: Data,
        columns: Columns,
        method: Scheme,
        reason: str,
        began: float,
    ) -> None:
        """Fits the parameters and conditions on all rows; what is known afterwards is in the attributes."""
        rng = generator(self.random_state)
        with progress(self.verbose) as report:
            fitted = self._search(method, model, data, rng, report, began)
            searched = time.monotonic()
            inferred, data, interrupted = self._infer(fitted, data, report)
            noise = getattr(self, "noise", None)
            fitted, inferred = level.on_all_rows(
                fitted, data, inferred, isinstance(noise, Parameter) and noise.bounds is not None
            )
        model = fitted.model
        # what was drawn stands for itself; where one value must be told, it is the mean
        model = inferred.model or model
        self._columns, self._data, self._model_, self._method_ = columns, data, model, fitted.inference
        self.kernel_ = kernel.with_parameters(list(model.kernel.parameters().values()))
        self.mean_ = model.mean
        self.likelihood_ = model.likelihood
        self.theta_ = fitted.search.theta
        self.posterior_ = inferred.posterior
        self.evidence_ = inferred.evidence
        self._certificate = None
        self._facts = Facts.of(data, health.parameter_notes(model, data, columns, fitted.search.stopped))
        notes = interrupted + health.late(self.time_limit, searched - began, time.monotonic() - searched)
        notes += health.notes(data, columns, fitted.search, inferred.outcome, self._facts.notes)
        self.outcome_ = FitOutcome(
            method=fitted.inference.name,
            reason=reason,
            solver=fitted.inference.described,
            stopped=fitted.search.stopped,
            iterations=fitted.search.iterations,
            evaluations=fitted.search.evaluations,
            starts=fitted.search.starts,
            jitter=inferred.outcome.jitter,
            seconds=time.monotonic() - began,
            notes=tuple(notes),
            stages=(*map(str, fitted.stages), *([fitted.level] if fitted.level else [])),
        )

    def _search(
        self, method: Scheme, model: Model, data: Data, rng: np.random.Generator, report: Report, began: float
    ) -> Fitted:
        start = Objective(model, data, method).space.theta
        drawn = method.search == "none"
        if self.time_limit is not None:
            method = method.until(began + float(self.time_limit))
        if not self.optimize or start.size == 0 or drawn:
            why = "sampled" if drawn else health.NOT_OPTIMISED if not self.optimize else "nothing to optimise"
            return Fitted(
                model, method.prepared(model, data, rng), Search(start, np.nan, why, 0, 0, 0, 0), (), data
            )
        n, q = data.Y.shape
        restarts = self.n_restarts if self.n_restarts is not None else (1 if n <= FEW_ROWS else 0)
        deadline = None if self.time_limit is None else began + float(self.time_limit)
        after = 0.0 if deadline is None or n <= FEW_ROWS else seconds_of_final(method, n, data.X.shape[1], q)
        holds = Hold.read(self.stages, model)
        return fit(
            model,
            data,
            method,
            restarts,
            rng,
            report,
            deadline,
            after,
            memory.allowed(self.memory_limit),
            holds,
        )

    def _infer(self, fitted: Fitted, data: Data, report: Report) -> tuple[Inferred, Data, list[str]]:
        """The posterior of all rows; when somebody stops a long one, that of the rows which the parameters
        were fitted on."""
        try:
            return fitted.inference.infer(fitted.model, data, report.share), data, []
        except KeyboardInterrupt:
            rows = len(fitted.part.X)
            if rows >= len(data.X):
                raise
            note = (
                f"The final inference on {len(data.X):,} rows was interrupted: this model knows the {rows:,}"
                " its parameters were fitted on."
            )
            own = fitted.inference.prepared(fitted.model, fitted.part, generator(self.random_state))
            return own.infer(fitted.model, fitted.part), fitted.part, [note]

    def plan(self, X: Any, y: Any = None) -> Plan:
        """What each method would take on these data, and which one `method="auto"` takes: memory and time
        before the fit."""
        build.check_settings(self)
        if self.hyper == "mcmc":
            raise ParameterError(
                'A plan predicts searches; how long chains take, only they can tell. Ask with hyper="map" for'
                " the engines alone."
            )
        shape = open_source(X, y, memory_limit=self.memory_limit).X.shape if is_source(X) else np.shape(X)
        return self._plan(tuple(shape), y)

    @abstractmethod
    def _plan(self, shape: tuple[int, ...], y: Any) -> Plan:
        """For data of this shape."""

    # Telling. -----------------------------------------------------------------------------------------------

    def log_evidence(self, theta: ArrayLike | None = None, return_grad: bool = False) -> Any:
        """log p(y) in nats at theta (None: as fitted), and with `return_grad` its gradient; what kind of
        number it is, `evidence_.kind` says."""
        check_is_fitted(self, "posterior_")
        objective = Objective(self._model_, self._data, self._method_)
        # refuses what is not a finite number
        at = None if theta is None else Parameter(np.asarray(theta)).value
        if return_grad:
            evidence, gradient = objective.evidence(
                at if at is None else np.concatenate([at, self._method_.free])
            )
            gradient = gradient[: self.theta_.size]
            if not np.all(np.isfinite(gradient)):
                raise NumericalError(
                    "The gradient of the log evidence is not finite at"
                    f" theta={np.array2string(self.theta_ if at is None else at)}."
                )
            return evidence.value, gradient
        return self._method_.evidence(
            self._model_ if at is None else objective.at(at), self._data, Workspace()
        ).value

    @property
    def parameters_(self) -> ParameterTable:
        """All parameters with their values, priors and notes."""
        check_is_fitted(self, "posterior_")
        named = {f"kernel.{path}": p for path, p in self.kernel_.parameters().items()}
        rest = {path: p for path, p in self._model_.parameters().items() if not path.startswith("kernel.")}
        return ParameterTable.of({**named, **rest}, self._facts.notes)

    def _told(self) -> tuple[str, str, list[str]]:
        """For the summary: what else is known of the data, the units of the evidence, and lines at its
        foot."""
        return "", ", in nats", []

    def summary(self) -> str:
        """The fitted model on a page: parameters, evidence, what happened, and notes with cures."""
        check_is_fitted(self, "posterior_")
        return health.summary(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one file without code in it; `gramian.load` reads it. The file appears
        whole or not at all."""
        from gramian.modelfile import save

        save(self, path)

    # Helpers. -----------------------------------------------------------------------------------------------

    def _latents(self, X: Any) -> tuple[Array, Process]:
        """The rows of X and the posterior."""
        check_is_fitted(self, "posterior_")
        return self._features(X), self.posterior_

    def _features(self, X: Any) -> Array:
        known = self._columns
        if is_source(X):
            table = open_source(X, known=known, memory_limit=self.memory_limit).X
            if table.shape[1] != len(known.names):
                raise InputError(
                    f"X has {table.shape[1]} features, but {type(self).__name__} is expecting"
                    f" {len(known.names)} features as input."
                )
            return table
        if is_frame(X) and known.named:
            missing = [name for name in known.names if name not in [str(c) for c in X.columns]]
            if missing:
                raise InputError(
                    "The feature names should match those that were passed during fit. X has no column"
                    f" {missing[0]!r}; the model was fitted with {', '.join(known.names)}.\nFeature names"
                    f" seen at fit time, yet now missing:\n- {missing[0]}\n"
                )
        if not is_frame(X):
            table, _ = read_features(X, known)
            remember_columns(self, X, table, reset=False)
            return table
        remember_columns(self, X, None, reset=False)
        return read_features(X, known)[0]

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "posterior_")


def generator(random_state: Any) -> np.random.Generator:
    """One stream of random numbers from whatever scikit-learn takes as a seed."""
    try:
        return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ParameterError(
            f"random_state={random_state!r}: {error}. Give a whole number from 0 on, a RandomState, or None."
        ) from None


def check_arguments(unsupported: dict[str, Any], takes: str, cure: str = "") -> None:
    """Refuses what `fit` does not take. As `**unsupported`, so that scikit-learn, which looks for the word
    among the arguments, does not think that weights are supported."""
    others = [name for name in unsupported if name != "sample_weight"]
    if unsupported.get("sample_weight") is not None:
        raise ParameterError(
            "sample_weight is not supported: a posterior counts each row once. Repeat a row that was seen"
            f" several times.{cure}"
        )
    if others:
        raise ParameterError(f"fit does not know {', '.join(map(repr, others))}; it takes {takes}.")


def check_draws(n_samples: Any) -> int:
    """n_samples, when it is a count."""
    if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
        raise ParameterError(f"n_samples={n_samples!r} must be a whole number from 1 on.")
    return int(n_samples)


def finite(mean: Array, table: Array, var: Array | None = None) -> Array:
    """`mean`, or an error that names the row of X where it or the variance is no number."""
    good = np.all(np.isfinite(mean), axis=1) & (True if var is None else np.all(np.isfinite(var), axis=1))
    if not np.all(good):
        row = int(np.argmin(good))
        largest = float(np.max(np.abs(table[row])))
        raise InputError(
            f"Predictions at row {row} of X leave the range of numbers: it has a value of size {largest:.3g}."
            " Check its units."
        )
    return mean
