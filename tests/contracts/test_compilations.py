"""XLA compiles one program for a kernel's structure and a tile size, whatever the rows and the parameters
are. A program that comes from the folder of compiled ones counts as one that was compiled."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import gramian as gm
from gramian.engines.base import Use
from gramian.gram import programs, tiles
from gramian.inference import asked

EVENT = "/jax/core/compile/backend_compile_duration"
_compiled: list[float] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, seconds, **_: _compiled.append(seconds) if event == EVENT else None
)


@pytest.fixture
def count():
    """How many compilations there have been since the last call."""

    def since() -> int:
        number = len(_compiled)
        _compiled.clear()
        return number

    since()
    return since


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)


def everything(gp, X, y):
    gp.fit(X, y)
    gp.predict(X[:10], return_std=True)
    gp.predict(X, return_std=True)
    gp.log_evidence(return_grad=True)
    gp.loo()


def test_the_count_sees_a_compilation(count):
    jax.jit(lambda x: x * 17.25 + 3)(1.0)
    assert count() >= 1


def test_growing_from_200_to_400_rows_compiles_nothing_after_the_first(count, data):
    X, y = data
    kernel = 1.1 * gm.Matern32([0.7, 0.9]) + gm.Linear(0.3)
    for n in (200, 201):
        everything(gm.GPRegressor(kernel, noise=0.1, optimize=False), X[:n], y[:n])
    count()
    for n in range(202, 401):
        everything(gm.GPRegressor(kernel, noise=0.1, optimize=False), X[:n], y[:n])
    assert count() == 0


def test_a_series_that_grows_has_one_program(count):
    """Of chunks side by side up to the next width, whatever the parameters, steps and sites are."""
    rng = np.random.default_rng(0)

    def evidence(n, lengthscale):
        t = np.sort(rng.uniform(0, n, n)) if n % 2 else np.arange(n, dtype=float)
        prior = gm.StateSpace().at(1.3 * gm.Matern32(lengthscale), t[:, None], Use())
        prior.observe(np.where(rng.random(n) < 0.1, np.inf, 0.1), rng.standard_normal((n, 1))).pullback()

    evidence(33_001, 1.0)
    count()
    for n in (34_000, 37_001, 40_960):
        evidence(n, 0.01 * n)
    assert count() == 0


def test_a_likelihood_is_compiled_once_for_some_hundred_rows_and_some_thousand(count):
    """A search on a part of the rows has then compiled what the inference on all of them asks."""
    rng = np.random.default_rng(0)
    y, mean, var = rng.integers(0, 2, 3000).astype(float), rng.normal(size=3000), rng.gamma(2.0, size=3000)

    def ask(n):
        asked.ask(gm.Bernoulli("logit"), "expected", y[:n], mean[:n], var[:n])

    ask(150)
    count()
    for n in (400, 449, 700, 3000):
        ask(n)
    assert count() == 0


@pytest.mark.parametrize(
    "kernel",
    [
        gm.RBF([0.7, 0.9]),
        1.1 * gm.Matern12(0.7) + gm.Linear(0.3),
        gm.Matern32(0.7) * gm.Periodic(1.0, 2.0) + gm.Constant(0.5),
        gm.Matern52(0.7).on(0) + gm.RationalQuadratic(0.7).on(1) + gm.Polynomial(2),
    ],
    ids=str,
)
def test_few_rows_of_common_kernels_compile_nothing_at_all(count, data, kernel):
    X, y = data
    for n in (1, 2, 17, 64, 65, 129, 200, 257, 399):
        gp = gm.GPRegressor(kernel, noise=0.1, optimize=False, mean="linear").fit(X[:n], y[:n])
        for m in (1, 3, 70, 300):
            gp.predict(X[:m], return_std=True)
            gp.predict(X[:m])
        gp.log_evidence(return_grad=True)
        gp.loo()
    assert count() == 0


def test_fitting_the_default_model_again_compiles_nothing(count, data):
    X, y = data
    gm.GPRegressor(n_restarts=0).fit(X[:200], y[:200]).predict(X[:10], return_std=True)
    count()
    for n in (201, 256, 257, 300):
        gm.GPRegressor(n_restarts=1, random_state=n).fit(X[:n], 50 * y[:n] + n).predict(
            X[:10], return_std=True
        )
    assert count() == 0


def test_neither_values_nor_priors_nor_bounds_recompile(count, data):
    X, y = data
    X, y = X[:50], y[:50]
    everything(gm.GPRegressor(1.0 * gm.RBF(1.0), noise=0.1, optimize=False), X, y)
    count()
    for scale, lengthscale, noise in [
        (2.5, 0.3, 0.2),
        (gm.fixed(2.0), gm.param(0.4, prior=gm.LogNormal(0, 1)), gm.fixed(0.5)),
        (gm.param(1.0, bounds=(0.1, 9.0)), gm.fixed(0.7), gm.param(0.3, prior=gm.Gamma(2, 1))),
    ]:
        everything(gm.GPRegressor(scale * gm.RBF(lengthscale), noise=noise, optimize=False), X, y)
    assert count() == 0


def test_few_tile_sizes(data):
    """Three sizes in all, so at most three programs of a kind."""
    assert len({tiles.tile_size(n) for n in range(1, 20_000)}) == 3


def test_only_one_triangle_is_computed(monkeypatch):
    """A symmetric matrix of 5 x 5 tiles takes 15 of them."""
    calls = []
    original = programs.tile
    monkeypatch.setattr(programs, "tile", lambda *arguments: calls.append(1) or original(*arguments))
    n = 4 * 256 + 3
    X = np.random.default_rng(0).normal(size=(min(n, 1024), 1))
    blocks = -(-len(X) // tiles.tile_size(len(X)))
    tiles.fill(gm.RBF(1.0), X, np.empty((len(X), len(X)), order="F"))
    assert len(calls) == blocks * (blocks + 1) // 2


def test_means_alone_compute_no_variances(monkeypatch, data):
    X, y = data
    gp = gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False).fit(X[:80], y[:80])
    monkeypatch.setattr(type(gp.posterior_), "_explained", lambda *_: pytest.fail("variances were computed"))
    assert gp.predict(X).shape == (400,)
