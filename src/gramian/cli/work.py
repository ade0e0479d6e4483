"""What the commands fit, predict and show do."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import typer
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.cli.columns import TableOptions, for_model, is_text, refuse_constant
from gramian.cli.tasks import FitOptions, coded, exposure_of, hint, task_of
from gramian.data.atomic import atomic_write
from gramian.data.tables import WRITTEN, Table, read_blocks, write_blocks
from gramian.errors import GramianError, ParameterError, TableError
from gramian.estimators import GPClassifier, GPRegressor
from gramian.estimators.base import Estimator
from gramian.modelfile import load

CHUNK = 2**20  # bytes at once to standard output


def fit_table(asked: TableOptions, out: Path, settings: dict[str, Any], options: FitOptions) -> None:
    """Fits, writes the model file and prints the summary. Whatever can be refused is refused before the
    fit."""
    data, targets, written = asked.data, asked.targets, asked.written_kernel()
    check_output(out, data)
    table = next(read_blocks(data))
    beside = [] if options.exposure is None else [options.exposure]
    names = asked.features(table, beside)
    task = task_of(table, targets, asked.task)
    options.check(task, targets)
    settings = options.settings(settings | {"missing": asked.missing})
    gp = (GPClassifier if task == "classification" else GPRegressor)(written, **settings)
    gp.check_settings()
    classes: NDArray[Any] | None = None
    codes: Array | None = None
    if task == "classification":
        classes, codes = coded(read_blocks(data), targets[0], is_text(table, targets[0]))
    source = asked.opened(table, names, codes)
    if task == "regression":
        assert source.Y is not None
        for name, column in zip(targets, source.Y.T, strict=True):
            refuse_constant(str(data), name, column)
        likelihood = gp.get_params()["likelihood"]
        if likelihood is not None:
            likelihood.checked(likelihood.with_defaults(source.Y[:, 0]), f"{data}, column {targets[0]!r}:")
        if asked.task is None and options.likelihood is None and len(targets) == 1:
            hint(source.Y[:, 0], targets[0])
    seen = {} if options.exposure is None else {"exposure": exposure_of(read_blocks(data), options.exposure)}
    gp.fit(source, **seen)
    if classes is not None:  # it was fitted to their codes, which lie on disk
        gp.fitted_ = gp.fitted_.with_classes(classes)
    gp.save(out)
    exposed = f", with exposure {options.exposure}" if beside else ""
    described = _described(gp, lambda categories: f"{len(categories)} categories")
    typer.echo(f"{', '.join(targets)} from {described}{exposed}; {data}")
    left_out = [name for name in table.names if name not in (*names, *targets, *beside)]
    if left_out:
        typer.echo(f"left out: {', '.join(left_out)}")
    typer.echo()
    print_summary(gp)
    typer.echo(f"\nThe model is in {out}. Predict with: gramian predict {out} new.csv --out predictions.csv")


def predict_table(model: Path, data: Path, out: Path | None, target_kind: str, exposure: str | None) -> None:
    """Adds predictions to the columns of a table, block by block."""
    if out is not None:
        if not out.name.lower().endswith(WRITTEN):
            raise TableError(
                f"{out}: the name of a table ends in one of {', '.join(WRITTEN)}. Choose such a name."
            )
        check_output(out, data, model)
    gp = load(model)
    if target_kind not in ("y", "f"):
        raise ParameterError(
            f"--target-kind {target_kind!r} is not known. Use y for a new observation, or f for the function"
            " without noise."
        )
    if exposure is not None and not ("exposure" in gp.likelihood_.columns and target_kind == "y"):
        raise ParameterError(
            f"--exposure {exposure} is for predictions of counts : --target-kind y, of a model with"
            " --likelihood poisson or its like."
        )
    if out is not None:
        rows = write_predictions(gp, data, out, target_kind, exposure)
        typer.echo(f"{rows:,} predictions are in {out}", err=True)
        return
    # through a file, so that a pipe gets the very bytes that a file would
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "predictions.csv")
        write_predictions(gp, data, path, target_kind, exposure)
        with path.open("rb") as file:
            for chunk in iter(lambda: file.read(CHUNK), b""):
                typer.echo(chunk, nl=False)


def write_predictions(gp: Estimator, data: Path, out: Path, target_kind: str, exposure: str | None) -> int:
    """Writes the rows of a table with their predictions, and gives their number. One block is in memory at a
    time."""
    as_they_are = out.name.lower().endswith((".parquet", ".pq"))
    rows, gapped, new = 0, 0, Counter[str]()

    def predictions(block: Table) -> dict[str, NDArray[Any]]:
        nonlocal gapped
        seen = None if exposure is None else exposure_of([block], exposure)
        source = for_model(gp, block)
        gapped += int(np.isnan(source.X).any(axis=1).sum())
        new.update(source.columns.new_categories(source.X))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # new categories, which are told below
            return gp.predict_table(source, target_kind, seen)

    blocks = read_blocks(data)
    first = next(blocks)
    added = predictions(first)
    renamed = free_names(list(added), first.names)
    if list(renamed.values()) != list(added):
        typer.echo(
            f"note: {data} has columns of these names already, so the predictions are called"
            f" {', '.join(renamed.values())}",
            err=True,
        )

    def written() -> Iterator[dict[str, NDArray[Any]]]:
        nonlocal rows
        for block, found in chain([(first, added)], ((block, predictions(block)) for block in blocks)):
            rows += block.n_rows
            kept = {name: block.columns[name] if as_they_are else block.text(name) for name in block.names}
            yield kept | {renamed[name]: values for name, values in found.items()}

    write_blocks(out, [*first.names, *renamed.values()], written())
    if gapped:
        what = "are predicted as the average over what similar rows of the fit have there"
        typer.echo(f"note: rows with missing cells ({gapped:,}) {what}, with wider intervals", err=True)
    for name, count in new.items():
        what = f"rows with a category in {name!r} that the fit has not seen ({count:,})"
        typer.echo(f"note: {what} are predicted as unlike all others", err=True)
    return rows


def show_model(model: Path) -> None:
    """Prints the summary of a model file, and the columns it needs."""
    gp = load(model)
    targets = ", ".join(gp.fitted_.columns.targets)
    typer.echo(f"{model} predicts {targets + ' ' if targets else ''}from: {_described(gp, ', '.join)}\n")
    print_summary(gp)


def _described(gp: Estimator, shown: Callable[[tuple[str, ...]], str]) -> str:
    """The columns of a model, with what is shown of categories."""
    columns = gp.fitted_.columns
    told = {columns.names[j]: f" ({shown(categories)})" for j, categories in columns.categories.items()}
    return ", ".join(name + told.get(name, "") for name in columns.given)


def print_summary(gp: Estimator) -> None:
    """The summary as text; on a terminal with its table of parameters drawn as one (binary models of several
    classes have one each, in the text)."""
    text = gp.summary()
    if not sys.stdout.isatty() or gp.fitted_.models:
        typer.echo(text)
        return
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table as Drawn

    head, _, tail = text.partition(str(gp.parameters_))
    drawn, (titles, *rows) = Drawn(box=SIMPLE), gp.parameters_.cells()
    for title in ("parameter", *titles[1:]):
        drawn.add_column(title, justify="right" if title == "value" else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*row)
    typer.echo(head.rstrip("\n"))
    Console(highlight=False).print(drawn, markup=False)
    typer.echo(tail.strip("\n"))


def free_names(names: Sequence[str], taken: Sequence[str]) -> dict[str, str]:
    """New names for columns, where one of them is taken: all get the same prefix, so that they stay
    together."""
    prefix, k = "", 1
    while any(prefix + name in taken for name in names):
        prefix, k = ("predicted_" if k == 1 else f"predicted{k}_"), k + 1
    return {name: prefix + name for name in names}


def check_output(out: Path, *inputs: Path) -> None:
    """Complains of a file that could not be written, before any work; writes nothing."""
    for used in inputs:
        if out.exists() and used.exists() and os.path.samefile(out, used):
            raise GramianError(
                f"{out} would be overwritten, but it is read from. Choose another name for --out."
            )
    with contextlib.suppress(_Trial), atomic_write(out):
        raise _Trial


class _Trial(Exception):
    """Ends the trial of an output, which then leaves nothing behind."""
