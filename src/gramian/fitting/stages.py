"""From a model and data to fitted parameters, in stages where the data are many.

A search takes some fifty evaluations, so one evaluation must be cheap. Where it is not on all rows, the
search begins on a part of them (`fitting/rows.py`), goes on with more, and ends with the most that an
evaluation of about EVALUATION_FLOPS can have; exact inference with as many as let a search last about as long
as the final inference. The final inference is always on all rows. Parameters that a few thousand rows
determine change little with more of them.

Given a time limit, the rows of each stage are those that a search of usual length can have in its share of
what is left beside the final inference (`fitting/budget.py`), up to all of them: half of it on few rows
first, then all.

Approximations choose their landmarks and frequencies with the parameters of the first stage, which is exact:
chosen before any fit they would suit no model.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import clock, journal
from gramian.arrays import Array, is_whole
from gramian.clock import OutOfTime
from gramian.deep.scheme import Deep
from gramian.errors import ParameterError
from gramian.fitting.budget import FEWEST_ROWS, FIRST_EVALUATIONS, LATER_EVALUATIONS, Budget
from gramian.fitting.folds import Foretold
from gramian.fitting.guard import guarded
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.objective import Objective
from gramian.fitting.onward import best_start
from gramian.fitting.progress import Report
from gramian.fitting.reach import within_reach
from gramian.fitting.rows import chosen, described, distinct, in_random_order
from gramian.fitting.sketch import eased, sketch_for, with_own
from gramian.inference.base import Scheme
from gramian.inference.model import Data, Model
from gramian.inference.svgp.inducing import SVGP
from gramian.params import ParameterSpace

FIRST_ROWS = 2000  # of the first stage: a quarter of a second an evaluation
DIRECT_ROWS = 5000  # up to here exact inference is searched on all rows at once
EVALUATION_FLOPS = 3e11  # of one evaluation on the last part: some seconds
# the same of a search that need not reach the last digits, and how long it may be
QUICK_FLOPS, QUICK_ITERATIONS = 1e11, 60
EVALUATIONS = 15  # of a last search on still more rows, which may take as long as the final inference
REACH_ROWS = 10_000  # that say how far a column spreads
# of one evaluation, up to which a search is finished to the last digits: that takes one gradient a parameter
FINISH_FLOPS = 2e10
FIRST_SHARE = 0.5  # of the time of a limited search, for its first stage
SKETCH_SHARE = 0.2  # the same, of one before a search by batches
LEAST_ROWS = 200  # of a first stage, however short the time is
LEAST_EVALUATIONS = 15  # that make a first stage worth it
QUICK_ROWS = 400  # whose kernel values are made without compiled programs (`gram/few.py`)
MORE = 1.5  # times the rows of the stage before, for another one to be worth it
LEAST_WORTH = 0.1  # nats
# rows, in patches, that bring parameters of a local engine near to those of all rows, and
# the nats a row that are then worth a few evaluations more, of which there are few (dem_jacksboro, 133,632
# rows: 2.0316 nats a row where that search begins, 2.0351 after 13 evaluations and 2.0355 after 27)
LOCAL_ROWS, LOCAL_WORTH, LOCAL_ITERATIONS = 10_000, 1e-3, 10
# rows from which on a search with an engine of linear work ends at LEAST_WORTH: an evaluation takes seconds
# there, and the last digits of a search take more of them than all before
LONG_ROWS = 80_000
RENEWALS = 3  # times that a stage goes on with other choices
STARTS = 8  # evaluations that the choice of a start takes (`fitting/onward.py`)


@dataclass(frozen=True)
class Stage:
    """A search on some rows."""

    method: str
    rows: int
    of: int
    rule: str  # how the rows were chosen
    evaluations: int
    stopped: str
    seconds: float

    def __str__(self) -> str:
        some = f"{self.rows:,} of {self.of:,} rows, chosen {self.rule}"
        part = f"all {self.of:,} rows" if self.rows == self.of else some
        how = f"{self.evaluations} evaluations, {self.stopped}, {self.seconds:.1f} s"
        return f"{self.method} on {part}: {how}"


@dataclass(frozen=True)
class Hold:
    """A first part of a search, in which some parameters stay where they are: an alternative to restarts
    where one parameter can explain away what another should (a noise that swallows the signal before the
    lengthscale has found it).

    Names are paths as in `parameters_`, or patterns: Hold("noise"), Hold("kernel.*", steps=10).
    """

    names: tuple[str, ...]
    steps: int = 20  # of the optimiser

    def __init__(self, *names: str, steps: int = 20) -> None:
        if not names or not all(isinstance(name, str) for name in names):
            raise ParameterError(
                f"Hold needs names of parameters as in parameters_, such as Hold('noise'), not {names!r}."
            )
        if not is_whole(steps):
            raise ParameterError(f"Hold: steps={steps!r} must be a whole number from 1 on.")
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "steps", int(steps))

    @staticmethod
    def read(given: Any, model: Model) -> tuple[Hold, ...]:
        """What a person gave as `stages`, checked: every name must be that of a parameter."""
        if given is None:
            return ()
        known = list(model.parameters())
        holds = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        for hold in holds:
            if not isinstance(hold, Hold):
                raise ParameterError(f"stages must be a list of Hold(...), but has {hold!r}.")
            for name in hold.names:
                if not any(fnmatchcase(path, name) for path in known):
                    raise ParameterError(
                        f"stages: there is no parameter {name!r} to hold. There are {', '.join(known)}."
                    )
        return holds

    def limits(
        self, space: ParameterSpace, theta: Array, limits: list[tuple[float, float]]
    ) -> list[tuple[float, float]]:
        """The bounds of a search with the entries of these parameters tied to theta."""
        tied = list(limits)
        for piece in space.pieces:
            if any(fnmatchcase(piece.path, name) for name in self.names):
                tied[piece.at] = [(u, u) for u in theta[piece.at].tolist()]
        return tied


@dataclass(frozen=True)
class Searched:
    """Where all stages together have ended."""

    model: Model
    inference: Scheme  # with its choices made
    search: Search
    stages: tuple[Stage, ...]
    part: Data  # the rows of the last stage
    final: Data  # those that the final inference has time for: as a rule all
    partial: bool = False  # whether that was a part of all
    level: str = ""  # what was changed on all rows after them
    notes: tuple[str, ...] = ()  # sentences for people
    # rows that were left out of a part of it, and what it then foretold of them
    left_out: tuple[Array, Foretold] | None = None


def fit(
    model: Model,
    data: Data,
    method: Scheme,
    restarts: int,
    rng: np.random.Generator,
    report: Report,
    budget: Budget | None = None,
    memory: Callable[[], float] = lambda: np.inf,
    holds: Sequence[Hold] = (),
    enough: float = 0.0,
) -> Searched:
    """Fits the parameters. `budget`: the time there is, for the final inference, too; `memory()` is what the
    stages may use, in bytes; `holds` are stages of the first search; `enough`: nats a row that are worth a
    few evaluations more, 0 where the last digits matter."""
    method.check_fits(model, data.X.shape[1])
    if method.search == "layers":
        from gramian.fitting import layers  # which imports this module

        assert isinstance(method, Deep)  # the one that has layers
        return layers.fit(model, data, method, restarts, rng, report, budget, memory, holds)
    if method.search == "batches":
        from gramian.fitting import stochastic  # which imports this module

        if holds:
            raise ParameterError(
                "stages are for searches by L-BFGS; SVGP has one search, with all parameters at once. Leave"
                " stages out, or fix some."
            )
        assert isinstance(method, SVGP)  # the one that goes by batches
        if budget is None:
            return stochastic.fit(model, data, method, rng, report)
        begun = _sketched(model, data, method, rng, report, budget)
        if begun is not None and begun.search.stopped == "interrupted":
            return _left_at(begun, method, data, budget.kept(method, data, rng), rng)
        end = clock.now() + budget.left(method)
        searched = stochastic.fit(model if begun is None else begun.model, data, method, rng, report, end)
        return searched if begun is None else _after(begun, searched)
    asked, method = method, method.searched
    every, data = data, distinct(data) if method.closed and model.gaussian.noise.trainable else data
    n, d, q = len(data.X), data.X.shape[1], len(data.scale)
    flops = QUICK_FLOPS if enough else EVALUATION_FLOPS
    plan = parts(method, n, d, q, memory, flops) if budget is None else []
    sketch = sketch_for(model.likelihood)
    steps = _all(plan, method, (n, d, q)) if budget is None else in_time(method, budget, memory, sketch)
    order: NDArray[np.intp] | None = None
    searches: list[Search] = []
    stages: list[Stage] = []
    notes: list[str] = []
    inference, part, done = method, data, None
    theta = np.zeros(0)
    for step in steps:
        began, (engine, rows) = clock.now(), (step.engine, step.rows)
        try:
            with clock.until(step.end):
                if order is None and rows < n:
                    order = in_random_order(data, rng)
                before = None if done is None else done.engine
                objective = _begun(step, model, data, order, rng, before)
                starts = [objective.start if searches else _held(objective, holds, report)]
                if not searches:
                    others = objective.space.restarts(restarts, rng)
                    starts += [np.concatenate([theta, objective.inference.free]) for theta in others]
                cost = engine.work(rows, d, q).flops
                cheap = cost <= FINISH_FLOPS
                ample = engine.local and rows > LOCAL_ROWS
                long = engine.linear and rows >= LONG_ROWS
                finish = step.last and engine.smooth and cheap and not (enough or ample or long)
                report.stage(step.described(n), step.usual, step.ahead)
                how_far: dict[str, Any] = {
                    "finish": finish,
                    "enough": worth(enough or LOCAL_WORTH * ample, rows) or LEAST_WORTH * long,
                }
                if enough or ample:
                    most = QUICK_ITERATIONS if cost <= flops else LATER_EVALUATIONS
                    how_far["iterations"] = LOCAL_ITERATIONS if ample else most
                search, note = maximise(objective, starts, objective.limits, report, **how_far), ""
                objective, search = _renewed(objective, search, rng, report, how_far)
                if searches and engine.exact and search.stopped != "interrupted":
                    try:
                        search, note = guarded(objective, search, model, _again(objective, report, how_far))
                    except KeyboardInterrupt:
                        search = dataclasses.replace(search, stopped="interrupted")
        except OutOfTime:
            break  # before there was anything to search
        except KeyboardInterrupt:
            journal.stop()
            if not searches:
                raise  # nothing is known yet
            searches[-1] = dataclasses.replace(searches[-1], stopped="interrupted")
            break
        except ParameterError:
            if not step.sketch:
                raise
            continue  # the likelihood has no such sketch
        theta, inference = objective.split(search.theta)
        found, part, done = objective.at(theta), objective.data, step
        model, theta = with_own(model.likelihood, found, theta) if step.sketch else (found, theta)
        searches.append(search.called(step.described(n)))
        notes += [note] if note else []
        how = search.evaluations, search.stopped, clock.now() - began
        name = f"{inference.name}, {inference.rule_name}" if step.sketch else inference.name
        stages.append(Stage(name, len(part.X), n, described(engine.fit_rule, n), *how))
        if search.stopped == "interrupted":
            break
        if budget is not None and engine.rule_name == method.rule_name:
            budget.learn(engine, rows, search.pace)
    final = every if budget is None else budget.kept(asked, every, rng)
    last = done is not None and done.engine is method
    whole = last and len(part.X) == len(every.X) and final is every
    if not (whole or (last and inference.free.size)):
        inference, began = method, clock.now()
        try:
            inference = method.prepared(model, final, rng)  # of all rows, with the fitted parameters
        except OutOfTime:  # it then chooses where it is used
            if budget is not None:
                budget.passed(method, clock.now() - began)
        except KeyboardInterrupt:
            if not searches or searches[-1].stopped == "interrupted":
                raise  # for the second time
            searches[-1] = dataclasses.replace(searches[-1], stopped="interrupted")
    inference = asked.resumed(inference)
    search = _together(searches, theta, model)
    told = tuple(stages), part, final, len(part.X) < n
    return Searched(model, inference, search, *told, notes=tuple(notes))


def _sketched(
    model: Model, data: Data, method: Scheme, rng: np.random.Generator, report: Report, budget: Budget
) -> Searched | None:
    """A moment's search on few rows, for a search by batches to go on from; None where there is none."""
    # a kernel with points of another kind has them because values between rows cost too much: those of 200
    # images of 28 x 28 pixels take minutes
    if any(kernel.point_columns() is not None for kernel, _ in model.kernels):
        return None
    sketch, (n, d, q) = sketch_for(model.likelihood), budget.size
    if sketch is None:
        return None
    rows = min(n, QUICK_ROWS)
    few = data if rows == n else data.take(np.sort(in_random_order(data, rng)[:rows]))
    end = clock.now() + SKETCH_SHARE * budget.left(method)
    with clock.until(end):
        found = fit(eased(model), few, sketch, 0, rng, report, Budget(end, budget.seconds, (rows, d, q)))
    of_all = tuple(dataclasses.replace(stage, of=n, rule="at random") for stage in found.stages)
    own, theta = with_own(model.likelihood, found.model, found.search.theta)
    return dataclasses.replace(
        found, model=own, search=dataclasses.replace(found.search, theta=theta), stages=of_all
    )


