"""A kernel for categories: equal ones are alike, different ones alike to a learned degree."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from gramian.kernels.base import Kernel
from gramian.params import Value, unit_interval


class Categorical(Kernel):
    """k = prod_j (1 if x_j = z_j else similarity_j), with 0 < similarity < 1: one number, or one a column.

    It is the covariance of a level shared by all categories plus a level of each, so it is positive
    semi-definite for any number of categories (compound symmetry; Roustant et al. 2020). Categories are
    integers, or strings that the estimator codes as integers.
    """

    similarity: Value = unit_interval(0.5)

    stationary = True  # whether x and z are equal is whether x - z is 0
    differentiable = False
    low_precision = True
    one_a_column = ("similarity",)

    def pair(self, x: jax.Array, z: jax.Array) -> jax.Array:
        return jnp.prod(jnp.where(x == z, 1.0, self.similarity))

    def cross(self, X: jax.Array, Z: jax.Array) -> jax.Array:
        similarity = jnp.broadcast_to(self.similarity, X.shape[1:])
        product = jnp.ones((X.shape[0], Z.shape[0]), X.dtype)
        for j in range(X.shape[1]):
            product = product * jnp.where(X[:, j][:, None] == Z[:, j][None, :], 1.0, similarity[j])
        return product

    def diagonal(self, X: jax.Array) -> jax.Array:
        return jnp.ones(X.shape[:1], X.dtype)
