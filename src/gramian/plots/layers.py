"""What the layers of a deep model do: joint draws of what each layer sees, coloured by the input.

Of one column each panel has the input along it and what a layer sees up it: where a curve is flat, the next
layer cannot tell inputs apart, where it is steep, it sees them far from each other. Of more columns the first
two of what a layer sees are along and up, so that one sees how the table is folded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gramian.arrays import Array, is_whole
from gramian.data.inputs import read_features
from gramian.errors import ParameterError
from gramian.estimators.deep import DeepEstimator
from gramian.plots.common import given_axes, name_axis, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 300  # along one column
MOST_ROWS = 500  # of training rows that are drawn
COLOURS = "viridis"


def plot_layers(
    gp: DeepEstimator, X: Any = None, *, draws: int = 3, random_state: int = 0, ax: Any = None
) -> Figure:
    """Draws functions through all layers at the rows of X, of the posterior or, before a fit, of the prior:
    a panel for what each layer after the first sees, and one for f; the colour is the first column of X.

    Parameters
    ----------
    gp : a DeepGPRegressor or DeepGPClassifier
    X : rows; None: 300 points across the column of the fit, or its training rows where there are several
        columns, 500 at most
    draws : how many functions
    random_state : their seed
    ax : the axes to draw on, one a layer; None: a new figure

    Returns the figure: `plot_layers(gp).savefig("layers.png")`.
    """
    if not isinstance(gp, DeepEstimator):
        raise ParameterError(f"plot_layers draws a deep model, not {type(gp).__name__}.")
    if not is_whole(draws):
        raise ParameterError(f"draws={draws!r} must be a whole number from 1 on.")
    rows = _rows(gp) if X is None else X
    columns = gp.fitted_.columns if gp.__sklearn_is_fitted__() else read_features(rows)[1]
    seeds = [[random_state, k] for k in range(draws)]
    found = [gp.sample_layers(X, seed) if X is not None else gp.layers_at(rows, seed) for seed in seeds]
    inputs = found[0][0]
    panels, one = len(found[0]) - 1, inputs.shape[1] == 1
    axes = _axes(ax, panels)
    shown: Any = None
    for k, axis in enumerate(axes):
        for seen in found:
            shown = axis.scatter(*_coordinates(inputs, seen[k + 1], k == panels - 1), c=inputs[:, 0], s=6)
            shown.set_cmap(COLOURS)
        last = k == panels - 1
        axis.set_title("f" if last else f"what layer {k + 2} sees")
        if one or last:
            name_axis(axis.xaxis, columns, 0)
        else:
            axis.set_xlabel("first column")
        axis.set_ylabel("f" if last else "first column" if one else "second column")
        axis.spines[["top", "right"]].set_visible(False)
    figure = cast("Figure", axes[0].figure)
    name_axis(figure.colorbar(shown, ax=axes).ax.yaxis, columns, 0)
    return figure


def _axes(ax: Any, panels: int) -> list[Axes]:
    if ax is None:
        return new_axes(1, panels, (3.4 * panels + 0.8, 3.2), panels)
    return given_axes(ax, (panels,), f"{{}} axes were given, but there are {panels} layers to draw.")


def _rows(gp: DeepEstimator) -> Array:
    """Those of the fit, or points across its only column."""
    if not gp.__sklearn_is_fitted__():
        raise ParameterError("Before a fit nothing says where to draw: give X, the rows to draw at.")
    fitted = gp.fitted_.first
    points = fitted.seen_points()
    if points.shape[1] == 1:
        return np.linspace(points.min(), points.max(), POINTS)[:, None]
    return np.asarray(points[:: max(1, len(points) // MOST_ROWS)])


def _coordinates(inputs: Array, seen: Array, last: bool) -> tuple[Array, Array]:
    """What is drawn along and up."""
    if last or inputs.shape[1] == 1 or seen.shape[1] == 1:
        return inputs[:, 0], seen[:, 0]
    return seen[:, 0], seen[:, 1]
