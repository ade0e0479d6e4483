"""Approximations of one kernel matrix, on public data: how far they are from it, what they cost, and what
they do to predictions. The runs are those of `compare`: a method, a size, a split, a draw (experiments/run).

    kernel-approximation     |K - Phi Phi'| / |K| in the Frobenius and the infinity norm, k = exp(-|x - z|^2 /
                             (2 sigma^2)) on standardised columns
    approximate-prediction   test error with Phi Phi' in the place of K, by the matrix inversion lemma,
                             (Phi Phi' + s^2 I)^-1 = (I - Phi (s^2 I + Phi'Phi)^-1 Phi') / s^2
    krylov-prediction        test error after t steps of CG or MINRES on K + s^2 I itself; labels as -1 and 1

Kernel and noise of the last two are found once a set: maximum evidence on some rows.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.estimators import GPClassifier, GPRegressor
from gramian.experiments.methods import FAMILIES, Method, parse_methods
from gramian.experiments.run import RunRecord, Settings, Setup, Trial, measure, warm_up
from gramian.experiments.studies.base import (
    Cell,
    Experiment,
    Illustration,
    Results,
    Row,
    Shown,
    SmallTable,
    rng_of,
)
from gramian.experiments.studies.drawing import legend_beside, lines, panels
from gramian.experiments.studies.sets import DataFolder
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.kernels import RBF, Kernel
from gramian.likelihoods import Bernoulli
from gramian.linalg.memory import show_bytes
from gramian.params import fixed
from gramian.solvers import CG, MINRES

ALL = ("abalone", "wine_white", "magic04", "3dsn_first5000", "weather_gatton_qld", "stock_7259_2000_2019")
CLASSES = ("magic04",)
QUICK_SIZES, SIZES = (20, 60, 180), (50, 100, 200, 400, 800)  # landmarks or features
POWERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # steps
RULES = tuple(f"nystrom:{rule}" for rule in FAMILIES["nystrom"][0])
KINDS = tuple(f"fourier:{kind}" for kind in FAMILIES["fourier"][0])
FEW = (
    "nystrom:uniform",
    "nystrom:leverage",
    "nystrom:kmeans",
    "nystrom:rpcholesky",
    "fourier:rff",
    "fourier:orf",
)
WINE = 2.1  # the width of wine


class TableData(NamedTuple):
    """Standardised columns, and the target: numbers, or codes of two classes."""

    X: Array
    y: Array


def table(data: DataFolder, name: str, rows: int) -> TableData:
    """So many rows at random of a set, the same for all cells."""
    held = data.load(name)
    X, y = held["X"].astype(np.float64), held["y"].astype(np.float64)
    part = np.sort(rng_of({"set": name, "rows": rows}).permutation(len(X))[:rows])
    X, y = X[part], y[part]
    spread = np.std(X, axis=0)
    return TableData((X - np.mean(X, axis=0)) / np.where(spread > 0, spread, 1.0), y)


def settings(repeats_from: int = 0, max_iter: int = 1000) -> Settings:
    """As of `compare`, with its defaults."""
    return Settings(0.2, repeats_from, True, True, None, 2000, 6000, 256, 1e-6, max_iter)


_warm: set[tuple[Any, ...]] = set()


def measured(setup: Setup, cell: Cell) -> RunRecord:
    """A run; before the first of its kind, the same on few rows, so that compilations are not in its time."""
    method: Method = parse_methods(cell["method"])[0]
    trial = Trial(cell["repeat"], method, cell["size"])
    kind = cell["set"], method, cell["size"], setup.y is None
    if kind not in _warm:
        warm_up(setup, trial)
        _warm.add(kind)
    return measure(setup, trial)


def columns_of(run: RunRecord, names: tuple[str, ...]) -> list[Row]:
    return [{name: getattr(run, name) for name in names}]


# The kernel matrix. -----------------------------------------------------------------------------------------

MATRIX = (
    "features",
    "frobenius",
    "infinity",
    "probabilities_seconds",
    "construction_seconds",
    "predicted_bytes",
    "note",
)


def _matrix_grid(quick: bool) -> list[Cell]:
    sets = ("abalone", "wine_white") if quick else ALL
    sizes = QUICK_SIZES if quick else SIZES
    rows, repeats = (600, 2) if quick else (5000, 30)
    widths = (1.0,) if quick else (0.1, 1.0, 10.0)
    return [
        {"set": name, "rows": rows, "sigma": sigma, "method": method, "size": size, "repeat": repeat}
        for repeat in range(repeats)
        for name in sets
        for sigma in ((WINE,) if name == "wine_white" else widths)
        for method in (FEW if quick else (*RULES, *KINDS))
        for size in sizes
    ]


def _matrix(cell: Cell, data: DataFolder) -> list[Row]:
    X, _ = table(data, cell["set"], cell["rows"])
    setup = Setup(X, None, RBF(fixed(cell["sigma"])), 0.0, settings())
    return columns_of(measured(setup, cell), MATRIX)


def _matrix_shown(results: Results) -> Shown:
    shown, order = Shown(), results.each("method")
    combinations = list(dict.fromkeys((row["set"], row["sigma"]) for row in results.rows))
    for norm, named in (("frobenius", "Frobenius"), ("infinity", "infinity")):
        across = min(3, len(combinations))
        down = -(-len(combinations) // across)
        figure, axes = panels(down, across, 5.0 * across + 1.5, 3.4)
        for axis, (name, sigma) in zip(axes.flat, combinations, strict=False):
            lines(axis, results.where(set=name, sigma=sigma), "method", "size", norm, order, "xy")
            axis.set(title=f"{name}, sigma {sigma:g}", xlabel="landmarks or features")
        for unused in axes.flat[len(combinations) :]:
            unused.remove()
        for axis in axes[:, 0]:
            axis.set_ylabel(f"relative error of K ({named})")
        legend_beside(figure)
        caption = f"Relative error of the kernel matrix in the {named} norm; bars: one standard deviation."
        shown.pictures.append(Illustration(f"error-{norm}", caption, figure))
    figure, axes = panels(1, 2, 11.5, 3.6)
    for axis, seconds in zip(axes[0], ("probabilities_seconds", "construction_seconds"), strict=True):
        positive = Results([row for row in results.rows if (row.get(seconds) or 0) > 0])
        lines(axis, positive, "method", "size", seconds, order, "xy")
        axis.set(xlabel="landmarks or features", title=seconds.replace("_seconds", ""), ylabel="seconds")
    legend_beside(figure)
    caption = "Seconds over all sets: for the probabilities that rows are drawn by (where there are any), and"
    shown.pictures.append(
        Illustration("time", f"{caption} for the rest: choice and features of all rows.", figure)
    )
    largest = max(results.each("size"))
    for name, sigma in combinations:
        mine = results.where(set=name, sigma=sigma, size=largest)
        method, error = mine.best("method", "frobenius")
        random, loss = Results([row for row in mine.rows if row["method"].startswith("fourier")]).best(
            "method", "frobenius"
        )
        sentence = (
            f"{name}, sigma {sigma:g}: with {largest} columns the least error is {error:.1e} ({method})"
        )
        if random is not None and random != method:
            sentence += f"; of Fourier features it is {loss:.1e} ({random})"
        shown.words.append(f"{sentence}.")
    body = []
    for method in order:
        mine = results.where(method=method, size=largest)
        body.append(
            [
                method,
                *(f"{mine.mean(norm):.2e}" for norm in ("frobenius", "infinity")),
                *(f"{mine.mean(name):.2g}" for name in ("probabilities_seconds", "construction_seconds")),
                show_bytes(mine.mean("predicted_bytes")),
            ]
        )
    head = ["method", "Frobenius", "infinity", "probabilities (s)", "construction (s)", "memory of a fit"]
    shown.tables.append(SmallTable(f"Means over all sets and widths, {largest} columns.", head, body))
    return shown


KERNEL_APPROXIMATION = Experiment(
    "kernel-approximation",
    "How close do Nystrom and Fourier features come to a kernel matrix, and what does it cost?",
    "Columns are standardised; k = exp(-|x - z|² / (2 sigma²)). Every rule for landmarks and every kind of"
    " random frequency, with errors on all rows that are used; times for the probabilities that rows are"
    " drawn by stand apart from the rest. A full run has 30 repetitions on 5,000 rows of six sets, sigma"
    " 0.1, 1 and 10 (2.1 for wine); a quick one 2 on 600 rows of two. The temperatures are the same kind"
    " and size as the series of the literature, not the same station.",
    _matrix_grid,
    _matrix,
    MATRIX,
    _matrix_shown,
)

# Predictions. -----------------------------------------------------------------------------------------------

PREDICTION = ("mse", "error", "nlpd", "coverage95", "fit_seconds", "total_seconds", "predicted_bytes", "note")


def _prediction_grid(quick: bool) -> list[Cell]:
    sets = ("abalone", "magic04") if quick else ALL
    sizes = QUICK_SIZES if quick else SIZES
    rows, fit_rows, repeats = (600, 200, 2) if quick else (5000, 1000, 15)
    approximate = [(m, size) for m in (FEW if quick else (*RULES, *KINDS)) for size in sizes]
    return [
        {"set": s, "rows": rows, "fit_rows": fit_rows, "method": method, "size": size, "repeat": repeat}
        for repeat in range(repeats)
        for s in sets
        for method, size in [("exact", 0), *approximate]
    ]


@cache
def _learned(name: str, rows: int, fit_rows: int, folder: DataFolder) -> tuple[Kernel, float]:
    """Kernel and noise of a set, from its first rows in a random order."""
    X, y = table(folder, name, rows)
    part = rng_of({"set": name, "fit": fit_rows}).permutation(len(X))[:fit_rows]
    if name in CLASSES:
        return GPClassifier("rbf", n_restarts=0, random_state=0).fit(X[part], y[part]).kernel_, 0.0
    gp = GPRegressor("rbf", warp=None, hyper="map", n_restarts=0, random_state=0).fit(X[part], y[part])
    return gp.kernel_, float(gp.noise_)


def _prediction(cell: Cell, data: DataFolder) -> list[Row]:
    name = cell["set"]
    X, y = table(data, name, cell["rows"])
    kernel, noise = _learned(name, cell["rows"], cell["fit_rows"], data)
    likelihood = Bernoulli() if name in CLASSES else None
    setup = Setup(X, y, kernel, noise, settings(), None, likelihood)
    return columns_of(measured(setup, cell), PREDICTION)


def score_of(name: str) -> tuple[str, str]:
    """The measure of a set, and its name."""
    return ("error", "share of wrong labels") if name in CLASSES else ("mse", "test MSE")


def _prediction_shown(results: Results) -> Shown:
    shown, sets = Shown(), results.each("set")
    order = [method for method in results.each("method") if method != "exact"]
    across = min(3, len(sets))
    figure, axes = panels(-(-len(sets) // across), across, 5.0 * across + 1.5, 3.5)
    sized = Results([row for row in results.rows if row["size"]])
    for axis, name in zip(axes.flat, sets, strict=False):
        score, label = score_of(name)
        lines(axis, sized.where(set=name), "method", "size", score, order, "x")
        exact = results.where(set=name, method="exact").mean(score)
        axis.axhline(exact, color="#222222", linestyle=":", linewidth=1.2, label="exact")
        axis.set(title=name, xlabel="landmarks or features", ylabel=label)
    for unused in axes.flat[len(sets) :]:
        unused.remove()
    legend_beside(figure)
    caption = "Test error against size, mean and standard deviation over splits; dotted: the exact process."
    shown.pictures.append(Illustration("prediction", caption, figure))
    body = []
    for name in sets:
        score, label = score_of(name)
        exact = results.where(set=name, method="exact").mean(score)
        for size in sorted(sized.each("size")):
            method, error = sized.where(set=name, size=size).best("method", score)
            body.append([name, str(size), str(method), f"{error:.4g}", f"{exact:.4g}"])
        largest = max(sized.each("size"), default=0)
        mine = sized.where(set=name, size=largest)
        if not mine.rows or np.isnan(exact):
            continue
        near = [m for m in mine.each("method") if mine.where(method=m).mean(score) <= 1.05 * exact]
        shown.words.append(
            f"{name}: the exact process has a {label} of {exact:.4g}; with {largest} columns {len(near)} of"
            f" {len(mine.each('method'))} methods are within 5 % of"
            f" it{': ' + ', '.join(near) if near else ''}."
        )
    head = ["set", "columns", "best method", "its error", "exact"]
    shown.tables.append(SmallTable("The best method of each size (means over splits).", head, body))
    return shown


APPROXIMATE_PREDICTION = Experiment(
    "approximate-prediction",
    "How many landmarks or features does a prediction need to be as good as the exact one?",
    "Four fifths of the rows to learn from, one fifth to test, other splits in each repetition. Kernel and"
    " noise are fitted once a set on some rows and held for all methods; numbers by Gaussian noise with the"
    " matrix inversion lemma, labels (magic04) by Laplace's approximation. Full: 15 repetitions on 5,000"
    " rows of six sets; quick: 2 on 600 rows of two.",
    _prediction_grid,
    _prediction,
    PREDICTION,
    _prediction_shown,
)

# Krylov solvers. --------------------------------------------------------------------------------------------

STEPS = ("score", "residual", "away")
LIMIT = 1e-14  # a tolerance that is not reached before the steps are used up


def _krylov_grid(quick: bool) -> list[Cell]:
    sets = ("abalone", "magic04") if quick else ALL
    rows, repeats, steps = (600, 2, POWERS[:7]) if quick else (4000, 15, POWERS)
    return [
        {"set": name, "rows": rows, "method": method, "steps": count, "repeat": repeat}
        for repeat in range(repeats)
        for name in sets
        for method, counts in (
            ("exact", (0,)),
            *((m, steps) for m in ("cg:none", "minres:none", "cg:rpcholesky", "minres:rpcholesky")),
        )
        for count in counts
    ]


@cache
def _system(name: str, rows: int, repeat: int, folder: DataFolder) -> tuple[Any, ...]:
    """What the cells of a split share: the rows, the kernel, and the exact predictions."""
    X, y = table(folder, name, rows)
    if name in CLASSES:
        y = np.where(y > 0, 1.0, -1.0)
    setup = Setup(X, y, RBF(fixed(1.0)), 0.0, settings())
    train, test = setup.split(repeat)
    part = rng_of({"set": name, "fit": 400}).permutation(len(X))[:400]
    gp = GPRegressor("rbf", warp=None, hyper="map", n_restarts=2, random_state=0).fit(X[part], y[part])
    kernel, mean, spread = gp.kernel_, float(np.mean(y[train])), float(np.std(y[train])) or 1.0
    noise = float(gp.noise_) / spread**2
    K = tiles.cross(kernel, X[train], X[train])
    K[np.diag_indices_from(K)] += noise
    r = (y[train] - mean) / spread
    cross = tiles.cross(kernel, X[test], X[train])
    exact = cross @ np.linalg.solve(K, r)
    return X[train], r, noise, kernel, cross, exact, (y[test] - mean) / spread, y[test], (mean, spread)


def _krylov(cell: Cell, data: DataFolder) -> list[Row]:
    X, r, noise, kernel, cross, exact, scaled, y, units = _system(
        cell["set"], cell["rows"], cell["repeat"], data
    )
    predicted, residual = exact, 0.0
    if cell["method"] != "exact":
        family, _, preconditioner = cell["method"].partition(":")
        solver = {"cg": CG, "minres": MINRES}[family](
            tol=LIMIT, max_iter=cell["steps"], preconditioner=preconditioner, rank=100, seed=cell["repeat"]
        )
        operator = GramOperator(kernel, X, np.full(len(X), noise))
        alpha, outcome = solver.factor(operator).solve(r[:, None])
        predicted = cross @ alpha[:, 0]
        residual = float("nan") if outcome.residual is None else float(outcome.residual)
    if cell["set"] in CLASSES:
        mean, spread = units
        score = float(np.mean(np.where(mean + spread * predicted > 0, 1.0, -1.0) != y))
    else:
        score = float(np.mean((predicted - scaled) ** 2))
    away = float(np.sqrt(np.mean((predicted - exact) ** 2)))
    return [{"score": score, "residual": residual, "away": away}]


def _krylov_shown(results: Results) -> Shown:
    shown, sets = Shown(), results.each("set")
    stepped = Results([row for row in results.rows if row["steps"]])
    order = stepped.each("method")
    figure, axes = panels(2, len(sets), max(4.2 * len(sets) + 1.8, 9.0), 3.1, sharex=True)
    for (above, below), name in zip(axes.T, sets, strict=True):
        exact = results.where(set=name, method="exact").mean("score")
        lines(above, stepped.where(set=name), "method", "steps", "score", order, "x")
        above.axhline(exact, color="#222222", linestyle=":", linewidth=1.2, label="exact")
        label = "share of wrong labels" if name in CLASSES else "test MSE, of y's variance"
        above.set(title=name, ylabel=label)
        lines(below, stepped.where(set=name), "method", "steps", "residual", order, "xy")
        below.set(xlabel="steps (products with K)", ylabel="relative residual")
        said = []
        for method in order:
            mine = stepped.where(set=name, method=method)
            near = [t for t in mine.each("steps") if mine.where(steps=t).mean("score") <= 1.01 * exact]
            said.append(f"{method} {f'by step {min(near)}' if near else 'not in as many'}")
        if said and np.isfinite(exact):
            told = ", ".join(said)
            shown.words.append(f"{name}: within 1 % of the exact test error ({exact:.4g}): {told}.")
    legend_beside(figure)
    caption = (
        "Above: test error after so many steps (dotted: by Cholesky). Below: the residual |A x - b| / |b|."
    )
    shown.pictures.append(Illustration("krylov", caption, figure))
    body = [
        [
            name,
            method,
            *(f"{results.where(set=name, method=method, steps=t).mean('score'):.4g}" for t in some),
        ]
        for name in sets
        for method in order
        for some in [sorted(stepped.each("steps"))]
    ]
    head = ["set", "solver", *(str(t) for t in sorted(stepped.each("steps")))]
    shown.tables.append(SmallTable("Test error by steps.", head, body))
    return shown


KRYLOV_PREDICTION = Experiment(
    "krylov-prediction",
    "After how many steps of CG or MINRES is a prediction as good as the exact one?",
    "K + s² I itself, without an approximation; means after t steps, with no preconditioner and with the"
    " one of random pivoted Cholesky (rank 100); of the steps so far a solver gives the one with the least"
    " residual. Kernel and noise by maximum evidence on 400 rows; labels (magic04) are -1 and 1, the sign"
    " of the mean decides. Full: 15 splits of 4,000 rows of six sets; quick: 2 of 600 rows of two.",
    _krylov_grid,
    _krylov,
    STEPS,
    _krylov_shown,
)

APPROXIMATIONS = (KERNEL_APPROXIMATION, APPROXIMATE_PREDICTION, KRYLOV_PREDICTION)
