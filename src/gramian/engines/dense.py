"""K as a matrix, by Cholesky on A = K + D, D = 1 / lam.

Factoring is indifferent to the scale of rows, so this is as accurate as I + lam^1/2 K lam^1/2 (Rasmussen and
Williams 2006, section 3.4.3) with one pass over memory less. With A = L L', R = L^-1 and alpha = A^-1 r:

    mean = K alpha,   S_ii = D_i - D_i^2 |R_:i|^2,   dA/dK: 1/2 alpha alpha' - q/2 A^-1

Cost: n^3 / 3 flops for a factor, as much for its inverse root, as much for the inverse. One array of n^2
doubles where sites are put on K once, which is then made in the factor's place; with several steps one for K
and one for the factor. Source: Rasmussen and Williams 2006, algorithm 2.1 and equation 5.9.

Sites that may curve the wrong way are put on features of all rows (lowrank.py), in which the prior is white.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import blas

from gramian.arrays import Array, is_whole, plain_numbers
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
    by_output,
)
from gramian.engines.lowrank import FeaturePrior
from gramian.errors import ParameterError
from gramian.features.nystrom import NystromBasis
from gramian.gram import few, tiles
from gramian.kernels.base import Kernel
from gramian.kernels.host import KernelValues, Pairs
from gramian.landmarks.rules import RULES
from gramian.linalg.cost import Cost
from gramian.linalg.factor import (
    factored,
    finite,
    inverse_in_place,
    inverse_root_in_place,
    solve,
    square_in_place,
    squared_times,
)
from gramian.linalg.threads import count
from gramian.processes.posterior import Posterior
from gramian.processes.prior import GaussianProcess
from gramian.solvers.base import SolveOutcome
from gramian.solvers.cholesky import ROOT_UP_TO, Cholesky, CholeskyFactor

FIT_RULES = ("neighbours", *(name for name, rule in RULES.items() if rule.takes_rows))
LEAST = 1e-15  # of 1 / k(x, x): a smaller lam says nothing
STEPS: dict[str, Any] = {
    "ladder": (0.0,),
    "what": "K with the sites",
    "cure": "Bound the kernel's scale, or its lengthscales.",
}
CLEAN = SolveOutcome()
CANCELLED = 1e-5  # of lam S: below it, S = D - D A^-1 D has lost half its digits
LOST = 256  # rows at a time whose variances are found apart


@dataclass(frozen=True)
class Exact(Engine):
    """Cholesky on the whole Gram matrix: the answer itself, at n^3."""

    name = "exact"
    described = "Cholesky"
    accuracy = "exact"
    exact = True
    dense = values_alone = True
    programs = 2
    kinds = "exact", "features", "coupled"  # features: of sites that may curve the wrong way

    solver: Cholesky = field(default_factory=Cholesky)
    fit_rows: int | None = None  # rows to search parameters on; None: all of few rows, a part of many
    # how that part is chosen: half at random, half near each other; "uniform", or another landmark rule that
    # takes rows
    fit_rule: str = "neighbours"

    def __post_init__(self) -> None:
        plain_numbers(self)
        rows = self.fit_rows
        if rows is not None and not is_whole(rows):
            raise ParameterError(f"Exact: fit_rows={rows!r} must be a whole number from 1 on, or None.")
        if self.fit_rule not in FIT_RULES:
            raise ParameterError(
                f"Exact: fit_rule={self.fit_rule!r} is no rule that takes rows: {', '.join(FIT_RULES)}."
            )

    def basis_at(self, X: Array | None) -> NystromBasis | None:
        return None if X is None else NystromBasis(X)

    def at(self, kernel: Kernel, X: Array, use: Use, workspace: Workspace | None = None) -> RowPrior:
        X = np.asarray(X, dtype=np.float64)
        if use.signed:
            return FeaturePrior(NystromBasis(X).at(kernel), kernel, X, "nothing", use)
        return DensePrior(kernel, X, self.solver, use.again, workspace)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        # A factorisation runs at about three quarters of the speed of a product.
        cubes = 1.0 if gradient else (2 / 3 if n <= ROOT_UP_TO else 1 / 3)
        return Cost(cubes * float(n) ** 3 / 0.75, n * n / 2, n * n / 2 if gradient else 0.0)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        tile = tiles.tile_size(n)
        # 16 tiles a thread: of the kernel, of the factorisation, and what the allocator keeps of them. Of
        # 2,600 rows fresh processes took 91 to 122 MB, of which 54 are the matrix.
        return 8 * (n * n + 4 * n * (d + q) + 16 * count() * tile * tile)

    def bytes_of_noise(self, n: int, d: int) -> int:
        return 8 * n * (n + 8)  # its factor

    def bytes_of_sites(self, n: int, d: int, latents: int) -> int:
        # K beside its factors; of the tiles at work there is one set, and of rows whose variances drown in
        # rounding (`var`) three blocks
        factors = 1 if latents == 1 else latents + 2
        return self.bytes_needed(n, d, latents) + factors * self.bytes_of_noise(n, d) + 8 * 3 * LOST * n


class DensePrior(RowPrior):
    """N(0, K). With `again` K is made once and copied for each factor, else in the factor's place."""

    rooted = True

    def __init__(
        self, kernel: Kernel, X: Array, solver: Cholesky, again: bool, workspace: Workspace | None = None
    ) -> None:
        self.kernel, self.X, self.solver, self.again, self.workspace = kernel, X, solver, again, workspace
        self.spare: list[Array] = []

    @cached_property
    def K(self) -> Array:
        """(n, n), the lower triangle of a Fortran-ordered array."""
        return tiles.fill(self.kernel, self.X, np.empty((len(self.X),) * 2, order="F"))

    @cached_property
    def diagonal(self) -> Array:
        return np.diagonal(self.K).copy() if self.again else tiles.diagonal(self.kernel, self.X)

    @cached_property
    def few(self) -> KernelValues | None:
        """K of few rows, made once for the factor and the gradient."""
        pairs = Pairs(self.X, self.X, kept=True) if self.workspace is None else self.workspace.pairs(self.X)
        return few.block(self.kernel, self.X, self.X, pairs)

    def times(self, b: Array) -> Array:
        if not self.again:
            return super().times(b)
        if b.ndim == 1:
            return blas.dsymv(1.0, self.K, b, lower=1)
        return blas.dsymm(1.0, self.K, np.asfortranarray(b), lower=1)

    def condition(self, lam: Array, h: Array, report: Share | None = None) -> Conditioned:
        lam = np.maximum(lam, LEAST / np.maximum(self.diagonal, 1e-300))
        return self.observe(1 / lam, h / lam[:, None], report)

    def observe(self, D: Array, r: Array, report: Share | None = None) -> Conditioned:
        if not finite(D):
            at = np.flatnonzero(np.isfinite(D))
            part = DensePrior(self.kernel, self.X[at], self.solver, self.again, self.workspace)
            return PartConditioned(self, part, at, part.observe(D[at], r[at], report))
        # Steps of a rule that lead nowhere are taken back, so that nothing is added for them. (D may be 1e15
        # there, and with it the mean diagonal.)
        how = STEPS if self.again else {"ladder": self.solver.ladder}
        A, jitter = factored(lambda A, _: self._fill(A, D), self._room(), report=report, **how)
        return DenseConditioned(self, D, r, CholeskyFactor(A, jitter))

    def pullback(self, terms: Sequence[Term]) -> Gradients:
        total: Array | None = None
        left, right, by_level, count = [], [], [], 1
        for term in terms:
            a = term.sited.alpha if term.alpha is None else term.alpha
            left.append(0.5 * a)
            right.append(a)
            if term.u is not None:
                left += [0.5 * term.u, 0.5 * a]
                right += [a, term.u]
            by_level.append(0.5 * (a * a).sum(axis=0))
            if term.logdet:
                inverse = term.sited.inverse().T  # row-major, upper triangle
                by_level[-1] -= 0.5 * inverse.trace()
                assert total is None or a.shape[1] == count == 1
                count = a.shape[1]
                total = inverse if total is None else np.add(total, inverse, out=total)
        pair = (left[0], right[0]) if len(left) == 1 else (np.hstack(left), np.hstack(right))
        if total is None:
            pulled = tiles.low_rank_pullback(self.kernel, self.X, *pair)
        elif self.few is not None:
            pulled = few.pulled(self.few, few.weights(total, -0.5 * count, pair))
        else:
            pulled = tiles.pullback(self.kernel, self.X, total, factor=-0.5 * count, low_rank=pair)
        return Gradients(pulled, None, by_level[0] if len(by_level) == 1 else np.concatenate(by_level))

    def together(
        self, prior: GaussianProcess, conditioned: Sequence[Any], columns: Columns, sides: Sides = None
    ) -> Posterior:
        inverted = len(self.X) <= ROOT_UP_TO
        alpha, root_of = by_output([one.alpha for one in conditioned], columns, sides, len(prior.scale))
        roots = tuple(one.root() if inverted else one.lower() for one in conditioned)
        return Posterior(prior, self.X, alpha, roots, root_of, inverted)

    def _room(self) -> Array:
        n = len(self.X)
        if self.spare:
            return self.spare.pop()
        return np.empty((n, n), order="F") if self.workspace is None else self.workspace.square(n)

    def _fill(self, A: Array, D: Array) -> None:
        """K + D, in the lower triangle."""
        n = len(A)
        if self.again:
            for start in range(0, n, 512):  # by panels: the upper triangle need not be touched
                A[start:, start : start + 512] = self.K[start:, start : start + 512]
        elif self.few is not None:
            A.T[...] = self.few.K
        else:
            tiles.fill(self.kernel, self.X, A)
        A.T.reshape(-1)[:: n + 1] += D


