"""Reading a file in blocks of rows; a whole table is its blocks put together, so there is one parser."""

from __future__ import annotations

import codecs
import contextlib
import csv
import datetime
import io
import os
import re
import reprlib
import zipfile
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from gramian.data.spool import FLOOR, Room
from gramian.data.tables.footer import Damaged, Group, groups_of
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
    ARROW,
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
from gramian.linalg.memory import show_bytes

SHEET_BYTES = 10  # of memory for a byte of a workbook's XML
SHEET_CELL = 100  # and for a cell of a sheet, empty or not
# for one of an OpenDocument sheet, which few bytes may fill a million times: 1 GB was taken for 3 million
REPEATED_CELL = 350
PAGE_BYTES = 2**20  # of a page of Parquet, by custom of those who write it
SMALLER = "Raise memory_limit, or leave columns of long texts out."
_CELL_AT = re.compile(rb'\br="([A-Z]{1,3})([0-9]{1,7})"')  # where a cell of a sheet is


def read_table(path: str | os.PathLike[str], memory_limit: int | float | str | None = None) -> Table:
    """Read a table, by the suffix of its file, while its cells stay within the memory limit."""
    blocks, held, room = [], 0, Room(memory_limit)
    for block in read_blocks(path, room=room):
        held += block.bytes_held
        what = f"{block.place(block.n_rows - 1)}: to hold all cells up to here"
        room.hold(held, what, "Raise memory_limit, or give fewer rows; a pipe may have no end.")
        blocks.append(block)
    names = blocks[0].names
    columns = {name: np.concatenate([block.columns[name] for block in blocks]) for name in names}
    lines = [block.lines for block in blocks if block.lines is not None]
    last = blocks[-1]
    return Table(
        last.path, names, columns, np.concatenate(lines) if lines else None, 0, True, last.comma, last.notes
    )


def read_blocks(path: str | os.PathLike[str], rows: int = BLOCK, room: Room | None = None) -> Iterator[Table]:
    """The rows of a file as tables of at most so many rows, with one block in memory at a time, which is as
    large as `room` allows.

    Errors are told when their block is met. Columns of Parquet have one type in all blocks.
    """
    shown, room = os.fspath(path), room or Room()
    if rows < 1:
        raise TableError(f"{shown}: blocks of {rows} rows cannot be read. Give a number from 1 on.")
    if not os.path.exists(path):
        cure = "Correct the path."
        raise TableError(f"{shown}: there is no such file (looked for {os.path.abspath(path)}). {cure}")
    if os.path.isdir(path):
        return _folder_blocks(shown, rows, room)
    suffix = suffix_of(path, SUFFIXES)
    if suffix in PARQUET:
        return _parquet_blocks(shown, rows, room)
    if suffix in ARROW:
        return _arrow_blocks(shown, rows, room)
    return _sheet_blocks(shown, rows, room) if suffix in SHEETS else _text_blocks(shown, suffix, rows, room)


# Text


def _text_blocks(path: str, suffix: str, rows: int, room: Room) -> Iterator[Table]:
    try:
        with open(path, "rb") as file:
            checked = CheckedBytes(path, file, suffix.endswith(".gz"), room)
            head = checked.head.decode(errors="ignore").removeprefix("\ufeff")
            separator = "\t" if suffix.startswith(".tsv") else separator_of(head)
            stream = io.TextIOWrapper(io.BufferedReader(checked, CHUNK), "utf-8-sig", newline="")
            lines = _lines(path, csv_reader(stream, separator), checked)
            header = None
            try:
                found = first_lines(head, separator, checked.is_all)
                header = header_of(path, found or [row for _, row in islice(lines, 1)])
                sign = f" (separated by {separator!r})"
                for block in _rows(path, lines, header, rows, sign, room, lambda: checked.passed):
                    notes = (*checked.notes, *block.notes)
                    yield replace(block, comma=leaves_commas(head, separator), notes=notes)
            except _LongCell as cause:
                # the parser does not say which cell it was: the line is read once more
                file.seek(0)
                again = CheckedBytes(path, file, suffix.endswith(".gz"), room)
                text = io.TextIOWrapper(io.BufferedReader(again, CHUNK), "utf-8-sig", newline="")
                raise _long_cell(path, text, cause.line, separator, header) from cause
    except OSError as cause:
        cure = "Check the file and its permissions."
        raise TableError(f"{path} cannot be read: {cause.strerror or cause}. {cure}") from cause


