"""What a model predicts along each of its columns, the mean and a 95 % band, with the data; and before a fit,
what it believes, with draws."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from gramian.arrays import Array
from gramian.data.inputs import Columns, read_beside, read_features
from gramian.errors import ParameterError
from gramian.estimators import GPRegressor, build
from gramian.estimators.fitted import Fitted
from gramian.estimators.predictions import Z95
from gramian.inference.asked import ask
from gramian.kernels import Kernel
from gramian.likelihoods.words import read_likelihood
from gramian.plots.common import (
    ACROSS,
    BLUE,
    FEWEST_POINTS,
    INK,
    MOST_POINTS,
    ORANGE,
    along,
    check_points,
    chosen_columns,
    given_axes,
    legend_above,
    legend_within,
    name_axis,
    name_categories,
    new_axes,
    points_between,
    room,
    wrapped,
)
from gramian.processes.base import Process

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


LEVELS = (0.025, 0.5, 0.975)
OBSERVATION = "95 % band of a new observation y"
FUNCTION = "95 % band of the function f, without noise"
FEW_DOTS = 200  # rows that are drawn in full ink
MOST_DOTS = 5000  # that are drawn at all
MOST_PANELS = 12  # where columns are not chosen
DRAWS, MOST_DRAWN = 5, 1000  # of a prior, and points of each: a draw is a factorisation of them
REACH = 3.0  # lengths to either side of 0 where nothing says how far to draw


def plot_predictions(
    gp: GPRegressor,
    X: Any = None,
    *,
    target: str = "y",
    output: int = 0,
    columns: str | int | Sequence[str | int] | None = None,
    transform: Callable[[Array], Array] | None = None,
    ylabel: str | None = None,
    ax: Axes | Sequence[Axes] | None = None,
    data: bool = True,
    n_points: int | None = None,
) -> Figure:
    """Draws mean and 95 % band along each column, one panel a column, the other columns at their medians
    (categories at the most frequent one). Before a fit it draws the prior, with some draws of f.

    Parameters
    ----------
    gp : a GPRegressor
    X : rows whose range is drawn; None: the training rows. Give rows beyond them to see a forecast. Before a
        fit None means three lengths of the kernel to either side of 0.
    target : "y" for the band of a new observation, noise included, or "f" for that of the function. Under a
        likelihood other than Gaussian noise the band of y is between its quantiles, and f is drawn as the
        mean of y that it stands for (a rate exp(f) for counts).
    output : which output, where y has several (with target="f": which latent function, where the likelihood
        has several)
    columns : the columns to draw along, by name or number; None: all, or of many the 12 that change f most
    transform : an increasing function that takes the model's y to what is drawn, such as numpy.exp for a
        model of logarithms. The line is then the median.
    ylabel : the name of the vertical axis; None: the target's, or y
    ax : the axes to draw on, one a column; None: a new figure
    data : whether to draw the training data; of more than 5,000 rows as many at random
    n_points : points along a column; None: 400, or as many more, up to 4,000, as the shortest lengthscale or
        period of the kernel needs

    Returns the figure: `plot_predictions(gp).savefig("fit.png")`.
    """
    if target not in ("y", "f"):
        raise ParameterError(
            f'target={target!r} is not known. Use "y" for observations, noise included, or "f" for the'
            " function."
        )
    check_points(n_points)
    drawn: _Drawn
    if gp.__sklearn_is_fitted__():
        drawn = _FittedModel.of(gp, X, target, output, transform)
    else:
        drawn = _Prior.of(gp, X, target, output, transform)
    chosen = drawn.chosen(columns, ax)
    axes = _axes(ax, len(chosen))
    for j, axis in zip(chosen, axes, strict=True):
        drawn.panel(axis, j, data, n_points)
        name_axis(axis.xaxis, drawn.columns, j)
        axis.spines[["top", "right"]].set_visible(False)
    figure = cast("Figure", axes[0].figure)
    for axis in axes[::ACROSS] if ax is None else axes[:1]:
        axis.set_ylabel(wrapped(axis.yaxis, ylabel or drawn.ylabel))
    if ax is None:
        legend_above(figure, axes[0])
    else:
        legend_within(axes[0])
    return figure


def _axes(ax: Axes | Sequence[Axes] | None, d: int) -> list[Axes]:
    """The axes that were given, or those of a new figure."""
    if ax is None:
        across = min(d, ACROSS)
        down = -(-d // across)
        return new_axes(
            down, across, (max(7.0, 4.2 * across), 4.2 if d == 1 else 3.4 * down + 0.4), d, sharey=True
        )
    message = f"The model has {d} columns, one panel each, but ax has {{}} axes. Give {d}, or none."
    return given_axes(ax, (d,), message)


@dataclass(frozen=True)
class _Drawn(ABC):
    """What is drawn: bands along columns, with what is seen of them."""

    columns: Columns
    kernel: Kernel  # with column numbers
    table: Array  # rows whose range is drawn
    target: str
    transform: Callable[[Array], Array] | None

    @property
    @abstractmethod
    def ylabel(self) -> str:
        """The name of the vertical axis."""

    @abstractmethod
    def levels(self, points: Array) -> tuple[Array, Array, Array, str, str]:
        """Lower edge, line and upper edge, and what band and line are called."""

    def rows(self) -> tuple[Array, Array] | None:
        """The training rows and their targets as they are drawn, where there are any."""
        return None

    def by_relevance(self) -> list[int]:
        """The columns, those along which f changes most first."""
        return list(range(len(self.columns.names)))

    def draws(self, points: Array) -> Array:
        """Functions to be drawn beside the band: (n, draws)."""
        return np.empty((len(points), 0))

    most_points: ClassVar[int] = MOST_POINTS

    def chosen(self, columns: Any, ax: Any) -> list[int]:
        """The columns to draw along."""
        found = chosen_columns(self.columns.names, columns)
        if columns is not None or ax is not None or len(found) <= MOST_PANELS:
            return found
        return sorted(self.by_relevance()[:MOST_PANELS])

    def panel(self, axis: Axes, j: int, data: bool, n_points: int | None) -> None:
        """Column j: data, band and line."""
        categories, alone = self.columns.categories, self.table.shape[1] == 1
        if j in categories:
            x = np.arange(float(len(categories[j])))
        else:
            low, high = (float(end(self.table[:, j])) for end in (np.min, np.max))
            low, high = (low - 1.0, high + 1.0) if low == high else (low, high)
            d = self.table.shape[1]
            x = points_between(low, high, self.kernel, j, d, n_points, self.most_points)
        points = along(self.table, categories, j, x)
        lower, middle, upper, band, line = self.levels(points)
        seen = self._rows_near(j) if data else None
        many = seen is not None and len(seen[1]) > FEW_DOTS
        if seen is not None:
            _dots(axis, *seen, alone)
        line += "" if alone else ", other columns at their medians"
        if j in categories:
            wide = min(8.0, 0.6 * room(axis, len(x)))
            axis.vlines(x, lower, upper, color=BLUE, alpha=0.35, linewidth=wide, zorder=2, label=band)
            axis.plot(
                x, middle, "_", color=BLUE, markersize=1.75 * wide, markeredgewidth=2, zorder=4, label=line
            )
            name_categories(axis, categories[j])
            axis.set_xlim(-0.6, len(x) - 0.4)
        else:
            # over many dots a band is seen by its edges; of many waves fine lines can be told apart
            fine = 1.0 if len(x) <= 2 * FEWEST_POINTS else 0.5
            edge = 0.9 * fine if many else 0.0
            style: dict[str, Any] = {"facecolor": (BLUE, 0.22), "edgecolor": (BLUE, 0.8), "linewidth": edge}
            axis.fill_between(x, lower, upper, zorder=2, label=band, **style)
            axis.plot(x, middle, color=BLUE, linewidth=1.6 * fine, zorder=4, label=line)
        for k, f in enumerate(self.draws(points).T):
            style = {"color": ORANGE, "alpha": 0.8, "zorder": 3}
            style |= {"marker": "_", "linestyle": "none"} if j in categories else {"linewidth": 0.9}
            axis.plot(x, f, label=f"{DRAWS} draws of f" if k == 0 else None, **style)

    def _rows_near(self, j: int) -> tuple[Array, Array] | None:
        """Column j and the targets of the training rows: of those within the range that is drawn, where that
        is a part of theirs; else of all."""
        seen = self.rows()
        if seen is None:
            return None
        x, y, own = np.asarray(seen[0][:, j]), seen[1], self.table[:, j]
        if j in self.columns.categories or own.min() < x.min() or own.max() > x.max():
            return x, y
        inside = (x >= own.min()) & (x <= own.max())
        return x[inside], y[inside]

    def shown(self, values: Array) -> Array:
        return values if self.transform is None else self.transform(values)


def _dots(axis: Axes, x: Array, y: Array, alone: bool) -> None:
    """Training rows: the more there are the smaller and fainter, and below the band, so that it is seen."""
    n = len(y)
    label = "data" if alone else "data, other columns as they are"
    if n > MOST_DOTS:
        some = np.random.default_rng(0).choice(n, MOST_DOTS, replace=False)
        x, y, label = x[some], y[some], f"{label} ({MOST_DOTS:,} of {n:,} rows)"
    size, faint, layer = (9.0, 0.9, 3) if alone else (7.0, 0.35, 1)
    if n > FEW_DOTS:
        fewer = FEW_DOTS / len(y)
        size, faint, layer = max(2.0, size * fewer**0.25), max(0.15, faint * fewer**0.5), 1
    axis.scatter(x, y, size, INK, alpha=faint, linewidths=0, zorder=layer, label=label)


@dataclass(frozen=True)
class _FittedModel(_Drawn):
    """What a fitted model predicts."""

    fitted: Fitted
    output: int

    @classmethod
    def of(cls, gp: GPRegressor, X: Any, target: str, output: int, transform: Any) -> _FittedModel:
        fitted = gp.fitted_
        q = fitted.n_functions if fitted.closed_form or target == "f" else 1
        if not 0 <= output < q:
            raise ParameterError(f"output={output} does not exist: the model has {q}, numbered from 0.")
        if X is None and not fitted.has_rows:
            why = "This model was loaded from a file that holds no data"
            raise ParameterError(f"{why}. Give X, the rows whose range is to be drawn.")
        table = np.asarray(fitted.rows.X) if X is None else gp.read(X)
        return cls(fitted.columns, fitted.model.kernel, table, target, transform, fitted, output)

    @property
    def in_units_of_y(self) -> bool:
        return self.fitted.closed_form or self.output == 0  # later latent functions are not

    @property
    def ylabel(self) -> str:
        if not self.in_units_of_y:
            return f"latent function {self.output}"
        targets = self.columns.targets
        return targets[self.output] if targets else "y" if self.fitted.single else f"y, output {self.output}"

    def levels(self, points: Array) -> tuple[Array, Array, Array, str, str]:
        """Under another likelihood than Gaussian noise: quantiles of y, or f as the mean of y that it stands
        for."""
        fitted, line = self.fitted, "median" if self.transform else "mean"
        if fitted.draws is not None or (self.target == "y" and not fitted.additive):
            observed = self.target == "y"
            foretold = fitted.predictive(points) if observed else fitted.function(points)
            foretold = foretold.output(self.output)
            low, median, high = foretold.quantile(LEVELS).T
            middle, band = median if self.transform else foretold.mean, OBSERVATION if observed else FUNCTION
            return self.shown(low), self.shown(middle), self.shown(high), band, line
        mean, var = (values[:, [self.output]] for values in fitted.latents(points))
        band, likelihood = FUNCTION, fitted.likelihood
        if self.target == "y":
            band, var = OBSERVATION, var + fitted.noise_of_outputs[self.output]
        f = [mean + z * np.sqrt(var) for z in (-Z95, 0.0, Z95)]
        if fitted.model.warp is not None:
            f, line = [fitted.model.warp.inverse(at) for at in f], "median"
        if not fitted.closed_form:
            if self.transform is None and likelihood.latents == 1:
                beside, sure = read_beside({}, len(points), likelihood), np.zeros_like(var)
                low, middle, high = (ask(likelihood, "predictive", beside, at, sure)[:, 0] for at in f)
                band = "95 % band of E[y | f], without the spread of observations"
                return np.minimum(low, high), middle, np.maximum(low, high), band, "median"
            band = f"95 % band of the latent function{'' if likelihood.latents == 1 else f' {self.output}'}"
        low, middle, high = (self.shown(at[:, 0]) for at in f)
        return low, middle, high, band, line

    def by_relevance(self) -> list[int]:
        return self.fitted.columns_by_relevance()

    def rows(self) -> tuple[Array, Array] | None:
        """Counts are drawn by their exposure."""
        fitted = self.fitted
        if not (fitted.has_rows and self.in_units_of_y):
            return None
        Y, likelihood = fitted.rows.Y, fitted.likelihood
        y = Y[:, self.output] if fitted.closed_form else likelihood.per_unit(likelihood.y_of(Y))
        return fitted.rows.X, self.shown(y)


@dataclass(frozen=True)
class _Prior(_Drawn):
    """What is believed before a fit. Under a likelihood other than Gaussian noise, of f."""

    process: Process
    noise: float
    normalized: bool

    most_points: ClassVar[int] = MOST_DRAWN

    @classmethod
    def of(cls, gp: GPRegressor, X: Any, target: str, output: int, transform: Any) -> _Prior:
        if output != 0:
            raise ParameterError(f"output={output} is not known before a fit: there is one, numbered 0.")
        table, columns = around_zero(build.read_kernel(gp.kernel).kernel) if X is None else read_features(X)
        process, noise = gp.prior_at(table, columns)
        own = read_likelihood(gp.likelihood) is not None
        target, normalized = "f" if own else target, gp.normalize_y and not own
        added = float(noise[0]) if target == "y" else 0.0
        return cls(columns, process.kernel, table, target, transform, process, added, normalized)

    @property
    def ylabel(self) -> str:
        return self.target + (", in standard deviations of y" if self.normalized else "")

    def levels(self, points: Array) -> tuple[Array, Array, Array, str, str]:
        mean, var = (values[:, 0] for values in self.process.moments(points))
        half = Z95 * np.sqrt(var + self.noise)
        low, middle, high = (self.shown(mean + side * half) for side in (-1, 0, 1))
        band = f"95 % band of {self.target}"
        return low, middle, high, f"{band} before any data", "median" if self.transform else "mean"

    def draws(self, points: Array) -> Array:
        return self.shown(self.process.sample(np.random.default_rng(0), points, DRAWS)[:, 0, :])


def around_zero(kernel: Kernel | None) -> tuple[Array, Columns]:
    """Rows that reach so far to either side of 0 as the kernel's functions need, of the columns that it
    speaks of; of one where it speaks of none."""
    asked = () if kernel is None else kernel.columns_asked()
    names = tuple(column for column in asked if isinstance(column, str))
    numbers = [column for column in asked if not isinstance(column, str)]
    if (names and numbers) or min(numbers, default=0) < 0:
        cure = "Give X, the rows whose range is to be drawn."
        raise ParameterError(f"{kernel} does not say which columns there are. {cure}")
    d = len(names) or 1 + max(numbers, default=0)
    columns = Columns(names, True) if names else Columns(tuple(f"x{j}" for j in range(d)))
    longest = np.zeros(d)
    if kernel is not None:
        for j, length in kernel.resolve(columns.names).change_lengths(range(d)):
            longest[j] = max(longest[j], length)
    reach = REACH * np.where(longest > 0, longest, 1.0)
    return np.linspace(-reach, reach, 101), columns
