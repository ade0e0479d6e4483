"""Chains by slices on the host: whatever is compiled for them, a density alone, takes moments.

To compile NUTS takes some ten times as long as to compile the density it moves by, seconds on a busy machine;
a chain that has no time for that draws this way.

    f integrated out    t by slices along the directions of its spread in the warm-up
    otherwise           the blocks of blocks.py, with elliptical slices made here for the latent variables

Sources: Neal 2003 (slices), Murray, Adams and MacKay 2010 (elliptical slices).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.linalg import lapack

from gramian.arrays import Array
from gramian.inference.mcmc.blocks import SHARE, Point, Shared, beyond_sites, fit_of, slice_along
from gramian.inference.mcmc.traced import CurveSites, TracedProblem
from gramian.inference.mcmc.transitions import KEEP

ELLIPSES = 5  # of the latent variables a draw, of each of the two kinds


class SliceState(NamedTuple):
    """A chain of t between two draws."""

    here: Point
    C: Array  # (p, p): its columns are the directions, a standard deviation long
    sums: Array  # of (1, t) (1, t)' over the draws of a window: (1 + p, 1 + p)


@jax.jit
def _density(problem: TracedProblem, t: jax.Array) -> jax.Array:
    return problem.log_density(t, CurveSites(None, None))


@jax.jit
def _flat(problem: TracedProblem, t: jax.Array) -> jax.Array:
    return problem.flat_values(t)


def _point(problem: TracedProblem, t: Array) -> Point:
    return Point(t, float(_density(problem, t)))


def begin(problem: TracedProblem, t: Array) -> SliceState | None:
    """A chain at its start; None where the density there is no finite number."""
    here, p = _point(problem, t), problem.size
    return SliceState(here, np.eye(p), np.zeros((1 + p, 1 + p))) if math.isfinite(here.value) else None


def slices(
    problem: TracedProblem, state: SliceState, key: Any, first: int, count: int, stages: Any
) -> tuple[SliceState, tuple[Array, ...]]:
    """`count` draws: the state after them, and their rows as `transitions.nuts` writes them."""
    rows: list[tuple[Any, ...]] = []
    for i in range(count):
        rng = np.random.default_rng([*np.asarray(key, dtype=np.int64), first + i])
        here, C, sums = state
        taken = 0
        for k in rng.permutation(problem.size):
            here, took = slice_along(lambda t: _point(problem, t), here, C[:, k], rng)
            taken += took
        if stages[i, 0] != KEEP:
            x = np.append(1.0, here.t)
            sums = sums + np.outer(x, x)
        state = SliceState(here, C, sums)
        values = np.asarray(_flat(problem, here.t))
        rows.append((values, np.zeros(0), here.value, False, 1.0, taken, np.zeros(0)))
    return state, tuple(np.array(part) for part in zip(*rows, strict=True)) or (np.zeros(0),) * 7


def renewed(states: list[SliceState]) -> list[SliceState]:
    """With the directions of t that all chains have met since the last time."""
    squares = np.sum([state.sums for state in states], axis=0)
    N, centre = squares[0, 0], squares[0, 1:] / squares[0, 0]
    p = len(centre)
    spread = (squares[1:, 1:] - N * np.outer(centre, centre) + SHARE * 1e-2 * np.eye(p)) / (N + SHARE)
    C = lapack.dpotrf(spread, lower=1)[0]
    return [SliceState(state.here, C, np.zeros_like(state.sums)) for state in states]


def whole(state: SliceState) -> SliceState:
    """A state whose density is a number again, not an array of one."""
    return state._replace(here=state.here._replace(value=float(state.here.value)))


# The latent variables, as blocks.py moves them. -------------------------------------------------------------


def by_host_ellipses(
    problem: TracedProblem, t: Array, at: Shared, z: Array, rng: np.random.Generator, tuned: Any, adapt: bool
) -> tuple[Array, float, bool, int, Any]:
    """z after some transitions, acceptance, divergence and densities, and the step size as it was: some
    against the Gaussian of the sites, some against the prior, for tails that the sites have not."""
    z, first = _turned(lambda z: beyond_sites(problem, t, at, z), z, rng)
    v, second = _turned(lambda v: fit_of(problem, t, at, v), at.v_of(z), rng)
    return at.z_of(v), 1.0, False, first + second, tuned


def _turned(density: Callable[[Array], float], place: Array, rng: np.random.Generator) -> tuple[Array, int]:
    """Some elliptical slices of N(0, I) times a density, and the densities they took."""
    value, count = density(place), 1
    for _ in range(ELLIPSES):
        other, level = rng.standard_normal(place.shape), value + math.log(1.0 - rng.random())
        angle = 2 * math.pi * rng.random()
        low, high = angle - 2 * math.pi, angle
        while True:
            there = math.cos(angle) * place + math.sin(angle) * other
            found, count = density(there), count + 1
            if found >= level:
                place, value = there, found
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            if high - low < 1e-9:  # rounding hides the slice: stay
                break
            angle = low + (high - low) * rng.random()
    return place, count
