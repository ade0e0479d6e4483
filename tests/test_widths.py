"""Residuals that are wider in some places than in others."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad

import gramian as gm
from gramian import clock
from gramian.corrections import Calibration
from gramian.widths import BOX, Widths, _basis, _best, _variances


def residuals(n=600, seed=0):
    """Of two columns and a foretold mean; wider by the factor exp(0.6 x) along the first."""
    rng = np.random.default_rng(seed)
    X, mean = rng.normal(size=(n, 2)), rng.normal(size=n)
    return X, mean, np.exp(0.6 * X[:, 0]) * rng.standard_normal(n)


def test_finds_where_residuals_are_wide():
    X, mean, z = residuals()
    found = Widths.of(X, mean, z, [0, 1])
    places = np.column_stack([np.linspace(-1, 1, 7), np.zeros(7)])
    slopes = np.diff(np.log(found.at(places, np.zeros(7)))) * 3
    # that of a straight line is known to 1 / sqrt(2 n) = 0.03, that of a curve to a few times that; where
    # residuals beyond 3 count as 3, the widest are a little narrower
    assert_allclose(slopes, 0.6, atol=0.25)
    others = found.at(np.column_stack([np.zeros(7), places[:, 0]]), np.zeros(7))
    assert np.ptp(np.log(others)) < 0.4


def test_says_nothing_of_residuals_that_are_alike():
    X, mean, _ = residuals()
    rng = np.random.default_rng(1)
    # by chance the evidence rises by 3 nats in one of some hundred tables
    assert [Widths.of(X, mean, rng.standard_normal(600), [0, 1]) for _ in range(5)] == [None] * 5


def test_rows_that_are_copies_do_not_make_others_certain():
    """Where all left-out rows are foretold to the last digit, new rows need not be."""
    rng = np.random.default_rng(0)
    x, z = rng.uniform(-1, 1, 400), rng.standard_normal(400)
    z[x > 0.6] = 1e-8
    among, usual = Widths.of(x[:, None], np.zeros(400), z, [0]).at(np.array([[0.8], [-0.5]]), np.zeros(2))
    # a z counts as a tenth of what is usual at the least; as functions are smooth, it stays above that
    assert 0.1 < among / usual < 0.5


def test_depends_on_no_units():
    X, mean, z = residuals()
    other = np.column_stack([1e6 + 40 * X[:, 0], 1e-3 * X[:, 1]])
    one, same = Widths.of(X, mean, z, [0, 1]), Widths.of(other, 7 * mean - 3, z, [0, 1])
    assert_allclose(same.at(other, 7 * mean - 3), one.at(X, mean), rtol=1e-6)


def test_far_away_it_is_as_at_the_edge_and_missing_cells_are_average():
    X, mean, z = residuals()
    found = Widths.of(X, mean, z, [0, 1])
    edge, far = found.at(np.array([[3.2, 0.0], [1e9, 0.0]]), np.zeros(2))
    assert far == edge
    centre = np.array([[np.mean(X[:, 0]), 1.0]])
    assert_allclose(found.at(np.array([[np.nan, 1.0]]), np.zeros(1)), found.at(centre, np.zeros(1)))


def test_sines_stand_for_the_kernel():
    u = np.linspace(-2, 2, 9)
    Phi = _basis(u[:, None])[:, 1:]
    K = (Phi * _variances(1, 0.7, 1.5)[1:]) @ Phi.T
    assert_allclose(K, 0.7 * np.exp(-0.5 * ((u[:, None] - u) / 1.5) ** 2), atol=0.02 * 0.7)
    assert BOX > 3


def test_evidence_is_that_of_an_integral():
    """One weight: Laplace's number beside the integral over it, of many rows."""
    squares = np.random.default_rng(0).standard_normal(200) ** 2
    weight, value = _best(np.ones((200, 1)), squares, np.ones(1))

    def density(b):
        return np.exp(-200 * b - 0.5 * squares.sum() * np.exp(-2 * b) - 0.5 * b * b - peak) / np.sqrt(
            2 * np.pi
        )

    peak = -200 * weight[0] - 0.5 * squares.sum() * np.exp(-2 * weight[0])
    exact = np.log(quad(density, weight[0] - 1, weight[0] + 1)[0]) + peak
    assert value == pytest.approx(exact, abs=0.01)  # Laplace: of order 1 / n


@pytest.fixture(scope="module")
def uneven():
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (300, 1))
    sd = 0.05 + 0.2 * np.maximum(X[:, 0], 0)
    y = np.sin(X[:, 0]) + sd * rng.standard_normal(300)
    return X, y, gm.GPRegressor(random_state=0, warp=None).fit(X, y)


def test_default_is_wider_where_noise_is(uneven):
    X, _, gp = uneven
    T = np.linspace(-2.5, 2.5, 6)[:, None]
    _, std = gp.predict(T, return_std=True)
    assert std[-1] > 4 * std[0]
    rng = np.random.default_rng(4)
    X = rng.uniform(-3, 3, (4000, 1))
    y = np.sin(X[:, 0]) + (0.05 + 0.2 * np.maximum(X[:, 0], 0)) * rng.standard_normal(4000)
    _, low, high = gp.predict(X, interval=0.9)
    inside = (low <= y) & (y <= high)
    # four standard errors of a share of 2,000 rows, and what 300 rows leave unknown of a width: a tenth
    for side in (X[:, 0] < 0, X[:, 0] > 0):
        assert abs(np.mean(inside[side]) - 0.9) < 0.03 + 0.05
    assert "more in some places and less in others" in gp.summary()


def test_answers_agree_with_each_other(uneven):
    _, _, gp = uneven
    T = np.linspace(-2, 2, 5)[:, None]
    mean, std = gp.predict(T, return_std=True)
    again, cov = gp.predict(T, return_cov=True)
    assert_allclose(again, mean)
    assert_allclose(np.sqrt(np.diag(cov)), std)
    draws = gp.sample(T, 20_000, target="y", random_state=0)
    # a standard deviation of 20,000 draws has an error of 0.5 %, with tails of 1 %; four of these
    assert_allclose(draws.std(axis=1), std, rtol=0.05)
    assert np.all(gp.predict(T, return_std=True, target="f")[1] <= std)
    assert np.all(gp.predict_gradient(T)[1] >= 0)
    assert_allclose(gp.predict(T[2:3], return_std=True)[1], std[2:3])


def test_a_model_file_keeps_widths(uneven, tmp_path):
    X, _, gp = uneven
    gp.save(tmp_path / "m.gm")
    again = gm.load(tmp_path / "m.gm")
    assert again.fitted_.calibration == gp.fitted_.calibration
    assert np.array_equal(again.predict(X, return_std=True), gp.predict(X, return_std=True))


def test_corrections_are_given_up_when_the_time_is_over():
    """They are found after a fit, from all its rows: on a busy machine that takes seconds."""
    X, mean, z = residuals()
    with clock.until(clock.now() - 1.0):
        with pytest.raises(clock.OutOfTime):
            Widths.of(X, mean, z, [0, 1])
        with pytest.raises(clock.OutOfTime):
            Calibration.of(z)
    assert Widths.of(X, mean, z, [0, 1]) is not None
