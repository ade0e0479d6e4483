"""The programs that XLA compiles for tiles, and for functions of single rows: one for a kernel's structure
and a tile's shape. In a fork without JAX (forks.py) kernels with a NumPy form, and what else says that it has
one, answer in that (gram/few.py)."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from gramian.forks import compiled
from gramian.gram import few
from gramian.kernels.base import Kernel
from gramian.kernels.expectations import whole
from gramian.params import Tree


@compiled(instead=few.tile)
def tile(kernel: Kernel, X: jax.Array, Z: jax.Array) -> jax.Array:
    return kernel.cross(X, Z)


@compiled(instead=few.product)
def product(kernel: Kernel, X: jax.Array, Z: jax.Array, V: jax.Array, filled: int) -> jax.Array:
    """sum_t K(X, Z_t) V_t over the filled tiles of Z (t, T, d), V (t, T, k): tiles of K stay in cache."""

    def add(t: jax.Array, total: jax.Array) -> jax.Array:
        return total + kernel.cross(X, Z[t]) @ V[t]

    return jax.lax.fori_loop(0, filled, add, jnp.zeros((X.shape[0], V.shape[2]), V.dtype))


@compiled(instead=few.tile_pullback)
def tile_pullback(
    kernel: Kernel, X: jax.Array, Z: jax.Array, S: jax.Array, factor: jax.Array, L: jax.Array, R: jax.Array
) -> Any:
    return jax.vjp(lambda k: k.cross(X, Z), kernel)[1](_with_outer_products(factor * S, L, R))[0]


def _with_outer_products(W: jax.Array, L: jax.Array, R: jax.Array) -> jax.Array:
    """W + L R', column by column: outer products fuse with what follows, without a pass through memory."""
    for c in range(L.shape[1]):
        W = W + L[:, c][:, None] * R[:, c][None, :]
    return W


@compiled(static=(0, 1), instead=few.cross_pullback)
def cross_pullback(
    points: bool,
    inputs: bool,
    kernel: Kernel,
    X: jax.Array,
    Z: jax.Array,
    W: jax.Array,
    L: jax.Array,
    R: jax.Array,
) -> tuple[Any, jax.Array, jax.Array]:
    """By the kernel, by Z and by X; the last two without columns, and left out by XLA, unless asked for."""
    back = jax.vjp(lambda k, X, Z: k.cross(X, Z), kernel, X, Z)[1]
    by_kernel, by_X, by_Z = back(_with_outer_products(W, L, R))
    return by_kernel, by_Z if points else Z[:, :0], by_X if inputs else X[:, :0]


@compiled(static=(0,), instead=few.row_values)
def rows(method: str, tree: Tree, X: jax.Array) -> jax.Array:
    return getattr(tree, method)(X)


@compiled(static=(0,))
def rows_pullback(method: str, tree: Tree, X: jax.Array, w: jax.Array) -> Any:
    return jax.vjp(lambda t: getattr(t, method)(X), tree)[1](w)[0]


@compiled()
def tile_gradients(kernel: Kernel, X: jax.Array, Z: jax.Array) -> jax.Array:
    slope = jax.grad(lambda x, z: kernel.pair(x, z))
    return jax.vmap(lambda x: jax.vmap(lambda z: slope(x, z))(Z))(X)


def _tables(kernel: Kernel, X: jax.Array) -> jax.Array:
    """Pair by pair: of `cross` over many tables XLA compiles a wrong gradient (jax 0.10.2, the scale's)."""
    with_one = jax.vmap(kernel.pair, (None, 0))
    return jax.vmap(lambda x: jax.vmap(with_one, (0, None))(x, x))(X)


@compiled(instead=few.tables)
def stack(kernel: Kernel, X: jax.Array) -> jax.Array:
    """K(X_i, X_i) of each table in X (n, G, d): (n, G, G)."""
    return _tables(kernel, X)


@compiled()
def stack_pullback(kernel: Kernel, X: jax.Array, W: jax.Array) -> Any:
    """sum_i <W_i, K(X_i, X_i)>, by the kernel's parameters."""
    return jax.vjp(lambda k: _tables(k, X), kernel)[1](W)[0]


@compiled()
def stack_gradients(kernel: Kernel, X: jax.Array, Z: jax.Array) -> jax.Array:
    """d k(x_i, z_ij) / dx_i of points X (n, d) and tables Z (n, m, d): (n, m, d)."""
    slope = jax.grad(lambda x, z: kernel.pair(x, z))
    return jax.vmap(lambda x, own: jax.vmap(lambda z: slope(x, z))(own))(X, Z)


@compiled()
def row_curvatures(kernel: Kernel, X: jax.Array) -> jax.Array:
    def at(x: jax.Array) -> jax.Array:
        return jnp.diagonal(jax.jacfwd(jax.grad(kernel.pair, argnums=0), argnums=1)(x, x))

    return jax.vmap(at)(X)


@compiled()
def expectations(kernel: Kernel, mean: jax.Array, var: jax.Array, Z: jax.Array) -> Any:
    psi0, psi1, psi2, error = kernel.expectations(mean, var, Z)
    return psi0, psi1, whole(psi2, Z.shape[0]), error
