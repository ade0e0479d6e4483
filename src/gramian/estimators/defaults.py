"""The model that is taken where nobody names one: a path, each step from where one before it ended.

    plain      scale Matern-5/2, a lengthscale a column
    rough      + scale Matern-1/2 with lengthscales of its own: what is not smooth, what columns do together
    two        RBF + Matern-5/2: one part smoother than the plain one, the other to follow what it misses
    warp       of the best of these: a monotone map of y (gramian.warps)
    outliers   all of these once more, with rows that are taken for outliers, if there are some

The path is walked on up to ROWS rows, with searches that need not be finished. Where there are more rows,
some of those that are left judge: a step is kept when it raises the log density of their y, by more than
twice its standard error. What that loses is a hundredth of a nat a row; what it wins is that a warp for which
little speaks does not bend what is foretold far from all rows. Where the path has all rows, a step is kept
when it raises log p(y | theta) + log p(theta), the height of the parameters' posterior: the density of the
priors at the new numbers is what they cost. On four splits of the Boston data the rough part raises the
evidence by 0.05 nats a row, the density of left-out rows by 0.06, and lowers that of test rows by 0.06; the
height refuses it. On three of the concrete data it takes it, and test rows gain 0.29. On 1,000 rows of the
elevators and bike data (18 and 17 columns) the height takes a second part, and test rows lose 0.02 and more
than one; rows that judge refuse it.

What the path ends with is then fitted on all rows. Where y was rounded (one value fills a tenth of the rows),
the path sees each y spread evenly over what it was rounded from, and the warp that it finds stays.
"""

from __future__ import annotations

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gramian import clock, journal
from gramian.arrays import Array
from gramian.corrections import Calibration
from gramian.data.inputs import Columns
from gramian.errors import NumericalError, ParameterError
from gramian.estimators.build import Built, default_kernel, further_kernel
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.objective import Objective
from gramian.fitting.outliers import WORTH, alike, log_prior, outliers
from gramian.fitting.progress import Report
from gramian.fitting.rows import in_random_order, repeats
from gramian.fitting.stages import worth
from gramian.inference import Data, Model, Scheme
from gramian.kernels import RBF, Kernel, Matern12, Matern52
from gramian.linalg.factor import finite
from gramian.params import fixed
from gramian.predictive import log_normal
from gramian.warps import SinhArcsinh

FEWEST = 10  # rows from which on the data can say anything about the kind of model
ROWS = 1000  # that the path is walked on
# the same where there is less time than BRIEF seconds: nothing is compiled for so few
QUICK_ROWS, BRIEF = 400, 10.0
HELD = 2000  # of the others, that judge it
FEWEST_HELD = 300  # that can
SURE = 2.0  # standard errors by which they must like a step better
# columns up to which rows that judge are missed alike where they lie together, and how many are a place. The
# standard error is then that of sums over places, where it is larger (Liang and Zeger 1986): 1,000 of 105,569
# land temperatures see the others across gaps, and one of five draws took a warp for 0.01 nats a row.
FEW_COLUMNS, TOGETHER = 5, 32
ITERATIONS = 60  # of a search on the path
TURNS = 6  # of outliers and parameters
# nats of left-out rows that outliers must be worth: heavy tails that a warp suits as well are worth up to ten
CLEAR = 12.0
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
    excess: Array | None = None  # variances of the rows that are taken for outliers

    def above(self, other: Candidate) -> float:
        """Nats by which it is better."""
        if self.densities is None or other.densities is None:
            return self.height - other.height
        return float(np.sum(self.densities - other.densities)) if self._judged_as(other) else -np.inf

    def beats(self, other: Candidate, places: NDArray[np.intp] | None = None) -> bool:
        """Whether it is the better one, beyond what chance does. `places`: which of the rows that judge lie
        together, and count as one where they say the same."""
        if self.densities is None or other.densities is None:
            return self.height > other.height
        if not self._judged_as(other):
            return False
        gain = self.densities - other.densities
        error = np.sqrt(len(gain)) * np.std(gain)
        if places is not None:
            sums = np.bincount(places, weights=gain)
            error = max(error, np.sqrt(len(sums)) * np.std(sums))
        return bool(np.sum(gain) > SURE * error)

    def _judged_as(self, other: Candidate) -> bool:
        """Whether both have been judged: there was time for it, and nothing failed."""
        return all(one.densities is not None and finite(one.densities) for one in (self, other))


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
        before = tuple(path for one in self.searches for path in one.paths)
        return dataclasses.replace(search, paths=before + search.paths, **sums)


