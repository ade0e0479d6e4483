"""Targets that come with a table: their numbers, and which rows have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data.cells import cells_of, is_absent
from gramian.data.columns import Columns
from gramian.data.frames import is_frame
from gramian.data.inputs import as_array, decided, numbers_of
from gramian.data.readings import PLAIN, retold
from gramian.errors import InputError


def as_numbers(y: Any, columns: Columns, told: Mapping[str, str] | None = None) -> tuple[Array, Columns]:
    """The target columns of a table as numbers, (n,) or (n, q), and the columns with a note of how they were
    read. `told`: how a fit has read them, which is done again."""
    several, notes, found = is_frame(y), list(columns.notes), []
    for name in columns.targets:
        cells = cells_of(y[name] if several else y, name)
        reading = decided([cells], "X", name)
        if reading is not None and reading.categorical:
            cure = "Labels are classified by GPClassifier; for numbers, correct or drop what is none"
            raise InputError(f"The target {name!r} holds {reading.told}, where numbers belong. {cure}.")
        reading = retold(reading or PLAIN, (told or {}).get(name, ""))
        if reading != PLAIN:
            notes.append(f"{name}: {reading.told}")
        found.append(numbers_of(reading, cells, name))
    return np.column_stack(found) if several else found[0], replace(columns, notes=tuple(notes))


def absent_targets(y: Any, n: int) -> NDArray[np.bool_] | None:
    """Which of n rows have no target; None where all have one, or where y is nothing that could be told."""
    try:
        if len(y) != n:  # which is refused where y is read
            return None
    except (TypeError, OverflowError):
        return None
    if type(y) is np.ndarray and y.dtype.kind == "f" and y.ndim == 1:
        with np.errstate(over="ignore", invalid="ignore"):  # a sum is quick, and may overflow
            if not np.isnan(np.sum(y)):
                return None
        absent = np.isnan(y)
    else:
        try:
            array = as_array(y, "y")
        except ValueError:
            return None
        if array.ndim != 1 or array.dtype.kind not in "fOMm":
            return None
        missing = (np.isnan if array.dtype.kind == "f" else _absent)(array)
        absent = np.asarray(missing, dtype=bool)
    return absent if len(absent) == n and absent.any() and not absent.all() else None


def _absent(array: NDArray[Any]) -> NDArray[np.bool_]:
    if array.dtype.kind in "Mm":
        return np.isnat(array)
    return np.array([is_absent(v) for v in array.tolist()])
