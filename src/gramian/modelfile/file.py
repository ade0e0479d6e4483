"""The file itself: its layout, its checksum, how arrays go in and out.

It is in the safetensors format: the length of a header, the header (JSON), the arrays. Its `__metadata__` has

    format      "gramian model"
    version     of this format, a whole number; older ones are brought up to date by `MIGRATIONS`
    library     the version of gramian that wrote it
    document    everything that is no array (settings, kernel, mean, columns, outcome), as one JSON text; see `document`
    sha256      of version, library, document, and each array in the order of names with its name and shape

and the arrays are X (n, d), Y (n, q), scale (q,), alpha (n, q), theta, noise_var (n,) where it was given, and the lower triangle of each root,
column by column: n (n + 1) / 2 numbers. All are float64, so predictions from the file are those from memory to the last bit.

Writing takes no memory beyond the model's own, reading none beyond what the model needs. The checksum finds damage; it is no protection from
somebody who computes it anew, so all that is read is checked as well. Reading never runs code: see `document` on classes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from sklearn.utils.validation import check_is_fitted

from gramian.atomic import atomic_write
from gramian.errors import GramianError, MemoryLimitError, ModelFileError
from gramian.estimators import GPRegressor
from gramian.gram import budget
from gramian.modelfile.document import canonical, parse
from gramian.modelfile.record import Arrays, describe, restore
from gramian.version import __version__

Array = NDArray[np.float64]

FORMAT: Final = "gramian model"
VERSION = 1
MIGRATIONS: Mapping[int, Callable[[Any], Any]] = {}  # from the document of a version to that of the next one
_METADATA = ("format", "version", "library", "document", "sha256")
_MAX_HEADER = 100_000_000  # bytes: the limit of the safetensors format
_PART = 2**20  # numbers read at a time
_AGAIN = "Save the model again, or copy the file again."


@dataclass(frozen=True)
class _Stored:
    """An array as the file has it: its shape, and its numbers in order, a part at a time."""

    shape: tuple[int, ...]
    parts: Callable[[], Iterator[Array]]


def save(gp: GPRegressor, path: str | os.PathLike[str]) -> None:
    """Writes a fitted GPRegressor to `path`, whole or not at all; `load` gives it back with the same predictions to the last bit.

    Refused, before anything is written: kernels that hold Python functions (`warp`, `map_inputs`), subclasses of GPRegressor, and settings that are
    no plain values. A kernel or mean of a class of your own is stored by the name of its class, which must be imported when the file is loaded. A
    `random_state` that is a RandomState is stored with its present state, so that it continues as it would have here.
    """
    if type(gp) is not GPRegressor:
        raise ModelFileError(f"A model file holds a GPRegressor, not a {type(gp).__name__}. Use pickle for other estimators.")
    check_is_fitted(gp, "posterior_")
    try:
        description, arrays = describe(gp)
        again = restore(description, arrays)  # what cannot be read back is not written
        if again._model_.kernel != gp._model_.kernel:
            raise ModelFileError("its kernel does not come back as it was. Does a class of your own change its fields in __post_init__?")
        stored = _stored(arrays)
        if not all(np.all(np.isfinite(part)) for array in stored.values() for part in array.parts()):
            raise ModelFileError("its predictions are not finite. Look at summary() for the cause.")
    except GramianError as error:
        raise ModelFileError(f"This model cannot be saved: {error}") from None
    except Exception as cause:  # from a class of the user's
        raise ModelFileError(f"This model cannot be saved: it could not be read back ({type(cause).__name__}: {cause}).") from cause
    document = canonical(description)
    metadata = {"format": FORMAT, "version": str(VERSION), "library": __version__, "document": document}
    metadata["sha256"] = _checksum(metadata, stored)
    header, at = {"__metadata__": metadata}, 0
    for name, array in stored.items():
        stop = at + 8 * math.prod(array.shape)
        header[name] = {"dtype": "F64", "shape": list(array.shape), "data_offsets": [at, stop]}  # type: ignore[dict-item]
        at = stop
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 8)  # arrays begin at a multiple of 8
    if len(text) > _MAX_HEADER:
        raise ModelFileError(f"This model cannot be saved: its names and categories take {budget.show_bytes(len(text))}, more than a header may.")
    try:
        with atomic_write(path, ModelFileError) as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for array in stored.values():
                for part in array.parts():
                    file.write(_little(part).data)
    except OSError as cause:
        raise ModelFileError(f"{path} cannot be written: {cause.strerror or cause}. An old file of that name is untouched.") from cause


def load(path: str | os.PathLike[str]) -> GPRegressor:
    """The estimator that `save` wrote. Runs no code from the file; a file that is damaged, foreign or made up is refused with a ModelFileError."""
    try:
        with _opened(path) as (metadata, stored):
            document = _document(metadata, stored)
            return restore(document, _read(stored))
    except MemoryLimitError:
        raise
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    except RecursionError:
        raise ModelFileError(f"{path} cannot be loaded: its document is nested too deeply.") from None
    except MemoryError:
        raise MemoryLimitError(f"{path} needs more memory than there is. Free some, or load it on a larger machine.") from None
    except GramianError as error:  # a constructor that refuses its values
        raise ModelFileError(f"{path} cannot be loaded: it holds a model that is not valid. {error}") from None
    except Exception as cause:  # whatever else a made-up file sets off is the file's fault
        raise ModelFileError(f"{path} cannot be loaded: it holds a model that is not valid ({type(cause).__name__}: {cause}).") from cause


# Arrays in the file. --------------------------------------------------------------------------------------------------------------------------------


def _stored(arrays: Arrays) -> dict[str, _Stored]:
    """The arrays of a model as the file has them."""
    found = {name: _whole(array) for name, array in arrays._asdict().items() if name != "roots" and array is not None}
    return {**found, **{f"root.{k}": _triangle(root) for k, root in enumerate(arrays.roots)}}


def _whole(array: Array) -> _Stored:
    return _Stored(array.shape, lambda: iter([array]))


def _triangle(root: Array) -> _Stored:
    n = len(root)
    return _Stored((n * (n + 1) // 2,), lambda: (root[j:, j] for j in range(n)))


def _little(part: Array) -> Array:
    """As contiguous little-endian float64, the file's form."""
    return np.ascontiguousarray(part, dtype="<f8")


