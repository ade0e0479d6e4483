"""Parameters as a sampler sees them: the transforms and priors of `params/support.py` and `params/priors.py`,
one's own among them, inside a JAX program, and walls that become smooth.

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

from gramian.errors import ParameterError
from gramian.inference.model import Array
from gramian.params import Parameter, Prior, Support
from gramian.params.priors import NOT_TRACED

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
    """The slot of a trainable parameter, after a look whether JAX can follow its support and its prior."""
    assert p.support is not None
    slot = Slot(index, p.value.shape, p.support, p.prior, *p.limits)
    for part, where in ((p.support, "support"), (p.prior, "prior")):
        try:
            hash(part)
        except TypeError:
            raise ParameterError(
                f"{path} has the {where} {part}, which has no hash, by which compiled programs are kept."
                " Make its class a dataclass(frozen=True)."
            ) from None
    try:
        jax.eval_shape(lambda u: log_prior(slot, u), np.zeros(p.value.shape))
    except TypeError as error:  # NumPy's functions do not take JAX's arrays
        cure = (
            NOT_TRACED
            if p.prior is not None
            else "its transform cannot be traced by JAX. Write forward with xp = gramian.params.namespace(u)."
        )
        raise ParameterError(
            f"{path} has the support {p.support}{f' and the prior {p.prior}' if p.prior else ''}: {cure}"
        ) from error
    return slot


def log_prior(slot: Slot, u: jax.Array) -> jax.Array:
    """log p(u) of a parameter, summed over its entries, under its prior; without one, 0."""
    v = slot.support.forward(u)
    if slot.prior is None:
        return 0.0 * jnp.sum(v)
    return jnp.sum(slot.prior.log_density(v)) + slot.support.log_jacobian(u)[0]


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


def log_normal(z: jax.Array) -> jax.Array:
    return -0.5 * z**2 - 0.5 * math.log(2 * math.pi)


def number(value: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(value), -jnp.inf, value)
