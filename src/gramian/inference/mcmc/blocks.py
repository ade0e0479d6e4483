"""Chains in blocks: the parameters t given the latent variables, then the latent variables given t.

    t given z    slices along the directions of t's spread in the warm-up, in the coordinates of the sites
                 (traced.py): t moves nearly as if f were integrated out; a density takes two factors
    z given t    NUTS (or elliptical slices), with all factors done: a gradient is O(n m)

The sites follow t: W, the slopes and f of the draws of a window, of all chains, are regressed on t
(`Surface`). Where classes are well separated the scale of f is open over orders of magnitude, and sites that
are right at one scale are wrong at another. Given t the density of z is
exp(-|z|^2 / 2 + sum_i log p(y_i | f_i) - b_i f_i + W_i f_i^2 / 2) with f = mu + G z, G = R U^-T.

Factors are LAPACK's, and no gradient goes through them: at n = 768 a density of t is thirty times faster than
the gradient of the whole. With all parameters held there is one factorisation a chain and window.

Sources: Neal 2003, Murray and Adams 2010 (slices); Hoffman and Gelman 2014 (NUTS); Murray, Adams and MacKay
2010, Nishihara, Murray and Adams 2014 (elliptical slices).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.linalg import blas, lapack

from gramian.arrays import Array
from gramian.inference.mcmc.traced import CurveSites, TracedProblem, from_latent, jittered, to_latent
from gramian.inference.mcmc.transitions import DOUBLINGS, FIRST_STEP, KEEP, adaptation
from gramian.inference.mcmc.unconstrained import number

WIDTH = 2.5  # of a slice's first bracket, in standard deviations of t along it
EXPANSIONS, SHRINKAGES = 10, 60
TRANSITIONS = 2  # of z a draw: cheap beside the factors that a slice of t needs
ELLIPSES = 15  # the same, by elliptical slices, of each of the two kinds
REACH = 3.0  # standard deviations of t up to which sites change, and the change of log W at most
SHARE = 5.0  # draws that the first guess of t's covariance counts as


class Surface(NamedTuple):
    """CurveSites for each t: those of a centre, and how they change along the directions of t's spread."""

    centre: Array  # (p,)
    C: Array  # (p, p): its columns are the directions, a standard deviation long; slices go along them
    made: Array  # (3, n, L): W, slope and f at the centre
    change: Array  # (p, 3, n, L): of log W, slope and f, by a standard deviation

    def at(self, t: Array) -> CurveSites:
        x = np.clip(np.linalg.solve(self.C, t - self.centre), -REACH, REACH) if t.size else t
        log_change, slope, F = np.tensordot(x, self.change, axes=1) if t.size else np.zeros_like(self.made)
        W = self.made[0] * np.exp(np.clip(log_change, -REACH, REACH))
        return CurveSites(W, self.made[1] + slope + W * (self.made[2] + F))


class Point(NamedTuple):
    """A place, its log density, and what was computed there."""

    t: Array
    value: float
    at: Any = None


class ChainState(NamedTuple):
    """A chain between two draws."""

    t: Array
    z: Array  # (m, L)
    surface: Surface
    size: Any  # of the adaptation of the step size
    step: Any
    # over the draws of a window: of x x' (1 + p, 1 + p) and x (W, slope, f) (1 + p, 3, n, L), x = (1, t)
    sums: tuple[Array, Array]
    at: Shared  # what belongs to t and the sites


