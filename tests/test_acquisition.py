"""Where to look next: criteria against integrals, gradients, and searches that find what is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import gramian as gm
from gramian.acquisition import (
    Foreseen,
    Known,
    LogEI,
    LowerBound,
    MinValueEntropy,
    Thompson,
    log_improvement,
    read_acquisition,
)
from gramian.errors import InputError, ParameterError
from gramian.sequential import Design

KNOWN = Known(0.3, np.array([-1.0, -0.2, 0.1]))


@pytest.mark.parametrize("z", [-25.0, -8.0, -1.2, -0.999, 0.0, 3.0, 40.0])
def test_improvement_is_its_integral(z):
    """E max(z - e, 0) with e ~ N(0, 1), in units in which its largest integrand is 1."""
    top = z if z < -1 else min(z, 0.0)
    log_unit = norm.logpdf(top)
    value = quad(lambda e: (z - e) * np.exp(norm.logpdf(e) - log_unit), max(z - 20, -60), z, limit=400)[0]
    # of e near z alone where z is far below
    got = log_improvement(np.array([z]))[0][0]
    if z <= 3:
        assert got == pytest.approx(np.log(value) + log_unit, rel=1e-8, abs=1e-8)
    else:
        assert got == pytest.approx(np.log(z), rel=1e-12)


def test_improvement_has_no_step_and_no_end():
    z = np.concatenate([-np.geomspace(1e8, 1e-3, 4000), np.geomspace(1e-3, 1e3, 500)])
    log_h, slope = log_improvement(z)
    assert np.all(np.isfinite(log_h))
    assert np.all(np.diff(log_h) > 0)
    for at in (-30.0, -1.0):  # where formulas meet
        low, high = (log_improvement(np.array([at * (1 + e)])) for e in (1e-9, -1e-9))
        assert low[0][0] == pytest.approx(high[0][0], rel=1e-7)
        assert low[1][0] == pytest.approx(high[1][0], rel=1e-6)
    inner = np.abs(z) < 1e3
    numeric = np.gradient(log_h[inner], z[inner])
    assert np.allclose(numeric[5:-5], slope[inner][5:-5], rtol=0.05)


def test_entropy_is_that_of_what_is_cut_off():
    """H[f] - H[f | f > m] of a Gaussian, by quadrature."""
    mean, std = 0.4, 0.7
    lost = []
    for least in KNOWN.least:
        share = norm.sf(least, mean, std)

        def density(f, share=share):
            return norm.pdf(f, mean, std) / share

        cut = quad(lambda f: -density(f) * np.log(density(f)), least, mean + 12 * std, limit=300)[0]
        lost.append(norm.entropy(mean, std) - cut)
    got = MinValueEntropy().at(Foreseen(np.array([mean]), np.array([std])), KNOWN).value
    assert got[0] == pytest.approx(np.mean(lost), rel=1e-7)


@pytest.mark.parametrize("criterion", [LogEI(), LowerBound(1.5), MinValueEntropy()])
def test_derivatives_by_mean_and_deviation(criterion):
    mean, std, h = np.array([0.5, -2.0, 9.0]), np.array([0.6, 1.5, 0.8]), 1e-6
    found = criterion.at(Foreseen(mean, std), KNOWN)

    def value(by_mean: float, by_std: float):
        return criterion.at(Foreseen(mean + by_mean, std + by_std), KNOWN).value

    np.testing.assert_allclose(found.by_mean, (value(h, 0) - value(-h, 0)) / (2 * h), rtol=1e-6)
    np.testing.assert_allclose(found.by_std, (value(0, h) - value(0, -h)) / (2 * h), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kernel", [1.5 * gm.Matern52([0.5, 1.0]), 1.0 * gm.RBF(0.7) + gm.Linear()])
@pytest.mark.parametrize("method", ["exact", "cg"])
def test_slopes_of_mean_and_variance(kernel, method):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 2))
    Y = np.column_stack([np.sin(3 * X[:, 0]), X[:, 1] ** 2])
    gp = gm.GPRegressor(kernel, noise=[0.01, 0.1], optimize=False, mean="linear", method=method).fit(X, Y)
    Z, h, process = rng.uniform(-1, 1, (6, 2)), 1e-6, gp.posterior_
    mean, var, by_mean, by_var = process.slopes(Z)
    for got, right in zip((mean, var), process.moments(Z), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-12)
    for j in range(2):
        ahead, behind = (process.moments(Z + s * h * np.eye(2)[j]) for s in (1, -1))
        np.testing.assert_allclose(by_mean[:, j], (ahead[0] - behind[0]) / (2 * h), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(by_var[:, j], (ahead[1] - behind[1]) / (2 * h), rtol=1e-4, atol=1e-6)


def branin(a: float, b: float) -> float:
    """Its least value is 0.397887, at three places."""
    return float(
        (b - 5.1 / (4 * np.pi**2) * a**2 + 5 / np.pi * a - 6) ** 2
        + 10 * (1 - 1 / (8 * np.pi)) * np.cos(a)
        + 10
    )


@pytest.mark.parametrize("acquisition", ["log_ei", "lower_bound", "entropy", "thompson"])
def test_the_least_value_of_branin_is_found(acquisition):
    """25 points at random come within 1.0 of it in one run of a hundred."""
    space = {"a": (-5, 10), "b": (0, 15)}
    design = Design(space, acquisition=acquisition, random_state=0).run(branin, 25)
    assert design.best[1] < 0.398 + 0.25
    again = Design(space, acquisition=acquisition, random_state=0).run(branin, 10)
    assert again.points == design.points[:10]


def test_large_values_scales_and_choices():
    """On a logarithmic scale, in whole numbers, and of two kinds: 3 at (1e-2, 4, "b")."""

    def score(rate, stages, kind):
        assert isinstance(stages, int)
        return 3 - np.log10(rate / 1e-2) ** 2 - 0.3 * (stages - 4) ** 2 - (kind != "b")

    space = {"rate": (1e-4, 1.0, "log"), "stages": (1, 8, "int"), "kind": ["a", "b", "c"]}
    design = Design(space, maximise=True, random_state=1).run(score, 35)
    assert design.best[1] > 2.8
    assert design.best[0]["stages"] == 4
    assert design.best[0]["kind"] == "b"


def test_several_points_at_once_are_apart_and_failures_count():
    design = Design({"x": (0.0, 1.0)}, initial=4, random_state=0)
    for point in design.ask(4):
        design.tell(point, (point["x"] - 0.3) ** 2)
    batch = design.ask(3)
    places = sorted(point["x"] for point in batch)
    assert np.min(np.diff(places)) > 1e-3
    assert design.out == batch
    design.tell(batch, [0.1, None, float("nan")])
    assert design.out == []
    assert np.isnan(design.values[-1])
    assert design.best[1] <= 0.1
    assert 0 <= design.ask()["x"] <= 1


def test_what_makes_no_sense_is_refused():
    for space, part in (
        ({}, "no variable"),
        ({"x": (1, 0)}, "low below high"),
        ({"x": (0, 1, "log")}, "above 0"),
        ({"x": (0, 1, "odd")}, "'log' or 'int'"),
        ({"x": ["a"]}, "two or more"),
        ({"x": 3}, "Give \\(low, high\\)"),
    ):
        with pytest.raises(ParameterError, match=part):
            Design(space)
    design = Design({"x": (0, 1)})
    assert design.best is None
    for point, value, part in (
        ({"z": 1}, 0, "has the variables x"),
        ({"x": "a"}, 0, "no number"),
        ({"x": 0.5}, "a", "Tell None"),
        ({"x": 0.5}, np.inf, "infinite"),
        ([{"x": 0.5}], [1, 2], "1 points were told, but 2 values"),
    ):
        with pytest.raises(InputError, match=part):
            design.tell(point, value)
    assert design.points == []
    with pytest.raises(InputError, match="Nothing was told"):
        design.fitted()
    with pytest.raises(ParameterError, match="'log_ei', 'lower_bound'"):
        Design({"x": (0, 1)}, acquisition="best")
    with pytest.raises(ParameterError, match="width=-1"):
        LowerBound(-1)
    assert isinstance(read_acquisition("thompson"), Thompson)
