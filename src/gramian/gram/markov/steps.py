"""The steps from row to row, A and Q, entry by entry or in blocks, and what a smoother says of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gramian.gram.markov.matrices import (
    UNROLLED,
    Mat,
    added,
    inner_each,
    mm,
    mm_each,
    mt,
    mv,
    scaled_all,
    sym,
    unrolled,
    upper,
    weighed,
)
from gramian.kernels.statespace import Block, Matrix, StateForm, matrix, plus, vector


class BlockGroup(NamedTuple):
    """Blocks of one form, which differ in parameters alone."""

    like: Any  # their structure as a tree of JAX, with those numbers that are known when it is written down
    leaves: tuple[jax.Array, ...]  # the others: (), the same for all, or (n, 1)
    members: tuple[int, ...]  # which blocks of the kernel's form they are
    size: int  # of the state of one of them

    @property
    def many(self) -> int:
        return len(self.members)

    @property
    def block(self) -> Block:
        """All of them at once."""
        structure, known = self.like
        rest = iter(self.leaves)
        leaves = [next(rest) if number is None else number for number in known]
        made: Block = jax.tree_util.tree_unflatten(structure, leaves)
        return made

    def full(self, entries: Matrix, *after: int) -> jax.Array:
        """Numbers and arrays (., c) as one array, with the axes of `entries` first: (.., n, c)."""
        flat = [jnp.broadcast_to(jnp.asarray(x, jnp.float64), (self.many, *after)) for x in entries.flat]
        return jnp.stack(flat).reshape(*entries.shape, self.many, *after)


def grouped(blocks: Sequence[Block], together: bool) -> tuple[BlockGroup, ...]:
    """Those of one form together, or each alone."""
    members: dict[Any, list[int]] = {}
    for k, block in enumerate(blocks):
        leaves, structure = jax.tree_util.tree_flatten(block)
        known = tuple(x if isinstance(x, float) else None for x in leaves)
        members.setdefault((structure, known, None if together else k), []).append(k)
    found = []
    for (structure, known, _), own in members.items():
        columns = list(zip(*(jax.tree_util.tree_leaves(blocks[k]) for k in own), strict=True))
        rest = [column for column, number in zip(columns, known, strict=True) if number is None]
        one = tuple(_of_all([jnp.asarray(x, jnp.float64) for x in column], column) for column in rest)
        found.append(BlockGroup((structure, known), one, tuple(own), blocks[own[0]].size))
    return tuple(found)


def _of_all(numbers: list[jax.Array], given: Sequence[Any]) -> jax.Array:
    if all(x is given[0] for x in given):
        return numbers[0].reshape(())
    return jnp.stack([x.reshape(()) for x in numbers])[:, None]


@dataclass(frozen=True)
class Shapes:
    """How the matrices of a program are passed on from row to row.

    Those of a larger state go group by group. Of its entries those of a group lie together, the same of all
    its blocks side by side, (size, n): `order` says where each stands in the kernel's form."""

    form: StateForm
    c: int  # chunks
    q: int
    known: tuple[BlockGroup, ...] | None = field(default=None, repr=False)  # with parameters of their own

    @property
    def unrolled(self) -> bool:
        return self.form.size <= UNROLLED

    @cached_property
    def groups(self) -> tuple[BlockGroup, ...]:
        return grouped(self.form.blocks, not self.unrolled) if self.known is None else self.known

    @property
    def leaves(self) -> list[tuple[jax.Array, ...]]:
        """The parameters of all steps, made from the kernel's once for all rows."""
        return [group.leaves for group in self.groups]

    def with_leaves(self, leaves: Sequence[tuple[jax.Array, ...]]) -> Shapes:
        pairs = zip(self.groups, leaves, strict=True)
        return replace(self, known=tuple(group._replace(leaves=own) for group, own in pairs))

    @cached_property
    def order(self) -> list[int]:
        ends = np.cumsum([block.size for block in self.form.blocks]).tolist()
        firsts = [end - block.size for block, end in zip(self.form.blocks, ends, strict=True)]
        return [firsts[k] + i for group in self.groups for i in range(group.size) for k in group.members]

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
        """A matrix with those of each group, of entries (., c), on its diagonal."""
        if not self.unrolled:
            return spread([group.full(M, self.c) for group, M in zip(self.groups, blocks, strict=True)])
        whole = np.full((self.form.size,) * 2, 0.0, dtype=object)
        for at, block in zip(self.places, blocks, strict=True):
            whole[at, at] = block
        return whole

    def covariance(self, t: jax.Array) -> Mat:
        return self.diagonal([group.block.cov(self.beside(t)) for group in self.groups])

    def emission(self, t: jax.Array) -> Mat:
        emitted = [group.block.emission(self.beside(t)) for group in self.groups]
        if self.unrolled:
            return vector([x for entries in emitted for x in entries])
        pairs = zip(self.groups, emitted, strict=True)
        return jnp.concatenate([group.full(H, self.c).reshape(-1, self.c) for group, H in pairs])

    def transition(self, s: jax.Array, t: jax.Array) -> tuple[Mat, Mat]:
        """A and Q from times s to times t, (c,) each."""
        pairs = [group.block.step(self.beside(s), self.beside(t)) for group in self.groups]
        return self.diagonal([A for A, _ in pairs]), self.diagonal([Q for _, Q in pairs])

    def beside(self, t: jax.Array) -> jax.Array:
        """Times (.., c) as blocks of a group take them, (.., 1, c)."""
        return t if self.unrolled else jnp.expand_dims(t, -2)

    @property
    def places(self) -> list[slice]:
        """Where the groups lie in the state."""
        sizes = [group.size * group.many for group in self.groups]
        return [slice(end - size, end) for size, end in zip(sizes, np.cumsum(sizes).tolist(), strict=True)]

    def steps(self, s: jax.Array, t: jax.Array) -> Steps:
        """To all rows at the times t (rows, c) from s: exponentials and the like in a few passes over all of
        them. Made within a scan they would be made again in each loop that uses them: XLA drops barriers."""
        s, t = self.beside(s), self.beside(t)
        blocks = [group.block for group in self.groups]
        pairs = [block.step(s, t) for block in blocks]
        kind = EntrySteps if self.unrolled else GroupSteps
        return kind(self, pairs, [block.emission(t) for block in blocks], t.shape)


