"""One line of progress on a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

_QUIET_SECONDS = 0.5  # a fit that ends sooner shows nothing


class Report(Protocol):
    """Called after each evaluation."""

    def __call__(self, start: int, starts: int, evaluations: int, best: float) -> None: ...


@contextmanager
def progress(verbose: bool | None) -> Iterator[Report]:
    """A reporter: on a terminal by default (None), always (True) or never (False)."""
    if verbose is False or (verbose is None and not sys.stderr.isatty()):
        yield lambda start, starts, evaluations, best: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    began = time.monotonic()
    status = console.status("fitting")
    shown = False

    def report(start: int, starts: int, evaluations: int, best: float) -> None:
        nonlocal shown
        elapsed = time.monotonic() - began
        text = f"fitting: start {start} of {starts}, evaluation {evaluations}, best {best:.4f}, {elapsed:.0f} s (Ctrl-C keeps the best so far)"
        if not console.is_terminal:
            console.print(text)
        elif elapsed > _QUIET_SECONDS:
            status.update(text)
            if not shown:
                status.start()
                shown = True

    try:
        yield report
    finally:
        if shown:
            status.stop()
