"""Published data sets with `method="auto"`: test RMSE and NLPD of z-scored targets on published splits, with
the time taken.

    GRAMIAN_DATA=folder python benchmarks/published.py [uci_pol uci_elevators ...] [--splits 0 1 ...]
    [--kernel best] [--theirs] [--method neighbours]

The kernel is a scaled Matern-3/2 with a lengthscale a column, as in what is published, or another Matern, or,
with `--kernel best`, that of the three with the highest evidence on 3,000 random rows to train on; everything
else is the default. `--theirs` does exact inference at published parameters of the Matern-3/2 on split 0
instead of a fit; `--method` takes another than "auto".
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import gramian as gm
from scale import dataset

KERNELS = {"matern12": gm.Matern12, "matern32": gm.Matern32, "matern52": gm.Matern52}
CHOSEN_ON = 3000  # rows
SETS = ("uci_pol", "uci_elevators", "uci_kin40k", "uci_protein")

# Standard deviations of noise and kernel, then the lengthscales, that Lin et al. 2023 ("Sampling from
# Gaussian process posteriors using stochastic gradient descent") fitted to split 0, to four digits; from
# uci_regression_hparams.txt of github.com/cambridge-mlg/sgd-gp.
THEIRS = {
    "uci_pol": (
        "0.03674 0.4008 0.5252 0.6186 1.509 10.13 1.741 5.054 5.226 9.337 10.22 6.576 3.649 3.032 5.206 8.491"
        " 7.535 3.383 7.957 9.567 9.315 9.894 9.533 10.52 10.59 5.873 7.508 4.972"
    ),
    "uci_elevators": (
        "0.3143 0.7084 5.468 6.722 5.229 6.453 6.857 1.267 6.695 1.432 8.194 1.928 3.444 3.444 1.218 7.484"
        " 0.6931 8.495 0.6931 1.217"
    ),
    "uci_protein": "0.08162 0.8651 0.3684 2.749 0.8474 0.2159 0.3491 0.3031 0.1177 0.351 0.2955",
}


def theirs(name: str) -> gm.GPRegressor:
    """Exact inference at the published parameters."""
    noise, scale, *lengths = map(float, THEIRS[name].split())
    kernel = gm.fixed(scale**2) * gm.Matern32(gm.fixed(np.array(lengths)))
    return gm.GPRegressor(
        kernel, noise=gm.fixed(noise**2), method="exact", optimize=False, normalize_y=False, mean="zero"
    )


def ours(kernel: str, method: str, X: np.ndarray, y: np.ndarray) -> tuple[gm.GPRegressor, str]:
    d = X.shape[1]
    made = {
        name: gm.GPRegressor(1.0 * kind(np.full(d, np.sqrt(d))), method=method, random_state=0)
        for name, kind in KERNELS.items()
    }
    if kernel == "best":
        part = np.random.default_rng(0).permutation(len(X))[:CHOSEN_ON]
        compared = gm.compare_models(made, X[part], y[part], by="evidence", verbose=False)
        kernel = compared.winner
        print(
            "    evidence on a part: "
            + ", ".join(f"{row.name} {row.evidence:,.1f}" for row in compared.rows),
            flush=True,
        )
    return made[kernel].fit(X, y), kernel


def run(name: str, split: int, kernel: str, at_theirs: bool, method: str) -> tuple[float, float] | None:
    """RMSE and NLPD of the test rows."""
    data = dataset(name, split)
    if data is None:
        return None
    X, y, X_test, y_test = data
    began = time.perf_counter()
    gp, kernel = (theirs(name).fit(X, y), "matern32") if at_theirs else ours(kernel, method, X, y)
    fitted = time.perf_counter()
    mean, std = gp.predict(X_test, return_std=True)
    done = time.perf_counter()
    z = (y_test - mean) / std
    rmse, nlpd = (
        np.sqrt(np.mean((y_test - mean) ** 2)),
        np.mean(0.5 * z**2 + np.log(std) + 0.5 * np.log(2 * np.pi)),
    )
    inside = np.mean(np.abs(z) < 1.96)
    size, times = f"{len(X):,} x {X.shape[1]}", f"{fitted - began:.0f} s | {done - fitted:.0f} s"
    print(
        f"| {name} | {split} | {size} | {kernel} | {gp.outcome_.method} | {rmse:.4f} | {nlpd:.3f} |"
        f" {inside:.3f} | {times} |",
        flush=True,
    )
    for stage in gp.outcome_.stages:
        print(f"    {stage}")
    return float(rmse), float(nlpd)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=SETS)
    parser.add_argument("--splits", nargs="+", type=int, choices=range(10), default=[0], metavar="0-9")
    parser.add_argument("--kernel", choices=[*KERNELS, "best"], default="matern32")
    parser.add_argument("--method", default="auto")
    parser.add_argument(
        "--theirs", action="store_true", help=f"at published parameters, of split 0 ({', '.join(THEIRS)})"
    )
    given = parser.parse_args()
    if given.theirs and (given.splits != [0] or not set(given.sets) <= set(THEIRS)):
        parser.error(f"--theirs is for split 0 of {', '.join(THEIRS)}: name these sets.")
    print(
        "| set | split | rows x columns | kernel | method | RMSE | NLPD | within 95 % | fit | predict"
        " |\n|---|---|---|---|---|---|---|---|---|---|"
    )
    for name in given.sets:
        found = [
            row
            for split in given.splits
            if (row := run(name, split, given.kernel, given.theirs, given.method)) is not None
        ]
        if len(found) > 1:
            (rmse, nlpd), (off, away) = (
                np.mean(found, axis=0),
                np.std(found, axis=0, ddof=1) / np.sqrt(len(found)),
            )
            print(
                f"{name}, {len(found)} splits: RMSE {rmse:.4f} +- {off:.4f}, NLPD {nlpd:.3f} +- {away:.3f}"
                " (standard errors)",
                flush=True,
            )


if __name__ == "__main__":
    main()
