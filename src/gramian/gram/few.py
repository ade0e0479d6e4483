"""Few rows: kernel values in NumPy (kernels/host.py), in the thread that asks.

Where the kernel has no such form, the answer is None. Nothing is compiled, so a call of any size costs what
it computes. As in compiled programs, what overflows is refused where it arrives.

In a fork without JAX (forks.py) the same forms stand for the compiled programs, a tile at a time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.kernels.base import Kernel
from gramian.kernels.host import Host, KernelValues, Pairs
from gramian.params import Tree

ROWS = 448  # up to which a Gram matrix is made so: as many as take tiles smaller than the largest
VALUES = ROWS**2


@np.errstate(all="ignore")  # as in compiled programs: what overflows is refused where it arrives
def block(kernel: Kernel, X: Array, Z: Array, points: Pairs | None = None) -> KernelValues | None:
    """K(X, Z) with its pullback; None where there are many rows, or the kernel goes through JAX. `points`: X
    and Z, where somebody keeps what is known of them."""
    host = kernel.bare().on_host() if 0 < len(X) * len(Z) <= VALUES else None
    return None if host is None else host.cross(points or Pairs(X, Z))


@np.errstate(all="ignore")
def pulled(values: KernelValues, W: Array) -> list[Array]:
    """sum_ij W_ij dk(x_i, z_j)/dtheta, one array a parameter."""
    return values.pull(W, 1.0)


def weights(dense: Array, factor: float, low_rank: tuple[Array, Array] | None) -> Array:
    """The symmetric weights factor dense + left right', where only the upper triangle of `dense` is read:
    what lies above its diagonal counts for what lies below."""
    upper, factors = _triangle(len(dense), factor)
    W = np.where(upper, dense, 0.0)  # below it may stand anything, NaN included
    W *= factors
    if low_rank is not None:
        W += low_rank[0] @ low_rank[1].T
    return W


@lru_cache(maxsize=8)
def _triangle(n: int, factor: float) -> tuple[NDArray[np.bool_], Array]:
    upper = np.tri(n, dtype=bool).T
    return upper, factor * (2.0 * upper - np.eye(n))


def by_distance(kernel: Kernel) -> Host | None:
    """The kernel's form in NumPy where it is a function of distances, which stacks of tables know, too
    (host.Stack); None where it is none, or goes through JAX."""
    host = kernel.bare().on_host()
    return host if host is not None and host.by_distance else None


@np.errstate(all="ignore")
def diagonal(kernel: Kernel, X: Array) -> Array | None:
    """k(x, x) of each row."""
    host = kernel.bare().on_host()
    return None if host is None else host.diagonal(X).K


@np.errstate(all="ignore")
def diagonal_pullback(kernel: Kernel, X: Array, w: Array) -> list[Array] | None:
    """sum_i w_i dk(x_i, x_i)/dtheta, one array a parameter."""
    host = kernel.bare().on_host()
    return None if host is None else host.diagonal(X).pull(w, 1.0)


@np.errstate(all="ignore")
def rows(tree: Tree, method: str, X: Array, w: Array | None = None) -> list[Array] | None:
    """tree.method(X), or with weights its pullback, where that is the block of a mean with a NumPy form."""
    if method != "block" or not hasattr(tree, "on_host"):
        return None
    found = tree.bare().on_host(X)
    if found is None:
        return None
    return [found.values] if w is None else list(found.pull(w))


# Instead of the compiled programs (gram/programs.py). -------------------------------------------------------


@np.errstate(all="ignore")
def tile(kernel: Kernel, X: Array, Z: Array) -> Array | None:
    """K(X, Z)."""
    host = kernel.on_host()
    return None if host is None else host.cross(Pairs(X, Z)).K


@np.errstate(all="ignore")
def tables(kernel: Kernel, X: Array) -> Array | None:
    """K(X_i, X_i) of each table."""
    host = kernel.on_host()
    return None if host is None else np.array([host.cross(Pairs(x, x)).K for x in X])


@np.errstate(all="ignore")
def product(kernel: Kernel, X: Array, Z: Array, V: Array, filled: int) -> Array | None:
    """sum_t K(X, Z_t) V_t over the filled tiles, one at a time."""
    host = kernel.on_host()
    if host is None:
        return None
    total = np.zeros((len(X), V.shape[2]))
    for Z_t, V_t in zip(Z[:filled], V, strict=False):
        total += host.cross(Pairs(X, Z_t)).K @ V_t
    return total


@np.errstate(all="ignore")
def tile_pullback(
    kernel: Kernel, X: Array, Z: Array, S: Array, factor: float, L: Array, R: Array
) -> Kernel | None:
    """By the parameters, from the weights factor S + L R'."""
    host = kernel.on_host()
    return None if host is None else kernel.bare_at(host.cross(Pairs(X, Z)).pull(factor * S + L @ R.T, 1.0))


def cross_pullback(
    points: bool, inputs: bool, kernel: Kernel, X: Array, Z: Array, W: Array, L: Array, R: Array
) -> tuple[Kernel, Array, Array] | None:
    """The same from W + L R'; by points and inputs there is none."""
    found = None if points or inputs else tile_pullback(kernel, X, Z, W, 1.0, L, R)
    return None if found is None else (found, Z[:, :0], X[:, :0])


@np.errstate(all="ignore")
def row_values(method: str, tree: Any, X: Array) -> Array | None:
    """tree.method(X): k(x, x), or what a tree says it can do with arrays of NumPy."""
    if method == "diagonal":
        return diagonal(tree, X)
    return getattr(tree, method)(X) if hasattr(tree, "in_numpy") and tree.in_numpy(method) else None
