"""`compare_models`: which of several models do the data prefer?

    result = gm.compare_models({"smooth": gm.RBF(1.0), "rough": gm.Matern32(1.0)}, X, y)
    print(result)
    result.best.predict(X_new)
    gm.compare_models(None, X, y)        those that an estimator without a kernel chooses from

    evidence   log p(y) at the fitted parameters, with f integrated out, in nats
    height     the same plus the log density of the priors at the fitted parameters: what they cost. By it an
               estimator without a kernel chooses, where it has all rows
    loo        sum_i log p(y_i | all other rows), see scoring.py
    cv         the average of log p(y_i | rows of the other folds), with the parameters fitted anew for each
               fold

All are of y in its own units, whatever a model does inside, so that they can stand side by side. An evidence
is of a kind: exact, a lower bound, an approximation. Only what is of one kind is ranked. Between kinds only
what follows is said: a lower bound above another's exact value belongs to the higher evidence.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from gramian import clock
from gramian.choose.plan import check_time_limit
from gramian.data.atomic import atomic_write
from gramian.data.frames import as_frame, parted
from gramian.data.inputs import as_array
from gramian.data.sources import has_targets, is_source
from gramian.errors import ParameterError, visible
from gramian.estimators import GPClassifier, GPRegressor, build
from gramian.estimators.base import Estimator
from gramian.estimators.defaults import MOST_EQUAL
from gramian.experiments.progress import bar
from gramian.experiments.scoring import Scores, cross_validated, folds_of, heeded, left_out, paired
from gramian.experiments.store import columns_of, to_csv
from gramian.linalg import memory
from gramian.linalg.executor import as_executor
from gramian.params import Tree
from gramian.params.space import aligned, html_text
from gramian.warps import SinhArcsinh
from gramian.words import OF_LABELS, OF_NUMBERS

CRITERIA = ("evidence", "height", "loo", "cv")
OF_EVIDENCE = CRITERIA[:2]  # which have a kind
FEW_CLASSES = 20  # whole numbers of up to this many values are labels, where kernels are given alone
LEAST_ERROR = 5e-4  # a smaller one is not shown
# a difference of log evidences that is "not worth more than a bare mention" (Kass and Raftery 1995)
BARE_MENTION = 1.0
LEAST_SECONDS = 0.01  # of a fit, where the time for all is over
CHOSEN = "as the data choose"
TEXT = ("model", "kind", "by")  # columns of words
_INCIDENTAL = (
    "random_state",
    "verbose",
    "memory_limit",
    "time_limit",
    "client",
)  # settings that make no other model


@dataclass(frozen=True)
class ModelRow:
    """One model of a comparison. What does not exist is nan, or empty."""

    rank: int | None  # by the criterion that was asked for; by evidence, among those of its kind
    name: str
    evidence: float  # log p(y) in nats, of y in its own units
    kind: str
    standard_error: float  # of an evidence that is an estimate
    loo: float  # sum over rows of log p(y_i | all others)
    loo_difference: float  # to the best
    loo_difference_error: float
    loo_by: str
    cv: float  # average over held-out rows of log p(y_i)
    cv_error: float
    cv_difference: float
    cv_difference_error: float
    parameters: int
    seconds: float  # of the fit on all rows
    # of left-out rows: those of the folds by cross-validation, else one at a time
    rmse: float = float("nan")  # of the mean
    coverage: float = float("nan")  # the share of rows that their 95 % interval holds
    accuracy: float = float("nan")  # the share of labels that are right
    height: float = float("nan")  # the evidence with the log density of the priors


@dataclass(frozen=True, eq=False)
class ModelComparison:
    """Models side by side, the best first. Print it to read it."""

    by: str
    n: int
    rows: tuple[ModelRow, ...]
    notes: tuple[str, ...]
    fitted: Mapping[str, Any] = field(repr=False)  # each model by name, on all rows
    winner: str | None = None

    @property
    def best(self) -> Any:
        """The winner, fitted on all rows."""
        if self.winner is None:
            first = ", ".join(f"{row.name} ({row.kind})" for row in self.rows if row.rank == 1)
            cure = 'Use by="loo" or by="cv", or take the one you mean from `fitted`.'
            raise ParameterError(
                "These evidences are of several kinds, so none of the first ones is known to be the best:"
                f" {first}. {cure}"
            )
        return self.fitted[self.winner]

    @property
    def title(self) -> str:
        """What is compared, and how."""
        count = len(self.rows)
        return f"{count} model{'s' * (count != 1)} on {self.n:,} rows, ranked by {self.by}"

    @property
    def runner_up(self) -> str | None:
        """The next to the winner; None where there is none."""
        first = next((row for row in self.rows if row.name == self.winner), None)
        if first is None:
            return None
        same = (row for row in self.rows if self.by not in OF_EVIDENCE or row.kind == first.kind)
        return next((row.name for row in same if row.rank == 2), None)

    def verdict(self) -> str:
        """The winner, and how far behind the runner-up is; "" where none is known to be the best."""
        rows = {row.name: row for row in self.rows}
        if self.winner is None or len(self.rows) < 2:
            return ""
        if self.runner_up is None:
            return f"Best by {self.by}: {self.winner}."
        first, second = rows[self.winner], rows[self.runner_up]
        if self.by in OF_EVIDENCE:
            gap, error = getattr(first, self.by) - getattr(second, self.by), float("nan")
            close = gap < BARE_MENTION
        else:
            gap, error = (
                -getattr(second, f"{self.by}_difference"),
                getattr(second, f"{self.by}_difference_error"),
            )
            close = not gap > 2 * error
        each = " a row" if self.by == "cv" else ""
        verdict = (
            f"Best by {self.by}: {first.name}; next {second.name}, {_number(gap, error)} nats{each} behind"
        )
        return verdict + (", too little to tell them apart." if close else ".")

    def cells(self) -> list[tuple[str, ...]]:
        """A line of titles, then one a model. Columns in which nothing stands are left out."""
        return _cells(self.rows)

    def table(self) -> str:
        """As text, with what a reader must know of the numbers below it."""
        said = [self.verdict(), *self.notes]
        return visible("\n".join([self.title, "", *aligned(self.cells(), TEXT), "", *filter(None, said)]))

    __str__ = __repr__ = table

    def _repr_html_(self) -> str:
        return html_text(self.table())

    def columns(self) -> dict[str, NDArray[Any]]:
        """One entry a model: `pandas.DataFrame(result.columns())`."""
        return columns_of(self.rows)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes one line a model; numbers as text that gives the same number back, nothing where there is
        none."""
        with atomic_write(path) as file:
            file.write(to_csv(self.rows).encode())


