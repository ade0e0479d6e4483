"""What must not change an answer: how categories are spelled, and where y has its zero."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import gramian as gm


def sites(spelling: dict[str, str]) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    site = rng.choice(["a", "b", "c"], 60)
    x = rng.normal(size=60)
    y = x + np.where(site == "b", 5.0, 0.0) + 0.1 * rng.normal(size=60)
    return pd.DataFrame({"x": x, "site": [spelling.get(s, s) for s in site]}), y


def test_a_linear_mean_has_no_slope_along_categories():
    frame, y = sites({})
    respelled, _ = sites({"b": "z"})
    one = gm.GPRegressor(mean="linear", n_restarts=0).fit(frame, y)
    other = gm.GPRegressor(mean="linear", n_restarts=0).fit(respelled, y)
    assert one.parameters_.names.count("mean.slope[x]") == 1
    assert "mean.slope[site]" not in one.parameters_.names
    # Codes 1 and 2 change places, so sums over them round differently; a slope along them would show at the
    # first digit.
    np.testing.assert_allclose(other.predict(respelled), one.predict(frame), rtol=1e-6, atol=1e-6)


def test_a_linear_mean_without_numeric_columns_is_a_constant():
    frame, y = sites({})
    gp = gm.GPRegressor(mean="linear", n_restarts=0).fit(frame[["site"]], y)
    assert isinstance(gp.mean_, gm.ConstantMean)
    assert not isinstance(gp.mean_, gm.LinearMean)


@pytest.mark.parametrize("offset", [273.15, -1e4])
def test_without_normalisation_the_zero_of_y_does_not_matter(offset):
    rng = np.random.default_rng(1)
    X = rng.uniform(0, 10, (60, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    here = gm.GPRegressor(normalize_y=False, n_restarts=0).fit(X, y)
    there = gm.GPRegressor(normalize_y=False, n_restarts=0).fit(X, y + offset)
    np.testing.assert_allclose(there.predict(X) - offset, here.predict(X), atol=1e-6)


def test_a_constant_that_is_not_fitted_is_zero_without_normalisation():
    X, y = np.arange(5.0)[:, None], np.full(5, 3.0) + np.arange(5)
    gp = gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False, normalize_y=False).fit(X, y)
    assert gp.parameters_["mean.value"] == 0.0


@pytest.mark.parametrize("offset", [1e12, 1e13, 1e14])
def test_a_large_offset_is_no_reason_to_call_y_constant(offset):
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 10, (60, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    _, std = gm.GPRegressor(n_restarts=0).fit(X, y + offset).predict(X, return_std=True)
    # At 1e14 the numbers of y are 0.016 apart, a sixth of the noise.
    assert np.all((std > 0.05) & (std < 0.3))


def test_what_has_no_gradient_is_named():
    frame, y = sites({})
    with pytest.raises(gm.GramianError, match="because of Categorical"):
        gm.GPRegressor(optimize=False).fit(frame, y).predict_gradient(frame)


@pytest.mark.parametrize(("setting", "value"), [("normalize_y", "no"), ("optimize", "maybe")])
def test_switches_are_true_or_false(setting, value):
    with pytest.raises(gm.GramianError, match=f"{setting}='{value}' must be True or False"):
        gm.GPRegressor(**{setting: value}).fit([[0.0], [1.0]], [0.0, 1.0])


def test_an_empty_parameter_is_refused():
    with pytest.raises(gm.GramianError, match="at least one number"):
        gm.RBF([])
