r"""Random Fourier features: phi with K ~ Phi Phi', from the spectral measure of a stationary kernel.

    k(x, z) = weight E cos(2 pi f'(x - z))  ~  sum_j A_j^2 cos(2 pi f_j'(x - z)),     A_j^2 = weight / N

    pairs  phi = A_j [cos(2 pi f_j'x), sin(2 pi f_j'x)], j = 1..N, N = n_features / 2     (every kind but one)
    phase  phi = sqrt(2) A_j cos(2 pi (f_j'x + b_j)), b_j uniform, j = 1..N = n_features  ("rff-phase")

Kinds, that is how f_j are drawn: "rff" independent; "rff-phase" the same with random phases; "orf"
orthogonal; "sorf" structured orthogonal; "qmc" (the same as "qmc-halton") and "qmc-sobol" quasi-Monte Carlo.
See `features/spectral.py`.

A kernel that is a sum of several waves (a Sum, a SpectralMixture, a product with a Sum inside) has its
features shared out: half of them evenly, half by weight. What is not random takes no random features: a
Cosine or a Constant has one frequency, a Periodic of one column its Fourier series from the lowest frequency
on (with both, K - Phi Phi' is what was cut off). In a product with other kernels or on several columns, the
frequencies of a Periodic are random, too: drawn at the lengthscale it has at the draw and weighted anew at
another. Far from there (a factor of 3) draw again.

Draws stay while parameters move the frequencies, so that a search sees one smooth function. Phi of n rows
costs O(n N d) for the phases (O(n N log d) with "sorf" from ROW_WISE columns on), and a cosine an entry: a
polynomial of the phase less its whole turns, which XLA makes vector instructions of (3 to 6 times as fast as
NumPy's cos and sin). The gradient is another pass; frequencies and amplitudes (N (d + 1) numbers) stand
between it and the parameters.

Source: Rahimi and Recht 2007; Sutherland and Schneider 2015 on pairs against phases (pairs have the smaller
variance for an RBF).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array, Indices, is_whole
from gramian.errors import ParameterError, StateError
from gramian.features.base import Basis, FeatureMap
from gramian.features.spectral import KINDS, SMALLEST_SORF, source, structured_product
from gramian.forks import compiled
from gramian.gram.tiles import _blocks, _each, _host, _padded, tile_size
from gramian.kernels.base import Column, Kernel
from gramian.kernels.spectrum import Draw, Wave
from gramian.linalg.hadamard import padded_size
from gramian.linalg.state import ObjectState, taken
from gramian.linalg.threads import one_blas_thread
from gramian.params.tree import leaves

USABLE = "RBF, Matern12, Matern32, Matern52, RationalQuadratic, SpectralMixture, Periodic, Cosine, Constant"
# columns from which Hadamard transforms beat a product with W (784: 1.2 times, 2,048: 2.4 times)
ROW_WISE = 600
_SUM_AT_ONCE = 64  # tiles whose gradients are held together before they are added


@dataclass(frozen=True, eq=False)
class FourierBasis(Basis):
    """Random frequencies of standard laws, for kernels of one structure. Make it with `FourierBasis.draw`."""

    kind: str
    d: int
    counts: tuple[int, ...]  # frequencies of each wave
    draws: tuple[tuple[Draw, ...], ...]  # of each part of each wave
    take: Indices  # (N,): which frequency a column (a pair of columns) has
    gain: Array  # (N,): its amplitude in units of A
    shift: Array  # (2, N) or (1, N): phases, in half turns
    centre: Array  # (d,): where phases are zero; features of rows far from it lose digits
    # (blocks, 3, D) of "sorf", where phases are Hadamard transforms of the rows, not a product with W
    signs: Array | None = None

    @classmethod
    def draw(
        cls,
        kernel: Kernel,
        d: int,
        n_features: int,
        kind: str = "rff",
        rng: np.random.Generator | None = None,
        centre: Array | None = None,
    ) -> FourierBasis:
        """Draws for a kernel on d columns, with column names resolved; `n_features` columns in Phi."""
        rng = np.random.default_rng() if rng is None else rng
        _check(kernel, d, n_features, kind)
        waves = kernel.bare().waves(tuple(range(d)))
        paired = kind != "rff-phase"
        counts, exact = _shares(waves, n_features, paired), [wave.single or wave.series for wave in waves]
        made = [_draws(wave, n, kind, rng) for wave, n in zip(waves, counts, strict=True)]
        draws, signs = tuple(drawn for drawn, _ in made), made[0][1] if row_wise(waves, d) else None
        N = sum(counts)
        if paired:
            take, gain = np.arange(N), np.ones(N)
            shift = np.repeat([[0.0], [-0.5]], N, axis=1)  # cos, and sin as the cosine a quarter turn later
        else:
            repeats = np.repeat([2 if e else 1 for e in exact], counts)  # what is exact stays a pair
            take, pair = np.repeat(np.arange(N), repeats), np.repeat(repeats, repeats) == 2
            gain = np.where(pair, 1.0, np.sqrt(2))
            second = np.concatenate([[False], take[1:] == take[:-1]])
            shift = np.where(pair, -0.5 * second, rng.uniform(0, 2, size=len(take)))[None, :]
        centre = np.zeros(d) if centre is None else centre
        return cls(kind, d, tuple(counts), draws, take, gain, shift, centre, signs)

    @property
    def n_features(self) -> int:
        return int(self.shift.size)

    def traced(self, kernel: Kernel, several: bool) -> tuple[str, tuple[Any, ...], tuple[int, ...]]:
        if several:
            raise ParameterError(
                "Fourier features are drawn for one kernel, but this model has one for each latent function."
                " Use Nystrom features."
            )
        for wave in kernel.bare().waves(tuple(range(self.d))):
            if not all(part.traceable for part in wave.parts):
                raise ParameterError(
                    f"The Fourier features of {kernel} move with its parameters in a way that is computed"
                    " outside JAX, as those of a RationalQuadratic or Periodic, so no chain can move them."
                    " Use Nystrom features, which take any kernel."
                )
        return "fourier", (self.draws, self.take, self.gain, self.shift, self.centre), self.counts

    def at(self, kernel: Kernel) -> FourierMap:
        bare = kernel.bare()
        waves = bare.waves(tuple(range(self.d)))
        if [len(wave.parts) for wave in waves] != [len(draws) for draws in self.draws]:
            raise ParameterError(
                f"These Fourier features were drawn for a kernel of another structure than {kernel}. Draw new"
                " ones."
            )
        host = tuple(
            tuple(part.host(draw) for part, draw in zip(wave.parts, draws, strict=True))
            for wave, draws in zip(waves, self.draws, strict=True)
        )
        W, A = _spectrum(bare, (self.draws, host, self.take, self.gain), self.counts, self.d)
        return FourierMap(self, bare, host, np.ascontiguousarray(W), A)

    def from_state(self, state: ObjectState, kernel: Kernel, d: int) -> FourierMap:
        self.check(kernel, d)
        N = self.take.size
        W, A = taken(state.arrays, "frequencies", (d, N)), taken(state.arrays, "amplitudes", (N,))
        return dataclasses.replace(self.at(kernel), W=W, A=A)

    def check(self, kernel: Kernel, d: int) -> None:
        """That all belongs together; sums first, so that nothing is as large as a count only says."""
        N, columns, rows = sum(self.counts), self.take.size, 1 if self.kind == "rff-phase" else 2
        of_columns = self.kind in KINDS and self.d == d and self.centre.shape == (d,)
        of_features = self.shift.shape == (rows, columns) and self.take.shape == self.gain.shape == (columns,)
        if not (of_columns and of_features):
            raise StateError(
                f"its Fourier features have impossible shapes for {d} columns: take {self.take.shape}, shift"
                f" {self.shift.shape}."
            )
        counted = 1 <= N <= columns and min(self.counts) >= 1 and bool(np.all(np.diff(self.take) >= 0))
        if not (counted and np.array_equal(np.unique(self.take), np.arange(N))):
            raise StateError("its Fourier features must take each of their frequencies, in order.")
        waves = kernel.bare().waves(tuple(range(d)))
        if len(waves) != len(self.counts):
            raise StateError(
                f"its kernel has {len(waves)} waves, but its Fourier features have {len(self.counts)} counts."
            )
        if self.signs is not None:
            D = max(padded_size(d), SMALLEST_SORF)
            fits = self.kind == "sorf" and row_wise(waves, d) and self.signs.shape == (-(-N // D), 3, D)
            if not (fits and np.all(np.abs(self.signs) == 1)):
                raise StateError(
                    f"its structured features have signs of the shape {self.signs.shape}, which {N}"
                    " frequencies of its kernel have not."
                )
        rng = np.random.default_rng(0)
        drawn = [_draws(wave, n, "rff", rng)[0] for wave, n in zip(waves, self.counts, strict=True)]
        if _shapes(drawn) != _shapes(self.draws):
            raise StateError("its Fourier features have draws of other shapes than its kernel needs.")


@dataclass(frozen=True, eq=False)
class FourierMap(FeatureMap):
    """phi at fixed parameters."""

    basis: FourierBasis
    kernel: Kernel  # bare
    host: tuple[tuple[Draw, ...], ...]
    W: Array  # (d, N): half turns a unit of x
    A: Array  # (N,)
    # With pairs k(x, x) = |phi(x)|^2 is also the given kernel's (unless a Periodic was cut off or weighted
    # anew); with "rff-phase" it only is on average.
    spans_prior = True

    @property
    def n_features(self) -> int:
        return self.basis.n_features

    @property
    def entry_error(self) -> float:
        """A wave of N frequencies is an average of N cosines, each within +-1 (with random phases, of a
        variance up to 3/2); of a series, what is cut off."""
        basis = self.basis
        # of k(x, x): cos^2 + sin^2 = 1 where a frequency has both in one column of A, 1/2 a column otherwise
        explained = np.bincount(self._wave_of, self.A**2) * len(basis.shift) / 2
        one_draw = 1.5 if basis.kind == "rff-phase" else 1.0
        variance, cut, total = 0.0, 0.0, 0.0
        for wave, n, known in zip(self._waves, basis.counts, explained, strict=True):
            weight = float(wave.weight)
            total += weight
            if wave.series:
                cut += max(weight - float(known), 0.0)
            elif not wave.single:
                variance += one_draw * weight**2 / n
        return (math.sqrt(variance) + cut) / total

    @property
    def _waves(self) -> list[Wave]:
        return self.kernel.waves(tuple(range(self.basis.d)))

    @property
    def _wave_of(self) -> Indices:
        """Which wave a column (a pair of columns) is of."""
        return np.repeat(np.arange(len(self.basis.counts)), self.basis.counts)[self.basis.take]

    def state(self) -> ObjectState:
        return ObjectState({}, {"frequencies": self.W, "amplitudes": self.A})

    def block(self, X: Array, tolerance: float = 0.0) -> Array:
        out, basis, structure = np.empty((len(X), self.n_features)), self.basis, self._structure

        def one(item: tuple[slice, Array]) -> None:
            at, rows = item
            if structure is None:
                found = _features(rows, basis.centre, self.W, self.A, basis.shift)
            else:
                scale, lengths, signs = structure
                turns = structured_product((rows - basis.centre) * scale, signs)[:, : len(lengths)]
                found = _cosines(turns * lengths, self.A, basis.shift)
            out[at] = _host(found)[: at.stop - at.start]

        # small products: BLAS works alone in each thread of rows
        with one_blas_thread() if structure is not None else nullcontext():
            _each(one, _blocks(X, tile_size(len(X))))
        return out

    @cached_property
    def _structure(self) -> tuple[Array, Array, Array] | None:
        """scale (d,), lengths (N,), signs with W = scale S' lengths, S the signs' rows; None: W as it is."""
        if self.basis.signs is None:
            return None
        (part,) = self._waves[0].parts
        scale = np.ones(self.basis.d) * np.asarray(part.stretch)  # see `row_wise`
        rows = structured_product(np.diag(scale), self.basis.signs)[:, : self.W.shape[1]]
        return scale, np.sum(rows * self.W, axis=0) / np.sum(rows**2, axis=0), self.basis.signs

    def slopes(self, X: Array) -> tuple[Array, Array]:
        """A cosine's slope is the cosine a quarter turn on, times its frequency."""
        onward = dataclasses.replace(self.basis, shift=self.basis.shift + 0.5)
        ahead = dataclasses.replace(self, basis=onward, A=np.pi * self.A)
        return ahead.block(X), np.tile(self.W, (1, len(self.basis.shift)))

    def columns_of(self, terms: Sequence[Kernel]) -> list[NDArray[np.bool_]]:
        found, first, wave_of = [], 0, self._wave_of
        for term in terms:
            last = first + len(term.bare().waves(tuple(range(self.basis.d))))
            found.append(np.tile((wave_of >= first) & (wave_of < last), len(self.basis.shift)))
            first = last
        return found

    def pullback(self, X: Array, G: Array) -> list[Array]:
        blocks, basis = _blocks(X, tile_size(len(X))), self.basis
        to_W, to_A = np.zeros_like(self.W), np.zeros_like(self.A)

        def one(item: tuple[slice, Array]) -> tuple[Array, Array]:
            at, rows = item
            weights = _padded(G[at], len(rows))
            by_W, by_A = _features_pullback(rows, basis.centre, self.W, self.A, basis.shift, weights)
            return _host(by_W), _host(by_A)

        for start in range(0, len(blocks), _SUM_AT_ONCE):
            for by_W, by_A in _each(one, blocks[start : start + _SUM_AT_ONCE]):
                to_W += by_W
                to_A += by_A
        drawn = basis.draws, self.host, basis.take, basis.gain
        with jax.enable_x64(True):
            pulled = _spectrum_pullback(self.kernel, drawn, (to_W, to_A), basis.counts, basis.d)
            return [np.asarray(v) for v in leaves(pulled)]

    def shared_pullback(self, T: Array) -> list[Array]:
        return [np.zeros_like(v) for v in leaves(self.kernel)]  # rows share nothing but the parameters


