"""From a table in a file to what an estimator takes, with errors that name the file, the line and the
column."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.cli.voice import note
from gramian.data.filecolumns import check_needed
from gramian.data.inputs import decided, file_cells, read_features
from gramian.data.readings import Categories, Ordered, Reading
from gramian.data.sources import Source, open_source
from gramian.data.spool import Room
from gramian.data.streams import copied, settled
from gramian.data.tables import Table, read_blocks, repeated
from gramian.data.tables.table import is_missing
from gramian.errors import InputError, ParameterError, TableError
from gramian.estimators.base import Estimator
from gramian.estimators.build import read_kernel
from gramian.kernels import Kernel

YEAR = re.compile(r"\b(19|20)\d\d\b")


@dataclass(frozen=True)
class TableOptions:
    """The options that fit, plan and compare share: a table, what of it, and a kernel."""

    data: Path
    targets: Sequence[str]
    task: str | None
    kernel: str | None
    columns: Sequence[str]
    ids: Sequence[str]
    categorical: Sequence[str] = ()
    ordered: Sequence[str] = ()
    missing: str = "fill"
    memory_limit: str | None = None

    @property
    def room(self) -> Room:
        return Room(self.memory_limit)

    def blocks(self) -> Iterator[Table]:
        """The table, block by block."""
        return read_blocks(self.data, room=self.room)

    def written_kernel(self) -> Kernel | None:
        """The kernel; None: the default one, of whatever family."""
        return None if self.kernel is None else read_kernel(self.kernel).kernel

    def kernel_setting(self) -> Kernel | str | None:
        """The kernel, or the word of a family, as an estimator takes it."""
        return self.written_kernel() or self.kernel

    def features(self, table: Table, beside: Sequence[str] = ()) -> list[str]:
        """The names of the features: --columns where given, else all but targets, ids and those `beside`."""
        targets, wanted = self.targets, _names(table, self.columns)
        left_out = _names(table, [*self.ids, *beside])
        for name in (*targets, *left_out, *wanted):
            _ = table[name]  # complains, with a suggestion, of a name that is not there
        for names, option in ((targets, "--target"), (wanted, "--columns")):
            if twice := repeated(names):
                raise InputError(f"{option} names the column {twice[0]!r} twice. Name it once.")
        for names, what in ((targets, "the target"), (left_out, "an id")):
            both = next((name for name in names if name in set(wanted)), None)
            if both is not None:
                raise InputError(
                    f"{both!r} is among --columns and is {what} as well. It can be only one of them."
                )
        others = {*targets, *left_out}
        features = wanted or self._with_values(table, [name for name in table.names if name not in others])
        if not features:
            raise InputError(
                f"{table.path} has no column left to learn from, beside {', '.join([*targets, *left_out])}."
                " Add one, or name fewer with --ignore."
            )
        return features

    def _with_values(self, table: Table, names: Sequence[str]) -> list[str]:
        """Those of the columns that have a value in some row; the others are told."""
        empty = {name for name in names if _is_empty(table, name)}
        for block in self.blocks() if empty else ():
            empty = {name for name in empty if _is_empty(block, name)}
        for name in sorted(empty, key=names.index):
            note(f"note: {name!r} has no value in any row and is left out")
        return [name for name in names if name not in empty]

    def declared(self, table: Table, features: Sequence[str]) -> dict[str, Reading]:
        """How --categorical and --ordered want columns to be read."""
        found: dict[str, Reading] = {name: Categories(()) for name in _names(table, self.categorical)}
        for entry in self.ordered:
            name, given, levels = entry.rpartition("=")
            if not given:
                raise ParameterError(
                    f"--ordered {entry} has no order. Write it as --ordered grade=low,mid,high."
                )
            found[name] = Ordered(tuple(level.strip() for level in levels.split(",")))
        for name in found:
            _ = table[name]
            if name not in features:
                raise InputError(f"{name!r} is named by --categorical or --ordered, but is no feature.")
        return found

    def opened(self, table: Table, features: Sequence[str], codes: Array | None = None) -> Source:
        """The features of a fit with its targets, or with the codes of labels. Ids among them are refused,
        unless they were asked for by name."""
        declared = self.declared(table, features)
        y = self.targets[0] if len(self.targets) == 1 else list(self.targets) or None
        source = open_source(
            self.data,
            y if codes is None else None,
            columns=features,
            memory_limit=self.memory_limit,
            missing=self.missing,
            indicators=self.written_kernel() is None,
            declared=declared,
            labels=codes,
        )
        for j, categories in source.columns.categories.items():
            name, n = source.columns.names[j], len(source.X)
            if len(categories) >= n > 1 and not self.columns and name not in declared:
                first, second = categories[:2]
                digits = re.match(r"\W{0,3}\d", first) or YEAR.search(first)
                written = " If they are numbers or dates, write them as 1234.5 or 2024-12-31." * bool(digits)
                raise TableError(
                    f"{table.path}, column {name!r}: text that differs in every row ({first!r}, {second!r},"
                    f" ...) tells nothing of new rows. If it is an id, leave it out: --id {name!r}. If not,"
                    f" say so: --categorical {name!r}.{written}"
                )
        return replace(source, columns=source.columns.predicting(tuple(self.targets)))


def for_model(gp: Estimator, table: Table) -> Source:
    """The rows of a table as a fitted model reads them; NaN where a cell is missing. A model that was fitted
    without names needs x0, x1, ..."""
    known = gp.fitted_.columns
    check_needed(table, known)
    rows, _ = read_features(table.only(known.given), known, gp.missing)
    return Source(rows, None, known)


def _is_empty(table: Table, name: str) -> bool:
    cells = table[name]
    if cells.dtype == object:
        return all(map(is_missing, cells))
    return cells.dtype.kind == "f" and bool(np.isnan(cells).all())


def _names(table: Table, given: Sequence[str]) -> list[str]:
    """Names, one an entry or several with commas between; a name that has commas itself is found first."""
    known = set(table.names)
    names = (name for entry in given for name in ([entry] if entry in known else entry.split(",")))
    return [name.strip() for name in names if name.strip()]


def reading_of(table: Table, name: str) -> Reading | None:
    """How a column of a table is read, or of its first block; None: as plain numbers."""
    return decided([file_cells(table, name)], table.path, name)


def is_text(table: Table, name: str) -> bool:
    """Whether a column has labels: words, or true and false."""
    reading = reading_of(table, name)
    return reading is not None and reading.labels


def refuse_constant(path: str, name: str, column: NDArray[np.float64]) -> None:
    known = column[~np.isnan(column)]
    if not len(known):
        raise TableError(f"{path}, column {name!r}: no row has a value, so there is nothing to learn.")
    if np.ptp(known) == 0:
        rows = f"all {len(known)} rows have" if len(known) > 1 else "there is a single row, with"
        raise TableError(
            f"{path}, column {name!r}: {rows} the value {known[0]:g}, so there is nothing to learn. Is it"
            " the right column?"
        )


@contextlib.contextmanager
def as_path(data: Path, memory_limit: str | None = None) -> Iterator[Path]:
    """A file, or for - what comes by standard input, and for a pipe what comes by it, as a file while it is
    needed."""
    room = Room(memory_limit)
    with copied(sys.stdin.buffer, "stdin", room) if str(data) == "-" else settled(data, room) as path:
        yield Path(path)
