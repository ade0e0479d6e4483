"""Dates, times and spans of time in text.

2024-12-31  2024-12-31T10:00Z  20241231T100000  2024-12-31 10:00:00 CET  2024-12  12/2024  2024/12/31
31.12.2024  31. 12. 24  31/12/2024 10h05  31.12.2024 um 10:00 Uhr  12/31/2024 10:00 PM  2024年12月31日
31 Dec 2024  Dec 31, 2024  Tue, 31 Dec 2024  31DEC2024:10:00:00  31/Dec/2024  Tue Dec 31 10:00:00 2024
2024-Dec-31  Dec-24  dez/24  December 2024  2024 December  2024M12  2024-W52  KW 52/2024
2024-Q4  4Q24  Q4 '24  4. Quartal 2024  FY24 Q4  2024H2  FY2024/25  2024-2025
1 days 02:30:00  02:30  26:00:05  1:03.9  10:30 PM  1h 30m  1h30  PT1H30M
"""

from __future__ import annotations

import datetime
import re

# of a date in three numbers with the year last; fy: of years that end in the next one, 2024/25
ORDERS = ("dmy", "mdy", "fy")

# hours east of Greenwich: those of RFC 5322, and of Europe and the Far East where no other zone is so called
_ZONES = {
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "WET": 0, "WEST": 1, "BST": 1, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3,
    "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
}  # fmt: skip
_CLOCK = (
    r"(?P<hour>\d{1,2})[:.hH](?P<minute>\d{2})(?:[:.](?P<second>\d{2})(?:[.,](?P<part>\d+))?)?"
    r"(?:\s*Uhr)?\s*(?P<half>[AaPp]\.?[Mm]\.?)?"
)
_ZONE = rf"\s*(?P<zone>Z|UTC|GMT|{'|'.join(_ZONES)}|[+-]\d{{2}}(?::?\d{{2}})?)?(?:\[[\w/+-]+\])?"
_TIME = rf"(?:(?:,?[T\s]\s*(?:(?:-|–|à|at|um|kl\.?)\s+)?){_CLOCK}{_ZONE})?"
_LOG_TIME = rf"(?:(?:,?[T\s:]\s*(?:(?:-|–|à|at|um|kl\.?)\s+)?){_CLOCK}{_ZONE})?"  # 31/Dec/2024:10:00:00
_CENTURY = r"(?P<year>(?:1[5-9]|2[01])\d\d)"  # of a year beside one other number: 12-3456 is a code
_SHORT = _CENTURY[:-1] + r"|\d\d)"
_DAY = r"(?:[^\W\d_]{3,10}\.?,\s*|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*\s+)?"
_NAME = r"(?P<name>[^\W\d_]{3,12})\.?"
_WEEKS = r"(?:KW|CW|W|[Ww]eek|[Ww]k)\.?\s?(?P<week>\d{1,2})"
_THIRDS = r"(?:[Qq]|\.?\s?Quartal|(?:er?|º|\.)?\s?[Tt]rim(?:\.|estre)?)"
_PATTERNS = tuple(
    map(
        re.compile,
        (
            r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})(?:\2(?P<day>\d{1,2}))?" + _TIME,
            r"(?P<first>\d{1,2})(?P<by>[-/.])\s?(?P<second_>\d{1,2})(?P=by)\s?(?P<year>\d{4}|\d{2})" + _TIME,
            _DAY
            + rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?[\s/-]*(?:de )?{_NAME},?[\s/-]*(?:de )?"
            + r"(?P<year>\d{4}|\d{2})"
            + _LOG_TIME,
            _DAY
            + _NAME
            + r"(?:[\s-]+(?P<day>\d{1,2})(?:st|nd|rd|th)?)?(?:,\s*|[\s/-]+)(?P<year>\d{4})"
            + _TIME,
            _NAME + r"(?:[-/]|\s?['’])(?P<year>\d{2})",  # Dec-24, as spreadsheets have it, Dec '24
            _CENTURY + rf"[\s/-]+{_NAME}(?:[\s/-]+(?P<day>\d{{1,2}}))?",
            _DAY + _NAME + rf"\s+(?P<day>\d{{1,2}})\s+{_CLOCK}{_ZONE}\s+(?P<year>\d{{4}})",
            r"(?P<year>\d{4})(?:年|년)\s*(?P<month>\d{1,2})(?:月|월)(?:\s*(?P<day>\d{1,2})(?:日|일))?"
            + _TIME,
            r"(?P<year>\d{4})\.\s+(?P<month>\d{1,2})\.\s+(?P<day>\d{1,2})\.?",
            r"(?:FY\s?)?" + _CENTURY + r"[-\s/:.]*[Qq](?P<quarter>[1-4])",
            r"FY\s?" + _SHORT + r"[-\s/:.]*[Qq](?P<quarter>[1-4])",
            r"[QqT](?P<quarter>[1-4])(?:[-\s/.:]+|\s*FY\s?|\s?['’])?" + _CENTURY,
            r"[Qq](?P<quarter>[1-4])(?:[-\s/.:]+|\s*FY\s?|\s?['’])" + _SHORT,
            rf"(?P<quarter>[1-4]){_THIRDS}[-\s/]*['’]?" + _SHORT,
            _CENTURY + r"[-\s/:]?[HS](?P<semester>[12])",
            r"[HS](?P<semester>[12])[-\s/]?" + _CENTURY,
            r"(?P<semester>[12])H[-\s/]?['’]?" + _SHORT,
            _CENTURY + r"-?W(?P<week>\d{2})(?:-?(?P<weekday>[1-7]))?",
            _CENTURY + r"[\s/-]*" + _WEEKS,
            _WEEKS + r"[\s/,.-]+" + _CENTURY,
            r"(?P<month>\d{1,2})[-/]" + _CENTURY,
            _CENTURY + r"-?M(?P<month>\d{2})",
        ),
    )
)
_YEARS = re.compile(
    rf"(?:FY\s?)?{_CENTURY}\s?[-/–]\s?(?P<next>\d{{4}}|\d{{2}})|FY\s?(?P<short>\d{{4}}|\d{{2}})"
)
_COMPACT = re.compile(r"\d{8}T\d{4,6}.*")
# in English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, Danish, Norwegian, Polish, Russian
_MONTHS = (
    "january januar janvier enero gennaio janeiro januari jänner stycznia styczeń января январь",
    "february februar février febrero febbraio fevereiro februari lutego luty февраля февраль",
    "march märz mars marzo março maart mrz mrt marts marca marzec марта март",
    "april avril abril aprile kwietnia kwiecień апреля апрель",
    "may mai mayo maggio maio mei maj maja мая май",
    "june juni juin junio giugno junho czerwca czerwiec июня июнь",
    "july juli juillet julio luglio julho lipca lipiec июля июль",
    "august août agosto augustus augusti sierpnia sierpień августа",
    "september septembre septiembre settembre setembro września wrzesień сентября сентябрь",
    "october oktober octobre octubre ottobre outubro października październik октября октябрь",
    "november novembre noviembre novembro listopada ноября ноябрь",
    "december dezember décembre diciembre dicembre dezembro desember grudnia grudzień декабря декабрь",
)
# 1:03.9 and 5:07 min have no hours
_LAPS = re.compile(r"(?=.*[.m])(?P<minutes>\d{1,3}):(?P<seconds>[0-5]\d(?:\.\d+)?)(?:\s?min(?:ute)?s?)?")
_HOURS = re.compile(  # 5h07, 5:07 h
    r"(?P<hours>\d{1,4})(?:(?P<colon>:)|\s?[hH]\s?)(?P<minutes>[0-5]\d)(?(colon)\s?[hH](?:(?:ou)?rs?)?)"
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
    if order == "fy":
        return _year_of(text)
    if (len(text) >= 10 and text[4] == "-") or _COMPACT.fullmatch(text):
        try:
            return _in_utc(datetime.datetime.fromisoformat(text))
        except (ValueError, OverflowError):  # its zone leads beyond the years 1 to 9999
            pass
    if not text[:1].isalnum() or not any(map(str.isdigit, text)):
        return None
    for pattern in _PATTERNS:
        found = pattern.fullmatch(text)
        date = None if found is None else _made(found.groupdict(), order)
        if date is not None:
            return date
    return None


def _year_of(text: str) -> datetime.datetime | None:
    """The beginning of a year that ends in the next one, as budgets, seasons and schools count: 2024/25."""
    found = _YEARS.fullmatch(text)
    if found is None:
        return None
    year = _full(found["year"] or found["short"])
    if found["next"] and int(found["next"]) not in (year + 1, (year + 1) % 100):
        return None
    return datetime.datetime(year, 1, 1)


def _full(year: str) -> int:
    """A year in four digits; of two, those from 69 on belong to the last century."""
    return int(year) + ((1900 if int(year) >= 69 else 2000) if len(year) == 2 else 0)


def _made(part: dict[str, str | None], order: str) -> datetime.datetime | None:
    year = _full(part["year"] or "0000")
    month, day = int(part.get("month") or 1), int(part.get("day") or 1)
    if part.get("quarter"):
        month = 3 * int(part["quarter"] or 1) - 2
    if part.get("semester"):
        month = 6 * int(part["semester"] or 1) - 5
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
    minute, second = int(part.get("minute") or 0), int(part.get("second") or 0)
    midnight = hour == 24 and minute == second == micro == 0  # at the end of that day
    try:
        if part.get("week"):
            monday = datetime.date.fromisocalendar(
                year, int(part["week"] or 1), int(part.get("weekday") or 1)
            )
            return datetime.datetime.combine(monday, datetime.time())
        time = datetime.datetime(year, month, day, 0 if midnight else hour, minute, second, micro)
        return time + datetime.timedelta(days=midnight) - _east(part.get("zone"))
    except (ValueError, OverflowError):
        return None


def _east(zone: str | None) -> datetime.timedelta:
    """How far the clocks of a zone are ahead of those of Greenwich."""
    if not zone or zone[0] not in "+-":
        return datetime.timedelta(hours=_ZONES.get(zone or "", 0))
    ahead = datetime.timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].strip(":") or 0))
    return ahead if zone[0] == "+" else -ahead


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
    short = _LAPS.fullmatch(text) or _HOURS.fullmatch(text)
    if short is not None:
        part = short.groupdict()
        hours, minutes, seconds = (float(part.get(name) or 0) for name in ("hours", "minutes", "seconds"))
        return 1e6 * (3600 * hours + 60 * minutes + seconds)
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
