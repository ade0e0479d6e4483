"""One line of progress on a terminal; nothing in a pipe.

The line is drawn by a thread, so that its clock goes on while one evaluation takes minutes. It fits the
terminal: what matters least stands last, and is cut. What remains is estimated from the pace of the
evaluations so far, as many as a search usually takes, and what comes after them in units of one.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gramian import clock

_QUIET_SECONDS = 0.5  # a fit that ends sooner shows nothing
KEEPS, KEEPS_PART = "Ctrl-C keeps the best", "Ctrl-C keeps the rows that parameters were fitted on"


class Report:
    """What a long fit tells. This one tells nobody, but knows what the fit is at."""

    doing = "the fit"

    def resumed(self, sentence: str) -> None:
        """Before anything else, where a fit goes on from a checkpoint."""

    def stage(self, what: str, evaluations: int, ahead: float = 0.0) -> None:
        """Before a search: on what it is, how many evaluations such a one takes as a rule, and how many more
        of its evaluations what comes after it would be."""
        self.doing = f"an evaluation of {what}"

    def __call__(self, start: int, starts: int, evaluations: int, best: float) -> None:
        """After each evaluation of a search."""

    def task(self, what: str) -> None:
        """Before work that is no search."""
        self.doing = what

    def final(self, rows: int) -> None:
        """Before the final inference."""
        self.doing = f"the inference on {rows:,} rows"

    def share(self, done: float) -> None:
        """From time to time during the final inference on all rows: how much of it is done, from 0 to 1."""


class _Line(Report):
    """One line that changes in place on a terminal; a line each elsewhere."""

    def __init__(self) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.began = self.since = clock.now()  # of the fit, and of what it is at
        self.limit = clock.end()
        self.what, self.hint, self.told = "fitting", KEEPS, 0.0
        self.usual, self.ahead, self.done, self.share_done = 0, 0.0, 0, 0.0
        self.first = self.last = self.began  # when evaluations of this search have ended
        self.before = 1  # how many had ended at the first of these times
        self.live: Any = None
        self.lock = threading.Lock()
        self.ended = False
        self.timer: threading.Timer | None = None
        if self.console.is_terminal:
            self.timer = threading.Timer(max(_QUIET_SECONDS, 0.0), self.show)
            self.timer.daemon = True
            self.timer.start()

    def resumed(self, sentence: str) -> None:
        self.console.print(sentence, soft_wrap=True, markup=False, highlight=False)

    def stage(self, what: str, evaluations: int, ahead: float = 0.0) -> None:
        super().stage(what, evaluations, ahead)
        self.usual, self.ahead, self.done, self.since = evaluations, ahead, 0, clock.now()
        self.what, self.hint = f"fitting: {what}", KEEPS

    def __call__(self, start: int, starts: int, evaluations: int, best: float) -> None:
        begins = evaluations == 1 or not self.done  # the first, or the first that is not from a checkpoint
        self.done, self.last = evaluations, clock.now()
        self.first, self.before = (self.last, evaluations) if begins else (self.first, self.before)
        of = f"start {start} of {starts}, " if starts > 1 or not self.console.is_terminal else ""
        self.what, self.hint = f"fitting: {of}evaluation {evaluations}, best {best:.4f}", KEEPS
        self._tell()

    def task(self, what: str) -> None:
        super().task(what)
        self.usual, self.share_done, self.since = 0, 0.0, clock.now()
        self.what, self.hint = what, "Ctrl-C ends it"

    def final(self, rows: int) -> None:
        super().final(rows)
        self.usual, self.share_done, self.since = 0, 0.0, clock.now()
        self.what, self.hint = "final inference on all rows", KEEPS_PART

    def share(self, done: float) -> None:
        self.share_done = done
        self.what, self.hint = f"final inference on all rows: {done:.0%}", KEEPS_PART
        if self.console.is_terminal or done >= self.told + 0.1:  # in a log, a line a tenth
            self.told = done
            self._tell()

    def left(self) -> float | None:
        """Seconds that remain, about; None where nothing is known yet."""
        now, left = clock.now(), None
        if self.usual and self.done:
            # of the evaluations after the first, which compiles, as soon as there are some
            more = self.done - self.before
            pace = (self.last - self.first) / more if more else self.last - self.since
            rest = max(self.usual - self.done, 0.1 * self.done) + self.ahead
            left = max(pace * rest - (now - self.last), 0.0)
        elif not self.usual and self.share_done > 0:
            left = (now - self.since) * (1 - self.share_done) / self.share_done
        known = [
            seconds for seconds in (left, self.limit - now) if seconds is not None and seconds < math.inf
        ]
        return max(min(known), 0.0) if known else None

    def text(self) -> str:
        """The line as it is now, what matters first."""
        left, elapsed = self.left(), clock.now() - self.began
        rest = "" if left is None else f", about {shown(left)} left"
        return f"{shown(elapsed)}{rest}; {self.what} ({self.hint})"

    def __rich__(self) -> Any:
        from rich.text import Text

        return Text(self.text(), no_wrap=True, overflow="ellipsis")

    def _tell(self) -> None:
        if not self.console.is_terminal:
            self.console.print(self.text(), soft_wrap=True, markup=False, highlight=False)

    def show(self) -> None:
        """Begins to draw, on a thread of its own."""
        from rich.live import Live

        with self.lock:
            if not self.ended and self.live is None:
                self.live = Live(self, console=self.console, refresh_per_second=2, transient=True)
                self.live.start(refresh=True)

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        with self.lock:
            self.ended = True
            if self.live is not None:
                self.live.stop()


def shown(seconds: float) -> str:
    """75 -> "1:15 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02} h" if hours else f"{minutes}:{rest:02} min"


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
        line.end()
