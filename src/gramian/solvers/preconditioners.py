"""Preconditioners P ~ A = K + D: cheap to solve with, to take the log determinant of, and to draw from.

    none          P = I
    jacobi        P = diag(A)
    pivoted       P = F F' + D, F (n, r) the partial Cholesky factor of K with greedy pivots
    rpcholesky    P = F F' + D, with random pivots: close to the best of its rank in expectation

With G = D^-1/2 F = U S V' (a QR of G, then a small singular value decomposition) every power of P is a
correction of rank r:

    P^q = D^1/2 (I + U ((1 + S^2)^q - 1) U') D^1/2    for q = 1, -1 (with D^-1/2), and
    P = H H' with H = D^1/2 (I + U ((1 + S^2)^1/2 - 1) U')

This is Woodbury's identity in orthogonal coordinates. With a Cholesky factor of I + F'D^-1 F it loses a
factor 1 + S^2 in accuracy, and P^-1 stops being positive definite to rounding where cond(P) passes 1e8; here
only where it passes 1e16.

Cost: 6 n r^2 once beside the n r kernel values, 4 n r a column to solve; two arrays (n, r) while it is made,
one kept. Sources: Gardner, Pleiss, Bindel, Weinberger, Wilson 2018 (pivoted Cholesky as a preconditioner);
Diaz, Epperly, Frangella, Tropp, Webber 2023, "Robust, randomized preconditioning for kernel ridge regression"
(random pivots).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.linalg

from gramian.arrays import Array, Indices, is_whole
from gramian.errors import NumericalError, ParameterError
from gramian.features.nystrom import NystromMap
from gramian.gram.operator import GramOperator
from gramian.landmarks.pivoted import pivoted_cholesky

Name = Literal["none", "jacobi", "pivoted", "rpcholesky"]

NAMES: tuple[Name, ...] = ("none", "jacobi", "pivoted", "rpcholesky")
FLOOR = 1e-8  # of the mean diagonal: what D is at least inside a preconditioner. A itself is never changed.


@dataclass(frozen=True, eq=False)
class Preconditioner:
    """P = D^1/2 (I + U S^2 U') D^1/2, a diagonal and a correction of rank r."""

    D: Array  # (n,), positive
    U: Array  # (n, r), orthonormal columns
    S: Array  # (r,)
    # the rows that the correction was made from: `build(..., pivots=...)` takes them again
    pivots: Indices | None = None

    @classmethod
    def from_factor(cls, F: Array, D: Array, pivots: Indices | None = None) -> Preconditioner:
        """P = F F' + diag(D) for F (n, r) and D (n,), positive. F is overwritten: two arrays of its size are
        all that is held."""
        n, r = F.shape
        A = np.empty((n, r), order="F")
        np.divide(F, np.sqrt(D)[:, None], out=A)
        Q, R = scipy.linalg.qr(A, mode="economic", overwrite_a=True, check_finite=False)
        W, S, _ = scipy.linalg.svd(R, check_finite=False)
        return cls(D, np.matmul(Q, W[:, : len(S)], out=F if len(S) == r else None), S, pivots)

    @property
    def n(self) -> int:
        return len(self.D)

    @property
    def rank(self) -> int:
        return len(self.S)

    def solve(self, B: Array) -> Array:
        """P^-1 B for B (n, k)."""
        root = np.sqrt(self.D)[:, None]
        return self._corrected(B / root, -1.0) / root

    def logdet(self) -> float:
        """log det P."""
        return float(np.sum(np.log(self.D)) + np.sum(np.log1p(self.S**2)))

    def root(self, W: Array) -> Array:
        """H W with H H' = P, for W (n, k); smooth in P for the same W."""
        return np.sqrt(self.D)[:, None] * self._corrected(W, 0.5)

    def _corrected(self, B: Array, power: float) -> Array:
        """(I + U S^2 U')^power B."""
        if not self.rank:
            return B.copy()
        # expm1 and log1p, so that small S keep their digits.
        return B + self.U @ (np.expm1(power * np.log1p(self.S**2))[:, None] * (self.U.T @ B))


def build(
    name: str, operator: GramOperator, rank: int, rng: np.random.Generator, pivots: Indices | None = None
) -> Preconditioner:
    """That preconditioner of K + D; smooth in the parameters where `pivots`, its rows, are given."""
    check(name, rank)
    n = operator.n
    diagonal = operator.diagonal()
    if not np.all(np.isfinite(diagonal)):
        row = int(np.argmin(np.isfinite(diagonal)))
        raise NumericalError(
            f"k(x, x) is {diagonal[row]} at row {row}: the kernel overflows there. Rescale the columns, or"
            " bound its parameters."
        )
    least = max(FLOOR * float(np.mean(diagonal, dtype=np.float64)), np.finfo(np.float64).tiny) if n else 1.0
    if name in ("none", "jacobi"):
        D = np.ones(n) if name == "none" else np.maximum(diagonal, least)
        return Preconditioner(D, np.zeros((n, 0)), np.zeros(0))
    if pivots is None:
        partial = pivoted_cholesky(operator.kernel, operator.X, min(rank, n), rng, rule=name)
        F, pivots = partial.F, partial.pivots
    else:  # the same F F' as that of a partial Cholesky factor with these pivots
        F = NystromMap(operator.kernel, operator.X[pivots]).block(operator.X)
    return Preconditioner.from_factor(F, np.maximum(operator.noise, least), pivots)


def check(name: str, rank: int) -> None:
    """Refuses a preconditioner that does not exist."""
    if name not in NAMES:
        raise ParameterError(
            f"preconditioner={name!r} is not known. Give one of {', '.join(map(repr, NAMES))}."
        )
    if not is_whole(rank):
        raise ParameterError(
            f'rank={rank!r} of the preconditioner must be a positive whole number; preconditioner="none"'
            " takes none."
        )
