r"""Kernels with a state-space form at sorted rows: conditioning on Gaussian sites in time proportional to n.

Row k has a site a_k / b_k on g_k = H_k x_k: with lam as (a, b) = (lam, 1) and z = h, with noise as (1, D) and
z = r, and (0, 1) where nothing was observed. The Kalman filter in these terms, and the adjoint filter back:

    P- = A P A' + Q,  m- = A m            u = P- H,  F = b + a H'u,  w = z - a H'm-
    P = P- - a u u' / F,  m = m- + u w / F
    N- = a H H' / F + C'N C,  ell- = -H w / F + C'ell,  C = I - a u H' / F;    N = A'N- A,  ell = A'ell-

so that E g = H'(m- - P- ell-), var g = H'P-H - u'N-u, A^-1 r = w / F + a u'ell / F, and its diagonal is
a / F + a^2 u'N u / F^2. No matrix is inverted, and none needs to be regular. log det is the sum of log F.

A loop over rows with a state of a few numbers would be all overhead, so rows stand side by side in chunks of
LENGTH: one scan takes the next row of each chunk. Within a chunk the state theta before it is unknown, and
everything is affine in it (de Jong 1991): the end is Psi theta + c with covariance C, and the sites say
eta'theta - theta'J theta / 2. A short scan then links the chunks with N(m, P) for theta:

    T = (I + P J)^-1,   m <- Psi T (m + P eta) + c,   P <- Psi T P Psi' + C,   log det += log det(I + P J)

and, back again, N <- T'J + T'Psi'N Psi T. With both ends of a chunk known, all chunks are filtered at once.

The gradient by K is that by A and Q of each step: the weights on Q are ell B ell' - q/2 N, those on A are
-2 ell B x' - q N A P, x the smoothed state before the step and B = 1/2; any other weights V B V' on K are
those of sites a = 0, z = V.

Cost: A has blocks on its diagonal, so that n s^2 flops a few times the size of a block, and s^3 for each
chunk; n (s + q) numbers. Pieces of chunks are of a fixed size, a program each and a thread each; results do
not depend on how many there are.

What XLA fuses it makes again in every loop that uses it, and a barrier does not hinder it. So what is costly
crosses a scan: the steps of SEGMENT rows are made before it, sums over rows after it, and products with
which outer products are made are reductions (`kept_mv`).

Sources: Durbin and Koopman 2012, chapter 4 (the filter back), section 7.3 (the score); Sarkka and
Garcia-Fernandez 2021 (chunks as elements that compose).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gramian import clock
from gramian.arrays import Array
from gramian.forks import compiled
from gramian.kernels.base import TERMS, Kernel
from gramian.kernels.statespace import Matrix, StateForm, matrix, plus, sum_of, times, vector
from gramian.linalg.threads import each
from gramian.params.tree import leaves

LENGTH = 256  # rows of a chunk
SEGMENT = 16  # rows whose covariances a gradient holds at a time; its square is LENGTH
WIDTHS = (1, 8, 16, 64, 128, 160, 208, 256)  # chunks side by side: few programs to compile
UNROLLED = 4  # states up to which matrices are written out
# up to so many numbers of a state, the chunks side by side whose matrices stay in a core's cache
WIDE = ((4, 256), (10, 64), (float("inf"), 16))
COLUMNS = (1, 4, 16, 64)  # right-hand sides, padded to one of these
EPS = float(np.finfo(np.float64).eps)


# Small matrices, of which each program has one a chunk. Those of small states are NumPy arrays of objects,
# entry by entry a JAX array (c,): all loops over entries are written out, zeros left out, and XLA puts them
# into few loops over the chunks (65,536 rows, s = 2: 3.9 ms, arrays (s, s, c) 9.2). Larger ones are such
# arrays, in which blocks on the diagonal are used. ----------------------------------------------------------

Mat = Any  # a Matrix, or a JAX array (m, k, c); a vector has one axis less


def unrolled(A: Mat) -> bool:
    return isinstance(A, np.ndarray)


def mm(A: Mat, B: Mat) -> Mat:
    """A B."""
    if unrolled(A):
        return matrix([[_total(row, column) for column in B.T] for row in A])
    total = A[:, 0, None] * B[None, 0]
    for k in range(1, A.shape[1]):
        total = total + A[:, k, None] * B[None, k]
    return total


def mv(A: Mat, v: Mat) -> Mat:
    """A v."""
    if unrolled(A):
        return vector([_total(row, v) for row in A])
    total = A[:, 0] * v[0]
    for k in range(1, A.shape[1]):
        total = total + A[:, k] * v[k]
    return total


def kept_mv(A: Mat, v: Mat) -> Mat:
    """A v by a reduction, which XLA makes once and keeps. A sum that is written out it makes again in each
    loop that uses it: with outer products of it, s^3 terms in all."""
    return mv(A, v) if unrolled(A) else jnp.sum(A * v[None], axis=1)


def dot(u: Mat, v: Mat) -> jax.Array:
    return _total(u, v) if unrolled(u) else jnp.sum(u * v, axis=0)


def _total(u: Any, v: Any) -> Any:
    total: Any = 0.0
    for x, y in zip(u, v, strict=True):
        total = plus(total, times(x, y))
    return total


def outer(u: Mat, v: Mat) -> Mat:
    return matrix([[times(x, y) for y in v] for x in u]) if unrolled(u) else u[:, None] * v[None]


def squared(u: Mat, by: Any) -> Mat:
    """u u' times an array (c,), symmetric to the last bit."""
    return scaled_all(outer(u, u), by) if unrolled(u) else u[:, None] * u[None] * by


