"""`compare`: approximations of one model side by side, on one's own data, over repeated runs.

    result = gm.compare(X, y, methods=("nystrom:uniform", "nystrom:rpcholesky", "fourier:orf", "exact"),
                        sizes=(100, 200, 400), repeats=10)
    print(result)
    result.plot().savefig("comparison.png")

All methods have the same kernel, noise and splits; what differs is the approximation. With `out=folder` each
run is kept as soon as it has ended: after an interruption the same call does the rest, with the same numbers
as without one.

Where y has labels the model is a classifier: Laplace's approximation on each engine, and the variational
bound with inducing points.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import numbers
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian import clock
from gramian.arrays import Array, is_whole
from gramian.choose.plan import check_time_limit
from gramian.clock import OutOfTime
from gramian.data.atomic import atomic_write
from gramian.data.inputs import Columns, as_array, read_features, read_targets, refuse_far_targets, spread
from gramian.data.labels import Labels
from gramian.data.sources import is_source, open_source
from gramian.engines import Exact
from gramian.errors import InputError, ParameterError, visible
from gramian.estimators import GPClassifier, GPRegressor, build
from gramian.estimators.multiclass import VARIANCE
from gramian.experiments.methods import NOISY, Method, parse_methods
from gramian.experiments.progress import bar
from gramian.experiments.run import (
    PART,
    SUBSET,
    RunRecord,
    Settings,
    Setup,
    Trial,
    measure,
    warm_measure,
    warm_up,
)
from gramian.experiments.store import Store, columns_of, to_csv
from gramian.experiments.table import text_table
from gramian.fitting.progress import progress
from gramian.fitting.stages import fit
from gramian.inference import closed, on_engine
from gramian.inference.softmax.laplace import laplace_for
from gramian.kernels import Kernel
from gramian.kernels.convert import Converted
from gramian.kernels.text import parse_kernel
from gramian.likelihoods import Bernoulli, Likelihood, Softmax
from gramian.linalg import memory
from gramian.linalg.executor import Executor, as_executor
from gramian.params import fixed
from gramian.params.space import html_text
from gramian.report.summary import formula
from gramian.solvers import CG
from gramian.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure


TASKS = ("regression", "classification")
_NYSTROM = ("nystrom:uniform", "nystrom:recursive-rls", "nystrom:rpcholesky")
FIT_SHARE = 0.5  # of a time limit, for the kernel and the noise where they are not given
METHODS = (*_NYSTROM, "fourier:rff", "fourier:orf", "vfe", "cg", "exact")


@dataclass(frozen=True, eq=False)
class Comparison:
    """The runs of a comparison."""

    runs: tuple[RunRecord, ...]
    kernel: Kernel  # as all methods had it
    noise: float
    settings: dict[str, Any] = field(repr=False)
    left_out: tuple[str, ...] = ()  # what the time limit left no time for, for people

    def table(self) -> str:
        """Method by method and size by size: means over the runs, with their spread."""
        data, classes = self.settings["data"], self.settings["data"]["classes"]
        what, model = f"{data['rows']:,} rows, {data['columns']} columns", f"kernel {formula(self.kernel)}"
        if data["target"]:
            what += f", of which {self.settings['test_size']:.0%} to test"
        if classes:
            what += f"; {len(classes)} classes: {', '.join(classes[:8])}{', ...' * (len(classes) > 8)}"
        elif data["target"]:
            model += f"; noise {self.noise:.4g}"
        text = text_table(self.runs, [visible(what), f"{model}; seed {self.settings['random_state']}"])
        missing = f"Left out, since the time was over: {', '.join(self.left_out)}."
        return f"{text}\n{missing}" if self.left_out else text

    __str__ = __repr__ = table

    def _repr_html_(self) -> str:
        return html_text(self.table())

    def columns(self) -> dict[str, NDArray[Any]]:
        """The tidy table, one entry a run: `pandas.DataFrame(result.columns())`."""
        return columns_of(self.runs)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Writes the tidy table: one line a run, method and size."""
        with atomic_write(path) as file:
            file.write(to_csv(self.runs).encode())

    def plot(self) -> Figure:
        """Error against size and against time, with the spread over runs."""
        from gramian.plots.comparison import plot_comparison

        return plot_comparison(self)


