"""The data in a file: the rows, where predictions need them, else what a summary tells of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.errors import ModelFileError
from gramian.estimators.fitted import Fitted
from gramian.inference import Data, Scheme
from gramian.likelihoods import Likelihood
from gramian.linalg.state import Arrays, entries, taken, typed, typed_list
from gramian.report.facts import Facts, NoData


def describe(fitted: Fitted) -> tuple[dict[str, Any] | None, Arrays]:
    """The data as arrays, or what is told of them."""
    facts, data = fitted.facts, fitted.rows
    arrays: Arrays = {"scale": facts.scale}
    if not fitted.inference.holds_rows:
        counts = None if fitted.classes is None else list(fitted.class_counts())
        notes = dict(facts.notes)
        told = {"rows": facts.rows, "known_noise": facts.known_noise, "notes": notes, "counts": counts}
        return told, arrays
    arrays |= {name: np.asarray(getattr(data, name), dtype=np.float64) for name in ("X", "Y")}
    return None, arrays | ({} if data.noise_var is None else {"noise_var": data.noise_var})


def restore(
    described: Any,
    arrays: Arrays,
    method: Scheme,
    columns: int,
    likelihood: Likelihood | None,
    classes: int | None,
) -> tuple[Data, Facts | None]:
    """The data, or what stands for them; then with the facts, which otherwise are made from the data.
    `likelihood`: whose columns y has; None: y has a column an output."""
    scale = taken(arrays, "scale")
    if not len(scale) or not np.all(scale > 0):
        raise ModelFileError("its scales must be positive, one an output.")
    if not method.holds_rows:
        rows, known, notes, counts = entries(described, "data", "rows", "known_noise", "notes", "counts")
        told = {
            name: typed(note, str, f"notes.{name[:40]}") for name, note in typed(notes, dict, "notes").items()
        }
        if typed(rows, int, "rows") < 1:
            raise ModelFileError(f"it is of {rows} rows, but must be of one at least.")
        if classes is None and counts is not None:
            raise ModelFileError("it has counts of classes, but no classes.")
        found = None if classes is None else tuple(typed_list(counts, int, "counts"))
        if found is not None and (len(found) != classes or min(found) < 0 or sum(found) != rows):
            raise ModelFileError(f"counts must be the rows of each of {classes} classes, {rows} in all.")
        return NoData(scale), Facts(rows, columns, scale, typed(known, bool, "known_noise"), told, found)
    if described is not None:
        raise ModelFileError("its data are in the file, and yet something stands for them.")
    X = taken(arrays, "X", (None, columns))
    n = len(X)
    noise_var = taken(arrays, "noise_var", (n,)) if "noise_var" in arrays else None
    if n < 1 or (noise_var is not None and not np.all(noise_var >= 0)):
        raise ModelFileError("it must have a row at least, and noise variances that are not negative.")
    Y = taken(arrays, "Y", (n, len(scale) if likelihood is None else len(likelihood.columns)))
    if not np.all(np.isfinite(Y).any(axis=0) if likelihood is None else np.isfinite(Y)):
        raise ModelFileError("its Y must be finite, but for what was not observed of one of several outputs.")
    return Data(X, Y, scale, noise_var), None


__all__ = ["describe", "restore"]
