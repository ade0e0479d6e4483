"""Markov chains on the density of a `TracedProblem`, by blackjax, several at once on threads.

    blocks  t by slices given the latent variables, these by NUTS given t (`inference/mcmc/blocks.py`)
    ess     the same with elliptical slices for the latent variables: no gradient
    slices  the same, or t alone where f is integrated out, with nothing but a density compiled
            (`inference/mcmc/slices.py`): for who has no time to compile the others
    nuts    the no-U-turn sampler on all of (t, z), with Stan's warm-up: the step size by dual averaging to an
            acceptance of TARGET, a diagonal mass matrix from windows of doubling length

A chain is run in pieces of about a second, so that progress is seen and an end by time or Ctrl-C leaves whole
draws. The random numbers of a draw depend on the seed, the chain and the draw's number alone. The chains go
on, in rounds, until there are `enough` draws. When KEPT rounds are held and another one begins, every second
draw is let go, and from then on a kept draw is the last of two, then of four, ...: long chains take neither
more memory nor more time to predict from.

Chains run on threads rather than side by side in one program: there all of them would wait for the longest
trajectory at each draw. Sources: Hoffman and Gelman 2014, Betancourt 2017 (NUTS), and those of blocks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian import clock, forks, journal
from gramian.arrays import AnyArray, Array
from gramian.engines.base import Share
from gramian.errors import CheckpointError, NumericalError, ParameterError
from gramian.inference.mcmc import blocks, slices
from gramian.inference.mcmc.chains import ask_packages
from gramian.inference.mcmc.traced import CurveSites, TracedProblem, from_latent, to_latent
from gramian.inference.mcmc.transitions import FIRST_STEP, KEEP, LONGEST, adaptation, nuts
from gramian.inference.mcmc.unconstrained import number
from gramian.linalg.threads import count, one_blas_thread

CHAINS, WARMUP, DRAWS = 4, 250, 400
PIECE_SECONDS = 1.0
NEWTON_STEPS = 15
KEPT = 4  # rounds of draws that are held at once, and KEPT_DRAWS at least: enough to be judged by
KEPT_DRAWS = 400
LONGEST_STRIDE = 32  # transitions a kept draw, at most
# how often as long as to compile a density it takes to compile what moves by its gradients (8 to 13 on one
# machine, busy or not), and as to compile the starts (2 to 3): it is begun where that is no more than half of
# the time
COMPILED, AFTER_STARTS, MOST_COMPILING = 12.0, 3.0, 0.5
STARTS = 12  # tries to find a start with a finite density, each closer to the model's own parameters

COUNTS = ("made", "every", "kept", "warmed")  # of a journal
# draws after which curvatures are taken anew, before the first window: a chain may start far from where it
# belongs
EARLY = (10, 25, 50)


class Draws(NamedTuple):
    """What a piece of a chain leaves: arrays with one row a draw."""

    values: Array  # (draws, p): of the trainable parameters, flat
    latent: Array  # (draws, m L)
    log_density: Array
    divergent: NDArray[np.bool_]
    acceptance: Array
    steps: NDArray[np.int64]  # gradients for NUTS, densities for slices
    log_likelihood: Array  # (draws, n)


class ChainRun(NamedTuple):
    """All chains: the arrays of `Draws` with an axis for the chains in front."""

    draws: Draws
    sampler: str
    warmup: int
    stopped: str  # "", "time limit" or "interrupted"
    seconds: float


T = TypeVar("T")
Enough = Callable[[ChainRun], bool]
Rng = np.random.Generator


class Sampler(NamedTuple):
    """How chains begin, go on, and adapt."""

    name: str
    # from t and z in units of the sites at the mode; None where the density is no finite number
    start: Callable[[Array, Array], Any]
    step: Callable[..., Any]  # (state, key, first, count, stages) -> (state, rows)
    renew: Callable[[list[Any]], list[Any]]
    settle: Callable[[Any], Any]
    kept: int  # windows at the end of the warm-up that renew nothing, for a mass matrix
    trial: int  # draws after which all programs are compiled
    whole: Callable[[Any], Any] = lambda state: state  # a state from its arrays alone


class Lengths(NamedTuple):
    """How many chains, and how long they are."""

    chains: int = CHAINS
    warmup: int = WARMUP
    draws: int = DRAWS
    rounds: int = 1  # of so many draws, at most
    report: Share | None = None  # is told the share of the work done
    deadline: float | None = None  # of `clock.now()`

    def check(self) -> None:
        for name, least in {"chains": 1, "warmup": 0, "draws": 4, "rounds": 1}.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
                raise ParameterError(f"MCMC: {name}={value!r} must be a whole number from {least} on.")


def run(
    problem: TracedProblem, start: Array, rng: Rng, sampler: str, lengths: Lengths, enough: Enough
) -> ChainRun:
    """Warm-up and draws of all chains, from starts around `start`, in rounds until there are `enough`."""
    forks.check()
    chains = lengths.chains
    began = clock.now()
    ask_packages()
    with one_blas_thread(), jax.enable_x64(True):
        problem = jax.device_put(problem)
        quick, end = _sliced(problem), lengths.deadline
        _, asked = in_time(sampler, lambda: quick.start(start, _nowhere(problem)), end, COMPILED)
        sampler = journal.chosen("sampler to begin with", str, lambda: asked)
        seeds = rng.integers(2**31, size=chains)
        keys = [np.asarray(jax.random.key_data(jax.random.key(int(seed)))) for seed in seeds]

        def begun() -> tuple[Sampler, list[Any]]:
            method = _sampler(problem, sampler)
            return method, [_start(problem, method, start, rng) for _ in range(chains)]

        (method, states), after = in_time(sampler, begun, end, AFTER_STARTS)
        sampler = journal.chosen("sampler", str, lambda: after)
        if method.name != sampler:
            method, states = begun()
        # compiles, before there are threads
        method.step(states[0], keys[0], 0, method.trial, _padded([(0, 0)] * method.trial))
    with one_blas_thread(), ThreadPoolExecutor(max(1, min(chains, count()))) as pool:
        return _rounds(_Crew(method, keys, states, pool), lengths, enough, began)


def in_time(sampler: str, first: Callable[[], T], deadline: float | None, times: float) -> tuple[T, str]:
    """What comes first, and the sampler to go on with: slices where to compile the rest, `times` as long as
    the first, would take too much of the time."""
    began = clock.now()
    made = first()
    moment = clock.now()
    late = deadline is not None and times * (moment - began) > MOST_COMPILING * (deadline - moment)
    return made, "slices" if late else sampler


def _sampler(problem: TracedProblem, sampler: str) -> Sampler:
    if sampler == "slices":
        return _sliced(problem)
    return _joint(problem) if sampler == "nuts" else _blocked(problem, sampler == "blocks")


def _nowhere(problem: TracedProblem) -> Array:
    """z at the centre of its Gaussian."""
    return np.zeros(problem.dimension - problem.size)


def _blocked(problem: TracedProblem, gradients: bool) -> Sampler:
    def start(t: Array, z: Array) -> Any:
        return blocks.begin(problem, t, z.reshape(problem.latent_shape), _host(_mode(problem, t)))

    step = partial(blocks.blocks, problem, blocks.compiled_move(gradients))
    name = "blocks" if gradients else "ess"
    whole = partial(blocks.whole, problem)
    return Sampler(name, start, step, partial(blocks.renewed, problem), blocks.settled, 0, 1, whole)


def _sliced(problem: TracedProblem) -> Sampler:
    if problem.marginal:

        def alone(t: Array, z: Array) -> Any:
            return slices.begin(problem, t)

        alone_step = partial(slices.slices, problem)
        return Sampler("slices", alone, alone_step, slices.renewed, lambda state: state, 0, 0, slices.whole)

    def start(t: Array, z: Array) -> Any:
        return blocks.begin(problem, t, z.reshape(problem.latent_shape), blocks.sites_at_mean(problem, t))

    step = partial(blocks.blocks, problem, slices.by_host_ellipses)
    renew, whole = partial(blocks.renewed, problem), partial(blocks.whole, problem)
    return Sampler("slices", start, step, renew, blocks.settled, 0, 0, whole)


def _joint(problem: TracedProblem) -> Sampler:
    def start(t: Array, z: Array) -> Any:
        shape = (len(problem.X), len(problem.scale))
        sites = CurveSites(np.zeros(shape), np.zeros(shape)) if problem.marginal else _mode(problem, t)
        state = _host((*_placed(problem, np.concatenate([t, z]), sites), *_fresh(problem)))
        return state if all(np.all(np.isfinite(part)) for part in jax.tree_util.tree_leaves(state)) else None

    def step(*given: Any) -> Any:
        state, out = nuts(problem, *given)
        return _host(state), out

    def renew(states: list[Any]) -> list[Any]:
        return [_renewed(problem, state) for state in states]

    return Sampler("nuts", start, step, renew, _settled, 1, 0)


@dataclass
class _Crew:
    """The chains in their present state."""

    method: Sampler
    keys: list[Any]
    states: list[Any]
    pool: ThreadPoolExecutor
    length: int = 2  # draws that take about a second

    def within(self, end: float | None) -> int:
        """Draws that take about a second, or what is left of the time; one at least."""
        left = PIECE_SECONDS if end is None else min(end - clock.now(), PIECE_SECONDS)
        return max(1, min(self.length, int(self.length * left / PIECE_SECONDS)))

    def advance(self, first: int, stages: list[tuple[int, int]]) -> list[Draws]:
        """A draw of each chain for each stage."""
        moment, count, padded = clock.now(), len(stages), _padded(stages)

        def one(chain: int) -> tuple[Any, Draws]:
            with jax.enable_x64(True):
                state, out = self.method.step(self.states[chain], self.keys[chain], first, count, padded)
                return state, Draws(*(np.asarray(value)[:count] for value in out))

        results = list(self.pool.map(one, range(len(self.keys))))
        self.states = [state for state, _ in results]
        # judged by this piece; at most twice as many as before, since trajectories differ
        pace = PIECE_SECONDS * count / max(clock.now() - moment, 1e-6)
        self.length = max(1, min(2 * self.length, int(pace)))
        return [out for _, out in results]


def _rounds(crew: _Crew, lengths: Lengths, enough: Enough, began: float) -> ChainRun:
    from blackjax.adaptation.window_adaptation import build_schedule

    _, warmup, draws, rounds, report, deadline = lengths
    report = report or (lambda share: None)
    # on the host at once: to iterate over an array of JAX compiles a program, for seconds
    schedule = [(int(stage), int(end)) for stage, end in np.asarray(build_schedule(warmup)).tolist()]
    windows = [k + 1 for k, (_, end) in enumerate(schedule) if end]
    renewals = sorted({*(k for k in EARLY if k < warmup // 4), *windows[: len(windows) - crew.method.kept]})
    # what warm-up may take at most: half of what compilation has left
    half = None if deadline is None else 0.5 * (clock.now() + deadline)
    # draws of a chain that were made, how many of them a kept one stands for, and how many are kept
    made, every, kept, warmed, stopped, settled = 0, 1, 0, 0, "", False
    most, _ = made_and_kept(draws, rounds)
    pieces: list[list[Draws]] = []
    place = journal.Place("chains")
    if place.found:
        made, every, kept, warmed = (place.value(name, int) for name in COUNTS)
        settled, pieces = place.value("settled", bool), _restored(crew, place)
        most = made if place.ended else most

    def state() -> journal.LoopState:
        numbers = dict(zip(COUNTS, (made, every, kept, warmed), strict=True))
        return journal.LoopState(warmed + made, {**numbers, "settled": settled}, _arrays(crew, pieces))

    try:
        while not settled and warmed < warmup and (half is None or clock.now() < half):
            # a piece ends where something is renewed
            ends = [warmup, warmed + LONGEST, *(end for end in renewals if end > warmed)]
            count = min(crew.within(half), min(ends) - warmed)
            crew.advance(warmed, schedule[warmed : warmed + count])
            warmed += count
            if warmed in renewals:
                with jax.enable_x64(True):
                    crew.states = crew.method.renew(crew.states)
            report(warmed / (warmup + most))
            place.keep(state)
        if not settled:
            crew.states, settled = [crew.method.settle(state) for state in crew.states], True
        while made < most and (deadline is None or not pieces or clock.now() < deadline):
            if kept == held_rounds(draws) * draws and every < LONGEST_STRIDE:  # another round begins
                every, kept = 2 * every, kept // 2
                pieces = [[_last_of(2, _joined(chain)) for chain in zip(*pieces, strict=True)]]
            count = every * max(
                1, min(crew.within(deadline) // every, draws - kept % draws, LONGEST // every)
            )
            # Numbered from `warmup` on even where warm-up was cut short, so that a draw's random numbers are
            # its own.
            piece = crew.advance(warmup + made, [(KEEP, 0)] * count)
            pieces.append([_last_of(every, out) for out in piece])
            made, kept = made + count, kept + count // every
            if made < most:
                report((warmup + made) / (warmup + most))
                if kept % draws == 0 and enough(_gathered(pieces, crew.method.name, warmed, "", began)):
                    break
                place.keep(state)
        report(1.0)
        stopped = "time limit" if made < draws or warmed < warmup else ""
        place.end(stopped or "done", state)
    except KeyboardInterrupt:
        journal.stop()
        if sum(len(piece[0].log_density) for piece in pieces) < 4:
            raise  # nothing to keep
        stopped = "interrupted"
    return _gathered(pieces, crew.method.name, warmed, stopped, began)


def _arrays(crew: _Crew, pieces: list[list[Draws]]) -> dict[str, AnyArray]:
    """The states and the draws of all chains, by name."""
    found: dict[str, AnyArray] = {}
    for c, state in enumerate(crew.states):
        found |= {
            f"{c}.{k}": np.asarray(leaf) for k, leaf in enumerate(jax.tree_util.tree_leaves(_bare(state)))
        }
    for c, chain in enumerate(zip(*pieces, strict=True)):
        found |= {f"{c}.{name}": part for name, part in _joined(chain)._asdict().items()}
    return found


def _restored(crew: _Crew, place: journal.Place) -> list[list[Draws]]:
    """Takes the chains to where their states were kept; gives the draws that they had made."""
    states = []
    for c, begun in enumerate(crew.states):
        leaves, made = jax.tree_util.tree_flatten(_bare(begun))
        known = [place.array(f"{c}.{k}") for k in range(len(leaves))]
        if any(np.shape(old) != new.shape for old, new in zip(leaves, known, strict=True)):
            raise CheckpointError(journal.damaged("chains of other sizes"))
        with jax.enable_x64(True):
            states.append(crew.method.whole(jax.tree_util.tree_unflatten(made, known)))
    crew.states = states
    if not place.value("kept", int):
        return []
    return [[Draws(*(place.array(f"{c}.{name}") for name in Draws._fields)) for c in range(len(states))]]


def _bare(state: Any) -> Any:
    """A state without what follows from its arrays."""
    return state._replace(at=None) if hasattr(state, "at") else state


def held_rounds(draws: int) -> int:
    """How many rounds of draws are held, until every second one is let go; an even number."""
    return max(KEPT, 2 * -(-KEPT_DRAWS // (2 * draws)))


def made_and_kept(draws: int, rounds: int) -> tuple[int, int]:
    """How many draws a chain makes in so many rounds, and how many of them are held at most."""
    made, kept, every, most = 0, 0, 1, 0
    for _ in range(rounds):
        if kept == held_rounds(draws) and every < LONGEST_STRIDE:
            kept, every = kept // 2, 2 * every
        made, kept = made + every * draws, kept + 1
        most = max(most, kept)
    return made, most * draws


def _last_of(every: int, draws: Draws) -> Draws:
    """The last of each `every` draws. What tells of trouble or cost counts for all of them."""
    last = np.arange(every - 1, len(draws.log_density), every)  # not a slice, which would hold all of them
    kept: list[Any] = [part[last] for part in draws]
    return Draws(*kept)._replace(
        divergent=np.logical_or.reduce(draws.divergent.reshape(-1, every), axis=1),
        acceptance=draws.acceptance.reshape(-1, every).mean(axis=1),
        steps=draws.steps.reshape(-1, every).sum(axis=1),
    )


def _joined(chain: Sequence[Draws]) -> Draws:
    """The pieces of one chain."""
    return Draws(*(np.concatenate(parts) for parts in zip(*chain, strict=True)))


def _gathered(pieces: list[list[Draws]], sampler: str, warmup: int, stopped: str, began: float) -> ChainRun:
    chains = [_joined(chain) for chain in zip(*pieces, strict=True)]
    draws = Draws(*(np.stack(parts) for parts in zip(*chains, strict=True)))
    return ChainRun(draws, sampler, warmup, stopped, clock.now() - began)


def _padded(stages: list[tuple[int, int]]) -> NDArray[np.int64]:
    return np.array([*stages, *[(0, 0)] * (LONGEST - len(stages))], dtype=np.int64)


def _start(problem: TracedProblem, method: Sampler, centre: Array, rng: Rng) -> Any:
    """The state of a chain at its start: t half a unit around the model's own parameters, closer where a
    density is no finite number, and v from the normal approximation at its mode there."""
    t, z = rng.standard_normal(problem.size), rng.standard_normal(problem.dimension - problem.size)
    for attempt in range(STARTS):
        shrink = 0.0 if attempt == STARTS - 1 else 0.5**attempt
        state = method.start(centre + 0.5 * shrink * t, shrink * z)
        if state is not None:
            return state
    raise NumericalError(
        "The chains find no start: the density of the data is no finite number even at the model's own"
        " parameters with f at its mode. Check y against the likelihood, and start from other parameters."
    )


@jax.jit
def _mode(problem: TracedProblem, t: jax.Array) -> CurveSites:
    """The sites at the mode of v given t, by Newton's steps, each as long as does most good."""
    here = problem.at(t)
    roots, still = here.roots(), jnp.zeros(problem.latent_shape)

    def sites(v: jax.Array) -> CurveSites:
        return here.sites(here.latent(roots, v))

    def density(v: jax.Array) -> jax.Array:
        fit = jnp.sum(here.log_likelihoods(here.latent(roots, v)))
        return number(fit - 0.5 * jnp.sum(v**2))

    def newton(_: Any, v: jax.Array) -> jax.Array:
        step = to_latent(here.conditioned(roots, sites(v)), still)[0] - v
        lengths = jnp.array([0.0, 0.01, 0.1, 0.3, 0.6, 1.0])
        return v + lengths[jnp.argmax(jax.vmap(lambda a: density(v + a * step))(lengths))] * step

    return sites(jax.lax.fori_loop(0, NEWTON_STEPS, newton, still))


