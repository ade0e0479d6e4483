"""How well a model foretells rows that it has not seen, one row at a time: log p(y_i | other rows), of y in
its own units.

    left_out          of each training row from all the others
    cross_validated   of each row from the rows of the other folds, with the parameters fitted anew

Beside it, the root mean squared error of the mean and how many rows a 95 % interval holds, or how many labels
are right, of the same predictions.

Leave-one-out is closed form under Gaussian noise. Laplace, EP and VI take a row's own site away (its cavity).
Chains draw from the posterior of all rows, so row i is left out by the weights 1 / p(y_i | f_i), smoothed by
a generalised Pareto distribution whose shape k tells whether to trust them. Where f was integrated out the
same holds for the parameters alone, with the closed form of each draw in place of p(y_i | f_i): p(theta |
y_-i) is proportional to p(theta | y) / p(y_i | y_-i, theta).

Sources: Rasmussen and Williams 2006, equations 5.10 to 5.12; Vehtari, Mononen, Tolvanen, Sivula and Winther
2016 (cavities); Vehtari, Gelman and Gabry 2017 (importance sampling, standard errors of differences).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from gramian.arrays import Array
from gramian.data.sources import has_targets
from gramian.errors import ParameterError
from gramian.estimators.base import Estimator
from gramian.inference.mcmc.chains import package
from gramian.inference.mcmc.mixture import Mixture
from gramian.linalg.executor import Executor
from gramian.predictive import Predictive

# which rows are trained on and which are held out, the same for all models
Folds = tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]
# of each row, by what their average is called: the squared error and whether the interval holds y, or whether
# the label is right
Seen = dict[str, Array]

DRAWS, FEW_ROWS = 400, 1000  # of the parameters, each a factorisation, while that many rows are soon factored
LEVEL = 0.95  # of the intervals
UNSAFE_K = 0.7  # of the Pareto shape: beyond it the estimate of a row has no variance to speak of


class Beside(NamedTuple):
    """What else is seen of left-out rows; nan where it does not exist, or would cost much."""

    rmse: float = float("nan")  # of the mean
    coverage: float = float("nan")  # the share of rows that their 95 % interval holds
    accuracy: float = float("nan")  # the share of labels that are right


class Scores(NamedTuple):
    """log p(y_i | other rows) of each row; None where there is no such thing. `how` it was found, and what
    speaks against it."""

    values: Array | None  # (n,)
    how: str = ""
    note: str = ""
    beside: Beside = Beside()


class Paired(NamedTuple):
    """The average of a score over rows and its difference to the best one, each with the standard error that
    rows give."""

    mean: float = float("nan")
    error: float = float("nan")
    difference: float = float("nan")
    difference_error: float = float("nan")


def paired(scores: Sequence[Array | None]) -> list[Paired]:
    """Each score, and row by row against the best."""
    means = [-np.inf if values is None else float(np.mean(values)) for values in scores]
    best = scores[int(np.argmax(means))]
    pairs = []
    for values, mean in zip(scores, means, strict=True):
        if values is None or best is None:
            pairs.append(Paired())
            continue
        gap = values - best
        its_error = 0.0 if values is best else _error(gap)
        pairs.append(Paired(mean, _error(values), float(np.mean(gap)), its_error))
    return pairs


def _error(values: Array) -> float:
    """The standard error of an average over rows."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def left_out(gp: Estimator, always: bool = True) -> Scores:
    """Each training row from all the others. Not `always`: only where it costs no more than the fit."""
    fitted = gp.fitted_.first
    if fitted.inference.search == "none":
        return _by_importance(cast(Mixture, fitted.process))
    if not fitted.inference.leaves_out_cheaply and not always:
        why = 'leave-one-out would take a solve for each row, so it was left out; by="loo" computes it.'
        return Scores(None, note=why)
    try:
        values, seen = _left_out_numbers(gp) if gp.fitted_.classes is None else _left_out_labels(gp)
    except ParameterError:
        return Scores(None)
    beside = _averaged(seen)
    if fitted.closed_form or gp.likelihood_.latents == 1:
        return Scores(values, "closed form" if fitted.closed_form else "cavities", beside=beside)
    rough = (
        "the cavities of several latent functions leave out how these depend on each other: a tenth off is"
        ' usual, so settle close calls by refits (by="cv").'
    )
    return Scores(values, "cavities", rough, beside)


