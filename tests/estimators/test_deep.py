"""Deep models: never below the shallow one, mixtures over draws, the same with a seed, files, limits, Ctrl-C.

Fits are short: what is learned is tested once, on a step, and everything else on whatever there is.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm
from gramian.corrections import Calibration
from gramian.deep.process import DeepProcess
from gramian.deep.scheme import Deep
from gramian.errors import InputError, MemoryLimitError, ParameterError
from gramian.fitting import layers as search

SHORT = {"steps": 6, "n_inducing": 8, "random_state": 0}


@parametrize_with_checks([gm.DeepGPRegressor(1, n_inducing=10), gm.DeepGPClassifier(1, n_inducing=10)])
def test_scikit_learns_own_checks(estimator, check):
    """Of one layer: each check is on data of another shape, and programs of more take long to compile."""
    check(estimator)


@pytest.fixture(scope="module")
def step_data():
    X = np.linspace(0, 1, 40)[:, None]
    return X, (X[:, 0] > 0.5) + 0.01 * np.random.default_rng(0).standard_normal(40)


@pytest.fixture(scope="module")
def stepped(step_data):
    return gm.DeepGPRegressor(2, n_inducing=40, steps=800, random_state=0).fit(*step_data)


@pytest.fixture(scope="module")
def table(step_data):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (30, 2))
    return X, np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(30)


@pytest.fixture
def deep_wins(monkeypatch):
    """Depth is taken whatever its bound, so that short fits leave deep models."""
    monkeypatch.setattr(search, "_better", lambda fewer, deep, by=0.0: True)


# What is learned. -------------------------------------------------------------------------------------------


def test_a_step_is_flat_on_both_sides(step_data, stepped):
    """Where one layer with the same kernel waves, and has a noise of a tenth of the step."""
    X, y = step_data
    away = np.abs(X[:, 0] - 0.5) > 0.03
    truth, shallow = (X[:, 0] > 0.5).astype(float), gm.GPRegressor("rbf", warp=None, hyper="map").fit(X, y)
    assert stepped.n_layers_ == 2
    assert np.max(np.abs(stepped.predict(X) - truth)[away]) < 0.05
    assert np.max(np.abs(shallow.predict(X) - truth)[away]) > 0.05
    assert stepped.noise_ < 0.1 * shallow.noise_
    assert stepped.evidence_.value > shallow.evidence_.value + 20
    assert stepped.evidence_.kind == "lower bound"
    assert 0 < stepped.evidence_.standard_error < 5


def test_the_outcome_says_what_depth_has_gained(stepped):
    assert "2 layers raise the bound by" in stepped.outcome_.stages[-1]
    assert "deep, 2 layers on all 40 rows" in stepped.outcome_.stages[-2]
    assert "layer 2" in stepped.summary()
    assert "layer2.lengthscale[0]" in stepped.parameters_.names


def test_never_below_the_shallow_model(table):
    """A search that is too short to learn anything leaves the model of one layer, and says so."""
    X, y = table
    deep, one = gm.DeepGPRegressor(2, **SHORT).fit(X, y), gm.DeepGPRegressor(1, **SHORT).fit(X, y)
    assert deep.n_layers_ == one.n_layers_ == 1
    assert "lower the bound by" in deep.outcome_.notes[0]
    assert "this is the model of one layer" in deep.outcome_.notes[0]
    assert deep.evidence_ == one.evidence_
    assert np.array_equal(deep.predict(X), one.predict(X))


def test_one_layer_with_all_points_is_the_exact_posterior(table):
    X, y = table
    one = gm.DeepGPRegressor(1, n_inducing=30, random_state=0).fit(X, y)
    exact = gm.GPRegressor("rbf", warp=None, hyper="map").fit(X, y)
    for mine, theirs in zip(one.predict(X, True), exact.predict(X, True), strict=True):
        assert_allclose(mine, theirs, atol=2e-3)
    assert_allclose(one.evidence_.value, exact.evidence_.value, atol=0.05)
    assert_allclose(one.log_evidence(), one.evidence_.value, rtol=1e-10)


def test_left_out_rows_are_told_of_many(monkeypatch, deep_wins):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (210, 1))
    gp = gm.DeepGPRegressor(2, **SHORT).fit(X, np.sign(X[:, 0]) + 0.1 * rng.standard_normal(210))
    assert "the log density of 21 left-out rows by" in gp.outcome_.stages[-1]


# The kind of model of f. ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def skewed():
    """A logarithm suits it, and no rows are left to judge: 220 of them, 22 for comparing depths."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (220, 2))
    return X, np.exp(1.5 * np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(220))


