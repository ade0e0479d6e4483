"""Numbers of a memory map, copied so that a file which is cut off meanwhile is an error.

Whoever touches a page of a map that its file no longer has is ended by the operating system (SIGBUS). A
system call that finds no such page comes back with an error instead, so the pages are read by one: Linux
offers the memory of a process as a file, /proc/self/mem. It costs a copy, as the reading of a file does.
Where there is no such file, the length of the map's file is looked at before each block, which leaves a
moment in between.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.errors import InputError

MEMORY = "/proc/self/mem"


def copied(block: NDArray[Any], what: str) -> NDArray[Any]:
    """The numbers of a part of a memory map, in memory; `what` it is, in an error."""
    _check_length(block, what)
    if block.flags.c_contiguous:
        return _read(block, what)
    if block.flags.f_contiguous:
        return _read(block.T, what).T
    return np.array(block)


def _read(block: NDArray[Any], what: str) -> NDArray[Any]:
    found = np.empty(block.shape, block.dtype)
    into = found.reshape(-1).view(np.uint8)
    try:
        memory = open(MEMORY, "rb", buffering=0)  # noqa: SIM115 (closed below)
    except OSError:  # another system, or not allowed
        found[...] = block
        return found
    with memory:
        memory.seek(block.__array_interface__["data"][0])
        at = 0
        while at < len(into):
            try:
                size = memory.readinto(into[at:].data)
            except OSError:
                size = 0
            if not size:
                raise _changed(what)
            at += size
    return found


def _check_length(block: NDArray[Any], what: str) -> None:
    """That the file of a map is as long as the map says."""
    root, base = None, block
    while isinstance(base, np.ndarray):
        root = base if isinstance(base, np.memmap) else root
        base = base.base  # type: ignore[assignment]
    if root is None or not isinstance(base, mmap.mmap):
        return  # a map by name alone, made of another one's numbers
    _, stop = np.lib.array_utils.byte_bounds(block)
    try:
        length = base.size()
    except (OSError, ValueError):  # without a file
        return
    if length < root.offset + stop - root.__array_interface__["data"][0]:
        raise _changed(what)


def _changed(what: str) -> InputError:
    return InputError(
        f"The file of the memory map {what} changed while it was read: it is shorter than the map. Write to"
        " another file, and open the map again when that is whole."
    )
