"""What the command explore does."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from gramian.cli.voice import note, say
from gramian.errors import ParameterError

NEEDED = ("starlette", "uvicorn", "websockets")


def check_extra() -> None:
    """Raises where the packages of the extra are not there, before anything is read."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise ParameterError(
            f"The explorer needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not"
            ' installed. Install the extra: pip install "gramian[explore]".'
        )


def explore(path: Path | None, target: str | None, columns: Sequence[str], port: int, browser: bool) -> None:
    """Opens the file, if there is one, and serves the page until Ctrl-C, which is how it ends."""
    from gramian.explore.opening import opened
    from gramian.explore.server import serve

    def ready(address: str) -> None:
        say(f"The explorer is at {address}")
        note("It is for this machine alone. Ctrl-C ends it.")
        if browser and not webbrowser.open(address):
            note("No browser could be opened: copy the address into one.")

    names = [name.strip() for given in columns for name in given.split(",") if name.strip()]
    found = opened(path, target, names)
    try:
        serve(found, port, ready)
    except KeyboardInterrupt:
        note("The explorer has ended.")