@pytest.fixture(scope="module")
def chosen(skewed):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_better", lambda fewer, deep, by=0.0: True)
        return gm.DeepGPRegressor(2, **SHORT).fit(*skewed)


def test_f_is_chosen_as_one_layer_would_be(chosen, skewed, tmp_path):
    """With a warp of y, that stays while layers are searched for; inner layers are smooth whatever f is."""
    X, _ = skewed
    assert "of warped y" in chosen.outcome_.choice[0]
    assert chosen.n_layers_ == 2
    assert "Matern52" in str(chosen.kernels_[1])
    assert "RBF" in str(chosen.kernel_)
    assert not any(p.trainable for p in chosen.fitted_.model.warp.parameters().values())
    assert_allclose(chosen.log_evidence(), chosen.evidence_.value, rtol=1e-12)
    chosen.save(tmp_path / "model.gm")
    again = gm.load(tmp_path / "model.gm")
    assert np.array_equal(again.predict(X), chosen.predict(X))
    assert again.kernels_ == chosen.kernels_


def test_densities_of_warped_y_are_of_y(chosen, skewed):
    """They add up to one over y, though not all of a heavy tail is on the grid."""
    y = np.geomspace(1e-4, 1e4, 4001)
    logs = chosen.log_density(np.repeat(skewed[0][:1], len(y), axis=0), y)
    assert_allclose(np.trapezoid(np.exp(logs), y), 1.0, atol=0.02)


def test_one_layer_has_the_same_kind_of_model(skewed):
    one = gm.DeepGPRegressor(1, n_inducing=220, random_state=0).fit(*skewed)
    plain = gm.DeepGPRegressor(1, "rbf", n_inducing=220, random_state=0).fit(*skewed)
    assert plain.fitted_.model.warp is None
    assert not plain.outcome_.choice
    assert one.evidence_.value > plain.evidence_.value + 100
    assert one.log_density(*skewed).mean() > plain.log_density(*skewed).mean() + 0.3


def test_labels_choose_their_kernel_too(skewed, deep_wins):
    X, y = skewed
    gp = gm.DeepGPClassifier(2, **SHORT).fit(X, y > np.median(y))
    assert gp.n_layers_ == 2
    assert gp.outcome_.choice
    assert gp.score(X, y > np.median(y)) > 0.8


def test_what_is_fallen_back_on_has_seen_all_rows(skewed):
    """Also those that have compared depths."""
    gp = gm.DeepGPRegressor(2, "rbf", **SHORT).fit(*skewed)
    assert gp.n_layers_ == 1
    assert gp.outcome_.stages[-1].startswith("vfe on all 220 rows")
    assert "this is the model of one layer" in gp.outcome_.notes[0]


def test_few_rows_and_several_outputs_have_the_usual_kernel(skewed, table):
    X, y = skewed
    few, several = (
        gm.DeepGPRegressor(1, n_inducing=8, random_state=0).fit(*rows)
        for rows in (table, (X, np.column_stack([y, y])))
    )
    for gp in (few, several):
        assert "RBF" in str(gp.kernel_)
        assert gp.fitted_.model.warp is None


def test_settings_follow_the_rows():
    """Points by layer; draws, steps and rates by whether a step has all rows."""
    method = Deep()
    assert [method.points(k, 10_000) for k in (0, 1)] == [64, 300]
    assert [method.points(k, 2000) for k in (0, 1)] == [64, 500]
    assert [method.points(k, 50) for k in (0, 1)] == [50, 50]
    assert [method.draws_for(n) for n in (50, 300, 512, 10_000)] == [5, 3, 2, 2]
    assert [method.steps_for(n) for n in (50, 512, 600, 10_000, 10**6)] == [1500, 1500, 1000, 1953, 5000]
    assert [method.rates_for(n) for n in (512, 513)] == [(0.01, 1.0), (0.03, 2.0)]
    given = Deep(n_inducing=20, samples=7, learning_rate=0.005, steps=9)
    assert [given.points(k, 10_000) for k in (0, 1)] == [20, 20]
    assert (given.draws_for(10_000), given.steps_for(10_000)) == (7, 9)
    assert given.rates_for(10_000)[0] == 0.005


