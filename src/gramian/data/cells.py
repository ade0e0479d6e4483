"""The cells of one column as an array of one kind, whatever it came as: pandas, polars, Arrow, a list, a
file."""

from __future__ import annotations

import datetime
import numbers
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.data.tables.table import is_missing
from gramian.errors import InputError, InputTypeError

_MISSING_OBJECTS = ("NAType", "NaTType")  # of pandas, which is no dependency


class Cells(NamedTuple):
    """One column: float64 (NaN where missing), bool, datetime64[us] in UTC, timedelta64[us], or objects:
    text, and None where missing."""

    values: NDArray[Any]
    levels: tuple[str, ...] | None = None  # of a column that was declared to hold categories
    ordered: bool = False  # whether these have an order
    comma: bool = False  # text of a file whose separator leaves commas to decimals

    @property
    def kind(self) -> str:
        """NumPy's letter: f, b, M, m, or O for text."""
        return self.values.dtype.kind

    def text(self) -> list[str | None]:
        """The cells as words, None where missing; whole numbers without a point."""
        if self.kind == "O":
            return self.values.tolist()
        if self.kind in "Mm":
            return [None if np.isnat(v) else str(v) for v in self.values]
        return [None if v != v else _word(v) for v in self.values.tolist()]


def cells_of(column: Any, name: str) -> Cells:
    """The cells of a column of a table, or of a one-dimensional array."""
    levels, ordered = _declared(column)
    if hasattr(column, "to_pylist"):  # Arrow: its own conversion of dates with a zone to NumPy loses NULL
        column = _from_arrow(column)
    values = np.asarray(column)
    if levels is not None:
        words = [None if is_absent(v) else _word(v) for v in values.tolist()]
        return Cells(_objects(words), levels, ordered)
    kind = values.dtype.kind
    if kind == "c":
        raise InputError(f"Column {name!r} has complex numbers. Give real and imaginary parts as columns.")
    if kind in "uif":
        with np.errstate(over="ignore"):  # of longer numbers: infinity is refused by who knows the row
            return Cells(values.astype(np.float64))
    if kind == "b":
        return Cells(values)
    if kind in "Mm":
        return Cells(values.astype(f"{kind}8[us]"))
    if kind in "US":
        return text_cells(
            [v.decode(errors="replace") if isinstance(v, bytes) else v for v in values.tolist()]
        )
    return _from_objects(list(values), name)


def text_cells(cells: list[str], comma: bool = False) -> Cells:
    """Text, where words such as NA stand for nothing."""
    return Cells(_objects([None if is_missing(cell) else _bare(cell) for cell in cells]), comma=comma)


def _bare(cell: str) -> str:
    """Text without blanks around it, and without what keeps a spreadsheet from reading it: ="007"."""
    cell = cell.strip()
    return cell[2:-1] if cell.startswith('="') and cell.endswith('"') else cell


def _declared(column: Any) -> tuple[tuple[str, ...] | None, bool]:
    """The levels of a column of categories in the order of the declaration, and whether they are ordered."""
    dtype = getattr(column, "dtype", None)
    if dtype is None:
        return None, False
    if hasattr(dtype, "categories") and hasattr(dtype, "ordered"):  # pandas
        return tuple(map(_word, dtype.categories)), bool(dtype.ordered)
    if not str(dtype).lower().startswith(("category", "categorical", "enum")):
        return None, False
    present = {_word(v) for v in np.asarray(column).tolist() if not is_absent(v)}
    return tuple(sorted(present)), False


def _from_arrow(column: Any) -> Any:
    """Numbers and text as they are; categories by their words."""
    if hasattr(column, "combine_chunks"):
        column = column.combine_chunks()
    kind = str(column.type)
    if kind.startswith("dictionary"):
        return np.array(column.to_pylist(), dtype=object)
    if kind.startswith(("timestamp", "date")):  # UTC, as NumPy has no zones
        plain = column if "tz=" in kind else column.cast("timestamp[us]", safe=False)
        return plain.to_numpy(zero_copy_only=False)
    if kind.startswith(("int", "uint", "float", "double", "halffloat")):
        return column.to_numpy(zero_copy_only=False)
    return np.array([*column.to_pylist(), None], dtype=object)[:-1]  # of lists, too, one cell each


