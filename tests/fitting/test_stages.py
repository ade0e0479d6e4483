"""Stages: which engine is searched on how many rows, and which rows."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.fitting.rows import NEIGHBOURS, chosen, in_random_order
from gramian.fitting.stages import DIRECT_ROWS, EVALUATIONS, FIRST_ROWS, parts
from gramian.inference import Data, Model, closed
from gramian.likelihoods import Gaussian
from gramian.means import ZeroMean


def plan_of(method, n, memory=np.inf):
    return [(scheme.name, rows) for scheme, rows in parts(closed(method), n, 5, 1, lambda: memory)]


def test_few_rows_are_searched_at_once():
    assert plan_of(gm.Exact(), DIRECT_ROWS) == [("exact", DIRECT_ROWS)]


def test_many_rows_are_searched_in_parts():
    (_, first), (_, second) = plan_of(gm.Exact(), 15_000)
    assert first == FIRST_ROWS < second < 15_000
    *_, (_, third) = plan_of(gm.Exact(), 40_000)
    # a search of EVALUATIONS there takes as long as the factorisation of all rows
    assert second < third < 15_000
    assert (
        EVALUATIONS * closed(gm.Exact()).work(third, 5, 1).flops
        <= closed(gm.Exact()).work(40_000, 5, 1, gradient=False).flops
    )
    assert plan_of(gm.Exact(fit_rows=700), 30_000) == [("exact", 700)]


def test_approximations_begin_exactly():
    assert plan_of(gm.Sparse(100), 50_000) == [("exact", FIRST_ROWS), ("vfe", 50_000)]
    (_, first), (name, rows) = plan_of(gm.Sparse(2000), 1_000_000)
    assert (first, name) == (FIRST_ROWS, "vfe")
    assert FIRST_ROWS < rows < 1_000_000


def test_a_long_series_is_searched_on_all_of_it():
    """Not on whole thousands, which would leave a few hundred rows out at the price of choosing them."""
    assert [rows for _, rows in plan_of(gm.StateSpace(), 145_362)] == [FIRST_ROWS, 145_362]


def test_features_with_few_rows_each_do_not_guide_a_search():
    assert plan_of(gm.Fourier(1000), 1500) == [("exact", 1500)]
    assert plan_of(gm.Fourier(100), 1500) == [("exact", 1500), ("fourier", 1500)]


def test_stages_respect_the_memory():
    (_, first), *_ = plan_of(gm.Sparse(50), 10_000, memory=1e6)
    assert 8 * first**2 <= 1e6


def test_equal_rows_stay_together():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((50, 2)), 2, axis=0)[rng.permutation(100)]
    order = in_random_order(Data(X, X, np.ones(2)), rng)
    assert sorted(order) == list(range(100))
    pairs = X[order].reshape(50, 2, 2)
    assert np.array_equal(pairs[:, 0], pairs[:, 1])
    assert not np.array_equal(order, np.sort(order))


def test_half_of_a_part_is_neighbourhoods():
    """Of the present kernel: columns that it does not look at make nobody a neighbour."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (4000, 2)) * [1.0, 1000.0]
    data, model = Data(X, X[:, :1], np.ones(1)), Model(gm.RBF(0.1).on(0), ZeroMean(), Gaussian(0.1))
    order = in_random_order(data, rng)
    rows = chosen("neighbours", model, data, 240, order, rng)
    assert np.array_equal(rows, np.unique(rows))
    assert len(rows) == 240
    assert np.isin(order[:120], rows).all()  # the half at random, which a larger part holds, too
    rest = np.setdiff1d(rows, order[:120])
    for centre in order[::-1][::NEIGHBOURS][: 120 // NEIGHBOURS]:
        nearest = np.argsort(np.abs(X[:, 0] - X[centre, 0]))[:NEIGHBOURS]
        assert np.isin(nearest, rows).all()
        rest = np.setdiff1d(rest, nearest)
    assert np.isin(rest, order[120:140]).all()  # overlaps are made up for by the next at random
    assert np.array_equal(chosen("uniform", model, data, 240, order, rng), np.sort(order[:240]))


def test_neighbourhoods_of_equal_rows_and_of_many_columns():
    """Centres are not copies of each other, small parts take the nearest, and values of k below rounding
    still tell who is near."""
    rng = np.random.default_rng(4)
    X = (
        np.repeat(rng.standard_normal((400, 100)), 20, axis=0)
        + 1e-3 * rng.standard_normal((8000, 100)) * (np.arange(8000) % 2)[:, None]
    )
    data, model = Data(X, X[:, :1], np.ones(1)), Model(gm.RBF(0.5), ZeroMean(), Gaussian(0.1))
    order = in_random_order(data, rng)
    rows = chosen("neighbours", model, data, 600, order, rng)
    places = np.bincount(rows // 20, minlength=400)  # how many rows of each of the 400 places were taken
    # of the 10 neighbourhoods; a random part has whole places of ten equal rows
    assert np.count_nonzero(places == 20) >= 9
    line = Data(np.linspace(0, 1, 2000)[:, None], np.zeros((2000, 1)), np.ones(1))
    order = in_random_order(line, rng)
    few = chosen("neighbours", Model(gm.RBF(0.1), ZeroMean(), Gaussian(0.1)), line, 40, order, rng)
    assert np.isin(np.clip(order[-1] + np.arange(-9, 10), 0, 1999), few).all()


@pytest.mark.parametrize("seed", [5, 6, 7])
def test_neighbourhoods_tell_roughness_from_noise(seed):
    """A random walk with noise of variance 0.09, 300 of 4,000 rows. Neighbours have steps of variance 0.2;
    rows at random of 2.7, beside which noise is hardly seen."""
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(0, 8, 4000))[:, None]
    walk = np.concatenate([[0.0], np.cumsum(rng.standard_normal(3999) * np.sqrt(np.diff(X[:, 0])))])
    y = 10 * (walk - walk.mean()) + 0.3 * rng.standard_normal(4000)
    errors = {}
    for rule in ("neighbours", "uniform"):
        gp = gm.GPRegressor(
            100.0 * gm.Matern12(5.0), method=gm.Exact(fit_rows=300, fit_rule=rule), random_state=0
        ).fit(X, y)
        errors[rule] = abs(gp.noise_ / 0.09 - 1)
    # 150 neighbours tell a variance of noise and half a step to 12 %; twice that
    assert errors["neighbours"] < 0.25
    assert errors["neighbours"] < errors["uniform"]


def test_a_part_learns_the_noise_from_pairs():
    """Half of the rows repeat another with a y of its own: noise of variance 0.25, which a part of the rows
    must see, too."""
    rng = np.random.default_rng(1)
    X = np.repeat(rng.uniform(0, 1, (600, 3)), 2, axis=0)
    y = np.sin(40 * X).sum(axis=1) + 0.5 * rng.standard_normal(1200)
    gp = gm.GPRegressor(1.0 * gm.Matern12(1.0), method=gm.Exact(fit_rows=200), random_state=0).fit(X, y)
    assert gp.noise_ == pytest.approx(0.25, rel=0.5)  # 100 pairs tell a variance to 14 %; three times that
