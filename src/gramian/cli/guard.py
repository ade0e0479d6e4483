"""What stands around each command: errors as one sentence with exit code 2, Ctrl-C as 130."""

from __future__ import annotations

import errno
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import typer

from gramian import clock
from gramian.cli.speech import said
from gramian.errors import GramianError, KernelTextError
from gramian.interrupt import attended
from gramian.linalg.memory import translated

SHORT = "This command", "Use fewer rows, or close other programs."


@contextmanager
def guarded(time_limit: float | None = None) -> Iterator[None]:
    """Tells what a user can mend without a traceback; a fault of the library itself keeps its traceback. A
    time limit begins here: what is imported and read counts as well."""
    end = None if time_limit is None else clock.now() + time_limit
    try:
        with attended(lambda: "the present step"), clock.until(end, math.inf), translated(*SHORT):
            yield
    except KernelTextError as error:
        _fail(str(error))  # it shows the kernel as it was typed
    except GramianError as error:
        _fail(said(str(error)))
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise  # the reader of a pipe has left, as `head` does: typer ends quietly
        _fail(f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror or error}.")
    except KeyboardInterrupt:
        typer.echo("interrupted", err=True)
        raise typer.Exit(130) from None


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(2) from None
