"""Tables for the command line: CSV (plain or gzip), tab-separated text and Parquet.

A text file is kept as the text of its cells; a column becomes numbers only when asked. So an id such as 007 is written back as it came,
and a cell that is not a number is reported by file, line and column. A column converts in one NumPy call; the culprit is looked for only
after that call has failed. Cost: O(cells) time, about 60 bytes a cell.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import io
import os
import re
import reprlib
import zlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.atomic import atomic_write
from gramian.errors import TableError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".parquet", ".pq")
MISSING = frozenset({"", "na", "nan", "null"})  # in any case, spaces around allowed
BLOCK = 65_536  # rows formatted at once when writing
MUST_QUOTE = re.compile('[",;\t\r\n\ufeff]')  # all separators, so that a header never misleads the search for the one in use

FOREIGN = {  # how files of other formats begin, when their name says CSV
    b"\x1f\x8b": "This is gzip data: rename the file so that it ends in .gz.",
    b"PK\x03\x04": "This is a spreadsheet or zip file: export the sheet as CSV.",
    b"PAR1": "This is a Parquet file: rename it so that it ends in .parquet.",
    b"\xff\xfe": "This is UTF-16 text: save it as UTF-8.",
    b"\xfe\xff": "This is UTF-16 text: save it as UTF-8.",
}


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length: the text of the cells (CSV), or int64, float64 and text (Parquet)."""

    path: str
    names: tuple[str, ...]
    columns: dict[str, NDArray[Any]]
    lines: NDArray[np.int64] | None = None  # where each row begins in a text file; None for Parquet, which has no lines

    @property
    def n_rows(self) -> int:
        return len(self.columns[self.names[0]])

    def line(self, row: int | np.intp) -> int:
        """The line of the file where row 0, 1, ... begins, counted from 1 (for Parquet the row counted from 1)."""
        return int(row) + 1 if self.lines is None else int(self.lines[row])

    def place(self, row: int | np.intp) -> str:
        """Where a row is, for a message: `data.csv, line 17`."""
        return f"{self.path}, {'row' if self.lines is None else 'line'} {self.line(row)}"

    def text(self, name: str) -> NDArray[np.object_]:
        """The cells as text, exactly as they stand in a text file; a missing number of a Parquet file is empty."""
        column = self._column(name)
        if column.dtype == object:
            return column.copy()
        return _objects(["" if value != value else repr(value) for value in column.tolist()])

    def is_numeric(self, name: str) -> bool:
        """Whether all cells are numbers or missing, and one at least is a number. Infinity counts, so that `numbers` can complain of it."""
        values = _parse(self._column(name))
        return values is not None and not np.isnan(values).all()

    def numbers(self, name: str, missing: Literal["error", "nan"] = "error") -> NDArray[np.float64]:
        """The column as finite numbers; with missing="nan", missing cells as NaN."""
        column = self._column(name)
        values = _parse(column)
        if values is None:
            bad = [row for row, cell in enumerate(column) if not _is_number(cell)]
            count = f"{len(bad)} of its {self.n_rows} cells are not numbers. " if len(bad) > 1 else ""
            raise TableError(f"{self.place(bad[0])}, column {name!r}: {_why(column[bad[0]])}. {count}Correct the file or leave the column out.")
        infinite = np.flatnonzero(np.isinf(values))
        if infinite.size:
            cell = reprlib.repr(str(column[infinite[0]]))
            raise TableError(f"{self.place(infinite[0])}, column {name!r}: {cell} is not a finite number. Correct it or drop the row.")
        absent = np.flatnonzero(np.isnan(values))
        if absent.size and missing == "error":
            count = f"{absent.size} of the {self.n_rows} rows have no value here"
            raise TableError(f"{self.place(absent[0])}, column {name!r}: the value is missing. {count}. Fill or drop these rows.")
        return values

    def _column(self, name: str) -> NDArray[Any]:
        if name in self.columns:
            return self.columns[name]
        near = closest(name, self.names)
        raise TableError(f"{self.path} has no column {name!r}{f'; did you mean {near!r}?' if near else '.'} Its columns: {_listing(self.names)}.")


