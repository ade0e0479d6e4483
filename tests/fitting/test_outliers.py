"""Rows that are taken for outliers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import betabinom, norm

import gramian as gm
from gramian.fitting.outliers import FIRST, A, B, log_prior, outliers
from gramian.inference import Data
from gramian.inference.base import RuleOnEngine


def wave(n=120, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    f = np.sin(X[:, 0]) + 0.5 * X[:, 1]
    return X, f, f + noise * rng.standard_normal(n)


def spoiled(share=0.05, size=5.0, **settings):
    """The same with a few y far away; X, f, y, and which rows."""
    X, f, y = wave(**settings)
    rows = np.arange(len(y)) % round(1 / share) == 3
    return X, f, np.where(rows, y + size * np.where(np.arange(len(y)) % 2, 1.0, -1.0), y), rows


def test_a_row_is_one_where_two_densities_say_so():
    r, v = np.array([0.1, -0.4, 0.2, 0.3, np.nan] * 8), np.full(40, 0.25)
    r[[7, 22]] = 6.0
    found = outliers(r, v)
    square = FIRST**2 * 0.25
    odds = np.log((32 + B) / A)  # eight of forty are not observed
    gain = norm.logpdf(r, scale=np.sqrt(v + square)) - norm.logpdf(r, scale=np.sqrt(v)) - odds
    assert_allclose(found.excess, np.where(r == 6.0, square, 0.0))
    assert_allclose(found.gain, gain[r == 6.0].sum())


def test_their_variance_is_that_of_the_ones_before():
    r, v = np.array([5.0, 7.0, *np.linspace(-0.5, 0.5, 60)]), np.full(62, 0.25)
    before = np.where(np.arange(62) < 2, 1.0, 0.0)
    assert_allclose(outliers(r, v, before).excess[:2], (25 + 49) / 2 - 0.25)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_none_and_too_many_are_none(share):
    r = np.where(np.arange(100) < 100 * share, 8.0, 0.2)
    assert outliers(r, np.full(100, 0.1)) is None


def test_the_prior_is_that_of_how_many_there_are():
    excess = np.array([2.0] * 3 + [0.0] * 47)
    # any three of the rows are as probable as any others
    apart = betabinom(50, A, B).logpmf(3) - np.log(50 * 49 * 48 / 6) - betabinom(50, A, B).logpmf(0)
    assert_allclose(log_prior(excess), apart, rtol=1e-9)
    assert log_prior(None) == 0.0


def test_default_finds_them_and_is_as_good_as_without():
    X, f, y, rows = spoiled()
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    clean = gm.GPRegressor(random_state=0).fit(X[~rows], y[~rows])
    spoilt = gm.GPRegressor("matern52", random_state=0).fit(X, y)
    errors = [np.sqrt(np.mean((one.predict(X) - f) ** 2)) for one in (gp, clean, spoilt)]
    assert errors[0] < 1.2 * errors[1]
    assert errors[0] < 0.5 * errors[2]
    assert np.array_equal(gp.fitted_.rows.excess > 0, rows)
    assert any("6 rows are taken for outliers" in note for note in gp.outcome_.notes)
    assert any("taken for outliers: 6 of 120" in line for line in gp.outcome_.choice)


def test_new_rows_may_be_outliers_too():
    X, _, y, rows = spoiled()
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    calibration = gp.fitted_.calibration
    far = [share for share, width in zip(calibration.shares, calibration.wider, strict=True) if width > 10]
    assert 0.02 < sum(far) < 0.12  # 5 % were
    # a row that was one of them is foretold as a row that is none
    left_out = gp.loo()
    assert np.median(left_out.std[rows]) < 2 * np.median(left_out.std[~rows])


def test_clean_rows_have_none():
    X, _, y = wave()
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    assert gp.fitted_.rows.excess is None
    assert not any("outlier" in text for text in (*gp.outcome_.notes, *gp.outcome_.choice))


def test_named_kernels_take_every_row():
    X, _, y, _ = spoiled()
    assert gm.GPRegressor("matern52").fit(X, y).fitted_.rows.excess is None


def test_among_many_rows_those_beyond_the_path_are_found(monkeypatch):
    monkeypatch.setattr("gramian.estimators.defaults.ROWS", 80)
    monkeypatch.setattr("gramian.estimators.defaults.FEWEST_HELD", 1000)
    X, _, y, rows = spoiled(n=160)
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    assert np.array_equal(gp.fitted_.rows.excess > 0, rows)


def test_copies_of_outliers_are_ones():
    X, _, y, rows = spoiled()
    twice = np.r_[np.arange(len(y)), np.flatnonzero(rows)[:2]]
    gp = gm.GPRegressor(random_state=0).fit(X[twice], y[twice])
    assert np.all(gp.fitted_.rows.excess[-2:] > 0)


@pytest.mark.parametrize("when", [1, 2, 4])
def test_ctrl_c_while_they_are_looked_for_leaves_the_model_without(monkeypatch, when):
    original, calls = RuleOnEngine.cavities, []

    def interrupted(*given):
        calls.append(given)
        if len(calls) == when:
            raise KeyboardInterrupt
        return original(*given)

    X, _, y, _ = spoiled()
    monkeypatch.setattr(RuleOnEngine, "cavities", interrupted)
    gp = gm.GPRegressor(random_state=0, hyper="map").fit(X, y)
    assert gp.outcome_.stopped == "interrupted"
    assert gp.fitted_.rows.excess is None


def test_a_model_file_keeps_them(tmp_path):
    X, _, y, _ = spoiled()
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    gp.save(tmp_path / "m.gm")
    again = gm.load(tmp_path / "m.gm")
    assert np.array_equal(again.fitted_.rows.excess, gp.fitted_.rows.excess)
    assert np.array_equal(again.predict(X, return_std=True), gp.predict(X, return_std=True))
    assert np.array_equal(again.loo().mean, gp.loo().mean)


def test_noise_of_rows_is_known_noise_and_excess():
    data = Data(
        np.zeros((3, 1)), np.zeros((3, 1)), np.ones(1), np.array([1.0, 2.0, 3.0]), np.array([0, 5.0, 0])
    )
    assert_allclose(data.added_noise, [1, 7, 3])
    assert_allclose(data.take([1]).added_noise, [7])
