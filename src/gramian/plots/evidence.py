"""The evidence as a surface over two parameters: where its hills are, and which way a ridge runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gramian.arrays import Array
from gramian.errors import NumericalError, ParameterError
from gramian.fitting import Objective
from gramian.plots.common import ORANGE, check_points, given_axes, legend_above, legend_within, new_axes
from gramian.plots.covariance import HasInsides
from gramian.report.insides import Insides

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIDE = 30  # points along each parameter
FALLEN = 8.0  # nats below the top, that the picture reaches down to at each end
STEP, STEPS = 0.35, 9  # of theta, either way: a factor of 1.4 for a positive parameter, 23 at most
DEPTHS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # nats below the top, of the lines
COLOURS = "cividis"


def plot_evidence(
    post: HasInsides,
    first: str,
    second: str,
    *,
    ranges: Mapping[str, tuple[float, float]] | None = None,
    n_points: int | None = None,
    ax: Any = None,
) -> Figure:
    """log p(y) over two parameters, all others as they are; a cross where the model stands. Lines are 0.1,
    0.5, 1, 2, 4, ... nats below the highest point of the picture: within the line of 2 nats parameters are
    nearly as well supported.

    Where parameters have priors the cross may lie beside the top: the fit has raised both together.

    post : a fitted estimator, or what `GP.condition` gives
    first, second : names as in `parameters_`, along the picture and up
    ranges : from where to where, for one of them or both; None: as far as the evidence has fallen by 8 nats,
        or a factor of 23
    n_points : along each (30): an evidence for each pair of them
    ax : axes of your own

    Returns the figure.
    """
    from matplotlib.colors import BoundaryNorm

    check_points(n_points)
    own = post.insides()
    surface = _Surface(own)
    at = [surface.index(name) for name in (first, second)]
    if at[0] == at[1]:
        raise ParameterError(f"A surface is over two parameters, but {first!r} was given twice.")
    given = dict(ranges or {})
    if unknown := sorted(set(given) - {first, second}):
        raise ParameterError(f"ranges has {unknown[0]!r}, which is not drawn: {first} and {second} are.")
    count = SIDE if n_points is None else int(n_points)
    lines = [surface.line(i, given.get(name), count) for i, name in zip(at, (first, second), strict=True)]
    heights = np.array([[surface.height({at[0]: u, at[1]: v}) for u in lines[0]] for v in lines[1]])
    if not np.any(np.isfinite(heights)):
        raise NumericalError("The evidence could not be computed anywhere in these ranges.")
    x, y = (surface.values(i, line) for i, line in zip(at, lines, strict=True))
    axes = new_axes(1, 1, (6.4, 4.6), 1) if ax is None else given_axes(ax, (1,), "One picture, {} axes.")
    axis, top = axes[0], float(np.nanmax(heights))
    levels = [top - depth for depth in reversed(DEPTHS)]
    by_depth = BoundaryNorm([*levels, top], 256, extend="min")  # as many shades from line to line
    shown = axis.contourf(x, y, heights, [*levels, top], cmap=COLOURS, norm=by_depth, extend="min")
    axis.contour(x, y, heights, levels, colors="white", linewidths=0.6, linestyles="solid")
    stands = [float(surface.values(i, surface.theta[[i]])[0]) for i in at]
    axis.plot(*stands, "X", color=ORANGE, markeredgecolor="white", markersize=10, label="the model")
    axis.set(xlim=(x[0], x[-1]), ylim=(y[0], y[-1]))  # also where the model is elsewhere
    for ticks, set_scale, i in ((axis.xaxis, axis.set_xscale, at[0]), (axis.yaxis, axis.set_yscale, at[1])):
        set_scale(surface.scale(i))
        ticks.set_label_text(surface.names[i])
    figure = cast("Figure", axis.figure)
    bar = figure.colorbar(
        shown, ax=axis, label=f"log evidence, from its top at {top:.4g} (nats)", ticks=levels
    )
    bar.set_ticklabels([f"-{depth:g}" for depth in reversed(DEPTHS)])
    if ax is None:
        legend_above(figure, axis)
    else:
        legend_within(axis)
    return figure


class _Surface:
    """The evidence of a model, by the entries of theta."""

    def __init__(self, own: Insides) -> None:
        self.objective: Objective = own.objective
        self.space, self.theta = self.objective.space, self.objective.space.theta
        self.names, self.numbered = own.names(self.space), self.space.names

    def index(self, name: str) -> int:
        for names in (self.names, self.numbered):
            if name in names:
                return names.index(name)
        raise ParameterError(
            f"There is no parameter {name!r} to move. There are {', '.join(self.names) or 'none'}."
        )

    def at(self, moved: Mapping[int, float]) -> Array:
        theta = self.theta.copy()
        for i, u in moved.items():
            theta[i] = u
        return theta

    def height(self, moved: Mapping[int, float]) -> float:
        """The evidence with these entries elsewhere; not a number where it cannot be computed."""
        own = self.objective
        try:
            return own.inference.evidence(own.at(self.at(moved)), own.data, own.workspace).value
        except NumericalError:
            return float("nan")

    def values(self, i: int, line: Array) -> Array:
        """The parameter itself, where its entry of theta is on the line."""
        return np.array([self._flat(self.at({i: u}))[i] for u in line])

    def _flat(self, theta: Array) -> Array:
        return np.concatenate([value.ravel() for value in self.space.values(theta).values()])

    def scale(self, i: int) -> str:
        """Whether it is a size, which is seen best by its logarithm."""
        low, here, high = self.values(i, self.theta[i] + np.array([-1.0, 0.0, 1.0]))
        return "log" if low > 0 and np.isclose(low * high, here**2) else "linear"

    def line(self, i: int, given: tuple[float, float] | None, count: int) -> Array:
        """Places of an entry of theta, evenly from end to end."""
        low, high = self.objective.limits[i]
        if given is not None:
            start, end = (self._place(i, float(value), (low, high)) for value in given)
            return np.linspace(start, end, count)
        here = float(self.theta[i])
        start, ends = self.height({}), list[float]()
        for side, limit in ((-1.0, low), (1.0, high)):
            end = here
            for step in range(1, STEPS + 1):
                end = float(np.clip(here + side * step * STEP, low, high))
                if end == limit or not self.height({i: end}) > start - FALLEN:
                    break
            ends.append(end)
        return np.linspace(ends[0], ends[1], count)

    def _place(self, i: int, value: float, limits: tuple[float, float]) -> float:
        """The entry of theta at which the parameter has this value: it rises with it."""
        piece = next(piece for piece in self.space.pieces if piece.at.start <= i < piece.at.stop)
        whole = np.array(piece.parameter.value, dtype=np.float64)
        whole.flat[i - piece.at.start] = value
        parameter = piece.parameter.with_value(whole)
        assert parameter.support is not None
        return float(np.clip(np.ravel(parameter.support.inverse(whole))[i - piece.at.start], *limits))
