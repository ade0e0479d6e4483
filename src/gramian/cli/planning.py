"""What the command plan does: the shape of a table, without reading its numbers, and what each method would
take."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from gramian.choose.plan import plan
from gramian.choose.words import method_with
from gramian.cli.columns import TableOptions
from gramian.cli.speech import said
from gramian.cli.tasks import task_of
from gramian.cli.voice import say
from gramian.data.tables import read_blocks
from gramian.data.tables.shared import ARROW, SHEETS, import_pyarrow
from gramian.errors import ParameterError
from gramian.estimators import GPClassifier

HEAD = 1000  # rows that are read, for the names
CHUNK = 2**20  # bytes at once
BLANK = b" \t\r\n"


def plan_table(asked: TableOptions, limits: dict[str, Any], method: str | None, *settings: Any) -> None:
    """Prints the plan for a table, with a method of one's own, of that size, sampling and kind, beside the
    usual ones. Text columns count as one column each, as categories do."""
    usual = settings == (None, None, None)
    if method is None and not usual:
        raise ParameterError(
            "--size, --sampling and --kind are settings of a method: name it with --method, for example"
            " --method nystrom."
        )
    also = [] if usual and method in (None, "auto") else [method_with(method or "auto", *settings)]
    written = asked.written_kernel()
    first = next(read_blocks(asked.data, HEAD))
    shape = first.n_rows if first.n_rows < HEAD else count_rows(asked.data), len(asked.features(first))
    if task_of(first, asked.targets, asked.task) == "classification":
        if also:
            raise ParameterError(
                "--method adds a method to the plan of a regression; the plan of a classification has its"
                " own. Leave it out."
            )
        gp = GPClassifier(written, **limits)
        # its shape is all that counts
        say(said(str(gp.plan(np.broadcast_to(0.0, shape)))))
        return
    made = plan(shape, written, **limits, outputs=max(len(asked.targets), 1), also=also)
    say(said(str(made)))


def count_rows(path: Path) -> int:
    """The rows of a file: Parquet says how many; in text, line ends outside quotes are counted."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        _, parquet = import_pyarrow(str(path))
        return int(parquet.read_metadata(path).num_rows)
    if path.is_dir() or name.endswith((*SHEETS, *ARROW)):
        return sum(block.n_rows for block in read_blocks(path))
    with gzip.open(path) if name.endswith(".gz") else path.open("rb") as file:
        rows = count_lines(cast(BinaryIO, file)) - 1
    # line ends of another kind: read it properly
    return rows if rows > 0 else sum(block.n_rows for block in read_blocks(path))


def count_lines(file: BinaryIO) -> int:
    """Lines up to the last that has something in it; a line end between double quotes belongs to a cell."""
    ends, tail, quoted = 0, 0, False  # line ends so far; those after the last byte that is not blank
    for chunk in iter(lambda: file.read(CHUNK), b""):
        for k, part in enumerate(chunk.split(b'"')):
            if k:
                quoted, ends, tail = not quoted, ends + tail, 0
            if quoted:
                continue
            body = part.rstrip(BLANK)
            if body:
                ends, tail = ends + tail + body.count(b"\n"), 0
            tail += part.count(b"\n", len(body))
    return ends + 1