def closest(name: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant: the same in other case or with spaces around, or a similar one; None when there is none."""
    folded = name.strip().casefold()
    same = next((other for other in names if other.casefold() == folded), None)
    return same or next(iter(difflib.get_close_matches(name, names, 1)), None)


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a CSV, tab-separated or Parquet file, by its suffix."""
    shown = os.fspath(path)
    if not os.path.exists(path):
        raise TableError(f"{shown}: there is no such file (looked for {os.path.abspath(path)}). Correct the path.")
    if os.path.isdir(path):
        raise TableError(f"{shown} is a folder. Give the name of a file in it.")
    suffix = _suffix(path)
    try:
        if suffix in (".parquet", ".pq"):
            return _read_parquet(shown)
        raw = Path(path).read_bytes()
    except OSError as cause:
        raise TableError(f"{shown} cannot be read: {cause.strerror or cause}. Check the file and its permissions.") from cause
    if suffix.endswith(".gz"):
        raw = _unzip(shown, raw)
    _check_bytes(shown, raw)
    return _read_text(shown, raw, "\t" if suffix.startswith(".tsv") else _separator(raw))


def write_table(path: str | os.PathLike[str], names: Sequence[str], columns: Mapping[str, ArrayLike]) -> None:
    """Write the named columns, in this order, whole or not at all. Floats are written so that they read back exactly; None as empty."""
    shown, suffix = os.fspath(path), _suffix(path)
    _check_names(shown, names)
    unknown = [name for name in names if name not in columns]
    if unknown:
        raise TableError(f"{shown}: no column is given for {_listing(unknown)}. Given: {_listing(list(columns))}.")
    arrays = {name: np.asarray(columns[name]) for name in names}
    shapes = {name: column.shape for name, column in arrays.items()}
    if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
        raise TableError(f"{shown}: columns must be one-dimensional and of one length, but their shapes are {shapes}.")
    for name, column in arrays.items():
        if column.dtype.kind not in "biufMUTO":
            raise TableError(f"{shown}: column {name!r} has type {column.dtype}, which a table cannot hold. Convert it to numbers or text.")
    try:
        if suffix in (".parquet", ".pq"):
            pa, pq = _pyarrow(shown)
            table = pa.table({name: c if c.dtype.kind in "biuf" else pa.array(_cells(c), pa.string()) for name, c in arrays.items()})
            with atomic_write(path, TableError) as file:
                pq.write_table(table, file)
        elif suffix.endswith(".gz"):  # no name and no time inside: equal tables give equal files
            with atomic_write(path, TableError) as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                _write_text(shown, packed, arrays)
        else:
            with atomic_write(path, TableError) as file:
                _write_text(shown, file, arrays)
    except UnicodeEncodeError as cause:
        raise TableError(f"{shown}: the character {cause.object[cause.start]!r} cannot be written as UTF-8. Remove it from the text.") from cause


# Numbers


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
    filled = _objects(["nan" if cell.strip().lower() in MISSING else cell for cell in column])
    try:
        return filled.astype(np.float64)
    except ValueError:
        return None


def _is_number(cell: str) -> bool:
    try:
        float("nan" if cell.strip().lower() in MISSING else cell)
    except ValueError:
        return False
    return "_" not in cell


def _why(cell: str) -> str:
    shown = reprlib.repr(cell)
    if re.fullmatch(r"\s*[-+]?[\d.]*,[\d.,]*(e[-+]?\d+)?\s*", cell, re.IGNORECASE):
        return f"{shown} is not a number because of its comma; write a decimal point (1.5, not 1,5) and no thousands separators"
    if re.fullmatch(r"[\s\d.+-]*_[\d_.e+-]*\s*", cell, re.IGNORECASE):
        return f"{shown} is not a number because of its underscore; write 1000, not 1_000"
    return f"{shown} is not a number"


# Reading


def _read_text(path: str, raw: bytes, separator: str) -> Table:
    stream = io.TextIOWrapper(io.BytesIO(raw), "utf-8-sig", newline="")
    reader = csv.reader(stream, delimiter=separator, strict=True)
    cells: list[str] = []  # row after row in one flat list: no million small lists for the garbage collector to walk
    lines = array("q")
    start, blank = 1, 0
    try:
        names = _check_names(path, next(filter(None, reader), []))
        width, start = len(names), reader.line_num + 1
        for row in reader:
            line, start = start, reader.line_num + 1
            if len(row) == width and not blank:
                cells += row
                lines.append(line)
            elif not row or (len(row) == 1 < width and not row[0].strip()):
                blank = blank or line  # ignored, provided that no row follows
            elif blank:
                raise TableError(f"{path}, line {blank}: the line is blank, but rows follow. Delete it.")
            else:
                fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
                cure = "Put cells that contain the separator in double quotes" if len(row) > width else "Add the missing cells (they may be empty)"
                raise TableError(f"{path}, line {line}: {fields}, but the header has {width} (separated by {separator!r}). {cure}.")
    except csv.Error as cause:
        if "expected after" in str(cause):
            wrong = "text follows a closing double quote. Write a quote inside a quoted cell twice"
        else:  # the end of the file, or a cell beyond the csv module's limit
            wrong = f"a double quote is opened but not closed ({cause}). Close it"
        raise TableError(f"{path}, line {start}: {wrong}.") from cause
    if not lines:
        raise TableError(f"{path} has a header ({_listing(names)}) but no rows. Add data below the header.")
    columns = {name: _objects(cells[j::width]) for j, name in enumerate(names)}
    return Table(path, names, columns, np.array(lines, dtype=np.int64))


def _separator(raw: bytes) -> str:
    """Comma, semicolon or tab: the one found most often in the header outside quotes; the comma when in doubt."""
    header = re.match(rb'(?:\xef\xbb\xbf)?[\r\n]*((?:"[^"]*"|[^"\r\n]+)*)', raw)
    outside = re.sub(rb'"[^"]*"', b"", header[1] if header else b"")
    return max(",;\t", key=lambda separator: outside.count(separator.encode()))


def _check_bytes(path: str, raw: bytes) -> None:
    if not raw.strip(b"\xef\xbb\xbf \t\r\n"):
        raise TableError(f"{path} is empty. A table begins with a line of column names.")
    for signature, cure in FOREIGN.items():
        if raw.startswith(signature):
            raise TableError(f"{path} is not CSV text: it begins with the bytes {signature.hex(' ')}. {cure}")
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as cause:
        raise TableError(
            f"{path}, {_byte_place(raw, cause.start)}: the byte 0x{raw[cause.start]:02x} is not UTF-8 text. Save the file as UTF-8 "
            "(spreadsheets: 'CSV UTF-8'; terminal: iconv -f WINDOWS-1252 -t UTF-8)."
        ) from cause
    if b"\0" in raw:
        where = _byte_place(raw, raw.index(b"\0"))
        raise TableError(f"{path}, {where}: a NUL byte, which no text has. The file is damaged or is not text; export it anew as UTF-8 CSV.")


def _byte_place(raw: bytes, position: int) -> str:
    before = (raw[:position] + b"x").splitlines()
    return f"line {len(before)}, position {len(before[-1])} (byte {position} of the file, from 0)"


def _unzip(path: str, raw: bytes) -> bytes:
    try:
        return gzip.decompress(raw)
    except EOFError as cause:
        raise TableError(f"{path} is cut off: its gzip data end early. Copy or download it again.") from cause
    except (gzip.BadGzipFile, zlib.error) as cause:
        if raw[:2] != b"\x1f\x8b":
            raise TableError(f"{path} is not a gzip file, though its name ends in .gz. Rename it without .gz, or compress it.") from cause
        raise TableError(f"{path} is damaged: its gzip data do not decompress ({cause}). Copy or download it again.") from cause


def _read_parquet(path: str) -> Table:
    pa, pq = _pyarrow(path)
    try:
        with pq.ParquetFile(path) as file:  # not pq.read_table, which makes columns of folder names such as year=2024
            data = file.read()
    except (pa.ArrowException, OSError) as cause:
        raise TableError(f"{path} cannot be read as Parquet: {cause}. The file is damaged or of another format; copy or export it again.") from cause
    names = _check_names(path, data.column_names)
    if data.num_rows == 0:
        raise TableError(f"{path} has columns ({_listing(names)}) but no rows. Write it with data.")
    columns: dict[str, NDArray[Any]] = {}
    for name, column in zip(names, data.columns, strict=True):
        try:
            if pa.types.is_floating(column.type):
                columns[name] = column.cast(pa.float64()).to_numpy()
            elif pa.types.is_integer(column.type) and column.type != pa.uint64() and not column.null_count:
                columns[name] = column.cast(pa.int64()).to_numpy()
            else:  # as text, so that large ids, dates and decimals keep all their digits
                columns[name] = _objects(column.cast(pa.string()).fill_null("").to_pylist())
        except pa.ArrowException as cause:
            raise TableError(f"{path}, column {name!r}: its type, {column.type}, is neither number nor text. Convert it or leave it out.") from cause
    return Table(path, names, columns)


# Writing


def _write_text(path: str, file: BinaryIO | gzip.GzipFile, columns: dict[str, NDArray[Any]]) -> None:
    separator = "\t" if _suffix(path).startswith(".tsv") else ","
    alone = len(columns) == 1  # then an empty cell needs quotes: a blank line is no row

    def quote(cell: str) -> str:
        return '"' + cell.replace('"', '""') + '"' if MUST_QUOTE.search(cell) or (alone and not cell) else cell

    def write(rows: Iterable[Iterable[str]]) -> None:
        text = "".join(separator.join(row) + "\n" for row in rows)
        if "\0" in text:
            raise TableError(f"{path}: a cell has a NUL character, which a text file cannot hold. Remove it.")
        file.write(text.encode())

    write([map(quote, columns)])
    for start in range(0, len(next(iter(columns.values()))), BLOCK):
        block = [column[start : start + BLOCK] for column in columns.values()]
        write(zip(*(_cells(part) if part.dtype.kind in "biuf" else map(quote, _cells(part)) for part in block), strict=True))


def _cells(column: NDArray[Any]) -> list[str]:
    if column.dtype.kind == "M":
        column = column.astype(str)  # ISO dates; tolist would give counts of nanoseconds
    return ["" if value is None else str(value) for value in column.tolist()]  # str of a float is the shortest text that reads back exactly


# Shared


def _suffix(path: str | os.PathLike[str]) -> str:
    name = Path(path).name.lower()
    for suffix in sorted(SUFFIXES, key=len, reverse=True):
        if name.endswith(suffix):
            return suffix
    raise TableError(f"{os.fspath(path)}: the name of a table ends in one of {', '.join(SUFFIXES)}. Rename or convert the file.")


def _check_names(path: str, names: Sequence[str]) -> tuple[str, ...]:
    stripped = tuple(name.strip() for name in names)
    if not stripped:
        raise TableError(f"{path}: a table needs one column at least.")
    if "" in stripped:
        position = f"column {stripped.index('') + 1} of {len(names)}"
        raise TableError(f"{path}: {position} has no name in the header. Name it (if it is a pandas index, write with index=False).")
    twice = sorted({name for name in stripped if stripped.count(name) > 1})
    if twice:
        raise TableError(f"{path}: {_listing(twice)} is the name of more than one column. Give each column a name of its own.")
    return stripped


def _listing(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")


def _objects(cells: list[str]) -> NDArray[np.object_]:
    return np.array(cells, dtype=object)


def _pyarrow(path: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as cause:
        raise TableError(f'{path}: Parquet files need pyarrow. Install it: pip install "gramian[parquet]"; or use CSV.') from cause
    return pyarrow, pyarrow.parquet