def test_auto_takes_no_layer_that_does_not_help(table):
    gp = gm.DeepGPRegressor("auto", **SHORT).fit(*table)
    assert gp.n_layers_ == 1
    assert not any("3 layers" in stage for stage in gp.outcome_.stages)  # two were no better already


def test_three_layers_begin_as_the_two_that_were_found(table, monkeypatch, deep_wins):
    """With certain inner functions of a hundredth of the variance, whose points are the rows, the new layer
    moves nothing: what is foretold is what two layers had, to the hundredth part that the draws differ by."""
    X, y = table
    begun, seen = search.Run.begun, []

    def watched(*given):
        run = begun(*given)
        seen.append((given[5], run, run.result()))
        return run

    monkeypatch.setattr(search.Run, "begun", watched)
    gp = gm.DeepGPRegressor(3, **{**SHORT, "n_inducing": 30}).fit(X, y)
    assert gp.n_layers_ == 3
    (one, _, _), (two, run, first) = seen
    assert (len(one.found.Z), len(two.found.Z)) == (1, 2)
    for upper, own in zip(two.found.Z, first[1].Z[1:], strict=True):
        assert_allclose(own, upper, rtol=1e-12)
    assert [own.kernel for own in first[0].deeper] == search.kernels_of(two.model)
    scale = run.data.scale
    before = DeepProcess.of(two.found, two.model, scale).mean(X)
    assert_allclose(DeepProcess.of(first[1], first[0], scale).mean(X), before, atol=0.02)


def test_a_layer_more_is_kept_only_where_it_gains(table, monkeypatch):
    monkeypatch.setattr(search, "_better", lambda fewer, deep, by=0.0: deep.depth == 2)
    gp = gm.DeepGPRegressor(3, **SHORT).fit(*table)
    assert gp.n_layers_ == 2
    assert "3 layers" in gp.outcome_.notes[0]
    assert "this is the model of 2 layers" in gp.outcome_.notes[0]


def test_rows_that_compare_depths_calibrate(monkeypatch, deep_wins, tmp_path):
    """Noise of two widths, a fifth of the rows five times as wide, which no Gaussian foretells: left-out rows
    say so, and a thousand new rows gain by it."""
    monkeypatch.setattr(search, "JUDGED", 0.4)
    rng = np.random.default_rng(6)
    X = rng.uniform(-2, 2, (1240, 1))
    wide = np.where(rng.random(1240) < 0.2, 0.5, 0.1)
    y = np.sin(2 * X[:, 0]) + wide * rng.standard_normal(1240)
    seen, new = (X[:240], y[:240]), (X[240:], y[240:])
    gp = gm.DeepGPRegressor(2, **SHORT).fit(*seen)
    assert len(gp.fitted_.calibration.shares) > 1  # that of rows unlike all others is always there
    plain = clone(gp)
    plain.fitted_ = dataclasses.replace(gp.fitted_, calibration=None)
    assert np.mean(gp.log_density(*new)) > np.mean(plain.log_density(*new)) + 0.05
    gp.save(tmp_path / "model.gm")
    assert np.array_equal(gm.load(tmp_path / "model.gm").log_density(*new), gp.log_density(*new))
    given = gm.DeepGPRegressor(2, "rbf", **SHORT).fit(*seen)
    assert given.fitted_.calibration is None  # as of GPRegressor: what a person has written stays as it is


@pytest.mark.parametrize("held", [Calibration(1.0), Calibration(0.8, (0.05, 0.02), (3.0, 40.0))])
def test_what_left_out_rows_cannot_exclude_keeps_a_share(held):
    """Of 70 exchangeable rows the last one is farther out than all others in one case of 70: its density
    falls no faster than that of the part which stands for it, and rows near by lose no more than that."""
    found, n = held.open_to_others(69), 69
    z = np.linspace(-200, 200, 400_001)
    p, before = np.exp(found.log_density(z)), np.exp(held.log_density(z))
    assert np.trapezoid(p, z) == pytest.approx(1, abs=1e-6)
    assert np.all(p >= (1 - 1 / (n + 1)) * before * (1 - 1e-12))
    spread = np.sqrt(np.trapezoid(z**2 * before, z))
    alone = norm.pdf(z, scale=5 * spread) / (n + 1)
    near = np.abs(z) < 60  # beyond, they are no numbers any more
    assert np.all(p[near] >= alone[near] * (1 - 1e-6))
    assert list(found.wider) == sorted(found.wider)
    assert np.sqrt(np.trapezoid(z**2 * p, z)) < 1.2 * spread


