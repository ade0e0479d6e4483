"""The columns of a file: which are features, and how each of them is read."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence

from gramian.data.columns import Columns
from gramian.data.deciding import Seen
from gramian.data.inputs import file_cells, reading_of
from gramian.data.readings import Reading
from gramian.data.spool import Room
from gramian.data.tables import Table, closest, read_blocks, repeated
from gramian.errors import InputError, TableError


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
    return {name: reading for name, reading in found.items() if reading is not None}


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