def _left_at(begun: Searched, method: Scheme, data: Data, final: Data, rng: np.random.Generator) -> Searched:
    """A search by batches that was not begun, since somebody has stopped the one before it: its parameters,
    and points chosen with them."""
    inference = method.prepared(begun.model, final, rng)
    return dataclasses.replace(
        begun, inference=inference, final=final, partial=len(begun.part.X) < len(data.X)
    )


def _after(begun: Searched, searched: Searched) -> Searched:
    """A search with the stages and the evaluations of the one before it beside its own."""
    search = _together([begun.search, searched.search], searched.search.theta, searched.model)
    return dataclasses.replace(searched, search=search, stages=(*begun.stages, *searched.stages))


@dataclass(frozen=True)
class PlannedStage:
    """A stage that is to be done."""

    engine: Scheme
    rows: int
    last: bool = False  # whether it is known that none follows
    end: float | None = None  # of `clock.now()`
    usual: int = LATER_EVALUATIONS  # evaluations, as a rule
    ahead: float = 0.0  # what comes after it, in evaluations of its own
    sketch: bool = False  # whether it is a moment's search, by another rule perhaps

    def described(self, n: int) -> str:
        which = f"{n:,} rows" if self.rows == n else f"{self.rows:,} of {n:,} rows"
        return f"{self.engine.name} on {which}"


