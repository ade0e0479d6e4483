"""A forked process answers what NumPy can and refuses what needs threads of JAX: it never waits for them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import gramian as gm
from gramian.gram import programs
from gramian.inference.asked import PREDICTED, Asked
from gramian.likelihoods import (
    Bernoulli,
    Beta,
    Binomial,
    Gamma,
    Gaussian,
    Heteroscedastic,
    NegativeBinomial,
    Ordinal,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")

# `in_child(work)` gives what it returns in a fork, or ends with the stack of a child that waits.
HEAD = """
    import faulthandler, os, pickle, sys, warnings
    warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # as JAX says
    warnings.filterwarnings("ignore", ".*multi-threaded.*fork", DeprecationWarning)  # as Python from 3.12 on
    import numpy as np
    import gramian as gm

    def in_child(work):
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            faulthandler.dump_traceback_later(120, exit=True)
            try:
                answer = work()
            except gm.GramianError as error:
                answer = error
            with os.fdopen(there, "wb") as file:
                pickle.dump(answer, file)
            os._exit(0)
        os.close(there)
        with os.fdopen(here, "rb") as file:
            sent = file.read()
        assert os.waitpid(pid, 0)[1] == 0
        return pickle.loads(sent)

    def used_jax():
        bridge = sys.modules.get("jax._src.xla_bridge")
        return bridge is not None and bridge.backends_are_initialized()

    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(600, 2)), rng.normal(size=(900, 2))
    f = np.sin(2 * X[:, 0]) + X[:, 1]
