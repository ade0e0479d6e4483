"""Several classes from binary models.

    one-vs-rest   a model a class against all others; its probabilities, made to add up to 1
    one-vs-one    a model a pair of classes, on the rows of these two; probabilities from the pairs' by
                  coupling: p minimises sum_{i, j} (r_ji p_i - r_ij p_j)^2 with r_ij the probability of i in
                  the pair (Wu, Lin and Weng 2004, their second method)

With shared parameters the sum of the binary evidences is maximised over one vector; else each model has its
own. Models are fitted side by side on threads: most of the time is spent in compiled code.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from gramian import clock, journal
from gramian.arrays import Array
from gramian.data.inputs import Columns
from gramian.data.labels import Labels
from gramian.errors import ParameterError, visible
from gramian.estimators import build
from gramian.estimators import latent as latents
from gramian.estimators.fitted import Fitted
from gramian.estimators.learned import LabelledRows, Learned
from gramian.estimators.predictions import LeftOutClasses
from gramian.estimators.resuming import generator, identify
from gramian.fitting import FitOutcome, Objective
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.progress import Report, progress
from gramian.fitting.stages import Hold, parts
from gramian.inference import Data, Evidence, Model
from gramian.interrupt import attended
from gramian.likelihoods import Bernoulli
from gramian.linalg.threads import count as thread_count
from gramian.params.space import ParameterTable
from gramian.report import notes as health
from gramian.report.document import Fact, Grid, Section
from gramian.report.relevance import ROWS, Relevance, relevance
from gramian.report.summary import MOST_ENTRIES, Summary, formula, line_of, noted, read

if TYPE_CHECKING:
    from gramian.estimators.classifier import GPClassifier


SHARED_SEARCH = 0.7  # of a time limit, for the search of parameters that all models share
LEAST_SECONDS = 0.01  # of a binary model, where the time for all is over
VARIANCE = 4.0  # of the default kernel: probabilities from 0.02 to 0.98 within two standard deviations


@dataclass(frozen=True, eq=False)
class BinaryModels(Learned):
    """Several classes from classifiers of two."""

    scheme: str  # "ovr" or "ovo"
    shared: bool  # whether they have one set of parameters
    binary: tuple[GPClassifier, ...]
    evidence: Evidence
    outcome: FitOutcome
    columns: Columns
    classes: NDArray[Any]

    @property
    def first(self) -> Fitted:
        return self.binary[0].fitted_.first

    @property
    def models(self) -> tuple[GPClassifier, ...]:
        return self.binary

    @property
    def names(self) -> list[str]:
        """What each model tells apart."""
        return names(self.scheme, self.classes)

    @property
    def n_rows(self) -> int:
        return max(model.fitted_.n_rows for model in self.binary)

    @property
    def n_parameters(self) -> int:
        return sum(model.fitted_.n_parameters for model in self.binary[: 1 if self.shared else None])

    @property
    def pairwise(self) -> bool:
        return self.scheme == "ovo"

    def parameters(self) -> ParameterTable:
        """Those of all models, each under its name; shared ones once."""
        if self.shared:
            return self.first.parameters()
        rows = [
            row._replace(name=f"{name}: {row.name}", path=f"{name}: {row.path}")
            for name, model in zip(self.names, self.binary, strict=True)
            for row in model.parameters_.rows
        ]
        return ParameterTable(tuple(rows))

    def log_evidence(self, theta: ArrayLike | None = None) -> float:
        """The sum of the binary ones; at theta where they share their parameters."""
        if theta is not None:
            self._check_shared()
        return float(sum(model.fitted_.log_evidence(theta) for model in self.binary))

    def log_prior(self) -> float:
        """Of the parameters, once where they are shared."""
        own = self.binary[:1] if self.shared else self.binary
        return float(sum(model.fitted_.log_prior() for model in own))

    def log_evidence_and_gradient(self, theta: ArrayLike | None = None) -> tuple[float, Array]:
        self._check_shared()
        pairs = [model.fitted_.log_evidence_and_gradient(theta) for model in self.binary]
        return sum(value for value, _ in pairs), np.sum([slope for _, slope in pairs], axis=0)

    def _check_shared(self) -> None:
        if not self.shared:
            raise ParameterError(
                f"Each of the {len(self.binary)} binary models has parameters of its own: ask one of"
                " estimators_, or fit with shared=True."
            )

    def evidence_of_y(self) -> tuple[float, str, float]:
        # the sum over binary problems, which are other data
        error = self.evidence.standard_error or float("nan")
        return self.evidence.value, f"{self.evidence.kind}, {self.scheme}", error

    def latents(self, table: Array) -> tuple[Array, Array]:
        """Mean and variance of each model's function: (n, models) each."""
        means, variances = zip(*(model.fitted_.latents(table) for model in self.binary), strict=True)
        return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)

    def probabilities(self, table: Array, averaging: str = "exact") -> Array:
        pairs = [model.fitted_.probabilities(table, averaging)[:, 1] for model in self.binary]
        P = np.stack(pairs, axis=1)
        if self.scheme == "ovo":
            return coupled(P, len(self.classes))
        total = np.sum(P, axis=1, keepdims=True)
        return np.where(total > 0, P / np.where(total > 0, total, 1.0), 1 / P.shape[1])

    def labelled_rows(self) -> LabelledRows | None:
        """Of each class the rows that one of the models has as its own."""
        seen = [model.fitted_.labelled_rows() for model in self.binary]
        count = len(self.classes)
        # of pairs: the first class from the first pair, the others from theirs with it
        first = [] if self.scheme == "ovr" else [(0, 0)]
        parts = []
        for model, side in [*first, *((k, 1) for k in range(count - len(first)))]:
            rows = seen[model]
            if rows is None:
                return None
            parts.append(rows.X[rows.codes == side])
        return LabelledRows(np.vstack(parts), np.repeat(np.arange(count), list(map(len, parts))))

    def relevance(self, rows: int = ROWS) -> Relevance:
        """The average of the models'."""
        seen = self.labelled_rows()
        points = self.first.seen_points() if seen is None else seen.X

        def means(table: Array) -> Array:
            return np.concatenate([model.fitted_.first.process.mean(table) for model in self.binary], axis=1)

        return relevance(means, points, self.columns.names, rows)

    def left_out_classes(self) -> LeftOutClasses:
        cure = "Use cross-validation: sklearn.model_selection."
        raise ParameterError(f"Leave-one-out needs the sites of Laplace, EP or VI in one model. {cure}")

    def listed(self, full: bool = False) -> ParameterTable:
        return self.parameters() if full else self.parameters().brief({}, MOST_ENTRIES)

    def summary(self, title: str, full: bool = False) -> Summary:
        """The models side by side."""
        outcome = self.outcome
        width = max(map(len, self.names))
        head = f"{title}, {len(self.classes)} classes from {outcome.reason}"
        told = [
            Fact("evidence", f"{self.evidence}, in nats, the sum of the binary ones", self.evidence.value),
            Fact("method", f"{outcome.method}; {outcome.solver}"),
            Fact("fit", f"{outcome.stopped}; {outcome.evaluations} evaluations, {outcome.seconds:.2f} s"),
            *read(self.columns.told()),
        ]
        lines, rows = [head, *map(line_of, told), ""], []
        for name, model in zip(self.names, self.binary, strict=True):
            evidence, kernel = str(model.evidence_), formula(model.kernel_, full)
            lines.append(f"  {name:<{width}}  {evidence}  {kernel}")
            rows.append((name, evidence, kernel))
        grids = (Grid("Binary models", ("model", "evidence", "kernel"), tuple(rows)),)
        sections = [Section("fitted", "What was fitted", facts=tuple(told), grids=grids)]
        if outcome.notes:
            sections.append(Section("notes", "Notes", outcome.notes))
        return Summary("\n".join(lines + noted(outcome.notes)), head, sections)


