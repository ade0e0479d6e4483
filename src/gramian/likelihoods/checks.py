"""Checks that likelihoods share: of observations, and of a number of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian.errors import InputError, ParameterError

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
    return refuse(y, possible, f"{name} has the classes {'0 and 1' if classes == 2 else f'0, 1, ..., {classes - 1}'}", what)


def number_of_classes(classes: object, name: str) -> int:
    """An int of at least 2, from whatever whole number was given."""
    whole = isinstance(classes, (int, np.integer)) and not isinstance(classes, bool)
    if not whole or int(classes) < 2:  # type: ignore[call-overload]
        raise ParameterError(f"{name}: classes must be a whole number from 2 on, but is {classes!r}.")
    return int(classes)  # type: ignore[call-overload]
