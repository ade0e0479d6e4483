"""Markov chains on the density of a `Problem`, each by blackjax, several at once on threads.

    nuts    the no-U-turn sampler on all of (t, v), with Stan's warm-up: the step size by dual averaging to an acceptance of TARGET, a diagonal
            mass matrix from windows of doubling length
    ess     t by slices along each coordinate given v, then v by elliptical slices given t: no gradient, one factor of K a slice

A chain is run in pieces of about a second, so that progress is seen and an end by time or Ctrl-C leaves whole draws. The random numbers of a draw
depend on the seed, the chain and the draw's number alone: neither pieces nor threads change a draw.

Chains run on threads rather than side by side in one program: there all of them would wait for the longest trajectory at each draw.

Sources: Hoffman and Gelman 2014; Betancourt 2017 (NUTS); Murray, Adams and MacKay 2010 (elliptical slices); Neal 2003 (slices); Murray and Adams 2010.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.errors import NumericalError, ParameterError
from gramian.gram.tiles import THREADS
from gramian.inference.base import Share
from gramian.inference.traced import Problem, _number
from gramian.linalg.threads import threads_for

Array = NDArray[np.float64]

TARGET = 0.8  # acceptance rate that the step size is adapted to
FIRST_STEP = 0.3
DOUBLINGS = 8  # of a trajectory: at most 255 steps
LONGEST = 50  # draws of a piece at most
PIECE_SECONDS = 1.0
ELLIPSES = 10  # elliptical slices a draw: cheap beside the factor of K that a slice of t needs
STARTS = 12  # tries to find a start with a finite density, each closer to the model's own parameters

SLOW, KEEP = 1, 2  # stages of the warm-up besides 0, "fast": mass matrix too, and none


class Draws(NamedTuple):
    """What a piece of a chain leaves: arrays with one row a draw."""

    values: Array  # (draws, p): of the trainable parameters, flat
    latent: Array  # (draws, m L)
    log_density: Array
    divergent: NDArray[np.bool_]
    acceptance: Array
    steps: NDArray[np.int64]  # gradients for NUTS, densities for slices
    log_likelihood: Array  # (draws, n)


class Run(NamedTuple):
    """All chains: the arrays of `Draws` with an axis for the chains in front."""

    draws: Draws
    warmup: int
    stopped: str  # "", "time limit" or "interrupted"
    seconds: float


def run(
    problem: Problem,
    start: Array,
    rng: np.random.Generator,
    *,
    chains: int,
    warmup: int,
    draws: int,
    sampler: str,
    report: Share | None = None,
    deadline: float | None = None,
) -> Run:
    """Warm-up and draws of all chains, from starts around `start`."""
    began = time.monotonic()
    step: Any = _nuts if sampler == "nuts" else _slices
    with threads_for(1), jax.enable_x64(True):
        keys = [np.asarray(jax.random.key_data(jax.random.key(int(seed)))) for seed in rng.integers(2**31, size=chains)]
        states = [_begin(problem, _start(problem, start, rng), sampler) for _ in range(chains)]
        crew = _Crew(partial(step, problem), keys, states)
        crew.advance(0, 0, np.zeros((LONGEST, 2), dtype=np.int64))  # compiles, before there are threads
    with threads_for(1), ThreadPoolExecutor(max(1, min(chains, THREADS))) as pool:
        crew.pool = pool
        return _rounds(crew, warmup, draws, sampler, began, report, deadline)


class _Crew:
    """The chains in their present state."""

    def __init__(self, step: Callable[..., Any], keys: list[Any], states: list[Any]) -> None:
        self.step, self.keys, self.states = step, keys, states
        self.pool: ThreadPoolExecutor | None = None

    def advance(self, first: int, count: int, stages: NDArray[np.int64]) -> list[Draws]:
        """`count` draws of each chain."""

        def one(chain: int) -> tuple[Any, Draws]:
            with jax.enable_x64(True):
                state, out = self.step(self.states[chain], self.keys[chain], first, count, stages)
                return jax.block_until_ready(state), Draws(*(np.asarray(value)[:count] for value in out))

        members = range(len(self.keys) if self.pool is not None else 1)
        results = list(self.pool.map(one, members)) if self.pool is not None else [one(k) for k in members]
        if self.pool is not None:
            self.states = [state for state, _ in results]
        return [out for _, out in results]


def _rounds(crew: _Crew, warmup: int, draws: int, sampler: str, began: float, report: Share | None, deadline: float | None) -> Run:
    schedule = _schedule(warmup) if sampler == "nuts" else [(KEEP, 0)] * warmup
    half = None if deadline is None else 0.5 * (began + deadline)  # what warm-up may take at most
    done, warmed, pieces, stopped, length = 0, 0, [], "", 2
    try:
        while warmed < warmup and (half is None or time.monotonic() < half):
            count = min(length, warmup - warmed, LONGEST)
            moment = time.monotonic()
            crew.advance(warmed, count, _padded(schedule[warmed : warmed + count]))
            warmed += count
            length = _next_length(count, time.monotonic() - moment, length)
            if report is not None:
                report(warmed / (warmup + draws))
        if sampler == "nuts":
            crew.states = [_settled(state) for state in crew.states]
        while done < draws and (deadline is None or not pieces or time.monotonic() < deadline):
            count = min(length, draws - done, LONGEST)
            moment = time.monotonic()
            # Numbered from `warmup` on even where warm-up was cut short, so that a draw's random numbers are its own.
            pieces.append(crew.advance(warmup + done, count, _padded([(KEEP, 0)] * count)))
            done += count
            length = _next_length(count, time.monotonic() - moment, length)
            if report is not None:
                report((warmup + done) / (warmup + draws))
        stopped = "time limit" if done < draws or warmed < warmup else ""
    except KeyboardInterrupt:
        if done < 4:
            raise  # nothing to keep
        stopped = "interrupted"
    chains = [[Draws(*(np.concatenate(parts) for parts in zip(*(piece[k] for piece in pieces), strict=True)))] for k in range(len(crew.keys))]
    together = Draws(*(np.stack(parts) for parts in zip(*(chain[0] for chain in chains), strict=True)))
    return Run(together, warmed, stopped, time.monotonic() - began)


def _next_length(count: int, seconds: float, length: int) -> int:
    """How many draws take about a second, judged by the last piece; at most twice as many as before, since trajectories differ."""
    return max(1, min(2 * length, int(PIECE_SECONDS * count / max(seconds, 1e-6))))


def _padded(stages: list[tuple[int, int]]) -> NDArray[np.int64]:
    out = np.zeros((LONGEST, 2), dtype=np.int64)
    out[: len(stages)] = stages
    return out


def _schedule(warmup: int) -> list[tuple[int, int]]:
    from blackjax.adaptation.window_adaptation import build_schedule

    return [(int(stage), int(end)) for stage, end in build_schedule(warmup)]


# Starts. --------------------------------------------------------------------------------------------------------------------------------------------


def _start(problem: Problem, centre: Array, rng: np.random.Generator) -> Array:
    """A draw of v from its prior, and parameters half a unit around the model's own; closer where the density there is no finite number."""
    rows, columns = problem.latent_shape
    t, v = rng.standard_normal(problem.size), rng.standard_normal(rows * columns)
    for attempt in range(STARTS):
        shrink = 0.0 if attempt == STARTS - 1 else 0.5**attempt
        position = np.concatenate([centre + 0.5 * shrink * t, shrink * v])
        value, slope = _value_and_slope(problem, position)
        if np.isfinite(value) and np.all(np.isfinite(slope)):
            return position
    raise NumericalError(
        "The chains find no start: the density of the data is no finite number even at the model's own parameters with f at its mean. "
        "Check y against the likelihood, and start from other parameters."
    )