def chosen(
    built: Built, columns: Columns, method: Scheme, warped: bool, rng: np.random.Generator, report: Report
) -> Choice | None:
    """The kind of model of numbers for these data, at parameters from which a search on all of them goes on;
    None where that is not for them to say. `warped`: whether y may be warped."""
    data = built.rows
    if len(data.X) < FEWEST or data.Y.shape[1] > 1 or not _variance(data) > LEAST:
        return None
    again = repeats(data.X, data.Y)
    counted = np.isfinite(data.Y[:, 0]) & (True if again is None else ~again.copy)  # copies count once
    ample = journal.chosen("ample", bool, lambda: clock.end() - clock.now() >= BRIEF)
    most = ROWS if ample else QUICK_ROWS
    rows, judging = parted(data, np.flatnonzero(counted), most, rng)
    data, held = data.take(rows), None if judging is None else data.take(judging)
    if len(data.X) < FEWEST or not _variance(data) > LEAST:
        return None
    values, counts = np.unique(data.Y, return_counts=True)
    rounded = counts.max() > MOST_EQUAL * len(data.Y)
    grid = FEWEST_VALUES <= len(values) <= len(data.Y) / ROWS_A_VALUE
    warped = warped and data.noise_var is None and (grid or not rounded)
    if rounded and warped:
        data = _spread_out(data, values)
        held = None if held is None else _spread_out(held, np.unique(held.Y))
    walk = NumbersWalk(columns, data, held, method.on_few_rows(), report, warped)
    choice = walk.choice(built)
    if choice is not None:
        choice = walk.with_outliers(choice, rows)
    model = built.model if choice is None else choice.built.model
    if choice is None or not rounded or model.warp is None:
        return choice
    # y as it is would make it steep at its values
    held_fast = [fixed(p.value) for p in model.warp.parameters().values()]
    model = dataclasses.replace(model, warp=model.warp.with_parameters(held_fast))
    return dataclasses.replace(choice, built=choice.built._replace(model=model))


