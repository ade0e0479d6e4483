"""Neighbours, measured: the log likelihood beside GPBoost's, and tables in space against published numbers.

    python benchmarks/neighbours.py speed --peer /path/to/venv/bin/python
    GRAMIAN_DATA=folder python benchmarks/neighbours.py dem heaton

`speed` runs GPBoost in an environment of its own, turn by turn with ours in the same run: n rows in two
columns, a Matern-3/2 kernel, 30 neighbours. What is printed are ratios of medians, of elapsed time and of the
processors' time. `dem` holds 5,000 rows of dem_jacksboro back at random, `heaton` has the rows that its
authors held back under clouds, and takes a Matern-1/2 kernel, as they did.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import time

import numpy as np

import gramian as gm
from gramian.engines.base import Use
from gramian.linalg.threads import one_blas_thread

TURNS = 5
PEER = """
import sys, time
import numpy as np
import gpboost as gpb

n, m = {n}, {m}
rng = np.random.default_rng(0)
X = rng.uniform(size=(n, 2))
y = np.sin(10 * X[:, 0]) + 0.3 * rng.standard_normal(n)
began = time.perf_counter()
model = gpb.GPModel(gp_coords=X, cov_function="matern", cov_fct_shape=1.5, gp_approx="vecchia",
                    num_neighbors=m, likelihood="gaussian")
print("ready", time.perf_counter() - began, flush=True)
for line in sys.stdin:
    scale = float(line)
    began, busy = time.perf_counter(), time.process_time()
    value = model.neg_log_likelihood(cov_pars=np.array([0.1, 1.0, scale]), y=y)
    print(-value, time.perf_counter() - began, time.process_time() - busy, flush=True)
"""


def speed(n: int, m: int, peer: str | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    y = np.sin(10 * X[:, [0]]) + 0.3 * rng.standard_normal((n, 1))
    noise = np.full(n, 0.1)
    began = time.perf_counter()
    engine = gm.Neighbours(m).prepared(1.0 * gm.Matern32([0.1, 0.1]), X, rng)
    print(f"order and neighbours: {time.perf_counter() - began:.2f} s")
    other = None
    if peer is not None:
        other = subprocess.Popen(
            [peer, "-c", PEER.format(n=n, m=m)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert other.stdin is not None
        assert other.stdout is not None
        while not (line := other.stdout.readline()).startswith("ready"):
            if not line:
                raise SystemExit("GPBoost did not start: give --peer a Python that has it.")
        print(f"GPBoost, the same: {float(line.split()[1]):.2f} s")
    ours, theirs, gradients = [], [], []
    for turn in range(TURNS):
        scale = 0.1 + 0.01 * turn
        kernel = 1.0 * gm.Matern32([scale, scale])
        with one_blas_thread():
            began, busy = time.perf_counter(), time.process_time()
            one = engine.at(kernel, X, Use()).observe(noise, y)
            value = -0.5 * (one.quad.item() + one.logdet_noisy + n * np.log(2 * np.pi))
            ours.append((time.perf_counter() - began, time.process_time() - busy))
            began = time.perf_counter()
            engine.at(kernel, X, Use(back=True)).observe(noise, y).pullback()
            gradients.append(time.perf_counter() - began)
        told = f"log likelihood {value:.2f} in {ours[-1][0]:.2f} s, with gradient {gradients[-1]:.2f} s"
        if other is not None:
            assert other.stdin is not None
            assert other.stdout is not None
            print(scale, file=other.stdin, flush=True)
            their_value, *seconds = map(float, other.stdout.readline().split())
            theirs.append(seconds)
            told += f"; GPBoost {their_value:.2f} in {seconds[0]:.2f} s"
        print(told, flush=True)
    if other is not None:
        assert other.stdin is not None
        other.stdin.close()
        other.wait()
        elapsed, busy = np.median(theirs, axis=0) / np.median(ours, axis=0)
        print(f"GPBoost takes {elapsed:.2f} times as long, and {busy:.2f} times as much of the processors")


def table(name: str, folder: pathlib.Path) -> None:
    file = {"dem": "dem_jacksboro.npz", "heaton": "heaton_satellite.npz"}[name]
    stored = np.load(folder / file)
    X, y = stored["X"], stored["y"].astype(float)
    if name == "dem":
        order = np.random.default_rng(0).permutation(len(X))
        test, train = order[:5000], order[5000:]
    else:
        train, test = (np.flatnonzero(stored[part] & np.isfinite(y)) for part in ("train", "test"))
    kernel = 1.0 * gm.Matern12([1.0, 1.0]) if name == "heaton" else None
    began = time.perf_counter()
    gp = gm.GPRegressor(kernel, method="neighbours", random_state=0).fit(X[train], y[train])
    fit = time.perf_counter() - began
    began = time.perf_counter()
    low, mean, high = gp.predict(X[test], quantiles=[0.025, 0.5, 0.975]).T
    seconds, error = time.perf_counter() - began, mean - y[test]
    held = np.mean((low <= y[test]) & (y[test] <= high))
    print(
        f"{name}, {len(train):,} rows: fit {fit:.0f} s, {len(test):,} predictions {seconds:.1f} s; MAE"
        f" {np.mean(np.abs(error)):.3f}, RMSE {np.sqrt(np.mean(error**2)):.3f}, 95 % intervals hold"
        f" {100 * held:.1f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", nargs="+", choices=["speed", "dem", "heaton"])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--neighbours", type=int, default=30)
    parser.add_argument("--peer", help="a Python with gpboost")
    given = parser.parse_args()
    for what in given.what:
        if what == "speed":
            speed(given.rows, given.neighbours, given.peer)
        else:
            table(what, pathlib.Path(os.environ["GRAMIAN_DATA"]))


if __name__ == "__main__":
    main()
