"""The engines for many rows: bounds, features, products, solvers and landmarks, each against its limit or its
peer in one run."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import gramian as gm
import peers
from common import Result, against_peers, at_least, at_most, peak_extra_bytes, take_turns
from gramian.choose.plan import calibrate
from gramian.engines import LowRank
from gramian.engines.base import Engine, Workspace
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.inference import Data, Model, Scheme, closed
from gramian.landmarks.rules import landmarks
from gramian.likelihoods import Gaussian
from gramian.linalg.hadamard import hadamard_transform
from gramian.means import ZeroMean
from gramian.processes.base import blocks_of

SEED = 20


def vfe() -> list[Result]:
    """The variational bound with gradient: n = 10,000, m = 512, d = 8, ARD RBF, against its bare products,
    GPyTorch and GPflow."""
    X, y, Z = peers.regression()
    model = Model(1.0 * gm.RBF(np.full(8, 2.0)), ZeroMean(), Gaussian(0.05))
    method = closed(LowRank(NystromBasis(Z), "bound", "vfe", "512 points"))
    data = Data(X, y[:, None], np.ones(1))

    def ours() -> float:
        return method.evidence_and_gradient(model, data, Workspace())[0].value

    # The floor: the products themselves, 4 n m^2 flops.
    rng = np.random.default_rng(SEED)
    A, B = rng.standard_normal((10_000, 512)), rng.standard_normal((512, 512))
    times = take_turns(7, ours=ours, products=lambda: (A.T @ A, A @ B))
    floor = at_most(
        "vfe with gradient: over its bare products",
        _s(times["ours"]),
        _s(times["products"]),
        times["ours"] / times["products"],
        4,
    )
    return [*against_peers("vfe, with gradient, m = 512", lambda: peers.best(ours, 5), 3, ours()), floor]


def features() -> list[Result]:
    """Feature regression of 1,000,000 rows from a memory map, 1,000 Fourier features, against the bare
    products Phi'Phi at the same block size."""
    n, d, m = 1_000_000, 8, 1000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "X.npy")
        X = np.lib.format.open_memmap(path, "w+", np.float64, (n, d))
        rng = np.random.default_rng(SEED)
        for at in range(0, n, 100_000):
            X[at : at + 100_000] = rng.standard_normal((100_000, d))
        X.flush()
        y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)
        X = np.load(path, mmap_mode="r")
        gp = gm.GPRegressor(
            1.0 * gm.RBF(np.full(d, 2.0)),
            noise=0.05,
            method=gm.Fourier(m, "orf"),
            optimize=False,
            random_state=0,
        )
        gp.fit(X[:20_000], y[:20_000])  # compiled
        rows = blocks_of(n, 8 * m)
        Phi = rng.standard_normal((rows[0].stop, m))

        def products() -> None:
            total = np.zeros((m, m))
            for at in rows:
                total += Phi[: at.stop - at.start].T @ Phi[: at.stop - at.start]

        began = time.perf_counter()
        products()
        limit = time.perf_counter() - began
        began = time.perf_counter()
        before = _anonymous()
        peak = peak_extra_bytes(lambda: gp.fit(X, y), _anonymous)
        ours = time.perf_counter() - began
    name = "feature regression, 1,000,000 rows, m = 1000"
    return [
        at_most(f"{name}: over bare products", _s(ours), _s(limit), ours / limit, 2.5),
        at_most(
            f"{name}: memory beyond the file cache, GB",
            f"{peak / 1e9:.2f} GB",
            f"{before / 1e9:.2f} GB before",
            peak / 1e9,
            1,
        ),
    ]


def products() -> list[Result]:
    """Matrix-free products, d = 3, n = 32,768, float32: kernel entries a second, and against KeOps."""
    X, v = peers.points()

    def ours() -> np.ndarray:
        return tiles.matmul(gm.RBF(1.0), X, X, v, np.float32)

    seconds = take_turns(4, ours=ours)["ours"]
    rate = len(X) ** 2 / seconds / 1e9
    found = Result("products, float32: 1e9 kernel entries a second", _s(seconds), "", rate, ">= 1", rate >= 1)
    return [
        found,
        *against_peers("products, float32", lambda: peers.best(ours, 3), 1, float(np.sum(ours() ** 2))),
    ]


