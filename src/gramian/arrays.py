"""The arrays that everything works on, numbers from what people give, and the test of a whole one."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
AnyArray = NDArray[Any]  # rows of numbers of any type: an array, or a memory map


def real_numbers(values: object) -> Array | None:
    """As float64; None where something in it is no real number, or beyond all of them (10**400)."""
    try:
        array = np.asarray(values)
        if array.dtype.kind in "cmM" or (array.dtype.kind == "O" and _has_spans(array)):
            return None
        with np.errstate(over="ignore"):  # of longer numbers: infinity
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _has_spans(cells: NDArray[Any]) -> bool:
    """Whether there are dates or spans of time among them, of which NumPy makes numbers in any unit."""
    return any(isinstance(cell, (np.datetime64, np.timedelta64)) for cell in cells.ravel())


def is_number(value: object) -> bool:
    """Whether it is a real number (true is none, and neither is a span of time, an integer for NumPy)."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_, np.timedelta64))


def as_float(value: Any) -> float:
    """A real number as Python's own, which compares with all others; infinity where it is beyond them."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_whole(value: object, least: int = 1, most: float = np.inf) -> bool:
    """Whether it is a whole number from `least` to `most`."""
    return isinstance(value, numbers.Integral) and is_number(value) and least <= int(value) <= most


def deviation(X: Array) -> Array:
    """The standard deviation of each column, whose squares may be beyond all numbers."""
    size = np.max(np.abs(X), axis=0)
    return np.asarray(np.std(X / np.where(size > 0, size, 1.0), axis=0) * size)


def plain_numbers(settings: Any) -> None:
    """Makes Python's numbers of NumPy's among the fields of a frozen dataclass, in its `__post_init__`:
    Nystrom(rank=5), not Nystrom(rank=np.int64(5))."""
    for name, value in vars(settings).items():
        if isinstance(value, np.generic):
            object.__setattr__(settings, name, value.item())
