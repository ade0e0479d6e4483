"""Arrays beside a document: taken by name with a check of their shape, and names within names for models that
are made of several.

A name that begins with "root." is that of a lower triangle (see `file`), so "alpha" and "root.0" of a part p
are "p.alpha" and "root.p.0".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.errors import ModelFileError

Array = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]

TRIANGLE = "root."  # how the names of triangular arrays begin
LANDMARK_ROOT = "root.landmarks"


def taken(
    arrays: Arrays, name: str, shape: tuple[int | None, ...] | None, kind: type = np.float64
) -> NDArray[Any]:
    """An array that must be there, in this shape (None: any length; no shape at all: a vector of any
    length)."""
    if name not in arrays:
        raise ModelFileError(f"it has no array {name!r}.")
    array, wanted = arrays[name], (None,) if shape is None else shape
    if array.dtype != kind:
        raise ModelFileError(f"its array {name!r} is of type {array.dtype}, but must be {np.dtype(kind)}.")
    if array.ndim != len(wanted) or any(
        length not in (None, mine) for length, mine in zip(wanted, array.shape, strict=True)
    ):
        shown = ", ".join("any" if length is None else str(length) for length in wanted)
        raise ModelFileError(f"its array {name!r} has the shape {array.shape}, but must have ({shown}).")
    return array


def root(arrays: Arrays, name: str, size: int) -> Array:
    """A triangle with a positive diagonal."""
    found = taken(arrays, name, (size, size))
    if not np.all(np.diagonal(found) > 0):
        raise ModelFileError(f"its {name!r} has a diagonal that is not positive.")
    return found


def roots(arrays: Arrays, size: int, count: int | None = None) -> tuple[Array, ...]:
    """All of "root.0", "root.1", ..., one at least."""
    if count is None:
        count = max(
            1, sum(name.startswith(TRIANGLE) and name[len(TRIANGLE) :].isdecimal() for name in arrays)
        )
    return tuple(root(arrays, f"{TRIANGLE}{k}", size) for k in range(count))


def within(arrays: Arrays, part: str) -> Arrays:
    """The arrays under the names that they have as those of a part."""
    return {
        f"{TRIANGLE}{part}.{name[len(TRIANGLE) :]}" if name.startswith(TRIANGLE) else f"{part}.{name}": a
        for name, a in arrays.items()
    }


def of_part(arrays: Arrays, part: str) -> Arrays:
    """Those of a part, under their own names."""
    inside = {f"{TRIANGLE}{part}.": TRIANGLE, f"{part}.": ""}
    return {
        own + name[len(prefix) :]: a
        for name, a in arrays.items()
        for prefix, own in inside.items()
        if name.startswith(prefix)
    }


__all__ = ["LANDMARK_ROOT", "TRIANGLE", "Array", "Arrays", "of_part", "root", "roots", "taken", "within"]
