"""The bound of sparse variational inference on some of the rows, and its gradients.

    f_k(x) = m_k(x) + s_k (phi(x)' v_k + e(x)),   phi = L^-1 k(Z, x),
        v_k ~ N(0, I) a priori,   q(v_k) = N(mu_k, B_k^-1)
    bound = n/b sum_batch E_q log p(y | f) - sum_k KL(q(v_k) || N(0, I))

Under q, f_k(x) has mean m_k + s_k phi' mu_k and variance s_k^2 ([k(x, x) - |phi|^2]_+ + phi' B_k^-1 phi).
With g = dE/dmean and lam = -2 dE/dvar of a row, in units of s_k, the natural gradient is the way from the
natural parameters (B, B mu) to

    B = I + n/b Phi' diag(lam) Phi,      B mu = n/b Phi' (g + lam (Phi mu))

so that a step of size rho goes the share rho of it (Salimbeni et al. 2018; Khan and Lin 2017). For Gaussian
noise the full step on all rows is the optimum, and the bound that of Titsias. The gradient of everything else
is by hand, through

    G = df/dPhi = sum_k g_k mu_k' + diag(lam_k) Phi (I - B_k^-1)

In a stochastic search (`low`) features, products and kernel values have 32 bits, in half the time: what a
batch does not know is far larger. The factors and q have 64, and so has everything at the end; Gaussian
noise, which may be tiny, is never treated so.

Several latents with one kernel share Phi and all of the way from G to the parameters. Cost of b rows: b m
values of the kernel with gradient, b m^2 (4 + 3 L) flops and m^3 (3 + L), all but the kernel and the
likelihood by BLAS on chunks of rows, a thread each.

Source: Hensman, Fusi and Lawrence 2013; Hensman, Matthews and Ghahramani 2015; Salimbeni, Eleftheriadis and
Hensman 2018.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from gramian.arrays import Array
from gramian.engines.base import added
from gramian.engines.lowrank import NOISE_FLOOR, typical_variance
from gramian.features.nystrom import LEAST_JITTER, NystromMap
from gramian.forks import compiled
from gramian.gram import patches, tiles
from gramian.inference.far import over_pieces
from gramian.inference.model import Data, Model, noise_gradient, noise_groups
from gramian.likelihoods import Bernoulli, Likelihood, Softmax
from gramian.linalg.blas import block_of, gemm, multiply_triangle, syrk
from gramian.linalg.executor import Piece
from gramian.linalg.threads import each
from gramian.linalg.weights import inverse_root_of
from gramian.params.tree import leaves
from gramian.processes.prior import mean_block, mean_gradient

# rows that a thread works on at a time; fixed, so that sums do not depend on the number of threads
CHUNK = tiles.LARGEST_TILE
IN_FLIGHT = 4  # chunks whose sums are held at a time
STRIP = 128  # columns of a product of which only one triangle is wanted
LEAST = 1e-6  # of the mean diagonal, added to K_zz: numbers of 32 bits know Phi to 1e-4 then
# of kernel values, with 32 bits and with 64, beside what is added to K_zz
LOW_ERROR, LEAST_ERROR = 1e-7, 1e-12
LOW_UP_TO = 1e6  # the largest sum of curvatures that is made of them
DEAR_EVERY = 4  # rows of a batch have one gradient of k(x, x), where that takes long
LEAST_VAR = 1e-12  # of s^2: the derivative by a variance is taken through its root


@dataclass(frozen=True, eq=False)
class VariationalWeights:
    """q(v) = N(mu, B^-1) of one latent."""

    B: Array  # (m, m), the lower triangle, zeros above; Fortran-ordered
    h: Array  # (m,): B mu
    mu: Array  # (m,)
    root: Array  # L_B^-1, lower triangular, zeros above; Fortran-ordered
    divergence: float  # KL(q || N(0, I))

    @classmethod
    def of(cls, B: Array, h: Array) -> VariationalWeights:
        """From the natural parameters; a NumericalError where B is not positive definite."""
        root, logdet = inverse_root_of(B, 0.0)
        mu = root.T @ (root @ h)
        # row-major: else NumPy would make a copy
        divergence = 0.5 * (float(np.vdot(root.T, root.T)) + float(mu @ mu) - len(h) + logdet)
        return cls(B, h, mu, root, divergence)

    @classmethod
    def prior(cls, m: int) -> VariationalWeights:
        return cls.of(np.asfortranarray(np.eye(m)), np.zeros(m))

    def moved(self, S: Array, b: Array, rho: float) -> VariationalWeights:
        """A natural-gradient step of size rho: towards I + S and b."""
        B = np.multiply(S, rho, dtype=np.float64)
        if rho < 1:
            B += (1 - rho) * self.B
        B.T.reshape(-1)[:: len(B) + 1] += rho
        return VariationalWeights.of(B, (1 - rho) * self.h + rho * b)

    def distance(self, S: Array, b: Array) -> float:
        """How far the natural gradient reaches, relative to where we are."""
        gap = S - self.B
        gap.T.reshape(-1)[:: len(gap) + 1] += 1.0
        level = float(np.max(np.abs(self.B)))
        # a change of sqrt(B) in h is one standard deviation in mu
        size = max(float(np.max(np.abs(self.h))), level**0.5)
        return max(float(np.max(np.abs(gap))) / level, float(np.max(np.abs(b - self.h))) / size)


Latents = Sequence[VariationalWeights]  # q of all latents


def all_rows(data: Data, size: int = CHUNK * IN_FLIGHT) -> Iterator[Data]:
    """All of the data, read from wherever they are, some rows at a time."""
    return (data.take(slice(start, start + size)) for start in range(0, len(data.X), size))


Made = tuple[Array, Array, dict[int, Array]]  # of a group: Phi, what it leaves out, Phi R_k' of each latent


class ExpectedTerms(NamedTuple):
    """E log p(y | f) summed over rows, and its derivatives in units of the scale."""

    value: float
    slope: Array  # (b, L): by the mean
    curve: Array  # (b, L): -2 times that by the variance
    by_likelihood: list[Array]


@dataclass
class BoundSums:
    """The expected log density of some rows, and what its gradients are made of."""

    value: float
    S: list[Array]  # Phi' diag(lam) Phi (m, m), the lower triangle
    b: list[Array]  # Phi' (g + lam (Phi mu))
    T: list[Array] = field(default_factory=list)  # G' Phi (m, m), the lower triangle
    by_kernel: list[list[Array]] = field(default_factory=list)
    by_mean: list[Array] = field(default_factory=list)
    by_likelihood: list[Array] = field(default_factory=list)

    def _lists(self) -> list[list[Array]]:
        return [self.S, self.b, self.T, self.by_mean, self.by_likelihood, *self.by_kernel]

    def add(self, other: BoundSums) -> BoundSums:
        """The sum, in this one's place."""
        self.value += other.value
        for mine, theirs in zip(self._lists(), other._lists(), strict=True):
            for k, array in enumerate(theirs):
                mine[k] = np.add(mine[k], array, out=mine[k] if mine[k].ndim == 2 else None)
        return self

    def scaled(self, ratio: float) -> BoundSums:
        """All of it times a number, in its place."""
        self.value *= ratio
        for arrays in self._lists():
            arrays[:] = [ratio * array for array in arrays]
        return self