def scaled(u: Mat, by: Any) -> Mat:
    """A vector times an array (c,)."""
    return vector([times(x, by) for x in u]) if unrolled(u) else u * by


def added(A: Mat, B: Mat) -> Mat:
    return sum_of(A, B) if unrolled(A) else A + B


# Of several right-hand sides: s entries (q, c), or one array (s, q, c).


def kept_on(A: Mat, m: Mat) -> Mat:
    """A m, made once."""
    return mv(A, m) if unrolled(A) else jnp.sum(A[:, :, None] * m[None], axis=1)


def read_off(H: Mat, m: Mat) -> jax.Array:
    """H'm, (q, c)."""
    return _total(H, m) if unrolled(H) else jnp.sum(H[:, None] * m, axis=0)


def in_columns(u: Mat, w: jax.Array) -> Mat:
    """u w' for w (q, c)."""
    return scaled(u, w) if unrolled(u) else u[:, None] * w[None]


def columns_added(m: Mat, more: Mat) -> Mat:
    return vector([plus(*pair) for pair in zip(m, more, strict=True)]) if unrolled(m) else m + more


def weighed(ell: Mat, B: jax.Array, x: Mat) -> Mat:
    """ell B x'."""
    if not unrolled(ell):
        return inner(jnp.sum(ell[:, :, None] * B[None, :, :, None], axis=1), x)
    lB = [jnp.einsum("qc,qp->pc", entry, B) for entry in ell]
    return matrix([[jnp.sum(one * other, axis=0) for other in x] for one in lB])


def mt(A: Mat) -> Mat:
    return A.T if unrolled(A) else jnp.swapaxes(A, 0, 1)


def sym(A: Mat) -> Mat:
    """A symmetric matrix from one that is so but for rounding."""
    if not unrolled(A):
        return 0.5 * (A + mt(A))
    out = A.copy()
    for i, j in zip(*np.tril_indices(len(A), -1), strict=True):
        out[i, j] = A[j, i]
    return out


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
        return [self.full(A[at]) for at in _upper(len(A))] if unrolled(A) else A

    def matrix(self, packed: Any) -> Mat:
        s = self.form.size
        return matrix([packed[k * s : (k + 1) * s] for k in range(s)]) if self.unrolled else packed

    def half(self, packed: Any) -> Mat:
        if not self.unrolled:
            return packed
        out = np.empty((self.form.size,) * 2, dtype=object)
        for (i, j), entry in zip(_upper(self.form.size), packed, strict=True):
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
        half = {(i, j): jnp.sum(v[i] * v[j] * by, axis=0) for i, j in _upper(s)}
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


