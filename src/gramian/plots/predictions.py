"""What a model predicts along each of its columns: the mean and a 95 % band, with the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gramian.arrays import Array
from gramian.data.inputs import read_beside
from gramian.errors import ParameterError
from gramian.estimators import GPRegressor
from gramian.estimators.fitted import Fitted
from gramian.estimators.predictions import Z95
from gramian.inference.asked import ask
from gramian.plots.common import ACROSS, BLUE, INK, along, given_axes, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LEVELS = (0.025, 0.5, 0.975)
OBSERVATION = "95 % band of a new observation y"


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
    drawn = _Drawn(fitted, target, output, transform)
    for j, axis in enumerate(axes):
        drawn.panel(axis, table, j, data and fitted.has_rows and in_units_of_y, n_points)
        axis.set_xlabel(fitted.columns.names[j])
        axis.spines[["top", "right"]].set_visible(False)
    figure = cast("Figure", axes[0].figure)
    for axis in axes[::ACROSS] if ax is None else axes[:1]:
        axis.set_ylabel(ylabel or ("y" if in_units_of_y else f"latent function {output}"))
    if ax is None:  # above the panels, so never on the data
        named = axes[0].get_legend_handles_labels()
        figure.legend(*named, loc="outside upper left", ncols=3, frameon=False)
    else:
        axes[0].legend(frameon=False)
    return figure


def _axes(ax: Axes | Sequence[Axes] | None, d: int) -> list[Axes]:
    """The axes that were given, or those of a new figure."""
    if ax is None:
        across = min(d, ACROSS)
        down = -(-d // across)
        return new_axes(down, across, (max(7.0, 4.2 * across), 4.2 if d == 1 else 3.4 * down), d, sharey=True)
    message = f"The model has {d} columns, one panel each, but ax has {{}} axes. Give {d}, or none."
    return given_axes(ax, (d,), message)


@dataclass(frozen=True)
class _Drawn:
    """What of a model is drawn."""

    fitted: Fitted
    target: str
    output: int
    transform: Callable[[Array], Array] | None

    def panel(self, axis: Axes, table: Array, j: int, data: bool, n_points: int) -> None:
        """Column j: data, band and line."""
        categories, alone = self.fitted.columns.categories, table.shape[1] == 1
        if j in categories:
            x = np.arange(float(len(categories[j])))
        else:
            x = np.linspace(table[:, j].min(), table[:, j].max(), n_points)
        low, middle, high, band, line = self.levels(along(table, categories, j, x))
        if data:
            size, faint, layer, what = (
                (9, 0.9, 3, "") if alone else (7, 0.35, 1, ", other columns as they are")
            )
            style: dict[str, Any] = {"alpha": faint, "linewidths": 0, "zorder": layer, "label": f"data{what}"}
            axis.scatter(self.fitted.rows.X[:, j], self.observed(), size, INK, **style)
        line += "" if alone else ", other columns at their medians"
        if j in categories:
            axis.vlines(x, low, high, color=BLUE, alpha=0.35, linewidth=8, zorder=2, label=band)
            axis.plot(x, middle, "_", color=BLUE, markersize=14, markeredgewidth=2, zorder=4, label=line)
            axis.set_xticks(x, categories[j])
            axis.set_xlim(-0.6, len(x) - 0.4)
        else:
            axis.fill_between(x, low, high, color=BLUE, alpha=0.22, linewidth=0, zorder=2, label=band)
            axis.plot(x, middle, color=BLUE, linewidth=1.6, zorder=4, label=line)

    def levels(self, points: Array) -> tuple[Array, Array, Array, str, str]:
        """Lower edge, line and upper edge, and what band and line are called. Under another likelihood than
        Gaussian noise: quantiles of y, or f as the mean of y that it stands for."""
        fitted, line = self.fitted, "median" if self.transform else "mean"
        if self.target == "y" and not fitted.closed_form:
            foretold = fitted.predictive(points)
            low, median, high = foretold.quantile(LEVELS).T
            middle = median if self.transform else foretold.mean
            return self.shown(low), self.shown(middle), self.shown(high), OBSERVATION, line
        mean, var = (values[:, [self.output]] for values in fitted.latents(points))
        band, likelihood = "95 % band of the function f, without noise", fitted.likelihood
        if self.target == "y":
            band, var = OBSERVATION, var + fitted.noise_of_outputs[self.output]
        f = [mean + z * np.sqrt(var) for z in (-Z95, 0.0, Z95)]
        if not fitted.closed_form:
            if self.transform is None and likelihood.latents == 1:
                beside, sure = read_beside({}, len(points), likelihood), np.zeros_like(var)
                low, middle, high = (ask(likelihood, "predictive", beside, at, sure)[:, 0] for at in f)
                band = "95 % band of E[y | f], without the spread of observations"
                return np.minimum(low, high), middle, np.maximum(low, high), band, "median"
            band = f"95 % band of the latent function{'' if likelihood.latents == 1 else f' {self.output}'}"
        low, middle, high = (self.shown(at[:, 0]) for at in f)
        return low, middle, high, band, line

    def observed(self) -> Array:
        """The training targets as they are drawn: counts by their exposure."""
        Y, likelihood = self.fitted.rows.Y, self.fitted.likelihood
        closed = self.fitted.closed_form
        return self.shown(Y[:, self.output] if closed else likelihood.per_unit(likelihood.y_of(Y)))

    def shown(self, values: Array) -> Array:
        return values if self.transform is None else self.transform(values)
