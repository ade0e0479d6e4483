"""Streams (pipes, terminals, standard input) as files: tables are read more than once, streams cannot be.

The bytes go to a file in the folder for temporary files, as they come, as far as that has room.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from gramian.data.atomic import temporary_folder
from gramian.data.spool import Room, full_disk
from gramian.data.tables import SUFFIXES, kind_of_bytes
from gramian.data.tables.textbytes import unending

CHUNK = 2**20  # bytes at once


@contextlib.contextmanager
def settled(path: str | os.PathLike[str], room: Room) -> Iterator[str | os.PathLike[str]]:
    """The path itself, or that of a copy while it is needed, where it is the path of a stream."""
    if not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path):
        yield path
        return
    with open(path, "rb") as stream, copied(stream, os.fspath(path), room) as copy:
        yield copy


@contextlib.contextmanager
def copied(stream: BinaryIO, name: str, room: Room) -> Iterator[Path]:
    """What a stream of that name gives, as a file. Unless its name ends as those of tables do, its first
    bytes tell of what kind it is."""
    with temporary_folder() as folder:
        copy = Path(folder, os.path.basename(name))
        head, lines, since = b"", 1, 0  # since: bytes since a line has ended
        with full_disk(), copy.open("wb") as file:
            for chunk in iter(lambda: stream.read(CHUNK), b""):
                head, lines = head or chunk[:4], lines + chunk.count(b"\n")
                room.take(len(chunk), chunk.count(b"\n"), f"{name}, line {lines}")
                if kind_of_bytes(head) == ".csv":  # one without end is told before the disk is full
                    end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r"))
                    since = since + len(chunk) if end < 0 else len(chunk) - 1 - end
                    if since > room.line:
                        raise unending(name, lines, room)
                    room.check_rows(lines, f"{name}, line {lines}")
                file.write(chunk)
        if not copy.name.lower().endswith(SUFFIXES):
            copy = copy.rename(copy.with_name(copy.name + kind_of_bytes(head)))
        yield copy
