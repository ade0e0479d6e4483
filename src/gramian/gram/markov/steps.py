"""The steps from row to row, A and Q, entry by entry or in blocks, and what a smoother says of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gramian.gram.markov.matrices import (
    UNROLLED,
    Mat,
    added,
    inner,
    mm,
    mt,
    mv,
    scaled_all,
    sym,
    unrolled,
    upper,
    weighed,
)
from gramian.kernels.statespace import Matrix, StateForm, matrix, plus, vector


@dataclass(frozen=True)
class Shapes:
    """How the matrices of a program are passed on from row to row."""

    form: StateForm
    c: int  # chunks
    q: int

    @property
    def unrolled(self) -> bool:
        return self.form.size <= UNROLLED

    def packed(self, A: Mat) -> Any:
        """As JAX arrays, each entry with its chunks; a symmetric matrix by half."""
        return [self.full(x) for x in A.reshape(-1)] if unrolled(A) else A

    def columns(self, packed: Any) -> Mat:
        """Of (s, q, c), or of its entries."""
        return vector(list(packed)) if self.unrolled else packed

    def packed_half(self, A: Mat) -> Any:
        return [self.full(A[at]) for at in upper(len(A))] if unrolled(A) else A

    def matrix(self, packed: Any) -> Mat:
        s = self.form.size
        return matrix([packed[k * s : (k + 1) * s] for k in range(s)]) if self.unrolled else packed

    def half(self, packed: Any) -> Mat:
        if not self.unrolled:
            return packed
        out = np.empty((self.form.size,) * 2, dtype=object)
        for (i, j), entry in zip(upper(self.form.size), packed, strict=True):
            out[i, j] = out[j, i] = entry
        return out

    def square(self, array: jax.Array) -> Mat:
        """Of an array (m, k, c)."""
        return matrix([list(row) for row in array]) if self.unrolled else array

    def dense(self, A: Mat) -> jax.Array:
        """(m, k, c)."""
        return jnp.stack([jnp.stack([self.full(x) for x in row]) for row in A]) if unrolled(A) else A

    def summed_squares(self, v: Any, by: jax.Array) -> jax.Array:
        """The sum over rows of v v' times `by` (rows, c), of packed vectors: (s, s, c)."""
        if not self.unrolled:
            return jnp.einsum("kic,kjc->ijc", v * by[:, None], v)
        s = self.form.size
        half = {(i, j): jnp.sum(v[i] * v[j] * by, axis=0) for i, j in upper(s)}
        return jnp.stack([jnp.stack([half[min(i, j), max(i, j)] for j in range(s)]) for i in range(s)])

    def summed_columns(self, v: Any, w: jax.Array) -> jax.Array:
        """The sum over rows of v w' for w (rows, q, c): (s, q, c)."""
        if not self.unrolled:
            return jnp.sum(v[:, :, None] * w[:, None], axis=0)
        return jnp.stack([jnp.sum(x[:, None] * w, axis=0) for x in v])

    def full(self, x: Any) -> jax.Array:
        return jnp.broadcast_to(jnp.asarray(x, jnp.float64), (self.c,))

    def diagonal(self, blocks: Sequence[Matrix]) -> Mat:
        """A matrix with these on its diagonal."""
        whole = np.full((self.form.size,) * 2, 0.0, dtype=object)
        start = 0
        for block in blocks:
            at = slice(start, start + len(block))
            whole[at, at], start = block, start + len(block)
        return whole if self.unrolled else self.dense(whole)

    def covariance(self, t: jax.Array) -> Mat:
        return self.diagonal([block.cov(t) for block in self.form.blocks])

    def emission(self, t: jax.Array) -> Mat:
        entries = [x for block in self.form.blocks for x in block.emission(t)]
        return vector(entries) if self.unrolled else jnp.stack([self.full(x) for x in entries])

    @property
    def places(self) -> list[slice]:
        """Where the blocks lie in the state."""
        ends = np.cumsum([block.size for block in self.form.blocks]).tolist()
        return [slice(end - block.size, end) for block, end in zip(self.form.blocks, ends, strict=True)]

    def steps(self, s: jax.Array, t: jax.Array) -> Steps:
        """To all rows at the times t (rows, c) from s: exponentials and the like in a few passes over all of
        them. Made within a scan they would be made again in each loop that uses them: XLA drops barriers."""
        pairs = [block.step(s, t) for block in self.form.blocks]
        emitted = [x for block in self.form.blocks for x in block.emission(t)]
        kind = EntrySteps if self.unrolled else BlockSteps
        return kind(self, [A for A, _ in pairs], [Q for _, Q in pairs], emitted, t.shape)


