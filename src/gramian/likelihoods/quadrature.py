"""Expectations under Gaussians: N(mean, var) in one dimension, or independent ones for several latents.

One dimension: the trapezoidal rule on the line, z = -LIMIT ... LIMIT in steps of h, f = mean + sqrt(var) z.
For a smooth integrand that decays like a Gaussian its error is exp(-2 pi d / h), with d the distance of the
nearest singularity of the integrand from the real line in units of sqrt(var): for a logistic function and a
standard deviation of 10 (d = 0.31) the step of 0.1 gives 3e-9, and below a standard deviation of 5 rounding
is all that is left. Gauss-Hermite rules of the same size are no better for such integrands, and much worse
for saturating ones (Trefethen and Weideman 2014).

A step of 0.1 misses what is narrower: p(y | f) of a large count beside a wide Gaussian, or far outside of it.
Where the place and width of the integrand's peak are known (`mode` finds them for a log-concave p), `panels`
cuts the line at the Gaussian's standard deviations and at the peak, ever more coarsely away from it, with a
Gauss-Legendre rule between two cuts.

Several dimensions: a fixed quasi-random sequence of points, so that results are smooth functions of mean and
var.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from gramian.arrays import Array
from gramian.params.namespace import namespace

Function = Callable[[jax.Array], jax.Array]

LIMIT, STEP = 8.5, 0.1  # of the trapezoidal rule: the Gaussian's weight at the end is 2e-16
POINTS = 256  # of the quasi-random sequence

NODES: Array = np.arange(-LIMIT, LIMIT + STEP / 2, STEP)
WEIGHTS: Array = np.exp(-0.5 * NODES**2) / np.sum(np.exp(-0.5 * NODES**2))
# in 32 bits: a weight of 2e-7 at the end, and an error of 5e-5 at a standard deviation of 10
LOW_NODES: Array = NODES[np.abs(NODES) < 5.55][::2]
LOW_WEIGHTS: Array = np.exp(-0.5 * LOW_NODES**2) / np.sum(np.exp(-0.5 * LOW_NODES**2))

# cuts beside a peak, in units of its width
GRADED: Array = np.array([0.5, 1.2, 2.5, 5.0, 10.0, 25.0, 60.0, 150.0, 400.0, 1000.0])
CUTS: Array = np.linspace(-8.5, 8.5, 18)
_FARTHEST = 1e6  # standard deviations from the mean within which a mode is sought
_BISECTIONS = 32  # of asinh of that: down to 1e-8 of it


@cache
def normal_points(latents: int) -> Array:
    """(POINTS, latents): Sobol points through the normal quantiles, symmetric: odd functions vanish."""
    half = ndtri(qmc.Sobol(latents, scramble=True, rng=np.random.default_rng(0)).random(POINTS // 2))
    points = np.concatenate([half, -half])
    return points / np.sqrt(np.mean(points**2, axis=0))


def nodes(mean: jax.Array, var: jax.Array, latents: int) -> tuple[jax.Array, jax.Array]:
    """f at the nodes, (..., nodes) or (..., nodes, latents), and their weights."""
    xp = namespace(mean)
    sd = xp.sqrt(var)
    if latents == 1:
        z, weights = (LOW_NODES, LOW_WEIGHTS) if mean.dtype == xp.float32 else (NODES, WEIGHTS)
        return mean[..., None] + sd[..., None] * xp.asarray(z, mean.dtype), xp.asarray(weights, mean.dtype)
    points = xp.asarray(normal_points(latents), mean.dtype)
    return mean[..., None, :] + sd[..., None, :] * points, xp.full(len(points), 1 / len(points), mean.dtype)


def expectation(function: Function, mean: jax.Array, var: jax.Array, latents: int = 1) -> jax.Array:
    """E function(f)."""
    f, weights = nodes(mean, var, latents)
    return (weights * function(f)).sum(axis=-1)


def log_expectation(log_function: Function, mean: jax.Array, var: jax.Array, latents: int = 1) -> jax.Array:
    """log E exp(log_function(f))."""
    f, weights = nodes(mean, var, latents)
    return jax.scipy.special.logsumexp(log_function(f), b=weights, axis=-1)


def mode(slope: Function, sd: jax.Array) -> jax.Array:
    """The z at which log p(y | mean + sd z) - z^2 / 2 is largest, for a log-concave p; `slope`: d log p / df.
    It is sd slope(z), and slope falls, so it lies between 0 and sd slope(0). Bisection in asinh(z), because
    that end may be enormous."""
    end = jnp.arcsinh(jnp.clip(sd * slope(jnp.zeros_like(sd)), -_FARTHEST, _FARTHEST))

    def halve(_: int, bracket: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bracket
        s = (low + high) / 2
        z = jnp.sinh(s)
        rising = sd * slope(z) > z
        return jnp.where(rising, s, low), jnp.where(rising, high, s)

    low, high = jax.lax.fori_loop(0, _BISECTIONS, halve, (jnp.minimum(end, 0.0), jnp.maximum(end, 0.0)))
    return jnp.sinh((low + high) / 2)


def panels(centre: jax.Array, width: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Nodes z and log weights, (..., nodes), over N(z; 0, 1) times something of this width at this centre."""
    steps = np.concatenate([-GRADED[::-1], [0.0], GRADED])
    near = centre[..., None] + width[..., None] * steps
    cuts = jnp.concatenate([jnp.broadcast_to(CUTS, (*centre.shape, len(CUTS))), near], axis=-1)
    z, weights = gauss(jnp.sort(cuts, axis=-1), 8)
    return z, jnp.log(weights) - 0.5 * z**2 - 0.5 * jnp.log(2 * jnp.pi)