# The compiled programs. -------------------------------------------------------------------------------------


def _spectrum(kernel: Kernel, drawn: Any, counts: Sequence[int], d: int, numpy: Any = np) -> tuple[Any, Any]:
    """W (d, N) and A (N,) from the parameters: in NumPy, not compiled, or in JAX for the gradient."""
    draws, host, take, gain = drawn
    frequencies, amplitudes = [], []
    for wave, n, own, computed in zip(kernel.waves(tuple(range(d))), counts, draws, host, strict=True):
        F, A = np.zeros((n, d)), (wave.weight / n) ** 0.5 * np.ones(n)
        for part, draw, values in zip(wave.parts, own, computed, strict=True):
            F = F + part.frequencies(draw, values) @ np.eye(d)[list(part.columns)]
            A = A * part.amplitudes(draw, values)
        frequencies.append(F)
        amplitudes.append(A)
    return 2 * numpy.concatenate(frequencies)[take].T, numpy.concatenate(amplitudes)[take] * gain


@compiled(static=(3, 4))
def _spectrum_pullback(kernel: Kernel, drawn: Any, to: Any, counts: tuple[int, ...], d: int) -> Any:
    return jax.vjp(lambda k: _spectrum(k, drawn, counts, d, jnp), kernel)[1](to)[0]