def spread(blocks: Sequence[jax.Array]) -> jax.Array:
    """A matrix with these (b, b, n, c), n blocks each, on its diagonal: (s, s, c), entries as in Shapes."""
    s, start, rows = sum(M.shape[0] * M.shape[2] for M in blocks), 0, []
    for M in blocks:
        b, _, n, c = M.shape
        same = jnp.eye(n, dtype=bool)[None, :, None, :, None]
        wide = jnp.where(same, jnp.swapaxes(M, 1, 2)[:, :, :, None], 0.0).reshape(b * n, b * n, c)
        rows.append(jnp.pad(wide, ((0, 0), (start, s - start - b * n), (0, 0))))
        start += b * n
    return jnp.concatenate(rows)


class Steps(ABC):
    """The matrices of many rows. What differs from row to row is in `arrays`, each entry once; the rest is
    known when a program is written down, such as zeros. Entries are apart, since XLA would not vectorise
    the exponentials of several in one array (a state of 23: 20 microseconds a row, apart 5)."""

    def __init__(
        self, shapes: Shapes, pairs: list[tuple[Matrix, Matrix]], H: list[Matrix], rows: tuple[int, ...]
    ) -> None:
        self.shapes, self.rows = shapes, rows
        self.arrays: list[jax.Array] = []
        self._number: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other entry gets its id
        self.A = [self._held(A, group) for (A, _), group in zip(pairs, shapes.groups, strict=True)]
        self.Q = [self._held(sym(Q), group) for (_, Q), group in zip(pairs, shapes.groups, strict=True)]
        self.differ = len(self.arrays)  # depend on parameters: an emission does not
        self.H = [self._held(own) for own in H]

    def _held(self, M: Matrix, group: BlockGroup | None = None) -> Matrix:
        """With numbers of arrays in place of them: (rows, c), or those of a group (rows, n, c)."""
        shape = self._shape(group)
        out = np.empty(M.shape, dtype=object)
        for at, x in np.ndenumerate(M):
            out[at] = x
            if not isinstance(x, float):
                if id(x) not in self._number:
                    self._number[id(x)] = len(self.arrays)
                    self._kept.append(x)
                    self.arrays.append(jnp.broadcast_to(jnp.asarray(x, jnp.float64), shape))
                out[at] = self._number[id(x)]
        return out

    def _shape(self, group: BlockGroup | None) -> tuple[int, ...]:
        *rows, c = self.rows
        many = group is not None and not self.shapes.unrolled
        return (*rows[:-1], group.many, c) if group is not None and many else self.rows

    def at(self, row: Sequence[jax.Array]) -> Any:
        """A step, from its part of `arrays`, (c,) or (n, c) each."""

        def filled(M: Matrix) -> Matrix:
            out = M.copy()
            for at, x in np.ndenumerate(M):
                out[at] = x if isinstance(x, float) else row[x]
            return out

        return self.made(*([filled(M) for M in blocks] for blocks in (self.A, self.Q, self.H)))

    @abstractmethod
    def made(self, A: list[Matrix], Q: list[Matrix], H: list[Matrix]) -> Any:
        """A step, of its blocks."""

    @abstractmethod
    def weights(self, step: Any, smoothed: Smooth, B: jax.Array, q: jax.Array) -> list[Any]:
        """On A and on Q of each group, of one row, as the module has them."""

    @abstractmethod
    def by_entry(self, weights: list[Any]) -> list[jax.Array]:
        """Of all rows, on those of `arrays` that depend on parameters."""

    def _gathered(self, held: Sequence[Matrix], entry: Callable[[int, int, int], Any]) -> list[jax.Array]:
        out: list[Any] = [0.0] * self.differ
        for k, M in enumerate(held):
            for (i, j), number in np.ndenumerate(M):
                if not isinstance(number, float):
                    out[number] = plus(out[number], entry(k, i, j))
        return [jnp.broadcast_to(x, array.shape) for x, array in zip(out, self.arrays, strict=False)]


