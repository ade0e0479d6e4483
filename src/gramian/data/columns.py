"""The columns of a model: their names, how their cells are read, and which had gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from gramian.arrays import Array
from gramian.data.readings import Reading
from gramian.kernels.base import Column

INDICATOR = "{} is missing"  # the column that says in which rows of a fit another had no value
SHOWN = 8  # names in a message


@dataclass(frozen=True)
class Columns:
    """The columns of X, and after them one a column that had gaps in the fit, which says where."""

    names: tuple[str, ...]
    named: bool = False  # whether the names came with the data
    readings: dict[int, Reading] = field(default_factory=dict)  # of those that are not plain numbers
    gaps: tuple[int, ...] = ()  # the columns that the last ones speak of, in their order
    targets: tuple[str, ...] = ()  # a name an output, where y came with names
    notes: tuple[str, ...] = ()  # what else was done with the table

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the columns that come with the data."""
        return self.names[: len(self.names) - len(self.gaps)]

    @property
    def categories(self) -> dict[int, tuple[str, ...]]:
        """The categories of columns of them, in the order of their codes."""
        if not self.readings:
            return {}
        return {j: reading.levels for j, reading in self.readings.items() if reading.categorical}

    def predicting(self, targets: tuple[str, ...]) -> Columns:
        """The same columns, of which targets of these names are predicted."""
        if not set(targets).isdisjoint(self.names):
            targets = ()  # in pandas 2 * X["a"] is called a as well
        return self if targets == self.targets else replace(self, targets=targets)

    def described(self) -> list[Column]:
        categories = self.categories
        days = {j: reading.days for j, reading in self.readings.items()}
        return [Column(name, j in categories, days.get(j)) for j, name in enumerate(self.names)]

    def told(self) -> list[str]:
        """How the columns were read, a line each; none for plain numbers and categories."""
        lines = [
            f"{self.names[j]}: {reading.told}"
            for j, reading in self.readings.items()
            if not reading.categorical
        ]
        if self.gaps:
            names = ", ".join(self.names[j] for j in self.gaps)
            lines.append(f"{names}: missing cells as in the most similar rows, and a column that says where")
        return [*lines, *self.notes]

    def targets_told(self) -> dict[str, str]:
        """How targets that are no plain numbers were read, by their names."""
        pairs = (note.partition(": ") for note in self.notes)
        return {name: told for name, _, told in pairs if told and name in self.targets}

    def new_categories(self, table: Array) -> dict[str, int]:
        """How many rows of a table have a category that the fit has not seen, by column."""
        counts = {
            self.names[j]: int(np.sum(table[:, j] >= len(levels))) for j, levels in self.categories.items()
        }
        return {name: count for name, count in counts.items() if count}


def some_of(names: Sequence[str], most: int = SHOWN) -> str:
    """The first of some names, for a message."""
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")