def _cosines_in_numpy(turns: Array, A: Array, shift: Array) -> Array:
    t = turns[:, None, :] + shift
    # less whole turns first, as `_cos` does: digits of large turns are not lost in pi t
    return (A * np.cos(np.pi * (t - 2 * np.round(t / 2)))).reshape(len(turns), -1)


def _features_in_numpy(X: Array, centre: Array, W: Array, A: Array, shift: Array) -> Array:
    return _cosines_in_numpy((X - centre) @ W, A, shift)


@compiled(instead=_features_in_numpy)
def _features(X: jax.Array, centre: jax.Array, W: jax.Array, A: jax.Array, shift: jax.Array) -> jax.Array:
    turns = _apart((X - centre) @ W)[:, None, :] + shift
    return (A * _cos(turns)).reshape(X.shape[0], -1)


@compiled(instead=_cosines_in_numpy)
def _cosines(turns: jax.Array, A: jax.Array, shift: jax.Array) -> jax.Array:
    return (A * _cos(turns[:, None, :] + shift)).reshape(len(turns), -1)


@compiled()
def _features_pullback(
    X: jax.Array, centre: jax.Array, W: jax.Array, A: jax.Array, shift: jax.Array, G: jax.Array
) -> tuple[jax.Array, jax.Array]:
    X, N = X - centre, W.shape[1]
    turns = _apart(X @ W)
    to_turns = to_A = jnp.zeros_like(turns)
    for k in range(shift.shape[0]):
        g = G[:, k * N : (k + 1) * N]
        to_turns += g * _cos(turns + (shift[k] + 0.5))  # d cos(pi t) / dt = pi cos(pi (t + 1/2))
        to_A += g * _cos(turns + shift[k])
    to_turns, to_A = _apart((to_turns * (np.pi * A), to_A))
    return X.T @ to_turns, jnp.ones(X.shape[0]) @ to_A


