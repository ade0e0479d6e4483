"""A checkpoint: the journal of a fit (`gramian.journal`) in a file, in the layout of model files.

Its document has

    facts   what the fit is of (the library, the estimator, its settings, the rows, the method): a text for
            people and a digest of each; a checkpoint of another fit is refused by what differs
    parts   the sequences of entries, each [kind, key, seconds, plain values, arrays]; an array is its name,
            its type, its shape, and its axes in the order of memory

and the numbers of all arrays one after the other in two arrays, of float64 and of int64, so that a thousand
gradients are not a thousand arrays. Types that are neither are stored as one of them, without loss.

The file is written whole or not at all (`data/atomic.py`), some time after the last write at the earliest
(`journal.due`), and it is removed when the fit has ended well. Nothing that it holds is run; what does not
fit is refused with a CheckpointError.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np

from gramian import journal
from gramian.arrays import AnyArray
from gramian.errors import CheckpointError, GramianError, ParameterError, StateError
from gramian.journal import KINDS, Entry, Journal
from gramian.linalg.state import entries, taken, typed, typed_list
from gramian.modelfile import settings
from gramian.modelfile.document import canonical, parse
from gramian.modelfile.layout import Kind, read, write
from gramian.version import __version__

KIND: Final = Kind(
    "gramian checkpoint",
    2,
    "checkpoint",
    "a gramian checkpoint",
    "This checkpoint",
    "a fit with checkpoint=...",
    "Remove it to begin anew, or give another name.",
)
# settings that change how long a fit takes and what it tells, but not what it is of
ASIDE: Final = ("checkpoint", "client", "time_limit", "memory_limit", "verbose")
# how numbers of other types are stored: without loss, in one of the two
_STORED: Final = {"f8": "f", "f4": "f", "i8": "i", "i4": "i", "u4": "i", "b1": "i", "u8": "i"}
_BLOCK = 2**24  # bytes of an array that are hashed at a time
_LONGEST = 80  # characters of a fact
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


@contextmanager
def opened(path: Any) -> Iterator[None]:
    """Within it, a fit goes on from the checkpoint, if there is one, and keeps what it finds there."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise ParameterError(f"checkpoint={path!r} must be the name of a file, such as 'fit.ck', or None.")
    place = Path(os.path.abspath(os.fsdecode(path)))
    if not place.parent.is_dir() or not os.access(place.parent, os.W_OK):
        why = f"cannot be written into {place.parent}"
        raise ParameterError(f"checkpoint={os.fspath(path)!r} {why}. Give a name in a folder that can be.")
    there = os.path.lexists(place)
    book = Journal(place.name, _writer(place), *(_read(place) if there else ()))
    try:
        with journal.kept_in(book):
            yield
    except CheckpointError:
        raise  # it stays as it is
    except BaseException:
        _left(book)
        raise
    if book.unfinished:
        _left(book)
    elif there or book.written:  # it is ours
        with contextlib.suppress(OSError):
            place.unlink(missing_ok=True)


def _left(book: Journal) -> None:
    """What a fit leaves that has not ended well."""
    if book.worth_keeping:
        book.write()


def _writer(path: Path) -> Any:
    """Writes a journal. A fit does not end because its checkpoint cannot be written, but says so, once."""
    told = False

    def put(book: Journal) -> None:
        nonlocal told
        try:
            write(path, KIND, *_described(book), CheckpointError)
        except GramianError as error:
            if not told:
                told = True
                warnings.warn(f"The fit goes on without a checkpoint. {error}", stacklevel=2)

    return put


# What a fit is of. ------------------------------------------------------------------------------------------


def facts_of(
    gp: Any, rows: Mapping[str, AnyArray | None], further: Mapping[str, str]
) -> dict[str, list[str]]:
    """What the fit of an estimator to some arrays is of, by name: a text and a digest each."""
    found = {"version of gramian": __version__, "estimator": type(gp).__name__}
    found |= {f"setting {name}": _setting(name, value) for name, value in _settings(gp).items()}
    facts = {name: [_brief(text), _digest(text.encode())] for name, text in {**found, **further}.items()}
    for name, array in rows.items():
        if array is None:
            facts[name] = ["none", ""]
            continue
        shape = f"{len(array):,} rows" + (f" of {array.shape[1]} columns" if array.ndim > 1 else "")
        facts[name] = [shape, _hashed(array)]
    return facts


def _settings(gp: Any) -> dict[str, Any]:
    return {name: value for name, value in gp.get_params(deep=False).items() if name not in ASIDE}


def _setting(name: str, value: Any) -> str:
    """A setting as text. One that no model file can hold (a Python function) counts by what it shows."""
    if name == "random_state" and hasattr(value, "randint"):
        return "RandomState"  # what it gives to a fit is an entry of its own
    shown = _ADDRESS.sub("", repr(value))
    try:
        return f"{shown}\n{canonical(settings.described(name, value))}"
    except (GramianError, TypeError, ValueError):
        return shown


