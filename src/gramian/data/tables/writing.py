"""Writing a table, at once or block by block, whole or not at all."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gramian.data.atomic import atomic_write
from gramian.data.tables.shared import (
    BLOCK,
    PARQUET,
    WRITTEN,
    check_names,
    import_pyarrow,
    listing,
    suffix_of,
)
from gramian.errors import TableError

# all separators, so that a header never misleads the search for the one in use
MUST_QUOTE = re.compile('[",;|\t\r\n\ufeff]')


def check_written(path: str | os.PathLike[str]) -> None:
    """Refuses what could not be written, before any work: a name that no table has, and one whose package is
    missing."""
    shown = os.fspath(path)
    if not shown.lower().endswith(WRITTEN):
        ends = ", ".join(WRITTEN)
        raise TableError(f"{shown}: the name of a table ends in one of {ends}. Choose such a name.")
    if suffix_of(path) in PARQUET:
        import_pyarrow(shown)


def write_table(path: str | os.PathLike[str], names: Sequence[str], columns: Mapping[str, ArrayLike]) -> None:
    """Write the named columns, whole or not at all. Floats read back exactly; None is written as empty."""
    write_blocks(path, names, [columns])


def write_blocks(
    path: str | os.PathLike[str], names: Sequence[str], blocks: Iterable[Mapping[str, ArrayLike]]
) -> None:
    """`write_table` for columns that come in blocks of rows, one after the other; an exception among them
    leaves the old file as it was."""
    shown, suffix = os.fspath(path), suffix_of(path)
    check_names(shown, names)
    checked = _checked_columns(shown, names, blocks)
    try:
        with atomic_write(path, TableError) as file:
            if suffix in PARQUET:
                _write_parquet(shown, file, checked)
            elif suffix.endswith(".gz"):  # no name and no time inside: equal tables give equal files
                with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                    _write_text(shown, packed, names, checked)
            else:
                _write_text(shown, file, names, checked)
    except UnicodeEncodeError as cause:
        what = f"the character {cause.object[cause.start]!r} cannot be written as UTF-8"
        raise TableError(f"{shown}: {what}. Remove it from the text.") from cause


def _checked_columns(
    path: str, names: Sequence[str], blocks: Iterable[Mapping[str, ArrayLike]]
) -> Iterator[dict[str, NDArray[Any]]]:
    none = True
    for columns in blocks:
        none = False
        unknown = [name for name in names if name not in columns]
        if unknown:
            known = listing(list(columns))
            raise TableError(f"{path}: no column is given for {listing(unknown)}. Given: {known}.")
        arrays = {name: np.asarray(columns[name]) for name in names}
        shapes = {name: column.shape for name, column in arrays.items()}
        if len(set(shapes.values())) > 1 or any(len(shape) != 1 for shape in shapes.values()):
            raise TableError(
                f"{path}: columns must be one-dimensional and of one length, but their shapes are {shapes}."
            )
        for name, column in arrays.items():
            if column.dtype.kind not in "biufMUTO":
                what = f"column {name!r} has type {column.dtype}, which a table cannot hold"
                raise TableError(f"{path}: {what}. Convert it to numbers or text.")
        yield arrays
    if none:
        raise TableError(f"{path}: there are no blocks to write. Give one at least, with no rows if need be.")


def _write_parquet(path: str, file: BinaryIO, blocks: Iterable[dict[str, NDArray[Any]]]) -> None:
    pa, pq = import_pyarrow(path)
    with contextlib.ExitStack() as stack:
        writer = None
        for block in blocks:
            columns = [
                c if c.dtype.kind in "biuf" else pa.array(_cells(c), pa.string()) for c in block.values()
            ]
            table = pa.table(dict(zip(block, columns, strict=True)))
            writer = writer or stack.enter_context(pq.ParquetWriter(file, table.schema))
            for now, before in zip(table.schema, writer.schema, strict=True):
                if now.type != before.type:
                    types = f"{now.type}, in the blocks before {before.type}"
                    cure = "Give it one type in all blocks."
                    raise TableError(f"{path}: column {now.name!r} is of type {types}. {cure}")
            writer.write_table(table)


def _write_text(
    path: str, file: BinaryIO | gzip.GzipFile, names: Sequence[str], blocks: Iterable[dict[str, NDArray[Any]]]
) -> None:
    separator = "\t" if suffix_of(path).startswith(".tsv") else ","
    alone = len(names) == 1  # then an empty cell needs quotes: a blank line is no row

    def quote(cell: str) -> str:
        needed = MUST_QUOTE.search(cell) or (alone and not cell)
        return '"' + cell.replace('"', '""') + '"' if needed else cell

    def write(rows: Iterable[Iterable[str]]) -> None:
        text = "".join(separator.join(row) + "\n" for row in rows)
        if "\0" in text:
            raise TableError(f"{path}: a cell has a NUL character, which a text file cannot hold. Remove it.")
        file.write(text.encode())

    write([map(quote, names)])
    for columns in blocks:
        for start in range(0, len(next(iter(columns.values()))), BLOCK):
            part = [column[start : start + BLOCK] for column in columns.values()]
            cells = [_cells(c) if c.dtype.kind in "biuf" else map(quote, _cells(c)) for c in part]
            write(zip(*cells, strict=True))


def _cells(column: NDArray[Any]) -> list[str]:
    if column.dtype.kind == "M":
        column = column.astype(str)  # ISO dates; tolist would give counts of nanoseconds
    # str of a float is the shortest text that reads back exactly
    return ["" if value is None else str(value) for value in column.tolist()]
