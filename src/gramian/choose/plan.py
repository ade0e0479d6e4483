"""Memory and time before the fit, and the choice of method with its reasons.

Each method says what it costs in floating point operations and kernel values; a calibration of a fraction of
a second says how many of each this machine does in a second, now. A fit is predicted as the stages it would
run (see fitting/stages.py), each of a typical number of evaluations, and the final inference on all rows.
"""

from __future__ import annotations

import contextlib
import numbers
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.choose.words import Method, as_method
from gramian.engines.dense import Exact
from gramian.engines.krylov import Krylov, rows_within
from gramian.engines.recipes import Fourier, Nystrom, Sparse
from gramian.errors import ParameterError
from gramian.fitting import stages
from gramian.gram import tiles
from gramian.inference.base import Scheme
from gramian.inference.conjugate import closed
from gramian.inference.svgp.inducing import SVGP
from gramian.kernels import Kernel, Matern52
from gramian.kernels.convert import Converted
from gramian.linalg import memory
from gramian.linalg.cost import Cost
from gramian.solvers.cg import CG

Array = NDArray[np.float64]

# of a search from the start, and of one that goes on from a part of the data
FIRST_EVALUATIONS, LATER_EVALUATIONS = 45, 25
MOST_INDUCING = 2048  # beyond, the same time is better spent elsewhere
# a value with gradient against one without; one in a float32 product against one in a tile
SLOPE_COST, PRODUCT_GAIN = 2.2, 4.0
SHORTEST_SEARCH = 2.0  # seconds, down to which a time limit may cut a search


@dataclass(frozen=True)
class Rates:
    """What the machine does in a second."""

    flops: float
    values: float

    def seconds(self, work: Cost) -> float:
        slopes, products = self.values / SLOPE_COST, self.values * PRODUCT_GAIN
        return (
            work.flops / self.flops
            + work.values / self.values
            + work.slopes / slopes
            + work.products / products
        )


