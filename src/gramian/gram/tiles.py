"""Kernel values in tiles of fixed size.

A Gram matrix is a grid of T x T tiles over rows padded to a multiple of T, so XLA compiles one program for a
kernel's structure and a tile size, whatever the number of rows. T is 64 up to 128 rows, 256 up to 448, else
512: tiles of 512 (2 MB) stay in cache on their way to the host array.

    fill        K(X, X) into the lower triangle of a Fortran-ordered host array
    cross       K(X, Z) into a host array
    strip       K(Z, X) for few rows Z, in long flat tiles: a column of K costs a column
    matmul      K(X, Z) V without ever storing K
    diagonal    k(x, x)
    pullback    sum_ij W_ij dk(x_i, x_j)/dtheta for weights W: how every gradient is made, with no (n, n, p)
                array anywhere; cross_pullback: for k(x_i, z_j), by Z and by X on request
    rowwise     any function of single rows (a mean function), and its pullback
    expectations  what k is on average at uncertain rows, in blocks of rows

Few rows of a kernel with a NumPy form take no tiles at all (gram/few.py). Tiles run on a few threads (XLA and
NumPy release the GIL); sums over tiles are made in one order, so results do not depend on the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations_with_replacement, product
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from gramian import forks
from gramian.arrays import Array
from gramian.gram import few, patches, programs, radial
from gramian.kernels.base import Kernel
from gramian.linalg.blas import block_of, gemm
from gramian.linalg.threads import each
from gramian.params import Tree
from gramian.params.tree import leaves

Block = tuple[slice, Array]  # where some rows lie, and the rows, padded to a tile
Pair = tuple[Block, Block]
Outer = tuple[Array, Array]  # left and right of weights left right'
T_ = TypeVar("T_")
R_ = TypeVar("R_")

TILES = ((128, 64), (448, 256), (float("inf"), 512))  # up to so many rows, tiles of this size
LARGEST_TILE = TILES[-1][1]
LONG_BLOCK = 4096  # rows at a time for functions of single rows, which are cheap: one call then does much
LONG_BLOCKS = ((128, 64), (LONG_BLOCK, 256), (float("inf"), LONG_BLOCK))  # as TILES, of these functions
# the heights of flat tiles: few programs to compile, and 64 x 4096 values are as many as in a tile of 512
STRIPS = (1, 4, 16, 64)
# of the right-hand sides of a product, which are padded to one of these: few programs to compile
WIDTHS = (1, 4, 16, 64, 256)
PULLBACK_ERROR = 1e-12  # of kernel values in a gradient, beside k(x, x)
# tiles of 512 in one call of a product: enough to hide its overhead, few enough to be padded
STACK = 16


def tile_size(n: int) -> int:
    """The rows of a tile for n rows of data."""
    return next(size for rows, size in TILES if n <= rows)


def fill(kernel: Kernel, X: Array, out: Array, *, error: float = 0.0) -> Array:
    """K(X, X) in the lower triangle of `out` (n, n), Fortran-ordered; `error` as in `cross`."""
    assert out.flags.f_contiguous
    values = few.block(kernel, X, X)
    if values is not None:
        out.T[...] = values.K
        return out
    fast = radial.taken(kernel, X, X, error)
    if fast is not None:
        fast.cross(out.T)
        return out
    # row-major: tile (j, i) of it is tile (i, j) of `out` by symmetry, in the order of XLA's result
    _fill(out.T, programs.tile, kernel.bare(), _pairs(_blocks(X, tile_size(len(X)))))
    return out


def cross(
    kernel: Kernel, X: Array, Z: Array, out: Array | None = None, *, low: bool = False, error: float = 0.0
) -> Array:
    """K(X, Z), row-major (n, m), in float32 with `low`; `error` of k(x, x) is allowed, to save time."""
    if out is None:
        out = np.empty((len(X), len(Z)), np.float32 if low else np.float64)
    terms = _terms(kernel, X, Z)
    if terms:
        np.copyto(out, sum(cross(*term, low=low, error=error) for term in terms))
        return out
    values = few.block(kernel, X, Z)
    if values is not None:
        out[...] = values.K
        return out
    fast = radial.taken(kernel, X, Z, error)
    if fast is not None:
        return fast.cross(out)
    sums = _patches(kernel, X, Z, error, low)
    if sums is not None:
        return sums.cross(Z, out)
    bare, X, Z = _prepared(kernel, X, Z, low)
    return _fill(out, programs.tile, bare, _grid(X, Z), bits=32 if low else 64)


def strip(kernel: Kernel, Z: Array, X: Array) -> Array:
    """K(Z, X) as a row-major array (m, n), for few rows Z against many X."""
    values = few.block(kernel, Z, X) if len(X) <= few.ROWS else None
    if values is not None:
        return np.array(values.K)
    height = next((h for h in STRIPS if len(Z) <= h), STRIPS[-1])
    pairs = product(_blocks(Z, height), _blocks(X, _long_block(len(X))))
    return _fill(np.empty((len(Z), len(X))), programs.tile, kernel.bare(), pairs)


def matmul(
    kernel: Kernel, X: Array, Z: Array, V: Array, dtype: type[np.float64] | type[np.float32] = np.float64
) -> Array:
    """K(X, Z) V for V (m, k), with one tile of K at a time, in a loop inside the compiled program.

    In float32 kernel values and sums within 8,192 columns have its 7 digits and take a third of the time; the
    result is float64 all the same.
    """
    values = few.block(kernel, X, Z)
    if values is not None:
        # BLAS adds up a row in an order that depends on where it stands; with nearly singular K that shows in
        # the tenth digit, and a prediction must not depend on its neighbours
        return np.einsum("ij,j->i", values.K, V[:, 0])[:, None] if V.shape[1] == 1 else values.K @ V
    if V.shape[1] > WIDTHS[-1]:
        starts = range(0, V.shape[1], WIDTHS[-1])
        return np.hstack([matmul(kernel, X, Z, V[:, c : c + WIDTHS[-1]], dtype) for c in starts])
    low = dtype == np.float32 and kernel.low_precision
    dtype = np.float32 if low else np.float64
    bare, X, Z = _prepared(kernel, X, Z, low)
    size = np.max(np.abs(V), axis=0, initial=0.0)
    # float32 ends at 1e38, and loses digits below 1e-38
    size = np.where((size > 0) & np.isfinite(size), size, 1.0) if low else np.ones(V.shape[1])
    T, width = tile_size(len(Z)), next(w for w in WIDTHS if V.shape[1] <= w)
    rows, stacks = _blocks(X, tile_size(len(X))), _stacks(Z, V / size, T, width, dtype)

    def one(block: Block) -> Array:
        at, X_i = block
        total = np.zeros((len(X_i), width))
        for Z_s, V_s, filled in stacks:
            total += _host(programs.product(bare, X_i, Z_s, V_s, filled))
        return total[: at.stop - at.start, : V.shape[1]]

    parts = _each(one, rows, bits=32 if low else 64)
    return np.concatenate(parts) * size if parts else np.zeros((0, V.shape[1]))


def pullback(
    kernel: Kernel, X: Array, dense: Array, *, factor: float = 1.0, low_rank: Outer | None = None
) -> list[Array]:
    """sum_ij W_ij dk(x_i, x_j)/dtheta for the symmetric weights W = factor dense + left right', one array a
    parameter.

    Of `dense` (n, n) only the upper triangle is read; `low_rank` is the pair left, right, each (n, q). W is
    made inside the compiled program.
    """
    values = few.block(kernel, X, X)
    if values is not None:
        return few.pulled(values, few.weights(dense, factor, low_rank))
    T, bare = tile_size(len(X)), kernel.bare()
    left, right = low_rank or (np.zeros((len(X), 1)), np.zeros((len(X), 1)))
    above = np.tri(T, k=-1, dtype=bool).T
    # arrays to use again: a fresh one of 2 MB costs more than what is written into it
    spare: list[Array] = []

    def one(pair: Pair) -> list[Array]:
        (at_i, X_i), (at_j, X_j) = pair
        S, room = dense[at_i, at_j], None
        if at_i == at_j or S.shape != (T, T):
            room = spare.pop() if spare else np.empty((T, T))
            part = room[: S.shape[0], : S.shape[1]]
            room.fill(0.0)
            if at_i == at_j:  # what lies above the diagonal stands for what lies below
                np.multiply(S, 2.0, out=part, where=above[: len(S), : len(S)])
                np.fill_diagonal(part, np.diagonal(S))
            else:
                part[...] = S
            S = room
        L, R = _padded(left[at_i], len(X_i)), _padded(right[at_j], len(X_j))
        parts = [_host(v) for v in leaves(programs.tile_pullback(bare, X_i, X_j, S, factor, L, R))]
        if room is not None:
            spare.append(room)
        # a tile off the diagonal stands for its mirror image, too
        return parts if at_i == at_j else [2 * v for v in parts]

    return _summed(_each(one, _pairs(_blocks(X, T))), bare)


def low_rank_pullback(kernel: Kernel, X: Array, left: Array, right: Array) -> list[Array]:
    """`pullback` for symmetric weights W = left right' of low rank, each (n, r): no n x n array is made."""
    values = few.block(kernel, X, X)
    if values is not None:
        return few.pulled(values, left @ right.T)
    bare = kernel.bare()

    def one(pair: Pair) -> list[Array]:
        (at_i, X_i), (at_j, X_j) = pair
        W = _padded_tile(left[at_i] @ right[at_j].T, len(X_i), len(X_j))
        none = np.zeros((len(X_i), 0))
        parts = leaves(programs.cross_pullback(False, False, bare, X_i, X_j, W, none, none)[0])
        # a tile off the diagonal stands for its mirror image, too
        return [_host(v) if at_i == at_j else 2 * _host(v) for v in parts]

    return _summed(_each(one, _pairs(_blocks(X, tile_size(len(X))))), bare)


