"""What a command says: results on standard output, notes and errors on standard error.

Both are doors to a terminal, so names, cells and paths in what is said are shown as they are, with control
characters escaped. A stream that was closed before the command began says nothing to nobody; the command does
its work all the same. A reader of standard output who leaves, as `head` does, ends the command quietly, with
exit code 1; what is written to files is written by then. Notes are no results: where standard error cannot
take them, they are lost, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import sys

import typer

from gramian.errors import visible


def fill_streams() -> None:
    """Opens standard streams that are closed as the null device: or else the next file that is opened would
    be in their place, and would get what is printed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        with contextlib.suppress(OSError):
            os.fstat(number)
            if getattr(sys, name) is not None:
                continue
        null = open(os.devnull, "r+", encoding="utf-8")  # noqa: SIM115 (open as long as the process)
        if null.fileno() != number:
            with contextlib.suppress(OSError):
                os.fstat(number)  # taken by another file meanwhile
                setattr(sys, name, null)
                continue
            os.dup2(null.fileno(), number)
        setattr(sys, name, null)


def say(text: object = "") -> None:
    """A line of the result."""
    typer.echo(visible(str(text)))


def note(text: str) -> None:
    """A line beside it."""
    with contextlib.suppress(OSError):
        typer.echo(visible(text), err=True)


def let_go() -> None:
    """What standard output could not take is given up, so that the interpreter does not try again at its
    end."""
    for stream, name in ((sys.stdout, "stdout"), (sys.stderr, "stderr")):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
