"""Kernel matrix approximation, prediction and Krylov solvers on real data sets: tables in Markdown, and
checks of what theory says.

    python benchmarks/datasets.py FOLDER [--quick] [--only matrix|prediction]

FOLDER holds the sets as NumPy files (abalone.npz and so on) with X and y. Columns are standardised.

1. The error of the kernel matrix |K - Phi Phi'|_F / |K|_F for k = exp(-r^2 / sigma^2), over 30 repetitions,
   for landmark rules and Fourier features, on a random part of the rows. Checks: the slope of log error
   against log size is -1/2 for plain Fourier features, within three standard errors (the error at each size
   is a mean over draws); orthogonal features are not worse than plain ones, quasi-Monte Carlo not in up to 4
   columns; rules that follow leverage, and pivots, are not worse than uniform where leverage is uneven. "Not
   worse": at the largest size, up to three standard errors.
2. Regression with 4/5 of the rows to train and 1/5 to test, 15 repetitions, by `gramian.experiments.compare`:
   MSE, NLPD, coverage, time, steps.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gramian.errors import NumericalError
from gramian.experiments.compare import compare
from gramian.experiments.measures import gram_error
from gramian.experiments.methods import Method, parse_methods
from gramian.experiments.table import gathered
from gramian.features.base import Basis
from gramian.features.nystrom import NystromBasis
from gramian.kernels import RBF
from gramian.landmarks.leverage import leverage_scores, ridge_scores

SETS = {
    "abalone": (0.1, 1.0, 10.0),
    "wine_white": (0.1, 1.0, 2.1, 10.0),
    "magic04": (0.1, 1.0, 10.0),
    "weather_gatton_qld": (0.1, 1.0, 10.0),
    "weather_dalby_qld": (0.1, 1.0, 10.0),
    "stock_7259_2000_2019": (0.1, 1.0, 10.0),
    "3dsn_first5000": (0.1, 1.0, 10.0),
}
RULES = ("uniform", "leverage", "rls", "recursive-rls", "kmeans", "pivoted", "rpcholesky")
FOLLOW_LEVERAGE = ("leverage", "rls", "recursive-rls", "pivoted", "rpcholesky")
KINDS = ("rff", "orf", "sorf", "qmc")
LOW_DIMENSION = 4
UNEVEN = 2.0  # the largest ridge leverage over the average one, from which leverage counts as uneven
ROUNDING = 1e-7  # relative errors below are not told apart: landmarks that explain all but rounding
SEED = 7


class Cell(NamedTuple):
    """The errors of a method at a size, over repetitions."""

    mean: float
    error: float  # of the mean

    def __str__(self) -> str:
        return f"{self.mean:.2e}"


class Check(NamedTuple):
    what: str
    good: bool
    found: str


def rows_of(path: Path, most: int) -> tuple[np.ndarray, np.ndarray]:
    """X, standardised, and y, of a random part of the rows."""
    with np.load(path, allow_pickle=False) as file:
        X, y = np.asarray(file["X"], dtype=np.float64), np.asarray(file["y"], dtype=np.float64)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    at = np.sort(np.random.default_rng(SEED).choice(len(X), min(most, len(X)), replace=False))
    return np.ascontiguousarray(X[at]), y[at]


def errors(
    X: np.ndarray, sigma: float, names: list[str], sizes: tuple[int, ...], repeats: int
) -> dict[tuple[str, int], Cell]:
    """Mean Frobenius errors over repetitions."""
    kernel = RBF.from_bandwidth(sigma)
    K = kernel(X)
    found = {}
    for method in parse_methods(names):
        for size in sizes:
            scores: dict[str, np.ndarray] = {}
            draws = 1 if method.variant == "pivoted" else repeats  # greedy pivots are not random
            values = []
            for repeat in range(draws):
                rng = np.random.default_rng([SEED, repeat, method.code, size])
                features = drawn(method, kernel, X, size, rng, scores).at(kernel)
                values.append(gram_error(kernel, X, features, K=K).frobenius)
            error = float(np.std(values, ddof=1) / np.sqrt(draws)) if draws > 1 else 0.0
            found[method.name, size] = Cell(float(np.mean(values)), error)
    return found


def drawn(
    method: Method,
    kernel: RBF,
    X: np.ndarray,
    size: int,
    rng: np.random.Generator,
    scores: dict[str, np.ndarray],
) -> Basis:
    """Landmarks or frequencies. Scores that need all of K are not random, so they are made once and drawn by
    each time, as `landmarks` would."""
    if method.name not in ("nystrom:leverage", "nystrom:rls"):
        return method.choose(kernel, X, size, rng).basis
    if method.name not in scores:
        raw = (
            leverage_scores(kernel, X, size)
            if method.variant == "leverage"
            else ridge_scores(kernel, X, size)[0]
        )
        scores[method.name] = raw / np.sum(raw)
    p = scores[method.name]
    return NystromBasis(X[rng.choice(len(X), min(size, int(np.count_nonzero(p))), replace=False, p=p)])


def slope(cells: list[Cell], sizes: tuple[int, ...]) -> tuple[float, float]:
    """Of log error against log size, by least squares, and its standard error from those of the cells."""
    x = np.log(sizes) - np.mean(np.log(sizes))
    y = np.log([cell.mean for cell in cells])
    weights = x / np.sum(x**2)
    return float(weights @ y), float(
        np.sqrt(np.sum((weights * [cell.error / cell.mean for cell in cells]) ** 2))
    )


def not_worse(a: Cell, b: Cell) -> bool:
    return a.mean <= b.mean + 3 * np.hypot(a.error, b.error) + ROUNDING


def matrix_checks(
    found: dict[tuple[str, int], Cell], sizes: tuple[int, ...], d: int, ratio: float
) -> Iterator[Check]:
    """What theory says of one set and one sigma."""
    last = sizes[-1]
    value, error = slope([found["fourier:rff", m] for m in sizes], sizes)
    yield Check("slope of rff is -1/2", abs(value + 0.5) <= 3 * error, f"{value:.3f} +- {error:.3f}")
    plain, uniform = found["fourier:rff", last], found["nystrom:uniform", last]
    for kind in ("orf", "qmc") if d <= LOW_DIMENSION else ("orf",):
        mine = found[f"fourier:{kind}", last]
        yield Check(f"{kind} <= rff", not_worse(mine, plain), f"{mine} against {plain}")
    if ratio >= UNEVEN:
        for rule in FOLLOW_LEVERAGE:
            mine = found[f"nystrom:{rule}", last]
            yield Check(f"{rule} <= uniform", not_worse(mine, uniform), f"{mine} against {uniform}")


def unevenness(X: np.ndarray, sigma: float, m: int) -> float:
    """The largest ridge leverage over the average one."""
    try:
        scores, _ = ridge_scores(RBF.from_bandwidth(sigma), X, m)
    except NumericalError:
        return 1.0
    return float(np.max(scores) / np.mean(scores))


def matrices(
    folder: Path, rows: int, sizes: tuple[int, ...], repeats: int, rules: tuple[str, ...]
) -> list[tuple[str, Check]]:
    names = [f"nystrom:{rule}" for rule in rules] + [f"fourier:{kind}" for kind in KINDS]
    checks = []
    for name, sigmas in SETS.items():
        X, _ = rows_of(folder / f"{name}.npz", rows)
        for sigma in sigmas:
            began = time.perf_counter()
            ratio = unevenness(X, sigma, sizes[-1])
            found = errors(X, sigma, names, sizes, repeats)
            print(
                f"\n**{name}**, {len(X):,} rows, {X.shape[1]} columns, sigma = {sigma:g}; largest ridge"
                f" leverage over the average: {ratio:.3g}\n"
            )
            print(f"| method | {' | '.join(map(str, sizes))} | slope |\n|---|{'---:|' * (len(sizes) + 1)}")
            for method in names:
                cells = [found[method, m] for m in sizes]
                flat = min(cell.mean for cell in cells) < ROUNDING
                rate = "rounding" if flat else "{:.2f} +- {:.2f}".format(*slope(cells, sizes))
                print(f"| {method} | {' | '.join(map(str, cells))} | {rate} |")
            mine = list(matrix_checks(found, sizes, X.shape[1], ratio))
            print(
                "\n"
                + "; ".join(
                    f"{check.what}: {'ok' if check.good else 'MISS'} ({check.found})" for check in mine
                )
            )
            print(f"\n({time.perf_counter() - began:.0f} s)", flush=True)
            checks += [(f"{name}, sigma = {sigma:g}", check) for check in mine]
    return checks


def predictions(folder: Path, rows: int, sizes: tuple[int, ...], repeats: int) -> None:
    methods = (
        "nystrom:uniform",
        "nystrom:rpcholesky",
        "fourier:rff",
        "fourier:orf",
        "vfe",
        "fitc",
        "cg:none",
        "cg",
        "minres",
        "exact",
    )
    for name in SETS:
        X, y = rows_of(folder / f"{name}.npz", rows)
        began = time.perf_counter()
        result = compare(
            X,
            y,
            methods=methods,
            sizes=sizes,
            repeats=repeats,
            random_state=SEED,
            variance_rows=64,
            fit_rows=1000,
            max_iter=300,
        )
        print(
            f"\n**{name}**: {len(X):,} rows, {X.shape[1]} columns, kernel {result.kernel}, noise"
            f" {result.noise:.3g}\n"
        )
        print(
            "| method | size | error of K | MSE | NLPD | in 95 % | total s | steps | missed"
            " |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|"
        )
        for group in gathered(result.runs):
            mean = {
                field: group.values(field)
                for field in ("frobenius", "mse", "nlpd", "coverage95", "iterations", "total_seconds")
            }
            spread = f"{np.mean(mean['mse']):.4g} +- {np.std(mean['mse'], ddof=1):.1g}"
            cells = [
                f"{np.mean(v):.3g}" if v.size else ""
                for v in (mean["frobenius"], mean["nlpd"], mean["coverage95"], mean["iterations"])
            ]
            missed = sum(bool(run.note) for run in group.runs)
            seconds = f"{np.median(mean['total_seconds']):.2g}"
            print(
                f"| {group.method} | {group.size or ''} | {cells[0]} | {spread} | {cells[1]} | {cells[2]} |"
                f" {seconds} | {cells[3]} | {missed or ''} |"
            )
        print(f"\n({time.perf_counter() - began:.0f} s)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Approximations on real data sets.")
    parser.add_argument("folder", type=Path, help="where the .npz files are")
    parser.add_argument("--quick", action="store_true", help="fewer rows and sizes, no k-means")
    parser.add_argument("--only", choices=("matrix", "prediction"))
    given = parser.parse_args()
    absent = [name for name in SETS if not (given.folder / f"{name}.npz").exists()]
    if absent:
        parser.error(f"{given.folder} has no {absent[0]}.npz")
    if given.only != "prediction":
        print("### The error of the kernel matrix")
        rules = tuple(rule for rule in RULES if rule != "kmeans" or not given.quick)  # the slowest
        checks = matrices(
            given.folder,
            500 if given.quick else 1000,
            (30, 60, 120) if given.quick else (50, 100, 200, 400),
            30,
            rules,
        )
        good = sum(check.good for _, check in checks)
        print(f"\n{good} of {len(checks)} checks hold{'.' if good == len(checks) else '. Misses:'}\n")
        for where, check in checks:
            if not check.good:
                print(f"- {where}: {check.what}: {check.found}")
    if given.only != "matrix":
        print("\n### Regression")
        predictions(
            given.folder, 500 if given.quick else 1000, (30, 60, 120) if given.quick else (100, 200, 400), 15
        )


if __name__ == "__main__":
    main()