def inner(u: jax.Array, v: jax.Array) -> jax.Array:
    """u v' of right-hand sides (s, q, c)."""
    total = u[:, None, 0] * v[None, :, 0]
    for p in range(1, u.shape[1]):
        total = total + u[:, None, p] * v[None, :, p]
    return total


def _upper(s: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(s) for j in range(i, s)]


# Programs: one for a kernel's structure, a number of chunks and of right-hand sides. ------------------------


class Rows(NamedTuple):
    """Of the chunks of a piece, one row of the arrays each; times, sites and right-hand sides."""

    first: Any  # (c,): 1 for the chunk with the first of all rows, else 0
    before: Any  # (c,): the time of the row before
    t: Any  # (c, LENGTH)
    a: Any
    b: Any
    z: Any  # (c, LENGTH, q)

    def along(self) -> tuple[jax.Array, ...]:
        """For a scan: the time before each row, and its own; a, b, z (LENGTH, q, c)."""
        t = self.t.T
        s = jnp.concatenate([self.before[None], t[:-1]])
        return s, t, self.a.T, self.b.T, jnp.transpose(self.z, (1, 2, 0))

    def segments(self) -> tuple[jax.Array, ...]:
        """The same in segments of rows."""
        return jax.tree_util.tree_map(lambda x: x.reshape(-1, SEGMENT, *x.shape[1:]), self.along())


class Element(NamedTuple):
    """What a chunk does to the state before it."""

    Psi: Any  # (s, s, c)
    c: Any  # (s, q, c)
    C: Any  # (s, s, c)
    J: Any  # (s, s, c)
    eta: Any  # (s, q, c)
    logdet: Any  # (c,)
    negative: Any  # (c,): how many F are negative
    quad: Any  # (q, c): of the sites with theta = 0


class Ends(NamedTuple):
    """What is known at both ends of each chunk."""

    m: Any  # (s, q, c): of the state before it, by the rows before
    P: Any
    ell: Any  # (s, q, c): of the state at its end, by the rows after
    N: Any


def _shapes(d: int, terms: int, kernel: Kernel, rows: Rows) -> Shapes:
    form = kernel.state_space(tuple(range(d)), terms)
    assert form is not None
    return Shapes(form, rows.t.shape[0], rows.z.shape[2])


def _first(shapes: Shapes, rows: Rows) -> jax.Array:
    """P before the first of all rows, where theta is no unknown but x ~ N(0, P), and 0 before the others."""
    return shapes.dense(shapes.covariance(rows.before)) * rows.first


class _Filtered(NamedTuple):
    m: Mat  # m-
    P: Mat  # P-
    H: Mat
    u: Mat
    F: jax.Array
    w: jax.Array  # (q, c)


def _forward(step: Any, m: Mat, P: Mat, site: tuple[jax.Array, ...]) -> _Filtered:
    """Before the site of a row is counted."""
    a, b, z = site
    m, P, H = step.on(m), step.around(P), step.H
    u = mv(P, H)
    return _Filtered(m, P, H, u, b + a * dot(H, u), z - a * read_off(H, m))


def _seen(at: _Filtered, a: jax.Array) -> tuple[Mat, Mat]:
    """m and P after it."""
    weight = 1 / at.F
    m = columns_added(at.m, in_columns(at.u, at.w * weight))
    return m, added(at.P, squared(at.u, -a * weight))


def _backward(H: Mat, u: Mat, F: jax.Array, w: jax.Array, a: jax.Array, ell: Mat, N: Mat) -> Any:
    """Of a row, from ell and N after it: ell- and N-, alpha and the diagonal of A^-1."""
    weight = 1 / F
    share, Nu = a * weight, kept_mv(N, u)
    alpha = w * weight + share * read_off(u, ell)
    mixed, known = outer(H, scaled(Nu, -share)), share + share**2 * dot(u, Nu)
    N = sym(added(added(N, added(mixed, mt(mixed))), outer(H, scaled(H, known))))
    return columns_added(ell, in_columns(H, -alpha)), N, alpha, known