@memory.translated("The comparison", "Give fewer rows, or models that take less memory.")
def compare_models(
    models: Sequence[Any] | Mapping[str, Any] | None = None,
    X: Any = None,
    y: Any = None,
    by: str | None = None,
    cv: Any = 5,
    random_state: Any = None,
    *,
    exposure: ArrayLike | None = None,
    time_limit: float | None = None,
    verbose: bool | None = None,
    client: Any = None,
) -> ModelComparison:
    """Fits each model to the same data and ranks them.

    Parameters
    ----------
    models : a list, or a dict by name, of GPRegressors or of GPClassifiers, which stay as they are: clones
        are fitted. A kernel alone becomes an estimator like the others, or else one that suits y (labels:
        text, booleans, or up to 20 different whole numbers). None: those that an estimator without a kernel
        chooses from, `default_models`.
    X, y : the data
    by : "evidence", "height" (the evidence with the density of the priors, which tells apart models that
        have weak ones), "loo" (leave-one-out) or "cv" (cross-validation). Evidence and leave-one-out stand in
        the table anyway, where they exist. None: evidence; without models, for numbers, height.
    cv : for by="cv": the number of folds, a scikit-learn splitter, or pairs of training and test rows
    random_state : for the folds, and for models that have none of their own
    exposure : for counts, as in GPRegressor.fit
    time_limit : seconds for all of it, of which each fit has an equal part. A model that knows fewer rows
        than the others, because its time was short, has no rank.
    verbose : progress on standard error; None: on a terminal only
    client : a Dask client, or an executor of concurrent.futures, that fits the folds of by="cv"

    Returns a `ModelComparison`: print it, `.best`, `.fitted[name]`, `.columns()`, `.to_csv(path)`.
    """
    if by is not None and by not in CRITERIA:
        raise ParameterError(f"by={by!r} is not known. Use {', '.join(map(repr, CRITERIA))}.")
    if X is None:
        raise ParameterError("Data are missing: compare_models(models, X, y), where models may be None.")
    check_time_limit(time_limit)
    executor = as_executor(client)
    if by == "cv" and is_source(X) and not has_targets(X):
        raise ParameterError(
            'Cross-validation takes rows apart: give X as an array or a DataFrame, or use by="evidence" or'
            ' "loo".'
        )
    target = X.Y[:, 0] if y is None and has_targets(X) else parted(as_frame(X), y)[1]
    seeds = check_random_state(random_state)
    chosen = default_models(target) if models is None else _estimators(models, target)
    for model in chosen.values():
        model.check_ready()
        if random_state is not None and model.random_state is None:
            model.set_params(random_state=int(seeds.randint(2**31 - 1)))
    known = None if exposure is None else np.asarray(exposure)
    classes = is_classifier(next(iter(chosen.values())))
    by = by or ("height" if models is None and not classes else "evidence")
    if by == "height" and classes:
        raise ParameterError(
            'by="height" is of numbers: models of labels have priors of different widths, whose densities'
            ' do not compare. Use "evidence", "loo" or "cv".'
        )
    folds = folds_of(cv, X, target, classes, seeds) if by == "cv" else None
    turns = _Turns(time_limit, len(chosen) * (1 if folds is None else 1 + len(folds)))
    fitted: dict[str, Any] = {}
    loo: dict[str, Scores] = {}
    held = dict.fromkeys(chosen, Scores(None))
    with bar(verbose, len(chosen), 0) as step:
        for name, model in chosen.items():
            step(name)
            made = partial(turns.taken, model)
            fitted[name] = heeded(made().fit(X, y, **({} if known is None else {"exposure": known})))
            loo[name] = left_out(fitted[name], always=by == "loo")
            if folds is not None:
                held[name] = cross_validated(made, X, target, folds, known, executor)
    return _compared(by, fitted, loo, held)


