"""Few rows: fits, predictions and compilations, against scikit-learn.

    python benchmarks/small.py [rounds]

Both fit a scaled RBF kernel with three lengthscales and a noise by L-BFGS-B, from the same start to the same
evidence, and take turns in one process with one BLAS thread; the best time of each counts. Times are those of
the process (CPU time), so that neighbours on the machine do not count.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import jax
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as theirs
from threadpoolctl import threadpool_limits

import gramian as gm

ROWS = (20, 50, 100, 200, 400)
EVENT = "/jax/core/compile/backend_compile_duration"


def table(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=n)


def ours(X: np.ndarray, y: np.ndarray) -> gm.GPRegressor:
    return gm.GPRegressor(
        1.0 * gm.RBF([1.0, 1.0, 1.0]), noise=0.1 * np.var(y), mean="zero", n_restarts=0
    ).fit(X, y)


def sklearns(X: np.ndarray, y: np.ndarray) -> GaussianProcessRegressor:
    kernel = theirs.ConstantKernel(1.0) * theirs.RBF([1.0, 1.0, 1.0]) + theirs.WhiteKernel(0.1)
    return GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)


def best(rounds: int, calls: int, *contenders: Callable[[], object]) -> list[float]:
    """The best CPU time of a call of each, in milliseconds; they take turns, after one round that is not
    counted."""
    times: list[list[float]] = [[] for _ in contenders]
    for number in range(rounds + 1):
        for own, run in zip(times, contenders, strict=True):
            began = time.process_time()
            for _ in range(calls):
                run()
            if number:
                own.append((time.process_time() - began) / calls)
    return [1e3 * min(own) for own in times]


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    compiled: list[float] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **_: compiled.append(seconds) if event == EVENT else None
    )
    print("rows  fit: gramian    sklearn  ratio  evidence of both            predict one    sklearn ratio")
    for n in ROWS:
        X, y = table(n)
        a, b = best(rounds, 1, lambda X=X, y=y: ours(X, y), lambda X=X, y=y: sklearns(X, y))
        mine, other = ours(X, y), sklearns(X, y)
        c, d = best(
            rounds,
            20,
            lambda gp=mine, X=X: gp.predict(X[:1], return_std=True),
            lambda gp=other, X=X: gp.predict(X[:1], return_std=True),
        )
        evidence = f"{float(mine.evidence_):.5f}, {other.log_marginal_likelihood_value_:.5f}"
        print(
            f"{n:4}  {a:9.2f} ms {b:7.2f} ms  {b / a:5.2f}  {evidence:27}"
            f" {c:8.3f} ms {d:7.3f} ms {c / d:5.2f}"
        )
    compiled.clear()
    sizes = np.random.default_rng(0).integers(3, 400, 40)
    X, y = table(400)
    for n in sizes:
        gp = ours(X[:n], y[:n])
        for m in (1, n // 2 + 1, 400):
            gp.predict(X[:m], return_std=True)
    print(f"compilations in {len(sizes)} fits of 3 to 400 rows with 3 predictions each: {len(compiled)}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
