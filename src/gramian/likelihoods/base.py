"""The contract of a likelihood: `log_prob(y, f)` suffices; the rest has working defaults, by autodiff and quadrature.

    derivatives             d/df and d^2/df^2 of log p(y | f)                               Laplace
    tilted                  log Z, mean and variance of p(y | f)^a N(f; mean, var) / Z       expectation propagation
    expected_log_prob       E log p(y | f) for f ~ N(mean, var)                              variational inference
    predictive_log_prob     log E p(y | f)                                                   scores
    predictive_moments      E y and var y                                                    predictions

A closed form overrides a default; `gramian.testing.check_likelihood` holds the two equal.

Most likelihoods have one latent function: y, f, mean and var are arrays of one shape. One with several (`latents` > 1) has them in a last axis: y is
(...), f, mean and var are (..., latents), with independent Gaussians for the latents.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.errors import ParameterError
from gramian.likelihoods import quadrature
from gramian.params import Tree

Array = NDArray[np.float64]


class Likelihood(Tree):
    """p(y | f), one observation at a time."""

    @abstractmethod
    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        """log p(y | f), entry by entry: the shape of y."""

    # What kind it is. -----------------------------------------------------------------------------------------------------------------------------

    @property
    def latents(self) -> int:
        """How many latent functions an observation depends on."""
        return 1

    @property
    def log_concave(self) -> bool:
        """Whether log p(y | f) is known to be concave in f, so that its curvature never has the wrong sign."""
        return False

    @property
    def location(self) -> bool:
        """Whether f is in the units of y, so that it scales with it."""
        return False

    @property
    def smooth(self) -> bool:
        """Whether log p(y | f) has derivatives in f that say something; one that is constant in pieces has not, and suits only methods that average
        over f: variational inference and expectation propagation."""
        return True

    def scales(self, s: float) -> Array:
        """The prior scale of each latent, (latents,), where s is that of y: s where a latent is in the units of y, else 1."""
        return np.full(self.latents, s if self.location else 1.0)

    def checked(self, y: Array, what: str = "y") -> Array:
        """y (n,) when every value is possible; else an InputError that names the first row that is not, its value, and what is."""
        return y

    def started(self, y: Array) -> tuple[Self, Array]:
        """The same likelihood with starting values that suit y where its own are the defaults, and a constant start for each latent, (latents,)."""
        return self, np.zeros(self.latents)

    # What inference asks. -------------------------------------------------------------------------------------------------------------------------

    def derivatives(self, y: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The first and second derivative of log p(y | f) with respect to f, entry by entry; with several latents the gradient and the diagonal of
        the Hessian, (..., latents)."""
        if self.latents > 1:
            flat, labels = f.reshape(-1, f.shape[-1]), jnp.ravel(y)
            gradient = jax.vmap(jax.grad(self.log_prob, argnums=1))(labels, flat)
            hessian = jax.vmap(jax.hessian(self.log_prob, argnums=1))(labels, flat)
            return gradient.reshape(f.shape), jnp.diagonal(hessian, axis1=1, axis2=2).reshape(f.shape)
        slope = jax.grad(self.log_prob, argnums=1)
        first, second = jax.vmap(slope), jax.vmap(jax.grad(slope, argnums=1))
        return first(jnp.ravel(y), jnp.ravel(f)).reshape(f.shape), second(jnp.ravel(y), jnp.ravel(f)).reshape(f.shape)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E log p(y | f) for f ~ N(mean, var): the shape of y."""
        return quadrature.expectation(lambda f: self.log_prob(_beside(y, f, self.latents), f), mean, var, self.latents)

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """log E p(y | f) for f ~ N(mean, var): the shape of y."""
        return quadrature.log_expectation(lambda f: self.log_prob(_beside(y, f, self.latents), f), mean, var, self.latents)

    def tilted(self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0) -> tuple[jax.Array, jax.Array, jax.Array]:
        """log Z, mean and variance of the tilted distribution p(y | f)^power N(f; mean, var) / Z; one latent only."""
        if self.latents > 1:
            raise ParameterError(
                f'{type(self).__name__} has {self.latents} latent functions: use inference="vi", "laplace" or "mcmc" instead of "ep".'
            )
        return quadrature.moments(lambda f: power * self.log_prob(y[..., None], f), mean, var)

    # What predictions ask. ------------------------------------------------------------------------------------------------------------------------

    def conditional_moments(self, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        """E[y | f] and var[y | f]: the shape of y."""
        raise ParameterError(f"{type(self).__name__} does not say what E[y | f] and var[y | f] are: give it conditional_moments(f).")

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> tuple[jax.Array, jax.Array]:
        """E y and var y for f ~ N(mean, var): the shape of y."""
        return quadrature.total_moments(self.conditional_moments, mean, var, self.latents)

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        """One y for each f, with NumPy: the shape of y."""
        raise ParameterError(f'{type(self).__name__} cannot draw observations: give it draw(rng, f), or draw the function (target="f").')


def _beside(y: jax.Array, f: jax.Array, latents: int) -> jax.Array:
    """y with an axis for the nodes of a quadrature: f is (..., nodes), or (..., nodes, latents)."""
    return jnp.broadcast_to(y[..., None], f.shape if latents == 1 else f.shape[:-1])
