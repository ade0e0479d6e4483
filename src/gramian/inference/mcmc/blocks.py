"""Chains in blocks: the parameters t given the latent variables, then the latent variables given t.

    t given z    slices along the directions of t's spread in the warm-up, in the coordinates of the sites
                 (`inference/mcmc/traced.py`), in which t moves nearly as if f were integrated out: a density
                 takes two factors
    z given t    NUTS (or elliptical slices, which need no gradient), with all factors done: a gradient is
                 O(n m)

The sites follow t: W, the slopes and f of the draws of a window, of all chains, are regressed on t
(`Surface`). Where classes are well separated the scale of f is open over orders of magnitude, and sites that
are right at one scale are wrong at another. Any sites leave the density exact. Given t that of z is
exp(-|z|^2 / 2 + sum_i log p(y_i | f_i) - b_i f_i + W_i f_i^2 / 2) with f = mu + G z, G = R U^-T.

Factors are LAPACK's, called from here rather than from inside a compiled program, and no gradient goes
through them: at n = 768 a density of t is thirty times faster than the gradient of the whole. With all
parameters held there is one factorisation a chain and window.

Sources: Neal 2003 (slices by stepping out and shrinkage); Murray and Adams 2010 (parameters of latent
Gaussian models by slices); Hoffman and Gelman 2014 (NUTS); Murray, Adams and MacKay 2010, Nishihara, Murray
and Adams 2014 (elliptical slices).
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
from jax.scipy.linalg import solve_triangular
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from gramian.inference.mcmc.slices import Point, slice_along
from gramian.inference.mcmc.traced import CurveSites, TracedProblem, jittered
from gramian.inference.mcmc.transitions import DOUBLINGS, KEEP, adaptation
from gramian.inference.mcmc.unconstrained import number
from gramian.inference.model import Array

FIRST_STEP = 0.3
TRANSITIONS = 2  # of z a draw: cheap beside the factors that a slice of t needs
ELLIPSES = 15  # the same, by elliptical slices, of each of the two kinds
REACH = 3.0  # standard deviations of t up to which sites change, and the change of log W at most
SHARE = 5.0  # draws that the first guess of t's covariance counts as


class WindowSums(NamedTuple):
    """Over the draws of a window: how many, t and its products, and what sites are made of, W, slope and f,
    with its products with t."""

    draws: float
    t: Array  # (p,)
    square: Array  # (p, p)
    made: Array  # (3, n, L)
    product: Array  # (p, 3, n, L)


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


class ChainState(NamedTuple):
    """A chain between two draws."""

    t: Array
    z: Array  # (m, L)
    surface: Surface
    size: Any  # of the adaptation of the step size
    step: Any
    sums: WindowSums
    at: Given  # what belongs to t and the sites


@dataclass(frozen=True, eq=False)
class Given:
    """What is the same for all latent variables at one t. Lists have one entry a latent."""

    R: list[Array]  # s_k R (n, m)
    mean: Array  # (n, L)
    log_prior: float
    U: list[Array]  # (m, m), lower
    half: list[Array]  # U^-1 c (m,)
    sites: CurveSites

    def v_of(self, z: Array) -> Array:
        return np.stack(
            [
                blas.dtrsv(U, h + z[:, k], lower=1, trans=1)
                for k, (U, h) in enumerate(zip(self.U, self.half, strict=True))
            ],
            axis=1,
        )

    def z_of(self, v: Array) -> Array:
        return np.stack(
            [
                blas.dtrmv(U, v[:, k], lower=1, trans=1) - h
                for k, (U, h) in enumerate(zip(self.U, self.half, strict=True))
            ],
            axis=1,
        )

    def f_of(self, v: Array) -> Array:
        return self.mean + np.stack([R @ v[:, k] for k, R in enumerate(self.R)], axis=1)

    @cached_property
    def logdet(self) -> float:
        return float(sum(np.sum(np.log(np.diagonal(U))) for U in self.U))

    @cached_property
    def affine(self) -> tuple[Array, list[jax.Array]]:
        """mu (n, L) and G' (m, n) of f = mu + G z."""
        mu = self.f_of(self.v_of(np.zeros((self.U[0].shape[0], len(self.U)))))
        return mu, [
            jnp.asarray(blas.dtrsm(1.0, U, R, side=1, lower=1, trans_a=1).T)
            for R, U in zip(self.R, self.U, strict=True)
        ]


