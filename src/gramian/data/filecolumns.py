"""The columns of a file: which are features, and how each of them is read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from gramian.data.columns import Columns
from gramian.data.dates import read_date
from gramian.data.deciding import Seen
from gramian.data.inputs import file_cells, reading_of
from gramian.data.readings import Reading
from gramian.data.spool import Room
from gramian.data.tables import Table, closest, is_missing, read_blocks, repeated
from gramian.errors import InputError, TableError

LOOKED_AT = 1000  # rows
FEWEST_DAYS = 4  # different ones: (1 / 27)^5 is the chance that numbers look so


def features_of(table: Table, targets: Sequence[str], columns: Sequence[str] | None) -> tuple[str, ...]:
    for names, what in ((targets, "y"), (columns or (), "columns")):
        if twice := repeated(names):
            raise InputError(f"{what} names the column {twice[0]!r} twice. Name it once.")
    for name in columns or ():
        _ = table[name]
        if name in targets:
            cure = "It can be only one of them."
            raise InputError(f"{name!r} is among columns and is the target as well. {cure}")
    names = tuple(columns or (name for name in table.names if name not in targets))
    if not names:
        raise InputError(
            f"{table.path} has no column left to learn from, beside {', '.join(targets)}. Add one."
        )
    return names


def gathered(
    path: str | os.PathLike[str], text: Collection[str], declared: Mapping[str, Reading], room: Room
) -> dict[str, Reading]:
    """How the columns among `text` are read, from all rows; those of plain numbers are left out."""
    seen = {name: Seen(declared.get(name)) for name in text}
    for table in read_blocks(path, room=room) if seen else ():
        for name, one in seen.items():
            one.add(file_cells(table, name, text=True))
        what = f"{table.place(table.n_rows - 1)}: the different texts so far, as categories,"
        cure = "Raise memory_limit, or leave columns of long texts out."
        room.hold(2 * sum(one.held for one in seen.values()), what, cure)
    found = {name: reading_of(one, os.fspath(path), name) for name, one in seen.items()}
    if any(reading is not None and reading.decimal == "," for reading in found.values()):
        for name, one in seen.items():
            one.commas = True
            found[name] = reading_of(one, os.fspath(path), name)
    return {name: reading for name, reading in found.items() if reading is not None}


def seeming(table: Table, name: str) -> str:
    """What to say of a column of plain numbers that may be something else: codes, or days; mostly nothing."""
    cells = [cell.strip() for cell in table.text(name)[:LOOKED_AT]]
    code = next((cell for cell in cells if cell[:1] == "0" and cell.isdecimal() and len(cell) > 1), None)
    if code is not None:
        cure = f"categories are declared: --categorical {name!r}"
        return f"{name}: read as numbers, though some begin with 0 ({code}). If they are codes, {cure}"
    days = {cell for cell in cells if not is_missing(cell)}
    if len(days) > FEWEST_DAYS and all(map(_is_day, days)):
        day = min(days)
        iso = f"{day[:4]}-{day[4:6]}-{day[6:]}"
        return f"{name}: read as numbers, though they seem to be days ({day}). Dates are written as {iso}"
    return ""


def _is_day(cell: str) -> bool:
    """Whether a cell may be a day such as 20241231; of numbers in this range one in 27 may be."""
    if len(cell) != 8 or not cell.isdecimal() or cell[:2] not in ("19", "20"):
        return False
    return read_date(f"{cell[:4]}-{cell[4:6]}-{cell[6:]}") is not None


def check_needed(table: Table, known: Columns) -> None:
    """Complains when a table lacks a column of a fitted model."""
    names = set(table.names)
    for name in known.given:
        if name not in names:
            near = closest(name, table.names)
            hint = f" Did you mean {near!r}?" if near else ""
            if not known.named:
                hint += " The model was fitted on an array without names, so its columns are called x0, x1"
                hint += " and so on."
            raise TableError(
                f"{table.path} has no column {name!r}, which the model needs.{hint} It has:"
                f" {', '.join(table.names[:12])}."
            )
