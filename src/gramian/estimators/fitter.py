"""A fit: from a model and rows to a fitted value, within limits of time and memory.

The kind of model, the search for parameters, the inference on all rows, draws of the parameters: a subclass
says which of these it has, and each may be cut short.
"""

from __future__ import annotations

import contextlib
import math
import os
from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from gramian import clock, journal
from gramian.choose.plan import rates_for
from gramian.clock import OutOfTime
from gramian.data.inputs import Columns, spread
from gramian.engines.base import Engine
from gramian.estimators import build, far, latent
from gramian.estimators.build import Built
from gramian.estimators.calibrating import calibrated_by
from gramian.estimators.defaults import ENOUGH, Choice
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
from gramian.inference import Data, Inference, Inferred, Model, Scheme
from gramian.inference.mcmc.chains import ask_packages
from gramian.inference.mcmc.method import MCMC
from gramian.interrupt import attended, held_back
from gramian.kernels import Kernel, Matern52, Stationary
from gramian.linalg import memory
from gramian.linalg.executor import as_executor, using
from gramian.means import Mean
from gramian.params import Parameter, ParameterSpace
from gramian.report import notes as health
from gramian.report.facts import Facts
from gramian.solvers import Solver

FEW_ROWS = 1000  # up to here another starting point costs little
# of a time limit, and seconds at least: what a final inference may take beyond it before it is given up
GRACE, LEAST_GRACE = 0.1, 1.0
# where predictions are not averaged over parameters, though they should be
UNAVERAGED, ONE_SET = "takes longer than the time limit allows", "intervals are those of the best ones alone."
CALIBRATED = 3.0  # final inferences: itself, and what leaving each row out takes without the whole of K


@dataclass(eq=False, repr=False, kw_only=True)
class Fitter(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn is not typed
    """Settings, whose meaning the docstrings of GPRegressor and GPClassifier say, and a fit with them."""

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
        rows = built.rows
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
            choice = None
            if not again:
                method, reason = self._rivalled(built, method, reason, rng, report)
                choice = self._choice(built, columns, method, rng, report)
                if choice is None and self.optimize and method.search != "none":
                    choice = guarded(built, columns, rng, report)
            built = built if choice is None else choice.built
            searched, budget = self._search_of(built, method, choice, rng, report)
            search_ended = clock.now()
            inferred, searched, cut = self._infer(method, searched, built.rows, report, rng, budget)
            searched, inferred = self._levelled(searched, inferred)
            found: ParameterDraws | None = None
            told: list[str] = []
            if not cut and self._averages(searched):  # who has stopped an inference waits for no more of them
                found, told = self._drawn_parameters(searched, report)
        rows, search = searched.final, searched.search
        model = inferred.model or searched.model  # where parameters were drawn: at their mean
        sd = spread(rows.X)
        facts = Facts.of(rows, health.parameter_notes(model, rows, columns, search.stopped, sd), sd)
        seconds = search_ended - began, clock.now() - search_ended
        notes = [*cut, *searched.notes, *told, *health.late(self.time_limit, *seconds)]
        notes += health.notes(model, rows, columns, search, inferred.outcome, facts.notes)
        outcome = _outcome(reason, searched, inferred, choice, found, clock.now() - began, notes)
        if cut or told or outcome.stopped in ("time limit", "interrupted"):
            journal.leave()
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

    def _search_of(
        self, built: Built, method: Scheme, choice: Choice | None, rng: np.random.Generator, report: Report
    ) -> tuple[Searched, Budget | None]:
        """The search for the parameters of a model, which may have been chosen, and what it may spend."""
        model, rows = built.model, built.rows
        budget = self._budget(method, model, rows, calibrated=choice is not None)
        if choice is None:
            return self._search(method, model, rows, self.restarts(len(rows.X)), rng, report, budget), budget
        restarts, stopped = self.n_restarts or 0, choice.interrupted
        searched = self._search(method, model, rows, restarts, rng, report, budget, stopped, ENOUGH)
        return replace(searched, search=choice.counted(searched.search)), budget

    def _levelled(self, searched: Searched, inferred: Inferred) -> tuple[Searched, Inferred]:
        """With the level of all rows, where parameters were searched for on fewer."""
        noise = getattr(self, "noise", None)
        bounded = isinstance(noise, Parameter) and noise.bounds is not None
        with held_back() as pressed:  # it overwrites what there is
            searched, inferred = level.on_all_rows(searched, searched.final, inferred, bounded)
        if pressed():
            searched = replace(searched, search=replace(searched.search, stopped="interrupted"))
        return searched, inferred

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
                searched = replace(searched, search=replace(search, stopped="interrupted"))
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
        return inferred, replace(searched, inference=inference, final=part), notes

    def _finished(self, fitted: Fitted, began: float) -> Fitted:
        """What comes after a fit of parameters."""
        return fitted

    def _is_gaussian(self) -> bool:
        """Whether an observation is f plus Gaussian noise, in closed form."""
        return False


def _outcome(
    reason: str,
    searched: Searched,
    inferred: Inferred,
    choice: Choice | None,
    draws: ParameterDraws | None,
    seconds: float,
    notes: list[str],
) -> FitOutcome:
    """How a fit went."""
    search, stages = searched.search, (journal.resumed(), *map(str, searched.stages), searched.level)
    return FitOutcome(
        method=searched.inference.name,
        reason=reason,
        solver=searched.inference.described,
        stopped=inferred.outcome.stopped or search.stopped,
        iterations=search.iterations,
        evaluations=search.evaluations,
        starts=search.starts,
        jitter=inferred.outcome.jitter,
        seconds=seconds,
        notes=tuple(notes),
        choice=() if choice is None else choice.lines,
        stages=tuple(filter(None, (*stages, "" if draws is None else str(draws)))),
        trace=search.paths,
    )
