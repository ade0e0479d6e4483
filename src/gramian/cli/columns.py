"""From a table in a file to what GPRegressor takes, with errors that name the file, the line and the column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.errors import InputError, TableError
from gramian.estimators import GPRegressor
from gramian.tables import MISSING, Table, closest

Cells = NDArray[Any]
_DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,?[0-9]+")


class Frame:
    """Named columns of one length: the little of a DataFrame that GPRegressor asks for, so that pandas is no dependency."""

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
            raise InputError(f"{both!r} is among --columns and is {what} as well. It can be only one of them.")
    features = wanted or [name for name in table.names if name not in targets and name not in left_out]
    if not features:
        raise InputError(
            f"{table.path} has no column left to learn from, beside {', '.join([*targets, *left_out])}. Add one, or name fewer with --id."
        )
    return features


def training(table: Table, features: Sequence[str], asked: bool) -> Frame:
    """The features of a fit: numbers, or text that will be categories. Ids among them are refused, unless they were asked for by name."""
    return Frame({name: table.numbers(name) if table.is_numeric(name) else _text(table, name, asked) for name in features})


def targets_of(table: Table, targets: Sequence[str]) -> NDArray[np.float64]:
    """y: (n,), or (n, q) for several targets."""
    columns = [table.numbers(name) for name in targets]
    for name, column in zip(targets, columns, strict=True):
        if np.ptp(column) == 0:
            rows = f"all {table.n_rows} rows have" if table.n_rows > 1 else "there is a single row, with"
            raise TableError(f"{table.path}, column {name!r}: {rows} the value {column[0]:g}, so there is nothing to learn. Is it the right column?")
    return columns[0] if len(columns) == 1 else np.column_stack(columns)


def for_model(gp: GPRegressor, table: Table) -> Frame | NDArray[np.float64]:
    """The columns that a fitted model needs, by name; a model that was fitted without names needs x0, x1, ..."""
    known = gp._columns
    for name in known.names:
        if name not in table.names:
            near = closest(name, table.names)
            hint = f" Did you mean {near!r}?" if near else ""
            unnamed = "" if known.named else " The model was fitted on an array without names, so its columns are called x0, x1 and so on."
            raise TableError(f"{table.path} has no column {name!r}, which the model needs.{hint}{unnamed} It has: {', '.join(table.names[:12])}.")
    columns = {
        name: _known_categories(table, name, known.categories[j]) if j in known.categories else table.numbers(name)
        for j, name in enumerate(known.names)
    }
    return Frame(columns) if known.named else np.column_stack(list(columns.values()))


def _names(table: Table, given: Sequence[str]) -> list[str]:
    """Names, one an entry or several with commas between; a name that has commas itself is found first."""
    return [name.strip() for entry in given for name in ([entry] if entry in table.names else entry.split(",")) if name.strip()]


def _text(table: Table, name: str, asked: bool) -> Cells:
    cells = table.text(name)
    present = [cell for cell in cells if not _missing(cell)]
    numbers = sum(map(_is_number, present))
    if present and numbers >= len(present) - numbers:
        table.numbers(name)  # numbers with a few words among them are a mistake, not categories: raises at the first word
    _refuse_missing(table, name, cells)
    if all(_DECIMAL_COMMA.fullmatch(cell.strip()) for cell in cells):
        table.numbers(name)  # numbers with a comma for a point: raises, and says so
    if len(set(cells)) == len(cells) and len(cells) > 1 and not asked:
        cure = f"If it is an id, leave it out: --id {name!r}. If it is a date, replace it by a number, such as days since the first."
        raise TableError(
            f"{table.path}, column {name!r}: text that differs in every row ({cells[0]!r}, {cells[1]!r}, ...) tells nothing of new rows. {cure}"
        )
    return cells


def _known_categories(table: Table, name: str, categories: Sequence[str]) -> Cells:
    cells = table.text(name)
    _refuse_missing(table, name, cells)
    known = set(categories)
    row = next((row for row, cell in enumerate(cells) if cell not in known), None)
    if row is not None:
        near = closest(cells[row], categories)
        shown = ", ".join(map(repr, categories[:8])) + (", ..." if len(categories) > 8 else "")
        cure = f"Did you mean {near!r}?" if near else "Correct it, drop the row, or fit again with rows of that category."
        raise TableError(f"{table.place(row)}, column {name!r}: the category {cells[row]!r} was not there in fit ({shown}). {cure}")
    return cells


def _refuse_missing(table: Table, name: str, cells: Cells) -> None:
    absent = [row for row, cell in enumerate(cells) if _missing(cell)]
    if absent:
        cell = f" ({cells[absent[0]]!r} stands for none)" if cells[absent[0]].strip() else ""
        count = f"{len(absent)} of the {table.n_rows} rows have no value here"
        raise TableError(
            f"{table.place(absent[0])}, column {name!r}: the value is missing{cell}. {count}. Drop these rows, or write a word such as none."
        )


def _missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell
