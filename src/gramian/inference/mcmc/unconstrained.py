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
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.params import Parameter, Prior, Support
from gramian.params.priors import NOT_TRACED

EDGE = 1e-3  # how close to the end of its range a parameter may start


class Walls(NamedTuple):
    """Where the range of each entry ends: whether below and above, and at which u (0 where it does not)."""

    below: NDArray[np.bool_]
    above: NDArray[np.bool_]
    low: Array
    high: Array


class Slot(NamedTuple):
    """One trainable parameter: which of the leaves it is, and its way from t."""

    place: int  # among the leaves
    shape: tuple[int, ...]
    support: Support
    prior: Prior | None
    low: tuple[float, ...]  # of u, entry by entry
    high: tuple[float, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def walls(self) -> Walls:
        """Where its range ends."""
        low, high = (np.array(end).reshape(self.shape) for end in (self.low, self.high))
        below, above = np.isfinite(low), np.isfinite(high)
        return Walls(below, above, np.where(below, low, 0.0), np.where(above, high, 0.0))

    def log_prior(self, u: jax.Array) -> jax.Array:
        """log p(u) of a parameter, summed over its entries, under its prior; without one, 0."""
        v = self.support.forward(u)
        if self.prior is None:
            return 0.0 * jnp.sum(v)
        return jnp.sum(self.prior.log_density(v)) + self.support.log_jacobian(u)[0]

    def unwalled(self, t: jax.Array) -> jax.Array:
        """u from t."""
        below, above, low, high = self.walls
        one_sided = jnp.where(below, low + jnp.exp(t), jnp.where(above, high - jnp.exp(t), t))
        return jnp.where(below & above, low + (high - low) * jax.nn.sigmoid(t), one_sided)

    def wall_jacobian(self, t: jax.Array) -> jax.Array:
        """log |du / dt|, summed."""
        below, above, low, high = self.walls
        between = np.log(np.where(below & above, high - low, 1.0)) - jax.nn.softplus(-t) - jax.nn.softplus(t)
        return jnp.sum(jnp.where(below & above, between, jnp.where(below | above, t, 0.0)))

    def walled(self, u: Array) -> Array:
        """t from u, a little inside the walls."""
        below, above, low, high = self.walls
        share = np.clip((u - low) / np.where(below & above, high - low, 1.0), EDGE, 1 - EDGE)
        one_sided = np.log(np.maximum(np.where(below, u - low, high - u), EDGE))
        one_sided = np.where(below | above, one_sided, u)
        return np.where(below & above, np.log(share) - np.log1p(-share), one_sided)


def slot_of(index: int, path: str, p: Parameter) -> Slot:
    """The slot of a trainable parameter, after a look whether JAX can follow its support and its prior."""
    assert p.support is not None
    low, high = zip(*p.limits, strict=True)
    slot = Slot(index, p.value.shape, p.support, p.prior, low, high)
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