def default_models(y: Any, labels: bool | None = None, **settings: Any) -> dict[str, Any]:
    """The models that an estimator without a kernel chooses from, by name, as estimators with further
    settings; of labels, with what it chooses. `labels`: whether y has labels; None: as it looks."""
    if _are_labels(y) if labels is None else labels:
        # lengthscales that are alike have no word
        return {word: GPClassifier(word, **settings) for word in OF_LABELS} | {
            CHOSEN: GPClassifier(**settings)
        }
    plain = {word: GPRegressor(word, **settings) for word in OF_NUMBERS}
    array = np.asarray(y, dtype=np.float64)
    # where one value fills many rows, a warp can make its density as high as one likes
    _, counts = np.unique(array[np.isfinite(array)], return_counts=True)
    if array.size > len(array) or counts.max() > MOST_EQUAL * counts.sum():
        return plain
    warped = {f"{word} (y warped)": GPRegressor(word, warp=SinhArcsinh(), **settings) for word in OF_NUMBERS}
    return plain | warped


class _Turns:
    """Clones for one fit after the other, each with an equal part of the time that is left."""

    def __init__(self, time_limit: float | None, fits: int) -> None:
        own = math.inf if time_limit is None else clock.now() + time_limit
        self.end, self.fits = min(own, clock.end()), fits

    def taken(self, model: Estimator) -> Any:
        gp = clone(model).set_params(checkpoint=None)  # which is of one fit, and there are many
        if gp.verbose is None:
            gp.set_params(verbose=False)  # there is one line of progress, that of the comparison
        if self.end < math.inf:
            gp.set_params(time_limit=max((self.end - clock.now()) / self.fits, LEAST_SECONDS))
        self.fits -= 1
        return gp


