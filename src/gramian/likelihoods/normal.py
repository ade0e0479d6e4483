r"""log Phi(z), the log of the normal cumulative distribution, with derivatives that keep their digits.

    d/dz log Phi = r = phi / Phi,   d^2/dz^2 log Phi = -r (z + r) = t - 1

where t = var(x | x < z) for x ~ N(0, 1). Far below zero r is close to -z, so that z + r and t, written as
they stand, are differences of nearly equal numbers. There, with x = -z, Laplace's continued fraction

    r = x + u,   u = 1 / (x + w),   w = 2 / (x + 3 / (x + 4 / (x + ...)))

gives u without a subtraction, and t = u (w - u), whose two terms differ by a factor of 2. Its derivative (the
third of log Phi) is as good. Source: Abramowitz and Stegun 1964, 26.2.14. With 24 terms and x > 5 rounding is
all that is left.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtr
from scipy.special import log_ndtr

from gramian.params.namespace import namespace

BELOW = -5.0  # where the continued fraction takes over
TERMS = 24
_ROOT = 2.5066282746310002  # sqrt(2 pi)
_LOG_ROOT = 0.9189385332046727


def log_cdf(z: Any) -> Any:
    """log Phi(z)."""
    return log_ndtr(z) if namespace(z) is np else _log_cdf(z)


@jax.custom_jvp
def _log_cdf(z: jax.Array) -> jax.Array:
    u, _ = _fraction(z)
    upper = jnp.where(z > 0, jnp.log1p(-ndtr(-jnp.abs(z))), jnp.log(ndtr(_above(z))))
    return jnp.where(z < BELOW, -0.5 * z**2 - _LOG_ROOT - jnp.log(u + jnp.abs(z)), upper)


@jax.custom_jvp
def ratio(z: jax.Array) -> jax.Array:
    """r = phi(z) / Phi(z)."""
    u, _ = _fraction(z)
    return jnp.where(z < BELOW, u - z, _plain(z))


def bend(z: jax.Array) -> jax.Array:
    """d^2/dz^2 log Phi(z), between -1 (far below zero) and 0."""
    u, w = _fraction(z)
    r = _plain(z)
    return jnp.where(z < BELOW, u * (w - u) - 1, -r * (_above(z) + r))


def truncated_variance(z: jax.Array) -> jax.Array:
    """t = var(x | x < z) for x ~ N(0, 1): 1 + bend(z), with all digits where it is small."""
    u, w = _fraction(z)
    r = _plain(z)
    return jnp.where(z < BELOW, u * (w - u), 1 - r * (_above(z) + r))


def _fraction(z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """u and w at x = -z; at BELOW for z above it, where they are not used."""
    x = -jnp.where(z < BELOW, z, BELOW)  # `where`, because at a tie the derivative of `minimum` is halved
    w = x
    for k in range(TERMS, 1, -1):
        w = k / (x + w) if k < TERMS else k / x
    return 1 / (x + w), w


def _plain(z: jax.Array) -> jax.Array:
    """phi / Phi as it stands; at BELOW for z below it."""
    above = _above(z)
    return jnp.exp(-0.5 * above**2) / (_ROOT * ndtr(above))


def _above(z: jax.Array) -> jax.Array:
    return jnp.where(z < BELOW, BELOW, z)


_log_cdf.defjvps(lambda t, _, z: ratio(z) * t)
ratio.defjvps(lambda t, _, z: bend(z) * t)
