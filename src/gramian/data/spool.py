"""Rows on their way to a temporary file, and back as a memory map, within limits of memory and disk.

What is read is held in blocks whose size follows from the memory limit: cells of text take some 100 bytes
each, and several times that while it is decided how a column of words is read. So the peak of a process while
it reads stays below memory_limit + `FLOOR`, whatever the file.
"""

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
FLOOR = 64 * 10**6  # bytes of buffers that reading takes under any limit
CELLS = 2**20  # of a block at most: wide tables have shorter blocks
CELL_BYTES = 1000  # a cell of a block, as text and as whatever is made of it, all columns on their way
TEXT = 2**26  # bytes of text of a block at most
LINE = 2**24  # bytes of a line at most


class Room:
    """What a source may take while it is spooled: memory up to the limit, and the folder's free space.

    A block of rows is in memory at a time, and all that was spooled where the folder is in memory (tmpfs).
    """

    def __init__(self, memory_limit: int | float | str | None = None) -> None:
        self.limit, self.allowed = memory_limit, memory.allowed(memory_limit)
        self.folder = tempfile.gettempdir()
        self.in_memory = is_in_memory(self.folder)
        self.spooled = 0  # bytes, of X and y together

    # Blocks of text. A text of b bytes takes up to 4 b as one string, and is there up to four times; a line
    # of short cells takes 28 times its bytes.

    @property
    def cells(self) -> int:
        """How many cells a block may have."""
        return min(CELLS, max(self.allowed, FLOOR) // CELL_BYTES)

    @property
    def text(self) -> int:
        """How many bytes of text a block may have."""
        return min(TEXT, max(self.allowed, FLOOR) // 32)

    @property
    def line(self) -> int:
        """How many bytes a line may have."""
        return min(LINE, max(self.allowed, FLOOR) // 32)

    @property
    def told(self) -> str:
        """What may be used, for a message."""
        where = f"memory_limit={self.limit!r}" if self.limit is not None else "80% of the free memory"
        return f"only {memory.show_bytes(self.allowed)} may be used ({where})"

    def hold(self, size: int, what: str, cure: str) -> None:
        """Refuses so many bytes of what is not in blocks."""
        if size > max(self.allowed, FLOOR):
            raise MemoryLimitError(f"{what} would take {memory.show_bytes(size)}, but {self.told}. {cure}")

    def check_rows(self, rows: int, at: str = "") -> None:
        """Refuses more rows than there is memory for one number of each: their y, or what is foretold."""
        if 8 * rows > max(self.allowed, FLOOR):
            at = f"{at}: " if at else ""
            raise MemoryLimitError(
                f"{at}one number of each of these {rows:,} rows would take {memory.show_bytes(8 * rows)}, but"
                f" {self.told}. Raise memory_limit, or give fewer rows; a pipe may have no end."
            )

    def take(self, size: int, rows: int, at: str = "") -> None:
        """Refuses a block of that many bytes that the memory or the folder has no room for. `at`: where the
        block ends, for the message."""
        at = f"{at}: " if at else ""
        held = size + (self.spooled + size if self.in_memory else 0)
        free = shutil.disk_usage(self.folder).free
        if held > self.allowed:
            lies, cure = f"are on disk, where {memory.show_bytes(free)} are free", "give smaller blocks"
            if self.in_memory:
                lies = "lie in memory, too: the folder is a tmpfs"
                cure = "set the variable TMPDIR to a folder on disk"
            raise MemoryLimitError(
                f"{at}Reading the data would hold {memory.show_bytes(held)} in memory with a block of"
                f" {rows:,} rows, but {self.told}."
                f" {memory.show_bytes(self.spooled)} that were spooled to {self.folder} {lies}. Raise"
                f" memory_limit, or {cure}."
            )
        if size + LEFT_FREE > free:
            raise InputError(
                f"{at}The folder for temporary files, {self.folder}, is nearly full:"
                f" {memory.show_bytes(free)} are free, {memory.show_bytes(self.spooled)} of the data are"
                f" spooled there, 8 bytes a number, and the next block takes"
                f" {memory.show_bytes(size)} (in memory it is within the {memory.show_bytes(self.allowed)}"
                " that may be used). Free space, or set the variable TMPDIR to another folder."
            )
        self.spooled += size


class Spool:
    """Rows written to a temporary file by blocks, then read as one memory map, which outlives the spool."""

    def __init__(self, room: Room | None = None) -> None:
        self._file = tempfile.TemporaryFile(prefix="gramian-")  # noqa: SIM115 (closed below)
        self.rows, self.width = 0, 0
        self.gaps = False  # whether a number is NaN: known here, so that nobody need read all rows for it
        self.room = Room() if room is None else room

    def add(self, block: Array, at: str = "") -> None:
        self.room.take(8 * block.size, len(block), at)
        self.room.check_rows(self.rows + len(block), at)
        with full_disk():
            self._file.write(np.ascontiguousarray(block, dtype=np.float64).data)
        self.rows, self.width = self.rows + block.shape[0], block.shape[1]
        self.gaps = self.gaps or has_gaps(block)

    def mapped(self) -> Array:
        with full_disk():
            self._file.flush()
        # A plain view: slices of np.memmap cost several times as much, and JAX need not know the class.
        return np.asarray(np.memmap(self._file, np.float64, "r", shape=(self.rows, self.width)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(OSError):  # a full disk has been told already
            self._file.close()


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Within it, a disk that is full is told as such."""
    try:
        yield
    except OSError as cause:
        if cause.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = f"The folder for temporary files, {tempfile.gettempdir()}, is full"
        cure = "Free space, or set the variable TMPDIR to another folder."
        raise InputError(f"{where}, and data are spooled there, 8 bytes a number. {cure}") from cause


def has_gaps(table: Array) -> bool:
    """Whether a cell is missing. The least of all is NaN where one is; unlike a sum it cannot overflow."""
    return table.size > 0 and bool(np.isnan(np.min(table)))


def is_in_memory(folder: str, root: Path = SYSTEM) -> bool:
    """Whether files in a folder take memory instead of disk; False where the system does not tell. `root`:
    the folder in which to look for /proc."""
    kind, real = "", Path(os.path.realpath(folder))
    longest = 0
    for mount in mounts(root):  # of two at one place the later one lies above
        if real.is_relative_to(mount.point) and len(mount.point) >= longest:
            kind, longest = mount.kind, len(mount.point)
    return kind in ("tmpfs", "ramfs")
