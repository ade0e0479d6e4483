"""Each row given a few others: many small Gaussians, side by side.

With the covariance A_i = k + D of a row and its neighbours N, the row last, and A_i = L L':

    b = A_NN^-1 k_N,   F = k - k_N'b,   e = r - b'r_N,   c = A_NN^-1 r_N

F is the last pivot of L squared, b a back substitution from its last row. A block of rows is made at a time,
on one thread. Its matrices lie side by side, (G, G, B), so that a step of NumPy over an entry goes over that
entry of all B matrices: kernel values from differences, of one triangle alone, some diagonals of it at a time
so that they stay in a core's own cache; then Cholesky's algorithm by columns, each minus one sum of products
of those before it; then substitutions. L stands above the diagonal, as L', so that a column of it is one
piece of memory. Up to FEW points that takes as long as LAPACK with one matrix after the other (31 points, a
core's time for 100,000 rows: 0.26 s and 0.24 s), and nothing has to be turned around for it (0.15 s). Beyond,
LAPACK factors. Kernels that are no functions of distances go through a compiled program. (XLA made Cholesky's
columns in three times the time of NumPy, after 15 s of compilation.)

Of MANY rows and more, gram/beside.py does the same in a compiled program, in a third of the time and without
the lock of Python, after a few seconds of compilation. Rows with fewer neighbours, or whose matrix is
singular, are done as here.

Log density of r given r_N, -1/2 log F - e^2 / 2F, and its weights on A_i, with v = (-b, 1) and c padded by 0:

    G_i = (e^2 / F^2 - 1 / F) / 2 v v' + (e / F) c v'         (its symmetric part)

Cost of a row with m neighbours: m^2 kernel values, m^3 / 3 flops; O(m) numbers are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian import forks
from gramian.arrays import Array
from gramian.errors import NumericalError
from gramian.gram import beside, few, programs
from gramian.gram.tiles import _each, _host
from gramian.kernels.base import Kernel
from gramian.kernels.host import Stack
from gramian.linalg.executor import current
from gramian.linalg.factor import CURE, LADDER
from gramian.linalg.threads import at_work
from gramian.params.tree import leaves

# points up to which matrices are factored side by side, and how many: enough to hide what a step of NumPy
# costs (192: a fifth slower), few enough that 31 points nearly fit into a core's own cache
FEW, BESIDE = 64, 384
BLOCK = 2**17  # numbers of the matrices of a block of more points: a megabyte
PIECE = 2**15  # kernel values that are made at a time: with what they are made of, half of a core's cache
# numbers behind the kernel values that a compiled program makes at a time; tables, of these sizes
COMPILED, SIZES = 2**18, (64, 16, 4)
# rows from which on a program, for blocks of so many, is worth its compilation of 3 to 5 s
MANY, PROGRAM = 16_384, 128
FAR = 1e4  # times k(x, x): noise of a row that says little
FEWEST_SHARED, SHARED = 4096, 24  # rows that are worth a way to other machines, and blocks of a part of them
Places = NDArray[np.int32]


class Around(NamedTuple):
    """Rows with their neighbours: (n, G) places in the tables of points, noise and residuals, the row itself
    last; a neighbour at -1 is none."""

    at: Places
    X: Array  # (., d)
    D: Array  # (.,)
    R: Array  # (., q)


class Given(NamedTuple):
    """Each row given its neighbours."""

    b: Array  # (n, m)
    F: Array  # (n,)
    F_plain: Array  # (n,): without the row's own noise
    e: Array  # (n, q)
    c: Array  # (n, q, m); of no columns unless asked for
    jitter: float  # of the mean diagonal of a row's own matrix, the most that one took


def given(kernel: Kernel, around: Around, *, solved: bool = False, part: Kernel | None = None) -> Given:
    """Each row given its neighbours; with `solved`, c as well. `part`: the row's value is that of a summand
    of the kernel, without noise."""
    bare = kernel.bare()
    program = len(around.at) >= MANY and part is None and around.at.shape[1] <= FEW
    program = program and few.by_distance(bare) is not None and not forks.lost()
    if _here(around):
        return _given(around, (kernel, solved, part, program))
    parts = list(current().each(_given, _parts(around), (kernel, solved, part, program)))
    b, F, F_plain, e, c = (np.concatenate(arrays) for arrays in zip(*(p[:-1] for p in parts), strict=True))
    return Given(b, F, F_plain, e, c, max(one.jitter for one in parts))


def _given(around: Around, state: tuple[Kernel, bool, Kernel | None, bool]) -> Given:
    """On threads of this process; `program`: whether by a compiled one."""
    kernel, solved, part, program = state
    n, G = around.at.shape
    q = around.R.shape[1]
    b, F, F_plain, e = np.empty((n, G - 1)), np.empty(n), np.empty(n), np.empty((n, q))
    c = np.empty((n, q if solved else 0, G - 1))
    bare, own = kernel.bare(), None if part is None else part.bare()

    def one(rows: slice | NDArray[np.intp]) -> float:
        A, R, within = _covariance(bare, own, around, rows)
        numbers = np.arange(n)[rows]
        jitter = _factor_all(A, lambda k: _covariance(bare, own, around, numbers[k])[0])
        last, r, pivot = A[:-1, -1], R[:-1], A[-1, -1] ** 2
        right = last[:, None]
        if solved:
            right = np.concatenate([right, _forward(A, r)], axis=1)
        x = _backward(A, right)
        b[rows] = x[:, 0].T
        F_plain[rows] = np.maximum(pivot - within, 0.0)
        F[rows] = pivot + around.D[around.at[rows, -1]] - within
        e[rows] = (R[-1] - np.einsum("mb,mqb->qb", x[:, 0], r)).T
        c[rows] = np.moveaxis(x[:, 1:], 2, 0).swapaxes(1, 2)
        return jitter

    tables = [np.ascontiguousarray(T.T) for T in (around.X, around.D[:, None], around.R)]

    def by_program(rows: slice) -> float:
        if np.any(around.at[rows] < 0):
            return one(rows)
        at, size = _places(around, rows), rows.stop - rows.start
        if size < PROGRAM:  # repeats of its first row
            at = np.concatenate([at, np.repeat(at[:, :1], PROGRAM - size, axis=1)], axis=1)
        X, D, R = (_taken(columns, at) for columns in tables)
        plain, residual, x = map(_host, beside.given(solved, bare, X, D[0], R))
        F_plain[rows] = np.maximum(plain[:size], 0.0)
        F[rows] = plain[:size] + around.D[at[-1, :size]]
        e[rows], b[rows] = residual[:, :size].T, x[0, :, :size].T
        c[rows] = np.moveaxis(x[1:, :, :size], 2, 0)
        failed = np.flatnonzero(~(F[rows] > 0))
        return one(rows.start + failed) if len(failed) else 0.0

    most = _each(by_program if program else one, blocks(around, PROGRAM if program else 0))
    return Given(b, F, F_plain, e, c, max(most, default=0.0))


def pullback(kernel: Kernel, around: Around, v: Array, p: Array) -> list[Array]:
    """sum_i v_i' dk(X_i, X_i)/dtheta p_i for v and p (n, G), one array a parameter; zero where a neighbour is
    none."""
    bare = kernel.bare()
    if _here(around):
        parts = _pulled(bare, around, v, p)
    else:
        items = ((some, v[rows], p[rows]) for rows, some in _parted(around))
        parts = [part for found in current().each(_pulled_there, items, kernel) for part in found]
    return [sum((part[k] for part in parts), np.zeros(g.shape)) for k, g in enumerate(leaves(bare))]


def _pulled(bare: Kernel, around: Around, v: Array, p: Array) -> list[list[Array]]:
    """The parts of the sum, one a block."""

    host = few.by_distance(bare)

    def one(rows: slice) -> list[Array]:
        if host is None:
            return _pulled_compiled(bare, around, rows, v[rows], p[rows])
        T, left, right = _points(around, _places(around, rows)), v[rows].T.copy(), p[rows].T.copy()
        total: list[Array] = []
        with np.errstate(all="ignore"):
            for first, last in _bands(*T.shape[1:]):
                W = _weights(left, right, first, last)
                part = host.cross(Stack(T, first, last)).pull(W, 1.0)
                total = [a + b for a, b in zip(total, part, strict=True)] if total else part
        return total

    return _each(one, blocks(around))


def _weights(left: Array, right: Array, first: int, last: int) -> Array:
    """Of the pairs (i, i + lag) in v p' + p v', each pair once, as host.Stack has them: (pairs, B)."""
    G, B = left.shape
    W, more, done = np.empty((sum(G - lag for lag in range(first, last)), B)), np.empty((G, B)), 0
    for lag in range(first, last):
        part, of = W[done : done + G - lag], slice(G - lag)
        np.multiply(left[lag:], right[of], out=part)
        if lag:
            part += np.multiply(right[lag:], left[of], out=more[of])
        done += G - lag
    return W


def _pulled_compiled(bare: Kernel, around: Around, rows: slice, left: Array, right: Array) -> list[Array]:
    """The same by a compiled program."""
    X = around.X[np.maximum(around.at[rows], 0)]
    size, pieces = _pieces(X)
    total: list[Array] = []
    for at in pieces:
        W = left[at][:, :, None] * right[at][:, None, :]
        pulled = programs.stack_pullback(bare, _padded(X[at], size), _padded(W, size))
        part = [_host(g) for g in leaves(pulled)]
        total = [a + b for a, b in zip(total, part, strict=True)] if total else part
    return total


# Rows on other machines: each part has whole blocks, so that bits do not depend on who works.


def _here(around: Around) -> bool:
    """Whether threads of this process do all of it."""
    return not current().remote or at_work() or len(around.at) < FEWEST_SHARED


def _parted(around: Around) -> Iterator[tuple[slice, Around]]:
    """Some rows at a time, each with those rows of the tables that it needs."""
    size = SHARED * (blocks(around)[0].stop or 1)
    for start in range(0, len(around.at), size):
        rows = slice(start, min(start + size, len(around.at)))
        at = around.at[rows]
        needed, places = np.unique(np.maximum(at, 0), return_inverse=True)
        local = np.where(at < 0, -1, places.reshape(at.shape)).astype(np.int32)
        yield rows, Around(local, around.X[needed], around.D[needed], around.R[needed])


def _parts(around: Around) -> Iterator[Around]:
    return (some for _, some in _parted(around))


def _pulled_there(item: tuple[Around, Array, Array], kernel: Kernel) -> list[list[Array]]:
    return _pulled(kernel.bare(), *item)


def slopes(kernel: Kernel, around: Around, rows: slice) -> Array:
    """d k(x_i, z_ij) / dx_i of some rows x_i and their neighbours z_ij: (., m, d)."""
    X, bare = around.X[np.maximum(around.at[rows], 0)], kernel.bare()
    size, pieces = _pieces(X)

    def one(at: slice) -> Array:
        arrays = (_padded(array, size) for array in (X[at, -1], X[at, :-1]))
        return _host(programs.stack_gradients(bare, *arrays))[: at.stop - at.start]

    return np.concatenate(_each(one, pieces))


def explained(kernel: Kernel, around: Around, rows: slice, B: Array) -> Array:
    """b'A_NN^-1 b for right-hand sides B (., k, m) of some rows: (., k)."""
    bare = kernel.bare()

    def one(at: slice) -> Array:
        A = _covariance(bare, None, around, at)[0]
        _factor_all(A, lambda k: _covariance(bare, None, around, at.start + k)[0])
        return A

    (A,) = _each(one, [rows])
    half = _forward(A, np.transpose(B, (2, 1, 0)))
    return np.einsum("mkb,mkb->bk", half, half)


