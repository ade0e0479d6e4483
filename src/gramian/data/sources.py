"""Data that need not fit into memory (memory maps, files, functions that give blocks), as float64 maps.

Engines read rows in blocks, `X[start:stop]`, and single rows, `X[indices]`, and never change them. A map
offers both with constant memory, so a source is brought into that form once: an `np.memmap` that takes a
small part of the memory is copied into it, so that its file may change meanwhile; a larger one of float64 is
taken as it is, and its file must stay as it is; anything else is read in blocks and spooled to a temporary
file that the system removes when the last array on it is gone. It lies in the folder for temporary files (the
environment variable TMPDIR), takes 8 bytes a number, and is read as often as the engine asks, at the speed of
the page cache.

Cost: one pass over the data, two where text becomes categories (the first gathers them); memory of one block.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data import gaps, inputs
from gramian.data.cells import cells_of
from gramian.data.columns import Columns, some_of
from gramian.data.deciding import Seen
from gramian.data.filecolumns import check_needed, features_of, gathered, seeming
from gramian.data.frames import is_frame
from gramian.data.inputs import (
    file_cells,
    numbers_of,
    read_features,
    read_some_targets,
    read_targets,
    reading_of,
)
from gramian.data.maps import copied
from gramian.data.readings import PLAIN, Reading
from gramian.data.spool import Room, Spool
from gramian.data.streams import settled
from gramian.data.tables import NotNumbersError, Table, read_blocks
from gramian.data.tables.quick import NotClean, quick_blocks
from gramian.errors import InputError, InputTypeError, TableError

BLOCK_BYTES = 16 * 2**20  # of a block of a memory map: large enough for the disk, small beside any machine
COPIED = 1 / 8  # of the memory that may be used: what a memory map may take that is copied


@dataclass(frozen=True, eq=False)
class Source:
    """Rows to fit or to predict that stay on disk."""

    X: Array  # (n, d), memory-mapped
    Y: Array | None  # (n, q); None where there is nothing to learn
    columns: Columns
    single: bool = True  # whether y is one column, so that predictions have the shape (n,)
    # which rows these are of those that were given; None: all
    kept: NDArray[np.intp] | None = None
    gaps: bool | None = None  # whether X or Y has NaN; None: nobody has looked

    def part(self, rows: NDArray[np.intp]) -> Source:
        """Some of the rows, in memory, with their targets."""
        Y = None if self.Y is None else self.Y[rows]
        kept = None if self.kept is None else self.kept[rows]
        return replace(self, X=np.asarray(self.X[rows]), Y=Y, kept=kept)


def is_source(X: Any) -> bool:
    """Whether X is for `open_source`: a path, a function that gives blocks, a memory map, or a Source (or an
    iterator, which is refused there)."""
    return isinstance(X, (str, os.PathLike, np.memmap, Source, Iterator)) or (callable(X) and not is_frame(X))


def has_targets(X: Any) -> bool:
    """Whether X is a source whose rows have been read, with their targets beside them."""
    # a frame may have a column of any name
    return is_source(X) and hasattr(X, "part")


def open_source(
    X: Any,
    y: Any = None,
    *,
    columns: Sequence[str] | None = None,
    known: Columns | None = None,
    memory_limit: int | float | str | None = None,
    missing: str = "fill",
    indicators: bool = True,
    declared: Mapping[str, Reading] | None = None,
    labels: Array | None = None,
) -> Source:
    """X, and y where there is one, as a Source.

    X may be
      - an `np.memmap` (n, d), with y an array or a memory map of as many rows;
      - the path of a CSV (also .gz), tab-separated or Parquet file: y names the column of the target (or
        several, in a list), and all others are features, or those named in `columns`; columns of text become
        categories;
      - a function without arguments that gives an iterator of blocks, anew at each call: (X, y) pairs to
        learn from, or X alone to predict;
      - a Source, which is given back.
    With `known`, the columns of a fitted model, the columns of a file are found by their names, and
    categories are coded as they were in the fit. `memory_limit` is for what is held in memory while a source
    is read: a block of its rows (see spool.py). Rows of a fit with gaps are treated as `missing` and
    `indicators` say (see gaps.py), rows without a target are left out; of rows to predict, NaN says what is
    missing. `declared` has readings of columns of a file by their names, where they are not to be found out,
    and `labels` the codes of a file's rows, (n,), NaN where a row has none, in the place of a target.
    """
    if columns is not None and not isinstance(X, (str, os.PathLike)):
        cure = "Give blocks or a memory map with the columns that are to be used."
        raise InputError(f"columns= selects columns of a file by their names. {cure}")
    if isinstance(X, (Source, Iterator)) or (callable(X) and not isinstance(X, np.memmap)):
        if y is not None:
            cure = "Leave y out: a Source holds it, and a function gives (X, y) pairs."
            raise InputError(f"y is given beside a source that has its own. {cure}")
        if isinstance(X, Iterator):
            what = f"X is an iterator ({type(X).__name__}), which can be read only once"
            raise InputTypeError(
                f"{what}. Give a function that returns it, without calling it: fit(blocks), where blocks()"
                " gives a new iterator."
            )
        if isinstance(X, Source):
            return _as_known(X, known)
    room, rule = Room(memory_limit), missing
    of_targets = missing if known is None else "error"  # rows without one are left out of a fit alone
    if isinstance(X, np.memmap):
        source = _from_memmap(X, y, known, room, rule, of_targets)
    elif isinstance(X, (str, os.PathLike)):
        with settled(X, room) as path:
            source = _from_file(path, y, columns, known, room, declared or {})
        source = source if labels is None else replace(source, Y=labels[:, None], gaps=None)
    elif callable(X):
        source = _from_factory(X, known, room, rule, of_targets)
    else:
        cure = "Give a path, an np.memmap, or a function that returns an iterator of blocks."
        raise InputTypeError(f"X is a {type(X).__name__}, which is no source. {cure}")
    return source if known is not None else _without_gaps(source, rule, indicators, room)


def _without_gaps(source: Source, missing: str, indicators: bool, room: Room) -> Source:
    """A source for a fit: rows without a target are left out, and gaps filled."""
    X, Y, columns, kept = source.X, source.Y, source.columns, source.kept
    if source.gaps is False:
        return source
    if Y is not None and gaps.has_gaps(Y):
        room.hold(24 * len(Y), "Leaving rows without a target out", "Raise memory_limit, or drop these rows.")
        absent = np.isnan(Y).all(axis=1)
        if missing == "error" and source.single and absent.any():
            row = int(np.flatnonzero(absent)[0])
            what = f"Input y contains NaN: row {row} ({int(absent.sum())} such in all)"
            raise InputError(f"{what}. Drop these rows, or have them left out: missing='drop'.")
        if absent.all():
            raise InputError("Input y contains NaN in all rows: there is nothing to learn from.")
        if absent.any():
            kept = np.flatnonzero(~absent)
            note = gaps.without_target(int(absent.sum()), len(Y))
            X, Y, columns = _some(X, kept, room), Y[kept], replace(columns, notes=(*columns.notes, note))
    if any(gaps.has_gaps(block) for block in _blocks(X)):
        X, columns, left = gaps.whole_rows(X, columns, missing, indicators, room)
        if left is not None:
            Y, kept = None if Y is None else Y[left], left if kept is None else kept[left]
    return Source(X, Y, columns, source.single, kept)


def _some(X: Array, kept: NDArray[np.intp], room: Room) -> Array:
    """Some of the rows, on disk."""
    with Spool(room) as spool:
        step = max(1, BLOCK_BYTES // (8 * X.shape[1]))
        for start in range(0, len(kept), step):
            spool.add(np.asarray(X[kept[start : start + step]]))
        return spool.mapped()


def _blocks(X: Array) -> Iterator[Array]:
    step = max(1, BLOCK_BYTES // (8 * X.shape[1]))
    for start in range(0, len(X), step):
        yield X[start : start + step]


def open_table(
    path: str | os.PathLike[str],
    target: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """A CSV, tab-separated or Parquet file of any size as a Source: the target's column by name, and all
    others or `columns` as features."""
    if not isinstance(path, (str, os.PathLike)):
        raise InputTypeError(f"path is a {type(path).__name__}. Give the name of a file.")
    room = Room()
    with settled(path, room) as file:
        return _without_gaps(_from_file(file, target, columns, None, room, {}), "fill", True, room)


# Memory maps. -----------------------------------------------------------------------------------------------


def _from_memmap(
    X: NDArray[Any], y: Any, known: Columns | None, room: Room, missing: str, of_targets: str
) -> Source:
    if X.ndim != 2:
        what = f"Expected 2D array, got {X.ndim}D array instead: the memory map X has shape {X.shape}"
        raise InputError(f"{what}. Reshape it to rows and columns.")
    if X.dtype.kind not in "biuf":
        cure = "Give one of real numbers, float64 at best: other types are copied to a file first."
        raise InputError(f"The memory map X has type {X.dtype}. {cure}")
    columns = known or Columns(tuple(f"x{j}" for j in range(X.shape[1])))
    if 0 in X.shape:
        inputs.check_table(np.zeros(X.shape), columns)
    _check_width(X.shape[1], columns)
    Y, single = (None, True) if y is None else _mapped_targets(y, len(X), room, of_targets)
    return Source(_mapped(X, "X", columns.names, room, missing), Y, columns, single)


def _mapped_targets(y: Any, n: int, room: Room, missing: str) -> tuple[Array, bool]:
    mapped = isinstance(y, np.memmap) and y.dtype.kind in "biuf" and y.ndim in (1, 2)
    if not mapped or len(y) != n or y.size == 0:
        return _rows_of_targets(y, n, missing)
    return _mapped(y.reshape(n, -1), "y", None, room, missing), y.ndim == 1


def _rows_of_targets(y: Any, n: int, missing: str) -> tuple[Array, bool]:
    return read_targets(y, n) if missing == "error" else read_some_targets(y, n)


def _mapped(
    values: NDArray[Any], what: str, names: tuple[str, ...] | None, room: Room, missing: str = "error"
) -> Array:
    """`values` (n, d) as float64: a copy in memory where they are small beside what may be used, else
    themselves or a copy on disk. Infinity is refused, and NaN, unless `missing` says otherwise."""
    rows = max(1, BLOCK_BYTES // (8 * values.shape[1]))
    small = 8 * values.size <= COPIED * room.allowed
    here = np.empty(values.shape) if small else None
    spooled = here is None and values.dtype != np.float64
    with Spool(room) if spooled else contextlib.nullcontext() as spool:
        for start in range(0, len(values), rows):
            block = np.asarray(copied(values[start : start + rows], what), dtype=np.float64)
            bad = ~np.isfinite(block) if missing == "error" else np.isinf(block)
            if np.any(bad):
                row, column = np.argwhere(bad)[0]
                where = f"row {start + row}" + f", output {column}" * (names is None and block.shape[1] > 1)
                where += "" if names is None else f", column {names[column]!r}"
                kind = inputs.kind_of(block[row, column])
                raise InputError(f"Input {what} contains {kind}: {where}. Drop such rows, or fill them.")
            if here is not None:
                here[start : start + rows] = block
            elif spool is not None:
                spool.add(block)
        if here is not None:
            return here
        return np.asarray(values) if spool is None else spool.mapped()


def _check_width(width: int, columns: Columns) -> None:
    if width != len(columns.given):
        expected = f"{len(columns.given)} ({some_of(columns.given)})"
        cure = "Give the same columns everywhere."
        raise InputError(f"X has {width} features, but is expected to have {expected}. {cure}")


def _as_known(source: Source, known: Columns | None) -> Source:
    """A Source for a fitted model, which must have the model's columns and its coding of categories."""
    if known is not None:
        if len(source.columns.names) != len(known.names):
            _check_width(source.X.shape[1], known)
        way = "its columns are then found by name and coded as in the fit"
        cure = f"Give the file itself, predict(path): {way}."
        if known.named and source.columns.named and known.names != source.columns.names:
            raise InputError(
                f"The feature names should match those of fit ({', '.join(known.names)}), but are"
                f" {', '.join(source.columns.names)}. {cure}"
            )
        if known.readings != source.columns.readings:
            raise InputError(
                f"The categories of the source are not those of the fit, so their codes differ. {cure}"
            )
    return source


