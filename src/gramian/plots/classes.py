"""What a classifier knows: latent functions and probabilities along a column, or a map over two with the
boundaries between classes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from scipy.special import expit, ndtr
from sklearn.base import is_classifier

from gramian.arrays import Array
from gramian.data.inputs import read_features
from gramian.errors import ParameterError
from gramian.estimators import GPClassifier, GPRegressor, build
from gramian.estimators.learned import LabelledRows
from gramian.estimators.multiclass import VARIANCE
from gramian.estimators.predictions import Z95
from gramian.inference.asked import ask
from gramian.plots.common import (
    ACROSS,
    BLUE,
    GREEN,
    INK,
    ORANGE,
    along,
    check_points,
    chosen_columns,
    given_axes,
    legend_above,
    legend_within,
    look,
    name_axis,
    name_categories,
    new_axes,
    points_between,
    typical,
)
from gramian.plots.predictions import around_zero, plot_predictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Okabe and Ito's, without yellow, which is too light for lines
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#7F7F7F")
MARKERS = "os^DvPX*"
ON_A_SIDE = 100  # points, where n_points is not given
# how much of its colour a class has on the map where it is certain, so that points of that colour can still
# be seen
DEEPEST = 0.62
SURE = 0.9
GREY = "#666666"
# a line to compare with
ZERO: dict[str, Any] = {"color": GREY, "linewidth": 0.8, "linestyle": ":", "zorder": 1}


def plot_classes(
    gp: GPClassifier,
    X: Any = None,
    *,
    columns: str | int | Sequence[str | int] | None = None,
    ax: Axes | Sequence[Axes] | None = None,
    data: bool = True,
    n_points: int | None = None,
) -> Figure:
    """Draws the probabilities of a fitted classifier.

    One column: the latent functions with their 95 % bands above, the probabilities below. Two columns: a map
    of the most probable class, the deeper the more probable, with the boundaries between classes (two
    classes: lines at 0.1, 0.5 and 0.9). More: the probabilities along each column. Before a fit: what the
    kernel says of the probability of one of two classes, with some draws, along each column.

    Parameters
    ----------
    gp : a fitted GPClassifier
    X : rows whose range is drawn; None: the training rows. A model from a file without data needs them.
    columns : one or two columns, by name or number, that are drawn, with all others at their medians
        (categories at the most frequent one)
    ax : the axes to draw on; for one column two (or one, for the probabilities alone), for two columns one,
        else one a column. None: a new figure.
    data : whether to draw the training data
    n_points : points along a line (400, or more where the kernel's shortest lengthscale or period needs
        them), or along each side of a map (100)

    Returns the figure: `plot_classes(gp).savefig("classes.png")`.
    """
    if not is_classifier(gp):
        raise ParameterError(
            f"plot_classes draws a GPClassifier, not {type(gp).__name__}. For a regression: plot_predictions."
        )
    if not gp.__sklearn_is_fitted__():
        return _prior(gp, X, columns, ax, n_points)
    seen = gp.fitted_.labelled_rows()
    if X is None and seen is None:
        raise ParameterError(
            "This model was loaded from a file that holds no data. Give X, the rows whose range is to be"
            " drawn."
        )
    table = gp.read(X) if X is not None else cast(LabelledRows, seen).X
    chosen = chosen_columns(gp.fitted_.columns.names, columns, 2)
    picture = _Picture(gp, np.asarray(table), seen if data else None, chosen, n_points)
    if len(chosen) == 1:
        return picture.line(ax)
    return picture.map(ax) if len(chosen) == 2 else picture.slices(ax)


def _prior(gp: GPClassifier, X: Any, columns: Any, ax: Any, n_points: int | None) -> Figure:
    """As that of a function, sent through the link."""
    gp.check_settings()
    written = build.read_kernel(gp.kernel)
    kernel = written.kernel
    if kernel is None:
        table, found = around_zero(None) if X is None else read_features(X)
        kernel = written.suited(table, found, VARIANCE)[0]
    sigma = ndtr if gp.link == "probit" else expit
    function = GPRegressor(kernel, mean=gp.mean, normalize_y=False)
    drawn: dict[str, Any] = {"columns": columns, "ax": ax, "n_points": n_points}
    return plot_predictions(
        function, X, target="f", transform=sigma, ylabel="probability of a class", **drawn
    )


class _Picture:
    """One picture, and what its panels have in common."""

    def __init__(
        self,
        gp: GPClassifier,
        rows: Array,
        seen: LabelledRows | None,
        chosen: list[int],
        n_points: int | None,
    ) -> None:
        self.fitted, self.averaging = gp.fitted_, gp.averaging
        self.rows, self.seen, self.chosen = rows, seen, chosen
        self.names, self.categories = self.fitted.columns.names, self.fitted.columns.categories
        self.labels = [str(label) for label in gp.classes_]
        self.looks = [look(k, COLOURS, MARKERS) for k in range(len(self.labels))]  # colour and marker
        self.binary = len(self.labels) == 2
        check_points(n_points)
        self.n_points = n_points

    # Along one column. --------------------------------------------------------------------------------------

    def line(self, ax: Any) -> Figure:
        """Latent functions above, probabilities below."""
        (j,) = self.chosen
        if ax is None:
            axes = new_axes(2, 1, (7.6, 6.0), 2, sharex="col")
            axes[0].tick_params(labelbottom=False)
        else:
            message = "ax has {} axes, but one column takes two axes, or one for the probabilities alone."
            axes = given_axes(ax, (1, 2), message)
        if len(axes) == 2:
            self._latent(axes[0], j)
        self._probability(axes[-1], j)
        name_axis(axes[-1].xaxis, self.fitted.columns, j, self._remark())
        return self._finished(axes, ax is None)

    def slices(self, ax: Any) -> Figure:
        """The probabilities along each column."""
        d = len(self.chosen)
        across = min(d, ACROSS)
        down = -(-d // across)
        if ax is None:
            axes = new_axes(down, across, (3.6 * across + 1.6, 3.0 * down + 0.5), d)
        else:
            axes = given_axes(ax, (d,), f"ax has {{}} axes, but the model has {d} columns, one panel each.")
        for place, (axis, j) in enumerate(zip(axes, self.chosen, strict=True)):
            self._probability(axis, j)
            name_axis(axis.xaxis, self.fitted.columns, j)
            if place % across and ax is None:
                axis.set_ylabel("")
        if ax is None:
            title = "along each column, all others at their medians"
            cast("Figure", axes[0].figure).supxlabel(title, fontsize="medium")
        return self._finished(axes, ax is None)

    def _latent(self, axis: Axes, j: int) -> None:
        x, points = self._along(j)
        mean, var = self.fitted.latents(points)
        low, high = mean - Z95 * np.sqrt(var), mean + Z95 * np.sqrt(var)
        axis.axhline(0, **ZERO)
        if self.fitted.pairwise:  # many bands would hide each other
            for k, f in enumerate(mean.T):
                self._curve(axis, x, f, j, GREY, "f of each pair of classes" if k == 0 else "", 1.0)
        else:
            for k, f in enumerate(mean.T):
                colour = INK if self.binary else self.looks[k][0]
                self._curve(axis, x, f, j, colour)
                self._band(axis, x, low[:, k], high[:, k], j, colour, "95 % band" if k == 0 else "")
        each = f"latent function\nof each {'pair' if self.fitted.pairwise else 'class'}"
        axis.set_ylabel(f"latent function f\n(above 0: {self.labels[1]})" if self.binary else each)

    def _probability(self, axis: Axes, j: int) -> None:
        x, points = self._along(j)
        P = self.fitted.probabilities(points, self.averaging)
        if self.binary:
            axis.axhline(0.5, **ZERO)
            self._curve(axis, x, P[:, 1], j, INK)
            mean, var = self.fitted.latents(points)
            likelihood, sure = self.fitted.first.likelihood, np.zeros_like(var)
            edges = (mean + z * np.sqrt(var) for z in (-Z95, Z95))
            low, high = (ask(likelihood, "probabilities", f, sure)[:, 1] for f in edges)
            self._band(axis, x, low, high, j, INK, "95 % band")
        else:
            for p, (colour, _) in zip(P.T, self.looks, strict=True):
                self._curve(axis, x, p, j, colour)
        self._ticks(axis, j)
        axis.set_yticks(np.linspace(0, 1, 5))
        axis.set_ylabel(f"probability of {self.labels[1]}" if self.binary else "probability\nof each class")

    def _ticks(self, axis: Axes, j: int) -> None:
        """The training rows: at 0 and 1 for two classes, in a line a class above 1 for more."""
        size, faint = (26, 0.85) if len(self.names) == 1 else (16, 0.4)
        style: dict[str, Any] = {"alpha": faint, "edgecolors": "white", "linewidths": 0.4, "clip_on": False}
        if self.seen is not None:
            for k, (colour, marker) in enumerate(self.looks):
                x = self.seen.X[self.seen.codes == k, j]
                heights = np.full(len(x), float(k) if self.binary else 1.06 + 0.055 * k)
                axis.scatter(x, heights, size, colour, marker=marker, zorder=3, **style)
        axis.set_ylim(-0.05, 1.05 if self.binary or self.seen is None else 1.1 + 0.055 * len(self.labels))

    def _curve(
        self, axis: Axes, x: Array, y: Array, j: int, colour: str, label: str = "", width: float = 1.6
    ) -> None:
        style: dict[str, Any] = {"color": colour, "zorder": 4, "label": label}
        if j in self.categories:
            axis.plot(x, y, "_", markersize=14, markeredgewidth=width + 0.6, **style)
            name_categories(axis, self.categories[j])
            axis.set_xlim(-0.6, len(x) - 0.4)
        else:
            axis.plot(x, y, linewidth=width, **style)
            axis.set_xlim(x[0], x[-1])

    def _band(self, axis: Axes, x: Array, low: Array, high: Array, j: int, colour: str, label: str) -> None:
        strength = 0.16 if self.binary else 0.08
        if j in self.categories:
            axis.vlines(x, low, high, color=colour, alpha=0.3, linewidth=6, zorder=2, label=label)
        else:
            axis.fill_between(x, low, high, color=colour, alpha=strength, linewidth=0, zorder=2, label=label)
            if not self.binary:  # bands that lie over each other are told apart by their edges
                axis.plot(x, low, x, high, color=colour, linewidth=0.7, alpha=0.6, zorder=2)

    # Over two columns. --------------------------------------------------------------------------------------

    def map(self, ax: Any) -> Figure:
        """The most probable class, and where it changes."""
        given = () if ax is None else given_axes(ax, (1,), "ax has {} axes, but a map takes one.")
        (axis,) = given or new_axes(1, 1, (8.8, 5.6), 1)
        i, j = self.chosen
        u, v = self._range(i), self._range(j)
        points = np.tile(typical(self.rows, self.categories), (len(u) * len(v), 1))
        points[:, i], points[:, j] = np.tile(u, len(v)), np.repeat(v, len(u))
        for k, set_ticks in ((i, axis.set_xticks), (j, axis.set_yticks)):
            if k in self.categories:
                last = len(self.categories[k]) - 1
                points[:, k] = np.clip(np.round(points[:, k]), 0, last)
                set_ticks(np.arange(last + 1), self.categories[k])
        P = self.fitted.probabilities(points, self.averaging).reshape(len(v), len(u), -1)
        chance = 1 / P.shape[2]
        paint = np.array([_rgb(colour) for colour, _ in self.looks])[np.argmax(P, axis=2)]  # (v, u, 3)
        strength = DEEPEST * ((np.max(P, axis=2) - chance) / (1 - chance))[..., None]
        step = (u[1] - u[0]) / 2, (v[1] - v[0]) / 2
        extent = u[0] - step[0], u[-1] + step[0], v[0] - step[1], v[-1] + step[1]
        image: dict[str, Any] = {"origin": "lower", "extent": extent, "aspect": "auto", "zorder": 0}
        image["interpolation"] = "nearest" if {i, j} & set(self.categories) else "bilinear"
        axis.imshow(1 - strength * (1 - paint), **image)
        self._boundaries(axis, u, v, P)
        self._points(axis, i, j)
        axis.set_xlim(u[0], u[-1])
        axis.set_ylim(v[0], v[-1])
        name_axis(axis.xaxis, self.fitted.columns, i, self._remark())
        name_axis(axis.yaxis, self.fitted.columns, j)
        figure = self._finished([axis], ax is None)
        if ax is None:
            self._colourbar(figure, axis)
        return figure

    def _colourbar(self, figure: Figure, axis: Axes) -> None:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LinearSegmentedColormap, Normalize

        if self.binary:
            least, what = 0.0, self.labels[1]
            ends: list[Any] = [_blend(COLOURS[0]), "#ffffff", _blend(COLOURS[1])]
        else:
            least, what = 1 / len(self.labels), "the most\nprobable class"
            ends = ["#ffffff", _blend(INK)]
        shades = ScalarMappable(Normalize(least, 1.0), LinearSegmentedColormap.from_list("shades", ends))
        figure.colorbar(shades, ax=axis, pad=0.02, fraction=0.05).set_label(f"probability of {what}")

    def _boundaries(self, axis: Axes, u: Array, v: Array, P: Array) -> None:
        def contour(fields: list[Array], levels: list[float], style: str, width: float, label: str) -> None:
            there = [(f, level) for f, level in product(fields, levels) if np.min(f) < level < np.max(f)]
            for f, level in there:
                axis.contour(u, v, f, [level], colors=INK, linestyles=style, linewidths=width, zorder=2)
            if there:
                axis.plot([], [], color=INK, linewidth=width, linestyle=style, label=label)

        if self.binary:
            contour([P[..., 1]], [0.5], "-", 1.5, f"p({self.labels[1]}) = 0.5")
            contour([P[..., 1]], [1 - SURE, SURE], "--", 0.9, f"p = {1 - SURE:.1f} and {SURE:.1f}")
        else:
            leads = [P[..., k] - np.max(np.delete(P, k, axis=2), axis=2) for k in range(P.shape[2])]
            contour(leads, [0.0], "-", 1.3, "boundary between classes")

    def _points(self, axis: Axes, i: int, j: int) -> None:
        faint = 1.0 if len(self.names) == 2 else 0.6
        style: dict[str, Any] = {"alpha": faint, "edgecolors": INK, "linewidths": 0.6, "zorder": 3}
        if self.seen is not None:
            for k, (colour, marker) in enumerate(self.looks):
                mine = self.seen.X[self.seen.codes == k]
                axis.scatter(mine[:, i], mine[:, j], 34, colour, marker=marker, **style)

    # Common. ------------------------------------------------------------------------------------------------

    def _along(self, j: int) -> tuple[Array, Array]:
        """Where column j is drawn, and the rows of the model's table for it."""
        x = np.arange(float(len(self.categories[j]))) if j in self.categories else self._range(j)
        return x, along(self.rows, self.categories, j, x)

    def _range(self, j: int) -> Array:
        on_a_side = self.n_points or ON_A_SIDE
        if j in self.categories:
            return np.linspace(-0.5, len(self.categories[j]) - 0.5, on_a_side)
        low, high = float(self.rows[:, j].min()), float(self.rows[:, j].max())
        spare = 0.04 * (high - low) or 0.5
        low, high = low - spare, high + spare
        if len(self.chosen) == 2:
            return np.linspace(low, high, on_a_side)
        kernel = self.fitted.first.model.kernel
        return points_between(low, high, kernel, j, self.rows.shape[1], self.n_points)

    def _remark(self) -> str:
        return "     (other columns at their medians)" if len(self.names) > len(self.chosen) else ""

    def _finished(self, axes: list[Axes], own: bool) -> Figure:
        from matplotlib.lines import Line2D

        figure, handles = cast("Figure", axes[0].figure), dict[str, Any]()
        for axis in axes:
            axis.spines[["top", "right"]].set_visible(False)
            drawn, names = axis.get_legend_handles_labels()
            handles |= zip(names, drawn, strict=True)
        is_map = len(self.chosen) == 2
        lines = not is_map and not self.binary
        style: dict[str, Any] = {"linestyle": "-" if lines else "none", "markersize": 7}
        style |= {"markeredgecolor": INK if is_map else "white", "markeredgewidth": 0.6}
        looks = self.looks if lines or is_map or self.seen is not None else []
        classes = [Line2D([], [], color=colour, marker=marker, **style) for colour, marker in looks]
        shown = [*classes, *handles.values()], [*self.labels[: len(looks)], *handles]
        title = (*self.fitted.columns.targets, "class")[0]
        settings: dict[str, Any] = {"title": title, "alignment": "left"}
        if own:
            legend_above(figure, axes[0], shown, **settings)
        else:
            legend_within(axes[0], shown, limits=not is_map, **settings)
        return figure


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))


def _blend(colour: str) -> tuple[float, ...]:
    """As on the map where a class is certain."""
    return tuple(1 - DEEPEST * (1 - part) for part in _rgb(colour))
