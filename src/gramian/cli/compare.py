"""What the command compare does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import typer
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.cli.columns import TableOptions, is_text, refuse_constant
from gramian.cli.tasks import coded, task_of
from gramian.cli.voice import note, say
from gramian.data.atomic import atomic_write
from gramian.errors import ParameterError
from gramian.experiments.compare import METHODS, Comparison, compare
from gramian.experiments.store import RUNS, Store

TABLE, PICTURE = "table.txt", "comparison.png"


def compare_table(
    asked: TableOptions, out: Path | None, methods: str | None, sizes: str, settings: dict[str, Any]
) -> None:
    """Compares, prints the table and, with a folder, writes what there is to keep. The same command again
    does what is left to do."""
    settings |= {"kernel": asked.kernel_setting(), "methods": METHODS if methods is None else words(methods)}
    settings |= {"sizes": whole_numbers(sizes), "out": out}
    table = next(asked.blocks())
    task, y = task_of(table, asked.targets, asked.task), None
    classes: NDArray[Any] | None = None
    codes: Array | None = None
    if asked.targets:
        settings["task"] = task
    if task == "classification":
        classes, codes = coded(asked.blocks(), asked.targets[0], is_text(table, asked.targets[0]), asked.room)
    source = asked.opened(table, asked.features(table), codes)
    if source.Y is not None:
        y = source.Y[:, 0]
        if classes is None:
            refuse_constant(str(asked.data), asked.targets[0], y)
        else:
            y = classes[y.astype(int)]
        source = replace(source, Y=None)
    try:
        result = compare(source, y, **settings)
    except KeyboardInterrupt:
        if out is None:
            raise
        done = len(Store(out).read())
        note(f"interrupted: {done} runs are in {out / RUNS}; the same command does the rest")
        raise typer.Exit(130) from None
    if out is not None:
        write(result, out)
    say(result.table())
    if out is not None:
        note(f"\n{out} has {TABLE}, {RUNS} (one line a run) and {PICTURE}")
        if result.left_out:
            note("the time was over before all runs were done: the same command does the rest")


def write(result: Comparison, out: Path) -> None:
    """The table and the picture beside the runs. Where no run has an error to draw, the table says why and
    there is no picture."""
    with atomic_write(out / TABLE) as file:
        file.write((result.table() + "\n").encode())
    try:
        figure = result.plot()
    except ParameterError as error:
        note(f"no picture: {error}")
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
