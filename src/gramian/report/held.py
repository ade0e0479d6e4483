r"""Rows held against what was foretold of them: each training row by all the others, or rows that were held
back; and what the simplest methods foretell of the same rows.

    average     the mean of the training targets, or the shares of the classes
    neighbours  the mean, or the votes, of the five nearest rows
    line        ridge regression on all columns, categories as indicators, with a penalty of 1e-3 of the rows:
                e_i / (1 - H_ii) with H = Z (Z'Z + lam I)^-1 Z' where row i is left out (Allen 1974, PRESS)

A residual here is a normal score, Phi^-1(F(y)): (y - mean) / std of a Gaussian, and comparable for counts and
skewed targets. Cost: that of `quality`, at MOST training rows, or MOST_GIVEN given ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from gramian.arrays import Array
from gramian.data.inputs import Columns
from gramian.errors import GramianError
from gramian.predictive import Predictive
from gramian.report.evaluation import TINY, Evaluation, of_classes, of_numbers, pit_of
from gramian.report.quality import (
    COSTLY,
    LARGEST,
    MOST,
    NEIGHBOURS,
    comparable,
    nearest,
    neighbours,
    some_rows,
    why_not,
)

MOST_GIVEN = 5000  # rows of a table that comes with a report
SURE = 1e-12  # of a probability: scores end at seven standard deviations
PENALTY = 1e-3
MOST_COMPARED = 10_000_000  # numbers of the rows of a fit
WIDE = 400  # columns beyond which no line is drawn through the rows


class Output(NamedTuple):
    """One target, at the rows where it was observed."""

    name: str
    rows: NDArray[np.intp]  # among those of `Held`
    y: Array
    mean: Array
    std: Array
    lower: Array  # of the 95 % interval
    upper: Array
    pit: Array
    density: Array  # log p(y)

    @property
    def z(self) -> Array:
        """Normal scores."""
        return ndtri(np.clip(self.pit, SURE, 1 - SURE))


class Rival(NamedTuple):
    """What a simple method makes of the same rows: one number an output (RMSE), or the share of right labels
    and the log loss."""

    name: str
    numbers: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Held:
    """Rows, and what was foretold of them."""

    tested: bool  # whether they came with the report; else they are training rows, each left out
    total: int  # rows that there are
    at: NDArray[np.intp]  # those that are here
    X: Array  # (m, d)
    scores: Evaluation
    rivals: tuple[Rival, ...]
    discrete: bool = False
    outputs: tuple[Output, ...] = ()
    P: Array | None = None  # (m, classes)
    codes: NDArray[np.intp] | None = None  # (m,)

    @property
    def what(self) -> str:
        return "given rows" if self.tested else "left-out rows"

    @property
    def part(self) -> str:
        """How many of them there are, in words."""
        m = len(self.at)
        return f"{m:,} rows" if m == self.total else f"{m:,} of {self.total:,} rows, chosen at random"


def left_out(learned: Any) -> Held | str:
    """Of an `estimators.learned.Learned`: its training rows, each foretold by all others; or why not."""
    if learned.models:
        return "each class has a model of its own, and rows are not left out of all of them at once"
    why = why_not(learned)
    if why is not None:
        return why
    try:
        X, columns = learned.rows.X, learned.columns
        if learned.classes is not None:
            P, codes = learned.left_out_classes().probabilities, learned.labelled_rows().codes
            at = some_rows(len(P), MOST)
            near = neighbours(X, columns, at)
            rivals = _class_rivals(codes, codes[at], None if near is None else codes[near], P.shape[1])
            scores = of_classes(P[at], codes[at], columns.targets)
            return Held(False, len(P), at, np.asarray(X[at]), scores, rivals, P=P[at], codes=codes[at])
        foretold, Y = learned.left_out(), learned.targets_of_rows()
        at = some_rows(len(Y), COSTLY if foretold.costly else MOST)
        rivals = _rivals_of_rows(np.asarray(X), Y, columns, at) if X.nbytes <= LARGEST else ()
        return numbers(learned, foretold.at(at), Y[at], np.asarray(X[at]), at, len(Y), rivals)
    except GramianError as error:
        return str(error).split(". ")[0].rstrip(".")


def numbers(
    learned: Any,
    foretold: Predictive,
    Y: Array,
    X: Array,
    at: NDArray[np.intp],
    total: int,
    rivals: tuple[Rival, ...],
    tested: bool = False,
) -> Held:
    """Y (m, q) against what was foretold of it."""
    targets = learned.columns.targets
    scores = of_numbers(foretold, Y, learned.training_moments(), targets)
    outputs = []
    for k in range(Y.shape[1]):
        known = np.flatnonzero(np.isfinite(Y[:, k]))
        one, y = foretold.output(k).at(known), Y[known, k]
        lower, upper = one.interval(0.95)
        name = targets[k] if len(set(targets)) == Y.shape[1] else "y" if Y.shape[1] == 1 else f"y{k}"
        outputs.append(
            Output(name, known, y, one.mean, one.std, lower, upper, pit_of(one, y), one.log_density(y))
        )
    return Held(tested, total, at, X, scores, rivals, foretold.discrete, tuple(outputs))


def classes(learned: Any, P: Array, codes: NDArray[np.intp], X: Array, at: Any, total: int) -> Held:
    """Labels of given rows against their probabilities."""
    seen, near = learned.labelled_rows(), None
    rivals: tuple[Rival, ...] = ()
    if seen is not None and seen.X.nbytes <= LARGEST and np.isfinite(X).all() and len(seen.X) > NEIGHBOURS:
        Z = comparable(seen.X, learned.columns)
        near = seen.codes[nearest(Z, comparable(X, learned.columns, seen.X), NEIGHBOURS)]
        rivals = _class_rivals(seen.codes, codes, near, P.shape[1])
    scores = of_classes(P, codes, learned.columns.targets)
    return Held(True, total, at, X, scores, rivals, P=P, codes=codes)


def rows_of_the_fit(fitted: Any, X: Array) -> int:
    """How many rows of a table have the inputs of a row of the fit, where the model has these."""
    if not fitted.has_rows or np.size(fitted.rows.X) > MOST_COMPARED:
        return 0
    width = len(fitted.columns.given)  # further columns say where cells are missing
    seen = {row.tobytes() for row in np.asarray(fitted.rows.X)[:, :width] + 0.0}
    return sum(row.tobytes() in seen for row in np.asarray(X)[:, :width] + 0.0)


# The simplest methods. --------------------------------------------------------------------------------------


def _rivals_of_rows(X: Array, Y: Array, columns: Columns, at: NDArray[np.intp]) -> tuple[Rival, ...]:
    """Of training rows, each left out."""
    n = len(X)
    guesses = {"the average": np.nanmean(Y, axis=0) + (np.nanmean(Y, axis=0) - Y[at]) / max(n - 1, 1)}
    near = neighbours(X, columns, at)
    if near is not None:
        guesses[f"{NEIGHBOURS} nearest rows"] = _mean_of(Y[near])
    Z = _line_columns(X, columns)
    if Z is not None and np.isfinite(Y).all():
        lam = PENALTY * n
        V = np.linalg.solve(Z.T @ Z + lam * _penalised(Z), Z.T)  # (p, n)
        own = np.einsum("ij,ji->i", Z[at], V[:, at])
        fits = Z[at] @ (V @ Y)
        guesses["a straight line"] = Y[at] - (Y[at] - fits) / np.maximum(1 - own, 1e-9)[:, None]
    return _rivals(guesses, Y[at])


def rivals_of_given(learned: Any, X: Array, Y: Array) -> tuple[Rival, ...]:
    """Of rows that came with a report, by the rows of the fit; none where these are not there."""
    if learned.models or not learned.has_rows or learned.rows.X.nbytes > LARGEST or not np.isfinite(X).all():
        return ()
    seen, columns, targets = np.asarray(learned.rows.X), learned.columns, learned.targets_of_rows()
    guesses = {"the average": np.broadcast_to(np.nanmean(targets, axis=0), Y.shape)}
    if len(seen) > NEIGHBOURS:
        near = nearest(comparable(seen, columns), comparable(X, columns, seen), NEIGHBOURS)
        guesses[f"{NEIGHBOURS} nearest rows"] = _mean_of(targets[near])
    Z = _line_columns(seen, columns)
    if Z is not None and np.isfinite(targets).all():
        w = np.linalg.solve(Z.T @ Z + PENALTY * len(Z) * _penalised(Z), Z.T @ targets)
        guesses["a straight line"] = _line_columns(X, columns, seen) @ w
    return _rivals(guesses, Y)


def _line_columns(X: Array, columns: Columns, like: Array | None = None) -> Any:
    """Columns with their means taken off, and a constant; None where they are too many for the rows."""
    Z = comparable(X, columns, like)
    if Z.shape[1] > WIDE or (like is None and len(Z) < 2 * (Z.shape[1] + 1)):
        return None
    centre = np.mean(Z if like is None else comparable(like, columns), axis=0)
    return np.column_stack([Z - centre, np.ones(len(Z))])


def _penalised(Z: Array) -> Array:
    """Of all columns but the constant."""
    return np.diag(np.append(np.ones(Z.shape[1] - 1), 0.0))


def _mean_of(Y: Array) -> Array:
    """Of the neighbours' targets, (m, neighbours, q), where they were observed."""
    seen = np.isfinite(Y)
    count = np.sum(seen, axis=1)
    return np.where(count > 0, np.sum(np.where(seen, Y, 0.0), axis=1) / np.maximum(count, 1), np.nan)