@jax.jit
def _placed(problem: TracedProblem, position: jax.Array, sites: CurveSites) -> tuple[Any, CurveSites]:
    """The state of NUTS at (t, z)."""
    from blackjax.mcmc.hmc import HMCState

    return HMCState(position, *jax.value_and_grad(problem.log_density)(position, sites)), sites


def _fresh(problem: TracedProblem, variances: Any = None) -> tuple[Any, ...]:
    """The adaptation at its beginning, and empty sums over a window: of sites, and how many."""
    (mass_init, *_), (step_init, *_) = adaptation()
    mass = mass_init(problem.dimension)
    if variances is not None:
        mass = mass._replace(inverse_mass_matrix=variances)
    nothing = np.zeros((len(problem.X), len(problem.scale)))
    return mass, step_init(FIRST_STEP), np.array(FIRST_STEP), (CurveSites(nothing, nothing), np.zeros(()))


def _host(state: Any) -> Any:
    """As NumPy arrays: their types are always the same, so that no program is compiled twice."""
    return jax.tree_util.tree_map(np.asarray, state)


def _renewed(problem: TracedProblem, state: Any) -> Any:
    """The state with the average of the sites met since the last time, and what depends on them anew."""
    if problem.marginal:
        return state
    place, sites, mass, *_, (total, count) = state
    new = CurveSites(total.W / count, total.b / count)
    position = _moved(problem, place[0], sites, new)
    variances = np.where(np.arange(problem.dimension) < problem.size, mass.inverse_mass_matrix, 1.0)
    changed = _host((*_placed(problem, position, new), *_fresh(problem, variances)))
    return changed if np.isfinite(changed[0][1]) else state


@jax.jit
def _moved(problem: TracedProblem, position: jax.Array, old: CurveSites, new: CurveSites) -> jax.Array:
    """The same (t, v), with z of other sites."""
    t, z = problem.split(position)
    here = problem.at(t)
    roots = here.roots()
    v, _ = to_latent(here.conditioned(roots, old), z)
    return jnp.concatenate([t, from_latent(here.conditioned(roots, new), v).ravel()])


def _settled(state: Any) -> Any:
    """After warm-up the step size is the average of those that were tried."""
    place, sites, mass, size, _, sums = state
    return place, sites, mass, size, np.exp(size.log_step_size_avg), sums