@dataclass(frozen=True, eq=False)
class Shared:
    """What is the same for all latent variables at one t. Lists have one entry a latent."""

    R: list[Array]  # s_k R (n, m)
    mean: Array  # (n, L)
    log_prior: float
    parts: list[tuple[Array, Array]]  # U (m, m), lower, and U^-1 c (m,)
    sites: CurveSites

    def v_of(self, z: Array) -> Array:
        pairs = zip(self.parts, z.T, strict=True)
        return np.stack([blas.dtrsv(U, h + column, lower=1, trans=1) for (U, h), column in pairs], axis=1)

    def z_of(self, v: Array) -> Array:
        pairs = zip(self.parts, v.T, strict=True)
        return np.stack([blas.dtrmv(U, column, lower=1, trans=1) - h for (U, h), column in pairs], axis=1)

    def f_of(self, v: Array) -> Array:
        return self.mean + np.stack([R @ v[:, k] for k, R in enumerate(self.R)], axis=1)

    @cached_property
    def logdet(self) -> float:
        return float(sum(np.sum(np.log(np.diagonal(U))) for U, _ in self.parts))

    @cached_property
    def affine(self) -> tuple[Array, list[jax.Array]]:
        """mu (n, L) and G' (m, n) of f = mu + G z."""
        mu = self.f_of(self.v_of(np.zeros((self.R[0].shape[1], len(self.R)))))
        pairs = zip(self.R, self.parts, strict=True)
        return mu, [jnp.asarray(blas.dtrsm(1.0, U, R, side=1, lower=1, trans_a=1).T) for R, (U, _) in pairs]


def given(problem: TracedProblem, t: Array, surface: Surface) -> Shared | None:
    """The factors at t; None where a matrix has none."""
    matrices, mean, log_prior = _matrices(problem, t)
    mean, log_prior, dense = np.asarray(mean), float(log_prior), problem.kind == "dense"
    if not np.isfinite(log_prior):
        return None
    roots: dict[int, Array] = {}
    scale = np.asarray(problem.scale)
    for group, (_, latents) in zip(matrices, problem.kernels(), strict=True):
        root = np.asarray(group)
        if dense:
            # K is symmetric, and its transpose in LAPACK's order
            root, info = lapack.dpotrf(root.T, lower=1, clean=1)
            if info:
                return None
        roots |= {k: scale[k] * root for k in latents}
    R = [roots[k] for k in range(len(roots))]
    sites, parts = surface.at(t), []
    for k, root in enumerate(R):
        A = _curvature(root, np.sqrt(sites.W[:, k]), dense)
        U, info = lapack.dpotrf(A, lower=1, clean=1, overwrite_a=1)
        if info:
            return None
        c = root.T @ (sites.b[:, k] - sites.W[:, k] * mean[:, k])
        parts.append((U, blas.dtrsv(U, c, lower=1)))
    return Shared(R, mean, log_prior, parts, sites)


def _curvature(R: Array, root_W: Array, triangular: bool) -> Array:
    """I + R' W R, its lower half."""
    M = np.asfortranarray(root_W[:, None] * R)
    A = lapack.dlauum(M, lower=1, overwrite_c=1)[0] if triangular else blas.dsyrk(1.0, M, trans=1, lower=1)
    A.T.reshape(-1)[:: len(A) + 1] += 1.0
    return A


@jax.jit
def _matrices(problem: TracedProblem, t: jax.Array) -> tuple[list[jax.Array], jax.Array, jax.Array]:
    """K, or R of a feature basis, of each kernel; the mean; the log density of t alone."""
    here = problem.at(t)
    of = partial(jittered, X=problem.X) if problem.kind == "dense" else problem.root
    return ([of(kernel) for kernel, _ in here.kernels()], here.mean(), problem.log_prior(t))


@jax.jit
def _fit(problem: TracedProblem, t: jax.Array, F: jax.Array) -> jax.Array:
    return jnp.sum(problem.at(t).log_likelihoods(F))


@jax.jit
def _facts(problem: TracedProblem, t: jax.Array, F: jax.Array) -> tuple[jax.Array, ...]:
    """The parameters' values, log p(y_i | f_i), and the curvature and slope of the latter."""
    here = problem.at(t)
    sites = here.sites(F)
    return problem.flat_values(t), here.log_likelihoods(F), sites.W, sites.b - sites.W * F


