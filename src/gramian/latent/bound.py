r"""The bound of the Bayesian GP-LVM: tables without inputs, rows of which have Gaussian places.

    y_nd = f_d(x_n) + e_nd,    f_d ~ GP(0, k),    e ~ N(0, noise_g),    x_n ~ N(0, I),
    q(x_n) = N(mean_n, diag(var_n)),    inducing variables u_d = f_d(Z), K = k(Z, Z) = L L'

With b = 1 / noise, the statistics psi of the kernel (`kernels/expectations.py`) summed over the rows that a
column has, and the best q(u_d), which is Gaussian, the evidence is at least sum_d F_d - KL(q(X) || p(X)):

    B   = I + b L^-1 Psi2 L^-T,    c_d = L^-1 Psi1' y_d
    F_d = -1/2 [n_d log(2 pi noise) + log |B| + b (y_d'y_d + Psi0 - tr(L^-1 Psi2 L^-T)) - b^2 c_d' B^-1 c_d]

A cell that is not observed is in no sum: the bound is that of the cells that are there. Columns with the same
cells and the same noise are a group, and share B. With var = 0 the places are points (Lawrence 2004), and the
same formula is the bound of Titsias 2009 on log p(Y | X), beside log p(X).

A pass over blocks of rows makes the sums, a small program F and its slopes by the sums, and a second pass
carries these to the kernel, to Z and to the places: n m^2 (terms) + G m^3 operations, memory of a block.

Source: Titsias and Lawrence 2010, equations 9 to 14.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.forks import compiled
from gramian.kernels.base import Kernel
from gramian.kernels.expectations import whole
from gramian.linalg.threads import each
from gramian.params.tree import leaves

# Of the mean diagonal of K, added to it. The bound stays one: u is then f(Z) with a little noise of its own.
JITTER = 1e-8
ROWS = 128  # of a block: its pairs for 50 points are 1.3 MB
FEW = 32  # rows that one small block has room for


class ObservedTable(NamedTuple):
    """What was observed, centred and scaled; 0 where it was not."""

    Y: Array  # (n, D)
    seen: Array  # (n, G): 1 where the columns of a group were observed
    group: NDArray[np.intp]  # (D,): of each column

    @classmethod
    def of(cls, Y: Array, kinds: NDArray[np.intp]) -> ObservedTable:
        """From numbers with nan where nothing was seen; `kinds`: which noise each column has."""
        seen = ~np.isnan(Y)
        keys = np.concatenate([seen, kinds[None, :]], axis=0).T
        _, first, group = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)  # groups in the order of their first columns
        return cls(
            np.where(seen, Y, 0.0),
            seen[:, first[order]].astype(np.float64),
            np.argsort(order)[group.reshape(-1)],
        )

    def take(self, rows: Any) -> ObservedTable:
        """Some of the rows, in the same groups."""
        return ObservedTable(self.Y[rows], self.seen[rows], self.group)

    @property
    def counts(self) -> Array:
        """(D,): cells of each column."""
        return np.sum(self.seen, axis=0)[self.group]


class Places(NamedTuple):
    """Where the rows are, q(x_n): var is None for points."""

    mean: Array  # (n, Q)
    var: Array | None

    def take(self, rows: Any) -> Places:
        """Of some of the rows."""
        return Places(self.mean[rows], None if self.var is None else self.var[rows])

    def divergence(self) -> tuple[float, Array, Array | None]:
        """KL(q || N(0, I)), for points -log p(x); and its slopes by mean and by log var."""
        if self.var is None:
            n = self.mean.size
            return 0.5 * float(np.sum(self.mean**2)) + 0.5 * n * float(np.log(2 * np.pi)), self.mean, None
        value = 0.5 * float(np.sum(self.mean**2 + self.var - np.log(self.var) - 1))
        return value, self.mean, 0.5 * (self.var - 1)


class Sums(NamedTuple):
    """Psi0 (G,), Psi2 (G, m, m), Psi1' Y (m, D)."""

    psi0: Any
    psi2: Any
    moments: Any


class BoundSlopes(NamedTuple):
    """The gradient of a bound: by the leaves of the kernel, by the noises, by Z, by the means of the places
    and by the logarithms of their variances."""

    kernel: list[Array]
    noise: Array
    Z: Array
    mean: Array
    log_var: Array | None


class FunctionWeights(NamedTuple):
    """What the bound leaves of the functions: q(u_d) in the coordinates in which the prior is white.

    mean of f_d at x: psi1(x) L^-T A_d; its variance: k(x, x) - |L^-1 k|^2 + k' L^-T B_g^-1 L^-1 k.
    """

    root: Array  # L, (m, m)
    mean: Array  # L^-T A, (m, D)
    less: Array  # K^-1 - L^-T B_g^-1 L^-1, (G, m, m): what is known of f, as a share of k k'


