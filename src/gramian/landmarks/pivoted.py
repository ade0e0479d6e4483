"""Partial Cholesky factorisation with pivots, K ~ F F' from some columns of K, without K.

    g = (K(:, p) - F F(p, :)') / sqrt(d_p),   F <- [F, g],   d <- d - g^2        d: the diagonal of K - F F'

F F' is the Nystrom approximation from the columns of the pivots. Rules for the next pivot p:

    pivoted       the largest d: greedy, deterministic; as inducing points it is the greedy conditional
                  variance rule.
    rpcholesky    at random with probabilities d / sum(d). E trace(K - F F') is at most (1 + eps) times that
                  of the best rank-r approximation once m is about r / eps + r log(1 / (eps eta)), eta the
                  relative error of that one.

Both work in blocks: one column at a time means one pass over F a column, and memory then sets the speed.

pivoted: d only falls, so an old value is an upper bound. Values are kept up to date among the rows with the
largest d, while the largest of them exceeds every old value outside; then all rows are brought up to date
with one matrix product. The pivots are those of the column by column algorithm (equal values: the first row).

rpcholesky: b rows at random from one d, without repeats; with b = 1 this is the simple algorithm. The block's
own residual matrix is factored greedily, and the rest is left out once it holds less than 1/b of its trace.

Cost: n m kernel values and n m^2 flops (pivoted: min(n, 2048) m values more), n m doubles for F. What falls
below rounding counts as 0, and when no row has anything left the factor ends with fewer than m columns.

Sources: Harbrecht, Peters, Schneider 2012 (partial pivoted Cholesky); Burt, Rasmussen, van der Wilk 2020,
section 4 (greedy conditional variance); Chen, Epperly, Tropp, Webber 2022, algorithms 2.1 and 2.2 (randomly
pivoted, and its block form) and theorem 3.1; Dong, Chen, Martinsson, Pearce 2023 (the filter within a block,
with their tolerance 1/b).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas, lapack

from gramian.arrays import AnyArray, Array, Indices, is_whole
from gramian.errors import InputError, NumericalError, ParameterError
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.landmarks import tables
from gramian.landmarks.base import LandmarkRule, Landmarks
from gramian.linalg.threads import for_each, one_blas_thread

CANDIDATES = 2048  # rows whose d is kept up to date from pivot to pivot: their part of F stays in cache
MOST_AT_ONCE = 64  # greedy pivots before all rows are brought up to date: a flat tile's height


@dataclass(frozen=True, eq=False)
class PartialCholesky:
    """K ~ F F', exact in the rows and columns of the pivots."""

    F: Array  # (n, r), Fortran-ordered, r <= m
    pivots: Indices  # (r,), rows of X in the order in which they were taken
    residual_diagonal: Array  # (n,), of K - F F', not negative