def names(scheme: str, classes: NDArray[Any]) -> list[str]:
    """What each binary model tells apart."""
    labels = [visible(str(label)) for label in classes]
    if scheme == "ovr":
        return [f"{label} against the rest" for label in labels]
    return [f"{a} against {b}" for a, b in itertools.combinations(labels, 2)]


def coupled(pairs: Array, classes: int) -> Array:
    """Class probabilities from those of pairs: column k of `pairs` is that of the second class in the k-th
    pair of combinations(classes, 2)."""
    r = np.full((len(pairs), classes, classes), 0.5)
    for k, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        r[:, j, i] = np.clip(pairs[:, k], 1e-9, 1 - 1e-9)
        r[:, i, j] = 1 - r[:, j, i]
    # The quadratic form has Q_ii = sum_j r_ji^2 and Q_ij = -r_ji r_ij; its minimum on sum p = 1 is where Q p
    # is the same for all classes.
    Q = -r * np.swapaxes(r, 1, 2)
    off = ~np.eye(classes, dtype=bool)
    squares = np.sum(np.where(off, np.swapaxes(r, 1, 2) ** 2, 0.0), axis=2)
    Q[:, np.arange(classes), np.arange(classes)] = squares
    system = np.ones((len(pairs), classes + 1, classes + 1))
    system[:, :classes, :classes] = Q
    system[:, classes, classes] = 0.0
    right = np.zeros((len(pairs), classes + 1, 1))
    right[:, classes] = 1.0
    # positive by the theorem, but for rounding
    p = np.maximum(np.linalg.solve(system, right)[:, :classes, 0], 0.0)
    return p / np.sum(p, axis=1, keepdims=True)