def _sums(points: bool, kernel: Kernel, mean: Any, var: Any, Z: Any, Y: Any, seen: Any) -> Sums:
    if points:
        phi = kernel.cross(mean, Z)
        psi2 = jnp.einsum("ni,ng,nj->gij", phi, seen, phi)
        return Sums(kernel.diagonal(mean) @ seen, psi2, phi.T @ Y)
    psi0, psi1, pairs, _ = kernel.expectations(mean, var, Z)
    return Sums(psi0 @ seen, whole(seen.T @ pairs, Z.shape[0]), psi1.T @ Y)


@compiled(static=(0,))
def block_sums(points: bool, kernel: Kernel, mean: Any, var: Any, Z: Any, Y: Any, seen: Any) -> Sums:
    return _sums(points, kernel, mean, var, Z, Y, seen)


@compiled(static=(0,))
def block_slopes(
    points: bool, kernel: Kernel, mean: Any, var: Any, Z: Any, Y: Any, seen: Any, by_sums: Sums
) -> Any:
    back = jax.vjp(lambda k, x, v, z: _sums(points, k, x, v, z, Y, seen), kernel, mean, var, Z)[1]
    return back(by_sums)


def whitened_root(kernel: Kernel, Z: Any) -> Any:
    """L, the root of k(Z, Z)."""
    K = kernel.cross(Z, Z)
    return jnp.linalg.cholesky(K + JITTER * jnp.mean(jnp.diagonal(K)) * jnp.eye(len(Z), dtype=K.dtype))


def _whitened(L: Any, psi2: Any) -> Any:
    """L^-1 Psi2 L^-T of each group."""
    half = jax.vmap(lambda S: jax.scipy.linalg.solve_triangular(L, S, lower=True))(psi2)
    return jax.vmap(lambda S: jax.scipy.linalg.solve_triangular(L, S.T, lower=True))(half)


def whitened_sums(points: bool, kernel: Kernel, mean: Any, var: Any, Z: Any, Y: Any, seen: Any) -> Any:
    """L, L^-1 Psi2 L^-T, L^-1 Psi1' Y and Psi0 of a block."""
    L, sums = whitened_root(kernel, Z), _sums(points, kernel, mean, var, Z, Y, seen)
    c = jax.scipy.linalg.solve_triangular(L, sums.moments, lower=True)
    return L, _whitened(L, sums.psi2), c, sums.psi0


def _collapsed(kernel: Kernel, Z: Any, noise: Any, sums: Sums, squares: Any, counts: Any, group: Any) -> Any:
    """sum_d F_d; noise (G,), squares y_d'y_d and counts (D,)."""
    L = whitened_root(kernel, Z)
    A, b = _whitened(L, sums.psi2), 1 / noise
    B = jnp.eye(len(Z), dtype=L.dtype) + b[:, None, None] * A
    R = jnp.linalg.cholesky(0.5 * (B + jnp.swapaxes(B, 1, 2)))
    logdet = 2 * jnp.sum(jnp.log(jnp.diagonal(R, axis1=1, axis2=2)), axis=1)
    c = jax.scipy.linalg.solve_triangular(L, sums.moments, lower=True)  # (m, D)
    explained = _explained(R, c, group)
    slack = sums.psi0 - jnp.trace(A, axis1=1, axis2=2)
    b_d = b[group]
    of_columns = counts * jnp.log(2 * jnp.pi * noise[group]) + b_d * squares - b_d**2 * explained
    of_groups = logdet + b * slack
    return -0.5 * (jnp.sum(of_columns) + jnp.sum(of_groups[group]))


def _explained(R: Any, c: Any, group: Any) -> Any:
    """c_d' B_g^-1 c_d for each column."""
    if R.shape[0] == 1:
        return jnp.sum(jax.scipy.linalg.solve_triangular(R[0], c, lower=True) ** 2, axis=0)
    own = jax.vmap(lambda r, v: jax.scipy.linalg.solve_triangular(r, v, lower=True))(R[group], c.T)
    return jnp.sum(own**2, axis=1)


@compiled()
def collapsed(kernel: Kernel, Z: Any, noise: Any, sums: Sums, squares: Any, counts: Any, group: Any) -> Any:
    return _collapsed(kernel, Z, noise, sums, squares, counts, group)


