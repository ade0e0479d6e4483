"""Readings: how the cells of a column become numbers. Decided once, from the rows of a fit (deciding.py), and
done again the same way for new rows.

    Numbers      1,234.50 $, 12 %, 3,5: numbers with signs left out and a comma or a point for decimals
    YesNo        true and false, yes and no: 1 and 0
    Dates        days, hours or years since the first one of the fit
    Durations    hours or days
    Categories   codes 0, 1, ...; a category that the fit has not seen has a code of its own
    Ordered      ranks 0, 1, ... of categories that have an order

A column of plain numbers needs none.
"""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gramian.arrays import Array
from gramian.data.cells import Cells
from gramian.data.dates import ORDERS, read_date, read_span
from gramian.data.numerals import BRACKETS, unified
from gramian.data.tables.table import is_number, is_unknown, why_no_number
from gramian.errors import InputError

UNITS = {"hours": 3.6e9, "days": 8.64e10, "years": 365.2425 * 8.64e10}  # in microseconds
YES_NO = (("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("off", "on"))


class MisreadError(InputError):
    """A cell that cannot be read as its column is; `row` says which, `why` the rest of the sentence."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(why)
        self.row, self.why = row, why


class Reading(ABC):
    """How the cells of one column become numbers."""

    levels: tuple[str, ...] = ()
    categorical: ClassVar[bool] = False  # whether the numbers are codes, which measure nothing
    labels: ClassVar[bool] = False  # whether a target that is read so is to be classified
    decimal: str = "."  # what stands before the digits after the point

    @property
    def dates(self) -> Dates | None:
        """Itself, where its cells are dates."""
        return None

    @property
    def days(self) -> float | None:
        """How many days the unit of its numbers has; None where they are no times."""
        return None

    @property
    def origin(self) -> np.datetime64 | None:
        """The date that 0 stands for; None where its numbers are no dates."""
        return None

    @property
    def words(self) -> tuple[str, ...]:
        """What 0, 1, ... stand for; empty where its numbers measure something."""
        return self.levels

    @property
    @abstractmethod
    def told(self) -> str:
        """What is done, in a few words."""

    def numbers(self, cells: Cells) -> Array:
        """One number a cell, NaN where it is missing. What came as numbers is taken as such."""
        if cells.kind in "fb":
            return cells.values.astype(np.float64)
        if cells.kind in "Mm":
            raise MisreadError(0, f"{cells.values[0]} is a date or a time, where {self.wanted} belongs")
        return self._of_text(cells)

    wanted: ClassVar[str] = "a number"

    def _of_text(self, cells: Cells) -> Array:
        found = np.empty(len(cells.values))
        known: dict[str | None, float] = {None: np.nan}
        for row, text in enumerate(cells.values):
            value = known.get(text)
            if value is None:
                value = known[text] = np.nan if is_unknown(text) else self._one(row, text)
            found[row] = value
        return found

    def _one(self, row: int, text: str) -> float:
        raise MisreadError(row, f"{text!r} is not {self.wanted}")


# Numbers. ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers(Reading):
    """Numbers that are written with a sign or a unit, or with a comma."""

    decimal: str = "."
    thousands: str = ""
    signs: tuple[str, ...] = ()  # left out: %, $, kg; or `BRACKETS`

    @property
    def told(self) -> str:
        parts = []
        if self._left_out:
            parts.append(f"without {' and '.join(self._left_out)}")
        if self.decimal == ",":
            parts.append("with decimal commas")
        if self.thousands:
            named = {" ": "spaces", "'": "apostrophes"}.get(self.thousands, f"{self.thousands!r}")
            parts.append(f"with {named} between thousands")
        if BRACKETS in self.signs:
            parts.append("those in brackets below zero")
        return f"numbers {', '.join(parts)}" if parts else "numbers"

    @property
    def _left_out(self) -> list[str]:
        return [sign for sign in self.signs if sign != BRACKETS]

    def _of_text(self, cells: Cells) -> Array:
        if not self.signs and self.decimal == "." and not self.thousands:
            plain = np.where(cells.values == None, "nan", cells.values)  # noqa: E711 (cell by cell)
            if "_" not in "".join(plain):  # Python's float takes 1_000; in a table it is more likely a code
                try:
                    return plain.astype(np.float64)
                except ValueError:
                    pass
        return super()._of_text(cells)

    def _one(self, row: int, text: str) -> float:
        body = unified(text)
        for sign in self._left_out:
            body = body.replace(sign, "")
        body, negative = body.strip(), False
        if body.startswith("(") and body.endswith(")"):  # as bookkeepers write what is below zero
            body, negative = body[1:-1], True
        body = re.sub(r"(?<=[-+])\s+", "", body)
        if self.thousands:
            whole, point, rest = body.partition(self.decimal)
            groups = whole.lstrip("+-").split(self.thousands)
            if len(groups[0]) <= 3 and all(len(group) in (2, 3) for group in groups[1:]):
                body = whole.replace(self.thousands, "") + point + rest
        if self.decimal != "." and (self.thousands != "." or "." not in body):
            body = body.replace(self.decimal, ".")
        if not is_number(body):
            word = text.strip().lower()
            pair = next((pair for pair in YES_NO if word in pair), None)
            if pair is not None:
                return float(pair.index(word))
            why = why_no_number(text)
            signs = f" in {' and '.join(self._left_out)}, as the others are" if self._left_out else ""
            raise MisreadError(row, why + signs * why.endswith("is not a number"))
        return -float(body) if negative else float(body)


PLAIN = Numbers()


@dataclass(frozen=True)
class YesNo(Reading):
    """Two words, as 0 and 1."""

    no: str = "false"
    yes: str = "true"

    labels: ClassVar[bool] = True

    @property
    def words(self) -> tuple[str, str]:
        return self.no, self.yes

    @property
    def told(self) -> str:
        return f"{self.yes} as 1, {self.no} as 0"

    @property
    def wanted(self) -> str:  # type: ignore[override]  # the words are the column's own
        return f"{self.yes} or {self.no}"

    def _one(self, row: int, text: str) -> float:
        word = text.strip().lower()
        for no, yes in ((self.no, self.yes), *YES_NO, ("0", "1")):
            if word in (no, yes):
                return float(word == yes)
        return super()._one(row, text)


# Time. ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Dates(Reading):
    """Days, hours or years since a start."""

    start: str  # as ISO 8601 has it, in UTC where there were zones
    unit: str = "days"
    order: str = "dmy"  # of 3/4/2024: day, month, year

    @property
    def dates(self) -> Dates:
        return self

    wanted: ClassVar[str] = "a date"

    def __post_init__(self) -> None:
        check_unit(self.unit)
        if self.order not in ORDERS:
            raise InputError(f"the order of a date is one of {', '.join(ORDERS)}, not {self.order!r}.")
        datetime.datetime.fromisoformat(self.start)

    @property
    def days(self) -> float:
        return UNITS[self.unit] / UNITS["days"]

    @property
    def origin(self) -> np.datetime64:
        return np.datetime64(self.start, "us")

    @property
    def told(self) -> str:
        return f"dates as {self.unit} since {self.start.replace('T', ' ').removesuffix(' 00:00:00')}"

    def numbers(self, cells: Cells) -> Array:
        if cells.kind == "M":
            return _in_units(cells.values - np.datetime64(self.start, "us"), self.unit)
        return super().numbers(cells)

    def _one(self, row: int, text: str) -> float:
        date = read_date(text, self.order)
        if date is None:
            if is_number(text):
                return float(text)
            raise MisreadError(row, f"{text!r} is not a date. Write dates as 2024-12-31")
        since = np.datetime64(date, "us") - np.datetime64(self.start, "us")
        return float(_in_units(since, self.unit))


@dataclass(frozen=True)
class Durations(Reading):
    """Spans of time."""

    unit: str = "hours"

    wanted: ClassVar[str] = "a span of time"

    def __post_init__(self) -> None:
        check_unit(self.unit)

    @property
    def days(self) -> float:
        return UNITS[self.unit] / UNITS["days"]

    @property
    def told(self) -> str:
        return f"spans of time in {self.unit}"

    def numbers(self, cells: Cells) -> Array:
        return _in_units(cells.values, self.unit) if cells.kind == "m" else super().numbers(cells)

    def _one(self, row: int, text: str) -> float:
        span = read_span(text)
        if span is None:
            if is_number(text):
                return float(text)
            raise MisreadError(row, f"{text!r} is no span of time. Write it as 1 days 02:30:00")
        return span / UNITS[self.unit]


def retold(found: Reading, told: str) -> Reading:
    """A reading of times whose numbers are those that a line tells of: another table has another first
    date, and may have another unit."""
    if match := re.fullmatch(r"dates as (\w+) since (\S+)(?: (\S+))?", told):
        unit, day, time = match.groups()
        order = "dmy" if found.dates is None else found.dates.order
        return Dates(f"{day}T{time or '00:00:00'}", unit, order)
    return Durations(match[1]) if (match := re.fullmatch(r"spans of time in (\w+)", told)) else found


def check_unit(unit: str) -> None:
    if unit not in UNITS:
        raise InputError(f"a unit of time is one of {', '.join(UNITS)}, not {unit!r}.")


def _in_units(spans: Any, unit: str) -> Array:
    counts = np.asarray(spans).astype("m8[us]")
    return np.where(np.isnat(counts), np.nan, counts.astype(np.int64) / UNITS[unit])


# Categories. ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Categories(Reading):
    """Codes of words."""

    levels: tuple[str, ...]

    categorical: ClassVar[bool] = True
    labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if len(set(self.levels)) < len(self.levels):
            raise InputError("a category is there twice.")

    @property
    def told(self) -> str:
        return f"{len(self.levels)} categories"

    def numbers(self, cells: Cells) -> Array:
        """Those that the fit has not seen have codes after all others, one each."""
        words = cells.text()
        code: dict[str | None, float] = {level: float(k) for k, level in enumerate(self.levels)}
        new = sorted({word for word in words if word is not None and word not in code})
        code |= {word: float(len(self.levels) + k) for k, word in enumerate(new)}
        code[None] = np.nan
        return np.array([code[word] for word in words])


@dataclass(frozen=True)
class Ordered(Reading):
    """Ranks of words in their order."""

    levels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(set(self.levels)) < len(self.levels) or len(self.levels) < 2:
            raise InputError(f"an order has two levels or more, each once, not {', '.join(self.levels)}.")

    @property
    def told(self) -> str:
        return f"ranks of {' < '.join(self.levels)}"

    def numbers(self, cells: Cells) -> Array:
        """A level that is not in the order has no rank: it is missing."""
        code: dict[str | None, float] = {level: float(k) for k, level in enumerate(self.levels)}
        return np.array([code.get(word, np.nan) for word in cells.text()])
