r"""Two classes, and successes among trials: each is a 1 with probability sigma(f), else a 0.

    logit     sigma(f) = 1 / (1 + exp(-f))
    probit    sigma(f) = Phi(f), the normal cumulative distribution

    Bernoulli    p(y | f) = sigma((2y - 1) f)
    Binomial     p(k | f) = n! / (k! (n - k)!) sigma(f)^k (1 - sigma(f))^(n - k),   E k = n sigma(f)

n trials in one row tell f as much as n rows of one each, at the cost of one; a row of no trials nothing. For
Bernoulli and probit the Gaussian integrals are closed: with z = (2y - 1) mean / sqrt(1 + var), r = phi / Phi

    log E p = log Phi(z),   tilted mean = mean + (2y - 1) var r / sqrt(1 + var),
    tilted variance = var - var^2 r (z + r) / (1 + var)

Source: Rasmussen and Williams 2006, equations 3.58, 3.82, 3.85.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from scipy.special import betainc, expit, logit, ndtr, ndtri

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.likelihoods import checks, normal, quadrature
from gramian.likelihoods.base import Likelihood, Pair, Triple
from gramian.params.namespace import namespace, sigmoid
from gramian.params.namespace import ndtr as normal_cdf


class _Linked(Likelihood):
    """What the two have in common."""

    log_concave = discrete = True
    link: Literal["logit", "probit"] = "logit"

    def __post_init__(self) -> None:
        if self.link not in ("logit", "probit"):
            name = type(self).__name__
            raise ParameterError(f'{name}: link must be "logit" or "probit", but is {self.link!r}.')
        super().__post_init__()

    def _log_sigma(self, f: jax.Array) -> jax.Array:
        return normal.log_cdf(f) if self.link == "probit" else -jax.nn.softplus(-f)

    def _slope_and_bend(self, f: jax.Array) -> Pair:
        """The derivatives of log sigma."""
        if self.link == "probit":
            return normal.ratio(f), normal.bend(f)
        return jax.nn.sigmoid(-f), -jax.nn.sigmoid(f) * jax.nn.sigmoid(-f)

    def conditional_moments(self, f: jax.Array, trials: ArrayLike = 1.0) -> Pair:
        sigma = normal_cdf if self.link == "probit" else sigmoid
        first = trials * sigma(f)
        return first, first * sigma(-f)

    def highest(self, mean: Array, var: Array, trials: Array | float = 1.0) -> float:
        return float(np.max(trials))

    def cumulative(self, y: Array, f: Array, trials: Array | float = 1.0) -> Array:
        missed = ndtr(-f) if self.link == "probit" else expit(-f)
        left = np.asarray(trials) - y
        return np.where(left > 0, betainc(np.maximum(left, 1.0), y + 1, missed), 1.0)


class Bernoulli(_Linked):
    """Two classes, 0 and 1. `link` is "logit" or "probit"."""

    numpy_too = True

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return self._log_sigma((2 * y - 1) * f)

    def checked(self, y: Array, what: str = "y") -> Array:
        return checks.labels(y, 2, "Bernoulli", what)

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        sign = 2 * y - 1
        slope, bend = self._slope_and_bend(sign * f)
        return sign * slope, bend

    def tilted(self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0) -> Triple:
        if self.link == "logit" or not (isinstance(power, (int, float)) and power == 1):
            return super().tilted(y, mean, var, power)
        sign, root = 2 * y - 1, jnp.sqrt(1 + var)
        z = sign * mean / root
        # The variance of (3.85) with r (z + r) = 1 - t, so that nothing cancels where var is large and z far
        # below zero.
        shrunk = var * (1 + var * normal.truncated_variance(z)) / (1 + var)
        return normal.log_cdf(z), mean + sign * var * normal.ratio(z) / root, shrunk

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        if self.link == "probit":
            return normal.log_cdf((2 * y - 1) * mean / jnp.sqrt(1 + var))
        return super().predictive_log_prob(y, mean, var)

    def probabilities(self, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E p(y | f) of both classes for f ~ N(mean, var): (..., 2)."""
        xp = namespace(mean)
        either = xp.stack([-mean, mean], axis=-1)
        if self.link == "probit":
            return xp.exp(normal.log_cdf(either / xp.sqrt(1 + var[..., None])))
        return quadrature.expectation(sigmoid, either, var[..., None])

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        p = ndtr(f) if self.link == "probit" else expit(f)
        return (rng.random(np.shape(f)) < p).astype(np.float64)


class Binomial(_Linked):
    """Successes of a number of trials, each with probability sigma(f). `link` is "logit" or "probit"."""

    numpy_too = True
    columns: ClassVar[tuple[str, ...]] = ("successes", "trials")
    column_defaults: ClassVar[Mapping[str, float]] = {"trials": 1.0}  # so that E y is the share of successes

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        k, n = y[..., 0], y[..., 1]
        ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)  # minus infinity for more than all
        return ways + k * self._log_sigma(f) + (n - k) * self._log_sigma(-f)

    def checked(self, y: Array, what: str = "y") -> Array:
        k, n = y.T
        self.checked_beside(n)
        rule = "successes are whole numbers from 0 to the trials of their row (1 where none are given)"
        checks.refuse(k, checks.whole(k, n), rule, what)
        return y

    def checked_beside(self, *beside: Array) -> None:
        (n,) = beside
        checks.refuse(n, checks.whole(n), "trials are whole numbers from 0 on", "the column trials")

    def started(self, y: Array) -> tuple[Self, Array]:
        share = (np.sum(y[:, 0]) + 0.5) / (np.sum(y[:, 1]) + 1)  # the halves are for shares of 0 and 1
        return self, np.array([ndtri(share) if self.link == "probit" else logit(share)])

    def per_unit(self, y: Array) -> Array:
        return np.divide(y[:, 0], y[:, 1], out=np.full(len(y), np.nan), where=y[:, 1] > 0)

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        k, n = y[..., 0], y[..., 1]
        (up, bend), (down, other) = self._slope_and_bend(f), self._slope_and_bend(-f)
        return k * up - (n - k) * down, k * bend + (n - k) * other

    def draw(self, rng: np.random.Generator, f: Array, trials: Array | float = 1.0) -> Array:
        p = ndtr(f) if self.link == "probit" else expit(f)
        return rng.binomial(np.asarray(trials).astype(np.int64), p).astype(np.float64)
