"""Speed and memory of gramian as ratios, each measured against its peer or its limit in one run.

    python benchmarks/run.py            all of them, a few minutes
    python benchmarks/run.py evidence   those whose name starts so
    GRAMIAN_DATA=folder python ...      with those on real data, from a folder of npz files (uci_kin40k.npz
                                        and so on)
    GRAMIAN_PEERS=python1:python2 ...   with other libraries, each from the first of these interpreters that
                                        has it (benchmarks/peers.py)

Contenders take turns, and the best time of each counts: what else the machine does then hurts both alike.
Ratios are printed beside what is aimed for; a miss is marked, and the exit code is then 1.
"""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.linalg import lapack

import gramian as gm
import inferences
import scale
from common import REST, Result, peak_extra_bytes, take_turns

SEED = 20


def problem(n: int, d: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.5 * np.cos(X[:, 1] * X[:, 2]) + 0.1 * rng.standard_normal(n)


def fixed_model(X: np.ndarray, y: np.ndarray) -> gm.GPRegressor:
    kernel = 1.0 * gm.RBF(np.full(X.shape[1], 2.0))
    return gm.GPRegressor(kernel, mean="zero", noise=0.05, optimize=False, normalize_y=False).fit(X, y)


def sklearn_model(X: np.ndarray, y: np.ndarray, optimizer: str | None = None):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    wide = (1e-10, 1e10)
    kernel = ConstantKernel(1.0, wide) * RBF(np.full(X.shape[1], 2.0), wide) + WhiteKernel(0.05, wide)
    return GaussianProcessRegressor(kernel, alpha=0.0, optimizer=optimizer).fit(X, y)


def evidence_with_gradient() -> list[Result]:
    """One log evidence with gradient against LAPACK's factor and inverse of the same matrix, and against
    scikit-learn."""
    results = []
    for n, rounds in ((2000, 9), (4000, 5)):
        X, y = problem(n)
        ours = fixed_model(X, y)
        K = np.asfortranarray(ours.kernel_(X) + 0.05 * np.eye(n))
        A = K.copy(order="F")

        def factor_and_invert(A: np.ndarray = A) -> None:
            lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
            lapack.dpotri(A, lower=1, overwrite_c=1)

        lapack_times, our_times = [], []
        for number in range(rounds + 1):
            A[...] = K  # not timed
            for times, run in (
                (lapack_times, factor_and_invert),
                (our_times, lambda gp=ours: gp.log_evidence(return_grad=True)),
            ):
                time.sleep(REST)
                began = time.perf_counter()
                run()
                if number:
                    times.append(time.perf_counter() - began)
        theirs = sklearn_model(X, y)
        sk = take_turns(
            2, sklearn=lambda gp=theirs: gp.log_marginal_likelihood(gp.kernel_.theta, eval_gradient=True)
        )["sklearn"]
        mine, limit = min(our_times), min(lapack_times)
        name = f"evidence with gradient, n = {n}, d = 8"
        results.append(
            Result(
                f"{name}: against LAPACK",
                f"{mine:.3f} s",
                f"{limit:.3f} s",
                mine / limit,
                "<= 1.4",
                mine / limit <= 1.4,
            )
        )
        results.append(
            Result(
                f"{name}: scikit-learn over ours",
                f"{mine:.3f} s",
                f"{sk:.2f} s",
                sk / mine,
                ">= 4",
                sk / mine >= 4,
            )
        )
    return results


def memory_of_evidence() -> list[Result]:
    """Peak memory of one evaluation at n = 8000, in units of n^2 doubles."""
    n = 8000
    X, y = problem(n)
    gp = fixed_model(X, y)
    extra = peak_extra_bytes(lambda: gp.log_evidence(return_grad=True))
    ratio = extra / (8 * n * n)
    return [
        Result(
            "memory of evidence with gradient, n = 8000, in n^2 doubles",
            f"{extra / 1e6:.0f} MB",
            f"{8 * n * n / 1e6:.0f} MB",
            ratio,
            "<= 1.5",
            ratio <= 1.5,
        )
    ]


def fitting() -> list[Result]:
    """A whole fit from the same start."""
    X, y = problem(500)
    evidences: dict[str, float] = {}

    def ours() -> None:
        kernel = 1.0 * gm.RBF(np.full(8, 2.0))
        gp = gm.GPRegressor(kernel, mean="zero", noise=0.05, normalize_y=False, n_restarts=0).fit(X, y)
        evidences["ours"] = gp.log_evidence()

    def theirs() -> None:
        evidences["theirs"] = sklearn_model(X, y, "fmin_l_bfgs_b").log_marginal_likelihood_value_

    times = take_turns(3, ours=ours, theirs=theirs)
    ratio, gain = times["theirs"] / times["ours"], evidences["ours"] - evidences["theirs"]
    return [
        Result(
            "fitting n = 500, d = 8: scikit-learn over ours",
            f"{times['ours']:.2f} s",
            f"{times['theirs']:.2f} s",
            ratio,
            ">= 4",
            ratio >= 4,
        ),
        Result(
            "fitting: evidence over scikit-learn's, nats",
            f"{evidences['ours']:.5f}",
            f"{evidences['theirs']:.5f}",
            gain,
            ">= -1e-4",
            gain >= -1e-4,
        ),
    ]


def predicting() -> list[Result]:
    """Mean and std: time against scikit-learn, and memory against the number of points."""
    X, y = problem(2000)
    new = np.random.default_rng(SEED + 1).standard_normal((20_000, 8))
    ours, theirs = fixed_model(X, y), sklearn_model(X, y)
    times = take_turns(
        3,
        ours=lambda: ours.predict(new, return_std=True),
        theirs=lambda: theirs.predict(new, return_std=True),
    )
    ratio = times["theirs"] / times["ours"]
    small = fixed_model(*problem(1000))
    growth = {}
    for points in (100_000, 1_000_000):
        far = np.random.default_rng(SEED).standard_normal((points, 8))
        small.predict(far[:20_000], return_std=True)
        # less the answer's own arrays
        growth[points] = (
            peak_extra_bytes(lambda far=far: small.predict(far, return_std=True)) - 6 * 8 * points
        )
    grew = (growth[1_000_000] - growth[100_000]) / 1e6
    return [
        Result(
            "mean and std, 20,000 points from n = 2000: scikit-learn over ours",
            f"{times['ours']:.2f} s",
            f"{times['theirs']:.2f} s",
            ratio,
            ">= 2",
            ratio >= 2,
        ),
        Result(
            "memory of mean and std, 1,000,000 points beyond 100,000, in MB",
            f"{growth[1_000_000] / 1e6:.0f} MB",
            f"{growth[100_000] / 1e6:.0f} MB",
            grew,
            "<= 30",
            grew <= 30,
        ),
    ]


def starting() -> list[Result]:
    """Fresh processes: the import, and the first fit of 200 rows."""
    data = (
        "import numpy as np; r = np.random.default_rng(0); X = r.standard_normal((200, 4)); y = np.sin(X[:,"
        " 0]) + 0.1 * r.standard_normal(200); "
    )
    sk = (
        "from sklearn.gaussian_process import GaussianProcessRegressor as G; from"
        " sklearn.gaussian_process.kernels import *; "
    )
    programs = {
        "import gramian": "import gramian",
        "import sklearn": "import sklearn",
        "fit gramian": data + "import gramian as gm; gm.GPRegressor().fit(X, y)",
        "fit sklearn": (
            data
            + sk
            + "G(ConstantKernel() * Matern(np.ones(4), nu=2.5) + WhiteKernel(), normalize_y=True).fit(X, y)"
        ),
    }
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": True}
    times = take_turns(
        3,
        **{
            name: lambda code=code: subprocess.run([sys.executable, "-W", "ignore", "-c", code], **quiet)
            for name, code in programs.items()
        },
    )
    ratio = times["import gramian"] / times["import sklearn"]
    later = times["fit gramian"] - times["fit sklearn"]
    return [
        Result(
            "starting: import, over scikit-learn's",
            f"{times['import gramian']:.2f} s",
            f"{times['import sklearn']:.2f} s",
            ratio,
            "<= 1.2",
            ratio <= 1.2,
        ),
        Result(
            "starting: first fit of 200 rows, seconds after scikit-learn's",
            f"{times['fit gramian']:.2f} s",
            f"{times['fit sklearn']:.2f} s",
            later,
            "<= 1.5",
            later <= 1.5,
        ),
    ]


def growing() -> list[Result]:
    """Compilations while data grow from 200 to 400 rows, one at a time."""
    import jax

    compiled = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None
    )
    X, y = problem(400, 3)
    counts = []
    for n in range(200, 401):
        gp = gm.GPRegressor(optimize=False).fit(X[:n], y[:n])
        gp.predict(X[:5], return_std=True)
        gp.log_evidence(return_grad=True)
        counts.append(len(compiled))
    late = counts[-1] - counts[100]
    return [
        Result(
            "growing from 300 to 400 rows: compilations",
            str(late),
            f"{counts[0]} at 200",
            late,
            "= 0",
            late == 0,
        )
    ]


BENCHMARKS = {
    "evidence": evidence_with_gradient,
    "memory": memory_of_evidence,
    "fitting": fitting,
    "predicting": predicting,
    "starting": starting,
    "growing": growing,
    **scale.BENCHMARKS,
    **inferences.BENCHMARKS,
}


def main() -> int:
    chosen = [
        run
        for name, run in BENCHMARKS.items()
        if not sys.argv[1:] or any(name.startswith(word) for word in sys.argv[1:])
    ]
    console = Console(width=150)
    table = Table("what", "gramian", "peer or limit", "ratio", "aim", "")
    for column in (1, 2, 3, 4):
        table.columns[column].justify = "right"
    misses = 0
    for run in chosen:
        for result in run():
            misses += not result.good
            mark = "ok" if result.good else "[bold red]miss[/]"
            table.add_row(result.name, result.ours, result.theirs, f"{result.ratio:.3g}", result.aim, mark)
            console.print(f"  {result.name}: {result.ratio:.3g} (aim {result.aim})", style="dim")
    console.print(table)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