@dataclass(frozen=True)
class PivotedRule(LandmarkRule):
    """Each time the row least explained."""

    name = "pivoted"

    def choose(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Landmarks:
        pivots = pivoted_cholesky(kernel, X, m, rng, rule="pivoted").pivots
        return Landmarks(tables.take(X, pivots), pivots, rule=self.name)


@dataclass(frozen=True)
class RPCholeskyRule(LandmarkRule):
    """Each time at random, by what is left to explain."""

    block: int | None = None  # rows drawn at once; None: m / 10
    name = "rpcholesky"

    def __post_init__(self) -> None:
        if self.block is not None and not is_whole(self.block):
            raise ParameterError(
                f"block={self.block!r}: give a whole number of rows to draw at once, 1 for the simple"
                " algorithm."
            )

    def choose(self, kernel: Kernel, X: AnyArray, m: int, rng: np.random.Generator) -> Landmarks:
        pivots = pivoted_cholesky(kernel, X, m, rng, rule="rpcholesky", block=self.block).pivots
        return Landmarks(tables.take(X, pivots), pivots, rule=self.name)


def pivoted_cholesky(
    kernel: Kernel,
    X: AnyArray,
    m: int,
    rng: np.random.Generator | None = None,
    *,
    rule: str = "pivoted",
    block: int | None = None,
) -> PartialCholesky:
    """The partial factor of K(X, X) from at most m pivots; fewer when K has no more than rounding beyond
    them.

    `block` is how many pivots rpcholesky draws at once: m / 10 by default, 1 for the simple algorithm. X may
    be a memory map.
    """
    if not 1 <= m <= len(X):
        raise InputError(
            f"A partial Cholesky factor of {len(X)} rows has 1 to {len(X)} columns, not {m}. Give m in that"
            " range."
        )
    work = _GrowingFactor(kernel, X, m)
    if rule == "pivoted":
        if block is not None:
            raise ParameterError(
                f"block={block} is for rpcholesky: greedy pivots are the same in blocks of any size. Leave it"
                " out."
            )
        while work.size < m and np.any(work.d > 0):
            work.append(*_greedy_among(work, *_candidates(work.d)))
    elif rule == "rpcholesky":
        b = -(-m // 10) if block is None else block
        if b < 1:
            raise ParameterError(f"block={block}: a block has at least one pivot.")
        _random(work, b, np.random.default_rng() if rng is None else rng)
    else:
        raise ParameterError(f'rule={rule!r} is no rule for pivots. There are "pivoted" and "rpcholesky".')
    return PartialCholesky(work.G[: work.size].T, work.pivots[: work.size], work.d)


class _GrowingFactor:
    """The factor as it grows. G = F' row by row: a pivot is a contiguous row, a block of them one product."""

    def __init__(self, kernel: Kernel, X: AnyArray, m: int) -> None:
        self.kernel, self.X, self.m, self.size = kernel, X, m, 0
        self.d = tables.diagonal(kernel, X)
        # the rounding error of a sum of m products whose squares sum to k(x, x)
        self.floor = m * np.finfo(float).eps * self.d
        self.G = np.empty((m, len(X)))
        self.pivots = np.empty(m, dtype=np.intp)

    def append(self, S: Indices, L: Array) -> None:
        """Takes the pivots S, in order; L L' is the residual matrix on them, L (s, s) lower triangular."""
        old, new = slice(0, self.size), slice(self.size, self.size + len(S))
        # L^-1: a product with it is 3 times as fast as a triangular solve, and pivots keep L well-conditioned
        R, _ = lapack.dtrtri(L, lower=1)
        Z, G_S = tables.take(self.X, S), self.G[old, S].T.copy()  # (s, d), (s, size)

        def one(block: tuple[slice, Array]) -> None:
            at, X_at = block
            B = tiles.strip(self.kernel, Z, X_at)
            if self.size:
                B -= G_S @ self.G[old, at]
            # R B in place: B' is Fortran-ordered
            solved = blas.dtrmm(1.0, R, B.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
            self.G[new, at] = solved
            self.d[at] -= np.einsum("ij,ij->j", solved, solved)

        with one_blas_thread():  # a block of rows a thread
            for_each(one, tables.blocks(self.X))
        if not np.all(np.isfinite(self.d)):
            row = int(np.argmin(np.isfinite(self.d)))
            raise NumericalError(
                f"k(x_{row}, x_i) is no finite number for a row i among {S.tolist()[:5]}. Rescale the"
                " columns, or mend the kernel."
            )
        self.d[self.d <= self.floor] = 0.0
        self.d[S] = 0.0
        self.pivots[new] = S
        self.size += len(S)


def _candidates(d: Array) -> tuple[Indices, float]:
    """The rows with the largest d, in order, the first of equal ones; and the largest d of all others."""
    if len(d) <= CANDIDATES:
        return np.arange(len(d)), -np.inf
    largest = np.argpartition(d, len(d) - CANDIDATES)[-CANDIDATES:]
    C = np.unique(np.append(largest, np.argmax(d)))
    outside = np.ones(len(d), dtype=bool)
    outside[C] = False
    return C, float(np.max(d[outside]))


def _greedy_among(work: _GrowingFactor, C: Indices, bound: float) -> tuple[Indices, Array]:
    """Greedy pivots among the rows C while d there exceeds the bound, at least one; with their triangle L."""
    most = min(MOST_AT_ONCE, work.m - work.size)
    d, floor, X_C = work.d[C], work.floor[C], tables.take(work.X, C)
    # factor rows of the pivots up to here, and of those chosen here
    before, W = work.G[: work.size, C], np.empty((most, len(C)))
    chosen: list[int] = []
    for t in range(most):
        p = int(np.argmax(d))
        if d[p] <= 0 or (t and d[p] <= bound):
            break
        w = tiles.strip(work.kernel, X_C[[p]], X_C)[0] - before[:, p] @ before - W[:t, p] @ W[:t]
        w /= np.sqrt(d[p])
        w[p] = np.sqrt(d[p])
        W[t] = w
        d -= w**2
        d[d <= floor] = 0.0
        d[p] = 0.0
        chosen.append(p)
    return C[chosen], np.asfortranarray(np.tril(W[: len(chosen), chosen].T))


def _random(work: _GrowingFactor, block: int, rng: np.random.Generator) -> None:
    while work.size < work.m and (total := float(np.sum(work.d))) > 0:
        drawn = np.unique(rng.choice(len(work.d), min(block, work.m - work.size), p=work.d / total))
        G, Z = work.G[: work.size, drawn], tables.take(work.X, drawn)
        R = tiles.cross(work.kernel, Z, Z) - G.T @ G  # the residual matrix on the rows drawn
        # the same numbers, but for rounding; these are known to be positive
        np.fill_diagonal(R, work.d[drawn])
        kept, L = _without_redundant(R, block)
        work.append(drawn[kept], L)


def _without_redundant(R: Array, block: int) -> tuple[Indices, Array]:
    """Rows of R in greedy order, until the rest has less than 1/block of the trace; with their triangle L."""
    factored, order, rank, _ = lapack.dpstrf(R, lower=1)
    order, L = order.astype(np.intp) - 1, np.tril(factored)
    # (b, rank): of row i after j + 1 pivots
    left = np.diagonal(R)[order][:, None] - np.cumsum(L[:, :rank] ** 2, axis=1)
    enough = np.array([np.sum(left[j + 1 :, j]) for j in range(rank)]) < np.trace(R) / block
    keep = int(np.argmax(enough)) + 1 if np.any(enough) else rank
    return order[:keep], np.asfortranarray(L[:keep, :keep])
