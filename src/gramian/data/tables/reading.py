"""Reading a file in blocks of rows; a whole table is its blocks put together, so there is one parser."""

from __future__ import annotations

import csv
import io
import os
import re
from array import array
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.data.tables.shared import BLOCK, PARQUET, check_names, import_pyarrow, listing, suffix_of
from gramian.data.tables.table import Table, objects
from gramian.data.tables.textbytes import CHUNK, CheckedBytes
from gramian.errors import TableError

CELLS = 2**20  # of a block at most: wide tables have shorter blocks


def read_table(path: str | os.PathLike[str]) -> Table:
    """Read a CSV, tab-separated or Parquet file, by its suffix."""
    blocks = list(read_blocks(path))
    names = blocks[0].names
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name in names}
    lines = [block.lines for block in blocks if block.lines is not None]
    return Table(blocks[0].path, names, columns, np.concatenate(lines) if lines else None)


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
        raise TableError(f"{shown} is a folder. Give the name of a file in it.")
    suffix = suffix_of(path)
    return _parquet_blocks(shown, rows) if suffix in PARQUET else _text_blocks(shown, suffix, rows)


# Text


def _text_blocks(path: str, suffix: str, rows: int) -> Iterator[Table]:
    try:
        with open(path, "rb") as file:
            checked = CheckedBytes(path, file, suffix.endswith(".gz"))
            separator = "\t" if suffix.startswith(".tsv") else _separator(checked.head)
            stream = io.TextIOWrapper(io.BufferedReader(checked, CHUNK), "utf-8-sig", newline="")
            yield from _rows(path, stream, separator, rows)
    except OSError as cause:
        cure = "Check the file and its permissions."
        raise TableError(f"{path} cannot be read: {cause.strerror or cause}. {cure}") from cause


def _rows(path: str, stream: Iterable[str], separator: str, rows: int) -> Iterator[Table]:
    reader = csv.reader(stream, delimiter=separator, strict=True)
    # row after row in one flat list: no million small lists for the garbage collector to walk
    cells: list[str] = []
    lines = array("q")
    start, blank, first = 1, 0, 0
    try:
        names = check_names(path, next(filter(None, reader), []))
        width, start = len(names), reader.line_num + 1
        rows = min(rows, max(1, CELLS // width))

        def block() -> Table:
            columns = {name: objects(cells[j::width]) for j, name in enumerate(names)}
            return Table(path, names, columns, np.array(lines, dtype=np.int64), first, whole=False)

        for row in reader:
            line, start = start, reader.line_num + 1
            if len(row) == width and not blank:
                if len(lines) == rows:
                    yield block()
                    first += rows
                    cells, lines = [], array("q")
                cells += row
                lines.append(line)
            elif not row or (len(row) == 1 < width and not row[0].strip()):
                blank = blank or line  # ignored, provided that no row follows
            elif blank:
                raise TableError(f"{path}, line {blank}: the line is blank, but rows follow. Delete it.")
            else:
                fields = "1 field" if len(row) == 1 else f"{len(row)} fields"
                header = f"the header has {width} (separated by {separator!r})"
                cure = "Add the missing cells (they may be empty)"
                if len(row) > width:
                    cure = "Put cells that contain the separator in double quotes"
                raise TableError(f"{path}, line {line}: {fields}, but {header}. {cure}.")
    except csv.Error as cause:
        if "expected after" in str(cause):
            wrong = "text follows a closing double quote. Write a quote inside a quoted cell twice"
        else:  # the end of the file, or a cell beyond the csv module's limit
            wrong = f"a double quote is opened but not closed ({cause}). Close it"
        raise TableError(f"{path}, line {start}: {wrong}.") from cause
    if not lines:
        raise TableError(f"{path} has a header ({listing(names)}) but no rows. Add data below the header.")
    yield block()


def _separator(raw: bytes) -> str:
    """Comma, semicolon or tab: the most frequent in the header outside quotes; the comma when in doubt."""
    header = re.match(rb'(?:\xef\xbb\xbf)?[\r\n]*((?:"[^"]*"|[^"\r\n]+)*)', raw)
    outside = re.sub(rb'"[^"]*"', b"", header[1] if header else b"")
    return max(",;\t", key=lambda separator: outside.count(separator.encode()))


# Parquet


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
