"""Memory and time before the fit, and the choice of method with its reasons.

Each method says what it costs in floating point operations and kernel values; a calibration of a fraction of
a second says how many of each this machine does in a second, now. A fit is predicted as the stages it would
run (see fitting/stages.py), each of a typical number of evaluations, and the final inference on all rows.
"""

from __future__ import annotations

import contextlib
import timeit
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from gramian.arrays import as_float, is_number
from gramian.choose.words import Method, as_method
from gramian.engines.dense import Exact
from gramian.engines.krylov import Krylov, rows_within
from gramian.engines.neighbours import Neighbours
from gramian.engines.recipes import Fourier, Nystrom, Sparse
from gramian.engines.statespace import StateSpace
from gramian.errors import ParameterError
from gramian.fitting import stages
from gramian.fitting.budget import FIRST_EVALUATIONS, LATER_EVALUATIONS, compiling
from gramian.gram import tiles
from gramian.inference.base import Scheme
from gramian.inference.conjugate import closed
from gramian.inference.svgp.inducing import SVGP
from gramian.kernels import Kernel, Matern52
from gramian.kernels.convert import Converted
from gramian.linalg import memory
from gramian.linalg.cost import Cost
from gramian.linalg.threads import count, one_blas_thread
from gramian.params.space import aligned
from gramian.solvers.cg import CG

MOST_INDUCING = 2048  # beyond, the same time is better spent elsewhere
# a value with gradient against one without; one in a float32 product against one in a tile
SLOPE_COST, PRODUCT_GAIN = 2.2, 4.0
# rows from which on the Kalman filter is taken where it is exact: fewer are searched by Cholesky about as
# soon as the programs of the filter are compiled
MARKOV_ROWS = 2000
FINAL_SHARE = 0.4  # of a time limit: the most that the inference after a search should take


@dataclass(frozen=True)
class Rates:
    """What the machine does in a second."""

    flops: float
    values: float

    def seconds(self, work: Cost) -> float:
        slopes, products = self.values / SLOPE_COST, self.values * PRODUCT_GAIN
        told = work.flops / self.flops + work.values / self.values
        return told + work.slopes / slopes + work.products / products

    def of(self, kernel: Kernel | None, d: int, points: bool) -> Rates:
        """For a kernel on d columns, whose values may take longer than those of others; `points`: between
        rows and landmarks."""
        return self if kernel is None else replace(self, values=self.values / kernel.effort(d, points))


WHY_MARKOV = "its kernel has a state-space form, which is exact, at a cost that grows with the rows alone"
DAY, YEAR = 86400.0, 365.25 * 86400.0
FEW_FLOPS, NOMINAL = 3e9, Rates(2e10, 2e8)
TIMED_ROWS, TIMED_SECONDS = 128, (0.05, 20.0)  # what a kernel's own values are timed on, where it is slow
BRIEF = 10.0  # seconds of a time limit below which nothing is compiled to measure the machine


@dataclass(frozen=True)
class Option:
    """A method with its price."""

    method: Scheme
    label: str
    accuracy: str
    bytes: int
    evaluation_seconds: float  # one log evidence with gradient, on the rows that the search ends with
    fit_seconds: float
    final_seconds: float  # of these, the inference on all rows after the search
    why_not: str = ""  # where it is not within both limits

    @property
    def fits(self) -> bool:
        """Whether it is within both limits."""
        return not self.why_not

    @property
    def least_seconds(self) -> float:
        """The shortest time limit with which it makes sense: a search can be cut short, the final inference
        cannot."""
        return min(self.fit_seconds, self.final_seconds / FINAL_SHARE)