@memory.translated("The comparison", "Give fewer rows (max_rows), or close other programs.")
def compare(
    X: Any,
    y: Any = None,
    *,
    task: str | None = None,
    kernel: Kernel | Converted | None = None,
    noise: float | None = None,
    methods: Sequence[str] | str = METHODS,
    sizes: Sequence[int] | int = (100, 200, 400),
    repeats: int = 5,
    test_size: float = 0.2,
    random_state: int = 0,
    out: str | os.PathLike[str] | None = None,
    standardize: bool = False,
    normalize_y: bool = True,
    max_rows: int | None = None,
    fit_rows: int = 2000,
    gram_rows: int = 6000,
    variance_rows: int = 256,
    tol: float = 1e-6,
    max_iter: int = 1000,
    memory_limit: int | float | str | None = None,
    time_limit: float | None = None,
    verbose: bool | None = None,
    client: Any = None,
) -> Comparison:
    """Compares approximations of one model: error of the kernel matrix, time, memory, test error, NLPD,
    coverage or calibration.

    Parameters
    ----------
    X, y : the data. Without y only kernel matrices are compared, on all rows.
    task : "regression" or "classification"; None: classification where y is text or booleans.
    kernel : as it is, for all methods. None: the default kernel, fitted once by exact inference (Laplace, for
        classes) on `fit_rows` random rows.
    noise : the noise variance, in units of y squared, as it is. None: fitted in the same way. Classes have
        none.
    methods : names such as "nystrom:uniform", "fourier:orf", "vfe", "svgp", "cg:none", "minres", "exact"; see
        `gramian.experiments.methods`.
    sizes : landmarks, features or inducing points; for CG and MINRES the rank of the preconditioner. Methods
        without a size run once a repeat.
    repeats : how often, each time with another split and other draws.
    test_size : the share of rows to test on.
    random_state : a whole number; run by run it determines splits and draws, whatever else is run.
    out : a folder for `settings.json` and `runs.csv`; an interrupted comparison goes on from there. Methods,
        sizes and repeats may change, nothing else.
    standardize : centre the columns of X and divide them by their standard deviations (of all rows;
        categories stay).
    normalize_y : as in GPRegressor.
    max_rows : take that many rows at random from larger data.
    fit_rows : random rows for fitting the kernel and the noise, where they are not given.
    gram_rows : the kernel matrix is compared on all training rows up to this many, else on a random part of
        that size.
    variance_rows : test rows for what needs variances of CG and MINRES, where each is a solve.
    tol, max_iter : of CG and MINRES.
    memory_limit : runs that would pass it are left out, with a note.
    time_limit : seconds for all of it; runs that there is no time for are left out, and named. With `out` the
        same call does them later.
    verbose : progress on standard error; None: on a terminal only.
    client : a Dask client, or an executor of concurrent.futures, that does the runs; times are then those of
        its workers, and all else is as it would be here.

    Returns a `Comparison`: print it, `.columns()`, `.to_csv(path)`, `.plot()`.
    """
    check_time_limit(time_limit)
    end = None if time_limit is None else clock.now() + float(time_limit)
    chosen, numbers_of, setting = parse_methods(methods), _sizes(sizes), build.read_kernel(kernel)
    rows = max_rows, fit_rows, gram_rows, variance_rows
    settings = Settings(test_size, random_state, standardize, normalize_y, *rows, tol, max_iter)
    _check(noise, repeats, settings)
    memory.allowed(memory_limit)  # refuses what is not a size
    written = setting.one("a comparison is of one.")
    data = _data(X, y, task, chosen, written, settings, memory_limit)
    if noise is None and setting.noise is not None:
        noise = float(setting.noise.value)
    if written is not None:
        written.check_columns(data.columns.described())
    if data.classes is not None:
        _check_classes(chosen, noise)
    recorded: dict[str, Any] = {
        "gramian": __version__,
        "task": TASKS[data.classes is not None],
        "data": data.described(),
        "kernel": kernel if written is None else repr(written),  # the word of a family is fitted
        "noise": None if noise is None else float(noise),
        **{name: np.asarray(value).item() for name, value in dataclasses.asdict(settings).items()},
    }
    store = None if out is None else Store(Path(out))
    fitted = store.open(recorded) if store is not None else {}
    if fitted:
        held, level = parse_kernel(fitted["kernel"]) if written is None else written, float(fitted["noise"])
    else:
        with clock.until(end):
            held, level = _settle(written, kernel, noise, data, settings, verbose)
        if store is not None:
            store.write_settings(recorded, {"kernel": repr(held), "noise": level})
    resolved = held.resolve(data.columns.names)
    setup = Setup(data.X, data.y, resolved, level, settings, memory_limit, data.likelihood)
    sized = [(method, m) for method in chosen for m in (numbers_of if method.has_size else (0,))]
    trials = [Trial(r, method, m) for r in range(repeats) for method, m in sized]
    with clock.until(end):
        runs = _carry_out(setup, trials, store, verbose, as_executor(client))
    if not runs:
        raise ParameterError(
            f"time_limit={time_limit} was over before the first run had ended. Give more time, fewer rows"
            " (max_rows), or a kernel and noise that need not be fitted."
        )
    missing = Counter(trial.described for trial in trials if trial.key not in {run.key for run in runs})
    left_out = tuple(f"{what} ({count} of {repeats})" for what, count in missing.items())
    return Comparison(runs, held, level, recorded, left_out)


