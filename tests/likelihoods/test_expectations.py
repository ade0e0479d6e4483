"""Expectations, tilted moments and predictions against brute-force integration and published closed forms,
also where quadrature is hard."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, gammaln, log_softmax, ndtr, softmax

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
from gramian.likelihoods.categorical import largest
from gramian.params import fixed
from tests.likelihoods.helpers import run, tilted_reference

# Narrow beside the Gaussian, far outside of it, or both: power, then y, mean, var.
HARD = [
    (
        Bernoulli(),
        1.0,
        [(1.0, -2.0, 4.0), (1.0, -200.0, 100.0), (0.0, 10.0, 400.0)],
        lambda y, f: -np.logaddexp(0, -(2 * y - 1) * f),
    ),
    (
        Bernoulli("probit"),
        1.0,
        [(1.0, -2.0, 4.0), (1.0, -30.0, 4.0), (0.0, 3.0, 1e4)],
        lambda y, f: stats.norm.logcdf((2 * y - 1) * f),
    ),
    (
        Bernoulli("probit"),
        0.5,
        [(1.0, -2.0, 4.0), (1.0, -30.0, 4.0), (0.0, 3.0, 25.0)],
        lambda y, f: stats.norm.logcdf((2 * y - 1) * f),
    ),
    (
        Poisson(),
        0.5,
        [(100.0, -5.0, 10.0), (1000.0, 0.0, 0.25), (3.0, 10.0, 0.01)],
        lambda y, f: y * f - np.exp(np.minimum(f, 40)) - gammaln(y + 1),
    ),
    (
        StudentT(0.01, 4.0),
        1.0,
        [(0.7, 0.0, 1.0), (3.7, 0.0, 1.0), (15.0, 0.0, 0.25)],
        lambda y, f: stats.t.logpdf(y, 4.0, f, 0.01),
    ),
    (
        Beta(1e4),
        0.5,
        [(0.3, -2.0, 4.0), (0.9, 0.0, 1.0), (0.01, 0.0, 1.0)],
        lambda y, f: stats.beta.logpdf(y, 1e4 * expit(f), 1e4 * expit(-f)),
    ),
    (
        Gaussian(1e-4),
        0.5,
        [(3.0, 0.0, 1.0), (0.1, 0.0, 1e-6), (0.3, 0.0, 4.0)],
        lambda y, f: stats.norm.logpdf(y, f, 0.01),
    ),
]


@pytest.mark.parametrize(
    ("likelihood", "power", "cases", "density"), HARD, ids=lambda value: type(value).__name__
)
def test_tilted_moments_where_quadrature_is_hard(likelihood, power, cases, density):
    """The reference has an error of the step of its grid times the integrand at its ends: 1e-8 of the total
    here."""
    y, mean, var = np.array(cases).T
    log_Z, first, second = run(likelihood, "tilted", y, mean, var, power=power)
    for k, case in enumerate(cases):
        known = tilted_reference(partial(density, case[0]), *case[1:], power)
        np.testing.assert_allclose(log_Z[k], known[0], atol=2e-6, err_msg=str(case))
        np.testing.assert_allclose(first[k], known[1], atol=2e-6 * np.sqrt(known[2]), err_msg=str(case))
        np.testing.assert_allclose(second[k], known[2], rtol=2e-6, err_msg=str(case))


def test_probit_moments_of_a_hopeless_label():
    """As mean -> -inf with y = 1 the tilted distribution tends to a Gaussian product: variance var / (1 +
    var), mean mean / (1 + var). Equation 3.85 of Rasmussen and Williams as it stands has no digit of that
    variance here: it takes 1e4 from 1e4 with 2 digits."""
    _, first, second = run(Bernoulli("probit"), "tilted", [1.0], [-1e9], [1e4])
    np.testing.assert_allclose(second, 1e4 / (1 + 1e4), rtol=1e-9)
    np.testing.assert_allclose(first, -1e9 / (1 + 1e4), rtol=1e-9)


def test_probit_probability_is_closed_and_logit_is_its_integral():
    mean, var = np.array([-1.0, 0.3, 2.0]), np.array([0.5, 3.0, 50.0])
    p = run(Bernoulli("probit"), "probabilities", mean, var)
    np.testing.assert_allclose(p[:, 1], ndtr(mean / np.sqrt(1 + var)), rtol=1e-13)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-13)
    z = np.linspace(-10, 10, 100_001)
    weights = np.exp(-0.5 * z**2) / np.sum(np.exp(-0.5 * z**2))
    known = expit(mean[:, None] + np.sqrt(var)[:, None] * z) @ weights
    np.testing.assert_allclose(
        run(Bernoulli(), "probabilities", mean, var), np.stack([1 - known, known], axis=1), rtol=1e-8
    )
    np.testing.assert_allclose(
        run(Bernoulli(), "predictive_log_prob", np.ones(3), mean, var), np.log(known), rtol=1e-8
    )


def test_closed_expectations_by_hand():
    """E exp(f) = exp(m + v / 2)."""
    m, v = 0.4, 0.6
    np.testing.assert_allclose(
        run(Poisson(), "expected_log_prob", [3.0], [m], [v]), 3 * m - np.exp(m + v / 2) - np.log(6)
    )
    k, y = 2.0, 1.5
    np.testing.assert_allclose(
        run(Gamma(k), "expected_log_prob", [y], [m], [v]),
        2 * np.log(k) + np.log(y) - k * m - k * y * np.exp(v / 2 - m),
    )
    known = -0.5 * (np.log(2 * np.pi) + m + ((y - 1) ** 2 + 0.2) * np.exp(v / 2 - m))
    np.testing.assert_allclose(
        run(Heteroscedastic(), "expected_log_prob", [y], [[1.0, m]], [[0.2, v]]), [known]
    )
    mean, var = run(NegativeBinomial(0.5), "predictive_moments", [m], [v])
    np.testing.assert_allclose(
        [mean[0], var[0]],
        [np.exp(m + v / 2), np.exp(m + v / 2) + 1.5 * np.exp(2 * m + 2 * v) - np.exp(2 * m + v)],
    )


def test_heteroscedastic_prediction_is_a_mixture_of_gaussians():
    rng = np.random.default_rng(0)
    g = -1 + np.sqrt(0.5) * rng.standard_normal(400_000)
    density = stats.norm(0.3, np.sqrt(0.2 + np.exp(g))).pdf(1.1)  # standard error below 0.05 %
    ours = run(Heteroscedastic(), "predictive_log_prob", [1.1], [[0.3, -1.0]], [[0.2, 0.5]])
    np.testing.assert_allclose(ours, np.log(np.mean(density)), atol=3e-3)


def test_infinite_variance_is_said():
    assert np.isinf(run(StudentT(1.0, 2.0), "predictive_moments", [0.0], [1.0])[1][0])
    np.testing.assert_allclose(run(StudentT(2.0, 5.0), "predictive_moments", [0.0], [1.0])[1], 1 + 4 * 5 / 3)


# Several classes. -------------------------------------------------------------------------------------------


@jax.jit
def largest_and_slopes(mean, var):
    return largest(mean, var), jax.jacfwd(largest, argnums=(0, 1))(mean, var)


def test_largest_of_two_is_a_probit():
    """P(f_0 > f_1) = Phi((m_0 - m_1) / sqrt(v_0 + v_1)), also where one is far narrower than a grid for the
    other would see; and its derivatives."""
    for v in ([1.0, 2.0], [1.0, 1e-4], [1e-8, 4.0], [0.0, 3.0]):
        m, v = np.array([0.3, -0.4]), np.array(v)
        with jax.enable_x64(True):
            P, (by_mean, by_var) = largest_and_slopes(jnp.asarray(m), jnp.asarray(v))
        z = (m[0] - m[1]) / np.sqrt(v.sum())
        np.testing.assert_allclose(P, [ndtr(z), ndtr(-z)], rtol=1e-8)
        np.testing.assert_allclose(by_mean[0, 0], stats.norm.pdf(z) / np.sqrt(v.sum()), rtol=1e-6)
        np.testing.assert_allclose(by_var[0, 1], -0.5 * z * stats.norm.pdf(z) / v.sum(), rtol=1e-5)


def test_largest_of_several():
    """Equal ones share alike; and in general, against draws: 1e6 of them, 6 standard errors of 0.0005."""
    with jax.enable_x64(True):
        equal, _ = largest_and_slopes(jnp.full(5, 2.0), jnp.full(5, 3.0))
        m, v = jnp.array([0.1, 1.0, -0.5, 0.9, 0.0]), jnp.array([1.0, 0.01, 9.0, 0.3, 1e-4])
        P, _ = largest_and_slopes(m, v)
    P = np.asarray(P)
    np.testing.assert_allclose(equal, 0.2, rtol=1e-9)
    np.testing.assert_allclose(np.sum(P), 1.0, rtol=1e-14)
    draws = np.asarray(m) + np.sqrt(np.asarray(v)) * np.random.default_rng(1).standard_normal((1_000_000, 5))
    np.testing.assert_allclose(P, np.bincount(np.argmax(draws, axis=1), minlength=5) / 1e6, atol=3e-3)


def test_robust_max_expectations():
    likelihood, P = RobustMax(2, fixed(0.1)), ndtr(0.7 / np.sqrt(3.0))
    y, mean, var = [0.0, 1.0], [[0.3, -0.4]] * 2, [[1.0, 2.0]] * 2
    known = np.array([P, 1 - P]) * np.log(0.9) + np.array([1 - P, P]) * np.log(0.1)
    np.testing.assert_allclose(run(likelihood, "expected_log_prob", y, mean, var), known, rtol=1e-8)
    np.testing.assert_allclose(
        run(likelihood, "predictive_log_prob", y, mean, var),
        np.log(0.1 + 0.8 * np.array([P, 1 - P])),
        rtol=1e-8,
    )


def test_softmax_expectations():
    """256 fixed points: E log p to 1 % and probabilities to 0.5 % at a prior's variances; shifting all
    latents changes nothing."""
    rng = np.random.default_rng(2)
    mean, var, y = (
        rng.standard_normal((8, 4)),
        rng.uniform(0.2, 1.5, (8, 4)),
        rng.integers(0, 4, 8).astype(float),
    )
    f = mean[:, None] + np.sqrt(var)[:, None] * rng.standard_normal((200_000, 4))
    known = np.mean(
        np.take_along_axis(log_softmax(f, axis=-1), y.astype(int)[:, None, None], axis=-1), axis=(1, 2)
    )
    expected = run(Softmax(4), "expected_log_prob", y, mean, var)
    np.testing.assert_allclose(expected, known, atol=0.02)
    np.testing.assert_allclose(run(Softmax(4), "expected_log_prob", y, mean + 1e3, var), expected, rtol=1e-11)
    p = run(Softmax(4), "probabilities", mean, var)
    np.testing.assert_allclose(p, np.mean(softmax(f, axis=-1), axis=1), atol=6e-3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-13)
    at_y = np.take_along_axis(p, y.astype(int)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(run(Softmax(4), "predictive_log_prob", y, mean, var), np.log(at_y), rtol=1e-12)


def test_ordinal_probabilities_are_closed():
    cuts = np.array([-np.inf, -1.0, -0.5, 1.5, np.inf])
    mean, var = np.array([0.3, -2.0]), np.array([0.0, 3.0])
    known = np.diff(ndtr((cuts - mean[:, None]) / np.sqrt(1 + var)[:, None]), axis=1)
    np.testing.assert_allclose(
        run(Ordinal(4, -1.0, [0.5, 2.0]), "probabilities", mean, var), known, rtol=1e-12
    )


@pytest.mark.parametrize(("sd", "error"), [(1.0, 2e-6), (5.0, 2e-6), (10.0, 1e-4)])
def test_fewer_nodes_do_for_32_bits(sd, error):
    """exp(-2 pi d / h) with d = pi / sd and h = 0.2 is 5e-5 at 10; below, the rounding of 32 bits is what is
    left."""
    mean = np.linspace(-20, 20, 41)
    exact = run(Bernoulli(), "expected_log_prob", np.ones(41), mean, np.full(41, sd**2))
    with jax.enable_x64(False):
        low = np.asarray(
            Bernoulli().expected_log_prob(
                *(jnp.asarray(v, jnp.float32) for v in (np.ones(41), mean, np.full(41, sd**2)))
            )
        )
    assert low.dtype == np.float32
    np.testing.assert_allclose(low, exact, rtol=error, atol=error * sd)
