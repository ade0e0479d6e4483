"""From the columns of a file to features: which they are, and the categories of those of text."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data.inputs import NEW_CATEGORY, Columns, some_of
from gramian.data.tables import NotNumbersError, Table, closest, is_missing, is_number, read_blocks
from gramian.errors import InputError, TableError

MOST_CATEGORIES = 10_000  # of one column, which are held in memory, as their kernel's values are
DECIMAL_COMMA = re.compile(r"\s*[+-]?[0-9]*,?[0-9]+\s*")


def features_of(table: Table, targets: Sequence[str], columns: Sequence[str] | None) -> tuple[str, ...]:
    for names, what in ((targets, "y"), (columns or (), "columns")):
        twice = next((name for name in names if list(names).count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{what} names the column {twice!r} twice. Name it once.")
    for name in columns or ():
        table.text(name)
        if name in targets:
            cure = "It can be only one of them."
            raise InputError(f"{name!r} is among columns and is the target as well. {cure}")
    names = tuple(columns or (name for name in table.names if name not in targets))
    if not names:
        raise InputError(
            f"{table.path} has no column left to learn from, beside {', '.join(targets)}. Add one."
        )
    return names


@dataclass
class _Seen:
    """What a column of text cells has shown so far."""

    numbers: int = 0
    words: int = 0
    texts: set[str] = field(default_factory=set)
    many: bool = False  # more texts than are held
    commas: bool = True  # all words are numbers with a comma for a point
    fault: NotNumbersError | None = None  # where its first word is

    def add(self, table: Table, name: str) -> None:
        cells = table.text(name)
        if self.fault is None:
            try:
                table.numbers(name, missing="nan")
            except NotNumbersError as error:
                self.fault = error.with_traceback(None)  # whose frames would hold this block
            except TableError:  # infinity, which is a number here; complained of when the numbers are read
                pass
        if self.fault is None:
            self.numbers += len(cells)
            self._hold(set() if self.many else set(cells))
            return
        counts = Counter(cells)
        words = [text for text in counts if not is_number(text) and not is_missing(text)]
        self.words += sum(counts[text] for text in words)
        self.numbers += sum(count for text, count in counts.items() if is_number(text))
        self.commas = self.commas and all(map(DECIMAL_COMMA.fullmatch, words))
        self._hold(set(counts))

    def _hold(self, texts: set[str]) -> None:
        self.texts |= {text for text in texts if not is_missing(text)}
        if len(self.texts) > MOST_CATEGORIES:
            self.texts, self.many = set(), True

    def categories(self, path: str, name: str) -> tuple[str, ...] | None:
        """The categories in the order of their codes; None for a column of numbers."""
        if self.fault is None:
            return None
        if self.numbers >= self.words or self.commas:
            # numbers with a few words among them, or with commas for points, are a mistake, not categories
            raise self.fault
        if self.many:
            raise too_many(path, name)
        return tuple(sorted(self.texts))


def gathered(
    path: str | os.PathLike[str], names: Sequence[str], text: Collection[str]
) -> dict[int, tuple[str, ...]]:
    """The categories of the columns among `text`, from all rows, by their place in `names`."""
    seen = {name: _Seen() for name in names if name in text}
    for table in read_blocks(path) if seen else ():
        for name, one in seen.items():
            one.add(table, name)
    found = {j: seen[name].categories(os.fspath(path), name) for j, name in enumerate(names) if name in seen}
    return {j: categories for j, categories in found.items() if categories is not None}


def too_many(where: str, name: str) -> InputError:
    return InputError(
        f"{where}, column {name!r}: more than {MOST_CATEGORIES:,} different texts, which are too many for"
        " categories. If it is an id or a date, leave it out: columns=[...], or on the command line --id. Or"
        " group its values."
    )


def check_needed(table: Table, known: Columns) -> None:
    """Complains when a table lacks a column of a fitted model."""
    for name in known.names:
        if name not in table.names:
            near = closest(name, table.names)
            hint = f" Did you mean {near!r}?" if near else ""
            if not known.named:
                hint += " The model was fitted on an array without names, so its columns are called x0, x1"
                hint += " and so on."
            raise TableError(
                f"{table.path} has no column {name!r}, which the model needs.{hint} It has:"
                f" {', '.join(table.names[:12])}."
            )


def codes(table: Table, name: str, categories: Sequence[str]) -> Array:
    """The codes of a column, or an error with the place of the first cell that has none."""
    cells, code = table.text(name), {category: float(k) for k, category in enumerate(categories)}
    try:
        return np.array([code[cell] for cell in cells])
    except KeyError:
        pass
    refuse_missing(table, name, cells)
    row = next(row for row, cell in enumerate(cells) if cell not in code)
    near = closest(cells[row], categories)
    what = f"the category {cells[row]!r} was not there in fit ({some_of(map(repr, categories))})"
    cure = f"Did you mean {near!r}?" if near else NEW_CATEGORY
    raise TableError(f"{table.place(row)}, column {name!r}: {what}. {cure}")


def refuse_missing(table: Table, name: str, cells: NDArray[Any]) -> None:
    """Complains of a missing cell in a column of categories."""
    absent = [row for row, cell in enumerate(cells) if is_missing(cell)]
    if absent:
        cell = f" ({cells[absent[0]]!r} stands for none)" if cells[absent[0]].strip() else ""
        count = f"{len(absent)} of {table.span} have no value here"
        cure = f"{count}. Drop these rows, or write a word such as none."
        raise TableError(f"{table.place(absent[0])}, column {name!r}: the value is missing{cell}. {cure}")
