"""What is tried on the way to a kind of model of several outputs, and the entries that judge it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.arrays import Array, Indices
from gramian.clock import OutOfTime
from gramian.data.inputs import Columns, spread
from gramian.errors import NumericalError
from gramian.estimators.build import Built
from gramian.estimators.defaults import ON_PATH
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report
from gramian.fitting.stages import worth
from gramian.inference import Data, Model, Scheme

if TYPE_CHECKING:
    pass


ROWS = 600  # that a path of a chain is walked on
ITERATIONS = 60  # of a search on a path
BEYOND = 0.05  # of the variance: what a kernel of x begins with beside outputs that explain most
FEWEST_GAPS = 10  # entries of an output that are missing, for others like them to judge
MOST_JUDGES = 300  # of an output


@dataclass(frozen=True)
class PathStep:
    """A model on a path, at its best parameters."""

    name: str
    built: Built
    height: float


class Path:
    """What is tried, one after the other."""

    def __init__(self, columns: Columns, report: Report) -> None:
        self.columns, self.report = columns, report
        self.searches: list[Search] = []

    @property
    def over(self) -> bool:
        """Whether there is no time for more, or somebody has stopped it."""
        return clock.over() or (bool(self.searches) and self.searches[-1].stopped == "interrupted")

    def best(self, model: Model, data: Data, scheme: Scheme) -> tuple[Model, float]:
        """A model at the best parameters that a short search finds, and how high that is; as it is, and not
        high, where there are none."""
        objective = Objective(model, data, scheme)
        if not objective.space.size:
            return model, float(objective.inference.evidence(model, data, objective.workspace).value)
        try:
            found = maximise(
                objective,
                [objective.start],
                objective.limits,
                self.report,
                finish=False,
                iterations=ITERATIONS,
                enough=worth(ON_PATH, data.Y.size),
            )
        except (NumericalError, OutOfTime):
            return model, -np.inf
        except KeyboardInterrupt:
            if not self.searches:
                raise  # nothing is known yet
            self.searches.append(dataclasses.replace(self.searches[-1], stopped="interrupted"))
            return model, -np.inf
        self.searches.append(found)
        return objective.at(found.theta), found.value


def like_gaps(X: Array, seen: NDArray[np.bool_], columns: Columns) -> Indices | None:
    """Of the rows at which an output was seen those that are most like the ones at which it was not, one for
    each of these, a third of all and MOST_JUDGES at most: the nearest that is left. Of a gap these are the
    rows beside it, of single entries their neighbours. None where there are too few of either."""
    gaps, rows = np.flatnonzero(~seen), np.flatnonzero(seen)
    if len(gaps) < FEWEST_GAPS or len(rows) < 3 * FEWEST_GAPS:
        return None
    numeric = [j for j in range(X.shape[1]) if j not in columns.categories] or list(range(X.shape[1]))
    Z = X[:, numeric] / spread(X[:, numeric])
    left = np.ones(len(rows), bool)
    order = np.random.default_rng(0).permutation(gaps)[: min(len(rows) // 3, MOST_JUDGES)]
    for gap in order:
        apart = np.where(left, np.sum((Z[rows] - Z[gap]) ** 2, axis=1), np.inf)
        left[int(np.argmin(apart))] = False
    return rows[~left]


def some_rows(data: Data, count: int, rng: np.random.Generator) -> Data:
    """So many rows at random, in their order; all where there are no more."""
    n = len(data.X)
    if n <= count:
        return data
    rows, seen = rng.choice(n, count, replace=False), np.isfinite(data.Y)
    # an output that no row shows would have nothing to say of its parameters
    unseen = np.flatnonzero(~seen[rows].any(axis=0))
    return data.take(np.union1d(rows, [int(np.argmax(seen[:, k])) for k in unseen]).astype(np.intp))
