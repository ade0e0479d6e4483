"""How a search for parameters went: its height and the parameters, an evaluation after another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gramian.errors import ParameterError
from gramian.plots.common import (
    ACROSS,
    BLUE,
    GREEN,
    INK,
    ORANGE,
    given_axes,
    in_lines,
    legend_above,
    legend_within,
    look,
    new_axes,
)
from gramian.plots.covariance import HasInsides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS, MARKERS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", INK), "os^Dv*P"
MOST_PARAMETERS = 5
SEEN = 0.75  # of the evaluations of a search lie in the picture's range: the first may be far below
LETTERS = 34
SPREAD = 20.0  # of largest to smallest, beyond which a positive parameter is drawn by its logarithm


def plot_search(fitted: HasInsides, *, parameters: int | None = None, ax: Any = None) -> Figure:
    """The height (log evidence and log prior) of each evaluation of the search, and the parameters that moved
    most, from the first search to the last one. A line rises to a plateau where a search has converged;
    several searches are restarts, models that were compared, or stages on more rows.

    fitted : a fitted estimator, or what `GP.condition` gives after `GP.fit`
    parameters : how many parameters are drawn; None: up to 5
    ax : axes of your own: one for the height, and one each for the parameters

    Returns the figure.
    """
    own = fitted.insides()
    paths = [path for path in own.trace if np.any(np.isfinite(path.heights))]
    if not paths:
        raise ParameterError(
            "There is no search to draw: nothing was optimised, or the model is from a file, which does not"
            " hold how it was found."
        )
    if parameters is not None and (not isinstance(parameters, int) or parameters < 0):
        raise ParameterError(f"parameters={parameters!r} must be a whole number from 0 on.")
    last = paths[-1]
    names = own.names(last.space) if last.names and last.space is not None else []
    wanted = min(MOST_PARAMETERS if parameters is None else parameters, len(names))
    # those that moved most, in units of theta: a factor for a size
    moved = np.ptp(np.concatenate([p.thetas for p in paths if p.names == last.names]), axis=0)
    chosen = np.sort(np.argsort(-moved, kind="stable")[:wanted])
    count = 1 + len(chosen)
    across = min(count, ACROSS)
    down = -(-count // across)
    if ax is None:
        axes = new_axes(down, across, (max(6.4, 3.9 * across), 3.0 * down + 0.5), count, sharex=True)
    else:
        message = f"There are {count} panels, but ax has {{}} axes. Give {count}, or none."
        axes = given_axes(ax, (count,), message)
    ends = np.cumsum([0.0, *(path.at[-1] for path in paths)])
    ranges = []
    for k, (path, before) in enumerate(zip(paths, ends, strict=False)):
        colour, marker = look(k, COLOURS, MARKERS)
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 2.6, "linewidth": 0.9}
        heights = np.where(np.isfinite(path.heights), path.heights, np.nan)
        name = "\n".join(in_lines(path.what or "the search", LETTERS))
        axes[0].plot(before + path.at, heights, label=name, **style)
        ranges.append(np.nanquantile(heights, [1 - SEEN, 1.0]))
        if path.names != last.names:
            continue
        values = path.values
        for axis, j in zip(axes[1:], chosen, strict=True):
            axis.plot(before + path.at, values[:, j], **style)
    low, high = np.min(ranges), np.max(ranges)
    room = 0.08 * (high - low) or 1.0
    axes[0].set_ylim(low - room, high + room)
    titles = ["log evidence + log prior" if _believes(paths) else "log evidence", *(names[j] for j in chosen)]
    for axis in axes[1:]:
        drawn = np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in axis.lines])
        if drawn.min() > 0 and drawn.max() > SPREAD * drawn.min():
            axis.set_yscale("log")
    for k, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        axis.set_title("\n".join(in_lines(title, LETTERS)), loc="left", fontsize="medium")
        if k >= count - across or ax is not None:
            axis.set_xlabel("evaluation")
            axis.tick_params(axis="x", labelbottom=True)
        axis.spines[["top", "right"]].set_visible(False)
    figure = cast("Figure", axes[0].figure)
    if ax is None:
        legend_above(figure, axes[0])
    else:
        legend_within(axes[0], limits=True)
    return figure


def _believes(paths: list[Any]) -> bool:
    """Whether what was raised has the density of priors in it."""
    return any(path.space is not None and path.space.believes for path in paths)
