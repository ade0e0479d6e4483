"""A search that is paid from a budget of seconds: its rows, its stages, and what is left for the rest."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gramian as gm
from gramian import clock
from gramian.fitting.budget import FEWEST_ROWS, FIRST_EVALUATIONS, MARGIN, MOST_FINAL, Budget, compiling
from gramian.fitting.progress import Report
from gramian.fitting.sketch import sketch_for
from gramian.fitting.stages import MORE, QUICK_ROWS, fit, in_time
from gramian.inference import Data, Model, closed
from gramian.inference.base import on_engine
from gramian.inference.ep import EP
from gramian.inference.laplace import Laplace
from gramian.inference.variational import VI
from gramian.likelihoods import Bernoulli, RobustMax, Softmax
from gramian.params import ParameterSpace

SPEED = 1e10  # flops a second


def seconds(cost):
    return cost.flops / SPEED


@pytest.fixture(autouse=True)
def standing(monkeypatch):
    """Time stands still, unless a test lets it pass."""
    times = [0.0]
    monkeypatch.setattr(clock, "now", lambda: times[0])
    return times


def budget(limit, n, **settings):
    return Budget(limit, seconds, (n, 5, 1), **settings)


def stages(method, limit, n, times, share=0.3):
    """What is searched on how many rows, where each stage takes a share of what is left."""
    found, own = [], budget(limit, n)
    for step in in_time(closed(method), own):
        found.append((step.engine.name, step.rows))
        times[0] += share * (step.end - times[0])
    return found


def test_ample_time_is_a_search_on_all_rows(standing):
    assert stages(gm.Exact(), 1000.0, 1500, standing) == [("exact", 1500)]


def test_rows_grow_with_the_time(standing):
    last = []
    for limit in (3.0, 10.0, 100.0):
        standing[0] = 0.0
        found = stages(gm.Exact(), limit, 20_000, standing)
        rows = [count for _, count in found]
        assert rows[0] >= QUICK_ROWS
        assert all(b >= MORE * a for a, b in itertools.pairwise(rows))
        last.append(rows[-1])
    assert last == sorted(last)
    assert last[0] < last[-1]


def test_a_search_fits_into_its_time():
    own, method = budget(20.0, 20_000), closed(gm.Exact())
    rows = own.rows(method, 20_000, FIRST_EVALUATIONS, 5.0)
    assert 0 < rows < 20_000
    assert FIRST_EVALUATIONS * seconds(method.work(rows, 5, 1)) <= 5.0
    assert FIRST_EVALUATIONS * seconds(method.work(rows + 200, 5, 1)) > 4.0


def test_the_final_inference_is_paid_first():
    method = closed(gm.Sparse(500))
    own, final = budget(30.0, 50_000), seconds(method.work(50_000, 5, 1, gradient=False))
    assert 30.0 - own.left(method) == pytest.approx(MARGIN * final + compiling(method, 20_000))
    # but no more than its share of the time: of the rest it takes fewer rows
    large = closed(gm.Exact())
    assert own.left(large) == pytest.approx((1 - MOST_FINAL) * 30.0)


def test_rows_that_the_final_inference_has_no_time_for_are_left_out(standing):
    rng, method = np.random.default_rng(0), closed(gm.Exact())
    data = Data(np.zeros((20_000, 5)), np.zeros((20_000, 1)), np.ones(1))
    own = budget(5.0, 20_000)
    kept = own.kept(method, data, rng)
    assert FEWEST_ROWS < len(kept.X) < 20_000
    assert seconds(method.work(len(kept.X), 5, 1, gradient=False)) <= 5.0
    assert budget(1e6, 20_000).kept(method, data, rng) is data
    standing[0] = 100.0
    assert len(own.kept(method, data, rng).X) == FEWEST_ROWS


def test_a_slow_machine_is_believed():
    own, method = budget(20.0, 20_000), closed(gm.Exact())
    before = own.rows(method, 20_000, 25, 10.0)
    own.learn(method, 2000, 3 * seconds(method.work(2000, 5, 1)))
    assert own.pace == pytest.approx(3.0)
    assert own.rows(method, 20_000, 25, 10.0) < before
    own.learn(method, 50, 1.0)  # too little work to say anything
    assert own.pace == pytest.approx(3.0)
    own.passed(method, 10 * 3 * seconds(method.work(20_000, 5, 1, gradient=False)))
    assert own.pace == pytest.approx(30.0)


@pytest.mark.parametrize("rule", [VI(), EP(), Laplace()])
def test_a_rule_of_many_steps_begins_with_a_sketch(rule, standing):
    """Laplace's, on few rows and in half of the time: parameters have moved whatever comes after it."""
    method = on_engine(gm.Exact(), rule)
    own = budget(4.0, 2000)
    first, *later = in_time(method, own, sketch=sketch_for(Bernoulli()))
    assert first.sketch
    assert first.engine.rule_name == "laplace"
    assert first.rows <= QUICK_ROWS
    assert first.end <= 2.0
    assert all(step.engine.rule_name == rule.name for step in later)
    standing[0] = first.end
    # of a machine that is too slow for anything else
    _, *later = in_time(
        method, Budget(4.0, lambda cost: 100 * seconds(cost), (2000, 5, 1)), sketch=first.engine
    )
    assert later == []