# Predictions. -----------------------------------------------------------------------------------------------


def test_predictions_are_mixtures_over_draws(stepped):
    X, y = np.array([[0.2], [0.495], [0.8]]), np.array([0.0, 0.5, 1.0])
    mean, var = stepped.posterior_.draws(X)
    assert len(mean) > 10
    assert_allclose(stepped.predict(X, target="f"), mean[:, :, 0].mean(axis=0), rtol=1e-12)
    total = var[:, :, 0] + stepped.noise_
    std = stepped.predict(X, return_std=True)[1]
    assert_allclose(std**2, total.mean(axis=0) + mean[:, :, 0].var(axis=0), rtol=1e-10)
    logs = norm.logpdf(y, mean[:, :, 0], np.sqrt(total))
    assert_allclose(stepped.log_density(X, y), logsumexp(logs, axis=0) - np.log(len(logs)), rtol=1e-9)
    low, high = stepped.predict(X, quantiles=[0.1, 0.9]).T
    shares = norm.cdf(np.array([low, high])[:, None, :], mean[:, :, 0], np.sqrt(total)).mean(axis=1)
    assert_allclose(shares, [[0.1] * 3, [0.9] * 3], atol=1e-6)


def test_a_row_has_one_answer_in_every_table(stepped):
    X = np.linspace(-0.2, 1.2, 90)[:, None]
    assert np.array_equal(stepped.predict(X)[70:], stepped.predict(X[70:]))


def test_draws_have_the_moments_of_predictions(stepped):
    """2,000 joint draws of f: means within 5 standard errors; and the ends between which two thirds of them
    lie, within a sixth of what is between: ten standard errors, and the prediction is itself of 64 draws of
    the layer below. Standard deviations are no measure: at a step a few draws are far out, and their fourth
    moment is up to 150 times the square of the second."""
    X = np.array([[0.1], [0.3], [0.9]])
    draws, (mean, std) = stepped.sample(X, 2000, random_state=1), stepped.predict(X, True, target="f")
    assert np.array_equal(draws, stepped.sample(X, 2000, random_state=1))
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 5 * std / np.sqrt(2000) + 0.1 * std)
    ends = stepped.predict(X, quantiles=[1 / 6, 5 / 6], target="f")
    wide = ends[:, 1] - ends[:, 0]
    assert np.all(np.abs(np.quantile(draws, [1 / 6, 5 / 6], axis=1).T - ends) < 0.17 * wide[:, None])
    cov = stepped.predict(X, return_cov=True, target="f")[1]
    assert_allclose(np.diagonal(cov), std**2, rtol=1e-12)
    assert_allclose(np.corrcoef(draws), cov / np.sqrt(np.outer(*[np.diagonal(cov)] * 2)), atol=0.2)


def test_layers_are_told(stepped):
    X = np.linspace(0, 1, 7)[:, None]
    view = stepped.layer_outputs(X)
    assert view.seen[0].shape == (7, 1)
    assert view.draws[0].shape[1:] == (7, 1)
    assert_allclose(view.f, stepped.predict(X, target="f")[:, None])
    first, second, f = stepped.sample_layers(X)
    assert np.array_equal(first, X)
    assert second.shape == f.shape == (7, 1)
    assert len(stepped.kernels_) == 2


def test_before_a_fit_it_draws_from_the_prior():
    """Through all layers: with inner functions of some variance f is no Gaussian process of x."""
    layers = [gm.Layer(1.0 * gm.RBF(0.3)), gm.Layer(1.0 * gm.RBF(0.3))]
    gp, X = gm.DeepGPRegressor(layers), np.linspace(0, 1, 12)[:, None]
    assert gp.sample(X, 3).shape == (12, 3)
    _, h, f = gp.sample_layers(X, random_state=2)
    assert np.std(h - X) > 0.05
    assert f.shape == (12, 1)


# Files and seeds. -------------------------------------------------------------------------------------------


