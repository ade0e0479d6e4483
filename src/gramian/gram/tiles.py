"""Kernel values in tiles of fixed size.

A Gram matrix is a grid of T x T tiles over rows padded to a multiple of T, so XLA compiles one program for a kernel's structure and a tile size,
whatever the number of rows. T is 64 up to 128 rows, 256 up to 448, else 512: tiles of 512 (2 MB) stay in cache on their way to the host array.

    fill        K(X, X) into the lower triangle of a Fortran-ordered host array
    cross       K(X, Z) into a host array
    matmul      K(X, Z) V without ever storing K
    diagonal    k(x, x)
    pullback    sum_ij W_ij dk(x_i, x_j)/dtheta for weights W: how every gradient is made, with no (n, n, p) array anywhere
    rowwise     any function of single rows (a mean function), and its pullback

Tiles run on a few threads (XLA and NumPy release the GIL); sums over tiles are made in one fixed order, so results do not depend on the threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.kernels.base import Kernel
from gramian.params import Tree
from gramian.params.tree import leaves

Array = NDArray[np.float64]
T_ = TypeVar("T_")
R_ = TypeVar("R_")

TILES = ((128, 64), (448, 256), (float("inf"), 512))  # up to so many rows, tiles of this size
LARGEST_TILE = TILES[-1][1]
LONG_BLOCK = 4096  # rows at a time for functions of single rows, which are cheap: one call then does much
THREADS = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def tile_size(n: int) -> int:
    """The rows of a tile for n rows of data."""
    return next(size for rows, size in TILES if n <= rows)


def fill(kernel: Kernel, X: Array, out: Array) -> Array:
    """Writes K(X, X) into the lower triangle of `out` (n, n), Fortran-ordered. What lies above the diagonal is left undefined."""
    assert out.flags.f_contiguous
    bare, blocks = kernel.bare(), _blocks(X, tile_size(len(X)))
    rows = out.T  # row-major: tile (j, i) of it is tile (i, j) of `out` by symmetry, and its memory order is that of XLA's result

    def one(pair: tuple[int, int]) -> None:
        (at_j, X_j), (at_i, X_i) = blocks[pair[0]], blocks[pair[1]]
        tile = _host(_tile(bare, X_j, X_i))
        rows[at_j, at_i] = tile[: at_j.stop - at_j.start, : at_i.stop - at_i.start]

    _each(one, [(j, i) for j in range(len(blocks)) for i in range(j, len(blocks))])
    return out


def cross(kernel: Kernel, X: Array, Z: Array, out: Array | None = None) -> Array:
    """K(X, Z) as a row-major array (n, m)."""
    out = np.empty((len(X), len(Z))) if out is None else out
    bare, rows, columns = kernel.bare(), _blocks(X, tile_size(len(X))), _blocks(Z, tile_size(len(Z)))

    def one(pair: tuple[int, int]) -> None:
        (at_i, X_i), (at_j, Z_j) = rows[pair[0]], columns[pair[1]]
        out[at_i, at_j] = _host(_tile(bare, X_i, Z_j))[: at_i.stop - at_i.start, : at_j.stop - at_j.start]

    _each(one, [(i, j) for i in range(len(rows)) for j in range(len(columns))])
    return out


def matmul(kernel: Kernel, X: Array, Z: Array, V: Array) -> Array:
    """K(X, Z) V for V (m, k), with one tile of K at a time."""
    bare, rows, columns = kernel.bare(), _blocks(X, tile_size(len(X))), _blocks(Z, tile_size(len(Z)))
    padded = [_padded(V[at], len(Z_j)) for at, Z_j in columns]  # zeros: a padded row of Z adds nothing

    def one(i: int) -> Array:
        at, X_i = rows[i]
        total = np.zeros((len(X_i), V.shape[1]))
        for (_, Z_j), V_j in zip(columns, padded, strict=True):
            total += _host(_tile_product(bare, X_i, Z_j, V_j))
        return total[: at.stop - at.start]

    parts = _each(one, range(len(rows)))
    return np.concatenate(parts) if parts else np.zeros((0, V.shape[1]))


def pullback(kernel: Kernel, X: Array, dense: Array, *, factor: float = 1.0, low_rank: tuple[Array, Array] | None = None) -> list[Array]:
    """sum_ij W_ij dk(x_i, x_j)/dtheta for the symmetric weights W = factor dense + left right', one array a parameter.

    Of `dense` (n, n) only the upper triangle is read; `low_rank` is the pair left, right, each (n, q). W is made inside the compiled program.
    """
    bare, blocks = kernel.bare(), _blocks(X, tile_size(len(X)))
    left, right = low_rank or (np.zeros((len(X), 1)), np.zeros((len(X), 1)))
    above = np.tri(tile_size(len(X)), k=0, dtype=bool).T

    def one(pair: tuple[int, int]) -> list[Array]:
        (at_i, X_i), (at_j, X_j) = blocks[pair[0]], blocks[pair[1]]
        S = dense[at_i, at_j]
        if at_i == at_j:
            on_diagonal = np.diagonal(S).copy()
            S = np.where(above[: len(S), : len(S)], 2.0 * S, 0.0)  # what lies above the diagonal stands for what lies below
            np.fill_diagonal(S, on_diagonal)
        L, R = _padded(left[at_i], len(X_i)), _padded(right[at_j], len(X_j))
        parts = leaves(_tile_pullback(bare, X_i, X_j, _padded_tile(S, len(X_i), len(X_j)), factor, L, R))
        return [_host(v) if at_i == at_j else 2 * _host(v) for v in parts]  # a tile off the diagonal stands for its mirror image, too

    return _summed(_each(one, [(i, j) for i in range(len(blocks)) for j in range(i, len(blocks))]), bare)


def diagonal(kernel: Kernel, X: Array) -> Array:
    """k(x, x) for each row."""
    return rowwise(kernel, "diagonal", X)


def rowwise(tree: Tree, method: str, X: Array) -> Array:
    """tree.method(X) for a method that maps rows to rows: (n, d) -> (n, ...)."""
    bare, T = tree.bare(), _long_block(len(X))
    parts = _each(lambda block: _host(_rows(method, bare, block[1]))[: block[0].stop - block[0].start], _blocks(X, T))
    return np.concatenate(parts) if parts else np.zeros(0)


def rowwise_pullback(tree: Tree, method: str, X: Array, w: Array) -> list[Array]:
    """sum_i w_i d tree.method(X)_i / dtheta, one array a parameter."""
    bare, T = tree.bare(), _long_block(len(X))

    def one(block: tuple[slice, Array]) -> list[Array]:
        at, X_i = block
        return [_host(v) for v in leaves(_rows_pullback(method, bare, X_i, _padded(w[at], len(X_i))))]

    return _summed(_each(one, _blocks(X, T)), bare)


def gradients(kernel: Kernel, X: Array, Z: Array) -> Array:
    """d k(x_i, z_j) / dx_i: (n, m, d)."""
    bare, rows, columns = kernel.bare(), _blocks(X, tile_size(len(X))), _blocks(Z, tile_size(len(Z)))
    out = np.empty((len(X), len(Z), X.shape[1]))

    def one(pair: tuple[int, int]) -> None:
        (at_i, X_i), (at_j, Z_j) = rows[pair[0]], columns[pair[1]]
        out[at_i, at_j] = _host(_tile_gradients(bare, X_i, Z_j))[: at_i.stop - at_i.start, : at_j.stop - at_j.start]

    _each(one, [(i, j) for i in range(len(rows)) for j in range(len(columns))])
    return out


def gradient_variances(kernel: Kernel, X: Array) -> Array:
    """d^2 k(x, z) / dx_j dz_j at z = x, for each row and column: the prior variance of the gradient, (n, d)."""
    bare, T = kernel.bare(), _long_block(len(X))
    parts = _each(lambda block: _host(_row_curvatures(bare, block[1]))[: block[0].stop - block[0].start], _blocks(X, T))
    return np.concatenate(parts) if parts else np.zeros((0, X.shape[1]))


# The compiled programs. -----------------------------------------------------------------------------------------------------------------------------


@jax.jit
def _tile(kernel: Kernel, X: jax.Array, Z: jax.Array) -> jax.Array:
    return kernel.cross(X, Z)


@jax.jit
def _tile_product(kernel: Kernel, X: jax.Array, Z: jax.Array, V: jax.Array) -> jax.Array:
    return kernel.cross(X, Z) @ V


@jax.jit
def _tile_pullback(kernel: Kernel, X: jax.Array, Z: jax.Array, S: jax.Array, factor: jax.Array, L: jax.Array, R: jax.Array) -> Any:
    W = factor * S
    for c in range(L.shape[1]):  # outer products rather than L R': they fuse with what follows, instead of a pass through memory
        W = W + L[:, c][:, None] * R[:, c][None, :]
    return jax.vjp(lambda k: k.cross(X, Z), kernel)[1](W)[0]


@partial(jax.jit, static_argnums=0)
def _rows(method: str, tree: Tree, X: jax.Array) -> jax.Array:
    return getattr(tree, method)(X)


@partial(jax.jit, static_argnums=0)
def _rows_pullback(method: str, tree: Tree, X: jax.Array, w: jax.Array) -> Any:
    return jax.vjp(lambda t: getattr(t, method)(X), tree)[1](w)[0]


@jax.jit
def _tile_gradients(kernel: Kernel, X: jax.Array, Z: jax.Array) -> jax.Array:
    slope = jax.grad(lambda x, z: kernel.pair(x, z))
    return jax.vmap(lambda x: jax.vmap(lambda z: slope(x, z))(Z))(X)


@jax.jit
def _row_curvatures(kernel: Kernel, X: jax.Array) -> jax.Array:
    def at(x: jax.Array) -> jax.Array:
        return jnp.diagonal(jax.jacfwd(jax.grad(kernel.pair, argnums=0), argnums=1)(x, x))

    return jax.vmap(at)(X)


# Helpers. -------------------------------------------------------------------------------------------------------------------------------------------


def _host(result: jax.Array) -> Array:
    """A result as a NumPy array, without a copy. Waiting for it first releases the GIL, which NumPy's conversion would hold all the while."""
    return np.asarray(result.block_until_ready())


