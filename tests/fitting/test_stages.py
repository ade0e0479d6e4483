"""Stages: which engine is searched on how many rows, and which rows."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.fitting.stages import DIRECT_ROWS, EVALUATIONS, FIRST_ROWS, _order, parts
from gramian.inference import Data


def plan_of(method, n, limited=False, memory=np.inf):
    return [(type(engine).__name__, rows) for engine, rows in parts(method, n, 5, 1, limited, memory)]


def test_few_rows_are_searched_at_once():
    assert plan_of(gm.Exact(), DIRECT_ROWS) == [("Exact", DIRECT_ROWS)]


def test_many_rows_are_searched_in_parts():
    (_, first), (_, second) = plan_of(gm.Exact(), 15_000)
    assert first == FIRST_ROWS < second < 15_000
    *_, (_, third) = plan_of(gm.Exact(), 40_000)
    assert second < third < 15_000  # a search of EVALUATIONS there takes as long as the factorisation of all rows
    assert EVALUATIONS * gm.Exact().work(third, 5, 1).flops <= gm.Exact().work(40_000, 5, 1, gradient=False).flops
    assert plan_of(gm.Exact(), 30_000, limited=True)[-1] == ("Exact", 30_000)  # what time is left
    assert plan_of(gm.Exact(fit_rows=700), 30_000) == [("Exact", 700)]


def test_approximations_begin_exactly():
    assert plan_of(gm.Sparse(100), 50_000) == [("Exact", FIRST_ROWS), ("Sparse", 50_000)]
    (_, first), (name, rows) = plan_of(gm.Sparse(2000), 1_000_000)
    assert (first, name) == (FIRST_ROWS, "Sparse")
    assert FIRST_ROWS < rows < 1_000_000


def test_features_with_few_rows_each_do_not_guide_a_search():
    assert plan_of(gm.Fourier(1000), 1500) == [("Exact", 1500)]
    assert plan_of(gm.Fourier(100), 1500) == [("Exact", 1500), ("Fourier", 1500)]


def test_stages_respect_the_memory():
    (_, first), *_ = plan_of(gm.Sparse(50), 10_000, memory=1e6)
    assert 8 * first**2 <= 1e6


def test_equal_rows_stay_together():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((50, 2)), 2, axis=0)[rng.permutation(100)]
    order = _order(Data(X, X, np.ones(2)), rng)
    assert sorted(order) == list(range(100))
    pairs = X[order].reshape(50, 2, 2)
    assert np.array_equal(pairs[:, 0], pairs[:, 1])
    assert not np.array_equal(order, np.sort(order))


def test_a_part_learns_the_noise_from_pairs():
    """Half of the rows repeat another with a y of its own: noise of variance 0.25, which a part of the rows must see, too."""
    rng = np.random.default_rng(1)
    X = np.repeat(rng.uniform(0, 1, (600, 3)), 2, axis=0)
    y = np.sin(40 * X).sum(axis=1) + 0.5 * rng.standard_normal(1200)
    gp = gm.GPRegressor(1.0 * gm.Matern12(1.0), method=gm.Exact(fit_rows=200), random_state=0).fit(X, y)
    assert gp.noise_ == pytest.approx(0.25, rel=0.5)  # 100 pairs tell a variance to 14 %; three times that
