"""Several outputs with gaps: what each kind of model fills them with, beside a line in the outputs that were
seen throughout, on published gaps of known tables.

    python benchmarks/outputs.py FOLDER [--only jura,fx] [--kinds chained,auto] [--trials 3]

FOLDER holds the tables as NumPy files (jura.npz, fx2007.npz, eeg_gpar.npz). Errors are of the predicted mean:
MAE for jura, for the others the mean squared error over that of a constant, averaged over the outputs that
have gaps. Two constants are in use: the average of the held entries themselves ("of test", as published for
eeg), and that of the training entries ("of train", as published for fx). Coverage is of 95 % intervals.

    jura     Cd at 100 places, Ni and Zn known everywhere      coregionalisation 0.461, GPAR 0.41 (MAE)
    fx       CAD, JPY, AUD for 50 days each, ten others known  collaborative GP 0.2125 (of train)
    fx2      the same with gaps of 50, 100 and 150 days
    eeg      three electrodes for their last 100 of 256 times  independent 1.75, GPAR 0.26 (of test)
    eeg+     the same electrodes and gaps in `--trials` other recordings
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.linear_model import RidgeCV

import gramian as gm

KINDS = ("independent", "coupled", "chained", "auto")


class Task(NamedTuple):
    """A table with gaps, and what is there."""

    name: str
    X: np.ndarray
    Y: np.ndarray  # (n, q), NaN where it was not observed, or is held out
    whole: np.ndarray
    held: np.ndarray  # (n, q), of entries that are known and held out


def tasks(folder: Path, trials: int) -> Iterator[Task]:
    """All of them, in turn."""

    def gapped(name: str, X: np.ndarray, whole: np.ndarray, held: np.ndarray) -> Task:
        held = held & np.isfinite(whole)
        return Task(name, X, np.where(held, np.nan, whole), whole, held)

    with np.load(folder / "jura.npz") as file:
        names = file["names"].tolist()
        whole = file["Y"][:, [names.index(metal) for metal in ("Cd", "Ni", "Zn")]]
        held = np.zeros(whole.shape, bool)
        held[file["validation"], 0] = True
        yield gapped("jura", file["X"], whole, held)
    with np.load(folder / "fx2007.npz") as file:
        for name, gaps in (("fx", "test_nguyen"), ("fx2", "test_requeima")):
            yield gapped(name, file["day"][:, None], file["Y"], file[gaps])
    with np.load(folder / "eeg_gpar.npz") as file:
        t, held = file["t"][:, None], file["test"]
        yield gapped("eeg", t, file["Y"], held)
        own, every = file["names"].tolist(), file["all_names"].tolist()
        at = [every.index(name) for name in own]
        for k in range(1, 1 + trials):
            yield gapped(f"eeg+{k}", t, file["all_trials"][k][:, at].astype(np.float64), held)


def scores(task: Task, mean: np.ndarray) -> tuple[float, float, float]:
    """MAE, and the squared error over that of a constant: of the held entries, of the others."""
    error = mean - task.whole
    ratios = []
    for k in np.flatnonzero(task.held.any(axis=0)):
        at, y = task.held[:, k], task.whole[task.held[:, k], k]
        constants = np.mean(y), np.nanmean(task.Y[:, k])
        ratios.append([np.mean(error[at, k] ** 2) / np.mean((y - c) ** 2) for c in constants])
    return float(np.mean(np.abs(error[task.held]))), *np.mean(ratios, axis=0)


def line(task: Task) -> np.ndarray:
    """Ridge regression on the outputs that were seen throughout."""
    full = np.isfinite(task.Y).all(axis=0)
    Z = task.Y[:, full]
    Z = (Z - Z.mean(axis=0)) / Z.std(axis=0)
    out = task.Y.copy()
    for k in np.flatnonzero(~full):
        seen = np.isfinite(task.Y[:, k])
        out[:, k] = RidgeCV(np.logspace(-4, 2, 20)).fit(Z[seen], task.Y[seen, k]).predict(Z)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--trials", type=int, default=3)
    asked = parser.parse_args()
    only = set(filter(None, asked.only.split(",")))
    print(f"{'table':8} {'model':12} {'MAE':>9} {'of test':>9} {'of train':>9} {'cover':>6} {'seconds':>8}")
    for task in tasks(asked.folder, asked.trials):
        if only and task.name.split("+")[0] not in only:
            continue
        shown = " ".join(f"{value:9.4f}" for value in scores(task, line(task)))
        print(f"{task.name:8} {'a line':12} {shown}", flush=True)
        for kind in asked.kinds.split(","):
            began = time.perf_counter()
            gp = gm.GPRegressor(outputs=kind, random_state=0, verbose=False).fit(task.X, task.Y)
            seconds = time.perf_counter() - began
            foretold = gp.predict_dist(task.X)
            low, high = foretold.interval(0.95)
            cover = np.mean(((low <= task.whole) & (task.whole <= high))[task.held])
            shown = " ".join(f"{value:9.4f}" for value in scores(task, foretold.mean))
            print(f"{task.name:8} {kind:12} {shown} {cover:6.2f} {seconds:8.1f}", flush=True)
            if kind == "auto":
                print(f"{'':8} {gp.outcome_.choice[0]}", flush=True)


if __name__ == "__main__":
    main()
