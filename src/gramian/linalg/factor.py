"""Cholesky factorisation A = L L' for everybody, in place: LAPACK for few rows, tiles (linalg/panels.py)
beyond; BLAS works on one thread.

Cost: n^3 / 3 flops for the factor, 2 n^2 for a solve, n^3 / 3 for L^-1 and 2 n^3 / 3 for A^-1, all in one
Fortran-ordered array of n^2 doubles, of which the lower triangle is used.

When A is not positive definite to rounding, a multiple of its mean diagonal is added, from one short ladder
that starts at nothing; `factored` says how much. Who knows better starts higher: landmarks, which lie close
to each other, at 1e-12; chains, whose whitened variables belong to one factor, at 1e-8 and nowhere else
(`ladder=(1e-8,)`); searches in float32, which knows kernel values to 1e-7, at 1e-6.

Source: Golub and Van Loan, Matrix Computations, section 4.2; LAPACK dpotrf, dpotrs, dpotri, dtrtri.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy.linalg import blas, lapack

from gramian.arrays import Array
from gramian.errors import NumericalError
from gramian.linalg import panels
from gramian.linalg.blas import check_info
from gramian.linalg.panels import Report
from gramian.linalg.threads import one_blas_thread

Fill = Callable[[Array, float], object]

# Rows: two tiles. Beyond it several threads find work. (Far beyond it LAPACK is at risk: SciPy's threaded
# dpotrf has been seen to end the process at n = 23,100.)
LAPACK_UP_TO = 512
# of the mean diagonal: beyond 1e-6 the answer would be visibly another one
LADDER = (0.0, 1e-12, 1e-10, 1e-8, 1e-6)
CURE = "Let noise be learned or larger, or remove rows that repeat others."


def factored(
    fill: Fill,
    room: int | Array,
    *,
    least: float = 0.0,
    ladder: Sequence[float] = LADDER,
    what: str = "K + noise",
    cure: str = CURE,
    report: Report | None = None,
) -> tuple[Array, float]:
    """L in the lower triangle of an array (n, n), and the jitter that it took: a share of the mean diagonal.

    `room`: that array, Fortran-ordered, or n for a fresh one. `fill(A, jitter)` writes the lower triangle of
    A, once a rung, since a rung that fails has used it up; values need be no more accurate than a small part
    of the jitter, which is added here. `least`: the first rung, for those that never go without. `report` is
    told the share of the work done, never less than before; what it raises ends the work.
    """
    A = np.empty((room, room), order="F") if isinstance(room, int) else room
    diagonal = A.T.reshape(-1)[:: len(A) + 1]  # a view
    rungs = (least, *(rung for rung in ladder if rung > least)) if least else tuple(ladder)
    row, tell = 0, None if report is None else _never_less(report)
    for jitter in rungs:
        fill(A, jitter)
        with np.errstate(over="ignore", invalid="ignore"):
            typical = float(np.mean(diagonal)) if jitter else 0.0
        if not (finite(diagonal) and math.isfinite(typical)):
            row = int(np.argmax(np.where(np.isfinite(diagonal), diagonal, np.inf)))
            raise NumericalError(
                f"k(x, x) is {diagonal[row]} at row {row}: the kernel overflows there. Rescale the columns,"
                " or bound its parameters."
            )
        if jitter:
            diagonal += jitter * typical
        info = factor_in_place(A, tell)
        if info == 0:
            return A, jitter
        row = info - 1
    even = f" even with {rungs[-1]:g} of its mean diagonal added" if rungs[-1] else ""
    raise NumericalError(
        f"{what} is not positive definite{even}: it fails at row {row}, which the rows before it determine."
        f" {cure}"
    )


def factor_in_place(A: Array, report: Report | None = None) -> int:
    """L in the lower triangle of A; returns LAPACK's info: 0, or one more than the row that failed."""
    if len(A) > LAPACK_UP_TO:
        return panels.factor(A, report)
    with one_blas_thread():
        result, info = lapack.dpotrf(A, lower=1, clean=0, overwrite_a=1)
    _kept(result, A)
    if info == 0 and not finite(A.diagonal()):
        return int(np.argmin(np.isfinite(A.diagonal()))) + 1  # NaN passes LAPACK's test of a pivot
    if info == 0 and report is not None:
        report(1.0)
    return int(info)


def logdet(L: Array) -> float:
    """log det (L L')."""
    return 2 * float(np.log(L.diagonal()).sum())


def finite(a: Array) -> bool:
    """Whether all numbers of an array are finite."""
    with np.errstate(over="ignore", invalid="ignore"):  # a sum takes half the time, and may overflow
        total = a.sum()
    return math.isfinite(total) or bool(np.isfinite(a).all())


def solve(L: Array, B: Array) -> Array:
    """(L L')^-1 B for B (n,) or (n, k), which is left alone."""
    # A vector is solved as a matrix of one column: the two LAPACK paths may round differently.
    if not B.size:  # no row: LAPACK refuses
        return np.array(B, dtype=np.float64)
    X = np.array(B.reshape(len(B), -1), dtype=np.float64, order="F")
    if len(X) <= LAPACK_UP_TO:
        with one_blas_thread():
            X, info = lapack.dpotrs(L, X, lower=1, overwrite_b=1)
        check_info(info, "dpotrs")
    else:
        panels.solve(L, X)
    return X.reshape(B.shape)


def inverse_in_place(L: Array) -> Array:
    """(L L')^-1 in the lower triangle of L's own memory."""
    return _in_place(L, panels.inverse, "dpotri")


def square_in_place(W: Array) -> Array:
    """W' W in the lower triangle of W's own memory, for a lower triangle W with zeros above."""
    return _in_place(W, panels.square, "dlauum")


def inverse_root_in_place(L: Array) -> Array:
    """L^-1 in L's own memory, zeros above."""
    return zeros_above(_in_place(L, panels.inverse_root, "dtrtri"))


def _in_place(L: Array, by_panels: Callable[[Array], object], routine: str) -> Array:
    """L, overwritten: by LAPACK where there are few rows."""
    if len(L) > LAPACK_UP_TO:
        by_panels(L)
        return L
    with one_blas_thread():
        result, info = getattr(lapack, routine)(L, lower=1, overwrite_c=1)
    check_info(info, routine)
    _kept(result, L)
    return L


def _kept(result: Array, array: Array) -> None:
    """SciPy works on a copy where an array is not as LAPACK takes it: nobody would see the result."""
    if result is not array:
        raise ValueError("factorisations in place take Fortran-ordered arrays of float64")


def zeros_above(L: Array) -> Array:
    """L itself, with zeros above its diagonal."""
    # by panels: np.tril of the whole would take another array of n^2
    for start in range(0, L.shape[1], 512):
        stop = start + 512
        L[:start, start:stop] = 0.0
        L[start:stop, start:stop] = np.tril(L[start:stop, start:stop])
    return L


def squared_times(root: Array, b: Array) -> Array:
    """R'R b for b (n,) and a lower triangular root R: A^-1 b, where it is A's inverse root."""
    with one_blas_thread():
        return blas.dtrmv(root, blas.dtrmv(root, b, lower=1), lower=1, trans=1)


def _never_less(report: Report) -> Report:
    """The same, but told the highest share so far: a rung of the ladder that fails starts the work again."""
    highest = 0.0

    def tell(share: float) -> None:
        nonlocal highest
        highest = max(highest, share)
        report(highest)

    return tell
