"""Checks of observations that likelihoods share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.errors import InputError

Array = NDArray[np.float64]


def refuse(y: Array, possible: NDArray[np.bool_], rule: str, what: str) -> Array:
    """y when all of it is possible; else an InputError with the first row that is not."""
    if not np.all(possible):
        row = int(np.argmin(possible))
        raise InputError(f"{what} has {float(y[row]):g} in row {row}: {rule}.")
    return y


def labels(y: Array, classes: int, name: str, what: str) -> Array:
    """y when it holds 0 ... classes - 1."""
    with np.errstate(invalid="ignore"):
        possible = (y >= 0) & (y < classes) & (y == np.floor(y))
    return refuse(
        y,
        possible,
        f"{name} has the classes {'0 and 1' if classes == 2 else f'0, 1, ..., {classes - 1}'}",
        what,
    )
