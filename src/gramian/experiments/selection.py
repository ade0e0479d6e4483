"""`compare_models`: which of several models do the data prefer?

    result = gm.compare_models({"smooth": gm.RBF(1.0), "rough": gm.Matern32(1.0)}, X, y)
    print(result)
    result.best.predict(X_new)

    evidence   log p(y) at the fitted parameters, with f integrated out, in nats
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
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from gramian.data.atomic import atomic_write
from gramian.data.sources import is_source
from gramian.errors import ParameterError
from gramian.estimators import GPClassifier, GPRegressor, build
from gramian.estimators.base import Estimator
from gramian.experiments.progress import bar
from gramian.experiments.scoring import Scores, cross_validated, folds_of, left_out, paired
from gramian.experiments.store import columns_of, to_csv
from gramian.params import Tree
from gramian.params.space import aligned, html_text

CRITERIA = ("evidence", "loo", "cv")
FEW_CLASSES = 20  # whole numbers of up to this many values are labels, where kernels are given alone
LEAST_ERROR = 5e-4  # a smaller one is not shown
_INCIDENTAL = ("random_state", "verbose", "memory_limit", "time_limit")  # settings that make no other model


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

    def table(self) -> str:
        """As text, with what a reader must know of the numbers below it."""
        title = f"{len(self.rows)} models on {self.n:,} rows, ranked by {self.by}"
        return "\n".join([title, "", *_lines(self.rows), "", *self.notes])

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


def compare_models(
    models: Sequence[Any] | Mapping[str, Any],
    X: Any,
    y: Any,
    by: str = "evidence",
    cv: Any = 5,
    random_state: Any = None,
    *,
    exposure: ArrayLike | None = None,
    verbose: bool | None = None,
) -> ModelComparison:
    """Fits each model to the same data and ranks them.

    Parameters
    ----------
    models : a list, or a dict by name, of GPRegressors or of GPClassifiers, which stay as they are: clones
        are fitted. A kernel alone becomes an estimator like the others, or else one that suits y (labels:
        text, booleans, or up to 20 different whole numbers).
    X, y : the data
    by : "evidence", "loo" (leave-one-out) or "cv" (cross-validation). The first two stand in the table
        anyway, where they exist.
    cv : for by="cv": the number of folds, a scikit-learn splitter, or pairs of training and test rows
    random_state : for the folds, and for models that have none of their own
    exposure : for counts, as in GPRegressor.fit
    verbose : progress on standard error; None: on a terminal only

    Returns a `ModelComparison`: print it, `.best`, `.fitted[name]`, `.columns()`, `.to_csv(path)`.
    """
    if by not in CRITERIA:
        raise ParameterError(f"by={by!r} is not known. Use {', '.join(map(repr, CRITERIA))}.")
    if by == "cv" and is_source(X):
        raise ParameterError(
            'Cross-validation takes rows apart: give X as an array or a DataFrame, or use by="evidence" or'
            ' "loo".'
        )
    seeds = check_random_state(random_state)
    chosen = _estimators(models, y)
    for model in chosen.values():
        if random_state is not None and model.random_state is None:
            model.set_params(random_state=int(seeds.randint(2**31 - 1)))
    known = None if exposure is None else np.asarray(exposure)
    folds = folds_of(cv, X, y, is_classifier(next(iter(chosen.values()))), seeds) if by == "cv" else None
    fitted: dict[str, Any] = {}
    loo: dict[str, Scores] = {}
    held: dict[str, Scores] = {}
    with bar(verbose, len(chosen), 0) as step:
        for name, model in chosen.items():
            step(name)
            fitted[name] = clone(model).fit(X, y, **({} if known is None else {"exposure": known}))
            loo[name] = left_out(fitted[name], always=by == "loo")
            held[name] = Scores(None) if folds is None else cross_validated(model, X, y, folds, known)
    return _compared(by, fitted, loo, held)


def _compared(
    by: str, fitted: dict[str, Any], loo: dict[str, Scores], held: dict[str, Scores]
) -> ModelComparison:
    n = max(gp.fitted_.n_rows for gp in fitted.values())
    rows = []
    left_out, folded = (paired([scores.values for scores in each.values()]) for each in (loo, held))
    for (name, gp), one_left_out, by_fold in zip(fitted.items(), left_out, folded, strict=True):
        evidence, kind, error = gp.fitted_.evidence_of_y()
        total, _, difference, its_error = (n * value for value in one_left_out)
        of_rows = total, difference, its_error, loo[name].how
        size, seconds = gp.fitted_.n_parameters, float(gp.outcome_.seconds)
        rows.append(ModelRow(None, name, evidence, kind, error, *of_rows, *by_fold, size, seconds))
    ranks, winner, notes = _by_evidence(rows) if by == "evidence" else _by_score(by, rows)
    notes += _remarks(fitted)
    notes += [f"{name}: {scores.note}" for name, scores in loo.items() if scores.note]
    kinds = list(dict.fromkeys(row.kind for row in rows))  # in the order of their first model
    rows = [dataclasses.replace(row, rank=ranks.get(row.name)) for row in rows]
    rows.sort(
        key=lambda row: (row.rank is None, kinds.index(row.kind) if by == "evidence" else 0, row.rank or 0)
    )
    return ModelComparison(by, n, tuple(rows), tuple(notes), fitted, winner)


def _by_evidence(rows: list[ModelRow]) -> tuple[dict[str, int], str | None, list[str]]:
    """Ranks within each kind, the best of all where that is known, and what to say about it."""
    groups: dict[str, list[ModelRow]] = {}
    for row in rows:
        if not np.isnan(row.evidence):
            groups.setdefault(row.kind, []).append(row)
    without = [row.name for row in rows if np.isnan(row.evidence)]
    notes = [f"No evidence, so no rank: {', '.join(without)}."] if without else []
    above = [(a, b) for a in rows for b in rows if a.kind != b.kind and _range(a)[0] > _range(b)[1]]
    if not groups or (len(rows) > 1 and max(map(len, groups.values())) < 2 and not above):
        kinds = ", ".join(f"{row.name}: {row.kind}" for row in rows)
        raise ParameterError(
            f'No two of these evidences can be compared ({kinds}). Use by="loo" or by="cv", or one inference'
            " for all models."
        )
    for group in groups.values():
        group.sort(key=lambda row: -row.evidence)
    ranks = {row.name: k + 1 for group in groups.values() for k, row in enumerate(group)}
    first = [group[0] for group in groups.values()]
    winners = [a for a in first if all(a is b or (a, b) in above for b in first)]
    if len(groups) > 1:
        notes.append(
            "Evidences of different kinds are not ranked against each other: ranks are within each kind"
            f" ({', '.join(groups)})."
        )
    notes += [
        f"{a.name} has a higher evidence than {b.name}: its {a.kind} of {a.evidence:.6g} is above the"
        f" {b.kind} of {b.evidence:.6g}."
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


def _range(row: ModelRow) -> tuple[float, float]:
    """Where the evidence can be, for all that its kind says; an estimate within two standard errors."""
    error = 0.0 if np.isnan(row.standard_error) else 2 * row.standard_error
    ranges = {
        "lower bound": (row.evidence, np.inf),
        "upper bound": (-np.inf, row.evidence),
        **dict.fromkeys(("exact", "estimate"), (row.evidence - error, row.evidence + error)),
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
    remarks = [
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
    array = np.asarray(y)
    if array.ndim == 0:
        raise ParameterError(
            "Of a column in a file it is not known whether it has labels: give estimators instead of kernels."
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


def _lines(rows: Sequence[ModelRow]) -> list[str]:
    """A line a model. Columns in which nothing stands are left out."""
    table = (
        ("rank", [str(row.rank or "-") for row in rows]),
        ("model", [row.name for row in rows]),
        ("log evidence", [_number(row.evidence, row.standard_error) for row in rows]),
        ("kind", [row.kind if not np.isnan(row.evidence) else "" for row in rows]),
        ("LOO", [_number(row.loo) for row in rows]),
        ("to best", [_number(row.loo_difference, row.loo_difference_error) for row in rows]),
        ("by", [row.loo_by for row in rows]),
        ("CV, a row", [_number(row.cv, row.cv_error) for row in rows]),
        ("to best", [_number(row.cv_difference, row.cv_difference_error) for row in rows]),
        ("parameters", [str(row.parameters) for row in rows]),
        ("fit", [f"{row.seconds:.2g} s" for row in rows]),
    )
    used = [[title, *cells] for title, cells in table if any(cells)]
    return aligned(list(zip(*used, strict=True)), ("model", "kind", "by"))


def _number(value: float, error: float = float("nan")) -> str:
    """Two digits of the error, and as many places of the value; without an error to speak of, two places."""
    if np.isnan(value):
        return ""
    known = error > LEAST_ERROR
    places = int(np.clip(1 - np.floor(np.log10(error)), 0, 3)) if known else 2
    text = f"{round(value, places) + 0.0:.{places}f}"  # the sum makes a negative zero positive
    return f"{text} +- {error:.{places}f}" if known else text
