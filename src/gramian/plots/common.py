"""What pictures share: the palette, new axes, and the point that the other columns stand at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes


ACROSS = 3  # panels side by side
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