class Bound:
    """A model with its inducing points, at q: sums over rows, and gradients from them."""

    def __init__(
        self,
        model: Model,
        data: Data,
        Z: Sequence[Array],
        learned: bool,
        low: bool = False,
        least: float | None = None,
    ) -> None:
        self.model, self.data = model, data
        exact = model.likelihood.conjugate  # whose noise may be smaller than any error
        self.low = low and not exact and all(kernel.low_precision for kernel, _ in model.kernels)
        latents = len(data.scale) if exact else model.likelihood.latents
        self.scale = np.broadcast_to(data.scale, (latents,))
        if least is None:
            least = LEAST_JITTER if exact else LEAST
        self.groups = [  # latents with one kernel
            (NystromMap(kernel, points, learned, least), columns)
            for (kernel, columns), points in zip(model.kernels_for(latents), Z, strict=True)
        ]
        self.dtype = np.dtype(np.float32 if self.low else np.float64)
        # Here, once, and not in each thread.
        which = "low_root" if self.low else "inverse_root"
        self.roots: list[Any] = [getattr(features, which) for features, _ in self.groups]
        self.error = 0.0 if exact else LOW_ERROR if self.low else LEAST_ERROR
        self.floor = NOISE_FLOOR * len(data.X) * typical_variance(model.kernel, data.X) if exact else 0.0

    def sizes(self) -> list[int]:
        """The number of weights of each latent."""
        size = {k: len(features.Z) for features, latents in self.groups for k in latents}
        return [size[k] for k in sorted(size)]

    def sums(self, q: Latents, blocks: Iterable[Data], *, gradient: bool, signed: bool) -> BoundSums:
        """Over blocks of rows. `signed`: whether curvatures of the wrong sign count in S and b."""
        roots = [w.root.astype(self.dtype, copy=False) for w in q]

        def parts() -> Iterator[BoundSums]:
            for block in blocks:
                chunks = list(all_rows(block, CHUNK))
                yield from each(lambda rows: self._chunk(q, roots, rows, gradient, signed), chunks)

        return reduce(BoundSums.add, parts())

    def over_all(self, q: Latents, *, gradient: bool, signed: bool = True) -> BoundSums:
        """The same over all rows, wherever they are."""
        if not self.data.pieces:
            return self.sums(q, all_rows(self.data), gradient=gradient, signed=signed)
        roots = [w.root.astype(self.dtype, copy=False) for w in q]
        state = self._alone(), q, roots, gradient, signed
        return reduce(BoundSums.add, over_pieces(self.data, _sums_of, state))

    def _alone(self) -> Bound:
        """The same without its rows, to travel to some of them."""
        alone = copy(self)
        alone.data = self.data.without_pieces()
        return alone

    def of_piece(
        self, X: Array, Y: Array, q: Latents, roots: Sequence[Array], gradient: bool, signed: bool
    ) -> BoundSums:
        """Sums of a piece of the rows, chunk by chunk."""
        chunks = all_rows(Data(X, Y, self.data.scale), CHUNK)
        return reduce(BoundSums.add, (self._chunk(q, roots, rows, gradient, signed) for rows in chunks))

    def gradient(self, sums: BoundSums) -> list[Array]:
        """By the model's parameters and, last, by all inducing points where they are learned."""
        parts: list[list[Array]] = []
        points: list[Array] = []
        for (features, _), own, T in zip(self.groups, sums.by_kernel, sums.T, strict=True):
            both = added(own, features.shared_pullback(T))
            if features.learned:
                points.append(both.pop())
            parts.append(both)
        rest = [array for part in parts[1:] for array in part]
        free = [np.concatenate(points)] if points else []
        return [*parts[0], *sums.by_mean, *sums.by_likelihood, *rest, *free]

    @patches.remembered()
    def _chunk(
        self, q: Latents, roots: Sequence[Array], rows: Data, gradient: bool, signed: bool
    ) -> BoundSums:
        b, L = len(rows.X), len(q)
        location, var = np.empty((b, L)), np.empty((b, L))  # of g: in units of the scale
        made: list[Made] = []
        for (features, latents), root in zip(self.groups, self.roots, strict=True):
            Phi = tiles.cross(features.kernel, rows.X, features.Z, low=self.low, error=self.error)
            multiply_triangle(block_of(root), block_of(Phi.T))
            inside = np.einsum("ij,ij->i", Phi, Phi)
            outside = np.maximum(tiles.diagonal(features.kernel, rows.X, low=self.low) - inside, 0.0)
            mu = np.stack([q[k].mu for k in latents], axis=1)
            location[:, latents] = Phi @ mu.astype(self.dtype, copy=False)
            whitened = {}
            for k in latents:
                V = Phi.copy()
                multiply_triangle(block_of(roots[k]), block_of(V.T))
                var[:, k] = outside + np.einsum("ij,ij->i", V, V)
                if gradient:
                    whitened[k] = V
            made.append((Phi, outside, whitened))
        terms = self._terms(rows, location, var)
        curve = terms.curve if signed else np.maximum(terms.curve, 0.0)
        shift = (terms.slope + curve * location).astype(self.dtype, copy=False)
        S: list[Array] = [np.zeros(0)] * L
        h: list[Array] = [np.zeros(0)] * L
        for (_, latents), (Phi, _, _) in zip(self.groups, made, strict=True):
            shifts = Phi.T @ shift[:, latents]
            for j, k in enumerate(latents):
                S[k], h[k] = self._weighted_squares(Phi, curve[:, k]), shifts[:, j].astype(np.float64)
        found = BoundSums(terms.value, S, h)
        if gradient:
            for g, parts in enumerate(made):
                T, by_kernel = self._back(g, q, roots, rows.X, parts, terms)
                found.T.append(T)
                found.by_kernel.append(by_kernel)
            found.by_mean = mean_gradient(self.model.mean, rows.X, terms.slope / self.scale)
            found.by_likelihood = terms.by_likelihood
        return found

    def _back(
        self, g: int, q: Latents, roots: Sequence[Array], X: Array, made: Made, terms: ExpectedTerms
    ) -> tuple[Array, list[Array]]:
        """G' Phi and the gradient through k(x, Z) and k(x, x). `whitened` is used up."""
        (features, latents), (Phi, outside, whitened) = self.groups[g], made
        # where the variance outside is at zero, it stays there
        open_curve = np.where(outside > 0, terms.curve[:, latents].sum(axis=1), 0.0)
        G = np.multiply(Phi, open_curve[:, None], dtype=self.dtype)
        for k in latents:
            V = whitened.pop(k)
            V *= -terms.curve[:, [k]].astype(self.dtype, copy=False)
            multiply_triangle(block_of(roots[k]), block_of(V.T), transpose=True)  # -lam Phi B^-1
            G += V
        slopes = np.ascontiguousarray(terms.slope[:, latents], dtype=self.dtype)
        mu = np.stack([q[k].mu for k in latents]).astype(self.dtype, copy=False)
        gemm(1.0, block_of(mu.T), block_of(slopes.T), block_of(G.T))
        T = np.zeros((Phi.shape[1], Phi.shape[1]), self.dtype, order="F")
        left, right, out = block_of(G.T), block_of(Phi.T), block_of(T)
        for start in range(0, len(T), STRIP):
            stop = min(start + STRIP, len(T))
            gemm(1.0, left[start:, :], right[start:stop, :], out[start:, start:stop], transpose_b=True)
        multiply_triangle(block_of(self.roots[g]), block_of(G.T), transpose=True)  # G L^-1 = df/dK_xz
        by_kernel = tiles.cross_pullback(features.kernel, X, features.Z, G, points=features.learned)
        # In a stochastic search, where k(x, x) takes long, every fourth row of a batch stands for four: rows
        # at random, too, so that the gradient is right on average. Of 128 images that saves 30 ms in 240.
        every = DEAR_EVERY if self.low and features.kernel.point_columns() is not None else 1
        some = X[::every]
        weights = -0.5 * len(X) / len(some) * open_curve[::every]
        own = tiles.diagonal_pullback(features.kernel, some, weights, low=self.low)
        for k, part in enumerate(own):
            by_kernel[k] = by_kernel[k] + part
        return T, by_kernel

    def _weighted_squares(self, Phi: Array, weights: Array) -> Array:
        """Phi' diag(weights) Phi, the lower triangle, zeros above."""
        # Rounded to 32 bits, sums that are large beside the 1 of the prior would drown it.
        low = self.low and float(np.max(np.abs(weights))) * len(self.data.X) <= LOW_UP_TO
        dtype = np.float32 if low else np.float64
        S = np.zeros((Phi.shape[1], Phi.shape[1]), dtype, order="F")
        root = np.sqrt(np.maximum(weights, 0.0)).astype(self.dtype, copy=False)
        rows = np.multiply(Phi, root[:, None], dtype=dtype)
        syrk(1.0, block_of(rows.T), block_of(S))
        wrong = weights < 0
        if wrong.any():
            rows = np.multiply(Phi[wrong], np.sqrt(-weights[wrong])[:, None], dtype=dtype)
            syrk(-1.0, block_of(rows.T), block_of(S))
        return S

    def _terms(self, rows: Data, location: Array, var: Array) -> ExpectedTerms:
        m = mean_block(self.model.mean, rows.X, len(self.scale))
        likelihood, s = self.model.likelihood, self.scale
        if likelihood.conjugate:
            return self._gaussian_terms(rows, m, location, var)
        mean, spread = m + s * location, s**2 * np.maximum(var, LEAST_VAR)
        low = self.low and type(likelihood) in (Bernoulli, Softmax)
        value, slope, by_var, back = expected(likelihood, likelihood.y_of(rows.Y), mean, spread, low=low)
        value += len(m) * float(np.log(s[0])) * likelihood.location  # evidence is that of y / s
        return ExpectedTerms(value, slope * s, -2 * by_var * s**2, back)

    def _gaussian_terms(self, rows: Data, m: Array, location: Array, var: Array) -> ExpectedTerms:
        """In closed form, with a noise of its own for each output."""
        gap = (rows.Y - m) / self.scale - location
        D = np.empty_like(gap)
        for group in noise_groups(self.model, self.data):
            added = rows.added_noise
            known = 0.0 if added is None else group.share * added[:, None]
            D[:, group.outputs] = np.maximum(group.level + known, self.floor)
        seen = np.isfinite(gap)  # NaN in Y: an output that was not observed
        gap = np.where(seen, gap, 0.0)
        square = gap**2 + var
        value = -0.5 * float(np.sum(np.where(seen, square / D + np.log(2 * np.pi * D), 0.0)))
        by_level = 0.5 * np.sum(np.where(seen, square / D**2 - 1 / D, 0.0), axis=0)
        by_noise = noise_gradient(self.model, self.data, by_level)
        return ExpectedTerms(value, gap / D, seen / D, [np.asarray(by_noise)])