@compiled(static=(0, 1))
def elements(d: int, terms: int, kernel: Kernel, rows: Rows) -> Element:
    shapes = _shapes(d, terms, kernel, rows)
    s, q, c = shapes.form.size, shapes.q, shapes.c

    def over_segment(carry: Any, segment: Any) -> Any:
        before, t, a, b, z = segment
        steps = shapes.steps(before, t)

        def one(carry: Any, row: Any) -> Any:
            M, m, P = shapes.matrix(carry[0]), shapes.columns(carry[1]), shapes.half(carry[2])
            step = steps.at(row[0])
            at, M = _forward(step, m, P, row[1]), step.times(M)
            HM = mv(mt(M), at.H)
            M = added(M, outer(at.u, scaled(HM, -row[1][0] / at.F)))
            m, P = _seen(at, row[1][0])
            return (shapes.packed(M), list_of(m), shapes.packed_half(P)), (shapes.packed(HM), at.F, at.w)

        state, (HM, F, w) = jax.lax.scan(one, carry[:3], (steps.arrays, (a, b, z)))
        weight = 1 / F
        J, eta, logdet, negative, quad = carry[3:]
        by_site = jnp.where(a == 0, 0.0, weight / jnp.where(a == 0, 1.0, a))
        J = J + shapes.summed_squares(HM, a * weight)
        eta = eta + shapes.summed_columns(HM, w * weight[:, None])
        logdet = logdet + jnp.sum(jnp.log(jnp.abs(F)), axis=0)
        negative = negative + jnp.sum(F < 0, axis=0)
        quad = quad + jnp.sum(w**2 * by_site[:, None], axis=0)
        return (*state, J, eta, logdet, negative, quad), None

    eye = shapes.square(jnp.broadcast_to(jnp.eye(s)[:, :, None], (s, s, c)))
    start = shapes.square(_first(shapes, rows))
    empty = jnp.zeros((s, q, c))
    begin = shapes.packed(eye), list_of(shapes.columns(empty)), shapes.packed_half(start)
    zero = jnp.zeros((s, s, c)), empty, jnp.zeros(c), jnp.zeros(c), jnp.zeros((q, c))
    M, m, P, J, *sums = jax.lax.scan(over_segment, (*begin, *zero), rows.segments())[0]
    return Element(shapes.dense(shapes.matrix(M)), jnp.asarray(m), shapes.dense(shapes.half(P)), J, *sums)


def list_of(m: Mat) -> Any:
    """For a carry."""
    return list(m) if unrolled(m) else m


@compiled()
def link(m: jax.Array, P: jax.Array, element: Element) -> Any:
    """Through the chunks of a piece, from N(m, P) before them, (s, q) and (s, s). Gives what is after them;
    m, P before each; what its own rows say for ell and N, with Psi T; log det and quad in addition."""

    def one(carry: Any, chunk: Any) -> Any:
        m, P = carry
        Psi, c, C, J, eta = chunk
        T, logdet = _inverse(jnp.eye(len(P)) + P @ J)
        V = T @ P
        V = 0.5 * (V + V.T)
        gap = eta - J @ m
        quad = jnp.sum(-2 * m * eta + m * (J @ m) - gap * (V @ gap), axis=0)
        PsiT = Psi @ T
        after = PsiT @ (m + P @ eta) + c, Psi @ V @ Psi.T + C
        N = T.T @ J
        return after, (m, P, -T.T @ gap, 0.5 * (N + N.T), PsiT, logdet, quad)

    first = (jnp.moveaxis(part, -1, 0) for part in element[:5])
    return jax.lax.scan(one, (m, P), tuple(first))


def _inverse(A: jax.Array) -> tuple[jax.Array, jax.Array]:
    """And the log determinant. Of two columns by Cramer's rule, since a call of LAPACK takes longer than all
    the rest of a link."""
    if len(A) > 2:
        lu, pivots = jax.scipy.linalg.lu_factor(A)
        inverse = jax.scipy.linalg.lu_solve((lu, pivots), jnp.eye(len(A)))
        return inverse, jnp.sum(jnp.log(jnp.abs(jnp.diagonal(lu))))
    if len(A) == 1:
        return 1 / A, jnp.log(jnp.abs(A[0, 0]))
    det = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    turned = jnp.stack([jnp.stack([A[1, 1], -A[0, 1]]), jnp.stack([-A[1, 0], A[0, 0]])])
    return turned / det, jnp.log(jnp.abs(det))