@dataclass(frozen=True)
class Option:
    """A method with its price."""

    method: Scheme
    label: str
    accuracy: str
    bytes: int
    evaluation_seconds: float  # one log evidence with gradient, on all rows
    fit_seconds: float
    final_seconds: float  # of these, the inference on all rows after the search
    fits: bool  # within both limits
    why_not: str = ""

    @property
    def least_seconds(self) -> float:
        """A search can be cut short, the final inference cannot."""
        return self.final_seconds + min(self.fit_seconds - self.final_seconds, SHORTEST_SEARCH)


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
        head = (
            f"{self.rows:,} rows, {self.columns} columns; memory limit {memory.show_bytes(self.memory_limit)}"
        )
        head += "" if self.time_limit is None else f", time limit {self.time_limit:g} s"
        lines = [("method", "memory", "evaluation", "fit", "accuracy", "")]
        for option in self.options:
            times = show_seconds(option.evaluation_seconds), show_seconds(option.fit_seconds)
            lines.append(
                (
                    option.label,
                    memory.show_bytes(option.bytes),
                    *times,
                    option.accuracy,
                    "" if option.fits else option.why_not,
                )
            )
        widths = [max(len(line[k]) for line in lines) for k in range(6)]
        body = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([head, "", *body, "", *self._verdict(), *self._exact_ways()])

    def _verdict(self) -> list[str]:
        """What `fit` with method="auto" does: where that is not within the limits, what would be, and the
        cure."""
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
            return [
                first,
                (
                    f'method="auto" takes {choice.label}, which {fate}. Raise memory_limit, {other}or fit'
                    " fewer rows."
                ),
            ]
        search = (
            "cuts its search for parameters short and " if choice.fit_seconds > choice.final_seconds else ""
        )
        late = "ends" if self.time_limit is not None and choice.final_seconds > self.time_limit else "may end"
        cure = f"Raise time_limit, {other}or fit fewer rows."
        return [
            first,
            (
                f'method="auto" takes {choice.label} all the same: fit {search}{late} after the time limit.'
                f" {cure}"
            ),
        ]

    def _least(self) -> str:
        """The smallest need: of memory where nothing has enough of it, else of time."""
        options = (*self.options, self.choice)  # which is not always one of them
        if inside := [option for option in options if option.bytes <= self.memory_limit]:
            fastest = min(inside, key=lambda option: option.least_seconds)
            whose = "the fastest" if len(inside) == len(options) else "the fastest that fits into memory"
            return (
                f"{whose} is {fastest.label} ({show_seconds(fastest.least_seconds)} of {self.time_limit:g} s)"
            )
        smallest = min(options, key=lambda option: option.bytes)
        return (
            f"the smallest need is that of {smallest.label} ({memory.show_bytes(smallest.bytes)} of"
            f" {memory.show_bytes(self.memory_limit)})"
        )

    def _exact_ways(self) -> list[str]:
        """Which of the two ways to the exact answer is faster on these data: they cross at a number of rows
        that is the machine's own."""
        if not {"exact", "cg"} <= {o.method.name for o in self.options}:
            return []
        cholesky, cg = (next(o for o in self.options if o.method.name == name) for name in ("exact", "cg"))
        first, second = (
            ("Cholesky", "CG") if cholesky.evaluation_seconds <= cg.evaluation_seconds else ("CG", "Cholesky")
        )
        ratio = max(cholesky.evaluation_seconds, cg.evaluation_seconds) / min(
            cholesky.evaluation_seconds, cg.evaluation_seconds
        )
        return [
            f"Of the two exact ways {first} is predicted to be {ratio:.2g} times as fast as {second} here."
        ]


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
    outputs : columns of y
    optimize : whether the fit searches for parameters
    also : further methods, with their own settings, as for `GPRegressor(method=...)`

    Returns a `Plan`: print it, `.choice`, `.options`, `.reason`.
    """
    n, d = _shape(X_or_shape)
    kernel = _kernel(kernel)
    check_time_limit(time_limit)
    limit, rates = memory.allowed(memory_limit), calibrate(d)
    options = [_option(closed(Exact()), n, d, outputs, limit, time_limit, rates, optimize)]
    inducing = _most_inducing(n, d, outputs, limit, time_limit, rates, optimize)
    methods: list[Method] = [
        Krylov(CG(), rows_within(limit)),
        Sparse(inducing),
        Sparse(inducing, "fitc"),
        Nystrom(inducing),
    ]
    if kernel is None or kernel.has_waves(d):
        methods.append(Fourier(2 * max(inducing // 2, 1)))
    methods += [as_method(method, limit) for method in also]
    options += [
        _option(closed(method), n, d, outputs, limit, time_limit, rates, optimize) for method in methods
    ]
    choice, reason = _choice(options, n, limit, time_limit)
    return Plan(n, d, limit, time_limit, tuple(options), choice, reason)


def plan_around(
    shape: tuple[int, int],
    kernel: Kernel | None,
    wrapped: Callable[[Method], Scheme],
    taken: Scheme,
    reason: str,
    memory_limit: int | float | str | None,
    time_limit: float | None,
    outputs: int,
    optimize: bool,
) -> Plan:
    """The plan of a likelihood that is not Gaussian: `wrapped` puts its inference around an engine, or raises
    where the two do not go together; `taken` is what `method="auto"` takes."""
    n, d = shape
    limit, rates = memory.allowed(memory_limit), calibrate(d)
    m = min(512, n)
    engines: list[Method] = [Exact(), Krylov(CG(), rows_within(limit)), Sparse(m), Nystrom(m), SVGP(m)]
    if kernel is None or kernel.has_waves(d):
        engines.append(Fourier(2 * max(m // 2, 1)))
    options = []
    for engine in engines:
        with contextlib.suppress(ParameterError):
            options.append(_option(wrapped(engine), n, d, outputs, limit, time_limit, rates, optimize))
    choice = next((o for o in options if o.method.name == taken.name), None)
    choice = choice or _option(taken, n, d, outputs, limit, time_limit, rates, optimize)
    return Plan(n, d, limit, time_limit, tuple(options), choice, reason)


def automatic(
    n: int,
    d: int,
    q: int,
    kernel: Kernel | None,
    memory_limit: int | float | str | None,
    time_limit: float | None,
    optimize: bool,
) -> tuple[Scheme, str]:
    """The method that `method="auto"` takes, with its reason. Few rows need no calibration to be sure."""
    exact = closed(Exact())
    needed = exact.bytes_needed(n, d, q)
    if memory.fits(needed, memory_limit) and (time_limit is None or n <= stages.FIRST_ROWS):
        return exact, _exact_reason(n, needed, time_limit)
    made = plan((n, d), kernel, memory_limit, time_limit, outputs=q, optimize=optimize)
    return made.choice.method, made.reason


def check_time_limit(given: Any) -> None:
    """Refuses what is no time."""
    if given is not None and not (isinstance(given, numbers.Real) and float(given) > 0):
        raise ParameterError(f"time_limit={given!r} must be a positive number of seconds.")


def check(method: Scheme, n: int, d: int, q: int, memory_limit: int | float | str | None) -> None:
    """Refuses a method that would pass the memory limit, and names those that would not."""
    limit = memory.allowed(memory_limit)
    needed = method.bytes_needed(n, d, q)
    if needed <= limit:
        return
    smaller = [Krylov(CG(), rows_within(limit)), Sparse(), Nystrom(), Fourier(), Sparse(128)]
    others = [
        f"{m.label} ({memory.show_bytes(m.bytes_needed(n, d, q))})"
        for m in smaller
        if m.bytes_needed(n, d, q) <= limit
    ]
    cure = (
        f"Within it are {', '.join(others)}; or raise memory_limit."
        if others
        else "Raise memory_limit, or fit fewer rows."
    )
    memory.check_memory(needed, memory_limit, f"The method {method.name!r} on {n:,} rows", cure)


def calibrate(d: int) -> Rates:
    """How fast this machine is now: a few matrix products, a few tiles of a kernel in d columns. Measured
    once a process."""
    return _calibrated(min(d, 64))


@cache
def _calibrated(d: int) -> Rates:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1000, 1000))
    # a quarter of a second: on a shared machine single ones differ by a third
    products = _best(lambda: A @ A, 7)
    X, out = rng.standard_normal((1024, d)), np.empty((1024, 1024), order="F")
    kernel = 1.0 * Matern52(np.ones(d))
    fill = _best(lambda: tiles.fill(kernel, X, out), 4)
    return Rates(2e9 / products, 3 * 512**2 / fill)


def show_seconds(seconds: float) -> str:
    """90 -> "1.5 min"."""
    for unit, name in ((3600.0, "h"), (60.0, "min")):
        if seconds >= unit:
            return f"{seconds / unit:.2g} {name}"
    return f"{seconds:.2g} s" if seconds >= 0.01 else "< 0.01 s"


def seconds_of_final(method: Scheme, n: int, d: int, q: int) -> float:
    """The predicted time of the inference on all rows, after the parameters are found."""
    return calibrate(d).seconds(method.work(n, d, q, gradient=False))


def _option(
    method: Scheme, n: int, d: int, q: int, limit: int, time_limit: float | None, rates: Rates, optimize: bool
) -> Option:
    needed = method.bytes_needed(n, d, q)
    evaluation = rates.seconds(method.work(n, d, q))
    final = rates.seconds(method.work(n, d, q, gradient=False))
    search = 0.0
    if optimize and method.search == "batches":
        search = method.steps_for(n) * evaluation
    elif optimize:
        for number, (engine, rows) in enumerate(stages.parts(method, n, d, q, False, lambda: limit)):
            count = FIRST_EVALUATIONS if number == 0 else LATER_EVALUATIONS
            search += count * rates.seconds(engine.work(rows, d, q))
    option = Option(
        method, method.label, method.accuracy, needed, evaluation, search + final, final, fits=True
    )
    why = (
        "needs more memory"
        if needed > limit
        else "takes too long"
        if time_limit is not None and option.least_seconds > time_limit
        else ""
    )
    return replace(option, fits=not why, why_not=why)


def _choice(options: list[Option], n: int, limit: int, time_limit: float | None) -> tuple[Option, str]:
    exact, vfe = options[0], next(o for o in options if o.method.name == "vfe")
    # of few rows whatever the time limit, as in automatic
    if exact.fits or (exact.bytes <= limit and n <= stages.FIRST_ROWS):
        return exact, _exact_reason(n, exact.bytes, time_limit)
    needs = (
        f"{memory.show_bytes(exact.bytes)} of {memory.show_bytes(limit)}"
        if exact.bytes > limit
        else f"{show_seconds(exact.fit_seconds)}"
    )
    return (
        vfe,
        (
            f"exact inference on {n:,} rows {exact.why_not} ({needs}), and of the approximations a bound"
            " cannot overfit"
        ),
    )


def _exact_reason(n: int, needed: int, time_limit: float | None) -> str:
    if time_limit is not None and n <= stages.FIRST_ROWS:
        # no time was predicted
        return f"it fits into the memory limit ({memory.show_bytes(needed)}), and {n:,} rows are few"
    return (
        f"it fits into the {'memory limit' if time_limit is None else 'limits'} ({memory.show_bytes(needed)})"
    )


def _most_inducing(
    n: int, d: int, q: int, limit: int, time_limit: float | None, rates: Rates, optimize: bool
) -> int:
    """The largest of the usual numbers of inducing points that stays within the limits."""
    for m in (MOST_INDUCING, 1024, 512, 256, 128):
        method = closed(Sparse(min(m, n)))
        if m <= max(n, 128) and _option(method, n, d, q, limit, time_limit, rates, optimize).fits:
            return min(m, n)
    return min(64, n)


def _kernel(given: Any) -> Kernel | None:
    if given is not None and not isinstance(given, (Kernel, Converted)):
        raise ParameterError(
            f"kernel must be a gramian kernel or None, not {given!r}. For a scikit-learn kernel:"
            " gramian.from_sklearn(kernel)."
        )
    return given.kernel if isinstance(given, Converted) else given


def _shape(given: Any) -> tuple[int, int]:
    shape = given if isinstance(given, tuple) else getattr(given, "shape", None)
    if shape is None:
        shape = np.shape(given)
    if len(shape) != 2 or not all(isinstance(k, (int, np.integer)) and k > 0 for k in shape):
        raise ParameterError(
            "plan needs a table or its shape (rows, columns), not"
            f" {given if isinstance(given, tuple) else f'shape {shape}'}."
        )
    return int(shape[0]), int(shape[1])


def _best(run: Any, times: int) -> float:
    run()
    found = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    return min(found)