class Smooth(NamedTuple):
    """At a step, from both sides: ell- and N- after it, x and P before it."""

    ell: Mat
    N: Mat
    x: Mat
    P: Mat


class EntrySteps(Steps):
    """Of small states, whose matrices are written out."""

    def made(self, A: list[Matrix], Q: list[Matrix], H: list[Matrix]) -> EntryStep:
        emitted = vector([x for entries in H for x in entries])
        return EntryStep(self.shapes.diagonal(A), self.shapes.diagonal(Q), emitted)

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


class GroupSteps(Steps):
    """Of larger states, group by group."""

    def made(self, A: list[Matrix], Q: list[Matrix], H: list[Matrix]) -> GroupStep:
        shapes, c = self.shapes, self.shapes.c
        dense = ([g.full(M, c) for g, M in zip(shapes.groups, blocks, strict=True)] for blocks in (A, Q, H))
        A_all, Q_all, H_all = dense
        return GroupStep(shapes.places, A_all, Q_all, jnp.concatenate([x.reshape(-1, c) for x in H_all]))

    def weights(self, step: GroupStep, smoothed: Smooth, B: jax.Array, q: jax.Array) -> list[Any]:
        ell, N, x, P = smoothed
        AP, lB = step.times(P), jnp.sum(ell[:, :, None] * B[None, :, :, None], axis=1)
        by_A, by_Q = [], []
        for at, A in zip(step.places, step.A, strict=True):
            b, _, n, c = A.shape
            left, right, other = (v[at].reshape(b, n, *v.shape[1:]) for v in (lB, ell, x))
            columns = (M[:, at].reshape(-1, b, n, c) for M in (N, AP))
            by_A.append(-2.0 * inner_each(left, other) - q * mm_each(*columns))
            own = N[at, at].reshape(b, n, b, n, c)
            beside = jnp.stack([own[:, k, :, k] for k in range(n)], axis=2)
            by_Q.append(inner_each(left, right) - 0.5 * q * beside)
        return by_A + by_Q

    def by_entry(self, weights: list[Any]) -> list[jax.Array]:
        return self._gathered([*self.A, *self.Q], lambda k, i, j: weights[k][:, i, j])


class GroupStep(NamedTuple):
    """The same as EntryStep, of groups of n blocks with b numbers each."""

    places: Sequence[slice]
    A: Sequence[jax.Array]  # (b, b, n, c)
    Q: Sequence[jax.Array]
    H: jax.Array

    def times(self, M: Mat) -> Mat:
        return self._each(self.A, M)

    def on(self, m: Mat) -> Mat:
        return self._each(self.A, m)

    def back_on(self, ell: Mat) -> Mat:
        return self._each([mt(A) for A in self.A], ell)

    def around(self, P: Mat) -> Mat:
        return sym(self.times(mt(self.times(P))) + spread(self.Q))

    def around_back(self, N: Mat) -> Mat:
        turned = [mt(A) for A in self.A]
        return sym(self._each(turned, mt(self._each(turned, N))))

    def _each(self, groups: Sequence[jax.Array], M: Mat) -> Mat:
        """The blocks of these groups times M (s, k, c)."""
        parts = []
        for at, A in zip(self.places, groups, strict=True):
            b, _, n, _ = A.shape
            own = M[at].reshape(b, n, *M.shape[1:])
            total = A[:, 0, :, None] * own[None, 0]
            for j in range(1, b):
                total = total + A[:, j, :, None] * own[None, j]
            parts.append(total.reshape(b * n, *M.shape[1:]))
        return jnp.concatenate(parts)