@compiled()
def link_back(ell: jax.Array, N: jax.Array, own: Any) -> Any:
    """The same from the last to the first, from ell and N after them; ell and N at the end of each."""

    def one(carry: Any, chunk: Any) -> Any:
        ell, N = carry
        own_l, own_N, PsiT = chunk
        new = own_N + PsiT.T @ N @ PsiT
        return (own_l + PsiT.T @ ell, 0.5 * (new + new.T)), carry

    return jax.lax.scan(one, (ell, N), own, reverse=True)


class Smoothed(NamedTuple):
    """At the rows of each chunk: (c, LENGTH, q) or (c, LENGTH)."""

    mean: Any
    var: Any
    alpha: Any
    precision: Any


@compiled(static=(0, 1))
def smooth(d: int, terms: int, kernel: Kernel, rows: Rows, ends: Ends, read: jax.Array) -> Smoothed:
    """`read` (s,): which entries of the state make up the g that is asked for: all, or those of a summand."""
    shapes = _shapes(d, terms, kernel, rows)

    def asked(H: Mat) -> Mat:
        return vector([H[k] * read[k] for k in range(len(H))]) if unrolled(H) else H * read[:, None]

    before, t, a, b, z = rows.along()
    steps = shapes.steps(before, t)

    def ahead(carry: Any, row: Any) -> Any:
        m, P = shapes.columns(carry[0]), shapes.half(carry[1])
        at = _forward(steps.at(row[0]), m, P, row[1])
        R = asked(at.H)
        v = mv(at.P, R)
        kept = shapes.packed(at.u), shapes.packed(v), at.F, at.w, read_off(R, at.m), dot(R, v)
        m, P = _seen(at, row[1][0])
        return (list_of(m), shapes.packed_half(P)), kept

    def back(carry: Any, row: Any) -> Any:
        ell, N = shapes.columns(carry[0]), shapes.half(carry[1])
        arrays, a, (u, v, F, w, mean, var) = row
        step = steps.at(arrays)
        u, v = shapes.columns(u), shapes.columns(v)
        ell, N, alpha, precision = _backward(step.H, u, F, w, a, ell, N)
        out = mean - read_off(v, ell), var - dot(v, mv(N, v)), alpha, precision
        return (list_of(step.back_on(ell)), shapes.packed_half(step.around_back(N))), out

    begin, end = _ends(shapes, rows, ends)
    _, kept = jax.lax.scan(ahead, begin, (steps.arrays, (a, b, z)))
    _, (mean, var, alpha, precision) = jax.lax.scan(back, end, (steps.arrays, a, kept), reverse=True)
    mean, alpha = (jnp.transpose(x, (2, 0, 1)) for x in (mean, alpha))
    return Smoothed(mean, var.T, alpha, precision.T)


def _ends(shapes: Shapes, rows: Rows, ends: Ends) -> tuple[Any, Any]:
    """What scans from both sides begin with."""
    P, N = (shapes.packed_half(shapes.square(x)) for x in (ends.P + _first(shapes, rows), ends.N))
    m, ell = (list_of(shapes.columns(x)) for x in (ends.m, ends.ell))
    return (m, P), (ell, N)


