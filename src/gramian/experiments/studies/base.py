"""What an experiment is: a question, a grid of cells, what a cell measures, and what the results show.

A cell is a dictionary of plain values that says all of what is done in it, `{"set": "abalone", "method":
"nystrom:uniform", "size": 100, "repeat": 3}`: its random numbers are made from these values, so that it gives
the same rows whatever ran before it. It names the data set that it needs, if any, under "set".
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gramian.arrays import Array
from gramian.experiments.studies.sets import DataFolder

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cell = dict[str, Any]
Row = dict[str, Any]


def key_of(cell: Cell) -> str:
    """A cell as text that tells it apart."""
    return json.dumps(cell, sort_keys=True)


def rng_of(cell: Cell, *names: str) -> np.random.Generator:
    """Random numbers that belong to a cell; with names, to all cells that have the same values of these."""
    values = {name: cell[name] for name in names} if names else cell
    return np.random.default_rng(zlib.crc32(key_of(values).encode()))


class Results:
    """The rows of all cells that are done: the values of the cell, and what was measured."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)

    def where(self, **values: Any) -> Results:
        """The rows with these values."""
        return Results([row for row in self.rows if all(row.get(n) == v for n, v in values.items())])

    def each(self, name: str) -> list[Any]:
        """The different values of a column, in the order of their first appearance."""
        return list(dict.fromkeys(row[name] for row in self.rows if row.get(name) is not None))

    def column(self, name: str) -> Array:
        """The numbers of a column, without what is missing."""
        values = np.array([row[name] for row in self.rows if row.get(name) is not None], np.float64)
        return values[~np.isnan(values)]

    def mean(self, name: str) -> float:
        values = self.column(name)
        return float(np.mean(values)) if values.size else float("nan")

    def best(self, by: str, name: str) -> tuple[Any, float]:
        """The value of `by` with the least mean of `name`, and that mean."""
        means = {value: self.where(**{by: value}).mean(name) for value in self.each(by)}
        means = {value: mean for value, mean in means.items() if not np.isnan(mean)}
        if not means:
            return None, float("nan")
        least = min(means, key=lambda value: means[value])
        return least, means[least]


class Illustration(NamedTuple):
    """A picture, with what it is saved as and what it shows."""

    name: str
    caption: str
    figure: Figure


class SmallTable(NamedTuple):
    """A small table for people."""

    caption: str
    head: Sequence[str]
    lines: Sequence[Sequence[str]]


@dataclass
class Shown:
    """What the results say: pictures, tables, and sentences with the numbers that were measured."""

    pictures: list[Illustration] = field(default_factory=list)
    tables: list[SmallTable] = field(default_factory=list)
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Experiment:
    """One experiment. `grid(quick)` has its cells, in the order in which they are done; `measure` gives the
    rows of a cell, whose entries are among `columns`; `show` reads the rows of all cells."""

    name: str
    question: str
    how: str  # what is done, in a few sentences
    grid: Callable[[bool], list[Cell]]
    measure: Callable[[Cell, DataFolder], list[Row]]
    columns: tuple[str, ...]
    show: Callable[[Results], Shown]

    def needs(self, quick: bool) -> tuple[str, ...]:
        """The data sets of its cells."""
        return tuple(dict.fromkeys(cell["set"] for cell in self.grid(quick) if "set" in cell))
