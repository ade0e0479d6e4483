"""The covariance of f at all pairs of places along a column, before the rows and after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from gramian.errors import ParameterError
from gramian.plots.common import ORANGE, along, chosen_columns, given_axes, name_axis, new_axes
from gramian.report.insides import Insides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 201  # along the column
MOST_MARKS = 60  # rows that are marked: more are a line
COLOURS = "cividis"


class HasInsides(Protocol):
    """A fitted estimator, or what `GP.condition` gives."""

    def insides(self) -> Insides: ...


def plot_covariance(
    post: HasInsides, X: Any = None, *, column: str | int = 0, output: int = 0, ax: Any = None
) -> Figure:
    """Two pictures of one scale: cov(f(x), f(x')) before the rows were seen and after. Marks at the edges are
    the rows: near them f is known, and nothing is left to vary together.

    post : a fitted estimator, or what `GP.condition` gives
    X : rows whose range is drawn; None: those of the fit
    column : along which one, by name or number, all others at their medians
    output : which function, where there are several
    ax : two axes of your own

    Returns the figure.
    """
    own = post.insides()
    columns, seen = own.columns, own.objective.data.X
    table = np.asarray(seen) if X is None else own.read(X)
    j = chosen_columns(columns.names, column, 1)[0]
    if j in columns.categories:
        cure = "Choose a column of numbers."
        raise ParameterError(f"{columns.names[j]} has categories, along which there is no line. {cure}")
    x = np.linspace(float(np.min(table[:, j])), float(np.max(table[:, j])), POINTS)
    points = along(table, columns.categories, j, x)
    prior, k = own.prior(output)
    before, after = prior.cov(points)[:, :, k], own.process.cov(points)[:, :, output]
    message = "There are 2 pictures, but ax has {} axes. Give 2, or none."
    axes = new_axes(1, 2, (8.6, 3.9), 2) if ax is None else given_axes(ax, (2,), message)
    low, high = min(0.0, float(before.min()), float(after.min())), float(before.max())
    style: dict[str, Any] = {"cmap": COLOURS, "aspect": "auto", "vmin": low, "vmax": high}
    edge: dict[str, Any] = {"color": ORANGE, "clip_on": False, "linestyle": "none", "markersize": 5}
    marks = np.unique(np.asarray(seen)[:, j])
    marks = marks[(marks >= x[0]) & (marks <= x[-1])]
    shown: Any = None
    for axis, K, title in zip(axes, (before, after), ("before the rows", "after the rows"), strict=True):
        shown = axis.imshow(K, extent=(x[0], x[-1], x[-1], x[0]), **style)
        if axis is axes[1] and len(marks) <= MOST_MARKS:
            axis.plot(marks, np.full(len(marks), x[0]), marker="v", label="rows", **edge)
            axis.plot(np.full(len(marks), x[-1]), marks, marker="<", **edge)
            axis.set(xlim=(x[0], x[-1]), ylim=(x[-1], x[0]))
        axis.set_title(title, pad=10)
        name_axis(axis.xaxis, columns, j)
        name_axis(axis.yaxis, columns, j)
    figure = cast("Figure", axes[0].figure)
    figure.colorbar(shown, ax=axes, label="covariance of f")
    return figure
