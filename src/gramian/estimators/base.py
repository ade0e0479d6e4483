"""What all estimators share: from a model and data to a fitted value, and everything that is told about it.

A subclass reads y, builds the model, keeps what `_condition` gives as `fitted_`, and turns it into
predictions. Public attributes (`kernel_`, `evidence_`, ...) are read from that value.
"""

from __future__ import annotations

import copy
import dataclasses
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import _clone_parametrized
from sklearn.utils.validation import check_is_fitted

from gramian import clock
from gramian.arrays import Array, is_whole
from gramian.choose.far import FarPlan
from gramian.choose.plan import Plan, check_time_limit
from gramian.data import gaps
from gramian.data.atomic import atomic_write
from gramian.data.frames import as_frame, parted
from gramian.data.inputs import read_noise_var
from gramian.data.sources import is_source, open_source
from gramian.errors import InputError, ParameterError, plain, visible
from gramian.estimators import far, latent, reading
from gramian.estimators.build import Built
from gramian.estimators.edits import check_refit, edited, judged, one_model, rows_that_stay
from gramian.estimators.fitted import Fitted
from gramian.estimators.fitter import Fitter
from gramian.estimators.resuming import generator
from gramian.fitting import FitOutcome
from gramian.fitting.progress import progress
from gramian.inference import Data, Evidence
from gramian.kernels import Kernel
from gramian.likelihoods import Likelihood
from gramian.linalg import memory
from gramian.means import Mean
from gramian.params import ParameterTable
from gramian.processes.base import Process
from gramian.report.codes import checked
from gramian.report.evaluation import Evaluation
from gramian.report.health import health as health_of
from gramian.report.held import Held
from gramian.report.insides import Insides
from gramian.report.relevance import ROWS, Relevance
from gramian.report.summary import Summary

FIT_SHORT = "The fit", "Fit fewer rows, or give a memory_limit below which a method is to stay; plan() tells."
MOST_DRAWS = 10**12
PREDICTIONS_SHORT = "To predict", "Predict fewer rows at a time, or close other programs."


