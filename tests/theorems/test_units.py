"""Answers do not depend on units: Kelvin or Celsius, metres or millimetres, y in thousands: predictions
change by just that transformation.

Everything here is fitted anew in the new units, with restarts. The search is the same up to rounding, but
rounding is amplified by the condition number of K + noise (1e9 for the data without noise), which leaves 1e-8
or so of the data's scale; 1e-6 is what is promised. Where the data choose the kind of model, the search ends
within a tenth of a nat of the top, and rounding decides where, which a plane without noise shows most: 1e-3.
"""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm

PROMISED = 1e-6
BY_CHOICE = 1e-3


def curve(rng):
    X = rng.uniform(-2, 2, (60, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.normal(size=60)


def irrelevant_columns(rng):
    X = rng.uniform(0, 1, (50, 4))
    return X, np.sin(6 * X[:, 0]) + X[:, 1] + 0.05 * rng.normal(size=50)


def few_rows(rng):
    X = rng.normal(size=(5, 3))
    return X, rng.normal(size=5)


def without_noise(rng):
    X = np.linspace(0, 10, 40)[:, None]
    return X, np.sin(X[:, 0])


def without_noise_in_three_columns(rng):
    X = rng.uniform(-1, 1, (50, 3))
    return X, np.exp(X[:, 0]) * np.cos(2 * X[:, 1]) + X[:, 2]


def a_plane(rng):
    """Noise ends at its floor, five lengthscales far away: the hardest place to stop at the same point
    twice."""
    X = rng.uniform(0, 1, (30, 6))
    return X, X[:, 0].copy()


def nothing_but_noise(rng):
    return rng.normal(size=(64, 2)), rng.normal(size=64)


DATA = [
    curve,
    irrelevant_columns,
    few_rows,
    without_noise,
    without_noise_in_three_columns,
    a_plane,
    nothing_but_noise,
]


def predictions(X, y, Z, **settings):
    gp = gm.GPRegressor(random_state=0, **settings).fit(X, y)
    return (*gp.predict(Z, return_std=True), gp.predict(Z, return_std=True, target="f")[1])


def places(X):
    """Points among the data and beyond them, by a quarter of their range on all sides."""
    low, high = X.min(axis=0), X.max(axis=0)
    return low + (high - low) * np.random.default_rng(5).uniform(-0.25, 1.25, (40, X.shape[1]))


def changes(d):
    """(name, factor of each column, offset of each column, factor of y, offset of y)"""
    factors = np.array([1e-3, 1e6, 1.8, 3600.0, 7.3, 1e3])[:d]
    yield "Kelvin", np.ones(d), np.full(d, 273.15), 1.0, 0.0
    yield "y in thousandths", np.ones(d), np.zeros(d), 1000.0, 0.0
    yield "y from another zero", np.ones(d), np.zeros(d), 1000.0, 12345.0
    yield "columns rescaled", factors, np.zeros(d), 1.0, 0.0
    yield "all at once, y upside down", factors, 3 * factors, -1e-4, 2.0


@pytest.mark.parametrize(("kernel", "promised"), [("matern52", PROMISED), (None, BY_CHOICE)])
@pytest.mark.parametrize("make", DATA, ids=lambda make: make.__name__)
def test_any_data(make, kernel, promised):
    X, y = make(np.random.default_rng(1))
    Z, spread = places(X), y.std()
    how = {"kernel": kernel, "hyper": "map"}  # draws of parameters are others where y is upside down
    mean, std, std_f = predictions(X, y, Z, **how)
    for name, factor, offset, c, b in changes(X.shape[1]):
        other, other_std, other_std_f = predictions(
            X * factor + offset, y * c + b, Z * factor + offset, **how
        )
        errors = [
            np.abs((other - b) / c - mean).max(),
            np.abs(other_std / abs(c) - std).max(),
            np.abs(other_std_f / abs(c) - std_f).max(),
        ]
        assert max(errors) <= promised * spread, (name, errors)


@pytest.mark.parametrize("mean", ["zero", "linear"])
def test_other_means(mean):
    X, y = curve(np.random.default_rng(1))
    Z = places(X)
    expected = predictions(X, y, Z, mean=mean, n_restarts=0)
    factor, offset = np.array([1e-3, 1e6]), np.array([273.15, -4e5])
    other = predictions(X * factor + offset, 1000 * y - 77, Z * factor + offset, mean=mean, n_restarts=0)
    assert np.abs((other[0] + 77) / 1000 - expected[0]).max() <= PROMISED * y.std()
    assert np.abs(other[1] / 1000 - expected[1]).max() <= PROMISED * y.std()


def test_outputs_are_rescaled_one_by_one():
    rng = np.random.default_rng(1)
    X, y = curve(rng)
    Y = np.column_stack([y, np.cos(X[:, 1]) + 0.2 * rng.normal(size=60)])
    Z, factor, offset = places(X), np.array([1e6, 1e-3]), np.array([-5.0, 40.0])
    mean, std, _ = predictions(X, Y, Z, n_restarts=0)
    other, other_std, _ = predictions(X, Y * factor + offset, Z, n_restarts=0)
    assert np.all(np.abs((other - offset) / factor - mean) <= PROMISED * Y.std(axis=0))
    assert np.all(np.abs(other_std / factor - std) <= PROMISED * Y.std(axis=0))


def test_known_noise_is_rescaled_with_y():
    X, y = curve(np.random.default_rng(1))
    Z, noise = places(X), np.linspace(0.01, 0.4, 60)
    expected = gm.GPRegressor(n_restarts=0).fit(X, y, noise_var=noise).predict(Z, return_std=True)
    other = gm.GPRegressor(n_restarts=0).fit(X, 1000 * y, noise_var=1e6 * noise).predict(Z, return_std=True)
    for a, b in zip(expected, other, strict=True):
        assert np.abs(b / 1000 - a).max() <= PROMISED * y.std()


def test_everything_else_changes_by_the_transformation_too():
    X, y = curve(np.random.default_rng(1))
    Z, factor = places(X), np.array([1e-3, 1e6])
    a = gm.GPRegressor("matern52", random_state=0).fit(X, y)
    b = gm.GPRegressor("matern52", random_state=0).fit(X * factor, 1000 * y + 5)
    assert b.evidence_.value == pytest.approx(a.evidence_.value, abs=1e-6)
    assert b.noise_ == pytest.approx(1e6 * a.noise_, rel=1e-6)
    assert b.parameters_["kernel.lengthscale"] == pytest.approx(
        a.parameters_["kernel.lengthscale"] * factor, rel=1e-6
    )
    assert b.loo().mean == pytest.approx(1000 * a.loo().mean + 5, abs=1e-6 * 1000 * y.std())
    assert b.loo().log_density == pytest.approx(a.loo().log_density - np.log(1000), abs=1e-6)
    slope, variance = a.predict_gradient(Z)
    assert (
        np.abs(b.predict_gradient(Z * factor)[0] * factor / 1000 - slope).max()
        <= PROMISED * np.abs(slope).max()
    )
    assert (
        np.abs(b.predict_gradient(Z * factor)[1] * factor**2 / 1e6 - variance).max()
        <= PROMISED * variance.max()
    )


def test_the_value_of_a_constant_column_has_no_say(rng):
    X, y = curve(rng)
    Z = places(X)

    def with_constant(value):
        return predictions(
            np.column_stack([X, np.full(60, value)]),
            y,
            np.column_stack([Z, np.full(40, value)]),
            n_restarts=0,
        )

    for a, b in zip(with_constant(7.0), with_constant(-3e5), strict=True):
        assert np.abs(a - b).max() <= PROMISED * y.std()
