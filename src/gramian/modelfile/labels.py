"""The classes of a classifier in a file: their values, and the type of the array, so that predictions are
labels of the same kind."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.errors import ModelFileError
from gramian.linalg.state import entries, typed

_PLAIN = re.compile(r"[<>|](b1|[iu][1248]|f[248]|U[1-9][0-9]{0,8})|\|O")
_WIDTH = 1000  # letters that an array of text may have room for beyond its longest


def describe(classes: NDArray[Any]) -> dict[str, Any]:
    """The labels as JSON."""
    kind = classes.dtype.str
    if not _PLAIN.fullmatch(kind):
        raise ModelFileError(
            f"its classes are of the type {classes.dtype}, which a model file does not hold. Fit with text or"
            " whole numbers as labels."
        )
    values = classes.tolist()
    for label in values:
        if type(label) not in (bool, int, float, str):
            raise ModelFileError(
                f"its class {label!r} is a {type(label).__name__}, which a model file does not hold. Fit with"
                " text as labels."
            )
    return {"type": kind, "values": values}


def restore(described: Any) -> NDArray[Any]:
    """The labels, which must be as `np.unique` leaves them."""
    kind, values = entries(described, "classes", "type", "values")
    kind, values = typed(kind, str, "classes.type"), typed(values, list, "classes.values")
    if (
        not _PLAIN.fullmatch(kind)
        or not all(type(label) in (bool, int, float, str) for label in values)
        or len(values) < 2
    ):
        raise ModelFileError(
            "its classes must be two or more numbers, texts or booleans, of a type that says so."
        )
    longest = max((len(label) for label in values if isinstance(label, str)), default=0)
    if "U" in kind and int(kind[2:]) > longest + _WIDTH:
        raise ModelFileError(f"its classes are of the type {kind}, but the longest has {longest} letters.")
    classes = np.array(values, dtype=np.dtype(kind))
    again = classes.tolist()
    if again != values or list(map(type, again)) != list(map(type, values)):
        raise ModelFileError(f"its classes are not of their type {kind}.")
    if not all(first < second for first, second in itertools.pairwise(again)):
        raise ModelFileError("its classes are not in order, each once.")
    return classes


__all__ = ["describe", "restore"]
