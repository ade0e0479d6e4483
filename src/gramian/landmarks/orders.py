"""Orders of rows, and of each row the nearest among those before it: what a Vecchia approximation stands on.

    maxmin      each row is as far as can be from all before it: a few rows everywhere, then more between them
    random      a permutation by a fixed seed
    coordinate  along the column that spreads most: what neighbours were in Vecchia's paper; poor in space

Maxmin is greedy up to EXACT_UP_TO rows (n^2 d). Beyond, it goes by levels: a grid whose cells halve from
level to level; each cell without a row gets the row nearest to its centre, unless another row of the order is
nearer to that than half a cell. So the rows of a level are at least half a cell apart, and no row is further
than a cell's diagonal, and half a cell, from all of them: maxmin to a factor, at n log n. Within a level rows
come in random order.

Neighbours are exact: a tree of the first rows of the order is asked for a few more than are needed, of which
those before the row count, and asked for more where they are too few. Blocks of the order grow by a quarter,
so that at least four fifths of a tree's rows count. Cost: n log n in few columns.

Source: Vecchia 1988; Guinness 2018, Permutation and grouping methods for sharpening Gaussian process
approximations; Katzfuss and Guinness 2021, A general framework for Vecchia approximations.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from gramian import clock
from gramian.arrays import Array, Indices
from gramian.linalg.threads import count

EXACT_UP_TO = 2000  # rows: a moment
LEVELS = 24  # a cell is then 1e-7 of the largest: what is nearer counts as equal, and comes last
GROWTH = 1.25  # of the blocks of an order
QUERY = 2**14  # rows that a tree is asked for at a time: between two blocks the clock is looked at
SEED = 0

Nearest = NDArray[np.int32]


def maxmin(X: Array) -> Indices:
    """Each row as far as can be from all before it, from the one in the middle on; equal rows come last."""
    return _greedy(X) if len(X) <= EXACT_UP_TO else _by_levels(X)


def random(X: Array) -> Indices:
    """A permutation."""
    return np.random.default_rng(SEED).permutation(len(X))


def coordinate(X: Array) -> Indices:
    """Along the column that spreads most."""
    return np.argsort(X[:, int(np.argmax(np.std(X, axis=0)))], kind="stable")


ORDERS: dict[str, Callable[[Array], Indices]] = {"maxmin": maxmin, "random": random, "coordinate": coordinate}


def nearest_before(X: Array, m: int) -> Nearest:
    """Of each row of X, which is in order, the m nearest among those before it, the nearest first: (n, m),
    with -1 where there are fewer."""
    n = len(X)
    found = np.full((n, m), -1, dtype=np.int32)
    first = min(n, 2 * m + 2)
    for i in range(1, first):  # too few for a tree: all before it, or nearly
        near = np.argsort(np.sum((X[:i] - X[i]) ** 2, axis=1), kind="stable")[:m]
        found[i, : len(near)] = near
    start = first
    while start < n:
        stop = min(n, int(start * GROWTH) + 1)
        tree = KDTree(X[:stop])
        for low in range(start, stop, QUERY):
            rows = np.arange(low, min(low + QUERY, stop))
            k = min(stop, int(1.25 * m) + 8)
            while len(rows):
                clock.check()
                _, near = tree.query(X[rows], k=k, workers=count())
                near = near.astype(np.int32)
                before = near < rows[:, None]
                enough = before.sum(axis=1) >= m
                # those before the row come first, each part in the order of its distances
                near = np.take_along_axis(near, np.argsort(~before, axis=1, kind="stable"), axis=1)[:, :m]
                found[rows[enough]] = near[enough]
                rows, k = rows[~enough], min(stop, 2 * k)
        start = stop
    return found


def _greedy(X: Array) -> Indices:
    n = len(X)
    order = np.empty(n, dtype=np.intp)
    gap = np.full(n, np.inf)  # of each row to the nearest that was taken
    at = _middle(X)
    for k in range(n):
        order[k] = at
        gap = np.minimum(gap, np.sum((X - X[at]) ** 2, axis=1))
        gap[at] = -1.0
        at = int(np.argmax(gap))
    return order


def _by_levels(X: Array) -> Indices:
    rng = np.random.default_rng(SEED)
    low, size = np.min(X, axis=0), float(np.max(np.ptp(X, axis=0)))
    order = np.array([_middle(X)])
    left = np.delete(np.arange(len(X)), order)
    for level in range(1, LEVELS if size else 0):
        clock.check()
        h = size / 2**level
        candidates = left[rng.permutation(_one_a_cell(X[left], low, h))]
        far = KDTree(X[order]).query(X[candidates], distance_upper_bound=h / 2, workers=count())[0] == np.inf
        candidates = candidates[far]
        if len(candidates):
            pairs = KDTree(X[candidates]).query_pairs(h / 2, output_type="ndarray")
            candidates = np.delete(candidates, np.unique(pairs[:, 1]))  # the later of two
            order = np.concatenate([order, candidates])
            left = np.setdiff1d(left, candidates, assume_unique=True)
        if not len(left):
            break
    return np.concatenate([order, left])


def _middle(X: Array) -> int:
    return int(np.argmin(np.sum((X - np.mean(X, axis=0)) ** 2, axis=1)))


def _one_a_cell(X: Array, low: Array, h: float) -> Indices:
    """In each cell of side h, the row that is nearest to its centre."""
    cells = np.floor((X - low) / h)
    off = np.sum((X - low - (cells + 0.5) * h) ** 2, axis=1)
    ranked = np.lexsort((off, *cells.T))
    apart = np.any(np.diff(cells[ranked], axis=0) != 0, axis=1)
    return ranked[np.concatenate([[True], apart])]