def _compared(
    by: str, fitted: dict[str, Any], loo: dict[str, Scores], held: dict[str, Scores]
) -> ModelComparison:
    n = max(gp.fitted_.n_rows for gp in fitted.values())
    few = {name: gp.fitted_.n_rows for name, gp in fitted.items() if gp.fitted_.n_rows < n}
    loo = {name: Scores(None) if name in few else scores for name, scores in loo.items()}
    rows = []
    left_out, folded = (paired([scores.values for scores in each.values()]) for each in (loo, held))
    for (name, gp), one_left_out, by_fold in zip(fitted.items(), left_out, folded, strict=True):
        evidence, kind, error = (np.nan, "none", np.nan) if name in few else gp.fitted_.evidence_of_y()
        total, _, difference, its_error = (n * value for value in one_left_out)
        of_rows = total, difference, its_error, loo[name].how
        size, seconds = gp.fitted_.n_parameters, float(gp.outcome_.seconds)
        beside = (loo if by != "cv" else held)[name].beside
        height = evidence + gp.fitted_.log_prior() if by == "height" else np.nan
        row = ModelRow(None, name, evidence, kind, error, *of_rows, *by_fold, size, seconds, *beside)
        rows.append(dataclasses.replace(row, height=height))
    ranks, winner, notes = _by_evidence(rows, by) if by in OF_EVIDENCE else _by_score(by, rows)
    notes += [
        f"{name} knows {count:,} of the {n:,} rows, since its time was short." for name, count in few.items()
    ]
    notes += _remarks(fitted)
    notes += [f"{name}: {scores.note}" for name, scores in loo.items() if scores.note]
    kinds = list(dict.fromkeys(row.kind for row in rows))  # in the order of their first model
    rows = [dataclasses.replace(row, rank=ranks.get(row.name)) for row in rows]
    rows.sort(
        key=lambda row: (row.rank is None, kinds.index(row.kind) if by in OF_EVIDENCE else 0, row.rank or 0)
    )
    return ModelComparison(by, n, tuple(rows), tuple(notes), fitted, winner)


def _by_evidence(rows: list[ModelRow], by: str) -> tuple[dict[str, int], str | None, list[str]]:
    """Ranks within each kind, by evidence or height, the best of all where that is known, and what to say
    about it."""
    groups: dict[str, list[ModelRow]] = {}
    for row in rows:
        if not np.isnan(row.evidence):
            groups.setdefault(row.kind, []).append(row)
    without = [row.name for row in rows if np.isnan(row.evidence)]
    notes = [f"No evidence, so no rank: {', '.join(without)}."] if without else []
    above = [(a, b) for a in rows for b in rows if a.kind != b.kind and _range(a, by)[0] > _range(b, by)[1]]
    if not groups or (len(rows) > 1 and max(map(len, groups.values())) < 2 and not above):
        kinds = ", ".join(f"{row.name}: {row.kind}" for row in rows)
        raise ParameterError(
            f'No two of these evidences can be compared ({kinds}). Use by="loo" or by="cv", or one inference'
            " for all models."
        )
    for group in groups.values():
        group.sort(key=lambda row: -float(getattr(row, by)))
    ranks = {row.name: k + 1 for group in groups.values() for k, row in enumerate(group)}
    first = [group[0] for group in groups.values()]
    winners = [a for a in first if all(a is b or (a, b) in above for b in first)]
    if len(groups) > 1:
        notes.append(
            "Evidences of different kinds are not ranked against each other: ranks are within each kind"
            f" ({', '.join(groups)})."
        )
    notes += [
        f"{a.name} has a higher {by} than {b.name}: its {a.kind} of {getattr(a, by):.6g} is above the"
        f" {b.kind} of {getattr(b, by):.6g}."
        for a, b in above
    ]
    if len(groups.get("lower bound", ())) > 1:
        notes.append(
            "Lower bounds can lie below their evidences by different amounts; the order is that of the"
            " bounds."
        )
    if "joint density" in groups:
        notes.append(
            'A joint density (inference="map") is of y and the most probable f together: it favours large'
            " variances, and is no evidence."
        )
    notes += [
        f"{kind} is a sum over binary problems, which can be compared with other sums of its kind only."
        for kind in groups
        if kind.endswith(("ovr", "ovo"))
    ]
    return ranks, winners[0].name if winners else None, notes


