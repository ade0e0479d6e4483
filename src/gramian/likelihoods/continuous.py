r"""Continuous observations that are not Gaussian around f.

    StudentT    y = f + scale t, t with df degrees of freedom: outliers are forgiven
    Gamma       y > 0 with mean mu = exp(f) and variance mu^2 / shape
    Beta        0 < y < 1 with mean mu = 1 / (1 + exp(-f)) and variance mu (1 - mu) / (1 + precision)

Sources: Jylanki, Vanhatalo and Vehtari 2011 (StudentT); Juarez and Steel 2010 (the prior of its df);
McCullagh and Nelder 1989, chapter 8 (Gamma); Ferrari and Cribari-Neto 2004 (Beta).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from scipy.special import betainc, expit, gammainc, logit

from gramian.arrays import Array
from gramian.likelihoods import checks
from gramian.likelihoods.base import Likelihood, Pair
from gramian.likelihoods.special import bounded_exp, gammaln_step
from gramian.params import Value, positive, priors
from gramian.params.namespace import namespace, sigmoid
from gramian.predictive import NoisyNormals, Predictive

TAILS = priors.Gamma(2.0, 0.1)  # of degrees of freedom: from 2.4 to 56 with 95 %, most probably 10


class StudentT(Likelihood):
    """y = f + scale t, t of Student's distribution of `df` degrees of freedom; up to 2 var y is infinite."""

    location = numpy_too = True
    scale: Value = positive(1.0)
    df: Value = positive(4.0)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        df = jnp.asarray(self.df)
        constant = gammaln_step(df / 2, 0.5) - 0.5 * jnp.log(jnp.pi * df) - jnp.log(self.scale)
        return constant - 0.5 * (df + 1) * jnp.log1p(((y - f) / self.scale) ** 2 / df)

    def started(self, y: Array) -> tuple[Self, Array]:
        """The median, and a tenth of the variance as noise; both measured without regard to outliers. Degrees
        of freedom that are free, with neither prior nor bounds, get the prior of Juarez and Steel 2010: few
        rows tell little of tails, and without it they may end where y has no variance."""
        middle = np.median(y)
        spread = 1.4826 * np.median(np.abs(y - middle)) or np.std(y) or 1.0
        started = self.default_starts(type(self)(), scale=np.sqrt(0.1) * spread)
        df = started.parameters()["df"]
        if df.trainable and df.prior is None and df.bounds is None:
            started = started.with_parameters([started.parameters()["scale"], replace(df, prior=TAILS)])
        return started, np.array([middle])

    def meanings(self) -> dict[str, str]:
        if float(self.df) > 2:
            return {}
        return {"df": "2 or less: y has no variance, so std is infinite; intervals and quantiles are finite"}

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        r, width = y - f, self.df * jnp.asarray(self.scale) ** 2
        total = width + r**2
        return (self.df + 1) * r / total, (self.df + 1) * (r**2 - width) / total**2

    def peak(self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0) -> Pair:
        return y, jnp.broadcast_to(self.scale, y.shape)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        # log p has a dip of the width of scale, which may be far below that of f
        f, log_weights = self.nodes(y, mean, var)
        return jnp.sum(jnp.exp(log_weights) * self.log_prob(y[..., None], f), axis=-1)

    def conditional_moments(self, f: jax.Array) -> Pair:
        return f, namespace(f).broadcast_to(self._variance(), f.shape)

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> Pair:
        return mean, var + self._variance()

    def distribution(self, mean: Array, var: Array) -> Predictive:
        df, square = float(self.df), float(self.scale) ** 2
        noise, weights = _variances(df)
        std = np.sqrt(var + (square * df / (df - 2) if df > 2 else np.inf))
        return NoisyNormals(mean, var, square * noise, weights, std)

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        return f + float(self.scale) * rng.standard_t(float(self.df), np.shape(f))

    def _variance(self) -> jax.Array:
        xp = namespace(self.df)
        df = xp.asarray(self.df)
        return xp.where(df > 2, xp.asarray(self.scale) ** 2 * df / xp.where(df > 2, df - 2, 1.0), xp.inf)


def _variances(df: float) -> tuple[Array, Array]:
    """Student's t as Gaussians of variance v = 1 / w, w ~ Gamma(a, a) with a = df / 2: v and weights.

    The trapezoidal rule for t = log w, whose density is proportional to exp(a (t - e^t)): analytic up to
    pi / 2 from the real line, so that a step of 0.32 leaves exp(-pi^2 / 0.32) = 4e-14; with many degrees of
    freedom it is nearly a Gaussian of standard deviation 1 / sqrt(a), and steps are a part of that.
    """
    a = df / 2
    step = 0.32 / np.sqrt(max(1.0, a))
    low, high = -1 - 36 / a - 9 / np.sqrt(a), np.log1p(36 / a + 9 / np.sqrt(a))
    t = np.arange(low, high, step)
    logs = a * (t - np.expm1(t))
    t, weights = t[logs > -37], np.exp(logs[logs > -37])  # below, rounding
    return np.exp(np.minimum(-t, 700.0)), weights / np.sum(weights)  # with df below 0.1 there are no larger