@jax.jit
def _value_and_slope(problem: Problem, position: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.value_and_grad(problem.log_density)(position)


def _begin(problem: Problem, position: Array, sampler: str) -> Any:
    if sampler == "ess":
        return (jnp.asarray(position),)
    value, slope = _value_and_slope(problem, position)
    from blackjax.mcmc.hmc import HMCState

    mass_init, step_init = _adaptation()[0][0], _adaptation()[1][0]
    return HMCState(jnp.asarray(position), value, slope), mass_init(len(position)), step_init(FIRST_STEP), jnp.asarray(FIRST_STEP)


# NUTS. ----------------------------------------------------------------------------------------------------------------------------------------------


def _adaptation() -> tuple[Any, Any]:
    """Init, update and final of the mass matrix and of the step size."""
    from blackjax.adaptation.mass_matrix import mass_matrix_adaptation
    from blackjax.adaptation.step_size import dual_averaging_adaptation

    return mass_matrix_adaptation(is_diagonal_matrix=True), dual_averaging_adaptation(TARGET)


def _settled(state: Any) -> Any:
    """After warm-up the step size is the average of those that were tried."""
    place, mass, size, _ = state
    with jax.enable_x64(True):
        return place, mass, size, jnp.exp(size.log_step_size_avg)


@jax.jit
def _nuts(problem: Problem, state: Any, key: jax.Array, first: int, count: int, stages: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
    from blackjax.mcmc.nuts import build_kernel

    kernel, ((_, mass_update, mass_final), (step_init, step_update, step_final)) = build_kernel(), _adaptation()

    def fast(mass: Any, size: Any, position: jax.Array, rate: jax.Array) -> tuple[Any, Any]:
        return mass, step_update(size, rate)

    def slow(mass: Any, size: Any, position: jax.Array, rate: jax.Array) -> tuple[Any, Any]:
        return mass_update(mass, position), step_update(size, rate)

    def keep(mass: Any, size: Any, position: jax.Array, rate: jax.Array) -> tuple[Any, Any]:
        return mass, size

    def close_window(mass: Any, size: Any) -> tuple[Any, Any]:
        return mass_final(mass), step_init(step_final(size))

    def one(i: jax.Array, carry: Any) -> Any:
        (place, mass, size, step), out = carry
        place, info = kernel(_key(key, first + i), place, problem.log_density, step, mass.inverse_mass_matrix, DOUBLINGS)
        stage, end = stages[i, 0], stages[i, 1]
        mass, size = jax.lax.switch(stage, (fast, slow, keep), mass, size, place.position, info.acceptance_rate)
        mass, size = jax.lax.cond(end == 1, close_window, lambda mass, size: (mass, size), mass, size)
        step = jnp.where(stage == KEEP, step, jnp.exp(size.log_step_size))
        row = (place.logdensity, info.is_divergent, info.acceptance_rate, info.num_integration_steps)
        return (place, mass, size, step), _written(problem, out, i, place.position, row, stage == KEEP)

    return jax.lax.fori_loop(0, count, one, (state, _empty(problem)))


# Slices. --------------------------------------------------------------------------------------------------------------------------------------------


@jax.jit
def _slices(problem: Problem, state: Any, key: jax.Array, first: int, count: int, stages: jax.Array) -> tuple[Any, tuple[jax.Array, ...]]:
    from blackjax.mcmc import elliptical_slice
    from blackjax.mcmc import slice as coordinates

    sweep = coordinates.build_coordinate_kernel(interval=coordinates.stepping_out)
    rows, columns = problem.latent_shape
    ellipse = elliptical_slice.build_kernel(jnp.ones(rows * columns), jnp.zeros(rows * columns))

    def one(i: jax.Array, carry: Any) -> Any:
        (position,), out = carry
        t, v = problem.split(position)
        by_t, by_v = jax.random.split(_key(key, first + i))
        count = jnp.zeros((), int)
        if problem.size:

            def density(t: jax.Array) -> jax.Array:
                return _number(jnp.sum(problem.log_likelihoods(problem.at(t), v)) + problem.log_prior(t))

            place, info = sweep(by_t, coordinates.init(t, density), density)
            t, count = place.position, info.num_expansions + info.num_shrink
        bare = problem.at(t)
        roots = problem.roots(bare)

        def fit(flat: jax.Array) -> jax.Array:
            return _number(jnp.sum(problem.log_likelihoods_of(bare, problem.latent_from(bare, roots, flat.reshape(rows, columns)))))

        def turn(k: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
            place, total = carry
            place, info = ellipse(jax.random.fold_in(by_v, k), place, fit)
            return place, total + info.subiter

        place, count = jax.lax.fori_loop(0, ELLIPSES, turn, (elliptical_slice.init(v.ravel(), fit), count))
        position = jnp.concatenate([t, place.position])
        row = (place.logdensity + problem.log_prior(t) - 0.5 * jnp.sum(place.position**2), False, 1.0, count)
        return (position,), _written(problem, out, i, position, row, True)

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


def _written(problem: Problem, out: Any, i: jax.Array, position: jax.Array, row: tuple[Any, ...], wanted: Any) -> tuple[jax.Array, ...]:
    t, v = problem.split(position)
    values = jnp.concatenate([jnp.ravel(value) for value in problem.values(t)]) if problem.size else t
    new = [values, v.ravel(), *row]
    if problem.marginal:
        new.append(jnp.zeros(0))
    else:  # one more factor of K, so not in warm-up
        new.append(jax.lax.cond(wanted, lambda: problem.log_likelihoods(problem.at(t), v), lambda: jnp.zeros(problem.X.shape[0])))
    return tuple(array.at[i].set(value) for array, value in zip(out, new, strict=True))


def require_packages() -> None:
    """A clear word where the packages of MCMC are missing."""
    try:
        import arviz_or_blackjax  # noqa: F401
    except ImportError:
        raise ParameterError("") from None
