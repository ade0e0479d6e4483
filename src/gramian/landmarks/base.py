"""Landmarks: few points Z that stand for all rows of X, K ~ K_xz K_zz^-1 K_zx.

    rule           how rows are chosen                   cost                    twice?  source
    uniform        all alike                             none                    asked   Williams, Seeger 2001
    diagonal       by K_ii^2                             n values                yes     Drineas, Mahoney 2005
    column-norm    by |K_:i|^2                           n^2 / 2 values          yes     Drineas et al. 2006
    leverage       by leverage in the m / 2 leading      n^3, n^2 memory         asked   Gittens, Mahoney 2016
                   eigenvectors
    rls            by ridge leverage, exact              n^3, n^2 memory         asked   Alaoui, Mahoney 2015
    recursive-rls  by ridge leverage, estimated by       n m values, n m^2       asked   Musco, Musco 2017
                   recursion
    kmeans         centres of m clusters: new points     n m d a round           -       Zhang et al. 2008
    pivoted        each time the row least explained     n m values, n m^2, n m  -       Burt et al. 2020
    rpcholesky     each time at random, by what is left  n m values, n m^2, n m  -       Chen et al. 2022
                   to explain

(Kernel values, flops, memory to leading order. Twice: whether rows are drawn with replacement.) pivoted is
also called greedy conditional variance. Scores are in `leverage.py`, pivots in `pivoted.py`.

Drawn with replacement and probabilities p, each column is scaled by 1 / sqrt(m p_i): then E[K_xz S S K_zx] =
K^2. Without truncation K_xz S (S K_zz S)^+ S K_zx does not depend on the scaling; its best rank-k part, which
is what Drineas and Mahoney bound, does.
"""

from __future__ import annotations

import dataclasses
import numbers
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from gramian.errors import InputError, ParameterError
from gramian.kernels.algebra import Scaled
from gramian.kernels.base import Kernel
from gramian.kernels.stationary import Stationary
from gramian.landmarks import leverage, tables
from gramian.landmarks.pivoted import PartialCholesky, PivotRule, pivoted_cholesky

__all__ = ["RULES", "Landmarks", "PartialCholesky", "landmarks", "pivoted_cholesky"]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

# Rules that draw rows, and whether they do so with replacement unless told.
REPLACE = {
    "uniform": False,
    "diagonal": True,
    "column-norm": True,
    "leverage": False,
    "rls": False,
    "recursive-rls": False,
}
RULES = (*REPLACE, "kmeans", "pivoted", "rpcholesky")
# up to so many rows (or 20 a centre) k-means takes all in each round; of more, that many at random
# (mini-batches)
LLOYD_ROWS = 20_000
ROUNDS = 20


@dataclass(frozen=True, eq=False)
class Landmarks:
    """The points a rule chose, and what is known of the choice."""

    Z: Array  # (m', d); m' is m, or less where no row is left that would add anything
    indices: Indices | None  # (m',), the rows of X they are; None for k-means centres
    # (m',), 1 / sqrt(m p_i) for rows drawn with replacement and known probabilities; None otherwise
    weights: Array | None
    # spent on the probabilities, without the drawing; 0 for rules that have none
    probabilities_seconds: float
    rule: str

    def distinct(self) -> Landmarks:
        """The same with each row once, weights of its c copies joined to sqrt(c) w: K_xz S (S K_zz S)^+ S
        K_zx stays as it is, truncated or not."""
        if self.indices is None:
            return self
        _, first, inverse, copies = np.unique(
            self.indices, return_index=True, return_inverse=True, return_counts=True
        )
        order = np.sort(first)
        weights = None if self.weights is None else self.weights[order] * np.sqrt(copies[inverse[order]])
        return dataclasses.replace(self, Z=self.Z[order], indices=self.indices[order], weights=weights)


