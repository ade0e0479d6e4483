"""Where a table begins: the separator of its cells, the line with the names, and columns that are none.

The separator is the most frequent of , ; tab | in the names, outside quotes, where most lines agree with it,
else the one that most of the first lines agree upon. The names stand in the first line that has as many cells
as most lines; what stands above it has fewer, and is a title. A line below them with words where all others
have numbers has their units, and is left out. A first column without a name that counts the
rows is the index that pandas writes.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from gramian.data.tables.shared import check_names
from gramian.data.tables.table import is_missing, is_number

SEPARATORS = ",;\t|"
LINES = 100  # that are looked at
MOST_TITLES = 20  # lines above the names


FEWEST_BELOW = 3  # rows, for the first to be told from the others
# kg, m/s, [°C], (%), kg m-3, µg/m³: no number in front
_UNIT = re.compile(r"[\[(]?\s*[^\W\d_][\w/·*^.°²³⁻¹ -]{0,14}\s*[\])]?|[\[(]?\s*[%‰°$€£][\w/]{0,6}\s*[\])]?")


class Header(NamedTuple):
    """What the first lines of a table tell."""

    names: tuple[str, ...]  # of the columns that are read
    places: tuple[int, ...]  # of these among all
    width: int  # cells of a line
    skipped: int  # lines above the names
    above: int  # lines above the data, the names included
    notes: tuple[str, ...]


# a cell such as 175.1 or 0.125; 1.234 may be a thousand with a point, and 13.05.2023 is a date
_DECIMAL_POINT = re.compile(r"(?m)(?:^|;)[ \t]*[+-]?(?:\d+\.(?:\d{1,2}|\d{4,})|0\.\d+)[ \t]*(?=;|\r?$)")


def leaves_commas(head: str, separator: str) -> bool:
    """Whether commas are for decimals, as far as the beginning of a text says: they do not separate cells,
    and points are not for decimals either."""
    return separator == ";" and _DECIMAL_POINT.search(head) is None


def separator_of(head: str) -> str:
    """The sign between the cells of a text; the comma when in doubt."""
    names = re.match(r'[\r\n]*((?:"[^"]*"|[^"\r\n]+)*)', head)
    outside = re.sub(r'"[^"]*"', "", names[1] if names else "")
    first = max(SEPARATORS, key=outside.count)
    if outside.count(first) and _agreement(head, first, outside.count(first) + 1) >= 0.5:
        return first
    # a title, or names that are too few: what most lines agree upon
    best = max(SEPARATORS, key=lambda sign: _agreement(head, sign))
    return best if _agreement(head, best) > 0.5 else first


def _agreement(head: str, sign: str, width: int | None = None) -> float:
    """The share of the first lines that have so many cells, or as many as most, and more than one."""
    widths = Counter(len(row) for row in first_lines(head, sign) if not is_blank(row))
    total = widths.total()
    widths.pop(1, None)
    if not widths:
        return 0.0
    return (widths.most_common(1)[0][1] if width is None else widths[width]) / total


def header_of(path: str, rows: Sequence[Sequence[str]]) -> Header:
    """The header among the first rows of a table."""
    filled = [k for k, row in enumerate(rows) if not is_blank(row)]
    start = _names_at(rows, filled)
    notes = []
    titles = sum(1 for k in filled if k < start)
    if titles:
        notes.append(f"{titles} line{'s' * (titles > 1)} above the column names left out")
    names = list(rows[start]) if rows else []
    whole = [k for k in filled if k > start and len(rows[k]) == len(names)]
    above, units = start + 1, _units(names, [rows[k] for k in whole])
    if units:
        above, whole = whole[0] + 1, whole[1:]
        notes.append(f"a line of units below the column names left out ({', '.join(units)})")
    body = [rows[k] for k in whole]
    places = list(range(len(names)))
    if len(names) > 1 and body and _is_index(names[0], [row[0] for row in body]):
        notes.append("the first column, which counts the rows, left out")
        places.remove(0)
    nameless = [
        j for j in places if not names[j].strip() and all(not row[j].strip() for row in body) and body
    ]
    if nameless:
        notes.append(f"{len(nameless)} empty column{'s' * (len(nameless) > 1)} without a name left out")
        places = [j for j in places if j not in nameless]
    checked = check_names(path, [names[j] for j in places])
    return Header(checked, tuple(places), len(names), start, above, tuple(notes))


def _names_at(rows: Sequence[Sequence[str]], filled: Sequence[int]) -> int:
    """The row with the names: the first, unless it is a title: shorter than most, or with one cell alone."""
    if not filled:
        return 0
    first, widths = filled[0], Counter(len(rows[k]) for k in filled[1:])
    usual = widths.most_common(1)[0][0] if widths else 0
    if len(rows[first]) >= usual and not (_count(rows[first]) == 1 < usual):
        return first
    # the names are the last line before the first that has a number, a date or an amount
    end = next((k for k in filled if len(rows[k]) == usual and _has_data(rows[k])), filled[0] + 2)
    names = [
        k for k in filled[: MOST_TITLES + 1] if k < end and len(rows[k]) == usual and _are_names(rows[k])
    ]
    return max(names, key=lambda k: (_count(rows[k]), k), default=first)


def _units(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The units that the first of the rows below the names tells of, as "weight in kg": words in two columns
    or more, of numbers all, and nothing else. None where it is a row like the others."""
    if len(rows) < FEWEST_BELOW:
        return []
    first, below = rows[0], rows[1:]
    found = []
    for j, name in enumerate(names):
        cell, others = first[j].strip(), [row[j] for row in below if not is_missing(row[j])]
        numbers = bool(others) and all(re.match(r"\W*\d", other) for other in others)
        if is_missing(cell):
            continue
        if not numbers or not _UNIT.fullmatch(cell):
            return []
        found.append(f"{name.strip()} in {cell.strip('[]()')}")
    return found if len(found) > 1 else []


def _count(row: Sequence[str]) -> int:
    """Cells that have something in them: spreadsheets fill titles up with empty ones."""
    return sum(1 for cell in row if cell.strip())


def _has_data(row: Sequence[str]) -> bool:
    """Whether a row has a cell that begins as numbers do, and is no title that does."""
    return _count(row) > 1 and any(re.match(r"\W*\d", cell) for cell in row)


def _are_names(row: Sequence[str]) -> bool:
    """Whether cells can be names: words, each another."""
    words = [cell.strip() for cell in row]
    given = [word for word in words if word]
    return bool(given) and len(set(given)) == len(given) and not any(is_number(word) for word in given)


def _is_index(name: str, cells: Sequence[str]) -> bool:
    """Whether a column without a name counts the rows, from 0 or 1 on."""
    if name.strip() and not name.startswith("Unnamed: 0"):
        return False
    if not all(cell.strip().isdecimal() and len(cell) < 19 for cell in cells):
        return False
    counts = [int(cell) for cell in cells]
    return counts[0] in (0, 1) and counts == list(range(counts[0], counts[0] + len(counts)))


def first_lines(text: str, separator: str, is_all: bool = True) -> list[list[str]]:
    """The cells of the first lines, as far as they can be parsed; quotes may not close. Unless it is all of
    the text, the last line is cut off somewhere, and is left out."""
    rows: list[list[str]] = []
    if not is_all:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for row in reader:
            rows.append(row)
            if len(rows) > LINES:
                break
    except csv.Error:
        pass
    return rows


def is_blank(row: Sequence[str]) -> bool:
    """Whether a line has nothing in it."""
    return not any(cell.strip() for cell in row)