class Gamma(Likelihood):
    """Positive y with mean exp(f) and a relative spread of 1 / sqrt(shape); shape 1 is the exponential."""

    log_concave = numpy_too = True
    shape: Value = positive(1.0)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return self._expected(y, f, bounded_exp(-f))

    def checked(self, y: Array, what: str = "y") -> Array:
        possible = checks.between(y, 0, np.inf)
        checks.refuse(y, possible, "the gamma distribution is one of positive numbers", what)
        # exp(f) ends at 1e130, and its square is needed
        rule = "numbers from 1e-100 to 1e100 are understood; give y in other units"
        return checks.refuse(y, checks.between(y, 1e-100, 1e100), rule, what)

    def started(self, y: Array) -> tuple[Self, Array]:
        mean = float(np.mean(y))
        # half of the spread; the rest is for f to explain
        shape = np.clip(2 * mean**2 / max(float(np.var(y)), 1e-3 * mean**2), 0.1, 100.0)
        return self.default_starts(type(self)(), shape=shape), np.array([np.log(mean)])

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        relative = self.shape * y * bounded_exp(-f)
        return relative - self.shape, -relative

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return self._expected(y, mean, bounded_exp(0.5 * var - mean))

    def conditional_moments(self, f: jax.Array) -> Pair:
        mu = bounded_exp(f)
        return mu, mu**2 / self.shape

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> Pair:
        first, xp = bounded_exp(mean + 0.5 * var), namespace(var)
        return first, first**2 * (xp.expm1(var) + xp.exp(var) / self.shape)

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        shape = float(self.shape)
        return np.exp(f) * rng.gamma(shape, 1 / shape, np.shape(f))

    def cumulative(self, y: Array, f: Array) -> Array:
        shape = float(self.shape)
        return gammainc(shape, shape * np.maximum(y, 0.0) * np.exp(np.clip(-f, -700.0, 700.0)))

    def _expected(self, y: jax.Array, mean: jax.Array, inverse: jax.Array) -> jax.Array:
        """E log p(y | f) from the means of f and exp(-f)."""
        k = jnp.asarray(self.shape)
        return k * jnp.log(k) - gammaln(k) + (k - 1) * jnp.log(y) - k * mean - k * y * inverse


class Beta(Likelihood):
    """Proportions strictly between 0 and 1: mean 1 / (1 + exp(-f)), the closer the larger `precision`."""

    numpy_too = True
    precision: Value = positive(10.0)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        phi = jnp.asarray(self.precision)
        a, b = phi * jax.nn.sigmoid(f), phi * jax.nn.sigmoid(-f)
        # log Gamma(a) = log Gamma(1 + a) - log a, with log a known where a itself is too small to be a number
        logs = 2 * jnp.log(phi) - jax.nn.softplus(-f) - jax.nn.softplus(f)
        constant = gammaln(phi) - gammaln(1 + a) - gammaln(1 + b) + logs
        return constant + (a - 1) * jnp.log(y) + (b - 1) * jnp.log1p(-y)

    def checked(self, y: Array, what: str = "y") -> Array:
        rule = "the beta distribution is one of numbers between 0 and 1, both excluded"
        return checks.refuse(y, checks.between(y, 0, 1), rule, what)

    def started(self, y: Array) -> tuple[Self, Array]:
        mean = float(np.mean(y))
        # half of the spread; the rest is for f to explain
        precision = np.clip(2 * mean * (1 - mean) / max(float(np.var(y)), 1e-6) - 1, 1.0, 1000.0)
        return self.default_starts(type(self)(), precision=precision), np.array([logit(mean)])

    def peak(self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0) -> Pair:
        return jnp.log(y) - jnp.log1p(-y), 1 / jnp.sqrt(1 + self.precision * y * (1 - y))

    def conditional_moments(self, f: jax.Array) -> Pair:
        mu = sigmoid(f)
        return mu, mu * sigmoid(-f) / (1 + self.precision)

    def cumulative(self, y: Array, f: Array) -> Array:
        phi, tiny = float(self.precision), np.finfo(np.float64).tiny
        a, b = np.maximum(phi * expit(f), tiny), np.maximum(phi * expit(-f), tiny)
        return betainc(a, b, np.clip(y, 0.0, 1.0))

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        phi, tiny = float(self.precision), np.finfo(np.float64).tiny
        drawn = rng.beta(np.maximum(phi * expit(f), tiny), np.maximum(phi * expit(-f), tiny))
        # a number that is possible, where rounding makes it 0 or 1
        return np.clip(drawn, tiny, 1 - np.finfo(np.float64).epsneg)
