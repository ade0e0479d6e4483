"""What stands around each command: errors as one sentence with exit code 2, Ctrl-C as 130."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from gramian import clock
from gramian.cli.speech import said
from gramian.cli.voice import let_go, note
from gramian.errors import GramianError, KernelTextError
from gramian.interrupt import attended


@contextmanager
def guarded(time_limit: float | None = None) -> Iterator[None]:
    """Tells what a user can mend without a traceback; a fault of the library itself keeps its traceback. A
    time limit begins here: what is imported and read counts as well."""
    end = None if time_limit is None else clock.now() + time_limit
    try:
        with attended(lambda: "the present step"), clock.until(end, math.inf):
            yield
    except KernelTextError as error:
        _fail(str(error))  # it shows the kernel as it was typed
    except GramianError as error:
        _fail(said(str(error)))
    except MemoryError:
        _fail("The memory of this machine is not enough. Use fewer rows, or close other programs.")
    except OSError as error:
        untold(error)
    except KeyboardInterrupt:
        note("interrupted")
        raise typer.Exit(130) from None


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