def _all(
    plan: Sequence[tuple[Scheme, int]], method: Scheme, size: tuple[int, int, int]
) -> Iterator[PlannedStage]:
    """The stages of a plan, each with an idea of what comes after it."""
    flops = [engine.work(rows, *size[1:]).flops for engine, rows in plan]
    final = method.work(*size, gradient=False).flops
    for k, (engine, rows) in enumerate(plan):
        ahead = (sum(LATER_EVALUATIONS * later for later in flops[k + 1 :]) + final) / max(flops[k], 1.0)
        usual = LATER_EVALUATIONS if k else FIRST_EVALUATIONS
        yield PlannedStage(engine, rows, k == len(plan) - 1, usual=usual, ahead=ahead)


def in_time(
    method: Scheme, budget: Budget, memory: Callable[[], float] = lambda: np.inf, sketch: Scheme | None = None
) -> Iterator[PlannedStage]:
    """The stages that a limited time pays for, each decided on when the one before it is done. `sketch` is a
    scheme whose search takes a moment, from which that of a rule of many steps goes on."""
    n = budget.size[0]

    def end() -> float:
        return clock.now() + budget.left(method)

    dense, room = method.on_few_rows(), _room(memory)
    if dense is method and method.fit_rows is not None:
        yield PlannedStage(method, min(method.fit_rows, n), True, end())
        return
    direct = budget.rows(method, n, FIRST_EVALUATIONS, budget.left(method)) == n
    if dense is method and n <= DIRECT_ROWS and direct:
        yield PlannedStage(method, n, True, end())
        return
    small = min(n, FIRST_ROWS, room)
    count, least = FIRST_EVALUATIONS, 0  # rows, for another stage to be worth it
    if sketch is not None and not method.closed:
        rows = budget.rows(sketch, min(small, QUICK_ROWS), count, FIRST_SHARE * budget.left(method))
        rows = max(rows, min(LEAST_ROWS, small))
        yield PlannedStage(sketch, rows, False, end(), sketch=True)
        count, least = LATER_EVALUATIONS, LEAST_ROWS
        if sketch.rule_name == dense.rule_name:
            least = int(MORE * rows)
    rows = budget.rows(dense, small, count, FIRST_SHARE * budget.left(method))
    engine, most = (method, n) if method.learns_from(n) else (dense, min(n, room))
    if rows < small and method.closed:
        # a moment's search, for which nothing is compiled, so that there is one in any case
        rows = min(QUICK_ROWS, small)
    elif rows < FEWEST_ROWS:
        rows = budget.rows(dense, min(small, FEWEST_ROWS), LEAST_EVALUATIONS, budget.left(method))
        if rows < min(least, small):
            return  # the sketch has to do
        rows = min(max(rows, LEAST_ROWS), small)
    yield PlannedStage(dense, rows, rows == most and engine is dense, end())
    if engine is not dense and rows < small:
        more = budget.rows(dense, small, LATER_EVALUATIONS, FIRST_SHARE * budget.left(method))
        if more >= MORE * rows:
            rows = more
            yield PlannedStage(dense, rows, False, end())
    while engine is not dense or rows < most:
        count = LATER_EVALUATIONS + (0 if engine.exact else STARTS)
        more = budget.rows(engine, most, count, budget.left(method))
        if more < min(MORE * rows, most) or not engine.learns_from(more):
            return
        yield PlannedStage(engine, more, more == most, end())
        if more == most:
            return
        rows = more


