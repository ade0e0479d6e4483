"""Each likelihood keeps the whole contract: totals, derivatives, expectations, tilted moments, moments and
draws of y."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from gramian.errors import ParameterError
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
)
from gramian.params import Value, positive
from gramian.testing import check_likelihood


@pytest.mark.parametrize(
    ("likelihood", "given"),
    [
        (Gaussian(0.2), {}),
        (Bernoulli(), {"outcomes": [0.0, 1.0]}),
        (Bernoulli("probit"), {"outcomes": [0.0, 1.0]}),
        (Softmax(3), {"outcomes": range(3)}),
        (RobustMax(3, 0.2), {"outcomes": range(3)}),
        (Poisson(), {"y": [[0, 1], [1, 0.5], [7, 3]], "outcomes": range(80)}),
        (NegativeBinomial(0.7), {"y": [0, 1, 7], "outcomes": range(150)}),
        (Binomial(), {"y": [[0, 1], [2, 6], [6, 6], [0, 0]], "outcomes": range(7)}),
        (Binomial("probit"), {"y": [[0, 1], [2, 6]], "outcomes": range(7)}),
        (StudentT(0.5, 5.0), {}),
        (StudentT(0.05, 1.5), {}),
        (Gamma(2.0), {"y": [0.1, 0.7, 4.0]}),
        (Beta(10.0), {"y": [0.01, 0.3, 0.9]}),
        (Ordinal(4), {"outcomes": range(4)}),
        (Heteroscedastic(), {}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Likelihood) else "",
)
def test_contract(likelihood, given):
    check_likelihood(likelihood, **given)


class Laplacian(Likelihood):
    """Straight lines that meet in a kink: a second derivative of zero, of which differences give their own
    rounding."""

    width: Value = positive(1.0)

    def log_prob(self, y, f):
        return -jnp.abs(y - f) / self.width - jnp.log(2 * self.width)


def test_a_kink_keeps_the_contract():
    check_likelihood(Laplacian())


def test_outcomes_that_are_all_but_impossible_keep_the_contract():
    """log p is -1,096 at the last: its rounding, divided by h^2, is above a relative tolerance; and f given y
    is 12 standard deviations away."""
    check_likelihood(Poisson(), outcomes=range(200))


# What does not keep it. The likelihoods are cheap ones, so that little is compiled. -------------------------


class WrongTilted(Gaussian):
    def tilted(self, y, mean, var, power=1.0):
        log_Z, first, second = super().tilted(y, mean, var, power)
        return log_Z, first, 1.01 * second


class PowerForgotten(Gaussian):
    def tilted(self, y, mean, var, power=1.0):
        return super().tilted(y, mean, var)


class WrongMoments(Gaussian):
    def predictive_moments(self, mean, var):
        return mean, jnp.broadcast_to(self.noise, var.shape)


class WrongDraws(Gaussian):
    def draw(self, rng, f):
        return super().draw(rng, f) + 0.05


class Blind(Gaussian):
    def checked(self, y, what="y"):
        return np.nan_to_num(y)


class NotConcave(Gaussian):
    def log_prob(self, y, f):
        return -jnp.log(jnp.pi) - jnp.log1p((y - f) ** 2)

    def derivatives(self, y, f):
        return Likelihood.derivatives(self, y, f)


class WrongScales(Gaussian):
    def scales(self, s):
        return np.ones(2)


class SwappedLatents(Heteroscedastic):
    def derivatives(self, y, f):
        first, second = super().derivatives(y, f)
        return first[..., ::-1], second


class Curved(Laplacian):
    def derivatives(self, y, f):
        first, second = super().derivatives(y, f)
        return first, second - 1e-5


class SlopeOff(Laplacian):
    def derivatives(self, y, f):
        first, second = super().derivatives(y, f)
        return first * (1 + 1e-6), second


class KinkForgotten(Laplacian):
    def expected_log_prob(self, y, mean, var):
        return self.log_prob(y, mean)


class TailCurved(Poisson):
    """Wrong by a part in two hundred, and only where log p is large."""

    def derivatives(self, y, f):
        first, second = super().derivatives(y, f)
        return first, jnp.where(y[..., 0] > 150, 1.005 * second, second)


class TrialsForgotten(Binomial):
    def conditional_moments(self, f, trials=1.0):
        return super().conditional_moments(f)


class OneColumn(Binomial):
    columns = ("successes",)


class WrongCumulative(Poisson):
    def cumulative(self, y, f, exposure=1.0):
        return super().cumulative(y - 1, f, exposure)  # P(Y < y)


class WrongDistribution(StudentT):
    def distribution(self, mean, var):
        return super().distribution(mean + 0.1, var)


class Overconfident(Softmax):
    def expected_log_prob(self, y, mean, var):
        return self.log_prob(y, mean)


@pytest.mark.parametrize(
    ("likelihood", "given", "promise"),
    [
        (WrongTilted(0.5), {}, "tilted with power 1, the variance"),
        (PowerForgotten(0.5), {}, "tilted with power 0.5"),
        (WrongMoments(0.5), {}, "predictive_moments, var y"),
        (WrongDraws(0.5), {}, "the mean of draws"),
        (Blind(0.5), {}, "lets NaN pass"),
        (NotConcave(0.5), {}, "log-concave"),
        (WrongScales(0.5), {}, "scales"),
        (SwappedLatents(), {}, "derivatives, the first"),
        (Curved(), {}, "derivatives, the second"),
        (SlopeOff(), {}, "derivatives, the first"),
        (KinkForgotten(), {}, "expected_log_prob"),
        (TailCurved(), {"outcomes": range(200)}, "derivatives, the second"),
        (TrialsForgotten(), {"y": [[2, 6]], "outcomes": range(7)}, "E\\[y \\| f\\] is not the mean"),
        (OneColumn(), {"outcomes": range(2)}, "column_defaults has \\['trials'\\]"),
        (Overconfident(3), {"outcomes": range(3)}, "expected_log_prob"),
        (WrongCumulative(), {"outcomes": range(40)}, r"cumulative\(y, f\) is not the share"),
        (WrongDistribution(), {}, r"distribution\(f, 0\) is not the share"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Likelihood) else "",
)
def test_broken_likelihoods(likelihood, given, promise):
    with pytest.raises(AssertionError, match=promise):
        check_likelihood(likelihood, **given)


def test_several_latents_have_no_tilted_moments():
    with pytest.raises(ParameterError, match='3 latent functions: use inference="vi" or "mcmc" instead'):
        Softmax(3).tilted(jnp.zeros(2), jnp.zeros((2, 3)), jnp.ones((2, 3)))