@compiled(static=(0, 1))
def pulled(d: int, terms: int, kernel: Kernel, rows: Rows, ends: Ends, B: jax.Array, q: jax.Array) -> Any:
    """The gradient by the kernel of tr(V B V'K) - q/2 log det, V = alpha of these sites; with alpha and
    precision at the rows. Covariances are held at each SEGMENTth row and found again in between."""
    shapes = _shapes(d, terms, kernel, rows)

    def ahead(steps: Steps, carry: Any, row: Any) -> Any:
        m, P = shapes.columns(carry[0]), shapes.half(carry[1])
        at = _forward(steps.at(row[0]), m, P, row[1])
        m, P = _seen(at, row[1][0])
        return (list_of(m), shapes.packed_half(P)), (carry, shapes.packed(at.u), at.F, at.w)

    def over_segment(carry: Any, segment: Any) -> Any:
        before, t, *site = segment
        steps = shapes.steps(before, t)
        return jax.lax.scan(lambda c, r: (ahead(steps, c, r)[0], None), carry, (steps.arrays, site))[0], carry

    def back(steps: Steps, carry: Any, row: Any) -> Any:
        ell, N = shapes.columns(carry[0]), shapes.half(carry[1])
        arrays, a, ((m, P), u, F, w) = row
        step = steps.at(arrays)
        m, P, u = shapes.columns(m), shapes.half(P), shapes.columns(u)
        ell, N, alpha, precision = _backward(step.H, u, F, w, a, ell, N)
        before_l, before_N = step.back_on(ell), step.around_back(N)
        x = columns_added(m, scaled_all(kept_on(P, before_l), -1.0))  # smoothed, before the step
        out = alpha, precision, steps.weights(step, Smooth(ell, N, x, P), B, q)
        return (list_of(before_l), shapes.packed_half(before_N)), out

    def back_over_segment(carry: Any, both: Any) -> Any:
        (before, t, *site), start = both
        steps = shapes.steps(before, t)

        def entries(kernel: Kernel) -> list[jax.Array]:
            found = _shapes(d, terms, kernel, rows).steps(before, t)
            return found.arrays[: found.differ]

        _, kept = jax.lax.scan(lambda c, r: ahead(steps, c, r), start, (steps.arrays, site))
        state, (alpha, precision, weights) = jax.lax.scan(
            lambda c, r: back(steps, c, r), carry[:2], (steps.arrays, site[0], kept), reverse=True
        )
        total = jax.tree_util.tree_map(
            jnp.add, carry[2], jax.vjp(entries, kernel)[1](steps.by_entry(weights))[0]
        )
        return (*state, total), (alpha, precision)

    begin, end = _ends(shapes, rows, ends)
    segments = rows.segments()
    _, starts = jax.lax.scan(over_segment, begin, segments)
    none = jax.tree_util.tree_map(jnp.zeros_like, kernel)
    (ell, N, total), (alpha, precision) = jax.lax.scan(
        back_over_segment, (*end, none), (segments, starts), reverse=True
    )
    ell, N = shapes.columns(ell), shapes.half(N)
    by_P = shapes.dense(added(weighed(ell, B, ell), scaled_all(N, -0.5 * q)))
    _, pull = jax.vjp(lambda kernel: _first(_shapes(d, terms, kernel, rows), rows), kernel)
    total = jax.tree_util.tree_map(jnp.add, total, pull(by_P)[0])
    alpha, precision = (x.reshape(LENGTH, *x.shape[2:]) for x in (alpha, precision))
    return total, jnp.transpose(alpha, (2, 0, 1)), precision.T


def scaled_all(A: Mat, by: Any) -> Mat:
    """Each entry times a number."""
    if not unrolled(A):
        return A * by
    out = A.copy()
    for at, x in np.ndenumerate(A):
        out[at] = x * by
    return out


def _finished(values: Any) -> Any:
    return jax.block_until_ready(values)  # type: ignore[no-untyped-call]


# On the host. -----------------------------------------------------------------------------------------------


