"""Bytes: how many there are, what a user allows, and how many rows fit into a block.

Where the system has less than there seemed to be, work fails in the middle, by errors of whoever wanted
memory: NumPy's, XLA's, of threads that cannot start. At the doors of the library (fit, predict, load,
commands) `translated` makes them one error. A compiler that finds no memory ends the process, which nobody
can translate: under a limit of the address space (`ulimit -v`) it is asked before whether there is enough.
"""

from __future__ import annotations

import errno
import math
import numbers
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from gramian.errors import MemoryLimitError, ParameterError
from gramian.linalg.mounts import SYSTEM, mounts

_UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", 1):
    _UNITS |= {f"{_letter}ib": 1024**_power} | dict.fromkeys((_letter, f"{_letter}b"), 1000**_power)
UNKNOWN = 8 * 2**30  # free bytes of a system that does not tell
_DEFAULT_SHARE = 0.8  # of what is free: the rest is for the user's other work
# of one block of predictions: large enough for matrix products at full speed, small beside any machine
BLOCK_BYTES = 64 * 2**20


# of address space, that XLA, its compiler and the stacks of their threads reserve: with 0.4 GB they ended
# the process, with 1.5 GB they did not
COMPILER = 1_500_000_000


def parse_bytes(text: int | float | str) -> int:
    """2000000, "2GB", "1.5 GiB" -> bytes."""
    if isinstance(text, str):
        match = re.fullmatch(r"\s*([0-9]*\.?[0-9]+(?:[eE][0-9]+)?)\s*([A-Za-z]*)\s*", text)
        if match and match[2].lower() in _UNITS:
            return parse_bytes(float(match[1]) * _UNITS[match[2].lower()])
    elif isinstance(text, numbers.Real) and not isinstance(text, bool):
        with suppress(TypeError):  # a span of time is an integer, says NumPy, but compares with none
            if 0 < text < float("inf"):
                return int(text)
    raise ParameterError(
        f'memory_limit={text!r} is not a size. Give bytes, or text such as "2GB" or "512 MiB".'
    )


def show_bytes(size: float) -> str:
    """1.7e9 -> "1.7 GB"."""
    if size >= 1e15:
        return "more than a petabyte"
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.3g} {name}"
    return f"{size:.0f} bytes"


def free_bytes(root: Path = SYSTEM) -> int:
    """What the kernel calls available, without swapping; less where a container or a limit of the process
    allows less. `root`: the folder in which to look for /proc and /sys."""
    least = min([_available(root), *map(_left_in, _groups(root)), *_address_space()])
    return max(int(least), 0) if math.isfinite(least) else UNKNOWN


def _available(root: Path) -> float:
    """Of the machine."""
    try:
        told = (root / "proc/meminfo").read_bytes()
        return next(
            int(line.split()[1]) * 1024 for line in told.splitlines() if line.startswith(b"MemAvailable")
        )
    except (OSError, ValueError, IndexError, StopIteration):  # not Linux, or one that tells nothing
        pass
    try:
        return int(import_module("psutil").virtual_memory().available)
    except ImportError:  # a dependency on other systems only
        return math.inf


# Names of files in a group of either version, and of the page cache in memory.stat that is given up first
# when memory is short: the kernel counts it as used, but ends no process before it has taken it back.
_FILES = {
    "cgroup2": ("memory.max", "memory.current", b"inactive_file"),
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", b"total_inactive_file"),
}


class _Group(NamedTuple):
    """A control group whose limit holds for this process."""

    folder: Path
    limit: str
    used: str
    cache: bytes


@cache  # which groups there are is asked once, what they leave each time
def _groups(root: Path) -> list[_Group]:
    """The groups of this process, from its own up to the first that can be seen: the limits of all hold."""
    try:
        lines = (root / "proc/self/cgroup").read_bytes().splitlines()
    except OSError:
        return []
    own = {}
    for line in lines:
        if line.count(b":") < 2:
            continue
        _, controllers, path = line.split(b":", 2)
        if not controllers or b"memory" in controllers.split(b","):
            own["cgroup" if controllers else "cgroup2"] = os.fsdecode(path)
    found = []
    for mount in mounts(root):
        if mount.kind not in own or (mount.kind == "cgroup" and "memory" not in mount.options):
            continue
        # a container may see its own group at the top, under the name that it has outside, or nothing of it
        inside = os.path.relpath(own[mount.kind], mount.part)
        steps = () if inside.split("/")[0] in (".", "..") else Path(inside).parts
        top = root / mount.point.lstrip("/")
        folders = [top.joinpath(*steps[:k]) for k in range(len(steps), -1, -1)]
        found += [_Group(folder, *_FILES[mount.kind]) for folder in folders]
    return found


