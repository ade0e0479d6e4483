"""What the pictures of experiments share: SVG as text, and lines with bars over repetitions."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.experiments.studies.base import Results
from gramian.plots.common import BLUE, GREEN, INK, ORANGE, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which is lost on white; in grey markers and dashes tell apart
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#E69F00", INK, "#999999")
MARKERS = "os^Dv*PX"
DASHES = ("-", "--", "-.", ":")
MAP = "viridis"  # rises evenly in grey


def as_svg(figure: Figure, name: str) -> str:
    """A picture as text; the same picture gives the same text, and pictures of one page share no names."""
    import matplotlib as mpl

    out = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": name, "svg.fonttype": "path"}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue().decode()


def panels(down: int, across: int, width: float = 10.0, height: float = 3.0, **shared: Any) -> Any:
    """A new figure with its axes, (down, across); `height` of a row of panels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * down + 0.4), layout="constrained")
    return figure, figure.subplots(down, across, squeeze=False, **shared)


def style(k: int) -> dict[str, Any]:
    """Colour, marker and dashes of the k-th line."""
    colour, marker = look(k, COLOURS, MARKERS)
    return {"color": colour, "marker": marker, "linestyle": DASHES[k // len(COLOURS) % len(DASHES)]}


def lines(axis: Axes, results: Results, by: str, x: str, y: str, order: Sequence[Any], log: str = "") -> None:
    """A line for each value of `by`: means of y over repetitions at each x, with bars of one standard
    deviation. `order`: all values of `by` in the picture, which give the looks. `log`: axes, "x", "y" or
    "xy"."""
    for value in results.each(by):
        mine = results.where(**{by: value})
        at = sorted(place for place in mine.each(x) if mine.where(**{x: place}).column(y).size)
        if not at:
            continue
        values = [mine.where(**{x: place}).column(y) for place in at]
        means, spread = np.array([np.mean(v) for v in values]), np.array([np.std(v) for v in values])
        low = np.minimum(spread, 0.9 * np.abs(means)) if "y" in log else spread  # a bar below zero has no log
        axis.errorbar(
            at, means, [low, spread], label=str(value), markersize=4.5, linewidth=1.3, elinewidth=0.8,
            **style(order.index(value)),
        )  # fmt: skip
    if "x" in log:
        axis.set_xscale("log")
        if len(at := sorted(results.each(x))) <= 8:
            axis.set_xticks(at, [f"{place:g}" for place in at])
            axis.minorticks_off()
    if "y" in log:
        axis.set_yscale("log")
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)


def legend_beside(figure: Figure) -> None:
    """One legend for all panels, beside them, each name once."""
    named: dict[str, Any] = {}
    for axis in figure.axes:
        handles, names = axis.get_legend_handles_labels()
        named = dict(zip(names, handles, strict=True)) | named
    figure.legend(list(named.values()), list(named), loc="outside right upper", frameon=False)


def mean_and_band(axis: Axes, x: Any, mean: Any, std: Any, label: str = "mean, 95 % band") -> None:
    """The mean of f with its band."""
    axis.fill_between(x, mean - 1.96 * std, mean + 1.96 * std, color=BLUE, alpha=0.18, linewidth=0)
    axis.plot(x, mean, color=BLUE, linewidth=1.8, label=label)
