"""From arrays, DataFrames and lists to float64 tables, with errors that name row, column and cure.

Columns of a DataFrame are read as they need it (readings.py), new data alike. Missing cells are NaN here.
"""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import _check_feature_names, _check_n_features, _get_feature_names

from gramian.arrays import Array, deviation
from gramian.data import gaps
from gramian.data.cells import Cells, cells_of, number, text_cells
from gramian.data.columns import Columns, some_of
from gramian.data.deciding import Seen, TooManyError, too_many
from gramian.data.frames import is_frame
from gramian.data.readings import PLAIN, MisreadError, Reading
from gramian.data.tables import NotNumbersError, Table, repeated
from gramian.errors import InputError, InputTypeError, ParameterError, TableError
from gramian.likelihoods import Likelihood
from gramian.linalg import memory

LARGEST_TARGET = 1e150  # of size, so that sums of squares are numbers
# of a cell that is copied: a number, and whether it is finite; with the object that a range makes of it
NUMBER_BYTES, OBJECT_BYTES = 9, 57

__all__ = ["Columns", "is_frame", "some_of"]  # which are asked for here, too


def spread(X: Array) -> Array:
    """The standard deviation of each column; where that is 0 (a constant column, a single row) a positive
    number of the column's own size."""
    size, sd = np.max(np.abs(X), axis=0), deviation(X)
    return np.where(sd > 1e-14 * size, sd, np.where(size > SMALLEST, size, 1.0))


def read_features(
    X: Any,
    known: Columns | None = None,
    missing: str = "error",
    memory_limit: int | float | str | None = None,
) -> tuple[Array, Columns]:
    """X as float64 (n, d), and its columns. With `known` columns, cells are read as they were before. Unless
    `missing` is "error", missing cells are NaN. What the copy of X takes counts against `memory_limit`."""
    if X is None:
        raise InputError("X is None; give a table with one row an observation.")
    if sparse.issparse(X):
        cure = "Give a dense array: X.toarray()."
        raise InputError(f"X is a sparse matrix, which a Gram matrix would fill anyway. {cure}")
    if is_frame(X):
        hold("X", len(X) * len(X.columns), memory_limit)
        return _frame(X, known, missing)
    records = isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Mapping)
    if records or isinstance(X, Mapping) or getattr(getattr(X, "dtype", None), "names", None):
        what = "a list of records" if records else f"a {type(X).__name__} of named columns"
        raise InputError(f"X is {what}. Give a table: pandas.DataFrame(X).")
    array = as_array(X, "X", memory_limit)
    if np.iscomplexobj(array):
        cure = "Give real and imaginary parts as columns."
        raise InputError(f"Complex data not supported: X has complex numbers. {cure}")
    if array.ndim == 1:
        raise InputError(
            f"Expected 2D array, got 1D array instead: X has shape {array.shape}. Reshape your data with"
            " X.reshape(-1, 1) if it is one column, or X.reshape(1, -1) if it is one row."
        )
    if array.ndim != 2:
        kind = "scalar" if array.ndim == 0 else f"{array.ndim}D"
        raise InputError(f"Expected 2D array, got {kind} array instead: X must have rows and columns.")
    d = array.shape[1]
    if known is None or array.dtype != np.float64 or not array.flags.c_contiguous:
        hold("X", array.size, memory_limit)  # a view may say that it has more numbers than there is memory
    columns = known or Columns(tuple(f"x{j}" for j in range(d)))
    if array.dtype.kind in "OUSMm":
        columns, table = _cells_of_array(array, columns, known is not None)
    else:
        # For a fit a copy: a model must not change when its owner changes X afterwards.
        with np.errstate(over="ignore"):  # of longer numbers: infinity is refused below
            table = np.array(array, dtype=np.float64, order="C", copy=True if known is None else None)
    check_table(table, columns, missing)
    return table, columns


def _cells_of_array(array: NDArray[Any], columns: Columns, known: bool) -> tuple[Columns, Array]:
    """The columns of an array of objects, text or dates. Words are refused unless the columns are known."""
    d = array.shape[1]
    whole = len(columns.given) == d
    names = columns.given if whole else tuple(f"x{j}" for j in range(d))
    readings = dict(columns.readings) if whole else {}
    table = np.empty(array.shape)
    for j, name in enumerate(names):
        cells = cells_of(array[:, j], name)
        if not known and cells.kind in "Mm":
            readings[j] = _seen(cells)
        if j in readings:
            table[:, j] = numbers_of(readings[j], cells, name)
        else:
            table[:, j] = _numbers(array[:, j], name)
    return columns if known else Columns(names, columns.named, readings), table


