"""What the command compare does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from gramian.cli.columns import chosen, training
from gramian.cli.tasks import target_of, task_of
from gramian.data.atomic import atomic_write
from gramian.data.tables import read_table
from gramian.errors import ParameterError
from gramian.experiments.compare import METHODS, Comparison, compare
from gramian.experiments.store import RUNS, Store
from gramian.kernels.text import parse_kernel

TABLE, PICTURE = "table.txt", "comparison.png"


def compare_table(
    data: Path,
    target: str | None,
    task: str | None,
    out: Path | None,
    kernel: str | None,
    methods: str | None,
    sizes: str,
    columns: Sequence[str],
    ids: Sequence[str],
    settings: dict[str, Any],
) -> None:
    """Compares, prints the table and, with a folder, writes what there is to keep. The same command again
    does what is left to do."""
    written = None if kernel is None else parse_kernel(kernel)
    wanted = METHODS if methods is None else words(methods)
    numbers = whole_numbers(sizes)
    table = read_table(data)
    targets = [] if target is None else [target]
    X = training(table, chosen(table, targets, columns, ids), bool(columns))
    seen = task_of(table, targets, task)
    y = None if target is None else target_of(table, targets, seen)
    try:
        result = compare(
            X,
            y,
            task=None if target is None else seen,
            kernel=written,
            methods=wanted,
            sizes=numbers,
            out=out,
            **settings,
        )
    except KeyboardInterrupt:
        if out is not None:
            done = len(Store(out).read())
            typer.echo(
                f"interrupted: {done} runs are in {out / RUNS}; the same command does the rest", err=True
            )
            raise typer.Exit(130) from None
        raise
    typer.echo(result.table())
    if out is not None:
        write(result, out)
        typer.echo(f"\n{out} has {TABLE}, {RUNS} (one line a run) and {PICTURE}", err=True)


def write(result: Comparison, out: Path) -> None:
    """The table and the picture beside the runs. Where no run has an error to draw, the table says why and
    there is no picture."""
    with atomic_write(out / TABLE) as file:
        file.write((result.table() + "\n").encode())
    try:
        figure = result.plot()
    except ParameterError as error:
        print(f"no picture: {error}", file=sys.stderr)
        return
    with atomic_write(out / PICTURE) as file:
        figure.savefig(file, format="png", dpi=150)


def words(text: str) -> list[str]:
    """a,b , c -> a, b, c."""
    return [word.strip() for word in text.split(",") if word.strip()]


def whole_numbers(text: str) -> list[int]:
    """100,200 -> 100, 200."""
    parts = words(text)
    wrong = next((word for word in parts if not word.isdecimal()), None)
    if wrong is not None:
        raise ParameterError(
            f"--sizes has {wrong!r}; give whole numbers with commas between, such as 100,200,400."
        )
    return [int(word) for word in parts]
