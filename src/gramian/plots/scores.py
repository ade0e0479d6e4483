"""Is a model honest? Residuals along its columns, PIT, calibration and reliability: pictures of a report, on
axes. Each training row is foretold by all others; or rows that were held back are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from gramian.errors import ParameterError
from gramian.estimators.base import Estimator
from gramian.plots.common import ACROSS, chosen_columns, given_axes, new_axes
from gramian.plots.health import draw
from gramian.report import pictures
from gramian.report.document import Picture
from gramian.report.held import Held, Output, left_out

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PANELS = 12


def plot_calibration(
    gp: Estimator, X: Any = None, y: Any = None, *, output: int = 0, ax: Any = None, **columns: Any
) -> Figure:
    """Of numbers, two panels: where y fell in its own predictive distribution (PIT), and how many rows
    intervals hold against how many they promise. Of labels one: how often a label was right against how
    probable it was called.

    X, y : rows that were held back, as for `evaluate`; None: each training row, foretold by all others
    output : which one, where y has several
    ax : axes of your own, as many as panels

    Returns the figure.
    """
    held = _held(gp, X, y, columns)
    if held.P is not None and held.codes is not None:
        labels = [str(label) for label in cast("Any", gp.fitted_.classes)]
        return _drawn([pictures.reliability(held.P, held.codes, labels)], ax)
    return _drawn(pictures.calibration(_output(held, output), False, held.discrete), ax)


def plot_residuals(
    gp: Estimator,
    X: Any = None,
    y: Any = None,
    *,
    along: str | int | Sequence[str | int] | None = None,
    output: int = 0,
    ax: Any = None,
    **columns: Any,
) -> Figure:
    """What was observed against what was foretold, and how far off rows are along each column, in standard
    deviations.

    X, y : rows that were held back, as for `evaluate`; None: each training row, foretold by all others
    along : the columns, by name or number; None: all, or of many the first 11
    output : which one, where y has several
    ax : axes of your own: one more than columns

    Returns the figure.
    """
    held = _held(gp, X, y, columns)
    if held.P is not None:
        raise ParameterError("Labels have no residuals; plot_calibration shows how honest probabilities are.")
    known, own = gp.fitted_.columns, _output(held, output)
    chosen = chosen_columns(known.names, along)[: None if along is not None else MOST_PANELS - 1]
    return _drawn([pictures.observed(own, False), *pictures.residuals(known, held, own, chosen, False)], ax)


def _held(gp: Estimator, X: Any, y: Any, columns: dict[str, Any]) -> Held:
    if X is not None:
        return gp.held_back(X, y, columns)[0]
    found = left_out(gp.fitted_)
    if isinstance(found, str):
        raise ParameterError(f"Rows cannot be left out: {found}. Give X and y, rows that were held back.")
    return found


def _output(held: Held, output: int) -> Output:
    if not 0 <= output < len(held.outputs):
        raise ParameterError(
            f"output={output} does not exist: there are {len(held.outputs)}, numbered from 0."
        )
    return held.outputs[output]


def _drawn(shown: Sequence[Picture], ax: Any) -> Figure:
    count = len(shown)
    across = min(count, ACROSS)
    down = -(-count // across)
    if ax is None:
        axes = new_axes(down, across, (4.2 * across, 3.2 * down), count)
    else:
        axes = given_axes(
            ax, (count,), f"There are {count} panels, but ax has {{}} axes. Give {count}, or none."
        )
    for axis, picture in zip(axes, shown, strict=True):
        draw(axis, picture)
        axis.spines[["top", "right"]].set_visible(False)
    return cast("Figure", axes[0].figure)