def normal_panels(centre: Array, width: Array) -> tuple[Array, Array]:
    """Nodes z and weights, (n, nodes) each, with NumPy: E g(z) for z ~ N(0, 1) and a g that changes at this
    centre, (n,), within this width."""
    steps = np.concatenate([-GRADED[::-1], [0.0], GRADED])
    near = np.clip(centre[:, None] + width[:, None] * steps, CUTS[0], CUTS[-1])
    cuts = np.sort(np.concatenate([np.broadcast_to(CUTS, (len(centre), len(CUTS))), near], axis=1), axis=1)
    nodes, weights = np.polynomial.legendre.leggauss(4)
    middle, half = (cuts[:, 1:] + cuts[:, :-1]) / 2, (cuts[:, 1:] - cuts[:, :-1]) / 2
    z = (middle[..., None] + half[..., None] * nodes).reshape(len(centre), -1)
    density = np.exp(-0.5 * z**2) * (half[..., None] * weights).reshape(len(centre), -1)
    return z, density / np.sum(density, axis=1, keepdims=True)


def gauss(cuts: jax.Array, order: int) -> tuple[jax.Array, jax.Array]:
    """Nodes and weights, (..., nodes), of a Gauss-Legendre rule of this order between any two cuts."""
    if namespace(cuts) is not np:
        cuts = jax.lax.stop_gradient(cuts)  # the integral does not depend on where it is cut
    nodes, weights = np.polynomial.legendre.leggauss(order)
    middle, half = (cuts[..., 1:] + cuts[..., :-1]) / 2, (cuts[..., 1:] - cuts[..., :-1]) / 2
    t = middle[..., None] + half[..., None] * nodes
    shape = (*cuts.shape[:-1], -1)
    return t.reshape(shape), (half[..., None] * weights).reshape(shape)


def moments(logs: jax.Array, f: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """log Z, mean and variance from the logs of weighted values at nodes f."""
    log_Z = jax.scipy.special.logsumexp(logs, axis=-1)
    p = jax.nn.softmax(logs, axis=-1)
    first = jnp.sum(p * f, axis=-1)
    return log_Z, first, jnp.sum(p * (f - first[..., None]) ** 2, axis=-1)
