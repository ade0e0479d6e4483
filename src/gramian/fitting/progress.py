"""One line of progress on a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_QUIET_SECONDS = 0.5  # a fit that ends sooner shows nothing


class Report:
    """What a long fit tells. This one tells nobody."""

    def __call__(self, start: int, starts: int, evaluations: int, best: float) -> None:
        """After each evaluation of a search."""

    def share(self, done: float) -> None:
        """From time to time during the final inference on all rows: how much of it is done, from 0 to 1."""


class _Line(Report):
    """One line that changes in place on a terminal; a line each elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.status = self.console.status("fitting")
        self.began = time.monotonic()
        self.shown = False
        self.told = 0.0

    def __call__(self, start: int, starts: int, evaluations: int, best: float) -> None:
        what = f"fitting: start {start} of {starts}, evaluation {evaluations}, best {best:.4f}"
        self._tell(what, "Ctrl-C keeps the best so far")

    def share(self, done: float) -> None:
        if self.console.is_terminal or done >= self.told + 0.1:  # in a log, a line a tenth
            self.told = done
            hint = "Ctrl-C keeps the rows that parameters were fitted on"
            self._tell(f"final inference on all rows: {done:.0%}", hint)

    def _tell(self, what: str, hint: str) -> None:
        elapsed = time.monotonic() - self.began
        text = f"{what}, {elapsed:.0f} s ({hint})"
        if not self.console.is_terminal:
            self.console.print(text)
        elif elapsed > _QUIET_SECONDS:
            self.status.update(text)
            if not self.shown:
                self.status.start()
                self.shown = True


@contextmanager
def progress(verbose: bool | None) -> Iterator[Report]:
    """A reporter: on a terminal by default (None), always (True) or never (False)."""
    if verbose is False or (verbose is None and not sys.stderr.isatty()):
        yield Report()
        return
    line = _Line()
    try:
        yield line
    finally:
        if line.shown:
            line.status.stop()