def _checksum(metadata: Mapping[str, str], stored: Mapping[str, _Stored]) -> str:
    digest = hashlib.sha256("".join(f"{metadata[name]}\n" for name in ("version", "library", "document")).encode())
    for name in sorted(stored):
        digest.update(f"{name} {list(stored[name].shape)}\n".encode())
        for part in stored[name].parts():
            digest.update(_little(part).data)
    return digest.hexdigest()


def _sizes(stored: Mapping[str, _Stored]) -> tuple[int, int]:
    """The number of rows and of roots, after a check that all shapes belong to one model."""
    shapes = {name: array.shape for name, array in stored.items()}
    for name in ("X", "Y", "scale", "alpha", "theta"):
        if name not in shapes:
            raise ModelFileError(f"it has no array {name!r}.")
    roots = [name for name in shapes if name.startswith("root.")]
    for k in range(max(len(roots), 1)):
        if f"root.{k}" not in shapes:
            raise ModelFileError(f"it has no array 'root.{k}'.")
    n, d, *_ = (*shapes["X"], 0, 0)
    q = (*shapes["Y"], 0, 0)[1]
    if n < 1 or d < 1 or q < 1 or len(roots) > q:
        raise ModelFileError(f"its arrays have impossible shapes: X {shapes['X']}, Y {shapes['Y']}, {len(roots)} roots.")
    expected = {"X": (n, d), "Y": (n, q), "scale": (q,), "alpha": (n, q), "noise_var": (n,), **dict.fromkeys(roots, (n * (n + 1) // 2,))}
    for name, shape in shapes.items():
        if name == "theta" and len(shape) == 1:
            continue
        if name not in expected:
            raise ModelFileError(f"it has an array {name[:80]!r} of shape {shape}, which does not belong there.")
        if shape != expected[name]:
            raise ModelFileError(f"its array {name!r} has the shape {shape}, not {expected[name]} as {n} rows, {d} columns and {q} outputs need it.")
    return n, len(roots)


def _read(stored: Mapping[str, _Stored]) -> Arrays:
    """The arrays, roots as full matrices in Fortran order with zeros above the diagonal."""
    n, roots = _sizes(stored)
    plain: dict[str, Any] = {"noise_var": None}
    for name, array in stored.items():
        if not name.startswith("root."):
            plain[name] = np.concatenate([np.zeros((0, *array.shape[1:])), *array.parts()])
    return Arrays(**plain, roots=tuple(_unpacked(stored[f"root.{k}"], n) for k in range(roots)))


def _unpacked(packed: _Stored, n: int) -> Array:
    root = np.zeros((n, n), order="F")
    column, row = 0, 0
    for part in packed.parts():
        while len(part):
            room = root[row:, column]  # what is left of this column
            taken = min(len(room), len(part))
            room[:taken] = part[:taken]
            part, row = part[taken:], row + taken
            if row == n:
                column += 1
                row = column
    return root


# The file. ------------------------------------------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, str], dict[str, _Stored]]]:
    """The metadata and the arrays of a file, after a check of its layout; nothing of the arrays is read yet."""
    name = os.fsdecode(path)
    try:
        kind = os.stat(name).st_mode
        if stat.S_ISDIR(kind):
            raise ModelFileError("it is a folder. Give the name of a model file in it.")
        if not stat.S_ISREG(kind):
            raise ModelFileError("it is a device or a pipe. Give the name of an ordinary file.")
        with open(name, "rb") as file:
            _check_start(file)
        opened = safe_open(name, framework="np")
    except FileNotFoundError:
        raise ModelFileError("there is no such file.") from None
    except OSError as cause:
        raise ModelFileError(f"{cause.strerror or cause}.") from None
    except SafetensorError as cause:
        raise ModelFileError(f"it is damaged, or no model file ({cause}). {_AGAIN}") from None
    with opened as file:
        yield _metadata(file.metadata()), {name: _in_file(file, name) for name in file.keys()}  # noqa: SIM118  # not a dict


def _in_file(file: Any, name: str) -> _Stored:
    """An array of an open file; read a part at a time, whatever its size."""
    array = file.get_slice(name)
    if array.get_dtype() != "F64":
        raise ModelFileError(f"its array {name[:80]!r} is of type {array.get_dtype()}, but must be F64.")
    shape = tuple(array.get_shape())
    rows, step = (shape or (0,))[0], max(1, _PART // max(1, math.prod(shape[1:])))
    return _Stored(shape, lambda: (array[start : min(start + step, rows)] for start in range(0, rows, step)))


def _check_start(file: BinaryIO) -> None:
    """Tells files that are something else from model files, by their first bytes."""
    size, start = os.fstat(file.fileno()).st_size, file.read(32)
    if size == 0:
        raise ModelFileError("it is empty.")
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and start[8:9] != b"{":
        raise ModelFileError("it is a pickle, which may run any code when it is opened. A model file is written by gp.save(path).")
    if start[8:9] != b"{":
        raise ModelFileError("it is not a model file. One is written by gp.save(path).")
    length = int.from_bytes(start[:8], "little")
    if length > size - 8:
        cause = "was cut off" if length <= _MAX_HEADER else "is damaged or no model file"
        raise ModelFileError(f"it {cause}: its header should have {length:,} bytes, but the whole file has {size:,}. {_AGAIN}")


def _metadata(metadata: dict[str, str] | None) -> dict[str, str]:
    """The metadata, after a check that this library can read the format."""
    found = metadata or {}
    if found.get("format") != FORMAT:
        raise ModelFileError("it is a safetensors file, but not one with a gramian model. One is written by gp.save(path).")
    version = found.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) <= 9 and int(version) >= 1):
        raise ModelFileError(f"its format version is {version[:40]!r}, but must be a whole number from 1 on.")
    if int(version) > VERSION:
        newer = f"it has format {version}, written by gramian {found.get('library', 'of a later version')[:40]}"
        raise ModelFileError(f"{newer}, and this gramian ({__version__}) reads formats up to {VERSION}. Upgrade: pip install --upgrade gramian.")
    for name in _METADATA:
        if name not in found:
            raise ModelFileError(f"its header has no entry {name!r}.")
    return found


def _document(metadata: Mapping[str, str], stored: Mapping[str, _Stored]) -> Any:
    """The document, after the checksum and before anything is built from it."""
    n, roots = _sizes(stored)
    needed = 8 * (roots * n * n + sum(math.prod(array.shape) for name, array in stored.items() if not name.startswith("root.")))
    budget.check_memory(needed, None, f"This model of {n:,} rows", "Free some memory, or load it on a larger machine.")
    if _checksum(metadata, stored) != metadata["sha256"]:
        raise ModelFileError(f"its checksum does not match: it was altered or damaged since it was saved. {_AGAIN}")
    if not all(np.all(np.isfinite(part)) for array in stored.values() for part in array.parts()):
        raise ModelFileError("its arrays hold numbers that are not finite.")
    document = parse(metadata["document"])
    for version in range(int(metadata["version"]), VERSION):
        document = MIGRATIONS[version](document)
    return document


__all__ = ["VERSION", "load", "save"]
