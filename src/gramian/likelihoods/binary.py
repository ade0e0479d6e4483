r"""Two classes: y is 1 with probability sigma(f), else 0.

    logit     sigma(f) = 1 / (1 + exp(-f))
    probit    sigma(f) = Phi(f), the normal cumulative distribution

For the probit link the Gaussian integrals are closed: with z = (2y - 1) mean / sqrt(1 + var), r = phi(z) /
Phi(z)

    log E p = log Phi(z),   tilted mean = mean + (2y - 1) var r / sqrt(1 + var),
    tilted variance = var - var^2 r (z + r) / (1 + var)

Source: Rasmussen and Williams 2006, equations 3.58, 3.82, 3.85.
"""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from gramian.errors import ParameterError
from gramian.likelihoods import checks, normal, quadrature
from gramian.likelihoods.base import Likelihood

Array = NDArray[np.float64]


class Bernoulli(Likelihood):
    """Two classes, 0 and 1. `link` is "logit" or "probit"."""

    link: Literal["logit", "probit"] = "logit"

    def __post_init__(self) -> None:
        if self.link not in ("logit", "probit"):
            raise ParameterError(f'Bernoulli: link must be "logit" or "probit", but is {self.link!r}.')
        super().__post_init__()

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        z = (2 * y - 1) * f
        return normal.log_cdf(z) if self.link == "probit" else -jax.nn.softplus(-z)

    @property
    def log_concave(self) -> bool:
        return True

    def checked(self, y: Array, what: str = "y") -> Array:
        return checks.labels(y, 2, "Bernoulli", what)

    def derivatives(self, y: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        sign = 2 * y - 1
        if self.link == "probit":
            return sign * normal.ratio(sign * f), normal.bend(sign * f)
        return sign * jax.nn.sigmoid(-sign * f), -jax.nn.sigmoid(f) * jax.nn.sigmoid(-f)

    def tilted(
        self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
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
        if self.link == "probit":
            return jnp.exp(
                jnp.stack(
                    [self.predictive_log_prob(jnp.full_like(mean, y), mean, var) for y in (0.0, 1.0)], axis=-1
                )
            )
        return jnp.stack(
            [quadrature.expectation(jax.nn.sigmoid, sign * mean, var) for sign in (-1.0, 1.0)], axis=-1
        )

    def conditional_moments(self, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        one, other = (jnp.exp(self.log_prob(jnp.full_like(f, y), f)) for y in (1.0, 0.0))
        return one, one * other

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        p = ndtr(f) if self.link == "probit" else expit(f)
        return (rng.random(np.shape(f)) < p).astype(np.float64)
