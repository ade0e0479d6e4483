"""What a fit tells afterwards: how it ended, what was odd, what to do; and that the best model is kept
whatever happened."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian import clock
from gramian.clock import OutOfTime
from gramian.engines import Exact
from gramian.errors import MemoryLimitError, NumericalError
from gramian.estimators import multiclass
from gramian.fitting import level
from gramian.inference import RuleOnEngine
from gramian.solvers import Cholesky


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = rng.uniform(0, 10, (50, 1))
    return X, np.sin(3 * X[:, 0]) + 0.05 * rng.normal(size=50)


def count(monkeypatch, at, error):
    """Raises `error` in the evaluation number `at` of the evidence with its gradient."""
    calls = []
    original = RuleOnEngine.evidence_and_gradient

    def counted(self, *arguments):
        calls.append(1)
        if len(calls) == at:
            raise error
        return original(self, *arguments)

    monkeypatch.setattr(RuleOnEngine, "evidence_and_gradient", counted)
    return calls


def test_a_fit_that_went_well(data):
    gp = gm.GPRegressor("matern52", random_state=0).fit(*data)
    outcome = gp.outcome_
    assert outcome.stopped == "converged"
    assert outcome.converged
    assert outcome.method == "exact"
    assert outcome.solver == "Cholesky"
    assert outcome.starts == 2
    assert outcome.evaluations > outcome.iterations > 0
    assert outcome.jitter == 0
    assert outcome.seconds > 0
    assert outcome.notes == ()
    _, gradient = gp.log_evidence(return_grad=True)
    prior_free = [row.name for row in gp.parameters_ if row.trainable and not row.prior]
    assert prior_free == ["mean.value"]
    names = [row.name for row in gp.parameters_ if row.trainable]
    # where there is no prior the evidence itself is at its maximum
    assert abs(gradient[names.index("mean.value")]) < 1e-6


def test_summary_has_it_all(data):
    gp = gm.GPRegressor(random_state=0).fit(*data)
    text = gp.summary()
    for word in (
        "50 rows, 1 column",
        "Matern52",
        "noise",
        "evidence",
        "exact",
        "converged",
        "1 start",
        "model by the height",
        "lengthscale[0]",
        "jitter    none",
    ):
        assert word in text
    assert f"{gp.evidence_.value:.6g}" in text
    assert "Notes" not in text
    assert (
        "2 outputs"
        in gm.GPRegressor(n_restarts=0).fit(data[0], np.column_stack([data[1], data[1]])).summary()
    )


def test_maximum_evidence_for_a_kernel_that_is_given(data):
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), n_restarts=0).fit(*data)
    _, gradient = gp.log_evidence(return_grad=True)
    assert np.max(np.abs(gradient)) < 1e-7
    for step in 0.05 * np.eye(len(gp.theta_)):
        assert gp.log_evidence(gp.theta_ + step) < gp.evidence_.value
        assert gp.log_evidence(gp.theta_ - step) < gp.evidence_.value


def test_priors_make_it_map(data):
    """At the optimum the slope of the log prior in log space, -(log v - mu) / sigma^2, balances that of the
    evidence."""
    kernel = gm.RBF(gm.param(1.0, prior=gm.LogNormal(2.0, 0.1)))
    gp = gm.GPRegressor(kernel, noise=gm.fixed(0.01), mean="zero", n_restarts=0).fit(*data)
    _, gradient = gp.log_evidence(return_grad=True)
    assert_allclose(gradient[0], (np.log(gp.parameters_["kernel.lengthscale"]) - 2.0) / 0.1**2, rtol=1e-6)
    assert abs(gradient[0]) > 1


def test_not_optimised_means_as_given(data):
    gp = gm.GPRegressor(3.0 * gm.RBF(0.7), noise=0.3, mean=gm.ConstantMean(0.1), optimize=False).fit(*data)
    assert gp.kernel_ == gp.kernel  # to the last bit
    assert gp.noise_ == 0.3
    assert float(gp.mean_.value) == 0.1
    assert gp.outcome_.stopped == "not optimised"
    assert gp.outcome_.converged
    assert gp.outcome_.evaluations == 0


def test_nothing_to_optimise(data):
    gp = gm.GPRegressor(gm.RBF(gm.fixed(0.7)), noise=gm.fixed(0.3), mean="zero").fit(*data)
    assert gp.outcome_.stopped == "nothing to optimise"
    assert gp.theta_.shape == (0,)
    value, gradient = gp.log_evidence(return_grad=True)
    assert value == gp.evidence_.value
    assert gradient.shape == (0,)


def test_fixed_parameters_stay(data):
    gp = gm.GPRegressor(gm.fixed(1.7) * gm.RBF(0.5), noise=gm.fixed(0.04), n_restarts=0).fit(*data)
    assert gp.noise_ == 0.04
    assert gp.parameters_["kernel.scale"] == 1.7
    assert gp.parameters_["kernel.lengthscale"] != 0.5


def test_interrupt_leaves_a_usable_model(data, monkeypatch):
    count(monkeypatch, 6, KeyboardInterrupt())
    gp = gm.GPRegressor(n_restarts=0).fit(*data)
    assert gp.outcome_.stopped == "interrupted"
    assert not gp.outcome_.converged
    assert any(
        "stopped early (interrupted)" in note and "best parameters" in note for note in gp.outcome_.notes
    )
    assert "interrupted" in gp.summary()
    mean, std = gp.predict(data[0], return_std=True)
    assert np.all(np.isfinite(mean))
    assert np.all(std > 0)


def test_interrupt_before_there_is_a_model(data, monkeypatch):
    count(monkeypatch, 1, KeyboardInterrupt())
    gp = gm.GPRegressor(n_restarts=0)
    with pytest.raises(KeyboardInterrupt):
        gp.fit(*data)
    assert not hasattr(gp, "posterior_")


def test_time_limit_leaves_a_usable_model(data):
    gp = gm.GPRegressor(n_restarts=50, time_limit=1e-6).fit(*data)
    assert gp.outcome_.stopped == "time limit"
    assert gp.outcome_.evaluations <= 1
    assert any("The parameters are not fitted: the time limit" in note for note in gp.outcome_.notes)
    assert np.all(np.isfinite(gp.predict(data[0], return_std=True)))


def test_time_limit_is_kept(data):
    """A hundred starts would take many seconds; half a second is enough for what is left to do after the
    limit, even on a busy machine."""
    gm.GPRegressor(n_restarts=0).fit(*data)  # compiled
    gp = gm.GPRegressor(n_restarts=2000, time_limit=0.3).fit(*data)
    assert gp.outcome_.stopped == "time limit"
    assert gp.outcome_.seconds < 1.5


def test_a_failed_factorisation_is_survived_and_told(data, monkeypatch):
    calls = count(monkeypatch, 4, NumericalError("K + noise is not positive definite"))
    gp = gm.GPRegressor("matern52", n_restarts=0).fit(*data)
    assert gp.outcome_.stopped == "converged"
    assert len(calls) == gp.outcome_.evaluations
    assert any("1 of" in note and "stepped back" in note for note in gp.outcome_.notes)
    monkeypatch.undo()
    smooth = gm.GPRegressor("matern52", n_restarts=0).fit(*data)
    assert_allclose(gp.evidence_.value, smooth.evidence_.value, rtol=1e-6)


def test_restarts_leave_a_poor_optimum(data):
    """From a long lengthscale and large noise the search ends where all is noise; a restart finds the
    wave."""
    settings = {"kernel": 1.0 * gm.RBF(8.0), "noise": 0.5, "random_state": 0}
    alone = gm.GPRegressor(**settings, n_restarts=0).fit(*data)
    helped = gm.GPRegressor(**settings, n_restarts=4).fit(*data)
    assert alone.noise_ > 0.3
    assert helped.noise_ < 0.01
    assert helped.evidence_.value > alone.evidence_.value + 20
    assert helped.outcome_.starts == 5


@pytest.mark.parametrize("seed", range(4))
def test_restarts_never_give_something_worse(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=15)
    kernel = 1.0 * gm.Matern52([1.0, 1.0])
    alone = gm.GPRegressor(kernel, n_restarts=0).fit(X, y)
    helped = gm.GPRegressor(kernel, n_restarts=3, random_state=seed).fit(X, y)
    assert helped.evidence_.value >= alone.evidence_.value - 1e-6 * abs(alone.evidence_.value)


def test_the_same_seed_gives_the_same_result(data):
    first, second = (gm.GPRegressor(n_restarts=3, random_state=5).fit(*data) for _ in range(2))
    assert np.array_equal(first.theta_, second.theta_)
    assert np.array_equal(first.predict(data[0]), second.predict(data[0]))
    assert first.outcome_.evaluations == second.outcome_.evaluations
    third = gm.GPRegressor(n_restarts=3, random_state=np.random.RandomState(5)).fit(*data)
    assert np.array_equal(first.theta_, third.theta_)


# Notes with cures. ------------------------------------------------------------------------------------------


def note_of(gp, word):
    return next(note for note in gp.outcome_.notes if word in note)


def test_jitter_is_told_with_its_cause():
    X = np.linspace(0, 1, 30)[:, None]
    gp = gm.GPRegressor(gm.RBF(5.0), noise=gm.fixed(0), optimize=False).fit(X, np.sin(X[:, 0]))
    assert gp.outcome_.jitter > 0
    assert "singular to rounding" in note_of(gp, f"{gp.outcome_.jitter:g}")
    X = np.concatenate([X, X[:4]])
    twice = gm.GPRegressor(gm.Matern12(1.0), noise=gm.fixed(0), optimize=False).fit(X, np.sin(X[:, 0]))
    assert "4 rows of X repeat another" in note_of(twice, "singular")
    assert "larger noise" in note_of(twice, "singular")


def test_singular_beyond_the_ladder_is_refused_with_the_cause(data):
    X = np.array([[0.0], [1.0], [0.0]])
    method = Exact(Cholesky(ladder=(0.0,)))
    with pytest.raises(
        NumericalError, match=r"not positive definite.*fails at row 2.*Rows 0 and 2 of X are equal"
    ) as caught:
        gm.GPRegressor(gm.RBF(1.0), noise=gm.fixed(0), optimize=False, method=method).fit(X, [0.0, 1.0, 0.0])
    assert "noise" in str(caught.value)


def test_a_column_that_does_not_matter():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (60, 2))
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), n_restarts=0).fit(
        X, np.sin(9 * X[:, 0]) + 0.05 * rng.normal(size=60)
    )
    assert "flat or straight along its column" in note_of(gp, "kernel.lengthscale[1]")
    row = next(row for row in gp.parameters_ if row.name == "kernel.lengthscale[1]")
    assert "flat or straight" in row.note


def test_noise_at_its_floor():
    X = np.linspace(0, 1, 25)[:, None]
    gp = gm.GPRegressor(1.0 * gm.RBF(0.3), n_restarts=0).fit(X, np.sin(6 * X[:, 0]))
    assert "free of noise" in note_of(gp, "noise")


def test_bounds_tell_nothing_where_nothing_was_optimised(tmp_path):
    X = np.linspace(0, 1, 25)[:, None]
    y = np.random.default_rng(0).standard_normal(25)
    kernel = 1.0 * gm.RBF(gm.param(0.3, bounds=(0.3, 3.0)))
    gp = gm.GPRegressor(kernel, noise=1e-10, optimize=False).fit(X, y)
    gp.save(tmp_path / "model.gm")
    for model in (gp, gm.load(tmp_path / "model.gm")):
        assert not any("floor" in note or "bound" in note for note in model.outcome_.notes)
        assert not any(row.note for row in model.parameters_)
    far = gm.GPRegressor(gm.RBF(1000.0), noise=0.1, optimize=False).fit(X, y)
    assert "flat or straight" in note_of(far, "kernel.lengthscale")  # true of any value, however it was found


def test_a_bound_that_binary_models_share_is_told_once():
    X = np.random.default_rng(0).uniform(0, 1, (45, 1))
    kernel = 1.0 * gm.RBF(gm.param(5.0, bounds=(4.0, 8.0)))
    gp = gm.GPClassifier(kernel, multiclass="ovr", shared=True, n_restarts=0).fit(
        X, np.floor(3 * X[:, 0]).astype(int)
    )
    assert len([note for note in gp.outcome_.notes if "at its lower bound 4" in note]) == 1


def test_a_parameter_at_its_bound(data):
    gp = gm.GPRegressor(1.0 * gm.RBF(gm.param(2.0, bounds=(1.5, 3.0))), n_restarts=0).fit(*data)
    assert gp.parameters_["kernel.lengthscale"] == pytest.approx(1.5)
    assert "lower bound 1.5" in note_of(gp, "kernel.lengthscale")
    assert "widen" in note_of(gp, "kernel.lengthscale")


# Memory. ----------------------------------------------------------------------------------------------------


def test_memory_is_refused_before_anything_large_is_allocated(monkeypatch):
    X, y = np.zeros((4000, 2)), np.zeros(4000)
    monkeypatch.setattr(RuleOnEngine, "evidence_and_gradient", lambda *_: pytest.fail("work began"))
    monkeypatch.setattr(RuleOnEngine, "infer", lambda *_: pytest.fail("work began"))
    with pytest.raises(
        MemoryLimitError,
        match=r"4,000 rows needs .*, but only 100 MB may be used \(memory_limit='100MB'\). Within it are cg",
    ):
        gm.GPRegressor(method="exact", memory_limit="100MB").fit(X, y)
    with pytest.raises(MemoryLimitError, match=r"'vfe'.* 1 MB .*Raise memory_limit"):
        gm.GPRegressor(memory_limit=1_000_000).fit(X, y)


def test_memory_limits_covariances_and_draws_too(data):
    gp = gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False, memory_limit="20MB").fit(*data)
    Z = np.linspace(0, 1, 3000)[:, None]
    with pytest.raises(MemoryLimitError, match=r"covariance of 3,000 points.*return_std"):
        gp.predict(Z, return_cov=True)
    with pytest.raises(MemoryLimitError, match=r"3,000 points.*fewer points"):
        gp.sample(Z)
    assert gp.predict(Z, return_std=True)[0].shape == (3000,)


@pytest.mark.parametrize(("method", "taken"), [("exact", "exact"), ("cg", "exact"), ("vfe", "vfe")])
def test_an_inference_that_is_out_of_time_knows_fewer_rows(monkeypatch, tmp_path, method, taken):
    """Against its prediction it does not end; what is left is a model of some rows, and a note."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (900, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(900)
    plain, asked, passed, now = RuleOnEngine.infer, [], [0.0], clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + passed[0])

    def infer(self, model, data, report=None):
        asked.append(len(data.X))
        if len(asked) == 1:
            passed[0] = 111.0
            raise OutOfTime
        return plain(self, model, data, report)

    monkeypatch.setattr(RuleOnEngine, "infer", infer)
    gp = gm.GPRegressor("matern52", n_restarts=0, method=method, time_limit=100.0).fit(X, y)
    assert asked[0] == 900 > asked[1] == gp.fitted_.n_rows
    note = next(note for note in gp.outcome_.notes if "The final inference on 900 rows" in note)
    assert f"than the time limit allows: this model knows {asked[1]} of them, chosen at random." in note
    assert np.sqrt(np.mean((gp.predict(X) - np.sin(X[:, 0])) ** 2)) < 0.1
    assert gp.outcome_.method == taken
    assert gp.log_evidence() == pytest.approx(gp.evidence_.value)  # of what it was made with
    gp.save(tmp_path / "fewer.gm")
    assert_allclose(gm.load(tmp_path / "fewer.gm").predict(X), gp.predict(X))


