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

An observation is a row of the likelihood's `columns`. With one, y is (...); with several y has a last axis of
them, (..., columns), and an answer the shape of y without it. The first column is what is predicted; the
others are known beside it (an exposure, a number of trials), so that predictions take them as further
arguments, one a column, each of the shape of the answer.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.errors import InputError, ParameterError
from gramian.likelihoods import quadrature
from gramian.params import Parameter, Tree

Array = NDArray[np.float64]

_TINY = 1e-200  # in place of a variance of zero, where one divides by it


class Likelihood(Tree):
    """p(y | f), one observation at a time."""

    columns: ClassVar[tuple[str, ...]] = ("y",)  # of an observation; the first is what is predicted
    column_defaults: ClassVar[Mapping[str, float]] = {}  # of columns after the first that need not be given
    conjugate: ClassVar[bool] = False  # whether it is Gaussian noise, under which f can be integrated out

    @abstractmethod
    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        """log p(y | f), entry by entry: the shape of y, without its columns where it has several."""

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
        """y, (n,) or (n, columns), when every value is possible; else an InputError that names the first row
        that is not, its value, and what is."""
        return y

    def checked_beside(self, *beside: Array) -> None:
        """The same for the columns after the first, (n,) each, where predictions are asked for."""

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

    # Its columns. -------------------------------------------------------------------------------------------

    def y_of(self, Y: Any) -> Any:
        """A table (n, columns) as the methods here take it: (n,) where there is one column."""
        if Y.shape[1] != len(self.columns):  # JAX would read the last column for any that is not there
            raise InputError(
                f"Y has {Y.shape[1]} columns, but {type(self).__name__} reads {', '.join(self.columns)}."
            )
        return Y[:, 0] if len(self.columns) == 1 else Y

    def with_defaults(self, y: Any) -> Array:
        """The first column alone, of any shape, with the defaults of the others beside it, as the methods
        here take it."""
        first = np.asarray(y, dtype=np.float64)
        if len(self.columns) == 1:
            return first
        return np.stack([first, *(np.full(first.shape, self.default(name)) for name in self.columns[1:])], -1)

    def default(self, column: str) -> float:
        """What a column is where nobody gave it."""
        if column not in self.column_defaults:
            raise ParameterError(
                f"{type(self).__name__} reads the columns {', '.join(self.columns)}: give {column}=..., one"
                " number a row."
            )
        return self.column_defaults[column]

    def per_unit(self, y: Array) -> Array:
        """Observations (n,) or (n, columns) as pictures show them, (n,), beside predictions for the default
        columns: a count by its exposure."""
        return y if y.ndim == 1 else y[:, 0]

    # What inference asks. -----------------------------------------------------------------------------------

    def derivatives(self, y: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The first and second derivative of log p(y | f) with respect to f, entry by entry; with several
        latents the gradient and the diagonal of the Hessian, (..., latents)."""
        flat = f.reshape(-1, self.latents) if self.latents > 1 else jnp.ravel(f)
        rows = y.reshape(-1, len(self.columns)) if len(self.columns) > 1 else jnp.ravel(y)
        slope = jax.grad(self.log_prob, argnums=1)
        if self.latents > 1:
            hessian = jax.vmap(jax.hessian(self.log_prob, argnums=1))(rows, flat)
            second = jnp.diagonal(hessian, axis1=1, axis2=2)
        else:
            second = jax.vmap(jax.grad(slope, argnums=1))(rows, flat)
        return jax.vmap(slope)(rows, flat).reshape(f.shape), second.reshape(f.shape)

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E log p(y | f) for f ~ N(mean, var): the shape of y."""
        return quadrature.expectation(lambda f: self.log_prob(self._beside(y, f), f), mean, var, self.latents)

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """log E p(y | f) for f ~ N(mean, var): the shape of y."""
        if self.latents > 1:
            return quadrature.log_expectation(
                lambda f: self.log_prob(self._beside(y, f), f), mean, var, self.latents
            )
        f, log_weights = self.nodes(y, mean, var)
        return jax.scipy.special.logsumexp(self.log_prob(self._beside(y, f), f) + log_weights, axis=-1)

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
        return quadrature.moments(power * self.log_prob(self._beside(y, f), f) + log_weights, f)

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

    def _beside(self, y: jax.Array, f: jax.Array) -> jax.Array:
        """y with an axis for the nodes of a quadrature: f is (..., nodes), or (..., nodes, latents)."""
        shape = f.shape if self.latents == 1 else f.shape[:-1]
        if len(self.columns) == 1:
            return jnp.broadcast_to(y[..., None], shape)
        return jnp.broadcast_to(y[..., None, :], (*shape, y.shape[-1]))

    # What predictions ask. ----------------------------------------------------------------------------------

    # `*beside: Any, **named: Any` lets each likelihood name its columns: conditional_moments(f, trials).

    def conditional_moments(self, f: jax.Array, *beside: Any, **named: Any) -> tuple[jax.Array, jax.Array]:
        """E[y | f] and var[y | f] of the first column, given the others: the shape of y without columns."""
        arguments = ", ".join(["f", *self.columns[1:]])
        raise ParameterError(
            f"{type(self).__name__} does not say what E[y | f] and var[y | f] are: give it"
            f" conditional_moments({arguments})."
        )

    def predictive_moments(
        self, mean: jax.Array, var: jax.Array, *beside: Any, **named: Any
    ) -> tuple[jax.Array, jax.Array]:
        """E y and var y for f ~ N(mean, var): the same."""
        return quadrature.total_moments(
            lambda f: self.conditional_moments(f, *(column[..., None] for column in beside)),
            mean,
            var,
            self.latents,
        )

    def probabilities(self, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E p(y = c | f) of every class c for f ~ N(mean, var): a last axis of classes, where y is a
        class."""
        raise ParameterError(f"{type(self).__name__} is not a likelihood of classes.")

    @property
    def discrete(self) -> bool:
        """Whether y is a whole number from 0 on, with a probability instead of a density."""
        return False

    def highest(self, mean: Array, var: Array, *beside: Any, **named: Any) -> float:
        """Of a discrete y, whose mean and variance are these at some rows: the largest with a probability to
        speak of. Twelve standard deviations leave less than 1 % to any distribution (Chebyshev)."""
        return float(np.ceil(np.max(mean + 12 * np.sqrt(var))))

    def draw(self, rng: np.random.Generator, f: Array, *beside: Any, **named: Any) -> Array:
        """One y, the first column, for each f, with NumPy: the shape of y without columns."""
        arguments = ", ".join(["rng", "f", *self.columns[1:]])
        raise ParameterError(
            f"{type(self).__name__} cannot draw observations: give it draw({arguments}), or draw the function"
            ' (target="f").'
        )