def cross_pullback(
    kernel: Kernel,
    X: Array,
    Z: Array,
    W: Array,
    *,
    low_rank: Outer | None = None,
    points: bool = False,
    inputs: bool = False,
) -> list[Array]:
    """sum_ij W_ij dk(x_i, z_j)/dtheta for weights W (n, m), one array a parameter; after them with `points`
    the gradient of Z (m, d), and with `inputs` that of X (n, d).

    With `low_rank`, the pair left (n, q) and right (m, q), the weights are W + left right'. All is in float32
    where W is; sums over tiles are not. W may be overwritten.
    """
    low = W.dtype == np.float32
    terms = () if inputs else _terms(kernel, X, Z)
    if terms:
        pulled = [cross_pullback(k, x, z, W.copy(), low_rank=low_rank, points=points) for k, x, z in terms]
        if not points:
            return [v for part in pulled for v in part]
        by_Z = np.hstack([part.pop() for part in pulled])
        more = Z.shape[1] - by_Z.shape[1]  # columns that are there only so that a point is no row
        return [*(v for part in pulled for v in part), np.pad(by_Z, [(0, 0), (0, more)])]
    values = None if points or inputs else few.block(kernel, X, Z)
    if values is not None:
        return few.pulled(values, W + (0.0 if low_rank is None else low_rank[0] @ low_rank[1].T))
    fast = radial.taken(kernel, X, Z, PULLBACK_ERROR)
    if fast is not None:
        if low_rank is not None:
            left, right = map(np.ascontiguousarray, low_rank)
            gemm(1.0, block_of(right.T), block_of(left.T), block_of(W.T), transpose_a=True)
        return fast.pullback(W, points=points, inputs=inputs)
    sums = None if inputs or low_rank is not None else _patches(kernel, X, Z, PULLBACK_ERROR, low)
    if sums is not None:
        return sums.pullback(Z, W, points=points)
    bare, X, Z = _prepared(kernel, X, Z, low)
    left, right = low_rank or (np.zeros((len(X), 0)), np.zeros((len(Z), 0)))

    def one(pair: Pair) -> tuple[list[Array], Array, Array]:
        (at_i, X_i), (at_j, Z_j) = pair
        weights = _padded_tile(W[at_i, at_j], len(X_i), len(Z_j))
        L, R = _padded(left[at_i], len(X_i)), _padded(right[at_j], len(Z_j))
        by_kernel, by_Z, by_X = programs.cross_pullback(points, inputs, bare, X_i, Z_j, weights, L, R)
        rows, columns = at_i.stop - at_i.start, at_j.stop - at_j.start
        return [_host(v) for v in leaves(by_kernel)], _host(by_Z)[:columns], _host(by_X)[:rows]

    pairs = list(_grid(X, Z))
    parts = _each(one, pairs, bits=32 if low else 64)
    total = _summed([part[0] for part in parts], bare)
    by_Z, by_X = np.zeros(Z.shape), np.zeros(X.shape)  # sums in float64
    for ((at_i, _), (at_j, _)), (_, of_Z, of_X) in zip(pairs, parts, strict=True):
        if points:
            by_Z[at_j] += of_Z
        if inputs:
            by_X[at_i] += of_X
    return total + [by_Z] * points + [by_X] * inputs


