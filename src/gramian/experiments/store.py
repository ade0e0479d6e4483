"""Runs on disk, so that an interrupted comparison goes on where it stopped.

    settings.json    what all runs have in common; written whole, before the first run
    runs.csv         the tidy table: a header, then one line a run, each appended and forced to disk as soon
                     as the run has ended

A line is written whole: where the disk is full, what was written of it is taken back. A power cut leaves at
worst a last one without its end, which is cut off when work goes on.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.data.atomic import FULL, atomic_write, full
from gramian.errors import InputError
from gramian.experiments.run import RunRecord

RUNS, SETTINGS = "runs.csv", "settings.json"
NAMES = tuple(field.name for field in dataclasses.fields(RunRecord))
_WHOLE, _TEXT = ("repeat", "size", "n_train", "n_test"), ("method", "note")  # the others are floats


class Store:
    """The folder of a comparison, or of what else is done run by run (`what`)."""

    def __init__(self, folder: Path, what: str = "comparison", runs: str = RUNS) -> None:
        self.folder, self.what, self.runs = folder, what, folder / runs

    def open(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Makes the folder, or checks that what is there belongs to the same comparison; gives what was
        fitted for it ({} if nothing yet)."""
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"{self.folder} is a file. Give the name of a folder for the results.")
        self.folder.mkdir(parents=True, exist_ok=True)
        if not (self.folder / SETTINGS).exists():
            if self.runs.exists():
                raise InputError(
                    f"{self.folder} has a {self.runs.name} but no {SETTINGS}, so nobody knows what its runs"
                    " are of. Choose another folder."
                )
            return {}
        try:
            known = json.loads((self.folder / SETTINGS).read_text(encoding="utf-8"))
        except ValueError:
            known = None
        if not isinstance(known, dict) or not isinstance(known.get("fitted"), dict):
            raise InputError(
                f"{self.folder / SETTINGS} is not the settings of a {self.what}. Choose another folder."
            )
        for name, value in settings.items():
            if known.get(name) != value:
                was, now = json.dumps(known.get(name)), json.dumps(value)
                raise InputError(
                    f"The {self.what} in {self.folder} was begun with {name}={was}, and now it is {now}. "
                    "Give the same again to go on with it, or another folder for a new one."
                )
        return dict(known["fitted"])

    def write_settings(self, settings: dict[str, Any], fitted: dict[str, Any]) -> None:
        with atomic_write(self.folder / SETTINGS) as file:
            file.write((json.dumps({**settings, "fitted": fitted}, indent=1) + "\n").encode())

    def read(self) -> list[RunRecord]:
        """The runs that are done, each once."""
        path = self.runs
        if not path.exists():
            return []
        whole = whole_lines(path)
        return list({run.key: run for run in reversed(from_csv(whole, str(path)))}.values())[::-1]

    def append(self, run: RunRecord) -> None:
        """Adds a run, whole or not at all."""
        path = self.runs
        # one line, so that a part of it is known by its missing end
        run = dataclasses.replace(run, note=" ".join(run.note.splitlines()))
        append_whole(path, to_csv([run], header=not path.exists() or path.stat().st_size == 0))


def whole_lines(path: Path) -> str:
    """The lines of a file that was appended to; one without its end is taken out of the file."""
    raw = path.read_bytes()
    whole = raw[: raw.rfind(b"\n") + 1]
    if whole != raw:  # a line that was being written when the power went
        with path.open("r+b") as file:
            file.truncate(len(whole))
        warnings.warn(
            f"{path}: the last line was not whole and was taken out; its run is done again.", stacklevel=3
        )
    return whole.decode()


def append_whole(path: Path, lines: str) -> None:
    """Adds lines to a file, whole or not at all, and forces them to disk."""
    with path.open("ab", buffering=0) as file:
        before, text = file.tell(), lines.encode()
        try:
            written = 0
            while written < len(text):  # a disk that is nearly full takes a part, and refuses the rest
                written += file.write(text[written:])
            os.fsync(file.fileno())
        except BaseException as cause:
            with contextlib.suppress(OSError):
                file.truncate(before)
            if isinstance(cause, OSError) and cause.errno in FULL:
                cure = "Free some space; the same command then does this run and the rest"
                raise InputError(f"{path} cannot be written: {full(cause)}. {cure}.") from cause
            raise


def columns_of(records: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Records of one class, a field an array."""
    names = [field.name for field in dataclasses.fields(records[0])]
    return {name: np.array([getattr(record, name) for record in records]) for name in names}


def to_csv(records: Sequence[Any], header: bool = True) -> str:
    """Records of one class as lines; numbers as text that gives the same number back, nothing where there is
    none."""
    out, names = io.StringIO(), [field.name for field in dataclasses.fields(records[0])]
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(names)
    writer.writerows([_cell(getattr(record, name)) for name in names] for record in records)
    return out.getvalue()


def from_csv(text: str, path: str) -> list[RunRecord]:
    """The inverse of `to_csv`."""
    rows = list(csv.reader(io.StringIO(text)))
    if not rows:
        return []
    if tuple(rows[0]) != NAMES:
        raise InputError(
            f"{path} has other columns than a comparison of this version writes. Choose another folder."
        )
    runs = []
    for number, row in enumerate(rows[1:], start=2):
        try:
            cells = zip(NAMES, row, strict=True)
            runs.append(RunRecord(**{name: _value(name, cell) for name, cell in cells}))
        except ValueError:
            raise InputError(
                f"{path}, line {number}: this is not a run of a comparison. Delete the line; it will be run"
                " again."
            ) from None
    return runs


def _cell(value: Any) -> Any:
    return "" if value is None or value != value else repr(value) if isinstance(value, float) else value


def _value(name: str, cell: str) -> Any:
    if name in _TEXT:
        return cell
    return int(cell) if name in _WHOLE else float(cell or "nan")