def test_a_file_gives_the_same_bits(stepped, tmp_path):
    X = np.linspace(-0.1, 1.1, 20)[:, None]
    stepped.save(tmp_path / "model.gm")
    again = gm.load(tmp_path / "model.gm")
    assert type(again) is gm.DeepGPRegressor
    assert again.n_layers_ == 2
    assert again.get_params() == stepped.get_params()
    assert again.evidence_ == stepped.evidence_
    for mine, theirs in zip(again.predict(X, True), stepped.predict(X, True), strict=True):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(again.sample(X, 2, random_state=3), stepped.sample(X, 2, random_state=3))


def test_layers_of_all_kinds_come_back_from_files(table, deep_wins, tmp_path):
    X, y = table
    frame = pd.DataFrame({"a": 1e6 * X[:, 0], "b": X[:, 1], "c": np.where(X[:, 1] > 0, "up", "down")})
    frame.loc[3, "a"] = np.nan
    layers = [gm.Layer(width=1, n_inducing=12), gm.Layer(width=4), gm.Layer("1.0 * RBF(2.0)")]
    gp = gm.DeepGPRegressor(layers, **SHORT).fit(frame, y)
    assert gp.n_layers_ == 3
    assert [len(Z) for Z in gp.fitted_.inference.Z] == [12, 8, 8]
    gp.save(tmp_path / "model.gm")
    again = gm.load(tmp_path / "model.gm")
    assert again.layers == layers
    assert np.array_equal(again.predict(frame), gp.predict(frame))


def test_the_same_seed_gives_the_same_bits(table, deep_wins):
    first, second = (gm.DeepGPRegressor(2, **SHORT).fit(*table) for _ in range(2))
    assert first.n_layers_ == 2
    assert np.array_equal(first.predict(table[0]), second.predict(table[0]))
    other = clone(first).set_params(random_state=1).fit(*table)
    assert not np.array_equal(first.predict(table[0]), other.predict(table[0]))


def test_units_do_not_matter(table, deep_wins):
    X, y = table
    plain = gm.DeepGPRegressor(2, **SHORT).fit(X, y)
    scaled = gm.DeepGPRegressor(2, **SHORT).fit(1e5 * X + 1e5, 1e3 * y - 7)
    assert_allclose(scaled.predict(1e5 * X + 1e5), 1e3 * plain.predict(X) - 7, atol=1.0)


# Likelihoods. -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(table, deep_wins, tmp_path, classes):
    X, y = table
    labels = np.array(["a", "b", "c"])[np.digitize(y, [0.0] if classes == 2 else [-0.5, 0.5])]
    gp = gm.DeepGPClassifier(2, **SHORT).fit(X, labels)
    P = gp.predict_proba(X)
    assert gp.n_layers_ == 2
    assert P.shape == (30, classes)
    assert_allclose(P.sum(axis=1), 1.0)
    assert gp.score(X, labels) > 0.7
    gp.save(tmp_path / "model.gm")
    assert np.array_equal(gm.load(tmp_path / "model.gm").predict_proba(X), P)


def test_other_likelihoods_and_outputs(table, deep_wins):
    X, y = table
    counts = np.random.default_rng(0).poisson(np.exp(y))
    poisson = gm.DeepGPRegressor(2, likelihood="poisson", **SHORT).fit(X, counts)
    assert np.all(poisson.predict(X) > 0)
    Y = np.column_stack([y, 100 * y])
    Y[4, 1] = np.nan
    both = gm.DeepGPRegressor(2, **SHORT).fit(X, Y)
    assert both.predict(X).shape == (30, 2)
    assert both.n_layers_ == poisson.n_layers_ == 2
    assert np.all(np.isfinite(both.evidence_.value))


def test_one_layer_leaves_out_entries_that_are_missing(table):
    """The shallow model that all begins with, and falls back to."""
    X, y = table
    Y = np.column_stack([y, y])
    Y[:12, 1] = np.nan
    gp = gm.DeepGPRegressor(1, "rbf", n_inducing=30, random_state=0).fit(X, Y)
    assert np.isfinite(gp.evidence_.value)
    # noise of 0.1, and the second output has 18 rows to learn from
    assert np.sqrt(np.mean((gp.predict(X) - np.sin(3 * X[:, :1])) ** 2, axis=0)) == pytest.approx(
        0.0, abs=0.4
    )


# Limits. ----------------------------------------------------------------------------------------------------


