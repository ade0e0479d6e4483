"""Forecasts by default settings beside Prophet, AutoETS of statsforecast and a seasonal naive forecast, on
the last part of known series: RMSE, MAE, and how many observations the 95 % intervals cover.

    python benchmarks/forecast.py FOLDER [--only co2,air] [--peers PYTHON]

FOLDER holds the series as NumPy files (co2_mauna_loa.npz and so on). `--peers`: an interpreter that has
prophet and statsforecast installed (they are no dependencies of the library); without it, and for peers that
are missing there, their lines are left out.
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# Box, Jenkins and Reinsel, series G: thousands of passengers a month, 1949 to 1960
AIR = [
    [112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118],
    [115, 126, 141, 135, 125, 149, 170, 170, 158, 133, 114, 140],
    [145, 150, 178, 163, 172, 178, 199, 199, 184, 162, 146, 166],
    [171, 180, 193, 181, 183, 218, 230, 242, 209, 191, 172, 194],
    [196, 196, 236, 235, 229, 243, 264, 272, 237, 211, 180, 201],
    [204, 188, 235, 227, 234, 264, 302, 293, 259, 229, 203, 229],
    [242, 233, 267, 269, 270, 315, 364, 347, 312, 274, 237, 278],
    [284, 277, 317, 313, 318, 374, 413, 405, 355, 306, 271, 306],
    [315, 301, 356, 348, 355, 422, 465, 467, 404, 347, 305, 336],
    [340, 318, 362, 348, 363, 435, 491, 505, 404, 359, 310, 337],
    [360, 342, 406, 396, 420, 472, 548, 559, 463, 407, 362, 405],
    [417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432],
]


class Series(NamedTuple):
    """Dates and values, how many of them are held out, and the rows of a season."""

    dates: np.ndarray  # datetime64[s]
    y: np.ndarray
    held_out: int
    season: int


def series(name: str, folder: Path) -> Series:
    """One of SETS."""

    def months(first: str, count: int) -> np.ndarray:
        return (np.datetime64(first, "M") + np.arange(count)).astype("M8[s]")

    if name in ("air", "air24"):
        y = np.array(AIR, dtype=float).ravel()
        return Series(months("1949-01", len(y)), y, 36 if name == "air" else 24, 12)
    with np.load(folder / f"{FILES[name]}.npz", allow_pickle=False) as file:
        if name == "co2":
            dates = np.array(file["date"], dtype="M8[M]").astype("M8[s]")
            return Series(dates, file["y"], 60, 12)
        if name == "sunspots":
            return Series(months("1749-01", len(file["y"])), file["y"], 132, 132)
        if name == "melbourne":
            return Series(file["date"].astype("M8[s]"), file["y"], 365, 365)
        start = np.datetime64(str(file["start"]).replace(" ", "T"), "s")
        hours = start + file["hours"].astype("m8[h]")
        return Series(hours, file["mw"].astype(float), 24 * 365, 24 * 364)


FILES = {
    "co2": "co2_mauna_loa",
    "sunspots": "sunspots_monthly",
    "melbourne": "melbourne_daily_temp",
    "pjme": "pjme_hourly",
}
SETS = ("co2", "air", "air24", "sunspots", "melbourne", "pjme")
WHO = ("gramian", "prophet", "autoets", "naive")
SLOW = {"autoets": 5000}  # rows from which on it takes hours


def gramian(train: Series, dates: np.ndarray) -> tuple[np.ndarray, ...]:
    import gramian as gm

    gp = gm.GPForecaster(random_state=0).fit(train.dates, train.y)
    table = gp.forecast(dates=dates, level=0.95)
    print("\n".join(f"    {line}" for line in gp.summary().splitlines()), file=sys.stderr)
    return table["mean"], table["lower"], table["upper"]


def prophet(train: Series, dates: np.ndarray) -> tuple[np.ndarray, ...]:
    import pandas
    from prophet import Prophet

    logging.getLogger("cmdstanpy").setLevel(logging.ERROR)
    model = Prophet(interval_width=0.95).fit(pandas.DataFrame({"ds": train.dates, "y": train.y}))
    table = model.predict(pandas.DataFrame({"ds": dates}))
    return tuple(table[name].to_numpy() for name in ("yhat", "yhat_lower", "yhat_upper"))


def autoets(train: Series, dates: np.ndarray) -> tuple[np.ndarray, ...]:
    from statsforecast.models import AutoETS

    season = train.season if train.season <= 24 else 1  # what it can have
    found = AutoETS(season_length=season).forecast(train.y, len(dates), level=[95])
    return found["mean"], found["lo-95"], found["hi-95"]


def naive(train: Series, dates: np.ndarray) -> tuple[np.ndarray, ...]:
    """The value a season before; its interval from differences of seasons, wider with the seasons ahead."""
    s, h = train.season, len(dates)
    step = np.median(np.diff(train.dates))
    ahead = np.round((dates - train.dates[-1]) / step).astype(int) - 1
    mean = train.y[len(train.y) - s + ahead % s]
    sd = np.std(train.y[s:] - train.y[:-s]) * np.sqrt(1 + ahead // s)
    return mean[:h], (mean - 1.96 * sd)[:h], (mean + 1.96 * sd)[:h]


def scored(name: str, who: str, folder: Path) -> dict[str, Any]:
    """The scores of one contender on one series."""
    whole = series(name, folder)
    cut = len(whole.y) - whole.held_out
    train, test = whole._replace(dates=whole.dates[:cut], y=whole.y[:cut]), whole.y[cut:]
    began = time.perf_counter()
    mean, lower, upper = globals()[who](train, whole.dates[cut:])
    return {
        "rmse": float(np.sqrt(np.mean((test - mean) ** 2))),
        "mae": float(np.mean(np.abs(test - mean))),
        "coverage": float(np.mean((lower <= test) & (test <= upper))),
        "width": float(np.mean(upper - lower)),
        "seconds": time.perf_counter() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(SETS))
    parser.add_argument("--who", default=",".join(WHO))
    parser.add_argument("--peers", default="")
    parser.add_argument("--one", action="store_true", help="a single line, as JSON")
    given = parser.parse_args()
    if given.one:
        warnings.simplefilter("ignore")
        print(json.dumps(scored(given.only, given.who, given.folder)))
        return
    print("| series | held out | by | RMSE | MAE | 95 % covers | width | seconds |")
    print("|---|---|---|---|---|---|---|---|")
    for name in given.only.split(","):
        whole = series(name, given.folder)
        for who in given.who.split(","):
            python = sys.executable if who in ("gramian", "naive") else given.peers
            if not python or len(whole.y) > SLOW.get(who, 10**9):
                continue
            command = [python, __file__, str(given.folder), "--one", "--only", name, "--who", who]
            errors = None if who == "gramian" else subprocess.DEVNULL
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=errors, text=True, check=False)
            head = f"| {name} | {whole.held_out} of {len(whole.y):,} | {who} |"
            if done.returncode:
                print(head, "failed |", flush=True)
                continue
            found = json.loads(done.stdout.splitlines()[-1])
            shown = [f"{found[key]:.4g}" for key in ("rmse", "mae", "coverage", "width", "seconds")]
            print(head, " | ".join(shown), "|", flush=True)


if __name__ == "__main__":
    main()
