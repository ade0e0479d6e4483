"""Cell by cell, each kept on disk as soon as it is done.

    settings.json   what was asked for: which experiment, quick or not, which files by their checksums
    cells.jsonl     a line a cell: its values, its rows, how long it took; appended whole
    results.csv     all rows, tidy, in the order of the grid
    NAME.svg        pictures
    index.html      the page, with the pictures in it

The last three are made anew from the cells whenever work ends: when all is done, when the time is over, and
after Ctrl-C. A cell that Ctrl-C or the end of the time has met may have been cut short, and is not kept.
"""

from __future__ import annotations

import csv
import io
import json
import signal
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gramian import clock
from gramian.choose.plan import check_time_limit
from gramian.clock import OutOfTime
from gramian.data.atomic import atomic_write
from gramian.errors import GramianError, InputError
from gramian.experiments.progress import bar
from gramian.experiments.store import Store, append_whole, whole_lines
from gramian.experiments.studies.base import Cell, Experiment, Results, Row, Shown, key_of
from gramian.experiments.studies.drawing import as_svg
from gramian.experiments.studies.page import html_page
from gramian.experiments.studies.sets import DataFolder
from gramian.version import __version__

CELLS, RESULTS, PAGE = "cells.jsonl", "results.csv", "index.html"


@dataclass(frozen=True)
class Done:
    """A cell with its rows; `note`: why it has none."""

    cell: Cell
    rows: list[Row]
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Finished:
    """What a run of an experiment has come to."""

    out: Path
    shown: Shown
    cells: int
    missing: int  # cells that there was no time for
    notes: tuple[str, ...]


class CellStore:
    """The folder of an experiment."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / CELLS
        self.store = Store(folder, "experiment", CELLS)

    def open(self, settings: dict[str, Any]) -> None:
        """Makes the folder, or checks that it is of the same experiment."""
        self.store.open(settings)
        self.store.write_settings(settings, {})

    def read(self) -> dict[str, Done]:
        """The cells that are done, by their keys."""
        if not self.path.exists():
            return {}
        found = {}
        for number, line in enumerate(whole_lines(self.path).splitlines(), start=1):
            try:
                done = Done(**json.loads(line))
                found[key_of(done.cell)] = done
            except (ValueError, TypeError):
                raise InputError(
                    f"{self.path}, line {number}: this is not a cell of an experiment. Delete the line; it"
                    " will be done again."
                ) from None
        return found

    def append(self, done: Done) -> None:
        append_whole(self.path, json.dumps(done.__dict__, default=_plain) + "\n")


def run(
    experiment: Experiment,
    out: Path,
    data: DataFolder,
    quick: bool = False,
    time_limit: float | None = None,
    verbose: bool | None = None,
) -> Finished:
    """Does the cells that are not done yet, and writes what there is to show. After KeyboardInterrupt, which
    is raised again, what was done is written as well."""
    check_time_limit(time_limit)
    cells = experiment.grid(quick)
    files = data.prepare(experiment.needs(quick))
    store = CellStore(out)
    settings = {"gramian": __version__, "experiment": experiment.name, "quick": quick, "data": files}
    store.open(settings)
    done = store.read()
    try:
        with clock.until(None if time_limit is None else clock.now() + time_limit):
            _carry_out(experiment, cells, data, store, done, verbose)
    finally:
        finished = written(experiment, out, cells, done, settings)
    return finished


def _carry_out(
    experiment: Experiment,
    cells: Sequence[Cell],
    data: DataFolder,
    store: CellStore,
    done: dict[str, Done],
    verbose: bool | None,
) -> None:
    left = [cell for cell in cells if key_of(cell) not in done]
    with bar(verbose, len(left), len(cells) - len(left)) as step:
        for cell in left:
            if clock.over():
                return
            step(", ".join(f"{name} {value}" for name, value in cell.items()))
            began = clock.now()
            with _interrupted() as pressed:
                try:
                    with warnings.catch_warnings():  # what a fit has to say of itself is measured, not told
                        warnings.simplefilter("ignore")
                        rows, note = experiment.measure(cell, data), ""
                except OutOfTime:
                    return
                except (GramianError, MemoryError, np.linalg.LinAlgError) as error:
                    rows, note = [], " ".join(str(error).split()) or "out of memory"
            if pressed():
                raise KeyboardInterrupt
            if clock.over():
                return
            _check(experiment, rows)
            done[key_of(cell)] = Done(cell, rows, round(clock.now() - began, 3), note)
            store.append(done[key_of(cell)])


def _check(experiment: Experiment, rows: Sequence[Row]) -> None:
    unknown = {name for row in rows for name in row} - set(experiment.columns)
    if unknown:
        raise AssertionError(f"{experiment.name} measures {sorted(unknown)}, which are not in its columns")


@contextmanager
def _interrupted() -> Iterator[Any]:
    """Within it Ctrl-C does what it did, and is remembered: a fit ends early with what it has, which is right
    for a person, and wrong for a measurement."""
    pressed = False
    if threading.current_thread() is not threading.main_thread():
        yield lambda: pressed
        return
    before = signal.getsignal(signal.SIGINT)

    def answer(number: int, frame: Any) -> None:
        nonlocal pressed
        pressed = True
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGINT, answer)
    try:
        yield lambda: pressed
    finally:
        signal.signal(signal.SIGINT, before)


def written(
    experiment: Experiment, out: Path, cells: Sequence[Cell], done: dict[str, Done], settings: dict[str, Any]
) -> Finished:
    """Writes the table, the pictures and the page of the cells that are done."""
    found = [done[key_of(cell)] for cell in cells if key_of(cell) in done]
    rows = [{**each.cell, **row} for each in found for row in each.rows]
    names = list(dict.fromkeys(name for cell in cells for name in cell))
    with atomic_write(out / RESULTS) as file:
        file.write(to_csv(rows, [*names, *experiment.columns]).encode())
    shown = experiment.show(Results(rows)) if rows else Shown()
    notes = tuple(dict.fromkeys(each.note for each in found if each.note))
    pictures = [(picture, as_svg(picture.figure, picture.name)) for picture in shown.pictures]
    for picture, svg in pictures:
        with atomic_write(out / f"{picture.name}.svg") as file:
            file.write(svg.encode())
    state = {"cells": len(cells), "done": len(found), "seconds": sum(each.seconds for each in found)}
    with atomic_write(out / PAGE) as file:
        file.write(html_page(experiment, shown, pictures, notes, settings, state).encode())
    return Finished(out, shown, len(found), len(cells) - len(found), notes)


def to_csv(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Rows as lines; numbers as text that gives the same number back, nothing where there is none."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_text(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _text(value: Any) -> Any:
    return "" if value is None or value != value else repr(value) if isinstance(value, float) else value


def _plain(value: Any) -> Any:
    """NumPy's numbers as JSON has them."""
    return value.item() if hasattr(value, "item") else str(value)