# Files. -----------------------------------------------------------------------------------------------------


def _from_file(
    path: str | os.PathLike[str],
    y: Any,
    columns: Sequence[str] | None,
    known: Columns | None,
    room: Room,
    declared: Mapping[str, Reading],
) -> Source:
    several = isinstance(y, (list, tuple))
    targets = list(y) if several else [y] * (y is not None)
    if not all(isinstance(name, str) for name in targets):
        cure = "Name the column of the file that is the target, or several: y='price'."
        raise InputTypeError(f"y is a {type(y).__name__}, but X is a file. {cure}")
    head, before = next(read_blocks(path, room=room)), room.spooled
    if known is not None:
        check_needed(head, known)
    names = features_of(head, targets, columns) if known is None else known.given
    for name in targets:
        _ = head[name]  # complains, with a suggestion, of a name that is not there
    text = {name for name in (*(names if known is None else ()), *targets) if head.parsed(name) is None}
    text |= set(declared)
    while True:
        found = gathered(path, text, declared, room)
        if known is not None:
            found |= {names[j]: reading for j, reading in known.readings.items()}
        for name in targets:
            if name in found and found[name].categorical:
                what = f"{os.fspath(path)}, column {name!r} holds {found[name].told}, where numbers belong"
                cure = "Labels are classified: GPClassifier, or on the command line --task classification."
                raise TableError(f"{what}. {cure}")
        try:
            X, Y, gapped, notes = _spooled(path, names, targets, found, room)
        except NotNumbersError as error:
            if error.column in text or (known is not None and error.column not in targets):
                raise
            room.spooled = before
            # its first block held numbers alone: once more from the start, which is rare
            text.add(error.column)
            continue
        notes += [f"{name}: {found[name].told}" for name in targets if name in found]
        notes += [note for name in names if name not in text and (note := seeming(head, name))]
        readings = {j: found[name] for j, name in enumerate(names) if name in found}
        made = known or Columns(names, True, readings, targets=tuple(targets), notes=tuple(notes))
        return Source(X, Y, made, not several, gaps=gapped)


