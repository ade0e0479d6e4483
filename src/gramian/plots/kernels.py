"""What a kernel believes: k(x, x') along a column, its matrix, and functions drawn from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gramian.arrays import is_whole
from gramian.data.inputs import read_features
from gramian.errors import ParameterError
from gramian.plots.common import BLUE, GREEN, INK, ORANGE, chosen_columns, given_axes, new_axes, typical
from gramian.plots.predictions import around_zero

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gramian.kernels import Kernel

POINTS = 241  # along the column: the matrix and the draws are of as many rows
MOST_DRAWS = 5


def plot_kernel(
    kernel: Kernel,
    X: Any = None,
    *,
    column: str | int | None = None,
    n_samples: int = 3,
    seed: int = 0,
    ax: Any = None,
) -> Figure:
    """Three panels: k(x, x') against x for x' in the middle and at a quarter of the range; the matrix of k at
    points along the column; and draws of f ~ GP(0, k) with the band within which 95 of 100 lie at each point.

    X : rows whose range is drawn; None: three lengths of the kernel to either side of 0
    column : along which one, by name or number, all others at their medians (or 0); None: the first that the
        kernel speaks of
    n_samples, seed : draws, up to 5, and where their random numbers begin
    ax : three axes of your own

    Returns the figure.
    """
    if not is_whole(n_samples) or n_samples > MOST_DRAWS:
        raise ParameterError(f"n_samples={n_samples!r} must be a whole number from 1 to {MOST_DRAWS}.")
    table, columns = around_zero(kernel) if X is None else read_features(X)
    resolved = kernel.resolve(columns.names)
    if column is None:
        asked = [j for j, _ in resolved.change_lengths(range(table.shape[1]))]
        j = min(asked, default=0)
    else:
        j = chosen_columns(columns.names, column, 1)[0]
    if j in columns.categories:
        cure = "Choose a column of numbers."
        raise ParameterError(f"{columns.names[j]} has categories, along which there is no line. {cure}")
    x = np.linspace(float(np.min(table[:, j])), float(np.max(table[:, j])), POINTS)
    points = np.tile(typical(np.asarray(table), columns.categories), (POINTS, 1))
    points[:, j] = x
    K = np.asarray(resolved(points))
    message = "A kernel has 3 panels, but ax has {} axes. Give 3, or none."
    shape, matrix, functions = new_axes(1, 3, (12.0, 3.4), 3) if ax is None else given_axes(ax, (3,), message)
    for at, dash, colour in ((POINTS // 2, "-", BLUE), (POINTS // 4, "--", ORANGE)):
        shape.plot(x, K[:, at], dash, color=colour, linewidth=1.6, label=f"x' = {x[at]:.3g}")
    low, high = min(0.0, float(np.min(K))), float(np.max(K))
    shape.set_ylim(low - 0.05 * (high - low), high + 0.22 * (high - low))  # with room for the legend
    shape.set_ylabel("k(x, x')")
    shape.legend(frameon=False, loc="upper left", ncols=2)
    shown = matrix.imshow(K, extent=(x[0], x[-1], x[-1], x[0]), cmap="cividis", aspect="auto")
    cast("Figure", matrix.figure).colorbar(shown, ax=matrix, label="k(x, x')")
    matrix.set_ylabel(f"{columns.names[j]}'")
    half = 1.96 * np.sqrt(np.maximum(np.diag(K), 0.0))
    functions.fill_between(x, -half, half, color=BLUE, alpha=0.15, linewidth=0)
    looks = ((BLUE, "-"), (ORANGE, "--"), (GREEN, "-."), (INK, ":"), (BLUE, "--"))
    for (colour, dash), f in zip(looks, resolved.sample(points, n_samples, seed).T, strict=False):
        functions.plot(x, f, dash, color=colour, linewidth=1.3)
    functions.set_ylabel("f, drawn from the prior")
    for axis in (shape, matrix, functions):
        axis.set_xlabel(columns.names[j])
        axis.spines[["top", "right"]].set_visible(False)
    return cast("Figure", shape.figure)
