"""How well a model foretells rows that it has not seen, one row at a time: log p(y_i | other rows), of y in
its own units.

    left_out          of each training row from all the others
    cross_validated   of each row from the rows of the other folds, with the parameters fitted anew

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
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.estimators.base import Estimator
from gramian.inference.mcmc.chains import package
from gramian.inference.mcmc.mixture import Mixture

# which rows are trained on and which are held out, the same for all models
Folds = tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]

DRAWS, FEW_ROWS = 400, 1000  # of the parameters, each a factorisation, while that many rows are soon factored
UNSAFE_K = 0.7  # of the Pareto shape: beyond it the estimate of a row has no variance to speak of


class Scores(NamedTuple):
    """log p(y_i | other rows) of each row; None where there is no such thing. `how` it was found, and what
    speaks against it."""

    values: Array | None  # (n,)
    how: str = ""
    note: str = ""


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
        densities = gp.loo().log_density
    except ParameterError:
        return Scores(None)
    values = densities.reshape(len(densities), -1).sum(axis=1)
    if fitted.closed_form or gp.likelihood_.latents == 1:
        return Scores(values, "closed form" if fitted.closed_form else "cavities")
    rough = (
        "the cavities of several latent functions leave out how these depend on each other: a tenth off is"
        ' usual, so settle close calls by refits (by="cv").'
    )
    return Scores(values, "cavities", rough)


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
    arviz = package("arviz")
    groups = {
        "posterior": {"mean log likelihood": np.mean(log_likelihood, axis=2)},
        "log_likelihood": {"y": log_likelihood},
    }
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # what ArviZ warns of is in the note
        new = int(arviz.__version__.split(".")[0]) >= 1
        data = arviz.from_dict(groups) if new else arviz.from_dict(**groups)
        smoothed = arviz.loo(data, pointwise=True, reff=efficiency)
    values = np.asarray(smoothed.elpd_i if new else smoothed.loo_i, dtype=np.float64)
    shape = np.asarray(smoothed.pareto_k, dtype=np.float64)
    count = log_likelihood.shape[0] * log_likelihood.shape[1]
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

    target, n = np.asarray(y), len(y)
    if isinstance(cv, (int, np.integer)) and not isinstance(cv, bool):
        if not 2 <= cv <= n:
            raise ParameterError(f"cv={cv} must be from 2 to the number of rows, {n}.")
        cv = (StratifiedKFold if classes else KFold)(int(cv), shuffle=True, random_state=seeds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a class with fewer rows than folds is no trouble while it has two
            split = check_cv(cv, target, classifier=classes).split(X, target)
            return tuple((np.asarray(train), np.asarray(test)) for train, test in split)
    except (ValueError, TypeError) as error:
        raise ParameterError(f"cv={cv!r} makes no folds of these rows: {error}") from error


def cross_validated(model: Estimator, X: Any, y: Any, folds: Folds, exposure: Array | None = None) -> Scores:
    """Each row from the rows of the other folds; one that is held out several times has the average, one that
    never is does not count."""
    target = np.asarray(y)
    total, times = np.zeros(len(target)), np.zeros(len(target))
    for train, test in folds:
        seen = {} if exposure is None else {"exposure": exposure[train]}
        gp = clone(model).fit(_safe_indexing(X, train), target[train], **seen)
        held = None if exposure is None else exposure[test]
        total[test] += gp.log_density(_safe_indexing(X, test), target[test], held)
        times[test] += 1
    return Scores(total[times > 0] / times[times > 0], "folds")
