"""What a model predicts along each of its columns: the mean and a 95 % band, with the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.errors import ParameterError
from gramian.estimators import GPRegressor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

Z95 = 1.959963984540054
ACROSS = 3  # panels side by side
INK, BLUE, ORANGE, GREEN = "#222222", "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito's palette: told apart with any kind of colour vision


def plot_predictions(
    gp: GPRegressor,
    X: Any = None,
    *,
    target: str = "y",
    output: int = 0,
    transform: Callable[[Array], Array] | None = None,
    ylabel: str = "y",
    ax: Axes | Sequence[Axes] | None = None,
    data: bool = True,
    n_points: int = 400,
) -> Figure:
    """Draws mean and 95 % band along each column, one panel a column, the other columns at their medians (categories at the most frequent one).

    Parameters
    ----------
    gp : a fitted GPRegressor
    X : rows whose range is drawn; None: the training rows. Give rows beyond them to see a forecast.
    target : "y" for the band of a new observation, noise included, or "f" for that of the function
    output : which output, where y has several
    transform : an increasing function that takes the model's y to what is drawn, such as numpy.exp for a model of logarithms. The line is
        then the median.
    ylabel : the name of the vertical axis
    ax : the axes to draw on, one a column; None: a new figure
    data : whether to draw the training data
    n_points : points along a column

    Returns the figure: `plot_predictions(gp).savefig("fit.png")`.
    """
    check_is_fitted(gp)
    if target not in ("y", "f"):
        raise ParameterError(f'target={target!r} is not known. Use "y" for observations, noise included, or "f" for the function.')
    q = gp._data.Y.shape[1]
    if not 0 <= output < q:
        raise ParameterError(f"output={output} does not exist: the model has {q}, numbered from 0.")
    rows = gp._data.X if X is None else gp._features(X)
    axes = _axes(ax, rows.shape[1])
    for j, axis in enumerate(axes):
        _panel(axis, gp, rows, j, target, output, transform, data, n_points)
        axis.set_xlabel(gp._columns.names[j])
        axis.spines[["top", "right"]].set_visible(False)
    figure = cast("Figure", axes[0].figure)
    for axis in axes[::ACROSS] if ax is None else axes[:1]:
        axis.set_ylabel(ylabel)
    if ax is None:
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False
        )  # above the panels, so never on the data
    else:
        axes[0].legend(frameon=False)
    return figure


def _axes(ax: Axes | Sequence[Axes] | None, d: int) -> list[Axes]:
    """The axes that were given, or those of a new figure, which needs no display and no pyplot."""
    if ax is None:
        from matplotlib.figure import Figure

        across = min(d, ACROSS)
        down = -(-d // across)
        figure = Figure(figsize=(max(7.0, 4.2 * across), 4.2 if d == 1 else 3.4 * down), layout="constrained")
        grid = list(figure.subplots(down, across, sharey=True, squeeze=False).flat)
        for unused in grid[d:]:
            unused.remove()
        return grid[:d]
    given = list(ax) if isinstance(ax, (Sequence, np.ndarray)) else [ax]
    if len(given) != d:
        raise ParameterError(f"The model has {d} columns, one panel each, but ax has {len(given)} axes. Give {d}, or none.")
    return given


def _panel(
    axis: Axes, gp: GPRegressor, rows: Array, j: int, target: str, output: int, transform: Callable[[Array], Array] | None, data: bool, n_points: int
) -> None:
    """Column j: data, band and line."""
    categories = gp._columns.categories
    along = np.arange(float(len(categories[j]))) if j in categories else np.linspace(rows[:, j].min(), rows[:, j].max(), n_points)
    points = np.tile([_most_frequent(column) if k in categories else np.median(column) for k, column in enumerate(rows.T)], (len(along), 1))
    points[:, j] = along
    mean, var = (values[:, output] for values in gp.posterior_.moments(points))
    if target == "y":
        var = var + np.broadcast_to(gp.noise_, gp._data.scale.shape)[output]
    shown = transform or (lambda values: values)
    low, middle, high = (shown(mean + z * np.sqrt(var)) for z in (-Z95, 0.0, Z95))
    alone = rows.shape[1] == 1
    if data:
        size, faint, layer, name = (9, 0.9, 3, "data") if alone else (7, 0.35, 1, "data, other columns as they are")
        axis.scatter(gp._data.X[:, j], shown(gp._data.Y[:, output]), size, INK, alpha=faint, linewidths=0, zorder=layer, label=name)
    band = "95 % band of a new observation y" if target == "y" else "95 % band of the function f, without noise"
    line = ("median" if transform else "mean") + ("" if alone else ", other columns at their medians")
    if j in categories:
        axis.vlines(along, low, high, color=BLUE, alpha=0.35, linewidth=8, zorder=2, label=band)
        axis.plot(along, middle, "_", color=BLUE, markersize=14, markeredgewidth=2, zorder=4, label=line)
        axis.set_xticks(along, categories[j])
        axis.set_xlim(-0.6, len(along) - 0.4)
    else:
        axis.fill_between(along, low, high, color=BLUE, alpha=0.22, linewidth=0, zorder=2, label=band)
        axis.plot(along, middle, color=BLUE, linewidth=1.6, zorder=4, label=line)


def _most_frequent(codes: Array) -> float:
    values, counts = np.unique(codes, return_counts=True)
    return float(values[np.argmax(counts)])
