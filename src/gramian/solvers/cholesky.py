"""Dense Cholesky factorisation A = L L', in place: through LAPACK where that is safe, by panels
(linalg/panels.py) beyond.

Cost: n^3 / 3 flops for the factor, 2 n^2 for a solve; one array of n^2 doubles, of which the lower triangle
is used. `inverse_in_place` takes another 2 n^3 / 3 and no memory: that is all a gradient of the evidence
needs.

When A is not positive definite to rounding, a multiple of its mean diagonal is added, from a short ladder
that starts at nothing; the outcome says how much. Source: Golub and Van Loan, Matrix Computations, section
4.2; LAPACK dpotrf, dpotrs, dpotri, dtrtri.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from gramian.errors import NumericalError
from gramian.gram.operator import GramOperator
from gramian.linalg import panels
from gramian.solvers.base import Factor, Solution, SolveOutcome, Solver

Array = NDArray[np.float64]

# Rows. Beyond it panels are faster: 73 ms instead of 85 for factor and inverse at n = 2,000 on two cores, 481
# instead of 530 at 4,000. (Far beyond it LAPACK is at risk: SciPy's threaded dpotrf has been seen to end the
# process at n = 23,100.)
LAPACK_UP_TO = 512
# rows: as long as L^-1 takes seconds, a posterior keeps it, and its variances are products; beyond, it keeps
# L and divides
ROOT_UP_TO = 16_000
# of the mean diagonal: beyond 1e-6 the answer would be visibly another one
LADDER = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)


@dataclass(frozen=True)
class Cholesky(Solver):
    """Exact to rounding: the fastest exact method while n^2 doubles fit into memory."""

    ladder: tuple[float, ...] = LADDER

    def factor(
        self, operator: GramOperator, out: Array | None = None, report: panels.Report | None = None
    ) -> CholeskyFactor:
        """L for K + D. `out` is an array (n, n), Fortran-ordered, to work in; a fresh one otherwise.

        `report` is told the share of the work done, from time to time and never less than before; what it
        raises ends the work.
        """
        A = np.empty((operator.n, operator.n), order="F") if out is None else out
        info, tell = 0, None if report is None else _never_less(report)
        for jitter in self.ladder:
            operator.fill(A)
            diagonal = A.T.reshape(-1)[:: operator.n + 1]
            if not np.all(np.isfinite(diagonal)):
                row = int(np.argmin(np.isfinite(diagonal)))
                raise NumericalError(
                    f"k(x, x) is {diagonal[row]} at row {row}: the kernel overflows there. Rescale the"
                    " columns, or bound its parameters."
                )
            if jitter:
                diagonal += jitter * float(np.mean(diagonal))
            info = factor_in_place(A, tell)
            if info == 0:
                return CholeskyFactor(A, jitter)
        raise NumericalError(
            f"K + noise is not positive definite even with {self.ladder[-1]:g} of its mean diagonal added: it"
            f" fails at row {info - 1}, which the rows before it determine. Let noise be learned or larger,"
            " or remove rows that repeat others."
        )


@dataclass(frozen=True, eq=False)
class CholeskyFactor(Factor):
    """L with L L' = A, in the lower triangle of a Fortran-ordered array."""

    L: Array
    jitter: float = 0.0

    def solve(self, B: Array) -> Solution:
        # A vector is solved as a matrix of one column: the two LAPACK paths may round differently.
        X = np.array(B, dtype=np.float64).reshape(len(B), -1).copy(order="F")
        if len(X) <= LAPACK_UP_TO:
            X, _ = lapack.dpotrs(self.L, X, lower=1, overwrite_b=1)
        else:
            panels.solve(self.L, X)
        return Solution(X.reshape(B.shape), SolveOutcome(jitter=self.jitter))

    def logdet(self) -> float:
        return 2 * float(np.sum(np.log(np.diagonal(self.L))))

    def divide_in_place(self, B: Array) -> Array:
        """L^-1 B in B's own memory, for B (n, k), Fortran-ordered: the part of k(X, x) that the data explain,
        without L^-1 ever made."""
        panels.divide(self.L, B)
        return B

    def inverse_diagonal(self, report: panels.Report | None = None) -> Array:
        """The diagonal of A^-1: n^3 / 3 flops, and the memory of one panel."""
        return panels.inverse_diagonal(self.L, report)


def factor_in_place(A: Array, report: panels.Report | None = None) -> int:
    """Overwrites the lower triangle of A; returns LAPACK's info: 0, or one more than the row that failed."""
    if len(A) > LAPACK_UP_TO:
        return panels.factor(A, report)
    result, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
    assert np.shares_memory(result, A)
    if info == 0 and not np.all(np.isfinite(np.diagonal(result))):
        return int(np.argmin(np.isfinite(np.diagonal(result)))) + 1  # NaN passes LAPACK's test of a pivot
    if info == 0 and report is not None:
        report(1.0)
    return int(info)


def inverse_in_place(factor: CholeskyFactor, report: panels.Report | None = None) -> Array:
    """A^-1 in the lower triangle of the factor's own memory; the factor is used up."""
    if len(factor.L) > LAPACK_UP_TO:
        panels.inverse(factor.L, report)
        return factor.L
    inverse, info = lapack.dpotri(factor.L, lower=1, overwrite_c=1)
    assert info == 0
    assert np.shares_memory(inverse, factor.L)
    if report is not None:
        report(1.0)
    return inverse


def inverse_root_in_place(factor: CholeskyFactor, report: panels.Report | None = None) -> Array:
    """L^-1 in the lower triangle of the factor's own memory, zeros above; the factor is used up."""
    root = factor.L
    if len(root) > LAPACK_UP_TO:
        panels.inverse_root(root, report)
    else:
        root, info = lapack.dtrtri(root, lower=1, overwrite_c=1)
        assert info == 0
        if report is not None:
            report(1.0)
    # by panels: np.tril of the whole would take another array of n^2
    for start in range(0, root.shape[1], 512):
        stop = start + 512
        root[:start, start:stop] = 0.0
        root[start:stop, start:stop] = np.tril(root[start:stop, start:stop])
    return root


def squared_times(root: Array, b: Array) -> Array:
    """R'R b for b (n,) and a lower triangular root R: A^-1 b, where it is A's inverse root."""
    return blas.dtrmv(root, blas.dtrmv(root, b, lower=1), lower=1, trans=1)


def _never_less(report: panels.Report) -> panels.Report:
    """The same, but told the highest share so far: a rung of the ladder that fails starts the work again."""
    highest = 0.0

    def tell(share: float) -> None:
        nonlocal highest
        highest = max(highest, share)
        report(highest)

    return tell
