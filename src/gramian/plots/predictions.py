"""What a model predicts along each of its columns: the mean and a 95 % band, with the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gramian.data.inputs import read_beside
from gramian.errors import ParameterError
from gramian.estimators import GPRegressor
from gramian.estimators.fitted import Fitted
from gramian.inference.asked import ask
from gramian.plots.common import ACROSS, BLUE, INK, Z95, new_axes, typical

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

Transform = Callable[[Array], Array] | None
# lower edge, line, upper edge, and the names of band and line
Levels = tuple[Array, Array, Array, tuple[str, str]]

LEVELS = (0.025, 0.5, 0.975)


def plot_predictions(
    gp: GPRegressor,
    X: Any = None,
    *,
    target: str = "y",
    output: int = 0,
    transform: Callable[[Array], Array] | None = None,
    ylabel: str | None = None,
    ax: Axes | Sequence[Axes] | None = None,
    data: bool = True,
    n_points: int = 400,
) -> Figure:
    """Draws mean and 95 % band along each column, one panel a column, the other columns at their medians
    (categories at the most frequent one).

    Parameters
    ----------
    gp : a fitted GPRegressor
    X : rows whose range is drawn; None: the training rows. Give rows beyond them to see a forecast.
    target : "y" for the band of a new observation, noise included, or "f" for that of the function. Under a
        likelihood other than Gaussian noise the band of y is between its quantiles, and f is drawn as the
        mean of y that it stands for (a rate exp(f) for counts).
    output : which output, where y has several (with target="f": which latent function, where the likelihood
        has several)
    transform : an increasing function that takes the model's y to what is drawn, such as numpy.exp for a
        model of logarithms. The line is then the median.
    ylabel : the name of the vertical axis; None: y
    ax : the axes to draw on, one a column; None: a new figure
    data : whether to draw the training data
    n_points : points along a column

    Returns the figure: `plot_predictions(gp).savefig("fit.png")`.
    """
    check_is_fitted(gp, "fitted_")
    if target not in ("y", "f"):
        raise ParameterError(
            f'target={target!r} is not known. Use "y" for observations, noise included, or "f" for the'
            " function."
        )
    fitted = gp.fitted_
    q = fitted.n_functions if fitted.closed_form or target == "f" else 1
    if not 0 <= output < q:
        raise ParameterError(f"output={output} does not exist: the model has {q}, numbered from 0.")
    table = np.asarray(fitted.rows.X) if X is None else gp.read(X)
    axes = _axes(ax, table.shape[1])
    in_units_of_y = fitted.closed_form or output == 0  # later latent functions are not
    for j, axis in enumerate(axes):
        shown = data and fitted.has_rows and in_units_of_y
        _panel(axis, fitted, table, j, target, output, transform, shown, n_points)
        axis.set_xlabel(fitted.columns.names[j])
        axis.spines[["top", "right"]].set_visible(False)
    figure = cast("Figure", axes[0].figure)
    for axis in axes[::ACROSS] if ax is None else axes[:1]:
        axis.set_ylabel(ylabel or ("y" if in_units_of_y else f"latent function {output}"))
    if ax is None:
        figure.legend(
            *axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False
        )  # above the panels, so never on the data
    else:
        axes[0].legend(frameon=False)
    return figure


def _axes(ax: Axes | Sequence[Axes] | None, d: int) -> list[Axes]:
    """The axes that were given, or those of a new figure."""
    if ax is None:
        across = min(d, ACROSS)
        down = -(-d // across)
        return new_axes(down, across, (max(7.0, 4.2 * across), 4.2 if d == 1 else 3.4 * down), d, sharey=True)
    axes = list(ax) if isinstance(ax, (Sequence, np.ndarray)) else [ax]
    if len(axes) != d:
        raise ParameterError(
            f"The model has {d} columns, one panel each, but ax has {len(axes)} axes. Give {d}, or none."
        )
    return axes


def _panel(
    axis: Axes,
    fitted: Fitted,
    table: Array,
    j: int,
    target: str,
    output: int,
    transform: Callable[[Array], Array] | None,
    data: bool,
    n_points: int,
) -> None:
    """Column j: data, band and line."""
    categories = fitted.columns.categories
    along = (
        np.arange(float(len(categories[j])))
        if j in categories
        else np.linspace(table[:, j].min(), table[:, j].max(), n_points)
    )
    points = np.tile(typical(table, categories), (len(along), 1))
    points[:, j] = along
    low, middle, high, names = (_gaussian if fitted.closed_form else _other)(
        fitted, points, target, output, transform
    )
    alone = table.shape[1] == 1
    if data:
        size, faint, layer, name = (
            (9, 0.9, 3, "data") if alone else (7, 0.35, 1, "data, other columns as they are")
        )
        axis.scatter(
            fitted.rows.X[:, j],
            _observed(fitted, output, transform),
            size,
            INK,
            alpha=faint,
            linewidths=0,
            zorder=layer,
            label=name,
        )
    band, line = names[0], names[1] + ("" if alone else ", other columns at their medians")
    if j in categories:
        axis.vlines(along, low, high, color=BLUE, alpha=0.35, linewidth=8, zorder=2, label=band)
        axis.plot(along, middle, "_", color=BLUE, markersize=14, markeredgewidth=2, zorder=4, label=line)
        axis.set_xticks(along, categories[j])
        axis.set_xlim(-0.6, len(along) - 0.4)
    else:
        axis.fill_between(along, low, high, color=BLUE, alpha=0.22, linewidth=0, zorder=2, label=band)
        axis.plot(along, middle, color=BLUE, linewidth=1.6, zorder=4, label=line)


def _gaussian(fitted: Fitted, points: Array, target: str, output: int, transform: Transform) -> Levels:
    mean, var = (values[:, output] for values in fitted.latents(points))
    if target == "y":
        var = var + fitted.noise_of_outputs[output]
    band = (
        "95 % band of a new observation y" if target == "y" else "95 % band of the function f, without noise"
    )
    shown = transform or _as_it_is
    low, middle, high = (shown(mean + z * np.sqrt(var)) for z in (-Z95, 0.0, Z95))
    return low, middle, high, (band, "median" if transform else "mean")


def _other(fitted: Fitted, points: Array, target: str, output: int, transform: Transform) -> Levels:
    """Under another likelihood: quantiles of y, or f as the mean of y that it stands for."""
    likelihood = fitted.likelihood
    if target == "y":
        low, median, high = fitted.quantiles(points, LEVELS).T
        names = "95 % band of a new observation y", "median" if transform else "mean"
        middle = median if transform else fitted.observed(points)[0]
        shown = transform or _as_it_is
        return shown(low), shown(middle), shown(high), names
    mean, var = (values[:, [output]] for values in fitted.latents(points))
    if transform is None and likelihood.latents == 1:
        beside = read_beside({}, len(points), likelihood)
        bands = [
            ask(likelihood, "predictive", beside, mean + z * np.sqrt(var), np.zeros_like(var))[:, 0]
            for z in (-Z95, 0.0, Z95)
        ]
        low, high = np.minimum(bands[0], bands[2]), np.maximum(bands[0], bands[2])
        return low, bands[1], high, ("95 % band of E[y | f], without the spread of observations", "median")
    shown = transform or _as_it_is
    low, middle, high = (shown((mean + z * np.sqrt(var))[:, 0]) for z in (-Z95, 0.0, Z95))
    which = "" if likelihood.latents == 1 else f" {output}"
    return low, middle, high, (f"95 % band of the latent function{which}", "median" if transform else "mean")


def _observed(fitted: Fitted, output: int, transform: Transform) -> Array:
    """The training targets as they are drawn: counts by their exposure."""
    Y, likelihood = fitted.rows.Y, fitted.likelihood
    y = Y[:, output] if fitted.closed_form else likelihood.per_unit(likelihood.y_of(Y))
    return (transform or _as_it_is)(y)


def _as_it_is(values: Array) -> Array:
    return values
