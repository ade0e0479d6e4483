"""What the benchmarks share: results as ratios, contenders that take turns, here or in processes of their
own, and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import peers


class Result(NamedTuple):
    """One line of the table."""

    name: str
    ours: str
    theirs: str
    ratio: float
    aim: str
    good: bool


# seconds between turns: threads of OpenBLAS go on looking for work after their last, on the cores of the next
REST = 0.2


def take_turns(rounds: int, **contenders: Callable[[], object]) -> dict[str, float]:
    """The best time of each, in seconds; one untimed round first."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            time.sleep(REST)
            began = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - began)
    return {name: min(values) for name, values in times.items()}


def against_peers(
    what: str, ours: Callable[[], float], aim: float, value: float | None = None, rounds: int = 3
) -> list[Result]:
    """Seconds of `ours` against those of each peer that `peers.py` has at this task, the best of each, in
    turns; `value` is shown beside theirs."""
    tasks = [task for task in peers.TASKS if task.split()[0] == what.split(",")[0]]
    mine, theirs, values = [], {task: [] for task in tasks}, {}
    for _ in range(rounds):
        mine.append(ours())
        for task in list(theirs):
            found = _peer(task)
            if found is None:
                print(
                    f"  {task.split()[1]} is not installed in {' or '.join(_interpreters())}: left out (see"
                    " benchmarks/peers.py)"
                )
                del theirs[task]
            else:
                theirs[task].append(found["seconds"])
                values[task] = found["value"]

    def shown(seconds: float, ended: float | None) -> str:
        return f"{seconds:.4g} s" + ("" if ended is None or value is None else f", {ended:.6g}")

    best = min(mine)
    return [
        at_least(
            f"{what}: {task.split()[1]} over ours",
            shown(best, value),
            shown(min(times), values[task]),
            min(times) / best,
            aim,
        )
        for task, times in theirs.items()
    ]


def _peer(task: str) -> dict[str, float] | None:
    """What the first interpreter that has the library says; None where none has it."""
    for interpreter in _interpreters():
        done = subprocess.run([interpreter, peers.__file__, *task.split()], capture_output=True, text=True)
        if done.returncode == 0:
            found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
            return found
        if done.returncode != peers.NOT_INSTALLED:
            raise RuntimeError(f"{task} failed with {interpreter}:\n{done.stderr}")
    return None


def _interpreters() -> list[str]:
    given = os.environ.get("GRAMIAN_PEERS", "")
    return given.split(os.pathsep) if given else [sys.executable]


def at_least(name: str, ours: str, theirs: str, ratio: float, aim: float) -> Result:
    """A ratio that should be large."""
    return Result(name, ours, theirs, ratio, f">= {aim:g}", ratio >= aim)


def at_most(name: str, ours: str, theirs: str, ratio: float, aim: float) -> Result:
    """A ratio that should be small."""
    return Result(name, ours, theirs, ratio, f"<= {aim:g}", ratio <= aim)


def resident() -> int:
    """The resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def peak_extra_bytes(run: Callable[[], object], measure: Callable[[], int] = resident) -> int:
    """The most memory while `run` runs, beyond what there was before."""
    before, peak, done = measure(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, measure())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        run()
    finally:
        done.set()
        watcher.join()
    return max(peak, measure()) - before
