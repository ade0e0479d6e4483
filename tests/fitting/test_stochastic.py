"""The stochastic search of SVGP: it climbs, it can be ended at any time, and the same seed gives the same
result."""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pytest

from gramian.clock import OutOfTime
from gramian.engines import Sparse
from gramian.errors import NumericalError
from gramian.fitting import stages, stochastic
from gramian.fitting.budget import Budget
from gramian.fitting.progress import Report
from gramian.inference import Data, Model, closed
from gramian.inference.svgp import inducing
from gramian.inference.svgp.bound import Bound
from gramian.inference.svgp.inducing import EPOCHS, FEWEST_STEPS, MOST_STEPS, SVGP, SparseVariational
from gramian.kernels import RBF, Convolutional
from gramian.likelihoods import Gaussian
from gramian.likelihoods.binary import Bernoulli
from gramian.means import ConstantMean
from gramian.params import LogNormal, fixed, param


class Told(Report):
    """Remembers what it was told, and may press Ctrl-C."""

    def __init__(self, interrupt_at: int | None = None) -> None:
        self.steps: list[int] = []
        self.best: list[float] = []
        self.interrupt_at = interrupt_at

    def __call__(self, start: int, starts: int, evaluations: int, best: float) -> None:
        self.steps.append(evaluations)
        self.best.append(best)
        if self.interrupt_at is not None and evaluations >= self.interrupt_at:
            raise KeyboardInterrupt


@pytest.fixture
def data(rng) -> Data:
    X = rng.uniform(-2, 2, (700, 2))
    y = (rng.random(700) < 1 / (1 + np.exp(-4 * np.sin(2 * X[:, 0])))).astype(float)
    return Data(X, y[:, None], np.ones(1))


def model(**options) -> Model:
    return Model(1.0 * RBF([1.0, 1.0]), ConstantMean(0.0), Bernoulli(**options))


def fit(
    data: Data,
    method: SVGP,
    seed: int = 0,
    report: Report | None = None,
    budget: Budget | None = None,
    start: Model | None = None,
):
    return stages.fit(
        start or model(), data, method, 0, np.random.default_rng(seed), report or Report(), budget
    )


def test_adam_is_that_of_kingma_and_ba():
    """Algorithm 1, written out again for two steps."""
    adam, m, v, gradients = (
        stochastic.Adam(2),
        np.zeros(2),
        np.zeros(2),
        [np.array([1.0, -3.0]), np.array([0.5, 2.0])],
    )
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected = 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        np.testing.assert_allclose(adam.step(g, 0.1), expected, rtol=1e-12)


def test_batches_hold_each_row_once_an_epoch(rng):
    batches = stochastic.RowBatches(100, 30, rng)
    seen = [next(batches) for _ in range(10)]  # three epochs
    assert all(len(at) == 30 and np.all(np.diff(at) >= 0) for at in seen)
    assert np.array_equal(np.bincount(np.concatenate(seen), minlength=100), np.full(100, 3))
    assert not np.array_equal(seen[0], next(stochastic.RowBatches(100, 30, np.random.default_rng(1))))


def test_finds_what_matters_and_polishes_it(data):
    method = SVGP(20, batch_size=128, steps=200, learning_rate=0.05)
    before = method.infer(model(), data).evidence.value
    told = Told()
    fitted = fit(data, method, report=told)
    found = fitted.inference.infer(fitted.model, data)
    assert isinstance(fitted.inference, SparseVariational)
    assert found.evidence.kind == "lower bound"
    assert found.evidence.value > before + 10
    # n counted right: the batches estimate the same bound
    assert fitted.search.value == pytest.approx(found.evidence.value, rel=0.1)
    first, second = _lengthscales(fitted)
    assert first < 2 < second  # y does not depend on the second column
    assert fitted.search.iterations == 200
    assert str(fitted.stages[0]).startswith("svgp on all 700 rows: 200")
    assert told.steps == sorted(told.steps)
    assert told.best[-1] > told.best[1]
    mean = found.posterior.mean(data.X)[:, 0]
    assert np.mean((mean > 0) == (np.sin(2 * data.X[:, 0]) > 0)) > 0.93


def _lengthscales(fitted) -> np.ndarray:
    (value,) = (p.value for path, p in fitted.model.parameters().items() if path.endswith("lengthscale"))
    return value


def test_same_seed_same_result(data):
    method = SVGP(10, batch_size=64, steps=15)
    one, other, third = fit(data, method), fit(data, method), fit(data, method, seed=1)
    assert np.array_equal(one.search.theta, other.search.theta)
    assert all(np.array_equal(a.B, b.B) for a, b in zip(one.inference.q, other.inference.q, strict=True))
    assert np.array_equal(one.inference.Z[0], other.inference.Z[0])
    assert not np.array_equal(one.search.theta, third.search.theta)


def test_reaches_the_collapsed_bound_for_gaussian_noise(rng):
    """The same model by L-BFGS on the bound of Titsias: points are held, so that both have one optimum."""
    X = rng.uniform(-3, 3, (400, 1))
    data = Data(X, np.sin(2 * X) + 0.2 * rng.standard_normal((400, 1)), np.ones(1))
    start = Model(1.0 * RBF(1.0), ConstantMean(0.0), Gaussian(0.2))
    Z = np.linspace(-3, 3, 15)[:, None]
    exact = stages.fit(start, data, closed(Sparse(inducing=Z)), 0, np.random.default_rng(0), Report())
    ours = fit(
        data,
        SVGP(
            inducing=Z,
            optimize_inducing=False,
            batch_size=100,
            steps=400,
            learning_rate=0.05,
            natural_step=0.5,
        ),
        start=start,
    )
    best = exact.inference.infer(exact.model, data).evidence.value
    assert best - 1.0 < ours.inference.infer(ours.model, data).evidence.value < best + 1e-6 * abs(best)


