"""Tables in pieces that stay where they are: Parquet folders, Arrow data sets, arrays and frames of Dask's.

A piece says where some rows lie and how they are read; whoever works on it loads it there:

    ArrowPiece     a row group of a file of an Arrow data set, or a slice of one
    HeldPiece      a part of a Dask collection, which the workers keep in memory (persist)
    ArrayPiece     rows of an array that is here, which travel

No piece has more rows than `piece_rows` says for so many in all, wherever it lies, so that a lost one costs
little and bits do not depend on who works. Columns are numbers: text and dates are read by a fit without
pieces (data/sources.py), which has to see all cells before it can say what they are. Rows without a target
are left out where they lie. A first pass counts rows, gaps and infinities; that is all that is asked before a
fit.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data.columns import Columns, some_of
from gramian.data.tables.shared import PARQUET, import_pyarrow
from gramian.errors import InputError, InputTypeError, TableError
from gramian.linalg.executor import Executor, Piece

MOST_ROWS = 2**16  # of a piece: 0.13 Tflops with 1,000 features, some seconds of a core
MANY = 1024  # pieces, beyond which each has more rows: the sums of all are added up in one place
ARRAY_BYTES = 4 * 2**20  # of a piece that travels
HEAD = 512  # rows that are brought here to begin with


# Pieces. ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """How cells become rows: which columns, and which rows are left out."""

    names: tuple[str, ...]
    targets: tuple[str, ...]
    drop: bool = False  # rows with a gap in X as well
    every: bool = False  # no row at all is left out: rows to predict

    def rows(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """Without the rows that are left out."""
        if self.every:
            return X, Y
        kept = ~np.isnan(Y).any(axis=1)
        if self.drop:
            kept &= ~np.isnan(X).any(axis=1)
        return (X, Y) if kept.all() else (X[kept], Y[kept])


@dataclass(frozen=True, eq=False)
class TablePiece(Piece):
    """Rows start to stop of a part of a table; fewer where some are left out."""

    rule: Rule
    start: int
    stop: int
    of: int = 0  # rows of the part
    left: int = -1  # rows that are not left out, once that is known

    @property
    def rows(self) -> int:
        return self.stop - self.start if self.left < 0 else self.left

    @property
    def whole(self) -> int:
        return self.of

    def load(self, held: Any = None) -> tuple[Array, Array]:
        X, Y = self.cells(held)
        return self.rule.rows(X[self.start : self.stop], Y[self.start : self.stop])

    def cells(self, held: Any) -> tuple[Array, Array]:
        """All of the part, as numbers."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class ArrowPiece(TablePiece):
    """Of a fragment of an Arrow data set: one row group of a Parquet file."""

    fragment: Any = None
    schema: Any = None

    def cells(self, held: Any) -> tuple[Array, Array]:
        return _read_fragment(_Fragment(self.fragment, self.schema, self.rule))


class _Fragment:
    """A fragment as a key: where it lies, when it was written, and which columns are read."""

    def __init__(self, fragment: Any, schema: Any, rule: Rule) -> None:
        self.fragment, self.schema, self.rule = fragment, schema, rule
        groups = tuple(group.id for group in getattr(fragment, "row_groups", None) or ())
        try:
            changed = os.stat(fragment.path).st_mtime_ns
        except OSError:  # not a file of this machine
            changed = 0
        self.key = fragment.path, changed, groups, rule.names, rule.targets

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Fragment) and self.key == other.key


@lru_cache(maxsize=2)  # the pieces of a row group follow each other
def _read_fragment(given: _Fragment) -> tuple[Array, Array]:
    rule = given.rule
    with _whole_file(given.fragment.path):
        table = given.fragment.to_table(
            schema=given.schema, columns=[*rule.names, *rule.targets], use_threads=False
        )
    X = np.empty((table.num_rows, len(rule.names)))
    Y = np.empty((table.num_rows, len(rule.targets)))
    for out, names in ((X, rule.names), (Y, rule.targets)):
        for j, name in enumerate(names):
            out[:, j] = table.column(name).to_numpy()  # null is NaN
    X.flags.writeable = Y.flags.writeable = False  # they are kept
    return X, Y


