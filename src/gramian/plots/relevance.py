"""Which columns matter, as bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gramian.estimators.base import Estimator
from gramian.plots.common import BLUE, given_axes, in_lines, legend_above, new_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LINE = 34  # letters of a line of a name


def plot_relevance(gp: Estimator, ax: Any = None) -> Figure:
    """A bar for each column, the one that matters most on top: its share of the variance of f's mean, and, in
    a darker shade, the part that it has by itself. `ax`: axes of your own to draw into."""
    shares = gp.relevance()
    height = 1.0 + sum(0.14 + 0.18 * len(in_lines(row.name, LINE)) for row in shares)
    own = new_axes(1, 1, (6.0, height), 1) if ax is None else given_axes(ax, (1,), "One picture, {} axes.")
    axis = own[0]
    at = np.arange(len(shares))
    total, first = (100 * np.array([getattr(row, which) for row in shares]) for which in ("total", "first"))
    axis.barh(at, total, color=BLUE, alpha=0.35, label="with its interactions")
    axis.barh(at, np.minimum(first, total), color=BLUE, label="by itself")
    axis.set_yticks(at, ["\n".join(in_lines(row.name, LINE)) for row in shares])
    axis.invert_yaxis()
    axis.set_xlim(0, 100)
    axis.set_xlabel("share of the variance of f's mean (%)")
    if ax is None:
        legend_above(cast("Figure", axis.figure), axis)
    else:
        axis.legend(loc="lower right")
    return cast("Figure", axis.figure)
