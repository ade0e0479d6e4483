"""How suites compare and refuse."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def require(holds: bool, otherwise: str) -> None:
    """`assert`, but never switched off."""
    if not holds:
        raise AssertionError(otherwise)


def close(a: float, b: float, rtol: float) -> bool:
    return abs(a - b) <= rtol * max(1.0, abs(b))


def alike(ours: Array, theirs: Array, rtol: float, what: str, atol: Array | float = 0.0) -> None:
    """Entry by entry, relative to the entry or to the largest, whichever is the more lenient; `atol` comes on
    top."""
    excess = (
        np.abs(ours - theirs)
        - rtol * (np.abs(theirs) + float(np.max(np.abs(theirs), initial=0.0)) + 1e-300)
        - atol
    )
    if excess.size:
        index = tuple(map(int, np.unravel_index(int(np.argmax(excess)), excess.shape)))
        require(
            bool(excess[index] <= 0),
            f"{what}: {float(ours[index]):.12g} and {float(theirs[index]):.12g} at {index}.",
        )
