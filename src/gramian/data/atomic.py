"""Write a file whole or not at all.

The bytes go to a temporary file in the target's own folder (a rename is atomic only within one file system),
are forced to disk, and then take the target's name in one step. Whoever reads the target sees the old file or
the new one, never a part; an exception, Ctrl-C included, leaves only the old file as it was.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gramian.errors import GramianError


@contextmanager
def atomic_write(
    path: str | os.PathLike[str], error: type[GramianError] = GramianError
) -> Iterator[BinaryIO]:
    """Yield a binary file that becomes `path` when the block ends well; trouble is raised as `error`."""
    # so that a symbolic link stays a link, and the file it points to is replaced
    target = Path(os.path.realpath(path))
    folder = target.parent
    if target.is_dir():
        raise error(f"{path} is a folder. Give the name of a file in it.")
    if target.exists() and not target.is_file():
        cure = "Give the name of an ordinary file."
        raise error(f"{path} is a device or a pipe, which cannot be replaced by a finished file. {cure}")
    if target.exists() and not os.access(target, os.W_OK):
        raise error(f"{path} is read-only. Make it writable or choose another name.")
    if not folder.is_dir():
        cure = "Create it first, or correct the path."
        raise error(f"{path} cannot be written: there is no folder {folder}. {cure}")
    # a short name of its own: the target's may already be as long as names can be
    temporary = folder / f".gramian-{secrets.token_hex(8)}.tmp"
    try:
        try:
            # unlike mkstemp, which gives 0600, open leaves permissions to the umask
            file = open(temporary, "xb")  # noqa: SIM115 (closed below)
        except OSError as cause:
            cure = "Make it writable or choose another folder."
            raise error(f"{path} cannot be written: {cause.strerror} (folder {folder}). {cure}") from cause
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
        os.replace(temporary, target)
    except BaseException as cause:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            cure = "Free some space or choose another folder; an old file is untouched."
            raise error(f"{path} cannot be written: the disk is full. {cure}") from cause
        raise
