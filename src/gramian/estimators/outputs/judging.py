"""The best of several kinds of models of outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gramian.data.inputs import Columns
from gramian.estimators.build import Built
from gramian.estimators.fitted import Fitted
from gramian.estimators.outputs.paths import like_gaps
from gramian.inference import Data
from gramian.params import ParameterSpace

if TYPE_CHECKING:
    pass

RIVALS = ("independent", "chained", "coupled")  # of "auto"
JUDGED = 0.6  # of a time limit, for rivals that are held against each other


def height_of(fitted: Fitted) -> float:
    """log p(Y), less what its parameters cost: the log density of their priors, and half the logarithm of
    the entries of Y for each number that has none (Schwarz 1978)."""
    free = ParameterSpace(fitted.model.parameters()).trainable.values()
    plain = sum(p.value.size for p in free if p.prior is None)
    entries = int(np.sum(np.isfinite(fitted.rows.Y)))
    return float(fitted.evidence.value + fitted.log_prior() - 0.5 * plain * np.log(entries))


def highest(found: Sequence[tuple[str, Fitted]]) -> Fitted:
    """The best of several fits to the same Y, which says so."""
    heights = [height_of(fitted) for _, fitted in found]
    at = int(np.argmax(heights))
    line = _compared([word for word, _ in found], heights, at, "the height of the parameters' posterior")
    return found[at][1].chosen_by(line)


def like_all_gaps(data: Data, columns: Columns) -> NDArray[np.bool_] | None:
    """Entries of Y that are like those that are missing, (n, q); None where too few are."""
    held, X = np.zeros(data.Y.shape, bool), np.asarray(data.X)
    for k in range(data.Y.shape[1]):
        rows = like_gaps(X, np.isfinite(data.Y[:, k]), columns)
        if rows is not None:
            held[rows, k] = True
    return held if held.any() else None


def without(built: Built, held: NDArray[np.bool_]) -> Built:
    """The same as if these entries had not been observed."""
    Y = np.where(held, np.nan, built.rows.Y)
    seen = np.isfinite(Y).any(axis=1)
    rows = dataclasses.replace(built.rows, Y=Y)
    return built._replace(rows=rows if seen.all() else rows.take(np.flatnonzero(seen)))


def judged(found: Sequence[tuple[str, Fitted]], data: Data, held: NDArray[np.bool_]) -> tuple[str, str]:
    """The kind that gives entries that were held out the highest density, and a line that says so."""
    densities = []
    rows = np.flatnonzero(held.any(axis=1))
    for _, fitted in found:
        foretold = fitted.predictive(np.asarray(data.X[rows]))
        each = [
            foretold.output(k).log_density(
                np.where(held[rows, k], data.Y[rows, k], np.nan_to_num(data.Y[rows, k]))
            )
            for k in range(held.shape[1])
        ]
        densities.append(float(np.sum(np.stack(each, axis=1)[held[rows]])))
    at = int(np.argmax(densities))
    count = int(held.sum())
    line = _compared(
        [word for word, _ in found], densities, at, f"the density of {count:,} entries beside gaps"
    )
    return found[at][0], line


def _compared(words: Sequence[str], values: Sequence[float], at: int, by: str) -> str:
    others = [(values[j] - values[at], words[j]) for j in range(len(words)) if j != at]
    listed = "; ".join(f"{word} {gain:+.3g}" for gain, word in sorted(others, reverse=True))
    return f"outputs {words[at]}, by {by}" + (f"; others, in nats: {listed}" if others else "")
