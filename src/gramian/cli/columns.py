"""From a table in a file to what GPRegressor takes, with errors that name the file, the line and the
column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.data.filecolumns import DECIMAL_COMMA, check_needed, codes, refuse_missing
from gramian.data.sources import Source, open_source
from gramian.data.tables import Table, is_missing, is_number
from gramian.errors import InputError, TableError
from gramian.estimators.base import Estimator
from gramian.estimators.build import read_kernel
from gramian.kernels import Kernel

Cells = NDArray[Any]


class Frame:
    """Named columns of one length: the little of a DataFrame that GPRegressor asks for, so that pandas is no
    dependency."""

    def __init__(self, columns: Mapping[str, Cells]) -> None:
        self._cells, self.columns = columns, list(columns)
        self.dtypes = [cells.dtype for cells in columns.values()]
        self.shape = len(columns[self.columns[0]]), len(columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, name: str) -> Cells:
        return self._cells[name]


@dataclass(frozen=True, eq=False)
class Target:
    """y with a name an output: the little of a DataFrame that a fit asks of its targets."""

    values: Cells  # (n,) or (n, q)
    columns: Sequence[str]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Cells:
        return np.array(self.values, dtype=dtype, copy=copy)


@dataclass(frozen=True)
class TableOptions:
    """The options that fit, plan and compare share: a table, what of it, and a kernel."""

    data: Path
    targets: Sequence[str]
    task: str | None
    kernel: str | None
    columns: Sequence[str]
    ids: Sequence[str]

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
        features = wanted or [name for name in table.names if name not in (*targets, *left_out)]
        if not features:
            raise InputError(
                f"{table.path} has no column left to learn from, beside {', '.join([*targets, *left_out])}."
                " Add one, or name fewer with --id."
            )
        return features

    def training(self, table: Table, features: Sequence[str]) -> Frame:
        """The features of a fit: numbers, or text that will be categories. Ids among them are refused, unless
        they were asked for by name."""
        cells = (
            table.numbers(name) if table.is_numeric(name) else self._text(table, name) for name in features
        )
        return Frame(dict(zip(features, cells, strict=True)))

    def streamed(self, table: Table, targets: Sequence[str], features: Sequence[str]) -> Source:
        """The same as `training` for a file that stays on disk, of which `table` is the first block, and its
        targets, if any."""
        y = targets[0] if len(targets) == 1 else list(targets) or None
        source = open_source(table.path, y, columns=features)
        for name, column in zip(targets, () if source.Y is None else source.Y.T, strict=True):
            refuse_constant(table.path, name, column)
        for j, categories in source.columns.categories.items():
            self._refuse_ids(table, source.columns.names[j], len(categories) == len(source.X))
        return source

    def _text(self, table: Table, name: str) -> Cells:
        cells = table.text(name)
        if not is_text(table, name) and not all(map(is_missing, cells)):
            table.numbers(name)  # raises at the first word
        refuse_missing(table, name, cells)
        self._refuse_ids(table, name, len(set(cells)) == len(cells))
        return cells

    def _refuse_ids(self, table: Table, name: str, all_differ: bool) -> None:
        if all_differ and table.n_rows > 1 and not self.columns:
            first, second = table.text(name)[:2]
            raise TableError(
                f"{table.path}, column {name!r}: text that differs in every row ({first!r}, {second!r}, ...)"
                f" tells nothing of new rows. If it is an id, leave it out: --id {name!r}. If it is a date,"
                " replace it by a number, such as days since the first."
            )


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
    names = (name for entry in given for name in ([entry] if entry in table.names else entry.split(",")))
    return [name.strip() for name in names if name.strip()]


def is_text(table: Table, name: str) -> bool:
    """Whether a column is text; numbers with a few words among them, or with commas for points, are a
    mistake, neither labels nor categories."""
    if table.is_numeric(name):
        return False
    present = [cell for cell in table.text(name) if not is_missing(cell)]
    numbers = sum(map(is_number, present))
    return numbers < len(present) - numbers and not all(map(DECIMAL_COMMA.fullmatch, present))


def refuse_constant(path: str, name: str, column: NDArray[np.float64]) -> None:
    if np.ptp(column) == 0:
        rows = f"all {len(column)} rows have" if len(column) > 1 else "there is a single row, with"
        raise TableError(
            f"{path}, column {name!r}: {rows} the value {column[0]:g}, so there is nothing to learn. Is it"
            " the right column?"
        )
