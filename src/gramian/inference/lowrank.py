"""Inference with features: one Bayesian linear regression, fed by sums over blocks of rows.

With Phi (n, m), K ~ Q = Phi Phi', D the noise, A = Q + D, r the residuals, k_i = k(x_i, x_i), q_i =
|phi_i|^2:

    S = Phi' D^-1 Phi,   b = Phi' D^-1 r,   c = r' D^-1 r,   B = I + S = L_B L_B',   w = B^-1 b
    log N(r; 0, A) = -1/2 (c - b'w) - 1/2 (log det B + log det D) - n/2 log 2 pi

Three objectives share these sums:

    dtc    log N(r; 0, Q + D)                                 the approximate model taken as the model (also
                                                              Nystrom, Fourier)
    vfe    log N(r; 0, Q + D) - 1/2 sum_i (k_i - q_i) / D_i   a lower bound of the exact log evidence
                                                              (Titsias 2009)
    fitc   log N(r; 0, Q + D + diag(K - Q))                   D is made larger by what the features leave out
                                                              (Snelson and Ghahramani 2006)

Gradient, in a second pass, with a = D^-1 (r - Phi w) and q outputs in a group:

    df/dPhi = a w' - q D^-1 Phi B^-1   (+ q D^-1 Phi for vfe, - 2 diag(df/dD) Phi for fitc)
    df/dD_i = 1/2 sum a_i^2 - q/2 (1/D_i - phi_i' B^-1 phi_i / D_i^2)   (+ q/2 (k_i - q_i) / D_i^2 for vfe)

Cost: n m^2 flops and n m kernel values a pass; memory of one block and a few m x m arrays, whatever n is.
Source: Quinonero-Candela and Rasmussen 2005.

Passes over the rows are in `inference/passes.py`.

Sums in float64 know B to eps n k / D; noise below n 1e-14 of the mean k(x, x) would drown in it, so it is
raised to that, and the outcome says so.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gramian.errors import NumericalError
from gramian.features.base import Basis
from gramian.features.nystrom import NystromBasis
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
    noise_gradient,
)
from gramian.inference.features import FeaturePosterior
from gramian.inference.passes import (
    KEEP_BYTES,
    NOISE_FLOOR,
    Kind,
    Passes,
    Sums,
    Weights,
    alone,
    chunk_rows,
    chunks_at_once,
)
from gramian.linalg import panels
from gramian.linalg.products import times, transposed_times, triangle_squares
from gramian.solvers.base import SolveOutcome

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LowRank(Inference):
    """Inference with a basis that has been chosen."""

    basis: Basis
    objective: Kind
    label: str  # of the method that chose the basis
    described: str  # for people: which features, how many
    # of the landmarks as a search moves them: Z = centre + spread * free
    centre: Array = field(default_factory=lambda: np.zeros(0))
    spread: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def name(self) -> str:
        return self.label

    @property
    def solver_name(self) -> str:
        return self.described

    # What a search may move besides the model's parameters. -------------------------------------------------

    @property
    def free(self) -> Array:
        if not isinstance(self.basis, NystromBasis) or not self.basis.learned:
            return np.zeros(0)
        return ((self.basis.Z - self.centre) / self.spread).ravel()

    def with_free(self, values: Array) -> LowRank:
        Z = self.centre + self.spread * values.reshape(-1, len(self.spread))
        return dataclasses.replace(self, basis=NystromBasis(Z, learned=True))

    # Inference. ---------------------------------------------------------------------------------------------

    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        weights = np.empty((self.basis.n_features, data.Y.shape[1]))
        root_of, roots, value = [0] * data.Y.shape[1], [], 0.0
        with alone(self.basis.n_features):
            passes = self._passes(model, data)
            sums = passes.first(report)
            for r, group in enumerate(sums):
                found = self._weights(group, len(data.X))
                weights[:, group.outputs] = found.w
                roots.append(found.root)
                value += found.value
                for k in group.outputs:
                    root_of[k] = r
        prior = GaussianProcess(model.kernel, model.mean, data.scale)
        posterior = FeaturePosterior(prior, passes.features, weights, tuple(roots), tuple(root_of))
        # of the mean diagonal
        floor = NOISE_FLOOR * len(data.X) if any(group.raised for group in sums) else 0.0
        return Inferred(posterior, self._evidence(value), SolveOutcome(jitter=floor))

    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        with alone(self.basis.n_features):
            return self._evidence(
                sum(self._weights(group, len(data.X)).value for group in self._passes(model, data).first())
            )

    def evidence_and_gradient(
        self, model: Model, data: Data, workspace: Workspace
    ) -> tuple[Evidence, list[Array]]:
        with alone(self.basis.n_features):
            passes = self._passes(model, data)
            sums = passes.first(keep=True)
            found = [self._weights(group, len(data.X)) for group in sums]
            gradients = self._gradient(passes, sums, found)
        if self.free.size:
            gradients[-1] = gradients[-1] * self.spread
        return self._evidence(sum(w.value for w in found)), gradients

    def _gradient(self, passes: Passes, sums: list[Sums], found: list[Weights]) -> list[Array]:
        model, data, vfe = passes.model, passes.data, self.objective == "vfe"
        inverses = [triangle_squares(w.root) for w in found]
        explained = [np.eye(len(inverse)) - inverse for inverse in inverses]  # S B^-1
        slopes = passes.second(sums, found, explained if vfe else inverses)
        T = np.zeros_like(inverses[0]) if slopes.T is None else slopes.T
        for group, w, inside in zip(sums, found, explained, strict=True):
            q = len(group.outputs)
            if group.level is not None and self.objective != "fitc":
                trace = (len(data.X) - float(np.trace(inside))) / group.level  # of A^-1
                slopes.by_noise += noise_gradient(model, data, group.outputs, np.full(q, -0.5 * trace))
            T += w.w @ w.w.T - q * inside  # Phi'a = w
            if vfe:
                T += q * group.S  # its lower triangle, as all that is read
        shared = passes.features.shared_pullback(T)
        everything = [own + rest for own, rest in zip(slopes.by_kernel, shared, strict=True)]
        count = len(model.kernel.parameters())
        return [*everything[:count], *slopes.by_mean, np.asarray(slopes.by_noise), *everything[count:]]

    def leave_one_out(self, model: Model, data: Data, posterior: Process) -> LeftOut:
        passes = self._passes(model, data)
        sums = passes.first()
        found = [self._weights(group, len(data.X)) for group in sums]
        alpha, precision = np.empty(data.Y.shape), np.empty(data.Y.shape)
        for block in map(passes.block, passes.rows()):
            at = block.rows.at
            for group, w, D in zip(sums, found, block.D, strict=True):
                V = block.Phi @ w.root.T
                alpha[at, group.outputs] = (block.rows.R[:, group.outputs] - block.Phi @ w.w) / D[:, None]
                precision[at, group.outputs] = (1 / D - np.einsum("ij,ij->i", V, V) / D**2)[:, None]
        return LeftOut(alpha, precision)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Work:
        return work_of(n, self.basis.n_features, gradient, self._whitened)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        return bytes_of(n, d, q, self.basis.n_features, self._whitened)

    @property
    def _whitened(self) -> bool:
        return isinstance(self.basis, NystromBasis)

    def _passes(self, model: Model, data: Data) -> Passes:
        return Passes(self.basis.at(model.kernel), model, data, self.objective)

    def _evidence(self, value: float) -> Evidence:
        return Evidence(value, "lower bound" if self.objective == "vfe" else "approximation")

    def _weights(self, sums: Sums, n: int) -> Weights:
        q = len(sums.outputs)
        B = sums.S.copy(order="F")
        B.T.reshape(-1)[:: len(B) + 1] += 1.0
        if not np.all(np.isfinite(B)):
            raise NumericalError(
                "The sums of the features are not finite: the kernel overflows on these data. Rescale the"
                " columns, or bound its parameters."
            )
        info = panels.factor(B)
        if info != 0:
            raise NumericalError(
                f"I + Phi'Phi / noise is not positive definite: it fails at feature {info - 1}. Let noise be"
                " learned, or larger."
            )
        logdet_B = 2 * float(np.sum(np.log(np.diagonal(B))))
        root = B  # from here on
        panels.inverse_root(root)
        half = times(root, sums.b)
        w = transposed_times(np.ascontiguousarray(root), half)
        value = -0.5 * float(np.sum(sums.c - np.einsum("ij,ij->j", half, half))) - 0.5 * q * (
            logdet_B + sums.logdet_D + n * float(np.log(2 * np.pi))
        )
        if self.objective == "vfe":
            value -= 0.5 * q * sums.slack
        return Weights(w, root, value)


def bytes_of(n: int, d: int, q: int, m: int, whitened: bool = True) -> int:
    """Peak memory of an evaluation with gradient beyond the data: chunks at work, features kept, and m x m
    arrays.

    How many there are at once is measured (benchmarks, "planning"): temporary ones count, and so does what
    the allocator holds back for the next.
    """
    rows, chunks = min(n, chunk_rows(m)), min(chunks_at_once(m), -(-n // chunk_rows(m)))
    kept = 8 * n * m if 8 * n * m <= KEEP_BYTES else 0
    arrays = 1.3 if whitened else 2.5  # of a chunk: whitening is done in place, cosines are not
    return int(8 * ((6 + chunks) * m * m + chunks * rows * (arrays * m + 2 * (d + q)))) + kept


def work_of(n: int, m: int, gradient: bool, whitened: bool = True) -> Work:
    """Whitening, of landmarks' features, and sums in the first pass; in the second, weights and their way
    back, once more with the features where they are not kept."""
    nm, squares = float(n) * m, float(n) * m * m
    if not gradient:
        return Work((2 if whitened else 1) * squares + m**3, nm)
    again = 8 * nm > KEEP_BYTES
    products = 3 if not whitened else 6 if again else 5
    return Work(products * squares + 3.0 * m**3, 2 * nm if again else nm, nm)