@dataclass(frozen=True)
class Plan:
    """The methods for some data, what each would take, and the one that `method="auto"` takes: `choice.fits`
    says whether it is within the limits."""

    rows: int
    columns: int
    memory_limit: int
    time_limit: float | None
    options: tuple[Option, ...]
    choice: Option
    reason: str

    def __str__(self) -> str:
        room = memory.show_bytes(self.memory_limit)
        head = f"{self.rows:,} rows, {self.columns} columns; memory limit {room}"
        head += "" if self.time_limit is None else f", time limit {self.time_limit:g} s"
        lines = [("method", "memory", "evaluation", "fit", "accuracy", "")]
        for each in self.options:
            times = show_seconds(each.evaluation_seconds), show_seconds(each.fit_seconds)
            lines.append((each.label, memory.show_bytes(each.bytes), *times, each.accuracy, each.why_not))
        return "\n".join([head, "", *aligned(lines, lines[0]), "", *self._verdict(), *self._exact_ways()])

    __repr__ = __str__  # also as the last line of a notebook cell

    def _verdict(self) -> list[str]:
        """What `fit` with method="auto" does, and where that is not within the limits, what would be."""
        choice = self.choice
        if choice.fits:
            return [f'method="auto" takes {choice.label}: {self.reason}.']
        limits = "memory limit" if self.time_limit is None else "limits"
        if within := [option.label for option in self.options if option.fits]:
            first, other = f"Within the {limits}: {'; '.join(within)}.", "name such a method, "
        else:
            first, other = f"Nothing fits within the {limits}: {self._least()}.", ""
        if choice.bytes > self.memory_limit:  # see check
            fate = f"needs {memory.show_bytes(choice.bytes)}, so that fit refuses to start"
            cure = f"Raise memory_limit, {other}or fit fewer rows."
            return [first, f'method="auto" takes {choice.label}, which {fate}. {cure}']
        search = "cuts its search for parameters short and " * (choice.fit_seconds > choice.final_seconds)
        late = "ends" if self.time_limit is not None and choice.final_seconds > self.time_limit else "may end"
        fate = f"fit {search}{late} after the time limit. Raise time_limit, {other}or fit fewer rows."
        return [first, f'method="auto" takes {choice.label} all the same: {fate}']

    def _least(self) -> str:
        """The smallest need: of memory where nothing has enough of it, else of time."""
        options = (*self.options, self.choice)  # which is not always one of them
        if inside := [option for option in options if option.bytes <= self.memory_limit]:
            fastest = min(inside, key=lambda option: option.least_seconds)
            whose = "the fastest" if len(inside) == len(options) else "the fastest that fits into memory"
            least = show_seconds(fastest.least_seconds)
            return f"{whose} is {fastest.label} ({least} of {self.time_limit:g} s)"
        smallest = min(options, key=lambda option: option.bytes)
        sizes = f"{memory.show_bytes(smallest.bytes)} of {memory.show_bytes(self.memory_limit)}"
        return f"the smallest need is that of {smallest.label} ({sizes})"

    def _exact_ways(self) -> list[str]:
        """Which way to the exact answer is faster on these data: where they cross is the machine's own."""
        seconds = {option.method.name: option.final_seconds for option in reversed(self.options)}
        if not {"exact", "cg"} <= set(seconds):
            return []
        ways = [(seconds["exact"], "Cholesky"), (seconds["cg"], "CG")]
        (fast, first), (slow, second) = sorted(ways, key=lambda way: way[0])
        times = f"{slow / fast:.2g} times as fast as {second}"
        return [f"Of the two exact ways {first} is predicted to be {times} here."]


