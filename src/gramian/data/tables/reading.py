"""Reading a file in blocks of rows; a whole table is its blocks put together, so there is one parser."""

from __future__ import annotations

import csv
import datetime
import io
import os
import reprlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.data.tables.header import (
    LINES,
    Header,
    csv_reader,
    first_lines,
    header_of,
    is_blank,
    is_foot,
    leaves_commas,
    separator_of,
)
from gramian.data.tables.shared import (
    BLOCK,
    PARQUET,
    SHEETS,
    SUFFIXES,
    check_names,
    import_calamine,
    import_pyarrow,
    listing,
    suffix_of,
)
from gramian.data.tables.table import Table, objects
from gramian.data.tables.textbytes import CHUNK, CheckedBytes
from gramian.errors import TableError

CELLS = 2**20  # of a block at most: wide tables have shorter blocks


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a table, by the suffix of its file."""
    blocks = list(read_blocks(path))
    names = blocks[0].names
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name in names}
    lines = [block.lines for block in blocks if block.lines is not None]
    last = blocks[-1]
    return Table(
        last.path, names, columns, np.concatenate(lines) if lines else None, 0, True, last.comma, last.notes
    )


def read_blocks(path: str | os.PathLike[str], rows: int = BLOCK) -> Iterator[Table]:
    """The rows of a file as tables of at most so many rows, with one block in memory at a time.

    Errors are told when their block is met. Columns of Parquet have one type in all blocks.
    """
    shown = os.fspath(path)
    if rows < 1:
        raise TableError(f"{shown}: blocks of {rows} rows cannot be read. Give a number from 1 on.")
    if not os.path.exists(path):
        cure = "Correct the path."
        raise TableError(f"{shown}: there is no such file (looked for {os.path.abspath(path)}). {cure}")
    if os.path.isdir(path):
        return _folder_blocks(shown, rows)
    suffix = suffix_of(path, SUFFIXES)
    if suffix in PARQUET:
        return _parquet_blocks(shown, rows)
    return _sheet_blocks(shown, rows) if suffix in SHEETS else _text_blocks(shown, suffix, rows)


# Text


def _text_blocks(path: str, suffix: str, rows: int) -> Iterator[Table]:
    try:
        with open(path, "rb") as file:
            checked = CheckedBytes(path, file, suffix.endswith(".gz"))
            head = checked.head.decode(errors="ignore").removeprefix("\ufeff")
            separator = "\t" if suffix.startswith(".tsv") else separator_of(head)
            stream = io.TextIOWrapper(io.BufferedReader(checked, CHUNK), "utf-8-sig", newline="")
            lines = _lines(path, csv_reader(stream, separator))
            found = first_lines(head, separator)
            header = header_of(path, found or [row for _, row in islice(lines, 1)])
            sign = f" (separated by {separator!r})"
            for block in _rows(path, lines, header, rows, sign):
                notes = (*checked.notes, *block.notes)
                yield replace(block, comma=leaves_commas(head, separator), notes=notes)
    except OSError as cause:
        cure = "Check the file and its permissions."
        raise TableError(f"{path} cannot be read: {cause.strerror or cause}. {cure}") from cause


def _lines(path: str, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """The lines of a text with their numbers, where each begins."""
    start = 1
    try:
        for row in reader:
            yield start, row
            start = reader.line_num + 1
    except csv.Error as cause:
        if "expected after" in str(cause):
            wrong = "text follows a closing double quote. Write a quote inside a quoted cell twice"
        else:  # the end of the file, or a cell beyond the csv module's limit
            wrong = f"a double quote is opened but not closed ({cause}). Close it"
        raise TableError(f"{path}, line {start}: {wrong}.") from cause


def _rows(
    path: str, numbered: Iterator[tuple[int, list[str]]], header: Header, rows: int, sign: str
) -> Iterator[Table]:
    """The rows below the header; lines with nothing in them are passed over."""
    names, places, width = header.names, header.places, header.width
    # row after row in one flat list: no million small lists for the garbage collector to walk
    cells: list[str] = []
    lines = array("q")
    first, blank, between = 0, 0, 0  # rows before this block; blank lines since the last row, and before it
    comments, foot = 0, list[tuple[int, list[str]]]()  # what may stand below the rows, if no row follows
    rows = min(rows, max(1, CELLS // len(names)))
    whole = len(places) == width
    for _ in islice(numbered, header.above):
        pass

    def block() -> Table:
        columns = {name: objects(cells[j :: len(names)]) for j, name in enumerate(names)}
        passed = [f"{between} empty line{'s' * (between > 1)} passed over"] if between else []
        if comments:
            passed.append(f"{comments} line{'s' * (comments > 1)} with # in front passed over")
        if foot:
            words = [next(cell.strip() for cell in row if cell.strip()) for _, row in foot]
            what = f"line{'s' * (len(foot) > 1)} below the rows left out"
            passed.append(f"{len(foot)} {what} ({', '.join(map(reprlib.repr, words))})")
        at = np.array(lines, dtype=np.int64)
        return Table(path, names, columns, at, first, False, False, (*header.notes, *passed))

    def rejoined() -> Iterator[tuple[int, list[str]]]:
        """The lines, with those that seemed to stand below the rows before a row that follows."""
        nonlocal comments
        for line, row in numbered:
            if not foot and len(row) == width and row and row[0] and row[0][0] in "0123456789-+.":
                yield line, row  # most rows, at no cost
            elif len(row) != width and row and row[0].startswith("#"):
                comments += 1
            elif row and is_foot(row, width):
                foot.append((line, row))
            elif foot and not is_blank(row):
                yield from foot
                foot.clear()
                yield line, row
            else:
                yield line, row

    for line, row in rejoined():
        if len(row) == width and row:
            if len(lines) == rows:
                yield block()
                first += rows
                cells, lines = [], array("q")
            between, blank = between + blank, 0
            cells += row if whole else [row[j] for j in places]
            lines.append(line)
        elif not row or (len(row) == 1 < width and is_blank(row)):
            blank += 1
        else:
            fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
            cure = "Add the missing cells (they may be empty)"
            if len(row) > width:
                cure = "Put cells that contain the separator in double quotes"
            raise TableError(f"{path}, line {line}: {fields}, but the header has {width}{sign}. {cure}.")
    if not lines:
        raise TableError(f"{path} has a header ({listing(names)}) but no rows. Add data below the header.")
    yield block()


# Sheets


def _sheet_blocks(path: str, rows: int) -> Iterator[Table]:
    """The first sheet of a workbook that has cells."""
    calamine = import_calamine(path)
    try:
        book = calamine.CalamineWorkbook.from_path(path)
        names = book.sheet_names
        found = ((name, book.get_sheet_by_name(name).to_python(skip_empty_area=False)) for name in names)
        title, cells = _chosen(found)
    except (calamine.CalamineError, OSError) as cause:
        cure = "The file is damaged or of another format; save it anew."
        raise TableError(f"{path} cannot be read as a workbook: {cause}. {cure}") from cause
    if not cells:
        raise TableError(f"{path} is empty: none of its sheets has a cell.")
    lines = [(k + 1, list(map(_cell_text, row))) for k, row in enumerate(cells)]
    header = header_of(path, [row for _, row in lines[: LINES + 1]])
    below = iter([(k, [] if is_blank(row) and k > header.skipped + 1 else row) for k, row in lines])
    which = f"the first of {len(names)}{' that has a table' * (title != names[0])}"
    told = (f"sheet {title!r}, {which}",) if len(names) > 1 else ()
    for block in _rows(path, below, header, rows, ""):
        yield replace(block, notes=(*told, *block.notes))


def _chosen(sheets: Iterable[tuple[str, list[list[Any]]]]) -> tuple[str, list[list[Any]]]:
    """The first sheet that has a table, two rows with two cells, else the first with anything in it."""
    first: tuple[str, list[list[Any]]] = "", []
    for name, cells in sheets:
        counts = [sum(1 for cell in row if cell not in (None, "")) for row in cells]
        if sum(1 for count in counts if count > 1) > 1:
            return name, cells
        if any(counts) and not first[1]:
            first = name, cells
    return first


def _cell_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


# Parquet


def _folder_blocks(path: str, rows: int) -> Iterator[Table]:
    """The Parquet files of a folder, one after the other."""
    files = sorted(
        os.path.join(where, name)
        for where, _, names in os.walk(path)
        for name in names
        if name.lower().endswith(PARQUET)
    )
    if not files:
        raise TableError(f"{path} is a folder without Parquet files. Give the name of a file in it.")
    return _each_file(files, rows)


def _each_file(files: Sequence[str], rows: int) -> Iterator[Table]:
    names: tuple[str, ...] | None = None
    for file in files:
        for block in _parquet_blocks(file, rows):
            names = names or block.names
            if set(names) != set(block.names):
                raise TableError(
                    f"{file} has the columns {listing(block.names)}, but {files[0]} {listing(names)}."
                )
            yield block.only(names)


def _parquet_blocks(path: str, rows: int) -> Iterator[Table]:
    pa, pq = import_pyarrow(path)
    first = 0
    try:
        # or else a whole row group would be read at once
        with pq.ParquetFile(path, buffer_size=CHUNK, pre_buffer=False) as file:
            schema = file.schema_arrow
            names, rows = check_names(path, schema.names), min(rows, max(1, CELLS // max(1, len(schema))))
            if file.metadata.num_rows == 0:
                raise TableError(f"{path} has columns ({listing(names)}) but no rows. Write it with data.")
            is_integer = pa.types.is_integer
            integers = [f.name for f in schema if is_integer(f.type) and f.type != pa.uint64()]
            # a type holds for the whole file, so gaps are looked for first
            for batch in file.iter_batches(rows, columns=integers) if integers else ():
                integers = [name for name in integers if not batch.column(name).null_count]
            for batch in file.iter_batches(rows):
                kinds = [field.name in integers for field in batch.schema]
                columns = {
                    name: _arrow_column(path, pa, name, *column)
                    for name, *column in zip(names, batch.columns, kinds, strict=True)
                }
                yield Table(path, names, columns, None, first, whole=False)
                first += batch.num_rows
    except (pa.ArrowException, OSError) as cause:
        cure = "The file is damaged or of another format; copy or export it again."
        raise TableError(f"{path} cannot be read as Parquet: {cause}. {cure}") from cause


def _arrow_column(path: str, pa: Any, name: str, column: Any, as_integers: bool) -> NDArray[Any]:
    try:
        if pa.types.is_floating(column.type):
            return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if as_integers:
            return column.cast(pa.int64()).to_numpy()
        # as text, so that large ids, dates and decimals keep all their digits
        return objects(column.cast(pa.string()).fill_null("").to_pylist())
    except pa.ArrowException as cause:
        what = f"its type, {column.type}, is neither number nor text"
        raise TableError(f"{path}, column {name!r}: {what}. Convert it or leave it out.") from cause