def diagonal(kernel: Kernel, X: Array, *, low: bool = False) -> Array:
    """k(x, x) for each row; with `low` from numbers of 32 bits, where that saves time."""
    terms = kernel.parted(X)
    if terms:
        return np.asarray(sum(diagonal(*term, low=low) for term in terms))
    sums = patches.taken(kernel, X, PULLBACK_ERROR, low=low)
    if sums is not None:
        return sums.diagonal()
    known = few.diagonal(kernel, X) if len(X) <= LONG_BLOCK else radial.diagonal(kernel, X)
    return rowwise(kernel, "diagonal", X) if known is None else known


def diagonal_pullback(kernel: Kernel, X: Array, w: Array, *, low: bool = False) -> list[Array]:
    """sum_i w_i dk(x_i, x_i)/dtheta, one array a parameter."""
    terms = kernel.parted(X)
    if terms:
        return [v for k, x in terms for v in diagonal_pullback(k, x, w, low=low)]
    sums = patches.taken(kernel, X, PULLBACK_ERROR, low=low)
    if sums is not None:
        return sums.diagonal_pullback(w)
    short = len(X) <= LONG_BLOCK
    known = few.diagonal_pullback(kernel, X, w) if short else radial.diagonal_pullback(kernel, w)
    return rowwise_pullback(kernel, "diagonal", X, w) if known is None else known


