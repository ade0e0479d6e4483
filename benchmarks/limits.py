"""Time limits: asked and taken seconds, and what came out.

    python benchmarks/limits.py [case ...] [--data dem_jacksboro.npz]

Each case runs in a process of its own, so that compilation counts, as it does for a person. "taken" is the
time of `fit`, without imports; of the command line, that of the whole command. The case dem needs the
elevations of the file given with --data (arrays X and y, or lat, lon and z) and is left out without it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HELD_BACK = 5000  # rows of the elevations that are not fitted


def wave(n: int, d: int) -> tuple[Any, Any]:
    """Rows of a smooth function with noise of standard deviation 0.1."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (n, d))
    return X, np.sin(X[:, 0]) + 0.5 * np.cos(2 * X[:, -1]) + 0.1 * rng.standard_normal(n)


def regression(n: int, d: int, limit: float, **settings: Any) -> Any:
    import gramian as gm

    X, y = wave(n, d)
    return gm.GPRegressor(time_limit=limit, random_state=0, **settings), X, y


def classes(n: int, d: int, count: int, limit: float, **settings: Any) -> Any:
    import gramian as gm

    X, y = wave(n, d)
    codes = np.digitize(y, np.quantile(y, np.arange(1, count) / count))
    return gm.GPClassifier(time_limit=limit, random_state=0, **settings), X, codes


CASES: dict[str, tuple[float, Callable[[float], Any]]] = {
    "50 rows": (2, lambda limit: regression(50, 2, limit)),
    "5,000 rows, 5 s": (5, lambda limit: regression(5000, 4, limit)),
    "5,000 rows, 20 s": (20, lambda limit: regression(5000, 4, limit)),
    "softmax, 700 rows": (5, lambda limit: classes(700, 2, 4, limit)),
    "EP, 2,000 rows": (4, lambda limit: classes(2000, 2, 2, limit, inference="ep")),
    "ovr, 1,000 rows": (5, lambda limit: classes(1000, 2, 4, limit, multiclass="ovr")),
    "chains, 100 rows": (10, lambda limit: regression(100, 2, limit, hyper="mcmc")),
    "chains, 300 labels": (10, lambda limit: classes(300, 2, 2, limit, inference="mcmc")),
    "cg, 5,000 rows": (4, lambda limit: regression(5000, 4, limit, method="cg")),
    "fourier, 50,000 rows": (4, lambda limit: regression(50_000, 4, limit, method="fourier")),
    "vfe, 50,000 rows": (4, lambda limit: regression(50_000, 4, limit, method="vfe")),
    "nystrom, 50,000 rows": (4, lambda limit: regression(50_000, 4, limit, method="nystrom")),
    "svgp, 50,000 rows": (10, lambda limit: regression(50_000, 4, limit, method="svgp")),
    "exact, 12,000 rows": (8, lambda limit: regression(12_000, 4, limit, method="exact")),
}
DEM = "dem, 133,632 x 2, command line"
DEM_LIMIT = 60.0


def run(name: str) -> dict[str, Any]:
    """One case, here."""
    limit, made = CASES[name]
    gp, X, y = made(limit)
    began = time.perf_counter()
    gp.fit(X, y)
    taken = time.perf_counter() - began
    outcome, short = gp.outcome_, slice(0, 2000)
    told: dict[str, Any] = {"asked": limit, "taken": taken, "method": f"{outcome.method}, {outcome.solver}"}
    told |= {"stopped": outcome.stopped, "evaluations": outcome.evaluations, "notes": list(outcome.notes)}
    told |= {"evidence": str(gp.evidence_), "rows": gp.fitted_.n_rows, "stages": list(outcome.stages)}
    if hasattr(gp, "classes_"):
        told["score"] = f"accuracy {np.mean(gp.predict(X[short]) == y[short]):.3f}"
    else:
        told["score"] = (
            f"RMSE {np.sqrt(np.mean((gp.predict(X[short]) - y[short]) ** 2)):.3f} of {y.std():.2f}"
        )
    return told


def command_line(data: Path) -> dict[str, Any]:
    """The elevations through `gramian fit`."""
    import gramian as gm

    with np.load(data) as file:
        arrays = {name: file[name] for name in file.files}
    X, y = elevations(arrays)
    order = np.random.default_rng(0).permutation(len(y))
    rest, kept = order[:HELD_BACK], order[HELD_BACK:]
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder, "dem.csv"), Path(folder, "dem.gm")
        rows = np.column_stack([X[kept], y[kept]])
        np.savetxt(table, rows, delimiter=",", header="x,y,z", comments="")
        command = [sys.executable, "-m", "gramian", "fit", str(table), "-t", "z", "-o", str(model)]
        began = time.perf_counter()
        subprocess.run([*command, "--time-limit", f"{DEM_LIMIT:g}"], check=True, stdout=subprocess.DEVNULL)
        taken = time.perf_counter() - began
        gp = gm.load(model)
        error = np.sqrt(np.mean((gp.predict(X[rest]) - y[rest]) ** 2))
    outcome = gp.outcome_
    told = {"asked": DEM_LIMIT, "taken": taken, "method": f"{outcome.method}, {outcome.solver}"}
    told |= {"stopped": outcome.stopped, "evaluations": outcome.evaluations, "notes": list(outcome.notes)}
    told |= {"evidence": str(gp.evidence_), "rows": gp.fitted_.n_rows, "stages": list(outcome.stages)}
    return told | {"score": f"RMSE {error:.3f} of {y.std():.3f}, {HELD_BACK:,} other rows"}


def elevations(arrays: dict[str, Any]) -> tuple[Any, Any]:
    """X (n, 2) and y (n,) from a file of points, or of a grid."""
    if {"X", "y"} <= set(arrays):
        return arrays["X"], arrays["y"].reshape(-1)
    grid = next(array for array in arrays.values() if array.ndim == 2 and min(array.shape) > 2)
    i, j = np.indices(grid.shape)
    return np.column_stack([i.ravel(), j.ravel()]).astype(float), grid.ravel().astype(float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", help="parts of the names of the cases; by default all")
    parser.add_argument("--data", type=Path, help="the elevations, as .npz")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        print(json.dumps(command_line(given.data) if given.one == DEM else run(given.one)))
        return
    names = [*CASES, *([DEM] if given.data is not None else [])]
    names = [name for name in names if not given.cases or any(part in name for part in given.cases)]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    for name in names:
        data = [] if given.data is None else ["--data", str(given.data)]
        command = [sys.executable, __file__, "--one", name, *data]
        out = subprocess.run(command, check=False, capture_output=True, text=True)
        if out.returncode:
            print(f"{name}: failed\n{out.stderr}")
            continue
        told = json.loads(out.stdout.splitlines()[-1])
        fit = f"{told['stopped']}, {told['evaluations']} evaluations; {told['evidence']}; {told['score']}"
        times = f"{told['asked']:>3.0f} s asked, {told['taken']:>5.1f} s taken"
        print(f"{name:<32} {times}; {told['method']}; {fit}")
        for line in [*told["stages"], *told["notes"]]:
            print(f"    {line}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
