"""Dates, times and spans of time in text.

2024-12-31  2024-12-31T10:00Z  2024-12-31 10:00:00+02:00  2024-12  12/2024  2024/12/31  2024-W52  2024-Q4
31.12.2024  31/12/2024 10:00  12/31/2024 10:00 PM  31 Dec 2024  Dec 31, 2024  Tue, 31 Dec 2024  Dec-24
2024 Dec  2024 W52
Q4 2024  1 days 02:30:00  02:30  26:00:05  10:30 PM  1h 30m  PT1H30M
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
_CENTURY = r"(?P<year>(?:1[5-9]|2[01])\d\d)"  # of a year beside one other number: 12-3456 is a code
_QUARTER = re.compile(r"(?P<year>\d{4})[-\s/]?[Qq](?P<quarter>[1-4])")
_QUARTER_FIRST = re.compile(r"[Qq](?P<quarter>[1-4])[-\s/]?" + _CENTURY)
_WEEK = re.compile(_CENTURY + r"[-\s]?W(?P<week>\d{2})(?:-?(?P<weekday>[1-7]))?")
_MONTH_FIRST = re.compile(r"(?P<month>\d{1,2})[-/]" + _CENTURY)
_YEAR_LAST = re.compile(
    r"(?P<first>\d{1,2})(?P<by>[-/.])(?P<second_>\d{1,2})(?P=by)(?P<year>\d{4}|\d{2})" + _TIME
)
_DAY = r"(?:[^\W\d_]{3,10}\.?,\s*|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\s+)?"
_NAME = r"(?P<name>[^\W\d_]{3,10})\.?"
_NAMED = re.compile(
    _DAY
    + rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?[\s-]+(?:de )?{_NAME},?[\s-]+(?:de )?(?P<year>\d{{4}}|\d{{2}})"
    + _TIME
)
_NAMED_FIRST = re.compile(
    _DAY + _NAME + r"[\s-]+(?:(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+)?(?P<year>\d{4})" + _TIME
)
_NAMED_YEAR = re.compile(_NAME + r"(?:-|\s?['’])(?P<year>\d{2})")  # Dec-24, as spreadsheets have it, Dec '24
_YEAR_NAMED = re.compile(_CENTURY + r"[\s-]" + _NAME)  # 2024 Dec, as R's tables of series have it
_PATTERNS = (
    _YEAR_FIRST,
    _YEAR_LAST,
    _NAMED,
    _NAMED_FIRST,
    _NAMED_YEAR,
    _YEAR_NAMED,
    _QUARTER,
    _QUARTER_FIRST,
    _WEEK,
    _MONTH_FIRST,
)
# in English, German, French, Spanish, Italian, Portuguese and Dutch
_MONTHS = (
    "january januar janvier enero gennaio janeiro januari jänner",
    "february februar février febrero febbraio fevereiro februari",
    "march märz mars marzo março maart mrz mrt",
    "april avril abril aprile",
    "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho",
    "july juli juillet julio luglio julho",
    "august août agosto augustus",
    "september septembre septiembre settembre setembro",
    "october oktober octobre octubre ottobre outubro",
    "november novembre noviembre novembro",
    "december dezember décembre diciembre dicembre dezembro",
)
_SPAN = re.compile(
    r"(?P<sign>-)?(?:(?P<days>-?\d{1,9})\s+days?,?\s*)?(?:(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d)"
    r"(?::(?P<seconds>[0-5]\d(?:\.\d+)?))?(?:\s*(?P<half>[AaPp]\.?[Mm]\.?))?)?"
)
_COUNT = r"(\d+(?:\.\d+)?)\s*"
_UNITS = {
    r"d(?:ays?)?": 86400,
    r"h(?:(?:ou)?rs?)?": 3600,
    r"m(?:in(?:ute)?s?)?": 60,
    r"s(?:ec(?:ond)?s?)?": 1,
}
_PARTS = re.compile(r",?\s*".join(rf"(?:{_COUNT}{unit})?" for unit in _UNITS), re.IGNORECASE)


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
    for pattern in _PATTERNS:
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
        month = _month(str(part["name"]).lower())
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
        if part.get("week"):
            monday = datetime.date.fromisocalendar(year, int(part["week"] or 1), int(part["weekday"] or 1))
            return datetime.datetime.combine(monday, datetime.time())
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


def _month(word: str) -> int:
    """The month that a word is the beginning of; 0 where it is none, or of more than one."""
    found = [k for k, names in enumerate(_MONTHS, 1) if any(n.startswith(word) for n in names.split())]
    return found[0] if len(found) == 1 else 0


def _in_utc(time: datetime.datetime) -> datetime.datetime:
    return time if time.tzinfo is None else time.astimezone(datetime.UTC).replace(tzinfo=None)


def read_span(text: str, one_unit: bool = True) -> float | None:
    """A span of time in microseconds; None where the text is none. `one_unit`: whether 5 m may be one, where
    it could be a length."""
    text = text.strip()
    found = _SPAN.fullmatch(text)
    if found is None or (found["days"] is None and found["hours"] is None):
        return _of_parts(text, one_unit)
    hours = int(found["hours"] or 0)
    if found["half"]:
        if not 1 <= hours <= 12 or found["days"] or found["sign"]:
            return None
        hours = hours % 12 + (12 if found["half"][0] in "pP" else 0)
    seconds = 3600 * hours + 60 * int(found["minutes"] or 0) + float(found["seconds"] or 0)
    # pandas writes -1 days +23:00:00: the days alone carry the sign
    total = 86400 * int(found["days"] or 0) + seconds
    return 1e6 * (-total if found["sign"] else total)


def _of_parts(text: str, one_unit: bool) -> float | None:
    """1h 30m, 2 days 5 min; PT1H30M, where ISO 8601 has minutes after the T alone."""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    if iso := text.startswith("P"):
        days, _, rest = text[1:].partition("T")
        if "M" in days:
            return None
        text = f"{days} {rest}".strip()
    found = _PARTS.fullmatch(text)
    counts = [] if found is None else [count for count in found.groups() if count is not None]
    if found is None or len(counts) < (1 if iso or one_unit else 2):
        return None
    parts = zip(found.groups(), _UNITS.values(), strict=True)
    return sign * 1e6 * sum(float(count) * unit for count, unit in parts if count is not None)
