"""The file itself: its layout, its checksum, how arrays go in and out.

It is in the safetensors format: the length of a header, the header (JSON), the arrays. Its `__metadata__` has

    format      "gramian model"
    version     of this format, a whole number; older ones are brought up to date by `migrations`
    library     the version of gramian that wrote it
    document    everything that is no array (settings, kernel, mean, columns, outcome), as one JSON text; see
                `document`
    sha256      of version, library, document, and each array in the order of names with its name and shape

and the arrays are the rows where predictions need them, those of the posterior (`Process.state`), and theta.
They are float64 (those of whole numbers int64), so predictions from the file are those from memory to the
last bit. Arrays named "root..." are lower triangles, column by column: n (n + 1) / 2 numbers.

Writing takes no memory beyond the model's own, reading none beyond what the model needs. The checksum finds
damage; it is no protection from somebody who computes it anew, so all that is read is checked as well.
Reading never runs code: see `document` on classes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from sklearn.utils.validation import check_is_fitted

from gramian.data.atomic import atomic_write
from gramian.errors import GramianError, MemoryLimitError, ModelFileError, StateError
from gramian.estimators import GPClassifier, GPRegressor
from gramian.estimators.base import Estimator
from gramian.linalg import memory
from gramian.linalg.state import TRIANGLE, Arrays
from gramian.modelfile.document import canonical, parse
from gramian.modelfile.migrations import MIGRATIONS
from gramian.modelfile.record import CHANGES, describe, restore
from gramian.version import __version__

FORMAT: Final = "gramian model"
VERSION = 6
_METADATA = ("format", "version", "library", "document", "sha256")
_MAX_HEADER = 100_000_000  # bytes: the limit of the safetensors format
_PART = 2**20  # numbers read at a time
_DTYPES = {"f": "F64", "i": "I64"}
_INVALID = "cannot be loaded: it holds a model that is not valid"
_AGAIN = "Save the model again, or copy the file again."


def save(gp: Estimator, path: str | os.PathLike[str]) -> None:
    """Writes a fitted estimator to `path`, whole or not at all; `load` gives it back to the last bit.

    Refused, before anything is written: kernels that hold Python functions (`warp`, `map_inputs`), subclasses
    of the estimators, and settings that are no plain values. A kernel, mean or likelihood of a class of your
    own is stored by the name of its class, which must be imported when the file is loaded. A `random_state`
    that is a RandomState is stored with its present state, so that it continues as it would have here.
    """
    if type(gp) not in (GPRegressor, GPClassifier):
        rule = f"A model file holds a GPRegressor or a GPClassifier, not a {type(gp).__name__}"
        raise ModelFileError(f"{rule}. Use pickle for other estimators.")
    check_is_fitted(gp, "fitted_")
    try:
        description, arrays = describe(gp)
        again = restore(description, arrays)  # what cannot be read back is not written
        if again.kernel_ != gp.kernel_:
            raise ModelFileError(f"its kernel does not come back as it was. {CHANGES}")
        if not _finite(arrays):
            raise ModelFileError("its predictions are not finite. The summary may tell the cause.")
    except GramianError as error:
        raise ModelFileError(f"This model cannot be saved: {error}") from None
    except Exception as cause:  # from a class of the user's
        told = f"it could not be read back ({type(cause).__name__}: {cause})"
        raise ModelFileError(f"This model cannot be saved: {told}.") from cause
    document = canonical(description)
    metadata = {"format": FORMAT, "version": str(VERSION), "library": __version__, "document": document}
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
        raise ModelFileError(f"This model cannot be saved: {size}.")
    try:
        with atomic_write(path, ModelFileError) as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for name, array in arrays.items():
                for part in _parts(name, array):
                    file.write(_little(part).data)
    except OSError as cause:
        told = f"{path} cannot be written: {cause.strerror or cause}"
        raise ModelFileError(f"{told}. An old file of that name is untouched.") from cause


def load(path: str | os.PathLike[str]) -> GPRegressor | GPClassifier:
    """The estimator that `save` wrote. Runs no code from the file; a file that is damaged, foreign or made up
    is refused with a ModelFileError."""
    try:
        with memory.translated(f"To load {path}", "Free some, or load it on a larger machine."):
            return restore(*_document(*_read(path)))
    except MemoryLimitError:
        raise
    except StateError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    except RecursionError:
        raise ModelFileError(f"{path} cannot be loaded: its document is nested too deeply.") from None
    except GramianError as error:  # a constructor that refuses its values
        raise ModelFileError(f"{path} {_INVALID}. {error}") from None
    except Exception as cause:  # whatever else a made-up file sets off is the file's fault
        raise ModelFileError(f"{path} {_INVALID} ({type(cause).__name__}: {cause}).") from cause


# Arrays in the file. ----------------------------------------------------------------------------------------


def _shape(name: str, array: NDArray[Any]) -> tuple[int, ...]:
    """As the file has it."""
    n = len(array)
    return (n * (n + 1) // 2,) if name.startswith(TRIANGLE) else array.shape


def _parts(name: str, array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The numbers of an array in the order of the file."""
    return (array[j:, j] for j in range(len(array))) if name.startswith(TRIANGLE) else iter([array])


def _little(part: NDArray[Any]) -> NDArray[Any]:
    """As contiguous little-endian numbers, the file's form."""
    return np.ascontiguousarray(part, dtype=part.dtype.newbyteorder("<"))


def _finite(arrays: Arrays) -> bool:
    """Whether all numbers are, but for nan in Y: not observed."""
    parts = ((name, part) for name, array in arrays.items() for part in _parts(name, array))
    return all(
        np.all(np.isfinite(part) | (name.split(".")[-1] == "Y" and np.isnan(part))) for name, part in parts
    )


