"""Neighbours, measured: the log likelihood beside GPBoost's, and tables in space against published numbers.

    python benchmarks/neighbours.py speed --peer /path/to/venv/bin/python
    GRAMIAN_DATA=folder python benchmarks/neighbours.py dem heaton heaton-default

`speed` runs GPBoost in an environment of its own, turn by turn with ours in the same run: n rows in two
columns, a Matern-3/2 kernel of one variance and lengthscale, one noise, 30 neighbours. Both get the rows in
the same order (ours; GPBoost takes it as it is), so that each row has the same neighbours and both values
must agree to rounding; they are compared. The time of an evaluation is that of the log likelihood at new
parameters alone. What is done once is told beside it: ours is order and neighbours, GPBoost's is its model
with the neighbours, in an order that it is given. Told are the best and the median of the turns, elapsed and
of the processors, and GPBoost's over ours.

`dem` holds 5,000 rows of dem_jacksboro back at random, `heaton` has the rows that its authors held back under
clouds, and takes a Matern-1/2 kernel, as they did. With `-default` nothing is said: GPRegressor().
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

import gramian as gm
from gramian.engines.base import Use
from gramian.linalg.threads import one_blas_thread

TURNS = 9
NOISE = 0.1
PEER = """
import sys, time
import numpy as np
import gpboost as gpb

rows = np.load(sys.argv[1])
X, y = rows[:, :2].copy(), rows[:, 2].copy()
began = time.perf_counter()
model = gpb.GPModel(gp_coords=X, cov_function="matern", cov_fct_shape=1.5, gp_approx="vecchia",
                    num_neighbors={m}, vecchia_ordering="none", likelihood="gaussian")
print("ready", time.perf_counter() - began, flush=True)
for line in sys.stdin:
    scale = float(line)
    began, busy = time.perf_counter(), time.process_time()
    value = model.neg_log_likelihood(cov_pars=np.array([{noise}, 1.0, scale]), y=y)
    print("value", -value, time.perf_counter() - began, time.process_time() - busy, flush=True)
"""


def speed(n: int, m: int, peer: str | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    y = np.sin(10 * X[:, [0]]) + 0.3 * rng.standard_normal((n, 1))
    noise = np.full(n, NOISE)
    began = time.perf_counter()
    engine = gm.Neighbours(m).prepared(1.0 * gm.Matern32([0.1, 0.1]), X, rng)
    print(f"{n:,} rows, {m} neighbours. Once, order and neighbours: {time.perf_counter() - began:.2f} s")
    assert engine.chosen is not None
    other = None if peer is None else Peer(peer, m, np.hstack([X, y])[engine.chosen.order])
    ours, theirs, gradients = [], [], []
    for turn in range(TURNS):
        scale = 0.1 + 0.01 * turn
        kernel = 1.0 * gm.Matern32([scale, scale])

        def value(kernel: gm.Kernel = kernel) -> float:
            one = engine.at(kernel, X, Use()).observe(noise, y)
            return float(-0.5 * (one.quad.item() + one.logdet_noisy + n * np.log(2 * np.pi)))

        def gradient(kernel: gm.Kernel = kernel) -> None:
            engine.at(kernel, X, Use(back=True)).observe(noise, y).pullback()

        with one_blas_thread():
            found, seconds = timed(value)
            ours.append(seconds)
            gradients.append(timed(gradient)[1])
        told = f"log likelihood {found:.6f} in {ours[-1][0]:.3f} s, with gradient {gradients[-1][0]:.3f} s"
        if other is not None:
            their_value, *their_seconds = other.value(scale)
            theirs.append(their_seconds)
            told += f"; GPBoost {their_value:.6f} in {their_seconds[0]:.3f} s"
            assert abs(their_value - found) < 1e-7 * abs(found), (found, their_value)
        print(told, flush=True)
    for name, turns in (("log likelihood", ours), ("with gradient", gradients), ("GPBoost", theirs)):
        if turns:
            (fast, busy), (usual, usually) = np.min(turns, axis=0), np.median(turns, axis=0)
            print(
                f"{name}: best {fast:.3f} s, median {usual:.3f} s; processors {busy:.3f} and {usually:.3f} s"
            )
    if other is not None:
        other.close()
        for name, of in (("best", np.min), ("median", np.median)):
            elapsed, busy = of(theirs, axis=0) / of(ours, axis=0)
            print(f"{name}: GPBoost takes {elapsed:.2f} times as long, {busy:.2f} times the processors")


T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, tuple[float, float]]:
    """What it gives; seconds, elapsed and of the processors."""
    began, busy = time.perf_counter(), time.process_time()
    found = work()
    return found, (time.perf_counter() - began, time.process_time() - busy)


class Peer:
    """GPBoost in a process of its own."""

    def __init__(self, python: str, m: int, rows: np.ndarray) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "rows.npy"
            np.save(file, rows)
            command = [python, "-c", PEER.format(m=m, noise=NOISE), str(file)]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            while not (line := self._line()).startswith("ready"):
                if not line:
                    raise SystemExit("GPBoost did not start: give --peer a Python that has it.")
        print(f"GPBoost, once, its model with neighbours: {float(line.split()[1]):.2f} s")

    def value(self, scale: float) -> list[float]:
        assert self.process.stdin is not None
        print(scale, file=self.process.stdin, flush=True)
        while not (line := self._line()).startswith("value"):
            assert line
        return [float(part) for part in line.split()[1:]]

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def table(name: str, folder: pathlib.Path) -> None:
    which, _, default = name.partition("-")
    file = {"dem": "dem_jacksboro.npz", "heaton": "heaton_satellite.npz"}[which]
    stored = np.load(folder / file)
    X, y = stored["X"], stored["y"].astype(float)
    if which == "dem":
        order = np.random.default_rng(0).permutation(len(X))
        test, train = order[:5000], order[5000:]
    else:
        train, test = (np.flatnonzero(stored[part] & np.isfinite(y)) for part in ("train", "test"))
    kernel = 1.0 * gm.Matern12([1.0, 1.0]) if which == "heaton" and not default else None
    began = time.perf_counter()
    method = "auto" if default else "neighbours"
    gp = gm.GPRegressor(kernel, method=method, random_state=0).fit(X[train], y[train])
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
    parser.add_argument(
        "what",
        nargs="+",
        choices=["speed", *(name + more for name in ("dem", "heaton") for more in ("", "-default"))],
    )
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
