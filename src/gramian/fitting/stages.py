"""From a model and data to fitted parameters, in stages where the data are many.

A search takes some fifty evaluations, so one evaluation must be cheap. Where it is not on all rows, the
search begins on a part of them (`fitting/rows.py`), goes on with more, and ends with the most that an
evaluation of about EVALUATION_FLOPS can have; exact inference with as many as let a search last about as long
as the final inference; given a time limit, also on all rows while time is left. The final inference is always
on all rows. Parameters that a few thousand rows determine change little with more of them.

Approximations choose their landmarks and frequencies with the parameters of the first stage, which is exact:
chosen before any fit they would suit no model.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from gramian.arrays import Array, is_whole
from gramian.errors import ParameterError
from gramian.fitting.lbfgs import Search, maximise
from gramian.fitting.objective import Objective
from gramian.fitting.onward import best_start
from gramian.fitting.progress import Report
from gramian.fitting.reach import within_reach
from gramian.fitting.rows import chosen, described, distinct, in_random_order
from gramian.inference.base import Scheme
from gramian.inference.model import Data, Model
from gramian.inference.svgp.inducing import SVGP
from gramian.params import ParameterSpace

FIRST_ROWS = 2000  # of the first stage: a quarter of a second an evaluation
DIRECT_ROWS = 5000  # up to here exact inference is searched on all rows at once
EVALUATION_FLOPS = 3e11  # of one evaluation on the last part: some seconds
EVALUATIONS = 15  # of a last search on still more rows, which may take as long as the final inference
REACH_ROWS = 10_000  # that say how far a column spreads
# of one evaluation, up to which a search is finished to the last digits: that takes one gradient a parameter
FINISH_FLOPS = 2e10


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
    partial: bool = False  # whether that was a part of all
    level: str = ""  # what was changed on all rows after them


def fit(
    model: Model,
    data: Data,
    method: Scheme,
    restarts: int,
    rng: np.random.Generator,
    report: Report,
    deadline: float | None = None,
    after: float = 0.0,
    memory: Callable[[], float] = lambda: np.inf,
    holds: Sequence[Hold] = (),
) -> Searched:
    """Fits the parameters. `deadline` is a time of `time.monotonic()`, by which a final inference of `after`
    seconds shall be done, too; `memory()` is what the stages may use, in bytes; `holds` are stages of the
    first search."""
    last = None if deadline is None else deadline - after
    method.check_fits(model, data.X.shape[1])
    if method.search == "batches":
        from gramian.fitting import stochastic  # which imports this module

        if holds:
            raise ParameterError(
                "stages are for searches by L-BFGS; SVGP has one search, with all parameters at once. Leave"
                " stages out, or fix some."
            )
        assert isinstance(method, SVGP)  # the one that goes by batches
        return stochastic.fit(model, data, method, rng, report, last)
    asked, method = method, method.searched
    every, data = data, distinct(data) if method.closed and model.gaussian.noise.trainable else data
    n = len(data.X)
    plan = parts(method, n, data.X.shape[1], len(data.scale), deadline is not None, memory)
    order = in_random_order(data, rng) if any(rows < n for _, rows in plan) else np.arange(0)
    searches: list[Search] = []
    stages: list[Stage] = []
    inference = method
    for number, (engine, rows) in enumerate(plan):
        part = data if rows == n else data.take(chosen(engine.fit_rule, model, data, rows, order, rng))
        began = time.monotonic()
        nearer = within_reach(model, np.asarray(part.X[:REACH_ROWS])) if searches else model
        model = nearer if engine.exact else model
        inference = engine.prepared(model, part, rng)
        if searches and not engine.exact:
            model = best_start([model] if nearer is model else [model, nearer], part, inference)
        objective, starts = Objective(model, part, inference), []
        if searches:
            starts.append(objective.start)
        else:
            starts.append(_held(objective, holds, report, _share(last, number, len(plan))))
            others = objective.space.restarts(restarts, rng)
            starts += [np.concatenate([theta, inference.free]) for theta in others]
        cheap = engine.work(rows, part.X.shape[1], len(part.scale)).flops <= FINISH_FLOPS
        finish = number == len(plan) - 1 and engine.smooth and cheap
        end = _share(last, number, len(plan))
        search = maximise(objective, starts, objective.limits, report, end, finish=finish)
        theta, inference = objective.split(search.theta)
        model = objective.at(theta)
        searches.append(search)
        how = search.evaluations, search.stopped, time.monotonic() - began
        stages.append(Stage(inference.name, len(part.X), n, described(engine.fit_rule, n), *how))
        out_of_time = last is not None and time.monotonic() > last
        if search.stopped == "interrupted" or (search.stopped == "time limit" and out_of_time):
            break
    last_rows = len(part.X) == len(every.X) or inference.free.size
    settled = len(stages) == len(plan) and plan[-1][0] is method and last_rows
    # of all rows, with the fitted parameters
    inference = asked.resumed(inference if settled else method.prepared(model, every, rng))
    return Searched(model, inference, _together(searches, theta), tuple(stages), part, len(part.X) < n)


def parts(
    method: Scheme, n: int, d: int, q: int, limited: bool, memory: Callable[[], float] = lambda: np.inf
) -> list[tuple[Scheme, int]]:
    """Which engine is searched on how many rows, one after the other. `limited`: a time limit ends the last
    stage, so it may be on all rows."""
    dense = method.on_few_rows()
    if dense is method:
        if method.fit_rows is not None:
            return [(method, min(method.fit_rows, n))]
        if n <= DIRECT_ROWS and (method.closed or method.work(n, d, q).flops <= EVALUATION_FLOPS):
            return [(method, n)]
        most = _affordable(method, n, d, q)
        more = _affordable(method, n, d, q, method.work(n, d, q, gradient=False).flops / EVALUATIONS)
        counts = {FIRST_ROWS, most, max(most, more), n if limited else most}
        return [(method, rows) for rows in sorted(counts)]
    room = int(min((memory() / 10) ** 0.5, 1e9))  # rows whose Gram matrix fits
    first: list[tuple[Scheme, int]] = [(dense, min(n, FIRST_ROWS, room))]
    if not method.learns_from(n):
        return first if n <= FIRST_ROWS else [*first, (dense, min(_affordable(dense, n, d, q), room))]
    if method.work(n, d, q).flops <= EVALUATION_FLOPS or limited:
        return [*first, (method, n)]
    most = _affordable(method, n, d, q)
    if most > FIRST_ROWS:
        return [*first, (method, most)]
    return [*first, (dense, min(n, _affordable(dense, n, d, q), room))]


def _held(objective: Objective, holds: Sequence[Hold], report: Report, deadline: float | None) -> Array:
    """Where a search starts after the stages in which some parameters stay."""
    theta = objective.start
    for hold in holds:
        limits = hold.limits(objective.space, theta, objective.limits)
        how: dict[str, Any] = {"finish": False, "iterations": hold.steps}
        theta = maximise(objective, [theta], limits, report, deadline, **how).theta
    return theta


def _affordable(method: Scheme, n: int, d: int, q: int, flops: float = EVALUATION_FLOPS) -> int:
    """The most rows, in steps of a thousand, whose evaluation stays within so many flops."""
    low, high = 1, max(2, n // 1000)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if method.work(1000 * middle, d, q).flops <= flops else (low, middle - 1)
    return min(n, 1000 * low)


def _share(deadline: float | None, number: int, count: int) -> float | None:
    """When a stage must end: half of what is left, or all of it for the last."""
    if deadline is None or number == count - 1:
        return deadline
    now = time.monotonic()
    return now + 0.5 * max(deadline - now, 0.0)


def _together(searches: Sequence[Search], theta: Array) -> Search:
    sums = {k: sum(getattr(s, k) for s in searches) for k in ("iterations", "evaluations", "failures")}
    return dataclasses.replace(searches[-1], theta=theta, starts=searches[0].starts, **sums)