def test_a_clock_around_a_fit_counts(data):
    """As that of a command, which has read a file before."""
    with clock.until(clock.now() - 1.0, math.inf):
        gp = gm.GPRegressor(time_limit=1000.0).fit(*data)
    assert gp.outcome_.stopped == "time limit"


# Ctrl-C in binary models. -----------------------------------------------------------------------------------


def several(n=90):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * rng.normal(size=n), [-0.6, 0.6])]


def pressed_at(monkeypatch, at):
    """Presses Ctrl-C in evaluation number `at` of all models together, which hear of it by the next. One
    thread, so that they come one after the other."""
    monkeypatch.setattr(multiclass, "thread_count", lambda: 1)
    original, calls, heard = RuleOnEngine.evidence_and_gradient, [], threading.Event()
    rung = clock.Bell.__setattr__

    def ring(bell, name, value):
        rung(bell, name, value)
        if value:
            heard.set()

    def counted(self, *arguments):
        calls.append(1)
        if len(calls) == at:
            os.kill(os.getpid(), signal.SIGINT)
            assert heard.wait(60)
        return original(self, *arguments)

    monkeypatch.setattr(clock.Bell, "__setattr__", ring)
    monkeypatch.setattr(RuleOnEngine, "evidence_and_gradient", counted)
    return calls