def _range(row: ModelRow, by: str) -> tuple[float, float]:
    """Where the evidence or height can be, for all that its kind says; an estimate within two standard
    errors."""
    error, value = 0.0 if np.isnan(row.standard_error) else 2 * row.standard_error, float(getattr(row, by))
    ranges = {
        "lower bound": (value, np.inf),
        "upper bound": (-np.inf, value),
        **dict.fromkeys(("exact", "estimate"), (value - error, value + error)),
    }
    return ranges.get(row.kind, (-np.inf, np.inf))


def _by_score(by: str, rows: list[ModelRow]) -> tuple[dict[str, int], str, list[str]]:
    values = {row.name: row.loo if by == "loo" else row.cv for row in rows}
    known = sorted((name for name in values if not np.isnan(values[name])), key=lambda name: -values[name])
    without = ", ".join(name for name in values if name not in known)
    if not known or (len(known) < 2 and len(rows) > 1):
        raise ParameterError(
            f'Leave-one-out is not available for {without}, so there is nothing to compare. Use by="cv".'
        )
    notes = [f'No leave-one-out, so no rank: {without}. by="cv" ranks all.'] if without else []
    return {name: k + 1 for k, name in enumerate(known)}, known[0], notes


def _remarks(fitted: dict[str, Any]) -> list[str]:
    """What a reader must know of the numbers."""
    numbers = all(gp.fitted_.classes is None for gp in fitted.values())
    hurried = [name for name, gp in fitted.items() if gp.outcome_.stopped == "time limit"]
    remarks = []
    if hurried:
        named = "all models" if len(hurried) == len(fitted) else ", ".join(hurried)
        remarks.append(f"The time limit has ended the search of {named}: more time may change the order.")
    remarks += [
        f"In nats{', of y in its own units' if numbers else ''}; 'to best' with the standard error of the"
        " difference over rows."
    ]
    rules = {gp.fitted_.rule for gp in fitted.values()} - {"", "map", "vi"}
    if len(rules) > 1:
        remarks.append(
            f"Approximations by different rules ({', '.join(sorted(rules))}) err differently: small"
            " differences between them mean little."
        )
    discrete = [numbers and gp.likelihood_.discrete for gp in fitted.values()]
    if any(discrete) and not all(discrete):
        remarks.append(
            "Probabilities of whole numbers stand beside densities: they compare as if a density were that of"
            " an interval of length 1."
        )
    return remarks


def _estimators(models: Any, y: Any) -> dict[str, Any]:
    """Clones by name, all regressors or all classifiers."""
    if build.is_kernel(models) or isinstance(models, str) or not isinstance(models, (Mapping, Sequence)):
        raise ParameterError(
            f"models must be a list, or a dict by name, of estimators or kernels, not {models!r}."
        )
    candidates = list(models.values()) if isinstance(models, Mapping) else list(models)
    if any(isinstance(model, str) for model in candidates):  # "rbf", or a formula
        kind = next((type(model) for model in candidates if isinstance(model, Estimator)), None)
        kind = kind or (GPClassifier if _are_labels(y) else GPRegressor)
        candidates = [kind(model) if isinstance(model, str) else model for model in candidates]
    if not candidates:
        raise ParameterError(
            "models is empty. Give two or more, such as [gramian.RBF(1.0), gramian.Matern32(1.0)]."
        )
    for model in candidates:
        if not build.is_kernel(model) and not isinstance(model, Estimator):
            raise ParameterError(
                f"models has {model!r}; each must be a GPRegressor, a GPClassifier or a kernel."
            )
    estimators = [model for model in candidates if not build.is_kernel(model)]
    if len({is_classifier(model) for model in estimators}) > 1:
        raise ParameterError(
            "models has regressors and classifiers, whose numbers are of different things: numbers and"
            " labels. Compare one kind."
        )
    like_these = type(estimators[0]) if estimators else GPClassifier if _are_labels(y) else GPRegressor
    made = [like_these(model) if build.is_kernel(model) else clone(model) for model in candidates]
    if isinstance(models, Mapping):
        return dict(zip(map(str, models), made, strict=True))
    names: dict[str, Any] = {}
    for model in made:
        name = _name(model)
        further = (f"{name} #{count}" for count in itertools.count(2))
        names[name if name not in names else next(new for new in further if new not in names)] = model
    return names


