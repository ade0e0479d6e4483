"""The demonstration: forecasting the monthly airline passengers of 1949 to 1960, with the picture.

The numbers grow by a roughly constant percentage, and so does their season: the model is of their logarithm,

    log y = c + w t + g(t) + s(t) + noise

with a line of unknown slope w, slow departures g from it (Matern-3/2), and a season s that repeats every year
and changes its form over decades (Periodic times RBF). The kernel was chosen by forecasts of two years from
within the first ten (from the ends of 1953 to 1956); the last two years were not looked at. Data: series G of
Box and Jenkins, Time Series Analysis: Forecasting and Control (1970).
"""

from __future__ import annotations

import time
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gramian.arrays import Array
from gramian.cli.voice import say
from gramian.cli.work import check_output, print_summary
from gramian.data.atomic import atomic_write
from gramian.data.frames import Frame
from gramian.data.tables import Table, read_table, write_table
from gramian.estimators import GPRegressor
from gramian.estimators.predictions import Z95, prediction_table
from gramian.kernels.text import parse_kernel
from gramian.plots.common import BLUE, GREEN, INK, ORANGE
from gramian.plots.predictions import plot_predictions
from gramian.predictive import Normals

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


PARTS = {
    "Linear(0.1)": "a trend of constant growth",
    "0.1 * Matern32(1.0)": "slow departures from it",
    "0.1 * Periodic(1.0, fixed(1.0)) * RBF(10.0)": (
        "a season that repeats every year, and changes its form over decades"
    ),
}
KERNEL = " + ".join(PARTS)
START = 1949
TRAINING = 120  # months: ten years to learn from, two to forecast
YOURS = """\
gramian fit your.csv --target y --out model.gm
gramian predict model.gm new.csv --out predictions.csv

or in Python

import gramian as gm
gp = gm.GPRegressor().fit(X, y)
mean, std = gp.predict(X_new, return_std=True)

A kernel of your own, such as the one above: gramian fit --kernel "...", or gm.GPRegressor(kernel)."""


def run(folder: Path) -> None:
    """Fits, forecasts, compares, draws, and then tells each step."""
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    model, csv, picture = (folder / name for name in ("model.gm", "predictions.csv", "forecast.png"))
    for path in (model, csv, picture):
        check_output(path)
    table = airline()
    t, y, months = table.numbers("years"), table.numbers("passengers"), table.text("month")
    new = slice(TRAINING, None)

    gp = GPRegressor(parse_kernel(KERNEL), n_restarts=0)
    gp.fit(Frame({"years": t[:TRAINING]}), np.log(y[:TRAINING]))
    mean, std = gp.predict(Frame({"years": t}), return_std=True)
    predictions = passengers(mean, std)
    forecast = {name: column[new] for name, column in predictions.items()}
    gp.save(model)
    held_out = np.where(np.arange(len(y)) < TRAINING, "fitted", "held out").astype(object)
    columns = {**{name: table.text(name) for name in table.names}, "part": held_out, **predictions}
    write_table(csv, list(columns), columns)
    with atomic_write(picture) as file:
        draw(gp, t, y).savefig(file, format="png", dpi=150)

    # told when all is written: a reader may leave after the first line
    _step(
        "1. The data",
        f"Airline passengers in thousands, month by month: {len(y)} rows, {months[0]} to {months[-1]}.",
        f"The first ten years ({TRAINING} rows) are for fitting. The last two are held out, to be forecast.",
    )

    _step(
        "2. The model, of the logarithm of the passengers",
        "The kernel says what to expect, as a sum; its numbers are where fitting starts:",
        *(f"  {part:45} {meaning}" for part, meaning in PARTS.items()),
        "",
    )
    print_summary(gp)
    _step("3. The forecast, against what happened", *_compared(y[new], forecast, y[TRAINING - 12 : TRAINING]))
    width = len(str(csv))
    _step(
        "4. The results",
        f"{model!s:{width}}   the model; see gramian show",
        f"{csv!s:{width}}   all months with mean, std and 95 % interval",
        f"{picture!s:{width}}   the picture",
        f"All this took {time.monotonic() - began:.1f} seconds.",
    )
    _step("5. The same with your own table", YOURS)


