"""Landmarks, or inducing points, among the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gramian.arrays import Array
from gramian.data.columns import Columns
from gramian.errors import ParameterError
from gramian.estimators.base import Estimator
from gramian.plots.common import (
    BLUE,
    INK,
    ORANGE,
    along,
    chosen_columns,
    given_axes,
    legend_above,
    legend_within,
    name_axis,
    name_categories,
    new_axes,
    points_between,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_DOTS = 5000  # rows that are drawn
FEW_DOTS = 200  # that are drawn in full ink
FLOOR = 0.06  # of the height, below the rows, where the landmarks of one column stand


def plot_landmarks(
    gp: Estimator, columns: str | int | Sequence[str | int] | None = None, *, ax: Any = None
) -> Figure:
    """Where the landmarks (inducing points) of a fit lie among its rows: over two columns as circles; of one
    column below the rows and the mean of f, as marks. Rows far from all of them are foretold by the prior.

    gp : an estimator fitted by a method with landmarks: "nystrom", "sparse", "vfe", "fitc", "svgp", ...
    columns : one or two, by name or number; None: the one there is, or the two along which f changes most
    ax : axes of your own

    Returns the figure.
    """
    own = gp.insides()
    Z, known = own.process.landmarks, own.columns
    if Z is None:
        raise ParameterError(
            f"This model has no landmarks: it was fitted by {gp.outcome_.method}. Those of"
            ' method="nystrom", "vfe", "fitc" or "svgp" have.'
        )
    if Z.shape[1] != len(known.names):
        raise ParameterError("Its landmarks are patches of images, not rows. plot_patches draws them.")
    usual = sorted(gp.fitted_.first.columns_by_relevance()[:2]) if len(known.names) > 1 else [0]
    chosen = usual if columns is None else chosen_columns(known.names, columns, 2)
    axes = new_axes(1, 1, (6.4, 4.6), 1) if ax is None else given_axes(ax, (1,), "One picture, {} axes.")
    axis, first = axes[0], gp.fitted_.first
    rows = np.asarray(first.rows.X) if first.has_rows else None
    if len(chosen) == 1:
        _one(axis, gp, rows, np.asarray(Z), chosen[0])
    else:
        _two(axis, known, rows, np.asarray(Z), chosen)
    axis.spines[["top", "right"]].set_visible(False)
    figure = cast("Figure", axis.figure)
    if ax is None:
        legend_above(figure, axis)
    else:
        legend_within(axis)
    return figure


def _some(n: int) -> tuple[Any, str, dict[str, Any]]:
    """Which rows are drawn, what they are called, and how."""
    some: Any = slice(None)
    label = f"{n:,} rows"
    if n > MOST_DOTS:
        some = np.random.default_rng(0).choice(n, MOST_DOTS, replace=False)
        label = f"{MOST_DOTS:,} of {n:,} rows"
    fewer = min(1.0, FEW_DOTS / min(n, MOST_DOTS))
    style = {"color": INK, "alpha": max(0.15, 0.6 * fewer**0.5), "linewidths": 0, "zorder": 1}
    return some, label, {"s": max(3.0, 12.0 * fewer**0.25), **style}


def _one(axis: Axes, gp: Estimator, rows: Array | None, Z: Array, j: int) -> None:
    fitted = gp.fitted_.first
    columns, table = fitted.columns, Z if rows is None else rows
    name_axis(axis.xaxis, columns, j)
    targets = columns.targets
    axis.set_ylabel(wrapped(axis.yaxis, targets[0] if targets and fitted.closed_form else "f"))
    x = points_between(*_ends(table, Z, j), fitted.model.kernel, j, table.shape[1], None)
    mean = fitted.latents(along(table, columns.categories, j, x))[0][:, 0]
    values = [mean]
    if rows is not None and fitted.closed_form and fitted.model.warp is None:
        some, label, style = _some(len(rows))
        y = np.asarray(fitted.rows.Y[:, 0])
        axis.scatter(rows[some, j], y[some], label=label, **style)
        values.append(y[np.isfinite(y)])
    axis.plot(x, mean, color=BLUE, linewidth=1.6, zorder=3, label="mean of f")
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    floor = low - FLOOR * ((high - low) or 1.0)
    axis.plot(
        Z[:, j], np.full(len(Z), floor), "^", color=ORANGE, markersize=6, zorder=4, label=_called(len(Z))
    )


def _two(axis: Axes, columns: Columns, rows: Array | None, Z: Array, chosen: Sequence[int]) -> None:
    a, b = chosen
    if rows is not None:
        some, label, style = _some(len(rows))
        axis.scatter(rows[some, a], rows[some, b], label=label, **style)
    circles: dict[str, Any] = {"color": ORANGE, "mfc": "none", "mew": 1.6, "markersize": 7, "zorder": 2}
    axis.plot(Z[:, a], Z[:, b], "o", label=_called(len(Z)), **circles)
    name_axis(axis.xaxis, columns, a)
    name_axis(axis.yaxis, columns, b)
    if a in columns.categories:
        name_categories(axis, columns.categories[a])
    if b in columns.categories:
        axis.set_yticks(range(len(columns.categories[b])), list(columns.categories[b]))


def _called(m: int) -> str:
    return f"{m:,} landmark{'s' * (m != 1)}"


def _ends(table: Array, Z: Array, j: int) -> tuple[float, float]:
    both = np.concatenate([table[:, j], Z[:, j]])
    return float(both.min()), float(both.max())
