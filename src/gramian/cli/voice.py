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
import re
import shutil
import sys
import textwrap
from typing import Final, TextIO

import typer

from gramian.errors import visible

_BEGINS: Final = re.compile(r" *(?:- |\S+(?: \S+)? {2,})?")  # a name, or a dash, before a sentence


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
    typer.echo(folded(visible(str(text)), sys.stdout))


def note(text: str) -> None:
    """A line beside it."""
    with contextlib.suppress(OSError):
        typer.echo(folded(visible(text), sys.stderr), err=True)


def folded(text: str, stream: TextIO) -> str:
    """The text with long lines broken between words, where a terminal would break them anywhere; in a file or
    a pipe a line stays one. Lines go on where their sentence began; rows of tables stay as they are."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    begins = _BEGINS.match(line)
    hang = begins.end() if begins is not None else 0
    if len(line) <= width or 2 * hang > width or "  " in line[hang:].rstrip():
        return line
    return textwrap.fill(
        line[hang:],
        width,
        initial_indent=line[:hang],
        subsequent_indent=" " * hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


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
