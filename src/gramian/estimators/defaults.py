"""The model that is taken where nobody names one: a path, each step from where the one before it ended.

    smooth   scale Matern-5/2, a lengthscale a column
    rough    + scale Matern-1/2 with lengthscales of its own: what is not smooth, and what columns do together
    warp     a monotone map of y (gramian.warps)

A step is kept when it raises log p(y | theta) + log p(theta), the height of the parameters' posterior: the
density of the priors at the new numbers is what they cost. On four splits of the Boston data the rough part
raises the evidence by 0.05 nats a row, the density of left-out rows by 0.06, and lowers that of test rows by
0.06; the height refuses it. On three of the concrete data it takes it, and test rows gain 0.29.

The path is walked on up to ROWS rows, with searches that need not be finished; what it ends with is then
fitted on all rows. Cost, with the search after it: 80 to 310 evaluations on tables of 300 to 1,000 rows.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian import clock
from gramian.data.inputs import Columns
from gramian.errors import NumericalError
from gramian.estimators.build import Built, default_kernel
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report
from gramian.fitting.rows import distinct, in_random_order
from gramian.inference import Data, Model, Scheme
from gramian.kernels import Kernel, Matern12
from gramian.warps import SinhArcsinh

FEWEST = 10  # rows from which on the data can say anything about the kind of model
ROWS = 1000  # that the path is walked on
# the same where there is less time than BRIEF seconds: nothing is compiled for so few
QUICK_ROWS, BRIEF = 400, 10.0
ITERATIONS = 60  # of a search on it
# of the rows with the same y, up to which a warp is tried: a density can be as steep as one likes at a value
# that is taken again and again
MOST_EQUAL = 0.1
SHARE = 0.4  # of the time that is left
LEAST = 1e-20  # variance of y in units of its scale: below, it is constant


@dataclass(frozen=True)
class Candidate:
    """A model on the path, and how high its parameters stand."""

    name: str
    kernel: Kernel  # as people write it, with names of columns
    model: Model
    height: float = -np.inf


@dataclass(frozen=True)
class Choice:
    """Where the path has ended, and what is to be told about it."""

    built: Built
    searches: tuple[Search, ...]  # on the path
    lines: tuple[str, ...]

    @property
    def interrupted(self) -> bool:
        """Whether somebody has stopped it."""
        return self.searches[-1].stopped == "interrupted"

    def counted(self, search: Search) -> Search:
        """A search with the path's evaluations beside its own."""
        names = ("iterations", "evaluations", "failures")
        sums = {name: sum(getattr(one, name) for one in (search, *self.searches)) for name in names}
        return dataclasses.replace(search, **sums)


def chosen(
    built: Built, columns: Columns, method: Scheme, warped: bool, rng: np.random.Generator, report: Report
) -> Choice | None:
    """The kind of model for these data, at parameters from which a search on all of them goes on; None where
    that is not for them to say. `warped`: whether y may be warped."""
    data = built.rows
    if len(data.X) < FEWEST or data.Y.shape[1] > 1 or not _variance(data) > LEAST:
        return None
    data, now = distinct(data), clock.now()
    most = ROWS if clock.end() - now >= BRIEF else QUICK_ROWS
    if len(data.X) > most:
        data = data.take(np.sort(in_random_order(data, rng)[:most]))
    with clock.until(now + SHARE * max(clock.end() - now, 0.0)):
        best, searches, told = _walked(built, columns, data, method.on_few_rows(), warped, report)
    if searches[0].evaluations < 2:
        return None  # there was no time
    rows = "all" if len(data.X) == len(built.rows.X) else f"{len(data.X):,} of {len(built.rows.X):,}"
    line = f"model by the height of its parameters' posterior, on {rows} rows, in nats: {', '.join(told)}"
    return Choice(built._replace(kernel=best.kernel, model=best.model), tuple(searches), (line,))


def _walked(
    built: Built, columns: Columns, data: Data, method: Scheme, warped: bool, report: Report
) -> tuple[Candidate, list[Search], list[str]]:
    """The last step of the path, the searches, and what each step has brought."""
    best, search = _searched(Candidate("Matern-5/2", built.kernel, built.model), data, method, report)
    searches, told = [search], [f"{best.name}: {best.height:.1f}"]
    for further in (_rough, _warped) if warped else (_rough,):
        step = further(best, columns, data)
        if step is None or clock.over() or searches[-1].stopped == "interrupted":
            continue
        step, search = _searched(step, data, method, report)
        searches.append(search)
        told.append(f"{step.name}: {step.height - best.height:+.1f}")
        best = step if step.height > best.height else best
    return best, searches, told


def _searched(step: Candidate, data: Data, method: Scheme, report: Report) -> tuple[Candidate, Search]:
    """The step at the best parameters that a short search finds; as it is where there are none."""
    objective = Objective(step.model, data, method)
    how: dict[str, Any] = {"finish": False, "iterations": ITERATIONS}
    try:
        found = maximise(objective, [objective.start], objective.limits, report, **how)
    except (NumericalError, clock.OutOfTime):
        return step, Search(objective.start, -np.inf, "failed", 0, 0, 0, 0)
    return dataclasses.replace(step, model=objective.at(found.theta), height=found.value), found


def _rough(step: Candidate, columns: Columns, data: Data) -> Candidate:
    """A second part that is not smooth, of a twentieth of the variance to begin with."""
    more = default_kernel(data.X, columns, 0.05 * _variance(data), Matern12)
    kernel = step.kernel + more
    known = [*step.model.kernel.parameters().values(), *more.parameters().values()]
    resolved = kernel.resolve(columns.names).with_parameters(known)
    return Candidate("a rough part", kernel, dataclasses.replace(step.model, kernel=resolved))


def _warped(step: Candidate, columns: Columns, data: Data) -> Candidate | None:
    y = data.Y[np.isfinite(data.Y)]
    _, counts = np.unique(y, return_counts=True)
    if data.noise_var is not None or counts.max() > MOST_EQUAL * len(y):
        return None
    warp = SinhArcsinh().adapted(data.Y)
    return Candidate("a warp of y", step.kernel, dataclasses.replace(step.model, warp=warp))


def _variance(data: Data) -> float:
    """Of y in units of its scale."""
    return float(np.nanvar(data.Y / data.scale))
