"""Periods as people say them: "1 year", "7 days", "24 hours"."""

from __future__ import annotations

import re

from gramian.errors import ParameterError

# in days; a year is the average one of the Gregorian calendar, a month its twelfth
DAYS = {
    "second": 1 / 86400,
    "minute": 1 / 1440,
    "hour": 1 / 24,
    "day": 1.0,
    "week": 7.0,
    "month": 365.2425 / 12,
    "year": 365.2425,
}
_TEXT = re.compile(rf"\s*(\d+(?:\.\d+)?)?\s*({'|'.join(DAYS)})s?\s*")


def days_of(text: str) -> float:
    """The length of a period in days."""
    found = _TEXT.fullmatch(text.lower())
    days = 0.0 if found is None else float(found[1] or 1) * DAYS[found[2]]
    if days <= 0:
        raise ParameterError(
            f"{text!r} is no period. Write a number and a unit, such as '1 year', '7 days' or '24 hours'"
            f" ({', '.join(DAYS)}), or give the number alone, in the units of the column."
        )
    return days
