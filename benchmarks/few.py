"""Intervals of few rows: do 95 % of them hold, where the data are from the model itself?

    python benchmarks/few.py [--rows 6,10,15] [--noises 0.05,0.3,1] [--tables 150] [--before] [--seed 0]

Each table has rows on the unit cube of 1, 2 or 4 columns in turn, f from a Matern-5/2 of variance 1 with
lengthscales 0.3 sqrt(columns), y with noise of the given standard deviation, and 60 more rows to be foretold
by `GPRegressor()`. A cell is the share of these in their 95 % interval, over all tables, and its standard
error, over tables. `--before`: by the best parameters alone (`hyper="map"`), which is how it was before few
rows were averaged over what the parameters may be.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from threadpoolctl import threadpool_limits

import gramian as gm

COLUMNS = (1, 2, 4)
NEW = 60  # rows to be foretold
LEVELS = (0.5, 0.8, 0.95)


def table(seed: int, n: int, d: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """n rows to learn from, and NEW more."""
    rng = np.random.default_rng([seed, n, d, round(1000 * noise)])
    X = rng.uniform(size=(n + NEW, d))
    K = np.asarray(gm.Matern52(np.full(d, 0.3 * np.sqrt(d)))(X))
    f = np.linalg.cholesky(K + 1e-10 * np.eye(len(X))) @ rng.standard_normal(len(X))
    return X, f + noise * rng.standard_normal(len(X))


def held(n: int, d: int, noise: float, seed: int, hyper: str) -> list[float]:
    """The shares of new rows within their intervals."""
    X, y = table(seed, n, d, noise)
    gp = gm.GPRegressor(hyper=hyper, random_state=0, verbose=False).fit(X[:n], y[:n])
    away = np.abs(gp.predict_dist(X[n:]).cdf(y[n:]) - 0.5)
    return [float(np.mean(away < level / 2)) for level in LEVELS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="6,10,15,25,50,100")
    parser.add_argument("--noises", default="0.05,0.3,1")
    parser.add_argument("--tables", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--before", action="store_true")
    given = parser.parse_args()
    hyper = "map" if given.before else "auto"
    print("rows  noise  within 95 % (standard error)  80 %   50 %   seconds of a processor")
    for n in map(int, given.rows.split(",")):
        for noise in map(float, given.noises.split(",")):
            began = time.process_time()
            shares = np.array(
                [
                    held(n, COLUMNS[k % len(COLUMNS)], noise, 1000 * given.seed + k, hyper)
                    for k in range(given.tables)
                ]
            )
            half, most, nearly = shares.mean(axis=0)
            error = shares[:, 2].std(ddof=1) / np.sqrt(len(shares))
            taken = time.process_time() - began
            print(
                f"{n:4}  {noise:5g}  {nearly:.3f} ({error:.3f}){'':15}{most:.3f}  {half:.3f}  {taken:5.0f}",
                flush=True,
            )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
