"""Where a table begins and ends: the separator of its cells, the line with the names, and lines and columns
that are none.

The separator is the most frequent of , ; tab | in the names, outside quotes, where most lines agree with it,
else the one that most of the first lines agree upon; where there is none of them, blanks, as many as there
are. The names stand in the first line that has as many cells as most lines; what stands above it has fewer,
or has names twice or none, and is a title. A line below them with words where all others have numbers has
their units, and is left out, as is one of dashes. A first column without a name whose numbers or words all
differ is the index that pandas writes, and R without a cell in the line of the names; other columns without
a name are called by their place. Below the rows there may be a sum, and sentences.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gramian.data.dates import read_date
from gramian.data.tables.shared import check_names
from gramian.data.tables.table import is_missing, is_number

SEPARATORS = ",;\t|"
BLANKS = " "  # any number of them, and of tabs, between two cells
MOST_AGREE = 0.9  # the share of lines, for blanks to be more than those of words
LINES = 100  # that are looked at
MOST_TITLES = 20  # lines above the names


FEWEST_BELOW = 3  # rows, for the first to be told from the others
# kg, m/s, [°C], (%), kg m-3, µg/m³: no number in front
_RULE = re.compile(r"\s*:?[-=][-=+| ]*[-=]:?\s*|\s*")  # a line of dashes below the names, cell by cell
# how the last row begins when it has sums
_SUMS = re.compile("(grand )?totals?|sum|summe|(ins)?gesamt|somme|suma|totale|totaal")
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
    if _agreement(head, best) > 0.5:
        return best
    plain = not outside.count(first)
    return BLANKS if plain and _agreement(head, BLANKS) > MOST_AGREE and _numbers_in(head) else first


def _agreement(head: str, sign: str, width: int | None = None) -> float:
    """The share of the first lines that have so many cells, or as many as most, and more than one."""
    widths = Counter(len(row) for row in first_lines(head, sign) if not is_blank(row))
    total = widths.total()
    widths.pop(1, None)
    if not widths:
        return 0.0
    return (widths.most_common(1)[0][1] if width is None else widths[width]) / total


def _numbers_in(head: str) -> bool:
    """Whether most lines have a number among cells that blanks separate."""
    rows = [row for row in first_lines(head, BLANKS) if row]
    return 2 * sum(1 for row in rows if any(map(is_number, row))) > len(rows) > FEWEST_BELOW


def header_of(path: str, rows: Sequence[Sequence[str]]) -> Header:
    """The header among the first rows of a table."""
    filled = [k for k, row in enumerate(rows) if not is_blank(row)]
    start = _names_at(rows, filled)
    notes = []
    titles = sum(1 for k in filled if k < start)
    if titles:
        notes.append(f"{titles} line{'s' * (titles > 1)} above the column names left out")
    names = _named(rows, start, filled)
    joined = _joined(rows, start, filled)
    if joined:
        names, start = joined, next(k for k in filled if k > start)
        notes.append(f"two lines of column names put together ({next(filter(None, names))!r})")
    whole = [k for k in filled if k > start and len(rows[k]) == len(names)]
    ruled = next((k for k in filled if k > start), start)
    above = start + 1
    if ruled > start and "---" in "".join(rows[ruled]) and all(map(_RULE.fullmatch, rows[ruled])):
        above, whole = ruled + 1, [k for k in whole if k > ruled]
        notes.append("a line of dashes below the column names left out")
    units = _units(names, [rows[k] for k in whole])
    if units:
        above, whole = whole[0] + 1, whole[1:]
        notes.append(f"a line of units below the column names left out ({', '.join(units)})")
    body = [rows[k] for k in whole]
    places = list(range(len(names)))
    if len(names) > 1 and body and _is_index(names[0], [row[0] for row in body]):
        does = "counts" if body[0][0].strip().isdecimal() else "names"
        notes.append(f"the first column, which {does} the rows, left out")
        places.remove(0)
    nameless = [j for j in places if not names[j].strip() and body]
    empty = [j for j in nameless if all(not row[j].strip() for row in body)]
    if empty:
        notes.append(f"{len(empty)} empty column{'s' * (len(empty) > 1)} without a name left out")
        places = [j for j in places if j not in empty]
    for j in set(nameless) - set(empty):
        names[j] = f"column {j + 1}"
        notes.append(f"a column without a name is called {names[j]!r}, by its place")
    checked = check_names(path, [names[j] for j in places])
    return Header(checked, tuple(places), len(names), start, above, tuple(notes))


def _named(rows: Sequence[Sequence[str]], start: int, filled: Sequence[int]) -> list[str]:
    """The names, one a cell of the rows: where most rows have a cell more than the names, the first of them
    has no name, or the last, if it is empty."""
    if not rows:
        return []
    names = list(rows[start])
    below = [rows[k] for k in filled if k > start]
    longer = [row for row in below if len(row) == len(names) + 1]
    if 2 * len(longer) <= len(below):
        return names
    if all(not row[-1].strip() for row in longer):
        return [*names, ""]
    return ["", *names] if _is_index("", [row[0] for row in longer]) else names


def is_foot(row: Sequence[str], width: int) -> bool:
    """Whether a line may stand below the rows of a table: a sentence, or sums."""
    begins = next((cell for cell in row if cell and not cell.isspace()), "").strip()
    if not begins or begins[0] in "0123456789+-.":
        return False
    if _SUMS.fullmatch(begins.rstrip(":").casefold()):
        return True
    if len(row) < width:
        return not any(map(is_number, row))
    return width > 2 and not any(row[1:]) and (len(begins.split()) > 2 or ":" in begins)


def _names_at(rows: Sequence[Sequence[str]], filled: Sequence[int]) -> int:
    """The row with the names: the first, unless it is a title: shorter than most, or with one cell alone."""
    if not filled:
        return 0
    first, widths = filled[0], Counter(len(rows[k]) for k in filled[1:])
    usual = widths.most_common(1)[0][0] if widths else 0
    if len(rows[first]) >= usual and not (_count(rows[first]) == 1 < usual):
        second = [rows[k] for k in filled[1:] if len(rows[k]) == len(rows[first])]
        return filled[1] if second and rows[filled[1]] is second[0] and _above(rows[first], second) else first
    # the names are the last line before the first that has a number, a date or an amount
    end = next((k for k in filled if len(rows[k]) == usual and _has_data(rows[k])), filled[0] + 2)
    names = [
        k for k in filled[: MOST_TITLES + 1] if k < end and len(rows[k]) == usual and _are_names(rows[k])
    ]
    short = [k for k in filled[: MOST_TITLES + 1] if k < end and len(rows[k]) == usual - 1 > 1]
    return max(names or short, key=lambda k: (_count(rows[k]), k), default=first)


def _above(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether a line groups the columns whose names stand below it: it has a name twice, or none, and they
    are words above numbers."""
    given = [cell.strip() for cell in first]
    names, rows = below[0], below[1:]
    if len(set(given)) == len(given) > given.count("") == 0 or len(rows) < FEWEST_BELOW:
        return False
    numbers = [all(re.match(r"\W*\d", row[j]) for row in rows) for j in range(len(names))]
    return _are_names(names) and _count(names) == len(names) and not _has_data(names) and any(numbers)


