"""Rows foretold by parameters that have not seen them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian import clock
from gramian.estimators import calibrating
from gramian.fitting import folds
from gramian.fitting.folds import FOLDS, foretold
from gramian.fitting.rows import in_random_order
from gramian.params import fixed
from gramian.warps import SinhArcsinh


@pytest.fixture(scope="module")
def noise():
    """Nothing but noise, in so many columns that a search finds something in it."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((120, 25)), rng.standard_normal(120)


def searched(X, y, **settings):
    return gm.GPRegressor("matern52", random_state=0, **settings).fit(X, y).fitted_


def test_with_fixed_parameters_they_are_predictions_from_the_other_folds():
    rng = np.random.default_rng(1)
    X = rng.random((53, 2))  # which five does not divide
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(53)
    kernel, known = fixed(1.0) * gm.RBF(fixed(0.5)), rng.uniform(0.01, 0.1, 53)
    settings = {"noise": fixed(0.02), "mean": "zero", "normalize_y": False, "optimize": False}
    whole = gm.GPRegressor(kernel, **settings).fit(X, y, noise_var=known).fitted_
    found = foretold(whole.model, whole.rows, whole.inference)
    assert found is not None
    size, order = -(-53 // FOLDS), in_random_order(whole.rows, np.random.default_rng(0))
    mean, std = np.empty(53), np.empty(53)
    for k in range(FOLDS):
        turned = np.roll(order, -(53 * k // FOLDS))
        out, others = turned[:size], np.sort(turned[size:])
        gp = gm.GPRegressor(kernel, **settings).fit(X[others], y[others], noise_var=known[others])
        mean[out], std[out] = gp.predict(X[out], return_std=True)
        std[out] = np.sqrt(std[out] ** 2 + known[out])  # of y, which has the noise of the model in it
    assert_allclose(found.mean, mean, atol=1e-9)
    assert_allclose(found.residual, (y - mean) / std, atol=1e-9)


def test_rows_that_the_search_has_not_seen_are_foretold_worse(noise):
    fitted = searched(*noise)
    left_out = (noise[1] - fitted.left_out().mean) / fitted.left_out().std
    found = foretold(fitted.model, fitted.rows, fitted.inference)
    assert found is not None
    # by about 27 parameters of 120 rows: (n + p) / (n - p) is 1.6
    assert np.mean(found.residual**2) > 1.2 * np.mean(left_out**2)


def test_residuals_are_of_warped_y():
    rng = np.random.default_rng(2)
    X = rng.random((60, 1))
    y = np.exp(np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(60))
    fitted = searched(X, y, warp=SinhArcsinh())
    found = foretold(fitted.model, fitted.rows, fitted.inference)
    assert found is not None
    assert 0.7 < np.sqrt(np.mean(found.residual**2)) < 1.5


def test_calibration_takes_them_and_goes_without_where_time_is_short(noise, monkeypatch):
    fitted = searched(*noise)
    after = calibrating.calibrated(fitted).calibration
    with clock.until(clock.now()):
        assert foretold(fitted.model, fitted.rows, fitted.inference) is None
    monkeypatch.setattr(calibrating, "foretold", lambda *given: None)
    left_out = calibrating.calibrated(fitted).calibration
    assert after is not None
    assert left_out is not None
    assert after.scale > 1.05 * left_out.scale


def test_an_interrupt_is_told(noise, monkeypatch):
    plain = folds.maximise

    def interrupted(*given, **settings):
        return dataclasses.replace(plain(*given, **settings), stopped="interrupted")

    monkeypatch.setattr(folds, "maximise", interrupted)
    fitted = searched(*noise, optimize=False)
    with pytest.raises(KeyboardInterrupt):
        foretold(fitted.model, fitted.rows, fitted.inference)
