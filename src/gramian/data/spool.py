"""Rows on their way to a temporary file, and back as a memory map, within limits of memory and disk."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np

from gramian.arrays import Array
from gramian.errors import InputError, MemoryLimitError
from gramian.linalg import memory
from gramian.linalg.mounts import SYSTEM, mounts

LEFT_FREE = 16 * 2**20  # bytes of the folder that are left to others


class Room:
    """What a source may take while it is spooled: memory up to the limit, and the folder's free space.

    A block of rows is in memory at a time, and all that was spooled where the folder is in memory (tmpfs).
    """

    def __init__(self, memory_limit: int | float | str | None = None) -> None:
        self.limit, self.allowed = memory_limit, memory.allowed(memory_limit)
        self.folder = tempfile.gettempdir()
        self.in_memory = is_in_memory(self.folder)
        self.spooled = 0  # bytes, of X and y together

    def take(self, size: int, rows: int) -> None:
        """Refuses a block of that many bytes that the memory or the folder has no room for."""
        held = size + (self.spooled + size if self.in_memory else 0)
        free = shutil.disk_usage(self.folder).free
        if held > self.allowed:
            where = f"memory_limit={self.limit!r}" if self.limit is not None else "80% of the free memory"
            lies, cure = f"are on disk, where {memory.show_bytes(free)} are free", "give smaller blocks"
            if self.in_memory:
                lies = "lie in memory, too: the folder is a tmpfs"
                cure = "set the variable TMPDIR to a folder on disk"
            raise MemoryLimitError(
                f"Reading the data would hold {memory.show_bytes(held)} in memory with a block of {rows:,}"
                f" rows, but only {memory.show_bytes(self.allowed)} may be used ({where})."
                f" {memory.show_bytes(self.spooled)} that were spooled to {self.folder} {lies}. Raise"
                f" memory_limit, or {cure}."
            )
        if size + LEFT_FREE > free:
            raise InputError(
                f"The folder for temporary files, {self.folder}, is nearly full: {memory.show_bytes(free)}"
                f" are free, {memory.show_bytes(self.spooled)} of the data are spooled there, 8 bytes a"
                f" number, and the next block takes {memory.show_bytes(size)} (in memory it is within the"
                f" {memory.show_bytes(self.allowed)} that may be used). Free space, or set the variable"
                " TMPDIR to another folder."
            )
        self.spooled += size


class Spool:
    """Rows written to a temporary file by blocks, then read as one memory map, which outlives the spool."""

    def __init__(self, room: Room | None = None) -> None:
        self._file = tempfile.TemporaryFile(prefix="gramian-")  # noqa: SIM115 (closed below)
        self.rows, self.width = 0, 0
        self.room = Room() if room is None else room

    def add(self, block: Array) -> None:
        self.room.take(8 * block.size, len(block))
        with _full_disk():
            self._file.write(np.ascontiguousarray(block, dtype=np.float64).data)
        self.rows, self.width = self.rows + block.shape[0], block.shape[1]

    def mapped(self) -> Array:
        with _full_disk():
            self._file.flush()
        # A plain view: slices of np.memmap cost several times as much, and JAX need not know the class.
        return np.asarray(np.memmap(self._file, np.float64, "r", shape=(self.rows, self.width)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # a full disk has been told already
            self._file.close()


@contextlib.contextmanager
def _full_disk() -> Iterator[None]:
    try:
        yield
    except OSError as cause:
        if cause.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f"The folder for temporary files, {tempfile.gettempdir()}, is full"
        cure = "Free space, or set the variable TMPDIR to another folder."
        raise InputError(f"{where}, and data are spooled there, 8 bytes a number. {cure}") from cause


def is_in_memory(folder: str, root: Path = SYSTEM) -> bool:
    """Whether files in a folder take memory instead of disk; False where the system does not tell. `root`:
    the folder in which to look for /proc."""
    kind, real = "", Path(os.path.realpath(folder))
    longest = 0
    for mount in mounts(root):  # of two at one place the later one lies above
        if real.is_relative_to(mount.point) and len(mount.point) >= longest:
            kind, longest = mount.kind, len(mount.point)
    return kind in ("tmpfs", "ramfs")