def given(problem: TracedProblem, t: Array, surface: Surface) -> Given | None:
    """The factors at t; None where a matrix has none."""
    matrices, mean, log_prior = _matrices(problem, t)
    mean, log_prior = np.asarray(mean), float(log_prior)
    if not np.isfinite(log_prior):
        return None
    R: list[Array] = []
    for group, scale in zip(matrices, _scales(problem), strict=True):
        root = np.asarray(group)
        if problem.kind == "dense":
            # K is symmetric, and its transpose in LAPACK's order
            root, info = lapack.dpotrf(root.T, lower=1, clean=1)
            if info:
                return None
        R += [s * root for s in scale]
    order = [k for _, latents in problem.kernels(problem.model) for k in latents]
    R = [R[order.index(k)] for k in range(len(order))]
    sites, Us, halves = surface.at(t), [], []
    for k, root in enumerate(R):
        U, info = lapack.dpotrf(
            _curvature(root, np.sqrt(sites.W[:, k]), problem.kind == "dense"), lower=1, clean=1, overwrite_a=1
        )
        if info:
            return None
        Us.append(U)
        halves.append(blas.dtrsv(U, root.T @ (sites.b[:, k] - sites.W[:, k] * mean[:, k]), lower=1))
    return Given(R, mean, log_prior, Us, halves, sites)


def _curvature(R: Array, root_W: Array, triangular: bool) -> Array:
    """I + R' W R, its lower half."""
    M = np.asfortranarray(root_W[:, None] * R)
    A = lapack.dlauum(M, lower=1, overwrite_c=1)[0] if triangular else blas.dsyrk(1.0, M, trans=1, lower=1)
    A.T.reshape(-1)[:: len(A) + 1] += 1.0
    return A


def _scales(problem: TracedProblem) -> list[Array]:
    """s_k of the latents of each kernel."""
    scale = np.asarray(problem.scale)
    return [scale[latents] for _, latents in problem.kernels(problem.model)]


@jax.jit
def _matrices(problem: TracedProblem, t: jax.Array) -> tuple[list[jax.Array], jax.Array, jax.Array]:
    """K, or R of a feature basis, of each kernel; the mean; the log density of t alone."""
    bare = problem.at(t)
    of = partial(jittered, X=problem.X) if problem.kind == "dense" else problem.root
    return ([of(kernel) for kernel, _ in problem.kernels(bare)], problem.mean(bare), problem.log_prior(t))


@jax.jit
def _fit(problem: TracedProblem, t: jax.Array, F: jax.Array) -> jax.Array:
    return jnp.sum(problem.log_likelihoods(problem.at(t), F))


@jax.jit
def _facts(problem: TracedProblem, t: jax.Array, F: jax.Array) -> tuple[jax.Array, ...]:
    """The parameters' values, log p(y_i | f_i), and the curvature and slope of the latter."""
    bare = problem.at(t)
    values = jnp.concatenate([jnp.ravel(value) for value in problem.values(t)]) if problem.size else t
    sites = problem.sites(bare, F)
    return values, problem.log_likelihoods(bare, F), sites.W, sites.b - sites.W * F


# t by slices. -----------------------------------------------------------------------------------------------


def _sweep(
    density: Callable[[Array], Point], here: Point, C: Array, rng: np.random.Generator
) -> tuple[Point, int]:
    total = 0
    for k in rng.permutation(len(C)):
        here, count = slice_along(density, here, C[:, k], rng)
        total += count
    return here, total


def _density(problem: TracedProblem, surface: Surface, z: Array) -> Callable[[Array], Point]:
    """The log density of t given z."""

    def density(t: Array) -> Point:
        at = given(problem, t, surface)
        return Point(t, -math.inf, None) if at is None else Point(t, _value(problem, t, at, at.v_of(z)), at)

    return density


def _value(problem: TracedProblem, t: Array, at: Given, v: Array) -> float:
    """log p(t, z) and the data, for the v of z."""
    value = (
        float(_fit(problem, t, at.f_of(v)))
        - 0.5 * float(np.sum(v**2))
        - at.logdet
        - 0.5 * v.size * math.log(2 * math.pi)
        + at.log_prior
    )
    return value if not math.isnan(value) else -math.inf


# The latent variables. --------------------------------------------------------------------------------------


@partial(jax.jit, static_argnames="gradients")
def _moved(
    problem: TracedProblem,
    t: Any,
    mu: Any,
    H: Any,
    v_parts: Any,
    sites: CurveSites,
    z: Any,
    key: Any,
    size: Any,
    step: Any,
    adapt: Any,
    gradients: bool,
) -> Any:
    """z after some transitions, the adaptation of the step size, and acceptance, divergence and steps."""
    bare, shape = problem.at(t), z.shape

    def beyond_sites(flat: jax.Array) -> jax.Array:
        F = mu + jnp.stack([flat.reshape(shape)[:, k] @ G for k, G in enumerate(H)], axis=1)
        return number(jnp.sum(problem.log_likelihoods(bare, F)) - jnp.sum(sites.b * F - 0.5 * sites.W * F**2))

    if gradients:
        return _by_nuts(beyond_sites, z, key, size, step, adapt)
    return *_by_ellipses(problem, bare, beyond_sites, v_parts, z, key), size, step