def _left_out_numbers(gp: Estimator) -> tuple[Array, Seen]:
    """log p(y_i | other rows), the sum over outputs where there are several, and what is seen beside."""
    fitted = gp.fitted_.first
    foretold, Y = fitted.left_out(), fitted.targets_of_rows()
    if foretold.mean.ndim > 1:
        return np.sum(gp.loo().log_density, axis=1), {}
    return foretold.log_density(Y[:, 0]), _numbers_seen(foretold, Y[:, 0])


def _left_out_labels(gp: Estimator) -> tuple[Array, Seen]:
    left, rows = gp.loo(), gp.fitted_.labelled_rows()
    return left.log_density, {} if rows is None else _labels_seen(left.probabilities, rows.codes)


def _numbers_seen(foretold: Predictive, y: Array) -> Seen:
    seen = {"rmse": (foretold.mean - y) ** 2}
    if not foretold.costly:
        low, high = foretold.interval(LEVEL)
        seen["coverage"] = np.where((low <= y) & (y <= high), 1.0, 0.0)
    return seen


def _labels_seen(shares: Array, codes: NDArray[np.intp]) -> Seen:
    return {"accuracy": np.where(np.argmax(shares, axis=1) == codes, 1.0, 0.0)}


def _averaged(seen: Seen) -> Beside:
    means = {name: float(np.mean(values)) for name, values in seen.items()}
    return Beside(**{name: mean**0.5 if name == "rmse" else mean for name, mean in means.items()})


def _by_importance(process: Mixture) -> Scores:
    chains = process.chains
    if chains is not None and chains.log_likelihood.shape[2]:
        return _pareto_smoothed(chains.log_likelihood, None)
    if process.latent.shape[1]:
        return Scores(None)  # draws of f from a file, without what they say of each row
    if chains is not None and len(process.data.X) <= FEW_ROWS:
        process = Mixture.of(process.model, process.data, chains, process.basis, DRAWS)
    rows = np.stack([_closed_form(process, k) for k in range(process.n_components)])
    return _pareto_smoothed(rows[None], 1.0)  # evenly thinned draws, taken as independent


def _closed_form(process: Mixture, k: int) -> Array:
    """log p(y_i | all other rows, the parameters of a draw), (n,)."""
    data, model = process.data, process.model_at(k)
    mean, var = process.scheme.cavities(model, data, process.component(k))
    known = 0.0 if data.noise_var is None else data.noise_var[:, None]
    total = var + model.gaussian.variances() + known
    return np.sum(-0.5 * ((data.Y - mean) ** 2 / total + np.log(2 * np.pi * total)), axis=1)


def _pareto_smoothed(log_likelihood: Array, efficiency: float | None) -> Scores:
    """From log p(y_i | draw), (chains, draws, n). `efficiency`: effective draws a draw; None: seen from the
    chains."""
    stats, count = package("arviz_stats.base").array_stats, log_likelihood.shape[0] * log_likelihood.shape[1]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what it warns of is in the note
        if efficiency is None:
            mean = np.mean(log_likelihood, axis=2)
            efficiency = float(stats.ess(mean, method="mean")) / count if len(mean) > 1 else 1.0
        values, shape, _ = stats.loo(np.moveaxis(log_likelihood, 2, 0), r_eff=efficiency)
    # Vehtari and others 2024: few draws carry less
    limit = min(UNSAFE_K, 1 - 1 / np.log10(count)) if count > 10 else 0.0
    bad, note = int(np.sum(~(shape <= limit))), "Pareto k of importance-sampled leave-one-out is"
    if not bad:
        return Scores(values, "importance", f"{note} at most {np.max(shape):.2f}, which is good.")
    note += f" above {limit:.2g} in {bad} of {len(shape)} rows (at most {np.nanmax(shape):.2f}), so LOO is"
    return Scores(values, "importance", f'{note} unreliable there. Take more draws, or use by="cv".')


