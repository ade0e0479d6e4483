"""Named columns of a file, whole or a block of rows; what is not a number is told with its place."""

from __future__ import annotations

import re
import reprlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gramian.data.tables.shared import are_numbers, closest, listing, no_names
from gramian.errors import TableError

# in any case, spaces around allowed; \\N is what databases write, and # begins errors of spreadsheets
MISSING = frozenset(
    {"", "na", "n/a", "n.a.", "<na>", "nan", "nat", "null", "-", "--", "---", "?", ".", "\\n", "(blank)"}
    | {"–", "—", "..", "...", "…", ":"}  # of statistics offices
    | {f"#{error}" for error in ("n/a", "div/0!", "ref!", "value!", "num!", "name?", "null!")}
)
# of spreadsheets in other languages, #WERT!, #NV, #¡VALOR!, and of C: 1.#IND
_ERROR = re.compile(r"#[^\W\d][\w/]*[!?]|#¡[\w/]+!|#n/?[avd]|-?1\.#(ind|qnan|snan)\d*", re.IGNORECASE)
# may be categories among words; among numbers and dates they stand for nothing
UNKNOWN = frozenset(
    {"none", "nil", "missing", "unknown", "not available", "not known", "no data", "n.d.", "nd", "n/d", "s/d"}
    | {"k.a.", "k. a.", "keine angabe", "n.b.", "tbd", "*", "**", "***", "0000-00-00"}
    | {"0000-00-00 00:00:00", "(d)", "(s)", "(x)", "(z)", "(na)"}
    | {f".{letter}" for letter in "abcdefghijklmnopqrstuvwxyz_"}  # of SAS and Stata
)