def _by_nuts(
    beyond_sites: Callable[[jax.Array], jax.Array], z: Any, key: Any, size: Any, step: Any, adapt: Any
) -> Any:
    from blackjax.mcmc import nuts

    kernel, (_, (_, update, _)) = nuts.build_kernel(), adaptation()

    def density(flat: jax.Array) -> jax.Array:
        return beyond_sites(flat) - 0.5 * jnp.sum(flat**2)

    def transition(k: jax.Array, carry: Any) -> Any:
        place, size, step, rate, divergent, steps = carry
        place, info = kernel(
            jax.random.fold_in(jax.random.wrap_key_data(key), k),
            place,
            density,
            step,
            jnp.ones(z.size),
            DOUBLINGS,
        )
        size = jax.lax.cond(adapt, lambda size: update(size, info.acceptance_rate), lambda size: size, size)
        step = jnp.where(adapt, jnp.exp(size.log_step_size), step)
        return (
            place,
            size,
            step,
            rate + info.acceptance_rate / TRANSITIONS,
            divergent | info.is_divergent,
            steps + info.num_integration_steps,
        )

    start = (nuts.init(z.ravel(), density), size, step, jnp.zeros(()), jnp.array(False), jnp.zeros((), int))
    place, size, step, rate, divergent, steps = jax.lax.fori_loop(0, TRANSITIONS, transition, start)
    return place.position.reshape(z.shape), rate, divergent, steps, size, step