def test_likelihoods_that_laplace_does_not_suit_have_no_sketch():
    assert sketch_for(gm.StudentT()) is None
    assert sketch_for(gm.Heteroscedastic()) is None
    assert sketch_for(gm.Gaussian()).closed
    assert sketch_for(gm.Poisson()).rule_name == "laplace"
    assert sketch_for(Softmax(3)).coupled


def test_a_likelihood_without_derivatives_is_sketched_by_its_smoother_relative(standing):
    """So that its parameters have moved where the time is too short for anything else; the likelihood that
    comes out is its own."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    data = Data(X, np.digitize(X, [-0.5, 0.5]).astype(float), np.ones(1))
    model = Model(1.0 * gm.RBF(0.1), gm.ZeroMean(), RobustMax(3))
    slow = Budget(4.0, lambda cost: 1e9, (60, 1, 1))
    method = on_engine(gm.Exact(), VI())
    found = fit(model, data, method, 0, rng, Report(), slow)
    assert [stage.method for stage in found.stages] == ["exact, laplace"]
    assert found.search.evaluations > 3
    assert isinstance(found.model.likelihood, RobustMax)
    theta = ParameterSpace(found.model.parameters()).theta
    assert found.search.theta == pytest.approx(theta)
    assert np.all(theta != ParameterSpace(model.parameters()).theta)


def test_compilation_takes_as_much_longer_as_the_machine_is_busy(standing, monkeypatch):
    """Of programs that a scheme says it needs; exact inference on few rows needs none."""
    worked = [0.0]
    monkeypatch.setattr(clock, "busy", lambda: worked[0])
    exact, rule, sparse = closed(gm.Exact()), on_engine(gm.Exact(), VI()), closed(gm.Sparse(100))
    assert compiling(exact, FEWEST_ROWS) == 0.0
    idle = [compiling(method, 1000) for method in (exact, rule, sparse)]
    assert idle == sorted(idle)
    assert idle[0] > 0.0
    with clock.until(100.0):
        standing[0], worked[0] = 6.0, 2.0
        assert clock.slowness() == pytest.approx(3.0)
        with clock.until(50.0):  # since the outermost limit
            assert [compiling(method, 1000) for method in (exact, rule, sparse)] == pytest.approx(
                [3 * seconds for seconds in idle]
            )
    assert clock.slowness() == 1.0


def test_approximations_with_few_rows_each_stay_exact(standing):
    assert all(name == "exact" for name, _ in stages(gm.Fourier(1000), 4.0, 5000, standing))
