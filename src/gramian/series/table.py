"""A table of one series or many: which column is the date, which the target, which the name of the series;
and tables of the kind that a person gave, made from columns.

Columns are found by the names that Prophet (ds, y) and Nixtla (unique_id, ds, y) give them, or by usual ones
(date, time, timestamp, month, year), else the first column that holds dates is the date, and the only other
one the target. What is not clear is asked for by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data.cells import Cells, cells_of
from gramian.data.columns import Columns
from gramian.data.dates import read_date
from gramian.data.frames import Frame, as_frame, is_frame
from gramian.data.inputs import as_array, decided, file_cells, numbers_of, read_features, refuse_far_targets
from gramian.data.readings import PLAIN
from gramian.data.tables import read_table
from gramian.errors import InputError
from gramian.series.times import Axis, axis_of

DATES = ("ds", "date", "datetime", "timestamp", "time", "day", "month", "year")
TARGETS = ("y", "target", "value")
NAMES = ("unique_id",)
KINDS = ("pandas", "polars", "pyarrow")  # of tables that are made again


@dataclass(frozen=True)
class Layout:
    """The columns of a table, as a fit has found them."""

    date: str
    target: str
    name: str = ""  # of the column that tells series apart; empty: one series
    regressors: tuple[str, ...] = ()
    kind: str = ""  # the library of the table that was given; empty: arrays or a file
    whole_days: bool = False  # whether its dates were of a type without hours

    def table(self, columns: Mapping[str, NDArray[Any]]) -> Any:
        """Columns as a table of that kind; named arrays where it was none, or where it is not installed."""
        made = dict(columns)
        if self.whole_days and made[self.date].dtype.kind == "M":
            made[self.date] = made[self.date].astype("M8[D]")
        made = {name: cells.tolist() if cells.dtype == object else cells for name, cells in made.items()}
        library = _library(self.kind)
        if library is None:
            return dict(columns)
        return library.table(made) if self.kind == "pyarrow" else library.DataFrame(made)


def _library(kind: str) -> Any:
    """The library of a kind of table; None where it is not installed."""
    try:
        return import_module(kind) if kind in KINDS else None
    except ImportError:
        return None


class SeriesRows(NamedTuple):
    """The rows of a table in its own order."""

    t: Array  # (n,)
    y: Array  # (n,), NaN: not observed
    series: NDArray[Any]  # (n,), text: which series
    beside: Array  # (n, regressors), words as codes
    columns: Columns | None  # of the regressors


def read_training(
    X: Any,
    y: Any,
    date: str | None,
    target: str | None,
    name: str | None,
    regressors: Sequence[str],
    memory_limit: int | float | str | None = None,
) -> tuple[Layout, Axis, SeriesRows]:
    """A table with its columns found, or arrays of times and targets."""
    given, kind = opened(X, memory_limit)
    if given is None:
        if y is None or isinstance(y, str):
            raise InputError(
                "fit needs a table with a date and a target column, or dates and y: fit(dates, y)."
            )
        if regressors or name:
            raise InputError("Regressors and names of series are columns of a table: fit(table).")
        given, date, target = _of_arrays(X, y)
    elif isinstance(y, str):
        target = y
    elif y is not None and kind == "pandas" and not hasattr(X, "columns"):
        given, date, target = _of_arrays(X, y)  # a Series of dates, whatever its index
    elif y is not None:
        raise InputError("Give y as the name of its column in the table, or dates and y as arrays.")
    labels = [str(label) for label in given.columns]
    name = _asked(name, "id", labels) if name else next((own for own in NAMES if own in labels), "")
    date = _asked(date, "date", labels) if date else _date(given, labels, (target, name, *regressors))
    target = _asked(target, "target", labels) if target else _target(labels, (date, name, *regressors))
    wanted = tuple(_asked(own, "regressors", labels) for own in regressors)
    used = [own for own in (date, target, name, *wanted) if own]
    if len(set(used)) < len(used):
        twice = next(own for own in used if used.count(own) > 1)
        raise InputError(f"Column {twice!r} is asked for twice, as date, target, id or regressor.")
    place = getattr(given, "place", None)
    cells = cells_in(given, date)
    axis = axis_of(cells, date, place)
    t = axis.read(cells, date, place)
    _refuse_missing(t, date, place)
    axis.refuse_far(t, date)
    values = cells_in(given, target)
    reading = decided([values], "The table", target)
    if reading is not None and (reading.categorical or reading.dates is not None):
        raise InputError(f"The target {target!r} holds {reading.told}, where numbers belong.")
    found = numbers_of(reading or PLAIN, values, target, place)
    if np.any(np.isinf(found)):
        row = int(np.flatnonzero(np.isinf(found))[0])
        where = f"Row {row}" if place is None else place(row)
        raise InputError(
            f"{where}, column {target!r}: the target is infinite. Correct it, or leave it empty."
        )
    refuse_far_targets(found[:, None], True)
    beside, columns = np.empty((len(t), 0)), None
    if wanted:
        beside, columns = _regressors(given, wanted, None)
    whole_days = str(getattr(given[date], "dtype", getattr(given[date], "type", ""))).lower()
    layout = Layout(date, target, name, wanted, kind, whole_days in ("date", "date32[day]"))
    return layout, axis, SeriesRows(t, found, _series(given, name, len(t)), beside, columns)


def read_ahead(
    X: Any, layout: Layout, axis: Axis, columns: Columns | None, memory_limit: int | float | str | None = None
) -> SeriesRows:
    """The rows of a table, or of an array of dates, that are to be forecast."""
    given, _ = (None, "") if isinstance(X, str) and read_date(X) is not None else opened(X, memory_limit)
    if given is None:
        if layout.regressors:
            raise InputError(
                f"This forecast needs {', '.join(layout.regressors)} at the dates ahead. Give a table with"
                f" {layout.date!r} and these columns: forecast(dates=table)."
            )
        given = Frame({layout.date: _column([X] if isinstance(X, str) else X, "dates")})
    labels = [str(label) for label in given.columns]
    wanted = [
        layout.date,
        *([layout.name] if layout.name and layout.name in labels else []),
        *layout.regressors,
    ]
    for own in wanted:
        _asked(own, "dates", labels)
    place = getattr(given, "place", None)
    cells = cells_in(given, layout.date)
    if axis.dated and cells.kind == "O" and all(text is None for text in cells.text()):
        raise InputError(f"Column {layout.date!r} of the dates ahead is empty.")
    t = axis.read(cells, layout.date, place)
    _refuse_missing(t, layout.date, place)
    beside = np.empty((len(t), 0))
    if layout.regressors:
        beside, _ = _regressors(given, layout.regressors, columns)
    series = _series(given, layout.name if layout.name in labels else "", len(t))
    return SeriesRows(t, np.full(len(t), np.nan), series, beside, columns)


def opened(X: Any, memory_limit: int | float | str | None = None) -> tuple[Any, str]:
    """A table, and the library that it is from; None where X is none."""
    if isinstance(X, (str, os.PathLike)):
        return read_table(X, memory_limit), ""
    library = type(X).__module__.partition(".")[0]
    found = as_frame(_with_index(X))
    if isinstance(found, Mapping):
        found = Frame({str(key): np.asarray(values) for key, values in found.items()})
    # a Series of pandas has a name, but no columns
    return (found, library if library in KINDS else "") if is_frame(found) else (None, "")


def _with_index(X: Any) -> Any:
    """A table of pandas, or a Series, whose index holds the dates, with these as a column."""
    index: Any = getattr(X, "index", None)
    if not str(getattr(index, "dtype", "")).startswith(("datetime64", "period")):
        return X
    frame = X if hasattr(X, "columns") else X.rename(X.name or "y").to_frame()
    name = index.name or "date"
    return frame if name in list(frame.columns) else frame.rename_axis(name).reset_index()


def cells_in(given: Any, name: str) -> Cells:
    """The cells of a column, by the text of its label."""
    label = next(label for label in given.columns if str(label) == name)
    return cells_of(given[label], name) if getattr(given, "place", None) is None else file_cells(given, name)


def _only(given: Any, names: Sequence[str]) -> Any:
    if hasattr(given, "only"):
        return given.only(list(names))
    labels = {str(label): label for label in given.columns}
    return Frame({name: given[labels[name]] for name in names})


def _regressors(given: Any, names: Sequence[str], known: Columns | None) -> tuple[Array, Columns]:
    """Columns beside the date, as numbers or codes; each row has all of them."""
    found, columns = read_features(_only(given, names), known, missing="fill")
    wrong = np.argwhere(~np.isfinite(found))
    if len(wrong):
        (row, j), place = wrong[0], getattr(given, "place", None)
        where = f"Row {row}" if place is None else place(row)
        cure = "Fill it in, or drop the row"
        raise InputError(f"{where}, column {names[j]!r}: a regressor is missing or not finite. {cure}.")
    return found, columns


def _of_arrays(X: Any, y: Any) -> tuple[Frame, str, str]:
    times, values = _column(X, "X"), _column(y, "y")
    if len(times) != len(values):
        raise InputError(f"There are {len(times):,} dates, but {len(values):,} values of y. Give one each.")
    return Frame({"date": times, "y": values}), "date", "y"


def _column(values: Any, name: str) -> Any:
    """A one-dimensional column of anything: an array, a list, a Series."""
    column = hasattr(values, "to_pylist") or hasattr(values, "to_numpy")  # of a library of tables
    array = values if column else as_array(values, name)
    shape = np.shape(array)
    if len(shape) == 2 and shape[1] == 1:
        return np.asarray(array)[:, 0]
    if len(shape) != 1:
        raise InputError(f"Dates and y are columns of one number each, but one has shape {shape}.")
    return array


def _asked(name: Any, what: str, labels: Sequence[str]) -> str:
    if str(name) not in labels:
        shown = ", ".join(labels[:12])
        raise InputError(f"The table has no column {str(name)!r} ({what}). It has: {shown}.")
    return str(name)


def _date(given: Any, labels: Sequence[str], others: Sequence[str | None]) -> str:
    left = [label for label in labels if label not in others]
    lower = {label.lower(): label for label in reversed(left)}
    named = next((lower[name] for name in DATES if name in lower), None)
    if named is not None:
        return named
    for label in left:
        cells = cells_in(given, label)
        if cells.kind == "M":
            return label
        reading = decided([cells], "The table", label) if cells.kind == "O" else None
        if reading is not None and reading.dates is not None:
            return label
    raise InputError(f"No column looks like dates among {', '.join(labels[:12])}. Name it: date='...'.")


def _target(labels: Sequence[str], others: Sequence[str]) -> str:
    left = [label for label in labels if label not in others]
    lower = {label.lower(): label for label in reversed(left)}
    named = next((lower[name] for name in TARGETS if name in lower), None)
    if named is None and len(left) == 1:
        named = left[0]
    if named is None:
        told = ", ".join(left[:12]) or "no other column"
        raise InputError(f"Which column is the target? There is {told}. Name it: target='...'.")
    return named


def _refuse_missing(t: Array, date: str, place: Any) -> None:
    wrong = np.flatnonzero(~np.isfinite(t))
    if len(wrong):
        where = f"Row {wrong[0]}" if place is None else place(wrong[0])
        raise InputError(f"{where}, column {date!r}: the date is missing. Fill it in, or drop the row.")
    if not len(t):
        raise InputError("The table has no rows.")


def _series(given: Any, name: str, n: int) -> NDArray[Any]:
    if not name:
        return np.full(n, "", dtype=object)
    words = cells_in(given, name).text()
    if None in words:
        raise InputError(f"Row {words.index(None)}, column {name!r}: the name of the series is missing.")
    return np.array(words, dtype=object)