def _checksum(metadata: Mapping[str, str], arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in ("version", "library", "document"):
        digest.update(f"{metadata[name]}\n".encode())
    for name, array in sorted(arrays.items()):
        whole = " of whole numbers" if array.dtype.kind == "i" else ""
        digest.update(f"{name} {list(_shape(name, array))}{whole}\n".encode())
        for part in _parts(name, array):
            digest.update(_little(part).data)
    return digest.hexdigest()


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, str], Arrays]:
    """The metadata and the arrays of a file, after checks of its layout and of the memory that it takes."""
    name = os.fsdecode(path)
    try:
        kind = os.stat(name).st_mode
        if stat.S_ISDIR(kind):
            raise ModelFileError("it is a folder. Give the name of a model file in it.")
        if not stat.S_ISREG(kind):
            raise ModelFileError("it is a device or a pipe. Give the name of an ordinary file.")
        with open(name, "rb") as start:
            _check_start(start)
        opened = safe_open(name, framework="np")
    except FileNotFoundError:
        raise ModelFileError("there is no such file.") from None
    except OSError as cause:
        raise ModelFileError(f"{cause.strerror or cause}.") from None
    except SafetensorError as cause:
        raise ModelFileError(f"it is damaged, or no model file ({cause}). {_AGAIN}") from None
    with opened as file:
        metadata = _metadata(file.metadata())
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118  # not a dict
        needed = sum(8 * math.prod(_full_shape(name, array)) for name, array in slices.items())
        memory.check_memory(needed, None, "This model", "Free some memory, or load it on a larger machine.")
        return metadata, {name: _filled(name, array) for name, array in slices.items()}


def _full_shape(name: str, array: Any) -> tuple[int, ...]:
    """The shape in memory of an array in a file, after a check of its type."""
    shape, kind = tuple(array.get_shape()), array.get_dtype()
    if kind != "F64" and (kind != "I64" or name.startswith(TRIANGLE)):
        raise ModelFileError(f"its array {name[:80]!r} is of type {kind}, but must be F64.")
    if not shape:
        raise ModelFileError(f"its array {name[:80]!r} is a single number.")
    if not name.startswith(TRIANGLE):
        return shape
    n = (math.isqrt(8 * math.prod(shape) + 1) - 1) // 2
    if shape != (n * (n + 1) // 2,):
        raise ModelFileError(f"its array {name[:80]!r} has the shape {shape}, which is no triangle.")
    return n, n


def _filled(name: str, array: Any) -> NDArray[Any]:
    """The array in memory, read a part at a time: roots in Fortran order with zeros above the diagonal."""
    shape = _full_shape(name, array)
    if name.startswith(TRIANGLE):
        root, stop = np.zeros(shape, order="F"), 0
        for j in range(len(root)):
            start, stop = stop, stop + len(root) - j
            root[j:, j] = array[start:stop]
        return root
    found = np.empty(shape, dtype=np.float64 if array.get_dtype() == "F64" else np.int64)
    step = max(1, _PART // max(1, math.prod(shape[1:])))
    for start in range(0, shape[0], step):
        found[start : start + step] = array[start : min(start + step, shape[0])]
    return found


# The file. --------------------------------------------------------------------------------------------------


def _check_start(file: BinaryIO) -> None:
    """Tells files that are something else from model files, by their first bytes."""
    size, start = os.fstat(file.fileno()).st_size, file.read(32)
    if size == 0:
        raise ModelFileError("it is empty.")
    if start[:1] == b"\x80" and start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05") and start[8:9] != b"{":
        cause = "it is a pickle, which may run any code when it is opened"
        raise ModelFileError(f"{cause}. A model file is written by save, or by gramian fit.")
    if start[8:9] != b"{":
        raise ModelFileError("it is not a model file. One is written by save, or by gramian fit.")
    length = int.from_bytes(start[:8], "little")
    if length > size - 8:
        cause = "was cut off" if length <= _MAX_HEADER else "is damaged or no model file"
        sizes = f"its header should have {length:,} bytes, but the whole file has {size:,}"
        raise ModelFileError(f"it {cause}: {sizes}. {_AGAIN}")


def _metadata(metadata: dict[str, str] | None) -> dict[str, str]:
    """The metadata, after a check that this library can read the format."""
    found = metadata or {}
    if found.get("format") != FORMAT:
        cause = "it is a safetensors file, but not one with a gramian model"
        raise ModelFileError(f"{cause}. One is written by save, or by gramian fit.")
    version = found.get("version", "")
    if not (version.isascii() and version.isdigit() and len(version) <= 9 and int(version) >= 1):
        raise ModelFileError(f"its format version is {version[:40]!r}, but must be a whole number from 1 on.")
    if int(version) > VERSION:
        newer = f"written by gramian {found.get('library', 'of a later version')[:40]}"
        ours = f"this gramian ({__version__}) reads formats up to {VERSION}"
        cure = "Upgrade: pip install --upgrade gramian"
        raise ModelFileError(f"it has format {version}, {newer}, and {ours}. {cure}.")
    for name in _METADATA:
        if name not in found:
            raise ModelFileError(f"its header has no entry {name!r}.")
    return found


def _document(metadata: Mapping[str, str], arrays: Arrays) -> tuple[Any, Arrays]:
    """The document, after the checksum and before anything is built from it."""
    if _checksum(metadata, arrays) != metadata["sha256"]:
        cause = "it was altered or damaged since it was saved"
        raise ModelFileError(f"its checksum does not match: {cause}. {_AGAIN}")
    if not _finite(arrays):
        raise ModelFileError("its arrays hold numbers that are not finite.")
    document = parse(metadata["document"])
    for version in range(int(metadata["version"]), VERSION):
        document, arrays = MIGRATIONS[version](document, arrays)
    return document, arrays
