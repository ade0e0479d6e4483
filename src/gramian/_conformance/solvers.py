"""What a solver and its factors promise."""

from __future__ import annotations

import numpy as np

from gramian._conformance.helpers import Subject
from gramian.arrays import Array
from gramian.errors import NumericalError
from gramian.gram.operator import GramOperator
from gramian.kernels import RBF
from gramian.solvers import Factor, Solver


def check_factor(solver: Solver, *, rtol: float = 1e-8) -> None:
    """Raises AssertionError unless `solver` keeps the contract of a solver, and its factors that of a factor.

    `rtol`: how far logdet and quad may be off, relative to their size; more than the default suits solvers
    that estimate them. A solve is held to the residual that its own outcome states, or to rounding where it
    states none.
    """
    it = Subject(repr(solver))
    rng = np.random.default_rng(20240229)
    for n in (1, 3, 30, 90):
        X = rng.standard_normal((n, 2))
        operator = GramOperator(1.3 * RBF(0.8), X, rng.uniform(0.05, 0.5, n))
        A = operator.kernel(X) + np.diag(operator.noise)
        logdet = np.linalg.slogdet(A)[1]
        allowed = rtol * n * max(1.0, abs(logdet))
        with it.keeping(operator.X, operator.noise, otherwise="factor() changed the data of its operator."):
            factor = solver.factor(operator)
            B = rng.standard_normal((n, 3))
            _check_solve(factor, A, B, it)
            it.within(factor.logdet(), logdet, allowed, "logdet()", "log det A is")
            quad = np.sum(B * np.linalg.solve(A, B))
            it.within(factor.quad(B), quad, rtol * max(1.0, quad), "quad(B)", "tr(B'A^-1 B) is")
            scaled = solver.factor(GramOperator(operator.kernel * 4.0, X, 4.0 * operator.noise)).logdet()
            it.within(scaled - n * np.log(4.0), logdet, allowed, "log det(4 A) - n log 4", "log det A is")
    _check_singular(solver, it)


def _check_solve(factor: Factor, A: Array, B: Array, it: Subject) -> None:
    with it.keeping(B, otherwise="solve(B) changed B."):
        x, outcome = factor.solve(B)
    it.shaped(x, B.shape, "solve(B)")
    it.must(outcome.converged, "solve(B) says it did not converge, on a matrix of condition number 1e3.")
    jitter = f"jitter {outcome.jitter:g} was added to a matrix that is positive definite."
    it.must(outcome.jitter == 0, jitter)
    promised = 10 * (outcome.residual or 0.0) + 1e-11
    residual = np.max(np.linalg.norm(A @ x - B, axis=0) / np.linalg.norm(B, axis=0))
    said = f"but the outcome promises {promised:.2g}"
    it.must(residual <= promised, f"|A x - b| / |b| is {residual:.2g}, {said}.")
    vector = factor.solve(B[:, 0]).value
    it.shaped(vector, B[:, 0].shape, "solve(b) for b of shape (n,)")
    worst = np.max(np.abs(vector - x[:, 0]))
    # a residual is amplified by the condition number at most
    allowed = 1e4 * promised * np.max(np.abs(vector))
    it.must(worst <= allowed, f"solve(b) and the same column of solve(B) differ by {worst:.2g}.")


def _check_singular(solver: Solver, it: Subject) -> None:
    """Equal rows without noise: an error of the library's own, or a finite answer that says what was done.
    Never NaN, and never silence."""
    X = np.array([[0.0], [1.0], [0.0], [2.0]])
    try:
        x, told = solver.factor(GramOperator(RBF(1.0), X, np.zeros(4))).solve(np.array([1.0, 2.0, 1.0, 0.5]))
    except NumericalError:
        return
    it.finite(x, "the solution of a singular system")
    a_word = told.jitter > 0 or not told.converged or told.note != "" or told.residual is not None
    it.must(a_word, "a singular matrix was solved without a word in the outcome: jitter, residual or note.")