def _are_labels(y: Any) -> bool:
    array = as_array(y, "y")
    if array.ndim == 0:
        raise ParameterError(
            "Of a column in a file it is not known whether it has labels: give estimators, such as"
            ' {"plain": GPRegressor("matern52"), "default": GPRegressor()}, or the table as a DataFrame.'
        )
    if array.dtype.kind not in "iuf":
        return True
    few = array.ndim == 1 and len(np.unique(array)) <= FEW_CLASSES
    return few and not type_of_target(array).startswith("continuous")


def _name(model: Estimator) -> str:
    """The settings that are not the defaults."""
    usual, given = type(model)().get_params(deep=False), model.get_params(deep=False)
    unusual = {k: v for k, v in given.items() if k not in _INCIDENTAL and not _same(v, usual[k])}
    parts = [str(unusual.pop("kernel"))] if "kernel" in unusual else []
    return ", ".join(parts + [f"{k}={_text(v)}" for k, v in unusual.items()]) or f"{type(model).__name__}()"


def _text(value: Any) -> str:
    """A setting; of an object the fields that are not the defaults."""
    if not dataclasses.is_dataclass(value) or isinstance(value, Tree):
        return repr(value)
    given = [(f, getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr]
    unusual = ", ".join(f"{f.name}={v!r}" for f, v in given if not _same(v, f.default))
    return f"{type(value).__name__}({unusual})"


def _same(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, (str, bool, int, float)) and type(a) is type(b) and a == b)


def _cells(rows: Sequence[ModelRow]) -> list[tuple[str, ...]]:
    """A line of titles, then one a model. Columns in which nothing stands are left out."""
    table = (
        ("rank", [str(row.rank or "-") for row in rows]),
        ("model", [row.name for row in rows]),
        ("log evidence", [_number(row.evidence, row.standard_error) for row in rows]),
        ("kind", [row.kind if not np.isnan(row.evidence) else "" for row in rows]),
        ("height", [_number(row.height) for row in rows]),
        ("LOO", [_number(row.loo) for row in rows]),
        ("to best", [_number(row.loo_difference, row.loo_difference_error) for row in rows]),
        ("by", [row.loo_by for row in rows]),
        ("CV, a row", [_number(row.cv, row.cv_error) for row in rows]),
        ("to best", [_number(row.cv_difference, row.cv_difference_error) for row in rows]),
        ("RMSE", ["" if np.isnan(row.rmse) else f"{row.rmse:.4g}" for row in rows]),
        ("95 % hold", [_share(row.coverage) for row in rows]),
        ("right", [_share(row.accuracy) for row in rows]),
        ("parameters", [str(row.parameters) for row in rows]),
        ("fit", [f"{row.seconds:.2g} s" for row in rows]),
    )
    used = [[title, *cells] for title, cells in table if any(cells)]
    return list(zip(*used, strict=True))


def _share(value: float) -> str:
    return "" if np.isnan(value) else f"{100 * value:.1f} %"


def _number(value: float, error: float = float("nan")) -> str:
    """Two digits of the error, and as many places of the value; without an error to speak of, two places."""
    if np.isnan(value):
        return ""
    known = error > LEAST_ERROR
    places = int(np.clip(1 - np.floor(np.log10(error)), 0, 3)) if known else 2
    text = f"{round(value, places) + 0.0:.{places}f}"  # the sum makes a negative zero positive
    return f"{text} +- {error:.{places}f}" if known else text