@dataclass(frozen=True)
class Prospect:
    """A fit before it is done: the size of the data, the kernel (None: the default) and the limits."""

    rows: int
    columns: int
    outputs: int
    kernel: Kernel | None
    memory_limit: int | float | str | None
    time_limit: float | None
    optimize: bool

    @cached_property
    def limit(self) -> int:
        """The bytes that may be used."""
        return memory.allowed(self.memory_limit)

    @property
    def size(self) -> tuple[int, int, int]:
        return self.rows, self.columns, self.outputs

    def option(self, method: Scheme) -> Option:
        """A method with its price, and whether it is within the limits."""
        brief = self.time_limit is not None and self.time_limit < BRIEF
        rates = calibrate(self.columns, brief).of(self.kernel, self.columns, method.at_points)
        if self.kernel is not None and not brief and not method.at_points:
            rates = timed(rates, self.kernel, self.columns)
        needed = method.bytes_needed(*self.size)
        final = rates.seconds(method.work(*self.size, gradient=False))
        evaluation, search = final, 0.0  # of a fit without a search: the evidence alone
        if self.optimize and method.search in ("batches", "layers"):
            evaluation = rates.seconds(method.work(*self.size))
            search = method.steps_for(self.rows) * evaluation
        elif self.optimize:
            for number, (engine, rows) in enumerate(stages.parts(method, *self.size, lambda: self.limit)):
                count = FIRST_EVALUATIONS if number == 0 else LATER_EVALUATIONS
                evaluation = rates.seconds(engine.work(rows, self.columns, self.outputs))
                search += count * evaluation
        option = Option(method, method.label, method.accuracy, needed, evaluation, search + final, final)
        if needed > self.limit:
            return replace(option, why_not="needs more memory")
        if self.time_limit is not None and option.least_seconds > self.time_limit:
            return replace(option, why_not="takes too long")
        return option

    def fourier(self, m: int) -> list[Method]:
        """Random features, as many as m or nearly; none for a kernel that has none."""
        possible = self.kernel is None or self.kernel.has_waves(self.columns)
        return [Fourier(2 * max(m // 2, 1))] if possible else []

    def markov(self) -> list[StateSpace]:
        """The Kalman filter, for a kernel with an exact state-space form on the columns."""
        columns = tuple(range(self.columns))
        with contextlib.suppress(ParameterError):  # columns that have names in the data alone
            form = None if self.kernel is None else self.kernel.bare().state_space(columns)
            if form is not None and form.exact:
                return [StateSpace(size=form.size)]
        return []

    def takes_markov(self) -> StateSpace | None:
        """The same where it is quicker than Cholesky, and fits into memory."""
        found = self.markov() if self.rows >= MARKOV_ROWS else []
        within = (one for one in found if closed(one).bytes_needed(*self.size) <= self.limit)
        return next(within, None)

    def most_inducing(self) -> int:
        """The largest of the usual numbers of inducing points that stays within the limits."""
        n = self.rows
        # more points than a quarter of the rows take as long as exact inference
        most = n if self.time_limit is None else n // 4
        for m in (MOST_INDUCING, 1024, 512, 256, 128):
            if m <= max(most, 128) and self.option(closed(Sparse(min(m, n)))).fits:
                return min(m, n)
        return min(64, n)

    def choose(self, options: list[Option]) -> tuple[Option, str]:
        """What `method="auto"` takes among these, of which exact inference is the first, and why."""
        exact, vfe = options[0], next(o for o in options if o.method.name == "vfe")
        if self.takes_markov() is not None:
            return next(o for o in options if o.method.name == StateSpace.name), WHY_MARKOV
        # of few rows whatever the time limit, as in automatic
        if exact.fits or (exact.bytes <= self.limit and self.rows <= stages.FIRST_ROWS):
            return exact, self.why_exact(exact.bytes)
        needs = show_seconds(exact.fit_seconds)
        if exact.bytes > self.limit:
            needs = f"{memory.show_bytes(exact.bytes)} of {memory.show_bytes(self.limit)}"
        why = f"exact inference on {self.rows:,} rows {exact.why_not} ({needs})"
        return vfe, f"{why}, and of the approximations a bound cannot overfit"

    def why_exact(self, needed: int) -> str:
        if self.time_limit is not None and self.rows <= stages.FIRST_ROWS:
            few = f"{self.rows:,} rows are few"  # no time was predicted
            return f"it fits into the memory limit ({memory.show_bytes(needed)}), and {few}"
        limits = "memory limit" if self.time_limit is None else "limits"
        return f"it fits into the {limits} ({memory.show_bytes(needed)})"

    def plan(self, also: Sequence[Any] = ()) -> Plan:
        """With Gaussian noise in closed form; `also`: further methods."""
        m = self.most_inducing()
        methods: list[Method] = [Exact(), *self.markov(), Krylov(CG(), rows_within(self.limit)), Sparse(m)]
        methods += [Sparse(m, "fitc"), Nystrom(m), *self.fourier(m), Neighbours()]
        methods += [as_method(method, self.limit) for method in also]
        options = [self.option(closed(method)) for method in methods]
        return self._planned(options, *self.choose(options))

    def plan_around(self, wrapped: Callable[[Method], Scheme], taken: Scheme, reason: str) -> Plan:
        """With another likelihood: `wrapped` puts its inference around an engine, or raises where the two do
        not go together; `taken` is what `method="auto"` takes."""
        m = min(512, self.rows)
        engines: list[Method] = [Exact(), *self.markov(), Krylov(CG(), rows_within(self.limit)), Sparse(m)]
        engines += [Nystrom(m)]
        options = []
        for engine in [*engines, SVGP(m), *self.fourier(m)]:
            with contextlib.suppress(ParameterError):
                options.append(self.option(wrapped(engine)))
        choice = next((o for o in options if o.method.name == taken.name), None)
        return self._planned(options, choice or self.option(taken), reason)

    def automatic(self) -> tuple[Scheme, str]:
        """The method that `method="auto"` takes, with its reason. Few rows need no calibration to be sure."""
        markov = self.takes_markov()
        if markov is not None:
            return closed(markov), WHY_MARKOV
        exact = closed(Exact())
        needed = exact.bytes_needed(*self.size)
        if memory.fits(needed, self.memory_limit) and (
            self.time_limit is None or self.rows <= stages.FIRST_ROWS
        ):
            return exact, self.why_exact(needed)
        made = self.plan()
        return made.choice.method, made.reason

    def _planned(self, options: list[Option], choice: Option, reason: str) -> Plan:
        return Plan(self.rows, self.columns, self.limit, self.time_limit, tuple(options), choice, reason)


def plan(
    X_or_shape: Any,
    kernel: Kernel | Converted | None = None,
    memory_limit: int | float | str | None = None,
    time_limit: float | None = None,
    *,
    outputs: int = 1,
    optimize: bool = True,
    also: Sequence[Any] = (),
) -> Plan:
    """What each method would take on such data, and which one `GPRegressor(method="auto")` takes: memory and
    time before the fit.

    Parameters
    ----------
    X_or_shape : a table, or its shape (n, d)
    kernel : without random features for it, "fourier" is left out; None: the default kernel
    memory_limit : bytes, or text such as "2GB"; None: 80 % of what is free
    time_limit : seconds for the fit; None: no limit
    outputs : columns of y; each has a noise of its own, and so a factor, up to 20 of them
    optimize : whether the fit searches for parameters
    also : further methods, with their own settings, as for `GPRegressor(method=...)`

    Returns a `Plan`: print it, `.choice`, `.options`, `.reason`.
    """
    (n, d), kernel = _shape(X_or_shape), _kernel(kernel)
    check_time_limit(time_limit)
    return Prospect(n, d, outputs, kernel, memory_limit, time_limit, optimize).plan(also)


def check_time_limit(given: Any) -> None:
    """Refuses what is no time."""
    if given is None:
        return
    # a whole number may be beyond all floats
    if not (is_number(given) and (0 < as_float(given) < np.inf or given == np.inf)):
        raise ParameterError(f"time_limit={given!r} must be a positive number of seconds.")


def check(method: Scheme, shape: tuple[int, ...], q: int, memory_limit: int | float | str | None) -> None:
    """Refuses a method that would pass the memory limit, and names those that would not."""
    n, d = shape
    if compiling(method, n):
        memory.check_compiler()
    needed = method.bytes_needed(n, d, q)
    if memory.fits(needed, memory_limit):
        return
    limit = memory.allowed(memory_limit)
    smaller = [Krylov(CG(), rows_within(limit)), Sparse(), Nystrom(), Fourier(), Sparse(128)]
    sizes = {m.label: closed(m).bytes_needed(n, d, q) for m in smaller}
    within = [f"{label} ({memory.show_bytes(size)})" for label, size in sizes.items() if size <= limit]
    cure = "Raise memory_limit, or fit fewer rows."
    if within:
        cure = f"Within it are {', '.join(within)}; or raise memory_limit."
    memory.check_memory(needed, memory_limit, f"The method {method.name!r} on {n:,} rows", cure)


def calibrate(d: int, quick: bool = False) -> Rates:
    """How fast this machine is now, by matrix products and tiles in d columns; measured once a process.
    `quick`: by matrix products alone, since tiles have to be compiled."""
    if quick:
        return Rates(_flops(), _flops() * NOMINAL.values / NOMINAL.flops)
    return _calibrated(min(d, 64))


def timed(rates: Rates, kernel: Kernel, d: int) -> Rates:
    """The same with values a second of this very kernel where they are slow, and yet few take no time: what a
    kernel says of its effort is beside a usual one's on few columns (image networks: 20 times off on 784)."""
    least, most = TIMED_SECONDS
    if not least <= TIMED_ROWS**2 / rates.values <= most:
        return rates
    return replace(rates, values=_values(kernel, d))


@lru_cache(maxsize=8)
def _values(kernel: Kernel, d: int) -> float:
    X = np.random.default_rng(0).uniform(size=(TIMED_ROWS, d))
    return TIMED_ROWS**2 / _typical(lambda: tiles.cross(kernel, X, X), 3)


def _typical(run: Callable[[], object], times: int) -> float:
    """The median: beside busy neighbours the best time is nobody's."""
    run()
    return float(np.median(timeit.repeat(run, number=1, repeat=times)))


@cache
def _flops() -> float:
    A = np.random.default_rng(0).standard_normal((500, 500))
    # a tenth of a second: on a shared machine single ones differ by a third. On one thread, as all work is
    # done: threads that share a product wait for each other beside busy neighbours.
    with one_blas_thread():
        return count() * 2 * 500.0**3 / _typical(lambda: A @ A, 6)


@cache
def _calibrated(d: int) -> Rates:
    memory.check_compiler()
    rng = np.random.default_rng(0)
    X, out = rng.standard_normal((1024, d)), np.empty((1024, 1024), order="F")
    kernel = 1.0 * Matern52(np.ones(d))
    fill = _typical(lambda: tiles.fill(kernel, X, out), 4)
    return Rates(_flops(), 3 * 512**2 / fill)


def show_seconds(seconds: float) -> str:
    """90 -> "1.5 min"."""
    if not seconds < YEAR:
        return "years"
    if seconds >= 2 * DAY:
        return f"{seconds / DAY:.0f} days"
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds:.2g} s" if seconds >= 0.01 else "< 0.01 s"


def rates_for(method: Scheme, size: tuple[int, int, int], time_limit: float = np.inf) -> Rates:
    """How fast this machine is; nominal rates where the work is so little that to measure takes longer."""
    if method.work(*size).flops <= FEW_FLOPS:
        return NOMINAL
    return calibrate(size[1], quick=time_limit < BRIEF)


def _kernel(given: Any) -> Kernel | None:
    kernel = given.kernel if isinstance(given, Converted) else given
    if kernel is not None and not isinstance(kernel, Kernel):
        cure = "For a scikit-learn kernel: gramian.from_sklearn(kernel)."
        raise ParameterError(f"kernel must be a gramian kernel or None, not {given!r}. {cure}")
    return kernel


def _shape(given: Any) -> tuple[int, int]:
    shape = given if isinstance(given, tuple) else np.shape(given)
    if len(shape) != 2 or not all(isinstance(k, (int, np.integer)) and k > 0 for k in shape):
        shown = given if isinstance(given, tuple) else f"shape {shape}"
        raise ParameterError(f"plan needs a table or its shape (rows, columns), not {shown}.")
    return int(shape[0]), int(shape[1])
