"""Dense Cholesky factorisation A = L L', in place, through LAPACK.

Cost: n^3 / 3 flops for the factor, n^2 for a solve; one array of n^2 doubles, of which the lower triangle is used. `inverse_in_place` (dpotri)
takes another 2 n^3 / 3 and no memory: that is all a gradient of the evidence needs.

When A is not positive definite to rounding, a multiple of its mean diagonal is added, from a short ladder that starts at nothing; the outcome
says how much. Source: Golub and Van Loan, Matrix Computations, section 4.2; LAPACK dpotrf, dpotrs, dpotri, dtrtri.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from gramian.errors import NumericalError
from gramian.gram.operator import GramOperator
from gramian.solvers.base import Factor, Solution, SolveOutcome, Solver

Array = NDArray[np.float64]

# SciPy's threaded dpotrf has been seen to end the process at n = 23,100 (2 threads); 21,500 ran. Well below it nothing is at risk.
MAX_ROWS = 16_000
LADDER = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)  # of the mean diagonal: beyond 1e-6 the answer would be visibly another one


@dataclass(frozen=True)
class Cholesky(Solver):
    """Exact to rounding: the fastest exact method while n^2 doubles fit into memory."""

    ladder: tuple[float, ...] = LADDER

    def factor(self, operator: GramOperator, out: Array | None = None) -> CholeskyFactor:
        """L for K + D. `out` is an array (n, n), Fortran-ordered, to work in; a fresh one otherwise."""
        A = np.empty((operator.n, operator.n), order="F") if out is None else out
        info = 0
        for jitter in self.ladder:
            operator.fill(A)
            diagonal = A.T.reshape(-1)[:: operator.n + 1]
            if not np.all(np.isfinite(diagonal)):
                row = int(np.argmin(np.isfinite(diagonal)))
                raise NumericalError(
                    f"k(x, x) is {diagonal[row]} at row {row}: the kernel overflows there. Rescale the columns, or bound its parameters."
                )
            if jitter:
                diagonal += jitter * float(np.mean(diagonal))
            info = _potrf(A)
            if info == 0:
                return CholeskyFactor(A, jitter)
        raise NumericalError(
            f"K + noise is not positive definite even with {self.ladder[-1]:g} of its mean diagonal added: it fails at row {info - 1}, "
            "which the rows before it determine. Let noise be learned or larger, or remove rows that repeat others."
        )


@dataclass(frozen=True, eq=False)
class CholeskyFactor(Factor):
    """L with L L' = A, in the lower triangle of a Fortran-ordered array."""

    L: Array
    jitter: float = 0.0

    def solve(self, B: Array) -> Solution:
        # A vector is solved as a matrix of one column: the two LAPACK paths may round differently.
        value, _ = lapack.dpotrs(self.L, B.reshape(len(B), -1), lower=1)
        return Solution(value.reshape(B.shape), SolveOutcome(jitter=self.jitter))

    def logdet(self) -> float:
        return 2 * float(np.sum(np.log(np.diagonal(self.L))))


def inverse_in_place(factor: CholeskyFactor) -> Array:
    """A^-1 in the lower triangle of the factor's own memory; the factor is used up."""
    inverse, info = lapack.dpotri(factor.L, lower=1, overwrite_c=1)
    assert info == 0
    assert inverse is factor.L or np.shares_memory(inverse, factor.L)
    return inverse


def inverse_root_in_place(factor: CholeskyFactor) -> Array:
    """L^-1 in the lower triangle of the factor's own memory, zeros above; the factor is used up."""
    root, info = lapack.dtrtri(factor.L, lower=1, overwrite_c=1)
    assert info == 0
    for start in range(0, root.shape[1], 512):  # by panels: np.tril of the whole would take another array of n^2
        stop = start + 512
        root[:start, start:stop] = 0.0
        root[start:stop, start:stop] = np.tril(root[start:stop, start:stop])
    return root


def _potrf(A: Array) -> int:
    """Overwrites the lower triangle of A; returns LAPACK's info: 0, or one more than the row that failed."""
    result, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
    assert np.shares_memory(result, A)
    if info == 0 and not np.all(np.isfinite(np.diagonal(result))):
        return int(np.argmin(np.isfinite(np.diagonal(result)))) + 1  # NaN passes LAPACK's test of a pivot
    return int(info)