def _left_in(group: _Group) -> float:
    """What its limit leaves; infinity without one."""
    folder, limit, used, cached = group
    try:
        most = int((folder / limit).read_bytes())
    except (OSError, ValueError):  # no such file, or "max"
        return math.inf
    if most >= 2**60:  # how version 1 says that there is none
        return math.inf
    try:
        held = int((folder / used).read_bytes())
    except (OSError, ValueError):
        return most  # which is known alone
    try:
        pairs = (line.split() for line in (folder / "memory.stat").read_bytes().splitlines())
        held -= next((int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] == cached), 0)
    except (OSError, ValueError):  # all counts as held
        pass
    return most - max(held, 0)


def _address_space() -> list[int]:
    """What a limit on the address space of this process leaves; nothing where there is none."""
    try:
        import resource  # which Unix alone has

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most == resource.RLIM_INFINITY:
            return []
        with open("/proc/self/statm", encoding="ascii") as file:
            return [most - int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")]
    except (ImportError, OSError):
        return []


_compiled = False  # whether there was enough for the compiler once: its threads are there since


def check_compiler(anew: bool = True) -> None:
    """Refuses to compile programs where a limit on the address space leaves too little for that; not `anew`:
    unless there was enough before."""
    global _compiled
    for left in _address_space() if anew or not _compiled else ():
        if left < COMPILER:
            raise MemoryLimitError(
                f"A limit on the address space of this process (ulimit -v) leaves {show_bytes(max(left, 0))};"
                f" to compile programs takes up to {show_bytes(COMPILER)} of it. Raise that limit, or fit at"
                " most 400 rows under Gaussian noise, for which nothing is compiled."
            )
    _compiled = True


def is_shortage(error: BaseException) -> bool:
    """Whether it says that there is no more memory, in whoever's words."""
    said = str(error)
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    # XLA's errors are RuntimeErrors of a name that has changed; a thread needs memory for its stack, and a
    # library that is loaded on first use needs some, too
    if isinstance(error, ImportError):
        return "annot allocate memory" in said or "failed to map segment" in said
    words = ("RESOURCE_EXHAUSTED", "ut of memory", "can't start new thread")
    return isinstance(error, RuntimeError) and any(word in said for word in words)


@contextmanager
def translated(what: str, cure: str) -> Iterator[None]:
    """Within it, or around a function it decorates, a shortage of memory is a MemoryLimitError."""
    try:
        yield
    except Exception as error:
        if not is_shortage(error):
            raise
        raise MemoryLimitError(f"{what} needs more memory than the system gives. {cure}") from error


def allowed(limit: int | float | str | None) -> int:
    """The bytes that may be used: the limit, or most of what is free."""
    return parse_bytes(limit) if limit is not None else int(_DEFAULT_SHARE * free_bytes())


def fits(needed: int, limit: int | float | str | None) -> bool:
    """Whether so many bytes may be used; without a limit, one block is always to be had (to ask the system
    takes as long as a factorisation of a hundred rows)."""
    return (limit is None and needed <= BLOCK_BYTES) or needed <= allowed(limit)


def check_memory(needed: int, limit: int | float | str | None, what: str, cure: str) -> None:
    """Refuses work that would pass the limit, before it starts."""
    if not fits(needed, limit):
        most = allowed(limit)
        share = f"{_DEFAULT_SHARE:.0%} of the free memory"
        source = share if limit is None else f"memory_limit={limit!r}"
        raise MemoryLimitError(
            f"{what} needs {show_bytes(needed)}, but only {show_bytes(most)} may be used ({source}). {cure}"
        )


def block_rows(row_bytes: int, tile: int, budget: int = BLOCK_BYTES) -> int:
    """How many rows of `row_bytes` fit into the budget, as a whole number of tiles (at least one)."""
    return max(1, budget // (max(row_bytes, 1) * tile)) * tile
