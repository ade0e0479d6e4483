"""The model that the data choose, beside the plain one (a Matern-5/2 with a lengthscale a column), on
published splits: RMSE and negative log density of test rows in the units of the file, how many of them lie in
their 95 % intervals, and seconds.

    GRAMIAN_DATA=folder python benchmarks/defaults.py [uci20_yacht ...] [--splits 10] [--only default]
        [--time-limit 300]

Seconds are of the fit, and of the processor in it; a busy machine changes the first more than the second.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time
from typing import NamedTuple

import numpy as np

import gramian as gm

# name -> the best that others have published, as far as known: RMSE, negative log density
SETS = {
    "uci20_yacht": (0.393, -0.73),
    "uci20_boston": (None, 2.32),
    "uci20_energy": (0.42, 0.15),
    "uci20_concrete": (3.86, 2.21),
    "uci20_wine": (None, 0.80),
    "uci20_kin8nm": (0.064, -1.40),
    "uci20_power": (3.00, 2.28),
    "uci20_naval": (None, -9.68),
    "uci_elevators": (None, None),
    "uci_pol": (None, None),
    "uci_bike": (None, None),
    "uci_kin40k": (None, None),
    "uci_protein": (None, None),
}
MODELS = {"default": None, "plain": "matern52"}


class Result(NamedTuple):
    """Of one split."""

    rmse: float
    nll: float
    covered: float
    seconds: float
    processor: float


def split(name: str, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Rows to train on and rows to test on; None where the file is not there."""
    path = pathlib.Path(os.environ.get("GRAMIAN_DATA", "data")) / f"{name}.npz"
    if not path.exists():
        print(f"{path} is not there: set GRAMIAN_DATA to the folder that has it.")
        return None
    with np.load(path, allow_pickle=False) as held:
        X, y, test = held["X"].astype(float), held["y"].astype(float).ravel(), held["test_mask"][:, k]
    return X[~test], y[~test], X[test], y[test]


def measured(
    kernel: str | None, data: tuple[np.ndarray, ...], limit: float | None
) -> tuple[Result, gm.GPRegressor]:
    X, y, X_test, y_test = data
    began, worked = time.perf_counter(), time.process_time()
    gp = gm.GPRegressor(kernel, random_state=0, verbose=False, time_limit=limit).fit(X, y)
    took, worked = time.perf_counter() - began, time.process_time() - worked
    foretold = gp.predict_dist(X_test)
    low, high = foretold.interval(0.95)
    result = Result(
        float(np.sqrt(np.mean((y_test - foretold.mean) ** 2))),
        -float(np.mean(foretold.log_density(y_test))),
        float(np.mean((low <= y_test) & (y_test <= high))),
        took,
        worked,
    )
    return result, gp


def told(*cells: object) -> None:
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=list(SETS))
    parser.add_argument("--splits", type=int, default=2, help="how many, from the first on")
    parser.add_argument("--first", type=int, default=0, help="the first split")
    parser.add_argument("--only", choices=MODELS, help="one of the two models")
    parser.add_argument("--time-limit", type=float, help="seconds of each fit")
    given = parser.parse_args()
    told("set", "split", "model", "RMSE", "NLL", "within 95 %", "seconds", "of the processor", "chosen")
    told(*["---"] * 9)
    for name in given.sets:
        found: dict[str, list[Result]] = {}
        for k in range(given.first, given.first + given.splits):
            data = split(name, k)
            if data is None:
                break
            for model, kernel in MODELS.items():
                if given.only not in (None, model):
                    continue
                result, gp = measured(kernel, data, given.time_limit)
                found.setdefault(model, []).append(result)
                numbers = [f"{value:.4g}" for value in result[:2]] + [f"{value:.3f}" for value in result[2:3]]
                times = [f"{value:.1f}" for value in result[3:]]
                told(name, k, model, *numbers, *times, "; ".join(gp.outcome_.choice))
        for model, results in found.items():
            means = np.mean(results, axis=0)
            spread = np.std([one.nll for one in results], ddof=1) if len(results) > 1 else np.nan
            nll = f"NLL {means[1]:.4g} +- {spread / np.sqrt(len(results)):.2g}"
            best = SETS.get(name, (None, None))
            print(
                f"{name}, {len(results)} splits, {model}: RMSE {means[0]:.4g}, {nll},"
                f" within 95 % {means[2]:.3f}, {means[3]:.1f} s; published RMSE {best[0]}, NLL {best[1]}",
                flush=True,
            )


if __name__ == "__main__":
    main()