def _apart(values: Any) -> Any:
    """The same, computed before what follows: fused into a product or a sum, cosines are not vectorised."""
    return jax.lax.optimization_barrier(values)  # type: ignore[no-untyped-call]


# what is left out is below 1e-18
_SINE = [(-1) ** k * math.pi ** (2 * k + 1) / math.factorial(2 * k + 1) for k in range(11)]


def _cos(t: jax.Array) -> jax.Array:
    """cos(pi t) to rounding: whole turns off exactly, then sin(pi (1/2 - |r|)) by its series, for any r."""
    s = 0.5 - jnp.abs(t - 2 * jnp.round(0.5 * t))
    s2, total = s * s, jnp.full_like(s, _SINE[-1])
    for coefficient in reversed(_SINE[:-1]):
        total = total * s2 + coefficient
    return total * s


# Drawing. ---------------------------------------------------------------------------------------------------


def _check(kernel: Kernel, d: int, n_features: int, kind: str) -> None:
    if kind not in KINDS:
        raise ParameterError(
            f"kind={kind!r} is not a kind of Fourier features. Use one of {', '.join(map(repr, KINDS))}."
        )
    if not is_whole(n_features):
        raise ParameterError(f"n_features={n_features!r} must be a whole number from 1 on.")
    if kind != "rff-phase" and n_features % 2:
        raise ParameterError(
            f"n_features={n_features} is odd, but features of the kind {kind!r} are pairs of a cosine and a"
            f' sine. Use {n_features + 1}, or kind="rff-phase", which takes any number.'
        )
    strange = kernel.without_waves
    if strange is not None:
        where = "" if strange is kernel else f" (in {kernel})"
        raise ParameterError(
            f"{strange} has no known spectral measure{where}, so there are no Fourier features for it. They"
            f" exist for {USABLE}, and for sums, products, powers, positive multiples and selected columns of"
            " these. Use Nystrom features, which take any kernel."
        )
    kernel.check_columns([Column(f"x{j}") for j in range(d)])


