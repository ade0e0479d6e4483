"""The contract of a likelihood: `log_prob(y, f)` suffices; the rest has working defaults, by autodiff and Gauss-Hermite quadrature.

    derivatives             d/df and d^2/df^2 of log p(y | f)
    expected_log_prob       E log p(y | f) for f ~ N(mean, var)
    predictive_log_prob     log E p(y | f)

A closed form overrides a default; `gramian.testing.check_likelihood` holds the two equal.
"""

from __future__ import annotations

from abc import abstractmethod

import jax
import jax.numpy as jnp
import numpy as np

from gramian.params import Tree

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class Likelihood(Tree):
    """p(y | f), one observation at a time; y and f are scalars or arrays of one shape."""

    @abstractmethod
    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        """log p(y | f), entry by entry."""

    def derivatives(self, y: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The first and second derivative of log p(y | f) with respect to f, entry by entry."""
        slope = jax.grad(self.log_prob, argnums=1)
        first, second = jax.vmap(slope), jax.vmap(jax.grad(slope, argnums=1))
        return first(jnp.ravel(y), jnp.ravel(f)).reshape(f.shape), second(jnp.ravel(y), jnp.ravel(f)).reshape(f.shape)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E log p(y | f) for f ~ N(mean, var), entry by entry."""
        f = mean[..., None] + jnp.sqrt(var)[..., None] * _NODES
        return jnp.sum(_WEIGHTS * self.log_prob(y[..., None], f), axis=-1)

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """log E p(y | f) for f ~ N(mean, var), entry by entry."""
        f = mean[..., None] + jnp.sqrt(var)[..., None] * _NODES
        return jax.scipy.special.logsumexp(self.log_prob(y[..., None], f), b=_WEIGHTS, axis=-1)