class Steps(ABC):
    """The matrices of many rows. What differs from row to row is in `arrays`, each entry once; the rest is
    known when a program is written down, such as zeros. Entries are apart, since XLA would not vectorise
    the exponentials of several in one array (a state of 23: 20 microseconds a row, apart 5)."""

    def __init__(self, shapes: Shapes, A: list[Matrix], Q: list[Matrix], H: list[Any], rows: Any) -> None:
        self.shapes, self.rows = shapes, rows
        self.arrays: list[jax.Array] = []
        self._number: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other entry gets its id
        self.A, self.Q = ([self._held(M) for M in blocks] for blocks in (A, Q))
        self.differ = len(self.arrays)  # depend on parameters: an emission does not
        self.H = self._held(vector(H))

    def _held(self, M: Matrix) -> Matrix:
        """With numbers of arrays in place of them."""
        out = np.empty(M.shape, dtype=object)
        for at, x in np.ndenumerate(M):
            out[at] = x
            if not isinstance(x, float):
                if id(x) not in self._number:
                    self._number[id(x)] = len(self.arrays)
                    self._kept.append(x)
                    self.arrays.append(jnp.broadcast_to(jnp.asarray(x, jnp.float64), self.rows))
                out[at] = self._number[id(x)]
        return out

    def at(self, row: Sequence[jax.Array]) -> Any:
        """A step, from its part of `arrays`, (c,) each."""

        def filled(M: Matrix) -> Matrix:
            out = M.copy()
            for at, x in np.ndenumerate(M):
                out[at] = x if isinstance(x, float) else row[x]
            return out

        A, Q = ([filled(M) for M in blocks] for blocks in (self.A, self.Q))
        return self.made(A, Q, filled(self.H))

    @abstractmethod
    def made(self, A: list[Matrix], Q: list[Matrix], H: Matrix) -> Any:
        """A step, of its blocks."""

    @abstractmethod
    def weights(self, step: Any, smoothed: Smooth, B: jax.Array, q: jax.Array) -> list[Any]:
        """On A and on Q of each block, of one row, as the module has them; of EntrySteps, on the whole."""

    @abstractmethod
    def by_entry(self, weights: list[Any]) -> list[jax.Array]:
        """Of all rows, on those of `arrays` that depend on parameters."""

    def _gathered(self, held: Sequence[Matrix], entry: Callable[[int, int, int], Any]) -> list[jax.Array]:
        out: list[Any] = [0.0] * self.differ
        for k, M in enumerate(held):
            for (i, j), number in np.ndenumerate(M):
                if not isinstance(number, float):
                    out[number] = plus(out[number], entry(k, i, j))
        return [jnp.broadcast_to(x, self.rows) for x in out]


class Smooth(NamedTuple):
    """At a step, from both sides: ell- and N- after it, x and P before it."""

    ell: Mat
    N: Mat
    x: Mat
    P: Mat


