"""The level of kernel and noise on all rows, against searches and inferences of their own."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.clock import OutOfTime
from gramian.engines import Exact
from gramian.inference import closed
from gramian.params import ParameterSpace

FITTED_ON = gm.Exact(fit_rows=60)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (300, 2))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(300)


@pytest.mark.parametrize("inverted", [True, False], ids=["R", "L"])
@pytest.mark.parametrize(
    "kernel", [1.0 * gm.Matern32(1.0), 1.0 * gm.RBF(1.0) + 0.5 * gm.Linear(1.0)], ids=str
)
def test_level_is_the_best_of_all_rows(data, kernel, inverted, monkeypatch):
    X, y = data
    if not inverted:
        monkeypatch.setattr("gramian.engines.dense.ROOT_UP_TO", 100)
    gp = gm.GPRegressor(kernel, method=FITTED_ON, random_state=0).fit(X, y)
    assert "the level of kernel and noise on all 300 rows" in gp.outcome_.stages[-1]
    # A posterior made anew at these parameters is the same,
    fresh = closed(Exact()).infer(gp.fitted_.model, gp.fitted_.rows)
    assert gp.evidence_.value == pytest.approx(fresh.evidence.value, rel=1e-9)
    for one, other in zip(
        gp.posterior_.moments(X[:50] + 0.3), fresh.posterior.moments(X[:50] + 0.3), strict=True
    ):
        assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    # and the slope of the evidence along the level, which is that of all scales and the noise together, is
    # zero.
    _, slope = gp.log_evidence(return_grad=True)
    names = ParameterSpace(gp.fitted_.model.parameters()).names
    along = np.array([name.endswith(".scale") or name == "noise" for name in names])
    assert abs(np.sum(slope[along])) < 1e-6 * len(X)
    assert np.max(np.abs(slope[~along])) > 1e-3  # the others stay as the part had them


def test_level_of_several_outputs(data):
    """One level for all: of the kernel, and of each noise."""
    X, y = data
    Y = np.column_stack([y, 100 * np.cos(X[:, 0]) + 50 * np.random.default_rng(1).standard_normal(300)])
    gp = gm.GPRegressor(1.0 * gm.Matern32(1.0), method=FITTED_ON, random_state=0).fit(X, Y)
    assert "the level of kernel and noise on all 300 rows" in gp.outcome_.stages[-1]
    fresh = closed(Exact()).infer(gp.fitted_.model, gp.fitted_.rows)
    assert gp.evidence_.value == pytest.approx(fresh.evidence.value, rel=1e-9)
    Z = X[:50] + 0.3
    for one, other in zip(gp.posterior_.moments(Z), fresh.posterior.moments(Z), strict=True):
        assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    _, slope = gp.log_evidence(return_grad=True)
    names = ParameterSpace(gp.fitted_.model.parameters()).names
    along = np.array([name.endswith(".scale") or name.startswith("noise") for name in names])
    assert np.sum(along) == 3
    assert abs(np.sum(slope[along])) < 1e-6 * Y.size


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel": gm.Matern32(1.0)},
        {"kernel": gm.fixed(1.0) * gm.Matern32(1.0)},
        {"kernel": gm.param(1.0, prior=gm.LogNormal(0.0, 1.0)) * gm.Matern32(1.0)},
        {"kernel": 1.0 * gm.Matern32(1.0), "noise": gm.fixed(0.01)},
        {"kernel": 1.0 * gm.Matern32(1.0), "method": gm.Exact()},
    ],
    ids=["no scale", "fixed scale", "a prior", "fixed noise", "all rows"],
)
def test_level_that_is_not_free_stays(data, settings):
    X, y = data
    gp = gm.GPRegressor(**{"method": FITTED_ON, "random_state": 0, **settings}).fit(X, y)
    assert not any("level" in stage for stage in gp.outcome_.stages)


def test_bounds_of_the_noise_move_unless_they_are_given(data):
    """Data without noise: the fit ends at the floor, which is a share of k(x, x), and moves with it."""
    X = data[0]
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    free = gm.GPRegressor(1.0 * gm.Matern32(1.0), method=FITTED_ON, random_state=0).fit(X, y)
    assert "level" in free.outcome_.stages[-1]
    noise = free.fitted_.model.parameters()["noise"]
    assert noise.bounds[0] <= noise.value < 1e-8 * np.var(y)
    given = gm.param(0.01, bounds=(1e-8 * np.var(y), 1.0))
    held = gm.GPRegressor(1.0 * gm.Matern32(1.0), noise=given, method=FITTED_ON, random_state=0).fit(X, y)
    assert "level" not in held.outcome_.stages[-1]


def test_without_time_for_it_the_parameters_of_the_search_stay(data, monkeypatch):
    """Of a long series what the level needs takes as long as the inference before it."""
    X, y = data
    gp = gm.GPRegressor(1.0 * gm.Matern32(1.0), method=FITTED_ON, random_state=0)
    stages = gp.fit(X, y).outcome_.stages
    assert "the level of kernel and noise on all 300 rows" in stages[-1]

    def late(posterior):
        raise OutOfTime

    monkeypatch.setattr("gramian.processes.posterior.Posterior.dual", property(late))
    again = gp.fit(X, y).outcome_.stages
    assert [stage.split(",")[0] for stage in again] == [stage.split(",")[0] for stage in stages[:-1]]
    assert gp.score(X, y) > 0.95
