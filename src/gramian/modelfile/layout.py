"""The layout of a file without code: a document and arrays, with a checksum.

It is in the safetensors format: the length of a header, the header (JSON), the arrays. Its `__metadata__` has

    format      "gramian model", or "gramian checkpoint"
    version     of this format, a whole number
    library     the version of gramian that wrote it
    document    everything that is no array, as one JSON text; see `document`
    sha256      of version, library, document, and each array in the order of names with its name and shape

Arrays are of float64, or int64. Those named "root..." are lower triangles, column by column: n (n + 1) / 2
numbers. Writing takes no memory beyond the arrays themselves, reading none beyond what they need. The
checksum finds damage; it is no protection from somebody who computes it anew, so all that is read has to be
checked as well.

The layout is read here, not by the safetensors library, which maps the file into memory: a map whose file is
cut off meanwhile ends the process. Ordinary reads come back short instead. Before an array is read, all that
the header says is held against the length of the file, so that time and memory follow from the bytes that are
there, not from what is said of them.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from gramian.data.atomic import atomic_write
from gramian.errors import GramianError, ModelFileError, StateError
from gramian.linalg import memory
from gramian.linalg.state import TRIANGLE, Arrays, entries, shown, typed, typed_list
from gramian.modelfile.document import parse
from gramian.version import __version__

_METADATA = ("format", "version", "library", "document", "sha256")
_MAX_HEADER = 100_000_000  # bytes: the limit of the safetensors format
_MAX_ARRAYS, _MAX_DIMENSIONS = 100_000, 8  # far beyond any model
_DTYPES = {"f": "F64", "i": "I64"}
_NUMBERS = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}
# Of a file with holes, the bytes that are read as zeros and are not there: so many, and so many times those
# that are. A model's numbers are hardly ever zeros for pages on end.
_HOLES, _HOLES_SHARE = 64 * 2**20, 8
_HEADER_SHARE = 40  # bytes of memory a byte of the header, at most: lists of empty lists
_LARGER = "Free some memory, or load it on a larger machine."
_CHANGED = "it changed while it was read. Load it again when nobody writes to it."


class Kind(NamedTuple):
    """What a file holds, and how people call it."""

    format: str
    version: int  # the latest that is read
    called: str  # "model file"
    of: str  # "a gramian model"
    this: str  # "This model"
    written: str  # by whom
    again: str  # the cure of one that is damaged


def write(
    path: str | os.PathLike[str],
    kind: Kind,
    document: str,
    arrays: Arrays,
    error: type[GramianError] = ModelFileError,
) -> None:
    """Writes a document and arrays, whole or not at all."""
    metadata = {
        "format": kind.format,
        "version": str(kind.version),
        "library": __version__,
        "document": document,
    }
    metadata["sha256"] = _checksum(metadata, arrays)
    header: dict[str, object] = {"__metadata__": metadata}
    stop = 0
    for name, array in arrays.items():
        shape = _shape(name, array)
        start, stop = stop, stop + 8 * math.prod(shape)
        header[name] = {"dtype": _DTYPES[array.dtype.kind], "shape": shape, "data_offsets": [start, stop]}
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)  # arrays begin at a multiple of 8
    if len(text) > _MAX_HEADER:
        size = f"its names and categories take {memory.show_bytes(len(text))}, more than a header may"
        raise error(f"{kind.this} cannot be saved: {size}.")
    try:
        with atomic_write(path, error) as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name, array in arrays.items():
                for part in parts(name, array):
                    file.write(_little(part).data)
    except OSError as cause:
        told = f"{path} cannot be written: {cause.strerror or cause}"
        raise error(f"{told}. An old file of that name is untouched.") from cause


def _shape(name: str, array: NDArray[Any]) -> tuple[int, ...]:
    """As the file has it."""
    n = len(array)
    return (n * (n + 1) // 2,) if name.startswith(TRIANGLE) else array.shape


def parts(name: str, array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The numbers of an array in the order of the file."""
    return (array[j:, j] for j in range(len(array))) if name.startswith(TRIANGLE) else iter([array])


def _little(part: NDArray[Any]) -> NDArray[Any]:
    """As contiguous little-endian numbers, the file's form."""
    return np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<"))


def _digest(metadata: Mapping[str, str]) -> Any:
    digest = hashlib.sha256()
    for name in ("version", "library", "document"):
        digest.update(f"{metadata[name]}\n".encode())
    return digest


def _heading(name: str, shape: Iterable[int], kind: str) -> bytes:
    """What the checksum has before the numbers of an array."""
    whole = " of whole numbers" if kind == "i" else ""
    return f"{name} {list(shape)}{whole}\n".encode()


