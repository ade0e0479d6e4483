"""The arrays that everything works on, the test of a whole number, and numbers as people write them."""

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


def plain_numbers(settings: Any) -> None:
    """Makes Python's numbers of NumPy's among the fields of a frozen dataclass, in its `__post_init__`:
    Nystrom(rank=5), not Nystrom(rank=np.int64(5))."""
    for name, value in vars(settings).items():
        if isinstance(value, np.generic):
            object.__setattr__(settings, name, value.item())