# Fitting. ---------------------------------------------------------------------------------------------------


def fit(gp: GPClassifier, table: Array, columns: Columns, labels: Labels, began: float) -> BinaryModels:
    """Fits the binary models of a classifier with "ovr" or "ovo"."""
    scheme = "ovr" if gp.multiclass == "ovr" else "ovo"
    splits = _splits(scheme, labels)
    identify(gp, {"X": table, "y": labels.codes}, classes=str(list(labels.classes)))
    cure = f"multiclass={gp.multiclass!r} takes one for its binary models."
    written = build.read_kernel(gp.kernel)
    written.one(cure)
    kernel = written.suited(np.asarray(table), columns, VARIANCE)[0]
    build.check_reach(kernel.resolve(columns.names), table, columns)
    # the binary models see no names and no categories
    settings = {"kernel": kernel.resolve(columns.names), "verbose": False, "checkpoint": None}
    at_once = min(thread_count(), len(splits))
    end = math.inf if gp.time_limit is None else min(began + float(gp.time_limit), clock.end())
    unfitted = [clone(gp).set_params(**settings) for _ in splits]
    start, search = None, None
    if gp.shared and gp.optimize:
        start, search = _together(gp, table, columns, splits, began)
    given = gp.random_state
    seed = None if given is None else int(check_random_state(given).randint(2**31 - 1))
    entropy = journal.chosen("seeds", str, lambda: str(np.random.SeedSequence(seed).entropy), lasts=True)
    seeds = np.random.SeedSequence(int(entropy)).generate_state(len(splits))
    here = journal.here()

    def fitted(k: int) -> GPClassifier:
        rows, second = splits[k]
        model: GPClassifier = unfitted[k].set_params(random_state=int(seeds[k] % 2**31))
        if end < math.inf:  # for all models together, of which some run at once
            turns = -(-(len(splits) - k) // at_once)
            model.set_params(time_limit=max((end - clock.now()) / turns, LEAST_SECONDS))
        if start is not None:
            model.set_params(kernel=start.kernel.resolve(columns.names), mean=start.mean, optimize=False)
        with clock.listening(bell), journal.within(here, f"model {k}"):
            return model.fit(np.asarray(table[rows]), second)

    bell = clock.Bell()
    with progress(gp.verbose) as report, attended(lambda: "the binary models that are being fitted"):
        if resumed := journal.resumed():
            report.resumed(resumed)
        made = _side_by_side(fitted, range(len(splits)), at_once, bell, report)
        stopped = _Stopped.of(made) if bell.rung else None
        if stopped is not None:
            if start is None:
                example = next((model for model in made if model is not None), None)
                if example is None:
                    raise KeyboardInterrupt  # nothing is known yet
                start = Model(example.kernel_, example.mean_, example.likelihood_)
            left = [k for k, model in enumerate(made) if model is None]
            for k, model in zip(left, _side_by_side(fitted, left, at_once, None, report), strict=True):
                made[k] = model
    models = [model for model in made if model is not None]
    if stopped is not None:
        journal.leave()
    outcome = _outcome(models, labels.classes, scheme, search, began, stopped)
    kinds = {model.evidence_.kind for model in models}
    value = float(sum(model.evidence_.value for model in models))
    evidence = Evidence(value, kinds.pop() if len(kinds) == 1 else "approximation")
    return BinaryModels(scheme, bool(gp.shared), tuple(models), evidence, outcome, columns, labels.classes)


def _side_by_side(
    fitted: Callable[[int], GPClassifier],
    which: Sequence[int],
    at_once: int,
    bell: clock.Bell | None,
    report: Report,
) -> list[GPClassifier | None]:
    """Some of the models. Ctrl-C rings the bell, and those that are not begun, or have nothing yet, stay out:
    None. Without a bell it ends all."""
    made: list[GPClassifier | None] = [None] * len(which)
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(fitted, k) for k in which]
        waiting = list(range(len(which)))
        while waiting:
            try:
                made[waiting[0]] = futures[waiting[0]].result()
                report.share((len(which) - len(waiting) + 1) / len(which))
            except CancelledError:
                pass
            except KeyboardInterrupt:
                own = futures[waiting[0]]
                if not own.done() or own.cancelled() or own.exception() is None:  # it is for this thread
                    for future in futures:
                        future.cancel()
                    if bell is not None:
                        bell.rung += 1
                    if bell is None or bell.rung > 1:
                        raise
                    continue
            except BaseException:
                for future in futures:
                    future.cancel()
                raise
            waiting.pop(0)
    return made