def _rivals(guesses: dict[str, Array], Y: Array) -> tuple[Rival, ...]:
    return tuple(
        Rival(
            name, tuple(float(np.sqrt(np.nanmean((Y[:, k] - guess[:, k]) ** 2))) for k in range(Y.shape[1]))
        )
        for name, guess in guesses.items()
    )


def _class_rivals(
    trained: NDArray[np.intp], codes: NDArray[np.intp], near: NDArray[np.intp] | None, count: int
) -> tuple[Rival, ...]:
    """`near`: the labels of the neighbours, (m, neighbours)."""
    shares = np.bincount(trained, minlength=count) / len(trained)
    found = [Rival("the shares of the classes", _of(np.tile(shares, (len(codes), 1)), codes))]
    if near is not None:
        votes = np.stack([np.bincount(row, minlength=count) for row in near])
        found.append(Rival(f"{NEIGHBOURS} nearest rows", _of((votes + shares) / (NEIGHBOURS + 1), codes)))
    return tuple(found)


def _of(P: Array, codes: NDArray[np.intp]) -> tuple[float, float]:
    own = P[np.arange(len(codes)), codes]
    right = float(np.mean(np.argmax(P, axis=1) == codes))
    return right, float(-np.mean(np.log(np.maximum(own, TINY))))