def _carry_out(
    setup: Setup, trials: list[Trial], store: Store | None, verbose: bool | None, executor: Executor
) -> tuple[RunRecord, ...]:
    """All runs in their order, those that are on disk already from there; as many as there is time for. One
    that the end of the time has met may have been cut short, and is not kept."""
    done = {run.key: run for run in store.read()} if store is not None else {}
    warm: set[tuple[Method, int]] = set()
    took: dict[tuple[Method, int], float] = {}  # seconds of the last run of a method and a size
    left = sum(trial.key not in done for trial in trials)
    with bar(verbose, left, len(trials) - left) as step:
        if executor.remote:
            todo = [trial for trial in trials if trial.key not in done]
            with contextlib.suppress(OutOfTime):
                for trial, run in zip(todo, executor.each(warm_measure, todo, setup), strict=True):
                    step(f"{trial.described}, repeat {trial.repeat + 1}")
                    done[trial.key] = run
                    if store is not None:
                        store.append(run)
            return tuple(done[trial.key] for trial in trials if trial.key in done)
        for trial in trials:
            sized, began = (trial.method, trial.size), clock.now()
            if trial.key in done or began + took.get(sized, 0.0) >= clock.end():
                continue
            step(f"{trial.described}, repeat {trial.repeat + 1}")
            try:
                if sized not in warm:
                    warm_up(setup, trial)
                    warm.add(sized)
                    began = clock.now()
                run = measure(setup, trial)
            except OutOfTime:
                continue
            if clock.over():
                continue
            done[trial.key], took[sized] = run, clock.now() - began
            if store is not None:
                store.append(run)
    return tuple(done[trial.key] for trial in trials if trial.key in done)


class _Table(NamedTuple):
    """The features and what their columns are, y or the codes of its labels, and these as text."""

    X: Array
    columns: Columns
    y: Array | None
    classes: list[str] | None

    @property
    def likelihood(self) -> Likelihood | None:
        if self.classes is None:
            return None
        return Bernoulli() if len(self.classes) == 2 else Softmax(len(self.classes))

    def described(self) -> dict[str, Any]:
        """What tells data apart."""
        digest = hashlib.sha256(np.ascontiguousarray(self.X).tobytes())
        digest.update(b"" if self.y is None else self.y.tobytes())
        shape = {"rows": len(self.X), "columns": self.X.shape[1], "target": self.y is not None}
        return {**shape, "classes": self.classes, "sha256": digest.hexdigest()}


def _data(
    X: Any,
    y: Any,
    task: str | None,
    methods: Sequence[Method],
    kernel: Any,
    settings: Settings,
    memory_limit: int | float | str | None,
) -> _Table:
    if is_source(X):
        source = open_source(X, y if isinstance(y, str) else None, memory_limit=memory_limit)
        table, columns = np.asarray(source.X), source.columns
        y = y if source.Y is None else source.Y[:, 0]
    else:
        table, columns = read_features(X, memory_limit=memory_limit)
    target, classes = None, None
    if task is not None and task not in TASKS:
        raise ParameterError(
            f"task={task!r} is not known. Use {' or '.join(map(repr, TASKS))}, or None: seen from y."
        )
    if y is None:
        if task == "classification":
            raise ParameterError(
                'task="classification" needs labels y. Without y only kernel matrices are compared.'
            )
        if kernel is None:
            raise ParameterError(
                "Without y there is nothing to fit a kernel to. Give one, kernel=RBF(1.0), or a target y."
            )
        useless = next((method.name for method in methods if not method.has_features), None)
        if useless is not None:
            raise ParameterError(
                f"Without y only kernel matrices are compared, and {useless!r} works with K itself. Leave it"
                " out, or give y."
            )
    else:
        if task == "classification" or (task is None and _are_labels(y)):
            labels = Labels.read(y, len(table))
            target, classes = labels.codes, [str(label) for label in labels.classes]
        else:
            Y, _ = read_targets(y, len(table))
            if Y.shape[1] != 1:
                raise InputError(f"y has {Y.shape[1]} columns; a comparison takes one target at a time.")
            refuse_far_targets(Y, True)
            target = np.ascontiguousarray(Y[:, 0])
        if len(table) < 5:
            raise InputError(
                f"There are {len(table)} rows; a comparison with training and test rows needs at least 5."
            )
    if settings.max_rows is not None and settings.max_rows < len(table):
        rng = np.random.default_rng([SUBSET, settings.random_state])
        rows = np.sort(rng.choice(len(table), settings.max_rows, replace=False))
        table, target = table[rows], None if target is None else target[rows]
    if settings.standardize:
        numeric = [j for j in range(table.shape[1]) if j not in columns.categories]
        features, table = table[:, numeric], table.copy()
        table[:, numeric] = (features - np.mean(features, axis=0)) / spread(features)
    return _Table(table, columns, target, classes)