class Chain:
    """Sorted times (n,) under a kernel of d columns; `terms`: of series that must be cut."""

    def __init__(self, kernel: Kernel, d: int, t: Array, terms: int = TERMS) -> None:
        self.kernel, self.d, self.n, self.times, self.terms = kernel.bare(), d, len(t), t, terms
        form = self.kernel.state_space(tuple(range(d)), terms)
        assert form is not None
        self.size = form.size
        chunks, most = -(-self.n // LENGTH), next(width for size, width in WIDE if self.size <= size)
        self.pieces = -(-chunks // most)
        self.width = next(w for w in WIDTHS if w >= -(-chunks // self.pieces))
        self.t = self.cut(t, t[-1])
        before = np.concatenate([t[:1], self.t.reshape(-1)[LENGTH - 1 : -1 : LENGTH]])
        self.before = before.reshape(self.pieces, self.width)
        self.first = np.zeros((self.pieces, self.width))
        self.first[0, 0] = 1.0

    def cut(self, values: Array, padding: float = 0.0) -> Array:
        """Values of the rows (n, ...) as (pieces, width, LENGTH, ...)."""
        shape = self.pieces, self.width, LENGTH, *values.shape[1:]
        out = np.full((int(np.prod(shape[:3])), *values.shape[1:]), padding)
        out[: self.n] = values
        return out.reshape(shape)

    def joined(self, parts: Sequence[Any]) -> Array:
        """The rows again."""
        arrays = [np.asarray(part) for part in parts]
        whole = np.concatenate([array.reshape(-1, *array.shape[2:]) for array in arrays])
        return whole[: self.n]

    def sited(self, a: Array, b: Array, z: Array) -> SitedChain:
        """With sites a, b (n,) and right-hand sides z (n, q)."""
        return SitedChain(self, a, b, z)

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """For each piece, on some threads."""

        def one(k: int) -> Any:
            with jax.enable_x64(True):
                return _finished(work(k))

        return list(each(one, range(self.pieces)))


class SitedChain:
    """A chain with sites: what follows at the rows."""

    def __init__(self, chain: Chain, a: Array, b: Array, z: Array) -> None:
        self.chain, self.q = chain, z.shape[1]
        columns = next((q for q in COLUMNS if q >= self.q), -(-self.q // COLUMNS[-1]) * COLUMNS[-1])
        wide = np.zeros((len(z), columns))
        wide[:, : self.q] = z
        self._a, self._b, self._z = chain.cut(a), chain.cut(b, 1.0), chain.cut(wide)
        self._elements = chain.each(lambda k: elements(chain.d, chain.terms, chain.kernel, self._rows(k)))
        s = chain.size
        m, P = np.zeros((s, columns)), np.zeros((s, s))
        self._before: list[Any] = []
        logdet, self.quad = 0.0, np.zeros(columns)
        self.rounding = 0.0  # of quad, which is what is left of larger numbers where there is little noise
        negative = 0.0
        with jax.enable_x64(True):
            for element in self._elements:
                clock.check()
                (m, P), found = link(m, P, element)
                self._before.append(found)
                more = np.asarray(found[6])
                own = np.asarray(element.quad)
                logdet += float(np.sum(element.logdet)) + float(np.sum(found[5]))
                self.quad += own.sum(axis=1) + more.sum(axis=0)
                self.rounding += EPS * float(np.sum(np.abs(own)) + np.sum(np.abs(more)))
                negative += float(np.sum(element.negative))
        self.logdet, self.quad, self.negative = logdet, self.quad[: self.q], negative

    @cached_property
    def ends(self) -> list[Ends]:
        """Of each piece."""
        s, columns = self.chain.size, self._z.shape[3]
        ell, N = np.zeros((s, columns)), np.zeros((s, s))
        out = []
        with jax.enable_x64(True):
            for m, P, own_l, own_N, PsiT, _, _ in reversed(self._before):
                clock.check()
                (ell, N), (ls, Ns) = link_back(ell, N, (own_l, own_N, PsiT))
                out.append(Ends(*(np.moveaxis(np.asarray(x), 0, -1) for x in (m, P, ls, Ns))))
        return out[::-1]

    def smoothed(self, read: Array | None = None) -> Smoothed:
        chain, ends = self.chain, self.ends
        read = np.ones(chain.size) if read is None else read
        parts = chain.each(lambda k: smooth(chain.d, chain.terms, chain.kernel, self._rows(k), ends[k], read))
        mean, var, alpha, precision = (chain.joined(column) for column in zip(*parts, strict=True))
        return Smoothed(mean[:, : self.q], var, alpha[:, : self.q], precision)

    def pulled(self, B: Array, logdet: float) -> tuple[list[Array], Array, Array]:
        """The gradient by the kernel's parameters of tr(V B V'K) - logdet/2 log det; alpha, precision."""
        chain, ends = self.chain, self.ends
        wide = np.zeros((self._z.shape[3],) * 2)
        wide[: self.q, : self.q] = B
        parts = chain.each(
            lambda k: pulled(
                chain.d, chain.terms, chain.kernel, self._rows(k), ends[k], wide, np.float64(logdet)
            )
        )
        gradients = [leaves(part[0]) for part in parts]
        total = [np.sum([np.asarray(x) for x in column], axis=0) for column in zip(*gradients, strict=True)]
        alpha, precision = (chain.joined([part[k] for part in parts]) for k in (1, 2))
        return total, alpha[:, : self.q], precision

    def _rows(self, k: int) -> Rows:
        chain = self.chain
        return Rows(chain.first[k], chain.before[k], chain.t[k], self._a[k], self._b[k], self._z[k])


def sorted_chain(kernel: Kernel, X: Array, terms: int) -> tuple[Chain, Any]:
    """The rows of X (n, d) in the order of time, and that order: a slice where they are sorted already."""
    d = X.shape[1]
    form = kernel.bare().state_space(tuple(range(d)))
    assert form is not None
    t = np.ascontiguousarray(X[:, form.column or 0])
    order: Any = slice(None)
    if np.any(t[1:] < t[:-1]):
        order = np.argsort(t, kind="stable")
        t = t[order]
    return Chain(kernel, d, t, terms), order


@compiled(static=(0, 1))
def transitions(d: int, terms: int, kernel: Kernel, s: jax.Array, t: jax.Array) -> tuple[jax.Array, ...]:
    """A and Q from each of the times s to that of t (c,), P at s: (c, size, size); H at t (c, size)."""
    form = kernel.state_space(tuple(range(d)), terms)
    assert form is not None
    shapes = Shapes(form, t.shape[0], 1)
    pairs = [block.step(s, t) for block in form.blocks]
    parts = *(shapes.diagonal([pair[k] for pair in pairs]) for k in range(2)), shapes.covariance(s)
    A, Q, P = (jnp.moveaxis(shapes.dense(part), -1, 0) for part in parts)
    H = shapes.emission(t)
    return A, Q, P, jnp.stack([shapes.full(x) for x in H], axis=1)


def drawn(chain: Chain, rng: np.random.Generator, count: int) -> Array:
    """Draws of g at the rows, (n, count): the state goes from row to row with what is new at each."""
    out, x = np.empty((chain.pieces * chain.width * LENGTH, count)), np.zeros((chain.size, count))
    at = 0
    for k in range(chain.pieces):
        t = chain.t[k].reshape(-1)
        s = np.concatenate([chain.before[k][:1], t[:-1]])
        with jax.enable_x64(True):
            A, Q, P, H = (np.asarray(part) for part in transitions(chain.d, chain.terms, chain.kernel, s, t))
        if k == 0:
            x = _root(P[:1])[0] @ rng.standard_normal(x.shape)
        R = _root(Q)
        for i in range(min(len(t), chain.n - at)):
            if not i % LENGTH:
                clock.check()
            x = A[i] @ x + R[i] @ rng.standard_normal(x.shape)
            out[at + i] = H[i] @ x
        at += len(t)
    return out[: chain.n]


def _root(Q: Array) -> Array:
    """R with R R' = Q, also where that is singular, for Q (n, s, s)."""
    values, vectors = np.linalg.eigh(Q)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return root


def variances(kernel: Kernel, X: Array, terms: int) -> Array:
    """k(x, x) of a bare kernel's Markov processes at the rows of X, (n,)."""
    chain, order = sorted_chain(kernel, X, terms)

    def one(k: int) -> Any:
        t = chain.t[k].reshape(-1)
        return variance_rows(chain.d, chain.terms, chain.kernel, t)

    found = np.concatenate([np.asarray(part) for part in chain.each(one)])[: chain.n]
    out = np.empty(chain.n)
    out[order] = found
    return out


@compiled(static=(0, 1))
def variance_rows(d: int, terms: int, kernel: Kernel, t: jax.Array) -> jax.Array:
    form = kernel.state_space(tuple(range(d)), terms)
    assert form is not None
    shapes = Shapes(form, t.shape[0], 1)
    H = shapes.emission(t)
    return jnp.broadcast_to(dot(H, mv(shapes.covariance(t), H)), t.shape)