def blocks(around: Around, size: int = 0) -> list[slice]:
    """The rows, some at a time."""
    n, G = around.at.shape
    size = size or _beside(G)
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def block_numbers(G: int) -> int:
    """Of the matrices of a block of rows with G points each."""
    return _beside(G) * G**2


def _beside(G: int) -> int:
    return BESIDE if G <= FEW else int(np.clip(BLOCK // G**2, 4, 32))


@lru_cache(maxsize=256)
def _bands(G: int, B: int) -> tuple[tuple[int, int], ...]:
    """The diagonals of a triangle, from and to, some at a time: about PIECE values for B tables."""
    pairs = np.cumsum(np.arange(G, 0, -1)) * B // PIECE  # how many pieces are full after each
    cuts = np.unique([0, *(np.flatnonzero(np.diff(pairs)) + 1), G])
    return tuple((int(first), int(last)) for first, last in itertools.pairwise(cuts))


def _pieces(X: Array) -> tuple[int, list[slice]]:
    """The tables X (n, G, d) of a block, as many at a time as stay in a core's own cache while a compiled
    program makes kernel values of them: of few sizes, since it is compiled for each."""
    n, G, d = X.shape
    most = COMPILED // (G**2 * (d + 2))
    size = next((size for size in SIZES if size <= min(most, n)), SIZES[-1])
    return size, [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _places(around: Around, rows: slice | NDArray[np.intp]) -> NDArray[np.intp]:
    """Those of a block, (G, B), that of another row where there is none."""
    return np.maximum(around.at[rows].T, 0, dtype=np.intp, order="C")


def _taken(columns: Array, at: NDArray[np.intp]) -> Array:
    """Of tables (d, n) at places (G, B): (d, G, B)."""
    out = np.empty((len(columns), *at.shape))
    for column, part in zip(columns, out, strict=True):
        np.take(column, at, out=part, mode="clip")  # no other mode writes into `out` at once
    return out


def _points(around: Around, at: NDArray[np.intp]) -> Array:
    """At places (G, B): (d, G, B)."""
    return np.ascontiguousarray(np.moveaxis(np.take(around.X, at, axis=0), 2, 0))


def _tables(bare: Kernel, T: Array) -> Array:
    """K(X_i, X_i) of each of the tables (d, G, B), (G, G, B), on and above the diagonals."""
    host = few.by_distance(bare)
    G, B = T.shape[1:]
    A = np.empty((G, G, B))
    if host is None:
        X = np.moveaxis(T, 0, 2).swapaxes(0, 1)
        size, pieces = _pieces(X)
        for at in pieces:
            K = _host(programs.stack(bare, _padded(X[at], size)))[: at.stop - at.start]
            A[:, :, at] = np.moveaxis(K, 0, 2)
        return A
    flat = A.reshape(G * G, B)
    with np.errstate(all="ignore"):  # what overflows is refused where it arrives
        for first, last in _bands(G, B):
            K, done = host.values(Stack(T, first, last)), 0
            for lag in range(first, last):
                flat[lag :: G + 1][: G - lag] = K[done : done + G - lag]
                done += G - lag
    return A


def _covariance(
    bare: Kernel, part: Kernel | None, around: Around, rows: slice | NDArray[np.intp]
) -> tuple[Array, Array, Array]:
    """A (G, G, B) and residuals (G, q, B) of a block, and the noise of the rows themselves that is in A; a
    neighbour that is none is one of variance 1 that knows nothing. Below their diagonals matrices have
    anything."""
    none, at = around.at[rows].T < 0, _places(around, rows)
    T = _points(around, at)
    A = _tables(bare, T)
    if part is not None:
        A[:, -1] = _tables(part, T)[:, -1]
    R = np.ascontiguousarray(np.moveaxis(np.take(around.R, at, axis=0), 2, 1))
    D = np.take(around.D, at)
    # noise that is all of A would leave no digits of k in it
    D[-1] = np.where(D[-1] > FAR * A[-1, -1], 0.0, D[-1])
    np.einsum("iib->ib", A)[...] += D
    if none.any():
        for i, k in np.argwhere(none):
            A[: i + 1, i, k] = A[i, i:, k] = 0.0
            A[i, i, k] = 1.0
        np.moveaxis(R, 1, 2)[none] = 0.0
    return A, R, D[-1]


@np.errstate(all="ignore")
def _factor_all(A: Array, again: Callable[[NDArray[np.intp]], Array]) -> float:
    """L' in the place of each matrix of A (G, G, B), on and above the diagonals, and the most jitter that one
    took. `again` makes the matrices with these numbers once more."""
    if len(A) > FEW:
        try:
            A[...] = np.linalg.cholesky(A.T).T  # A.T is (B, G, G), with the triangle below the diagonal
        except np.linalg.LinAlgError:  # of one of them: it does not say which
            A[-1, -1] = np.nan
    else:
        _columns(A)
    most = 0.0
    # a pivot that is none makes all that follow NaN
    failed = np.flatnonzero(~(A[-1, -1] > 0))
    for k, one in zip(failed, again(failed).T if len(failed) else (), strict=True):
        L, jitter = _factor(one)
        A[:, :, k], most = L.T, max(most, jitter)
    return most


def _columns(A: Array) -> None:
    """Cholesky's algorithm by columns: Golub and Van Loan, Matrix Computations, algorithm 4.2.1."""
    sums = np.empty(A.shape[1:])
    for k in range(len(A)):
        column = A[k, k:]
        if k:
            column -= np.einsum("jib,jb->ib", A[:k, k:], A[:k, k], out=sums[k:])
        np.sqrt(column[0], out=column[0])
        column[1:] *= 1 / column[0]


def _factor(A: Array) -> tuple[Array, float]:
    mean = float(np.mean(np.diagonal(A)))
    if not np.isfinite(np.sum(np.tril(A))):
        raise NumericalError(
            "A kernel value is not finite: the kernel overflows there. Rescale the columns, or bound its"
            " parameters."
        )
    for jitter in LADDER:
        try:
            L = np.linalg.cholesky(np.tril(A) + jitter * mean * np.eye(len(A)))
            return np.asarray(L, dtype=np.float64), jitter
        except np.linalg.LinAlgError:
            continue  # the next rung
    raise NumericalError(
        f"K + noise of a row and its neighbours is not positive definite even with {LADDER[-1]:g} of its mean"
        f" diagonal added. {CURE}"
    )


def _forward(A: Array, B: Array) -> Array:
    """x with L_NN x = B for B (m, k, B), of each L' in A (G, G, B)."""
    x = np.array(B, order="C")
    for k in range(len(x)):
        if k:
            x[k] -= np.einsum("jb,jcb->cb", A[:k, k], x[:k])
        x[k] /= A[k, k]
    return x


def _backward(A: Array, B: Array) -> Array:
    """The same with L_NN'x = B."""
    x = np.array(B, order="C")
    m = len(x)
    for k in reversed(range(m)):
        if k + 1 < m:
            x[k] -= np.einsum("jb,jcb->cb", A[k, k + 1 : m], x[k + 1 :])
        x[k] /= A[k, k]
    return x


def _padded(array: Array, size: int) -> Array:
    """To a block of full size by repeats of its first row: real data are harmless in any kernel."""
    if len(array) == size:
        return array
    out = np.zeros((size, *array.shape[1:]))
    out[: len(array)] = array
    return out
