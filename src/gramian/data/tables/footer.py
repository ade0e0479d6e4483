"""What a Parquet file says of its sizes, before any of its columns is unpacked.

The footer names the columns of each row group and where their pages begin; before each page stand its bytes,
packed and unpacked. Both are structs in Thrift's compact protocol: a byte for the type of a field and how far
its number is from the last one's, then its value; integers have seven bits a byte, the lowest first, the sign
in the last bit.

pyarrow has the same in its objects for the columns of a row group. They are left alone: to make one it reads
the statistics, too, and where those are damaged it ends the process (26.0, an exception that nothing can
catch). It reads rows without them. Nor does it say how large a page is before it has unpacked it.

Cost: some 15 microseconds a column of a row group, and as many a page; fields that are not needed are passed
over, so that memory follows from what is.
Source: github.com/apache/thrift, doc/specs/thrift-compact-protocol.md; parquet-format, parquet.thrift.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, BinaryIO

Wanted = Mapping[int, Any]  # fields of a struct by their numbers: what is wanted of them, None for a value
_CHUNK: Wanted = {1: None, 3: {1: None, 3: None, 5: None, 7: None, 9: None, 11: None}}
_FOOTER: Wanted = {4: {1: _CHUNK, 2: None, 3: None}}
_PAGE: Wanted = {1: None, 2: None, 3: None, 7: {1: None}}
_TEXT, _DICTIONARY = 6, 2  # BYTE_ARRAY among types of columns, DICTIONARY_PAGE among those of pages
_INTEGERS, _BINARY, _LISTS, _STRUCT, _TRUTHS = (4, 5, 6), 8, (9, 10), 12, (1, 2)
_BYTES = {1: 0, 2: 0, 3: 1, 7: 8, 13: 16}  # of values that are passed over
_DEPTH = 16  # of structs and lists in each other; statistics, the deepest, lie five deep
_HEAD = 2**10  # bytes in which the head of a page ends, if its statistics are short
_LONGEST = 2**24  # and at most, as pyarrow has it


class Damaged(Exception):
    """A file that cannot be what it says."""


@dataclass(frozen=True)
class Chunk:
    """A column of a row group, in bytes as they are unpacked."""

    path: str
    is_text: bool
    values: int
    listed: int  # of its dictionary, which is one page; 0 where it has none
    rest: int  # of its other pages
    largest: int  # of the largest of these


@dataclass(frozen=True)
class Group:
    """A row group."""

    rows: int
    size: int  # bytes unpacked
    columns: tuple[Chunk, ...]


def groups_of(path: str) -> tuple[Group, ...]:
    """The row groups of a Parquet file whose footer is not encrypted."""
    now = os.stat(path)
    return _groups(os.path.abspath(path), now.st_mtime_ns, now.st_size)


@lru_cache(maxsize=4)  # a table is read two or three times
def _groups(path: str, changed: int, size: int) -> tuple[Group, ...]:
    with open(path, "rb") as file:
        file.seek(max(0, size - 8))
        tail = file.read()
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != b"PAR1" or length > size - 8:
            raise Damaged("its footer is not where it should be")
        file.seek(size - 8 - length)
        found, _ = _struct(file.read(length), 0, _FOOTER)
        return tuple(_group(file, size, group) for group in _many(found.get(4)))


def _group(file: BinaryIO, size: int, group: Mapping[int, Any]) -> Group:
    # a chunk without its own metadata is encrypted, and one with a path lies in another file
    chunks = [c for c in _many(group.get(1)) if 3 in c and 1 not in c]
    columns = [_chunk(file, size, _only(chunk[3], dict)) for chunk in chunks]
    return Group(_whole(group.get(3, 0)), _whole(group.get(2, 0)), tuple(columns))


def _chunk(file: BinaryIO, size: int, chunk: Mapping[int, Any]) -> Chunk:
    data, dictionary = _whole(chunk.get(9, 0)), _whole(chunk.get(11, 0))
    # 0, which no page has, says that there is none
    start = min((at for at in (data, dictionary) if at), default=size)
    stop = start + _whole(chunk.get(7, 0))
    listed = rest = largest = 0
    for kind, unpacked in _pages(file, start, stop, size):
        if kind == _DICTIONARY:
            listed += unpacked
        else:
            rest, largest = rest + unpacked, max(largest, unpacked)
    parts = [part.decode() for part in _many(chunk.get(3), bytes)]
    return Chunk(".".join(parts), chunk.get(1) == _TEXT, _whole(chunk.get(5, 0)), listed, rest, largest)


def _pages(file: BinaryIO, at: int, stop: int, size: int) -> Iterator[tuple[int, int]]:
    """The kinds of the pages of a column, and their bytes unpacked."""
    while at < stop:
        page, length = _head(file, at)
        kind, unpacked = _whole(page.get(1)), _whole(page.get(2))
        at += length + _whole(page.get(3))
        # room is made for what is packed, and for so many entries, of which each has a byte at least
        if at > size:
            raise Damaged("a page ends beyond the end of the file")
        if kind == _DICTIONARY and _whole(_only(page.get(7), dict).get(1)) > unpacked:
            raise Damaged("a dictionary has more entries than bytes")
        yield kind, unpacked


def _head(file: BinaryIO, at: int) -> tuple[dict[int, Any], int]:
    most = _HEAD
    while True:
        file.seek(at)
        data = file.read(most)
        try:
            return _struct(data, 0, _PAGE)
        except Damaged:
            if len(data) < most or most >= _LONGEST:
                raise
            most *= 16


def _whole(value: Any) -> int:
    if _only(value, int) < 0:
        raise Damaged(f"it says that something has the size or number {value}")
    return int(value)


def _many(values: Any, kind: type = dict) -> list[Any]:
    return [_only(value, kind) for value in _only(values, list)]


def _only(value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise Damaged("it has values of other types than it should")
    return value


# Thrift. ----------------------------------------------------------------------------------------------------


def _struct(data: bytes, at: int, wanted: Wanted, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The wanted fields of a struct that begins there, and where it ends."""
    if depth > _DEPTH:
        raise Damaged("its fields lie too deep in each other")
    found: dict[int, Any] = {}
    number = 0
    try:
        while head := data[at]:
            number, at = (number + (head >> 4), at + 1) if head >> 4 else _integer(data, at + 1)
            value, at = _value(data, at, head & 15, wanted.get(number) or {}, depth)
            if number in wanted:
                found[number] = value
    except IndexError:
        raise Damaged("it ends in the middle of a field") from None
    return found, at + 1


def _value(data: bytes, at: int, kind: int, wanted: Wanted, depth: int) -> tuple[Any, int]:
    """A value that begins there, and where it ends; `wanted`: the fields of structs in it."""
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind in _BYTES:
        return None, at + _BYTES[kind]
    if kind == _BINARY:
        size, at = _natural(data, at)
        return data[at : at + size], at + size
    if kind == _STRUCT:
        return _struct(data, at, wanted, depth + 1)
    if kind not in _LISTS:
        raise Damaged(f"it has a field of the unknown type {kind}")
    count, kind, at = data[at] >> 4, data[at] & 15, at + 1
    if count == 15:
        count, at = _natural(data, at)
    values = []
    for _ in range(count):  # of which each takes a byte at least, so that a wrong count ends with the data
        value, at = _value(data, at, kind, wanted, depth + 1)
        at += kind in _TRUTHS
        values.append(value)
    return values, at


def _natural(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise Damaged("it has a number of more than 64 bits")


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _natural(data, at)
    return (value >> 1) ^ -(value & 1), at
