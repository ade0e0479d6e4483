"""The clock: who works looks at it, and nothing that takes long goes on without."""

from __future__ import annotations

import math

import numpy as np
import pytest

import gramian as gm
from gramian import clock
from gramian.clock import OutOfTime
from gramian.engines.dense import Exact
from gramian.inference import Data, Model
from gramian.inference.base import on_engine
from gramian.inference.ep import EP
from gramian.inference.laplace import Laplace
from gramian.inference.variational import VI
from gramian.likelihoods import Bernoulli, RobustMax
from gramian.linalg import tasks, threads
from gramian.means import ZeroMean


class Ticking:
    """Time that passes by `step` each time somebody looks at it."""

    def __init__(self, monkeypatch, step=1.0):
        self.time, self.step = 0.0, step
        monkeypatch.setattr(clock, "now", self.look)

    def look(self):
        self.time += self.step
        return self.time


def test_without_a_limit_there_is_no_end():
    assert clock.end() == math.inf
    assert not clock.over()
    clock.check()
    with clock.until(None):
        assert clock.end() == math.inf


def test_a_clock_inside_another_never_ends_later(monkeypatch):
    monkeypatch.setattr(clock, "now", lambda: 5.0)
    with clock.until(10.0, grace=2.0):
        with clock.until(20.0, grace=20.0):
            assert clock.end() == 10.0
        with clock.until(3.0, grace=1.0):
            assert clock.over()
            with pytest.raises(OutOfTime):
                clock.check()
        with clock.until(3.0, grace=4.0):
            assert clock.over()
            clock.check()  # within the grace
        with clock.until(20.0, anew=True):
            assert clock.end() == 20.0
        assert clock.end() == 10.0
    assert clock.end() == math.inf


@pytest.mark.parametrize("count", [1, 2])
def test_pieces_of_work_end_with_the_time(monkeypatch, count):
    done = []
    before = threads.set_threads(count)
    try:
        Ticking(monkeypatch)
        with pytest.raises(OutOfTime), clock.until(4.5):  # which looks once itself
            threads.for_each(done.append, range(100))
        assert len(done) == 3 if count == 1 else len(done) <= 3  # one that nobody has begun is taken back
        done.clear()
        Ticking(monkeypatch)
        work = (tasks.Task(lambda k=k: done.append(k), ((k, k),), flops=1.0) for k in range(5000))
        with pytest.raises(OutOfTime), clock.until(4.5):  # which looks once itself
            tasks.run(work, 5000.0)
        assert len(done) < 5000
    finally:
        threads.set_threads(before)


def labels():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 1))
    return Data(X, (X[:, :1] > 0).astype(float), np.ones(1))


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (Laplace(), "The time limit ended Newton's method after 1 step, before the mode"),
        (EP(), "The time limit ended EP after 1 sweep: moments still change by"),
        (VI(), "The time limit ended variational inference: the variational bound still rose after 1 step"),
    ],
)
def test_a_rule_ends_with_what_it_has(rule, says):
    """And says so; in a search, where half an answer says nothing, it ends the search."""
    model, data = Model(4.0 * gm.RBF(1.0), ZeroMean(), Bernoulli("logit")), labels()
    scheme = on_engine(Exact(), rule)
    whole = scheme.infer(model, data)
    with clock.until(clock.now() - 1.0, math.inf):
        cut = scheme.infer(model, data)
    assert whole.outcome.converged
    assert not cut.outcome.converged
    assert says in cut.outcome.note
    assert np.all(np.isfinite(cut.posterior.mean(data.X)))
    with pytest.raises(OutOfTime), clock.until(clock.now() - 1.0):
        scheme.evidence_and_gradient(model, data, gm.engines.base.Workspace())


def test_the_start_by_a_smoother_likelihood_leaves_time_for_the_likelihood_itself(monkeypatch):
    """On a clock that goes on by a second with each look: the smoother one alone would use all of it."""
    Ticking(monkeypatch)
    X = np.random.default_rng(0).normal(size=(30, 1))
    data = Data(X, np.digitize(X, [-0.5, 0.5]).astype(float), np.ones(1))
    model = Model(4.0 * gm.RBF(1.0), ZeroMean(), RobustMax(3))
    scheme = on_engine(Exact(), VI(tol=0.0))  # which goes on until it is stopped
    with clock.until(clock.now() + 5.0, math.inf):
        found = scheme.infer(model, data)
    assert found.outcome.iterations > 1
    assert "The time limit ended variational inference" in found.outcome.note
