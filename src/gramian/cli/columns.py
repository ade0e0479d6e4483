"""From a table in a file to what GPRegressor takes, with errors that name the file, the line and the
column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.data.filecolumns import DECIMAL_COMMA, check_needed, codes, refuse_missing
from gramian.data.sources import Source, open_source
from gramian.data.tables import Table, is_missing, is_number
from gramian.errors import InputError, TableError
from gramian.estimators.base import Estimator

Cells = NDArray[Any]


class Frame:
    """Named columns of one length: the little of a DataFrame that GPRegressor asks for, so that pandas is no
    dependency."""

    def __init__(self, columns: Mapping[str, Cells]) -> None:
        self._columns = dict(columns)

    @property
    def columns(self) -> list[str]:
        return list(self._columns)

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        return [column.dtype for column in self._columns.values()]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), len(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    def __getitem__(self, name: str) -> Cells:
        return self._columns[name]


def chosen(table: Table, targets: Sequence[str], columns: Sequence[str], ids: Sequence[str]) -> list[str]:
    """The names of the features: `columns` where given, else all but targets and ids."""
    left_out, wanted = _names(table, ids), _names(table, columns)
    for name in (*targets, *left_out, *wanted):
        table.text(name)  # complains, with a suggestion, of a name that is not there
    for names, option in ((targets, "--target"), (wanted, "--columns")):
        twice = next((name for name in names if list(names).count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{option} names the column {twice!r} twice. Name it once.")
    for names, what in ((targets, "the target"), (left_out, "an id")):
        both = next((name for name in wanted if name in names), None)
        if both is not None:
            raise InputError(
                f"{both!r} is among --columns and is {what} as well. It can be only one of them."
            )
    features = wanted or [name for name in table.names if name not in targets and name not in left_out]
    if not features:
        raise InputError(
            f"{table.path} has no column left to learn from, beside {', '.join([*targets, *left_out])}. Add"
            " one, or name fewer with --id."
        )
    return features


def training(table: Table, features: Sequence[str], asked: bool) -> Frame:
    """The features of a fit: numbers, or text that will be categories. Ids among them are refused, unless
    they were asked for by name."""
    return Frame(
        {
            name: table.numbers(name) if table.is_numeric(name) else _text(table, name, asked)
            for name in features
        }
    )


def targets_of(table: Table, targets: Sequence[str]) -> NDArray[np.float64]:
    """y: (n,), or (n, q) for several targets."""
    columns = [table.numbers(name) for name in targets]
    for name, column in zip(targets, columns, strict=True):
        refuse_constant(table.path, name, column)
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def streamed(table: Table, targets: Sequence[str], features: Sequence[str], asked: bool) -> Source:
    """The same as `training` and `targets_of` for a file that stays on disk, of which `table` is the first
    block. Without targets, the features."""
    source = open_source(
        table.path, (targets[0] if len(targets) == 1 else list(targets)) or None, columns=features
    )
    for name, column in zip(targets, () if source.Y is None else source.Y.T, strict=True):
        refuse_constant(table.path, name, column)
    for j, categories in source.columns.categories.items():
        _refuse_ids(table, source.columns.names[j], len(categories) == len(source.X), asked)
    return source


def for_model(gp: Estimator, table: Table) -> Frame | NDArray[np.float64]:
    """The columns that a fitted model needs, by name; a model that was fitted without names needs x0, x1,
    ..."""
    known = gp.fitted_.columns
    check_needed(table, known)
    columns: dict[str, Cells] = {}
    for j, name in enumerate(known.names):
        if j in known.categories:
            codes(table, name, known.categories[j])  # complains, with the place, of what is no category
            columns[name] = table.text(name)
        else:
            columns[name] = table.numbers(name)
    return Frame(columns) if known.named else np.column_stack(list(columns.values()))


def _names(table: Table, given: Sequence[str]) -> list[str]:
    """Names, one an entry or several with commas between; a name that has commas itself is found first."""
    return [
        name.strip()
        for entry in given
        for name in ([entry] if entry in table.names else entry.split(","))
        if name.strip()
    ]


def _text(table: Table, name: str, asked: bool) -> Cells:
    cells = table.text(name)
    present = [cell for cell in cells if not is_missing(cell)]
    numbers = sum(map(is_number, present))
    if present and numbers >= len(present) - numbers:
        # numbers with a few words among them are a mistake, not categories: raises at the first word
        table.numbers(name)
    refuse_missing(table, name, cells)
    if all(DECIMAL_COMMA.fullmatch(cell) for cell in cells):
        table.numbers(name)  # numbers with a comma for a point: raises, and says so
    _refuse_ids(table, name, len(set(cells)) == len(cells), asked)
    return cells


def _refuse_ids(table: Table, name: str, all_differ: bool, asked: bool) -> None:
    if all_differ and table.n_rows > 1 and not asked:
        first, second = table.text(name)[:2]
        cure = (
            f"If it is an id, leave it out: --id {name!r}. If it is a date, replace it by a number, such as"
            " days since the first."
        )
        raise TableError(
            f"{table.path}, column {name!r}: text that differs in every row ({first!r}, {second!r}, ...)"
            f" tells nothing of new rows. {cure}"
        )


def refuse_constant(path: str, name: str, column: NDArray[np.float64]) -> None:
    if np.ptp(column) == 0:
        rows = f"all {len(column)} rows have" if len(column) > 1 else "there is a single row, with"
        raise TableError(
            f"{path}, column {name!r}: {rows} the value {column[0]:g}, so there is nothing to learn. Is it"
            " the right column?"
        )
