"""What the command models does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gramian.arrays import Array
from gramian.cli.columns import TableOptions, is_text, refuse_constant
from gramian.cli.speech import said
from gramian.cli.tasks import coded, hint, task_of
from gramian.cli.voice import note, say
from gramian.cli.work import check_output
from gramian.data.sources import Source
from gramian.errors import ParameterError, visible
from gramian.estimators import GPClassifier, GPRegressor
from gramian.estimators.build import read_kernel
from gramian.experiments.selection import TEXT, ModelComparison, compare_models, default_models

# columns that a narrow terminal goes without, the first one first
DISPENSABLE = ("by", "parameters", "kind", "fit", "to best")
PADDING = 3  # of a column, and what is between two


def models_of_table(
    asked: TableOptions,
    kernels: Sequence[str],
    max_rows: int | None,
    out: Path | None,
    settings: dict[str, Any],
    how: dict[str, Any],
) -> None:
    """Fits the models, prints them side by side and, with a name, writes the table. `kernels`: in the place
    of those that the data would choose from; `how` they are compared, as for `compare_models`."""
    if len(asked.targets) > 1:
        raise ParameterError(
            f"Models of one target are compared, but there are {len(asked.targets)}:"
            f" {', '.join(asked.targets)}. Compare them one at a time."
        )
    if max_rows is not None and max_rows < 1:
        raise ParameterError(f"max_rows={max_rows} must be a whole number from 1 on.")
    if out is not None:
        check_output(out, asked.data)
    # a formula has no place for columns that say where cells are missing
    formula = next((text for text in kernels if read_kernel(text).kernel is not None), None)
    asked = replace(asked, kernel=formula)
    table, target = next(asked.blocks()), asked.targets[0]
    names, task = asked.features(table), task_of(table, asked.targets, asked.task)
    labels = task == "classification"
    kind, settings = GPClassifier if labels else GPRegressor, settings | {"missing": asked.missing}
    given = {text: kind(text, **settings) for text in kernels}
    for gp in given.values():
        gp.check_settings()
    codes: Array | None = None
    if labels:
        _, codes = coded(asked.blocks(), target, is_text(table, target), asked.room)
    source = _some(asked.opened(table, names, codes), max_rows, how["random_state"])
    assert source.Y is not None
    y = source.Y[:, 0]
    if not labels:
        refuse_constant(str(asked.data), target, y)
        if asked.task is None:
            hint(y, target)
    chosen = given or default_models(y, labels, **settings)
    if how["by"] is None:
        how = how | {"by": "evidence" if given or labels else "height"}
    compared = compare_models(chosen, source, **how)
    if out is not None:
        compared.to_csv(out)
    print_models(compared)
    if out is not None:
        note(f"\n{out} has one line a model")


def _some(source: Source, most: int | None, seed: int) -> Source:
    """So many of the rows, at random."""
    n = len(source.X)
    if most is None or most >= n:
        return source
    note(f"note: {most:,} of {n:,} rows, taken at random")
    return source.part(np.sort(np.random.default_rng(seed).choice(n, most, replace=False)))


def print_models(result: ModelComparison) -> None:
    """The comparison as text; on a terminal with its table drawn as one, as wide as that is."""
    if not sys.stdout.isatty():
        say(said(result.table()))
        return
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table as Drawn

    console = Console(highlight=False)
    columns = list(zip(*result.cells(), strict=True))
    for title in DISPENSABLE:
        if sum(PADDING + max(map(len, column)) for column in columns) > console.width:
            columns = [column for column in columns if column[0] != title]
    drawn = Drawn(box=SIMPLE)
    titles, *rows = zip(*columns, strict=True)
    for title in titles:
        drawn.add_column(title, justify="left" if title in TEXT else "right", overflow="fold")
    for row in rows:
        drawn.add_row(*map(visible, row), style="bold" if row[1] == result.winner else None)
    say(result.title)
    console.print(drawn, markup=False)
    say("\n".join(said(text) for text in (result.verdict(), *result.notes) if text))
