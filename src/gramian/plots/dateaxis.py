"""Ticks at dates along an axis of days, hours or years since a start: matplotlib's own, on its own days."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import dates as untyped
from matplotlib.ticker import Formatter, Locator

dates: Any = untyped


class DateTicks(Locator):
    """Where matplotlib puts ticks between two dates; `first` is the day of 0, `days` those of a unit."""

    def __init__(self, first: float, days: float) -> None:
        self.first, self.days, self.inner = first, days, dates.AutoDateLocator(minticks=3, maxticks=6)

    def __call__(self) -> Any:
        assert self.axis is not None
        return self.tick_values(*self.axis.get_view_interval())

    def tick_values(self, vmin: float, vmax: float) -> Any:
        low, high = (dates.num2date(self.first + self.days * end) for end in sorted((vmin, vmax)))
        return (np.asarray(self.inner.tick_values(low, high)) - self.first) / self.days


class DateWords(Formatter):
    """The dates of ticks: what all of them share stands once, beside the axis."""

    def __init__(self, ticks: DateTicks) -> None:
        self.ticks, self.inner = ticks, dates.ConciseDateFormatter(ticks.inner)

    def __call__(self, x: float, pos: int | None = None) -> str:
        return str(self.inner(self.ticks.first + self.ticks.days * x, pos))

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        return list(self.inner.format_ticks([self.ticks.first + self.ticks.days * v for v in values]))

    def get_offset(self) -> str:
        return str(self.inner.get_offset())
