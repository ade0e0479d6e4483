"""The contract of a likelihood: `log_prob(y, f)` suffices; the rest has working defaults, by autodiff and
quadrature.

    derivatives           d/df and d^2/df^2 of log p(y | f)                            Laplace
    tilted                log Z, mean and variance of p(y | f)^a N(f; mean, var) / Z   expectation propagation
    expected_log_prob     E log p(y | f) for f ~ N(mean, var)                          variational inference
    predictive_log_prob   log E p(y | f)                                               scores
    predictive_moments    E y and var y                                                predictions

A closed form overrides a default; `gramian.testing.check_likelihood` holds the two equal.

Most likelihoods have one latent function: y, f, mean and var are arrays of one shape. With several (`latents`
> 1) y is (...), f, mean and var are (..., latents), with independent Gaussians for the latents.

An observation is a row of the likelihood's `columns`. With one, y is (...); with several y is (..., columns),
and an answer (...). The first column is what is predicted; the others are known beside it (an exposure, a
number of trials), so that predictions take them as further arguments, each of the shape of the answer.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.errors import InputError, ParameterError
from gramian.likelihoods import quadrature
from gramian.params import Parameter, Tree
from gramian.predictive import Predictive

Pair = tuple[jax.Array, jax.Array]
Triple = tuple[jax.Array, jax.Array, jax.Array]

_TINY = 1e-200  # in place of a variance of zero, where one divides by it


class Likelihood(Tree):
    """p(y | f), one observation at a time."""

    columns: ClassVar[tuple[str, ...]] = ("y",)  # of an observation; the first is what is predicted
    column_defaults: ClassVar[Mapping[str, float]] = {}  # of columns after the first that need not be given
    # whether log p(y | f) is known to be concave in f, so that its curvature never has the wrong sign
    log_concave: ClassVar[bool] = False
    location: ClassVar[bool] = False  # whether f is in the units of y, so that it scales with it
    # whether log p(y | f) has derivatives in f that say something; one that is constant in pieces has not,
    # and suits only methods that average over f: variational inference and expectation propagation
    smooth: ClassVar[bool] = True
    discrete: ClassVar[bool] = False  # whether y is a whole number from 0 on, with a probability
    # whether Laplace's approximation has a form for its functions together (inference/softmax/laplace.py)
    coupled_mode: ClassVar[bool] = False
    conjugate: ClassVar[bool] = False  # whether it is Gaussian noise, under which f can be integrated out
    # whether `probabilities` and the moments take arrays of NumPy as well (params/namespace.py), and then do
    # without JAX, which a forked process has not; said by each class for itself
    numpy_too: ClassVar[bool] = False

    @abstractmethod
    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        """log p(y | f), entry by entry: the shape of y, without its columns where it has several."""

    def __repr__(self) -> str:
        values = [(f.name, getattr(self, f.name)) for f in dataclasses.fields(self)]
        texts = (f"{name}={v.text(4) if isinstance(v, Parameter) else repr(v)}" for name, v in values)
        return f"{type(self).__name__}({', '.join(texts)})"

    # What kind it is. ---------------------------------------------------------------------------------------

    @property
    def latents(self) -> int:
        """How many latent functions an observation depends on."""
        return 1

    @property
    def predicts_in_numpy(self) -> bool:
        """Whether predictions can do without JAX. Not inherited: a subclass may have another formula."""
        return bool(vars(type(self)).get("numpy_too", False))

    def variances(self) -> Array:
        """The noise variance of each output, (outputs,), of one that is `conjugate`."""
        raise TypeError(f"{type(self).__name__} is no Gaussian noise, and has no variance of it.")

    def scales(self, s: float) -> Array:
        """The prior scale of each latent, (latents,): s, that of y, for one in the units of y, else 1."""
        return np.full(self.latents, s if self.location else 1.0)

    @property
    def relaxed(self) -> Likelihood | None:
        """A smoother one of the same y and latents to begin with, where this one gives little direction."""
        return None

    def checked(self, y: Array, what: str = "y") -> Array:
        """y, (n,) or (n, columns), when it is possible; else an InputError with the first row that is not."""
        return y

    def checked_beside(self, *beside: Array) -> None:
        """The same for the columns after the first, (n,) each, where predictions are asked for."""

    def started(self, y: Array) -> tuple[Self, Array]:
        """The same with values that suit y in place of defaults, and a start for each latent, (latents,)."""
        return self, np.zeros(self.latents)

    def default_starts(self, default: Self, **values: float | Array) -> Self:
        """For `started`: these values, but for parameters that were given, or have a prior or bounds."""
        own, usual = self.parameters(), default.parameters()
        free = {k for k, p in own.items() if p.trainable and p.prior is None and p.bounds is None}
        untouched = {k for k in free if np.array_equal(own[k].value, usual[k].value)}
        return self.with_values({k: v for k, v in values.items() if k in untouched})

    def meanings(self) -> dict[str, str]:
        """What values of its parameters mean that a person may not expect, by their names."""
        return {}

    # Its columns. -------------------------------------------------------------------------------------------

    def y_of(self, Y: Any) -> Any:
        """A table (n, columns) as the methods here take it: (n,) where there is one column."""
        if Y.shape[1] != len(self.columns):  # JAX would read the last column for any that is not there
            reads = f"{type(self).__name__} reads {', '.join(self.columns)}"
            raise InputError(f"Y has {Y.shape[1]} columns, but {reads}.")
        return Y[:, 0] if len(self.columns) == 1 else Y

    def with_defaults(self, y: Any) -> Array:
        """The first column alone, of any shape, with the defaults of the others beside it."""
        first = np.asarray(y, dtype=np.float64)
        if len(self.columns) == 1:
            return first
        return np.stack([first, *(np.full(first.shape, self.default(name)) for name in self.columns[1:])], -1)

    def default(self, column: str) -> float:
        """What a column is where nobody gave it."""
        if column not in self.column_defaults:
            reads = f"{type(self).__name__} reads the columns {', '.join(self.columns)}"
            raise ParameterError(f"{reads}: give {column}=..., one number a row.")
        return self.column_defaults[column]

    def per_unit(self, y: Array) -> Array:
        """Observations as pictures show them, (n,), beside predictions for default columns: by exposure."""
        return y if y.ndim == 1 else y[:, 0]

    # What inference asks. -----------------------------------------------------------------------------------

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
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
        return quadrature.expectation(lambda f: self._log_prob(y, f), mean, var, self.latents)

    def predictive_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        """log E p(y | f) for f ~ N(mean, var): the shape of y."""
        if self.latents > 1:
            return quadrature.log_expectation(lambda f: self._log_prob(y, f), mean, var, self.latents)
        f, log_weights = self.nodes(y, mean, var)
        return jax.scipy.special.logsumexp(self._log_prob(y, f) + log_weights, axis=-1)

    def tilted(self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0) -> Triple:
        """log Z, mean and variance of p(y | f)^power N(f; mean, var) / Z; one latent only."""
        if self.latents > 1:
            name, cure = type(self).__name__, 'use inference="vi" or "mcmc" instead of "ep".'
            raise ParameterError(f"{name} has {self.latents} latent functions: {cure}")
        f, log_weights = self.nodes(y, mean, var, power)
        return quadrature.moments(power * self._log_prob(y, f) + log_weights, f)

    def peak(self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0) -> Pair | None:
        """Where p(y | f)^power N(f; mean, var), or p(y | f), is concentrated as a function of one latent f,
        and how widely; None where that is not known. Quadrature needs it where p(y | f) is narrower than the
        Gaussian, or far outside of it."""
        if not (self.log_concave and self.smooth):
            return None
        here, y, mean, var = jax.lax.stop_gradient((self, y, mean, var))
        sd = jnp.sqrt(var)
        centre = mean + sd * quadrature.mode(lambda z: power * here.derivatives(y, mean + sd * z)[0], sd)
        return centre, 1 / jnp.sqrt(1 / jnp.maximum(var, _TINY) - power * here.derivatives(y, centre)[1])

    def nodes(self, y: jax.Array, mean: jax.Array, var: jax.Array, power: float = 1.0) -> Pair:
        """f and log weights, (..., nodes), for integrals of p(y | f)^power over N(f; mean, var)."""
        found = self.peak(y, mean, var, power)
        if found is None:
            f, weights = quadrature.nodes(mean, var, 1)
            return f, jnp.broadcast_to(jnp.log(weights), f.shape)
        sd = jnp.sqrt(jnp.maximum(var, _TINY))
        z, log_weights = quadrature.panels((found[0] - mean) / sd, found[1] / sd)
        return mean[..., None] + sd[..., None] * z, log_weights

    def _log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        """log p(y | f) at the nodes of a quadrature: f is (..., nodes), or (..., nodes, latents)."""
        shape = f.shape if self.latents == 1 else f.shape[:-1]
        if len(self.columns) == 1:
            return self.log_prob(jnp.broadcast_to(y[..., None], shape), f)
        return self.log_prob(jnp.broadcast_to(y[..., None, :], (*shape, y.shape[-1])), f)

    # What predictions ask. ----------------------------------------------------------------------------------

    # `*beside: Any, **named: Any` lets each likelihood name its columns: conditional_moments(f, trials).

    def conditional_moments(self, f: jax.Array, *beside: Any, **named: Any) -> Pair:
        """E[y | f] and var[y | f] of the first column, given the others: the shape of y without columns."""
        cure = f"give it conditional_moments({', '.join(['f', *self.columns[1:]])})"
        raise ParameterError(f"{type(self).__name__} does not say what E[y | f] and var[y | f] are: {cure}.")

    def predictive_moments(self, mean: jax.Array, var: jax.Array, *beside: Any, **named: Any) -> Pair:
        """E y and var y for f ~ N(mean, var): the same."""
        columns = [column[..., None] for column in beside]
        f, weights = quadrature.nodes(mean, var, self.latents)
        means, variances = self.conditional_moments(f, *columns)
        first = (weights * means).sum(axis=-1)
        return first, (weights * (variances + (means - first[..., None]) ** 2)).sum(axis=-1)

    def distribution(self, mean: Array, var: Array, *beside: Any, **named: Any) -> Predictive | None:
        """The distribution of y at rows with f ~ N(mean, var), (n,) or (n, latents) each, with NumPy, where
        it is a known one; None: it is averaged over f."""
        return None

    def cumulative(self, y: Array, f: Array, *beside: Any, **named: Any) -> Array | None:
        """P(Y <= y | f), entry by entry, with NumPy, for any number y; None where it is not known, so that
        quantiles are those of draws, or of cumulated probabilities."""
        return None

    def probabilities(self, mean: jax.Array, var: jax.Array) -> jax.Array:
        """E p(y = c | f) of every class c for f ~ N(mean, var), in a last axis, where y is a class."""
        raise ParameterError(f"{type(self).__name__} is not a likelihood of classes.")

    def highest(self, mean: Array, var: Array, *beside: Any, **named: Any) -> float:
        """Of a discrete y, whose mean and variance are these at some rows: the largest with a probability to
        speak of. Twelve standard deviations leave less than 1 % to any distribution (Chebyshev)."""
        return float(np.ceil(np.max(mean + 12 * np.sqrt(var))))

    def draw(self, rng: np.random.Generator, f: Array, *beside: Any, **named: Any) -> Array:
        """One y, the first column, for each f, with NumPy: the shape of y without columns."""
        cure = f"give it draw({', '.join(['rng', 'f', *self.columns[1:]])}), or draw the function"
        raise ParameterError(f'{type(self).__name__} cannot draw observations: {cure} (target="f").')