def _begun(
    step: PlannedStage,
    model: Model,
    data: Data,
    order: NDArray[np.intp] | None,
    rng: np.random.Generator,
    before: Scheme | None,
) -> Objective:
    """What a stage maximises, from where it begins: on its rows, with its engine's choices made. `before`:
    the engine from whose parameters it goes on."""
    engine, own = step.engine, data
    model = eased(model) if step.sketch else model
    if step.rows < len(data.X):
        assert order is not None
        own = data.take(chosen(engine.fit_rule, model, data, step.rows, order, rng))
    nearer = within_reach(model, np.asarray(own.X[:REACH_ROWS])) if before is not None else model
    start = nearer if engine.exact else model
    prepared = engine.prepared(start, own, rng)
    if before is not None and before is not engine and not engine.exact:
        start = best_start([model] if nearer is model else [model, nearer], own, prepared)
    return Objective(start, own, prepared)


def worth(enough: float, rows: int) -> float:
    """Nats that are worth a few evaluations more, from nats a row: at least a tenth, below which parameters
    differ by much less than they are uncertain."""
    return max(enough * rows, LEAST_WORTH) if enough else 0.0


def _again(
    objective: Objective, report: Report, how_far: dict[str, Any]
) -> Callable[[Array, int | None], Search]:
    """Another search of the same objective, from a place and of a length of its own."""

    def search(start: Array, iterations: int | None) -> Search:
        own = how_far if iterations is None else {**how_far, "iterations": iterations}
        return maximise(objective, [start], objective.limits, report, **own)

    return search


