"""What pictures share: the palette, new axes, and the point that the other columns stand at."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

    from gramian.data.columns import Columns
    from gramian.kernels import Kernel


ACROSS = 3  # panels side by side
FEWEST_POINTS, MOST_POINTS = 400, 4000  # along a line, where their number is not given
A_LENGTH = 4  # points within a length of change: 25 in a period
NARROW = 4.0  # inches of a figure that a legend above it fits into
HIGHEST = 0.35  # of the axes that a legend within them takes
LETTER, SPARE = 6.0, 0.7  # points of a letter's width; the share of its room that a word may take
MOST_LINES = 3  # of a name
LONGEST_WORD = 24  # letters of a category below a picture
HEIGHT = 7.0, 10.0  # points of a line of the smallest letters, and of those that are usual
Named = tuple[list[Any], list[str]]  # handles and labels of a legend
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


def wrapped(axis: Axis, name: str) -> str:
    """A name in lines that are no longer than the axis."""
    box = axis.axes.bbox
    points = 72.0 * (box.width if axis is axis.axes.xaxis else box.height) / cast("Figure", axis.figure).dpi
    lines = in_lines(name, max(LONGEST_WORD, int(points / LETTER)))
    return "\n".join(lines)


def in_lines(name: str, letters: int) -> list[str]:
    """A name in few lines; of one that is longer still its beginning and its end, which often tell it from
    others."""
    lines = textwrap.wrap(visible(name), letters) or [""]
    return lines if len(lines) <= MOST_LINES else [*lines[: MOST_LINES - 1], f"... {lines[-1]}"]


def name_axis(axis: Axis, columns: Columns, j: int, remark: str = "") -> None:
    """Names an axis along column j, with its numbers as people read them: dates, words, or spans with their
    unit."""
    reading = columns.readings.get(j)
    unit = getattr(reading, "unit", "") if reading is not None and reading.origin is None else ""
    axis.set_label_text(wrapped(axis, f"{columns.names[j]}{f' ({unit})' if unit else ''}{remark}"))
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


def legend_above(figure: Figure, axis: Axes, named: Named | None = None, **settings: Any) -> None:
    """A legend above the panels, so never on the data, in so many columns that a figure as narrow as NARROW
    has room for it: people make figures smaller that are drawn already."""
    room = min(figure.bbox.width, NARROW * figure.dpi)
    for legend in _legends(figure, named or axis.get_legend_handles_labels(), "outside upper left", settings):
        if legend.get_window_extent().width <= room:
            return


def legend_within(axis: Axes, named: Named | None = None, limits: bool = False, **settings: Any) -> None:
    """A legend at the top of axes that a person gave, which may have a title, or others above them: within,
    with room made for it above all that is drawn, in columns and letters that fit. `limits`: whether the
    limits of the axes are ours to raise, where they were set."""
    for legend in _legends(axis, named or axis.get_legend_handles_labels(), "upper left", settings):
        extent = legend.get_window_extent()
        share = (extent.height + 2.0) / axis.bbox.height
        if extent.width <= 0.98 * axis.bbox.width and share <= HIGHEST:
            break
    low, high = axis.get_ylim()
    if limits:
        axis.set_ylim(low, low + (high - low) / (1 - min(share, HIGHEST)))
        return
    if not axis.get_autoscaley_on():  # somebody has chosen what is seen
        legend.set_loc("best")
        legend.set_frame_on(True)
        return
    axis.autoscale_view()
    low, _ = axis.get_ylim()
    scale = axis.yaxis.get_transform()
    start, top = scale.transform([low, float(axis.dataLim.y1)])
    raised = float(scale.inverted().transform([start + (top - start) / (1 - min(share, HIGHEST))])[0])
    axis.update_datalim([(axis.dataLim.x0, raised)], updatex=False)
    axis.autoscale_view(scalex=False)


def _legends(place: Any, named: Named, where: str, settings: Mapping[str, Any]) -> Iterator[Legend]:
    """Legends, each smaller than the one before it, which goes; the last one stays in any case."""
    sizes = ("medium", "small", "x-small")
    columns = sorted({len(named[1]), 3, 2, 1} & set(range(len(named[1]) + 1)), reverse=True)
    tried = [(size, across) for size in sizes for across in columns]
    for k, (size, across) in enumerate(tried):
        style = {"loc": where, "fontsize": size, "title_fontsize": size, "frameon": False, **settings}
        legend = place.legend(*named, ncols=across, columnspacing=1.2, **style)
        handles: list[Any] = legend.legend_handles
        for handle in handles:
            if hasattr(handle, "set_sizes"):  # dots, however small and faint they are in the picture
                handle.set_sizes([16.0])
                handle.set_alpha(0.9)
        yield legend
        if k < len(tried) - 1:
            legend.remove()


def room(axis: Axes, count: int) -> float:
    """Points for each of so many things side by side."""
    return float(72.0 * axis.bbox.width / cast("Figure", axis.figure).dpi / count)


def name_categories(axis: Axes, words: Sequence[str]) -> None:
    """Words below the places 0, 1, ... of the horizontal axis, aslant where they are too long to stand side
    by side, and upright, small or not all of them where they are too many for that."""
    points = room(axis, len(words))
    words = [word if len(word) <= LONGEST_WORD else f"{word[: LONGEST_WORD - 3]}..." for word in words]
    longest = LETTER * max(map(len, words))
    least, usual = HEIGHT
    step = max(1, int(np.ceil(least / points)))  # where not all fit, every second has its word, or third
    axis.set_xticks(np.arange(len(words))[::step], words[::step])
    if longest > SPARE * points:
        upright = points < 2 * LETTER
        axis.tick_params(axis="x", rotation=90 if upright else 30)
        if upright:
            axis.tick_params(axis="x", labelsize=min(usual, 0.9 * points * step))
        for label in axis.get_xticklabels():
            label.set_horizontalalignment("center" if upright else "right")
            label.set_rotation_mode("default" if upright else "anchor")
