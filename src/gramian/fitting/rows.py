"""Which of many rows a search is on.

A part that is chosen at random has few of the short distances that all rows have: noise and roughness, which
only near rows tell apart, are left to the kernel's guess, and the posterior of all rows can then contradict
itself. So half of a part are rows at random, and half are neighbourhoods: random rows, each with those
nearest to it among all, by the distance of the present kernel, k(x, x) - 2 k(x, c) + k(c, c). Rows are chosen
by X alone, so the evidence of the part is as honest as that of any.

Copies (rows equal to another in X and y) count once in a search under Gaussian noise: two equal measurements
of a number with digits to spare are one that was written down twice, and no proof that there is no noise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from gramian.arrays import Array
from gramian.gram import tiles
from gramian.inference.model import Data, Model
from gramian.landmarks.rules import landmarks

NEIGHBOURS = 30  # of a neighbourhood, its centre included
PATCH = 500  # of a patch
LOOKED_THROUGH = 200_000  # rows up to which equal and near ones are looked for
AT_ONCE = 16  # centres whose distances are held at once


class Repeats(NamedTuple):
    """Rows with equal X."""

    group: NDArray[np.intp]  # (n,): the same number where X is the same
    copy: NDArray[np.bool_]  # (n,): equal to an earlier row in y, too

    def least_noise(self, Y: Array) -> Array:
        """For each output a noise variance that is too low with probability 99.9 %, given how much y differs
        where X does not: the pure error's sum of squares over a quantile of chi squared. (q,); 0 where
        nothing differs."""
        seen = np.isfinite(Y) & ~self.copy[:, None]
        count = np.maximum(np.stack([np.bincount(self.group, weights=s) for s in seen.T], axis=1), 1)
        Y = np.where(seen, Y, 0.0)
        mean = np.stack([np.bincount(self.group, weights=y) for y in Y.T], axis=1) / count
        squares = np.sum(np.where(seen, (Y - mean[self.group]) ** 2, 0.0), axis=0)
        freedom = np.sum(count - 1, axis=0)
        return np.where(freedom > 0, squares / chdtri(np.maximum(freedom, 1), 0.001), 0.0)


def repeats(X: Array, Y: Array) -> Repeats | None:
    """Which rows have the X of another; None where none has, or where there are too many to look through."""
    if len(X) > LOOKED_THROUGH:
        return None
    # one number a row, different for different ones but for rare accidents: quick where none repeats
    weights = np.sqrt(np.arange(2.0, X.shape[1] + 2.0)) % 1.0
    with np.errstate(all="ignore"):
        sums = np.sort((np.asarray(X) * weights).sum(axis=1))
    if not (sums[1:] == sums[:-1]).any():
        return None
    _, group = np.unique(np.asarray(X), axis=0, return_inverse=True)
    group = group.reshape(-1)
    if group.max() == len(X) - 1:
        return None
    _, first, same = np.unique(np.column_stack([group, Y]), axis=0, return_index=True, return_inverse=True)
    return Repeats(group, first[same.reshape(-1)] != np.arange(len(X)))


def distinct(data: Data) -> Data:
    """Each row once."""
    found = repeats(data.X, data.Y)
    return data if found is None or not found.copy.any() else data.take(np.flatnonzero(~found.copy))


def in_random_order(data: Data, rng: np.random.Generator) -> NDArray[np.intp]:
    """A random order of the rows in which those with equal X stay together. What they disagree in is
    noise."""
    n = len(data.X)
    if n > LOOKED_THROUGH:
        return rng.permutation(n)
    _, group = np.unique(np.asarray(data.X), axis=0, return_inverse=True)
    group = group.reshape(-1)
    return np.argsort(rng.permutation(int(group.max()) + 1)[group], kind="stable")


def chosen(
    rule: str, model: Model, data: Data, count: int, order: NDArray[np.intp], rng: np.random.Generator
) -> NDArray[np.intp]:
    """`count` rows, sorted: the first of a random order, so that a larger part holds the smaller ones, half
    of them so with "neighbours", or by a landmark rule."""
    if rule == "uniform" or (rule == "neighbours" and len(data.X) > LOOKED_THROUGH):
        return np.sort(order[:count])
    if rule == "patches":
        return _patches(model, np.asarray(data.X), count, order)
    if rule == "neighbours":
        return _with_neighbours(model, np.asarray(data.X), count, order)
    found = landmarks(model.kernel, data.X, count, rule, np.random.RandomState(rng.integers(2**32)))
    assert found.indices is not None
    return np.unique(found.indices)


def described(rule: str, n: int) -> str:
    if rule == "neighbours" and n <= LOOKED_THROUGH:
        return "half at random, half in neighbourhoods"
    if rule == "patches":
        return "in patches"
    return "at random" if rule in ("uniform", "neighbours") else f"by {rule}"


def _patches(model: Model, X: Array, count: int, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Random rows, each with PATCH others that are nearest to it: what engines that look at neighbours learn
    from, in which rows lie as close as they do among all."""
    kernel, taken = model.kernels[0][0], np.zeros(len(X), dtype=bool)
    own = tiles.diagonal(kernel, X)
    own -= own.min()
    for centre in order:
        missing = count - int(np.count_nonzero(taken))
        if not missing:
            break
        apart = own - 2 * tiles.strip(kernel, X[[centre]], X)[0]
        apart[taken] = np.inf
        near = min(PATCH, missing)
        taken[np.argpartition(apart, near - 1)[:near]] = True
    return np.flatnonzero(taken)


def _with_neighbours(model: Model, X: Array, count: int, order: NDArray[np.intp]) -> NDArray[np.intp]:
    kernel, taken = model.kernels[0][0], np.zeros(len(X), dtype=bool)
    taken[order[: count - count // 2]] = True
    near = min(NEIGHBOURS, max(count // 2, 1), len(X))
    own = tiles.diagonal(kernel, X)
    own -= own.min()  # where all are alike, nothing stands beside k(x, c), however small that is
    # From the other end, so that none is among the first, and apart from each other: equal rows stand
    # together in the order.
    centres = order[::-1][::near][: -(-(count // 2) // near)]
    for start in range(0, len(centres), AT_ONCE):
        at = centres[start : start + AT_ONCE]
        apart = own - 2 * tiles.cross(kernel, X[at], X)  # less k(c, c), which is the same for all
        for distances in apart:
            nearest = np.argpartition(distances, near - 1)[:near]
            nearest = nearest[np.argsort(distances[nearest])]
            taken[nearest[: max(0, count - np.count_nonzero(taken))]] = True
    missing = order[~taken[order]][: count - np.count_nonzero(taken)]  # where neighbourhoods overlap
    taken[missing] = True
    return np.flatnonzero(taken)