def _seen(cells: Cells) -> Reading:
    seen = Seen()
    seen.add(cells)
    return seen.reading() or PLAIN


def read_targets(
    y: Any, n: int, gaps: bool = False, whole: bool = True, memory_limit: int | float | str | None = None
) -> tuple[Array, bool]:
    """y as float64 (n, q), and whether it came as a single column of shape (n,). `gaps`: whether outputs of a
    2-D y may have NaN where nothing was observed; `whole`: something of each output must be there."""
    Y, single = _targets(y, n, memory_limit)
    seen = gaps and not single
    empty = np.flatnonzero(np.all(np.isnan(Y), axis=0))
    if seen and whole and len(empty):
        what = f"Input y contains NaN in all rows of output {empty[0]}: nothing was observed of it"
        raise InputError(f"{what}. Leave the column out, or give at least one number.")
    _refuse(Y, np.isinf(Y) if seen else ~np.isfinite(Y), single)
    return Y, single


def read_some_targets(y: Any, n: int) -> tuple[Array, bool]:
    """The same of a part of the rows, of which some may have no target: NaN."""
    Y, single = _targets(y, n)
    _refuse(Y, np.isinf(Y), single)
    return Y, single


def refuse_far_targets(Y: Array, single: bool, scale: Array | float = 1.0) -> None:
    """Refuses targets whose squares, or those in units of the scale, leave the range of numbers."""
    far = np.abs(Y) >= LARGEST_TARGET * np.minimum(scale, 1.0)
    if np.any(far):
        row, column = np.argwhere(far)[0]
        where = f"row {row}" + ("" if single else f", output {column}")
        what = f"y has {Y[row, column]:.3g} in {where}, whose square leaves the range of numbers"
        raise InputError(f"{what}. Correct it, or leave the row out.")


def _refuse(Y: Array, bad: NDArray[np.bool_], single: bool) -> None:
    """Refuses targets of which some are bad."""
    if np.any(bad):
        row, column = np.argwhere(bad)[0]
        kind, count = kind_of(Y[row, column]), int(np.sum(~np.isfinite(Y)))
        where = f"row {row}" + ("" if single else f", output {column}")
        cure = "Drop these rows, or fill them: keep = numpy.isfinite(y)."
        raise InputError(f"Input y contains {kind}: {where} ({count} such in all). {cure}")


def _targets(y: Any, n: int, memory_limit: int | float | str | None = None) -> tuple[Array, bool]:
    """y as float64 (n, q), whatever its numbers, and whether it came as a single column."""
    if y is None:
        raise InputError("GPRegressor requires y to be passed, but the target y is None.")
    if sparse.issparse(y):
        raise InputError("y is a sparse matrix. Give a dense array: y.toarray().")
    array = as_array(y, "y", memory_limit)
    if np.iscomplexobj(array):
        raise InputError("Complex data not supported: y has complex numbers.")
    if array.ndim not in (1, 2):
        raise InputError(f"y has shape {array.shape}; give one number a row (n,), or one an output (n, q).")
    if array.ndim == 2 and array.shape[1] == 0:
        raise InputError("y has no columns; give one number a row.")
    if len(array) != n:
        raise unequal(n, len(array))
    hold("y", array.size, memory_limit)
    Y = array.reshape(n, -1)
    if Y.dtype.kind in "OUSMm":
        Y = np.column_stack([_numbers(Y[:, k], "y", _LABELS) for k in range(Y.shape[1])])
    # one order whatever the caller's: sums over outputs then round alike
    with np.errstate(over="ignore"):  # of longer numbers: infinity is refused by the caller
        return np.array(Y, dtype=np.float64, order="C"), array.ndim == 1


def target_names(y: Any) -> tuple[str, ...]:
    """How the outputs of y are called: a Series has a name, a table one a column. Empty where there are none
    that people gave."""
    if type(y) is np.ndarray:
        return ()
    names = tuple(y.columns) if hasattr(y, "columns") else (getattr(y, "name", None),)
    given = all(isinstance(name, str) and name for name in names) and len(set(names)) == len(names)
    return tuple(map(str, names)) if given else ()


