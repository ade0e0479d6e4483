"""Rows that repeat others: copies count once in a search, and what differs is noise."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gramian as gm
from gramian.fitting.rows import repeats

CONCRETE = Path(__file__).parents[3] / "shared" / "data" / "uci_concrete.npz"


def noisy(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=n)


def test_finds_rows_of_equal_inputs_and_copies():
    X = np.array([[1.0, 2], [2, 1], [1, 2], [1, 2], [0, 0]])
    Y = np.array([[1.0], [1], [1], [5], [1]])
    found = repeats(X, Y)
    assert_array_equal(found.copy, [False, False, True, False, False])
    assert found.group[0] == found.group[2] == found.group[3] != found.group[1]
    assert repeats(X[[0, 1, 4]], Y[[0, 1, 4]]) is None
    # the same sum of columns, but other rows
    assert repeats(np.array([[0.0, 0.0], [0.0, -0.0]]), Y[:2]) is not None
    assert repeats(np.array([[1.0, 2.0], [2.0, 1.0]]), Y[:2]) is None


def test_copies_are_no_proof_that_there_is_no_noise():
    X, y = noisy()
    once = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), random_state=0).fit(X, y)
    twice = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), random_state=0).fit(
        np.vstack([X, X[:30]]), np.concatenate([y, y[:30]])
    )
    assert_allclose(twice.noise_, once.noise_, rtol=1e-6)
    assert len(twice.fitted_.rows.X) == 90  # the posterior knows all of them


@pytest.mark.parametrize("pairs", [1, 5, 40])
def test_lower_limit_of_noise_is_rarely_too_high(pairs):
    """With probability 0.999 the limit is below the true variance: of 2,000 tries two above it are expected,
    and more than ten have a probability of 1e-5."""
    rng, too_high = np.random.default_rng(0), 0
    X = np.repeat(np.arange(float(pairs))[:, None], 2, axis=0)
    for _ in range(2000):
        Y = rng.normal(0, 2.0, (2 * pairs, 1))
        limit = repeats(X, Y).least_noise(Y)[0]
        assert limit > 0
        too_high += limit > 4.0
    assert too_high <= 10


def test_lower_limit_counts_what_was_observed():
    X = np.zeros((4, 1))
    Y = np.array([[1.0, 2.0], [1.0, np.nan], [3.0, np.nan], [1.0, 2.5]])
    limit = repeats(X, Y).least_noise(Y)
    # first output: the values 1, 3, 1 of the distinct rows; second: 2 and 2.5 with one degree of freedom
    assert limit[1] == pytest.approx(0.125 / 10.8276, rel=1e-4)
    assert limit[0] > 0


def test_noise_stays_above_what_repeated_rows_show():
    X, y = noisy(20)
    X, y = np.vstack([X, X]), np.concatenate([y, y + 2.0])
    gp = gm.GPRegressor(noise=None, kernel=1.0 * gm.RBF([1.0, 1.0])).fit(X, y)
    assert gp.noise_ >= repeats(X, y[:, None]).least_noise(y[:, None])[0]


@pytest.mark.skipif(not CONCRETE.exists(), reason="needs the UCI concrete set, which is not here")
@pytest.mark.parametrize("fold", [0, 5])
def test_concrete_keeps_its_noise(fold):
    with np.load(CONCRETE) as file:
        X, y, test = file["X"], file["y"].ravel(), file["test_mask"][:, fold].astype(bool)
    gp = gm.GPRegressor(1.0 * gm.Matern52(np.std(X, axis=0) * 3), random_state=0, n_restarts=0)
    gp.fit(X[~test], y[~test])
    assert np.sqrt(gp.noise_) > 1.0  # MPa; 0.002 while copies counted
    assert -gp.log_density(X[test], y[test]).mean() < 3.5
