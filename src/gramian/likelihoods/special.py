"""Functions that likelihoods share, written so that extreme arguments give numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jax.typing import ArrayLike

LARGEST = 300.0  # exp of it is 1e130: its square and its product with data are numbers still
_STIRLING = 1e4  # where the series below is exact to rounding


@jax.custom_jvp
def bounded_exp(x: jax.Array) -> jax.Array:
    """exp that is never infinite nor zero, so that 0 * exp(x) is 0 and its logarithm is finite; its slope
    points the right way beyond the bounds."""
    return jnp.exp(jnp.clip(x, -LARGEST, LARGEST))


@bounded_exp.defjvp
def _(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    value = bounded_exp(primals[0])
    return value, value * tangents[0]


def gammaln_step(r: ArrayLike, y: ArrayLike) -> jax.Array:
    """log Gamma(r + y) - log Gamma(r) for y >= 0, without the loss of digits of that difference where r is
    large (Stirling's series)."""
    r, y = jnp.asarray(r), jnp.asarray(y)
    large = jnp.where(r > _STIRLING, r, _STIRLING)
    series = (
        (large + y - 0.5) * jnp.log1p(y / large) + y * (jnp.log(large) - 1) - y / (12 * large * (large + y))
    )
    small = jnp.where(r > _STIRLING, _STIRLING, r)
    return jnp.where(r > _STIRLING, series, gammaln(small + y) - gammaln(small))