def read_noise_var(noise_var: Any, n: int) -> Array | None:
    """Known noise variances, one a row."""
    if noise_var is None:
        return None
    array = _column(noise_var, "noise_var", n, "variance")
    bad = np.flatnonzero(~((array >= 0) & (array <= LARGEST)))
    if len(bad):
        raise InputError(
            f"noise_var is {array[bad[0]]} in row {bad[0]}; a variance is a number from 0 to {LARGEST:g}."
        )
    return array


def read_weights(sample_weight: Any, n: int) -> Array | None:
    """Weights of the rows of a score, one each, the largest 1; None: all the same."""
    if sample_weight is None:
        return None
    array = _column(sample_weight, "sample_weight", n, "weight")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        what = f"sample_weight is {array[bad[0]]} in row {bad[0]}"
        raise InputError(f"{what}; a weight is a finite number from 0 on.")
    if not np.any(array > 0):
        raise InputError("sample_weight is 0 in all rows. Give some a weight above 0.")
    return np.asarray(array / np.max(array))


def read_rows(Y: Array, given: Mapping[str, Any], likelihood: Likelihood) -> Array:
    """Observations as a likelihood reads them, (n, columns): all from Y, or the others by name."""
    columns = likelihood.columns
    if Y.shape[1] not in (1, len(columns)):
        takes = f"the columns {', '.join(columns)}: y of shape (n, {len(columns)})"
        raise InputError(
            f"y has {Y.shape[1]} columns; {type(likelihood).__name__}, as a likelihood other than"
            f" closed-form Gaussian noise, takes {takes if len(columns) > 1 else 'one: y of shape (n,)'}."
        )
    if Y.shape[1] == 1:
        Y = np.column_stack([Y, read_beside(given, len(Y), likelihood)])
    else:
        _refuse_unknown(given, likelihood)
        twice = [name for name, values in given.items() if values is not None]
        if twice:
            raise InputError(
                f"y has all columns of {type(likelihood).__name__} ({', '.join(columns)}), but"
                f" {', '.join(twice)} was given too. Leave it out, or give y as one column."
            )
    likelihood.checked(likelihood.y_of(Y))
    return Y


def read_beside(given: Mapping[str, Any], n: int, likelihood: Likelihood | None) -> Array:
    """The columns after a likelihood's first, (n, columns - 1), from those given by name (None: not given),
    else their defaults. `likelihood` None: Gaussian noise in closed form, which has none."""
    _refuse_unknown(given, likelihood)
    columns = () if likelihood is None else likelihood.columns[1:]
    if likelihood is None or not columns:
        return np.empty((n, 0))
    beside = []
    for name in columns:
        values = given.get(name)
        if isinstance(values, str):
            cure = f"Give one number a row, such as the column itself: {name}=table[{values!r}]."
            raise InputError(f"{name}={values!r} is text. {cure}")
        beside.append(_column(likelihood.default(name) if values is None else values, name, n, "number"))
    likelihood.checked_beside(*beside)
    return np.stack(beside, axis=1)


def _refuse_unknown(given: Mapping[str, Any], likelihood: Likelihood | None) -> None:
    """Refuses columns that a likelihood does not read beside its first."""
    columns = () if likelihood is None else likelihood.columns[1:]
    for name, values in given.items():
        if values is not None and name not in columns:
            kind = "Gaussian noise" if likelihood is None else type(likelihood).__name__
            if name == "exposure":
                raise ParameterError(
                    f"An exposure is for counts: likelihood=Poisson() or NegativeBinomial(), not {kind}."
                )
            known = f"has {', '.join(columns)}" if columns else "has none"
            raise ParameterError(f"{name!r} is not known: {kind} {known} beside what it predicts.")


def _column(values: Any, name: str, n: int, what: str) -> Array:
    """One number a row, or one for all."""
    array = as_array(values, name)
    if array.shape not in ((), (n,)):
        raise InputError(f"{name} has shape {array.shape}, but must have one {what} a row: ({n},).")
    if array.dtype.kind not in "buif":
        array = _numbers(array.reshape(-1), name, f"Give one {what} a row.").reshape(array.shape)
    array = np.array(array, dtype=np.float64)
    return np.full(n, float(array)) if array.ndim == 0 else array


