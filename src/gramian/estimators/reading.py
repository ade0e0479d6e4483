"""X and y as an estimator reads them: rows of a fit, to predict at, to compare with, and further ones."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from gramian.arrays import Array
from gramian.data import gaps
from gramian.data.frames import as_frame, is_frame, parted, without
from gramian.data.inputs import Columns, read_named, refuse_extremes, target_names
from gramian.data.pieces import is_dask_array, is_dask_frame
from gramian.data.sources import is_source, open_source
from gramian.data.tables import read_table
from gramian.data.targets import absent_targets, as_numbers
from gramian.errors import InputError
from gramian.estimators import build, far
from gramian.estimators.fitted import Fitted


def training(
    gp: Any, X: Any, y: Any, beside: dict[str, Any] | None = None, noise_var: Any = None
) -> tuple[Array, Columns, Any, dict[str, Any], Any]:
    """The rows of X without gaps, their columns, and what goes with these rows: y, the columns beside it,
    and variances. Where y names columns of a table, those."""
    if far.stays(gp, X):
        raise InputError(
            f"{type(gp).__name__} takes rows that are here: an array, a frame, or a file without a"
            " client. Rows that stay where they are, GPRegressor fits."
        )
    X, beside = as_frame(X), beside or {}
    indicators = build.read_kernel(gp.kernel).kernel is None  # the default one has a place for them
    if not is_source(X):
        X, y, targets = parted(X, y)
        table, columns = read_named(gp, X, missing=gp.missing, memory_limit=gp.memory_limit)
        columns = columns.predicting(targets or target_names(y))
        if targets and not is_classifier(gp):
            y, columns = as_numbers(y, columns)
        if gp.missing == "error":
            return table, columns, y, beside, noise_var
        absent, n = absent_targets(y, len(table)), len(table)
        kept = None
        if absent is not None:
            kept = np.flatnonzero(~absent)
            note = gaps.without_target(n - len(kept), n)
            table, columns = table[kept], replace(columns, notes=(*columns.notes, note))
        if gaps.has_gaps(table):
            table, columns, left = gaps.whole_rows(table, columns, gp.missing, indicators)
            kept = kept if left is None else left if kept is None else kept[left]
        if kept is not None:
            y, noise_var = _some(y, kept, n), _some(noise_var, kept, n)
            beside = {name: _some(values, kept, n) for name, values in beside.items()}
        return table, columns, y, beside, noise_var
    known_as(gp, None)
    settings: dict[str, Any] = {"memory_limit": gp.memory_limit, "missing": gp.missing}
    source = open_source(X, y, indicators=indicators, **settings)
    if source.Y is None:
        cure = "Give fit(X, y); for a file, y is the name of its target column."
        raise InputError(f"The target y is missing. {cure}")
    refuse_extremes(source.X, source.columns)
    kept = source.kept
    known_as(gp, source.columns)
    # a file has its targets' names, a memory map comes with a y that may have some
    columns = source.columns.predicting(source.columns.targets or target_names(y))
    if kept is not None:
        noise_var = _some(noise_var, kept)
        beside = {name: _some(values, kept) for name, values in beside.items()}
    y = source.Y[:, 0] if source.single else source.Y
    return source.X, columns, y, beside, noise_var


def known_as(gp: Any, columns: Columns | None) -> None:
    """Has the attributes by which scikit-learn knows columns; None: no names."""
    if hasattr(gp, "feature_names_in_"):
        del gp.feature_names_in_
    if columns is None:
        return
    gp.n_features_in_ = len(columns.given)
    if columns.named:
        gp.feature_names_in_ = np.array(columns.given, dtype=object)


def compared(gp: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """X and the y that predictions are held against: where y names columns of a table or a file, as in
    `fit`, those, read as the fit has read them."""
    check_is_fitted(gp, "fitted_")
    names = isinstance(y, str) or (isinstance(y, list) and all(isinstance(name, str) for name in y))
    if isinstance(X, (str, os.PathLike)) and names:  # its other columns are found by name
        _, y, targets = parted(read_table(X, gp.memory_limit), y)
    else:
        X, y, targets = parted(as_frame(X), y)
    if targets and not is_classifier(gp):
        columns = replace(gp.fitted_.columns, targets=targets)
        y, _ = as_numbers(y, columns, gp.fitted_.columns.targets_told())
    return X, y


def read(gp: Any, X: Any, known: Columns) -> Array:
    """The columns of X that came with the data of the fit; NaN where a cell is missing."""
    if is_dask_array(X) or is_dask_frame(X):
        raise InputError(
            f"X is a {type(X).__name__} of Dask's, which this would bring here as a whole. predict,"
            " predict_quantiles and predict_table leave it where it is; for the rest give X.compute()."
        )
    if is_source(X):
        table = open_source(X, known=known, memory_limit=gp.memory_limit, missing=gp.missing).X
        if table.shape[1] not in (len(known.given), len(known.names)):
            raise InputError(
                f"X has {table.shape[1]} features, but {type(gp).__name__} is expecting"
                f" {len(known.given)} features as input."
            )
        if gp.missing == "error" and gaps.has_gaps(table):
            raise gaps.refused(table, known)
        return table
    if known.targets and is_frame(X):
        X = without(X, known.targets)
    names = [str(c) for c in X.columns] if is_frame(X) else known.given
    have = set(names)
    absent = next((name for name in known.given if name not in have), None)
    if known.named and absent is not None:
        raise InputError(
            "The feature names should match those that were passed during fit. X has no column"
            f" {absent!r}; the model was fitted with {', '.join(known.given)}.\nFeature names"
            f" seen at fit time, yet now missing:\n- {absent}\n"
        )
    return read_named(gp, X, known, gp.missing, gp.memory_limit)[0]


def further(
    gp: Any, fitted: Fitted, X: Any, y: Any, noise_var: Any, beside: dict[str, Any]
) -> tuple[Array, Any, Any, dict[str, Any]]:
    """Rows of X as the fitted model has its own, those that it can use, and what goes with them: y, its
    variances, and the columns beside it."""
    known = fitted.columns
    if y is None and known.targets:
        y = list(known.targets) if len(known.targets) > 1 else known.targets[0]
    if y is None:
        raise InputError("The target y is missing. Give update(X, y).")
    X, y = compared(gp, X, y)
    table = gp.read(X)
    n = len(table)
    kept = np.arange(n)
    if gp.missing != "error":
        absent = absent_targets(y, n)
        kept = kept if absent is None else kept[~absent]
    if gaps.has_gaps(table):
        broken = np.isnan(table[kept]).any(axis=1)
        if gp.missing == "drop":
            kept = kept[~broken]
        else:
            table = np.array(table)
            at = kept[broken]
            table[at] = gaps.donors_of(fitted.some_rows(), known).filled(table[at])
    if not len(kept):
        raise InputError("update: no row has all that it needs, a target first of all.")
    beside = {name: _some(values, kept, n) for name, values in beside.items()}
    y, noise_var = _some(y, kept, n), _some(noise_var, kept, n)
    return np.asarray(table[kept], dtype=np.float64), y, noise_var, beside


def _some(values: Any, kept: NDArray[np.intp], n: int | None = None) -> Any:
    """Of one value a row, those of some rows; anything else as it is, for its own reader to judge."""
    if values is None or np.ndim(values) == 0 or (n is not None and len(values) != n):
        return values
    return np.asarray(values)[kept]
