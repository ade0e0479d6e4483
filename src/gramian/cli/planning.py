"""What the command plan does: the shape of a table, without reading its numbers, and what each method would
take."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import typer

from gramian.choose.plan import plan
from gramian.choose.words import method_with
from gramian.cli.columns import chosen
from gramian.cli.tasks import task_of
from gramian.data.tables import read_blocks
from gramian.data.tables.shared import import_pyarrow
from gramian.errors import ParameterError
from gramian.estimators import GPClassifier
from gramian.kernels.text import parse_kernel

HEAD = 1000  # rows that are read, for the names
CHUNK = 2**20  # bytes at once
BLANK = b" \t\r\n"


def plan_table(
    data: Path,
    targets: Sequence[str],
    kernel: str | None,
    columns: Sequence[str],
    ids: Sequence[str],
    memory_limit: str | None,
    time_limit: float | None,
    method: str | None = None,
    size: int | None = None,
    sampling: str | None = None,
    kind: str | None = None,
    task: str | None = None,
) -> None:
    """Prints the plan for a table, with a method of one's own beside the usual ones. Text columns count as
    one column each, as categories do."""
    settings = (size, sampling, kind)
    if method is None and any(value is not None for value in settings):
        raise ParameterError(
            "--size, --sampling and --kind are settings of a method: name it with --method, for example"
            " --method nystrom."
        )
    also = (
        []
        if method in (None, "auto") and settings == (None,) * 3
        else [method_with(method or "auto", *settings)]
    )
    written = None if kernel is None else parse_kernel(kernel)
    first = next(read_blocks(data, HEAD))
    features = chosen(first, targets, columns, ids)
    rows = first.n_rows if first.n_rows < HEAD else count_rows(data)
    if task_of(first, targets, task) == "classification":
        if also:
            raise ParameterError(
                "--method adds a method to the plan of a regression; the plan of a classification has its"
                " own. Leave it out."
            )
        gp = GPClassifier(written, memory_limit=memory_limit, time_limit=time_limit)
        typer.echo(gp.plan(np.broadcast_to(0.0, (rows, len(features)))))  # its shape is all that counts
        return
    typer.echo(
        plan(
            (rows, len(features)), written, memory_limit, time_limit, outputs=max(len(targets), 1), also=also
        )
    )


def count_rows(path: Path) -> int:
    """The rows of a file: Parquet says how many; in text, line ends outside quotes are counted."""
    name = path.name.lower()
    if name.endswith((".parquet", ".pq")):
        _, parquet = import_pyarrow(str(path))
        return int(parquet.read_metadata(path).num_rows)
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