def _renewed(
    objective: Objective, search: Search, rng: np.random.Generator, report: Report, how_far: dict[str, Any]
) -> tuple[Objective, Search]:
    """The search gone on with choices for the parameters that it has found, where its own suit them no more:
    each search sees one smooth function, and the last one that of its own parameters."""
    for _ in range(RENEWALS):
        theta, inference = objective.split(search.theta)
        model = objective.at(theta)
        over = journal.chosen("over", bool, clock.over)
        if search.stopped == "interrupted" or over or not inference.stale(model, objective.data):
            break
        try:
            renewed = Objective(model, objective.data, inference.prepared(model, objective.data, rng))
            again = maximise(renewed, [renewed.start], renewed.limits, report, **how_far)
        except OutOfTime:
            break
        objective, search = renewed, _together([search, again], again.theta, model)
    return objective, search


def _room(memory: Callable[[], float]) -> int:
    """Rows whose Gram matrix fits."""
    return journal.chosen("rows that fit", int, lambda: int(min((memory() / 10) ** 0.5, 1e9)))


def parts(
    method: Scheme,
    n: int,
    d: int,
    q: int,
    memory: Callable[[], float] = lambda: np.inf,
    flops: float = EVALUATION_FLOPS,
) -> list[tuple[Scheme, int]]:
    """Which engine is searched on how many rows, one after the other, where time is not limited. `flops`: of
    one evaluation on the last of them."""
    dense = method.on_few_rows()
    if dense is method:
        if method.fit_rows is not None:
            return [(method, min(method.fit_rows, n))]
        if n <= DIRECT_ROWS and (method.closed or method.work(n, d, q).flops <= flops):
            return [(method, n)]
        most = _affordable(method, n, d, q, flops)
        more = _affordable(method, n, d, q, method.work(n, d, q, gradient=False).flops / EVALUATIONS)
        counts = {FIRST_ROWS, most, max(most, more)}
        return [(method, rows) for rows in sorted(counts)]
    room = _room(memory)
    first: list[tuple[Scheme, int]] = [(dense, min(n, FIRST_ROWS, room))]
    if not method.learns_from(n):
        return first if n <= FIRST_ROWS else [*first, (dense, min(_affordable(dense, n, d, q, flops), room))]
    if method.local and n >= 2 * LOCAL_ROWS:
        first.append((method, LOCAL_ROWS))
    if method.work(n, d, q).flops <= flops:
        return [*first, (method, n)]
    most = _affordable(method, n, d, q, flops)
    if most > FIRST_ROWS:
        return [*first, (method, most)]
    return [*first, (dense, min(n, _affordable(dense, n, d, q, flops), room))]


