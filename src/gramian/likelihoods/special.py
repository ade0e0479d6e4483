"""Functions that likelihoods share, written so that extreme arguments give numbers."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.typing import ArrayLike

from gramian.params.namespace import namespace

LARGEST = 300.0  # exp of it is 1e130: its square and its product with data are numbers still
_STIRLING = 1e4  # where the series below is exact to rounding


def bounded_exp(x: Any) -> Any:
    """exp that is never infinite nor zero: 0 * exp(x) is 0, its log finite; its slope stays positive."""
    return np.exp(np.clip(x, -LARGEST, LARGEST)) if namespace(x) is np else _bounded_exp(x)


@jax.custom_jvp
def _bounded_exp(x: jax.Array) -> jax.Array:
    return jnp.exp(jnp.clip(x, -LARGEST, LARGEST))


_bounded_exp.defjvps(lambda t, value, x: value * t)


def gammaln_step(r: ArrayLike, y: ArrayLike) -> jax.Array:
    """log Gamma(r + y) - log Gamma(r) for y >= 0, also with r so large that digits are lost (Stirling)."""
    r, y = jnp.asarray(r), jnp.asarray(y)
    large = jnp.where(r > _STIRLING, r, _STIRLING)
    leading = (large + y - 0.5) * jnp.log1p(y / large) + y * (jnp.log(large) - 1)
    series = leading - y / (12 * large * (large + y))
    small = jnp.where(r > _STIRLING, _STIRLING, r)
    return jnp.where(r > _STIRLING, series, gammaln(small + y) - gammaln(small))