def hold(name: str, cells: int, memory_limit: int | float | str | None, each: int = NUMBER_BYTES) -> None:
    """Refuses a copy of so many cells that there is no memory for."""
    what = f"{name} as {cells:,} numbers"
    cure = "Give fewer rows; or a file or a memory map, which is read in blocks."
    memory.check_memory(each * cells, memory_limit, what, cure)


def _said(values: Any) -> int:
    """How many cells a table says to have, before anybody has counted them."""
    shape = getattr(values, "shape", None)
    if isinstance(shape, tuple) and all(isinstance(k, (int, np.integer)) for k in shape):
        return math.prod(map(int, shape))
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        return 1
    try:
        rows = len(values)
    except OverflowError:  # of a range
        rows = sys.maxsize
    first = values[0] if rows else 0
    return rows * (len(first) if isinstance(first, (list, tuple, np.ndarray)) else 1)


def _longest(values: Sequence[Any]) -> int:
    """Characters of the longest text in a list, or in the lists in it."""
    if {list, tuple} & set(map(type, values)):
        return max(_longest(row) if isinstance(row, (list, tuple)) else 0 for row in values)
    if str not in set(map(type, values)):
        return 0
    return max(len(cell) for cell in values if isinstance(cell, str))


def as_array(values: Any, name: str, memory_limit: int | float | str | None = None) -> NDArray[Any]:
    """`values` as a NumPy array of any type; unequal rows and masked cells are refused, and what says to have
    more cells than there is memory for. Texts of which one is long stay objects: NumPy gives each as much
    room as the longest takes."""
    kind = None
    if not isinstance(values, np.ndarray):
        cells, plain = _said(values), isinstance(values, (list, tuple))
        hold(name, cells, memory_limit, NUMBER_BYTES if plain or hasattr(values, "shape") else OBJECT_BYTES)
        if plain and 4 * cells * _longest(values) > memory.BLOCK_BYTES:
            kind = object
    if isinstance(values, np.ma.MaskedArray) and np.any(values.mask):
        first = np.argwhere(np.ma.getmaskarray(values))[0]
        place = ", ".join(f"{word} {k}" for word, k in zip(("row", "column"), first, strict=False))
        what = f"{int(np.sum(values.mask))} cells masked out (the first: {place})"
        raise InputError(f"{name} has {what}. Drop these rows, or fill them.")
    try:
        return np.asarray(values, dtype=kind)
    except ValueError:
        lengths = [len(row) if isinstance(row, Sequence) else 1 for row in values]
        odd = next((i for i, length in enumerate(lengths) if length != lengths[0]), 0)
        unequal = f"row 0 has {lengths[0]} values, row {odd} has {lengths[odd]}"
        shown = unequal if odd else "cells are lists themselves"
        raise InputError(f"{name} is no table: {shown}. Give as many numbers in each row.") from None


def read_named(
    estimator: Any,
    X: Any,
    known: Columns | None = None,
    missing: str = "error",
    memory_limit: int | float | str | None = None,
) -> tuple[Array, Columns]:
    """`read_features` with scikit-learn's bookkeeping of column names and their number. Names that are not
    those of `fit` are told before values are read."""
    if known is not None and is_frame(X):
        _remember_columns(estimator, X, X, reset=False)
        return read_features(X, known, missing, memory_limit)
    table, columns = read_features(X, known, missing, memory_limit)
    if known is None:
        refuse_extremes(table, columns)
    _remember_columns(estimator, X, table, reset=known is None)
    return table, columns


def _remember_columns(estimator: Any, X: Any, table: Any, reset: bool) -> None:
    """scikit-learn's own bookkeeping, with its errors as ours."""
    try:
        if is_frame(X) and _get_feature_names(X) is None and all(isinstance(name, str) for name in X.columns):
            _unknown_frame(estimator, X, reset)
        elif type(X) is not np.ndarray or hasattr(estimator, "feature_names_in_"):  # no names, no questions
            _check_feature_names(estimator, X, reset=reset)
        _check_n_features(estimator, table, reset=reset)
    except TypeError as error:  # names of which some are text and some are not
        raise InputTypeError(str(error)) from None
    except ValueError as error:
        raise InputError(str(error)) from None