def _lines(path: str, reader: Any, checked: CheckedBytes) -> Iterator[tuple[int, list[str]]]:
    """The lines of a text with their numbers, where each begins."""
    start = 1
    try:
        for row in reader:
            yield start, row
            start = reader.line_num + 1
            checked.begins(start)
    except csv.Error as cause:
        if "expected after" in str(cause):
            wrong = "text follows a closing double quote. Write a quote inside a quoted cell twice"
        elif "field limit" in str(cause) or "field larger" in str(cause):
            raise _LongCell(start) from cause
        else:  # the end of the file
            wrong = f"a double quote is opened but not closed ({cause}). Close it"
        raise TableError(f"{path}, line {start}: {wrong}.") from cause


class _LongCell(Exception):
    """A cell beyond the csv module's limit in the row that begins at `line`."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


def _long_cell(
    path: str, text: io.TextIOBase, line: int, separator: str, header: Header | None
) -> TableError:
    """What to say of the cell of that row that is too long."""
    most = csv.field_size_limit()
    for _ in range(line - 1):
        text.readline()
    place, length, quoted, opened = 0, 0, False, False  # opened: whether the cell begins with a quote
    for c in iter(lambda: text.read(1), ""):
        ends = not quoted and c in (separator, "\r", "\n")
        if ends and length > most:
            break
        if ends:
            place, length, opened = place + 1, 0, False
        else:
            opened = opened or (c == '"' and not length)
            quoted = quoted != (c == '"' and opened)
            length += 1
        if quoted and length > 2 * most:  # who knows where it ends
            break
    given = None if header is None or place not in header.places else header.places.index(place)
    named = "" if given is None or header is None else f" ({header.names[given]!r})"
    where = f"{path}, line {line}, column {place + 1}{named}"
    limit = f"{most:,} characters are the most that is read of one"
    if quoted:
        return TableError(
            f"{where}: a double quote is opened and not closed within {length:,} characters, but {limit}."
            " Close it, or shorten the cell."
        )
    return TableError(f"{where}: a cell of {length:,} characters, but {limit}. Shorten it, or drop the row.")


def _rows(
    path: str,
    numbered: Iterator[tuple[int, list[str]]],
    header: Header,
    rows: int,
    sign: str,
    room: Room,
    passed: Callable[[], int],
) -> Iterator[Table]:
    """The rows below the header; lines with nothing in them are passed over. `passed` says how many bytes of
    the file were read so far."""
    names, places, width = header.names, header.places, header.width
    # row after row in one flat list: no million small lists for the garbage collector to walk
    cells: list[str] = []
    lines = array("q")
    first, blank, between = 0, 0, 0  # rows before this block; blank lines since the last row, and before it
    comments, foot = 0, list[tuple[int, list[str]]]()  # what may stand below the rows, if no row follows
    rows = min(rows, max(1, room.cells // len(names)))
    whole = len(places) == width
    for _ in islice(numbered, header.above):
        pass
    most, start = room.text, passed()

    def block() -> Table:
        columns = {name: objects(cells[j :: len(names)]) for j, name in enumerate(names)}
        skipped = [f"{between} empty line{'s' * (between > 1)} passed over"] if between else []
        if comments:
            skipped.append(f"{comments} line{'s' * (comments > 1)} with # in front passed over")
        words = [next(cell.strip() for cell in row if cell.strip()) for _, row in foot if not is_blank(row)]
        if words:
            what = f"line{'s' * (len(words) > 1)} below the rows left out"
            skipped.append(f"{len(words)} {what} ({', '.join(map(reprlib.repr, words))})")
        at = np.array(lines, dtype=np.int64)
        return Table(path, names, columns, at, first, False, False, (*header.notes, *skipped))

    def rejoined() -> Iterator[tuple[int, list[str]]]:
        """The lines, with those that seemed to stand below the rows before a row that follows."""
        nonlocal comments
        for line, row in numbered:
            if not foot and len(row) == width and row and row[0] and row[0][0] in "0123456789-+.":
                yield line, row  # most rows, at no cost
            elif len(row) != width and row and row[0].startswith("#"):
                comments += 1
            elif row and (is_foot(row, width) or (len(row) == width and is_blank(row))):
                foot.append((line, row))  # empty cells may part the rows from a sentence
            elif foot and not is_blank(row):
                held = foot.copy()
                foot.clear()
                yield from held
                yield line, row
            else:
                yield line, row
        if all(is_blank(row) for _, row in foot):
            held = foot.copy()
            foot.clear()
            yield from held

    for line, row in rejoined():
        if len(row) == width and row:
            if len(lines) == rows or (passed() - start > most and lines):
                yield block()
                first += len(lines)
                cells, lines, start = [], array("q"), passed()
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


def _sheet_blocks(path: str, rows: int, room: Room) -> Iterator[Table]:
    """The first sheet of a workbook that has cells."""
    calamine = import_calamine(path)
    with open(path, "rb") as file:
        head = file.read(1024)
    if head[:4] not in (b"PK\x03\x04", b"\xd0\xcf\x11\xe0") and len(head.split(b"\0", 1)[0]) == len(head) > 0:
        web = re.match(
            rb"\s*(<\?xml|<!doctype|<html|<table)", head.removeprefix(codecs.BOM_UTF8), re.IGNORECASE
        )
        what = "a web page" if web else "text"
        cure = "Open it in a spreadsheet and save it as .xlsx" if web else "Rename it so that it ends in .csv"
        raise TableError(f"{path} is {what} under the name of a workbook. {cure}.")
    _check_workbook(path, room)
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
    for block in _rows(path, below, header, rows, "", room, lambda: 0):
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


def _check_workbook(path: str, room: Room) -> None:
    """Refuses a workbook that is too large unpacked: it is read at once. It is a zip file of XML; what its
    parts say of their sizes need not be true, so that they are unpacked, piece by piece, and counted. A
    sheet takes memory for each cell up to its last row and column, of which a few bytes may tell."""
    size, cells, repeated = os.path.getsize(path), 0, 0
    if zipfile.is_zipfile(path):
        size = 0
        try:
            with zipfile.ZipFile(path) as book:
                for part in book.infolist():
                    part.file_size = 2**62  # to the end of what is packed
                    rows = columns = 0
                    before, sheet = b"", _Repeats() if part.filename == "content.xml" else None
                    with book.open(part) as file:
                        while (chunk := file.read(CHUNK)) and SHEET_BYTES * size <= max(room.allowed, FLOOR):
                            size += len(chunk)
                            for letters, row in _CELL_AT.findall(before[-20:] + chunk):
                                rows, columns = max(rows, int(row)), max(columns, _column_number(letters))
                            before = chunk
                            if sheet is not None and REPEATED_CELL * sheet.cells <= max(room.allowed, FLOOR):
                                sheet.read(chunk)
                    cells = max(cells, rows * columns)
                    repeated = repeated if sheet is None else sheet.cells
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as cause:
            cure = "The file is damaged or of another format; save it anew."
            raise TableError(f"{path} cannot be read as a workbook: {cause}. {cure}") from cause
    cure = "Raise memory_limit, or save the sheet as CSV, which is read in blocks."
    what = f"{path}: a workbook of {show_bytes(size)} or more, unpacked, which is read at once,"
    room.hold(SHEET_BYTES * size, what, cure)
    needed, count = max((SHEET_CELL * cells, cells), (REPEATED_CELL * repeated, repeated))
    room.hold(needed, f"{path}: a sheet of {count:,} cells up to its last row and column", cure)


class _Repeats:
    """Cells of the largest sheet of an OpenDocument file up to its last row and column: one row or cell that
    is written down may stand for a million of them. What is empty up to the end of a sheet, as programs write
    it, takes nothing."""

    def __init__(self) -> None:
        self.cells = self._rows = self._columns = self._row = self._column = 0
        self._times, self._filled = 1, False
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler, self._parser.EndElementHandler = self._begin, self._end

    def read(self, chunk: bytes) -> None:
        with contextlib.suppress(expat.ExpatError):  # who reads the file says what is wrong with it
            self._parser.Parse(chunk)

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if name == "table:table":
            self._rows = self._columns = self._row = 0
        elif name == "table:table-row":
            self._times = _count(attributes, "table:number-rows-repeated")
            self._column, self._filled = 0, False
        elif name in ("table:table-cell", "table:covered-table-cell"):
            self._column += _count(attributes, "table:number-columns-repeated")
            if "office:value-type" in attributes:
                self._filled, self._columns = True, max(self._columns, self._column)
        elif name == "text:p":
            self._filled, self._columns = True, max(self._columns, self._column)

    def _end(self, name: str) -> None:
        if name == "table:table-row":
            self._row += self._times
            if self._filled:
                self._rows = self._row
                self.cells = max(self.cells, self._rows * self._columns)


def _count(attributes: dict[str, str], name: str) -> int:
    given = attributes.get(name, "1")
    return int(given) if given.isdecimal() and len(given) < 19 else 1


def _column_number(letters: bytes) -> int:
    """Of the column A, B, ..., Z, AA, ..., from 1 on."""
    number = 0
    for letter in letters:
        number = 26 * number + letter - 64
    return number


def _cell_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


# Parquet


def _folder_blocks(path: str, rows: int, room: Room) -> Iterator[Table]:
    """The Parquet files of a folder, one after the other."""
    files = sorted(
        os.path.join(where, name)
        for where, _, names in os.walk(path)
        for name in names
        if name.lower().endswith(PARQUET)
    )
    if not files:
        raise TableError(f"{path} is a folder without Parquet files. Give the name of a file in it.")
    return _each_file(files, rows, room)


def _each_file(files: Sequence[str], rows: int, room: Room) -> Iterator[Table]:
    names: tuple[str, ...] | None = None
    for file in files:
        for block in _parquet_blocks(file, rows, room):
            names = names or block.names
            if set(names) != set(block.names):
                raise TableError(
                    f"{file} has the columns {listing(block.names)}, but {files[0]} {listing(names)}."
                )
            yield block.only(names)


def _parquet_blocks(path: str, rows: int, room: Room) -> Iterator[Table]:
    pa, pq = import_pyarrow(path)
    first = 0
    try:
        said = int(pq.read_metadata(path).num_rows)  # tells of files that are none before it is looked closer
        groups = groups_of(path)
        what = f"Reading {path}, one page of each column at a time,"
        room.hold(3 * _largest_pages(groups), what, SMALLER)
        # their texts are there once each, however many rows have them
        listed = _listed(groups)
        # a buffer, or else a whole row group would be read at once
        with pq.ParquetFile(path, buffer_size=CHUNK, pre_buffer=False, read_dictionary=listed) as file:
            schema = file.schema_arrow
            names = check_names(path, schema.names)
            rows = min(rows, max(1, room.cells // len(schema)), _rows_of_groups(groups, room))
            if said == 0:
                raise TableError(f"{path} has columns ({listing(names)}) but no rows. Write it with data.")
            is_integer = pa.types.is_integer
            integers = [f.name for f in schema if is_integer(f.type) and f.type != pa.uint64()]
            # a type holds for the whole file, so gaps are looked for first
            for batch in file.iter_batches(rows, columns=integers) if integers else ():
                integers = [name for name in integers if not batch.column(name).null_count]
            for batch in file.iter_batches(rows):
                batch.validate(full=True)  # texts that are none, and numbers of texts that are not there
                yield _of_batch(path, pa, names, batch, integers, first, room)
                first += batch.num_rows
            if first != said:
                raise Damaged(f"it has {first:,} rows, and says {said:,}")
    # names that are no text are met by pyarrow as others' errors
    except (pa.ArrowException, OSError, Damaged, UnicodeDecodeError, KeyError) as cause:
        cure = "The file is damaged or of another format; copy or export it again."
        raise TableError(f"{path} cannot be read as Parquet: {cause}. {cure}") from cause


def _of_batch(
    path: str, pa: Any, names: tuple[str, ...], batch: Any, integers: Sequence[str], first: int, room: Room
) -> Table:
    # as text a cell is there again, as Python's own
    what = f"{path}, row {first + batch.num_rows}: a block of {batch.num_rows:,} rows"
    room.hold(3 * batch.nbytes, what, SMALLER)
    kinds = [field.name in integers for field in batch.schema]
    columns = {
        name: _arrow_column(path, pa, name, *column)
        for name, *column in zip(names, batch.columns, kinds, strict=True)
    }
    return Table(path, names, columns, None, first, whole=False)


def _arrow_blocks(path: str, rows: int, room: Room) -> Iterator[Table]:
    """The record batches of a file of Arrow's, which Feather is, or of a stream of them."""
    pa, _ = import_pyarrow(path)
    first = 0
    try:
        with pa.memory_map(path) as source:
            if bytes(source.read(6)) == b"ARROW1":
                file = pa.ipc.open_file(source)
                batches = [file.get_batch(k) for k in range(file.num_record_batches)]
            else:
                source.seek(0)
                file = pa.ipc.open_stream(source)
                batches = list(file)
            names = check_names(path, file.schema.names)
            if not sum(batch.num_rows for batch in batches):
                raise TableError(f"{path} has columns ({listing(names)}) but no rows. Write it with data.")
            is_integer = pa.types.is_integer
            integers = [
                field.name
                for k, field in enumerate(file.schema)
                if is_integer(field.type) and not any(batch.column(k).null_count for batch in batches)
            ]
            rows = min(rows, max(1, room.cells // len(names)))
            for batch in batches:
                for at in range(0, batch.num_rows, rows):
                    part = batch.slice(at, rows)
                    yield _of_batch(path, pa, names, part, integers, first, room)
                    first += part.num_rows
    except (pa.ArrowException, OSError) as cause:
        cure = "The file is damaged or of another format; write it again, or convert it to Parquet."
        raise TableError(f"{path} cannot be read as Arrow's or Feather: {cause}. {cure}") from cause


def _listed(groups: Sequence[Group]) -> list[str]:
    """The columns of text that are dictionaries and numbers of their entries, of four bytes at most. (One
    that grew too long for whoever wrote it is followed by plain text.)"""
    found = {
        column.path
        for group in groups
        for column in group.columns
        if column.is_text and column.listed and column.rest <= 4 * column.values + PAGE_BYTES // 16
    }
    return sorted(found)


def _largest_pages(groups: Sequence[Group]) -> int:
    """How many bytes the largest page of each column has together, since a page is unpacked whole."""
    sizes = (sum(max(column.listed, column.largest) for column in group.columns) for group in groups)
    return max(sizes, default=0)


def _rows_of_groups(groups: Sequence[Group], room: Room) -> int:
    """How many rows a block may have by what the file says of its texts: those of the group that has most."""
    most = max((group.size / max(1, group.rows) for group in groups), default=1.0)
    return max(1, int(room.text / max(most, 1.0)))


def _arrow_column(path: str, pa: Any, name: str, column: Any, as_integers: bool) -> NDArray[Any]:
    try:
        if pa.types.is_floating(column.type):
            return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
        if as_integers:
            return column.cast(pa.int64()).to_numpy()
        if pa.types.is_dictionary(column.type):
            texts = column.dictionary.cast(pa.string()).fill_null("").to_pylist()
            return objects([*texts, ""])[column.indices.cast(pa.int64()).fill_null(len(texts)).to_numpy()]
        # as text, so that large ids, dates and decimals keep all their digits
        return objects(column.cast(pa.string()).fill_null("").to_pylist())
    except pa.ArrowException as cause:
        what = f"its type, {column.type}, is neither number nor text"
        raise TableError(f"{path}, column {name!r}: {what}. Convert it or leave it out.") from cause
