"""CRPS and log density of each kind of prediction against the closed forms of the package scoringrules."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian import likelihoods
from gramian.predictive import Blend, Normals
from tests.report.test_evaluation import sure

rules = pytest.importorskip("scoringrules", reason="scoringrules is in the extra test")

NUMBERS = np.array([-1.3, 0.2, 0.9, 6.0])
POSITIVE, SHARES = np.array([0.05, 0.9, 2.0, 6.0]), np.array([0.02, 0.4, 0.7, 0.98])
COUNTS = np.array([0.0, 2.0, 3.0, 9.0])
MU = 3.0
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
