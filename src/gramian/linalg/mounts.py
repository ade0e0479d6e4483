"""Where file systems are mounted, as Linux tells it: /proc/self/mountinfo."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple

SYSTEM = Path("/")
_ESCAPED = re.compile(rb"\\([0-7]{3})")  # blanks, tabs, line feeds and backslashes in a path


class Mount(NamedTuple):
    """A file system and its place."""

    part: str  # the folder of the file system that lies there
    point: str
    kind: str  # tmpfs, cgroup2, ...
    options: tuple[str, ...]  # of the file system


def mounts(root: Path = SYSTEM) -> list[Mount]:
    """All mounts that this process sees, in their order; none where the system does not tell. `root`: the
    folder in which to look for /proc."""
    try:
        told = (root / "proc/self/mountinfo").read_bytes()
    except OSError:
        return []
    found = []
    for line in told.splitlines():
        place, _, system = line.partition(b" - ")
        fields, kinds = place.split(b" "), system.split(b" ")
        if len(fields) >= 5 and len(kinds) >= 3:
            options = tuple(os.fsdecode(kinds[2]).split(","))
            found.append(Mount(_plain(fields[3]), _plain(fields[4]), os.fsdecode(kinds[0]), options))
    return found


def _plain(path: bytes) -> str:
    """A path as the functions of `os` take it: names are bytes, of any encoding."""
    return os.fsdecode(_ESCAPED.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), path))