def _blocks(X: Array, T: int) -> list[tuple[slice, Array]]:
    """Where each block of rows lies, and its rows padded to T by repeating them in turn (a copy of real data is harmless in any kernel)."""
    blocks = []
    for start in range(0, len(X), T):
        block = X[start : start + T]
        padded = block if len(block) == T else block[np.arange(T) % len(block)]
        blocks.append((slice(start, start + len(block)), padded))
    return blocks


def _long_block(n: int) -> int:
    return tile_size(n) if n <= LARGEST_TILE else LONG_BLOCK


def _padded(V: Array, rows: int) -> Array:
    return V if len(V) == rows else np.pad(V, [(0, rows - len(V))] + [(0, 0)] * (V.ndim - 1))


def _padded_tile(S: Array, rows: int, columns: int) -> Array:
    if S.shape == (rows, columns):
        return S
    padded = np.empty((rows, columns))
    padded[: S.shape[0], : S.shape[1]] = S
    padded[S.shape[0] :, :] = 0.0
    padded[:, S.shape[1] :] = 0.0
    return padded


def _each(work: Callable[[T_], R_], items: Iterable[T_]) -> list[R_]:
    """[work(item) for item in items] in 64-bit mode (which is a property of a thread), on several threads when there are enough items."""

    def in_64_bits(item: T_) -> R_:
        with jax.enable_x64(True):
            return work(item)

    items = list(items)
    if len(items) <= 3 or THREADS == 1:  # up to 128 rows: handing out costs more than it saves
        return [in_64_bits(item) for item in items]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(in_64_bits, items))


def _summed(parts: list[list[Array]], bare: Tree) -> list[Array]:
    shapes = [v.shape for v in leaves(bare)]
    return [sum((part[k] for part in parts), np.zeros(shape)) for k, shape in enumerate(shapes)]
