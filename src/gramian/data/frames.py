"""Tables of other libraries as named columns, without those libraries: pandas and polars as they are, lazy
polars frames, Arrow tables, data sets and streams, and DuckDB relations after they were read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramian.data.tables import repeated
from gramian.errors import InputError


class Frame:
    """Named columns of one length: the little of a DataFrame that an estimator asks for."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._cells, self.columns = columns, list(columns)
        self.dtypes = [getattr(cells, "dtype", None) for cells in columns.values()]
        self.shape = len(next(iter(columns.values()), ())), len(columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, name: str) -> Any:
        return self._cells[name]


def is_frame(X: Any) -> bool:
    """Whether X is a table with named columns (pandas, polars and their like)."""
    return hasattr(X, "columns") and hasattr(X, "dtypes") and hasattr(X, "__getitem__")


def as_frame(X: Any) -> Any:
    """X itself, or what it has to give as a frame."""
    if type(X) is np.ndarray or isinstance(X, (str, list, tuple)):
        return X
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):  # polars, lazy
        return X.collect()
    if hasattr(X, "fetchnumpy"):  # DuckDB
        return Frame({name: _unmasked(cells) for name, cells in X.fetchnumpy().items()})
    if hasattr(X, "to_table") and hasattr(X, "scanner"):  # an Arrow data set
        X = X.to_table()
    elif hasattr(X, "__arrow_c_stream__") and not is_frame(X) and not hasattr(X, "column_names"):
        if len(getattr(X, "shape", (0, 0))) == 1:  # a Series is one column, and no table
            return np.asarray(X)
        X = _arrow().table(X)
    if hasattr(X, "column_names") and hasattr(X, "column") and hasattr(X, "schema"):  # an Arrow table
        names = list(X.column_names)
        if len(set(names)) < len(names):
            raise InputError(f"X has two columns named {repeated(names)[0]!r}. Rename or drop one.")
        return Frame({name: X.column(name) for name in names})
    return X


def _unmasked(cells: Any) -> Any:
    """A masked array with None for what is masked."""
    if not isinstance(cells, np.ma.MaskedArray):
        return cells
    if cells.dtype.kind in "Mm":
        return np.where(np.ma.getmaskarray(cells), np.array("NaT", dtype=cells.dtype), cells.data)
    return np.where(np.ma.getmaskarray(cells), np.array(None, dtype=object), cells.data)


def _arrow() -> Any:
    try:
        import pyarrow
    except ImportError as cause:
        cure = 'Install it: pip install "gramian[parquet]"; or give a DataFrame.'
        raise InputError(f"Streams of Arrow data need pyarrow. {cure}") from cause
    return pyarrow


def parted(X: Any, y: Any) -> tuple[Any, Any, tuple[str, ...]]:
    """A table without the column that y names, that column (a list of them as a Frame), and the names; X and
    y as they are where y is no name."""
    if not is_frame(X):
        return X, y, ()
    labels = list(X.columns)
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise InputError(f"X has two columns named {twice!r}. Rename or drop one.")
    # a column may be called by a number, or in pandas by several words
    one = isinstance(y, str) or (isinstance(y, (int, np.integer, tuple)) and y in labels)
    several = not one and isinstance(y, (list, tuple)) and len(y) > 0 and all(isinstance(n, str) for n in y)
    if not one and not (several and len(y) != len(X) and set(y) <= set(labels)):
        return X, y, ()
    names = (y,) if one else tuple(y)
    unknown = next((name for name in names if name not in list(X.columns)), None)
    if unknown is not None:
        shown = ", ".join(map(str, list(X.columns)[:12]))
        raise InputError(f"X has no column {unknown!r} for the target. It has: {shown}.")
    if len(X.columns) == len(set(names)):
        raise InputError(f"X has no column left to learn from, beside {', '.join(map(str, names))}. Add one.")
    target = X[y] if one else Frame({name: X[name] for name in names})
    named = tuple(map(str, names))
    return without(X, named), target, named


def without(X: Any, names: Sequence[str]) -> Any:
    """A table without some of its columns."""
    dropped = set(names)
    left = [label for label in X.columns if str(label) not in dropped]
    return X if len(left) == len(X.columns) else Frame({name: X[name] for name in left})
