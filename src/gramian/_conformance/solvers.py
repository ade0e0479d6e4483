"""What a solver and its factors promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gramian._conformance.helpers import close, require
from gramian.errors import NumericalError
from gramian.gram.operator import GramOperator
from gramian.kernels import RBF
from gramian.solvers import Factor, Solver

Array = NDArray[np.float64]


def check_factor(solver: Solver, *, rtol: float = 1e-8) -> None:
    """Raises AssertionError unless `solver` keeps the contract of a solver, and its factors that of a factor.

    `rtol`: how far logdet and quad may be off, relative to their size; more than the default suits solvers
    that estimate them. A solve is held to the residual that its own outcome states, or to rounding where it
    states none.
    """
    name = repr(solver)
    rng = np.random.default_rng(20240229)
    for n in (1, 3, 30, 90):
        X = rng.standard_normal((n, 2))
        operator = GramOperator(1.3 * RBF(0.8), X, rng.uniform(0.05, 0.5, n))
        A = operator.kernel(X) + np.diag(operator.noise)
        before = (operator.X.copy(), operator.noise.copy())
        factor = solver.factor(operator)
        B = rng.standard_normal((n, 3))
        _check_solve(factor, A, B, name)
        logdet = float(np.linalg.slogdet(A)[1])
        require(
            close(factor.logdet(), logdet, rtol * max(1.0, n)),
            f"{name}: logdet() is {factor.logdet():.12g}, but log det A is {logdet:.12g}.",
        )
        quad = float(np.sum(B * np.linalg.solve(A, B)))
        require(
            close(factor.quad(B), quad, rtol),
            f"{name}: quad(B) is {factor.quad(B):.12g}, but tr(B'A^-1 B) is {quad:.12g}.",
        )
        scaled = solver.factor(
            GramOperator(operator.kernel * 4.0, X, 4.0 * operator.noise)
        ).logdet() - n * float(np.log(4.0))
        require(
            close(scaled, logdet, rtol * max(1.0, n)), f"{name}: log det(4 A) is not n log 4 + log det A."
        )
        unchanged = np.array_equal(before[0], operator.X) and np.array_equal(before[1], operator.noise)
        require(unchanged, f"{name}: factor() changed the data of its operator.")
    _check_singular(solver, name)


def _check_solve(factor: Factor, A: Array, B: Array, name: str) -> None:
    given = B.copy()
    solution = factor.solve(B)
    require(np.array_equal(given, B), f"{name}: solve(B) changed B.")
    require(
        solution.value.shape == B.shape,
        f"{name}: solve(B) has shape {solution.value.shape}, but B has {B.shape}.",
    )
    require(
        solution.outcome.converged,
        f"{name}: solve(B) says it did not converge, on a matrix of condition number 1e3.",
    )
    require(
        solution.outcome.jitter == 0,
        f"{name}: jitter {solution.outcome.jitter:g} was added to a matrix that is positive definite.",
    )
    promised = 1e-11 if solution.outcome.residual is None else 10 * solution.outcome.residual + 1e-11
    residual = float(np.max(np.linalg.norm(A @ solution.value - B, axis=0) / np.linalg.norm(B, axis=0)))
    require(
        residual <= promised,
        f"{name}: |A x - b| / |b| is {residual:.2g}, but the outcome promises {promised:.2g}.",
    )
    vector = factor.solve(B[:, 0]).value
    require(vector.shape == B[:, 0].shape, f"{name}: solve(b) for b of shape (n,) has shape {vector.shape}.")
    worst = float(np.max(np.abs(vector - solution.value[:, 0])))
    # a residual is amplified by the condition number at most
    allowed = 1e4 * promised * float(np.max(np.abs(vector)))
    require(worst <= allowed, f"{name}: solve(b) and the same column of solve(B) differ by {worst:.2g}.")


def _check_singular(solver: Solver, name: str) -> None:
    """Equal rows without noise: an error of the library's own, or a finite answer that says what was done.
    Never NaN, and never silence."""
    X = np.array([[0.0], [1.0], [0.0], [2.0]])
    try:
        solution = solver.factor(GramOperator(RBF(1.0), X, np.zeros(4))).solve(np.array([1.0, 2.0, 1.0, 0.5]))
    except NumericalError:
        return
    require(
        bool(np.all(np.isfinite(solution.value))),
        f"{name}: a singular matrix gives a solution that is not finite.",
    )
    told = (
        solution.outcome.jitter > 0
        or not solution.outcome.converged
        or bool(solution.outcome.note)
        or solution.outcome.residual is not None
    )
    require(
        told, f"{name}: a singular matrix was solved without a word in the outcome: jitter, residual or note."
    )