class EntrySteps(Steps):
    """Of small states, whose matrices are written out."""

    def made(self, A: list[Matrix], Q: list[Matrix], H: Matrix) -> EntryStep:
        return EntryStep(self.shapes.diagonal(A), self.shapes.diagonal(Q), H)

    def weights(self, step: EntryStep, smoothed: Smooth, B: jax.Array, q: jax.Array) -> list[Any]:
        ell, N, x, P = smoothed
        by_A = added(scaled_all(weighed(ell, B, x), -2.0), scaled_all(mm(N, step.times(P)), -q))
        by_Q = added(weighed(ell, B, ell), scaled_all(N, -0.5 * q))
        # no weight is asked for beside the blocks on the diagonal
        return [self.shapes.packed(M[at, at]) for M in (by_A, by_Q) for at in self.shapes.places]

    def by_entry(self, weights: list[Any]) -> list[jax.Array]:
        held = [*self.A, *self.Q]
        return self._gathered(held, lambda k, i, j: weights[k][i * len(held[k]) + j])


class EntryStep(NamedTuple):
    """From one row to the next: A and Q, H of the next."""

    A: Mat
    Q: Mat
    H: Mat

    def times(self, M: Mat) -> Mat:
        """A M."""
        return mm(self.A, M)

    def on(self, m: Mat) -> Mat:
        """A m, of right-hand sides."""
        return mv(self.A, m)

    def back_on(self, ell: Mat) -> Mat:
        """A'ell."""
        return mv(mt(self.A), ell)

    def around(self, P: Mat) -> Mat:
        """A P A' + Q."""
        return sym(added(mm(mm(self.A, P), mt(self.A)), self.Q))

    def around_back(self, N: Mat) -> Mat:
        """A'N A."""
        return sym(mm(mm(mt(self.A), N), self.A))


class BlockSteps(Steps):
    """Of larger states, block by block."""

    def made(self, A: list[Matrix], Q: list[Matrix], H: Matrix) -> BlockStep:
        dense, emission = self.shapes.dense, jnp.stack([self.shapes.full(x) for x in H])
        return BlockStep(self.shapes.places, [dense(M) for M in A], [dense(M) for M in Q], emission)

    def weights(self, step: BlockStep, smoothed: Smooth, B: jax.Array, q: jax.Array) -> list[Any]:
        ell, N, x, P = smoothed
        AP, lB = step.times(P), jnp.sum(ell[:, :, None] * B[None, :, :, None], axis=1)
        by_A = [-2.0 * inner(lB[at], x[at]) - q * mm(N[at], AP[:, at]) for at in step.places]
        return by_A + [inner(lB[at], ell[at]) - 0.5 * q * N[at, at] for at in step.places]

    def by_entry(self, weights: list[Any]) -> list[jax.Array]:
        return self._gathered([*self.A, *self.Q], lambda k, i, j: weights[k][:, i, j])


class BlockStep(NamedTuple):
    """The same as EntryStep, block by block."""

    places: Sequence[slice]
    A: Sequence[jax.Array]  # (size, size, c)
    Q: Sequence[jax.Array]
    H: jax.Array

    def times(self, M: Mat) -> Mat:
        return self._each(self.A, M)

    def on(self, m: Mat) -> Mat:
        return self._each(self.A, m)

    def back_on(self, ell: Mat) -> Mat:
        return self._each([mt(A) for A in self.A], ell)

    def around(self, P: Mat) -> Mat:
        s = len(P)
        rows = [
            jnp.pad(Q, ((0, 0), (at.start, s - at.stop), (0, 0)))
            for at, Q in zip(self.places, self.Q, strict=True)
        ]
        return sym(self.times(mt(self.times(P))) + jnp.concatenate(rows))

    def around_back(self, N: Mat) -> Mat:
        turned = [mt(A) for A in self.A]
        return sym(self._each(turned, mt(self._each(turned, N))))

    def _each(self, blocks: Sequence[jax.Array], M: Mat) -> Mat:
        """These blocks times M (s, k, c)."""
        return jnp.concatenate([mm(A, M[at]) for at, A in zip(self.places, blocks, strict=True)])
