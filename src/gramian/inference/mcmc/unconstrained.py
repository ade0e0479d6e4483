"""Parameters as a sampler sees them: the transforms and priors of `params/`, inside a JAX program, without
walls.

    t -> u -> value:    value = forward(u), as in a search; u = t, or u = low + (high - low) / (1 + exp(-t))
                        where bounds or a uniform prior end its range (u = low + exp(t) with one end)

A density of the value gains |d value / du| |du / dt|.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError
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

    @property
    def ends(self) -> tuple[bool, bool]:
        """Whether its range ends below, and above."""
        return math.isfinite(self.low), math.isfinite(self.high)

    def log_prior(self, u: jax.Array) -> jax.Array:
        """log p(u) of a parameter, summed over its entries, under its prior; without one, 0."""
        v = self.support.forward(u)
        if self.prior is None:
            return 0.0 * jnp.sum(v)
        return jnp.sum(self.prior.log_density(v)) + self.support.log_jacobian(u)[0]

    def unwalled(self, t: jax.Array) -> jax.Array:
        """u from t."""
        if all(self.ends):
            return self.low + (self.high - self.low) * jax.nn.sigmoid(t)
        if self.ends[0]:
            return self.low + jnp.exp(t)
        return self.high - jnp.exp(t) if self.ends[1] else t

    def wall_jacobian(self, t: jax.Array) -> jax.Array:
        """log |du / dt|, summed."""
        if all(self.ends):
            return jnp.sum(math.log(self.high - self.low) - jax.nn.softplus(-t) - jax.nn.softplus(t))
        return jnp.sum(t) if any(self.ends) else jnp.zeros(())

    def walled(self, u: Array) -> Array:
        """t from u, a little inside the walls."""
        if all(self.ends):
            share = np.clip((u - self.low) / (self.high - self.low), EDGE, 1 - EDGE)
            return np.log(share) - np.log1p(-share)
        if self.ends[0]:
            return np.log(np.maximum(u - self.low, EDGE))
        return np.log(np.maximum(self.high - u, EDGE)) if self.ends[1] else u


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
        jax.eval_shape(slot.log_prior, np.zeros(p.value.shape))
    except TypeError as error:  # NumPy's functions do not take JAX's arrays
        cure = "its transform cannot be traced by JAX. Write forward with xp = gramian.params.namespace(u)."
        cure, prior = (cure, "") if p.prior is None else (NOT_TRACED, f" and the prior {p.prior}")
        raise ParameterError(f"{path} has the support {p.support}{prior}: {cure}") from error
    return slot


def log_normal(z: jax.Array) -> jax.Array:
    return -0.5 * z**2 - 0.5 * math.log(2 * math.pi)


def number(value: jax.Array) -> jax.Array:
    return jnp.where(jnp.isnan(value), -jnp.inf, value)
