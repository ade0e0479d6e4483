r"""Gaussian noise whose variance is a function of x too: two latents, f and g.

    y ~ N(f, exp(g)),
    E log p(y | f, g) = -1/2 (log 2 pi + E g + ((y - E f)^2 + var f) exp(-E g + var g / 2))

Source: Goldberg, Williams and Bishop 1998 (the model); Lazaro-Gredilla and Titsias 2011, equation 7 (the
expectation). The predictive density is closed in f, which leaves an integral over g alone.
"""

from __future__ import annotations

from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gramian.likelihoods import quadrature
from gramian.likelihoods.base import Array, Likelihood, Pair
from gramian.likelihoods.special import bounded_exp


class Heteroscedastic(Likelihood):
    """y ~ N(f, exp(g)): the second latent is the log of the noise variance."""

    location = True

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return -0.5 * (jnp.log(2 * jnp.pi) + f[..., 1] + (y - f[..., 0]) ** 2 * bounded_exp(-f[..., 1]))

    @property
    def latents(self) -> int:
        return 2

    def scales(self, s: float) -> Array:
        return np.array([s, 1.0])  # a change of units shifts g, and stretches f alone

    def started(self, y: Array) -> tuple[Self, Array]:
        return self, np.array([np.mean(y), np.log(0.1 * (np.var(y) or 1.0))])

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        r, precision = y - f[..., 0], bounded_exp(-f[..., 1])
        half = 0.5 * r**2 * precision
        return jnp.stack([r * precision, half - 0.5], axis=-1), jnp.stack([-precision, -half], axis=-1)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        square = (y - mean[..., 0]) ** 2 + var[..., 0]
        precision = bounded_exp(0.5 * var[..., 1] - mean[..., 1])
        return -0.5 * (jnp.log(2 * jnp.pi) + mean[..., 1] + square * precision)

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        square, spread = ((y - mean[..., 0]) ** 2)[..., None], var[..., :1]

        def given(g: jax.Array) -> jax.Array:
            total = spread + bounded_exp(g)
            return -0.5 * (jnp.log(2 * jnp.pi * total) + square / total)

        return quadrature.log_expectation(given, mean[..., 1], var[..., 1])

    def conditional_moments(self, f: jax.Array) -> Pair:
        return f[..., 0], bounded_exp(f[..., 1])

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> Pair:
        return mean[..., 0], var[..., 0] + bounded_exp(mean[..., 1] + 0.5 * var[..., 1])

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        return f[..., 0] + np.exp(0.5 * f[..., 1]) * rng.standard_normal(f.shape[:-1])