def _are_labels(y: Any) -> bool:
    """Whether y is text or booleans: numbers may be labels, too, but then somebody has to say so."""
    array = as_array(y, "y")
    return array.dtype.kind in "bUS" or (
        array.dtype == object and all(isinstance(label, (str, bool, np.bool_)) for label in array.ravel())
    )


def _check_classes(methods: Sequence[Method], noise: float | None) -> None:
    """Refuses what is of Gaussian noise."""
    if noise is not None:
        raise ParameterError(f"noise={noise:g} is of Gaussian noise, and labels have none. Leave it out.")
    noisy = next((method.name for method in methods if method.family in NOISY), None)
    if noisy is not None:
        raise ParameterError(
            f'The method {noisy!r} is for Gaussian noise. With classes use "vfe", "svgp", "nystrom",'
            ' "fourier", "cg" or "exact".'
        )


def _settle(
    kernel: Kernel | None,
    given: Any,
    noise: float | None,
    table: _Table,
    settings: Settings,
    verbose: bool | None,
) -> tuple[Kernel, float]:
    """The kernel and the noise that all methods have: what is not given is fitted by exact inference on a
    part of the rows. `given`: the setting, which without a kernel may be the word of a family."""
    likelihood, n = table.likelihood, len(table.X)
    if kernel is not None and (noise is not None or table.y is None or likelihood is not None):
        return kernel, 0.0 if noise is None else float(noise)
    assert table.y is not None
    rng = np.random.default_rng([PART, settings.random_state])
    part = np.sort(rng.choice(n, min(settings.fit_rows, n), replace=False))
    X, Y, engine = table.X[part], table.y[part][:, None], Exact(fit_rows=len(part))
    if likelihood is not None:  # of two classes one may be missing in a small part, which does no harm
        written, model, data = build.build_latent(
            GPClassifier(given), likelihood, X, table.columns, Y, VARIANCE
        )
        scheme = on_engine(engine, laplace_for(likelihood))
    else:
        start = given
        if kernel is not None:
            held = [dataclasses.replace(p, trainable=False) for p in kernel.parameters().values()]
            start = kernel.with_parameters(held)
        level = None if noise is None else fixed(float(noise))
        gp = GPRegressor(start, noise=level, normalize_y=settings.normalize_y)
        build.check_settings(gp)
        written, model, data = build.build(gp, X, table.columns, Y, True, None)
        scheme = closed(engine)
    now = clock.now()
    with progress(verbose) as report, clock.until(now + FIT_SHARE * max(clock.end() - now, 0.0)):
        model = fit(model, data, scheme, 1 if len(part) <= 1000 else 0, rng, report).model
    if kernel is None:
        kernel = written.with_parameters(list(model.kernel.parameters().values()))
    return kernel, 0.0 if likelihood is not None else float(model.gaussian.variances()[0])


def _sizes(given: Sequence[int] | int) -> tuple[int, ...]:
    sizes = [given] if isinstance(given, (int, np.integer)) else list(given)
    for size in sizes:
        if not is_whole(size):
            raise ParameterError(f"sizes has {size!r}; a size is a whole number from 1 on.")
    if not sizes:
        raise ParameterError("sizes is empty. Give one or more, such as (100, 200, 400).")
    return tuple(sorted({int(size) for size in sizes}))


def _check(noise: Any, repeats: Any, settings: Settings) -> None:
    real = isinstance(noise, numbers.Real) and not isinstance(noise, bool)
    if noise is not None and not (real and 0 <= float(noise) < float("inf")):
        raise ParameterError(
            f"noise={noise!r} must be a variance, a number from 0 on; without it, it is fitted."
        )
    share, seed = settings.test_size, settings.random_state
    if not isinstance(share, numbers.Real) or not 0 < float(share) < 1:
        raise ParameterError(f"test_size={share!r} must be a share between 0 and 1, such as 0.2.")
    if not is_whole(seed, 0):
        raise ParameterError(
            f"random_state={seed!r} must be a whole number from 0 on: the seeds of all runs are made from it."
        )
    counts = {
        name: getattr(settings, name) for name in ("max_rows", "fit_rows", "gram_rows", "variance_rows")
    }
    for name, value in {"repeats": repeats, **counts}.items():
        if not is_whole(value) and not (name == "max_rows" and value is None):
            raise ParameterError(f"{name}={value!r} must be a whole number from 1 on.")
    CG(settings.tol, settings.max_iter)  # refuses settings with which no solve could succeed
