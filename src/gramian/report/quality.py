"""Is a fit any good? Each training row foretold from all the others, beside the average and five neighbours.

Leaving rows out is closed form, or by the row's cavity (see experiments.scoring); where it would take a solve
for each row, or has no meaning, it is not done, and the summary says why. Neighbours are the five nearest
rows of all others, in columns divided by their standard deviations, categories as indicators: the simplest
method that knows nothing but the data, and a model that is worse has missed something.

A row that is left out has still been seen by the search for parameters. Where there are few rows for each of
these, and no draws of them to average over, the numbers are kinder than new rows will be, and that is said.

Cost: scores at MOST rows of all, COSTLY where a probability takes a quadrature.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data.inputs import Columns, spread
from gramian.errors import GramianError
from gramian.report.document import number
from gramian.report.evaluation import Evaluation, of_classes, of_numbers

NEIGHBOURS = 5
MOST, COSTLY = 2000, 200
LITTLE = 0.05  # of the variance of y that is explained: nothing
ROWS_A_PARAMETER = 10  # with fewer the search can follow the noise of rows
LARGEST = 5e8  # bytes of the rows of X that are read for their neighbours
_FLAT = 10  # columns up to which a tree finds neighbours sooner than looking at all rows


class Quality(NamedTuple):
    """How good predictions of left-out rows are; None, with the reason, where that is not known."""

    scores: Evaluation | None
    sentences: tuple[str, ...]


def quality(fitted: Any) -> Quality:
    """Of an `estimators.fitted.Fitted`."""
    why = why_not(fitted)
    if why is None:
        try:
            return _classes(fitted) if fitted.classes is not None else _numbers(fitted)
        except GramianError as error:
            why = str(error).split(". ")[0]
    told = (
        f"Not measured on left-out rows: {why.rstrip('.')}. evaluate(X, y) scores rows that were held back."
    )
    return Quality(None, (told,))


def why_not(fitted: Any) -> str | None:
    """Why rows cannot be left out at little cost; None where they can."""
    if not fitted.has_rows:
        return "the rows stay where they are" if fitted.rows.pieces else "the file holds no training rows"
    if fitted.inference.search == "none":
        return "parameters were sampled; compare_models has leave-one-out by importance sampling"
    if not fitted.inference.leaves_out_cheaply:
        return "leaving rows out would take a solve for each"
    return "there are fewer than three rows" if fitted.n_rows < 3 else None


def _numbers(fitted: Any) -> Quality:
    foretold, Y = fitted.left_out(), fitted.targets_of_rows()
    at = some_rows(len(Y), COSTLY if foretold.costly else MOST)
    scores = of_numbers(
        foretold.at(at), Y[at], fitted.training_moments(), fitted.columns.targets, levels=(0.95,)
    )
    near = neighbours(fitted.rows.X, fitted.columns, at)
    sentences = []
    for k, column in enumerate(scores.columns):
        which = f"{scores.outputs[k]}: " if len(scores.columns) > 1 else ""
        error = f"an error of {number(column['rmse'], 3)} (R2 {column['r2']:.2f})"
        text = f"{which}Predicts left-out rows with {error}{_beside_mean(column['r2'])}"
        held = f"95 % intervals hold {_percent(column['coverage95'])}"
        sentences.append(f"{text}{_beside_neighbours(Y[:, k], at, near, column['rmse'])}; {held}.")
    return Quality(scores, (*sentences, *_seen(fitted)))


def _seen(fitted: Any) -> tuple[str, ...]:
    """What is to be said where the search has seen too much."""
    count, n = fitted.n_parameters, fitted.n_rows
    if fitted.draws is not None or not fitted.outcome.evaluations or n >= ROWS_A_PARAMETER * count:
        return ()
    why = f"{count} parameters were searched on these {n:,} rows, which is few for so many"
    return (f"New rows may do worse: {why}. evaluate(X, y) scores rows that were held back.",)


def _beside_mean(r2: float) -> str:
    """A word where the average of y, for all rows, would do as well."""
    if r2 > LITTLE:
        return ""
    return f", {'no better' if r2 >= 0 else 'worse'} than the average of y for all rows"


def _beside_neighbours(y: Array, at: NDArray[np.intp], near: NDArray[np.intp] | None, rmse: float) -> str:
    if near is None:
        return ""
    seen = np.isfinite(y[near])
    known = np.isfinite(y[at]) & np.any(seen, axis=1)
    guess = np.sum(np.where(seen, y[near], 0.0), axis=1) / np.maximum(np.sum(seen, axis=1), 1)
    other = float(np.sqrt(np.mean((y[at] - guess)[known] ** 2)))
    return f", {_times(other, rmse)} {NEIGHBOURS} nearest neighbours ({number(other, 3)})"


def _times(other: float, own: float) -> str:
    if 0.95 * own <= other <= 1.05 * own:
        return "as good as"
    better = other > own
    ratio = max(other, own) / max(min(other, own), 1e-300)
    shown = f"{ratio:.1f}" if ratio < 100 else "more than 100"
    return f"{shown} times {'better' if better else 'worse'} than"


def _classes(fitted: Any) -> Quality:
    P, codes = fitted.left_out_classes().probabilities, fitted.labelled_rows().codes
    at = some_rows(len(P), MOST)
    scores = of_classes(P[at], codes[at], fitted.columns.targets)
    most = float(np.mean(codes[at] == np.argmax(np.bincount(codes))))
    right = f"Predicts {_percent(scores['accuracy'])} of left-out labels right"
    text = f"{right} (log loss {scores['log_loss']:.2f}); always the most frequent one would be right for"
    text += f" {_percent(most)}"
    near = neighbours(fitted.rows.X, fitted.columns, at)
    if near is not None:
        votes = np.stack([np.bincount(row, minlength=P.shape[1]) for row in codes[near]])
        right = _percent(np.mean(np.argmax(votes, axis=1) == codes[at]))
        text += f", {NEIGHBOURS} nearest neighbours for {right}"
    return Quality(scores, (f"{text}.", *_seen(fitted)))


def _percent(share: Any) -> str:
    return f"{100 * float(share):.0f} %"


def some_rows(n: int, most: int) -> NDArray[np.intp]:
    """All of n rows, or `most` of them at random, the same ones each time, in their order."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def neighbours(X: Array, columns: Columns, at: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """The nearest other rows of some rows, (m, NEIGHBOURS); None where there are too few rows, or too many to
    look at."""
    if len(X) <= NEIGHBOURS or X.nbytes > LARGEST:
        return None
    Z = comparable(np.asarray(X), columns)
    found = nearest(Z, Z[at], NEIGHBOURS + 1)  # the row itself among them, or a row that is equal to it
    own = found == at[:, None]
    own[~np.any(own, axis=1), -1] = True  # equal rows came first: the last one goes
    return found[~own].reshape(len(at), NEIGHBOURS)


def nearest(Z: Array, asked: Array, count: int) -> NDArray[np.intp]:
    """The rows of Z that are nearest to each row that is asked for, (m, count), the nearest first."""
    from scipy.spatial import cKDTree  # with `distance`, of which few need either
    from scipy.spatial.distance import cdist

    if Z.shape[1] <= _FLAT:
        return cKDTree(Z).query(asked, count)[1].reshape(len(asked), count)
    found = np.empty((len(asked), count), dtype=np.intp)
    for start in range(0, len(asked), 100):
        apart = cdist(asked[start : start + 100], Z)
        part = np.argpartition(apart, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(apart, part, axis=1), axis=1)
        found[start : start + 100] = np.take_along_axis(part, order, axis=1)
    return found


def comparable(X: Array, columns: Columns, like: Array | None = None) -> Array:
    """Columns in units of their spread (in the rows of `like`, where these are others), categories as
    indicators: all 0 for one that the fit has not seen."""
    parts = []
    for j in range(X.shape[1]):
        if j in columns.categories:
            parts.append(np.equal.outer(X[:, j], np.arange(len(columns.categories[j]))).astype(np.float64))
        else:
            parts.append(X[:, [j]] / spread((X if like is None else like)[:, [j]]))
    return np.concatenate(parts, axis=1)
