"""What stands around each command: options once, errors as one sentence with exit code 2, Ctrl-C as 130 and
SIGTERM as 143."""

from __future__ import annotations

import errno
import io
import math
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand

from gramian import clock
from gramian.cli.speech import said
from gramian.cli.voice import let_go, note
from gramian.errors import GramianError, KernelTextError
from gramian.interrupt import attended, terminable
from gramian.linalg.memory import translated

SHORT = "This command", "Use fewer rows, or close other programs."


class Once(TyperCommand):
    """A command that refuses an option of one value that is given twice, of which the last would be taken."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        twice = next((p for p in given if given.count(p) > 1 and not getattr(p, "multiple", True)), None)
        if twice is not None and not ctx.resilient_parsing:
            ctx.fail(f"{twice.opts[0]} takes one value, but is given {given.count(twice)} times.")
        return super().parse_args(ctx, args)


@contextmanager
def guarded(time_limit: float | None = None) -> Iterator[None]:
    """Tells what a user can mend without a traceback; a fault of the library itself keeps its traceback. A
    time limit begins here: what is imported and read counts as well."""
    end = None if time_limit is None else clock.now() + time_limit
    for stream in (sys.stdout, sys.stderr):  # a name in a file may have what no screen can show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with (
            terminable(),
            attended(lambda: "the present step"),
            clock.until(end, math.inf),
            translated(*SHORT),
            warnings_as_notes(),
        ):
            yield
    except KernelTextError as error:
        _fail(str(error))  # it shows the kernel as it was typed
    except GramianError as error:
        _fail(said(str(error)))
    except OSError as error:
        untold(error)
    except KeyboardInterrupt:
        note("interrupted")
        raise typer.Exit(130) from None


@contextmanager
def warnings_as_notes() -> Iterator[None]:
    """Within it what the library warns users of is a note, without the line of Python that it came from."""
    with warnings.catch_warnings():
        before = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, UserWarning):
                note(f"note: {said(str(message))}")
            else:
                before(message, category, *place, **more)

        warnings.showwarning = show
        yield


def untold(error: OSError) -> NoReturn:
    """Ends a command that the system did not let read, write or print."""
    if error.errno == errno.EPIPE:
        let_go()  # the reader of a pipe has left, as `head` does
        raise typer.Exit(1) from None
    where = error.filename or "standard output"
    if not error.filename:
        let_go()
    _fail(f"{os.fsdecode(where)}: {error.strerror or error}.")


def _fail(message: str) -> NoReturn:
    note(f"error: {message}")
    raise typer.Exit(2) from None