def _checksum(metadata: Mapping[str, str], arrays: Arrays) -> str:
    digest = _digest(metadata)
    for name, array in sorted(arrays.items()):
        digest.update(_heading(name, _shape(name, array), array.dtype.kind))
        for part in parts(name, array):
            digest.update(_little(part).data)
    return digest.hexdigest()


class _Stored(NamedTuple):
    """An array as the header describes it, after a check of that."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]  # in the file
    full: tuple[int, ...]  # in memory
    start: int  # bytes from the end of the header
    stop: int


def read(path: str | os.PathLike[str], kind: Kind) -> tuple[dict[str, str], Arrays]:
    """The metadata and the arrays of a file, after checks of its layout, of the memory that it takes, and of
    its checksum."""
    name = os.fsdecode(path)
    try:
        mode = os.stat(name).st_mode
        if stat.S_ISDIR(mode):
            raise ModelFileError(f"it is a folder. Give the name of a {kind.called} in it.")
        if not stat.S_ISREG(mode):
            raise ModelFileError("it is a device or a pipe. Give the name of an ordinary file.")
        with open(name, "rb") as file:
            return _read_open(file, kind)
    except FileNotFoundError:
        raise ModelFileError("there is no such file.") from None
    except OSError as cause:
        raise ModelFileError(f"{cause.strerror or cause}.") from None


def _read_open(file: BinaryIO, kind: Kind) -> tuple[dict[str, str], Arrays]:
    before = os.fstat(file.fileno())
    length = _header_length(file, before.st_size, kind)
    begin = 8 + length
    memory.check_memory(_HEADER_SHARE * length, None, f"{kind.this}'s header", _LARGER)
    header = np.empty(length, np.uint8)
    metadata, layout = _layout(_filled(file, header).tobytes(), before.st_size - begin, kind)
    needed = sum(8 * math.prod(stored.full) for stored in layout.values())
    memory.check_memory(needed, None, kind.this, _LARGER)
    _check_holes(file, before.st_size)
    digest, arrays = _digest(metadata), {}
    for name, stored in sorted(layout.items()):
        digest.update(_heading(name, stored.shape, stored.dtype.kind))
        file.seek(begin + stored.start)
        # roots in Fortran order, with zeros above the diagonal
        make = np.zeros if name.startswith(TRIANGLE) else np.empty
        array = make(stored.full, stored.dtype, order="F" if name.startswith(TRIANGLE) else "C")
        for part in parts(name, array):
            digest.update(_filled(file, part))
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
    if digest.hexdigest() != metadata["sha256"]:
        after = os.fstat(file.fileno())
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            raise ModelFileError(_CHANGED)
        cause = "it was altered or damaged since it was saved"
        raise ModelFileError(f"its checksum does not match: {cause}. {kind.again}")
    return metadata, {name: arrays[name] for name in layout}


def _filled(file: BinaryIO, array: NDArray[Any]) -> NDArray[Any]:
    """Fills a contiguous array from a file that was long enough when it was opened; gives its bytes."""
    into = array.reshape(-1).view(np.uint8)
    if len(into) and file.readinto(into.data) != len(into):  # type: ignore[attr-defined]
        raise ModelFileError(_CHANGED)
    return into


def _layout(header: bytes, size: int, kind: Kind) -> tuple[dict[str, str], dict[str, _Stored]]:
    """The metadata and the arrays that a header describes, which must fill `size` bytes after it, one after
    the other."""
    try:
        described = parse(header.decode("utf-8"))
        metadata = described.pop("__metadata__", None) if isinstance(described, dict) else None
        for name, text in typed({} if metadata is None else metadata, dict, "__metadata__").items():
            typed(text, str, f"__metadata__.{name[:40]}").encode("utf-8")
    except (UnicodeError, StateError) as cause:
        _damaged(f"its header: {cause}", kind)
    metadata = _metadata(metadata, kind)
    if len(described) > _MAX_ARRAYS:
        raise ModelFileError(f"it has {len(described):,} arrays, but may have {_MAX_ARRAYS:,} at most.")
    layout, at = {name: _stored(name, entry, size, kind) for name, entry in described.items()}, 0
    for name, stored in sorted(layout.items(), key=lambda item: item[1][3:]):
        if stored.start != at:
            where = f"begins at byte {stored.start:,}, but must begin at {at:,}"
            _damaged(f"its array {name[:80]!r} {where}", kind)
        at = stored.stop
    if at != size:
        _damaged(f"its arrays take {at:,} bytes, but {size:,} are there", kind)
    return metadata, layout


def _stored(name: str, described: Any, size: int, of: Kind) -> _Stored:
    """An array as a header describes it, of a file that has `size` bytes of arrays."""
    try:
        name.encode("utf-8")
        kind, lengths, offsets = entries(described, f"array {name[:80]!r}", "dtype", "shape", "data_offsets")
        shape = tuple(typed_list(lengths, int, f"{name[:80]}.shape"))
        ends = typed_list(offsets, int, f"{name[:80]}.data_offsets")
    except (UnicodeError, StateError) as cause:
        _damaged(str(cause), of)
    if kind != "F64" and (kind != "I64" or name.startswith(TRIANGLE)):
        raise ModelFileError(f"its array {name[:80]!r} is of type {str(kind)[:20]}, but must be F64.")
    if not shape:
        raise ModelFileError(f"its array {name[:80]!r} is a single number.")
    # lengths beside one of zero are bounded, too: somebody might count up to them
    spanned = 8 * math.prod(max(1, length) for length in shape[:_MAX_DIMENSIONS])
    if len(shape) > _MAX_DIMENSIONS or min(shape) < 0 or spanned > max(size, 8):
        _damaged(f"its array {name[:80]!r} has the shape {shown(shape)}, for which it has not the bytes", of)
    if len(ends) != 2 or ends[0] < 0 or ends[1] - ends[0] != 8 * math.prod(shape):
        _damaged(f"its array {name[:80]!r} has the shape {shown(shape)}, but the bytes {shown(ends)}", of)
    full = shape
    if name.startswith(TRIANGLE):
        n = (math.isqrt(8 * math.prod(shape) + 1) - 1) // 2
        full = n, n
        if shape != (n * (n + 1) // 2,):
            raise ModelFileError(f"its array {name[:80]!r} has the shape {shape}, which is no triangle.")
    return _Stored(_NUMBERS[kind], shape, full, *ends)


def _damaged(cause: str, kind: Kind) -> NoReturn:
    raise ModelFileError(f"it is damaged, or no {kind.called} ({cause.rstrip('.')}). {kind.again}")


def _check_holes(file: BinaryIO, size: int) -> None:
    """Refuses a file that is said to be long, but is not there for the most part: zeros without end."""
    if size <= _HOLES or not hasattr(os, "SEEK_DATA"):
        return
    there = at = 0
    place = os.lseek(file.fileno(), 0, os.SEEK_CUR)  # which the buffer relies on
    try:
        while at < size:
            start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            there += at - start
    except OSError as cause:
        if cause.errno != errno.ENXIO:  # no data from there on
            return  # a file system that does not tell
    finally:
        os.lseek(file.fileno(), place, os.SEEK_SET)
    if size - there > _HOLES + _HOLES_SHARE * there:
        told = f"it is {memory.show_bytes(size)} long, of which {memory.show_bytes(there)} are there"
        cure = "If the zeros in between are meant, write them out: cp --sparse=never OLD NEW"
        raise ModelFileError(f"{told}: the rest are holes. {cure}.")


# The file. --------------------------------------------------------------------------------------------------


def _header_length(file: BinaryIO, size: int, kind: Kind) -> int:
    """The length of the header, behind which the file stands then; tells files that are something else from
    model files, by their first bytes."""
    start = file.read(9)
    if size == 0:
        raise ModelFileError("it is empty.")
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and start[8:9] != b"{":
        cause = "it is a pickle, which may run any code when it is opened"
        raise ModelFileError(f"{cause}. A {kind.called} is written by {kind.written}.")
    if start[8:9] != b"{":
        raise ModelFileError(f"it is not a {kind.called}. One is written by {kind.written}.")
    length = int.from_bytes(start[:8], "little")
    if length > min(size - 8, _MAX_HEADER):
        cause = "was cut off" if length <= _MAX_HEADER else f"is damaged or no {kind.called}"
        sizes = f"its header should have {length:,} bytes, but the whole file has {size:,}"
        raise ModelFileError(f"it {cause}: {sizes}. {kind.again}")
    file.seek(8)
    return length


def _metadata(metadata: dict[str, str] | None, kind: Kind) -> dict[str, str]:
    """The metadata, after a check that this library can read the format."""
    found = metadata or {}
    if found.get("format") != kind.format:
        cause = f"it is a safetensors file, but not one with {kind.of}"
        raise ModelFileError(f"{cause}. One is written by {kind.written}.")
    version = found.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) <= 9 and int(version) >= 1):
        raise ModelFileError(f"its format version is {version[:40]!r}, but must be a whole number from 1 on.")
    if int(version) > kind.version:
        newer = f"written by gramian {found.get('library', 'of a later version')[:40]}"
        ours = f"this gramian ({__version__}) reads formats up to {kind.version}"
        cure = "Upgrade: pip install --upgrade gramian"
        raise ModelFileError(f"it has format {version}, {newer}, and {ours}. {cure}.")
    for name in _METADATA:
        if name not in found:
            raise ModelFileError(f"its header has no entry {name!r}.")
    return found
