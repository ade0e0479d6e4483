"""What the pictures of a report show, as data: `plots.health` draws them, programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.data.columns import Columns
from gramian.report.document import Picture, number
from gramian.report.held import Held, Output

MOST_DOTS = 400  # of a picture: more cannot be told apart, and make the page large
MOST_LINES = 6
POINTS, MOST_POINTS = 80, 800  # along a column
A_LENGTH = 4  # points within a length of change
FEW_VALUES, ROWS_A_VALUE = 8, 5  # of a column of numbers that is drawn value by value, as an indicator is


def observed(output: Output, several: bool) -> Picture:
    """What was observed against what was foretold."""
    some = dots(len(output.y))
    return Picture(
        "observed",
        f"foretold and observed{named(output, several)}",
        "Each dot is a row; on the line, what was foretold is what was observed. Bars are 95 % intervals.",
        {
            "name": output.name,
            "mean": output.mean[some],
            "y": output.y[some],
            "lower": output.lower[some],
            "upper": output.upper[some],
        },
    )


def named(output: Output, several: bool) -> str:
    return f" of {output.name}" if several else ""


def calibration(output: Output, several: bool, discrete: bool) -> list[Picture]:
    """Where y fell in its distribution, and how many rows intervals hold."""
    levels = np.linspace(0.05, 0.95, 19)
    inside = [float(np.mean(np.abs(output.pit - 0.5) <= level / 2)) for level in levels]
    bins = 10 if len(output.pit) >= 100 else 5
    counts = np.histogram(output.pit, bins=bins, range=(0, 1))[0]
    m = len(output.pit)
    spread = 2 * np.sqrt(m * (1 / bins) * (1 - 1 / bins))
    seen = "Where y fell in its own predictive distribution. Even bars are honest; a hump in the middle says"
    remark = " Of whole numbers bars are never quite even." if discrete else ""
    return [
        Picture(
            "pit",
            f"PIT histogram{named(output, several)}",
            f"{seen} too wide, high ends too narrow, a slope off to one side. Dashed: what chance"
            f" allows.{remark}",
            {"counts": counts, "usual": m / bins, "spread": spread},
        ),
        Picture(
            "coverage",
            f"calibration{named(output, several)}",
            "How many rows intervals hold, against how many they promise. Below the line they are too"
            " narrow.",
            {"promised": levels, "held": inside, "rows": m},
        ),
    ]


def residuals(
    columns: Columns, held: Held, output: Output, order: Sequence[int], several: bool
) -> list[Picture]:
    """Normal scores along some columns."""
    some = dots(len(output.y))
    X, z = held.X[output.rows[some]], output.z[some]
    return [
        Picture(
            "residuals",
            f"residuals{named(output, several)} along {columns.names[j]}",
            "Each dot is a row: how far off, in standard deviations. 95 of 100 lie between the lines.",
            {"x": X[:, j], "z": z, **axis_of(columns, j, held.X[:, j])},
        )
        for j in order
    ]


def reliability(P: Array, codes: NDArray[np.intp], labels: Sequence[str]) -> Picture:
    """Of the second of two classes, or of the most probable one of several."""
    if len(labels) == 2:
        p, hit, what = P[:, 1], codes == 1, f"of {labels[1]}"
    else:
        p, hit, what = np.max(P, axis=1), np.argmax(P, axis=1) == codes, "of the most probable label"
    bins = np.minimum((10 * p).astype(int), 9)
    counts = np.bincount(bins, minlength=10)
    some = np.flatnonzero(counts)
    return Picture(
        "reliability",
        f"reliability {what}",
        "How often it was so, against how probable it was called; bars are two standard errors, grey the"
        " share of the rows. On the line probabilities are honest.",
        {
            "p": (np.bincount(bins, p, 10)[some] / counts[some]),
            "share": (np.bincount(bins, hit, 10)[some] / counts[some]),
            "rows": counts[some],
            "what": what,
        },
    )


def dots(m: int) -> NDArray[np.intp]:
    """All of m rows, or some, the same ones each time."""
    if m <= MOST_DOTS:
        return np.arange(m)
    return np.sort(np.random.default_rng(0).choice(m, MOST_DOTS, replace=False))


def typical(rows: Array, columns: Columns) -> Array:
    """One row: the median of each column, or the most frequent category."""
    row = np.median(rows, axis=0)
    for k in columns.categories:
        row[k] = np.argmax(np.bincount(rows[:, k].astype(int)))
    return row


def points(fitted: Any, seen: Array, j: int) -> tuple[Array, float]:
    """Points along a column, as dense as its functions change; where that would be too many, of the last part
    of it, with its share."""
    categories = fitted.columns.categories
    if j in categories:
        return np.arange(float(len(categories[j]))), 1.0
    values = few_values(fitted.columns, j, seen[:, j])
    if values is not None:
        return values, 1.0
    low, high = float(np.min(seen[:, j])), float(np.max(seen[:, j]))
    lengths = [own for k, own in fitted.model.kernel.change_lengths(range(seen.shape[1])) if k == j]
    shortest = min(lengths, default=np.inf) if not fitted.model.deeper else np.inf
    needed = A_LENGTH * (high - low) / shortest
    part = min(1.0, MOST_POINTS / needed) if needed > 0 else 1.0
    count = int(np.clip(np.ceil(needed), POINTS if seen.shape[1] > 1 else 3 * POINTS, MOST_POINTS))
    return np.linspace(high - part * (high - low), high, count), part


def few_values(columns: Columns, j: int, seen: Array) -> Array | None:
    """The values of a column of numbers, in their order, where it has a few that come again and again: what
    lies between 0 and 1 of an indicator is nothing that there is."""
    if j in columns.readings and columns.readings[j].origin is not None:
        return None
    values = np.unique(seen[np.isfinite(seen)])
    return values if 1 < len(values) <= FEW_VALUES and len(seen) >= ROWS_A_VALUE * len(values) else None


def curves(learned: Any, rows: Array, x: Array, j: int, part: float, seen: Array) -> list[Picture]:
    """Predictions, or probabilities, at rows that differ in column j alone, where it is x. `seen`: the column
    of the rows of the fit."""
    fitted, columns = learned.first, learned.columns
    axis = axis_of(columns, j, seen)
    remark = f" The last {100 * part:.0f} % of it: more would be too fine to see." if part < 1 else ""
    if learned.classes is not None:
        P = learned.probabilities(rows)
        most = np.sort(np.argsort(-np.mean(P, axis=0), kind="stable")[:MOST_LINES])
        data = {"x": x, "P": P[:, most].T, "labels": [str(learned.classes[c]) for c in most], **axis}
        return [
            Picture(
                "probabilities",
                f"labels along {columns.names[j]}",
                f"The probability of each label.{remark}",
                data,
            )
        ]
    foretold = fitted.predictive(rows)
    q = 1 if foretold.mean.ndim == 1 else foretold.mean.shape[1]
    found = []
    for k in range(min(q, 3)):
        one = foretold.output(k)
        lower, upper = one.interval(0.95)
        name = columns.targets[k] if len(columns.targets) == q else "y" if q == 1 else f"y{k}"
        data = {"x": x, "mean": one.mean, "lower": lower, "upper": upper, "target": name, **axis}
        if fitted.has_rows and rows.shape[1] == 1:
            X, Y = np.asarray(fitted.rows.X[:, 0]), fitted.targets_of_rows()[:, k]
            inside = np.flatnonzero((x[0] <= X) & (x[-1] >= X) & np.isfinite(Y))
            inside = inside[dots(len(inside))]
            data |= {"rows_x": X[inside], "rows_y": Y[inside]}
        told = f"The mean, and the 95 % interval of a new observation.{remark}"
        found.append(Picture("curve", f"predictions of {name} along {columns.names[j]}", told, data))
    return found


def axis_of(columns: Columns, j: int, seen: Array) -> dict[str, Any]:
    """How the numbers of a column are read: its name and unit, words, or dates; and its values, where they
    are few."""
    reading = columns.readings.get(j)
    found: dict[str, Any] = {"column": columns.names[j]}
    values = few_values(columns, j, seen)
    if values is not None and not (reading is not None and reading.words):
        found["values"] = values
    if reading is None:
        return found
    if reading.words:
        found["words"] = [*reading.words]
    elif reading.origin is not None and reading.days is not None:
        found |= {"origin": str(reading.origin), "days": float(reading.days)}
    elif unit := getattr(reading, "unit", ""):
        found["column"] += f" ({unit})"
    return found


def cell_of(columns: Columns, j: int, value: float) -> str:
    """A number of the model's table as people read it."""
    reading = columns.readings.get(j)
    if not np.isfinite(value):
        return "missing"
    if reading is not None and reading.words:
        code = int(value)
        return reading.words[code] if 0 <= code < len(reading.words) else "another"
    if reading is not None and reading.origin is not None and reading.days is not None:
        at = reading.origin.astype("datetime64[us]") + np.timedelta64(
            round(value * reading.days * 86400e6), "us"
        )
        return str(at.astype("datetime64[D]" if reading.days >= 1 else "datetime64[m]"))
    return number(value)