@dataclass(eq=False, repr=False, kw_only=True)
class Estimator(Fitter, ABC):
    """Parent of GPRegressor and GPClassifier: a fit, and what is asked of it."""

    # Rows that come and go. ---------------------------------------------------------------------------------

    @memory.translated(*FIT_SHORT)
    def update(
        self,
        X: Any,
        y: Any = None,
        *,
        noise_var: ArrayLike | None = None,
        window: int | None = None,
        refit: str = "never",
        **columns: Any,
    ) -> Self:
        """Conditions on further rows, after those of the fit, with the parameters that it has: the posterior
        is that of all rows. X and y as in `fit`, read as the fit has read its own; `noise_var` and `columns`
        where the fit had them.

        window : rows to keep; the oldest are forgotten
        refit : "never"; "always": parameters are searched for again, from where they are; "auto": where rows
            that came since the last search were foretold much worse than left-out rows had been, by half a
            nat a row and three standard errors at the least

        Scales of y, categories and the calibration of intervals stay those of the fit. Exact inference under
        Gaussian noise takes n^2 a row, other methods an inference without a search.
        """
        began = clock.now()
        check_refit(refit)
        if window is not None and not is_whole(window):
            raise ParameterError(f"window={window!r} must be a whole number from 1 on, or None.")
        check_is_fitted(self, "fitted_")
        fitted = one_model(self.fitted_)
        table, y, noise_var, columns = reading.further(self, fitted, X, y, noise_var, columns)
        Y = self._observations(fitted, y, len(table), columns)
        new = Data(table, Y, fitted.rows.scale, read_noise_var(noise_var, len(table)))
        if refit == "auto":
            fitted = judged(fitted)
        rng = generator(self.random_state)
        made = edited(fitted, np.arange(len(fitted.rows.X)), new, rng)
        n = len(made.rows.X)
        if window is not None and n > window:
            made = edited(made, np.arange(n - window, n), None, rng)
        due = refit == "always" or (refit == "auto" and made.edits is not None and made.edits.fell_off)
        self.fitted_ = self._searched_again(made, began) if due else made
        return self

    @memory.translated(*FIT_SHORT)
    def forget(self, rows: Any) -> Self:
        """Takes rows out of the posterior, with the parameters that it has: their numbers from 0 on, a slice,
        or one truth value a row, of the rows that the model has now (`fitted_.rows`). Those that stay keep
        their order; further ones come after them."""
        check_is_fitted(self, "fitted_")
        fitted = one_model(self.fitted_)
        kept = rows_that_stay(rows, len(fitted.rows.X))
        if len(kept) < len(fitted.rows.X):
            self.fitted_ = edited(fitted, kept, None, generator(self.random_state))
        return self

    @abstractmethod
    def _observations(self, fitted: Fitted, y: Any, n: int, beside: dict[str, Any]) -> Array:
        """y of n further rows, (n, columns), as the rows of the fit have theirs."""

    def _searched_again(self, fitted: Fitted, began: float) -> Fitted:
        """The same rows, after another search from the parameters that there are."""
        built, before = Built(fitted.kernel, fitted.model, fitted.rows), fitted.outcome
        given = fitted.columns, fitted.inference, before.reason, began
        found = self._condition(built, *given, fitted.closed_form, fitted.single, fitted.classes, again=True)
        outcome = dataclasses.replace(found.outcome, choice=before.choice)
        return self._finished(dataclasses.replace(found, outcome=outcome), began)

    @memory.translated("This", "Close other programs.")
    def plan(self, X: Any, y: Any = None) -> Plan | FarPlan:
        """What each method would take on these data, memory and time, and which one `method="auto"` takes; of
        rows that stay where they are, what their fit would take of each worker."""
        self.check_settings()
        sampled = self.hyper == "mcmc"
        if sampled or latent.read_inference(self.inference).word == "mcmc":
            setting = 'hyper="map"' if sampled else 'inference="vi"'
            why = "A plan predicts searches; how long chains take, only they can tell"
            raise ParameterError(f"{why}. Ask with {setting} for the engines alone.")
        if far.stays(self, X):
            return far.plan(self, X, y, self._is_gaussian())
        X, y, _ = parted(as_frame(X), y)
        shape = open_source(X, y, memory_limit=self.memory_limit).X.shape if is_source(X) else np.shape(X)
        if len(shape) != 2:
            what = f"Expected 2D array, got {len(shape)}D array instead: X has shape {tuple(shape)}"
            raise InputError(
                f"{what}. Give the rows themselves, or numpy.broadcast_to(0.0, (rows, columns))."
            )
        return self._plan(tuple(shape), y)

    @abstractmethod
    def evaluate(self, X: Any, y: Any) -> Evaluation:
        """How good predictions of y are at the rows of X."""

    @abstractmethod
    def _plan(self, shape: tuple[int, ...], y: Any) -> Plan:
        """For data of this shape."""

    # Telling. -----------------------------------------------------------------------------------------------

    @memory.translated("This", "Close other programs.")
    def log_evidence(self, theta: ArrayLike | None = None, return_grad: bool = False) -> Any:
        """log p(y) in nats at theta (None: as fitted), and with `return_grad` its gradient; what kind of
        number it is, `evidence_.kind` says."""
        check_is_fitted(self, "fitted_")
        fitted = self.fitted_
        return fitted.log_evidence_and_gradient(theta) if return_grad else fitted.log_evidence(theta)

    @property
    def kernel_(self) -> Kernel:
        """The kernel at the fitted parameters."""
        return self.fitted_.first.kernel

    @property
    def mean_(self) -> Mean:
        """The mean function at the fitted parameters."""
        return self.fitted_.first.model.mean

    @property
    def likelihood_(self) -> Likelihood:
        """The likelihood at the fitted parameters."""
        return self.fitted_.first.likelihood

    @property
    def theta_(self) -> Array:
        """The trainable parameters as one unconstrained vector."""
        return self.fitted_.first.theta

    @property
    def posterior_(self) -> Process:
        """The posterior process of f, at the fitted parameters."""
        if self.fitted_.models:
            raise AttributeError("Binary models have no posterior in common: ask one of estimators_.")
        return self.fitted_.first.process

    @property
    def evidence_(self) -> Evidence:
        """log p(y) and its kind."""
        return self.fitted_.evidence

    @property
    def outcome_(self) -> FitOutcome:
        """How the fit went."""
        return self.fitted_.outcome

    @property
    def parameters_(self) -> ParameterTable:
        """All parameters with their values, priors and notes."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.parameters()

    @memory.translated(*PREDICTIONS_SHORT)
    def relevance(self, rows: int = ROWS) -> Relevance:
        """Which columns matter: the share of the variance of f's mean that goes with each, by itself and
        with its interactions, sorted (Sobol indices over the training rows: see gramian.report.relevance),
        at the fitted parameters.
        `rows` times the columns are predicted; the standard error of a share is about 1 / sqrt(rows)."""
        check_is_fitted(self, "fitted_")
        if not is_whole(rows, least=2):
            raise ParameterError(f"rows={rows!r} must be a whole number from 2 on.")
        d = len(self.fitted_.columns.names)
        needed, what = 16 * int(rows) * (3 * d + 2), f"The relevance of {d} columns by {rows:,} rows of each"
        memory.check_memory(needed, self.memory_limit, what, "Give fewer rows.")
        return self.fitted_.relevance(int(rows))

    def plot_relevance(self, ax: Any = None) -> Any:
        """A picture of `relevance()` (see gramian.plots.plot_relevance)."""
        from gramian.plots.relevance import plot_relevance

        return plot_relevance(self, ax)

    def plot_search(self, **settings: Any) -> Any:
        """A picture of the search for the parameters: the height and some of them, an evaluation after
        another (see gramian.plots.plot_search)."""
        from gramian.plots.search import plot_search

        return plot_search(self, **settings)

    def plot_landmarks(self, **settings: Any) -> Any:
        """A picture of landmarks, or inducing points, among the rows (see gramian.plots.plot_landmarks)."""
        from gramian.plots.points import plot_landmarks

        return plot_landmarks(self, **settings)

    def insides(self) -> Insides:
        """The model, its rows and its process: what pictures of them read."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.insides(self.read)

    def plot_calibration(self, X: Any = None, y: Any = None, **settings: Any) -> Any:
        """PIT and calibration of left-out or given rows; of labels their reliability (see
        gramian.plots.plot_calibration)."""
        from gramian.plots.scores import plot_calibration

        check_is_fitted(self, "fitted_")
        return plot_calibration(self, X, y, **settings)

    def plot_residuals(self, X: Any = None, y: Any = None, **settings: Any) -> Any:
        """What was observed against what was foretold, and residuals along each column (see
        gramian.plots.plot_residuals)."""
        from gramian.plots.scores import plot_residuals

        check_is_fitted(self, "fitted_")
        return plot_residuals(self, X, y, **settings)

    @memory.translated("This", "Close other programs.")
    def summary(self, full: bool = False) -> Summary:
        """The fitted model on a page: parameters, evidence, what happened, and notes with cures. Of many
        lengthscales those of the columns that matter most are shown; `full` shows all."""
        check_is_fitted(self, "fitted_")
        return self.fitted_.summary(type(self).__name__, full)

    @memory.translated(*PREDICTIONS_SHORT)
    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        X: Any = None,
        y: Any = None,
        *,
        json: str | os.PathLike[str] | None = None,
        ignore: str | Sequence[str] = (),
        time_limit: float | None = None,
        **columns: Any,
    ) -> Summary:
        """The health of the model on a page: is it good, is it sound, which columns matter, where is it least
        sure, and what to try next. Findings have codes (docs/report.md), with what each means and its cure.

        Parameters
        ----------
        path : where to write the page, one HTML file that needs nothing else; None: nowhere
        X, y : rows that were held back, as for `evaluate`; without them each training row is foretold by all
            others, where that is cheap
        json : where to write the same for programs
        ignore : codes of findings that are not wanted, such as "P003" or ["P003", "D007"]
        time_limit : seconds; what there was no time for is named
        columns : exposures or trials of the rows, as for `evaluate`

        Returns the summary with these sections: it prints, and has `findings`, `passed`, `to_dict()`,
        `json()` and `html()`.
        """
        check_is_fitted(self, "fitted_")
        codes = checked((ignore,) if isinstance(ignore, str) else tuple(ignore))
        if X is None and y is not None:
            raise ParameterError("report(X, y): y was given without X. Give both, or neither.")
        check_time_limit(time_limit)
        end = None if time_limit is None else clock.now() + float(time_limit)
        with clock.until(end, math.inf), progress(self.verbose) as told:
            told.task("the report")
            given = None
            if X is not None:
                targets = list(self.fitted_.columns.targets)
                own = targets if len(targets) > 1 else targets[0] if targets else None
                given = self.held_back(X, own if y is None else y, columns)
            elif columns:
                raise ParameterError(f"{', '.join(columns)}: there are no rows (X, y) that this belongs to.")
            made = health_of(type(self).__name__, self.fitted_, given, codes, told)
            if path is not None:
                told.task("the page")
                with atomic_write(path) as file:
                    file.write(made.html().encode())
        if json is not None:
            with atomic_write(json) as file:
                file.write((made.json() + "\n").encode())
        return made

    @abstractmethod
    def held_back(self, X: Any, y: Any, given: Mapping[str, Any]) -> tuple[Held, Array]:
        """Rows that the fit has not seen against what is foretold of them, and their table: what a report is
        made of. `given`: the likelihood's columns beside y."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the fitted model to one file without code, whole or not at all; `gramian.load` reads it."""
        from gramian.modelfile import save

        save(self, path)

    # Helpers. -----------------------------------------------------------------------------------------------

    def read(self, X: Any) -> Array:
        """The rows of X as the fitted model's own table: float64, its columns in their order, categories as
        codes. What `fitted_` is asked at."""
        check_is_fitted(self, "fitted_")
        known, X = self.fitted_.columns, as_frame(X)
        table = reading.read(self, X, known)
        if known.gaps and table.shape[1] == len(known.given):
            table = gaps.with_indicators(table, known)
        if known.readings and (new := known.new_categories(table)):
            told = ", ".join(f"{name} ({count})" for name, count in new.items())
            what = "rows with categories that the fit has not seen are predicted as unlike all others"
            warnings.warn(visible(f"{what}: {told}"), stacklevel=3)
        return table

    def _drawn(
        self,
        process: Process,
        L: int,
        X: Array,
        count: int,
        rng: np.random.Generator,
        noise: Array | None = None,
    ) -> Array:
        """Joint draws of L functions, (n, L, count), plus noise of variances (L,)."""
        self._hold_draws(len(X), L, count)
        noise = None if noise is None else np.broadcast_to(noise, (len(X), L))
        return process.sample(rng, X, count, noise)

    def _hold_draws(self, n: int, L: int, count: int) -> None:
        """Refuses joint draws that would not fit into memory."""
        needed, what = 8 * n * (n * (3 + 2 * L) + L * count), f"Joint draws at {n:,} points"
        memory.check_memory(needed, self.memory_limit, what, "Draw at fewer points.")

    def __dir__(self) -> list[str]:
        """Public names that have a value, for completion and scikit-learn's box; none is costly to read."""
        names = (name for name in super().__dir__() if name.startswith("__") or not name.startswith("_"))
        return [name for name in names if hasattr(self, name)]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # as scikit-learn calls it
        return plain(super().__repr__(N_CHAR_MAX))

    def __sklearn_clone__(self) -> Self:
        """As scikit-learn makes it, with the same client, of which there are no copies."""
        plain = copy.copy(self)
        plain.client = None
        made: Self = _clone_parametrized(plain)
        made.client = self.client
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Without the client, which is of this process alone."""
        return {**super().__getstate__(), "client": None}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


def check_arguments(unsupported: dict[str, Any], takes: str, cure: str = "") -> None:
    """Refuses what `fit` does not take. As `**unsupported`, so that scikit-learn, which looks for the word
    among the arguments, does not think that weights are supported."""
    others = [name for name in unsupported if name != "sample_weight"]
    if unsupported.get("sample_weight") is not None:
        way = f"Repeat a row that was seen several times.{cure}"
        raise ParameterError(f"sample_weight is not supported: a posterior counts each row once. {way}")
    if others:
        raise ParameterError(f"fit does not know {', '.join(map(repr, others))}; it takes {takes}.")


def check_draws(n_samples: Any) -> int:
    """n_samples, when it is a count."""
    if not is_whole(n_samples, most=MOST_DRAWS):
        raise ParameterError(f"n_samples={n_samples!r} must be a whole number from 1 to {MOST_DRAWS:,}.")
    return int(n_samples)


def check_target(target: Any, observations: str, function: str) -> None:
    """Refuses what is neither "y" nor "f"."""
    if target not in ("y", "f"):
        cure = f'Use "y" for {observations}, or "f" for {function}.'
        raise ParameterError(f"target={target!r} is not known. {cure}")
