"""A bar on a terminal: which run is at work, how many are done, how long the rest may take."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Step = Callable[[str], None]  # called before each run with what it is of


@contextmanager
def bar(verbose: bool | None, left: int, done: int) -> Iterator[Step]:
    """On a terminal by default (None), always (True: lines where there is no terminal) or never (False)."""
    if left == 0 or verbose is False or (verbose is None and not sys.stderr.isatty()):
        yield lambda what: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    console, begun = Console(stderr=True), itertools.count()
    if done:
        console.print(f"{done} runs are there already; {left} to do")
    if not console.is_terminal:
        yield lambda what: console.print(f"run {next(begun) + 1} of {left}: {what}")
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress("{task.description}", *columns, console=console, transient=True) as shown:
        task = shown.add_task("comparing", total=left)
        yield lambda what: shown.update(task, description=what, completed=next(begun))