def _spooled(
    path: str | os.PathLike[str],
    names: Sequence[str],
    targets: Sequence[str],
    readings: Mapping[str, Reading],
    room: Room,
) -> tuple[Array, Array | None, bool, list[str]]:
    """The features and targets of a file, NaN where a cell is missing, whether one is, and what was done to
    read it."""
    before = room.spooled

    def numbers(table: Table, name: str) -> Array:
        cells = file_cells(table, name, name in readings)
        return numbers_of(readings.get(name, PLAIN), cells, name, table.place)

    def spooled(blocks: Iterator[Table]) -> tuple[Array, Array | None, bool, list[str]]:
        with Spool(room) as X, Spool(room) as Y:
            for table in blocks:
                at = table.place(table.n_rows - 1)
                X.add(np.column_stack([numbers(table, name) for name in names]), at)
                if targets:
                    Y.add(np.column_stack([numbers(table, name) for name in targets]), at)
            return X.mapped(), Y.mapped() if targets else None, X.gaps or Y.gaps, list(table.notes)

    wanted = [name for name in (*names, *targets) if name not in readings]
    try:
        return spooled(quick_blocks(path, wanted, [*readings], room))
    except (NotClean, NotNumbersError):  # ours tells the line
        room.spooled = before
    return spooled(read_blocks(path, room=room))


