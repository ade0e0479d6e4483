"""What y may be, where fitting starts, and what draws look like."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from gramian.errors import InputError, ParameterError
from gramian.likelihoods import (
    Bernoulli,
    Beta,
    Gamma,
    Gaussian,
    Heteroscedastic,
    NegativeBinomial,
    Ordinal,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
)
from gramian.params import LogNormal, fixed, param


@pytest.mark.parametrize(
    ("likelihood", "y", "message"),
    [
        (Poisson(), [0, 3, 2, -1, -2], "y has -1 in row 3: counts are whole numbers from 0 on."),
        (NegativeBinomial(), [0, 1.5], "y has 1.5 in row 1: counts are whole numbers from 0 on."),
        (Poisson(), [np.inf], "y has inf in row 0: counts are whole numbers from 0 on."),
        (Bernoulli(), [0, 1, -1], "y has -1 in row 2: Bernoulli has the classes 0 and 1."),
        (Softmax(3), [0, 2, 3], "y has 3 in row 2: Softmax(3) has the classes 0, 1, ..., 2."),
        (RobustMax(3), [0.5], "y has 0.5 in row 0: RobustMax(3) has the classes 0, 1, ..., 2."),
        (Ordinal(4), [4, 0], "y has 4 in row 0: Ordinal(4) has the classes 0, 1, ..., 3."),
        (Gamma(), [1, 0], "y has 0 in row 1: the gamma distribution is one of positive numbers."),
        (
            Beta(),
            [0.5, 1],
            "y has 1 in row 1: the beta distribution is one of numbers between 0 and 1, both excluded.",
        ),
    ],
)
def test_impossible_observations(likelihood, y, message):
    with pytest.raises(InputError) as error:
        likelihood.checked(likelihood.with_defaults(y))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bernoulli("cloglog"), 'link must be "logit" or "probit", but is'),
        (lambda: Softmax(1), "classes must be a whole number from 2 on, but is 1"),
        (lambda: Softmax(2.5), "classes must be a whole number"),
        (lambda: Softmax(True), "classes must be a whole number"),
        (lambda: Ordinal(2), r'for two use Bernoulli\(link="probit"\)'),
        (lambda: Ordinal(4, 0.0, [1.0]), "increments are 2"),
        (lambda: Ordinal(4, 0.0, [1.0, -1.0]), "must be positive"),
        (lambda: RobustMax(3, fixed(0.0)), "between 0 and 1, both excluded"),
        (lambda: StudentT(-1.0), "must be positive"),
    ],
)
def test_impossible_likelihoods(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_starts_suit_the_data():
    rng = np.random.default_rng(0)
    _, start = Poisson().started(Poisson().with_defaults(rng.poisson(20.0, 500)))
    np.testing.assert_allclose(start, np.log(20), atol=0.05)
    hours = np.column_stack([np.full(50, 3.0), np.full(50, 100.0)])
    for counts in (Poisson(), NegativeBinomial()):  # of the rate, whatever the units of the exposure
        np.testing.assert_allclose(counts.started(hours)[1], np.log(0.03), atol=0.01)
    assert np.isfinite(Poisson().started(Poisson().with_defaults(np.zeros(3)))[1][0])
    y = 5 + 2 * rng.standard_normal(500)
    np.testing.assert_allclose(Heteroscedastic().started(y)[1], [np.mean(y), np.log(0.1 * np.var(y))])
    begun, start = StudentT().started(np.append(y, 1e6))
    np.testing.assert_allclose([float(begun.scale), *start], [2 * np.sqrt(0.1), 5.0], rtol=0.1)
    counts = rng.integers(0, 3, 3000).astype(float)
    begun, _ = Ordinal(3).started(counts)
    cuts = np.sqrt(2) * stats.norm.ppf([1 / 3, 2 / 3])
    np.testing.assert_allclose(
        [float(begun.first), float(begun.first) + begun.increments.value[0]], cuts, atol=0.1
    )
    assert float(Beta().started(rng.beta(30, 30, 300))[0].precision) > 50


def test_starts_leave_alone_what_was_given():
    y = 100 * np.random.default_rng(0).standard_normal(50)
    for given in (3.0, fixed(1.0), param(1.0, prior=LogNormal(0, 1)), param(1.0, bounds=(0.1, 10))):
        assert (
            StudentT(given).started(y)[0].parameters()["scale"].value
            == StudentT(given).parameters()["scale"].value
        )
    assert float(StudentT().started(y)[0].df) == 4.0


def test_scales_and_kinds():
    """f is in the units of y where it is y's centre; the log of a noise variance never is."""
    np.testing.assert_array_equal(Heteroscedastic().scales(7.0), [7.0, 1.0])
    np.testing.assert_array_equal(Gaussian().scales(7.0), [7.0])
    np.testing.assert_array_equal(StudentT().scales(7.0), [7.0])
    np.testing.assert_array_equal(Softmax(3).scales(7.0), np.ones(3))
    np.testing.assert_array_equal(Poisson().scales(7.0), [1.0])
    assert Softmax(4).latents == RobustMax(4).latents == 4
    with pytest.raises(ParameterError, match="Ask for probabilities"):
        Softmax(3).conditional_moments(np.zeros((1, 3)))


@pytest.mark.parametrize(
    ("likelihood", "f", "distribution"),
    [
        (Gaussian(0.25), 1.0, stats.norm(1.0, 0.5)),
        (StudentT(2.0, 3.0), 1.0, stats.t(3.0, 1.0, 2.0)),
        (Gamma(2.5), 0.7, stats.gamma(2.5, scale=np.exp(0.7) / 2.5)),
        (Beta(4.0), 0.0, stats.beta(2.0, 2.0)),
    ],
)
def test_draws_have_the_distribution(likelihood, f, distribution):
    """A Kolmogorov-Smirnov distance of 5 / sqrt(n) has odds of 1e-21 by chance."""
    drawn = likelihood.draw(np.random.default_rng(3), np.full(20_000, f))
    assert stats.kstest(drawn, distribution.cdf).statistic < 5 / np.sqrt(20_000)


def test_draws_of_counts_spread_as_they_should():
    """Variance mu and mu + dispersion mu^2; the standard error of a variance of 50,000 draws is below 3 %
    here."""
    f = np.full(50_000, np.log(8.0))
    assert abs(np.var(Poisson().draw(np.random.default_rng(4), f)) / 8 - 1) < 0.1
    assert abs(np.var(NegativeBinomial(0.5).draw(np.random.default_rng(4), f)) / (8 + 0.5 * 64) - 1) < 0.1
    assert np.all(np.isfinite(Poisson().draw(np.random.default_rng(4), np.array([-1e3, 1e3]))))
