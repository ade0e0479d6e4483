"""Importing and using gramian changes nothing for the code around it: JAX stays in 32 bits, warnings and
random numbers stay as they were."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import warnings

import jax
import jax.numpy as jnp
import numpy as np

import gramian as gm


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr
    return done.stdout.strip()


def test_import_and_fit_leave_jax_and_numpy_as_they_were():
    assert (
        run("""
            import os, threading, warnings
            import jax, jax.numpy as jnp, numpy as np
            # which set filters and variables of their own
            import scipy.optimize, scipy.stats, sklearn.base, sklearn.utils.validation
            before = {name: getattr(jax.config, name) for name in dir(jax.config) if name.startswith("jax_")}
            filters, environment = list(warnings.filters), dict(os.environ)
            errors, printing = np.geterr(), np.get_printoptions()
            double = jax.jit(lambda x: 2 * x)
            assert double(jnp.ones(2)).dtype == jnp.float32

            import gramian as gm
            assert not jax.config.jax_enable_x64
            state = np.random.get_state()[1].copy()
            X = np.linspace(0, 1, 20)[:, None]
            gp = gm.GPRegressor(random_state=0).fit(X, np.sin(6 * X[:, 0]))
            mean, cov = gp.predict(X, return_cov=True)
            assert mean.dtype == cov.dtype == gp.sample(X).dtype == gp.kernel_(X).dtype == np.float64

            assert not jax.config.jax_enable_x64
            assert double(jnp.ones(2)).dtype == jnp.float32
            assert jnp.asarray(np.ones(2)).dtype == jnp.float32
            after = {name: getattr(jax.config, name) for name in dir(jax.config) if name.startswith("jax_")}
            assert before == after, {name for name in before if before[name] != after.get(name)}
            assert list(warnings.filters) == filters and dict(os.environ) == environment
            assert np.geterr() == errors and np.get_printoptions() == printing
            assert np.array_equal(np.random.get_state()[1], state)
            assert threading.active_count() == 1, threading.enumerate()
            print("as before")
        """)
        == "as before"
    )


def test_a_users_kernel_in_float32_code_beside_it():
    @jax.jit
    def theirs(x):
        return jnp.sin(x) * 3

    x = jnp.linspace(0, 1, 5)
    before = theirs(x)
    gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False).fit(
        np.arange(5.0)[:, None], np.arange(5.0)
    ).predict([[0.5]])
    after = theirs(x)
    assert before.dtype == after.dtype == jnp.float32
    assert np.array_equal(before, after)


def test_a_user_in_64_bits_gets_the_same_numbers():
    X = np.random.default_rng(0).normal(size=(30, 2))
    y = np.sin(X[:, 0])

    def answer():
        return gm.GPRegressor(gm.RBF(1.0), noise=0.1, n_restarts=0).fit(X, y).predict(X)

    with jax.enable_x64(True):
        there = answer()
    assert np.array_equal(there, answer())


def test_import_is_quiet_and_light():
    loaded = run("""
        import sys
        import gramian
        print(*[
            name for name in
            ("matplotlib", "rich", "typer", "gramian.cli", "gramian.plots", "sklearn.gaussian_process")
            if name in sys.modules
        ])
    """)
    assert loaded == ""


def test_caught_warnings_are_not_needed():
    """No part of a fit relies on silencing warnings for the whole process."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        gm.GPRegressor(n_restarts=1).fit(np.arange(6.0)[:, None], np.zeros(6)).summary()
        assert list(warnings.filters) == before
