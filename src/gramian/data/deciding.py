"""Deciding how a column is read, from all its cells, block by block: held are the shapes of numbers, the
range of dates and the texts of words, never all cells."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gramian.data.cells import Cells
from gramian.data.dates import ORDERS, read_date, read_span
from gramian.data.numerals import (
    NONE,
    mostly_numbers,
    points_part_thousands,
    prevailing,
    shape_of,
    signs_in,
    written,
)
from gramian.data.readings import (
    UNITS,
    YES_NO,
    Categories,
    Dates,
    Durations,
    Numbers,
    Ordered,
    Reading,
    YesNo,
)
from gramian.data.tables.table import is_number, is_unknown
from gramian.errors import InputError

MOST_CATEGORIES = 10_000  # of one column, which are held in memory, as their kernel's values are
MOST_SHAPES = 10_000  # that are told apart; numbers have few
MOST_FORMS = 64  # of yes and no, true and false, in small letters and capitals
TEXT_BYTES = 150  # of a text that is held, beside its letters
FEWEST_CODES, MOST_CODES = 3, 12  # of a column of codes, one or more of which are words: 4, 6, 8, rotary
FEWEST_DATED = 2  # dates to each text that is none, for this to be a mistake and no category
MOST_UNITS = 3  # that are told to differ; more of them are letters of names, 12a
CELLS_A_CODE = 5  # cells that each of them has, on average: measurements repeat less


@dataclass
class Seen:
    """What a column has shown so far."""

    declared: Reading | None = None  # asked for by name, or by the type of the column
    texts: set[str] = field(default_factory=set)
    held: int = 0  # bytes of these
    many: bool = False  # more texts than are held
    shapes: Counter[str] = field(default_factory=Counter)  # of cells that are no plain numbers
    plain: int = 0
    words: int = 0
    unknown: set[str] = field(default_factory=set)  # words that stand for nothing, unless others are there
    kinds: set[str] = field(default_factory=set)
    comma: bool = False
    commas: bool = False  # whether other columns of the file have decimal commas
    orders: list[str] = field(default_factory=lambda: list(ORDERS))  # in which most texts so far are dates
    dated: Counter[str] = field(default_factory=Counter)  # how many, by order
    undated: Counter[str] = field(default_factory=Counter)  # texts that are none
    unsure: str = ""  # a date that another order reads otherwise
    spans: bool = True  # whether all texts are spans of time
    timed: bool = False  # and one of them can be nothing else
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)  # of times, in microseconds

    def add(self, cells: Cells) -> None:
        self.kinds.add(cells.kind)
        self.comma = self.comma or cells.comma
        if cells.levels is not None and self.declared is None:
            present = set(cells.text()) - {None}
            levels = tuple(level for level in cells.levels if cells.ordered or level in present)
            made = Ordered if cells.ordered and len(levels) > 1 else Categories
            self.declared = made(levels if cells.ordered else tuple(sorted(levels)))
        if cells.kind in "Mm":
            self._widen(cells.kind, cells.values[~np.isnat(cells.values)].astype(np.int64).tolist())
        elif self.declared is not None:
            self._hold({text for text in cells.text() if text is not None})
        elif cells.kind == "O":
            self._add_text(cells)

    def _add_text(self, cells: Cells) -> None:
        counts = Counter(text for text in cells.values if text is not None)
        for text in [text for text in counts if is_unknown(text)]:
            self.unknown.add(text)
            del counts[text]
        for text, count in counts.items():
            shape = shape_of(text)
            self.shapes[shape if shape in self.shapes or len(self.shapes) < MOST_SHAPES else NONE] += count
            if is_number(text):
                self.plain += count
            else:
                self.words += count
        self._hold(set(counts))
        if self.plain:
            self.orders, self.spans = [], False
        for order in tuple(self.orders):
            self._date(counts, order)
        days = [order for order in self.orders if order != "fy" and not self.undated[order]]
        if len(days) > 1 and not self.unsure:
            readings = ((text, {read_date(text, order) for order in days}) for text in counts)
            self.unsure = next((text for text, dates in readings if len(dates) > 1), "")
        if self.spans:
            spans = [read_span(text) for text in counts]
            self.spans = None not in spans
            self.timed = self.timed or any(read_span(text, one_unit=False) is not None for text in counts)
            self._widen("span", [span for span in spans if span is not None])

    def _date(self, texts: Iterable[str], order: str) -> None:
        """Whether the texts are dates in that order, up to a few that may be mistakes."""
        found = []
        for k, text in enumerate(texts):
            date = read_date(text, order)
            if date is not None:
                found.append(_micros(date))
                continue
            self.undated[order] += 1
            if self.undated[order] > max(1, k // FEWEST_DATED):
                self.orders.remove(order)
                return
        self.dated[order] += len(found)
        self._widen(order, found)

    def _widen(self, what: str, values: Sequence[float]) -> None:
        if len(values):
            least, most = self.ranges.get(what, (np.inf, -np.inf))
            self.ranges[what] = min(least, *values), max(most, *values)

    def _hold(self, texts: set[str]) -> None:
        if not self.many:
            new = texts - self.texts
            self.held += sum(map(len, new)) + TEXT_BYTES * len(new)
            self.texts |= new
        if len(self.texts) > MOST_CATEGORIES:
            self.texts, self.many, self.held = set(), True, 0

    @property
    def is_plain(self) -> bool:
        """Whether it needs no reading: numbers as they stand."""
        return self.declared is None and self.kinds <= {"f", "O"} and not self.words and not self.unknown

    def reading(self) -> Reading | None:
        """How the column is read; None: as plain numbers. What is none is refused when its numbers are read,
        by its first cell that is no number."""
        if self.declared is not None:
            return self._declared_reading()
        if self.comma and not self.words and points_part_thousands(self.shapes, self.commas):
            return Numbers(",", ".")
        if self.is_plain:
            return None
        if "M" in self.kinds:
            return self._dates("M", "dmy")
        if "m" in self.kinds:
            return self._durations("m")
        if "b" in self.kinds and not self.words:
            return YesNo()
        if not self.words:
            return Numbers() if self.plain or "f" in self.kinds else self._categories()
        lower = {text.strip().lower() for text in self.texts} if len(self.texts) <= MOST_FORMS else set()
        # a letter alone may be one of other words
        pairs = [pair for pair in YES_NO if lower <= {*pair} and (len(lower) == 2 or len(pair[0]) > 1)]
        if lower and pairs and not self.unknown:
            return YesNo(*pairs[0])
        if orders := [order for order in self.orders if self._is_dated(order)]:
            return self._dates_of_text(orders)
        if self.spans and self.timed:
            return self._durations("span")
        found = written(self.shapes, self.comma)
        if found is not None:
            return Numbers(*found)
        if self._are_codes():
            return self._categories()
        # numbers with a few words among them are a mistake, not categories
        if self.plain < self.words and not mostly_numbers(self.shapes, self.comma):
            return self._categories()
        signs = signs_in(self.shapes)
        if 1 < len(signs) <= MOST_UNITS:
            raise InputError(
                f"its numbers have {' and '.join(signs)}, which are not the same. Write them in one unit, and"
                " the unit into the column's name."
            )
        alike = Counter({shape: count for shape, count in self.shapes.items() if shape != NONE})
        if self.plain:
            return None
        found = written(alike, self.comma)
        if found is not None:
            return Numbers(*found)  # which names a text that is no such number
        usual = prevailing(alike, self.comma)
        odd = sorted(text for text in self.texts if shape_of(text) not in usual) if usual else []
        if odd:
            found = written(usual, self.comma)
            assert found is not None
            told, others = Numbers(*found).told, f", nor are {len(odd) - 1:,} more" if len(odd) > 1 else ""
            raise InputError(
                f"{odd[0]!r} is not written as most others are{others}; they are {told}."
                " Correct it, or leave the cell empty."
            )
        return None

    def _are_codes(self) -> bool:
        """Whether numbers and words are names of a few kinds. 12x and 1,5 are numbers with a mistake."""
        texts = [text.strip() for text in self.texts]
        numbers = sum(text.isdecimal() for text in texts)
        few = FEWEST_CODES <= numbers < len(texts) <= MOST_CODES
        often = CELLS_A_CODE * len(texts) <= self.plain + self.words
        return few and often and all(text.isdecimal() or text.isalpha() for text in texts)

    def _categories(self) -> Categories:
        if self.many:
            raise TooManyError
        return Categories(tuple(sorted(self.texts | self.unknown)))

    def _declared_reading(self) -> Reading:
        assert self.declared is not None
        if self.many:
            raise TooManyError
        if not self.declared.categorical:
            unknown = sorted(self.texts - set(self.declared.levels))
            if unknown:
                raise InputError(f"{unknown[0]!r} is not in the order {' < '.join(self.declared.levels)}.")
            return self.declared
        levels = set(self.declared.levels) | self.texts
        return Categories(tuple(sorted(levels)))

    def _is_dated(self, order: str) -> bool:
        """Whether texts are dates, or so many of them that the others are mistakes."""
        return self.dated[order] >= (FEWEST_DATED * self.undated[order] or 1)

    def _dates_of_text(self, orders: list[str]) -> Dates:
        fewest = min(self.undated[order] for order in orders)
        orders = [order for order in orders if self.undated[order] == fewest]
        if "fy" in orders and len(self.texts) > 1:  # 2024/25, of which a few may be months as well
            return self._dates("fy", "fy")
        orders = [order for order in orders if order != "fy"] or orders
        if len(orders) > 1 and self.unsure and not fewest:
            raise InputError(
                f"{self.unsure!r} may be a day and a month or a month and a day, and no other cell tells."
                " Write dates as 2024-12-31."
            )
        return self._dates(orders[0], orders[0])  # which names a text that is no date

    def _dates(self, what: str, order: str) -> Dates:
        least, most = self.ranges.get(what, (0.0, 0.0))
        start = np.datetime64(int(least), "us").astype("M8[s]")
        return Dates(str(start), _unit_of(most - least), order)

    def _durations(self, what: str) -> Durations:
        return Durations(_unit_of(max(map(abs, self.ranges.get(what, (0.0,))))))


class TooManyError(InputError):
    """A column of more texts than categories may have."""


def too_many(where: str, name: str) -> InputError:
    return InputError(
        f"{where}, column {name!r}: more than {MOST_CATEGORIES:,} different texts, which are too many for"
        " categories. If it is an id, leave it out. Or group its values."
    )


def _micros(date: datetime.datetime) -> int:
    return int(np.datetime64(date, "us").astype(np.int64))


def _unit_of(span: float) -> str:
    """Of a span in microseconds: years from ten of them on, hours below three days."""
    if span >= 10 * UNITS["years"]:
        return "years"
    return "hours" if span < 3 * UNITS["days"] else "days"
