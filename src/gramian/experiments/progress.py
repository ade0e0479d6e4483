"""A bar on a terminal: which run is at work, how many are done, how long the rest may take."""

from __future__ import annotations

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
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if done:
        console.print(f"{done} runs are there already; {left} to do")
    begun = 0
    if not console.is_terminal:

        def line(what: str) -> None:
            nonlocal begun
            begun += 1
            console.print(f"run {begun} of {left}: {what}")

        yield line
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task("comparing", total=left)

        def step(what: str) -> None:
            nonlocal begun
            shown.update(task, description=what, completed=begun)
            begun += 1

        yield step
