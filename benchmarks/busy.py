"""One evidence with gradient beside busy neighbours, and on a machine that has nothing else to do.

    python benchmarks/busy.py            both
    python benchmarks/busy.py beside     with a busy loop a core, against one thread in the same conditions
    python benchmarks/busy.py idle       against LAPACK's dpotrf + dpotri with its own threads

Contenders are processes of their own, since the number of threads of BLAS is decided when it is loaded; they
take turns many times, and both sides of a ratio come from one run. Beside neighbours medians count, as what a
person waits for; on an idle machine the best times, as what the code costs.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time

BESIDE, IDLE = 1500, ((2000, 25), (4000, 9))

# seconds between turns: threads of OpenBLAS go on looking for work after their last, on the cores of the next
REST = 0.2
CONTENDER = """
import sys, time
import numpy as np
import gramian as gm
from scipy.linalg import lapack

n = int(sys.argv[1])
rng = np.random.default_rng(20)
X = rng.standard_normal((n, 8))
y = np.sin(X[:, 0]) + 0.5 * np.cos(X[:, 1] * X[:, 2]) + 0.1 * rng.standard_normal(n)
kernel = 1.0 * gm.RBF(np.full(8, 2.0))
gp = gm.GPRegressor(kernel, mean="zero", noise=0.05, optimize=False, normalize_y=False).fit(X, y)
gp.log_evidence(return_grad=True)
if sys.argv[2] == "lapack":
    K = np.asfortranarray(gp.kernel_(X) + 0.05 * np.eye(n))
    A = K.copy(order="F")
print("ready", flush=True)
for line in sys.stdin:
    if sys.argv[2] == "lapack":
        A[...] = K
    began = time.perf_counter()
    if sys.argv[2] == "lapack":
        lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
        lapack.dpotri(A, lower=1, overwrite_c=1)
    else:
        gp.log_evidence(return_grad=True)
    print(time.perf_counter() - began, flush=True)
"""


class Contender:
    """A process that does one thing each time it is asked."""

    def __init__(self, what: str, n: int, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CONTENDER, str(n), what],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        self.times: list[float] = []

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def turn(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file=self.process.stdin, flush=True)
        self.times.append(float(self.process.stdout.readline()))

    def end(self) -> None:
        self.process.communicate()


def in_turns(rounds: int, *contenders: Contender) -> None:
    for contender in contenders:
        contender.ready()
    for _ in range(rounds):
        for contender in contenders:
            time.sleep(REST)
            contender.turn()


def beside(rounds: int = 41) -> float:
    """With as many busy loops as cores."""
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "GRAMIAN_NUM_THREADS": "1"}
    several, alone = Contender("ours", BESIDE), Contender("ours", BESIDE, **one)
    cores = len(os.sched_getaffinity(0))
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        in_turns(rounds, several, alone)
    finally:
        for process in loops:
            process.kill()
            process.wait()
        several.end()
        alone.end()
    mine, theirs = statistics.median(several.times), statistics.median(alone.times)
    print(
        f"n = {BESIDE} beside {cores} busy loops: {mine:.3f} s, with one thread {theirs:.3f} s, ratio"
        f" {mine / theirs:.2f} (aim: at most 1.3); slowest {max(several.times):.2f} and"
        f" {max(alone.times):.2f} s"
    )
    return mine / theirs


def idle() -> list[float]:
    """Against LAPACK, which has all cores, too."""
    ratios = []
    for n, rounds in IDLE:
        ours, lapack = Contender("ours", n), Contender("lapack", n)
        try:
            in_turns(rounds, ours, lapack)
        finally:
            ours.end()
            lapack.end()
        mine, limit = min(ours.times), min(lapack.times)
        ratios.append(mine / limit)
        print(
            f"n = {n}: {mine:.3f} s, LAPACK {limit:.3f} s, ratio {mine / limit:.2f} (aim: at most 1.4);"
            f" medians {statistics.median(ours.times):.3f} and {statistics.median(lapack.times):.3f} s"
        )
    return ratios


if __name__ == "__main__":
    asked = sys.argv[1:] or ["beside", "idle"]
    missed = ["beside" in asked and beside() > 1.3, "idle" in asked and max(idle()) > 1.4]
    sys.exit(int(any(missed)))
