"""What inference asks of a likelihood, for all rows at once: compiled functions from rows to rows.

A row is an observation, all columns of it, and its latents' values or moments, side by side; so is an answer.
What is predicted has no observation, but the columns beside one.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.gram import tiles
from gramian.likelihoods import Likelihood, quadrature
from gramian.params import Tree
from gramian.params.namespace import namespace, sigmoid

PREDICTED = ("predictive", "probabilities", "scaled_probabilities", "joint_probabilities")


class Asked(Tree):
    """A likelihood as functions of rows."""

    likelihood: Likelihood
    power: float = 1.0  # of the likelihood in tilted distributions

    def expansion(self, T: jax.Array) -> jax.Array:
        """log p and, a latent each, its first three derivatives (with several latents of the diagonal of the
        Hessian), from (y, f_1 .. f_L)."""
        y, f = self._apart(T)
        f = f[:, 0] if self.likelihood.latents == 1 else f
        first, second = self.likelihood.derivatives(y, f)
        third = jax.jvp(lambda at: self.likelihood.derivatives(y, at)[1], (f,), (jnp.ones_like(f),))[1]
        answers = (self.likelihood.log_prob(y, f), first, second, third)
        return jnp.concatenate([v.reshape(len(T), -1) for v in answers], axis=1)

    def expected(self, T: jax.Array) -> jax.Array:
        """E log p and its derivatives by means and variances, from (y, means, variances)."""

        def of_row(row: jax.Array) -> jax.Array:
            y, rest = self._apart(row)
            return self.likelihood.expected_log_prob(y, *self._moments(rest))

        values, slopes = jax.vmap(jax.value_and_grad(of_row))(T)
        return jnp.concatenate([values[:, None], slopes[:, self._width :]], axis=1)

    def tilted(self, T: jax.Array) -> jax.Array:
        """log Z, mean and variance of the tilted distribution, from (y, mean, variance) of one latent."""
        y, rest = self._apart(T)
        return jnp.stack(self.likelihood.tilted(y, rest[:, 0], rest[:, 1], self.power), axis=1)

    def predictive(self, T: jax.Array) -> jax.Array:
        """E y and var y, from (the columns beside y, means, variances)."""
        beside, rest = T[:, : self._width - 1], T[:, self._width - 1 :]
        moments = self.likelihood.predictive_moments(*self._moments(rest), *beside.T)
        return namespace(T).stack(moments, axis=1)

    def scored(self, T: jax.Array) -> jax.Array:
        """log E p(y | f), from (y, means, variances)."""
        y, rest = self._apart(T)
        return self.likelihood.predictive_log_prob(y, *self._moments(rest))[:, None]

    def probabilities(self, T: jax.Array) -> jax.Array:
        """E p(y = c | f) of each class."""
        return self.likelihood.probabilities(*self._moments(T))

    def scaled_probabilities(self, T: jax.Array) -> jax.Array:
        """sigma(kappa mean), kappa = 1 / sqrt(1 + pi v / 8): E sigma(f) for a logistic sigma to within 2 %
        (MacKay 1992)."""
        mean, var = self._moments(T)
        xp = namespace(T)
        one = sigmoid(mean / xp.sqrt(1 + np.pi * var / 8))
        return xp.stack([1 - one, one], axis=1)

    def joint_probabilities(self, T: jax.Array) -> jax.Array:
        """The same for latents that are correlated at a row: from means and a root of their covariance."""
        xp, L = namespace(T), self.likelihood.latents
        points = quadrature.normal_points(L)
        f = T[:, None, :L] + xp.einsum("nij,pj->npi", T[:, L:].reshape(-1, L, L), points)
        # One latent a class. What f is at a point is known there: asking for averages over it again would
        # square the number of points.
        logs = [self.likelihood.log_prob(xp.full(f.shape[:-1], float(c)), f) for c in range(L)]
        return xp.stack([xp.mean(xp.exp(log), axis=1) for log in logs], axis=1)

    def in_numpy(self, question: str) -> bool:
        """Whether it is answered for arrays of NumPy, too: what predictions ask, of most likelihoods."""
        return question in PREDICTED and self.likelihood.predicts_in_numpy

    def _moments(self, T: jax.Array) -> tuple[jax.Array, jax.Array]:
        L = self.likelihood.latents
        return (T[..., 0], T[..., 1]) if L == 1 else (T[..., :L], T[..., L:])

    @property
    def _width(self) -> int:
        """Columns of an observation."""
        return len(self.likelihood.columns)

    def _apart(self, T: jax.Array) -> tuple[jax.Array, jax.Array]:
        """y as the likelihood takes it, and what follows it."""
        return T[..., 0] if self._width == 1 else T[..., : self._width], T[..., self._width :]


def ask(likelihood: Likelihood, question: str, *columns: Array, power: float = 1.0) -> Array:
    """The answers (n, k) to a question about rows made of these columns, each (n,) or (n, L)."""
    return tiles.rowwise(Asked(likelihood, power), question, np.column_stack(columns))


def ask_back(
    likelihood: Likelihood, question: str, weights: Array, *columns: Array, power: float = 1.0
) -> list[Array]:
    """sum_ij weights_ij d answer_ij / dparameter, one array a parameter of the likelihood."""
    if not likelihood.parameters():
        return []
    return tiles.rowwise_pullback(Asked(likelihood, power), question, np.column_stack(columns), weights)