def rowwise(tree: Tree, method: str, X: Array) -> Array:
    """tree.method(X) for a method that maps rows to rows: (n, d) -> (n, ...)."""
    known = few.rows(tree, method, X)
    if known is not None:
        return known[0]
    bare = tree.bare()
    parts = _by_rows(lambda rows: programs.rows(method, bare, rows), X)
    return np.concatenate(parts) if parts else np.zeros(0)


def rowwise_pullback(tree: Tree, method: str, X: Array, w: Array) -> list[Array]:
    """sum_i w_i d tree.method(X)_i / dtheta, one array a parameter."""
    known = few.rows(tree, method, X, w)
    if known is not None:
        return known
    bare = tree.bare()

    def one(block: Block) -> list[Array]:
        at, X_i = block
        return [_host(v) for v in leaves(programs.rows_pullback(method, bare, X_i, _padded(w[at], len(X_i))))]

    return _summed(_each(one, _blocks(X, _long_block(len(X)))), bare)


def gradients(kernel: Kernel, X: Array, Z: Array) -> Array:
    """d k(x_i, z_j) / dx_i: (n, m, d)."""
    out = np.empty((len(X), len(Z), X.shape[1]))
    return _fill(out, programs.tile_gradients, kernel.bare(), _grid(X, Z))


def gradient_variances(kernel: Kernel, X: Array) -> Array:
    """d^2 k(x, z) / dx_j dz_j at z = x: the prior variance of the gradient, (n, d)."""
    bare = kernel.bare()
    parts = _by_rows(lambda rows: programs.row_curvatures(bare, rows), X)
    return np.concatenate(parts) if parts else np.zeros((0, X.shape[1]))


def _has_points(kernel: Kernel, Z: Array) -> bool:
    """Whether Z are points of another kind than rows."""
    columns = kernel.point_columns()
    return columns is not None and Z.shape[1] == columns[1]


def _terms(kernel: Kernel, X: Array, Z: Array) -> tuple[tuple[Any, ...], ...]:
    """The terms of a sum with such points, each with what it sees of both tables."""
    return kernel.parted(X, Z) if _has_points(kernel, Z) else ()


def _patches(kernel: Kernel, X: Array, Z: Array, error: float, low: bool) -> patches.PatchGram | None:
    """The sums over the patches of images X with such points Z."""
    return patches.taken(kernel, X, error, low=low) if _has_points(kernel, Z) else None


# Helpers. ---------------------------------------------------------------------------------------------------


def _host(result: jax.Array | Array) -> Array:
    """As a NumPy array, without a copy. Waiting for it first releases the GIL, which a conversion holds."""
    return np.asarray(result if isinstance(result, (np.ndarray, np.generic)) else result.block_until_ready())


def _fill(out: Array, program: Callable[..., Any], bare: Any, pairs: Iterable[Pair], bits: int = 64) -> Array:
    """program(bare, X_i, Z_j) of each pair of blocks into its place in `out`."""

    def one(pair: Pair) -> None:
        (at_i, X_i), (at_j, Z_j) = pair
        rows, columns = at_i.stop - at_i.start, at_j.stop - at_j.start
        out[at_i, at_j] = _host(program(bare, X_i, Z_j))[:rows, :columns]

    _each(one, pairs, bits)
    return out


def _by_rows(program: Callable[[Array], Any], X: Array) -> list[Array]:
    """program(X), long blocks at a time."""
    blocks = _blocks(X, _long_block(len(X)))
    return _each(lambda block: _host(program(block[1]))[: block[0].stop - block[0].start], blocks)


def _grid(X: Array, Z: Array) -> Iterable[Pair]:
    """All pairs of a block of X and one of Z."""
    return product(_blocks(X, tile_size(len(X))), _blocks(Z, tile_size(len(Z))))


def _pairs(blocks: list[Block]) -> Iterable[Pair]:
    """Each block with itself and those after it."""
    return combinations_with_replacement(blocks, 2)


