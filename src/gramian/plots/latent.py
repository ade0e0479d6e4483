"""Pictures of latent places: the map with what is known of it, and the columns along one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays import Indices
from gramian.errors import InputError, ParameterError
from gramian.estimators.gplatent import GPLatent
from gramian.plots.common import BLUE, GREEN, INK, ORANGE, given_axes, look, new_axes

COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9", INK)
MARKERS = "os^Dv*"
GRID = 60  # points a side of the background
MARGIN = 0.15
MOST_LABELS = 12
MOST_COLUMNS = 12  # lines along a dimension


def plot_latent(gp: GPLatent, labels: Any = None, dims: tuple[int, int] = (0, 1), ax: Any = None) -> Any:
    """Places of the rows in two dimensions, coloured by `labels`, each with a cross of one standard
    deviation; dark where the columns are not known (other dimensions at their means). Of one dimension: along
    the rows."""
    X, std = gp.embedding_, gp.embedding_std_
    Q, groups = X.shape[1], _groups(labels, len(X))
    if Q > 1 and (len(dims) != 2 or any(not 0 <= dim < Q for dim in dims)):
        raise ParameterError(f"dims={dims!r} must be two of the {Q} dimensions, numbered from 0.")
    axes = _axes(ax)
    if Q == 1:
        across, up = np.arange(len(X), dtype=float), X[:, 0]
        bars = np.zeros(len(X)), std[:, 0]
        axes.set_xlabel("row")
        axes.set_ylabel("dimension 0")
    else:
        (a, b), shares = dims, gp.relevance_
        _background(gp, a, b, axes)
        across, up, bars = X[:, a], X[:, b], (std[:, a], std[:, b])
        axes.set_xlabel(f"dimension {a} ({shares[a]:.0%} of the variation)")
        axes.set_ylabel(f"dimension {b} ({shares[b]:.0%})")
    for k, (name, rows) in enumerate(groups):
        colour, marker = look(k, COLOURS, MARKERS)
        style: dict[str, Any] = {"fmt": marker, "color": colour, "markersize": 3, "elinewidth": 0.5}
        if np.any(std > 0):
            style |= {"xerr": bars[0][rows], "yerr": bars[1][rows]}
        axes.errorbar(across[rows], up[rows], alpha=0.7, label=name, **style)
    axes.set_title("latent places" if Q == 1 else "latent places; dark: columns are not known")
    if labels is not None:
        axes.legend(loc="best", fontsize="small")
    return axes.figure


def _background(gp: GPLatent, a: int, b: int, axes: Any) -> None:
    """Dark where the columns are not known."""
    X = gp.embedding_
    low, high = np.min(X[:, [a, b]], axis=0), np.max(X[:, [a, b]], axis=0)
    room = MARGIN * np.maximum(high - low, 1e-9)
    lines = [np.linspace(low[k] - room[k], high[k] + room[k], GRID) for k in (0, 1)]
    grid = np.repeat(np.mean(X, axis=0)[None, :], GRID**2, axis=0)
    grid[:, a], grid[:, b] = (part.ravel() for part in np.meshgrid(*lines))
    std = gp.inverse_transform(grid, return_std=True)[1]
    scaling = gp.state_.scaling
    relative = std[:, scaling.kept] / scaling.scale[scaling.kept]
    image = np.sqrt(np.mean(relative**2, axis=1)).reshape(GRID, GRID)
    extent = (lines[0][0], lines[0][-1], lines[1][0], lines[1][-1])
    axes.imshow(image, extent=extent, origin="lower", aspect="auto", cmap="Greys", alpha=0.6, zorder=0)


def plot_reconstruction(gp: GPLatent, dim: int = 0, ax: Any = None) -> Any:
    """The columns along one dimension, from the lowest place to the highest, with the other dimensions at
    their means; in standard deviations of each column, of which the twelve that vary most are shown."""
    X = gp.embedding_
    if not 0 <= dim < X.shape[1]:
        raise ParameterError(f"dim={dim!r} must be one of the {X.shape[1]} dimensions, numbered from 0.")
    axes = _axes(ax)
    line = np.linspace(np.min(X[:, dim]), np.max(X[:, dim]), 100)
    places = np.repeat(np.mean(X, axis=0)[None, :], len(line), axis=0)
    places[:, dim] = line
    mean, std = gp.inverse_transform(places, return_std=True)
    scaling, names = gp.state_.scaling, gp.columns_.names
    kept = scaling.kept
    mean = (mean[:, kept] - scaling.centre[kept]) / scaling.scale[kept]
    std = std[:, kept] / scaling.scale[kept]
    for k, j in enumerate(np.argsort(-np.ptp(mean, axis=0), kind="stable")[:MOST_COLUMNS]):
        colour, _ = look(k, COLOURS, MARKERS)
        style = ("-", "--")[k // len(COLOURS) % 2]
        axes.plot(line, mean[:, j], style, color=colour, label=names[kept[j]])
        axes.fill_between(line, mean[:, j] - std[:, j], mean[:, j] + std[:, j], alpha=0.08, color=colour)
    axes.set_xlabel(f"dimension {dim}")
    axes.set_ylabel("columns, in their standard deviations")
    axes.set_title("columns along a dimension, with one standard deviation")
    axes.legend(loc="best", fontsize="x-small", ncols=2)
    return axes.figure


def _axes(ax: Any) -> Any:
    if ax is None:
        return new_axes(1, 1, (6.4, 4.8), 1)[0]
    return given_axes(ax, (1,), "Give one pair of axes, not {}.")[0]


def _groups(labels: Any, n: int) -> list[tuple[str | None, Indices]]:
    """Rows by label."""
    if labels is None:
        return [(None, np.arange(n))]
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise InputError(f"labels has shape {labels.shape}, but there are {n} rows: give one a row.")
    names = np.unique(labels)
    if len(names) > MOST_LABELS:
        raise InputError(f"labels has {len(names)} different values; a map shows {MOST_LABELS} at most.")
    return [(str(name), np.flatnonzero(labels == name)) for name in names]
