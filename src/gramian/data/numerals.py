"""How numbers are written: 1,234.50 $, 12 %, 3,5, 12 kg, told from the shapes of all cells of a column."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

# a sign in front, Rs. with its point; the number; a unit, of short words: sq. ft., ° C
_NUMBER = re.compile(
    r"(?P<before>(?:Rs|Fr)\.|[^\d.,+()\-]*?)\s*\(?(?P<minus>[-+]?)\s*(?P<currency>[^\d.,+()\-\s]*)\s*"
    r"(?P<body>\d[\d.,' ]*?|[.,]\d+)(?:[eE][+-]?\d+)?\)?"
    r"\s*(?P<after>[^\d.,+()'\s\-][^\s]*(?: [^\W\d]{1,3}\.?){0,2})?\)?"
)
_WHOLE = re.compile(r"(?<=\d)\s*[.,:/]-$")  # 5.-, 5:- and 5/-, as prices without cents are written
_DASH = re.compile("[-−–]")
_NOTHING = re.compile(
    r"([^\W\d]{1,3}|[^\w\s.-])\s*-|-\s*([^\W\d]{1,3}|[^\w\s.-])"
)  # "$ -", as ledgers write 0
_SCALES = {*"KkMBbT", "Mio", "Mrd", "Mn", "mn", "bn", "Bn", "mil", "Mio.", "Mrd."}  # of a number without one?
_ABOUT, _BEFORE = "~≈", "~≈%"  # signs that may stand before a number, currencies aside
LONGEST = 60  # characters of a number with its sign; the pattern above takes the square of their count
MOST_TRIED = 100  # shapes, each beside those before it, for what most numbers look like
BRACKETS = "()"  # in the place of a sign: numbers in brackets are below zero, as bookkeepers write them
NONE = ""  # the shape of what is no number
# ISO 4217, and what people write: three letters alone may be the beginning of an id, PAT-0003
_CODES = re.compile(
    "AED|ARS|AUD|BDT|BGN|BHD|BRL|CAD|CHF|CLP|CNY|COP|CRC|CZK|DKK|DOP|DZD|EGP|ETB|EUR|GBP|GEL|GHS|HKD|HRK|HUF"
    "|IDR|ILS|INR|IQD|IRR|ISK|JOD|JPY|KES|KRW|KWD|KZT|LBP|LKR|MAD|MXN|MYR|NGN|NOK|NZD|OMR|PEN|PHP|PKR|PLN|PYG"
    "|QAR|RMB|RON|RSD|RUB|SAR|SEK|SGD|THB|TND|TRY|TWD|TZS|UAH|UGX|USD|UYU|UZS|VND|XAF|XOF|ZAR|ZMW"
    r"|[kK]r\.?|zł|Fr\.?|Rs\.?"
)


def unified(text: str) -> str:
    """The text with one kind of minus, in front, of space and apostrophe."""
    text = (text if text.isascii() else text.translate(_LIKE)).strip()
    nothing = _NOTHING.fullmatch(text)
    if nothing is not None and _is_currency(nothing[1] or nothing[2]):
        return f"{nothing[1] or nothing[2]} 0"
    if text[-1:] != "-":
        return text
    return f"-{text[:-1].rstrip()}" if _MINUS_LAST.fullmatch(text) else _WHOLE.sub("", text)


_POWER = re.compile(r"\d\s*((?![eE]\d)[^\W\d_][^\d\s]*[23])$")  # a unit with a digit of its own: m2, kg/m3
_MINUS_LAST = re.compile(r"[\d.,' ]*\d ?-")  # as some bookkeeping has it: 1.234,56-
_LIKE = str.maketrans({"−": "-", "–": "-", "\xa0": " ", "\u202f": " ", "\u2009": " ", "’": "'"})


def _is_currency(sign: str) -> bool:
    return any(unicodedata.category(c) == "Sc" for c in sign) or _CODES.fullmatch(sign) is not None


def written(shapes: Counter[str], comma: bool) -> tuple[str, str, tuple[str, ...]] | None:
    """How numbers of these shapes (each digit a 9) are written: the sign for decimals, the one between
    thousands, and signs to leave out; None where they are no numbers."""
    signs: Counter[str] = Counter()
    bodies = []
    for shape, count in shapes.items():
        found = _parts(shape)
        if found is None:
            return None
        body, own = found
        for sign in own:
            signs[sign] += count
        bodies.append(body)
    if unlike(signs):  # two currencies are no one number, nor are two units
        return None
    half = shapes.total() / 2
    if any(signs[sign] < half for sign in _units(signs) if sign not in "%‰"):
        return None  # a unit at a few numbers is more likely a typing error
    if any(signs[sign] < shapes.total() for sign in signs if sign in _SCALES):
        return None  # 950 beside 1.2K
    marks = _separators(bodies, comma)
    below = (BRACKETS,) * any("(" in shape for shape in shapes)
    return None if marks is None else (*marks, (*signs, *below))


def prevailing(shapes: Counter[str], comma: bool) -> Counter[str]:
    """The shapes of most numbers, where these are written in one way; else none."""
    agreeing: Counter[str] = Counter()
    for shape, count in shapes.most_common(MOST_TRIED):
        more = agreeing + Counter({shape: count})
        agreeing = more if written(more, comma) is not None else agreeing
    return agreeing if 2 * agreeing.total() > shapes.total() else Counter()


def _parts(shape: str) -> tuple[str, list[str]] | None:
    """The digits of a number, and the signs beside them; None where it is none."""
    found = _NUMBER.fullmatch(shape)
    if found is None:
        return None
    before, after = found["before"].strip() or found["currency"], found["after"] or ""
    if (before and not (before in _BEFORE or _is_currency(before))) or (
        found["before"].strip() and found["currency"]
    ):
        return None
    if after and not (after[0].isalpha() or after[0] in "%‰°" or _is_currency(after)):
        return None
    if "9" in after:  # 48°12'N is no number in °12'N
        return None
    return found["body"].strip(), [sign for sign in (before, after) if sign]


def signs_in(shapes: Counter[str]) -> list[str]:
    """The units, or else the currencies, of the numbers among these shapes that are more than one."""
    return unlike({sign for parts in map(_parts, shapes) if parts is not None for sign in parts[1]})


def unlike(signs: Iterable[str]) -> list[str]:
    """Units, or else currencies, of which there are several; $1.5M has one of each."""
    units = _units(signs)
    currencies = sorted(sign for sign in signs if _is_currency(sign))
    return next((found for found in (units, currencies) if len(found) > 1), [])


def _units(signs: Iterable[str]) -> list[str]:
    return sorted(sign for sign in signs if not (sign in _ABOUT or _is_currency(sign)))


def _separators(bodies: Sequence[str], comma: bool) -> tuple[str, str] | None:
    """The signs for decimals and between thousands in numbers of these shapes."""
    decimals: set[str] = set()
    thousands: set[str] = set()
    unsure: set[str] = set()
    grouped_all = _is_grouped(bodies)
    for body in bodies:
        seps = [c for c in body if c in ".,' "]
        kinds = set(seps)
        if len(kinds) > 2 or (len(kinds) == 2 and seps.count(seps[-1]) > 1):
            return None
        if len(kinds) == 2:
            decimals.add(seps[-1])
            thousands |= kinds - {seps[-1]}
            grouped = body[: body.rindex(seps[-1])]
        elif not kinds:
            continue
        else:
            (sep,), grouped = kinds, body
            alone = re.fullmatch(r"9{1,3}([.,' ]9{2,3})*[.,' ]9{3}", body) is not None
            if len(seps) > 1 or sep in "' ":
                thousands.add(sep)
            elif alone and (sep == "," or comma):
                unsure.add(sep)  # 1,234 is either, and so is 1.234 where commas are for decimals
                continue
            else:
                decimals.add(sep)
                continue
        if re.fullmatch(r"\d{1,3}([.,' ]\d{2,3})*[.,' ]\d{3}", grouped) is None:
            return None
    if "." in decimals & thousands:  # 1.000 beside 1.234.567
        single = [body for body in bodies if body.count(".") == 1]
        if all(re.fullmatch(r"9{1,3}\.9{3}", body) for body in single):
            decimals.discard(".")
    if "." in unsure:
        (decimals if "." in decimals or "," in thousands else thousands).add(".")
    if "," in unsure:
        free = comma and "." not in decimals and not grouped_all
        (decimals if "," in decimals or "." in thousands or free else thousands).add(",")
    if "," in decimals and "." in decimals:
        # 1.234 beside 1,5 is a thousand with a point
        points = [body for body in bodies if "." in body and "," not in body]
        if not all(re.fullmatch(r"\d{1,3}(\.9{3})+", body) for body in points):
            return None
        decimals, thousands = {","}, thousands | {"."}
    if len(thousands) > 1 or decimals & thousands or not decimals <= {".", ","}:
        return None
    return next(iter(decimals), "," if "." in thousands else "."), next(iter(thousands), "")


def _is_grouped(bodies: Iterable[str]) -> bool:
    """Whether numbers of these digits have a sign before the last three where they have more than three, and
    none where they have two or three: 760 beside 3,232 and 52,584. Decimals that lost their zeros would leave
    some with one or two of them."""
    bare, parted = False, False
    for body in bodies:
        if re.fullmatch("9{1,3}", body):
            bare = bare or len(body) > 1
        elif re.fullmatch("9{1,3}([.,])9{3}", body):
            parted = True
        else:
            return False
    return bare and parted


def points_part_thousands(shapes: Counter[str], commas: bool) -> bool:
    """Whether the points of these numbers, which could be decimal ones, are between thousands. `commas`:
    whether other columns have decimal commas."""
    bodies = [shape.lstrip("+-") for shape in shapes]
    if any("," in body for body in bodies):
        return False
    pointed = [body for body in bodies if "." in body]
    if commas and pointed:
        return all(re.fullmatch(r"9{1,3}(\.9{3})?", body) for body in bodies)
    return _is_grouped(bodies)


def mostly_numbers(shapes: Counter[str], comma: bool) -> bool:
    """Whether most cells are numbers that are written with a sign, so that the others are mistakes."""
    numbers = sum(count for shape, count in shapes.items() if written(Counter({shape: count}), comma))
    return 2 * numbers >= shapes.total()


def shape_of(text: str) -> str:
    """Each digit as a 9, but for a zero before the decimals: 0,123 is no thousand. What cannot be a number
    with a sign has the shape `NONE`."""
    if len(text) > LONGEST or not (any(map(str.isdigit, text)) or _DASH.search(text)):
        return NONE
    body = unified(text)
    if not any(map(str.isdigit, body)):
        return NONE
    power = _POWER.search(body)
    number, unit = (body, "") if power is None else (body[: power.start(1)], power[1])
    shape = re.sub(r"\d", "9", number) + unit
    return re.sub(r"9([.,])", r"0\1", shape, count=1) if re.match(r"\D*0[.,]", text) else shape
