"""What the command reduce does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.cli.columns import TableOptions, is_text
from gramian.cli.voice import note, say
from gramian.cli.work import check_output, check_picture, checkpointed, free_names, print_table, write_picture
from gramian.data.inputs import read_features
from gramian.data.tables import read_table
from gramian.data.tables.table import Table
from gramian.data.tables.writing import check_written, write_table
from gramian.errors import InputError
from gramian.estimators.gplatent import GPLatent


def reduce_table(
    asked: TableOptions,
    out: Path | None,
    model: Path | None,
    picture: Path | None,
    label: str | None,
    impute: bool,
    gp: GPLatent,
) -> None:
    """Fits latent places to the columns of numbers and adds them to the table."""
    gp.check_settings()
    if picture is not None:
        check_picture(picture, asked.data)
    for path in (out, model):
        if path is not None:
            check_output(path, asked.data)
    if out is not None:
        check_written(out)
    table = read_table(asked.data, asked.memory_limit)
    beside = [] if label is None else [label]
    names = asked.features(table, beside)
    words = [] if asked.columns else [name for name in names if is_text(table, name)]
    names = [name for name in names if name not in words]
    if not names:
        raise InputError(f"{table.path} has no column of numbers to find places from.")
    if words:
        note(f"note: columns of text are left out: {', '.join(words)}")
    numbers = table.only(names)
    with checkpointed(gp, out, model, picture, asked.data):
        gp.fit(numbers)
    added = _added(gp)
    renamed = free_names(list(added), table.names)
    kept: dict[str, NDArray[Any]] = {name: table.text(name) for name in table.names}
    if impute:
        own, _ = read_features(numbers, gp.columns_, missing="fill")
        filled, _ = gp.state_.averaged(gp.state_.place(own), noise=True)
        for j, name in enumerate(names):
            absent = np.isnan(own[:, j])
            if np.any(absent) and table.is_numeric(name):  # dates and the like stay as they are
                kept[name][absent] = [repr(float(value)) for value in filled[absent, j]]
    columns = kept | {renamed[name]: values for name, values in added.items()}
    _written(out, table, [*table.names, *renamed.values()], columns)
    if model is not None:
        gp.save(model)
        note(f"the model is in {model}")
    if picture is not None:
        labels = None if label is None else table.text(label).astype(str)
        write_picture(gp.plot(labels), picture)
        note(f"the map is in {picture}")
    (say if out is not None else note)(gp.summary())


def _added(gp: GPLatent) -> dict[str, NDArray[Any]]:
    """Places and how far they are known, a column each."""
    places, std = gp.embedding_, gp.embedding_std_
    found: dict[str, NDArray[Any]] = {f"latent{q + 1}": places[:, q] for q in range(places.shape[1])}
    if np.any(std > 0):
        found |= {f"latent{q + 1}_std": std[:, q] for q in range(places.shape[1])}
    return found


def _written(out: Path | None, table: Table, names: list[str], columns: dict[str, NDArray[Any]]) -> None:
    if out is not None:
        write_table(out, names, columns)
        note(f"{table.n_rows:,} rows are in {out}")
        return
    print_table(names, columns)
