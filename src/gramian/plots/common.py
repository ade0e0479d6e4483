"""What pictures share: the palette, new axes, and the point that the other columns stand at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from gramian.data.columns import Columns
    from gramian.kernels import Kernel


ACROSS = 3  # panels side by side
FEWEST_POINTS, MOST_POINTS = 400, 4000  # along a line, where their number is not given
A_LENGTH = 4  # points within a length of change: 25 in a period
# Okabe and Ito's palette: told apart with any kind of colour vision
INK, BLUE, ORANGE, GREEN = "#222222", "#0072B2", "#D55E00", "#009E73"


def new_axes(down: int, across: int, size: tuple[float, float], count: int, **shared: Any) -> list[Axes]:
    """`count` axes of a new figure, which needs no display and no pyplot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    grid = list(figure.subplots(down, across, squeeze=False, **shared).flat)
    for unused in grid[count:]:
        unused.remove()
    return grid[:count]


def given_axes(ax: Any, counts: tuple[int, ...], message: str) -> list[Axes]:
    """The axes that a person gave, of which there must be as many as one of the counts."""
    axes = list(np.ravel(ax)) if isinstance(ax, (Sequence, np.ndarray)) else [ax]
    if len(axes) not in counts:
        raise ParameterError(message.format(len(axes)))
    return axes


def look(k: int, colours: Sequence[str], markers: str) -> tuple[str, str]:
    """Colour and marker of the k-th; a second round of colours comes with other markers."""
    return colours[k % len(colours)], markers[(k + k // len(colours)) % len(markers)]


def typical(rows: Array, categories: Mapping[int, Sequence[str]]) -> Array:
    """One row: the median of each column, or the most frequent category."""
    row = np.array([np.median(column) for column in rows.T])
    for k in categories:
        row[k] = np.argmax(np.bincount(rows[:, k].astype(int)))
    return row


def along(rows: Array, categories: Mapping[int, Sequence[str]], j: int, x: Array) -> Array:
    """Rows with column j at x, all others as is typical."""
    points = np.tile(typical(rows, categories), (len(x), 1))
    points[:, j] = x
    return points


def points_between(
    low: float, high: float, kernel: Kernel, j: int, d: int, given: int | None, most: int = MOST_POINTS
) -> Array:
    """Points along column j of d: as many as given, or as the shortest lengthscale or period of the kernel
    needs.

    Where that would be more than `most`, a point lies anywhere within its step (by the golden ratio's
    fractions, which are spread evenly): a season of which every step sees a part is then drawn as the full
    band that it is, and not as the slow wave that even points would make of it.
    """
    if given is not None:
        return np.linspace(low, high, given)
    lengths = [length for column, length in kernel.change_lengths(range(d)) if column == j]
    needed = A_LENGTH * (high - low) / min(lengths, default=np.inf)
    if needed <= most:
        return np.linspace(low, high, max(FEWEST_POINTS, int(np.ceil(needed)) + 1))
    x = np.linspace(low, high, most)
    inner = np.arange(1, most - 1)
    x[1:-1] += (inner * 0.6180339887498949 % 1.0 - 0.5) * (x[1] - x[0])
    return x


def name_axis(axis: Axis, columns: Columns, j: int, remark: str = "") -> None:
    """Names an axis along column j, with its numbers as people read them: dates, words, or spans with their
    unit."""
    reading = columns.readings.get(j)
    unit = getattr(reading, "unit", "") if reading is not None and reading.origin is None else ""
    axis.set_label_text(f"{columns.names[j]}{f' ({unit})' if unit else ''}{remark}")
    if reading is None:
        return
    if reading.origin is not None and reading.days is not None:
        from gramian.plots.dateaxis import DateTicks, DateWords  # which needs matplotlib

        first = (reading.origin - np.datetime64(0, "us")) / np.timedelta64(1, "D")
        ticks = DateTicks(first, reading.days)
        axis.set_major_locator(ticks)
        axis.set_major_formatter(DateWords(ticks))
    elif reading.words and not reading.categorical:
        axis.set_ticks(list(range(len(reading.words))), labels=reading.words)


def check_points(given: Any) -> None:
    """Refuses what is no number of points along a line."""
    if given is not None and (not isinstance(given, (int, np.integer)) or given < 2):
        raise ParameterError(f"n_points={given!r} must be a whole number from 2 on.")


def chosen_columns(names: tuple[str, ...], columns: Any, most: int | None = None) -> list[int]:
    """The columns to draw, as numbers; all where none are chosen."""
    if columns is None:
        return list(range(len(names)))
    wanted: list[Any] = [columns] if isinstance(columns, (str, int, np.integer)) else list(columns)
    numbers = []
    for column in wanted:
        whole = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
        if isinstance(column, str) and column in names:
            numbers.append(names.index(column))
        elif whole and 0 <= column < len(names):
            numbers.append(int(column))
        else:
            raise ParameterError(
                f"columns has {column!r}, which the model does not have. It has {', '.join(names)}, numbered"
                " from 0."
            )
    if not 0 < len(numbers) <= (most or len(names)) or len(set(numbers)) < len(numbers):
        several = "several" if most is None else "two"
        raise ParameterError(
            f"columns={columns!r} must be one column, or {several} different ones; None draws along each"
            " column."
        )
    return numbers


def legend_above(figure: Figure, axis: Axes) -> None:
    """A legend above the panels, so never on the data, in as many columns as the figure has room for."""
    named = axis.get_legend_handles_labels()
    for across in (len(named[1]), 2, 1):
        legend = figure.legend(*named, loc="outside upper left", ncols=across, frameon=False)
        handles: list[Any] = legend.legend_handles
        for handle in handles:
            if hasattr(handle, "set_sizes"):  # dots, however small and faint they are in the picture
                handle.set_sizes([16.0])
                handle.set_alpha(0.9)
        if across == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()