def test_ctrl_c_leaves_a_model(table, monkeypatch, deep_wins):
    taken = search.Run.step

    def stopped(self, *rest):
        if self.done == 4:
            raise KeyboardInterrupt
        taken(self, *rest)

    monkeypatch.setattr(search.Run, "step", stopped)
    gp = gm.DeepGPRegressor(2, **SHORT).fit(*table)
    assert gp.outcome_.stopped == "interrupted"
    assert gp.n_layers_ == 2
    assert "4 evaluations, interrupted" in gp.outcome_.stages[-2]
    assert np.all(np.isfinite(gp.predict(table[0])))


def test_a_time_that_is_too_short_leaves_one_layer(table):
    gp = gm.DeepGPRegressor(2, time_limit=1.0, random_state=0).fit(*table)
    assert gp.n_layers_ == 1
    assert any("no time for 2 layers" in note for note in gp.outcome_.notes)


def test_a_time_limit_cuts_steps(table, monkeypatch, deep_wins):
    """With a limit of 60 s all short steps are done; the end of the time is asked for before each."""
    gp = gm.DeepGPRegressor(2, time_limit=60.0, **SHORT).fit(*table)
    assert "6 evaluations" in gp.outcome_.stages[-2]
    taken, later = search.Run.step, []

    def slow(self, *rest):
        """After it the time is over."""
        taken(self, *rest)
        later.append(3600.0)
        monkeypatch.setattr(search.clock, "now", lambda: time.monotonic() + sum(later))

    monkeypatch.setattr(search.Run, "step", slow)
    gp = gm.DeepGPRegressor(2, time_limit=60.0, **SHORT).fit(*table)
    assert gp.outcome_.stopped == "time limit"
    assert len(later) == 1


def test_memory_is_asked_for_before(table):
    with pytest.raises(MemoryLimitError, match="'deep'"):
        gm.DeepGPRegressor(2, memory_limit="1MB").fit(*table)
    plan = gm.DeepGPRegressor(3).plan(*table)
    assert "deep, 3 layers" in str(plan)
    assert plan.choice.bytes > gm.DeepGPRegressor(2).plan(*table).choice.bytes


# What is refused. -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": 0}, "layers=0 must be a whole number from 1 to 10"),
        ({"layers": "deep"}, "or a list of as many"),
        ({"layers": [2, 2]}, "must be a whole number"),
        ({"n_inducing": 0}, "n_inducing"),
        ({"steps": 0}, "steps"),
        ({"learning_rate": -1.0}, "learning_rate"),
        ({"kernel": [gm.RBF(), gm.RBF()]}, "one a layer"),
        ({"layers": [gm.Layer("rbf"), gm.Layer()]}, "is a word for a default kernel"),
    ],
)
def test_settings_that_make_no_sense(table, settings, message):
    with pytest.raises(ParameterError, match=message):
        gm.DeepGPRegressor(**settings).fit(*table)


def test_layers_that_make_no_sense():
    with pytest.raises(ParameterError, match="width=0 must be a whole number from 1 on"):
        gm.Layer(width=0)
    with pytest.raises(ParameterError, match="kernel must be a kernel"):
        gm.Layer(3)


def test_what_deep_models_have_not(stepped, table):
    with pytest.raises(ParameterError, match="no cavities"):
        stepped.loo()
    with pytest.raises(ParameterError, match="Certificates compare"):
        stepped.certificate()
    with pytest.raises(ParameterError, match="no gradient to the last digit"):
        stepped.log_evidence(return_grad=True)
    with pytest.raises(ParameterError, match="models of one layer"):
        gm.DeepGPClassifier(multiclass="ovr").fit(table[0], table[1] > 0)
    with pytest.raises(InputError):
        gm.DeepGPRegressor(2).fit(table[0][:, :0], table[1])


@pytest.mark.parametrize("rows", [1, 2])
def test_hardly_any_rows(table, rows):
    X, y = table
    gp = gm.DeepGPRegressor(2, **SHORT).fit(X[:rows], y[:rows])
    assert np.all(np.isfinite(gp.predict(X, return_std=True)))


def test_columns_that_say_nothing(table, deep_wins):
    X, y = table
    still = np.column_stack([X, np.ones(30)])
    assert np.all(np.isfinite(gm.DeepGPRegressor(2, **SHORT).fit(still, y).predict(still)))
    words = pd.DataFrame({"c": np.where(X[:, 0] > 0, "u", "v")})
    gp = gm.DeepGPRegressor(2, **SHORT).fit(words, y)
    assert np.all(np.isfinite(gp.predict(words)))
