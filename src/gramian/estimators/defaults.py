"""The model that is taken where nobody names one: a path, each step from where one before it ended.

    plain      scale Matern-5/2, a lengthscale a column
    rough      + scale Matern-1/2 with lengthscales of its own: what is not smooth, what columns do together
    two        RBF + Matern-5/2: one part smoother than the plain one, the other to follow what it misses
    warp       of the best of these: a monotone map of y (gramian.warps)

The path is walked on up to ROWS rows, with searches that need not be finished. Where there are more rows,
some of those that are left judge: a step is kept when it raises the log density of their y, by more than its
standard error. Where the path has all rows, a step is kept when it raises log p(y | theta) + log p(theta),
the height of the parameters' posterior: the density of the priors at the new numbers is what they cost. On
four splits of the Boston data the rough part raises the evidence by 0.05 nats a row, the density of left-out
rows by 0.06, and lowers that of test rows by 0.06; the height refuses it. On three of the concrete data it
takes it, and test rows gain 0.29. On 1,000 rows of the elevators and bike data (18 and 17 columns) the height
takes a second part, and test rows lose 0.02 and more than one; rows that judge refuse it.

What the path ends with is then fitted on all rows. Where y was rounded (one value fills a tenth of the rows),
the path sees each y spread evenly over what it was rounded from, and the warp that it finds stays.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from gramian import clock
from gramian.arrays import Array
from gramian.corrections import Calibration
from gramian.data.inputs import Columns
from gramian.errors import NumericalError
from gramian.estimators.build import Built, default_kernel, further_kernel
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.objective import Objective
from gramian.fitting.progress import Report
from gramian.fitting.rows import distinct, in_random_order
from gramian.fitting.stages import worth
from gramian.inference import Data, Model, Scheme
from gramian.kernels import RBF, Kernel, Matern12, Matern52
from gramian.params import fixed
from gramian.predictive import log_normal
from gramian.warps import SinhArcsinh

FEWEST = 10  # rows from which on the data can say anything about the kind of model
ROWS = 1000  # that the path is walked on
# the same where there is less time than BRIEF seconds: nothing is compiled for so few
QUICK_ROWS, BRIEF = 400, 10.0
HELD = 2000  # of the others, that judge it
FEWEST_HELD = 300  # that can
ITERATIONS = 60  # of a search on the path
ON_PATH = 3e-4  # nats a row that are worth a few evaluations more: steps differ by far more
ENOUGH = 1e-4  # the same of the search on all rows: what less could do for a prediction nobody sees
# of the rows with the same y, from which on y was rounded: a density can be as steep as one likes at a value
# that is taken again and again
MOST_EQUAL = 0.1
# of a rounded y, from how many values on it can be warped, and how many rows each must have on average: with
# fewer rows y was not rounded, but has one value that is special
FEWEST_VALUES, ROWS_A_VALUE = 10, 5
GOLDEN = 0.6180339887498949  # multiples of it, but for whole numbers, spread evenly over (0, 1)
SHARE = 0.4  # of the time that is left
LEAST = 1e-20  # variance of y in units of its scale: below, it is constant


@dataclass(frozen=True)
class Candidate:
    """A model on the path, at its best parameters."""

    name: str
    kernel: Kernel  # as people write it, with names of columns
    model: Model
    height: float = -np.inf  # of the parameters' posterior
    densities: Array | None = None  # of y in the rows that judge, where there are any
    settled: float = 0.0  # of the height: what was settled before the search

    def above(self, other: Candidate) -> float:
        """Nats by which it is better."""
        if self.densities is None or other.densities is None:
            return self.height - other.height
        return float(np.sum(self.densities - other.densities))

    def beats(self, other: Candidate) -> bool:
        """Whether it is the better one, beyond what chance does."""
        if self.densities is None or other.densities is None:
            return self.height > other.height
        gain = self.densities - other.densities
        return bool(np.all(np.isfinite(gain))) and np.sum(gain) > np.sqrt(len(gain)) * np.std(gain)


# from the plain model and the best so far to another one; None where the data do not suit it
Step: TypeAlias = Callable[[Candidate, Candidate], Candidate | None]


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
    """The kind of model of numbers for these data, at parameters from which a search on all of them goes on;
    None where that is not for them to say. `warped`: whether y may be warped."""
    data = built.rows
    if len(data.X) < FEWEST or data.Y.shape[1] > 1 or not _variance(data) > LEAST:
        return None
    observed = np.isfinite(data.Y[:, 0])
    data = distinct(data if np.all(observed) else data.take(np.flatnonzero(observed)))
    most = ROWS if clock.end() - clock.now() >= BRIEF else QUICK_ROWS
    data, held = parted(data, most, rng)
    if len(data.X) < FEWEST or not _variance(data) > LEAST:
        return None
    values, counts = np.unique(data.Y, return_counts=True)
    rounded = counts.max() > MOST_EQUAL * len(data.Y)
    grid = FEWEST_VALUES <= len(values) <= len(data.Y) / ROWS_A_VALUE
    warped = warped and data.noise_var is None and (grid or not rounded)
    if rounded and warped:
        data = _spread_out(data, values)
        held = None if held is None else _spread_out(held, np.unique(held.Y))
    choice = NumbersWalk(columns, data, held, method.on_few_rows(), report, warped).choice(built)
    model = built.model if choice is None else choice.built.model
    if choice is None or not rounded or model.warp is None:
        return choice
    # y as it is would make it steep at its values
    held_fast = [fixed(p.value) for p in model.warp.parameters().values()]
    model = dataclasses.replace(model, warp=model.warp.with_parameters(held_fast))
    return dataclasses.replace(choice, built=choice.built._replace(model=model))


def parted(data: Data, rows: int, rng: np.random.Generator) -> tuple[Data, Data | None]:
    """So many rows at random for a path, and of the others some that judge it, if there are enough."""
    if len(data.X) <= rows:
        return data, None
    order, held = in_random_order(data, rng), None
    if len(order) >= rows + FEWEST_HELD:
        held = data.take(np.sort(order[rows : rows + HELD]))
    return data.take(np.sort(order[:rows])), held


class Walk(ABC):
    """A path on some rows."""

    def __init__(
        self, columns: Columns, data: Data, held: Data | None, method: Scheme, report: Report
    ) -> None:
        self.columns, self.data, self.held = columns, data, held
        self.method, self.report = method, report
        self.searches: list[Search] = []
        self.tried: list[Candidate] = []

    def choice(self, built: Built) -> Choice | None:
        """Where it ends; None where there was no time for it."""
        now = clock.now()
        with clock.until(now + SHARE * max(clock.end() - now, 0.0)):
            best = self._walked(Candidate("Matern-5/2", built.kernel, built.model))
        if self.searches[0].evaluations < 2 and self.searches[-1].stopped != "interrupted":
            return None
        n, of = len(self.data.X), len(built.rows.X)
        rows = "all" if n == of else f"{n:,} of {of:,}"
        made = built._replace(kernel=best.kernel, model=best.model)
        return Choice(made, tuple(self.searches), self.told(rows))

    @property
    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """What is tried beside the plain model, one after the other."""

    @abstractmethod
    def densities(self, model: Model, held: Data) -> Array:
        """log p(y) of each row that judges."""

    def _walked(self, plain: Candidate) -> Candidate:
        """The best on the path."""
        best = plain = self.searched(plain)
        for further in self.steps:
            if clock.over() or self.searches[-1].stopped == "interrupted":
                continue
            step = further(plain, best)
            if step is not None:
                step = self.searched(step)
                best = step if step.beats(best) else best
        self.best = best
        return best

    def told(self, rows: str) -> tuple[str, ...]:
        """Which model, by what, and how far the others are behind it, the runner-up first."""
        by, share, unit = f"the height of its parameters' posterior, on {rows} rows", 1, "in nats"
        if self.held is not None:
            share, unit = len(self.held.X), "in nats a row"
            by = f"the density it gives to {share:,} rows, from {rows}"
        others = [(one.above(self.best) / share, one.name) for one in self.tried if one is not self.best]
        others = [(gain, name) for gain, name in others if np.isfinite(gain)]  # there was time for these
        listed = "; ".join(f"{name} {gain:+.2g}" for gain, name in sorted(others, reverse=True))
        first = f"model by {by}: {self.best.name}"
        return (first, f"others, {unit}: {listed}") if others else (first,)

    def searched(self, step: Candidate) -> Candidate:
        """The step at the best parameters that a short search finds; as it is where there are none."""
        objective = Objective(step.model, self.data, self.method)
        how: dict[str, Any] = {"finish": False, "iterations": ITERATIONS}
        how["enough"] = worth(ON_PATH, len(self.data.X))
        try:
            found = maximise(objective, [objective.start], objective.limits, self.report, **how)
            model = objective.at(found.theta)
            densities = None if self.held is None else self.densities(model, self.held)
            height = found.value + step.settled
            step = dataclasses.replace(step, model=model, height=height, densities=densities)
        except (NumericalError, clock.OutOfTime, KeyboardInterrupt) as stop:
            interrupted = isinstance(stop, KeyboardInterrupt)
            if interrupted and not self.tried:
                raise  # nothing is known yet
            why = "interrupted" if interrupted else "failed"
            found = Search(objective.start, -np.inf, why, 0, 0, 0, 0)
            none = None if self.held is None else np.full(len(self.held.X), -np.inf)
            step = dataclasses.replace(step, densities=none)
        self.searches.append(found)
        self.tried.append(step)
        return step

    def summed(self, name: str, plain: Candidate, first: Kernel, more: Kernel) -> Candidate:
        """Two parts, the first with the parameters of the plain one."""
        kernel = first + more
        known = [*plain.model.kernel.parameters().values(), *more.parameters().values()]
        resolved = kernel.resolve(self.columns.names).with_parameters(known)
        return Candidate(name, kernel, dataclasses.replace(plain.model, kernel=resolved))


class NumbersWalk(Walk):
    """Of numbers, under Gaussian noise."""

    def __init__(
        self, columns: Columns, data: Data, held: Data | None, method: Scheme, report: Report, warped: bool
    ) -> None:
        super().__init__(columns, data, held, method, report)
        self.warped = warped

    @property
    def steps(self) -> Sequence[Step]:
        numeric = len(self.columns.categories) < self.data.X.shape[1]
        return (*([self._rough, self._two] if numeric else []), *([self._warped] if self.warped else []))

    def densities(self, model: Model, held: Data) -> Array:
        """log p(y) of each row that judges, its residuals calibrated as those of left-out rows will be."""
        posterior = self.method.infer(model, self.data).posterior
        mean, var = posterior.moments(held.X)
        known = 0.0 if held.noise_var is None else held.noise_var
        var = var[:, 0] + model.gaussian.variances()[0] + known
        residuals = held.under(model).Y[:, 0] - mean[:, 0]
        z = residuals / np.sqrt(var)
        calibration = Calibration.of(z)
        by_z = log_normal(z, np.zeros(1), np.ones(1)) if calibration is None else calibration.log_density(z)
        slopes = 0.0 if model.warp is None else model.warp.log_slope(held.Y)[:, 0]
        return by_z - 0.5 * np.log(var) + slopes

    def _rough(self, plain: Candidate, best: Candidate) -> Candidate:
        """A second part that is not smooth."""
        more = further_kernel(self.data.X, self.columns, _variance(self.data), Matern12)
        return self.summed("Matern-5/2 + Matern-1/2", plain, plain.kernel, more)

    def _two(self, plain: Candidate, best: Candidate) -> Candidate:
        """A first part that is smoother, and a second one as smooth as the plain one, of shorter reach."""
        variance = _variance(self.data)
        first = default_kernel(self.data.X, self.columns, variance, RBF)
        more = further_kernel(self.data.X, self.columns, variance, Matern52)
        return self.summed("RBF + Matern-5/2", plain, first, more)

    def _warped(self, plain: Candidate, best: Candidate) -> Candidate:
        """A map of y."""
        warp = SinhArcsinh().adapted(self.data.Y)
        return Candidate(f"{best.name} of warped y", best.kernel, dataclasses.replace(best.model, warp=warp))


def _spread_out(data: Data, values: Array) -> Data:
    """The same with each y spread evenly over what it was rounded from: halfway to the values beside it."""
    if len(values) < 2:
        return data
    half, at = np.diff(values) / 2, np.searchsorted(values, data.Y[:, 0])
    below, above = np.append(half[:1], half), np.append(half, half[-1:])
    order = np.argsort(at, kind="stable")
    rank = np.empty(len(at))  # among the rows with the same y
    rank[order] = np.arange(len(at)) - np.searchsorted(at[order], at[order])
    share = (rank + 0.5) * GOLDEN % 1
    return dataclasses.replace(data, Y=data.Y + (share * above[at] - (1 - share) * below[at])[:, None])


def _variance(data: Data) -> float:
    """Of y in units of its scale."""
    return float(np.nanvar(data.Y / data.scale))