def _blocks(X: Array, T: int) -> list[Block]:
    """Where blocks lie, and their rows, padded to T by repeats: real data are harmless in any kernel."""
    blocks = []
    for start in range(0, len(X), T):
        block = X[start : start + T]
        padded = block if len(block) == T else block[np.arange(T) % len(block)]
        blocks.append((slice(start, start + len(block)), padded))
    return blocks


def expectations(kernel: Kernel, mean: Array, var: Array, Z: Array) -> tuple[Array, Array, Array, float]:
    """E k(x, x) (n,), E k(x, Z) (n, m) and E k(Z, x) k(x, Z) (n, m, m) at rows N(mean, diag(var)), and the
    largest error."""
    bare, T = kernel.bare(), TILES[0][1]
    rows = np.concatenate([mean, var], axis=1)
    d = mean.shape[1]

    def block(item: Block) -> list[Any]:
        at, both = item
        *values, error = programs.expectations(bare, both[:, :d], both[:, d:], Z)
        return [*(np.asarray(value)[: at.stop - at.start] for value in values), float(error)]

    parts = _each(block, _blocks(rows, T))
    psi0, psi1, psi2 = (np.concatenate([part[k] for part in parts]) for k in range(3))
    return psi0, psi1, psi2, max(part[3] for part in parts)


def _long_block(n: int) -> int:
    # one program for some hundred rows and some thousand, so that a search on a part of the rows has compiled
    # what the rest needs: to compile another takes longer than calls do
    return next(size for rows, size in LONG_BLOCKS if n <= rows)


def _padded(V: Array, rows: int) -> Array:
    return V if len(V) == rows else np.pad(V, [(0, rows - len(V))] + [(0, 0)] * (V.ndim - 1))


def _padded_tile(S: Array, rows: int, columns: int) -> Array:
    more = rows - S.shape[0], columns - S.shape[1]
    return np.pad(S, [(0, more[0]), (0, more[1])]) if any(more) else S


def _stacks(
    Z: Array, V: Array, T: int, width: int, dtype: type[np.float64] | type[np.float32]
) -> list[tuple[Any, Any, int]]:
    """Z and V in stacks of tiles, (t, T, d) and (t, T, width), zeros in V's rest; and how many are filled."""
    tall = STACK if T == LARGEST_TILE else 2  # smaller tiles are for fewer rows than three of them
    stacks = []
    with jax.enable_x64(dtype == np.float64):
        for start in range(0, len(Z), tall * T):
            Z_s, V_s = Z[start : start + tall * T], V[start : start + tall * T]
            stack, values = np.empty((tall * T, Z.shape[1]), dtype), np.zeros((tall * T, width), dtype)
            # a copy of real data is harmless in any kernel
            stack[: len(Z_s)], stack[len(Z_s) :] = Z_s, Z_s[0]
            values[: len(V_s), : V.shape[1]] = V_s
            arrays = stack.reshape(tall, T, -1), values.reshape(tall, T, -1)
            held = arrays if forks.lost() else tuple(map(jnp.asarray, arrays))
            stacks.append((*held, -(-len(Z_s) // T)))
    return stacks


def _prepared(kernel: Kernel, X: Array, Z: Array, low: bool) -> tuple[Any, Array, Array]:
    """The kernel's bare tree and the points; in float32 where said, which has no digits for small steps far
    from zero: both are moved alike, where that does not change the kernel."""
    if not low:
        return kernel.bare(), X, Z
    if kernel.stationary and len(Z):
        with np.errstate(over="ignore", invalid="ignore"):
            centre = np.median(Z[:: max(1, len(Z) // 101)], axis=0)
            X, Z = X - centre, Z - centre
    bare = jax.tree_util.tree_map(lambda v: np.asarray(v, np.float32), kernel.bare())
    return bare, X.astype(np.float32), Z.astype(np.float32)


def _each(work: Callable[[T_], R_], items: Iterable[T_], bits: int = 64) -> list[R_]:
    """[work(item) for item in items] in 64-bit mode (of each thread) or 32-bit, on several threads."""

    def in_mode(item: T_) -> R_:
        with jax.enable_x64(bits == 64):
            return work(item)

    items = list(items)
    if len(items) <= 3:  # up to 128 rows: handing out costs more than it saves
        return [in_mode(item) for item in items]
    return list(each(in_mode, items))


def _summed(parts: list[list[Array]], bare: Tree) -> list[Array]:
    shapes = [v.shape for v in leaves(bare)]
    return [sum((part[k] for part in parts), np.zeros(shape)) for k, shape in enumerate(shapes)]