def slice_along(
    density: Callable[[Array], Point], here: Point, direction: Array, rng: np.random.Generator
) -> tuple[Point, int]:
    """A draw from the density along a line through `here`, by stepping out and shrinkage (Neal 2003, figures
    3 and 5), and the densities it took."""
    level = here.value + math.log(1.0 - rng.random())
    left = -WIDTH * rng.random()
    down = int(EXPANSIONS * rng.random())
    ends, count = [left, left + WIDTH], 0
    for k, (room, width) in enumerate(((down, -WIDTH), (EXPANSIONS - 1 - down, WIDTH))):
        for _ in range(room):
            count += 1
            if not density(here.t + ends[k] * direction).value >= level:
                break
            ends[k] += width
    for _ in range(SHRINKAGES):
        a = ends[0] + rng.random() * (ends[1] - ends[0])
        there = density(here.t + a * direction)
        count += 1
        if there.value >= level:
            return there, count
        ends[0 if a < 0 else 1] = a
    return here, count


def _point(problem: TracedProblem, surface: Surface, z: Array, t: Array) -> Point:
    """The log density of t given z."""
    at = given(problem, t, surface)
    return Point(t, -math.inf) if at is None else Point(t, _value(problem, t, at, at.v_of(z)), at)


def fit_of(problem: TracedProblem, t: Array, at: Shared, v: Array) -> float:
    """log p(y | f) for the f of v."""
    return number_or_least(float(_fit(problem, t, at.f_of(v))))


def beyond_sites(problem: TracedProblem, t: Array, at: Shared, z: Array) -> float:
    """log p(y | f) for the f of z, less what the sites say of it."""
    F, (W, b) = at.f_of(at.v_of(z)), at.sites
    return number_or_least(float(_fit(problem, t, F)) - float(np.sum(b * F - 0.5 * W * F**2)))


def number_or_least(value: float) -> float:
    """Minus infinity where a density is no number."""
    return value if not math.isnan(value) else -math.inf


def _value(problem: TracedProblem, t: Array, at: Shared, v: Array) -> float:
    """log p(t, z) and the data, for the v of z."""
    fit, constant = float(_fit(problem, t, at.f_of(v))), 0.5 * v.size * math.log(2 * math.pi)
    return number_or_least(fit - 0.5 * float(np.sum(v**2)) - at.logdet - constant + at.log_prior)


# The latent variables. --------------------------------------------------------------------------------------


@partial(jax.jit, static_argnames="gradients")
def _moved(
    problem: TracedProblem, t: Any, at: Any, z: Any, key: Any, tuned: Any, adapt: Any, gradients: bool
) -> Any:
    """z after some transitions, acceptance, divergence and steps, and the adaptation of the step size. `at`
    has mu and G' of f = mu + G z, the sites, and, where there are no gradients, R and the parts of v."""
    here, shape, (mu, H, sites, roots, parts) = problem.at(t), z.shape, at

    def beyond_sites(flat: jax.Array) -> jax.Array:
        F = mu + jnp.stack([flat.reshape(shape)[:, k] @ G for k, G in enumerate(H)], axis=1)
        return number(jnp.sum(here.log_likelihoods(F)) - jnp.sum(sites.b * F - 0.5 * sites.W * F**2))

    def fit(flat: jax.Array) -> jax.Array:
        F = here.latent(roots, flat.reshape(shape))
        return number(jnp.sum(here.log_likelihoods(F)))

    if gradients:
        return _by_nuts(beyond_sites, z, key, tuned, adapt)
    return *_by_ellipses(beyond_sites, fit, parts, z, key), tuned


def _by_nuts(beyond_sites: Callable[[jax.Array], jax.Array], z: Any, key: Any, tuned: Any, adapt: Any) -> Any:
    from blackjax.mcmc import nuts

    kernel, (_, (_, update, _)), mass = nuts.build_kernel(), adaptation(), jnp.ones(z.size)

    def density(flat: jax.Array) -> jax.Array:
        return beyond_sites(flat) - 0.5 * jnp.sum(flat**2)

    def transition(k: jax.Array, carry: Any) -> Any:
        place, size, step, rate, divergent, steps = carry
        own = jax.random.fold_in(jax.random.wrap_key_data(key), k)
        place, info = kernel(own, place, density, step, mass, DOUBLINGS)
        size = jax.lax.cond(adapt, lambda size: update(size, info.acceptance_rate), lambda size: size, size)
        step = jnp.where(adapt, jnp.exp(size.log_step_size), step)
        rate, divergent = rate + info.acceptance_rate / TRANSITIONS, divergent | info.is_divergent
        return place, size, step, rate, divergent, steps + info.num_integration_steps

    start = (nuts.init(z.ravel(), density), *tuned, jnp.zeros(()), jnp.array(False), jnp.zeros((), int))
    place, *tuned, rate, divergent, steps = jax.lax.fori_loop(0, TRANSITIONS, transition, start)
    return place.position.reshape(z.shape), rate, divergent, steps, tuple(tuned)


