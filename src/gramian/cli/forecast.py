"""What the command forecast does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.cli.voice import note, say
from gramian.cli.work import check_output, check_picture, checkpointed, print_table, write_picture
from gramian.data.tables import read_table
from gramian.data.tables.writing import check_written, write_table
from gramian.errors import ParameterError
from gramian.estimators.forecaster import GPForecaster


def forecast_table(
    data: Path,
    gp: GPForecaster,
    horizon: str | None,
    future: Path | None,
    level: float,
    out: Path | None,
    picture: Path | None,
    parts: Path | None,
    model: Path | None,
) -> None:
    """Fits the series of a file and writes what comes."""
    gp.check_settings()
    if (horizon is None) == (future is None):
        raise ParameterError(
            "Say how far: --horizon 12 (steps), 90d, 24h, 8w, 12M or 2y; or --future FILE, a table with the"
            " dates, and the regressors where there are any."
        )
    if picture is not None:
        check_picture(picture, data)
    for path in (out, parts, model):
        if path is not None:
            check_output(path, data)
    for path in (out, parts):
        if path is not None:
            check_written(path)
    with checkpointed(gp, out, picture, parts, model, data):
        gp.fit(read_table(data, gp.memory_limit))
    ahead: Any = {"horizon": _horizon(horizon)} if horizon is not None else {}
    if future is not None:
        ahead = {"dates": read_table(future, gp.memory_limit)}
    _written(out, gp.forecast(**ahead, level=level))
    if parts is not None:
        # regressors are not known beyond the table of the future
        along = ahead if gp.regressors is None and horizon is not None else {}
        _written(parts, gp.components(**along, level=level))
    if model is not None:
        gp.save(model)
        note(f"the model is in {model}")
    if picture is not None:
        write_picture(gp.plot(**ahead, level=level), picture)
        note(f"the picture is in {picture}")
    (say if out is not None else note)(gp.summary())


def listed_seasons(text: str | None) -> str | list[str | float]:
    """The option --seasons as an estimator takes it."""
    if text is None:
        return "auto"
    words = [word.strip() for word in text.split(",") if word.strip()]
    return [] if words == ["none"] else [float(word) if _is_number(word) else word for word in words]


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def _horizon(text: str) -> int | float | str:
    """A count of steps, or a length in the units of numbers, where it is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def as_text(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Dates as people write them: without hours where all are midnight."""
    found = dict(columns)
    for name, cells in columns.items():
        if cells.dtype.kind == "M":
            whole = np.all(cells == cells.astype("M8[D]"))
            found[name] = np.array(
                [str(date).replace("T", " ") for date in cells.astype("M8[D]" if whole else "M8[s]")],
                dtype=object,
            )
    return found


def _written(out: Path | None, columns: dict[str, NDArray[Any]]) -> None:
    text = as_text(columns)
    if out is not None:
        write_table(out, list(text), text)
        note(f"{len(next(iter(text.values()))):,} rows are in {out}")
        return
    print_table(list(text), text)