@dataclass(frozen=True, eq=False)
class HeldPiece(TablePiece):
    """Of a part of a Dask collection."""

    part: Any = None  # Delayed or a Future: (X, Y) of the part

    @property
    def held(self) -> Any:
        return self.part

    def described(self) -> HeldPiece:
        return replace(self, part=None)

    def cells(self, held: Any) -> tuple[Array, Array]:
        if held is None:
            if self.part is None:
                raise InputError(
                    "The rows of this fit were kept by the workers of a Dask cluster, and are not here."
                )
            held = _brought(self.part)
        return held


def _brought(part: Any) -> Any:
    """A part in this process: without a cluster, its graph is computed here."""
    return part.compute(scheduler="synchronous") if hasattr(part, "compute") else part.result()


@dataclass(frozen=True, eq=False)
class ArrayPiece(Piece):
    """Rows that travel."""

    X: Array
    Y: Array

    @property
    def rows(self) -> int:
        return len(self.X)

    def load(self, held: Any = None) -> tuple[Array, Array]:
        return np.asarray(self.X, dtype=np.float64), np.asarray(self.Y, dtype=np.float64)


def array_pieces(X: Array, Y: Array) -> tuple[ArrayPiece, ...]:
    """Rows that are here, in pieces that may travel."""
    size = int(np.clip(ARRAY_BYTES // (8 * (X.shape[1] + Y.shape[1])), 1, MOST_ROWS))
    return tuple(ArrayPiece(X[a : a + size], Y[a : a + size]) for a in range(0, len(X), size))


@dataclass(frozen=True, eq=False)
class Picked(Piece):
    """Some rows of a piece."""

    piece: Piece
    at: NDArray[np.intp]

    @property
    def rows(self) -> int:
        return len(self.at)

    @property
    def held(self) -> Any:
        return self.piece.held

    def described(self) -> Picked:
        return replace(self, piece=self.piece.described())

    def load(self, held: Any = None) -> tuple[Array, Array]:
        X, Y = self.piece.load(held)
        return X[self.at], Y[self.at]


def loaded(piece: Piece, state: None) -> tuple[Array, Array]:
    """The rows themselves: of few alone."""
    return piece.load()


# Tables. ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pieces:
    """A table in pieces."""

    pieces: tuple[Piece, ...]
    columns: Columns
    single: bool
    head: tuple[Array, Array]  # the first rows

    @property
    def n(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    @property
    def shape(self) -> tuple[int, int]:
        return self.n, len(self.columns.names)

    def some(self, rows: NDArray[np.intp], executor: Executor) -> tuple[Array, Array]:
        """Some rows, by their numbers in order, brought here."""
        items, first = [], 0
        for piece in self.pieces:
            low, high = np.searchsorted(rows, (first, first + piece.rows))
            if high > low:
                items.append(Picked(piece, rows[low:high] - first))
            first += piece.rows
        parts = list(executor.each(loaded, items))
        return np.concatenate([X for X, _ in parts]), np.concatenate([Y for _, Y in parts])


def is_far(X: Any) -> bool:
    """Whether X is a table in pieces: a Dask collection, or an Arrow data set."""
    return is_dask_array(X) or is_dask_frame(X) or is_dataset(X)


def is_dask_array(X: Any) -> bool:
    return hasattr(X, "dask") and hasattr(X, "chunks") and hasattr(X, "rechunk")


def is_dask_frame(X: Any) -> bool:
    return (
        hasattr(X, "dask") and hasattr(X, "npartitions") and hasattr(X, "to_delayed") and hasattr(X, "dtypes")
    )


def is_dataset(X: Any) -> bool:
    return hasattr(X, "get_fragments") and hasattr(X, "schema") and hasattr(X, "scanner")


def is_parquet(X: Any) -> bool:
    """Whether X is the path of a Parquet file, or of a folder."""
    if not isinstance(X, (str, os.PathLike)):
        return False
    return os.path.isdir(X) or os.fspath(X).lower().endswith(PARQUET)


def in_pieces(X: Any, y: Any, executor: Executor, missing: str, known: Columns | None = None) -> Pieces:
    """X, with its targets where there are some, as pieces; `known`: the columns of a model whose rows are
    to be predicted, of which none is left out."""
    if is_parquet(X):
        X = dataset_of(X)
    if is_dataset(X):
        found = _of_dataset(X, y, known, missing)
    elif is_dask_frame(X):
        found = _of_frame(X, y, known, missing, executor)
    elif is_dask_array(X):
        found = _of_array(X, y, known, missing, executor)
    else:
        raise InputTypeError(f"X is a {type(X).__name__}, which has no pieces.")
    return found if known is not None else _counted(found, executor, missing)


def dataset_of(path: str | os.PathLike[str]) -> Any:
    """A Parquet file or a folder of them as an Arrow data set."""
    import_pyarrow(os.fspath(path))
    import pyarrow.dataset

    if not os.path.exists(path):
        raise InputError(f"{os.fspath(path)}: there is no such file or folder. Correct the path.")
    with _whole_file(path):
        return pyarrow.dataset.dataset(
            os.fspath(path), format="parquet", exclude_invalid_files=os.path.isdir(path)
        )


@contextlib.contextmanager
def _whole_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Within it, what Arrow says of a file that is damaged is told with its name."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as cause:
        cure = "The file is damaged or of another format; copy or export it again."
        raise TableError(f"{os.fspath(path)} cannot be read as Parquet: {cause}. {cure}") from cause


def _rule(names: Sequence[str], y: Any, known: Columns | None, missing: str) -> tuple[Rule, bool]:
    """Which columns of these are features and which targets, and whether there is one target."""
    if known is not None:
        absent = next((name for name in known.given if name not in names), None)
        if absent is not None:
            raise InputError(f"X has no column {absent!r}; the model was fitted with {some_of(known.given)}.")
        return Rule(known.given, (), every=True), True
    several = isinstance(y, (list, tuple))
    targets = tuple(y) if several else (y,)
    if y is None or not all(isinstance(name, str) for name in targets):
        raise InputTypeError(
            f"y is {y!r}, but X is a table in pieces: name its column, y='price', or several in a list."
        )
    absent = next((name for name in targets if name not in names), None)
    if absent is not None:
        raise InputError(f"X has no column {absent!r} for the target. It has: {some_of(names)}.")
    features = tuple(name for name in names if name not in targets)
    if not features:
        raise InputError(f"X has no column left to learn from, beside {some_of(targets)}.")
    return Rule(features, targets, missing == "drop"), not several


def _refuse_words(kinds: dict[str, str]) -> None:
    bad = next(iter(kinds), None)
    if bad is not None:
        raise InputError(
            f"Column {bad!r} holds {kinds[bad]}, and columns of a table in pieces are numbers: what words and"
            " dates mean is decided after all of them were seen. Code them as numbers first, or fit without"
            " client= from a file, which is read on this machine."
        )


def piece_rows(rows: int) -> int:
    """The most that a piece has, of so many rows in all."""
    size = MOST_ROWS
    while rows > MANY * size:
        size *= 2
    return size


def _slices(rows: int, most: int) -> Iterator[tuple[int, int]]:
    for start in range(0, rows, most):
        yield start, min(start + most, rows)


def _of_dataset(dataset: Any, y: Any, known: Columns | None, missing: str) -> Pieces:
    import pyarrow.types as types

    rule, single = _rule(dataset.schema.names, y, known, missing)
    fields = [dataset.schema.field(name) for name in (*rule.names, *rule.targets)]
    is_number = (types.is_integer, types.is_floating, types.is_boolean)
    _refuse_words({f.name: str(f.type) for f in fields if not any(test(f.type) for test in is_number)})
    found: list[tuple[Any, int]] = []
    for fragment in sorted(dataset.get_fragments(), key=lambda one: one.path):
        with _whole_file(fragment.path):
            split = fragment.split_by_row_group() if hasattr(fragment, "split_by_row_group") else [fragment]
            for group in split:
                groups = getattr(group, "row_groups", None)
                rows = group.count_rows() if groups is None else sum(one.num_rows for one in groups)
                found.append((group, rows))
    most = piece_rows(sum(rows for _, rows in found))
    pieces = [
        ArrowPiece(rule, *ends, rows, fragment=group, schema=dataset.schema)
        for group, rows in found
        for ends in _slices(rows, most)
    ]
    if not pieces:
        raise InputError("X is a data set without rows.")
    columns = known or Columns(rule.names, True, targets=rule.targets)
    return Pieces(tuple(pieces), columns, single, _first_rows(pieces))


def _of_frame(frame: Any, y: Any, known: Columns | None, missing: str, executor: Executor) -> Pieces:
    import dask

    names = [str(name) for name in frame.columns]
    rule, single = _rule(names, y, known, missing)
    wanted = [*rule.names, *rule.targets]
    kinds = {
        str(name): np.dtype(kind) if isinstance(kind, np.dtype) else kind
        for name, kind in frame.dtypes.items()
    }
    _refuse_words(
        {name: str(kinds[name]) for name in wanted if getattr(kinds[name], "kind", "O") not in "biuf"}
    )
    parts = [dask.delayed(_cells_of_frame)(part, rule) for part in parts_of(frame)]
    return _held(
        parts, None, rule, single, known or Columns(rule.names, True, targets=rule.targets), executor
    )


def parts_of(frame: Any) -> list[Any]:
    """The parts of a Dask frame, as many as it says it has: optimised, small ones would be joined."""
    return list(frame.to_delayed(optimize_graph=False))


def _cells_of_frame(frame: Any, rule: Rule) -> tuple[Array, Array]:
    X = np.column_stack([frame[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in rule.names])
    if not rule.targets:
        return X, np.empty((len(X), 0))
    return X, np.column_stack(
        [frame[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in rule.targets]
    )


def _of_array(X: Any, y: Any, known: Columns | None, missing: str, executor: Executor) -> Pieces:
    import dask

    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise InputError(
            f"X is a Dask array of {X.ndim} dimensions of {X.dtype}. Give rows and columns of numbers."
        )
    if np.isnan(X.shape[0]):
        X = X.compute_chunk_sizes()
    X = X.rechunk({1: -1})
    names = tuple(f"x{j}" for j in range(X.shape[1]))
    blocks, single = list(X.to_delayed()[:, 0]), True
    rows = [int(size) for size in X.chunks[0]]
    if known is not None:
        if len(names) != len(known.given):
            raise InputError(f"X has {len(names)} columns, and the model was fitted with {len(known.given)}.")
        targets: list[Any] = [None] * len(blocks)
        q = 0
    else:
        targets, single, q = _targets_of(y, X)
    rule = Rule(names, tuple(f"y{k}" for k in range(q)), missing == "drop", every=known is not None)
    parts = [
        dask.delayed(_cells_of_array)(block, target) for block, target in zip(blocks, targets, strict=True)
    ]
    return _held(parts, rows, rule, single, known or Columns(names), executor)


def _targets_of(y: Any, X: Any) -> tuple[list[Any], bool, int]:
    """The targets beside the blocks of X, whether they are one column, and how many they are."""
    if y is None:
        raise InputError("The target y is missing. Give fit(X, y).")
    if not is_dask_array(y):
        series = hasattr(y, "to_dask_array")
        y = y.to_dask_array().compute_chunk_sizes() if series else np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2) or len(y) != len(X):
        raise InputError(f"X has {len(X):,} rows, and y the shape {y.shape}. Give one target a row.")
    single, q = y.ndim == 1, 1 if y.ndim == 1 else int(y.shape[1])
    ends = np.cumsum((0, *X.chunks[0]))
    if not is_dask_array(y):
        return [y[a:b] for a, b in pairwise(ends)], single, q
    y = y.rechunk((X.chunks[0],) if single else (X.chunks[0], (q,)))
    return list(y.to_delayed().ravel()), single, q


def _cells_of_array(X: Any, y: Any) -> tuple[Array, Array]:
    X = np.ascontiguousarray(X, dtype=np.float64)
    Y = np.empty((len(X), 0)) if y is None else np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    return X, Y


def _held(
    parts: list[Any], rows: list[int] | None, rule: Rule, single: bool, columns: Columns, executor: Executor
) -> Pieces:
    """Parts of a collection, kept by the workers from now on."""
    kept = executor.kept(parts)
    if rows is None:
        every = replace(rule, every=True)  # nothing is left out here
        whole = [HeldPiece(every, 0, np.iinfo(np.int64).max, part=part) for part in kept]
        rows = list(executor.each(_length, whole))
    most = piece_rows(sum(rows))
    pieces = [
        HeldPiece(rule, *ends, n, part=part)
        for part, n in zip(kept, rows, strict=True)
        for ends in _slices(n, most)
    ]
    if not pieces:
        raise InputError("X is a collection without rows.")
    first = next(executor.each(loaded, [Picked(pieces[0], np.arange(min(HEAD, pieces[0].rows)))]))
    return Pieces(tuple(pieces), columns, single, first)


def _length(piece: Piece, state: None) -> int:
    return len(piece.load()[0])


def _first_rows(pieces: Sequence[Piece]) -> tuple[Array, Array]:
    for piece in pieces:
        X, Y = piece.load()
        if len(X):
            return X[:HEAD].copy(), Y[:HEAD].copy()
    raise InputError("X has no row with a target.")


# The first pass. --------------------------------------------------------------------------------------------


def counted(piece: Piece, state: None) -> list[Any]:
    """Rows that are not left out; gaps and infinities of each column among them."""
    X, Y = piece.load()
    cells = np.concatenate([X, Y], axis=1)
    return [len(X), np.isnan(cells).sum(axis=0), np.isinf(cells).sum(axis=0)]


def _counted(found: Pieces, executor: Executor, missing: str) -> Pieces:
    """The same with the rows of each piece, after a look at all cells where they lie."""
    looks = list(executor.each(counted, found.pieces))
    given = sum(piece.rows for piece in found.pieces)
    first = found.pieces[0]
    rule: Rule = first.rule  # type: ignore[attr-defined]  # pieces of a fit are of tables
    names = (*rule.names, *rule.targets)
    for kind, counts in (
        ("NaN", sum(look[1] for look in looks)),
        ("infinity", sum(look[2] for look in looks)),
    ):
        at = np.flatnonzero(counts)
        if len(at):
            cure = "missing='drop' leaves such rows out" if kind == "NaN" else "drop such rows"
            raise InputError(
                f"Column {names[at[0]]!r} of X contains {kind} in {int(counts[at[0]]):,} rows. Of a table in"
                f" pieces nothing is filled: fill them first; {cure}."
            )
    pieces = tuple(
        replace(piece, left=look[0])  # type: ignore[type-var]
        for piece, look in zip(found.pieces, looks, strict=True)
        if look[0]
    )
    left = sum(piece.rows for piece in pieces)
    if not left:
        raise InputError("X has no row with a target: there is nothing to learn from.")
    columns = found.columns
    if left < given:
        if missing == "error":
            raise InputError(
                f"y contains NaN in {given - left:,} rows. Drop these, or have it done: missing='drop'."
            )
        note = f"{given - left:,} of {given:,} rows have gaps and were left out"
        columns = replace(columns, notes=(*columns.notes, note))
    return replace(found, pieces=pieces, columns=columns)
