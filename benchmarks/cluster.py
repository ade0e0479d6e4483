"""Rows that no machine holds: a Parquet folder, fitted and predicted by local workers; some are killed.

    python benchmarks/cluster.py --rows 1000000 --features 1000 --workers 2 --memory 2GB --kills 20
    python benchmarks/cluster.py --rows 10000000 --kills 1         # two hours of two cores

In one run: the plan; the fit (a search on rows that are brought here, one pass over all rows); the same pass
by the threads of this process, and by the workers while they are killed at random moments, each with the same
bits or an error; predictions of all rows, written as a folder of as many parts. Times are of this machine,
now; the peak of a worker is its resident set, read four times a second, the largest of all that have lived.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

GROUP = 2**18  # rows of a file, which is one row group
BETWEEN = 1.0, 6.0  # seconds between two kills, at random


def written(folder: Path, rows: int, columns: int) -> None:
    """A smooth function of some columns with noise of 0.1, a file at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for k, start in enumerate(range(0, rows, GROUP)):
        rng = np.random.default_rng(k)
        X = rng.uniform(-2, 2, (min(GROUP, rows - start), columns))
        y = np.sin(2 * X[:, 0]) + X[:, 1] * np.cos(X[:, 2]) + 0.5 * np.abs(X[:, 3]) + np.tanh(X[:, -1])
        table = {f"x{j}": X[:, j] for j in range(columns)} | {"y": y + 0.1 * rng.standard_normal(len(X))}
        pq.write_table(pa.table(table), folder / f"part{k:05}.parquet", row_group_size=GROUP)


def resident(pid: int) -> int:
    """Bytes that a process has in memory."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class Watch(threading.Thread):
    """The workers' memory and, where asked for, their murderer."""

    def __init__(self, cluster: Any, kills: int = 0) -> None:
        super().__init__(daemon=True)
        self.cluster, self.kills, self.killed = cluster, kills, 0
        self.peak, self.ended = 0, threading.Event()
        self.dice = random.Random(0)

    def pids(self) -> list[int]:
        found = []
        for nanny in list(self.cluster.workers.values()):
            process = getattr(getattr(nanny, "process", None), "process", None)
            pid = getattr(process, "pid", None)
            found += [pid] if pid else []
        return found

    def run(self) -> None:
        due = time.monotonic() + self.dice.uniform(*BETWEEN)
        while not self.ended.wait(0.25):
            pids = self.pids()
            self.peak = max([self.peak, *map(resident, pids)])
            if pids and self.killed < self.kills and time.monotonic() > due:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.dice.choice(pids), signal.SIGKILL)
                    self.killed += 1
                due = time.monotonic() + self.dice.uniform(*BETWEEN)


@contextlib.contextmanager
def watched(cluster: Any, what: str, kills: int = 0) -> Iterator[Watch]:
    watch, began = Watch(cluster, kills), time.perf_counter()
    watch.start()
    yield watch
    seconds = time.perf_counter() - began
    watch.ended.set()
    watch.join()
    told = f", {watch.killed} workers killed" if kills else ""
    load = os.getloadavg()[0]
    print(
        f"{what:<34}{seconds:9.1f} s   peak of a worker {watch.peak / 1e9:.2f} GB   load {load:.1f}{told}",
        flush=True,
    )


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, default=1_000_000)
    ask.add_argument("--columns", type=int, default=8)
    ask.add_argument("--features", type=int, default=1000)
    ask.add_argument("--workers", type=int, default=2)
    ask.add_argument("--memory", default="2GB")
    ask.add_argument("--kills", type=int, default=20)
    ask.add_argument("--no-search", action="store_true", help="take parameters as they are")
    ask.add_argument("--no-threads", action="store_true", help="leave the pass by threads out")
    ask.add_argument("--no-predict", action="store_true")
    ask.add_argument("--folder", type=Path, help="where the rows are, or are to be written and stay")
    given = ask.parse_args()

    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import gramian as gm
    from gramian.linalg.executor import Threads

    place = given.folder or Path(tempfile.mkdtemp(prefix="gramian-rows-"))
    place.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    if not any(place.glob("*.parquet")):
        written(place, given.rows, given.columns)
    size = sum(file.stat().st_size for file in place.glob("*.parquet"))
    took = time.perf_counter() - began
    print(f"{given.rows:,} rows x {given.columns} written, {size / 1e9:.2f} GB: {took:.1f} s")
    settings: dict[str, Any] = {"n_workers": given.workers, "threads_per_worker": 1, "host": "127.0.0.1"}
    settings |= {"memory_limit": given.memory, "dashboard_address": "127.0.0.1:0", "silence_logs": 50}
    try:
        with LocalCluster(**settings) as cluster, Client(cluster) as client:
            gp = gm.GPRegressor("matern52", method=gm.Sparse(given.features), client=client, random_state=0)
            gp.set_params(verbose=False, optimize=not given.no_search)
            print(gp.plan(place, "y"), flush=True)
            with watched(cluster, "fit"):
                gp.fit(place, "y")
            print("\n".join(f"    {line}" for line in gp.outcome_.stages))
            fitted, value = gp.fitted_, gp.evidence_.value
            print(f"    evidence {value:.6f}, noise {np.sqrt(gp.noise_):.4f} (0.1)", flush=True)
            with watched(cluster, "one pass over all rows"):
                same = fitted.log_evidence() == value
            print(f"    the same bits: {same}", flush=True)
            if given.kills:
                with watched(cluster, "one pass, with kills", given.kills) as watch:
                    passes = 1
                    same = fitted.log_evidence() == value
                    while watch.killed < given.kills and same:
                        same, passes = fitted.log_evidence() == value, passes + 1
                print(f"    {passes} passes, the same bits: {same}", flush=True)
            if not given.no_threads:
                here = dataclasses.replace(fitted.rows, executor=Threads())
                began = time.perf_counter()
                again = fitted.inference.infer(fitted.model, here).evidence.value
                print(f"{'one pass by threads here':<34}{time.perf_counter() - began:9.1f} s")
                print(f"    the same bits: {again == value}", flush=True)
            if not given.no_predict:
                frame, out = dd.read_parquet(place), place / "predicted"
                with watched(cluster, "predictions of all rows"):
                    gp.predict(frame, return_std=True).to_parquet(out)
                told = dd.read_parquet(out)
                gap = frame["y"] - told["mean"]
                inside = float((gap.abs() <= 1.959964 * told["std"]).mean().compute())
                rmse = float((gap**2).mean().compute()) ** 0.5
                print(f"    {told.npartitions} parts, RMSE {rmse:.4f}, 95 % intervals hold {inside:.4f}")
    finally:
        if given.folder is None:
            shutil.rmtree(place)
        else:
            shutil.rmtree(place / "predicted", ignore_errors=True)


if __name__ == "__main__":
    main()