def folds_of(cv: Any, X: Any, y: Any, classes: bool, seeds: np.random.RandomState) -> Folds:
    """`cv` folds in random order that keep the share of each class; or as a splitter or pairs of rows say."""
    from sklearn.model_selection import KFold, StratifiedKFold, check_cv  # which bring much along

    target, n, given = np.asarray(y), len(y), cv
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= n:
            raise ParameterError(f"cv={cv} must be from 2 to the number of rows, {n}.")
        cv = (StratifiedKFold if classes else KFold)(int(cv), shuffle=True, random_state=seeds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a class with fewer rows than folds is no trouble while it has two
            rows = target if has_targets(X) else X  # of what was read from a file, splitters see no columns
            split = check_cv(cv, target, classifier=classes).split(rows, target)
            return tuple((np.asarray(train), np.asarray(test)) for train, test in split)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"cv={given!r} makes no folds of these rows: {error}") from error


class _Fold(NamedTuple):
    """An estimator, rows to train it on and rows to hold it against, with the keywords of each."""

    gp: Any
    train: tuple[Any, Array | None]
    seen: dict[str, Any]
    part: Any
    known: Array
    held: Array | None


def _folded(fold: _Fold, state: None) -> tuple[Array, Seen]:
    """log p of the rows that were held out, and what else is seen of them."""
    gp = heeded(fold.gp.fit(*fold.train, **fold.seen))
    scores = gp.log_density(fold.part, fold.known, fold.held)
    if gp.fitted_.classes is not None:
        return scores, _labels_seen(
            gp.predict_proba(fold.part), gp.fitted_.class_of(fold.known, len(fold.known))
        )
    if fold.known.ndim > 1:
        return scores, {}
    return scores, _numbers_seen(gp.predict_dist(fold.part, exposure=fold.held), fold.known)


def cross_validated(
    made: Callable[[], Any],
    X: Any,
    y: Any,
    folds: Folds,
    exposure: Array | None = None,
    executor: Executor | None = None,
) -> Scores:
    """Each row from the rows of the other folds; one that is held out several times has the average, one that
    never is does not count. `made` gives a new estimator for each; `executor`: other processes that do them.
    """
    target = np.asarray(y)
    total, times = np.zeros(len(target)), np.zeros(len(target))
    beside: Seen = {}

    def each_fold() -> Iterator[_Fold]:
        for train, test in folds:
            seen = {} if exposure is None else {"exposure": exposure[train]}
            held = None if exposure is None else exposure[test]
            yield _Fold(made(), _rows(X, target, train), seen, _rows(X, target, test)[0], target[test], held)

    shared = executor is not None and executor.remote
    found = (
        executor.each(_folded, each_fold())
        if shared and executor
        else (_folded(f, None) for f in each_fold())
    )
    for (_, test), (scores, own) in zip(folds, found, strict=True):
        total[test] += scores
        times[test] += 1
        for name, values in own.items():
            beside.setdefault(name, np.zeros(len(target)))[test] += values
    there = times > 0
    averages = {name: values[there] / times[there] for name, values in beside.items()}
    return Scores(total[there] / times[there], "folds", beside=_averaged(averages))


def heeded(gp: Any) -> Any:
    """The same estimator, unless somebody has stopped its fit: half a search beside whole ones is no
    comparison."""
    if gp.outcome_.stopped == "interrupted":
        raise KeyboardInterrupt
    return gp


def _rows(X: Any, y: Array, rows: NDArray[np.intp]) -> tuple[Any, Array | None]:
    """Some rows of the data; what was read from a file has its targets with it."""
    return (X.part(rows), None) if has_targets(X) else (_safe_indexing(X, rows), y[rows])
