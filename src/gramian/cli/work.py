"""What the commands fit, predict and show do."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from gramian.atomic import atomic_write
from gramian.cli.columns import chosen, for_model, streamed, targets_of, training
from gramian.errors import GramianError, TableError
from gramian.estimators import GPRegressor
from gramian.kernels.text import parse_kernel
from gramian.modelfile import load
from gramian.tables import SUFFIXES, Table, read_blocks, read_table, write_blocks

LARGE = 50_000_000  # bytes of a file from which on it is fitted from disk: as text it would take some ten times that in memory
PACKED = 5  # text is about so many times as large as when compressed, as gzip and Parquet are
CHUNK = 2**20  # bytes at once to standard output
Z95 = 1.959963984540054  # 95 % of a Gaussian lie within this many standard deviations


def fit_table(
    data: Path, targets: Sequence[str], out: Path, kernel: str | None, columns: Sequence[str], ids: Sequence[str], settings: dict[str, Any]
) -> None:
    """Fits, writes the model file and prints the summary. Whatever can be refused is refused before the fit."""
    gp = GPRegressor(None if kernel is None else parse_kernel(kernel), **settings)
    check_output(out, data)
    large = is_large(data)
    table = next(read_blocks(data)) if large else read_table(data)
    names = chosen(table, targets, columns, ids)
    if large:
        source = streamed(table, targets, names, bool(columns))
        gp.fit(source)
        kinds = {source.columns.names[j]: len(categories) for j, categories in source.columns.categories.items()}
    else:
        X = training(table, names, bool(columns))
        gp.fit(X, targets_of(table, targets))
        kinds = {name: len(set(X[name])) for name in names if X[name].dtype != float}
    gp.save(out)
    described = [f"{name} ({kinds[name]} categories)" if name in kinds else name for name in names]
    typer.echo(f"{', '.join(targets)} from {', '.join(described)}; {data}")
    left_out = [name for name in table.names if name not in names and name not in targets]
    if left_out:
        typer.echo(f"left out: {', '.join(left_out)}")
    typer.echo()
    print_summary(gp)
    typer.echo(f"\nThe model is in {out}. Predict with: gramian predict {out} new.csv --out predictions.csv")


def predict_table(model: Path, data: Path, out: Path | None, target_kind: str) -> None:
    """Adds predictions to the columns of a table, block by block."""
    if out is not None:
        if not out.name.lower().endswith(SUFFIXES):
            raise TableError(f"{out}: the name of a table ends in one of {', '.join(SUFFIXES)}. Choose such a name.")
        check_output(out, data, model)
    gp = load(model)
    if out is not None:
        rows = write_predictions(gp, data, out, target_kind)
        typer.echo(f"{rows:,} predictions are in {out}", err=True)
        return
    with tempfile.TemporaryDirectory() as folder:  # through a file, so that a pipe gets the very bytes that a file would
        path = Path(folder, "predictions.csv")
        write_predictions(gp, data, path, target_kind)
        with path.open("rb") as file:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                typer.echo(chunk, nl=False)


def write_predictions(gp: GPRegressor, data: Path, out: Path, target_kind: str) -> int:
    """Writes the rows of a table with their predictions, and gives their number. One block is in memory at a time."""
    as_they_are = out.name.lower().endswith((".parquet", ".pq"))
    rows = 0

    def predictions(block: Table) -> dict[str, NDArray[np.float64]]:
        return interval(*gp.predict(for_model(gp, block), return_std=True, target=target_kind))

    blocks = read_blocks(data)
    first = next(blocks)
    added = predictions(first)
    renamed = free_names(list(added), first.names)
    if list(renamed.values()) != list(added):
        typer.echo(f"note: {data} has columns of these names already, so the predictions are called {', '.join(renamed.values())}", err=True)

    def written() -> Iterator[dict[str, NDArray[Any]]]:
        nonlocal rows
        for block, found in chain([(first, added)], ((block, predictions(block)) for block in blocks)):
            rows += block.n_rows
            yield {**_kept(block, as_they_are), **{renamed[name]: values for name, values in found.items()}}

    write_blocks(out, [*first.names, *renamed.values()], written())
    return rows


def show_model(model: Path) -> None:
    """Prints the summary of a model file, and the columns it needs."""
    gp = load(model)
    columns = gp._columns
    described = [name + (f" ({', '.join(columns.categories[j])})" if j in columns.categories else "") for j, name in enumerate(columns.names)]
    typer.echo(f"{model} predicts from: {', '.join(described)}\n")
    print_summary(gp)


def print_summary(gp: GPRegressor) -> None:
    """The summary as text; on a terminal with its table of parameters drawn as one."""
    text = gp.summary()
    if not sys.stdout.isatty():
        typer.echo(text)
        return
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table as Drawn

    head, _, tail = text.partition(str(gp.parameters_))
    rows = [(row.name, f"{row.value:.5g}", "" if row.trainable else "fixed", row.prior, row.note) for row in gp.parameters_]
    drawn = Drawn(box=SIMPLE)
    for k, title in enumerate(("parameter", "value", "", "prior", "note")):
        if k < 2 or any(row[k] for row in rows):
            drawn.add_column(title, justify="right" if k == 1 else "left", overflow="fold")
    used = [k for k in range(5) if k < 2 or any(row[k] for row in rows)]
    for row in rows:
        drawn.add_row(*(row[k] for k in used))
    typer.echo(head.rstrip("\n"))
    Console(highlight=False).print(drawn, markup=False)
    typer.echo(tail.strip("\n"))


def interval(mean: NDArray[np.float64], std: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """mean, std, lower95 and upper95 as columns; for several outputs each with the output's number."""
    if mean.ndim == 1:
        return {"mean": mean, "std": std, "lower95": mean - Z95 * std, "upper95": mean + Z95 * std}
    outputs = [interval(mean[:, k], std[:, k]) for k in range(mean.shape[1])]
    return {f"{name}_{k}": column for k, output in enumerate(outputs) for name, column in output.items()}


def free_names(names: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """New names for columns, where one of them is taken: all get the same prefix, so that they stay together."""
    prefix, k = "", 1
    while any(prefix + name in taken for name in names):
        prefix, k = ("predicted_" if k == 1 else f"predicted{k}_"), k + 1
    return {name: prefix + name for name in names}


def is_large(data: Path) -> bool:
    """Whether a file is too large to be read as a whole."""
    packed = data.name.lower().endswith((".gz", ".parquet", ".pq"))
    return data.is_file() and data.stat().st_size * (PACKED if packed else 1) > LARGE


def check_output(out: Path, *inputs: Path) -> None:
    """Complains of a file that could not be written, before any work; writes nothing."""
    for used in inputs:
        if out.exists() and used.exists() and os.path.samefile(out, used):
            raise GramianError(f"{out} would be overwritten, but it is read from. Choose another name for --out.")
    with contextlib.suppress(_Trial), atomic_write(out):
        raise _Trial


class _Trial(Exception):
    """Ends the trial of an output, which then leaves nothing behind."""


def _kept(table: Table, as_they_are: bool) -> dict[str, NDArray[Any]]:
    return {name: table.columns[name] if as_they_are else table.text(name) for name in table.names}
