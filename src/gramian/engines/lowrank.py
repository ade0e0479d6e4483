"""K ~ Q = Phi Phi' in the space of the weights: Bayesian linear regression, fed by sums over chunks of rows.

With sites lam, h on g = Phi v, v ~ N(0, I):

    B = I + Phi' Lam Phi = L_B L_B',   b = Phi' h,   w = B^-1 b        v ~ N(w, B^-1) after the sites
    log det(I + Q Lam) = log det B,      r'A^-1 r = sum_i h_i^2 / lam_i - b'w,      alpha = h - lam (Phi w)

What Phi leaves out of k(x, x), e_i = k_i - |phi_i|^2, counts

    as nothing      the approximate model taken as the model: Nystrom, Fourier, DTC
    as a bound      in expectations over the rows, which makes the evidence a lower bound: VFE (Titsias 2009)
    as noise        g_i = phi_i'v + e_i with e_i independent: FITC (Snelson and Ghahramani 2006). With
                    c_i = 1 / (1 + lam_i e_i) the sites on Phi v are c lam and c h, and S_ii = c e + c^2
                    phi'B^-1 phi

Gradient, in a second pass, with a = alpha (n, q):

    df/dPhi = a w' + u w' + a (Phi'u)' - q lam Phi B^-1 - 2 diag(df/de) Phi          (w = Phi'alpha)

Where lam is one number for all rows, as a rule under Gaussian noise, Phi' times that is known in closed form,
and the way back to the kernel takes one product less (`FeatureMap.factored_pullback`).

Cost: n m^2 flops and n m kernel values a pass; memory of a few chunks and a few m x m arrays, whatever n is.
Source: Quinonero-Candela and Rasmussen 2005.

A chunk has twice as many rows as features (in whole tiles), so that adding its sums up costs little beside
making them. A thread makes the features of a chunk and all products with them, with BLAS on that one thread;
beyond SHARED_UP_TO features one chunk at a time, because the sums of several would take too much memory. Sums
are added in the order of the rows. In float64 they know B to eps n k / D; noise below n 1e-14 of the mean
k(x, x) would drown in it, so it is raised to that, and the outcome says so.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, Literal, TypeVar

import numpy as np
from scipy.linalg import blas

from gramian.arrays import Array
from gramian.engines.base import (
    Columns,
    Conditioned,
    Engine,
    Gradients,
    RowPrior,
    Share,
    Sides,
    Term,
    Use,
    Workspace,
    added,
    by_output,
)
from gramian.errors import StateError
from gramian.features.base import Basis, FeatureMap
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.linalg.blas import block_of, syrk
from gramian.linalg.cost import Cost
from gramian.linalg.products import times, transposed_times, triangle_squares
from gramian.linalg.threads import count, each, one_blas_thread
from gramian.linalg.weights import Weights, weights_of
from gramian.processes.prior import GaussianProcess
from gramian.processes.weights import FeaturePosterior
from gramian.solvers.base import SolveOutcome

Outside = Literal["nothing", "bound", "noise"]
R_ = TypeVar("R_")

SHARED_UP_TO = 2048  # features
KEEP_BYTES = 512 * 2**20  # of features that are kept from one pass to the next, instead of made again
NOISE_FLOOR = 1e-14  # times n, of the mean k(x, x)
# Random frequencies leave nothing out of k(x, x) that could be counted, and yet f is no function of theirs:
# at known parameters (400 rows in 2 columns, noise of 5 %) 95 % intervals of f held 33 % of f with 20
# features, 60 % with 200, 76 % with 600 and 86 % with 4,000.
SURE = 10  # features a row, from which on little is said
TOO_SURE = (
    "the variances of f do not count that {m} random frequencies are not the kernel: intervals of f are too"
    ' narrow, those of y where noise is small. For honest ones use method="vfe", or "exact" where it fits;'
    " Fourier({more}) halves the error of K."
)
FORGIVEN = 1e-5  # the error of sum_i (k_i - q_i) / D_i, in the evidence


class FeatureEngine(Engine):
    """An engine with features: `features_for(n)` of them."""

    streams = True

    @property
    def whitened(self) -> bool:
        """Whether features are made from others by a root of K_zz."""
        return True

    @abstractmethod
    def features_for(self, n: int) -> int: ...

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """Whitening, of landmarks' features, and sums in the first pass; in the second, weights and their way
        back, once more with the features where they are not kept."""
        m = self.features_for(n)
        nm, squares = float(n) * m, float(n) * m * m
        if not gradient:
            return Cost((2 if self.whitened else 1) * squares + m**3, nm)
        again = 8 * nm > KEEP_BYTES
        products = 3 if not self.whitened else 6 if again else 5
        return Cost(products * squares + 3.0 * m**3, 2 * nm if again else nm, nm)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        """Of an evaluation with gradient beyond the data: chunks at work, features kept, and m x m arrays.

        How many there are at once is measured (benchmarks, "planning"): temporary ones count, and so does
        what the allocator holds back for the next.
        """
        m = self.features_for(n)
        most = count() + 1 if m <= SHARED_UP_TO else 1  # whose features and sums are in memory at a time
        rows, chunks = min(n, chunk_rows(m)), min(most, -(-n // chunk_rows(m)))
        kept = 8 * n * m if 8 * n * m <= KEEP_BYTES else 0
        arrays = 1.3 if self.whitened else 2.5  # of a chunk: whitening is done in place, cosines are not
        own = 8 * n * (2 + 3 * q)  # sites, residuals and alpha of all rows
        return int(8 * ((6 + chunks) * m * m + chunks * rows * (arrays * m + 2 * (d + q)))) + kept + own

    def bytes_of_noise(self, n: int, d: int) -> int:
        return 8 * (2 * self.features_for(n) ** 2 + 8 * n)  # sums and their root; sites of all rows

    def bytes_of_sites(self, n: int, d: int, latents: int) -> int:
        # of the weights of all latents: a root, and the inverse that a gradient makes of it
        together = 2 * (latents * self.features_for(n)) ** 2 if latents > 1 else 0
        return self.bytes_needed(n, d, 1) + 8 * (10 * n * latents + together)


@dataclass(frozen=True, eq=False)
class LowRank(FeatureEngine):
    """An engine with a basis that has been chosen."""

    basis: Basis
    outside: Outside
    method: str  # the name of the engine that chose the basis
    described_as: str  # for people: which features, how many
    # of the landmarks as a search moves them: Z = centre + spread * free
    centre: Array = field(default_factory=lambda: np.zeros(0))
    spread: Array = field(default_factory=lambda: np.zeros(0))
    kinds = "features", "coupled features"

    @property
    def name(self) -> str:
        return self.method

    @property
    def described(self) -> str:
        return self.described_as

    @property
    def accuracy(self) -> str:
        return ACCURACY[self.outside]

    @property
    def bound(self) -> bool:
        return self.outside == "bound"

    @property
    def whitened(self) -> bool:
        return self.basis.whitened

    @property
    def at_points(self) -> bool:
        return self.basis.landmarks is not None

    @property
    def chosen_basis(self) -> Basis:
        return self.basis

    def check_choices(self, X: Array | None, d: int) -> None:
        # landmarks may be of another kind than rows; whether they are, they are asked with the kernel
        Z = self.basis.landmarks
        check_units(self.centre, self.spread, d if Z is None or self.spread.shape == (d,) else Z.shape[-1])

    def features_for(self, n: int) -> int:
        return self.basis.n_features

    @property
    def free(self) -> Array:
        Z = self.basis.landmarks
        if Z is None or not self.basis.learned:
            return np.zeros(0)
        return ((Z - self.centre) / self.spread).ravel()

    def with_free(self, values: Array) -> LowRank:
        Z = self.centre + self.spread * values.reshape(-1, len(self.spread))
        return dataclasses.replace(self, basis=self.basis.moved(Z))

    def free_gradient(self, by_points: Array) -> Array:
        return by_points * self.spread

    def at(self, kernel: Kernel, X: Array, use: Use, workspace: Workspace | None = None) -> RowPrior:
        return FeaturePrior(self.basis.at(kernel), kernel, X, self.outside, use)


ACCURACY = {"nothing": "approximation", "bound": "lower bound of the evidence", "noise": "approximation"}


def check_units(centre: Array, spread: Array, d: int) -> None:
    """Refuses units of points that do not belong to d columns."""
    if {centre.shape, spread.shape} not in ({(0,)}, {(d,)}) or not np.all(spread > 0):
        raise StateError(
            f"its method has units of the shapes {centre.shape} and {spread.shape}, for {d} columns."
        )


class FeaturePrior(RowPrior):
    """N(0, Q) at the rows, or with what Q leaves out as noise of its own."""

    def __init__(self, features: FeatureMap, kernel: Kernel, X: Array, outside: Outside, use: Use) -> None:
        self.features, self.kernel, self.X = features, kernel, X
        ignored = features.spans_prior or (outside == "bound" and not use.whole)
        self.kind: Outside = "nothing" if ignored else outside
        self.again, self.tolerance = use.again, 0.0
        self.kept: list[Array] = []
        self.keep = use.again or use.back
        features.ready()

    @property
    def outside(self) -> Array | float:
        return self.left_out if self.kind == "bound" else 0.0

    @cached_property
    def prior_var(self) -> Array:
        """k(x, x) at the rows."""
        return tiles.diagonal(self.kernel, self.X)

    @cached_property
    def left_out(self) -> Array:
        """e, (n,)."""
        rest = self.prior_var.copy()
        for at, squares in self.over(lambda at, Phi: np.einsum("ij,ij->i", Phi, Phi)):
            rest[at] -= squares
        return np.maximum(rest, 0.0)

    # Passes over the rows. ----------------------------------------------------------------------------------

    @cached_property
    def chunks(self) -> list[slice]:
        size, n = chunk_rows(self.features.n_features), len(self.X)
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def over(self, work: Callable[[slice, Array], R_]) -> Iterator[tuple[slice, R_]]:
        """work(rows, their Phi) for each chunk, in order. Features that fit are kept for the next pass."""
        m, keep = self.features.n_features, self.keep and not self.kept
        keep = keep and 8 * len(self.X) * m <= KEEP_BYTES

        def one(k: int) -> tuple[Array, R_]:
            at = self.chunks[k]
            Phi = self.kept[k] if self.kept else self.block(at)
            return Phi, work(at, Phi)

        held, in_turn = [], map if m > SHARED_UP_TO else each
        with one_blas_thread():
            for k, (Phi, result) in enumerate(in_turn(one, range(len(self.chunks)))):
                if keep:
                    held.append(Phi)
                yield self.chunks[k], result
        if keep:
            self.kept = held

    def blocks(self) -> Iterator[tuple[slice, Array]]:
        """Rows, and their Phi."""
        return self.over(lambda at, Phi: Phi)

    def block(self, at: slice) -> Array:
        return self.features.block(np.asarray(self.X[at], dtype=np.float64), self.tolerance)

    def mapped(self, w: Array) -> Array:
        """Phi w for w (m, k): (n, k)."""
        out = np.empty((len(self.X), w.shape[1]))
        for at, part in self.over(lambda at, Phi: times(Phi, w)):
            out[at] = part
        return out

    def gathered(self, B: Array) -> Array:
        """Phi' B for B (n, k): (m, k)."""
        total = np.zeros((self.features.n_features, B.shape[1]))
        for _, part in self.over(lambda at, Phi: transposed_times(Phi, B[at])):
            total += part
        return total

    # The contract. ------------------------------------------------------------------------------------------

    def times(self, b: Array) -> Array:
        B = b.reshape(len(b), -1)
        out = self.mapped(self.gathered(B))
        if self.kind == "noise":
            out += self.left_out[:, None] * B
        return out.reshape(b.shape)

    def observe(self, D: Array, r: Array, report: Share | None = None) -> FeatureConditioned:
        typical, n = typical_variance(self.kernel, self.X), len(self.X)
        floor = NOISE_FLOOR * n * typical
        seen, least = np.isfinite(D), max(float(np.min(D)), floor)
        if not self.kept and typical > 0:
            self.tolerance = FORGIVEN * least / (n * typical)
        lam = np.where(seen, 1 / np.maximum(D, floor), 0.0)
        r = np.where(seen[:, None], r, 0.0)
        found = self.condition(lam, lam[:, None] * r, report)
        m = self.features.n_features
        note = TOO_SURE.format(m=m, more=4 * m) if self.features.spans_prior and m < SURE * n else ""
        found.outcome = SolveOutcome(jitter=NOISE_FLOOR * n if np.any(floor > D) else 0.0, note=note)
        return found

    def condition(self, lam: Array, h: Array, report: Share | None = None) -> FeatureConditioned:
        squares, b = self.sums(lam, h, report)
        with one_blas_thread():
            weights = weights_of(squares, b)
        return FeatureConditioned(self, lam, h, squares, weights)

    def sums(self, lam: Array, h: Array, report: Share | None = None) -> tuple[Array, Array]:
        """Phi' Lam Phi (m, m), the lower triangle, and Phi'h (m, q), of the sites as Phi v sees them."""
        fresh = self.kind != "nothing" and "left_out" not in vars(self)  # it comes with the sums
        e: Any = self.prior_var.copy() if fresh else vars(self).get("left_out")

        def sums(at: slice, Phi: Array) -> tuple[Array, Array]:
            if fresh:
                e[at] = np.maximum(e[at] - np.einsum("ij,ij->i", Phi, Phi), 0.0)
            own_lam, own_h = lam[at], h[at]
            if self.kind == "noise":
                c = 1 / (1 + own_lam * e[at])
                own_lam, own_h = c * own_lam, c[:, None] * own_h
            return weighted_squares(Phi, own_lam), transposed_times(Phi, own_h)

        m = self.features.n_features
        squares, b = np.zeros((m, m), order="F"), np.zeros((m, h.shape[1]))
        for at, part in self.over(sums):
            squares += part[0]
            b += part[1]
            if report is not None:
                report(at.stop / len(self.X))
        if fresh:
            self.left_out = e
        return squares, b

    def pullback(self, terms: Sequence[Term]) -> Gradients:
        if len(terms) == 1 and terms[0].logdet and terms[0].u is None and terms[0].alpha is None:
            sited, by_outside = terms[0].sited, terms[0].by_outside
            lam = None if self.kind == "noise" else _one_number(sited.lam)
            outside = 0.0 if by_outside is None else _one_number(by_outside)
            if lam is not None and outside is not None:
                return sited.evenly(lam, outside)
        return self._row_by_row(terms)

    def _row_by_row(self, terms: Sequence[Term]) -> Gradients:
        own, T, by_diagonal, levels = self.rows_back(terms)
        return self.gradients(own, 0.5 * (T + T.T), by_diagonal, levels)

    def rows_back(self, terms: Sequence[Term]) -> tuple[list[Array], Array, Array | None, Array]:
        """What goes through single rows: by parameters and points, what all rows share held still; G' Phi;
        by what features leave out, where that counts; and by the levels."""
        m, n, noisy = self.features.n_features, len(self.X), self.kind == "noise"
        # Phi'a is w for its own alpha alone; that of an iteration that has ended is near it, but not it
        inside = [term.sited.weights.w if term.alpha is None else self.gathered(term.alpha) for term in terms]
        gathered = [None if term.u is None else self.gathered(term.u) for term in terms]
        weighs = noisy or any(term.by_outside is not None for term in terms)
        by_diagonal = np.zeros(n)  # of what features leave out
        levels = [np.zeros(term.sited.h.shape[1]) for term in terms]

        def piece(at: slice, Phi: Array, G: Array) -> list[Array]:
            """The weights of some rows in G, and what they say of the levels."""
            G[...], parts, outside = 0.0, [], np.zeros(len(Phi))
            for term, Phi_a, Phi_u in zip(terms, inside, gathered, strict=True):
                sited, w, precision = term.sited, term.sited.weights.w, np.zeros(len(Phi))
                q, lam = w.shape[1], sited.lam_inside[at]
                a = sited.alpha_of(at, times(Phi, w)) if term.alpha is None else term.alpha[at]
                if term.logdet:
                    V = times(Phi, sited.inverse)
                    precision = lam - lam**2 * np.einsum("ij,ij->i", V, Phi)  # the diagonal of A^-1
                    V *= -q * lam[:, None]
                    G += V
                for k in range(q):
                    G += a[:, [k]] * Phi_a[:, k]
                if term.u is not None and Phi_u is not None:
                    G += times(term.u[at], Phi_a.T) + times(a, Phi_u.T)
                if term.by_outside is not None:
                    outside += term.by_outside[at]
                if noisy:
                    outside += 0.5 * np.sum(a**2, axis=1) - 0.5 * q * precision
                    outside += 0.0 if term.u is None else np.sum(term.u[at] * a, axis=1)
                parts.append(0.5 * np.sum(a**2, axis=0) - 0.5 * float(np.sum(precision)))
            if weighs:
                by_diagonal[at] = outside
                G -= (2 * outside)[:, None] * Phi
            return parts

        def one(at: slice, Phi: Array) -> tuple[list[Array], Array, list[Array]]:
            G, parts = np.empty_like(Phi), []
            for start in range(0, len(Phi), tiles.LARGEST_TILE):  # what is made on the way is as wide as Phi
                part = slice(start, min(start + tiles.LARGEST_TILE, len(Phi)))
                rows = slice(at.start + part.start, at.start + part.stop)
                parts.append(piece(rows, Phi[part], G[part]))
            levels = reduce(added, parts)
            T = transposed_times(Phi, G)
            return self.features.pullback(np.asarray(self.X[at], dtype=np.float64), G), T, levels

        own: list[Array] = []
        T = np.zeros((m, m))
        for _, (part, T_part, level) in self.over(one):
            own = added(own, part)
            T += T_part
            levels = added(levels, level)
        return own, T, by_diagonal if weighs else None, np.concatenate(levels)

    def gradients(self, own: list[Array], T: Array, by_diagonal: Array | None, by_level: Array) -> Gradients:
        """What goes through single rows, with what goes through all of them together, and through k(x, x)."""
        everything = added(own, self.features.shared_pullback(T))
        count = len(self.kernel.parameters())
        by_kernel, points = everything[:count], everything[count:]
        if by_diagonal is not None:
            by_kernel = added(by_kernel, diagonal_pullback(self.kernel, self.X, by_diagonal))
        return Gradients(by_kernel, points[0] if points else None, by_level)

    def together(
        self, prior: GaussianProcess, conditioned: Sequence[Any], columns: Columns, sides: Sides = None
    ) -> FeaturePosterior:
        found = [one.weights for one in conditioned]
        weights, root_of = by_output([one.w for one in found], columns, sides, len(prior.scale))
        return FeaturePosterior(prior, self.features, weights, tuple(one.root for one in found), root_of)


