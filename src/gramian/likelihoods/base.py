"""The contract of a likelihood: `log_prob(y, f)` suffices; the rest has working defaults, by autodiff and
quadrature.

    derivatives           d/df and d^2/df^2 of log p(y | f)                            Laplace
    tilted                log Z, mean and variance of p(y | f)^a N(f; mean, var) / Z   expectation propagation
    expected_log_prob     E log p(y | f) for f ~ N(mean, var)                          variational inference
    predictive_log_prob   log E p(y | f)                                               scores
    predictive_moments    E y and var y                                                predictions

A closed form overrides a default; `gramian.testing.check_likelihood` holds the two equal.

Most likelihoods have one latent function: y, f, mean and var are arrays of one shape. One with several
(`latents` > 1) has them in a last axis: y is (...), f, mean and var are (..., latents), with independent
Gaussians for the latents.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from typing import Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.errors import ParameterError
from gramian.likelihoods import quadrature
from gramian.params import Parameter, Tree

Array = NDArray[np.float64]

_TINY = 1e-200  # in place of a variance of zero, where one divides by it


class Likelihood(Tree):
    """p(y | f), one observation at a time."""

    @abstractmethod
    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        """log p(y | f), entry by entry: the shape of y."""

    def __repr__(self) -> str:
        fields = [f.name for f in dataclasses.fields(self)]
        values = [(name, getattr(self, name)) for name in fields]
        texts = (f"{name}={v.text(4) if isinstance(v, Parameter) else repr(v)}" for name, v in values)
        return f"{type(self).__name__}({', '.join(texts)})"

    # What kind it is. ---------------------------------------------------------------------------------------

    @property
    def latents(self) -> int:
        """How many latent functions an observation depends on."""
        return 1

    @property
    def log_concave(self) -> bool:
        """Whether log p(y | f) is known to be concave in f, so that its curvature never has the wrong
        sign."""
        return False

    @property
    def location(self) -> bool:
        """Whether f is in the units of y, so that it scales with it."""
        return False

    @property
    def smooth(self) -> bool:
        """Whether log p(y | f) has derivatives in f that say something; one that is constant in pieces has
        not, and suits only methods that average over f: variational inference and expectation propagation."""
        return True

    def scales(self, s: float) -> Array:
        """The prior scale of each latent, (latents,), where s is that of y: s where a latent is in the units
        of y, else 1."""
        return np.full(self.latents, s if self.location else 1.0)

    @property
    def relaxed(self) -> Likelihood | None:
        """A smoother likelihood of the same y and latents to begin an iteration with, where this one gives
        little direction from afar."""
        return None

    def checked(self, y: Array, what: str = "y") -> Array:
        """y (n,) when every value is possible; else an InputError that names the first row that is not, its
        value, and what is."""
        return y

    def started(self, y: Array) -> tuple[Self, Array]:
        """The same likelihood with starting values that suit y where its own are the defaults, and a constant
        start for each latent, (latents,)."""
        return self, np.zeros(self.latents)

    def default_starts(self, default: Self, **values: float | Array) -> Self:
        """For `started`: these values for the parameters that are as in `default`; one that was given, or has
        a prior or bounds, stays."""
        own, usual = self.parameters(), default.parameters()
        untouched = {
            k
            for k, p in own.items()
            if p.trainable
            and p.prior is None
            and p.bounds is None
            and np.array_equal(p.value, usual[k].value)
        }
        return self.with_values({k: v for k, v in values.items() if k in untouched})

    # What inference asks. -----------------------------------------------------------------------------------

    def derivatives(self, y: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The first and second derivative of log p(y | f) with respect to f, entry by entry; with several
        latents the gradient and the diagonal of the Hessian, (..., latents)."""
        if self.latents > 1:
            flat, labels = f.reshape(-1, f.shape[-1]), jnp.ravel(y)
            gradient = jax.vmap(jax.grad(self.log_prob, argnums=1))(labels, flat)
            hessian = jax.vmap(jax.hessian(self.log_prob, argnums=1))(labels, flat)
            return gradient.reshape(f.shape), jnp.diagonal(hessian, axis1=1, axis2=2).reshape(f.shape)
        slope = jax.grad(self.log_prob, argnums=1)
        first, second = jax.vmap(slope), jax.vmap(jax.grad(slope, argnums=1))
        return first(jnp.ravel(y), jnp.ravel(f)).reshape(f.shape), second(jnp.ravel(y), jnp.ravel(f)).reshape(
            f.shape
        )

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E log p(y | f) for f ~ N(mean, var): the shape of y."""
        return quadrature.expectation(
            lambda f: self.log_prob(_beside(y, f, self.latents), f), mean, var, self.latents
        )

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """log E p(y | f) for f ~ N(mean, var): the shape of y."""
        if self.latents > 1:
            return quadrature.log_expectation(
                lambda f: self.log_prob(_beside(y, f, self.latents), f), mean, var, self.latents
            )
        f, log_weights = self.nodes(y, mean, var)
        return jax.scipy.special.logsumexp(self.log_prob(_beside(y, f, 1), f) + log_weights, axis=-1)

    def tilted(
        self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """log Z, mean and variance of the tilted distribution p(y | f)^power N(f; mean, var) / Z; one latent
        only."""
        if self.latents > 1:
            raise ParameterError(
                f'{type(self).__name__} has {self.latents} latent functions: use inference="vi" or "mcmc"'
                ' instead of "ep".'
            )
        f, log_weights = self.nodes(y, mean, var, power)
        return quadrature.moments(power * self.log_prob(_beside(y, f, 1), f) + log_weights, f)

    def peak(
        self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0
    ) -> tuple[jax.Array, jax.Array] | None:
        """Where p(y | f)^power N(f; mean, var), or p(y | f), is concentrated as a function of one latent f,
        and how widely; None where that is not known. Quadrature needs it where p(y | f) is narrower than the
        Gaussian, or far outside of it."""
        if not (self.log_concave and self.smooth):
            return None
        here, y, mean, var = jax.lax.stop_gradient((self, y, mean, var))
        sd = jnp.sqrt(var)
        centre = mean + sd * quadrature.mode(lambda z: power * here.derivatives(y, mean + sd * z)[0], sd)
        return centre, 1 / jnp.sqrt(1 / jnp.maximum(var, _TINY) - power * here.derivatives(y, centre)[1])

    def nodes(
        self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0
    ) -> tuple[jax.Array, jax.Array]:
        """f and log weights, (..., nodes), for integrals of p(y | f)^power over N(f; mean, var), one
        latent."""
        found = self.peak(y, mean, var, power)
        if found is None:
            f, weights = quadrature.nodes(mean, var, 1)
            return f, jnp.broadcast_to(jnp.log(weights), f.shape)
        sd = jnp.sqrt(jnp.maximum(var, _TINY))
        z, log_weights = quadrature.panels((found[0] - mean) / sd, found[1] / sd)
        return mean[..., None] + sd[..., None] * z, log_weights

    # What predictions ask. ----------------------------------------------------------------------------------

    def conditional_moments(self, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        """E[y | f] and var[y | f]: the shape of y."""
        raise ParameterError(
            f"{type(self).__name__} does not say what E[y | f] and var[y | f] are: give it"
            " conditional_moments(f)."
        )

    def predictive_moments(self, mean: jax.Array, var: jax.Array) -> tuple[jax.Array, jax.Array]:
        """E y and var y for f ~ N(mean, var): the shape of y."""
        return quadrature.total_moments(self.conditional_moments, mean, var, self.latents)

    def probabilities(self, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E p(y = c | f) of every class c for f ~ N(mean, var): a last axis of classes, where y is a
        class."""
        raise ParameterError(f"{type(self).__name__} is not a likelihood of classes.")

    @property
    def exposed(self) -> bool:
        """Whether an observation may have an exposure, whose logarithm is added to f."""
        return False

    @property
    def discrete(self) -> bool:
        """Whether y is a whole number from 0 on, with a probability instead of a density."""
        return self.exposed

    def highest(self, mean: Array, var: Array) -> float:
        """Of a discrete y, whose mean and variance are these at some rows: the largest with a probability to
        speak of. Twelve standard deviations leave less than 1 % to any distribution (Chebyshev)."""
        return float(np.ceil(np.max(mean + 12 * np.sqrt(var))))

    def draw(self, rng: np.random.Generator, f: Array) -> Array:
        """One y for each f, with NumPy: the shape of y."""
        raise ParameterError(
            f"{type(self).__name__} cannot draw observations: give it draw(rng, f), or draw the function"
            ' (target="f").'
        )


def _beside(y: jax.Array, f: jax.Array, latents: int) -> jax.Array:
    """y with an axis for the nodes of a quadrature: f is (..., nodes), or (..., nodes, latents)."""
    return jnp.broadcast_to(y[..., None], f.shape if latents == 1 else f.shape[:-1])
