"""What a convolutional kernel's model has learned: how much each patch of an image counts, the patches at
which it asks its function g, and what each part of an image says.

    f(x) = m(x) + 1/P sum_p w_p g(x[p]):   the map of an image has w_p E g(x[p]) at p, whose average is f - m
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gramian.arrays import Array, is_whole
from gramian.errors import ParameterError
from gramian.kernels.base import ImagePatches
from gramian.plots.common import given_axes, new_axes
from gramian.plots.covariance import HasInsides
from gramian.report.insides import Insides

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMAGES = 3  # of the rows, where none are given
MOST_IMAGES = 6
SIDE = 6  # inducing patches along each side of their panel
GREY, COLOURS = "gray_r", "cividis"


def plot_patches(
    gp: HasInsides, X: Any = None, *, output: int = 0, n_images: int = IMAGES, ax: Any = None
) -> Figure:
    """Of a model with a Convolutional kernel: the weights of its patches, by the place of their first pixel;
    up to 36 of its inducing patches, from those that lower f most to those that raise it most; and images,
    each with the map of what its patches say: the average of a map is f of that image, but for the mean.

    gp : a fitted estimator
    X : rows, each an image; None: the first ones of the fit
    output : which latent function, where there are several
    n_images : how many of them, up to 6
    ax : axes of your own: one for weights that differ, one for inducing patches, and two an image, first all
        images, then all maps

    Returns the figure.
    """
    own = gp.insides()
    kernel = own.objective.model.kernel
    found = next((p for p in (part.image_patches() for part in kernel.walk()) if p is not None), None)
    if found is None or kernel.point_columns() is None:
        raise ParameterError(f"plot_patches draws models of patches, and {kernel} has none.")
    if not is_whole(n_images) or n_images > MOST_IMAGES:
        raise ParameterError(f"n_images={n_images!r} must be a whole number from 1 to {MOST_IMAGES}.")
    rows = np.asarray((own.objective.data.X if X is None else own.read(X))[:n_images], dtype=np.float64)
    Z, width = own.process.landmarks, kernel.point_columns()[1]  # type: ignore[index]
    inducing = None if Z is None or Z.shape[1] != width else np.asarray(Z)
    weighted = bool(np.ptp(found.weights) > 0)
    first: list[Callable[[Axes], None]] = []
    if weighted:
        first.append(lambda axis: _weights(axis, found))
    if inducing is not None:
        first.append(lambda axis: _inducing(axis, found, inducing, own, output))
    axes = _axes(ax, len(first), len(rows))
    for draw, axis in zip(first, axes, strict=False):
        draw(axis)
    above, below = axes[len(first) :][: len(rows)], axes[len(first) + len(rows) :]
    maps = _maps(found, own, rows, output)
    low, high = float(np.min(maps)), float(np.max(maps))
    shown: Any = None
    for number, (row, said) in enumerate(zip(rows, maps, strict=True)):
        _picture(above[number], row, found)
        shown = below[number].imshow(said, cmap=COLOURS, vmin=low, vmax=high)
        below[number].set_title(f"what it says: {np.mean(said):+.2g}", fontsize="medium")
    for axis in axes:
        axis.set(xticks=[], yticks=[])
    figure = cast("Figure", above[0].figure)
    figure.colorbar(shown, ax=below, label="part of f, on average", shrink=0.9)
    return figure


def _maps(found: ImagePatches, own: Insides, rows: Array, output: int) -> Array:
    """w_p E g(x[p]) of each image, (n, patches down, across)."""
    points = found.of(rows)
    flat, (prior, k) = points.reshape(-1, points.shape[2]), own.prior(output)
    g = own.process.mean(flat)[:, output] - prior.mean(flat)[:, k]
    return g.reshape(len(rows), *found.weights.shape) * found.weights


def _axes(ax: Any, first: int, images: int) -> list[Axes]:
    """Of what the model has, of images, and of their maps: each of the latter below its image."""
    count = first + 2 * images
    if ax is not None:
        return given_axes(
            ax, (count,), f"There are {count} pictures, but ax has {{}} axes. Give {count}, or none."
        )
    across = images + (first > 0)
    axes = new_axes(2, across, (2.5 * across + 0.9, 5.0), 2 * across)
    above, below = axes[:across], axes[across:]
    own = [above.pop(0), below.pop(0)] if first else []
    if first == 1:
        own.pop(0).remove()
    return [*own, *above, *below]


def _weights(axis: Axes, found: ImagePatches) -> None:
    shown = axis.imshow(found.weights, cmap=COLOURS)
    cast("Figure", axis.figure).colorbar(shown, ax=axis, location="left", shrink=0.8)
    axis.set_title("weights of patches", fontsize="medium")


def _inducing(axis: Axes, found: ImagePatches, Z: Array, own: Insides, output: int) -> None:
    """A mosaic, a patch a tile."""
    prior, k = own.prior(output)
    g = own.process.mean(Z)[:, output] - prior.mean(Z)[:, k]
    order = np.argsort(g)
    order = order[np.unique(np.linspace(0, len(order) - 1, min(SIDE**2, len(order))).astype(int))]
    across = int(np.ceil(np.sqrt(len(order))))
    down, (a, b) = -(-len(order) // across), found.patch
    mosaic = np.full((down * (a + 1) + 1, across * (b + 1) + 1), np.nan)
    for place, number in enumerate(order):
        top, left = 1 + (place // across) * (a + 1), 1 + (place % across) * (b + 1)
        tile = Z[number, : a * b * found.channels].reshape(a, b, found.channels)
        mosaic[top : top + a, left : left + b] = tile.mean(axis=2)
    axis.imshow(mosaic, cmap=GREY)
    axis.set_title("inducing patches,\nlowest g to highest", fontsize="medium")


def _picture(axis: Axes, row: Array, found: ImagePatches) -> None:
    axis.imshow(row.reshape(*found.image, found.channels).mean(axis=2), cmap=GREY)
    axis.set_title("image", fontsize="medium")
