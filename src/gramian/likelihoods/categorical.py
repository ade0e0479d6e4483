r"""One of C classes, with one latent function a class: y in 0, 1, ..., C - 1.

    Softmax      p(y | f) = exp(f_y) / sum_c exp(f_c)
    RobustMax    p(y | f) = 1 - epsilon where f_y is the largest, else epsilon / (C - 1)

For RobustMax all expectations need one number, the probability that f_y is the largest of independent
Gaussians,

    P_y = int N(t; mean_y, var_y) prod_{c != y} Phi((t - mean_c) / sqrt(var_c)) dt,

an integral over one dimension. All classes share the variable t, so one grid serves them all: panels between
the sorted points mean_c + k sqrt(var_c), with a Gauss rule each, so that a narrow class beside wide ones is
resolved. Cost: O(C^2) a row. Source: Hernandez-Lobato, Hernandez-Lobato and Dupont 2011, Robust multi-class
Gaussian process classification, section 2. For Softmax the expectations have C dimensions, and are means over
a fixed quasi-random sequence; E f_y is exact.
"""

from __future__ import annotations

import dataclasses
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.likelihoods import checks, quadrature
from gramian.likelihoods.base import Likelihood, Pair
from gramian.params import Value, fixed, unit_interval
from gramian.params.namespace import log_ndtr, log_softmax, namespace
from gramian.params.tree import whole_number

# Panels of 1.5 standard deviations with a rule of degree 11 leave 1e-10; 7 standard deviations hold all but
# 1e-12 of a Gaussian.
_KNOTS: Array = np.array([-7.0, -5.0, -3.5, -2.25, -1.0, 0.0, 1.0, 2.25, 3.5, 5.0, 7.0])
_LOWEST = -38.0  # below, Phi(z) is 0 in double precision


class _Classes(Likelihood):
    """What the two have in common."""

    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", whole_number(self.classes, f"{type(self).__name__}: classes", 2))
        super().__post_init__()

    @property
    def latents(self) -> int:
        return self.classes

    def checked(self, y: Array, what: str = "y") -> Array:
        return checks.labels(y, self.classes, f"{type(self).__name__}({self.classes})", what)

    def conditional_moments(self, f: jax.Array) -> Pair:
        cause = "classes have no order, so y has no mean and no variance"
        raise ParameterError(f"{type(self).__name__}: {cause}. Ask for probabilities(mean, var).")


class Softmax(_Classes):
    """p(y | f) = exp(f_y) / sum_c exp(f_c)."""

    log_concave = numpy_too = coupled_mode = True

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return _at(log_softmax(f), y)

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        p = jax.nn.softmax(f, axis=-1)
        # 1 - p without the subtraction, which would leave nothing of a sure class
        rest = p @ (1 - jnp.eye(self.classes))
        return jnp.where(y[..., None] == jnp.arange(self.classes), rest, -p), -p * rest

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        # Relative to f_y: the size of the means does not enter the error, and y's own mean is exact.
        apart = mean - _at(mean, y)[..., None]
        return -quadrature.expectation(lambda f: jax.nn.logsumexp(f, axis=-1), apart, var, self.classes)

    def probabilities(self, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E p(y | f) of all classes for f ~ N(mean, var): (..., classes)."""
        f, _ = quadrature.nodes(mean, var, self.classes)
        return namespace(f).exp(log_softmax(f)).mean(axis=-2)

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        return np.argmax(f + rng.gumbel(size=np.shape(f)), axis=-1).astype(np.float64)


class RobustMax(_Classes):
    """The class of the largest latent, but for a share `epsilon` of labels, which are any of the others."""

    smooth = False
    numpy_too = True
    epsilon: Value = unit_interval(fixed(1e-3))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < float(self.epsilon) < 1:
            rule = "epsilon must lie between 0 and 1, both excluded"
            raise ParameterError(f"RobustMax: {rule}, but is {float(self.epsilon):g}. 0.001 is usual.")

    def started(self, y: Array) -> tuple[Self, Array]:
        """A share that is learned stays below half of that of guessing, where labels tell nothing of f: a
        search that came there would not come back, and beyond, the largest latent would be the least probable
        class."""
        own, most = self.parameters()["epsilon"], 0.5 * (1 - 1 / self.classes)
        if not own.trainable or own.bounds is not None or float(own.value) >= most:
            return super().started(y)
        bounded = dataclasses.replace(own, bounds=(min(1e-6, float(own.value)), most))
        return self.with_parameters([bounded]), np.zeros(self.latents)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        right, wrong = self._logs()
        xp = namespace(f)
        return xp.where(xp.argmax(f, axis=-1) == y, right, wrong)

    @property
    def relaxed(self) -> Likelihood:
        return Softmax(self.classes)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        right, wrong = self._logs()
        P = _at(largest(mean, var), y)
        return P * right + (1 - P) * wrong

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        return jnp.log(_at(self.probabilities(mean, var), y))

    def probabilities(self, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E p(y | f) of all classes for f ~ N(mean, var): (..., classes)."""
        P, share = largest(mean, var), self.epsilon / (self.classes - 1)
        return P * (1 - self.epsilon) + (1 - P) * share

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        best = np.argmax(f, axis=-1)
        wrong = rng.random(best.shape) < float(self.epsilon)
        other = rng.integers(0, self.classes - 1, best.shape)
        return np.where(wrong, other + (other >= best), best).astype(np.float64)

    def _logs(self) -> Pair:
        xp = namespace(self.epsilon)
        return xp.log1p(-self.epsilon), xp.log(self.epsilon / (self.classes - 1))


def largest(mean: jax.Array, var: jax.Array) -> jax.Array:
    """The probability of each of independent Gaussians to be the largest: (..., C) from (..., C)."""
    # A variance of zero would make steps of the integrand; this floor is below the means' rounding.
    xp = namespace(mean)
    sd = xp.sqrt(var + 1e-16 * (1 + xp.max(mean**2, axis=-1, keepdims=True)))
    knots = xp.sort((mean[..., None] + sd[..., None] * _KNOTS).reshape(*mean.shape[:-1], -1), axis=-1)
    t, weights = quadrature.gauss(knots, 6)
    z = (t[..., None, :] - mean[..., :, None]) / sd[..., :, None]  # (..., C, nodes)
    density = xp.exp(-0.5 * z**2) / (np.sqrt(2 * np.pi) * sd[..., :, None])
    # The product over all other classes by a sum of logarithms: scans along the classes, forward and back,
    # took twice as long to compile. Where a class's own logarithm is large, its density is nothing.
    logs = log_ndtr(xp.maximum(z, _LOWEST))
    others = xp.exp(xp.sum(logs, axis=-2, keepdims=True) - logs)
    P = xp.sum(weights[..., None, :] * density * others, axis=-1)
    return P / xp.sum(P, axis=-1, keepdims=True)  # 1 up to 1e-10 before


def _at(values: jax.Array, y: jax.Array) -> jax.Array:
    """values[..., y]."""
    return namespace(values).take_along_axis(values, y.astype(int)[..., None], axis=-1)[..., 0]
