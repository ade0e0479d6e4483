"""Rows on their way to a temporary file, and back as a memory map."""

from __future__ import annotations

import contextlib
import errno
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gramian.errors import InputError

Array = NDArray[np.float64]


class Spool:
    """Rows written to a temporary file block by block, then read as one memory map, which outlives the spool."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="gramian-")  # noqa: SIM115 (closed below)
        self.rows, self.width = 0, 0

    def add(self, block: Array) -> None:
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
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
        raise InputError(
            f"{where}, and data are spooled there, 8 bytes a number. Free space, or set the variable TMPDIR to another folder."
        ) from cause
