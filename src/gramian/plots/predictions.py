"""What a model predicts along each of its columns: the mean and a 95 % band, with the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from gramian.errors import ParameterError
from gramian.estimators import GPRegressor, latent
from gramian.inference.asked import ask
from gramian.likelihoods import Likelihood, Ordinal
from gramian.plots.common import ACROSS, BLUE, INK, Z95, new_axes, typical
from gramian.report.facts import NoData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

Transform = Callable[[Array], Array] | None
# lower edge, line, upper edge, and the names of band and line
Levels = tuple[Array, Array, Array, tuple[str, str]]

LEVELS = (0.025, 0.5, 0.975)
DRAWS = 4000  # of an observation at a point, for its quantiles
MOST_VALUES = 1000  # of whole numbers, whose probabilities are added up instead


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
    check_is_fitted(gp)
    if target not in ("y", "f"):
        raise ParameterError(
            f'target={target!r} is not known. Use "y" for observations, noise included, or "f" for the'
            " function."
        )
    q = len(gp._facts.scale) if gp._has_noise() or target == "f" else 1
    if not 0 <= output < q:
        raise ParameterError(f"output={output} does not exist: the model has {q}, numbered from 0.")
    rows = np.asarray(gp._data.X) if X is None else gp._features(X)
    axes = _axes(ax, rows.shape[1])
    # later latent functions are not in the units of y
    shown = data and not isinstance(gp._data, NoData) and (gp._has_noise() or output == 0)
    for j, axis in enumerate(axes):
        _panel(axis, gp, rows, j, target, output, transform, shown, n_points)
        axis.set_xlabel(gp._columns.names[j])
        axis.spines[["top", "right"]].set_visible(False)
    figure = cast("Figure", axes[0].figure)
    for axis in axes[::ACROSS] if ax is None else axes[:1]:
        axis.set_ylabel(ylabel or ("y" if gp._has_noise() or output == 0 else f"latent function {output}"))
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
    given = list(ax) if isinstance(ax, (Sequence, np.ndarray)) else [ax]
    if len(given) != d:
        raise ParameterError(
            f"The model has {d} columns, one panel each, but ax has {len(given)} axes. Give {d}, or none."
        )
    return given


def _panel(
    axis: Axes,
    gp: GPRegressor,
    rows: Array,
    j: int,
    target: str,
    output: int,
    transform: Callable[[Array], Array] | None,
    data: bool,
    n_points: int,
) -> None:
    """Column j: data, band and line."""
    categories = gp._columns.categories
    along = (
        np.arange(float(len(categories[j])))
        if j in categories
        else np.linspace(rows[:, j].min(), rows[:, j].max(), n_points)
    )
    points = np.tile(typical(rows, categories), (len(along), 1))
    points[:, j] = along
    low, middle, high, names = (_gaussian if gp._has_noise() else _other)(
        gp, points, target, output, transform
    )
    alone = rows.shape[1] == 1
    if data:
        size, faint, layer, name = (
            (9, 0.9, 3, "data") if alone else (7, 0.35, 1, "data, other columns as they are")
        )
        axis.scatter(
            gp._data.X[:, j],
            _observed(gp, output, transform),
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


def _gaussian(gp: GPRegressor, points: Array, target: str, output: int, transform: Transform) -> Levels:
    mean, var = (values[:, output] for values in gp.posterior_.moments(points))
    if target == "y":
        var = var + np.broadcast_to(gp.noise_, gp._facts.scale.shape)[output]
    band = (
        "95 % band of a new observation y" if target == "y" else "95 % band of the function f, without noise"
    )
    shown = transform or _as_it_is
    low, middle, high = (shown(mean + z * np.sqrt(var)) for z in (-Z95, 0.0, Z95))
    return low, middle, high, (band, "median" if transform else "mean")


def _other(gp: GPRegressor, points: Array, target: str, output: int, transform: Transform) -> Levels:
    """Under another likelihood: quantiles of y, or f as the mean of y that it stands for."""
    likelihood, process = gp.likelihood_, gp.posterior_
    if target == "y":
        low, median, high = _quantiles(gp, points)
        names = "95 % band of a new observation y", "median" if transform else "mean"
        middle = median if transform else latent.observed(likelihood, process, points)[0]
        shown = transform or _as_it_is
        return shown(low), shown(middle), shown(high), names
    mean, var = (values[:, [output]] for values in process.moments(points))
    if transform is None and likelihood.latents == 1:
        bands = [
            ask(likelihood, "predictive", mean + z * np.sqrt(var), np.zeros_like(var))[:, 0]
            for z in (-Z95, 0.0, Z95)
        ]
        low, high = np.minimum(bands[0], bands[2]), np.maximum(bands[0], bands[2])
        return low, bands[1], high, ("95 % band of E[y | f], without the spread of observations", "median")
    shown = transform or _as_it_is
    low, middle, high = (shown((mean + z * np.sqrt(var))[:, 0]) for z in (-Z95, 0.0, Z95))
    which = "" if likelihood.latents == 1 else f" {output}"
    return low, middle, high, (f"95 % band of the latent function{which}", "median" if transform else "mean")


def _quantiles(gp: GPRegressor, points: Array) -> Array:
    """The 2.5 %, 50 % and 97.5 % quantiles of an observation at each point, (3, points): by the probabilities
    of whole numbers, else from draws."""
    process, likelihood = gp.posterior_, gp.likelihood_
    parts = list(process.under(likelihood, points))
    highest = 0.0
    if isinstance(likelihood, Ordinal):
        highest = likelihood.classes - 1
    elif likelihood.exposed:
        mean, var = latent.observed(likelihood, process, points)
        highest = float(np.ceil(np.max(mean + 12 * np.sqrt(var))))
    if not 0 < highest <= MOST_VALUES:
        return np.quantile(_draws(parts), LEVELS, axis=1)
    y = np.arange(highest + 1)
    every = [np.repeat(array, len(y), axis=0) for _, mean, var in parts for array in (mean, var)]
    found = [
        latent.log_densities(one, np.tile(y, len(points)), *every[2 * k : 2 * k + 2])
        for k, (one, _, _) in enumerate(parts)
    ]
    below = np.cumsum(np.mean(np.exp(found), axis=0).reshape(len(points), -1), axis=1)
    return np.array([np.sum(below < level, axis=1) for level in LEVELS], dtype=np.float64)


def _draws(parts: list[tuple[Likelihood, Array, Array]]) -> Array:
    """Observations at each point, (points, draws): the same random numbers at all points, so that quantiles
    of them are smooth along a line."""
    each = -(-DRAWS // len(parts))
    levels = ndtri((np.arange(each) + 0.5) / each)
    found = []
    for number, (likelihood, mean, var) in enumerate(parts):
        L = mean.shape[1]
        # (draws, L)
        z = np.stack([np.random.default_rng([number, k]).permutation(levels) for k in range(L)], axis=1)
        f = mean[:, None, :] + np.sqrt(var)[:, None, :] * z
        f = f[..., 0] if L == 1 else f
        found.append(np.stack([likelihood.bare().draw(np.random.default_rng([number, L]), row) for row in f]))
    return np.concatenate(found, axis=1)


def _observed(gp: GPRegressor, output: int, transform: Transform) -> Array:
    """The training targets as they are drawn: counts by their exposure."""
    y, offset = gp._data.Y[:, output], gp._data.offset
    return (transform or _as_it_is)(y if offset is None else y * np.exp(-offset))


def _as_it_is(values: Array) -> Array:
    return values
