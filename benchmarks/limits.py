"""Limits: asked and taken seconds, and what came out; with --memory, planned and taken bytes; with --files,
what hostile model files and tables take.

    python benchmarks/limits.py [case ...] [--data dem_jacksboro.npz]
    python benchmarks/limits.py --memory [case ...]
    python benchmarks/limits.py --files [case ...]

Each case runs in a process of its own, so that compilation counts, as it does for a person. "taken" is the
time of `fit`, without imports; of the command line, that of the whole command; beside it the processor's, of
all threads, and the load of the machine (processes that want to run, in the last minute). The case dem needs
the elevations of the file given with --data (arrays X and y, or lat, lon and z) and is left out without it.

Memory is the peak of the resident set beyond what there is after a fit of the same kind to few rows, which
has imported and compiled everything. Searches are cut after two iterations: more of them hold no more. That
of a file is what reading it adds to a process that has read another one.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
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


def several(n: int, limit: float) -> Any:
    gp, X, y = regression(n, 4, limit)
    return gp, X, np.column_stack([y, np.roll(X[:, 1], 1) + y**2])


def counts(n: int, limit: float) -> Any:
    gp, X, y = regression(n, 2, limit, likelihood="poisson", inference="laplace")
    return gp, X, np.random.default_rng(1).poisson(np.exp(y))


def classes(n: int, d: int, count: int, limit: float, **settings: Any) -> Any:
    import gramian as gm

    X, y = wave(n, d)
    codes = np.digitize(y, np.quantile(y, np.arange(1, count) / count))
    return gm.GPClassifier(time_limit=limit, random_state=0, **settings), X, codes


def gm() -> Any:
    """The package, imported where a case begins."""
    import gramian

    return gramian


def fixed(n: int, method: Any, outputs: int = 1) -> Any:
    """A regression by a kernel that is named, so that one search is all."""
    X, y = wave(n, 4)
    Y = np.column_stack([np.roll(y, k) + k for k in range(outputs)]) if outputs > 1 else y
    kernel = 1.0 * gm().Matern52(np.ones(4))
    return gm().GPRegressor(kernel, method=method, random_state=0, n_restarts=0), X, Y


def fixed_classes(n: int, count: int, method: Any, inference: str = "auto") -> Any:
    kernel = 1.0 * gm().Matern52(np.ones(4))
    settings = {"kernel": kernel, "method": method, "inference": inference, "n_restarts": 0}
    gp, X, codes = classes(n, 4, count, np.inf, **settings)
    return gp.set_params(time_limit=None), X, codes


def outputs(n: int, limit: float, how: str) -> Any:
    _, X, Y = several(n, limit)
    return gm().GPRegressor("rbf", outputs=how, time_limit=limit, random_state=0), X, Y


def layers(n: int, limit: float) -> Any:
    X, y = wave(n, 4)
    return gm().DeepGPRegressor(time_limit=limit, random_state=0), X, y


def places(n: int, limit: float) -> Any:
    X, y = wave(n, 4)
    return gm().GPLatent(2, time_limit=limit, random_state=0), np.column_stack([X, y, np.cos(y)]), None


def days(n: int, limit: float) -> Any:
    t, rng = np.arange(n), np.random.default_rng(0)
    y = np.sin(t * 2 * np.pi / 7) + np.cos(t * 2 * np.pi / 365) + 0.1 * rng.standard_normal(n)
    return gm().GPForecaster(time_limit=limit, random_state=0), t.astype("M8[D]"), y


def fixed_series(n: int, d: int, kernel: str, method: Any) -> Any:
    """A regression on few columns, by a kernel and a method that are named."""
    X, y = wave(n, d)
    return gm().GPRegressor(kernel, method=method, random_state=0, n_restarts=0), X, y


def fixed_outputs(n: int, how: str) -> Any:
    _, X, Y = several(n, 60.0)
    kernel = 1.0 * gm().Matern52(np.ones(4))
    return gm().GPRegressor(kernel, outputs=how, warp=None, random_state=0, n_restarts=0), X, Y


def fixed_layers(n: int, classes_of: int = 0) -> Any:
    X, y = wave(n, 4)
    if classes_of:
        codes = np.digitize(y, np.quantile(y, np.arange(1, classes_of) / classes_of))
        return gm().DeepGPClassifier(steps=30, random_state=0), X, codes
    return gm().DeepGPRegressor(steps=30, random_state=0), X, y


def fixed_places(n: int, **settings: Any) -> Any:
    X, y = wave(n, 4)
    table = np.column_stack([X, y, np.cos(y), *(np.sin(k * y) for k in range(1, 25))])
    return gm().GPLatent(2, max_iter=50, random_state=0, **settings), table, None


def fixed_days(n: int) -> Any:
    gp, t, y = days(n, 60.0)
    return gp.set_params(time_limit=None, seasons=["week", "year"], warp=None), t, y


def fixed_chains(n: int) -> Any:
    X, y = wave(n, 2)
    chains = gm().MCMC(2, warmup=20, draws=20, rounds=1)
    return gm().GPRegressor("rbf", hyper="mcmc", inference=chains, random_state=0), X, y


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
    "two outputs, 3,000 rows": (5, lambda limit: several(3000, limit)),
    "minres, 5,000 rows": (4, lambda limit: regression(5000, 4, limit, method="minres")),
    "fitc, 50,000 rows": (4, lambda limit: regression(50_000, 4, limit, method="fitc")),
    "VI, 2,000 rows": (5, lambda limit: classes(2000, 2, 2, limit, inference="vi")),
    "robust-max, 700 rows": (5, lambda limit: classes(700, 2, 4, limit, multiclass="robustmax")),
    "ovo, 1,000 rows": (5, lambda limit: classes(1000, 2, 4, limit, multiclass="ovo")),
    "svgp, 3 classes, 20,000 rows": (10, lambda limit: classes(20_000, 4, 3, limit, method="svgp")),
    "student-t, 1,500 rows": (5, lambda limit: regression(1500, 2, limit, likelihood="student-t")),
    "poisson, Laplace, 3,000 rows": (5, lambda limit: counts(3000, limit)),
    "state space, 200,000 rows": (6, lambda limit: regression(200_000, 1, limit, method="statespace")),
    "neighbours, 50,000 rows": (6, lambda limit: regression(50_000, 2, limit, method="neighbours")),
    "coupled outputs, 1,500 rows": (5, lambda limit: outputs(1500, limit, "coupled")),
    "chained outputs, 1,500 rows": (5, lambda limit: outputs(1500, limit, "chained")),
    "layers, 5,000 rows": (8, lambda limit: layers(5000, limit)),
    "places, 2,000 rows": (8, lambda limit: places(2000, limit)),
    "forecast, 5,000 days": (8, lambda limit: days(5000, limit)),
}
MEMORY: dict[str, tuple[int, Callable[[int], Any]]] = {
    "exact": (6000, lambda n: fixed(n, "exact")),
    "exact, 5 outputs": (4000, lambda n: fixed(n, "exact", outputs=5)),
    "cg": (7000, lambda n: fixed(n, gm().CG(rank=1200))),
    "minres": (7000, lambda n: fixed(n, gm().MINRES(rank=1200))),
    "nystrom": (20_000, lambda n: fixed(n, gm().Nystrom(1500))),
    "vfe": (20_000, lambda n: fixed(n, gm().Sparse(1500))),
    "vfe, 3 outputs": (20_000, lambda n: fixed(n, gm().Sparse(1500), outputs=3)),
    "fitc": (20_000, lambda n: fixed(n, gm().Sparse(1500, "fitc"))),
    "fourier": (20_000, lambda n: fixed(n, gm().Fourier(1500))),
    "svgp": (20_000, lambda n: fixed(n, gm().SVGP(1000, steps=20))),
    "svgp, 3 classes": (20_000, lambda n: fixed_classes(n, 3, gm().SVGP(1000, steps=20))),
    "laplace": (3500, lambda n: fixed_classes(n, 2, "exact", "laplace")),
    "ep": (3500, lambda n: fixed_classes(n, 2, "exact", "ep")),
    "vi": (3500, lambda n: fixed_classes(n, 2, "exact", "vi")),
    "laplace on vfe": (20_000, lambda n: fixed_classes(n, 2, gm().Sparse(1500), "laplace")),
    "softmax, 3 classes": (2200, lambda n: fixed_classes(n, 3, "exact", "laplace")),
    "softmax by vi, 3 classes": (2200, lambda n: fixed_classes(n, 3, "exact", "vi")),
    "softmax on nystrom, 3 classes": (15_000, lambda n: fixed_classes(n, 3, gm().Nystrom(800), "laplace")),
    "state space": (400_000, lambda n: fixed_series(n, 1, "matern32", "statespace")),
    "state space, Matern-5/2": (400_000, lambda n: fixed_series(n, 1, "matern52", "statespace")),
    "neighbours": (60_000, lambda n: fixed_series(n, 2, "matern32", "neighbours")),
    "coupled outputs": (2500, lambda n: fixed_outputs(n, "coupled")),
    "chained outputs": (4500, lambda n: fixed_outputs(n, "chained")),
    "layers": (20_000, fixed_layers),
    "layers of 3 classes": (10_000, lambda n: fixed_layers(n, 3)),
    "places": (4500, fixed_places),
    "places in batches": (40_000, lambda n: fixed_places(n, batch_size=500)),
    "forecast": (40_000, fixed_days),
    "chains": (300, fixed_chains),
}
FEW = 1100  # rows that have the programs of many, but for a series: its programs are for so many chunks
SERIES = ("state space", "state space, Matern-5/2", "forecast")
DEM = "dem, 133,632 x 2, command line"
DEM_LIMIT = 60.0


def run(name: str) -> dict[str, Any]:
    """One case, here."""
    limit, made = CASES[name]
    gp, X, y = made(limit)
    began, busy = time.perf_counter(), time.process_time()
    gp.fit(X, y)
    taken, busy = time.perf_counter() - began, time.process_time() - busy
    short = slice(0, 2000)
    if not hasattr(gp, "predict"):  # places and forecasts have no such scores
        told = {"asked": limit, "taken": taken, "processor": busy, "method": type(gp).__name__}
        return told | {
            "stopped": "",
            "evaluations": "",
            "evidence": "",
            "score": "",
            "stages": [],
            "notes": [],
        }
    outcome = gp.outcome_
    told: dict[str, Any] = {"asked": limit, "taken": taken, "method": f"{outcome.method}, {outcome.solver}"}
    told |= {"stopped": outcome.stopped, "evaluations": outcome.evaluations, "notes": list(outcome.notes)}
    told |= {"evidence": str(gp.evidence_), "rows": gp.fitted_.n_rows, "stages": list(outcome.stages)}
    told["processor"] = busy
    if hasattr(gp, "classes_"):
        told["score"] = f"accuracy {np.mean(gp.predict(X[short]) == y[short]):.3f}"
    else:
        told["score"] = (
            f"RMSE {np.sqrt(np.mean((gp.predict(X[short]) - y[short]) ** 2)):.3f} of {y.std():.2f}"
        )
    return told


# Files. -----------------------------------------------------------------------------------------------------


def forged(path: Path, shape: list[int], size: int) -> Path:
    """A model file that says of itself to have an array of that shape and size, behind a right header."""
    head: dict[str, Any] = {"X": {"dtype": "F64", "shape": shape, "data_offsets": [0, size]}}
    known = {"format": "gramian model", "version": "7", "library": "0.2.0", "document": "{}"}
    head["__metadata__"] = {**known, "sha256": "0" * 64}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    os.truncate(path, 8 + len(text) + size)
    return path


def forged_shape(folder: Path) -> Path:
    """A shape with a zero, whose other length has to be counted to by nobody."""
    return forged(folder / "shape.gm", [2**59, 0], 0)


def holes(folder: Path) -> Path:
    """Zeros that are not on the disk."""
    return forged(folder / "holes.gm", [725_000_000], 5_800_000_000)


def many_kernels(folder: Path) -> Path:
    """A right file of 0.6 MB but for its kernel, a sum of 3,000."""
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from tests.modelfile import test_modelfile_hostile as hostile

    X, y = wave(5, 1)
    gm().GPRegressor(gm().RBF(0.5), noise=0.1, optimize=False).fit(X, y).save(folder / "one.gm")
    metadata, document, arrays = hostile.parts(folder / "one.gm")
    lengths = (0.5 + k / 1000 for k in range(3000))
    terms = [{"class": "RBF", "fields": {"lengthscale": hostile.parameter([v], [])}} for v in lengths]
    document["fitted"]["kernel"] = {"class": "Sum", "fields": {"terms": terms}}
    arrays["theta"] = np.zeros(len(arrays["theta"]) + 2999)
    return hostile.forged(folder / "many.gm", metadata, document, arrays)


def packed(folder: Path, repeated: bytes) -> Path:
    """10 GB in 10 MB of gzip, as one part after the other."""
    part = gzip.compress(repeated * (100_000_000 // len(repeated)), 9)
    with (folder / "packed.csv.gz").open("wb") as file:
        file.write(gzip.compress(b"a,b,c,y\n"))
        for _ in range(100):
            file.write(part)
    return folder / "packed.csv.gz"


def endless(folder: Path) -> Path:
    path = folder / "endless.csv"
    os.mkfifo(path)

    def feed() -> None:
        with contextlib.suppress(OSError), path.open("wb") as pipe:
            pipe.write(b"a,b,y\n")
            while True:
                pipe.write(b"1,2,3\n" * 10_000)

    threading.Thread(target=feed, daemon=True).start()
    return path


def text(folder: Path) -> Path:
    """47 MB, with a column of different texts, of which there are too many for categories."""
    with (folder / "text.csv").open("w") as file:
        file.write("a,b,note,y\n")
        for k in range(750_000):
            file.write(f"{k % 97},{k * 0.37:.4f},some words and {k % 50},{k % 13}.25,{k:030d}\n"[:63] + "\n")
    return folder / "text.csv"


def wide(folder: Path) -> Path:
    with (folder / "wide.csv").open("w") as file:
        file.write(",".join(f"c{k}" for k in range(100_000)) + ",y\n")
        for k in range(3):
            file.write("1," * 100_000 + f"{k}\n")
    return folder / "wide.csv"


FILES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "model: a shape of [2^59, 0]": ("", forged_shape),
    "model: 5.8 GB of holes": ("", holes),
    "model: a sum of 3,000 kernels": ("", many_kernels),
    "table: gzip of 10 GB, rows": ("500MB", lambda folder: packed(folder, b"1.25,2.5,3.75,4.5\n")),
    "table: gzip of 10 GB, one line": ("500MB", lambda folder: packed(folder, b"1.25,2.5,")),
    "table: a pipe without end": ("500MB", endless),
    "table: 47 MB of text": ("60MB", text),
    "table: 100,000 columns": ("", wide),
}


def run_files(name: str) -> dict[str, Any]:
    """What one file takes, beside what reading took before."""
    from gramian.data.sources import open_source
    from gramian.errors import GramianError

    limit, make = FILES[name]
    with tempfile.TemporaryDirectory() as folder:
        gp, X, y = fixed(20, "exact")
        gp.fit(X, y).save(Path(folder, "small.gm"))
        gm().load(Path(folder, "small.gm"))
        Path(folder, "small.csv").write_text("a,y\n" + "1,2\n2,3\n" * 20)
        open_source(Path(folder, "small.csv"), "y")
        path = make(Path(folder))
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what the allocator holds back would not show
        Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
        before, began, busy = status("VmRSS"), time.perf_counter(), time.process_time()
        try:
            if path.suffix == ".gm":
                gm().load(path)
            else:
                open_source(path, "y", memory_limit=limit or None)
            said = "read"
        except GramianError as error:
            said = f"{type(error).__name__}: {error}".replace(folder, "")
        busy, taken = time.process_time() - busy, time.perf_counter() - began
        size = path.stat().st_size
    return {"bytes": status("VmHWM") - before, "processor": busy, "taken": taken, "said": said, "size": size}


def print_files(name: str, told: dict[str, Any]) -> None:
    sizes = f"{told['size']:>14,} bytes, {told['bytes'] / 1e6:>6.0f} MB at the peak"
    print(f"{name:<32} {sizes}, {told['processor']:>6.2f} s of a processor; {told['said'][:160]}")


def run_memory(name: str) -> dict[str, Any]:
    """Planned and taken bytes of one case, here."""
    from gramian.fitting import stages
    from gramian.linalg import memory

    maximise, fits, asked = stages.maximise, memory.fits, [0]
    brief: dict[str, Any] = {"iterations": 2, "finish": False}
    stages.maximise = lambda *given, **how: maximise(*given, **(how | brief))
    memory.fits = lambda needed, limit: asked.append(needed) or fits(needed, limit)  # type: ignore[func-returns-value]
    n, made = MEMORY[name]
    gp, X, y = made(n)
    few = slice(0, n if name in SERIES else min(FEW, n // 2))
    for _ in range(2):
        gp.fit(X[few], None if y is None else y[few])
    del gp.fitted_
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what the allocator holds back would not show
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts anew
    before, asked = status("VmRSS"), [0]
    began = time.perf_counter()
    gp.fit(X, y)
    taken, seconds = status("VmHWM") - before, time.perf_counter() - began
    outcome = gp.outcome_
    stages_of = list(outcome.stages) if hasattr(outcome, "stages") else []
    return {"planned": max(asked), "taken": taken, "rows": n, "seconds": seconds, "stages": stages_of}


def status(name: str) -> int:
    """Bytes, as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


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
    parser.add_argument("--memory", action="store_true", help="bytes instead of seconds")
    parser.add_argument("--files", action="store_true", help="hostile files")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one is not None:
        one = run_memory if given.memory else run_files if given.files else run
        print(json.dumps(command_line(given.data) if given.one == DEM else one(given.one)))
        return
    names = [*CASES, *([DEM] if given.data is not None else [])]
    names = [*MEMORY] if given.memory else [*FILES] if given.files else names
    names = [name for name in names if not given.cases or any(part in name for part in given.cases)]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
    for name in names:
        data = [] if given.data is None else ["--data", str(given.data)]
        command = [sys.executable, __file__, "--one", name, *data, *(["--memory"] if given.memory else [])]
        command += ["--files"] if given.files else []
        out = subprocess.run(command, check=False, capture_output=True, text=True)
        if out.returncode:
            print(f"{name}: failed\n{out.stderr}")
            continue
        told = json.loads(out.stdout.splitlines()[-1]) | {"load": os.getloadavg()[0]}
        (print_bytes if given.memory else print_files if given.files else print_seconds)(name, told)
        sys.stdout.flush()


def print_seconds(name: str, told: dict[str, Any]) -> None:
    fit = f"{told['stopped']}, {told['evaluations']} evaluations; {told['evidence']}; {told['score']}"
    busy = f" ({told['processor']:.1f} s of a processor)" if "processor" in told else ""
    times = f"load {told['load']:>4.1f}: {told['asked']:>3.0f} s asked, {told['taken']:>5.1f} s taken{busy}"
    print(f"{name:<32} {times}; {told['method']}; {fit}")
    for line in [*told["stages"], *told["notes"]]:
        print(f"    {line}")


def print_bytes(name: str, told: dict[str, Any]) -> None:
    planned, taken = told["planned"] / 1e6, told["taken"] / 1e6
    sizes = f"{planned:>6.0f} MB planned, {taken:>6.0f} MB taken, {taken / planned:>5.2f} of it"
    print(f"{name:<32} {told['rows']:>6,} rows: {sizes} ({told['seconds']:.0f} s)")


if __name__ == "__main__":
    main()
