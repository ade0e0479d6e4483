"""Rows that come and go in a triangular root of A, without a new factorisation.

With A = L L' and R = L^-1, k further rows with the columns B = A[:, new] and the corner C:

    V = L^-1 B,   S S' = C - V'V,   L gains the rows [V', S],   R the rows S^-1 [-V'R, I]

Without row i, the rest of L is [L_1 0; L_2 l L_3] of which l l' is left over: rotations of the columns of L_3
with l take it in. In R the same rotations act on rows, and turn its column i, v, into zeros but for the last:
with s_j^2 = v_i^2 + ... + v_j^2 and a_j = (v_i R_i + ... + v_j R_j) / s_j,

    row j of the new R  =  (s_j R_{j+1} - v_{j+1} a_j) / s_{j+1},       without column i

Both are products with orthogonal matrices, so that a thousand edits lose hardly more digits than one.
Cost: 2 n^2 flops and two passes over a triangle for a row that comes, six for one that goes. An array has
room for further rows (`Store`), so that it is copied once in a while instead of each time.

Source: Gill, Golub, Murray and Saunders 1974 (methods C1 and C3); Golub and Van Loan, section 6.5.
"""

from __future__ import annotations

import threading

import numpy as np
from scipy.linalg import blas

from gramian.arrays import Array, Indices
from gramian.linalg import factor
from gramian.linalg.blas import block_of, multiply_triangle
from gramian.linalg.panels import divide
from gramian.linalg.threads import for_each, one_blas_thread

SPARE, LEAST_SPARE = 16, 64  # room for a sixteenth more rows, and for so many at least
CHUNK = 2**17  # numbers of a block of columns that stays in cache


class Growing:
    """A square array with room for further rows, of which the first `used` are somebody's. Who has them all
    may add; who has fewer takes a copy, so that no one's rows ever change."""

    def __init__(self, rows: int) -> None:
        room = rows + max(rows // SPARE, LEAST_SPARE)
        # the system gives zeros without touching them: what is above the diagonal takes no memory
        self.array = np.zeros((room, room), order="F")
        self.used = rows
        self._lock = threading.Lock()

    def claim(self, rows: int, more: int) -> bool:
        """Whether the rows after the first `rows` are still free; they then belong to who asks."""
        with self._lock:
            if self.used != rows or rows + more > len(self.array):
                return False
            self.used = rows + more
            return True

    def root(self, rows: int) -> Array:
        """The first rows and columns."""
        return self.array[:rows, :rows]


def grown(root: Array, store: Growing | None, more: int) -> Growing:
    """A store that begins with the root, and has the next rows free for who asks."""
    n = len(root)
    if store is not None and store.claim(n, more):
        return store
    store = Growing(n + more)
    for start in range(0, n, 256):
        stop = min(start + 256, n)
        store.array[start:n, start:stop] = root[start:, start:stop]
    factor.zeros_above(store.root(n)[:256, :256])
    return store


def append_to_inverse(store: Growing, n: int, B: Array, C: Array) -> Array:
    """R with k further rows, after its first n; the new ones, (k, n + k). B is (n, k), C (k, k)."""
    R, k = store.root(n), B.shape[1]
    V = np.array(B, order="F")
    with one_blas_thread():
        multiply_triangle(block_of(R, only_read=True), block_of(V))
        S = np.asfortranarray(C - V.T @ V)
        _factored(S)
        multiply_triangle(block_of(R, only_read=True), block_of(V), transpose=True)
        inverse = factor.inverse_root_in_place(S)
        new = np.hstack([-(inverse @ V.T), inverse])
    store.array[n : n + k, : n + k] = new
    return new


def append_to_factor(store: Growing, n: int, B: Array, C: Array) -> None:
    """L with k further rows, after its first n."""
    V, k = np.array(B, order="F"), B.shape[1]
    divide(store.root(n), V)
    S = np.asfortranarray(C - V.T @ V)
    _factored(S)
    store.array[n : n + k, :n] = V.T
    store.array[n : n + k, n : n + k] = np.tril(S)


def _factored(S: Array) -> None:
    """What is left of new rows, factored; a singular rest is for who can add jitter."""
    if factor.factor_in_place(S):
        raise np.linalg.LinAlgError("new rows are determined by the others")


def without(root: Array, rows: Indices, inverted: bool) -> Growing:
    """The root of A without some of its rows and columns: R where it is inverted, else L."""
    source, target, n = root, Growing(len(root)), len(root)
    spare: Growing | None = None
    for i in sorted(map(int, rows), reverse=True):
        (_inverse_without if inverted else _factor_without)(source, i, target.array)
        n -= 1
        source, target, spare = target.root(n), spare or Growing(n), target
    assert spare is not None
    for start in range(n, min(n + len(rows), len(spare.array))):  # whoever adds finds zeros there
        spare.array[start] = 0.0
        spare.array[:, start] = 0.0
    spare.used = n
    return spare


def _inverse_without(R: Array, i: int, out: Array) -> None:
    n = len(R)
    v = R[i:, i].copy()
    s = np.sqrt(np.cumsum(v * v))
    forth, back = (s[:-1] / s[1:])[:, None], (v[1:] / (s[:-1] * s[1:]))[:, None]
    width = max(1, CHUNK // n)

    def columns(at: slice) -> None:
        """Those left of i stay where they are, others move by one, and have zeros above."""
        left = at.stop <= i
        b = i + 1 if left else at.start  # the first row that moves
        x, sums = R[b:, at], np.empty((n - b, at.stop - at.start), order="F")
        if len(sums):
            sums[0] = v[0] * R[i, at] if left else 0.0
            np.cumsum(x[:-1] * v[b - i : -1, None], axis=0, out=sums[1:])
            sums[1:] += sums[0]
        to = at if left else slice(at.start - 1, at.stop - 1)
        out[b - 1 : n - 1, to] = forth[b - 1 - i :] * x - back[b - 1 - i :] * sums
        if left:
            out[:i, to] = R[:i, to]

    starts = [(start, min(start + width, i)) for start in range(0, i, width)]
    starts += [(start, min(start + width, n)) for start in range(i + 1, n, width)]
    for_each(columns, [slice(*pair) for pair in starts])


def _factor_without(L: Array, i: int, out: Array) -> None:
    n = len(L)
    for c in range(n):
        if c != i:
            to = c - (c > i)
            out[:to, to] = 0.0
            out[to : n - 1, to] = L[c:, c] if c > i else np.delete(L[c:, c], i - c)
    rest = L[i + 1 :, i].copy()
    for j in range(i, n - 1):
        column, left = out[j : n - 1, j], rest[j - i :]
        r = float(np.hypot(column[0], left[0]))
        blas.drot(column, left, column[0] / r, left[0] / r, overwrite_x=1, overwrite_y=1)
