"""Each row given its nearest among those before it: Vecchia's approximation of K + D.

In an order of the rows, and with N the m nearest rows before row i (landmarks/orders.py),

    log p(r) = sum_i log p(r_i | r_1 .. r_i-1)  ~  sum_i log p(r_i | r_N)

which is the density of a Gaussian with A^-1 = B'F^-1 B, B = I - W: row i of W has b_i at N, as
gram/nearby.py says. It is A = K + D that is approximated, noise included (the response form: y given y), and
what follows from the contract of engines is that of this A:

    alpha = B'F^-1 B r,   mean = r - D alpha,   S = D - D A^-1 D,   log det A = sum_i log F_i

With m = n - 1 all of it is exact. Without noise in the conditioning (f given f) the same m would be worse
where noise is small beside the signal over a neighbourhood, and a sparse factor would be needed beside.

Gradient: the weights G_i of each row on its own small matrix, pulled back through the kernel. Another alpha,
a, than the evidence's own has the weight 1/2 a a' on A, and with w = A a that is -1/2 d(w'A^-1 w): the same
weights for w in the place of r.

Order and neighbours are found in inputs divided by the kernel's lengthscales, once for a search, which then
sees one smooth function; `stale` says when lengthscales have moved so far from each other that others would
be found, and the search goes on with those.

Cost: n m^2 kernel values, n m^3 / 3 flops and O(n m) numbers.
Source: Vecchia 1988; Katzfuss and Guinness 2021, A general framework for Vecchia approximations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import spsolve_triangular

from gramian.arrays import Array, Indices, deviation, is_whole, plain_numbers
from gramian.engines.base import (
    Columns,
    Conditioned,
    Engine,
    Gradients,
    PartConditioned,
    RowPrior,
    Share,
    Sides,
    SolvedConditioned,
    Term,
    Use,
    Workspace,
    added,
    by_output,
)
from gramian.errors import NumericalError, ParameterError, StateError
from gramian.gram import nearby, tiles
from gramian.gram.nearby import Around, Places
from gramian.kernels.base import Kernel
from gramian.landmarks.orders import ORDERS, nearest_before
from gramian.linalg.cost import Cost
from gramian.linalg.threads import count
from gramian.processes.nearby import NearbyPosterior
from gramian.processes.prior import GaussianProcess
from gramian.solvers.base import SolveOutcome

LEAST = 1e-12  # of 1 / k(x, x): a smaller lam says nothing
MOVED = 1.5  # the factor by which lengthscales may move against each other before neighbours are found again


@dataclass(frozen=True, eq=False)
class Chosen:
    """An order of rows, and the neighbours in it."""

    order: Indices  # (n,)
    nearest: Places  # (n, m) places in the order, -1 where there are fewer
    lengths: Array  # (d,): by which inputs were divided


@dataclass(frozen=True)
class Neighbours(Engine):
    """Each row given its nearest among those before it (Vecchia): for few columns and many rows.

    `m` neighbours; `ordering`: "maxmin" (the default), "random" or "coordinate".
    """

    name = "neighbours"
    accuracy = "approximation, local"
    conjugate_only = local = True
    fit_rule = "patches"
    kinds = ("nearby",)

    m: int = 30
    ordering: str = "maxmin"
    # of a fit: by what its columns were divided to find neighbours, which are found again by it
    lengths: tuple[float, ...] | None = field(default=None, repr=False)
    chosen: Chosen | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        plain_numbers(self)
        if not is_whole(self.m):
            raise ParameterError(f"Neighbours: m={self.m!r} must be a whole number from 1 on.")
        if self.ordering not in ORDERS:
            raise ParameterError(
                f"Neighbours: ordering={self.ordering!r} is not known. There are {', '.join(ORDERS)}."
            )

    @property
    def described(self) -> str:
        return f"{self.m} neighbours in {self.ordering} order"

    @property
    def label(self) -> str:
        unusual = "" if self.ordering == "maxmin" else f" in {self.ordering} order"
        return f"neighbours, {self.m}{unusual}"

    def check_choices(self, X: Array | None, d: int) -> None:
        if self.lengths is not None and not (len(self.lengths) == d and min(self.lengths) > 0):
            raise StateError(f"its neighbours were found in other columns than these {d}.")

    def check_fits(self, kernel: Kernel, d: int) -> None:
        if kernel.point_columns() is not None:
            raise ParameterError(
                f"Neighbours: rows of a {type(kernel).__name__} kernel are not near each other column by"
                ' column, as its inputs are images. Use method="vfe" or "exact".'
            )

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Neighbours:
        return self._choosing(X, lengths_of(kernel, X))

    def _choosing(self, X: Array, lengths: Array) -> Neighbours:
        X = np.asarray(X, dtype=np.float64)
        scaled = X / lengths
        order = ORDERS[self.ordering](scaled)
        nearest = nearest_before(scaled[order], min(self.m, max(len(X) - 1, 1)))
        return dataclasses.replace(self, lengths=tuple(lengths), chosen=Chosen(order, nearest, lengths))

    def ready(self, kernel: Kernel, X: Array) -> Neighbours:
        if self.chosen is not None and len(self.chosen.order) == len(X):
            return self
        known = self.lengths is not None and len(self.lengths) == X.shape[1]
        return self._choosing(X, np.array(self.lengths) if known else lengths_of(kernel, X))

    def on_other_rows(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Neighbours:
        return self.stored().ready(kernel, X)

    def stored(self) -> Neighbours:
        return dataclasses.replace(self, chosen=None)

    def stale(self, kernel: Kernel, X: Array) -> bool:
        if self.chosen is None or X.shape[1] == 1:
            return False
        moved = np.log(lengths_of(kernel, X) / self.chosen.lengths)
        return bool(np.ptp(moved) > np.log(MOVED))

    def at(self, kernel: Kernel, X: Array, use: Use, workspace: Workspace | None = None) -> RowPrior:
        return NeighboursPrior(kernel, np.asarray(X, dtype=np.float64), self, use.back)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        G = min(self.m, n) + 1.0
        # Small factors and substitutions run at a tenth of the speed of a large product.
        flops = 10 * n * (G**3 / 3 + (2 + 2 * q * gradient) * G**2)
        return Cost(flops, n * G**2, n * G**2 if gradient else 0.0)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        m = min(self.m, n)
        # order and neighbours, and what is sorted to find them; b, c and weights of all rows, and what the
        # gradient makes of them; rows in order, and once more by columns
        kept = n * (4 * m + 8 * (m * (8 + q) + 5 * (d + q) + 8))
        return kept + count() * 8 * 6 * nearby.block_numbers(m + 1)  # blocks at work

    def bytes_of_noise(self, n: int, d: int) -> int:
        return 8 * n * (min(self.m, n) + 6)


def lengths_of(kernel: Kernel, X: Array) -> Array:
    """By what the columns are divided so that what is near counts for the kernel: the shortest length over
    which its functions change along each; the spread of a column of which it says none."""
    d = X.shape[1]
    lengths = np.full(d, np.inf)
    for column, length in kernel.change_lengths(range(d)):
        lengths[column] = min(lengths[column], float(length))
    spread = deviation(X)
    lengths = np.where(np.isfinite(lengths), lengths, np.where(spread > 0, spread, 1.0))
    # a column that does not count at all must not leave numbers that cannot be told from 0
    return np.minimum(lengths, 1e6 * np.where(spread > 0, spread, np.inf))


class NeighboursPrior(RowPrior):
    """N(0, K), of which what is asked with noise is approximated."""

    def __init__(self, kernel: Kernel, X: Array, engine: Neighbours, back: bool) -> None:
        self.kernel, self.X, self.back = kernel, X, back
        self.engine = engine

    @cached_property
    def chosen(self) -> Chosen:
        made = self.engine.ready(self.kernel, self.X).chosen
        assert made is not None
        return made

    @cached_property
    def rows(self) -> tuple[Places, Array]:
        """Each row of the order with its neighbours, itself last, (n, m + 1); and the rows in order."""
        own = np.arange(len(self.X), dtype=np.int32)[:, None]
        return np.concatenate([self.chosen.nearest, own], axis=1), self.X[self.chosen.order]

    def around(self, D: Array, R: Array) -> Around:
        order = self.chosen.order
        return Around(*self.rows, D[order], R[order])

    def condition(self, lam: Array, h: Array, report: Share | None = None) -> Conditioned:
        least = LEAST / np.maximum(tiles.diagonal(self.kernel, self.X), 1e-300)
        if np.any(lam < -least):
            raise NumericalError(
                "NEIGHBOURS has no answer for sites that curve the wrong way, as those of a likelihood that"
                ' is not log-concave may. Use method="exact" or "vfe".'
            )
        lam = np.maximum(lam, least)
        return self.observe(1 / lam, h / lam[:, None], report)

    def observe(self, D: Array, r: Array, report: Share | None = None) -> Conditioned:
        seen = np.isfinite(D)
        if not seen.all():
            at = np.flatnonzero(seen)
            part = NeighboursPrior(self.kernel, self.X[at], self.engine.stored(), self.back)
            return PartConditioned(self, part, at, part.observe(D[at], r[at], report))
        found = NeighboursConditioned(self, D, r)
        if report is not None:
            report(1.0)
        return found

    def pullback(self, terms: Sequence[Term]) -> Gradients:
        total: list[Array] = []
        levels = []
        for term in terms:
            by_kernel, level = term.sited.weighed(term)
            total = added(total, by_kernel)
            levels.append(level)
        return Gradients(total, None, np.concatenate(levels))

    def together(
        self, prior: GaussianProcess, conditioned: Sequence[Any], columns: Columns, sides: Sides = None
    ) -> NearbyPosterior:
        r, noise_of = by_output([one.r for one in conditioned], columns, sides, len(prior.scale))
        noises = tuple(one.D for one in conditioned)
        return NearbyPosterior(prior, self.X, r, noises, noise_of, self.chosen.lengths, self.engine.m)


class NeighboursConditioned(SolvedConditioned):
    """Each row given its neighbours, with noise."""

    def __init__(self, prior: NeighboursPrior, D: Array, r: Array) -> None:
        self.prior, self.D, self.r = prior, D, r
        self.order = prior.chosen.order
        self.given = nearby.given(prior.kernel, prior.around(D, r), solved=prior.back)
        jitter = self.given.jitter
        self.outcome = SolveOutcome(jitter=jitter) if jitter else SolveOutcome()

    @property
    def logdet_noisy(self) -> float:
        return float(np.sum(np.log(self.given.F)))

    @property
    def quad(self) -> Array:
        with np.errstate(over="ignore"):  # what overflows is refused where it arrives
            return np.sum(self.given.e**2 / self.given.F[:, None], axis=0)

    @cached_property
    def _alpha(self) -> Array:  # type: ignore[override]  # made when it is asked for
        return self._back(self.given.e / self.given.F[:, None])

    @cached_property
    def mean(self) -> Array:
        """r - D alpha, without the difference of large numbers that it is where noise is all."""
        F, r, D = self.given.F[:, None], self.r[self.order], self.D[self.order][:, None]
        own = (self.given.F_plain[:, None] * r + D * (self.W @ r)) / F
        return self._placed(own + D * (self.W.T @ (self.given.e / F)))

    @cached_property
    def W(self) -> Any:
        """(n, n), sparse, in the order of the rows."""
        nearest, b = self.prior.chosen.nearest, self.given.b
        rows, n = np.repeat(np.arange(len(b)), b.shape[1]), len(b)
        there = nearest.ravel() >= 0
        return sparse.csr_matrix((b.ravel()[there], (rows[there], nearest.ravel()[there])), shape=(n, n))

    def inverse_times(self, b: Array) -> Array:
        x = b.reshape(len(b), -1)[self.order]
        return self._back((x - self.W @ x) / self.given.F[:, None]).reshape(b.shape)

    def times(self, b: Array) -> Array:
        """A b for b (n, k): two triangular solves."""
        B = sparse.identity(len(b), format="csr") - self.W
        half = spsolve_triangular(B.T.tocsr(), b[self.order], lower=False, unit_diagonal=True)
        whole = spsolve_triangular(B, self.given.F[:, None] * half, lower=True, unit_diagonal=True)
        return self._placed(whole)

    def precision(self) -> Array:
        inverse = 1 / self.given.F
        return self._placed(inverse + self.W.multiply(self.W).T @ inverse)

    def var(self) -> Array:
        D, F = self.D[self.order], self.given.F
        others = self.W.multiply(self.W).T @ (1 / F)
        return self._placed(np.maximum(D * (self.given.F_plain / F - D * others), 0.0))

    def spread(self, b: Array) -> Array:
        D = self.D.reshape(-1, *[1] * (b.ndim - 1))
        return D * b - D * self.inverse_times(D * b)

    def weighed(self, term: Term) -> tuple[list[Array], Array]:
        """What a term adds to the gradient: by the kernel's parameters, and by a number added to the noise,
        one a column of its alpha."""
        prior, (b, F, _, e, c, _) = self.prior, self.given
        G = b.shape[1] + 1
        v = np.concatenate([-b, np.ones((len(b), 1))], axis=1)
        factors = np.ones(self.r.shape[1])
        right = self.r
        if term.alpha is not None or term.u is not None:
            a = self.alpha if term.alpha is None else term.alpha
            # (u a' + a u') / 2 is a difference of squares, (u + a)(u + a)' / 4 - (u - a)(u - a)' / 4
            more = [] if term.u is None else [term.u + a, term.u - a]
            factors = np.repeat([1.0, 0.5, -0.5][: 1 + len(more)], a.shape[1])
            right = self.times(np.hstack([a, *more]))
        around = prior.around(self.D, right)
        if right is not self.r or c.shape[1] != right.shape[1]:
            _, _, _, e, c, _ = nearby.given(prior.kernel, around, solved=True)
        q = self.r.shape[1]
        squares = np.einsum("nk,nk->n", v, v)
        weights = e / F[:, None]  # (n, columns)
        # G_i = v p': what each column, and the log determinant, adds to p
        own = np.einsum("nc,nc->n", 0.5 * factors * weights, weights)
        level = 0.5 * np.sum(weights**2 * squares[:, None], axis=0)
        level -= np.einsum("nc,ncm,nm->c", weights, c, b)
        if term.logdet:
            own -= 0.5 * q / F
            level -= 0.5 * np.sum(squares / F)
        p = own[:, None] * v
        p[:, : G - 1] += np.einsum("nc,ncm->nm", factors * weights, c)
        return nearby.pullback(prior.kernel, around, v, p), level[:q]

    def _back(self, x: Array) -> Array:
        """B'x, in the order of the data."""
        return self._placed(x - self.W.T @ x)

    def _placed(self, x: Array) -> Array:
        out = np.empty_like(x)
        out[self.order] = x
        return out
