"""Peak memory while something runs: the resident set of the process, sampled by a thread. On Linux; elsewhere
it is not measured."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

EVERY = 0.005  # seconds: a large array is written for longer than that


@dataclass
class Peak:
    """The most resident memory beyond what there was before, in bytes; NaN where it cannot be measured. Known
    when the block has ended."""

    bytes: float = float("nan")


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Watches the memory of the process inside a `with`. Memory that the process holds in reserve and uses
    again does not show."""
    peak, before, done = Peak(), resident_bytes(), threading.Event()
    if before is None:
        yield peak
        return
    most = before

    def watch() -> None:
        nonlocal most
        while not done.wait(EVERY):
            most = max(most, resident_bytes() or 0)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()
        peak.bytes = float(max(most, resident_bytes() or 0) - before)


def resident_bytes() -> int | None:
    """What the process holds in memory now."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None