class FeatureConditioned(Conditioned):
    """The posterior of the weights."""

    def __init__(self, prior: FeaturePrior, lam: Array, h: Array, squares: Array, weights: Weights) -> None:
        self.prior: FeaturePrior = prior
        self.lam, self.h, self.squares, self.weights = lam, h, squares, weights
        self.outcome = SolveOutcome()
        noisy = prior.kind == "noise"
        self.e = prior.left_out if noisy else np.zeros(len(lam))  # what counts as noise of its own
        self.c = 1 / (1 + lam * self.e) if noisy else np.ones(len(lam))  # what is seen of a site through it

    @property
    def logdet(self) -> float:
        return self.weights.logdet - float(np.sum(np.log(self.c)))

    @property
    def logdet_noisy(self) -> float:
        seen = self.lam[self.lam != 0]
        return self.logdet - float(np.sum(np.log(np.abs(seen))))

    @property
    def quad(self) -> Array:
        weight = np.divide(1, self.lam, out=np.zeros(len(self.lam)), where=self.lam != 0)
        return np.asarray((weight * self.c) @ self.h**2) - self.weights.explained

    @cached_property
    def _inside(self) -> Array:
        """Phi w, (n, q)."""
        return self.prior.mapped(self.weights.w)

    @cached_property
    def alpha(self) -> Array:
        return self.alpha_of(slice(None), self._inside)

    @cached_property
    def mean(self) -> Array:
        return self._inside + self.e[:, None] * self.alpha

    def var(self) -> Array:
        return self.c * self.e + self.c**2 * np.maximum(self._explained, 1e-300)

    def precision(self) -> Array:
        lam = self.lam_inside
        return lam - lam**2 * self._explained

    def spread(self, b: Array) -> Array:
        B, c = b.reshape(len(b), -1), self.c[:, None]
        inside = self.prior.mapped(self.weights.covariance_times(self.prior.gathered(c * B)))
        return (c * (inside + self.e[:, None] * B)).reshape(b.shape)

    @property
    def lam_inside(self) -> Array:
        """The precisions on Phi v."""
        return self.c * self.lam

    def alpha_of(self, at: slice, inside: Array) -> Array:
        """alpha of some rows, for which Phi w = inside."""
        return self.c[at][:, None] * (self.h[at] - self.lam[at][:, None] * inside)

    @cached_property
    def _explained(self) -> Array:
        """phi'B^-1 phi, (n,)."""
        out, root = np.empty(len(self.lam)), self.weights.root

        def squares(at: slice, Phi: Array) -> Array:
            V = blas.dtrmm(1.0, root, Phi.T, lower=1)
            return np.einsum("ij,ij->j", V, V)

        for at, part in self.prior.over(squares):
            out[at] = part
        return out

    def evenly(self, lam: float, outside: float) -> Gradients:
        """The gradient where all rows have one lam, and one weight of what features leave out."""
        prior, w, q, inverse = self.prior, self.weights.w, self.weights.w.shape[1], self.inverse
        inside = np.eye(len(inverse)) - inverse  # Phi' Lam Phi B^-1
        C = -2 * outside * np.eye(len(inverse)) - q * lam * inverse
        if outside == -0.5 * q * lam:  # a bound: no difference of nearly equal matrices
            C = q * lam * inside
        with one_blas_thread():
            pull = prior.features.factored_pullback(C, w)
        alpha = np.empty(self.h.shape)

        def one(at: slice, Phi: Array) -> list[Array]:
            alpha[at] = self.alpha_of(at, times(Phi, w))
            return pull(np.asarray(prior.X[at], dtype=np.float64), Phi, alpha[at])

        own: list[Array] = reduce(added, (part for _, part in prior.over(one)), [])
        self.__dict__["alpha"] = alpha  # which came for nothing
        # Phi'a = w; of the squares the lower triangle, as all that is read
        T = w @ w.T - q * inside - (2 * outside / lam) * self.squares
        by_level = 0.5 * np.sum(alpha**2, axis=0) - 0.5 * lam * (len(alpha) - float(np.trace(inside)))
        return prior.gradients(own, T, np.full(len(alpha), outside) if outside else None, by_level)

    @cached_property
    def inverse(self) -> Array:
        """B^-1."""
        with one_blas_thread():
            return triangle_squares(self.weights.root)


