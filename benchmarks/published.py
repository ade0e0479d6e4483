"""Published data sets with `method="auto"`: test RMSE and NLPD of z-scored targets on a published split, with the time taken.

    GRAMIAN_DATA=folder python benchmarks/published.py [uci_pol uci_elevators ...]

The kernel is a scaled Matern-3/2 with a lengthscale a column; everything else is the default.
"""

from __future__ import annotations

import sys
import time

import numpy as np

import gramian as gm
from scale import dataset

SETS = ("uci_pol", "uci_elevators", "uci_kin40k", "uci_protein")


def run(name: str) -> None:
    data = dataset(name)
    if data is None:
        return
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
    print(f"| {name} | {size} | {gp.outcome_.method} | {rmse:.4f} | {nlpd:.3f} | {inside:.3f} | {times} |", flush=True)
    for stage in gp.outcome_.stages:
        print(f"    {stage}")


if __name__ == "__main__":
    print("| set | rows x columns | method | RMSE | NLPD | within 95 % | fit | predict |\n|---|---|---|---|---|---|---|---|")
    for name in sys.argv[1:] or SETS:
        run(name)
