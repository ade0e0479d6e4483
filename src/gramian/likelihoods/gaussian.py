"""Gaussian noise: y = f + e, e ~ N(0, noise)."""

from __future__ import annotations

from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gramian.likelihoods.base import Array, Likelihood, Pair, Triple
from gramian.params import Value, nonnegative


class Gaussian(Likelihood):
    """y ~ N(f, noise * unit). `noise` is a variance, in the units of y squared while `unit` is 1.

    With several outputs of different spread `unit` holds one number an output, and `noise` is then relative
    to it.
    """

    log_concave = location = True
    noise: Value = nonnegative(1.0)
    unit: tuple[float, ...] = (1.0,)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return _log_normal(y, f, self.noise)

    def started(self, y: Array) -> tuple[Self, Array]:
        return self, np.array([np.mean(y)])

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        return (y - f) / self.noise, jnp.broadcast_to(-1 / jnp.asarray(self.noise), f.shape)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return _log_normal(y, mean, self.noise) - 0.5 * var / self.noise

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return _log_normal(y, mean, var + self.noise)

    def tilted(self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0) -> Triple:
        noise = self.noise / power  # a power of a Gaussian is one of another width, times a constant
        log_Z = _log_normal(y, mean, var + noise)
        if not (isinstance(power, (int, float)) and power == 1):
            log_Z = log_Z + 0.5 * (1 - power) * jnp.log(2 * jnp.pi * self.noise) - 0.5 * jnp.log(power)
        return log_Z, (noise * mean + var * y) / (var + noise), var * noise / (var + noise)

    def conditional_moments(self, f: jax.Array) -> Pair:
        return f, jnp.broadcast_to(self.noise, f.shape)

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> Pair:
        return mean, var + self.noise

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        return f + np.sqrt(float(self.noise)) * rng.standard_normal(np.shape(f))

    def variances(self) -> Array:
        """The noise variance of each output, (outputs,)."""
        return np.asarray(self.noise) * np.asarray(self.unit)


def _log_normal(y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
    return -0.5 * ((y - mean) ** 2 / var + jnp.log(2 * jnp.pi * var))