@pytest.fixture
def own_handler():
    """As in a program of its own, whatever other tests have left."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("own_handler")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("scheme", ["ovr", "ovo"])
def test_interrupt_keeps_the_binary_models_there_are(scheme, monkeypatch, tmp_path):
    X, y = several()
    settings = {"kernel": gm.Matern52(1.0), "multiclass": scheme, "n_restarts": 0, "random_state": 0}
    calls = pressed_at(monkeypatch, -1)
    whole = gm.GPClassifier(**settings).fit(X, y)
    counts = [model.outcome_.evaluations for model in whole.estimators_]
    del calls[:]
    pressed_at(monkeypatch, counts[0] + 4)  # in the second model
    gp = gm.GPClassifier(**settings).fit(X, y)
    first, second, third = gp.estimators_
    assert [model.outcome_.stopped for model in gp.estimators_] == [
        "converged",
        "interrupted",
        "not optimised",
    ]
    assert first.theta_.tolist() == whole.estimators_[0].theta_.tolist()
    assert 3 <= second.outcome_.evaluations < counts[1]
    assert_allclose(third.theta_, first.theta_, rtol=1e-12)
    assert gp.outcome_.stopped == "interrupted"
    assert gp.outcome_.notes[0] == (
        "The fit was interrupted: of its binary models 1 fitted to the end, 1 as far as they got, 1 with the"
        " parameters of another."
    )
    assert np.mean(gp.predict(X) == y) > 0.8
    gp.save(tmp_path / "m.gm")
    assert gm.load(tmp_path / "m.gm").outcome_.stopped == "interrupted"


@pytest.mark.usefixtures("own_handler")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_interrupt_before_there_is_a_binary_model(monkeypatch):
    pressed_at(monkeypatch, 1)
    original = RuleOnEngine.evidence_and_gradient

    def fails(self, *arguments):
        original(self, *arguments)
        clock.heed()  # before there is a value
        raise AssertionError

    monkeypatch.setattr(RuleOnEngine, "evidence_and_gradient", fails)
    gp = gm.GPClassifier(gm.RBF(1.0), multiclass="ovr", n_restarts=0)
    with pytest.raises(KeyboardInterrupt):
        gp.fit(*several())
    assert not hasattr(gp, "fitted_")


@pytest.mark.usefixtures("own_handler")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_interrupt_after_the_search_of_shared_parameters_keeps_them(monkeypatch):
    """The binary models are conditioned once more, with the parameters that were found."""
    monkeypatch.setattr(multiclass, "thread_count", lambda: 1)
    settings = {"kernel": gm.Matern52(1.0), "multiclass": "ovr", "shared": True, "n_restarts": 0}
    X, y = several()
    whole = gm.GPClassifier(**settings).fit(X, y)
    original, calls = RuleOnEngine.infer, []

    def pressed(self, *arguments):
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            end = clock.now() + 60
            while clock.now() < end:
                clock.heed()
        return original(self, *arguments)

    monkeypatch.setattr(RuleOnEngine, "infer", pressed)
    gp = gm.GPClassifier(**settings).fit(X, y)
    assert gp.outcome_.stopped == "interrupted"
    assert gp.theta_.tolist() == whole.theta_.tolist()
    assert np.array_equal(gp.predict_proba(X), whole.predict_proba(X))


@pytest.mark.usefixtures("own_handler")
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_interrupt_while_the_level_is_found_waits_for_it(monkeypatch):
    original, pressed = level.on_all_rows, []

    def slow(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        pressed.append(1)
        return original(*arguments)

    monkeypatch.setattr(level, "on_all_rows", slow)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 1))
    gp = gm.GPRegressor("rbf", n_restarts=0).fit(X, np.sin(X[:, 0]))
    assert pressed == [1]
    assert gp.outcome_.stopped == "interrupted"
    assert np.isfinite(gp.predict(X)).all()
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