"""


def run(code: str) -> None:
    """A program of its own, since forks belong to no test process; one that waits is ended."""
    whole = textwrap.dedent(HEAD) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, timeout=400, check=False
    )
    assert done.returncode == 0, done.stderr


def test_predictions_after_the_parent_used_jax():
    run("""
        kernels = [
            1.5 * gm.RBF([0.7, 0.9]),
            gm.Matern32(0.8) + gm.Linear(0.3),
            gm.RationalQuadratic(1.0) * gm.Periodic(1.0, 3.0),
            gm.Matern12(1.0).on(0) + gm.Constant(2.0),
        ]
        # more rows than take no tiles, and more new ones
        models = [gm.GPRegressor(k, noise=0.1, mean="linear", optimize=False).fit(X, f) for k in kernels]
        models.append(gm.GPRegressor(gm.RBF(), method="fourier", noise=0.1, optimize=False).fit(X, f))
        told = [gp.predict(X_new, return_std=True) for gp in models]
        assert used_jax()
        for gp, before in zip(models, told):
            after = in_child(lambda: gp.predict(X_new, return_std=True))
            np.testing.assert_allclose(after, before, rtol=0, atol=1e-10)
        cov = in_child(lambda: models[0].predict(X_new[:30], return_cov=True)[1])
        np.testing.assert_allclose(cov, models[0].predict(X_new[:30], return_cov=True)[1], atol=1e-10)
    """)


def test_classes_and_counts_after_the_parent_used_jax():
    run("""
        rows, kernel = slice(0, 60), gm.RBF(1.0)
        two = gm.GPClassifier(kernel, optimize=False).fit(X[rows], np.where(f[rows] > 0, "yes", "no"))
        three = gm.GPClassifier(kernel, optimize=False).fit(X[rows], np.digitize(f[rows], [-0.5, 0.5]))
        counts = gm.GPRegressor(kernel, likelihood="poisson", optimize=False)
        counts.fit(X[rows], np.round(np.exp(f[rows])))
        assert used_jax()
        for gp in (two, three):
            after = in_child(lambda: gp.predict_proba(X_new))
            np.testing.assert_allclose(after, gp.predict_proba(X_new), atol=1e-12)
            assert (in_child(lambda: gp.predict(X_new)) == gp.predict(X_new)).all()
        after = in_child(lambda: counts.predict(X_new, return_std=True))
        np.testing.assert_allclose(after, counts.predict(X_new, return_std=True), rtol=1e-10)
    """)


def test_fits_and_whole_files_after_the_parent_used_jax(tmp_path):
    run(f"""
        gp = gm.GPRegressor(gm.RBF(1.0), noise=0.1).fit(X[:40], f[:40])
        gp.save({str(tmp_path / "model.gp")!r})
        gp.predict_gradient(X_new[:3])
        assert used_jax()
        fitted = in_child(lambda: gm.GPRegressor(gm.RBF(1.0), noise=0.1).fit(X[:40], f[:40]).predict(X_new))
        np.testing.assert_allclose(fitted, gp.predict(X_new), atol=1e-6)
        fixed = gm.GPRegressor(gm.RBF(1.0), optimize=False)
        evidence = lambda: fixed.fit(X, f).log_evidence(return_grad=True)
        many, here = in_child(evidence), evidence()
        np.testing.assert_allclose(many[0], here[0], rtol=1e-9)
        np.testing.assert_allclose(many[1], here[1], rtol=1e-6)
        loaded = in_child(lambda: gm.load({str(tmp_path / "model.gp")!r}).predict(X_new))
        np.testing.assert_allclose(loaded, gp.predict(X_new), atol=1e-12)
    """)


def test_what_needs_jax_is_refused_at_once():
    run("""
        from gramian.errors import ForkError

        class Mine(gm.RBF):
            pass

        own = gm.GPRegressor(Mine(1.0), noise=0.1, optimize=False).fit(X[:30], f[:30])
        own.predict(X_new[:3])
        labels = f[:30] > 0
        assert used_jax()
        for work in (
            lambda: own.predict(X_new),
            lambda: own.predict_gradient(X_new),
            lambda: gm.GPClassifier().fit(X[:30], labels),
            lambda: gm.GPRegressor(inference="mcmc").fit(X[:30], f[:30]),
        ):
            error = in_child(work)
            assert isinstance(error, ForkError), error
            assert 'get_context("spawn")' in str(error) and "loky" in str(error)
        own.predict(X_new)  # the parent has all it had
    """)


def test_a_fork_before_jax_was_used_can_do_everything(tmp_path):
    run(f"""
        def everything():
            gp = gm.GPClassifier(gm.RBF(1.0), optimize=False).fit(X[:30], f[:30] > 0)
            assert used_jax()
            return gp.predict_proba(X_new)

        first = in_child(everything)
        # few rows of a regression, a file that is written and one that is read use none of it
        gp = gm.GPRegressor(gm.RBF(1.0), noise=0.1).fit(X[:40], f[:40])
        gp.predict(X_new[:5])
        gp.save({str(tmp_path / "model.gp")!r})
        loaded = gm.load({str(tmp_path / "model.gp")!r})
        assert not used_jax()
        slopes = in_child(lambda: loaded.predict_gradient(X_new[:3])[0])
        np.testing.assert_allclose(slopes, gp.predict_gradient(X_new[:3])[0], rtol=1e-9)
        np.testing.assert_allclose(first, everything(), rtol=1e-9)
    """)


def test_a_classifier_that_is_only_loaded_leaves_jax_to_the_children(tmp_path):
    X = np.random.default_rng(0).normal(size=(30, 2))
    gm.GPClassifier(gm.RBF(1.0), optimize=False).fit(X, X[:, 0] > 0).save(tmp_path / "model.gp")
    run(f"""
        gp = gm.load({str(tmp_path / "model.gp")!r})
        assert not used_jax()
        first = in_child(lambda: gp.predict_proba(X_new))
        np.testing.assert_allclose(first, gp.predict_proba(X_new), atol=1e-12)
    """)


def test_the_library_s_own_threads_are_made_anew():
    run("""
        import threading
        from gramian.linalg import threads
        from gramian.linalg.threads import each, one_blas_thread
        from threadpoolctl import threadpool_info

        gm.set_threads(2)
        square = lambda k: (k**2, threading.current_thread().name)
        assert [k for k, _ in each(square, range(20))] == [k**2 for k in range(20)]
        at_work, done = threading.Event(), threading.Event()

        def busy():
            with one_blas_thread(), threads._lock:  # as one who is just entering holds it
                at_work.set()
                done.wait(60)

        thread = threading.Thread(target=busy)
        thread.start()
        at_work.wait(60)

        def in_fork():
            with one_blas_thread():
                inside = [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]
            return list(each(square, range(20))), inside

        answers, inside = in_child(in_fork)
        done.set()
        thread.join()
        assert [k for k, _ in answers] == [k**2 for k in range(20)]
        assert all(name.startswith("gramian") for _, name in answers)
        assert set(inside) == {1}
    """)


def test_a_fork_may_end_by_itself():
    """As workers of a server do: its interpreter is taken down, and XLA with it."""
    run("""
        import jax
        gm.forks, jax.devices()
        assert used_jax()
        for _ in range(2):
            pid = os.fork()
            if pid == 0:
                sys.exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        assert in_child(lambda: 1) == 1
    """)


def test_pools_of_processes():
    run("""
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        gp = gm.GPClassifier(gm.RBF(1.0), optimize=False).fit(X[:30], f[:30] > 0)
        assert used_jax()
        with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
            parts = list(pool.map(gp.predict_proba, np.array_split(X_new, 3)))
        np.testing.assert_allclose(np.concatenate(parts), gp.predict_proba(X_new), atol=1e-12)
    """)


# The forms in NumPy themselves. -----------------------------------------------------------------------------

LIKELIHOODS = [
    Bernoulli(),
    Bernoulli("probit"),
    Binomial(),
    Binomial("probit"),
    Beta(5.0),
    Gamma(2.0),
    Gaussian(0.3),
    Heteroscedastic(),
    NegativeBinomial(0.4),
    Ordinal(4),
    Poisson(),
    RobustMax(3),
    Softmax(3),
    StudentT(0.5, 5.0),
    StudentT(0.5, 1.5),
]


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=repr)
def test_predictions_of_likelihoods_are_the_same_in_numpy(likelihood, rng):
    asked, L = Asked(likelihood).bare(), likelihood.latents
    mean, var = rng.normal(0, 3, (40, L)), rng.gamma(1.0, 2.0, (40, L))
    beside = rng.integers(1, 9, (40, len(likelihood.columns) - 1)).astype(float)
    roots = rng.normal(size=(40, L * L))
    tables = {
        "predictive": np.column_stack([beside, mean, var]),
        "probabilities": np.column_stack([mean, var]),
        "scaled_probabilities": np.column_stack([mean, var]),
        "joint_probabilities": np.column_stack([mean, roots]),
    }
    assert set(tables) == set(PREDICTED)
    several = isinstance(likelihood, (Softmax, RobustMax))
    refused = {"predictive"} if several else {"joint_probabilities"}  # of classes; of one latent
    if not several and not isinstance(likelihood, (Bernoulli, Ordinal)):
        refused |= {"probabilities"}
    if L > 1:
        refused |= {"scaled_probabilities"}
    for question in sorted(set(PREDICTED) - refused):
        assert asked.in_numpy(question)
        found = getattr(asked, question)(tables[question])
        assert type(found) is np.ndarray  # JAX would have left its mark
        np.testing.assert_allclose(
            found, compiled_rows(asked, question, tables[question]), rtol=1e-10, atol=1e-14
        )


def compiled_rows(asked, question, table):
    import jax

    with jax.enable_x64(True):
        return np.asarray(programs.rows(question, asked, table))


def test_a_likelihood_of_one_s_own_is_not_taken_for_its_parent():
    class Mine(Bernoulli):
        """Whose formulas may be another's."""

    assert Bernoulli().predicts_in_numpy
    assert not Mine().predicts_in_numpy


def test_compiled_programs_have_one_gate():
    """All programs of XLA outside the chains, which are refused as a whole, go through `forks.compiled`."""
    root = os.path.dirname(gm.__file__)
    found = []
    for folder, _, files in os.walk(root):
        for name in files:
            path = os.path.relpath(os.path.join(folder, name), root)
            if name.endswith(".py") and not path.startswith(
                ("_conformance", os.path.join("inference", "mcmc"))
            ):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found += [path] if "jax.jit(" in (text := file.read()) or "@jax.jit" in text else []
    assert found == ["forks.py"]
