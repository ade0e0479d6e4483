"""Rows drawn by how much they matter to all of K: leverage scores, not yet normalised.

    leverage         sum_{j <= r} U_ij^2, K = U diag(s) U'   the r leading eigenvectors: O(n^3), n^2 doubles
    ridge leverage   (K (K + ridge I)^-1)_ii                 O(n^3), n^2 doubles
    recursive        ridge leverage from landmarks of a half of the rows, those from landmarks of a quarter,
                     ...: O(n m) kernel values, O(n m^2) flops

Ridge scores sum to the effective dimension of K at that ridge. The default, ridge = (1/k) sum_{j > k} s_j,
keeps it at or below 2 k. Drawing so that all directions of an effective dimension k are met takes about k log
k rows, so for m landmarks k = m / log m. (With k = m the error of K was larger on real data in nearly all of
31 cases, up to 70 times, and often above that of uniform rows.) Leverage scores drop all directions beyond
their rank at once, so they have more of them: r = m / 2.

The recursion, from the smallest set of rows up: with landmarks S of the half, and weights w = 1/sqrt(p) for
the chance p with which each was taken,

    l_i = (K_ii - K_iS (K_SS + ridge W^-2)^-1 K_Si) / ridge,
        ridge = (1/k) sum_{j > k} s_j(W K_SS W),      p_i = min(1, q l_i)

takes each row of the whole with chance p_i. For a budget of m: q = log m and k = m / (4 q), so about 2 k q =
m/2 rows are taken; where more than m are expected, all chances are lowered alike. At the top exactly m rows
are drawn in proportion to l.

Sources: Gittens and Mahoney 2016 (leverage); Alaoui and Mahoney 2015 (ridge leverage); Musco and Musco 2017,
algorithm 3, with a fixed sample size as in their own program (recursion, ridge, q and k).
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, eigh, lapack

from gramian.arrays import AnyArray, Array, Indices
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.landmarks import tables
from gramian.landmarks.sampling import SampledRule

MAX_ROWS = 16_000  # of scores that need all of K: 2 GB a matrix, an eigenvalue problem of several minutes
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class LeverageRule(SampledRule):
    """By leverage in the m / 2 leading eigenvectors."""

    name = "leverage"

    def scores(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Array:
        return leverage_scores(kernel, X, m)

    def candidates(self, n: int, m: int) -> int:
        return n

    def bytes_needed(self, n: int, m: int) -> int:
        return 2 * 8 * n * n  # K, and its eigenvectors, or its factor


@dataclass(frozen=True)
class RidgeRule(LeverageRule):
    """By ridge leverage, exact."""

    ridge: float | None = None  # in units of k(x, x); None: see above
    name = "rls"

    def __post_init__(self) -> None:
        super().__post_init__()
        ridge = self.ridge
        number = isinstance(ridge, numbers.Real) and not isinstance(ridge, bool)
        if ridge is not None and not (number and 0 < float(ridge) < float("inf")):
            raise ParameterError(f"ridge={ridge!r} is no ridge. Give a positive number, in units of k(x, x).")

    def scores(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Array:
        return ridge_scores(kernel, X, m, self.ridge)[0]


@dataclass(frozen=True)
class RecursiveRule(SampledRule):
    """By ridge leverage, estimated by recursion."""

    name = "recursive-rls"

    def scores(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Array:
        return recursive_scores(kernel, X, m, rng)[0]

    def bytes_needed(self, n: int, m: int) -> int:
        return int(0.25 * 8 * n * m)  # blocks of rows against the landmarks of a level


def leverage_scores(kernel: Kernel, X: AnyArray, m: int) -> Array:
    """Squared row norms of the m / 2 leading eigenvectors of K, or as many as are above rounding."""
    K, n = _gram(kernel, X, "leverage"), len(X)
    first = n - min(-(-m // 2), n)
    how = {"lower": True, "overwrite_a": True, "check_finite": False}
    try:
        values, vectors = eigh(K, subset_by_index=(first, n - 1), **how)
    except np.linalg.LinAlgError:  # see _largest
        values, vectors = eigh(_gram(kernel, X, "leverage"), driver="evd", **how)
        values, vectors = values[first:], vectors[:, first:]
    return np.sum(vectors[:, values > n * _EPS * values[-1]] ** 2, axis=1)


def ridge_scores(kernel: Kernel, X: AnyArray, m: int, ridge: float | None = None) -> tuple[Array, float]:
    """(K (K + ridge I)^-1)_ii, and the ridge: as given, or that of k = m / log m, see above."""
    K, n = _gram(kernel, X, "rls"), len(X)
    trace = float(np.trace(K))
    if ridge is None:
        k = min(int(np.ceil(m / _log(m))), n)
        ridge = _tail(trace, _largest(K, k), k, n)
    K[np.diag_indices(n)] += ridge
    L, info = lapack.dpotrf(K, lower=1, clean=0, overwrite_a=1)
    if info == 0:
        L, info = lapack.dpotri(L, lower=1, overwrite_c=1)
    if info != 0:
        raise NumericalError(
            f"K + ridge I is not positive definite with ridge={ridge:g} and a trace of {trace:g}. Give a"
            " larger ridge."
        )
    return np.clip(1.0 - ridge * np.diagonal(L), 0.0, 1.0), ridge


def recursive_scores(kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> tuple[Array, float]:
    """Estimated ridge scores of all rows, from a budget of m landmarks a level, and their ridge."""
    n, q = len(X), _log(m)
    k = int(np.ceil(m / (4 * q)))
    sizes = [n, -(-n // 2)]  # each level has half the rows of the one above, until the budget holds them all
    while sizes[-1] > m:
        sizes.append(-(-sizes[-1] // 2))
    order = rng.permutation(n)  # its first rows are a uniform sample of any size
    d = tables.diagonal(kernel, X)
    S, w = order[: sizes[-1]], np.ones(sizes[-1])
    for size in sizes[-2:0:-1]:
        level = order[:size]
        p = np.minimum(1.0, q * _scores_from(kernel, X, level, d, S, w, k)[0])
        p *= min(1.0, m / max(float(np.sum(p)), 1.0))
        taken = rng.random(size) < p
        if not np.any(taken):  # scores of rounding only: a kernel of few dimensions, which any rows explain
            taken, p = np.arange(size) < m, np.full(size, min(1.0, m / size))
        S, w = level[taken], 1.0 / np.sqrt(p[taken])
    scores, ridge = _scores_from(kernel, X, None, d, S, w, k)
    # All may round to 0, where S explains every row: again any rows will do, but those of k(x, x) = 0.
    return (scores if np.any(scores) else (d > 0).astype(np.float64)), ridge


def _scores_from(
    kernel: Kernel, X: AnyArray, level: Indices | None, d: Array, S: Indices, w: Array, k: int
) -> tuple[Array, float]:
    """Estimated ridge scores of the rows `level` (None: all) from landmarks S, weights w; the ridge."""
    Z = tables.take(X, S)
    # W K_SS W: the small weights of sure rows and the large of rare ones, in one scale
    K = w[:, None] * tiles.cross(kernel, Z, Z) * w
    trace, s = float(np.trace(K)), len(S)
    top = _largest(K, k) if s > k else np.array([trace])
    ridge = _tail(trace, top, k, s)
    K[np.diag_indices(s)] += ridge
    L, info = lapack.dpotrf(K, lower=1)
    if info != 0:
        raise NumericalError(
            f"The kernel matrix of {s} rows has an eigenvalue below {-ridge:g}: the kernel is not positive"
            " semi-definite."
        )
    R, _ = lapack.dtrtri(L, lower=1)
    R *= w  # L^-1 W

    def explained(block: Array) -> Array:
        # R K_Si in place (3 times as fast as a solve): the squares of a column sum to what S explains of K_ii
        K = tiles.strip(kernel, Z, block).T
        solved = blas.dtrmm(1.0, R, K, side=1, lower=1, trans_a=1, overwrite_b=1)
        return np.einsum("ij,ij->i", solved, solved)

    known = np.concatenate([explained(block) for _, block in tables.blocks(X, at=level)])
    return np.clip(((d if level is None else d[level]) - known) / ridge, 0.0, 1.0), ridge


def _log(m: int) -> float:
    """How many rows are drawn for one that is needed."""
    return max(float(np.log(m)), 1.0)


def _largest(K: Array, r: int) -> Array:
    """The r largest eigenvalues; by all, where many are equal to rounding (K ~ I) and MRRR gives up."""
    n = len(K)
    how = {"lower": True, "eigvals_only": True, "check_finite": False}
    try:
        return eigh(K, subset_by_index=(n - r, n - 1), **how)
    except np.linalg.LinAlgError:
        return eigh(K, driver="evd", **how)[n - r :]


def _tail(trace: float, top: Array, m: int, n: int) -> float:
    """(1/m) times the sum of the eigenvalues beyond the largest, but not below their rounding error."""
    return max((trace - float(np.sum(top))) / m, n * _EPS * trace, float(np.finfo(float).tiny))


def _gram(kernel: Kernel, X: AnyArray, rule: str) -> Array:
    n = len(X)
    if n > MAX_ROWS:
        raise InputError(
            f'rule="{rule}" needs all of K and its eigenvalues: that is for up to {MAX_ROWS:,} rows, but X'
            f' has {n:,}. Take rule="recursive-rls", which estimates such scores from few columns of K, or a'
            " part of the rows."
        )
    tables.diagonal(kernel, X)  # its check of the numbers names the row
    return tiles.fill(kernel, tables.take(X, np.arange(n)), np.empty((n, n), order="F"))
