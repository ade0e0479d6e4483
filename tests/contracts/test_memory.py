"""Memory budgets, measured as the kernel of the operating system sees them, in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

PROLOGUE = """
    import numpy as np
    import gramian as gm
    from gramian.gram import tiles
    from gramian.linalg import threads

    # each has tiles of its own at work, which on many cores would be more than the small matrices here
    gm.set_threads(min(threads.count(), 2))

    def status(name):
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

    class Peak:
        '''Bytes beyond what was there before, at the worst moment.'''
        def __enter__(self):
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")  # the high-water mark starts anew
            self.before = status("VmRSS")
            return self

        def __exit__(self, *_):
            self.bytes = status("VmHWM") - self.before
"""


def measured(code: str) -> list[float]:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peak memory is read from /proc, which Linux alone has")
    whole = textwrap.dedent(PROLOGUE) + textwrap.dedent(code)
    # no faster with two while other tests run, and far slower at times
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", whole],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=one_thread,
    )
    assert done.returncode == 0, done.stderr
    return [float(word) for word in done.stdout.split()]


def test_the_measure_sees_an_array():
    small, large = measured("""
        with Peak() as small:
            np.ones(1000).sum()
        with Peak() as large:
            np.ones(10_000_000).sum()
        print(small.bytes, large.bytes)
    """)
    assert small < 5e6
    assert 78e6 < large < 100e6


def test_evidence_with_gradient_holds_one_matrix():
    n = 4500
    gradient, alone = measured(f"""
        rng = np.random.default_rng(0)
        X = rng.normal(size=({n}, 8))
        y = np.sin(X[:, 0])
        kernel = 1.3 * gm.RBF(np.full(8, 2.0))
        gm.GPRegressor(kernel, noise=0.1, optimize=False).fit(X[:1100], y[:1100]).log_evidence(
            return_grad=True
        )  # compiled
        gp = gm.GPRegressor(kernel, noise=0.1, optimize=False).fit(X, y)
        with Peak() as gradient:
            gp.log_evidence(return_grad=True)
        with Peak() as alone:
            gp.log_evidence()
        print(gradient.bytes, alone.bytes)
    """)
    assert gradient < 1.5 * 8 * n**2
    assert alone < 1.5 * 8 * n**2
    assert gradient > 0.9 * 8 * n**2  # or the measure is blind


def test_fitting_holds_one_matrix():
    """The array of the search is given back before that of the posterior is taken."""
    n = 5000
    (peak,) = measured(f"""
        rng = np.random.default_rng(0)
        X = rng.normal(size=({n}, 3))
        y = np.sin(X[:, 0]) + 0.1 * rng.normal(size={n})
        kernel = 1.3 * gm.RBF(np.full(3, 1.0))
        from gramian.inference import RuleOnEngine

        plain, calls = RuleOnEngine.evidence_and_gradient, []

        def once(self, *given):
            calls.append(1)
            if len(calls) == 2:
                raise KeyboardInterrupt  # which keeps the first, and goes on with the posterior
            return plain(self, *given)

        RuleOnEngine.evidence_and_gradient = once
        gm.GPRegressor(kernel, noise=0.1, method="exact").fit(X[:1100], y[:1100])  # compiled
        calls.clear()
        with Peak() as peak:
            gp = gm.GPRegressor(kernel, noise=0.1, method="exact").fit(X, y)
        assert gp.outcome_.evaluations == 1
        print(peak.bytes)
    """)
    assert 0.9 * 8 * n**2 < peak < 1.5 * 8 * n**2


def test_memory_of_predictions_does_not_grow_with_their_number():
    """Beyond the answers themselves: a block of rows (64 MB), its copies, and no more, for four times the
    points."""
    few, many, few_means, many_means = measured("""
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        gp = gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False).fit(X, np.sin(X[:, 0]))
        Z = rng.normal(size=(240_000, 2))
        gp.predict(Z[:60_000], return_std=True), gp.predict(Z[:60_000])
        peaks = []
        for settings in ({"return_std": True}, {}):
            for n in (60_000, 240_000):
                with Peak() as peak:
                    gp.predict(Z[:n], **settings)
                peaks.append(peak.bytes)
        print(*peaks)
    """)
    # what 180,000 more points need themselves: a mean and a standard deviation each
    answers = 8 * 180_000 * 2
    assert many < few + 4 * answers + 20e6
    assert many < 350e6
    assert many_means < few_means + 4 * answers + 20e6
    assert many_means < 100e6
