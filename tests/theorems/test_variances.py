"""std^2 is the diagonal of cov to the last bit, and never negative: without noise, with equal rows, at
training rows, far away, for one row.

`predict` returns the root of a variance; "to the last bit" is checked on variances, where both come from, and
on their roots.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gramian as gm
from gramian.processes import GaussianProcess

KERNELS = [
    1.3 * gm.RBF(0.8),
    gm.Matern12(2.0),
    gm.Matern52(0.3),
    gm.RBF(30.0),
    gm.Linear(0.5) + gm.Constant(2.0),
    gm.Periodic(1.0, 2.0),
]


def check(gp, Z):
    process, table = gp.posterior_, np.asarray(Z, dtype=float)
    # Two sums of the same n products may differ by n eps times the sum of their sizes, which is large where K
    # is singular and weights cancel.
    sizes = np.abs(process.prior.kernel(table, process.Z)) @ np.abs(process.alpha) * process.prior.scale
    rounding = 4e-16 * (len(process.Z) + 10) * sizes + 1e-15 * np.abs(process.mean(table))
    for target in ("f", "y"):
        mean, std = gp.predict(Z, return_std=True, target=target)
        other, cov = gp.predict(Z, return_cov=True, target=target)
        diagonal = np.einsum("ii...->i...", cov)
        assert np.all(np.isfinite(mean))
        assert np.all(std >= 0)  # False for NaN too
        assert np.all(diagonal >= 0)
        assert np.array_equal(np.sqrt(diagonal), std)
        assert np.array_equal(cov, np.swapaxes(cov, 0, 1))
        assert np.all(np.abs(mean - other) <= rounding.reshape(mean.shape))
    assert np.array_equal(np.einsum("iik->ik", process.cov(table)), process.var(table))
    prior = GaussianProcess(process.prior.kernel, process.prior.mean_function, process.prior.scale)
    assert np.array_equal(np.einsum("iik->ik", prior.cov(table)), prior.var(table))


@given(
    kernel=st.sampled_from(KERNELS),
    n=st.integers(1, 20),
    noise=st.sampled_from([0.0, 1e-12, 1e-3, 5.0]),
    repeats=st.integers(0, 5),
    outputs=st.integers(0, 2),
    known=st.booleans(),
    scale=st.sampled_from([1e-5, 1.0, 1e7]),
    seed=st.integers(0, 2**31),
)
def test_in_every_case_tried(kernel, n, noise, repeats, outputs, known, scale, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    X = np.concatenate([X, X[:repeats]])
    # equal rows have equal y, which is no contradiction
    Y = scale * np.sin(X @ rng.normal(size=(2, max(outputs, 1))))
    gp = gm.GPRegressor(kernel, noise=gm.fixed(noise * scale**2), optimize=False)
    gp.fit(X, Y if outputs else Y[:, 0], noise_var=np.full(len(X), 1e-3 * scale**2) if known else None)
    Z = np.concatenate([X, X[:2] + 1e-9, rng.normal(size=(5, 2)), [[1e6, -1e6]], X[:1]])
    check(gp, Z)


def test_a_fitted_model_at_its_own_rows(rng):
    X = rng.uniform(-2, 2, (40, 2))
    check(
        gm.GPRegressor(n_restarts=0).fit(X, np.sin(X.sum(axis=1))), np.concatenate([X, X + 1e-7, 1e9 * X[:3]])
    )


@pytest.mark.parametrize("n", [100, 600, 1100])
def test_across_blocks_and_tiles(n, rng):
    """Points beyond one tile of rows: the blocks of moments and the whole of cov must round alike."""
    X = rng.uniform(-2, 2, (30, 2))
    gp = gm.GPRegressor(gm.RBF(1.0), noise=gm.fixed(0), optimize=False).fit(X, np.sin(X.sum(axis=1)))
    check(gp, rng.uniform(-2, 2, (n, 2)))


def test_the_same_point_has_the_same_answer_wherever_it_stands():
    """Predictions of a point do not depend on its neighbours in the table beyond rounding."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (80, 2))
    gp = gm.GPRegressor(gm.RBF(1.0), noise=0.01, optimize=False).fit(X, np.sin(X.sum(axis=1)))
    Z = rng.uniform(-2, 2, (700, 2))
    together = gp.predict(Z, return_std=True)
    for at in (slice(0, 1), slice(5, 70), slice(300, 699)):
        for whole, part in zip(together, gp.predict(Z[at], return_std=True), strict=True):
            np.testing.assert_allclose(part, whole[at], rtol=1e-10)


def test_prior_before_any_data():
    gp = gm.GPRegressor(2.0 * gm.Matern52(0.5), noise=0.5, mean=gm.ConstantMean(1.0))
    Z = np.random.default_rng(0).normal(size=(6, 3))
    mean, std = gp.predict(Z, return_std=True)
    assert np.array_equal(mean, np.ones(6))
    np.testing.assert_allclose(std**2, 2.5)
    np.testing.assert_allclose(gp.predict(Z, return_std=True, target="f")[1] ** 2, 2.0)
    cov = gp.predict(Z, return_cov=True)[1]
    assert np.array_equal(np.sqrt(np.diag(cov)), std)


def test_far_away_the_posterior_is_the_prior(rng):
    X = rng.normal(size=(20, 2))
    gp = gm.GPRegressor(
        3.0 * gm.RBF(1.0), noise=0.1, mean=gm.ConstantMean(5.0), normalize_y=False, optimize=False
    ).fit(X, rng.normal(size=20))
    mean, std = gp.predict([[1e8, 1e8]], return_std=True, target="f")
    assert mean[0] == 5.0
    assert std[0] == np.sqrt(3.0)