@compiled()
def collapsed_slopes(
    kernel: Kernel, Z: Any, noise: Any, sums: Sums, squares: Any, counts: Any, group: Any
) -> Any:
    return jax.value_and_grad(_collapsed, argnums=(0, 1, 2, 3))(
        kernel, Z, noise, sums, squares, counts, group
    )


@compiled()
def weights_of(kernel: Kernel, Z: Any, noise: Any, sums: Sums, group: Any) -> FunctionWeights:
    L = whitened_root(kernel, Z)
    b, eye = 1 / noise, jnp.eye(len(Z), dtype=L.dtype)
    R = jnp.linalg.cholesky(eye + b[:, None, None] * _whitened(L, sums.psi2))
    c = jax.scipy.linalg.solve_triangular(L, sums.moments, lower=True)
    inverse = jax.vmap(lambda r: jax.scipy.linalg.cho_solve((r, True), eye))(R)  # B^-1
    inner = b[group] * jnp.einsum("dij,jd->id", inverse[group], c)
    back = jax.scipy.linalg.solve_triangular(L, eye, lower=True)  # L^-1
    less = jax.vmap(lambda one: back.T @ (eye - one) @ back)(inverse)
    return FunctionWeights(L, back.T @ inner, less)


def value_and_slopes(
    kernel: Kernel, noise: Array, Z: Array, places: Places, table: ObservedTable, gradient: bool = True
) -> tuple[float, BoundSlopes | None]:
    """The bound of a bare kernel, and its gradient: noise (G,), one a group."""
    points = places.var is None
    with jax.enable_x64(True):
        blocks = list(_blocks(places, table))
        sums = _added([tuple(part) for part in _in_blocks(blocks, points, kernel, Z)])
        squares, counts = np.sum(table.Y**2, axis=0), table.counts
        small = (kernel, Z, noise, Sums(*sums), squares, counts, table.group)
        divergence, by_mean, by_log_var = places.divergence()
        if not gradient:
            return float(collapsed(*small)) - divergence, None
        value, (by_kernel, by_Z, by_noise, by_sums) = collapsed_slopes(*small)

        def slopes(block: tuple[Any, ...]) -> Any:
            with jax.enable_x64(True):
                found = block_slopes(points, kernel, *block[1:3], Z, *block[3:], by_sums)
                return jax.tree_util.tree_map(np.asarray, found)

        kernels, means, variances, by_points = zip(*each(slopes, blocks), strict=True)
    trees = [leaves(tree) for tree in (by_kernel, *kernels)]  # in the order of paths
    by_leaves = [sum(parts[1:], np.asarray(parts[0])) for parts in zip(*trees, strict=True)]
    n = len(table.Y)
    log_var = None
    if places.var is not None and by_log_var is not None:
        log_var = np.concatenate(variances)[:n] * places.var - by_log_var
    mean = np.concatenate(means)[:n] - by_mean
    Z_slope = sum(by_points, np.asarray(by_Z))
    found = BoundSlopes(by_leaves, np.asarray(by_noise), Z_slope, mean, log_var)
    return float(value) - divergence, found


def weights(kernel: Kernel, noise: Array, Z: Array, places: Places, table: ObservedTable) -> FunctionWeights:
    """The best q(u) at these places."""
    with jax.enable_x64(True):
        parts = _in_blocks(list(_blocks(places, table)), places.var is None, kernel, Z)
        sums = Sums(*_added([tuple(part) for part in parts]))
        return FunctionWeights(*map(np.asarray, weights_of(kernel, Z, noise, sums, table.group)))


def _blocks(places: Places, table: ObservedTable) -> Any:
    """Rows in blocks of one size; what fills up the last is seen in no column."""
    n = len(table.Y)
    size = ROWS if n > FEW else FEW  # few programs to compile
    for start in range(0, n, size):
        rows = np.arange(start, min(start + size, n))
        more = size - len(rows)
        at = np.concatenate([rows, np.full(more, start)]) if more else rows
        seen, Y = table.seen[at], table.Y[at]
        if more:
            seen[len(rows) :], Y[len(rows) :] = 0.0, 0.0
        mean = places.mean[at]
        yield rows, mean, np.zeros_like(mean) if places.var is None else places.var[at], Y, seen


def _in_blocks(blocks: list[Any], points: bool, kernel: Kernel, Z: Array) -> list[Sums]:
    def sums(block: tuple[Any, ...]) -> Any:
        with jax.enable_x64(True):
            found = block_sums(points, kernel, *block[1:3], Z, *block[3:])
            return jax.tree_util.tree_map(np.asarray, found)

    return list(each(sums, blocks))


def _added(parts: list[tuple[Array, ...]]) -> list[Array]:
    return [sum(own[1:], own[0]) for own in zip(*parts, strict=True)]
