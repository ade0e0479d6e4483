r"""How good predictions are of rows that were not learned from: scores, coverage and calibration.

Of numbers y with predictive distributions F, averaged over rows:

    rmse, mae   root of the mean square, and mean absolute value, of y - mean
    r2          1 - sum (y - mean)^2 / sum (y - average)^2
    nlpd        -log p(y)
    msll        nlpd, less that of a Gaussian with mean and variance of the training targets; not of whole
                numbers, which have probabilities instead of densities
    crps        int (F(z) - [y <= z])^2 dz, in the units of y: |y - mean| for one who is sure
    coverage    the share of rows within their 50 %, 80 %, 90 %, 95 % and 99 % interval, and its mean width
    pit         F(y) row by row, evenly spread over [0, 1] where F is right; of whole numbers halfway between
                F(y - 1) and F(y)
    calibration the mean distance of the distribution of pit from the even one: 0 is perfect, 0.25 the worst
                of a constant pit

Of classes:

    accuracy    share of rows whose label is the most probable one
    log loss    -log p(label)
    brier       sum_c (p_c - [label = c])^2, from 0 to 2
    ece         sum over bins b of the largest probability of (rows in b / rows) |share of right labels in b
                - mean of the largest probability in b|
    auc         the probability that a row of a class has a higher probability of it than a row of another
                one, averaged over classes

Sources: Gneiting and Raftery 2007 (log score, CRPS); Rasmussen and Williams 2006, section 2.5 (MSLL); Dawid
1984 (PIT); Czado, Gneiting and Held 2009 (of counts); Brier 1950; Guo, Pleiss, Sun and Weinberger 2017,
equation 3, with their 15 bins (ECE); Hand and Till 2001 (AUC).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.errors import InputError, visible
from gramian.params.space import aligned, html_table
from gramian.predictive import Predictive, log_normal
from gramian.report.document import number

LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
BINS = 15
TINY = 1e-300  # a label that was called impossible costs 690 nats, not infinitely many

_TITLES = {
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R2",
    "nlpd": "NLPD",
    "msll": "MSLL",
    "crps": "CRPS",
    "calibration": "calibration error",
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "brier": "Brier score",
    "ece": "ECE",
    "auc": "AUC",
}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of predictions; `evaluation["rmse"]` is one of them, print it to read all. With several outputs
    a score is a number each."""

    rows: int
    outputs: tuple[str, ...]  # names of what was predicted; empty where it is one thing without a name
    columns: tuple[Mapping[str, float], ...]  # the scores of each
    pit: Array | None = None  # (n,), or (n, q); None for classes

    def __getitem__(self, name: str) -> float | Array:
        if name not in self.columns[0]:
            raise KeyError(f"no score named {name!r}; there are {', '.join(self.columns[0])}")
        values = [column[name] for column in self.columns]
        return values[0] if len(values) == 1 else np.array(values)

    def to_dict(self) -> dict[str, float] | dict[str, dict[str, float]]:
        """Score to number; with several outputs, first by the output."""
        if len(self.columns) == 1:
            return dict(self.columns[0])
        return {name: dict(scores) for name, scores in zip(self.outputs, self.columns, strict=True)}

    def cells(self) -> list[tuple[str, ...]]:
        """A line of titles, then one a score."""
        several = len(self.columns) > 1
        lines = [("score", *(self.outputs if several else ("value",)))]
        for name in self.columns[0]:
            lines.append((_title(name), *(_shown(name, column[name]) for column in self.columns)))
        return lines

    def __str__(self) -> str:
        of = f" of {self.outputs[0]}" if len(self.columns) == 1 and self.outputs else ""
        head = f"Predictions{of} at {self.rows:,} row{'s' * (self.rows != 1)}"
        return "\n".join([visible(head), "", *aligned(self.cells(), ("score",))])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.cells())


def _title(name: str) -> str:
    for kind, words in (("coverage", "% intervals hold"), ("width", "% intervals are wide")):
        if name.startswith(kind):
            return f"{name.removeprefix(kind)} {words}"
    return _TITLES[name]


def _shown(name: str, value: float) -> str:
    if not np.isfinite(value):
        return "-"
    shares = name.startswith("coverage") or name == "accuracy"
    return f"{100 * value:.1f} %" if shares else number(value)


# Numbers. ---------------------------------------------------------------------------------------------------


