"""One piece of a Markov chain as a compiled program: some draws of all of (t, z) by NUTS.

The number of draws is an argument, so that there is one program for pieces of any length; the random numbers
of a draw come from the chain's key and the draw's number.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from gramian.inference.mcmc.traced import CurveSites, TracedProblem, to_latent

FIRST_STEP = 0.3
TARGET = 0.8  # acceptance rate that the step size is adapted to
DOUBLINGS = 8  # of a trajectory: at most 255 steps
LONGEST = 50  # draws of a piece at most
SLOW, KEEP = 1, 2  # stages: the mass matrix is adapted, too; after the warm-up. 0: the step size alone is


def adaptation() -> tuple[Any, Any]:
    """Init, update and final of the mass matrix and of the step size."""
    from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return mass_matrix_adaptation(is_diagonal_matrix=True), dual_averaging_adaptation(TARGET)


@jax.jit
def nuts(
    problem: TracedProblem, state: Any, key: jax.Array, first: int, count: int, stages: jax.Array
) -> tuple[Any, tuple[jax.Array, ...]]:
    from blackjax.mcmc.nuts import build_kernel

    kernel = build_kernel()
    (_, mass_update, mass_final), (step_init, step_update, step_final) = adaptation()

    def kept(old: Any, *_: Any) -> Any:
        return old

    def close_window(mass: Any, size: Any) -> tuple[Any, Any]:
        return mass_final(mass), step_init(step_final(size))

    def one(i: jax.Array, carry: Any) -> Any:
        (place, sites, mass, size, step, sums), out = carry

        def density(position: jax.Array) -> jax.Array:
            return problem.log_density(position, sites)

        own = jax.random.fold_in(jax.random.wrap_key_data(key), first + i)
        place, info = kernel(own, place, density, step, mass.inverse_mass_matrix, DOUBLINGS)
        (stage, end), rate = stages[i], info.acceptance_rate
        mass = jax.lax.cond(stage == SLOW, mass_update, kept, mass, place.position)
        size = jax.lax.cond(stage == KEEP, kept, step_update, size, rate)
        mass, size = jax.lax.cond(end == 1, close_window, lambda *both: both, mass, size)
        step = jnp.where(stage == KEEP, step, jnp.exp(size.log_step_size))
        row = (place.logdensity, info.is_divergent, rate, info.num_integration_steps)
        out, sums = _written(problem, out, i, place.position, sites, row, sums)
        return (place, sites, mass, size, step, sums), out

    return jax.lax.fori_loop(0, count, one, (state, _empty(problem)))


def _empty(problem: TracedProblem) -> tuple[jax.Array, ...]:
    """Room for `Draws`."""
    n = 0 if problem.marginal else problem.X.shape[0]
    shapes = (problem.size,), (problem.dimension - problem.size,), (), (), (), (), (n,)
    kinds = (float, float, float, bool, float, int, float)
    return tuple(jnp.zeros((LONGEST, *shape), kind) for shape, kind in zip(shapes, kinds, strict=True))


def _written(
    problem: TracedProblem, out: Any, i: Any, position: jax.Array, sites: CurveSites, row: Any, sums: Any
) -> tuple[Any, Any]:
    """The draw put down in row i, and its sites added to the sums."""
    t, z = problem.split(position)
    values = problem.flat_values(t)
    if problem.marginal:
        new = [values, z.ravel(), *row, jnp.zeros(0)]
    else:
        here = problem.at(t)
        roots = here.roots()
        v, _ = to_latent(here.conditioned(roots, sites), z)
        F = here.latent(roots, v)
        new = [values, v.ravel(), *row, here.log_likelihoods(F)]
        met = here.sites(F)
        sums = (CurveSites(sums[0].W + met.W, sums[0].b + met.b), sums[1] + 1)
    return tuple(array.at[i].set(value) for array, value in zip(out, new, strict=True)), sums
