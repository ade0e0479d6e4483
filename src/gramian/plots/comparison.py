"""A comparison of approximations in pictures: error against size and against time, with the spread over
runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.errors import ParameterError
from gramian.experiments.compare import Comparison
from gramian.experiments.table import RunGroup, gathered
from gramian.plots.common import BLUE, GREEN, INK, ORANGE, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

# what can be drawn: its name on the axis, whether on a logarithmic one, and the time that belongs to it
CHOICE, FIT = ("probabilities_seconds", "construction_seconds"), ("total_seconds",)
MEASURES = {
    "frobenius": ("error of K (Frobenius, relative)", True, CHOICE),
    "infinity": ("error of K (infinity norm, relative)", True, CHOICE),
    "rmse": ("test error (RMSE)", True, FIT),
    "mse": ("test error (MSE)", True, FIT),
    "error": ("share of wrong labels", False, FIT),
    "brier": ("Brier score", False, FIT),
    "ece": ("calibration error (ECE)", False, FIT),
    "iterations": ("steps of the solver", True, FIT),
    "nlpd": ("NLPD", False, FIT),
    "coverage95": ("share of test rows in their 95 % interval", False, FIT),
}
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#56B4E9", "#E69F00", INK, "#999999")  # Okabe and Ito's palette
MARKERS = "os^Dv*PX"
LEAST_RANGE = 10.0  # of values on a logarithmic axis
DODGE = 1.1  # from the first method to the last at one size, so that all bars can be seen


def plot_comparison(comparison: Comparison, measures: Sequence[str] | None = None) -> Figure:
    """Draws a row of two panels a measure: against the size, and against the time in seconds.

    `measures` are among frobenius, infinity, rmse, mse, nlpd, coverage95, iterations, and for classes error,
    brier and ece; None: frobenius and rmse, or frobenius, error, nlpd (where all methods have it of the same
    rows) and iterations, where they were measured. Points are medians over runs, bars go from the 10 % to the
    90 % quantile. A method without a size is a dashed line against the size.
    """
    from matplotlib.figure import Figure

    groups = gathered(comparison.runs)
    measured = [name for name in MEASURES if any(group.values(name).size for group in groups)]
    usual = ["frobenius", "error", "nlpd", "iterations"] if "error" in measured else ["frobenius", "rmse"]
    # log losses of different rows do not belong into one panel
    if any(run.variance_rows < run.n_test for run in comparison.runs):
        usual = [name for name in usual if name != "nlpd"]
    wanted = [name for name in usual if name in measured] if measures is None else list(measures)
    for name in wanted:
        if name not in MEASURES:
            raise ParameterError(
                f"measures has {name!r}, which is not known. There are {', '.join(MEASURES)}."
            )
        if name not in measured:
            raise ParameterError(f"measures has {name!r}, but no run has a value for it.")
    if not wanted:
        raise ParameterError("No run has an error to draw. The notes say why: print the comparison.")
    methods = list(dict.fromkeys(group.method for group in groups))
    figure = Figure(figsize=(11, 4.0 * len(wanted) + 0.6), layout="constrained")
    panels = figure.subplots(len(wanted), 2, sharey="row", squeeze=False)
    for (against_size, against_time), measure in zip(panels, wanted, strict=True):
        for k, method in enumerate(methods):
            mine = [group for group in groups if group.method == method and group.values(measure).size]
            if mine:
                colour, marker = look(k, COLOURS, MARKERS)
                dodge = DODGE ** (k / max(len(methods) - 1, 1) - 0.5)
                _draw(against_size, against_time, mine, measure, {"color": colour, "marker": marker}, dodge)
        _finish(against_size, against_time, measure, groups)
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        drawn, names = axis.get_legend_handles_labels()
        handles |= zip(names, drawn, strict=True)
    named = [method for method in methods if method in handles]
    figure.legend([handles[method] for method in named], named, loc="outside right upper", frameon=False)
    return figure


def _draw(
    by_size: Axes, by_time: Axes, groups: Sequence[RunGroup], measure: str, look: dict[str, Any], dodge: float
) -> None:
    """The medians of a method, with bars to the quantiles."""
    low, middle, high = np.transpose([np.quantile(g.values(measure), (0.1, 0.5, 0.9)) for g in groups])
    bars, name = np.array([middle - low, high - middle]), groups[0].method
    style = look | {"linewidth": 1.3, "elinewidth": 0.9, "zorder": 3}
    if groups[0].size == 0:
        colour = look["color"]
        by_size.axhline(middle[0], color=colour, linestyle="--", linewidth=1.2, zorder=1, label=name)
    else:
        sizes = np.array([group.size for group in groups]) * dodge
        by_size.errorbar(sizes, middle, bars, markersize=5, label=name, **style)
    size, joined = (7, "none") if len(groups) == 1 else (5, "-")
    seconds = np.array([_seconds(group, measure) for group in groups])
    by_time.errorbar(seconds, middle, bars, markersize=size, linestyle=joined, **style)


def _seconds(group: RunGroup, measure: str) -> float:
    """The median time of the runs that have the measure; no probabilities, no time for them."""
    runs, fields = [run for run in group.runs if not np.isnan(getattr(run, measure))], MEASURES[measure][2]
    return float(np.median([np.nansum([getattr(run, field) for field in fields]) for run in runs]))


def _finish(against_size: Axes, against_time: Axes, measure: str, groups: Sequence[RunGroup]) -> None:
    from matplotlib.ticker import NullLocator

    label, logarithmic, timed = MEASURES[measure]
    sizes = sorted({group.size for group in groups if group.size})
    against_size.set_xscale("log")
    if sizes:
        against_size.set_xticks(sizes, [str(size) for size in sizes])
        against_size.xaxis.set_minor_locator(NullLocator())
    against_time.set_xscale("log")
    low, high = against_time.get_xlim()
    if high < LEAST_RANGE * low:  # a decade at least, so that there are ticks
        middle, half = np.sqrt(low * high), np.sqrt(LEAST_RANGE)
        against_time.set_xlim(middle / half, middle * half)
    _plain_ticks(against_time.xaxis)
    values = np.concatenate([group.values(measure) for group in groups])
    if logarithmic and np.min(values) > 0 and np.max(values) > LEAST_RANGE * np.min(values):
        against_size.set_yscale("log")
        if np.max(values) < 100 * np.min(values):
            _plain_ticks(against_size.yaxis)
    against_size.set_ylabel(label)
    against_size.set_xlabel("size (landmarks, features, rank)")
    what = "the features of all training rows" if timed is CHOICE else "a fit, parameters held"
    against_time.set_xlabel(f"seconds for {what}")
    for axis in (against_size, against_time):
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(True, which="major", color="#dddddd", linewidth=0.6)


def _plain_ticks(axis: Axis) -> None:
    """1, 2 and 5 of each power of ten, written as numbers, where they do not crowd; else the powers alone."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 300 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
