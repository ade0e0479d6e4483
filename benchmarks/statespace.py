"""Long series by the Kalman filter: an evidence, with and without its gradient, beside celerite2's.

    python benchmarks/statespace.py [ROWS ...]      by default 100,000 and 1,000,000; a table in Markdown

Matern-3/2, irregular times, noise 0.1, the best of some runs in turn. celerite2 is a peer of the benchmark
alone: it runs in a process of its own, by the first interpreter of GRAMIAN_PEERS (paths, separated as in
PATH) that has it, or by this one. Its kernel is Matern-3/2 up to a small number of its own, so that
evidences differ in the seventh digit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

SEED, ROUNDS = 0, 7
NOT_INSTALLED = 3  # the exit code


def series(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    t = np.sort(rng.uniform(0, n / 100, n))
    return t, np.sin(t) + 0.3 * rng.standard_normal(n)


def best(run: Callable[[], float]) -> tuple[float, float]:
    """Seconds of the best of some runs after one to compile, and what it gives."""
    value, times = run(), []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times), value


def peer(n: int) -> None:
    try:
        import celerite2
    except ImportError:
        sys.exit(NOT_INSTALLED)
    t, y = series(n)

    def run() -> float:
        gp = celerite2.GaussianProcess(celerite2.terms.Matern32Term(sigma=1.0, rho=1.0))
        gp.compute(t, diag=np.full(n, 0.1))
        return float(gp.log_likelihood(y))

    print(json.dumps(best(run)))


def asked(n: int) -> tuple[float, float] | None:
    """celerite2's seconds and evidence, from the first interpreter that has it."""
    for python in [*filter(None, os.environ.get("GRAMIAN_PEERS", "").split(os.pathsep)), sys.executable]:
        done = subprocess.run(
            [python, __file__, "--peer", str(n)], capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            seconds, value = json.loads(done.stdout)
            return float(seconds), float(value)
    return None


def ours(n: int) -> tuple[tuple[float, float], float]:
    """Seconds and evidence; seconds with the gradient."""
    import gramian as gm
    from gramian.engines.base import Workspace
    from gramian.inference import Data, Model, RuleOnEngine
    from gramian.inference.conjugate import Conjugate
    from gramian.likelihoods import Gaussian
    from gramian.means import ZeroMean

    t, y = series(n)
    scheme, data = RuleOnEngine(Conjugate(), gm.StateSpace()), Data(t[:, None], y[:, None], np.ones(1))
    model, room = Model(1.0 * gm.Matern32(1.0), ZeroMean(), Gaussian(0.1)), Workspace()
    value = best(lambda: scheme.evidence(model, data, room).value)
    return value, best(lambda: scheme.evidence_and_gradient(model, data, room)[0].value)[0]


def main() -> None:
    if sys.argv[1:2] == ["--peer"]:
        peer(int(sys.argv[2]))
        return
    print("| rows | evidence | with gradient | ratio | celerite2 | ours / celerite2 | difference a row |")
    print("|---|---|---|---|---|---|---|")
    for n in [int(given) for given in sys.argv[1:]] or [100_000, 1_000_000]:
        (seconds, value), graded = ours(n)
        found = asked(n)
        theirs = ["not installed", "", ""]
        if found is not None:
            theirs = [f"{found[0]:.4f} s", f"{seconds / found[0]:.2f}", f"{abs(value - found[1]) / n:.1e}"]
        row = [f"{n:,}", f"{seconds:.4f} s", f"{graded:.4f} s", f"{graded / seconds:.1f}", *theirs]
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