def of_numbers(
    foretold: Predictive,
    Y: Array,
    trained: tuple[Array, Array] | None = None,
    outputs: Sequence[str] = (),
    levels: Sequence[float] = LEVELS,
) -> Evaluation:
    """Y (n, q) against what was foretold of it, NaN where it was not observed. `trained`: mean and variance
    of the training targets, (q,) each."""
    if not np.any(np.isfinite(Y)):
        raise InputError("There is nothing to compare predictions with: y has no number.")
    pits = np.full(Y.shape, np.nan)
    columns = []
    for k in range(Y.shape[1]):
        known = np.flatnonzero(np.isfinite(Y[:, k]))
        one, y = foretold.output(k).at(known), Y[known, k]
        trivial = None if trained is None else (float(trained[0][k]), float(trained[1][k]))
        pits[known, k], scores = _column(one, y, trivial, levels)
        columns.append(scores)
    named = len(set(outputs)) == len(columns)
    numbers = tuple(map(str, range(len(columns)))) if len(columns) > 1 else ()
    pit = pits[:, 0] if foretold.mean.ndim == 1 else pits
    return Evaluation(len(Y), tuple(outputs) if named else numbers, tuple(columns), pit)


def _column(
    one: Predictive, y: Array, trivial: tuple[float, float] | None, levels: Sequence[float]
) -> tuple[Array, dict[str, float]]:
    gaps, densities, pit = y - one.mean, one.log_density(y), pit_of(one, y)
    spread = float(np.sum((y - np.mean(y)) ** 2))
    guess = np.nan
    if trivial is not None and trivial[1] > 0 and not one.discrete:
        guess = float(np.mean(log_normal(y, np.array(trivial[0]), np.array(trivial[1]))))
    scores = {
        "rmse": float(np.sqrt(np.mean(gaps**2))),
        "mae": float(np.mean(np.abs(gaps))),
        "r2": 1 - float(np.sum(gaps**2)) / spread if spread > 0 else np.nan,
        "nlpd": -float(np.mean(densities)),
        "msll": guess - float(np.mean(densities)),
        "crps": float(np.mean(one.crps(y))),
        "calibration": calibration_of(pit),
    }
    ends = one.quantile([p for level in levels for p in ((1 - level) / 2, (1 + level) / 2)])
    for k, level in enumerate(levels):
        lower, upper = ends[:, 2 * k], ends[:, 2 * k + 1]
        scores[f"coverage{100 * level:g}"] = float(np.mean((lower <= y) & (y <= upper)))
        scores[f"width{100 * level:g}"] = float(np.mean(upper - lower))
    return pit, scores


def pit_of(foretold: Predictive, y: Array) -> Array:
    """F(y), or, of whole numbers, halfway between F(y - 1) and F(y)."""
    at = foretold.cdf(y)
    return 0.5 * (at + foretold.cdf(y - 1)) if foretold.discrete else at


def calibration_of(pit: Array) -> float:
    """The mean distance between the sorted values and evenly spaced ones."""
    return float(np.mean(np.abs(np.sort(pit) - (np.arange(len(pit)) + 0.5) / len(pit))))


# Classes. ---------------------------------------------------------------------------------------------------


def of_classes(P: Array, codes: NDArray[np.intp], outputs: Sequence[str] = ()) -> Evaluation:
    """The codes of labels, (n,), against their probabilities, (n, classes)."""
    own = P[np.arange(len(codes)), codes]
    scores = {
        "accuracy": float(np.mean(np.argmax(P, axis=1) == codes)),
        "log_loss": float(-np.mean(np.log(np.maximum(own, TINY)))),
        "brier": float(np.mean(np.sum((P - np.eye(P.shape[1])[codes]) ** 2, axis=1))),
        "ece": calibration_error(P, codes),
        "auc": _auc(P, codes),
    }
    return Evaluation(len(codes), tuple(outputs), (scores,))


def calibration_error(P: Array, codes: NDArray[np.intp]) -> float:
    """The expected calibration error of the most probable class."""
    sure, right = np.max(P, axis=1), np.argmax(P, axis=1) == codes
    bins = np.minimum((BINS * sure).astype(int), BINS - 1)
    gaps = np.bincount(bins, right - sure, BINS)  # in each bin: rows times (accuracy - confidence)
    return float(np.sum(np.abs(gaps)) / len(P))


def _auc(P: Array, codes: NDArray[np.intp]) -> float:
    """Averaged over the classes that some rows have and others have not; NaN where there is none."""
    from sklearn.metrics import roc_auc_score  # which brings much along

    classes = range(1, 2) if P.shape[1] == 2 else range(P.shape[1])
    split = [c for c in classes if 0 < np.sum(codes == c) < len(codes)]
    return float(np.mean([roc_auc_score(codes == c, P[:, c]) for c in split])) if split else np.nan
