r"""Counts: y in 0, 1, 2, ..., with mean exposure exp(f): the logarithm of the exposure is added to f.

    Poisson              p(y | f) = mu^y exp(-mu) / y!,   var = mu
    NegativeBinomial     p(y | f) = Gamma(y + r) / (Gamma(r) y!) (r / (r + mu))^r (mu / (r + mu))^y,
                         r = 1 / dispersion,   var = mu + dispersion mu^2

with mu = exposure exp(f). For log mu ~ N(m, v) all moments of mu are closed: E mu^k = exp(k m + k^2 v / 2).
Source: Hilbe 2011, Negative Binomial Regression, section 8.2 (the form with dispersion, NB2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln
from jax.typing import ArrayLike
from scipy.special import betainc, expit, gammaincc

from gramian.arrays import Array
from gramian.errors import InputError
from gramian.likelihoods import checks
from gramian.likelihoods.base import Likelihood, Pair
from gramian.likelihoods.special import bounded_exp, gammaln_step
from gramian.params import Value, positive
from gramian.params.namespace import namespace

_LARGEST_RATE = 1e18  # NumPy's Poisson generator ends at 9.2e18
LEAST, MOST = 1e-200, 1e200  # of an exposure, so that rates and sums are numbers


class _Counts(Likelihood):
    """An observation is a count and its exposure: how long or how much was watched."""

    columns: ClassVar[tuple[str, ...]] = ("y", "exposure")
    column_defaults: ClassVar[Mapping[str, float]] = {"exposure": 1.0}

    log_concave = discrete = True

    def checked(self, y: Array, what: str = "y") -> Array:
        counts, exposure = y.T
        checks.refuse(counts, checks.whole(counts), "counts are whole numbers from 0 on", what)
        rule = f"counts end at {_LARGEST_RATE:g}; give them in thousands, or their logarithm to a regression"
        checks.refuse(counts, counts <= _LARGEST_RATE, rule, what)
        self.checked_beside(exposure)
        return y

    def checked_beside(self, *beside: Array) -> None:
        (exposure,) = beside
        possible = checks.between(exposure, LEAST, MOST)
        if not np.all(possible):
            row = int(np.argmin(possible))
            takes = f"it must be positive and finite, from {LEAST:g} to {MOST:g}"
            raise InputError(f"exposure is {exposure[row]} in row {row}; {takes}.")

    def started(self, y: Array) -> tuple[Self, Array]:
        counts, exposure = y.T
        # the half is for counts that are all 0
        return self, np.array([np.log((np.sum(counts) + 0.5) / np.sum(exposure))])

    def per_unit(self, y: Array) -> Array:
        return y[:, 0] / y[:, 1]

    def _dispersion(self) -> ArrayLike:
        """(var - mean) / mean^2."""
        return 0.0

    def conditional_moments(self, f: jax.Array, exposure: ArrayLike = 1.0) -> Pair:
        mu = bounded_exp(f + namespace(f).log(exposure))
        return mu, mu + self._dispersion() * mu**2

    def predictive_moments(self, mean: jax.Array, var: jax.Array, exposure: ArrayLike = 1.0) -> Pair:
        xp, spread = namespace(mean), self._dispersion()
        first = bounded_exp(mean + xp.log(exposure) + 0.5 * var)
        return first, first + first**2 * ((1 + spread) * xp.expm1(var) + spread)

    def draw(self, rng: np.random.Generator, f: Array, exposure: Array | float = 1.0) -> Array:
        rates = self._mixed(rng, np.shape(f)) * np.exp(np.minimum(f + np.log(exposure), 700.0))
        return rng.poisson(np.minimum(rates, _LARGEST_RATE)).astype(np.float64)

    def _mixed(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array | float:
        """What the rates are multiplied with before counts are drawn."""
        return 1.0


def _seen(y: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The counts, and f (or its mean) with the logarithm of the exposure."""
    return y[..., 0], f + jnp.log(y[..., 1])


class Poisson(_Counts):
    """Counts with variance equal to their mean, exposure exp(f)."""

    numpy_too = True

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        y, f = _seen(y, f)
        return y * f - bounded_exp(f) - gammaln(y + 1)

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        y, f = _seen(y, f)
        mu = bounded_exp(f)
        return y - mu, -mu

    def cumulative(self, y: Array, f: Array, exposure: Array | float = 1.0) -> Array:
        return gammaincc(y + 1, np.exp(np.minimum(f + np.log(exposure), 700.0)))

    def expected_log_prob(self, y: jax.Array, mean: jax.Array, var: jax.Array) -> jax.Array:
        y, mean = _seen(y, mean)
        return y * mean - bounded_exp(mean + 0.5 * var) - gammaln(y + 1)


class NegativeBinomial(_Counts):
    """Counts with variance mu + dispersion mu^2; Poisson's as dispersion tends to 0."""

    numpy_too = True
    dispersion: Value = positive(1.0)

    def log_prob(self, y: jax.Array, f: jax.Array) -> jax.Array:
        y, f = _seen(y, f)
        r = 1 / jnp.asarray(self.dispersion)
        t = f - jnp.log(r)
        return gammaln_step(r, y) - gammaln(y + 1) - y * jax.nn.softplus(-t) - r * jax.nn.softplus(t)

    def derivatives(self, y: jax.Array, f: jax.Array) -> Pair:
        y, f = _seen(y, f)
        r = 1 / jnp.asarray(self.dispersion)
        t = f - jnp.log(r)
        above, below = jax.nn.sigmoid(t), jax.nn.sigmoid(-t)
        return y * below - r * above, -(y + r) * above * below

    def started(self, y: Array) -> tuple[Self, Array]:
        """Half of the spread beyond Poisson's as dispersion; the rest is for f to explain."""
        counts = y[:, 0]
        mean = (np.sum(counts) + 0.5) / len(counts)
        excess = np.clip(0.5 * (np.var(counts) - mean) / mean**2, 0.01, 10.0)
        return self.default_starts(type(self)(), dispersion=excess), super().started(y)[1]

    def _dispersion(self) -> ArrayLike:
        return self.dispersion

    def cumulative(self, y: Array, f: Array, exposure: Array | float = 1.0) -> Array:
        r = 1 / float(self.dispersion)
        return betainc(r, y + 1, expit(np.log(r) - f - np.log(exposure)))

    def _mixed(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        # a Poisson whose rate is gamma distributed
        dispersion = float(self.dispersion)
        return rng.gamma(1 / dispersion, dispersion, shape)
