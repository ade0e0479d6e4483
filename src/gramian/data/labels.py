"""Class labels: from what a person has (text, whole numbers, booleans) to codes 0, 1, ..., and back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from gramian.arrays import Array
from gramian.data.inputs import as_array, is_missing, unequal
from gramian.errors import InputError


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes of some rows."""

    classes: NDArray[Any]  # sorted
    codes: Array  # (n,): the place of each row's label among the classes

    @classmethod
    def read(cls, y: Any, n: int, known: NDArray[Any] | None = None) -> Labels:
        """From the labels of n rows; what cannot be labels is refused with its row and the cure. `known`: the
        classes that there are, sorted; None: those of y."""
        array = labels_of(y, n)
        if as_array(y, "y").ndim == 2:
            warnings.warn(
                "A column-vector y was passed when a 1d array was expected. Give y.ravel().",
                DataConversionWarning,
                stacklevel=4,  # fit, and what stands around it
            )
        broken = np.flatnonzero(array != np.floor(array)) if array.dtype.kind == "f" else np.zeros(0, int)
        if len(broken):
            what = f"Unknown label type: y has {array[broken[0]]!r} in row {broken[0]}, which is no class"
            raise InputError(f"{what}. For numbers to be predicted use GPRegressor.")
        try:
            classes, codes = np.unique(array, return_inverse=True)
        except (TypeError, ValueError):  # ValueError: of cells that are arrays
            kinds = " and ".join(sorted({type(label).__name__ for label in array}))
            what = f"y mixes labels of several kinds ({kinds}), which have no order"
            raise InputError(f"{what}. Make them all text: y.astype(str).") from None
        if known is not None:
            new = [label for label in classes.tolist() if label not in known]
            if new:
                what = f"the model tells {', '.join(map(str, known.tolist()))} apart"
                raise InputError(f"y has the class {new[0]!r}, but {what}. Fit again to have another one.")
            return cls(known, np.searchsorted(known, array).astype(np.float64))
        if len(classes) < 2:
            what = f"y has only one class, {classes[0]!r}, so there is nothing to tell apart"
            raise InputError(f"{what}. Give rows of two classes or more.")
        return cls(classes, codes.astype(np.float64))


def labels_of(y: Any, n: int) -> NDArray[Any]:
    """The labels of n rows, (n,), whatever their kind; none is missing."""
    if y is None:
        raise InputError("GPClassifier requires y to be passed, but the target y is None.")
    if sparse.issparse(y):
        raise InputError("y is a sparse matrix. Give one label a row.")
    array = as_array(y, "y")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"y has shape {array.shape}; give one label a row, of shape (n,).")
    if len(array) != n:
        raise unequal(n, len(array))
    held = next((i for i, label in enumerate(array) if _holds_others(label)), None)
    if held is not None:
        what = f"y has a {type(array[held]).__name__} in row {held}, where a label belongs"
        raise InputError(f"{what}. Give one text, number or truth value a row.")
    missing = [i for i, label in enumerate(array) if _is_absent(label) or _is_infinite(label)]
    if missing:
        kind = "infinity" if _is_infinite(array[missing[0]]) else "NaN"
        what = f"row {missing[0]} has no label ({len(missing)} such in all)"
        raise InputError(f"Input y contains {kind}: {what}. Drop these rows.")
    return array


def _holds_others(label: Any) -> bool:
    """Whether it is a container, which neither compares nor can be looked up."""
    return isinstance(label, (list, dict, set, np.ndarray))


def _is_absent(label: Any) -> bool:
    """None, NaN, and what pandas has for them (NA, NaT), which neither compare nor convert to a number."""
    missing = is_missing(label) and not isinstance(label, str)  # blank text is a label like any other
    return missing or (isinstance(label, np.datetime64) and bool(np.isnat(label)))


def _is_infinite(label: Any) -> bool:
    return isinstance(label, (float, np.floating)) and bool(np.isinf(label))