def landmarks(
    kernel: Kernel,
    X: Any,
    m: int,
    rule: str = "rpcholesky",
    random_state: Any = None,
    *,
    replace: bool | None = None,
    ridge: float | None = None,
    block: int | None = None,
) -> Landmarks:
    """Chooses m landmarks for the rows of X (n, d), an array or a memory map, at the parameters that `kernel`
    has.

    `rule`: "uniform", "diagonal", "column-norm", "leverage", "rls", "recursive-rls", "kmeans", "pivoted" or
    "rpcholesky" (the default); what each does is at the head of this module. `random_state`: a whole number,
    a generator, or None for another choice each time.

    Fewer than m come back when the rows with something left to explain (pivoted, rpcholesky), of positive
    probability (drawn without replacement) or different from each other (kmeans) are fewer. `replace`
    overrides the rule's default. `ridge` is for rls: by default 1/k times the sum of the eigenvalues of K
    beyond the k = m / log m largest. `block` is for rpcholesky: rows drawn at once, m / 10 by default, 1 for
    the simple algorithm.
    """
    if rule not in RULES:
        raise ParameterError(f"rule={rule!r} is no rule for landmarks. There are {', '.join(RULES)}.")
    table = tables.as_table(X)
    kernel = tables.as_kernel(kernel, X, table.shape[1])
    drawn = _check_options(rule, m, len(table), replace, ridge, block)
    m, rng = int(m), _generator(random_state)
    if rule in REPLACE:
        return _drawn(kernel, table, m, rule, rng, drawn, ridge)
    if rule == "kmeans":
        return Landmarks(_centres(kernel, table, m, rng), None, None, 0.0, rule)
    pivot_rule: PivotRule = "pivoted" if rule == "pivoted" else "rpcholesky"
    pivots = pivoted_cholesky(kernel, table, m, rng, rule=pivot_rule, block=block).pivots
    return Landmarks(tables.take(table, pivots), pivots, None, 0.0, rule)


def _check_options(rule: str, m: Any, n: int, replace: Any, ridge: Any, block: Any) -> bool:
    """Whether rows are drawn with replacement, after a check that all options have a meaning for the rule."""
    if not isinstance(m, numbers.Integral) or isinstance(m, bool) or int(m) < 1:
        raise ParameterError(f"m={m!r} is no number of landmarks. Give a whole number from 1 on.")
    if replace is not None and not isinstance(replace, (bool, np.bool_)):
        raise ParameterError(f"replace={replace!r}: give True, False or None (the rule's own default).")
    if replace and rule not in REPLACE:
        raise ParameterError(
            f'rule="{rule}" cannot choose a row twice. Leave replace out, or take one of'
            f" {', '.join(REPLACE)}."
        )
    if ridge is not None and rule != "rls":
        raise ParameterError(f'ridge={ridge!r} is for rule="rls", not for "{rule}". Leave it out.')
    if ridge is not None and not (
        isinstance(ridge, numbers.Real) and not isinstance(ridge, bool) and 0 < float(ridge) < float("inf")
    ):
        raise ParameterError(f"ridge={ridge!r} is no ridge. Give a positive number, in units of k(x, x).")
    if block is not None and rule != "rpcholesky":
        raise ParameterError(f'block={block!r} is for rule="rpcholesky", not for "{rule}". Leave it out.')
    if block is not None and (
        not isinstance(block, numbers.Integral) or isinstance(block, bool) or int(block) < 1
    ):
        raise ParameterError(
            f"block={block!r}: give a whole number of rows to draw at once, 1 for the simple algorithm."
        )
    drawn_again = bool(REPLACE.get(rule, False) if replace is None else replace)
    if int(m) > n and not drawn_again:
        more = ", or replace=True" if rule in REPLACE else ""
        raise InputError(
            f'm={m} landmarks are asked for, but X has {n} rows, and rule="{rule}" takes each at most once.'
            f" Give m <= {n}{more}."
        )
    return drawn_again


