"""Parameters as a sampler sees them: the transforms and priors of `params/support.py` and `params/priors.py`
in JAX.

    t -> u -> value:    u = t, or a smooth map onto the range that bounds or a uniform prior leave;
                        value = forward(u), the support's transform

A density of the value gains |d value / du| |du / dt|.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from numpy.typing import NDArray

from gramian.errors import ParameterError
from gramian.params import (
    Affine,
    Gamma,
    HalfNormal,
    Interval,
    InverseGamma,
    LogNormal,
    Normal,
    Parameter,
    Positive,
    PositiveSemidefinite,
    Prior,
    Real,
    Support,
    Uniform,
)

Array = NDArray[np.float64]

EDGE = 1e-3  # how close to the end of its range a parameter may start


class Slot(NamedTuple):
    """One trainable parameter: which of the leaves it is, and its way from t."""

    place: int  # among the leaves
    shape: tuple[int, ...]
    support: Support
    prior: Prior | None
    low: float  # of u
    high: float

    @property
    def size(self) -> int:
        return math.prod(self.shape)


def slot_of(index: int, path: str, p: Parameter) -> Slot:
    assert p.support is not None
    if not isinstance(p.support, (Real, Affine, Positive, Interval, PositiveSemidefinite)):
        raise ParameterError(
            f"{path} has the support {p.support}, whose transform MCMC does not know. Hold it fixed, or use"
            " one of gramian's supports."
        )
    if p.prior is not None and not isinstance(
        p.prior, (LogNormal, Normal, HalfNormal, Gamma, InverseGamma, Uniform)
    ):
        raise ParameterError(
            f"{path} has the prior {p.prior}, which MCMC cannot differentiate. Use LogNormal, Normal,"
            " HalfNormal, Gamma, InverseGamma or Uniform."
        )
    return Slot(index, p.value.shape, p.support, p.prior, *p.limits)


def forward(support: Support, u: jax.Array) -> jax.Array:
    if isinstance(support, Positive):
        return jnp.exp(u)
    if isinstance(support, Interval):
        return support.low + (support.high - support.low) * jax.nn.sigmoid(u)
    if isinstance(support, Affine):
        return jnp.asarray(support.loc) + jnp.asarray(support.scale) * u
    return u @ u.T if isinstance(support, PositiveSemidefinite) else u


def jacobian(support: Support, u: jax.Array) -> jax.Array:
    if isinstance(support, Positive):
        return jnp.sum(u)
    if isinstance(support, Interval):
        return jnp.sum(math.log(support.high - support.low) - jax.nn.softplus(-u) - jax.nn.softplus(u))
    if isinstance(support, Affine):
        return jnp.sum(jnp.log(jnp.abs(jnp.broadcast_to(jnp.asarray(support.scale), u.shape))))
    return jnp.zeros(())


def unwalled(slot: Slot, t: jax.Array) -> jax.Array:
    """u from t."""
    if math.isfinite(slot.low) and math.isfinite(slot.high):
        return slot.low + (slot.high - slot.low) * jax.nn.sigmoid(t)
    if math.isfinite(slot.low):
        return slot.low + jnp.exp(t)
    return slot.high - jnp.exp(t) if math.isfinite(slot.high) else t


def wall_jacobian(slot: Slot, t: jax.Array) -> jax.Array:
    if math.isfinite(slot.low) and math.isfinite(slot.high):
        return jnp.sum(math.log(slot.high - slot.low) - jax.nn.softplus(-t) - jax.nn.softplus(t))
    return jnp.sum(t) if math.isfinite(slot.low) or math.isfinite(slot.high) else jnp.zeros(())


def walled(slot: Slot, u: Array) -> Array:
    """t from u, a little inside the walls."""
    if math.isfinite(slot.low) and math.isfinite(slot.high):
        share = np.clip((u - slot.low) / (slot.high - slot.low), EDGE, 1 - EDGE)
        return np.log(share) - np.log1p(-share)
    if math.isfinite(slot.low):
        return np.log(np.maximum(u - slot.low, EDGE))
    return np.log(np.maximum(slot.high - u, EDGE)) if math.isfinite(slot.high) else u


def log_prior_density(prior: Prior, v: jax.Array) -> jax.Array:
    """log p(v), entry by entry; v is inside the support."""
    if isinstance(prior, LogNormal):
        return log_normal((jnp.log(v) - jnp.asarray(prior.mu)) / prior.sigma) - jnp.log(v * prior.sigma)
    if isinstance(prior, Normal):
        return log_normal((v - jnp.asarray(prior.mu)) / prior.sigma) - math.log(prior.sigma)
    if isinstance(prior, HalfNormal):
        return jnp.where(v < 0, -jnp.inf, log_normal(v / prior.sigma) + math.log(2 / prior.sigma))
    if isinstance(prior, Gamma):
        return (
            prior.shape * math.log(prior.rate)
            - gammaln(prior.shape)
            + (prior.shape - 1) * jnp.log(v)
            - prior.rate * v
        )
    if isinstance(prior, InverseGamma):
        return (
            prior.shape * math.log(prior.scale)
            - gammaln(prior.shape)
            - (prior.shape + 1) * jnp.log(v)
            - prior.scale / v
        )
    assert isinstance(prior, Uniform)
    return jnp.full_like(v, -math.log(prior.high - prior.low))  # walls keep v inside


def log_normal(z: jax.Array) -> jax.Array:
    return -0.5 * z**2 - 0.5 * math.log(2 * math.pi)


def number(value: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(value), -jnp.inf, value)
