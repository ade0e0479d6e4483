"""Long series by the Kalman filter: an evidence, with and without its gradient, beside celerite2's.

    python benchmarks/statespace.py [ROWS ...]      by default 100,000 and 1,000,000; a table in Markdown

Matern-3/2, irregular times, noise 0.1. Each takes its turn, TURNS times, so that what else the machine does
meets all of them; the best turn of each counts, on the clock and in time of the processors (of all threads).
celerite2 is a peer of the benchmark alone: it runs in a process of its own, by the first interpreter of
GRAMIAN_PEERS (paths, separated as in PATH) that has it, or by this one. Its kernel is Matern-3/2 up to a
small number of its own, so that evidences differ in the seventh digit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

SEED, TURNS = 0, 40


def series(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    t = np.sort(rng.uniform(0, n / 100, n))
    return t, np.sin(t) + 0.3 * rng.standard_normal(n)


class Turn(NamedTuple):
    """Seconds of the clock and of the processors, and the evidence."""

    clock: float
    processors: float
    value: float


def turn(run: Callable[[], float]) -> Turn:
    began, used = time.perf_counter(), time.process_time()
    value = run()
    return Turn(time.perf_counter() - began, time.process_time() - used, value)


def best(turns: list[Turn]) -> Turn:
    return Turn(*(min(one[k] for one in turns) for k in range(2)), turns[0].value)


def peer(n: int) -> None:
    """A turn for each line that is read."""
    import celerite2

    t, y = series(n)

    def run() -> float:
        gp = celerite2.GaussianProcess(celerite2.terms.Matern32Term(sigma=1.0, rho=1.0))
        gp.compute(t, diag=np.full(n, 0.1))
        return float(gp.log_likelihood(y))

    for _ in sys.stdin:
        print(json.dumps(turn(run)), flush=True)


class Peer:
    """celerite2 in a process of its own."""

    def __init__(self, python: str, n: int) -> None:
        self.process = subprocess.Popen(
            [python, __file__, "--peer", str(n)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self) -> Turn:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        return Turn(*json.loads(self.process.stdout.readline()))


def asked(n: int) -> Peer | None:
    """By the first interpreter that has it."""
    for python in [*filter(None, os.environ.get("GRAMIAN_PEERS", "").split(os.pathsep)), sys.executable]:
        found = subprocess.run([python, "-c", "import celerite2"], stderr=subprocess.DEVNULL, check=False)
        if found.returncode == 0:
            return Peer(python, n)
    return None


def ours(n: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """The evidence; the evidence with its gradient."""
    import gramian as gm
    from gramian.engines.base import Workspace
    from gramian.inference import Data, Model, RuleOnEngine
    from gramian.inference.conjugate import Conjugate
    from gramian.likelihoods import Gaussian
    from gramian.means import ZeroMean

    t, y = series(n)
    scheme, data = RuleOnEngine(Conjugate(), gm.StateSpace()), Data(t[:, None], y[:, None], np.ones(1))
    model, room = Model(1.0 * gm.Matern32(1.0), ZeroMean(), Gaussian(0.1)), Workspace()
    return (
        lambda: scheme.evidence(model, data, room).value,
        lambda: scheme.evidence_and_gradient(model, data, room)[0].value,
    )


def main() -> None:
    if sys.argv[1:2] == ["--peer"]:
        peer(int(sys.argv[2]))
        return
    print("| rows | evidence | with gradient | ratio | celerite2 | ours / celerite2 | difference a row |")
    print("|---|---|---|---|---|---|---|")
    for n in [int(given) for given in sys.argv[1:]] or [100_000, 1_000_000]:
        value, graded = ours(n)
        runs = [lambda value=value: turn(value), lambda graded=graded: turn(graded), asked(n)]
        turns = [[run() for run in runs if run is not None] for _ in range(TURNS + 1)][1:]  # one to compile
        first, second, *rest = (best(list(column)) for column in zip(*turns, strict=True))
        shown = [f"{one.clock * 1e3:.1f} ms ({one.processors * 1e3:.1f})" for one in (first, second)]
        shown.append(f"{second.clock / first.clock:.1f} ({second.processors / first.processors:.1f})")
        for other in rest:
            shown.append(f"{other.clock * 1e3:.1f} ms ({other.processors * 1e3:.1f})")
            shown.append(f"{first.clock / other.clock:.2f} ({first.processors / other.processors:.2f})")
            shown.append(f"{abs(first.value - other.value) / n:.1e}")
        print(f"| {n:,} | {' | '.join(shown if rest else [*shown, 'not installed', '', ''])} |", flush=True)


if __name__ == "__main__":
    main()