def _joined(rows: Sequence[Sequence[str]], start: int, filled: Sequence[int]) -> list[str]:
    """Names that stand in two lines, of which the first names groups of columns: by the second line alone
    where that names each column, else by both. Empty where there is one line of names."""
    below = [rows[k] for k in filled if k > start and len(rows[k]) == len(rows[start])]
    if len(below) <= FEWEST_BELOW or rows[next(k for k in filled if k > start)] is not below[0]:
        return []
    groups, names, body = [cell.strip() for cell in rows[start]], [c.strip() for c in below[0]], below[1:]
    if len(set(groups)) == len(groups) and "" not in groups[1:]:
        return []
    numbers = [
        all(is_missing(row[j]) or re.match(r"\W*\d", row[j]) for row in body) for j in range(len(names))
    ]
    if _has_data(names) or any(is_number(name) for name in names) or sum(map(bool, names)) < 2:
        return []
    if not any(numbers) or any(
        number and not name for number, name in zip(numbers[1:], names[1:], strict=True)
    ):
        return []
    if any(is_missing(name) for name in names if name):
        return []
    found, group = [], ""
    for above, name in zip(groups, names, strict=True):
        group = above or group
        found.append(f"{group} {name}".strip() if name else above)
    single = [name or above for above, name in zip(groups, names, strict=True)]
    found = single if len(set(single)) == len(single) else found
    return found if len(set(found)) == len(found) else []


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
    """Whether a column without a name counts or names the rows: whole numbers or words, each once."""
    if name.strip() and not name.startswith("Unnamed: 0"):
        return False
    words = [cell.strip() for cell in cells]
    if len(set(words)) < len(words) or "" in words:
        return False
    return all(map(str.isdecimal, words)) or not any(is_number(w) or read_date(w) is not None for w in words)


def first_lines(text: str, separator: str, is_all: bool = True) -> list[list[str]]:
    """The cells of the first lines, as far as they can be parsed; quotes may not close. Unless it is all of
    the text, the last line is cut off somewhere, and is left out."""
    rows: list[list[str]] = []
    if not is_all:
        text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
    try:
        for row in csv_reader(io.StringIO(text, newline=""), separator):
            rows.append(row)
            if len(rows) > LINES:
                break
    except csv.Error:
        pass
    return rows


def csv_reader(lines: Iterable[str], separator: str) -> Any:
    """The csv module's reader of lines."""
    return csv.reader(_squeezed(lines) if separator == BLANKS else lines, delimiter=separator, strict=True)


def _squeezed(lines: Iterable[str]) -> Iterator[str]:
    """Lines with one blank between two cells."""
    for line in lines:
        yield " ".join(line.split()) + "\n"


def is_blank(row: Sequence[str]) -> bool:
    """Whether a line has nothing in it."""
    return not any(cell.strip() for cell in row)
