"""Model files changed at random, with a right checksum: what is loaded must predict, all else is refused.

`check(models, folder, count, seed)` is for tests and longer runs; `python -m tests.modelfile.mutants 5000`
runs it over the models here.
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gramian as gm
from gramian.errors import InputError, MemoryLimitError, ModelFileError
from gramian.modelfile import load
from tests.modelfile.test_modelfile_hostile import Arrays, Document, forged, parts

# of one file, at most: time, and memory beside so many times its length
SECONDS, BYTES, SHARE = 60.0, 30e6, 100
VALUES = [
    *(None, True, False, 0, 1, -1, 2, 7, 10**6, 2**31, 2**63 - 1, 2**64 - 1, -(2**63)),
    *(0.0, -0.0, 0.5, 1.0, -1.0, 1e-308, 1e308, -1e308, 5e-324),
    *("", "x", "a", "y", "RBF", "auto", "\ud800", "\x1b[2J", "é" * 1000, "os.system", [], {}, [[]], [None]),
    *({"float": "nan"}, {"float": "inf"}, {"array": "X"}, {"class": "RBF", "fields": {}}),
]
NUMBERS = [0.0, -1.0, 1e308, -1e308, 1e-308, 5e-324, np.nan, np.inf, 2.0**53, 0.5]


def models(folder: Path) -> list[Path]:
    """Files of several kinds of models."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=12), "b": rng.normal(size=12), "site": list("uvw") * 4})
    plain, y = X[["a", "b"]], np.sin(X["a"].to_numpy())
    still: dict[str, Any] = {"optimize": False, "random_state": 0}
    kernel = 1.5 * gm.RBF([0.5, 0.7]).on("a", "b") + gm.Categorical().on("site")
    fits: dict[str, Callable[[], Any]] = {
        "exact": lambda: gm.GPRegressor(kernel, mean="linear", **still).fit(X, np.column_stack([y, 2 * y])),
        "gaps": lambda: gm.GPRegressor(n_restarts=0, **still).fit(X.mask(X["b"] > 1), y),
        "vfe": lambda: gm.GPRegressor(gm.RBF(0.5), method=gm.Sparse(3), **still).fit(plain, y),
        "fourier": lambda: gm.GPRegressor(gm.RBF(0.5), method=gm.Fourier(8), **still).fit(plain, y),
        "cg": lambda: gm.GPRegressor(gm.Matern52(0.5), method=gm.CG(rank=3), **still).fit(plain, y),
        "counts": lambda: gm.GPRegressor(gm.RBF(0.5), likelihood="poisson", **still).fit(
            plain, np.arange(12)
        ),
        "labels": lambda: gm.GPClassifier(gm.RBF(0.5), **still).fit(plain, X["site"]),
        "pairs": lambda: gm.GPClassifier(gm.RBF(0.5), multiclass="ovo", **still).fit(plain, X["site"]),
        "svgp": lambda: gm.GPClassifier(gm.RBF(0.5), method=gm.SVGP(3), **still).fit(plain, y > 0),
        "draws": lambda: gm.GPRegressor(gm.RBF(0.5), hyper="average", random_state=0).fit(plain, y),
        "chains": lambda: gm.GPRegressor(
            gm.RBF(0.5),
            hyper="mcmc",
            inference=gm.MCMC(2, warmup=20, draws=4, rounds=1),
            random_state=0,
            verbose=False,
        ).fit(plain, y),
        "warped": lambda: gm.GPRegressor(gm.RBF(0.5), warp=gm.SinhArcsinh(), **still).fit(plain, np.exp(y)),
        "neighbours": lambda: gm.GPRegressor(gm.RBF(0.5), method=gm.Neighbours(3), **still).fit(plain, y),
        "states": lambda: gm.GPRegressor(gm.Matern32(0.5), method="statespace", **still).fit(X[["a"]], y),
        "coupled": lambda: gm.GPRegressor(gm.RBF(0.5), outputs="coupled", **still).fit(
            plain, np.column_stack([y, 2 * y])
        ),
        "chained": lambda: gm.GPRegressor(gm.RBF(0.5), outputs="chained", **still).fit(
            plain, np.column_stack([y, 2 * y])
        ),
        "noises": lambda: gm.GPRegressor(gm.RBF(0.5), likelihood="heteroscedastic", **still).fit(plain, y),
        "deep": lambda: gm.DeepGPRegressor(n_inducing=3, steps=2, **still).fit(plain, y),
        "deep labels": lambda: gm.DeepGPClassifier(n_inducing=3, steps=2, **still).fit(plain, X["site"]),
        "latent": lambda: gm.GPLatent(1, n_inducing=3, max_iter=2, random_state=0).fit(plain),
        "forecast": lambda: gm.GPForecaster(random_state=0, verbose=False, time_limit=1).fit(
            pd.DataFrame({"date": pd.date_range("2024-01-01", periods=12), "y": y})
        ),
    }
    for name, fit in fits.items():
        fit().save(folder / f"{name}.gm")
    return [folder / f"{name}.gm" for name in fits]