def row_wise(waves: list[Wave], d: int) -> bool:
    """Whether "sorf" transforms rows: for many columns, all in one cloud of frequencies."""
    if d < ROW_WISE or len(waves) != 1 or len(waves[0].parts) != 1:
        return False
    (part,) = waves[0].parts
    return part.stretch is not None and part.columns == tuple(range(d))


def _draws(wave: Wave, n: int, kind: str, rng: np.random.Generator) -> tuple[tuple[Draw, ...], Array | None]:
    """The draws of a wave's parts, and the signs that they are made of, if they are."""
    if wave.series:
        return tuple(part.terms(n, wave.directed) for part in wave.parts), None
    standard = source(kind, n, sum(part.dimension for part in wave.parts), rng)
    draws = tuple(part.draw(standard) for part in wave.parts)
    return draws, standard.signs


def _shapes(draws: Sequence[Sequence[Draw]]) -> list[list[list[tuple[int, ...]]]]:
    return [[[array.shape for array in draw] for draw in of_wave] for of_wave in draws]


def _shares(waves: list[Wave], n_features: int, paired: bool) -> list[int]:
    """How many frequencies each wave gets: one if it has but one, else half evenly, half by weight."""
    columns = np.array([2 if paired or wave.single or wave.series else 1 for wave in waves])  # a frequency
    least = int(np.sum(columns))
    if n_features < least:
        many = f"the kernel is a sum of {len(waves)} waves, which" if len(waves) > 1 else "the kernel"
        raise ParameterError(
            f"n_features={n_features} is too small: {many} needs {least} features at least. Use more, or a"
            " simpler kernel."
        )
    open_ = np.array([not wave.single for wave in waves])
    open_ |= not np.any(open_)
    weight, counts = np.array([float(wave.weight) for wave in waves]), np.ones(len(waves), dtype=int)
    left = n_features - least
    wanted = np.where(open_, 0.5 / np.sum(open_) + 0.5 * weight / np.sum(weight[open_]), 0.0)
    goal = wanted * (n_features - int(np.sum(columns[~open_])))  # columns
    while left > 0:
        # The wave that lacks most, as long as one of its frequencies fits.
        fits = open_ & (columns <= left)
        if not np.any(fits):
            raise ParameterError(
                f"n_features={n_features} cannot be filled: each frequency of this kernel takes a cosine and"
                f" a sine. Use {n_features + 1}."
            )
        k = int(np.argmax(np.where(fits, (goal - counts * columns) / columns, -np.inf)))
        step = max(1, int(min(goal[k] - counts[k] * columns[k], left) // columns[k]))
        counts[k] += step
        left -= step * int(columns[k])
    return [int(c) for c in counts]


__all__ = ["KINDS", "FourierBasis", "FourierMap"]