def _by_ellipses(beyond_sites: Any, fit: Any, parts: Any, z: Any, key: Any) -> Any:
    """Some against the Gaussian of the sites, some against the prior, for tails that the sites have not."""
    from blackjax.mcmc import elliptical_slice

    kernel = elliptical_slice.build_kernel(jnp.ones(z.size), jnp.zeros(z.size))

    def turns(key: jax.Array, start: jax.Array, fit: Any) -> tuple[jax.Array, jax.Array]:
        def turn(k: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
            place, info = kernel(jax.random.fold_in(key, k), carry[0], fit)
            return place, carry[1] + info.subiter

        first = (elliptical_slice.init(start.ravel(), fit), jnp.zeros((), int))
        place, count = jax.lax.fori_loop(0, ELLIPSES, turn, first)
        return place.position.reshape(z.shape), count

    by_z, by_v = jax.random.split(jax.random.wrap_key_data(key))
    z, first = turns(by_z, z, beyond_sites)
    v, second = turns(by_v, to_latent(parts, z)[0], fit)
    return from_latent(parts, v), jnp.ones(()), jnp.array(False), first + second


# A piece of a chain. ----------------------------------------------------------------------------------------


# (problem, t, what belongs to t, z, rng, step size, whether to adapt that) -> z after some transitions, their
# acceptance, whether one diverged, how many steps they took, step size
Move = Callable[[TracedProblem, Array, Shared, Array, np.random.Generator, Any, bool], Any]


def compiled_move(gradients: bool) -> Move:
    """By NUTS, or without gradients by elliptical slices."""

    def move(
        problem: TracedProblem,
        t: Array,
        at: Shared,
        z: Array,
        rng: np.random.Generator,
        tuned: Any,
        adapt: bool,
    ) -> Any:
        key = rng.integers(2**32, size=2, dtype=np.uint32)
        parts = (*at.affine, at.sites, *(((), ()) if gradients else (at.R, at.parts)))
        return _moved(problem, t, parts, z, key, tuned, np.array(adapt), gradients=gradients)

    return move


def blocks(
    problem: TracedProblem, move: Move, state: ChainState, key: Any, first: int, count: int, stages: Any
) -> tuple[ChainState, tuple[Array, ...]]:
    """`count` draws: the state after them, and their rows as `transitions.nuts` writes them."""
    rows = []
    for i in range(count):
        seeds = np.random.default_rng([*np.asarray(key, dtype=np.int64), first + i])
        state, row = _draw(problem, move, state, seeds, bool(stages[i, 0] != KEEP))
        rows.append(row)
    return state, tuple(np.array(part) for part in zip(*rows, strict=True)) or (np.zeros(0),) * 7


def _draw(
    problem: TracedProblem, move: Move, state: ChainState, rng: np.random.Generator, adapt: bool
) -> tuple[ChainState, tuple[Any, ...]]:
    t, z, at, count = state.t, state.z, state.at, 0
    if problem.size:
        here = Point(t, _value(problem, t, at, at.v_of(z)), at)
        density = partial(_point, problem, state.surface, z)
        for k in rng.permutation(problem.size):
            here, took = slice_along(density, here, state.surface.C[:, k], rng)
            count += took
        assert here.at is not None  # a point that was accepted has its factors
        t, at = here.t, here.at
    moved = move(problem, t, at, z, rng, (state.size, state.step), adapt)
    moved_z, rate, divergent, steps, (size, step) = moved
    z = np.asarray(moved_z)
    v = at.v_of(z)
    F = at.f_of(v)
    values, log_likelihood, W, slope = (np.asarray(part) for part in _facts(problem, t, F))
    sums, x = state.sums, np.append(1.0, t)
    if adapt:
        made = x[:, None, None, None] * np.stack([W, slope, F])
        sums = sums[0] + np.outer(x, x), sums[1] + made
    told = (_value(problem, t, at, v), bool(divergent), float(rate), count + int(steps))
    return ChainState(t, z, state.surface, size, step, sums, at), (values, v.ravel(), *told, log_likelihood)


def sites_at_mean(problem: TracedProblem, t: Array) -> CurveSites:
    """Where f is the prior's mean: a start for sites that takes no climb to a mode."""
    F = np.asarray(_matrices(problem, t)[1])
    _, _, W, slope = (np.asarray(part) for part in _facts(problem, t, F))
    return CurveSites(W, slope + W * F)


# The warm-up. -----------------------------------------------------------------------------------------------


def begin(problem: TracedProblem, t: Array, z: Array, sites: CurveSites) -> ChainState | None:
    """A chain at its start; None where the density there is no finite number."""
    if not all(np.all(np.isfinite(part)) for part in sites):
        return None
    # b alone is known of the start: as a slope with f = 0.
    made = np.stack([sites.W, sites.b, np.zeros_like(sites.b)])
    surface = Surface(t, np.eye(problem.size), made, np.zeros((problem.size, *made.shape)))
    here = _point(problem, surface, z, t)
    if not math.isfinite(here.value):
        return None
    return ChainState(t, z, surface, *_first_step(FIRST_STEP), _nothing(problem), here.at)


def renewed(problem: TracedProblem, states: list[ChainState]) -> list[ChainState]:
    """With the sites and the directions of t that all chains have met since the last time."""
    surface = _surface(*(sum(parts) for parts in zip(*(state.sums for state in states), strict=True)))

    def one(state: ChainState) -> ChainState:
        at = given(problem, state.t, surface)
        if at is None:
            return state
        z, tuned = at.z_of(state.at.v_of(state.z)), _first_step(float(np.exp(state.size.log_step_size_avg)))
        return ChainState(state.t, z, surface, *tuned, _nothing(problem), at)

    return [one(state) for state in states]


def _surface(squares: Array, products: Array) -> Surface:
    """By regression on t, towards no change where there are few draws. With slope and f at their means given
    t the sites' Gaussian has the posterior's own mean: K^-1 (E f - m) = E slope (Stein's identity)."""
    N, p = squares[0, 0], len(squares) - 1
    centre, made = squares[0, 1:] / N, products[0] / N
    if not p:
        return Surface(centre, np.zeros((0, 0)), made, np.zeros((0, *made.shape)))
    spread = (squares[1:, 1:] - N * np.outer(centre, centre) + SHARE * 1e-2 * np.eye(p)) / (N + SHARE)
    C = lapack.dpotrf(spread, lower=1)[0]
    together = products[1:] / N - centre[:, None, None, None] * made
    change = blas.dtrsm(N / (N + SHARE * p), C, together.reshape(p, -1), lower=1).reshape(together.shape)
    change[:, 0] /= np.maximum(made[0], 1e-300)
    return Surface(centre, C, made, change)


def whole(problem: TracedProblem, state: ChainState) -> ChainState:
    """A state with what belongs to its t and sites."""
    at = given(problem, state.t, state.surface)
    assert at is not None  # a chain is where there are factors
    return state._replace(at=at)


def settled(state: ChainState) -> ChainState:
    """After warm-up the step size is the average of those that were tried."""
    return state._replace(step=np.exp(np.asarray(state.size.log_step_size_avg)))


def _first_step(step: float) -> tuple[Any, Array]:
    _, (init, *_) = adaptation()
    return jax.tree_util.tree_map(np.asarray, init(step)), np.array(step)


def _nothing(problem: TracedProblem) -> tuple[Array, Array]:
    p = 1 + problem.size
    return np.zeros((p, p)), np.zeros((p, 3, len(problem.X), len(problem.scale)))
