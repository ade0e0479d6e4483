r"""Ordered classes: y in 0, 1, ..., C - 1 says between which cut points f + e lies, e ~ N(0, 1).

    p(y = k | f) = Phi(b_k - f) - Phi(b_(k-1) - f),   b_(-1) = -inf,  b_(C-1) = inf
    E p(y = k | f) = the same with (b - mean) / sqrt(1 + var)

The cut points are ordered by construction: the first is any number, the others follow at positive increments.
Source: Chu and Ghahramani 2005, Gaussian processes for ordinal regression, equations 3 to 5, with their noise
at 1 (the kernel's variance takes its place).
"""

from __future__ import annotations

from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy.special import ndtr, ndtri

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.likelihoods import checks, normal
from gramian.likelihoods.base import Likelihood, Pair
from gramian.params import Parameter, Value, positive, real
from gramian.params.namespace import namespace
from gramian.params.tree import whole_number


class Ordinal(Likelihood):
    """Ordered classes. `first`: the lowest cut point; `increments`, (classes - 2,): the steps from it on."""

    log_concave = discrete = numpy_too = True
    classes: int
    first: Value = real(None)
    increments: Value = positive(1.0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", whole_number(self.classes, "Ordinal: classes", 2))
        if self.classes == 2:
            cure = 'for two use Bernoulli(link="probit"), which is the same.'
            raise ParameterError(f"Ordinal needs 3 classes or more; {cure}")
        if self.first is None:
            object.__setattr__(self, "first", -0.5 * (self.classes - 2))  # cut points around 0
        steps = self.increments if isinstance(self.increments, Parameter) else Parameter(self.increments)
        if steps.value.ndim == 0:
            steps = steps.with_value(np.full(self.classes - 2, float(steps)))
        object.__setattr__(self, "increments", steps)
        super().__post_init__()
        if self.increments.value.shape != (self.classes - 2,) or self.first.value.ndim:
            shapes = f"{self.first.value.shape} and {self.increments.value.shape}"
            rule = f"first is one number and increments are {self.classes - 2}"
            raise ParameterError(f"Ordinal({self.classes}): {rule}, but their shapes are {shapes}.")

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return self._log_mass(y, f, 1.0)

    def highest(self, mean: Array, var: Array) -> float:
        return float(self.classes - 1)

    def thresholds(self, xp: Any = jnp) -> Any:
        """The cut points, (classes - 1,)."""
        steps = xp.cumsum(xp.asarray(self.increments))
        return xp.asarray(self.first) + xp.concatenate([xp.zeros(1), steps])

    def checked(self, y: Array, what: str = "y") -> Array:
        return checks.labels(y, self.classes, f"Ordinal({self.classes})", what)

    def started(self, y: Array) -> tuple[Self, Array]:
        """Cut points at the quantiles of the classes, for an f of variance 1 with noise of variance 1."""
        counts = np.bincount(y.astype(int), minlength=self.classes) + 0.5
        cuts = np.sqrt(2.0) * ndtri(np.cumsum(counts)[:-1] / np.sum(counts))
        default = type(self)(self.classes)
        return self.default_starts(default, first=cuts[0], increments=np.diff(cuts)), np.zeros(1)

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return self._log_mass(y, mean, namespace(var).sqrt(1 + var))

    def probabilities(self, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E p(y | f) of all classes for f ~ N(mean, var): (..., classes)."""
        xp = namespace(mean)
        y = xp.broadcast_to(xp.arange(self.classes), (*mean.shape, self.classes))
        return xp.exp(self.predictive_log_prob(y, mean[..., None], var[..., None]))

    def conditional_moments(self, f: jax.Array) -> Pair:
        """Of the class as a number."""
        xp = namespace(f)
        p, k = self.probabilities(f, xp.zeros_like(f)), xp.arange(self.classes)
        first = xp.sum(k * p, axis=-1)
        return first, xp.sum((k - first[..., None]) ** 2 * p, axis=-1)

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        steps = np.concatenate([[0.0], np.cumsum(np.asarray(self.increments))])
        noisy = f + rng.standard_normal(np.shape(f))
        return np.sum(noisy[..., None] > float(self.first) + steps, axis=-1).astype(np.float64)

    def cumulative(self, y: Array, f: Array) -> Array:
        steps = np.concatenate([[0.0], np.cumsum(np.asarray(self.increments)), [np.inf]])
        return ndtr(float(self.first) + steps[np.clip(y, 0, self.classes - 1).astype(int)] - f)

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        sign, A, B, outer = self._ends(y, f, 1.0)
        r, step = normal.ratio(A), normal.ratio(B) - normal.ratio(A)
        # Phi(B) / (Phi(A) - Phi(B))
        q = jnp.where(outer, 0.0, 1 / jnp.expm1(jnp.where(outer, 1.0, normal.log_cdf(A) - normal.log_cdf(B))))
        bend = normal.bend(A)
        return sign * (r - q * step), bend - q * (normal.bend(B) - bend) - q * (1 + q) * step**2

    def _log_mass(self, y: jax.Array, f: jax.Array, spread: ArrayLike) -> jax.Array:
        """log (Phi((b_y - f) / spread) - Phi((b_(y-1) - f) / spread))."""
        _, A, B, outer = self._ends(y, f, spread)
        a, xp = normal.log_cdf(A), namespace(A)
        inner = xp.log(-xp.expm1(xp.where(outer, -1.0, normal.log_cdf(B) - a)))
        return a + xp.where(outer, 0.0, inner)

    def _ends(self, y: jax.Array, f: jax.Array, spread: ArrayLike) -> tuple[jax.Array, ...]:
        """sign = dA/df, A, B, and whether the class is an outermost one: its probability is Phi(A), and
        Phi(A) - Phi(B) of any other. Mirrored above zero, so that both ends have a cdf with all digits."""
        xp = namespace(f)
        k, last, cuts = y.astype(int), self.classes - 1, self.thresholds(xp)
        low, high = (cuts[xp.maximum(k - 1, 0)] - f) / spread, (cuts[xp.minimum(k, last - 1)] - f) / spread
        outer = (k == 0) | (k == last)
        mirrored = xp.where(outer, k == last, low + high > 0)
        sign = xp.where(mirrored, 1.0, -1.0)
        return sign, xp.where(mirrored, -low, high), xp.where(mirrored, -high, low), outer