def _by_ellipses(
    problem: TracedProblem,
    bare: Any,
    beyond_sites: Callable[[jax.Array], jax.Array],
    v_parts: Any,
    z: Any,
    key: Any,
) -> Any:
    """Some against the Gaussian of the sites, some against the prior, for tails that the sites have not."""
    from blackjax.mcmc import elliptical_slice

    kernel, (roots, parts) = elliptical_slice.build_kernel(jnp.ones(z.size), jnp.zeros(z.size)), v_parts

    def fit(flat: jax.Array) -> jax.Array:
        return number(
            jnp.sum(problem.log_likelihoods(bare, problem.latent(bare, roots, flat.reshape(z.shape))))
        )

    def turns(
        key: jax.Array, flat: jax.Array, fit: Callable[[jax.Array], jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        def turn(k: jax.Array, carry: tuple[Any, jax.Array]) -> tuple[Any, jax.Array]:
            place, info = kernel(jax.random.fold_in(key, k), carry[0], fit)
            return place, carry[1] + info.subiter

        place, count = jax.lax.fori_loop(
            0, ELLIPSES, turn, (elliptical_slice.init(flat, fit), jnp.zeros((), int))
        )
        return place.position, count

    by_z, by_v = jax.random.split(jax.random.wrap_key_data(key))
    flat, first = turns(by_z, z.ravel(), beyond_sites)
    v = jnp.stack(
        [
            solve_triangular(U, half + flat.reshape(z.shape)[:, k], lower=True, trans=1)
            for k, (U, half) in enumerate(parts)
        ],
        axis=1,
    )
    flat, second = turns(by_v, v.ravel(), fit)
    v = flat.reshape(z.shape)
    z = jnp.stack([U.T @ v[:, k] - half for k, (U, half) in enumerate(parts)], axis=1)
    return z, jnp.ones(()), jnp.array(False), first + second


# A piece of a chain. ----------------------------------------------------------------------------------------


def blocks(
    problem: TracedProblem,
    state: ChainState,
    key: Any,
    first: int,
    count: int,
    stages: NDArray[np.int64],
    gradients: bool,
) -> tuple[ChainState, tuple[Array, ...]]:
    """`count` draws: the state after them, and their rows as `transitions.nuts` writes them."""
    rows = []
    for i in range(count):
        seeds = np.random.default_rng([*np.asarray(key, dtype=np.int64), first + i])
        state, row = _draw(problem, state, seeds, bool(stages[i, 0] != KEEP), gradients)
        rows.append(row)
    return state, (
        tuple(np.array(part) for part in zip(*rows, strict=True))
        if rows
        else tuple(np.zeros(0) for _ in range(7))
    )


def _draw(
    problem: TracedProblem, state: ChainState, rng: np.random.Generator, adapt: bool, gradients: bool
) -> tuple[ChainState, tuple[Any, ...]]:
    t, z, surface, at, count = state.t, state.z, state.surface, state.at, 0
    if problem.size:
        here, count = _sweep(
            _density(problem, surface, z), Point(t, _value(problem, t, at, at.v_of(z)), at), surface.C, rng
        )
        assert here.at is not None  # a point that was accepted has its factors
        t, at = here.t, here.at
    mu, H = at.affine
    key = rng.integers(2**32, size=2, dtype=np.uint32)
    v_parts = ((), ()) if gradients else (at.R, list(zip(at.U, at.half, strict=True)))
    moved_z, rate, divergent, steps, size, step = _moved(
        problem,
        t,
        mu,
        H,
        v_parts,
        at.sites,
        z,
        key,
        state.size,
        state.step,
        np.array(adapt),
        gradients=gradients,
    )
    z = np.asarray(moved_z)
    v = at.v_of(z)
    F = at.f_of(v)
    values, log_likelihood, W, slope = (np.asarray(part) for part in _facts(problem, t, F))
    sums = _added(state.sums, t, np.stack([W, slope, F])) if adapt else state.sums
    row = (
        values,
        v.ravel(),
        _value(problem, t, at, v),
        bool(divergent),
        float(rate),
        count + int(steps),
        log_likelihood,
    )
    return ChainState(t, z, surface, size, step, sums, at), row


# The warm-up. -----------------------------------------------------------------------------------------------


def begin(problem: TracedProblem, t: Array, z: Array, sites: CurveSites) -> ChainState | None:
    """A chain at its start; None where the density there is no finite number."""
    if not all(np.all(np.isfinite(part)) for part in sites):
        return None
    # b alone is known of the start: as a slope with f = 0.
    surface = Surface(
        t,
        np.eye(problem.size),
        np.stack([sites.W, sites.b, np.zeros_like(sites.b)]),
        np.zeros((problem.size, 3, *sites.W.shape)),
    )
    at = given(problem, t, surface)
    if at is None or not math.isfinite(_value(problem, t, at, at.v_of(z))):
        return None
    return ChainState(t, z, surface, *_first_step(FIRST_STEP), _nothing(problem), at)


def renewed(problem: TracedProblem, states: list[ChainState]) -> list[ChainState]:
    """With the sites and the directions of t that all chains have met since the last time."""
    surface = _surface(
        WindowSums(*(sum(parts) for parts in zip(*(state.sums for state in states), strict=True)))
    )
    out = []
    for state in states:
        at = given(problem, state.t, surface)
        if at is None:
            out.append(state)
            continue
        z = at.z_of(state.at.v_of(state.z))
        out.append(
            ChainState(
                state.t,
                z,
                surface,
                *_first_step(float(np.exp(state.size.log_step_size_avg))),
                _nothing(problem),
                at,
            )
        )
    return out


def _surface(sums: WindowSums) -> Surface:
    """By regression on t, towards no change where there are few draws. With the slope and f at their means
    given t the Gaussian of the sites has the posterior's own mean, since K^-1 (E f - m) = E slope (Stein's
    identity)."""
    N, p = sums.draws, len(sums.t)
    centre, made = sums.t / N, sums.made / N
    if not p:
        return Surface(centre, np.zeros((0, 0)), made, np.zeros((0, *made.shape)))
    C = lapack.dpotrf(
        (sums.square - N * np.outer(centre, centre) + SHARE * 1e-2 * np.eye(p)) / (N + SHARE), lower=1
    )[0]
    together = sums.product / N - centre[:, None, None, None] * made
    change = blas.dtrsm(N / (N + SHARE * p), C, together.reshape(p, -1), lower=1).reshape(together.shape)
    change[:, 0] /= np.maximum(made[0], 1e-300)
    return Surface(centre, C, made, change)


def _added(s: WindowSums, t: Array, made: Array) -> WindowSums:
    return WindowSums(
        s.draws + 1,
        s.t + t,
        s.square + np.outer(t, t),
        s.made + made,
        s.product + t[:, None, None, None] * made,
    )


def settled(state: ChainState) -> ChainState:
    """After warm-up the step size is the average of those that were tried."""
    return state._replace(step=np.exp(np.asarray(state.size.log_step_size_avg)))


def _first_step(step: float) -> tuple[Any, Array]:
    _, (init, *_) = adaptation()
    return jax.tree_util.tree_map(np.asarray, init(step)), np.array(step)


def _nothing(problem: TracedProblem) -> WindowSums:
    p, made = problem.size, (3, len(problem.X), len(problem.scale))
    return WindowSums(0.0, np.zeros(p), np.zeros((p, p)), np.zeros(made), np.zeros((p, *made)))
