"""What the benchmarks share: results as ratios, contenders that take turns, and peak memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Result(NamedTuple):
    """One line of the table."""

    name: str
    ours: str
    theirs: str
    ratio: float
    aim: str
    good: bool


def take_turns(rounds: int, **contenders: Callable[[], object]) -> dict[str, float]:
    """The best time of each, in seconds; one untimed round first."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            began = time.perf_counter()
            run()
            if number:
                times[name].append(time.perf_counter() - began)
    return {name: min(values) for name, values in times.items()}


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
