"""A page as a value: sections of facts, sentences, tables and pictures. It is text, HTML and JSON by turns,
so that what people read and what programs read is the same.

Numbers stay numbers until they are shown. A picture is its data and a sentence that says what is seen;
`plots.health` draws it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gramian.errors import visible
from gramian.params.space import aligned

DIGITS = 4


@dataclass(frozen=True)
class Fact:
    """One thing that is known, with its name; `value` where it is a number for programs."""

    name: str
    text: str
    value: Any = None

    def to_json(self) -> dict[str, Any]:
        found = {"name": self.name, "text": self.text}
        return found if self.value is None else {**found, "value": plain(self.value)}


@dataclass(frozen=True)
class Grid:
    """Rows of cells under titles; `shown` of them are for people, all for programs."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    shown: int = 30

    def cells(self) -> list[list[str]]:
        """The titles, then the rows for people."""
        return [list(self.head), *([show(cell) for cell in row] for row in self.rows[: self.shown])]

    @property
    def left_out(self) -> int:
        return max(len(self.rows) - self.shown, 0)

    def to_json(self) -> dict[str, Any]:
        return {"title": self.title, "columns": list(self.head), "rows": plain(self.rows)}


@dataclass(frozen=True)
class Picture:
    """What is drawn, and what is seen in it, for those who see it and those who do not."""

    kind: str  # a function of plots.health
    title: str
    seen: str
    data: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "title": self.title, "seen": self.seen, "data": plain(self.data)}


@dataclass(frozen=True)
class Section:
    """A part of the page."""

    key: str  # for programs
    title: str
    sentences: tuple[str, ...] = ()
    facts: tuple[Fact, ...] = ()
    grids: tuple[Grid, ...] = ()
    pictures: tuple[Picture, ...] = field(default=())

    def lines(self) -> list[str]:
        """As text, without pictures."""
        found = [self.title, *(f"  {sentence}" for sentence in self.sentences)]
        found += [f"  {fact.name}: {fact.text}" for fact in self.facts]
        for grid in self.grids:
            if grid.rows:
                left = [title for k, title in enumerate(grid.head) if not _numbers(grid, k)]
                more = [f"    and {grid.left_out} more"] if grid.left_out else []
                found += [
                    "",
                    f"  {grid.title}",
                    *(f"    {line}" for line in aligned(grid.cells(), left)),
                    *more,
                ]
        return found

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "sentences": list(self.sentences),
            "facts": [fact.to_json() for fact in self.facts],
            "tables": [grid.to_json() for grid in self.grids],
            "pictures": [picture.to_json() for picture in self.pictures],
        }


def _numbers(grid: Grid, column: int) -> bool:
    return bool(grid.rows) and all(not isinstance(row[column], str) for row in grid.rows)


def numeric(grid: Grid) -> list[bool]:
    """Of each column, whether it holds numbers."""
    return [_numbers(grid, k) for k in range(len(grid.head))]


def show(cell: Any) -> str:
    """A cell for people."""
    if cell is None:
        return "-"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, (int, np.integer)):
        return f"{int(cell):,}"
    if isinstance(cell, (float, np.floating)):
        return number(float(cell)) if math.isfinite(cell) else "-"
    return visible(str(cell))


def number(value: float, digits: int = DIGITS) -> str:
    """So many digits; thousands apart, and no powers of ten where a person would write none."""
    rounded = float(f"{value:.{digits}g}")
    if not 1000 <= abs(rounded) < 1e9:
        return f"{value:.{digits}g}"
    return f"{rounded:,.{max(digits - 1 - math.floor(math.log10(abs(rounded))), 0)}f}"


def plain(value: Any) -> Any:
    """For JSON, which has neither arrays nor numbers that are none."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return value if value is None else str(value)
