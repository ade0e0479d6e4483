"""Inference with features: one Bayesian linear regression, fed by sums over blocks of rows.

With Phi (n, m), K ~ Q = Phi Phi', D the noise, A = Q + D, r the residuals, k_i = k(x_i, x_i), q_i = |phi_i|^2:

    S = Phi' D^-1 Phi,   b = Phi' D^-1 r,   c = r' D^-1 r,   B = I + S = L_B L_B',   w = B^-1 b
    log N(r; 0, A) = -1/2 (c - b'w) - 1/2 (log det B + log det D) - n/2 log 2 pi

Three objectives share these sums:

    dtc     log N(r; 0, Q + D)                                       the approximate model taken as the model (also Nystrom, Fourier)
    vfe     log N(r; 0, Q + D) - 1/2 sum_i (k_i - q_i) / D_i         a lower bound of the exact log evidence (Titsias 2009)
    fitc    log N(r; 0, Q + D + diag(K - Q))                         D is made larger by what the features leave out (Snelson and Ghahramani 2006)

Gradient, in a second pass, with a = D^-1 (r - Phi w) and q outputs in a group:

    df/dPhi = a w' - q D^-1 Phi B^-1   (+ q D^-1 Phi for vfe, - 2 diag(df/dD) Phi for fitc)
    df/dD_i = 1/2 sum a_i^2 - q/2 (1/D_i - phi_i' B^-1 phi_i / D_i^2)   (+ q/2 (k_i - q_i) / D_i^2 for vfe)

Cost: n m^2 flops and n m kernel values a pass; memory of one block and a few m x m arrays, whatever n is.
Source: Quinonero-Candela and Rasmussen 2005.

Sums in float64 know B to eps n k / D; noise below n 1e-14 of the mean k(x, x) would drown in it, so it is raised to that, and the outcome says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from gramian.approx.base import Basis, FeatureMap
from gramian.approx.nystrom import NystromBasis
from gramian.errors import NumericalError
from gramian.gram import budget, tiles
from gramian.inference.base import (
    Data,
    Evidence,
    GaussianProcess,
    Inference,
    Inferred,
    LeftOut,
    Model,
    Process,
    Share,
    Work,
    Workspace,
    blocks_of,
    mean_block,
    mean_gradient,
    noise_gradient,
    noise_groups,
)
from gramian.inference.features import FeaturePosterior
from gramian.linalg.products import squares, times, transposed_times
from gramian.linalg.threads import threads_for
from gramian.solvers.base import SolveOutcome

Array = NDArray[np.float64]
Kind = Literal["dtc", "vfe", "fitc"]

# Of the features of a block: products run at full speed, and temporary arrays are used again instead of asked from the system.
BLOCK_BYTES = 16 * 2**20
KEEP_BYTES = 512 * 2**20  # of features that are kept from the first pass to the second, instead of made again
NOISE_FLOOR = 1e-14  # times n, of the mean k(x, x)


class Block(NamedTuple):
    """Some rows, ready for sums."""

    X: Array  # (b, d)
    Phi: Array  # (b, m)
    R: Array  # (b, q): residuals in units of the scale
    prior_var: Array  # (b,): k(x, x)
    outside: Array  # (b,): k(x, x) - |phi|^2, not negative
    D: list[Array]  # one (b,) a group


@dataclass
class Sums:
    """What the data say about the weights of a group of outputs."""

    outputs: list[int]
    S: Array  # (m, m)
    b: Array  # (m, q)
    c: Array  # (q,)
    logdet_D: float = 0.0
    slack: float = 0.0  # sum_i (k_i - q_i) / D_i
    outside: float = 0.0  # sum_i (k_i - q_i)
    level: float | None = None  # the noise of all rows, where it is one

    def add(self, block: Block, D: Array) -> None:
        level = D[0] if np.all(D[0] == D) else None
        root = 1 / np.sqrt(D)
        # One level of noise, which is the rule, can be divided by afterwards: no second copy of Phi.
        Phi = block.Phi if level is not None else block.Phi * root[:, None]
        R = block.R[:, self.outputs] * (root**2 if level is not None else root)[:, None]
        self.S += squares(Phi) if level is None else squares(Phi) / level
        self.b += transposed_times(Phi, R)
        R = block.R[:, self.outputs] * root[:, None]
        self.c += np.einsum("ij,ij->j", R, R)
        self.logdet_D += float(np.sum(np.log(D)))
        self.slack += float(np.sum(block.outside / D))
        self.outside += float(np.sum(block.outside))


class Weights(NamedTuple):
    """The posterior of the weights of a group, and its part of the evidence."""

    w: Array  # (m, q)
    root: Array  # L_B^-1, lower triangular, Fortran-ordered
    value: float


@dataclass(frozen=True, eq=False)
class LowRank(Inference):
    """Inference with a basis that has been chosen."""

    basis: Basis
    objective: Kind
    label: str  # of the method that chose the basis
    described: str  # for people: which features, how many
    centre: Array = field(default_factory=lambda: np.zeros(0))  # of the landmarks as a search moves them: Z = centre + spread * free
    spread: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def name(self) -> str:
        return self.label

    @property
    def solver_name(self) -> str:
        return self.described

    # What a search may move besides the model's parameters. ---------------------------------------------------------------------------------------

    @property
    def free(self) -> Array:
        if not isinstance(self.basis, NystromBasis) or not self.basis.learned:
            return np.zeros(0)
        return ((self.basis.Z - self.centre) / self.spread).ravel()

    def with_free(self, values: Array) -> LowRank:
        Z = self.centre + self.spread * values.reshape(-1, len(self.spread))
        return dataclasses.replace(self, basis=NystromBasis(Z, learned=True))

    # Inference. -----------------------------------------------------------------------------------------------------------------------------------

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        with threads_for(self.basis.n_features):
            return self._infer(model, data, report)

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        with threads_for(self.basis.n_features):
            sums, _ = self._first_pass(self.basis.at(model.kernel), model, data)
            return self._evidence(sum(self._weights(group, len(data.X)).value for group in sums))

    def evidence_and_gradient(self, model: Model, data: Data, workspace: Workspace) -> tuple[Evidence, list[Array]]:
        with threads_for(self.basis.n_features):
            return self._evidence_and_gradient(model, data)

    def _infer(self, model: Model, data: Data, report: Share | None) -> Inferred:
        features = self.basis.at(model.kernel)
        sums, floor = self._first_pass(features, model, data, report=report)
        weights = np.empty((features.n_features, data.Y.shape[1]))
        root_of, roots, value = [0] * data.Y.shape[1], [], 0.0
        for r, group in enumerate(sums):
            found = self._weights(group, len(data.X))
            weights[:, group.outputs] = found.w
            roots.append(found.root)
            value += found.value
            for k in group.outputs:
                root_of[k] = r
        prior = GaussianProcess(model.kernel, model.mean, data.scale)
        posterior = FeaturePosterior(prior, features, weights, tuple(roots), tuple(root_of))
        return Inferred(posterior, self._evidence(value), SolveOutcome(jitter=floor))

    def _evidence_and_gradient(self, model: Model, data: Data) -> tuple[Evidence, list[Array]]:
        features = self.basis.at(model.kernel)
        kept: list[Block] = []
        sums, _ = self._first_pass(features, model, data, kept)
        found = [self._weights(group, len(data.X)) for group in sums]
        inverses = [squares(np.ascontiguousarray(w.root)) for w in found]
        if self.objective == "vfe":  # df/dPhi has I - B^-1 then
            inverses = [np.eye(len(inverse)) - inverse for inverse in inverses]
        total = _Gradient(model, data, features, self.objective)
        for at, block in self._blocks(features, model, data, kept):
            total.add(at, block, sums, found, inverses)
        gradients = total.finish(sums, found, inverses)
        if self.free.size:
            gradients[-1] = gradients[-1] * self.spread
        return self._evidence(sum(w.value for w in found)), gradients

    def leave_one_out(self, model: Model, data: Data, posterior: Process) -> LeftOut:
        features = self.basis.at(model.kernel)
        sums, _ = self._first_pass(features, model, data)
        found = [self._weights(group, len(data.X)) for group in sums]
        alpha, precision = np.empty(data.Y.shape), np.empty(data.Y.shape)
        for at, block in self._blocks(features, model, data):
            for group, w, D in zip(sums, found, block.D, strict=True):
                V = block.Phi @ w.root.T
                alpha[at, group.outputs] = (block.R[:, group.outputs] - block.Phi @ w.w) / D[:, None]
                precision[at, group.outputs] = (1 / D - np.einsum("ij,ij->i", V, V) / D**2)[:, None]
        return LeftOut(alpha, precision)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Work:
        return work_of(n, self.basis.n_features, gradient)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return bytes_of(n, d, q, self.basis.n_features)

    # The passes. ----------------------------------------------------------------------------------------------------------------------------------

    def _evidence(self, value: float) -> Evidence:
        return Evidence(value, "lower bound" if self.objective == "vfe" else "approximation")

    def _weights(self, sums: Sums, n: int) -> Weights:
        q = len(sums.outputs)
        B = np.asfortranarray(0.5 * (sums.S + sums.S.T))
        B.T.reshape(-1)[:: len(B) + 1] += 1.0
        if not np.all(np.isfinite(B)):
            raise NumericalError(
                "The sums of the features are not finite: the kernel overflows on these data. Rescale the columns, or bound its parameters."
            )
        L, info = lapack.dpotrf(B, lower=1, clean=1, overwrite_a=1)
        if info != 0:
            raise NumericalError(f"I + Phi'Phi / noise is not positive definite: it fails at feature {info - 1}. Let noise be learned, or larger.")
        logdet_B = 2 * float(np.sum(np.log(np.diagonal(L))))
        root, _ = lapack.dtrtri(L, lower=1, overwrite_c=1)
        half = times(np.tril(root), sums.b)
        w = transposed_times(np.ascontiguousarray(root), half)
        value = -0.5 * float(np.sum(sums.c - np.einsum("ij,ij->j", half, half))) - 0.5 * q * (logdet_B + sums.logdet_D + n * float(np.log(2 * np.pi)))
        if self.objective == "vfe":
            value -= 0.5 * q * sums.slack
        return Weights(w, root, value)

    def _first_pass(
        self, features: FeatureMap, model: Model, data: Data, kept: list[Block] | None = None, report: Share | None = None
    ) -> tuple[list[Sums], float]:
        """The sums of each group, and the share of the mean diagonal that noise was raised to (0 where it was not); `kept` gathers the blocks."""
        m = features.n_features
        groups = noise_groups(model, data)
        sums = [Sums(g.outputs, np.zeros((m, m)), np.zeros((m, len(g.outputs))), np.zeros(len(g.outputs))) for g in groups]
        floor, raised = _floor(model, data), False
        keep = 8 * len(data.X) * m <= KEEP_BYTES
        for at, block in self._blocks(features, model, data):
            for group, D, made in zip(sums, block.D, groups, strict=True):
                group.add(block, D)
                raised = raised or bool(np.any(made.noise(at, len(data.X)) < floor))
            if kept is not None and keep:
                kept.append(block)
            if report is not None:
                report(at.stop / len(data.X))
        return sums, NOISE_FLOOR * len(data.X) if raised else 0.0

    def _blocks(self, features: FeatureMap, model: Model, data: Data, kept: list[Block] | None = None) -> Iterator[tuple[slice, Block]]:
        slices = blocks_of(len(data.X), 8 * features.n_features, BLOCK_BYTES)
        if kept:
            yield from zip(slices, kept, strict=True)
            return
        groups, floor = noise_groups(model, data), _floor(model, data)
        for at in slices:
            X, Y = np.asarray(data.X[at]), np.asarray(data.Y[at])
            Phi = features.block(X)
            R = (Y - mean_block(model.mean, X, Y.shape[1])) / data.scale
            prior_var = tiles.diagonal(model.kernel, X)
            outside = np.zeros(len(X)) if features.spans_prior else np.maximum(prior_var - np.einsum("ij,ij->i", Phi, Phi), 0.0)
            D = [np.maximum(group.noise(at, len(data.X)), floor) for group in groups]
            if self.objective == "fitc":
                D = [d + outside for d in D]
            yield at, Block(X, Phi, R, prior_var, outside, D)


class _Gradient:
    """The second pass: gradients of the objective, gathered block by block."""

    def __init__(self, model: Model, data: Data, features: FeatureMap, objective: Kind) -> None:
        self.model, self.data, self.features, self.objective = model, data, features, objective
        self.by_kernel: list[Array] | None = None
        self.by_mean = [np.zeros(p.value.shape) for p in model.mean.parameters().values()]
        self.by_noise = 0.0
        m = features.n_features
        self.T = np.zeros((m, m))  # the part of Phi' df/dPhi that has no closed form

    def add(self, at: slice, block: Block, sums: list[Sums], found: list[Weights], inverses: list[Array]) -> None:
        by_prior_var = np.zeros(len(block.X))
        by_residual = np.zeros(block.R.shape)
        parts: list[Array] | None = None
        for group, w, inverse, D in zip(sums, found, inverses, block.D, strict=True):
            a = (block.R[:, group.outputs] - times(block.Phi, w.w)) / D[:, None]
            by_residual[:, group.outputs] = a / self.data.scale[group.outputs]
            if self.objective == "fitc" or not np.all(D[0] == D):
                own = self._row_by_row(block, group, w, inverse, D, a, by_prior_var)
            else:
                own = self._at_once(block, group, w, inverse, float(D[0]), a, by_prior_var)
            parts = own if parts is None else [one + other for one, other in zip(parts, own, strict=True)]
        assert parts is not None
        self.by_kernel = parts if self.by_kernel is None else [total + part for total, part in zip(self.by_kernel, parts, strict=True)]
        if self.objective != "dtc":
            diagonal = tiles.rowwise_pullback(self.model.kernel, "diagonal", block.X, by_prior_var)
            for k, part in enumerate(diagonal):
                self.by_kernel[k] = self.by_kernel[k] + part
        for total, part in zip(self.by_mean, mean_gradient(self.model, block.X, by_residual), strict=True):
            total += part

    def _at_once(self, block: Block, group: Sums, w: Weights, inverse: Array, D: float, a: Array, by_prior_var: Array) -> list[Array]:
        """One level of noise: df/dPhi stays a product, and of df/dD only the sum counts, whose traces `finish` has in closed form."""
        q = len(group.outputs)
        by_level = 0.5 * np.sum(a**2, axis=0)
        if self.objective == "vfe":
            by_prior_var -= 0.5 * q / D
            by_level += 0.5 * float(np.sum(block.outside)) / D**2
        self.by_noise += noise_gradient(self.model, self.data, group.outputs, by_level)
        group.level = D
        sign = 1.0 if self.objective == "vfe" else -1.0  # `inverse` is I - B^-1 for vfe, else B^-1
        return self.features.factored_pullback(block.X, block.Phi, (sign * q / D) * inverse, a, w.w)

    def _row_by_row(self, block: Block, group: Sums, w: Weights, inverse: Array, D: Array, a: Array, by_prior_var: Array) -> list[Array]:
        """Noise that differs between rows."""
        q = len(group.outputs)
        G = times(block.Phi, inverse)
        explained = np.einsum("ij,ij->i", G, block.Phi)  # phi' B^-1 phi, or for vfe phi' (I - B^-1) phi
        if self.objective == "vfe":
            explained = np.einsum("ij,ij->i", block.Phi, block.Phi) - explained
        slope = 0.5 * a**2 - 0.5 * (1 / D - explained / D**2)[:, None]  # df/dD, one column an output
        G *= ((q if self.objective == "vfe" else -q) / D)[:, None]
        for k in range(q):
            G += a[:, [k]] * w.w[:, k]
        if self.objective == "vfe":
            by_prior_var -= 0.5 * q / D
            slope += (0.5 * block.outside / D**2)[:, None]
        elif self.objective == "fitc":
            g = slope.sum(axis=1)
            G -= block.Phi * (2 * g)[:, None]
            by_prior_var += g
            self.T -= 2 * transposed_times(block.Phi, block.Phi * g[:, None])
        self.by_noise += noise_gradient(self.model, self.data, group.outputs, slope.sum(axis=0))
        return self.features.pullback(block.X, G)

    def finish(self, sums: list[Sums], found: list[Weights], inverses: list[Array]) -> list[Array]:
        T = self.T
        for group, w, inverse in zip(sums, found, inverses, strict=True):
            q = len(group.outputs)
            explained = inverse if self.objective == "vfe" else np.eye(len(inverse)) - inverse  # S B^-1
            if group.level is not None:
                trace = (len(self.data.X) - float(np.trace(explained))) / group.level  # of A^-1
                self.by_noise += noise_gradient(self.model, self.data, group.outputs, np.full(q, -0.5 * trace))
            T = T + w.w @ w.w.T - q * explained  # Phi'a = w, and S B^-1 = I - B^-1
            if self.objective == "vfe":
                T = T + q * group.S
        assert self.by_kernel is not None
        shared = self.features.shared_pullback(0.5 * (T + T.T))
        everything = [total + part for total, part in zip(self.by_kernel, shared, strict=True)]
        count = len(self.model.kernel.parameters())
        return [*everything[:count], *self.by_mean, np.asarray(self.by_noise), *everything[count:]]


def _floor(model: Model, data: Data) -> float:
    """The least noise that the sums can tell from zero."""
    some = np.asarray(data.X[: tiles.LARGEST_TILE])
    return NOISE_FLOOR * len(data.X) * float(np.mean(tiles.diagonal(model.kernel, some)))


def bytes_of(n: int, d: int, q: int, m: int) -> int:
    """Peak memory of an evaluation with gradient beyond the data: blocks of features, those kept, and m x m arrays.

    How many there are at once is measured (benchmarks, "planning"): temporary ones count, and so does what the allocator holds back for the next.
    """
    rows = min(n, budget.block_rows(8 * m, tiles.LARGEST_TILE, BLOCK_BYTES))
    kept = 8 * n * m if 8 * n * m <= KEEP_BYTES else 0
    return 8 * (12 * m * m + 7 * rows * m + 2 * rows * (d + q)) + kept


def work_of(n: int, m: int, gradient: bool) -> Work:
    """Whitening and sums in the first pass; in the second, weights and their way back, once more with the features where they are not kept."""
    nm, squares = float(n) * m, float(n) * m * m
    if not gradient:
        return Work(2 * squares + m**3, nm)
    again = 8 * nm > KEEP_BYTES
    return Work((6 if again else 5) * squares + 3.0 * m**3, 2 * nm if again else nm, nm)