def diagonal_pullback(kernel: Kernel, X: Array, weights: Array) -> list[Array]:
    """sum_i weights_i dk(x_i, x_i)/dtheta, some rows at a time: X may lie on disk."""
    size = 16 * tiles.LONG_BLOCK
    parts = (
        tiles.diagonal_pullback(kernel, np.asarray(X[at : at + size]), weights[at : at + size])
        for at in range(0, len(weights), size)
    )
    return reduce(added, parts, [])


def typical_variance(kernel: Kernel, X: Array) -> float:
    """The mean k(x, x) of some rows."""
    return float(np.mean(tiles.diagonal(kernel, np.asarray(X[: tiles.LARGEST_TILE]))))


def weighted_squares(Phi: Array, lam: Array) -> Array:
    """Phi' diag(lam) Phi for lam of any sign: the lower triangle, zeros above; Fortran-ordered."""
    S = np.zeros((Phi.shape[1], Phi.shape[1]), order="F")
    even = _one_number(lam)
    if even is not None:  # which is the rule under Gaussian noise: no second copy of Phi
        syrk(even, block_of(Phi.T), block_of(S))
        return S
    right = Phi * np.sqrt(np.maximum(lam, 0.0))[:, None]
    syrk(1.0, block_of(right.T), block_of(S))
    if (lam < 0).any():
        wrong = Phi * np.sqrt(np.maximum(-lam, 0.0))[:, None]
        syrk(-1.0, block_of(wrong.T), block_of(S))
    return S


def _one_number(values: Array) -> float | None:
    return float(values[0]) if len(values) and bool(np.all(values == values[0])) else None


def chunk_rows(m: int) -> int:
    """Rows of a chunk with m features."""
    tile = tiles.LARGEST_TILE
    return -(-2 * min(m, SHARED_UP_TO) // tile) * tile
