"""CRPS and log density of each kind of prediction against the closed forms of the package scoringrules."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian import likelihoods
from gramian.estimators.predictions import Latents, predictive
from gramian.predictive import Blend, Normals
from gramian.warps import Log
from tests.report.test_evaluation import sure

rules = pytest.importorskip("scoringrules", reason="scoringrules is in the extra test")

NUMBERS = np.array([-1.3, 0.2, 0.9, 6.0])
POSITIVE, SHARES = np.array([0.05, 0.9, 2.0, 6.0]), np.array([0.02, 0.4, 0.7, 0.98])
COUNTS = np.array([0.0, 2.0, 3.0, 9.0])
MU = 3.0
WIDE = np.tile([0.5, np.log(4.0)], (4, 1))  # f, and the logarithm of the noise variance
BLENDED = [Normals(np.zeros(4), np.ones(4)), Normals(np.full(4, 3.0), np.full(4, 0.2))]
MIXED = (np.tile([0.0, 3.0], (4, 1)), np.tile([1.0, 0.2], (4, 1)), np.tile([0.3, 0.7], (4, 1)))
# what is foretold, where, and what the package calls it: its name and its parameters
CASES = {
    "gaussian": (Normals(np.full(4, 0.5), np.full(4, 2.0)), NUMBERS, "normal", (0.5, 2.0)),
    "student": (sure(gm.StudentT(1.5, 4.0), 0.3), NUMBERS, "t", (4.0, 0.3, 1.5)),
    "gamma": (sure(likelihoods.Gamma(2.0), 0.4), POSITIVE, "gamma", (2.0, 2.0 / np.exp(0.4))),
    "beta": (sure(gm.Beta(5.0), 0.0), SHARES, "beta", (2.5, 2.5)),
    "poisson": (sure(gm.Poisson(), np.log(MU), (1.0,)), COUNTS, "poisson", (MU,)),
    "negative binomial": (
        sure(gm.NegativeBinomial(0.5), np.log(MU), (1.0,)),
        COUNTS,
        "negbinom",
        (2.0, 2.0 / (2.0 + MU)),
    ),
    "binomial": (sure(gm.Binomial(), 0.0, (12.0,)), COUNTS, "binomial", (12, 0.5)),
    "heteroscedastic": (
        predictive([Latents(gm.Heteroscedastic(), WIDE, np.full((4, 2), 1e-14))], np.empty((4, 0))),
        NUMBERS,
        "normal",
        (0.5, 2.0),
    ),
    "mixture": (Blend(BLENDED, [0.3, 0.7]), NUMBERS, "mixnorm", MIXED),
}


@pytest.mark.parametrize("name", CASES)
def test_crps_is_the_closed_form(name):
    """What lies beyond the quantiles of 1e-5 is left out; integrals are by 48 points on either side of y."""
    dist, y, rule, given = CASES[name]
    assert_allclose(dist.crps(y), getattr(rules, f"crps_{rule}")(y, *given), rtol=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_log_density_is_the_closed_form(name):
    dist, y, rule, given = CASES[name]
    assert_allclose(-dist.log_density(y), getattr(rules, f"logs_{rule}")(y, *given), rtol=1e-6, atol=1e-9)


def test_crps_of_two_labels_is_the_brier_score():
    """F is a step of 1 - p at 0, so that int (F - [y <= z])^2 dz = (p - y)^2."""
    y, p = np.array([0.0, 1.0, 1.0, 0.0]), 0.7
    dist = sure(gm.Bernoulli(), np.log(p / (1 - p)))
    assert_allclose(dist.crps(y), rules.brier_score(y, np.full(4, p)), rtol=1e-6)


def test_crps_of_ranks_is_the_ranked_probability_score():
    y, likelihood = np.array([0.0, 1.0, 3.0, 2.0]), gm.Ordinal(4)
    dist = sure(likelihood, 0.4)
    shares = np.exp(np.stack([dist.log_density(np.full(4, float(k))) for k in range(4)], axis=1))
    assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-9)
    assert_allclose(dist.crps(y), rules.rps_score(y + 1, shares), rtol=1e-6)


def test_crps_of_a_warped_model_is_the_closed_form():
    """log y is Gaussian, so that y is log-normal."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (30, 1))
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), noise=0.05, warp=Log(), optimize=False)
    gp.fit(X, np.exp(np.sin(X[:, 0]) + 0.2 * rng.normal(size=30)))
    at, y = np.linspace(0, 5, 4)[:, None], np.array([0.3, 1.0, 2.5, 6.0])
    dist = gp.predict_dist(at)
    low, high = (np.log(dist.quantile([p])[:, 0]) for p in (0.15865525393145707, 0.8413447460685429))
    mu, sigma = (low + high) / 2, (high - low) / 2
    assert_allclose(dist.crps(y), rules.crps_lognormal(y, mu, sigma), rtol=1e-3)
    assert_allclose(-dist.log_density(y), rules.logs_lognormal(y, mu, sigma), rtol=1e-6, atol=1e-9)


def test_every_likelihood_has_a_case():
    """Labels without an order have no CRPS."""
    compared = {"Gaussian", "StudentT", "Gamma", "Beta", "Poisson", "NegativeBinomial", "Binomial"}
    compared |= {"Heteroscedastic", "Bernoulli", "Ordinal"}
    assert set(likelihoods.__all__) - {"Likelihood"} == compared | {"Softmax", "RobustMax"}