class NotNumbersError(TableError):
    """A column asked for as numbers has text; `column` is its name."""

    def __init__(self, message: str, column: str) -> None:
        super().__init__(message)
        self.column = column


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length: the text of the cells (CSV), or int64, float64 and text (Parquet)."""

    path: str
    names: tuple[str, ...]
    columns: dict[str, NDArray[Any]]
    # where each row begins in a text file; None for Parquet, which has no lines
    lines: NDArray[np.int64] | None = None
    first: int = 0  # rows of the file before these
    whole: bool = True  # or a block of a file
    comma: bool = False  # text whose separator leaves commas to decimals
    notes: tuple[str, ...] = ()  # what was done to read the file

    @property
    def n_rows(self) -> int:
        return len(self.columns[self.names[0]])

    @property
    def bytes_held(self) -> int:
        """What the cells take in memory, once more as one array of all blocks, and as numbers."""
        found = 0
        for column in self.columns.values():
            texts = {id(cell): cell for cell in column}.values() if column.dtype == object else ()
            found += 3 * column.nbytes + sum(map(sys.getsizeof, texts))
        return found

    @property
    def dtypes(self) -> list[Any]:
        """Of the columns: with these, a table is a frame for the estimators."""
        return [column.dtype for column in self.columns.values()]

    def __len__(self) -> int:
        return self.n_rows

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._column(name)

    def only(self, names: Sequence[str]) -> Table:
        """The same with some of its columns, in this order."""
        return replace(self, names=tuple(names), columns={name: self._column(name) for name in names})

    def parsed(self, name: str) -> NDArray[np.float64] | None:
        """The column as numbers, NaN where missing; None where a cell is neither, or where its points may be
        between thousands: the whole file tells."""
        column = self._column(name)
        return None if self.comma and column.dtype == object and _may_be_parted(column) else _parse(column)

    def line(self, row: int | np.intp) -> int:
        """The line of the file where row 0, 1, ... begins, counted from 1 (for Parquet the row itself)."""
        return self.first + int(row) + 1 if self.lines is None else int(self.lines[row])

    def place(self, row: int | np.intp) -> str:
        """Where a row is, for a message: `data.csv, line 17`."""
        return f"{self.path}, {'row' if self.lines is None else 'line'} {self.line(row)}"

    @property
    def span(self) -> str:
        """Of what rows a count is, for a message: `the 40 rows`, or for a block `the rows 81 to 120`."""
        part = f"the rows {self.first + 1} to {self.first + self.n_rows}"
        return f"the {self.n_rows} rows" if self.whole else part

    def text(self, name: str) -> NDArray[np.object_]:
        """The cells as text, exactly as they stand in a text file; a missing number of Parquet is empty."""
        column = self._column(name)
        if column.dtype == object:
            return column.copy()
        return objects(["" if value != value else repr(value) for value in column.tolist()])

    def is_numeric(self, name: str) -> bool:
        """Whether all cells are numbers or missing, and one at least is a number. Infinity counts, so that
        `numbers` can complain of it."""
        values = _parse(self._column(name))
        return values is not None and not np.isnan(values).all()

    def numbers(self, name: str, missing: Literal["error", "nan"] = "error") -> NDArray[np.float64]:
        """The column as finite numbers; with missing="nan", missing cells as NaN."""
        column = self._column(name)
        values = _parse(column)
        if values is None:
            bad = [row for row, cell in enumerate(column) if not is_number(cell) and not is_missing(cell)]
            cells = f"its {self.n_rows} cells" if self.whole else f"its cells in {self.span}"
            count = f"{len(bad)} of {cells} are not numbers. " if len(bad) > 1 else ""
            why = f"{why_no_number(column[bad[0]])}. {count}Correct the file or leave the column out."
            raise NotNumbersError(f"{self.place(bad[0])}, column {name!r}: {why}", name)
        infinite = np.flatnonzero(np.isinf(values))
        if infinite.size:
            wrong = f"{reprlib.repr(str(column[infinite[0]]))} is not a finite number"
            where = f"{self.place(infinite[0])}, column {name!r}"
            raise TableError(f"{where}: {wrong}. Correct it or drop the row.")
        absent = np.flatnonzero(np.isnan(values))
        if absent.size and missing == "error":
            where = f"{self.place(absent[0])}, column {name!r}"
            count = f"{absent.size} of {self.span} have no value here"
            raise TableError(f"{where}: the value is missing. {count}. Fill or drop these rows.")
        return values

    def _column(self, name: str) -> NDArray[Any]:
        if name in self.columns:
            return self.columns[name]
        near = closest(name, self.names)
        if are_numbers(self.names):
            raise TableError(f"{self.path} has no column {name!r}: {no_names(self.names)}")
        raise TableError(
            f"{self.path} has no column {name!r}{f'; did you mean {near!r}?' if near else '.'} Its columns:"
            f" {listing(self.names)}."
        )


_PARTED = re.compile(r"\s*[-+]?[1-9]\d{0,2}(\.\d{3})?\s*")


def _may_be_parted(column: NDArray[Any]) -> bool:
    """Whether numbers have a point before the last three digits, or none."""
    seen = (is_missing(cell) or cell.strip() == "0" or _PARTED.fullmatch(cell) for cell in column)
    return all(seen) and any("." in cell for cell in column)


def _parse(column: NDArray[Any]) -> NDArray[np.float64] | None:
    """Floats, NaN where missing; None when some cell is neither."""
    if column.dtype != object:
        return column.astype(np.float64)
    if "_" in "".join(column):  # Python's float takes 1_000; in a table it is more likely a code
        return None
    try:
        return column.astype(np.float64)
    except ValueError:
        pass
    filled = objects(["nan" if is_missing(cell) else cell for cell in column])
    try:
        return filled.astype(np.float64)
    except ValueError:
        return None


def is_missing(cell: str) -> bool:
    """Whether a cell stands for no value."""
    cell = cell.strip()
    return cell.lower() in MISSING or ("#" in cell[:4] and _ERROR.fullmatch(cell) is not None)


def is_unknown(cell: str) -> bool:
    """Whether a cell says that there is no value, unless it is one of several words."""
    return cell.strip().lower() in UNKNOWN


def is_number(cell: str) -> bool:
    """Whether a cell is a number in a table."""
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def why_no_number(cell: str) -> str:
    """What is wrong with a cell that should be a number."""
    shown = reprlib.repr(cell)
    if re.fullmatch(r"\s*[-+]?[\d.]*,[\d.,]*(e[-+]?\d+)?\s*", cell, re.IGNORECASE):
        return (
            f"{shown} is not a number because of its comma; write a decimal point (1.5, not 1,5) and no"
            " thousands separators"
        )
    if re.fullmatch(r"[\s\d.+-]*_[\d_.e+-]*\s*", cell, re.IGNORECASE):
        return f"{shown} is not a number because of its underscore; write 1000, not 1_000"
    if re.fullmatch(r"\s*[<>≤≥]=?\s*[-+]?[\d.,]+.*", cell):
        return f"{shown} is a limit, not a number; write the limit itself, or half of it"
    return f"{shown} is not a number"


def objects(cells: list[str]) -> NDArray[np.object_]:
    return np.array(cells, dtype=object)