def _from_objects(values: list[Any], name: str) -> Cells:
    kinds = {_kind(v) for v in values} - {"missing"}
    if "other" in kinds:
        row = next(i for i, v in enumerate(values) if _kind(v) == "other")
        what = f"a string or a real number, not {type(values[row]).__name__!r}"
        raise InputTypeError(f"Column {name!r}, row {row}: a cell argument must be {what}.")
    if kinds == {"date"}:
        return Cells(np.array([None if is_absent(v) else _utc(v) for v in values], dtype="M8[us]"))
    if kinds == {"span"}:
        return Cells(np.array([None if is_absent(v) else _span(v) for v in values], dtype="m8[us]"))
    if kinds == {"bool"} and not any(map(is_absent, values)):
        return Cells(np.array(values, dtype=bool))
    if kinds <= {"number", "bool"}:
        floats = [np.nan if is_absent(v) else number(v, name, row) for row, v in enumerate(values)]
        return Cells(np.array(floats, dtype=np.float64))
    return text_cells(["" if is_absent(v) else _word(v) for v in values])


def number(v: Any, name: str, row: int) -> float:
    """A number of any type as a float, or an error that says which one is none."""
    try:
        return float(v)
    except OverflowError:  # of whole numbers and fractions
        digits = int(int(abs(v)).bit_length() * np.log10(2))
        cure = "Give it in other units, or its logarithm."
        raise InputError(
            f"Column {name!r}, row {row}: a number of about 1e{digits} is beyond the largest, 1.8e308. {cure}"
        ) from None
    except ValueError:  # what decimals call a signaling NaN
        return np.nan


def _kind(v: Any) -> str:
    if is_absent(v):
        return "missing"
    if isinstance(v, (bool, np.bool_)):
        return "bool"
    if isinstance(v, (numbers.Real, Decimal)) and not isinstance(v, np.timedelta64):
        return "number"
    if isinstance(v, (datetime.date, np.datetime64)) or hasattr(v, "to_timestamp"):  # a Period of pandas
        return "date"
    if isinstance(v, (datetime.timedelta, datetime.time, np.timedelta64)):
        return "span"
    return "text" if isinstance(v, (str, bytes)) else "other"


def is_absent(v: Any) -> bool:
    """None, NaN, NaT, and what pandas has for them."""
    if v is None or type(v).__name__ in _MISSING_OBJECTS:
        return True
    if isinstance(v, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(v))
    return isinstance(v, (float, np.floating)) and bool(np.isnan(v))


def _utc(v: Any) -> Any:
    """A date or a time without its zone, in UTC; of a period its beginning."""
    v = v.to_timestamp() if hasattr(v, "to_timestamp") else v
    if getattr(v, "tzinfo", None) is not None:
        v = v.astimezone(datetime.UTC).replace(tzinfo=None)
    return np.datetime64(v, "us")


def _span(v: Any) -> Any:
    if isinstance(v, datetime.time):
        since = datetime.datetime.combine(datetime.date.min, v.replace(tzinfo=None)) - datetime.datetime.min
        return np.timedelta64(since, "us")
    return np.timedelta64(v, "us")


def _word(v: Any) -> str:
    """A cell as text; a whole number as such, so that 3.0 is the category 3."""
    if isinstance(v, bytes):
        return v.decode(errors="replace")
    if isinstance(v, (bool, np.bool_)):
        return "true" if v else "false"
    if isinstance(v, (float, np.floating)) and float(v).is_integer() and abs(float(v)) < 2**53:
        return str(int(v))
    return str(v)


def _objects(cells: list[Any]) -> NDArray[np.object_]:
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array