# Changes. ---------------------------------------------------------------------------------------------------


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every holder and key of a document."""
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in pairs:
        found += [(value, key), *places(part)]
    return found


def change_document(document: Document, rng: np.random.Generator) -> None:
    """One change of a random place."""
    known = places(document)
    holder, key = known[rng.integers(len(known))]
    value, kind = holder[key], rng.integers(8)
    if kind == 0:
        del holder[key]
    elif kind == 1:  # another part of the document
        other, at = known[rng.integers(len(known))]
        holder[key] = copy.deepcopy(other[at])
    elif kind == 2 and isinstance(value, list):
        holder[key] = value * int(rng.integers(2, 2000)) if rng.random() < 0.5 else value[:-1]
    elif kind == 3 and isinstance(value, dict):
        value[str(rng.integers(9))] = None
    elif kind == 4 and type(value) in (int, float):
        factor = [-1, 0, 1.5, 2, 1e3, 1e12][rng.integers(6)]
        holder[key] = type(value)(value * factor)
    elif kind == 5:  # far down
        for _ in range(int(rng.integers(1, 200))):
            value = [value] if rng.random() < 0.5 else {"class": "Exp", "fields": {"kernel": value}}
        holder[key] = value
    else:
        holder[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])


@np.errstate(all="ignore")  # 1e308 as a whole number
def change_arrays(arrays: Arrays, rng: np.random.Generator) -> None:
    """One change of a random array."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array, kind = arrays.pop(name), rng.integers(10)
    if kind == 0:
        return  # without it
    if kind == 1:
        array = np.resize(array, (*array.shape[:-1], int(rng.integers(0, 5000))))
    elif kind == 2:
        array = array.reshape([(-1,), (1, -1), (-1, 1), (1, 1, -1)][rng.integers(4)])
    elif kind == 3:
        array = np.nan_to_num(array).astype(np.int64 if array.dtype == np.float64 else np.float64)
    elif kind == 4 and arrays:
        other = sorted(arrays)[rng.integers(len(arrays))]
        array, arrays[other] = arrays[other], array
    elif kind == 5:
        name = f"{name}{rng.integers(3)}"
    elif array.dtype == np.int64:
        array = array + rng.integers(-1, 2)
    elif kind == 6:
        array = array * [1.5, 1e-9, 1e9, -1.0][rng.integers(4)]
    elif array.size:
        array = array.copy()
        array.reshape(-1)[rng.integers(array.size)] = NUMBERS[rng.integers(len(NUMBERS))]
    arrays[name] = np.ascontiguousarray(array)


def mutant(model: Path, path: Path, rng: np.random.Generator) -> None:
    """Writes a changed model, in most cases with a right checksum."""
    metadata, document, arrays = parts(model)
    where = rng.random()
    if where < 0.1:  # bytes, as a bad disk or somebody with a hex editor leaves them
        content = bytearray(model.read_bytes())
        at = rng.integers(8 if rng.random() < 0.5 else len(content))
        content[at : at + rng.integers(3)] = rng.bytes(int(rng.integers(3)))
        path.write_bytes(content)
        return
    for _ in range(int(rng.integers(1, 4))):
        if arrays and where > 0.7:
            change_arrays(arrays, rng)
        else:
            change_document(document, rng)
    if rng.random() < 0.1:
        metadata["version"] = str(rng.integers(1, 9))
    forged(path, metadata, json.dumps(document), arrays)


# The promise. -----------------------------------------------------------------------------------------------


def rows(gp: Any) -> pd.DataFrame:
    columns = gp.fitted_.columns
    levels = {columns.names[j]: known for j, known in columns.categories.items()}
    return pd.DataFrame({name: [levels[name][0] if name in levels else 0.3] * 2 for name in columns.given})


def ask(gp: Any) -> None:
    """What a model is there for."""
    if hasattr(gp, "forecast"):
        gp.forecast(3)
    elif hasattr(gp, "transform"):
        gp.transform(rows(gp))
    else:
        gp.predict(rows(gp) if gp.fitted_.columns.named else rows(gp).to_numpy())


def outcome(path: Path) -> str:
    """What becomes of a file: "refused", or "loaded", and then it predicts, or "beyond numbers" where that
    is what its predictions are said to be. Anything else is raised."""
    began = time.monotonic()
    tracemalloc.start()
    try:
        gp = load(path)
    except (ModelFileError, MemoryLimitError):
        return "refused"
    else:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                ask(gp)
            except InputError as error:  # of numbers such as 1e308
                if "leave the range of numbers" not in str(error):
                    raise
                return "beyond numbers"
        return "loaded"
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert time.monotonic() - began < SECONDS
        assert peak < BYTES + SHARE * path.stat().st_size


def check(files: list[Path], folder: Path, count: int, seed: int = 0) -> Counter[str]:
    """Makes so many mutants of some models, and counts what becomes of them; keeps the one that fails."""
    rng, found = np.random.default_rng(seed), Counter[str]()
    for k in range(count):
        path = folder / "mutant.gm"
        mutant(files[k % len(files)], path, rng)
        try:
            found[outcome(path)] += 1
        except BaseException as error:
            kept = path.rename(folder / f"failed-{seed}-{k}.gm")
            error.add_note(f"mutant {k} of seed {seed}, of {files[k % len(files)].name}: {kept}")
            raise
    return found


if __name__ == "__main__":
    folder = Path(tempfile.mkdtemp())
    print(check(models(folder), folder, int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
