"""Dates, times and spans of time in text.

2024-12-31  2024-12-31T10:00Z  2024-12-31 10:00:00+02:00  2024-12  2024-Q4  2024/12/31
31.12.2024  31/12/2024 10:00  12/31/2024 10:00 PM  31 Dec 2024  Dec 31, 2024  Tue, 31 Dec 2024
1 days 02:30:00  02:30  26:00:05
"""

from __future__ import annotations

import datetime
import re

ORDERS = ("dmy", "mdy")  # of a date in three numbers with the year last

_TIME = (
    r"(?:,?[T\s]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<part>\d+))?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|GMT|[+-]\d{2}:?\d{2})?)?"
)
_YEAR_FIRST = re.compile(r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})(?:\2(?P<day>\d{1,2}))?" + _TIME)
_QUARTER = re.compile(r"(?P<year>\d{4})[-\s]?Q(?P<quarter>[1-4])")
_YEAR_LAST = re.compile(
    r"(?P<first>\d{1,2})(?P<by>[-/.])(?P<second_>\d{1,2})(?P=by)(?P<year>\d{4}|\d{2})" + _TIME
)
_DAY = r"(?:[A-Za-z]{3,9}\.?,\s*|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\s+)?"
_NAMED = re.compile(
    _DAY
    + r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?[\s-]+(?P<name>[A-Za-z]{3,9})\.?,?[\s-]+(?P<year>\d{4}|\d{2})"
    + _TIME
)
_NAMED_FIRST = re.compile(
    _DAY + r"(?P<name>[A-Za-z]{3,9})\.?\s+(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+)?(?P<year>\d{4})" + _TIME
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SPAN = re.compile(
    r"(?P<sign>-)?(?:(?P<days>-?\d{1,9})\s+days?,?\s*)?(?:(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)"
    r"(?::(?P<seconds>[0-5]\d(?:\.\d+)?))?)?"
)


def read_date(text: str, order: str = "dmy") -> datetime.datetime | None:
    """A date or a time, in UTC where it has a zone; None where the text is none."""
    text = text.strip()
    if len(text) >= 10 and text[4] == "-":
        try:
            return _in_utc(datetime.datetime.fromisoformat(text))
        except (ValueError, OverflowError):  # its zone leads beyond the years 1 to 9999
            pass
    if not text[:1].isalnum() or not any(map(str.isdigit, text)):
        return None
    for pattern in (_YEAR_FIRST, _YEAR_LAST, _NAMED, _NAMED_FIRST, _QUARTER):
        found = pattern.fullmatch(text)
        if found is not None:
            return _made(found.groupdict(), order)
    return None


def _made(part: dict[str, str | None], order: str) -> datetime.datetime | None:
    year = int(part["year"] or 0)
    year += (1900 if year >= 69 else 2000) if len(part["year"] or "") == 2 else 0
    month, day = int(part.get("month") or 1), int(part.get("day") or 1)
    if part.get("quarter"):
        month = 3 * int(part["quarter"] or 1) - 2
    if part.get("name"):
        word = str(part["name"]).lower()
        if word[:3] not in _MONTHS or not _is_month(word):
            return None
        month = _MONTHS.index(word[:3]) + 1
    if part.get("first"):
        day, month = int(part["first"] or 0), int(part["second_"] or 0)
        if order == "mdy":
            if part["by"] == ".":  # nobody writes 12.31.2024
                return None
            day, month = month, day
    hour = int(part.get("hour") or 0)
    if part.get("half"):
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if str(part["half"])[0] in "pP" else 0)
    micro = int(f"{part.get('part') or '0':0<6}"[:6])
    try:
        time = datetime.datetime(
            year, month, day, hour, int(part.get("minute") or 0), int(part.get("second") or 0), micro
        )
    except ValueError:
        return None
    zone = part.get("zone")
    if zone and zone[0] in "+-":
        ahead = datetime.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        try:
            time = time - ahead if zone[0] == "+" else time + ahead
        except OverflowError:
            return None
    return time


def _is_month(word: str) -> bool:
    names = "january february march april may june july august september october november december sept"
    return len(word) == 3 or word in names.split()


def _in_utc(time: datetime.datetime) -> datetime.datetime:
    return time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)


def read_span(text: str) -> float | None:
    """A span of time in microseconds; None where the text is none."""
    found = _SPAN.fullmatch(text.strip())
    if found is None or (found["days"] is None and found["hours"] is None):
        return None
    seconds = 3600 * int(found["hours"] or 0) + 60 * int(found["minutes"] or 0) + float(found["seconds"] or 0)
    # pandas writes -1 days +23:00:00: the days alone carry the sign
    total = 86400 * int(found["days"] or 0) + seconds
    return 1e6 * (-total if found["sign"] else total)
