"""The axis of a series: dates, or numbers, as one float64 a row; its usual step; what comes after its end.

Dates are days since an origin, the first of them. The step of a calendar is no number of days: months,
quarters and years are counted as months (on the same day, or on the last day of each), working days as days
without weekends. What fits none of these has the median of its differences as its step.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data.cells import Cells
from gramian.data.dates import ORDERS, read_date
from gramian.data.inputs import decided, numbers_of
from gramian.data.readings import PLAIN, Categories, Dates, Reading, YesNo
from gramian.errors import InputError, ParameterError

DAY = 86_400_000_000  # microseconds
MOST_STEPS = 1_000_000  # of a horizon
FAR = 10_000.0  # days
FARTHEST = 1e60  # units: kernels of a trend have cubes of the span
USUAL = 0.5  # of all differences, from which on one is the usual
_HORIZON = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*")
_UNITS = {
    "s": ("micros", DAY / 86_400),
    "sec": ("micros", DAY / 86_400),
    "second": ("micros", DAY / 86_400),
    "min": ("micros", DAY / 1440),
    "minute": ("micros", DAY / 1440),
    "h": ("micros", DAY / 24),
    "hour": ("micros", DAY / 24),
    "d": ("micros", DAY),
    "day": ("micros", DAY),
    "w": ("micros", 7 * DAY),
    "week": ("micros", 7 * DAY),
    "M": ("months", 1),
    "month": ("months", 1),
    "Q": ("months", 3),
    "quarter": ("months", 3),
    "y": ("months", 12),
    "year": ("months", 12),
}
# of steps, the longest first
_NAMED = (
    ("weekly", "weeks", 7.0),
    ("daily", "days", 1.0),
    ("hourly", "hours", 1 / 24),
    ("every minute", "minutes", 1 / 1440),
    ("every second", "seconds", 1 / 86_400),
)
SPELLED = "a count of steps (12), or a span: '24h', '90d', '8w', '12M' (months), '2y'"


@dataclass(frozen=True)
class Step:
    """From one row to the next, as a rule."""

    size: float  # in days, or in the units of numbers
    months: int = 0  # a calendar's months; 0: none of it
    at_end: bool = False  # each on the last day of its month
    working: bool = False  # days without weekends

    def told(self, dated: bool) -> str:
        """In words; of numbers their size alone."""
        if not dated:
            return f"a step of {self.size:.4g} as a rule"
        if self.months:
            words = {1: "monthly", 3: "quarterly", 12: "yearly"}
            years = f"every {self.months // 12} years" if self.months % 12 == 0 else ""
            return words.get(self.months, years or f"every {self.months} months")
        if self.working:
            return "working days"
        for word, unit, days in _NAMED:
            count = round(self.size / days)
            if count >= 1 and abs(self.size - count * days) < 1e-9 + 1e-6 * days:
                return word if count == 1 else f"every {count:,} {unit}"
        return f"a step of {self.size:.4g} days as a rule"


@dataclass(frozen=True)
class Axis:
    """How the times of a series are read and written."""

    reading: Dates | None  # None: numbers

    @property
    def dated(self) -> bool:
        return self.reading is not None

    @property
    def origin(self) -> np.datetime64:
        assert self.reading is not None
        return self.reading.origin

    def read(self, cells: Cells, name: str, place: Callable[[int], str] | None = None) -> Array:
        """Times of a column, NaN where there is none."""
        if self.reading is None:
            if cells.kind in "Mm":
                raise InputError(f"Column {name!r} holds dates, but the series was fitted to numbers.")
            return numbers_of(PLAIN, cells, name, place)
        if cells.kind == "f":
            raise InputError(
                f"Column {name!r} holds numbers, but the series was fitted to dates such as"
                f" {self.labels(np.zeros(1))[0]}. Give dates."
            )
        return numbers_of(self.reading, cells, name, place)

    def refuse_far(self, t: Array, name: str) -> None:
        """Refuses numbers whose powers leave the range of numbers."""
        span = float(np.ptp(t / 2))
        largest = float(np.max(np.abs(t)))
        if not self.dated and (largest > FARTHEST or 0 < span < 1 / FARTHEST):
            what = f"Column {name!r} has times of size {largest:.3g} that are {2 * span:.3g} apart"
            unit = 10.0 ** np.floor(np.log10(max(largest, 1e-300)))
            raise InputError(f"{what}. Give them in other units: {name} / {unit:.0e}.")

    def labels(self, t: Array) -> NDArray[Any]:
        """Times as people write them: datetime64[us], or the numbers."""
        if self.reading is None:
            return t
        return self.origin + _micros(t).astype("m8[us]")

    def word(self, t: float) -> str:
        """One of them, for a message."""
        if self.reading is None:
            return f"{t:g}"
        return str(self.labels(np.array([t]))[0].astype("M8[s]")).replace("T00:00:00", "").replace("T", " ")

    def step(self, t: Array) -> Step:
        """What is usual between sorted, different times."""
        if len(t) < 2:
            return Step(1.0)
        gaps = np.diff(t)
        usual = float(np.median(gaps))
        if not self.dated:
            return Step(usual)
        micros = _micros(t)
        dates = self.origin + micros.astype("m8[us]")
        found = _calendar(dates)
        if found is not None:
            return found
        sizes, counts = np.unique(np.diff(micros), return_counts=True)
        most = int(np.argmax(counts))
        if counts[most] < USUAL * len(gaps):
            return Step(usual)
        weekday = (dates.astype("M8[D]").astype(np.int64) + 3) % 7  # Monday is 0
        if sizes[most] == DAY and t[-1] - t[0] >= 13 and np.all(weekday < 5):
            return Step(1.0, working=True)
        return Step(float(sizes[most]) / DAY)

    def following(self, last: float, step: Step, horizon: Any) -> Array:
        """The times after the last one, a step apart, up to a horizon: so many steps, or a span."""
        if isinstance(horizon, (bool, np.bool_)):
            raise ParameterError(f"horizon={horizon!r} is none. Give {SPELLED}.")
        if isinstance(horizon, (int, np.integer)) and not isinstance(horizon, np.timedelta64):
            if not 1 <= horizon <= MOST_STEPS:
                raise ParameterError(f"horizon={horizon} must be from 1 to {MOST_STEPS:,} steps.")
            return self._after(last, step, int(horizon))
        end = self._end(last, horizon)
        count = int(min(max(2.0, 1.1 * (end - last) / step.size + 40), MOST_STEPS))
        found = self._after(last, step, count)
        found = found[found <= end + 1e-9 * max(abs(end), 1.0)]
        if not len(found):
            raise ParameterError(
                f"horizon={horizon!r} is shorter than a step of the series ({step.told(self.dated)}). Give a"
                " longer one, or a count of steps."
            )
        return found

    def _end(self, last: float, horizon: Any) -> float:
        if isinstance(horizon, (float, np.floating)):
            if not self.dated and 0 < horizon < np.inf:
                return last + float(horizon)
            raise ParameterError(f"horizon={horizon!r} is no horizon of dates. Give {SPELLED}.")
        if not self.dated:
            cure = "a count of steps (12), or a length in their units (2.5)"
            raise ParameterError(f"horizon={horizon!r}: the times of this series are numbers. Give {cure}.")
        if isinstance(horizon, (datetime.timedelta, np.timedelta64)):
            micros = float(np.timedelta64(horizon).astype("m8[us]").astype(np.int64))
            if micros <= 0:
                raise ParameterError(f"horizon={horizon!r} must be positive.")
            return last + micros / DAY
        match = _HORIZON.fullmatch(horizon) if isinstance(horizon, str) else None
        unit = None if match is None else _unit(match[2])
        if match is None or unit is None or float(match[1]) == 0:
            hint = " For months write M, for minutes min." if match is not None and match[2] == "m" else ""
            raise ParameterError(f"horizon={horizon!r} is none.{hint} Give {SPELLED}.")
        count, (kind, size) = float(match[1]), unit
        if kind == "micros":
            return last + count * size / DAY
        if count != int(count):
            raise ParameterError(f"horizon={horizon!r}: give whole months, quarters and years.")
        start = self.labels(np.array([last]))[0]
        at_end = _is_month_end(np.array([start.astype("M8[D]")]))[0]
        end = _months_after(start, np.array([int(count * size)]), bool(at_end))[0]
        return float((end - self.origin).astype(np.int64)) / DAY

    def _after(self, last: float, step: Step, count: int) -> Array:
        if step.months:
            start = self.labels(np.array([last]))[0]
            dates = _months_after(start, step.months * np.arange(1, count + 1), step.at_end)
            return (dates - self.origin).astype(np.int64) / DAY
        if step.working:
            day = np.datetime64(self.labels(np.array([last]))[0], "D")
            within = last - float((day - self.origin.astype("M8[D]")).astype(np.int64))
            days = np.busday_offset(day, np.arange(1, count + 1), roll="backward")
            return (days - self.origin.astype("M8[D]")).astype(np.int64) + within
        if not self.dated:
            return last + step.size * np.arange(1.0, count + 1)
        return _micros(last + step.size * np.arange(1.0, count + 1)) / DAY


def axis_of(cells: Cells, name: str, place: Callable[[int], str] | None = None) -> Axis:
    """Dates or numbers, whichever a column holds; a cell that is neither is named."""
    reading: Reading | None = decided([cells], "The table", name)
    if reading is not None and reading.dates is not None:
        return Axis(replace(reading.dates, unit="days"))
    if isinstance(reading, (Categories, YesNo)) or (cells.kind == "O" and reading is None):
        _refuse(cells, name, place)
    _refuse_digits(numbers_of(PLAIN, cells, name, place), name)
    return Axis(None)


def _refuse_digits(t: Array, name: str) -> None:
    """Months or days in one number, as 202412 and 20241231: as numbers, a year has 89 steps at its end that
    nothing happens in, and a forecast goes on with a 13th month."""
    seen = np.unique(t[np.isfinite(t)])
    if not len(seen) or np.any(seen != np.floor(seen)):
        return
    for pattern, strptime, example, digits in (
        ("YYYYMM", "%Y%m", "2024-12", 1),
        ("YYYYMMDD", "%Y%m%d", "2024-12-31", 100),
    ):
        months, days = seen // digits, (seen % digits if digits > 1 else np.ones(len(seen)))
        year, month = months // 100, months % 100
        valid = (year >= 1500) & (year < 2200) & (month >= 1) & (month <= 12) & (days >= 1) & (days <= 31)
        ends = year if digits == 1 else months  # what such numbers leap over
        if np.all(valid) and ends[0] < ends[-1]:
            raise InputError(
                f"Column {name!r} holds numbers such as {seen[0]:.0f}, which look like dates written as"
                f" {pattern}: as numbers they are not evenly apart. Write them as {example}, or give"
                f" pandas.to_datetime(table[{name!r}], format={strptime!r})."
            )


def _micros(t: Array) -> NDArray[np.int64]:
    """Days as whole microseconds; as milliseconds from decades on, where a float64 has no more digits."""
    unit = 1 if np.max(np.abs(t), initial=0.0) < FAR else 1000
    return np.round(t * (DAY // unit)).astype(np.int64) * unit


def _refuse(cells: Cells, name: str, place: Callable[[int], str] | None) -> None:
    """Names the first cell that is no date, where most are; in a column of other words, the first of it."""
    words = cells.text()
    for order in ORDERS:
        wrong = [i for i, word in enumerate(words) if word is not None and read_date(word, order) is None]
        if wrong and len(wrong) <= max(1, len(words) // 2):
            break
    if not wrong:
        return
    where = f"Row {wrong[0]}" if place is None else place(wrong[0])
    raise InputError(
        f"{where}, column {name!r}: {words[wrong[0]]!r} is not a date. Write dates as 2024-12-31, or"
        " 2024-12-31 10:00; or give numbers throughout."
    )


def _unit(word: str) -> tuple[str, float] | None:
    if word in _UNITS:
        return _UNITS[word]
    if word in ("D", "H", "W", "Y"):
        return _UNITS[word.lower()]
    return _UNITS.get(word.lower().removesuffix("s")) if len(word) > 1 else None


# The calendar. ----------------------------------------------------------------------------------------------


def _is_month_end(days: NDArray[Any]) -> NDArray[np.bool_]:
    return (days + np.timedelta64(1, "D")).astype("M8[M]") > days.astype("M8[M]")


def _calendar(dates: NDArray[Any]) -> Step | None:
    """A step in months, of dates on the same day of their months, or on the last."""
    days = dates.astype("M8[D]")
    if np.any(dates - days != (dates - days)[0]):
        return None
    months = days.astype("M8[M]").astype(np.int64)
    gaps = np.diff(months)
    if not np.all(gaps >= 1):
        return None
    at_end = bool(np.all(_is_month_end(days)))
    of_month = (days - days.astype("M8[M]")).astype(np.int64)
    if not at_end and np.any(of_month != of_month[0]):
        return None
    sizes, counts = np.unique(gaps, return_counts=True)
    count = int(sizes[np.argmax(counts)])
    return Step(count * 365.2425 / 12, months=count, at_end=at_end)


def _months_after(start: np.datetime64, months: NDArray[Any], at_end: bool) -> NDArray[Any]:
    """The same day and time so many months later; the last of the month where it has no such day."""
    day = start.astype("M8[D]")
    month = day.astype("M8[M]") + months.astype("m8[M]")
    length = (month + np.timedelta64(1, "M")).astype("M8[D]") - month.astype("M8[D]")
    nth = (day - day.astype("M8[M]").astype("M8[D]")) + np.zeros(len(months), "m8[D]")
    nth = length - np.timedelta64(1, "D") if at_end else np.minimum(nth, length - np.timedelta64(1, "D"))
    return (month.astype("M8[D]") + nth).astype("M8[us]") + (start - day.astype("M8[us]"))
