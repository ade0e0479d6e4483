"""Calls of likelihoods in 64 bits, and slow references."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

OF_Y = ("log_prob", "derivatives", "expected_log_prob", "predictive_log_prob", "tilted")


def run(likelihood, method, *given, **static):
    """One compiled program a method and shape. Observations are of the first column, beside the defaults of
    the others."""
    if method in OF_Y:
        given = likelihood.with_defaults(given[0]), *given[1:]
    with jax.enable_x64(True):
        values = _run(
            likelihood.bare(),
            method,
            tuple(static.items()),
            *(jnp.asarray(v, dtype=jnp.float64) for v in given),
        )
    return jax.tree_util.tree_map(np.asarray, values)


@partial(jax.jit, static_argnums=(1, 2))
def _run(bare, method, static, *given):
    return getattr(bare, method)(*given, **dict(static))


def tilted_reference(log_prob, mean, var, power=1.0, n=200_001):
    """log Z, mean and variance of exp(power log_prob(f)) N(f; mean, var) / Z on two uniform grids: the second
    where the first finds the mass."""
    sd = np.sqrt(var)

    def logs(f):
        return power * log_prob(f) - 0.5 * ((f - mean) / sd) ** 2 - 0.5 * np.log(2 * np.pi * var)

    f = np.linspace(mean - 60 * sd, mean + 60 * sd, n)
    values = logs(f)
    inside = f[values > values.max() - 60]
    step = f[1] - f[0]
    f = np.linspace(inside[0] - step, inside[-1] + step, n)
    values = logs(f)
    p = np.exp(values - values.max())
    first = np.sum(p * f) / np.sum(p)
    return values.max() + np.log(np.sum(p) * (f[1] - f[0])), first, np.sum(p * (f - first) ** 2) / np.sum(p)
