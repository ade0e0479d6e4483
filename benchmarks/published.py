"""Published data sets with `method="auto"`: test RMSE and NLPD of z-scored targets on published splits, with the time taken.

    GRAMIAN_DATA=folder python benchmarks/published.py [uci_pol uci_elevators ...] [--splits 0 1 ...]

The kernel is a scaled Matern-3/2 with a lengthscale a column; everything else is the default.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import gramian as gm
from scale import dataset

SETS = ("uci_pol", "uci_elevators", "uci_kin40k", "uci_protein")


def run(name: str, split: int) -> tuple[float, float] | None:
    """RMSE and NLPD of the test rows."""
    data = dataset(name, split)
    if data is None:
        return None
    X, y, X_test, y_test = data
    kernel = 1.0 * gm.Matern32(np.full(X.shape[1], np.sqrt(X.shape[1])))
    began = time.perf_counter()
    gp = gm.GPRegressor(kernel, random_state=0).fit(X, y)
    fitted = time.perf_counter()
    mean, std = gp.predict(X_test, return_std=True)
    done = time.perf_counter()
    z = (y_test - mean) / std
    rmse, nlpd = np.sqrt(np.mean((y_test - mean) ** 2)), np.mean(0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi))
    inside = np.mean(np.abs(z) < 1.96)
    size, times = f"{len(X):,} x {X.shape[1]}", f"{fitted - began:.0f} s | {done - fitted:.0f} s"
    print(f"| {name} | {split} | {size} | {gp.outcome_.method} | {rmse:.4f} | {nlpd:.3f} | {inside:.3f} | {times} |", flush=True)
    for stage in gp.outcome_.stages:
        print(f"    {stage}")
    return float(rmse), float(nlpd)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--splits", nargs="+", type=int, choices=range(10), default=[0], metavar="0-9")
    given = parser.parse_args()
    print("| set | split | rows x columns | method | RMSE | NLPD | within 95 % | fit | predict |\n|---|---|---|---|---|---|---|---|---|")
    for name in given.sets:
        found = [row for split in given.splits if (row := run(name, split)) is not None]
        if len(found) > 1:
            (rmse, nlpd), (off, away) = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
            print(f"{name}, {len(found)} splits: RMSE {rmse:.4f} +- {off:.4f}, NLPD {nlpd:.3f} +- {away:.3f} (standard errors)", flush=True)


if __name__ == "__main__":
    main()
