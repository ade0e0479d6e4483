"""Small matrices, of which each program has one a chunk.

Those of small states are NumPy arrays of objects, entry by entry a JAX array (c,): all loops over entries are
written out, zeros left out, and XLA puts them into few loops over the chunks (65,536 rows, s = 2: 3.9 ms,
arrays (s, s, c) 9.2). Larger ones are such arrays, in which groups of like blocks on the diagonal are used:
a program of many waves is as long as one of a few.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gramian.kernels.statespace import matrix, plus, sum_of, times, vector

UNROLLED = 4  # states up to which matrices are written out
Mat = Any  # a Matrix, or a JAX array (m, k, c); a vector has one axis less


def unrolled(A: Mat) -> bool:
    return isinstance(A, np.ndarray)


def mm(A: Mat, B: Mat) -> Mat:
    """A B."""
    if unrolled(A):
        return matrix([[total_of(row, column) for column in B.T] for row in A])
    total = A[:, 0, None] * B[None, 0]
    for k in range(1, A.shape[1]):
        total = total + A[:, k, None] * B[None, k]
    return total


def mv(A: Mat, v: Mat) -> Mat:
    """A v."""
    if unrolled(A):
        return vector([total_of(row, v) for row in A])
    total = A[:, 0] * v[0]
    for k in range(1, A.shape[1]):
        total = total + A[:, k] * v[k]
    return total


def kept_mv(A: Mat, v: Mat) -> Mat:
    """A v by a reduction, which XLA makes once and keeps. A sum that is written out it makes again in each
    loop that uses it: with outer products of it, s^3 terms in all."""
    return mv(A, v) if unrolled(A) else jnp.sum(A * v[None], axis=1)


def dot(u: Mat, v: Mat) -> jax.Array:
    return total_of(u, v) if unrolled(u) else jnp.sum(u * v, axis=0)


def total_of(u: Any, v: Any) -> Any:
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


def kept_on(A: Mat, m: Mat) -> Mat:
    """A m, made once."""
    return mv(A, m) if unrolled(A) else jnp.sum(A[:, :, None] * m[None], axis=1)


def read_off(H: Mat, m: Mat) -> jax.Array:
    """H'm, (q, c)."""
    return total_of(H, m) if unrolled(H) else jnp.sum(H[:, None] * m, axis=0)


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


def inner(u: jax.Array, v: jax.Array) -> jax.Array:
    """u v' of right-hand sides (s, q, c)."""
    total = u[:, None, 0] * v[None, :, 0]
    for p in range(1, u.shape[1]):
        total = total + u[:, None, p] * v[None, :, p]
    return total


def inner_each(u: jax.Array, v: jax.Array) -> jax.Array:
    """u v' of the right-hand sides of n blocks, (b, n, q, c) each: (b, b, n, c)."""
    total = u[:, None, :, 0] * v[None, :, :, 0]
    for p in range(1, u.shape[2]):
        total = total + u[:, None, :, p] * v[None, :, :, p]
    return total


def mm_each(N: jax.Array, M: jax.Array) -> jax.Array:
    """N'M of the columns of n blocks, (s, b, n, c) each: (b, b, n, c)."""
    total = N[0, :, None] * M[0, None]
    for k in range(1, len(N)):
        total = total + N[k, :, None] * M[k, None]
    return total


def upper(s: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(s) for j in range(i, s)]


def scaled_all(A: Mat, by: Any) -> Mat:
    """Each entry times a number."""
    if not unrolled(A):
        return A * by
    out = A.copy()
    for at, x in np.ndenumerate(A):
        out[at] = x * by
    return out
