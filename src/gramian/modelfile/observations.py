"""The data in a file: the rows, where predictions need them, else what a summary tells of them; and the
labels of a classifier, with the type of their array, so that predictions are labels of the same kind."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.errors import ModelFileError
from gramian.estimators.fitted import Fitted
from gramian.inference import Data, Scheme
from gramian.likelihoods import Likelihood
from gramian.linalg.state import Arrays, entries, taken, typed, typed_list
from gramian.report.facts import Facts, NoData

_PLAIN = re.compile(r"[<>|](b1|[iu][1248]|f[248]|U[1-9][0-9]{0,8})|\|O")
_LABELS = (bool, int, float, str)
_WIDTH = 1000  # letters that an array of text may have room for beyond its longest


def describe(fitted: Fitted) -> tuple[dict[str, Any] | None, Arrays]:
    """The data as arrays, or what is told of them."""
    facts, data = fitted.facts, fitted.rows
    arrays: Arrays = {"scale": facts.scale}
    if not fitted.inference.holds_rows:
        counts = None if fitted.classes is None else list(fitted.class_counts())
        told = {"rows": facts.rows, "known_noise": facts.known_noise, "notes": dict(facts.notes)}
        spread = None if facts.spread is None else facts.spread.tolist()
        return {**told, "counts": counts, "spread": spread}, arrays
    arrays |= {name: np.asarray(getattr(data, name), dtype=np.float64) for name in ("X", "Y")}
    beside = {"noise_var": data.noise_var, "excess": data.excess}
    return None, arrays | {name: array for name, array in beside.items() if array is not None}


def restore(
    described: Any, arrays: Arrays, method: Scheme, d: int, likelihood: Likelihood | None, classes: int | None
) -> tuple[Data, Facts | None]:
    """The data, or what stands for them; then with the facts, which otherwise are made from the data.
    `likelihood`: whose columns y has; None: y has a column an output."""
    scale = taken(arrays, "scale")
    if not len(scale) or not np.all((scale > 1e-150) & (scale < 1e150)):
        raise ModelFileError(
            "its scales must be positive numbers with squares that are numbers, one an output."
        )
    if not method.holds_rows:
        names = ("rows", "known_noise", "notes", "counts", "spread")
        rows, known, notes, counts, spread = entries(described, "data", *names)
        told = typed(notes, dict, "notes")
        for name, note in told.items():
            typed(note, str, f"notes.{name[:40]}")
        if typed(rows, int, "rows") < 1:
            raise ModelFileError(f"it is of {rows} rows, but must be of one at least.")
        if classes is None and counts is not None:
            raise ModelFileError("it has counts of classes, but no classes.")
        found = None if classes is None else tuple(typed_list(counts, int, "counts"))
        if found is not None and (len(found) != classes or min(found) < 0 or sum(found) != rows):
            raise ModelFileError(f"counts must be the rows of each of {classes} classes, {rows} in all.")
        of_columns = None if spread is None else np.array(typed_list(spread, float, "spread"))
        if of_columns is not None and (of_columns.shape != (d,) or not np.all(of_columns > 0)):
            raise ModelFileError(f"spread must be {d} positive numbers, one a column.")
        known_noise = typed(known, bool, "known_noise")
        return NoData(scale), Facts(rows, d, scale, known_noise, told, found, of_columns)
    if described is not None:
        raise ModelFileError("its data are in the file, and yet something stands for them.")
    X = taken(arrays, "X", (None, d))
    n = len(X)
    beside = [taken(arrays, name, (n,)) if name in arrays else None for name in ("noise_var", "excess")]
    if n < 1 or any(array is not None and not np.all(array >= 0) for array in beside):
        raise ModelFileError("it must have a row at least, and noise variances that are not negative.")
    Y = taken(arrays, "Y", (n, len(scale) if likelihood is None else len(likelihood.columns)))
    if not np.all(np.isfinite(Y).any(axis=0) if likelihood is None else np.isfinite(Y)):
        raise ModelFileError("its Y must be finite, but for what was not observed of one of several outputs.")
    return Data(X, Y, scale, *beside), None


def describe_labels(classes: NDArray[Any]) -> dict[str, Any]:
    """The labels as JSON."""
    kind, values = classes.dtype.str, classes.tolist()
    if not _PLAIN.fullmatch(kind):
        cure = "which a model file does not hold. Fit with text or whole numbers as labels"
        raise ModelFileError(f"its classes are of the type {classes.dtype}, {cure}.")
    for label in values:
        if type(label) not in _LABELS:
            cure = "which a model file does not hold. Fit with text as labels"
            raise ModelFileError(f"its class {label!r} is a {type(label).__name__}, {cure}.")
    return {"type": kind, "values": values}


def restore_labels(described: Any) -> NDArray[Any]:
    """The labels, which must be as `np.unique` leaves them."""
    kind, values = entries(described, "classes", "type", "values")
    kind, values = typed(kind, str, "classes.type"), typed(values, list, "classes.values")
    known = _PLAIN.fullmatch(kind) and all(type(label) in _LABELS for label in values)
    if not known or len(values) < 2:
        rule = "two or more numbers, texts or booleans, of a type that says so"
        raise ModelFileError(f"its classes must be {rule}.")
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