# Blocks from a function. ------------------------------------------------------------------------------------

Block = tuple[int, Any, Any]  # its number, X, and y or None


def _from_factory(
    make: Callable[[], Any], known: Columns | None, room: Room, missing: str, of_targets: str
) -> Source:
    columns, expected = known, None
    single = with_targets = True
    with Spool(room) as X, Spool(room) as Y:
        for number, X_block, y_block in _each_block(make):
            with _in_block(number, X.rows):
                if columns is None:
                    columns, expected = _columns_of(make, X_block)
                table = _rows(X_block, columns, missing)
                if X.rows == 0:
                    with_targets = y_block is not None
                elif with_targets != (y_block is not None):
                    what = f"it has {'no y' if with_targets else 'a y'}, unlike the blocks before"
                    raise InputError(f"{what}. Give (X, y) pairs, or X alone, in all blocks.")
                if with_targets:
                    targets, one = _rows_of_targets(y_block, len(table), of_targets)
                    if X.rows and (one, targets.shape[1]) != (single, Y.width):
                        before = "(n,)" if single else f"(n, {Y.width})"
                        what = f"y has shape {np.shape(y_block)}, but {before} in the blocks before"
                        raise InputError(f"{what}. Give one shape in all blocks.")
                    single = one
                    Y.add(targets)
                X.add(table)
        if columns is None or X.rows == 0:
            what = "gave no blocks with rows, so there are no data"
            raise InputError(f"The function given as X {what}. Does it return a new iterator at each call?")
        if expected is not None and expected != X.rows:
            rows = f"{expected} rows when its categories were gathered and {X.rows} when it was read"
            cure = "It must return a new iterator over the same blocks at each call."
            raise InputError(f"The function given as X gave {rows}. {cure}")
        return Source(X.mapped(), Y.mapped() if with_targets else None, columns, single)


