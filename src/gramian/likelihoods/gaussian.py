r"""Gaussian noise: y = f + e, e ~ N(0, noise); or of a variance that is a function of x, with two latents.

    Heteroscedastic    y ~ N(f, exp(g)),
    E log p(y | f, g) = -1/2 (log 2 pi + E g + ((y - E f)^2 + var f) exp(-E g + var g / 2))

Source: Goldberg, Williams and Bishop 1998 (the model); Lazaro-Gredilla and Titsias 2011, equation 7 (the
expectation). Its predictive density is closed in f, which leaves an integral over g alone.
"""

from __future__ import annotations

from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.likelihoods import quadrature
from gramian.likelihoods.base import Likelihood, Pair, Triple
from gramian.likelihoods.special import bounded_exp
from gramian.params import Value, nonnegative
from gramian.params.namespace import namespace
from gramian.predictive import NoisyNormals, Normals, Predictive


class Gaussian(Likelihood):
    """y ~ N(f, noise * unit). `noise` is a variance, or one for each of several outputs, in the units of y
    squared while `unit` is 1. Outputs of different spread that share one relative noise have a unit each."""

    log_concave = location = conjugate = numpy_too = True
    noise: Value = nonnegative(1.0)
    unit: tuple[float, ...] = (1.0,)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return _log_normal(y, f, self.noise)

    def started(self, y: Array) -> tuple[Self, Array]:
        self.check_outputs(1)
        return self, np.array([np.mean(y)])

    def check_outputs(self, q: int) -> None:
        """Refuses a noise an output where there are not as many outputs."""
        count = np.size(self.noise)
        if np.ndim(self.noise) and count != q:
            many = "1 variance" if count == 1 else f"{count} variances"
            cure = "1 output. Give one number"
            if q > 1:
                cure = f"{q} outputs. Give one number for all of them, or a list of {q}"
            raise ParameterError(f"noise has {many}, but y has {cure}; for one a row, noise_var=...")

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
        return f, namespace(f).broadcast_to(self.noise, f.shape)

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> Pair:
        return mean, var + self.noise

    def distribution(self, mean: Array, var: Array) -> Predictive:
        return Normals(mean, np.sqrt(var + self.variances()))

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        self.check_outputs(1)
        return f + np.sqrt(float(self.variances()[0])) * rng.standard_normal(np.shape(f))

    def variances(self) -> Array:
        return np.asarray(self.noise) * np.asarray(self.unit)


class Heteroscedastic(Likelihood):
    """y ~ N(f, exp(g)): the second latent is the log of the noise variance."""

    location = numpy_too = True

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
        def given(g: jax.Array) -> jax.Array:
            return _log_normal(y[..., None], mean[..., :1], var[..., :1] + bounded_exp(g))

        return quadrature.log_expectation(given, mean[..., 1], var[..., 1])

    def conditional_moments(self, f: jax.Array) -> Pair:
        return f[..., 0], bounded_exp(f[..., 1])

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> Pair:
        return mean[..., 0], var[..., 0] + bounded_exp(mean[..., 1] + 0.5 * var[..., 1])

    def distribution(self, mean: Array, var: Array) -> Predictive:
        # log v is Gaussian; with a step of 0.4 the error is exp(-50 / its standard deviation)
        z, weights = quadrature.NODES[::4], quadrature.WEIGHTS[::4]
        noise = np.exp(np.minimum(mean[:, 1:] + np.sqrt(var[:, 1:]) * z, 700.0))
        std = np.sqrt(var[:, 0] + np.exp(np.minimum(mean[:, 1] + 0.5 * var[:, 1], 700.0)))
        return NoisyNormals(mean[:, 0], var[:, 0], noise, weights / np.sum(weights), std)

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        return f[..., 0] + np.exp(0.5 * f[..., 1]) * rng.standard_normal(f.shape[:-1])


def _log_normal(y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
    return -0.5 * ((y - mean) ** 2 / var + jnp.log(2 * jnp.pi * var))
