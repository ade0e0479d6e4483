"""log p(y | f) against scipy.stats, by hand, and at arguments where formulas overflow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from gramian.likelihoods import (
    Bernoulli,
    Beta,
    Binomial,
    Gamma,
    Gaussian,
    Heteroscedastic,
    Likelihood,
    NegativeBinomial,
    Ordinal,
    Poisson,
    RobustMax,
    Softmax,
    StudentT,
    normal,
)
from gramian.params import fixed
from tests.likelihoods.helpers import run

F = np.array([-3.0, -0.4, 0.0, 1.7])

COUNTS = [0.0, 1.0, 5.0, 30.0]


@pytest.mark.parametrize(
    ("likelihood", "y", "log_density"),
    [
        (Gaussian(0.3), [-1.0, 0.2, 4.0], lambda y, f: stats.norm(f, np.sqrt(0.3)).logpdf(y)),
        (Bernoulli(), [0.0, 1.0], lambda y, f: stats.bernoulli(expit(f)).logpmf(y)),
        (Bernoulli("probit"), [0.0, 1.0], lambda y, f: stats.bernoulli(stats.norm.cdf(f)).logpmf(y)),
        (Poisson(), COUNTS, lambda y, f: stats.poisson(np.exp(f)).logpmf(y)),
        (
            NegativeBinomial(0.7),
            COUNTS,
            lambda y, f: stats.nbinom(1 / 0.7, 1 / (1 + 0.7 * np.exp(f))).logpmf(y),
        ),
        (StudentT(0.4, 3.0), [-1.0, 0.2, 40.0], lambda y, f: stats.t(3.0, f, 0.4).logpdf(y)),
        (StudentT(0.4, 1e7), [-1.0, 0.2, 2.0], lambda y, f: stats.t(1e7, f, 0.4).logpdf(y)),
        (Gamma(2.5), [0.01, 1.0, 20.0], lambda y, f: stats.gamma(2.5, scale=np.exp(f) / 2.5).logpdf(y)),
        (Beta(7.0), [0.001, 0.5, 0.99], lambda y, f: stats.beta(7 * expit(f), 7 * expit(-f)).logpdf(y)),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Likelihood) else "",
)
def test_densities_of_scipy(likelihood, y, log_density):
    y, f = (v.ravel() for v in np.meshgrid(y, F))
    np.testing.assert_allclose(run(likelihood, "log_prob", y, f), log_density(y, f), rtol=1e-9, atol=1e-9)


def test_a_small_dispersion_is_poisson():
    """The difference is of the order of dispersion * y^2 = 1e-9 * 900; that of two log-gamma functions of 1e9
    would be off by 1e-6 and more."""
    y, f = np.array(COUNTS), np.array([0.0, 0.5, 1.6, 3.4])
    np.testing.assert_allclose(
        run(NegativeBinomial(1e-9), "log_prob", y, f), run(Poisson(), "log_prob", y, f), atol=1e-6
    )
    exact = y * f - np.exp(f) - np.array([sum(np.log(np.arange(1, k + 1))) for k in y])
    corrected = exact + 0.5e-9 * ((y - np.exp(f)) ** 2 - y)  # to first order in the dispersion
    np.testing.assert_allclose(run(NegativeBinomial(1e-9), "log_prob", y, f), corrected, atol=2e-13)


def test_softmax_by_hand():
    f = np.log([[1.0, 2.0, 5.0]])
    np.testing.assert_allclose(run(Softmax(3), "log_prob", [2.0], f), np.log([5 / 8]))
    first, second = run(Softmax(3), "derivatives", [2.0], f)
    np.testing.assert_allclose(first, [[-1 / 8, -2 / 8, 3 / 8]])
    np.testing.assert_allclose(second, [[-7 / 64, -12 / 64, -15 / 64]])


def test_robust_max_by_hand():
    likelihood, f = RobustMax(4, fixed(0.06)), np.array([[0.0, 3.0, 1.0, 2.0]] * 2)
    np.testing.assert_allclose(run(likelihood, "log_prob", [1.0, 2.0], f), np.log([0.94, 0.02]))
    assert not likelihood.smooth
    assert likelihood.parameters()["epsilon"].trainable is False
    assert RobustMax(3).parameters()["epsilon"].trainable is False
    assert RobustMax(3, 0.01).parameters()["epsilon"].trainable


def test_ordinal_by_hand():
    likelihood = Ordinal(4, -1.0, [0.5, 2.0])  # cut points -1, -0.5, 1.5
    ends = np.array([-np.inf, -1.0, -0.5, 1.5, np.inf]) - 0.3
    p = run(likelihood, "log_prob", np.arange(4.0), np.full(4, 0.3))
    np.testing.assert_allclose(np.exp(p), np.diff(stats.norm.cdf(ends)), rtol=1e-12)


def test_heteroscedastic_by_hand():
    f = np.array([[0.5, np.log(4.0)]])
    np.testing.assert_allclose(run(Heteroscedastic(), "log_prob", [3.5], f), stats.norm(0.5, 2.0).logpdf(3.5))


# log Phi(z) and its three derivatives, from 50 digits.
PROBIT = [
    (-1000.0, -500007.82669481216, 1000.000999998, -0.999999000006, 1.999976000299996e-09),
    (-40.0, -804.6084420137538, 40.02496884720726, -0.9993773316214086, 3.101744039648625e-05),
    (-8.0, -35.01343715991455, 8.121368112236112, -0.9856751165566591, 0.0032918765663441357),
    (-5.0, -15.064998393988725, 5.186503967125842, -0.9673035653828878, 0.0108257645063567),
    (0.0, -0.6931471805599453, 0.7978845608028654, -0.6366197723675814, 0.21801361414499015),
    (8.0, -6.220960574271786e-16, 5.052271083536895e-15, -4.0418168668295186e-14, 3.1829307826282504e-13),
]


def test_log_normal_cdf_keeps_its_digits():
    """The last is what Laplace's evidence needs. Written as they stand, the formulas have no digit of it at
    -1000, and 9 at -40."""
    z, *known = np.array(PROBIT).T

    @jax.jit
    def all_of_them(z):
        third = jax.vmap(jax.grad(normal.bend))(z), jax.vmap(jax.grad(jax.grad(jax.grad(normal.log_cdf))))(z)
        return (normal.log_cdf(z), normal.ratio(z), normal.bend(z)), third, normal.truncated_variance(z)

    with jax.enable_x64(True):
        ours, third, variance = jax.tree_util.tree_map(np.asarray, all_of_them(z))
    for a, b in zip(ours, known[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-13)
    for a in third:
        np.testing.assert_allclose(a, known[3], rtol=1e-11)
    np.testing.assert_allclose(variance, 1 + known[2], rtol=1e-11, atol=2e-16)


@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        (Bernoulli(), [0.0, 1.0]),
        (Bernoulli("probit"), [0.0, 1.0]),
        (Binomial(), [0.0, 1.0]),
        (Binomial("probit"), [0.0, 1.0]),
        (Poisson(), [0.0, 3.0, 1e6]),
        (NegativeBinomial(0.5), [0.0, 3.0, 1e6]),
        (StudentT(1.0, 4.0), [-1e6, 0.0]),
        (Gamma(2.0), [1e-9, 1e9]),
        (Beta(5.0), [1e-12, 1 - 1e-12]),
        (Ordinal(3), [0.0, 1.0, 2.0]),
        (Softmax(3), [0.0, 1.0, 2.0]),
        (Heteroscedastic(), [0.0, 1e5]),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Likelihood) else "",
)
def test_extreme_arguments_give_numbers(likelihood, y):
    """Value, first and second derivative, also by autodiff, and the expectation: never NaN, whatever f an
    optimiser tries."""
    y, f = (v.ravel() for v in np.meshgrid(y, [-1e5, -1e3, -40.0, 0.0, 40.0, 1e3, 1e5]))
    if likelihood.latents > 1:
        f = np.stack([f, *[np.roll(f, k) for k in range(1, likelihood.latents)]], axis=-1)

    y = likelihood.with_defaults(y)

    @jax.jit
    def everything(bare, y, f):
        values = bare.log_prob(y, f), bare.derivatives(y, f), bare.expected_log_prob(y, f, jnp.ones_like(f))
        return values, jax.vmap(jax.grad(bare.log_prob, argnums=1))(y, f)

    with jax.enable_x64(True):
        assert not any(
            np.any(np.isnan(value))
            for value in jax.tree_util.tree_leaves(everything(likelihood.bare(), y, f))
        )


def test_sure_labels_far_out():
    """log p of a wrong label is -f to the last digit, -f^2/2 - log(f sqrt(2 pi)) + log(1 - 1/f^2) for probit,
    and that of a right one is 0."""
    f = np.array([1e3, 1e6])
    asymptotic = -0.5 * f**2 - np.log(f * np.sqrt(2 * np.pi)) + np.log1p(-1 / f**2)
    np.testing.assert_allclose(run(Bernoulli(), "log_prob", np.zeros(2), f), -f, rtol=1e-15)
    np.testing.assert_allclose(run(Bernoulli("probit"), "log_prob", np.zeros(2), f), asymptotic, rtol=1e-15)
    for link in ("logit", "probit"):
        np.testing.assert_array_equal(run(Bernoulli(link), "log_prob", np.ones(2), f), 0.0)
    np.testing.assert_allclose(run(Bernoulli("probit"), "derivatives", np.zeros(2), f)[1], -1.0, rtol=1e-5)