def _unknown_frame(estimator: Any, X: Any, reset: bool) -> None:
    """The same bookkeeping for a table with named columns of a kind that scikit-learn does not know, so would
    take for an array without names."""
    names = np.array(list(X.columns), dtype=object)
    if reset:
        estimator.feature_names_in_ = names
    elif not np.array_equal(names, getattr(estimator, "feature_names_in_", names)):
        known, given = ", ".join(estimator.feature_names_in_), ", ".join(names)
        what = "The feature names should match those of fit, in the same order"
        raise InputError(f"{what}: {known}; but X has {given}.")


def _frame(X: Any, known: Columns | None, missing: str) -> tuple[Array, Columns]:
    labels = list(X.columns)
    names = tuple(str(label) for label in labels)
    if len(set(names)) < len(names):
        raise InputError(f"X has two columns named {repeated(names)[0]!r}. Rename or drop one.")
    place = getattr(X, "place", None)  # a table of a file knows its lines
    table, readings = np.empty((len(X), len(names))), {}
    for j, (label, name) in enumerate(zip(labels, names, strict=True)):
        reading = None if known is None else known.readings.get(j)
        cells = cells_of(X[label], name) if place is None else file_cells(X, name, reading is not None)
        if known is None:
            reading = decided([cells], "X", name)
        if reading is not None:
            readings[j] = reading
        table[:, j] = numbers_of(reading or PLAIN, cells, name, place)
    columns = known or Columns(names, True, readings)
    check_table(table, columns, missing)
    return table, columns


def file_cells(table: Table, name: str, text: bool = False) -> Cells:
    """The cells of a column of a file: numbers where all are, unless the text itself is wanted."""
    values = None if text and table[name].dtype == object else table.parsed(name)
    return text_cells(table.text(name).tolist(), table.comma) if values is None else Cells(values)


def decided(
    blocks: Sequence[Cells], where: str, name: str, declared: Reading | None = None
) -> Reading | None:
    """How a column is read, from all its cells; None: as plain numbers."""
    if declared is None and all(cells.kind == "f" for cells in blocks):
        return None
    seen = Seen(declared)
    for cells in blocks:
        seen.add(cells)
    return reading_of(seen, where, name)


def reading_of(seen: Seen, where: str, name: str) -> Reading | None:
    """How a column that was seen is read, or an error that names it."""
    try:
        return seen.reading()
    except TooManyError:
        raise too_many(where, name) from None
    except InputError as error:
        raise InputError(f"{where}, column {name!r}: {error}") from None


def numbers_of(reading: Reading, cells: Cells, name: str, place: Callable[[int], str] | None = None) -> Array:
    """The numbers of a column, or an error that names the cell which is none."""
    try:
        found = reading.numbers(cells)
    except MisreadError as error:
        where = f"Row {error.row} of X" if place is None else place(error.row)
        message = f"{where}, column {name!r}: {error.why}. Correct it, or leave the cell empty."
        raise InputError(message) if place is None else NotNumbersError(message, name) from None
    if place is not None and np.isinf(found).any():
        row = int(np.flatnonzero(np.isinf(found))[0])
        wrong = f"{cells.text()[row]!r} is not a finite number"
        raise TableError(f"{place(row)}, column {name!r}: {wrong}. Correct it or drop the row.")
    return found


_LABELS = "Give one number a row; labels are for GPClassifier."
_CATEGORIES = "Give numbers; for categories give a DataFrame, whose text columns become categories."