@dataclass(frozen=True)
class _Stopped:
    """How many binary models a fit had when somebody stopped it."""

    whole: int
    part: int  # as far as they got
    rest: int  # with the parameters of others

    @classmethod
    def of(cls, made: Sequence[GPClassifier | None]) -> _Stopped:
        there = [model.outcome_.stopped == "interrupted" for model in made if model is not None]
        return cls(len(there) - sum(there), sum(there), len(made) - len(there))

    def __str__(self) -> str:
        counts = f"{self.whole} fitted to the end, {self.part} as far as they got"
        rest = f", {self.rest} with the parameters of another" if self.rest else ""
        return f"The fit was interrupted: of its binary models {counts}{rest}."


def _outcome(
    models: list[GPClassifier],
    classes: NDArray[Any],
    scheme: str,
    search: Search | None,
    began: float,
    interrupted: _Stopped | None = None,
) -> FitOutcome:
    """Of all models together; `search` is that of shared parameters."""
    named, shared = names(scheme, classes), models[0].shared
    outcomes = [model.outcome_ for model in models]
    first = outcomes[0]
    # what all of them tell, of the columns for one, is told once
    notes = [note for note in first.notes if all(note in each.notes for each in outcomes)]
    notes += [
        f"{name}: {note}"
        for name, each in zip(named, outcomes, strict=True)
        for note in each.notes
        if note not in notes
    ]
    if search is None:
        # as all searches ended, or as the first that did not converge
        stopped = next((each.stopped for each in outcomes if each.stopped != "converged"), "converged")
        steps = sum(each.iterations for each in outcomes)
        evaluations = sum(each.evaluations for each in outcomes)
        search = Search(np.zeros(0), np.nan, stopped, steps, evaluations, first.starts, 0)
    else:
        # of the search, which the binary models had none of
        fitted = models[0].fitted_.first
        at_bounds = health.at_bounds(fitted.model, health.labels(fitted.model, fitted.columns))
        notes = health.search_notes(search) + health.told(at_bounds) + notes
    if interrupted is not None:
        search = replace(search, stopped="interrupted")
        notes = [str(interrupted), *notes]
    how = "one-vs-rest" if scheme == "ovr" else "one-vs-one"
    whose = "with shared parameters" if shared else "each with its own parameters"
    return FitOutcome(
        method=first.method,
        reason=f"{len(models)} binary models, {how}, {whose}",
        solver=first.solver,
        stopped=search.stopped,
        iterations=search.iterations,
        evaluations=search.evaluations,
        starts=search.starts,
        jitter=max(each.jitter for each in outcomes),
        seconds=clock.now() - began,
        notes=tuple(notes),
        stages=(resumed,) if (resumed := journal.resumed()) else (),
        trace=search.paths,
    )