def preconditioned() -> list[Result]:
    """CG on uci_kin40k (Matern-3/2 ARD at fitted lengthscales, n = 36,000) to a relative residual of 1e-4,
    with a preconditioner and without."""
    data = dataset("uci_kin40k")
    if data is None:
        return []
    X, y, _, _ = data
    # The set has hardly any noise: a fit would put it at its floor, where CG has no chance. It is held at a
    # thousandth of the variance.
    noise = gm.fixed(1e-3 * float(np.var(y)))
    part = gm.GPRegressor(
        1.0 * gm.Matern32(np.full(X.shape[1], 1.5)),
        noise=noise,
        method=gm.Exact(fit_rows=3000),
        random_state=0,
        n_restarts=0,
    )
    part.fit(X[:3000], y[:3000])
    operator = GramOperator(part.fitted_.model.kernel, X, np.full(len(X), part.noise_ / np.var(y)))
    times, steps = {}, {}
    for name in ("with", "without"):
        # Without one, as many steps as end the question: three times as long, and a tenth more.
        enough = (
            2000 if name == "with" else int(np.ceil(3.3 * steps["with"] * times["with"] / times["steps"]))
        )
        solver = (
            gm.CG(tol=1e-4, rank=3000, max_iter=enough)
            if name == "with"
            else gm.CG(tol=1e-4, preconditioner="none", max_iter=enough)
        )
        began = time.perf_counter()
        factor = solver.factor(operator)
        ready = time.perf_counter()
        outcome = factor.solve((y - y.mean()) / y.std()).outcome
        times[name], steps[name] = time.perf_counter() - began, outcome.iterations
        times["steps"] = time.perf_counter() - ready
        print(
            f"  CG {name} preconditioner: {outcome.iterations} steps, residual {outcome.residual:.1e},"
            f" {times[name]:.0f} s",
            flush=True,
        )
    ratio = times["without"] / times["with"]
    exact = next(o for o in gm.plan(X.shape).options if o.method.name == "exact")
    predicted = gm.plan(X.shape, optimize=False).options[0].fit_seconds
    print(f"  Cholesky on the same rows: {predicted:.0f} s predicted, {exact.bytes / 1e9:.1f} GB")
    return [
        at_least(
            f"CG on {len(X):,} rows: without preconditioner over with",
            _s(times["with"]),
            _s(times["without"]),
            ratio,
            3,
        )
    ]


def sampling() -> list[Result]:
    """Landmark rules with s = 500 on n = 100,000, in units of evaluating n x s kernel entries."""
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((100_000, 8))
    kernel = 1.0 * gm.RBF(np.full(8, 2.0))
    Z = X[:500].copy()
    rules = ("rpcholesky", "recursive-rls", "pivoted")
    times = take_turns(
        2,
        entries=lambda: tiles.cross(kernel, X, Z),
        **{rule: lambda rule=rule: landmarks(kernel, X, 500, rule, 0) for rule in rules},
    )
    name = "s = 500, n = 100,000: over n x s kernel entries"
    return [
        at_most(f"{rule}, {name}", _s(times[rule]), _s(times["entries"]), times[rule] / times["entries"], 8)
        for rule in rules
    ]


def hadamard() -> list[Result]:
    """The fast Walsh-Hadamard transform against a dense product, from 256 columns on, and structured features
    by it against the same by a product."""
    from scipy.linalg import hadamard as dense

    found = []
    for d in (256, 1024):
        A, H = np.random.default_rng(0).standard_normal((4096, d)), dense(d).astype(np.float64)
        times = take_turns(9, fast=lambda A=A: hadamard_transform(A), product=lambda A=A, H=H: A @ H)
        name = f"Hadamard transform, {d} columns: dense product over ours"
        found.append(
            at_least(name, _s(times["fast"]), _s(times["product"]), times["product"] / times["fast"], 1)
        )
    rng = np.random.default_rng(0)
    for d in (784, 2048):
        X, kernel = rng.standard_normal((4096, d)), gm.RBF(np.full(d, d**0.5))
        basis = FourierBasis.draw(kernel, d, 4096, "sorf", rng)
        ours, dense_map = basis.at(kernel), replace(basis, signs=None).at(kernel)
        times = take_turns(
            3, fast=lambda m=ours, X=X: m.block(X), product=lambda m=dense_map, X=X: m.block(X)
        )
        name = f"4,096 structured features, {d} columns: by products over ours"
        found.append(
            at_least(name, _s(times["fast"]), _s(times["product"]), times["product"] / times["fast"], 1)
        )
    return found


