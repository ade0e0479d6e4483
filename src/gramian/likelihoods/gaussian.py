"""Gaussian noise: y = f + e, e ~ N(0, noise)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.likelihoods.base import Likelihood
from gramian.params import Value, nonnegative


class Gaussian(Likelihood):
    """y ~ N(f, noise * unit). `noise` is a variance, in the units of y squared while `unit` is 1.

    With several outputs of different spread `unit` holds one number an output, and `noise` is then relative to it.
    """

    noise: Value = nonnegative(1.0)
    unit: tuple[float, ...] = (1.0,)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return _log_normal(y, f, self.noise)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return _log_normal(y, mean, self.noise) - 0.5 * var / self.noise

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return _log_normal(y, mean, var + self.noise)

    def variances(self) -> NDArray[np.float64]:
        """The noise variance of each output, (outputs,)."""
        return np.asarray(self.noise) * np.asarray(self.unit)


def _log_normal(y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
    return -0.5 * ((y - mean) ** 2 / var + jnp.log(2 * jnp.pi * var))
