"""The default beside other libraries on a folder of tables: log density, RMSE and coverage of test rows.

    python benchmarks/tables.py FOLDER MODEL [...] [--out results.csv] [--splits 2] [--rows 1600] [--only a,b]
    python benchmarks/tables.py --show results.csv

A table is an .npz with X (rows, columns), numbers without gaps, and y. Three quarters of the rows, at random,
are to learn from. Models: gramian (all defaults), and with columns and y scaled to mean 0 and variance 1:
sklearn, gpy, gpboost (a Matern-5/2 with a lengthscale a column and noise, by maximum likelihood), ngboost
(500 trees), catboost (its own uncertainty, stopped early by a fifth of the rows). Results are added to the
file, and what is there is not run again, so each library can be run by an interpreter of its own.
"""

from __future__ import annotations

import argparse
import csv
import pathlib
import time
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

HEAD = ("table", "split", "rows", "columns", "model", "nll", "rmse", "covered", "seconds")
SETTLED = 0.01  # nats a row: less than this apart is a draw


class Foretold(NamedTuple):
    """Of the test rows."""

    mean: np.ndarray
    log_density: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


Model = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], Foretold]


def normal(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> Foretold:
    density = -0.5 * np.log(2 * np.pi * std**2) - 0.5 * ((y - mean) / std) ** 2
    return Foretold(mean, density, mean - 1.959964 * std, mean + 1.959964 * std)


def gramian(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Foretold:
    import gramian as gm

    foretold = gm.GPRegressor(random_state=0, verbose=False).fit(X, y).predict_dist(X_test)
    return Foretold(foretold.mean, foretold.log_density(y_test), *foretold.interval(0.95))


def scaled(model: Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]) -> Model:
    """Of a model that wants its columns alike, and foretells a normal distribution."""

    def run(X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Foretold:
        spread = X.std(0)
        spread[spread == 0] = 1
        middle, unit = y.mean(), y.std()
        mean, std = model((X - X.mean(0)) / spread, (y - middle) / unit, (X_test - X.mean(0)) / spread)
        return normal(middle + unit * mean, unit * std, y_test)

    return run


@scaled
def sklearn(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    matern = Matern(np.ones(X.shape[1]), (1e-2, 1e4), nu=2.5)
    kernel = ConstantKernel(1.0, (1e-4, 1e6)) * matern + WhiteKernel(0.1, (1e-8, 1e2))
    return GaussianProcessRegressor(kernel, random_state=0).fit(X, y).predict(X_test, return_std=True)


@scaled
def gpy(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import GPy

    model = GPy.models.GPRegression(X, y[:, None], GPy.kern.Matern52(X.shape[1], ARD=True))
    model.optimize(max_iters=1000)
    mean, var = model.predict(X_test)
    return mean[:, 0], np.sqrt(var[:, 0])


@scaled
def gpboost(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import gpboost

    model = gpboost.GPModel(gp_coords=X, cov_function="matern_ard", cov_fct_shape=2.5, likelihood="gaussian")
    model.fit(y=y, X=np.ones((len(y), 1)), params={"trace": False})
    found = model.predict(
        gp_coords_pred=X_test, X_pred=np.ones((len(X_test), 1)), predict_var=True, predict_response=True
    )
    return found["mu"], np.sqrt(found["var"])


@scaled
def ngboost(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from ngboost import NGBRegressor

    found = NGBRegressor(n_estimators=500, verbose=False, random_state=0).fit(X, y).pred_dist(X_test)
    return found.loc, found.scale


@scaled
def catboost(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from catboost import CatBoostRegressor

    order = np.random.default_rng(1).permutation(len(y))
    aside, rest = np.split(order, [max(1, len(y) // 5)])
    model = CatBoostRegressor(
        loss_function="RMSEWithUncertainty", verbose=False, random_seed=0, allow_writing_files=False
    )
    model.fit(X[rest], y[rest], eval_set=(X[aside], y[aside]), early_stopping_rounds=50)
    found = model.predict(X_test)
    return found[:, 0], np.sqrt(found[:, 1])


MODELS: dict[str, Model] = {
    "gramian": gramian,
    "sklearn": sklearn,
    "gpy": gpy,
    "gpboost": gpboost,
    "ngboost": ngboost,
    "catboost": catboost,
}


def rows_of(path: pathlib.Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run(folder: pathlib.Path, model: str, out: pathlib.Path, splits: int, most: int, only: set[str]) -> None:
    done = {(row["table"], row["split"]) for row in rows_of(out) if row["model"] == model}
    for path in sorted(folder.glob("*.npz")):
        if only and path.stem not in only:
            continue
        with np.load(path, allow_pickle=False) as held:
            X, y = held["X"].astype(float), held["y"].astype(float).ravel()
        for k in range(splits):
            if (path.stem, str(k)) in done:
                continue
            order = np.random.default_rng(k).permutation(len(y))[:most]
            test, train = np.split(order, [len(order) // 4])
            began = time.perf_counter()
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = MODELS[model](X[train], y[train], X[test], y[test])
            except Exception as error:  # a library that fails on a table is a result, too
                print(f"{path.stem}, split {k}, {model}: {type(error).__name__}: {error}", flush=True)
                found = Foretold(*np.full((4, len(test)), np.nan))
            rmse = np.sqrt(np.mean((y[test] - found.mean) ** 2))
            covered = np.mean((found.lower <= y[test]) & (y[test] <= found.upper))
            numbers = [f"{v:.5g}" for v in (-np.mean(found.log_density), rmse, covered)]
            row = [
                path.stem,
                k,
                len(order),
                X.shape[1],
                model,
                *numbers,
                f"{time.perf_counter() - began:.2f}",
            ]
            print(*row, flush=True)
            fresh = not out.exists()
            with out.open("a", newline="") as file:
                writer = csv.writer(file)
                if fresh:
                    writer.writerow(HEAD)
                writer.writerow(row)


def show(out: pathlib.Path) -> None:
    """NLL a table and model, the mean over splits, and how often the default is ahead."""
    held: dict[str, dict[str, list[list[float]]]] = {}
    for row in rows_of(out):
        numbers = [float(row[name]) for name in ("nll", "rmse", "covered", "rows")]
        held.setdefault(row["table"], {}).setdefault(row["model"], []).append(numbers)
    means = {t: {m: np.mean(runs, axis=0) for m, runs in models.items()} for t, models in held.items()}
    names = [m for m in MODELS if any(m in models for models in means.values())]
    print(f"{'table':<20}{'rows':>6}" + "".join(f"{m:>10}" for m in names) + "   covered")
    for table, models in sorted(means.items()):
        cells = "".join(f"{models[m][0]:10.3f}" if m in models else " " * 10 for m in names)
        rows = next(iter(models.values()))[3]
        covered = f"{models['gramian'][2]:.3f}" if "gramian" in models else ""
        print(f"{table:<20}{rows:6.0f}{cells}   {covered}")
    ours = [(models["gramian"][2], models["gramian"][3]) for models in means.values() if "gramian" in models]
    if ours:
        share = np.average([c for c, _ in ours], weights=[n for _, n in ours])
        print(f"within 95 %, weighted by rows: {share:.3f}")
    for m in names:
        both = [(v["gramian"], v[m]) for v in means.values() if m != "gramian" and {m, "gramian"} <= set(v)]
        if both:
            gaps = np.array([theirs[0] - mine[0] for mine, theirs in both])
            closer = sum(mine[1] < theirs[1] for mine, theirs in both)
            print(
                f"{m}: NLL lower by more than {SETTLED} on {np.sum(gaps > SETTLED)} of {len(both)} tables,"
                f" higher on {np.sum(gaps < -SETTLED)}; median gain {np.nanmedian(gaps):.3f};"
                f" lower RMSE on {closer}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("models", nargs="*", help=", ".join(MODELS))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("tables.csv"))
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--rows", type=int, default=1600, help="of each table, to learn from and to test")
    parser.add_argument("--only", default="", help="names of tables, separated by commas")
    parser.add_argument("--show", type=pathlib.Path, help="a file of results")
    given = parser.parse_args()
    if given.show:
        show(given.show)
        return
    if given.folder is None or not set(given.models) <= set(MODELS):
        parser.error(f"give a folder and some of these models: {', '.join(MODELS)}")
    for model in given.models or list(MODELS):
        only = set(filter(None, given.only.split(",")))
        run(given.folder, model, given.out, given.splits, given.rows, only)


if __name__ == "__main__":
    main()