CASES = {
    "exact": (4000, gm.Exact()),
    "vfe": (40_000, gm.Sparse(1000)),
    "fourier": (100_000, gm.Fourier(1000)),
}


def planning() -> list[Result]:
    """Predicted memory and time against measured ones: of an evaluation the time, of a fit with an evaluation
    the memory, in a process of its own."""
    found = []
    for label, (n, method) in CASES.items():
        gp = _fitted(3000, method)  # compiled
        gp.log_evidence(return_grad=True)
        gp = _fitted(n, method)
        predicted = calibrate(8).seconds(method.work(n, 8, 1))
        measured = take_turns(2, run=lambda gp=gp: gp.log_evidence(return_grad=True))["run"]
        ratio, name = measured / predicted, f"plan, {label}, n = {n:,}"
        found.append(
            Result(
                f"{name}: time measured over predicted",
                _s(measured),
                _s(predicted),
                ratio,
                "0.5 to 2",
                0.5 <= ratio <= 2,
            )
        )
        # Here the heap has been used before, and what is used again does not show.
        run = subprocess.run([sys.executable, __file__, label], capture_output=True, text=True, check=True)
        needed, peak = method.bytes_needed(n, 8, 1), int(run.stdout)
        sizes, share = (f"{peak / 1e6:.0f} MB", f"{needed / 1e6:.0f} MB"), peak / needed
        found.append(
            Result(
                f"{name}: memory measured over predicted",
                *sizes,
                share,
                "0.75 to 1.25",
                0.75 <= share <= 1.25,
            )
        )
    return found


def _fitted(n: int, method: Engine) -> gm.GPRegressor:
    X, y = _rows(n)
    return gm.GPRegressor(
        1.0 * gm.RBF(np.full(8, 2.0)), noise=0.05, method=method, optimize=False, random_state=0
    ).fit(X, y)


def _rows(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, 8))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(n)


def peak_of_case(label: str) -> int:
    """The memory that a choice of features, an evaluation and the final inference add to this process, beyond
    the data and what compiling takes."""
    n, method = CASES[label]
    few = {"exact": gm.Exact(), "vfe": gm.Sparse(600), "fourier": gm.Fourier(600)}[label]
    model = Model(1.0 * gm.RBF(np.full(8, 2.0)), ZeroMean(), Gaussian(0.05))

    def run(data: Data, method: Scheme) -> None:
        ready = method.prepared(model, data, np.random.default_rng(0))
        ready.evidence_and_gradient(model, data, Workspace())
        ready.infer(model, data)

    tables = [_rows(rows) for rows in (1500, n)]
    small, large = (Data(X, y[:, None], np.ones(1)) for X, y in tables)
    run(small, closed(few))  # compiled, with tiles of the same size
    return peak_extra_bytes(lambda: run(large, closed(method)))


def dataset(name: str, split: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray] | None:
    """Training and test rows of a published split, z-scored by the training rows; None where the data are not
    at hand."""
    path = Path(os.environ.get("GRAMIAN_DATA", ""), f"{name}.npz")
    if not path.is_file():
        print(f"  {name}.npz is not in GRAMIAN_DATA: left out")
        return None
    with np.load(path, allow_pickle=False) as file:
        X, y, test = (
            file["X"].astype(float),
            file["y"].astype(float).ravel(),
            file["test_mask"][:, split].astype(bool),
        )
    X = X[:, np.std(X[~test], axis=0) > 0]
    X = (X - X[~test].mean(axis=0)) / X[~test].std(axis=0)
    y = (y - y[~test].mean()) / y[~test].std()
    return X[~test], y[~test], X[test], y[test]


def _anonymous() -> int:
    """Resident memory that is not a file's: what a memory map brings in can be dropped at any time."""
    words = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line
    )
    return int(words["RssAnon"].split()[0]) * 1024


def _s(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 10 else f"{seconds:.0f} s"


BENCHMARKS = {
    "vfe": vfe,
    "features": features,
    "products": products,
    "preconditioned": preconditioned,
    "sampling": sampling,
    "hadamard": hadamard,
    "planning": planning,
}

if __name__ == "__main__":
    print(peak_of_case(sys.argv[1]))