def airline() -> Table:
    """The table that comes with the library: month, years since January 1949, passengers in thousands."""
    with as_file(files("gramian") / "data" / "airline.csv") as path:
        return read_table(path)


def passengers(mean: Array, std: Array) -> dict[str, Array]:
    """From a Gaussian of the logarithm to passengers: the moments of the log-normal, and its quantiles."""
    logs, average = prediction_table(Normals(mean, std)), np.exp(mean + 0.5 * std**2)
    moments = {"mean": average, "std": average * np.sqrt(np.expm1(std**2))}
    return moments | {edge: np.exp(logs[edge]) for edge in ("lower95", "upper95")}


def _step(title: str, *lines: str) -> None:
    say("\n".join(["", title, "-" * len(title), *lines]))


def _compared(truth: Array, forecast: dict[str, Array], last_year: Array) -> list[str]:
    def rmse(guess: Array) -> float:
        return float(np.sqrt(np.mean((guess - truth) ** 2)))

    inside, months = (forecast["lower95"] <= truth) & (truth <= forecast["upper95"]), len(truth)
    percent = 100 * np.mean(np.abs(forecast["mean"] - truth) / truth)
    return [
        f"error      {rmse(forecast['mean']):.1f} thousand passengers (root mean square), {percent:.1f} % on"
        f" average, over {months} months",
        f"           {rmse(np.tile(last_year, months // 12)):.1f} thousand if one repeats the last year that"
        " was seen",
        f"coverage   {inside.sum()} of {months} months ({np.mean(inside):.0%}) lie within the 95 % interval",
    ]


def draw(gp: GPRegressor, t: Array, y: Array) -> Figure:
    """The forecast above, the three parts of the model below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    titles = {
        "trend": "trend (% since 1949)",
        "departures": "departures from the trend (%)",
        "season": "season (%)",
    }
    panels = figure.subplot_mosaic([["forecast"] * 3, list(titles)], height_ratios=[1.9, 1])
    top, points = panels["forecast"], 12 * 12 * 8
    label = "passengers (thousands a month)"
    plot_predictions(gp, Frame({"years": t}), transform=np.exp, ax=top, ylabel=label, n_points=points)
    held_out: dict[str, Any] = {"facecolors": "white", "edgecolors": ORANGE, "label": "data held out"}
    top.scatter(t[TRAINING:], y[TRAINING:], s=20, linewidths=1.3, zorder=5, **held_out)
    top.axvline(t[TRAINING] - 1 / 24, color=INK, linewidth=0.8, linestyle=":")
    top.set_title("Airline passengers: ten years seen, two forecast", loc="left")
    top.legend(frameon=False, loc="upper left")
    grid = np.linspace(t[0], t[-1], points)
    parts = gp.components(Frame({"years": grid})).values()
    for (name, title), (mean, std), colour in zip(titles.items(), parts, (BLUE, GREEN, ORANGE), strict=True):
        _component(panels[name], grid, mean, std, title, colour)
    for axis in panels.values():
        axis.set_xlabel("year")
        ticks = range(0, 13, 2 if axis is top else 4)
        axis.set_xticks(ticks, [str(START + tick) for tick in ticks])
        axis.set_xlim(-0.2, 12.1)
    return figure


def _component(axis: Axes, t: Array, mean: Array, std: Array, title: str, colour: str) -> None:
    low, middle, high = (100 * np.expm1(mean + z * std) for z in (-Z95, 0.0, Z95))
    axis.fill_between(t, low, high, color=colour, alpha=0.22, linewidth=0)
    axis.plot(t, middle, color=colour, linewidth=1.4)
    axis.axhline(0, color=INK, linewidth=0.6)
    axis.axvline(TRAINING / 12 - 1 / 24, color=INK, linewidth=0.8, linestyle=":")
    axis.set_title(title, loc="left", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
