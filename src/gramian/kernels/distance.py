"""Squared distances between two blocks of points, exact for equal rows, with matrix products for their
gradient.

    r2_ij = sum_c ((x_ic - z_jc) / lengthscale_c)^2

Forward, up to 24 columns: sums of squared differences, so that equal rows are at distance exactly 0 and close
rows lose no digits however far from the origin they lie. (Products |x|^2 + |z|^2 - 2 x'z are faster but turn
a distance of 1e-8 into noise, which Matern-1/2 shows as an error of 1e-8 in k.) Beyond 24 columns the
products win by so much that they are used, on centred points, with what lies below their rounding error set
to 0.

Backward, with V_ij the weight of r2_ij: sum_ij V_ij (x_ic - z_jc)^2 = sum_i x_ic^2 (V 1)_i + sum_j z_jc^2
(V'1)_j - 2 sum_i x_ic (V Z)_ic, one small matrix product for all lengthscales together. What nobody asks for
(the gradient of the points) XLA leaves out.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

Triple = tuple[jax.Array, jax.Array, jax.Array]

DIFFERENCES_UP_TO = 24
TYPICAL = (0.0, 0.02, 0.3, 0.05, 0.53, 0.74, 0.1, 0.2, 0.93)  # early rows, too: a tile may repeat its few


@jax.custom_vjp
def squared_distances(X: jax.Array, Z: jax.Array, lengthscale: jax.Array) -> jax.Array:
    """r^2 for all pairs of rows: (n, d), (m, d) -> (n, m). `lengthscale` is a scalar, (1,) or (d,). Of many
    tables side by side, (n, d, B) and (m, d, B), it is (n, m, B), without a way back."""
    X, Z = _scaled(X, Z, lengthscale)
    if X.shape[1] <= DIFFERENCES_UP_TO or X.ndim == 3:
        # A branch, because XLA would otherwise fuse the distances into the kernel's exponential and vectorise
        # neither: 2 times slower on a CPU. The question only has to be one that the compiler cannot answer;
        # the answer for a point that is not a number is right, too.
        number = X.reshape(-1)[0]
        return jax.lax.cond(number == number, _by_differences, _nowhere, X, Z)
    xx, zz = jnp.sum(X * X, axis=1)[:, None], jnp.sum(Z * Z, axis=1)[None, :]
    r2 = xx + zz - 2 * X @ Z.T
    rounding = 4 * X.shape[1] ** 0.5 * np.finfo(X.dtype).eps * (xx + zz)
    return jnp.where(r2 <= rounding, 0.0, r2)


def root(s: jax.Array) -> jax.Array:
    """sqrt with slope 0 at 0."""
    return jnp.where(s > 0, jnp.sqrt(jnp.where(s > 0, s, 1.0)), 0.0)


def _by_differences(X: jax.Array, Z: jax.Array) -> jax.Array:
    total = (X[:, 0][:, None] - Z[:, 0][None, :]) ** 2
    for c in range(1, X.shape[1]):
        total += (X[:, c][:, None] - Z[:, c][None, :]) ** 2
    return total


def _nowhere(X: jax.Array, Z: jax.Array) -> jax.Array:
    return jnp.full((X.shape[0], Z.shape[0], *X.shape[2:]), jnp.nan, X.dtype)


def _scaled(X: jax.Array, Z: jax.Array, lengthscale: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Both divided by the lengthscale, around a common centre: only differences matter, and small numbers
    keep their digits."""
    centre = typical(Z)
    by = lengthscale[:, None] if X.ndim == 3 and jnp.ndim(lengthscale) else lengthscale
    return (X - centre) / by, (Z - centre) / by


def typical(Z: jax.Array) -> jax.Array:
    """A point in the midst of the rows of Z: column by column the median of three medians, each of three
    rows.

    Not the mean: a single row at 1e20 would move it to where all other rows round to one and the same place.
    Of Z alone, so that k(x, z) does not depend on the rows that stand beside x. (No sort: that takes XLA 0.1
    s to compile.)
    """

    def median(a: jax.Array, b: jax.Array, c: jax.Array) -> jax.Array:
        return jnp.maximum(jnp.minimum(a, b), jnp.minimum(jnp.maximum(a, b), c))

    rows = [Z[int(share * Z.shape[0])] for share in TYPICAL]
    return median(median(*rows[:3]), median(*rows[3:6]), median(*rows[6:]))


def _forward(X: jax.Array, Z: jax.Array, lengthscale: jax.Array) -> tuple[jax.Array, Triple]:
    return squared_distances(X, Z, lengthscale), (X, Z, lengthscale)


def _backward(saved: Triple, V: jax.Array) -> Triple:
    lengthscale = saved[2]
    X, Z = _scaled(*saved)
    product = V @ jnp.concatenate([Z, jnp.ones((Z.shape[0], 1), Z.dtype)], axis=1)  # V Z and V 1 in one go
    VZ, by_row, by_column = product[:, :-1], product[:, -1], jnp.ones(X.shape[0], X.dtype) @ V
    sums = by_row @ X**2 + by_column @ Z**2 - 2 * jnp.sum(X * VZ, axis=0)  # (d,)
    slope = -2 * sums / lengthscale
    slope = slope if jnp.shape(lengthscale) == slope.shape else jnp.sum(slope).reshape(jnp.shape(lengthscale))
    by_X = 2 * (X * by_row[:, None] - VZ) / lengthscale
    by_Z = 2 * (Z * by_column[:, None] - V.T @ X) / lengthscale
    return by_X, by_Z, slope


squared_distances.defvjp(_forward, _backward)
