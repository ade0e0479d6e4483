"""Write a file whole or not at all; and folders for what is temporary.

The bytes go to a temporary file in the target's own folder (a rename is atomic only within one file system),
are forced to disk, and then take the target's name in one step. Whoever reads the target sees the old file or
the new one, never a part; an exception, Ctrl-C included, leaves only the old file as it was.

A process that is killed leaves its temporary file behind, or its folder, and the next one that writes into
the same place sweeps it. Whoever writes holds a lock on the file (flock), which the system takes back when a
process ends; so a file of this machine that nobody locks is nobody's. Of other machines that write into the
same folder, and where there are no locks, files are swept that have not been written to for a day.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final

from gramian.errors import GramianError

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# what a write fails with that has no room: the disk, a person's share of it, or one file
FULL: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TEMPORARY: Final = re.compile(r"\.gramian-(?:([0-9a-f]{8})-)?[0-9a-f]{16}\.tmp")
_OLD: Final = 24 * 3600.0  # seconds after which nobody is still writing


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
    temporary = None
    try:
        try:
            temporary, file = _temporary(folder)
        except OSError as cause:
            cure = "Make it writable or choose another folder."
            raise error(f"{path} cannot be written: {cause.strerror} (folder {folder}). {cure}") from cause
        with file:
            _sweep(folder, os.fstat(file.fileno()).st_mtime)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if target.exists():
                temporary.chmod(target.stat().st_mode & 0o7777)
            if fcntl is None:
                file.close()  # a file that is open has no other name on Windows
            os.replace(temporary, target)  # before the lock goes: it would be swept
        _sync(folder)
    except BaseException as cause:
        with contextlib.suppress(OSError):
            if temporary is not None:
                temporary.unlink(missing_ok=True)
        if isinstance(cause, OSError) and cause.errno in FULL:
            cure = "Free some space or choose another folder; an old file is untouched."
            raise error(f"{path} cannot be written: {full(cause)}. {cure}") from cause
        raise


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder of one's own where the system has temporary files, for as long as the block lasts."""
    parent = Path(tempfile.gettempdir())
    path, fd = _folder(parent)
    try:
        _sweep(parent, path.stat().st_mtime)
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        if fd is not None:
            os.close(fd)


def _folder(parent: Path) -> tuple[Path, int | None]:
    """A new folder for this person alone, locked where that is possible."""
    while True:
        path = parent / f".gramian-{_machine()}-{secrets.token_hex(8)}.tmp"
        path.mkdir(mode=0o700)
        if fcntl is None:
            return path, None
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            continue  # swept between these two lines
        _lock(fd, wait=True)
        if path.exists():
            return path, fd
        os.close(fd)


def full(cause: OSError) -> str:
    """Which of `FULL` it is."""
    return "the disk is full" if cause.errno != errno.EFBIG else "it is longer than a file may be there"


def _temporary(folder: Path) -> tuple[Path, BinaryIO]:
    """A new file, locked where that is possible."""
    while True:
        # a short name of its own: the target's may already be as long as names can be
        path = folder / f".gramian-{_machine()}-{secrets.token_hex(8)}.tmp"
        # unlike mkstemp, which gives 0600, open leaves permissions to the umask
        file = open(path, "xb")  # noqa: SIM115 (the caller closes it)
        try:
            _lock(file.fileno(), wait=True)
            if os.fstat(file.fileno()).st_nlink:  # not swept between these two lines
                return path, file
        except BaseException:
            file.close()
            path.unlink(missing_ok=True)
            raise
        file.close()


def _lock(fd: int, wait: bool) -> bool | None:
    """Locks a file until it is closed, or its process ends; False: somebody else has; None: not to be had."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _sweep(folder: Path, now: float) -> None:
    """Removes temporary files of processes that have ended. `now` is by the clock of the folder's disk."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if match := _TEMPORARY.fullmatch(name):
                with contextlib.suppress(OSError):
                    _sweep_file(folder / name, now, match[1] == _machine())


def _sweep_file(path: Path, now: float, here: bool) -> None:
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        known, locked = os.fstat(fd), _lock(fd, wait=False)
        own = not hasattr(os, "geteuid") or known.st_uid == os.geteuid()
        old = now - known.st_mtime > _OLD
        nobodys = own and bool(here and locked)
        swept = stat.S_ISREG(known.st_mode) and (nobodys or (own and old and locked is not False))
        if stat.S_ISDIR(known.st_mode) and nobodys:  # its age tells nothing of the files in it
            shutil.rmtree(path, ignore_errors=True)
        elif swept and fcntl is not None:
            path.unlink()
    finally:
        os.close(fd)
    if swept and fcntl is None:
        path.unlink()


@cache
def _machine() -> str:
    """Tells machines apart, and a machine before and after it was started."""
    started = ""
    with contextlib.suppress(OSError):  # Linux only
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    return hashlib.sha256(f"{platform.node()} {started}".encode()).hexdigest()[:8]


def _sync(folder: Path) -> None:
    """Forces a new name to disk, where the system can."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
