"""One piece of a Markov chain as a compiled program: some draws by NUTS, or by slices.

The number of draws is an argument, so that there is one program for pieces of any length; the random numbers of a draw come from the chain's key and
the draw's number. See `inference/sampling.py` for what the samplers are, `inference/traced.py` for their coordinates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from gramian.inference.traced import Problem, Sites, from_latent, to_latent
from gramian.inference.unconstrained import log_normal, number

TARGET = 0.8  # acceptance rate that the step size is adapted to
DOUBLINGS = 8  # of a trajectory: at most 255 steps
LONGEST = 50  # draws of a piece at most
SWEEPS = 3  # of t and v a draw by slices
ELLIPSES = 5  # elliptical slices a sweep, of each of the two kinds: cheap beside the factors that a slice of t needs
KEEP = 2  # the stage after the warm-up; 0 is "fast" (the step size alone is adapted), 1 "slow" (the mass matrix, too)


# NUTS. ----------------------------------------------------------------------------------------------------------------------------------------------


def adaptation() -> tuple[Any, Any]:
    """Init, update and final of the mass matrix and of the step size."""
    from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return mass_matrix_adaptation(is_diagonal_matrix=True), dual_averaging_adaptation(TARGET)


@jax.jit
def nuts(problem: Problem, state: Any, key: jax.Array, first: int, count: int, stages: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
    from blackjax.mcmc.nuts import build_kernel

    kernel, ((_, mass_update, mass_final), (step_init, step_update, step_final)) = build_kernel(), adaptation()

    def fast(mass: Any, size: Any, position: jax.Array, rate: jax.Array) -> tuple[Any, Any]:
        return mass, step_update(size, rate)

    def slow(mass: Any, size: Any, position: jax.Array, rate: jax.Array) -> tuple[Any, Any]:
        return mass_update(mass, position), step_update(size, rate)

    def keep(mass: Any, size: Any, position: jax.Array, rate: jax.Array) -> tuple[Any, Any]:
        return mass, size

    def close_window(mass: Any, size: Any) -> tuple[Any, Any]:
        return mass_final(mass), step_init(step_final(size))

    def one(i: jax.Array, carry: Any) -> Any:
        (place, sites, mass, size, step, sums), out = carry

        def density(position: jax.Array) -> jax.Array:
            return problem.log_density(position, sites)

        place, info = kernel(_key(key, first + i), place, density, step, mass.inverse_mass_matrix, DOUBLINGS)
        stage, end = stages[i, 0], stages[i, 1]
        mass, size = jax.lax.switch(stage, (fast, slow, keep), mass, size, place.position, info.acceptance_rate)
        mass, size = jax.lax.cond(end == 1, close_window, lambda mass, size: (mass, size), mass, size)
        step = jnp.where(stage == KEEP, step, jnp.exp(size.log_step_size))
        row = (place.logdensity, info.is_divergent, info.acceptance_rate, info.num_integration_steps)
        out, sums = _written(problem, out, i, place.position, sites, row, sums)
        return (place, sites, mass, size, step, sums), out

    return jax.lax.fori_loop(0, count, one, (state, _empty(problem)))


# Slices. --------------------------------------------------------------------------------------------------------------------------------------------


@jax.jit
def slices(problem: Problem, state: Any, key: jax.Array, first: int, count: int, stages: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
    from blackjax.mcmc import elliptical_slice
    from blackjax.mcmc import slice as coordinates

    along = coordinates.build_coordinate_kernel(interval=coordinates.stepping_out)
    rows, columns = problem.latent_shape
    ellipse = elliptical_slice.build_kernel(jnp.ones(rows * columns), jnp.zeros(rows * columns))

    def sweep(key: jax.Array, position: jax.Array, value: jax.Array, sites: Sites) -> tuple[jax.Array, jax.Array, jax.Array]:
        t, z = problem.split(position)
        by_t, by_z, by_v = jax.random.split(key, 3)
        total = jnp.zeros((), int)
        if problem.size:

            def density(t: jax.Array) -> jax.Array:
                return problem.log_density(jnp.concatenate([t, z.ravel()]), sites)

            place, info = along(by_t, coordinates.SliceState(t, value), density)
            t, total = place.position, info.num_expansions + info.num_shrink
        bare = problem.at(t)
        roots = problem.roots(bare)
        parts = problem.conditioned(bare, roots, sites)

        def fit(v: jax.Array) -> jax.Array:
            return jnp.sum(problem.log_likelihoods(bare, problem.latent(bare, roots, v)))

        def beside_prior(flat: jax.Array) -> jax.Array:
            return number(fit(flat.reshape(rows, columns)))

        def beside_sites(flat: jax.Array) -> jax.Array:
            v, _ = to_latent(parts, flat.reshape(rows, columns))
            return number(fit(v) - 0.5 * jnp.sum(v**2) + 0.5 * jnp.sum(flat**2))

        def turns(key: jax.Array, flat: jax.Array, fit: Callable[[jax.Array], jax.Array]) -> tuple[jax.Array, jax.Array]:
            def turn(k: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
                place, info = ellipse(jax.random.fold_in(key, k), carry[0], fit)
                return place, carry[1] + info.subiter

            place, count = jax.lax.fori_loop(0, ELLIPSES, turn, (elliptical_slice.init(flat, fit), jnp.zeros((), int)))
            return place.position, count

        flat, first_count = turns(by_z, z.ravel(), beside_sites)
        v, logdet = to_latent(parts, flat.reshape(rows, columns))
        flat, second_count = turns(by_v, v.ravel(), beside_prior)
        v = flat.reshape(rows, columns)
        value = number(fit(v) + jnp.sum(log_normal(v)) - logdet + problem.log_prior(t))
        return jnp.concatenate([t, from_latent(parts, v).ravel()]), value, total + first_count + second_count

    def one(i: jax.Array, carry: Any) -> Any:
        ((position, value), sites, *rest, sums), out = carry

        def again(k: jax.Array, carry: Any) -> Any:
            position, value, count = sweep(jax.random.fold_in(_key(key, first + i), k), carry[0], carry[1], sites)
            return position, value, carry[2] + count

        position, value, total = jax.lax.fori_loop(0, SWEEPS, again, (position, value, jnp.zeros((), int)))
        out, sums = _written(problem, out, i, position, sites, (value, False, 1.0, total), sums)
        return ((position, value), sites, *rest, sums), out

    return jax.lax.fori_loop(0, count, one, (state, _empty(problem)))


# What both write down. ------------------------------------------------------------------------------------------------------------------------------


def _key(key: jax.Array, number: jax.Array) -> jax.Array:
    return jax.random.fold_in(jax.random.wrap_key_data(key), number)


def _empty(problem: Problem) -> tuple[jax.Array, ...]:
    rows, columns = problem.latent_shape
    n = 0 if problem.marginal else problem.X.shape[0]
    return (
        jnp.zeros((LONGEST, problem.size)),
        jnp.zeros((LONGEST, rows * columns)),
        jnp.zeros(LONGEST),
        jnp.zeros(LONGEST, bool),
        jnp.zeros(LONGEST),
        jnp.zeros(LONGEST, int),
        jnp.zeros((LONGEST, n)),
    )


def _written(problem: Problem, out: Any, i: jax.Array, position: jax.Array, sites: Sites, row: tuple[Any, ...], sums: Any) -> tuple[Any, Any]:
    """The draw put down in row i, and its sites added to the sums."""
    t, z = problem.split(position)
    values = jnp.concatenate([jnp.ravel(value) for value in problem.values(t)]) if problem.size else t
    if problem.marginal:
        new = [values, z.ravel(), *row, jnp.zeros(0)]
    else:
        bare = problem.at(t)
        roots = problem.roots(bare)
        v, _ = to_latent(problem.conditioned(bare, roots, sites), z)
        F = problem.latent(bare, roots, v)
        new = [values, v.ravel(), *row, problem.log_likelihoods(bare, F)]
        met = problem.sites(bare, F)
        sums = (Sites(sums[0].W + met.W, sums[0].b + met.b), sums[1] + 1)
    return tuple(array.at[i].set(value) for array, value in zip(out, new, strict=True)), sums
