"""Gaussian noise: y = f + e, e ~ N(0, noise)."""

from __future__ import annotations

from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.likelihoods.base import Likelihood
from gramian.params import Value, nonnegative


class Gaussian(Likelihood):
    """y ~ N(f, noise * unit). `noise` is a variance, in the units of y squared while `unit` is 1.

    With several outputs of different spread `unit` holds one number an output, and `noise` is then relative
    to it.
    """

    conjugate = True

    noise: Value = nonnegative(1.0)
    unit: tuple[float, ...] = (1.0,)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return _log_normal(y, f, self.noise)

    @property
    def log_concave(self) -> bool:
        return True

    @property
    def location(self) -> bool:
        return True

    def started(self, y: NDArray[np.float64]) -> tuple[Self, NDArray[np.float64]]:
        return self, np.array([np.mean(y)])

    def derivatives(self, y: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        return (y - f) / self.noise, jnp.broadcast_to(-1 / jnp.asarray(self.noise), f.shape)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return _log_normal(y, mean, self.noise) - 0.5 * var / self.noise

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return _log_normal(y, mean, var + self.noise)

    def tilted(
        self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        noise = self.noise / power  # a power of a Gaussian is one of another width, times a constant
        log_Z = _log_normal(y, mean, var + noise)
        if not (isinstance(power, (int, float)) and power == 1):
            log_Z = log_Z + 0.5 * (1 - power) * jnp.log(2 * jnp.pi * self.noise) - 0.5 * jnp.log(power)
        return log_Z, (noise * mean + var * y) / (var + noise), var * noise / (var + noise)

    def conditional_moments(self, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        return f, jnp.broadcast_to(self.noise, f.shape)

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> tuple[jax.Array, jax.Array]:
        return mean, var + self.noise

    def draw(self, rng: np.random.Generator, f: NDArray[np.float64]) -> NDArray[np.float64]:
        return f + np.sqrt(float(self.noise)) * rng.standard_normal(np.shape(f))

    def variances(self) -> NDArray[np.float64]:
        """The noise variance of each output, (outputs,)."""
        return np.asarray(self.noise) * np.asarray(self.unit)


def _log_normal(y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
    return -0.5 * ((y - mean) ** 2 / var + jnp.log(2 * jnp.pi * var))