# Rows drawn by probabilities. -------------------------------------------------------------------------------


def _drawn(
    kernel: Kernel,
    X: NDArray[Any],
    m: int,
    rule: str,
    rng: np.random.Generator,
    replace: bool,
    ridge: float | None,
) -> Landmarks:
    scores: dict[str, Callable[[], Array]] = {
        "uniform": lambda: np.ones(len(X)),
        "diagonal": lambda: leverage.diagonal_scores(kernel, X),
        "column-norm": lambda: leverage.column_norm_scores(kernel, X),
        "leverage": lambda: leverage.leverage_scores(kernel, X, m),
        "rls": lambda: leverage.ridge_scores(kernel, X, m, ridge)[0],
        "recursive-rls": lambda: leverage.recursive_scores(kernel, X, m, rng)[0],
    }
    began = time.perf_counter()
    raw = scores[rule]()
    total = float(np.sum(raw))
    if not 0 < total < float("inf"):
        raise InputError(
            f'rule="{rule}" finds no row that matters: all its scores sum to {total:g}. Take rule="uniform",'
            " or look at the kernel's scale."
        )
    p = raw / total
    seconds = 0.0 if rule == "uniform" else time.perf_counter() - began
    if replace:
        indices = rng.choice(len(X), m, p=p)
        return Landmarks(tables.take(X, indices), indices, 1.0 / np.sqrt(m * p[indices]), seconds, rule)
    indices = rng.choice(
        len(X), min(m, int(np.count_nonzero(p))), replace=False, p=None if rule == "uniform" else p
    )
    return Landmarks(tables.take(X, indices), indices, None, seconds, rule)


# Centres of clusters. ---------------------------------------------------------------------------------------


def _centres(kernel: Kernel, X: NDArray[Any], m: int, rng: np.random.Generator) -> Array:
    """k-means centres, with distances as the kernel sees them: columns in units of their lengthscales, or of
    their spread."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    seed, some = int(rng.integers(2**31 - 1)), max(LLOYD_ROWS, 20 * m)
    if len(X) <= some:
        table = tables.take(X, np.arange(len(X)))
        scale = _column_scales(kernel, table)
        unique = np.unique(table, axis=0)
        if len(unique) <= m:
            return unique
        return (
            KMeans(m, init="k-means++", n_init=1, algorithm="lloyd", random_state=seed)
            .fit(table / scale)
            .cluster_centers_
            * scale
        )
    batch = tables.take(X, _some_rows(len(X), some, rng))
    scale = _column_scales(kernel, batch)
    unique = np.unique(batch, axis=0)
    if len(unique) <= m:
        return unique
    fitted = MiniBatchKMeans(
        m, init="k-means++", n_init=1, init_size=some, batch_size=some, random_state=seed
    ).partial_fit(batch / scale)
    for _ in range(ROUNDS - 1):
        fitted.partial_fit(tables.take(X, _some_rows(len(X), some, rng)) / scale)
    return fitted.cluster_centers_ * scale


def _some_rows(n: int, size: int, rng: np.random.Generator) -> Indices:
    return np.sort(rng.choice(n, size, replace=False))  # in order: a file is then read from front to back


def _column_scales(kernel: Kernel, X: Array) -> Array:
    """(d,): lengthscales where the kernel has one set of them, the standard deviation of each column
    otherwise."""
    while isinstance(kernel, Scaled):
        kernel = kernel.kernel
    if isinstance(kernel, Stationary):
        return np.broadcast_to(np.asarray(kernel.lengthscale.value, dtype=np.float64), X.shape[1]).copy()
    spread = np.std(X, axis=0)
    return np.where(spread > 0, spread, 1.0)


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.Generator):
        return random_state
    try:
        return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ParameterError(
            f"random_state={random_state!r}: {error}. Give a whole number from 0 on, a RandomState, a"
            " Generator, or None."
        ) from None
