"""Rows that no machine holds: a Parquet folder, fitted and predicted by local workers; some are killed.

    python benchmarks/cluster.py --rows 1000000 --features 1000 --workers 2 --memory 2GB --kills 20
    python benchmarks/cluster.py --rows 10000000 --kills 1 --between 120,300 --no-again --no-threads

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


def processor_seconds(pids: list[int]) -> float:
    """What processes have had of the processors."""
    total = 0.0
    for pid in pids:
        with contextlib.suppress(OSError, IndexError, ValueError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


class Watch(threading.Thread):
    """The workers' memory and, where asked for, their murderer."""

    def __init__(self, cluster: Any, kills: int, between: tuple[float, float]) -> None:
        super().__init__(daemon=True)
        self.cluster, self.kills, self.killed, self.between = cluster, kills, 0, between
        self.peak, self.ended = 0, threading.Event()
        self.worked = 0.0  # seconds of those that were killed
        self.dice = random.Random(0)

    def pids(self, started: bool = False) -> list[int]:
        """Of all workers, or of those that have started: Dask gives up one that dies before."""
        found = []
        for nanny in list(self.cluster.workers.values()):
            worker = getattr(nanny, "process", None)
            if started and getattr(getattr(worker, "status", None), "name", "") != "running":
                continue
            process = getattr(worker, "process", None)
            pid = getattr(process, "pid", None)
            found += [pid] if pid else []
        return found

    def run(self) -> None:
        due = time.monotonic() + self.dice.uniform(*self.between)
        while not self.ended.wait(0.25):
            pids = self.pids()
            self.peak = max([self.peak, *map(resident, pids)])
            ready = self.pids(started=True)
            if ready and self.killed < self.kills and time.monotonic() > due:
                with contextlib.suppress(ProcessLookupError):
                    victim = self.dice.choice(ready)
                    self.worked += processor_seconds([victim])
                    os.kill(victim, signal.SIGKILL)
                    self.killed += 1
                due = time.monotonic() + self.dice.uniform(*self.between)


@contextlib.contextmanager
def watched(
    cluster: Any, what: str, kills: int = 0, between: tuple[float, float] = (1.0, 6.0)
) -> Iterator[Watch]:
    watch, began = Watch(cluster, kills, between), time.perf_counter()
    worked = processor_seconds(watch.pids())
    watch.start()
    yield watch
    seconds = time.perf_counter() - began
    worked = watch.worked + processor_seconds(watch.pids()) - worked
    watch.ended.set()
    watch.join()
    told = f", {watch.killed} workers killed" if kills else ""
    load = os.getloadavg()[0]
    print(
        f"{what:<26}{seconds:9.1f} s   the workers' processors {worked:8.1f} s   "
        f"peak of a worker {watch.peak / 1e9:.2f} GB   load {load:.1f}{told}",
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
    ask.add_argument("--between", default="1,6", help="seconds between two kills, at random from these")
    ask.add_argument("--no-search", action="store_true", help="take parameters as they are")
    ask.add_argument("--no-again", action="store_true", help="leave the pass that nothing disturbs out")
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
    predicted = place.with_name(f"{place.name}-predicted")  # beside the rows: no part of their folder
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
            if not given.no_again:
                with watched(cluster, "one pass over all rows"):
                    same = fitted.log_evidence() == value
                print(f"    the same bits: {same}", flush=True)
            if given.kills:
                low, _, high = given.between.partition(",")
                between = float(low), float(high)
                with watched(cluster, "one pass, with kills", given.kills, between) as watch:
                    passes = 1
                    same = fitted.log_evidence() == value
                    while watch.killed < given.kills and same:
                        same, passes = fitted.log_evidence() == value, passes + 1
                print(f"    {passes} passes, the same bits: {same}", flush=True)
            if not given.no_threads:
                here = dataclasses.replace(fitted.rows, executor=Threads())
                began = time.perf_counter()
                again = fitted.inference.infer(fitted.model, here).evidence.value
                print(f"{'one pass by threads here':<26}{time.perf_counter() - began:9.1f} s")
                print(f"    the same bits: {again == value}", flush=True)
            if not given.no_predict:
                frame, out = dd.read_parquet(place), predicted
                with watched(cluster, "predictions of all rows"):
                    gp.predict(frame, return_std=True).to_parquet(out)
                told = dd.read_parquet(out)
                gap = frame["y"] - told["mean"]
                inside = float((gap.abs() <= 1.959964 * told["std"]).mean().compute())
                rmse = float((gap**2).mean().compute()) ** 0.5
                print(f"    {told.npartitions} parts, RMSE {rmse:.4f}, 95 % intervals hold {inside:.4f}")
    finally:
        shutil.rmtree(predicted, ignore_errors=True)
        if given.folder is None:
            shutil.rmtree(place)


if __name__ == "__main__":
    main()
