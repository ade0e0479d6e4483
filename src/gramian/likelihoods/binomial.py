r"""Successes among trials: k of n, each with probability sigma(f).

    p(k | f) = n! / (k! (n - k)!) sigma(f)^k (1 - sigma(f))^(n - k)
    E k = n sigma(f),   var k = n sigma(f) (1 - sigma(f))

with the links of two classes (binary.py): Bernoulli's is the case of one trial, and n trials in one row tell
f as much as n rows of one each, at the cost of one. A row of no trials tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from numpy.typing import NDArray
from scipy.special import expit, logit, ndtr, ndtri

from gramian.errors import ParameterError
from gramian.likelihoods import checks, normal
from gramian.likelihoods.base import Likelihood

Array = NDArray[np.float64]


class Binomial(Likelihood):
    """Successes of a number of trials, each with probability sigma(f). `link` is "logit" or "probit"."""

    columns: ClassVar[tuple[str, ...]] = ("successes", "trials")
    column_defaults: ClassVar[Mapping[str, float]] = {"trials": 1.0}  # so that E y is the share of successes

    link: Literal["logit", "probit"] = "logit"

    def __post_init__(self) -> None:
        if self.link not in ("logit", "probit"):
            raise ParameterError(f'Binomial: link must be "logit" or "probit", but is {self.link!r}.')
        super().__post_init__()

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        k, n = y[..., 0], y[..., 1]
        ways = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)  # minus infinity for more than all
        if self.link == "probit":
            return ways + k * normal.log_cdf(f) + (n - k) * normal.log_cdf(-f)
        return ways - k * jax.nn.softplus(-f) - (n - k) * jax.nn.softplus(f)

    @property
    def log_concave(self) -> bool:
        return True

    @property
    def discrete(self) -> bool:
        return True

    def highest(self, mean: Array, var: Array, trials: Array | float = 1.0) -> float:
        return float(np.max(trials))

    def checked(self, y: Array, what: str = "y") -> Array:
        k, n = y.T
        self.checked_beside(n)
        with np.errstate(invalid="ignore"):
            possible = (k >= 0) & (k == np.floor(k)) & (k <= n)
        rule = "successes are whole numbers from 0 to the trials of their row (1 where none are given)"
        checks.refuse(k, possible, rule, what)
        return y

    def checked_beside(self, *beside: Array) -> None:
        (n,) = beside
        with np.errstate(invalid="ignore"):
            possible = (n >= 0) & (n == np.floor(n)) & np.isfinite(n)
        checks.refuse(n, possible, "trials are whole numbers from 0 on", "the column trials")

    def started(self, y: Array) -> tuple[Self, Array]:
        share = (np.sum(y[:, 0]) + 0.5) / (np.sum(y[:, 1]) + 1)  # the halves are for shares of 0 and 1
        return self, np.array([ndtri(share) if self.link == "probit" else logit(share)])

    def per_unit(self, y: Array) -> Array:
        return np.divide(y[:, 0], y[:, 1], out=np.full(len(y), np.nan), where=y[:, 1] > 0)

    def derivatives(self, y: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        k, n = y[..., 0], y[..., 1]
        if self.link == "probit":
            slope = k * normal.ratio(f) - (n - k) * normal.ratio(-f)
            return slope, k * normal.bend(f) + (n - k) * normal.bend(-f)
        one, other = jax.nn.sigmoid(f), jax.nn.sigmoid(-f)
        return k * other - (n - k) * one, -n * one * other

    def conditional_moments(self, f: jax.Array, trials: ArrayLike = 1.0) -> tuple[jax.Array, jax.Array]:
        sigma = jax.scipy.special.ndtr if self.link == "probit" else jax.nn.sigmoid
        first = jnp.asarray(trials) * sigma(f)
        return first, first * sigma(-f)

    def draw(self, rng: np.random.Generator, f: Array, trials: Array | float = 1.0) -> Array:
        p = ndtr(f) if self.link == "probit" else expit(f)
        return rng.binomial(np.asarray(trials).astype(np.int64), p).astype(np.float64)
