"""What all estimators share: from a model and data to a fitted value, and everything that is told about it.

A subclass reads y, builds the model, keeps what `_condition` gives as `fitted_`, and turns it into
predictions. Public attributes (`kernel_`, `evidence_`, ...) are read from that value.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, _clone_parametrized, is_classifier
from sklearn.utils.validation import check_is_fitted

from gramian import clock, journal
from gramian.arrays import Array, is_whole
from gramian.choose.far import FarPlan
from gramian.choose.plan import Plan, rates_for
from gramian.clock import OutOfTime
from gramian.data import gaps
from gramian.data.atomic import atomic_write
from gramian.data.frames import as_frame, is_frame, parted, without
from gramian.data.inputs import Columns, read_named, read_noise_var, refuse_extremes, spread, target_names
from gramian.data.pieces import is_dask_array, is_dask_frame
from gramian.data.sources import is_source, open_source
from gramian.data.tables import read_table
from gramian.data.targets import absent_targets, as_numbers
from gramian.engines.base import Engine
from gramian.errors import InputError, ParameterError, plain, visible
from gramian.estimators import build, far, latent
from gramian.estimators.build import Built
from gramian.estimators.calibrating import calibrated_by
from gramian.estimators.defaults import ENOUGH, Choice
from gramian.estimators.edits import check_refit, edited, judged, one_model, rows_that_stay
from gramian.estimators.fitted import Fitted
from gramian.estimators.guard import guarded
from gramian.estimators.learned import Learned
from gramian.estimators.resuming import generator, identify
from gramian.fitting import FitOutcome, Objective, Search, level
from gramian.fitting.budget import Budget, at_random
from gramian.fitting.draws import ParameterDraws, drawn
from gramian.fitting.progress import Report, progress
from gramian.fitting.rows import distinct
from gramian.fitting.stages import Hold, Searched, fit
from gramian.inference import Data, Evidence, Inference, Inferred, Model, Scheme
from gramian.inference.mcmc.chains import ask_packages
from gramian.inference.mcmc.method import MCMC
from gramian.interrupt import attended, held_back
from gramian.kernels import Kernel, Matern52, Stationary
from gramian.likelihoods import Likelihood
from gramian.linalg import memory
from gramian.linalg.executor import as_executor, using
from gramian.means import Mean
from gramian.params import Parameter, ParameterSpace, ParameterTable
from gramian.processes.base import Process
from gramian.report import notes as health
from gramian.report.codes import checked
from gramian.report.evaluation import Evaluation
from gramian.report.facts import Facts
from gramian.report.health import health as health_of
from gramian.report.held import Held
from gramian.report.relevance import ROWS, Relevance
from gramian.report.summary import Summary
from gramian.solvers import Solver

FEW_ROWS = 1000  # up to here another starting point costs little
# of a time limit, and seconds at least: what a final inference may take beyond it before it is given up
GRACE, LEAST_GRACE = 0.1, 1.0
# where predictions are not averaged over parameters, though they should be
UNAVERAGED, ONE_SET = "takes longer than the time limit allows", "intervals are those of the best ones alone."
FIT_SHORT = "The fit", "Fit fewer rows, or give a memory_limit below which a method is to stay; plan() tells."
PREDICTIONS_SHORT = "To predict", "Predict fewer rows at a time, or close other programs."
CALIBRATED = 3.0  # final inferences: itself, and what leaving each row out takes without the whole of K


@dataclass(eq=False, repr=False, kw_only=True)
class Estimator(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is not typed
    """Parent of GPRegressor and GPClassifier, whose docstrings say what the settings mean."""

    kernel: Kernel | list[Kernel] | str | None = field(default=None, kw_only=False)
    mean: str | Mean = "constant"
    inference: str | Inference | MCMC | None = None
    hyper: str = "map"  # one of `hypers`
    method: str | Engine | Scheme | Solver = "auto"
    optimize: bool = True
    n_restarts: int | None = None
    stages: list[Hold] | None = None
    random_state: Any = None
    missing: str = "fill"
    memory_limit: int | str | None = None
    time_limit: float | None = None
    checkpoint: str | os.PathLike[str] | None = None
    verbose: bool | None = None
    client: Any = None  # a Dask client, or an executor of concurrent.futures

    fitted_: Learned = field(init=False)  # what the last fit has left
    # what `hyper` may be
    usual: ClassVar[tuple[type[Stationary], ...]] = (Matern52,)  # of the default kernel
    hypers: ClassVar[Mapping[str, str]] = {"map": "priors count", "ml": "they do not", "mcmc": "full Bayes"}

    # Fitting. -----------------------------------------------------------------------------------------------

    def check_settings(self) -> None:
        """Refuses impossible settings, before any work."""
        build.check_settings(self)
        latent.read_inference(self.inference)

    def check_ready(self) -> None:
        """Refuses what `fit` could not do, before any work: impossible settings, and packages that are
        missing."""
        self.check_settings()
        if self.hyper == "mcmc" or latent.read_inference(self.inference).word == "mcmc":
            ask_packages()

    def _training(
        self, X: Any, y: Any, beside: dict[str, Any] | None = None, noise_var: Any = None
    ) -> tuple[Array, Columns, Any, dict[str, Any], Any]:
        """The rows of X without gaps, their columns, and what goes with these rows: y, the columns beside it,
        and variances. Where y names columns of a table, those."""
        if far.stays(self, X):
            raise InputError(
                f"{type(self).__name__} takes rows that are here: an array, a frame, or a file without a"
                " client. Rows that stay where they are, GPRegressor fits."
            )
        X, beside = as_frame(X), beside or {}
        indicators = build.read_kernel(self.kernel).kernel is None  # the default one has a place for them
        if not is_source(X):
            X, y, targets = parted(X, y)
            table, columns = read_named(self, X, missing=self.missing)
            columns = columns.predicting(targets or target_names(y))
            if targets and not is_classifier(self):
                y, columns = as_numbers(y, columns)
            if self.missing == "error":
                return table, columns, y, beside, noise_var
            absent, n = absent_targets(y, len(table)), len(table)
            kept = None
            if absent is not None:
                kept = np.flatnonzero(~absent)
                note = gaps.without_target(n - len(kept), n)
                table, columns = table[kept], replace(columns, notes=(*columns.notes, note))
            if gaps.has_gaps(table):
                table, columns, left = gaps.whole_rows(table, columns, self.missing, indicators)
                kept = kept if left is None else left if kept is None else kept[left]
            if kept is not None:
                y, noise_var = _some(y, kept, n), _some(noise_var, kept, n)
                beside = {name: _some(values, kept, n) for name, values in beside.items()}
            return table, columns, y, beside, noise_var
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        settings: dict[str, Any] = {"memory_limit": self.memory_limit, "missing": self.missing}
        source = open_source(X, y, indicators=indicators, **settings)
        if source.Y is None:
            cure = "Give fit(X, y); for a file, y is the name of its target column."
            raise InputError(f"The target y is missing. {cure}")
        refuse_extremes(source.X, source.columns)
        names, kept = source.columns.given, source.kept
        self.n_features_in_ = len(names)
        if source.columns.named:
            self.feature_names_in_: NDArray[np.object_] = np.array(names, dtype=object)
        # a file has its targets' names, a memory map comes with a y that may have some
        columns = source.columns.predicting(source.columns.targets or target_names(y))
        if kept is not None:
            noise_var = _some(noise_var, kept)
            beside = {name: _some(values, kept) for name, values in beside.items()}
        y = source.Y[:, 0] if source.single else source.Y
        return source.X, columns, y, beside, noise_var

    def _rivalled(
        self, built: Built, method: Scheme, reason: str, rng: np.random.Generator, report: Report
    ) -> tuple[Scheme, str]:
        """The method, or one that rows say is better, with the reason."""
        return method, reason

    def _condition(
        self,
        built: Built,
        columns: Columns,
        method: Scheme,
        reason: str,
        began: float,
        closed_form: bool = False,
        single: bool = True,
        classes: NDArray[Any] | None = None,
        again: bool = False,
    ) -> Fitted:
        """Fits the parameters and conditions on all rows. `again`: the kind of model is chosen already."""
        rows, noise = built.rows, getattr(self, "noise", None)
        bounded = isinstance(noise, Parameter) and noise.bounds is not None
        written = {"X": rows.X, "y": rows.Y, "noise_var": rows.noise_var}
        identify(self, written, method=f"{method.name}, {method.described}")
        rng = generator(self.random_state)
        # where no single call can be long, nobody need listen for Ctrl-C
        slow = not method.closed or len(rows.X) > FEW_ROWS
        with (
            # what chains have drawn is not given up
            clock.until(self._end(began), math.inf if method.search == "none" else self._grace),
            progress(self.verbose) as report,
            attended(lambda: report.doing) if slow else contextlib.nullcontext(),
            using(as_executor(self.client)),
        ):
            if goes_on := journal.resumed():
                report.resumed(goes_on)
            if not again:
                method, reason = self._rivalled(built, method, reason, rng, report)
            choice = None if again else self._choice(built, columns, method, rng, report)
            if choice is None and self.optimize and method.search != "none" and not again:
                choice = guarded(built, columns, rng, report)
            built = built if choice is None else choice.built
            rows = built.rows
            restarts = self.restarts(len(rows.X)) if choice is None else self.n_restarts or 0
            budget = self._budget(method, built.model, rows, calibrated=choice is not None)
            stopped = choice is not None and choice.interrupted
            enough = ENOUGH if choice is not None else 0.0
            searched = self._search(method, built.model, rows, restarts, rng, report, budget, stopped, enough)
            if choice is not None:
                searched = dataclasses.replace(searched, search=choice.counted(searched.search))
            search_ended = clock.now()
            inferred, searched, cut = self._infer(method, searched, rows, report, rng, budget)
            rows = searched.final
            with held_back() as pressed:  # it overwrites what there is
                searched, inferred = level.on_all_rows(searched, rows, inferred, bounded)
            if pressed():
                stopped_search = replace(searched.search, stopped="interrupted")
                searched = dataclasses.replace(searched, search=stopped_search)
            found: ParameterDraws | None = None
            told: list[str] = []
            if not cut and self._averages(searched):  # who has stopped an inference waits for no more of them
                found, told = self._drawn_parameters(searched, report)
        model, search = searched.model, searched.search
        model = inferred.model or model  # where parameters were drawn: at their mean
        sd = spread(rows.X)
        facts = Facts.of(rows, health.parameter_notes(model, rows, columns, search.stopped, sd), sd)
        seconds = search_ended - began, clock.now() - search_ended
        notes = cut + list(searched.notes) + told + health.late(self.time_limit, *seconds)
        notes += health.notes(model, rows, columns, search, inferred.outcome, facts.notes)
        averaged = [] if found is None else [str(found)]
        stopped_by = inferred.outcome.stopped or search.stopped
        if cut or told or stopped_by in ("time limit", "interrupted"):
            journal.leave()
        outcome = FitOutcome(
            method=searched.inference.name,
            reason=reason,
            solver=searched.inference.described,
            stopped=stopped_by,
            iterations=search.iterations,
            evaluations=search.evaluations,
            starts=search.starts,
            jitter=inferred.outcome.jitter,
            seconds=clock.now() - began,
            notes=tuple(notes),
            choice=() if choice is None else choice.lines,
            stages=tuple(
                filter(None, (journal.resumed(), *map(str, searched.stages), searched.level, *averaged))
            ),
        )
        fitted = Fitted(
            self._kernel_of(built, model),
            model,
            searched.inference,
            rows,
            inferred.posterior,
            inferred.evidence,
            outcome,
            columns,
            facts,
            search.theta,
            closed_form,
            single,
            bool(getattr(self, "normalize_y", False)),
            classes,
            draws=None if found is None else found.thetas,
        )
        if searched.left_out is None or choice is None or self.kernel is not None:
            return fitted
        return calibrated_by(fitted, *searched.left_out)

    def _kernel_of(self, built: Built, model: Model) -> Kernel:
        """The fitted kernel as people have written it."""
        return built.kernel.with_parameters(list(model.kernel.parameters().values()))

    def _averages(self, searched: Searched) -> bool:
        """Whether predictions are averaged over the posterior of the parameters."""
        return False

    def _drawn_parameters(
        self, searched: Searched, report: Report
    ) -> tuple[ParameterDraws | None, list[str]]:
        """Draws of the parameters; none, and why, where there was no time for them."""
        # as in a search, a row that stands there twice is no further proof
        objective = Objective(searched.model, distinct(searched.final), searched.inference)
        try:
            if searched.search.stopped == "interrupted":
                raise KeyboardInterrupt
            return drawn(objective, searched.search.theta, report), []
        except (OutOfTime, KeyboardInterrupt) as stop:
            why = "was interrupted" if isinstance(stop, KeyboardInterrupt) else UNAVERAGED
            return None, [f"The average over what the parameters may be {why}: {ONE_SET}"]

    def _choice(
        self, built: Built, columns: Columns, method: Scheme, rng: np.random.Generator, report: Report
    ) -> Choice | None:
        """The kind of model, where it is left to the data."""
        return None

    def _end(self, began: float) -> float | None:
        """When the time of a fit is over, in seconds of `clock.now()`."""
        return None if self.time_limit is None else began + float(self.time_limit)

    @property
    def _grace(self) -> float:
        return max(GRACE * float(self.time_limit or 0.0), LEAST_GRACE)

    def _budget(self, method: Scheme, model: Model, data: Data, calibrated: bool) -> Budget | None:
        """What may be spent, where the time is limited; `calibrated`: by left-out rows, after the fit."""
        if not clock.end() < math.inf or method.search == "none":
            return None
        size = (*data.X.shape, len(data.scale))
        rates = rates_for(method, size, clock.end() - clock.now())
        rates = rates.of(model.kernel, size[1], method.at_points)
        again = calibrated and method.leaves_out_cheaply and not method.holds_rows
        return Budget(clock.end(), rates.seconds, size, self._grace, CALIBRATED if again else 1.0)

    def _search(
        self,
        method: Scheme,
        model: Model,
        data: Data,
        restarts: int,
        rng: np.random.Generator,
        report: Report,
        budget: Budget | None,
        interrupted: bool = False,
        enough: float = 0.0,
    ) -> Searched:
        space = ParameterSpace(model.parameters())
        if clock.end() < math.inf:
            method = method.until(clock.end())
        reasons = {
            "interrupted": interrupted,
            "sampled": method.search == "none",
            health.NOT_OPTIMISED: not self.optimize,
            "nothing to optimise": space.size == 0,
        }
        if (why := next((reason for reason, holds in reasons.items() if holds), None)) is not None:
            nowhere = Search(space.theta, np.nan, why, 0, 0, 0, 0)
            final = data if budget is None else budget.kept(method, data, rng)
            with contextlib.suppress(OutOfTime):  # it then chooses where it is used
                method = method.prepared(model, final, rng)
            return Searched(model, method, nowhere, (), data, final)
        holds, room = Hold.read(self.stages, model), lambda: memory.allowed(self.memory_limit)
        return fit(model, data, method, restarts, rng, report, budget, room, holds, enough)

    def restarts(self, n: int) -> int:
        """Further starting points of a search on n rows."""
        return (1 if n <= FEW_ROWS else 0) if self.n_restarts is None else self.n_restarts

    def _infer(
        self,
        method: Scheme,
        searched: Searched,
        rows: Data,
        report: Report,
        rng: np.random.Generator,
        budget: Budget | None,
    ) -> tuple[Inferred, Searched, list[str]]:
        """The posterior of all rows; where the time is too short for it, or somebody stops it, that of fewer,
        and with what it was made."""
        n, began, inference, part = len(rows.X), clock.now(), searched.inference, searched.final
        why, which = "takes longer than the time limit allows", "chosen at random"
        report.final(len(part.X))
        try:
            inferred = inference.infer(searched.model, far.shared(self, part, inference), report.share)
        except (KeyboardInterrupt, OutOfTime) as stop:
            # fewer rows have fewer points, unless those were learned, and few need no solver
            fewer = method.on_few_rows() if method.exact else method
            inference = inference if inference.free.size else fewer
            if isinstance(stop, KeyboardInterrupt):
                # to stop a fit is to ask for what it has: fewer rows, or the same ones once more
                few, search = len(searched.part.X) < n, searched.search
                if not few and (search.stopped == "interrupted" or not search.evaluations):
                    raise
                searched = dataclasses.replace(searched, search=replace(search, stopped="interrupted"))
                part, why = searched.part if few else part, "was interrupted"
                inference = inference if few else searched.inference
                which = "those that its parameters were fitted on"
            elif budget is not None:
                budget.passed(searched.inference, clock.now() - began)
                # where the whole of K was at work, its programs are compiled
                compiled = searched.inference.on_few_rows() is searched.inference
                room = budget.rows_of_final(inference, self._grace / 4, compiled)
                part = rows.take(at_random(n, room, rng))
            end = None if budget is None else clock.now() + self._grace / 2
            with clock.until(end, math.inf, anew=True):
                inference = inference.prepared(searched.model, part, rng)
                inferred = inference.infer(searched.model, part)
        known = f"this model knows {len(part.X):,} of them, {which}"
        notes = [f"The final inference on {n:,} rows {why}: {known}."] if len(part.X) < n else []
        return inferred, dataclasses.replace(searched, inference=inference, final=part), notes

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
        new = self._further_rows(fitted, X, y, noise_var, columns)
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

    def _further_rows(
        self, fitted: Fitted, X: Any, y: Any, noise_var: ArrayLike | None, beside: dict[str, Any]
    ) -> Data:
        """Rows of X and y as the fitted model has its own."""
        known = fitted.columns
        if y is None and known.targets:
            y = list(known.targets) if len(known.targets) > 1 else known.targets[0]
        if y is None:
            raise InputError("The target y is missing. Give update(X, y).")
        X, y = self._compared(X, y)
        table = self.read(X)
        n = len(table)
        kept = np.arange(n)
        if self.missing != "error":
            absent = absent_targets(y, n)
            kept = kept if absent is None else kept[~absent]
        if gaps.has_gaps(table):
            broken = np.isnan(table[kept]).any(axis=1)
            if self.missing == "drop":
                kept = kept[~broken]
            else:
                table = np.array(table)
                at = kept[broken]
                table[at] = gaps.donors_of(fitted.some_rows(), known).filled(table[at])
        if not len(kept):
            raise InputError("update: no row has all that it needs, a target first of all.")
        y, noise_var = _some(y, kept, n), _some(noise_var, kept, n)
        beside = {name: _some(values, kept, n) for name, values in beside.items()}
        Y = self._observations(fitted, y, len(kept), beside)
        known_noise = read_noise_var(noise_var, len(kept))
        return Data(np.asarray(table[kept], dtype=np.float64), Y, fitted.rows.scale, known_noise)

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

    def _finished(self, fitted: Fitted, began: float) -> Fitted:
        """What comes after a fit of parameters."""
        return fitted

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

    def relevance(self, rows: int = ROWS) -> Relevance:
        """Which columns matter: the share of the variance of f's mean that goes with each, by itself and
        with its interactions, sorted (Sobol indices over the training rows: see gramian.report.relevance),
        at the fitted parameters.
        `rows` times the columns are predicted; the standard error of a share is about 1 / sqrt(rows)."""
        check_is_fitted(self, "fitted_")
        if not isinstance(rows, (int, np.integer)) or rows < 2:
            raise ParameterError(f"rows={rows!r} must be a whole number from 2 on.")
        return self.fitted_.relevance(int(rows))

    def plot_relevance(self, ax: Any = None) -> Any:
        """A picture of `relevance()` (see gramian.plots.plot_relevance)."""
        from gramian.plots.relevance import plot_relevance

        return plot_relevance(self, ax)

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
        if time_limit is not None and not time_limit > 0:
            raise ParameterError(f"time_limit={time_limit!r} must be a number of seconds, or None.")
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
        table = self._read(X, known)
        if known.gaps and table.shape[1] == len(known.given):
            table = gaps.with_indicators(table, known)
        if known.readings and (new := known.new_categories(table)):
            told = ", ".join(f"{name} ({count})" for name, count in new.items())
            what = "rows with categories that the fit has not seen are predicted as unlike all others"
            warnings.warn(visible(f"{what}: {told}"), stacklevel=3)
        return table

    def _compared(self, X: Any, y: Any) -> tuple[Any, Any]:
        """X and the y that predictions are held against: where y names columns of a table or a file, as in
        `fit`, those, read as the fit has read them."""
        check_is_fitted(self, "fitted_")
        names = isinstance(y, str) or (isinstance(y, list) and all(isinstance(name, str) for name in y))
        if isinstance(X, (str, os.PathLike)) and names:  # its other columns are found by name
            _, y, targets = parted(read_table(X), y)
        else:
            X, y, targets = parted(as_frame(X), y)
        if targets and not is_classifier(self):
            columns = replace(self.fitted_.columns, targets=targets)
            y, _ = as_numbers(y, columns, self.fitted_.columns.targets_told())
        return X, y

    def _read(self, X: Any, known: Columns) -> Array:
        """The columns of X that came with the data of the fit; NaN where a cell is missing."""
        if is_dask_array(X) or is_dask_frame(X):
            raise InputError(
                f"X is a {type(X).__name__} of Dask's, which this would bring here as a whole. predict,"
                " predict_quantiles and predict_table leave it where it is; for the rest give X.compute()."
            )
        if is_source(X):
            table = open_source(X, known=known, memory_limit=self.memory_limit, missing=self.missing).X
            if table.shape[1] not in (len(known.given), len(known.names)):
                raise InputError(
                    f"X has {table.shape[1]} features, but {type(self).__name__} is expecting"
                    f" {len(known.given)} features as input."
                )
            if self.missing == "error" and gaps.has_gaps(table):
                raise gaps.refused(table, known)
            return table
        if known.targets and is_frame(X):
            X = without(X, known.targets)
        names = [str(c) for c in X.columns] if is_frame(X) else known.given
        have = set(names)
        absent = next((name for name in known.given if name not in have), None)
        if known.named and absent is not None:
            raise InputError(
                "The feature names should match those that were passed during fit. X has no column"
                f" {absent!r}; the model was fitted with {', '.join(known.given)}.\nFeature names"
                f" seen at fit time, yet now missing:\n- {absent}\n"
            )
        return read_named(self, X, known, self.missing)[0]

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

    def _is_gaussian(self) -> bool:
        """Whether an observation is f plus Gaussian noise, in closed form."""
        return False

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "fitted_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


def _some(values: Any, kept: NDArray[np.intp], n: int | None = None) -> Any:
    """Of one value a row, those of some rows; anything else as it is, for its own reader to judge."""
    if values is None or np.ndim(values) == 0 or (n is not None and len(values) != n):
        return values
    return np.asarray(values)[kept]


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
    if not isinstance(n_samples, (int, np.integer)) or n_samples < 1:
        raise ParameterError(f"n_samples={n_samples!r} must be a whole number from 1 on.")
    return int(n_samples)


def check_target(target: Any, observations: str, function: str) -> None:
    """Refuses what is neither "y" nor "f"."""
    if target not in ("y", "f"):
        cure = f'Use "y" for {observations}, or "f" for {function}.'
        raise ParameterError(f"target={target!r} is not known. {cure}")