def test_ctrl_c_leaves_the_last_step(data):
    fitted = fit(data, SVGP(10, batch_size=64, steps=400), report=Told(interrupt_at=9))
    assert fitted.search.stopped == "interrupted"
    assert 9 <= fitted.search.iterations < 20
    assert np.isfinite(fitted.inference.infer(fitted.model, data).evidence.value)


def test_ctrl_c_before_the_first_step_is_passed_on(data, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(stochastic._Run, "_step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(data, SVGP(10, steps=5))


def test_deadline_ends_the_search(data):
    """Also one that is over before the first step, which is then the only one."""
    now = time.monotonic()
    for deadline in (now - 1.0, now + 1.0):
        budget = Budget(deadline, lambda cost: 0.0, (len(data.X), 1, 1), began=deadline)
        fitted = fit(data, SVGP(10, batch_size=64, steps=100_000), budget=budget)
        assert fitted.search.stopped == "time limit"
        assert (fitted.search.iterations == 1) if deadline < now else (0 < fitted.search.iterations < 100_000)
        assert np.isfinite(fitted.search.value)
        assert np.isfinite(fitted.inference.infer(fitted.model, data).evidence.value)


def test_without_time_for_a_pass_the_q_of_the_batches_stays(data, monkeypatch):
    """It knows all rows, and some of them estimate the bound: here all, so that it is exact."""
    fitted = fit(data, SVGP(10, batch_size=64, steps=40))
    expected = fitted.inference._pass(Bound(fitted.model, data, fitted.inference.Z, True), fitted.inference.q)

    def late(*_):
        raise OutOfTime

    monkeypatch.setattr(SparseVariational, "_pass", late)
    monkeypatch.setattr(inducing, "CHUNK", len(data.X))
    inferred = fitted.inference.infer(fitted.model, data)
    assert inferred.evidence.value == pytest.approx(expected[1], rel=1e-10)
    assert "no time was left" in inferred.outcome.note
    with pytest.raises(OutOfTime):  # without a q there is nothing to keep
        dataclasses.replace(fitted.inference, q=()).infer(fitted.model, data)


def test_a_time_limit_makes_no_values_between_rows_of_a_kernel_with_points_of_its_own(monkeypatch):
    """Of images they cost the square of the patches: a first search on few rows would take all the time."""
    rng = np.random.default_rng(0)
    table = Data(rng.standard_normal((60, 16)), (np.arange(60) % 2)[:, None].astype(float), np.ones(1))
    kernel = 10.0 * Convolutional(RBF(1.0), (2, 2), (4, 4))
    monkeypatch.setattr(stages, "sketch_for", lambda _: pytest.fail("there is a sketch", pytrace=False))
    budget = Budget(time.monotonic() + 60.0, lambda cost: 0.0, (60, 16, 1))
    method = SVGP(5, batch_size=20, steps=2)
    with pytest.raises(pytest.fail.Exception):
        fit(table, method, start=Model(RBF(1.0), ConstantMean(), Bernoulli()), budget=budget)
    start = Model(kernel, ConstantMean(), Bernoulli())
    assert fit(table, method, start=start, budget=budget).search.iterations == 2


def test_a_failed_step_goes_on_from_the_last_good_place(data, monkeypatch):
    real, calls = Bound.sums, []

    def sometimes(self, *args, **kwargs):
        calls.append(1)
        if len(calls) in (4, 5):
            raise NumericalError("not positive definite")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Bound, "sums", sometimes)
    fitted = fit(data, SVGP(10, batch_size=64, steps=20))
    assert (fitted.search.failures, fitted.search.iterations) == (2, 18)
    monkeypatch.setattr(
        Bound, "sums", lambda *_, **__: (_ for _ in ()).throw(NumericalError("never positive definite"))
    )
    with pytest.raises(NumericalError, match="never"):
        fit(data, SVGP(10, batch_size=64, steps=20))


def test_priors_and_fixed_parameters_count(data):
    """A sharp prior holds its parameter against 700 rows, which move it without one; a fixed parameter does
    not move."""
    method = SVGP(10, batch_size=64, steps=150, learning_rate=0.05)
    for prior in (None, LogNormal(0.0, 0.005)):
        start = Model(1.0 * RBF(param([1.0, 1.0], prior=prior)), ConstantMean(fixed(0.25)), Bernoulli())
        fitted = fit(data, method, start=start)
        assert fitted.model.parameters()["mean.value"].value == 0.25
        change = np.max(np.abs(np.log(_lengthscales(fitted))))
        assert change > 0.3 if prior is None else change < 0.05


def test_number_of_steps():
    method = SVGP(batch_size=1000)
    assert method.steps_for(100) == FEWEST_STEPS
    assert method.steps_for(50_000) == EPOCHS * 50
    assert method.steps_for(10**7) == MOST_STEPS
    assert SVGP(steps=7).steps_for(10**7) == 7


def test_inducing_points_move_only_when_asked(data):
    for moves in (True, False):
        method = SVGP(10, batch_size=64, steps=5, optimize_inducing=moves)
        before = method.prepared(model(), data, np.random.default_rng(0)).Z[0]
        assert np.array_equal(fit(data, method).inference.Z[0], before) != moves