def _each_block(make: Callable[[], Any]) -> Iterator[Block]:
    blocks = make()
    if isinstance(blocks, (np.ndarray, str, bytes)) or is_frame(blocks) or not hasattr(blocks, "__iter__"):
        cure = "It must return an iterator of blocks: (X, y), or X alone."
        raise InputTypeError(f"The function given as X returned a {type(blocks).__name__}. {cure}")
    for number, block in enumerate(blocks):
        X, y = block if isinstance(block, tuple) and len(block) == 2 else (block, None)
        # nothing is left of a block after a filter, say
        if not (isinstance(getattr(X, "shape", None), tuple) and X.shape[:1] == (0,)):
            yield number, X, y


@contextlib.contextmanager
def _in_block(number: int, first: int) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise type(error)(
            f"Block {number} of the source (row 0 of it is row {first} of all): {error}"
        ) from error


def _columns_of(make: Callable[[], Any], X: Any) -> tuple[Columns, int | None]:
    """The columns that the first block tells of; where it is a DataFrame with more than numbers, how all
    blocks are to be read, and how many rows those have."""
    _, columns = read_features(X, missing="fill")
    if not columns.readings or not is_frame(X):
        return columns, None
    seen = {j: Seen() for j in columns.readings}
    rows = 0
    for number, block, _ in _each_block(make):
        with _in_block(number, rows):
            _check_names(block, columns)
            for j, one in seen.items():
                one.add(cells_of(block[block.columns[j]], columns.names[j]))
                if one.many:
                    reading_of(one, "X", columns.names[j])
            rows += len(block)
    found = {j: reading_of(one, "X", columns.names[j]) for j, one in seen.items()}
    readings = {j: reading for j, reading in found.items() if reading is not None}
    return Columns(columns.names, True, readings), rows


def _rows(X: Any, columns: Columns, missing: str) -> Array:
    if is_frame(X) and columns.named:
        _check_names(X, columns)
    table, _ = read_features(X, columns, missing)
    _check_width(table.shape[1], columns)
    return table


def _check_names(X: Any, columns: Columns) -> None:
    names = tuple(str(c) for c in X.columns) if is_frame(X) else ()
    if names != columns.given:
        given = f"columns {', '.join(names)}" if names else f"a {type(X).__name__} without names"
        raise InputError(
            f"the columns {', '.join(columns.given)} are expected in this order, but it has {given}."
        )