def _splits(scheme: str, labels: Labels) -> list[tuple[NDArray[np.intp], NDArray[np.int64]]]:
    """The rows of each binary model, and which of them are of its second class."""
    codes, count = labels.codes, len(labels.classes)
    if scheme == "ovr":
        return [(np.arange(len(codes)), (codes == c).astype(int)) for c in range(count)]
    pairs = list(itertools.combinations(range(count), 2))
    both = [np.flatnonzero((codes == i) | (codes == j)) for i, j in pairs]
    return [(rows, (codes[rows] == j).astype(int)) for rows, (_, j) in zip(both, pairs, strict=True)]


class _Total:
    """The sum of objectives that have one set of parameters."""

    def __init__(self, objectives: Sequence[Objective]) -> None:
        self.objectives = objectives
        self.workspaces = [objective.workspace for objective in objectives]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros(len(theta))
        for objective in self.objectives:
            evidence, slope = objective.evidence(np.concatenate([theta, objective.inference.free]))
            value, gradient = value + evidence.value, gradient + slope[: len(theta)]
        prior, prior_gradient = self.objectives[0].space.log_prior(theta)
        return value + prior, gradient + prior_gradient


def _together(
    gp: GPClassifier, table: Array, columns: Columns, splits: list[Any], began: float
) -> tuple[Model, Search]:
    """One set of parameters, by the sum of the binary evidences."""
    likelihood = Bernoulli(gp.link)
    method, _ = latents.method_for(gp, likelihood, table.shape)
    if method.search == "none":
        cure = "Use shared=False with MCMC."
        raise ParameterError(f"shared=True fits one set of parameters; chains sample them. {cure}")
    # too few rows for random features: dense
    method, _ = parts(method.searched, len(table), table.shape[1], 1)[-1]
    rng = generator(gp.random_state)
    second = splits[0][1].astype(float)[:, None]
    kernel, model, data = build.build_latent(gp, likelihood, table, columns, second, VARIANCE)
    objectives = []
    for rows, second in splits:
        part: Data = replace(data, X=np.asarray(table[rows]), Y=second.astype(np.float64)[:, None])
        objectives.append(Objective(model, part, method.prepared(model, part, rng)))
    first, total = objectives[0], _Total(objectives)
    count = len(first.space.theta)
    deadline = None if gp.time_limit is None else began + SHARED_SEARCH * float(gp.time_limit)
    theta, limits = first.space.theta, first.limits[:count]
    holds = Hold.read(gp.stages, model)
    with progress(gp.verbose) as report:
        for hold in holds:
            held, steps = hold.limits(first.space, theta, limits), hold.steps
            theta = maximise(total, [theta], held, report, deadline, finish=False, iterations=steps).theta
        starts = [theta, *first.space.restarts(gp.restarts(len(table)), rng)]
        search = maximise(total, starts, limits, report, deadline, finish=False)
    best = first.at(search.theta)
    named = kernel.with_parameters(list(best.kernel.parameters().values()))
    return Model(named, best.mean, best.likelihood), search