def _numbers(values: NDArray[Any], name: str, cure: str = _CATEGORIES) -> Array:
    """One column as float64, or an error that names the first cell that is no number."""
    if values.dtype.kind == "c":
        raise InputError(f"Column {name!r} has complex numbers. Give real and imaginary parts as columns.")
    if values.dtype.kind in "Mm":
        days = "days since the first: (t - t.min()) / numpy.timedelta64(1, 'D')"
        raise InputError(f"Column {name!r} holds dates or times. Give a number instead, such as {days}.")
    spans = values.dtype.kind == "O" and any(isinstance(v, np.timedelta64) for v in values)
    try:
        with np.errstate(over="ignore"):  # of longer numbers: infinity is refused by the caller
            if not spans:  # of which NumPy makes numbers, in whatever unit each has
                return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    for i, v in enumerate(values):
        if not (isinstance(v, (str, bytes)) or _is_number(v) or is_missing(v)):
            what = f"a string or a real number, not {type(v).__name__!r}"
            raise InputTypeError(f"Column {name!r}, row {i}: a cell argument must be {what}.")
    out = np.full(len(values), np.nan)
    for i, v in enumerate(values):
        if _is_number(v):
            out[i] = number(v, name, i)
        elif not is_missing(v):
            what = f"Column {name!r} has the text {str(v)!r} in row {i}, where a number belongs"
            raise InputError(f"{what} (could not convert string to float). {cure}")
    return out


def check_table(table: Array, columns: Columns, missing: str = "error") -> None:
    """Refuses a table without rows or columns, infinity, and, unless `missing` says otherwise, NaN."""
    for count, what, ours in zip(table.shape, ("sample", "feature"), ("rows", "columns"), strict=True):
        if count == 0:
            raise InputError(
                f"Found array with 0 {what}(s) (shape={table.shape}) while a minimum of 1 is required: X has"
                f" no {ours}."
            )
    if not np.isfinite(table).all():
        if missing == "error" and np.isnan(table).any():
            raise gaps.refused(table, columns)
        infinite = np.argwhere(np.isinf(table))
        if len(infinite):
            row, column = infinite[0]
            name = columns.names[column] if column < len(columns.names) else column
            where = f"row {row}, column {name!r} ({len(infinite)} such cells in all)"
            cure = "Drop these rows, or mark the cells as missing."
            raise InputError(f"Input X contains infinity: {where}. {cure}")


SMALLEST = 1e-100  # of a column of one number, beside which it is as good as 0
# a cell at most, and cells of a column apart at least: sums of many, and the lengthscales that a search
# tries, are numbers still
LARGEST, NARROWEST = 1e301, 1e-300


def sizes(table: Array) -> tuple[Array, Array]:
    """The largest |x| of each column, and how far its values are apart; NaN is missing."""
    low, high = np.fmin.reduce(table, axis=0), np.fmax.reduce(table, axis=0)
    with np.errstate(over="ignore"):
        return np.maximum(np.abs(low), np.abs(high)), high - low


def refuse_extremes(table: Array, columns: Columns) -> None:
    """Refuses columns that leave no room for differences, means and lengthscales."""
    size, apart = sizes(table)
    extreme = np.flatnonzero((size > LARGEST) | ((apart > 0) & (apart < NARROWEST)))
    if len(extreme):
        j = int(extreme[0])
        name = columns.names[j] if j < len(columns.names) else j
        row = int(np.nanargmax(np.abs(table[:, j])))
        what = f"has {table[row, j]:.3g} in row {row}, beyond {LARGEST:g}"
        if size[j] <= LARGEST:
            what = f"has values that are {apart[j]:.3g} apart, less than {NARROWEST:g}"
        unit = 10.0 ** np.floor(np.log10(size[j] if size[j] > LARGEST else apart[j]))
        raise InputError(
            f"Column {name!r} {what}: squares and sums of them leave the range of numbers. Give it in other"
            f" units: {name} / {unit:.0e}."
        )


def unequal(n: int, of_y: int) -> InputError:
    """What to say of X and y that are not equally long."""
    what = f"Found input variables with inconsistent numbers of samples: [{n}, {of_y}]"
    return InputError(f"{what}. X and y must have as many rows as each other.")


def kind_of(value: float) -> str:
    """What a value is that is not finite."""
    return "NaN" if np.isnan(value) else "infinity"


def _is_number(v: Any) -> bool:
    if not isinstance(v, (str, bytes)):
        return isinstance(v, (numbers.Real, Decimal, np.bool_)) and not isinstance(v, np.timedelta64)
    try:
        float(v)
    except ValueError:
        return False
    return True


def is_missing(v: Any) -> bool:
    """None, NaN, what pandas has for them (NA, NaT), and blank text."""
    if isinstance(v, (float, np.floating)):
        return bool(np.isnan(v))
    return v is None or type(v).__name__ in ("NAType", "NaTType") or (isinstance(v, str) and not v.strip())