class DenseConditioned(SolvedConditioned):
    """A factor of K + D, and what was made of it in its place."""

    def __init__(self, prior: DensePrior, D: Array, r: Array, factor: CholeskyFactor) -> None:
        self.prior, self.D, self.r = prior, D, r
        self.factor: CholeskyFactor | None = factor
        self.outcome = SolveOutcome(jitter=factor.jitter) if factor.jitter else CLEAN
        self._alpha = solve(factor.L, r)
        self._logdet = factor.logdet()
        self._root: Array | None = None
        self._var: Array | None = None

    @property
    def logdet_noisy(self) -> float:
        return self._logdet

    @cached_property
    def mean(self) -> Array:
        return self.prior.times(self._alpha) if self.prior.again else self.r - self.D[:, None] * self._alpha

    def root(self) -> Array:
        """L^-1, in the factor's memory."""
        if self._root is None:
            assert self.factor is not None
            self._root, self.factor = inverse_root_in_place(self.factor.L), None
        return self._root

    def inverse(self) -> Array:
        """A^-1 in the lower triangle, in the factor's memory; nothing else can be asked afterwards."""
        if self._root is None:
            assert self.factor is not None
            inverse, self.factor = inverse_in_place(self.factor.L), None
        else:
            inverse, self._root = square_in_place(self._root), None
        return inverse

    def precision(self) -> Array:
        if self._root is None and len(self.D) > ROOT_UP_TO:
            assert self.factor is not None
            return self.factor.inverse_diagonal()
        root = self.root()
        return np.einsum("ij,ij->j", root, root)

    def var(self) -> Array:
        if self._var is None:
            prior, lam = self.prior, self.lam
            var = (1 - self.precision() * self.D) * self.D
            with np.errstate(invalid="ignore"):
                lost = np.flatnonzero(~(lam * var > CANCELLED))
            for start in range(0, len(lost), LOST):
                at = lost[start : start + LOST]
                K = tiles.cross(prior.kernel, prior.X[at], prior.X)
                V = blas.dtrmm(1.0, self.root(), K.T, lower=1)
                var[at] = prior.diagonal[at] - np.einsum("ij,ij->j", V, V)
            self._var = np.maximum(var, 1e-14 * prior.diagonal)
        return self._var

    def covariance(self) -> Array:
        K = np.tril(self.prior.K) + np.tril(self.prior.K, -1).T
        V = blas.dtrmm(1.0, self.root(), np.asfortranarray(K), lower=1)
        return np.asfortranarray(K - V.T @ V)

    def lower(self) -> Array:
        """L, in the factor's memory."""
        assert self.factor is not None
        return self.factor.L

    def inverse_times(self, b: Array) -> Array:
        if self.factor is not None:
            return self.factor.solve(b).value
        if b.ndim == 1:
            return squared_times(self.root(), b)
        half = blas.dtrmm(1.0, self.root(), np.asfortranarray(b), lower=1)
        return blas.dtrmm(1.0, self.root(), half, lower=1, trans_a=1, overwrite_b=1)

    def release(self) -> None:
        array = self.factor.L if self.factor is not None else self._root
        if array is not None:
            self.prior.spare.append(array)
        self.factor = self._root = None
