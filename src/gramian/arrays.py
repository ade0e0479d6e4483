"""The arrays that everything works on, and the test of a whole number."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
AnyArray = NDArray[Any]  # rows of numbers of any type: an array, or a memory map


def is_whole(value: object, least: int = 1) -> bool:
    """Whether it is a whole number from `least` on (true is none)."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) >= least
