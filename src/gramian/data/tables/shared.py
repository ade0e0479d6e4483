"""What reading and writing tables share: names of files and of columns."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gramian.errors import TableError

WRITTEN = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".parquet", ".pq")
SHEETS = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
PARQUET = (".parquet", ".pq")
OTHER_TEXT = (".dat", ".data", ".tab", ".asc", ".prn")  # tables, too, whose separator the text tells
ARROW = (".feather", ".arrow", ".ipc")
SUFFIXES = (*WRITTEN, *OTHER_TEXT, *ARROW, *SHEETS)  # that can be read
UNIT = re.compile(r"\s*[(\[].*[)\]]\s*$")
LONGEST = 100  # characters of a name that is suggested
BLOCK = 65_536  # rows at once, read or written


def closest(name: str, names: Sequence[str]) -> str | None:
    """The name that was probably meant: the same in other case or spacing, or a similar one; else None."""
    # to compare two texts takes the product of their lengths
    names = [other for other in names if len(other) <= LONGEST]
    folded = name.strip().casefold()
    same = next((other for other in names if other.casefold() == folded), None)
    # or with its unit: Area (m2)
    same = same or next((other for other in names if UNIT.sub("", other).casefold() == folded), None)
    return same or next(iter(difflib.get_close_matches(name[:LONGEST], names, 1)), None)


def suffix_of(path: str | os.PathLike[str], among: Sequence[str] = WRITTEN) -> str:
    name = Path(path).name.lower()
    if suffixes := [suffix for suffix in among if name.endswith(suffix)]:
        return max(suffixes, key=len)
    cure = "Rename or convert the file."
    raise TableError(f"{os.fspath(path)}: the name of a table ends in one of {', '.join(among)}. {cure}")


def check_names(path: str, names: Sequence[str]) -> tuple[str, ...]:
    stripped = tuple(name.strip() for name in names)
    if not stripped:
        raise TableError(f"{path}: a table needs one column at least.")
    if "" in stripped:
        raise TableError(
            f"{path}: column {stripped.index('') + 1} of {len(names)} has no name in the header. Name it (if"
            " it is a pandas index, write with index=False)."
        )
    twice = repeated(stripped)
    if twice and are_numbers(stripped):
        raise TableError(f"{path}: {no_names(stripped)}")
    if twice:
        cure = "Give each column a name of its own."
        raise TableError(f"{path}: {listing(twice)} is the name of more than one column. {cure}")
    return stripped


def are_numbers(names: Sequence[str]) -> bool:
    """Whether what should be names are numbers."""
    return all(re.fullmatch(r"[-+]?[\d.,]*\d[\d.,]*(e[-+]?\d+)?", name, re.IGNORECASE) for name in names)


def no_names(names: Sequence[str]) -> str:
    """What to say of a table whose first line has numbers."""
    return f"the first line has numbers ({listing(names)}), not names. Add a line of names above it."


def repeated(names: Sequence[str]) -> list[str]:
    """The names that are there more than once, sorted."""
    return sorted(name for name, count in Counter(names).items() if count > 1)


def listing(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f", ... ({len(names)} in all)" if len(names) > 12 else "")


def import_pyarrow(path: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as cause:
        cure = 'Install it: pip install "gramian[parquet]"; or use CSV.'
        arrow = path.lower().endswith(ARROW)
        needs = ": Arrow files need pyarrow." if arrow else ": Parquet files need pyarrow."
        raise TableError(f"{path}{needs} {cure}") from cause
    return pyarrow, pyarrow.parquet


def import_calamine(path: str) -> Any:
    try:
        import python_calamine
    except ImportError as cause:
        cure = 'Install it: pip install "gramian[excel]"; or save the sheet as CSV.'
        raise TableError(f"{path}: workbooks need python-calamine. {cure}") from cause
    return python_calamine
