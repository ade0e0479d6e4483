"""Each row given a few others: many small Gaussians, side by side.

With the covariance A_i = k + D of a row and its neighbours N, the row last, and A_i = L L':

    b = A_NN^-1 k_N,   F = k - k_N'b,   e = r - b'r_N,   c = A_NN^-1 r_N

F is the last pivot of L squared, b a back substitution from its last row. A block of rows is made at a time,
on one thread: kernel values in NumPy where the kernel is a function of distances, else by a compiled
program, factors by LAPACK one after the other, substitutions as
NumPy steps over all rows of the block. (XLA's own Cholesky of so small matrices took four times as long as
LAPACK's through NumPy, and one written out in vectors over the rows fifteen times.)

Log density of r given r_N, -1/2 log F - e^2 / 2F, and its weights on A_i, with v = (-b, 1) and c padded by 0:

    G_i = (e^2 / F^2 - 1 / F) / 2 v v' + (e / F) c v'         (its symmetric part)

Cost of a row with m neighbours: m^2 kernel values, m^3 / 3 flops; O(m) numbers are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.errors import NumericalError
from gramian.gram import few, programs
from gramian.gram.tiles import _each, _host
from gramian.kernels.base import Kernel
from gramian.kernels.host import lower
from gramian.linalg.executor import current
from gramian.linalg.factor import CURE, LADDER
from gramian.linalg.threads import at_work
from gramian.params.tree import leaves

BLOCK = 2**17  # numbers of the matrices of a block of rows: a megabyte
PIECE, SIZES = 2**18, (64, 16, 4)  # numbers behind kernel values that are made at a time; tables, of these
FAR = 1e4  # times k(x, x): noise of a row that says little
FEWEST_SHARED, SHARED = 4096, 64  # rows that are worth a way to other machines, and blocks of a part of them
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
    if not _here(around):
        parts = list(current().each(_given, _parts(around), (kernel, solved, part)))
        b, F, F_plain, e, c = (
            np.concatenate(arrays) for arrays in zip(*(p[:-1] for p in parts), strict=True)
        )
        return Given(b, F, F_plain, e, c, max(one.jitter for one in parts))
    n, G = around.at.shape
    q = around.R.shape[1]
    b, F, F_plain, e = np.empty((n, G - 1)), np.empty(n), np.empty(n), np.empty((n, q))
    c = np.empty((n, q if solved else 0, G - 1))
    bare, own = kernel.bare(), None if part is None else part.bare()

    def one(rows: slice) -> float:
        _, A, R, within = _covariance(bare, own, around, rows)
        L, jitter = _factors(A)
        last, r = L[:, -1, :-1], R[:, :-1]
        right = last[:, None]
        if solved:
            right = np.concatenate([right, _forward(L, np.swapaxes(r, 1, 2))], axis=1)
        x = _backward(L, right.copy())
        b[rows] = x[:, 0]
        F_plain[rows] = np.maximum(L[:, -1, -1] ** 2 - within, 0.0)
        F[rows] = L[:, -1, -1] ** 2 + around.D[around.at[rows, -1]] - within
        e[rows] = R[:, -1] - np.einsum("nm,nmq->nq", x[:, 0], r)
        c[rows] = x[:, 1:]
        return jitter

    most = _each(one, blocks(around))
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

    def one(rows: slice) -> list[Array]:
        X, left, right = around.X[np.maximum(around.at[rows], 0)], v[rows], p[rows]
        (i, j), (size, pieces) = lower(X.shape[1]), _pieces(X)
        total: list[Array] = []
        for at in pieces:
            known = few.stack(bare, X[at])
            if known is not None:
                W = left[at][:, i] * right[at][:, j]
                W += np.where(i > j, left[at][:, j] * right[at][:, i], 0.0)
                part = few.pulled(known, W)
            else:
                W = left[at][:, :, None] * right[at][:, None, :]
                pulled = programs.stack_pullback(bare, _padded(X[at], size), _padded(W, size))
                part = [_host(g) for g in leaves(pulled)]
            total = [a + b for a, b in zip(total, part, strict=True)] if total else part
        return total

    return _each(one, blocks(around))


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


def _given(around: Around, state: tuple[Kernel, bool, Kernel | None]) -> Given:
    kernel, solved, part = state
    return given(kernel, around, solved=solved, part=part)


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
    (A,) = _each(lambda at: _covariance(kernel.bare(), None, around, at)[1], [rows])
    half = _forward(_factors(A)[0], B)
    return np.einsum("nkm,nkm->nk", half, half)


def blocks(around: Around) -> list[slice]:
    """The rows, some at a time: enough to hide what a step of NumPy costs, few enough for the cache."""
    n, G = around.at.shape
    size = int(np.clip(BLOCK // G**2, 4, 256))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _pieces(X: Array) -> tuple[int, list[slice]]:
    """The tables X (n, G, d) of a block, as many at a time as stay in a core's own cache while kernel values
    are made of them: of few sizes, since a program is compiled for each."""
    n, G, d = X.shape
    most = PIECE // (G**2 * (d + 2))
    size = next((size for size in SIZES if size <= min(most, n)), SIZES[-1])
    return size, [slice(start, min(start + size, n)) for start in range(0, n, size)]


def _tables(bare: Kernel, X: Array) -> Array:
    """K(X_i, X_i) of each table, (n, G, G), in the lower triangles, for the caller to change."""
    n, G, _ = X.shape
    (i, j), (size, pieces) = lower(G), _pieces(X)
    A = np.empty((n, G, G))
    for at in pieces:
        known = few.stack(bare, X[at])
        if known is None:
            A[at] = _host(programs.stack(bare, _padded(X[at], size)))[: at.stop - at.start]
        else:
            A[at].reshape(-1, G * G)[:, i * G + j] = known.K
    return A


def _covariance(
    bare: Kernel, part: Kernel | None, around: Around, rows: slice
) -> tuple[Array, Array, Array, Array]:
    """Points (., G, d), A (., G, G) and residuals (., G, q) of a block, and the noise of the rows themselves
    that is in A; a neighbour that is none is one of variance 1 that knows nothing."""
    at = around.at[rows]
    none, at = at < 0, np.maximum(at, 0)
    X, R = around.X[at], around.R[at]
    A = _tables(bare, X)
    if part is not None:
        A[:, -1] = _tables(part, X)[:, -1]
    D = around.D[at]
    # noise that is all of A would leave no digits of k in it
    D[:, -1] = np.where(D[:, -1] > FAR * A[:, -1, -1], 0.0, D[:, -1])
    np.einsum("nii->ni", A)[...] += D
    if none.any():
        A[none] = 0.0
        np.swapaxes(A, 1, 2)[none] = 0.0
        np.einsum("nii->ni", A)[none] = 1.0
        R[none] = 0.0
    return X, A, R, D[:, -1]


def _factors(A: Array) -> tuple[Array, float]:
    """L of each matrix, and the most jitter that one took."""
    try:
        L = np.asarray(np.linalg.cholesky(A), dtype=np.float64)
        if np.isfinite(np.sum(L[:, -1, -1])):
            return L, 0.0
    except np.linalg.LinAlgError:
        pass
    L, most = np.empty_like(A), 0.0
    for k, one in enumerate(A):
        L[k], jitter = _factor(one)
        most = max(most, jitter)
    return L, most


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


def _forward(L: Array, B: Array) -> Array:
    """x_i with L_NN x_i = B_i for B (., k, m)."""
    x = np.array(B, order="C")
    for k in range(x.shape[2]):
        if k:
            x[:, :, k] -= np.einsum("ncj,nj->nc", x[:, :, :k], L[:, k, :k])
        x[:, :, k] /= L[:, k, k, None]
    return x


def _backward(L: Array, x: Array) -> Array:
    """x_i with L_NN' x_i = the given, (., k, m), in its place."""
    for k in reversed(range(x.shape[2])):
        x[:, :, k] /= L[:, k, k, None]
        if k:
            x[:, :, :k] -= x[:, :, k, None] * L[:, None, k, :k]
    return x


def _padded(array: Array, size: int) -> Array:
    """To a block of full size by repeats of its first row: real data are harmless in any kernel."""
    if len(array) == size:
        return array
    out = np.zeros((size, *array.shape[1:]))
    out[: len(array)] = array
    return out