def parted(
    data: Data, among: NDArray[np.intp], rows: int, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.intp] | None]:
    """Of some rows so many at random for a path, and of the others some that judge it, if there are
    enough."""
    if len(among) <= rows:
        return among, None
    order = among[in_random_order(data.take(among) if len(among) < len(data.X) else data, rng)]
    enough = len(order) >= rows + FEWEST_HELD
    return np.sort(order[:rows]), np.sort(order[rows : rows + HELD]) if enough else None


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

    @cached_property
    def places(self) -> NDArray[np.intp] | None:
        """Which of the rows that judge lie together, (held,), in few columns."""
        if self.held is None or not 0 < self.held.X.shape[1] <= FEW_COLUMNS:
            return None
        return _parts(np.asarray(self.held.X, dtype=np.float64), TOGETHER)

    @property
    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """What is tried beside the plain model, one after the other."""

    @abstractmethod
    def densities(self, step: Candidate, held: Data) -> Array:
        """log p(y) of each row that judges."""

    def _walked(self, plain: Candidate) -> Candidate:
        """The best on the path."""
        return self._further(self.searched(plain))

    def _further(self, plain: Candidate) -> Candidate:
        """The best from there on."""
        best = plain
        for further in self.steps:
            if journal.chosen("over", bool, clock.over) or self.searches[-1].stopped == "interrupted":
                continue
            step = further(plain, best)
            if step is not None and self._suits(step):
                step = self.searched(step)
                best = step if step.beats(best, self.places) else best
        self.best = best
        return best

    def _suits(self, step: Candidate) -> bool:
        """Whether the method that was asked for can do it."""
        try:
            self.method.check_fits(step.model, self.data.X.shape[1])
        except ParameterError:
            return False
        return True

    def rows_of(self, step: Candidate) -> Data:
        """The rows as a step sees them."""
        return dataclasses.replace(self.data, excess=step.excess)

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
        objective = Objective(step.model, self.rows_of(step), self.method)
        how: dict[str, Any] = {"finish": False, "iterations": ITERATIONS}
        how["enough"] = worth(ON_PATH, len(self.data.X))
        searched: Search | None = None
        try:
            found = searched = maximise(objective, [objective.start], objective.limits, self.report, **how)
            model = objective.at(found.theta)
            height = found.value + step.settled
            step = dataclasses.replace(step, model=model, height=height)
            if self.held is not None:
                step = dataclasses.replace(step, densities=self._judged(step, self.held))
        except (NumericalError, clock.OutOfTime, KeyboardInterrupt) as stop:
            interrupted = isinstance(stop, KeyboardInterrupt)
            if interrupted:
                journal.stop()
            if interrupted and searched is None and not self.tried:
                raise  # nothing is known yet
            why = "interrupted" if interrupted else "failed"
            found = Search(objective.start, -np.inf, why, 0, 0, 0, 0)
            if interrupted and searched is not None:  # while it was judged
                found = dataclasses.replace(searched, stopped=why)
            none = None if self.held is None else np.full(len(self.held.X), -np.inf)
            step = dataclasses.replace(step, densities=none)
        self.searches.append(found.called(step.name))
        self.tried.append(step)
        return step

    def _judged(self, step: Candidate, held: Data) -> Array:
        """What the rows that judge say; nothing good where the time is over, but its parameters are found."""
        try:
            return self.densities(step, held)
        except clock.OutOfTime:
            return np.full(len(held.X), -np.inf)

    def summed(self, name: str, plain: Candidate, first: Kernel, more: Kernel) -> Candidate:
        """Two parts, the first with the parameters of the plain one."""
        kernel = first + more
        known = [*plain.model.kernel.parameters().values(), *more.parameters().values()]
        resolved = kernel.resolve(self.columns.names).with_parameters(known)
        model = dataclasses.replace(plain.model, kernel=resolved)
        name += " with outliers" if plain.excess is not None else ""
        return Candidate(name, kernel, model, settled=plain.settled, excess=plain.excess)


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

    def densities(self, step: Candidate, held: Data) -> Array:
        """log p(y) of each row that judges, its residuals calibrated as those of left-out rows will be."""
        model = step.model
        slopes = 0.0 if model.warp is None else model.warp.log_slope(held.Y)[:, 0]
        return _calibrated(*self.foretold(step, held)) + slopes

    def with_outliers(self, choice: Choice, rows: NDArray[np.intp]) -> Choice:
        """The choice with outliers among all rows, where the path, which has these `rows`, has ended with
        some: its own, and others that its model takes for ones."""
        best, data = self.best, choice.built.rows
        if best.excess is None:
            return choice
        excess, others = np.zeros(len(data.X)), np.ones(len(data.X), bool)
        others[rows] = False
        if others.any():
            with contextlib.suppress(clock.OutOfTime):  # rows that nobody has looked at are none
                seen = self.foretold(best, data.take(np.flatnonzero(others)))
                excess[others] = alike(*seen, best.excess)
        excess[rows] = best.excess
        count = int(np.count_nonzero(excess))
        line = f"rows that are taken for outliers: {count:,} of {len(data.X):,}"
        built = choice.built._replace(rows=dataclasses.replace(data, excess=excess))
        return dataclasses.replace(choice, built=built, lines=(*choice.lines, line))

    def _walked(self, plain: Candidate) -> Candidate:
        """The best on the path; where some rows seem to be outliers, the path is walked once more with them.
        They must raise the height, and the density of left-out rows, each foretold as if it were none:
        otherwise what is called outliers is what the model does not know."""
        best = super()._walked(plain)
        try:
            start = self._with_outliers(self.tried[0])
            if start is not None:
                other = self._further(start)
                gain = np.sum(self._left_out_densities(other)) - np.sum(self._left_out_densities(best))
                best = other if other.beats(best, self.places) and gain > CLEAR else best
        except (NumericalError, clock.OutOfTime):
            pass  # there is a model without outliers
        except KeyboardInterrupt:
            journal.stop()
            self.searches.append(dataclasses.replace(self.searches[-1], stopped="interrupted"))
        self.best = best
        return best

    def _with_outliers(self, plain: Candidate) -> Candidate | None:
        """The plain model with outliers, found in turns with its parameters; None where there are none."""
        best: Candidate | None = None
        for _ in range(TURNS):
            over = journal.chosen("over", bool, clock.over)
            if over or self.searches[-1].stopped in ("interrupted", "failed"):
                break
            now = plain if best is None else best
            found = outliers(*self._left_out(now), now.excess)
            if found is None or (best is None and found.gain < WORTH):
                break
            if now.excess is not None and np.array_equal(found.excess > 0, now.excess > 0):
                break
            settled, name = log_prior(found.excess), f"{plain.name} with outliers"
            start = dataclasses.replace(now, name=name, excess=found.excess, settled=settled)
            best = self.searched(start)
            self.tried.pop()
        if best is not None:
            self.tried.append(best)
        return best

    def _left_out_densities(self, step: Candidate) -> Array:
        """log p(y) of each row as all others foretell it."""
        warp = step.model.warp
        slopes = 0.0 if warp is None else warp.log_slope(self.data.Y)[:, 0]
        return _calibrated(*self._left_out(step)) + slopes

    def _left_out(self, step: Candidate) -> tuple[Array, Array]:
        """Residual and variance of each row as all others foretell it, were it none of the outliers."""
        data, model = self.rows_of(step), step.model
        posterior = self.method.infer(model, data).posterior
        mean, var = self.method.cavities(model, data, posterior)
        return data.under(model).Y[:, 0] - mean[:, 0], self._observed(model, data, var)

    def foretold(self, step: Candidate, held: Data) -> tuple[Array, Array]:
        """The same of rows that the path has not seen."""
        posterior = self.method.infer(step.model, self.rows_of(step)).posterior
        mean, var = posterior.moments(held.X)
        return held.under(step.model).Y[:, 0] - mean[:, 0], self._observed(step.model, held, var)

    def _observed(self, model: Model, data: Data, var: Array) -> Array:
        """The variance of an observation, from that of f."""
        known = 0.0 if data.noise_var is None else data.noise_var
        return np.asarray(var[:, 0] + model.gaussian.variances()[0] + known)

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
        model = dataclasses.replace(best.model, warp=warp)
        return dataclasses.replace(best, name=f"{best.name} of warped y", model=model)


def _parts(X: Array, most: int) -> NDArray[np.intp]:
    """Numbers of parts of the rows, each cut in two at the median of its widest column until it has `most`
    rows or fewer."""
    unit, number = np.nanstd(X, axis=0), np.zeros(len(X), np.intp)
    scaled = np.nan_to_num(X / np.where(unit > 0, unit, 1.0))
    waiting, done = [np.arange(len(X))], 0
    while waiting:
        rows = waiting.pop()
        if len(rows) <= most:
            number[rows], done = done, done + 1
            continue
        column = scaled[rows, int(np.argmax(np.ptp(scaled[rows], axis=0)))]
        waiting += np.array_split(rows[np.argsort(column, kind="stable")], 2)
    return number


def _calibrated(residual: Array, var: Array) -> Array:
    """The log density of each residual, after a calibration."""
    z = residual / np.sqrt(var)
    calibration = Calibration.of(z)
    by_z = log_normal(z, np.zeros(1), np.ones(1)) if calibration is None else calibration.log_density(z)
    return np.asarray(by_z - 0.5 * np.log(var))


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