def _sums_of(piece: Piece, state: tuple[Bound, Latents, Sequence[Array], bool, bool]) -> BoundSums:
    bound, q, roots, gradient, signed = state
    return bound.of_piece(*piece.load(), q, roots, gradient, signed)


def expected(
    likelihood: Likelihood, y: Array, mean: Array, var: Array, *, low: bool = False
) -> tuple[float, Array, Array, list[Array]]:
    """sum_i E log p(y_i | f_i) for f_i ~ N(mean_i, var_i), each (b, L), with its gradients by mean, var and
    the likelihood's parameters."""
    rows, tile = len(y), tiles.tile_size(len(y))
    room = -(-rows // tile) * tile  # few programs to compile
    order = np.arange(room) % rows  # a copy of real rows, whose weight is zero, is harmless in any likelihood
    counted = np.arange(room) < rows
    flat, dtype = likelihood.latents == 1, np.float32 if low else np.float64
    bare = jax.tree_util.tree_map(lambda v: np.asarray(v, dtype), likelihood.bare())
    moments = (v[order, 0] if flat else v[order] for v in (mean, var))
    table = (v.astype(dtype, copy=False) for v in (y[order], *moments, counted))
    with jax.enable_x64(not low):
        value, (by_likelihood, slope, by_var) = _expected(bare, *table)
        by_var.block_until_ready()  # lets go of the GIL, which the conversions below would hold
        columns = (rows, 1) if flat else (rows, -1)
        back = [np.asarray(v, np.float64) for v in leaves(by_likelihood)]
        by_mean, by_var = (np.asarray(v, np.float64)[:rows].reshape(columns) for v in (slope, by_var))
        return float(value), by_mean, by_var, back


@compiled()
def _expected(
    likelihood: Likelihood, y: jax.Array, mean: jax.Array, var: jax.Array, counted: jax.Array
) -> tuple[jax.Array, Any]:
    def total(likelihood: Likelihood, mean: jax.Array, var: jax.Array) -> jax.Array:
        return jnp.sum(counted * likelihood.expected_log_prob(y, mean, var))

    return jax.value_and_grad(total, argnums=(0, 1, 2))(likelihood, mean, var)