def _brief(text: str) -> str:
    first = text.partition("\n")[0]
    return first if len(first) <= _LONGEST else f"{first[: _LONGEST - 3]}..."


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _hashed(array: AnyArray) -> str:
    digest = hashlib.blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=16)
    step = max(1, _BLOCK // max(1, array[:1].nbytes))
    for start in range(0, len(array), step):
        digest.update(np.ascontiguousarray(array[start : start + step]).data)
    return digest.hexdigest()


# The file. --------------------------------------------------------------------------------------------------


def _described(book: Journal) -> tuple[str, dict[str, AnyArray]]:
    numbers: dict[str, list[AnyArray]] = {"f": [], "i": []}

    def placed(name: str, array: AnyArray) -> list[Any]:
        kind, axes = array.dtype.str[1:], _axes(array)
        into, flat = _STORED[kind], array.transpose(axes).ravel()
        wide = flat.view(np.int64) if kind == "u8" else flat.astype(np.float64 if into == "f" else np.int64)
        numbers[into].append(wide)
        return [name, kind, list(array.shape), axes]

    parts = {
        name: [
            [entry.kind, entry.key, entry.seconds, entry.told, [placed(*one) for one in entry.arrays.items()]]
            for entry in own
        ]
        for name, own in book.parts.items()
    }
    document = canonical({"facts": book.facts, "parts": parts})
    empty: dict[str, Any] = {"f": np.zeros(0), "i": np.zeros(0, np.int64)}
    arrays = {kind: np.concatenate([empty[kind], *numbers[kind]]) for kind in numbers}
    return document, {"floats": arrays["f"], "wholes": arrays["i"]}


def _axes(array: AnyArray) -> list[int]:
    """The axes from the one with the longest way in memory between two entries to the one with the shortest.
    They are a part of what is stored: a product of the same numbers in another order of memory is another
    routine of BLAS, with another last bit."""
    rowwise = list(range(array.ndim))
    return rowwise if array.flags.c_contiguous else sorted(rowwise, key=lambda k: -abs(array.strides[k]))


def _read(path: Path) -> tuple[Mapping[str, Sequence[str]], dict[str, list[Entry]]]:
    """The facts and the entries of a file, checked."""
    try:
        metadata, arrays = read(path, KIND)
        facts, parts = entries(parse(metadata["document"]), "its document", "facts", "parts")
        numbers = {"f": taken(arrays, "floats"), "i": taken(arrays, "wholes", kind=np.int64)}
        known = {name: typed_list(pair, str, name[:40]) for name, pair in typed(facts, dict, "facts").items()}
        if any(len(pair) != 2 for pair in known.values()):
            raise StateError("its facts are not pairs.")
        found = {
            name: [_entry(one, numbers) for one in typed(own, list, name[:40])]
            for name, own in typed(parts, dict, "parts").items()
        }
    except StateError as error:
        told = str(error)
        # what is no checkpoint is something else, which people need
        cure = "Give another name." if KIND.written in told or "folder" in told else KIND.again
        cure = "" if cure in told or "Upgrade" in told else f" {cure}"
        raise CheckpointError(f"The checkpoint {path} cannot be used: {told}{cure}") from None
    return known, found


def _entry(described: Any, numbers: dict[str, AnyArray]) -> Entry:
    kind, key, seconds, told, arrays = _parts(described, 5, "an entry")
    if kind not in KINDS:
        raise StateError(f"an entry is of the kind {str(kind)[:40]!r}, which is not known.")
    if not typed(seconds, float, "the seconds of an entry") >= 0:
        raise StateError(f"an entry has taken {seconds} seconds.")
    own = dict(_array(one, numbers) for one in typed(arrays, list, "the arrays of an entry"))
    return Entry(kind, typed(key, str, "the key of an entry"), seconds, told, own)


def _array(described: Any, numbers: dict[str, AnyArray]) -> tuple[str, AnyArray]:
    """The next array, whose numbers are then taken: none can be in two arrays."""
    name, kind, shape, order = _parts(described, 4, "an array")
    lengths, axes = typed_list(shape, int, "the shape of an array"), typed_list(order, int, "the axes")
    sound = kind in _STORED and len(lengths) <= 8 and min(lengths, default=0) >= 0
    if not sound or sorted(axes) != list(range(len(lengths))):
        raise StateError(f"an array is said to be {str(described)[:80]}.")
    count, left = math.prod(lengths), numbers[_STORED[kind]]
    if count > len(left):
        raise StateError(f"an array has {count:,} numbers, of which {len(left):,} are there.")
    flat, numbers[_STORED[kind]] = left[:count], left[count:]
    with np.errstate(all="ignore"):
        own = flat.view(np.uint64) if kind == "u8" else flat.astype(np.dtype(kind))
    array = own.reshape([lengths[k] for k in axes]).transpose(np.argsort(axes))
    return typed(name, str, "the name of an array"), array


def _parts(described: Any, count: int, what: str) -> list[Any]:
    parts = typed(described, list, what)
    if len(parts) != count:
        raise StateError(f"{what} has {len(parts)} parts, not {count}.")
    return parts
