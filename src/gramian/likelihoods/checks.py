"""Checks of observations that likelihoods share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.errors import InputError


class Impossible(InputError):
    """An observation that a likelihood gives no probability to; who knows where its row comes from can say
    that instead."""

    def __init__(self, message: str, what: str, row: int, value: float, rule: str) -> None:
        super().__init__(message)
        self.what, self.row, self.value, self.rule = what, row, value, rule


def refuse(y: Array, possible: NDArray[np.bool_], rule: str, what: str) -> Array:
    """y when all of it is possible; else an InputError with the first row that is not."""
    if not np.all(possible):
        row = int(np.argmin(possible))
        value = float(y[row])
        raise Impossible(f"{what} has {value:g} in row {row}: {rule}.", what, row, value, rule)
    return y


@np.errstate(invalid="ignore")
def whole(y: Array, highest: Any = np.inf) -> NDArray[np.bool_]:
    """Which entries are whole numbers from 0 to the highest."""
    return (y >= 0) & (y <= highest) & (y == np.floor(y)) & np.isfinite(y)


@np.errstate(invalid="ignore")
def between(y: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Which entries are, both ends excluded."""
    return (y > low) & (y < high)


def labels(y: Array, classes: int, name: str, what: str) -> Array:
    """y when it holds 0 ... classes - 1."""
    rule = f"{name} has the classes {'0 and 1' if classes == 2 else f'0, 1, ..., {classes - 1}'}"
    return refuse(y, whole(y, classes - 1), rule, what)