def _held(objective: Objective, holds: Sequence[Hold], report: Report) -> Array:
    """Where a search starts after the stages in which some parameters stay."""
    theta = objective.start
    for hold in holds:
        limits = hold.limits(objective.space, theta, objective.limits)
        theta = maximise(objective, [theta], limits, report, finish=False, iterations=hold.steps).theta
    return theta


def _affordable(method: Scheme, n: int, d: int, q: int, flops: float) -> int:
    """The most rows, in steps of a thousand, whose evaluation stays within so many flops."""
    if method.work(n, d, q).flops <= flops:  # and not all but a few, which would have to be chosen
        return n
    low, high = 1, max(2, n // 1000)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if method.work(1000 * middle, d, q).flops <= flops else (low, middle - 1)
    return min(n, 1000 * low)


def _together(searches: Sequence[Search], theta: Array, model: Model) -> Search:
    if not searches:
        return Search(ParameterSpace(model.parameters()).theta, np.nan, "time limit", 0, 0, 0, 0)
    sums = {k: sum(getattr(s, k) for s in searches) for k in ("iterations", "evaluations", "failures")}
    paths = tuple(path for search in searches for path in search.paths)
    return dataclasses.replace(searches[-1], theta=theta, starts=searches[0].starts, paths=paths, **sums)
