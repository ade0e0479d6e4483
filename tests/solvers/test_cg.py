"""Conjugate gradients: equal to Cholesky within the tolerance, honest residuals, log determinants within
their standard errors."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import NumericalError, ParameterError
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.solvers import Cholesky
from gramian.solvers.cg import CG, pcg
from gramian.testing import check_factor

NAMES = ("none", "jacobi", "pivoted", "rpcholesky")


def operator(n, noise=0.1, seed=0, kernel=None):
    X = np.random.default_rng(seed).uniform(-2, 2, (n, 2))
    return GramOperator(1.2 * gm.RBF(0.9) if kernel is None else kernel, X, np.full(n, noise))


def dense(op):
    return op.kernel(op.X) + np.diag(op.noise)


def residuals(op, X, B):
    return np.linalg.norm(B - dense(op) @ X, axis=0) / np.linalg.norm(B, axis=0)


@pytest.mark.parametrize("name", NAMES)
def test_contract(name):
    """Rank 200 is exact for the 90 rows of the suite; without it log det is an estimate, within a few per
    cent of n."""
    check_factor(
        CG(tol=1e-9, preconditioner=name, probes=64), rtol=1e-7 if name in ("pivoted", "rpcholesky") else 0.02
    )


@pytest.mark.parametrize("n", [799, 800, 801, 3000])
def test_agrees_with_cholesky(n):
    """|x - x*| <= |A^-1| |r| <= tol |b| / noise; n around a multiple of small blocks, and one of several
    tiles."""
    op = operator(n, 0.3)
    B = np.random.default_rng(1).normal(size=(n, 3))
    value, outcome = CG(tol=1e-8).factor(op).solve(B)
    exact = Cholesky().factor(op).solve(B).value
    assert outcome.converged
    assert outcome.residual <= 1e-8
    assert np.all(np.linalg.norm(value - exact, axis=0) <= 1e-8 / 0.3 * np.linalg.norm(B, axis=0))


@pytest.mark.parametrize("float32", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_stated_residual_is_the_true_one(name, float32):
    op = operator(600, 0.01)
    # float32 alone would hold neither of the two in the middle
    B = np.random.default_rng(1).normal(size=(600, 4)) * [1.0, 1e-40, 1e30, 0.0]
    value, outcome = CG(tol=1e-7, preconditioner=name, rank=30, float32=float32).factor(op).solve(B)
    true = residuals(op, value[:, :3], B[:, :3])
    assert outcome.converged
    assert outcome.note == ""
    assert_allclose(outcome.residual, np.max(true), rtol=1e-3)
    assert np.max(true) <= 1e-7
    assert np.all(value[:, 3] == 0)


def test_float32_steps_reach_what_float32_cannot():
    """A residual of 1e-11 is far below the rounding of float32, 6e-8; the products in between were made in
    it."""
    op = operator(700, 0.1)
    b = np.random.default_rng(1).normal(size=700)
    solver = CG(tol=1e-11, preconditioner="jacobi", float32=True)
    factor = solver.factor(op)
    asked = []
    original = tiles.matmul
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiles, "matmul", lambda *a: asked.append(a[4]) or original(*a))
        value, outcome = factor.solve(b)
    assert outcome.converged
    assert residuals(op, value[:, None], b[:, None]) <= 1e-11
    assert asked.count(np.float32) > 3 * asked.count(np.float64) >= 3
    alone = pcg(lambda V: op.matmul(V, np.float32), factor.preconditioner.solve, b[:, None], 1e-11, 1000).X
    assert residuals(op, alone, b[:, None]) > 1e-9  # or the test is blind


def test_float64_takes_over_where_float32_is_of_no_use():
    """Without centring (a linear part forbids it) float32 sees only a coarse grid of these inputs, a
    different matrix."""
    X = 1e6 + np.random.default_rng(0).uniform(0, 3, (300, 1))
    op = GramOperator(gm.RBF(0.5) + gm.Linear(1e-14), X, np.full(300, 1e-3))
    b = np.random.default_rng(1).normal(size=300)
    value, outcome = CG(tol=1e-7, float32=True, rank=20).factor(op).solve(b)
    assert outcome.converged
    assert residuals(op, value[:, None], b[:, None]) <= 1e-7


def test_columns_are_solved_as_if_alone():
    op = operator(300, 0.05)
    B = np.random.default_rng(1).normal(size=(300, 3))
    B[:, 1] = dense(op) @ np.ones(300)  # needs fewer steps
    factor = CG(tol=1e-10, preconditioner="jacobi").factor(op)
    together = factor.solve(B)
    alone = [factor.solve(B[:, k]) for k in range(3)]
    # BLAS rounds one column and three differently
    assert abs(together.outcome.iterations - max(s.outcome.iterations for s in alone)) <= 3
    assert min(s.outcome.iterations for s in alone) < max(s.outcome.iterations for s in alone)
    for k, s in enumerate(alone):
        assert_allclose(together.value[:, k], s.value, atol=1e-8 * np.max(np.abs(s.value)))


def test_a_converged_column_leaves_the_product():
    widths = []
    A = np.diag(np.linspace(1, 100, 50))
    B = np.column_stack([np.eye(50)[0], np.ones(50)])  # an eigenvector: one step

    def product(V):
        widths.append(V.shape[1])
        return A @ V

    run = pcg(product, lambda V: V.copy(), B, 1e-10, 200)
    assert widths[0] == 2
    assert set(widths[1:]) == {1}
    assert_allclose(run.X, np.linalg.solve(A, B), atol=1e-9)


def test_published_recurrence():
    """After m steps x minimises the energy norm of the error over the span of P^-1 b, (P^-1 A) P^-1 b, ... :
    what defines CG (and no lookalike)."""
    rng = np.random.default_rng(0)
    G = rng.normal(size=(12, 12))
    A, p, b = G @ G.T + np.eye(12), rng.uniform(0.5, 2.0, 12), rng.normal(size=12)
    for m in (1, 2, 4):
        K = np.column_stack([np.linalg.matrix_power(A / p[:, None], j) @ (b / p) for j in range(m)])
        best = K @ np.linalg.solve(K.T @ A @ K, K.T @ b)
        run = pcg(lambda V: A @ V, lambda V: V / p[:, None], b[:, None], 1e-14, m)
        assert run.iterations == m
        assert_allclose(run.X[:, 0], best, rtol=1e-7, atol=1e-9)


def test_preconditioner_saves_steps():
    """A smooth kernel has few large eigenvalues. Rank 60 takes nearly all of them: what is left has condition
    number 1 + l_61 / noise."""
    op = operator(500, 1e-3)
    b = np.random.default_rng(1).normal(size=500)
    values = np.linalg.eigvalsh(op.kernel(op.X))
    steps = {
        name: CG(preconditioner=name, rank=60, float32=False).factor(op).solve(b).outcome.iterations
        for name in NAMES
    }
    for name in ("pivoted", "rpcholesky"):
        P = CG(preconditioner=name, rank=60).factor(op).preconditioner
        rest = op.kernel(op.X) + np.diag(op.noise) - np.linalg.inv(P.solve(np.eye(500)))
        cond = 1 + max(np.linalg.eigvalsh(rest)[-1], 0) / 1e-3
        # Golub and Van Loan, section 11.3; the residual is at most sqrt(cond(A)) times the energy error.
        bound = np.log(2 * np.sqrt(values[-1] / 1e-3) * 1e6) / np.log(
            (np.sqrt(cond) + 1) / (np.sqrt(cond) - 1)
        )
        assert steps[name] <= bound + 1
        assert steps[name] < steps["none"] / 5
    # a constant diagonal: the same iteration but for rounding
    assert_allclose(steps["jacobi"], steps["none"], rtol=0.1)


def test_a_missed_tolerance_is_said():
    op = operator(400, 1e-5)
    B = np.random.default_rng(1).normal(size=(400, 2))
    value, outcome = CG(preconditioner="none", max_iter=10).factor(op).solve(B)
    assert not outcome.converged
    assert outcome.iterations == 10
    assert_allclose(outcome.residual, np.max(residuals(op, value, B)), rtol=1e-6)
    assert "times the tolerance 1e-06, after 10 steps, all that were allowed. Raise max_iter" in outcome.note


def test_attainable_accuracy_is_said():
    op = operator(200, 1e-9)
    _, outcome = (
        CG(tol=1e-15, rank=20, max_iter=300).factor(op).solve(np.random.default_rng(1).normal(size=200))
    )
    assert not outcome.converged
    assert outcome.iterations < 300 or "all that were allowed" in outcome.note
    assert outcome.residual > 1e-15


class Negative(gm.Kernel):
    """Not a kernel at all."""

    def pair(self, x, z):
        return -1.0 - 0.0 * (x[0] + z[0])


def test_indefinite_matrices_are_noticed():
    factor = CG(preconditioner="none").factor(GramOperator(Negative(), np.arange(3.0)[:, None], np.zeros(3)))
    solution = factor.solve(np.ones(3))
    assert not solution.outcome.converged
    assert "not positive definite" in solution.outcome.note
    assert np.all(np.isfinite(solution.value))
    with pytest.raises(NumericalError, match="not positive definite to rounding"):
        factor.logdet()


def test_an_interrupt_ends_a_solve_and_leaves_the_factor_usable(monkeypatch):
    factor = CG(preconditioner="none", float32=True).factor(operator(200, 1e-3))
    b, original, left = np.ones(200), tiles.matmul, iter(range(5))

    def stop(*arguments):
        if next(left, None) is None:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(tiles, "matmul", stop)
    with pytest.raises(KeyboardInterrupt):
        factor.solve(b)
    monkeypatch.undo()
    assert factor.solve(b).outcome.converged


# Log determinants. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_logdet_within_its_standard_error(name):
    """z-scores of 24 seeds: all below 4, and their mean square near 1 (it is F(1, 15)-like: between 0.3 and
    2.5 for an honest error)."""
    op = operator(120, 0.05, kernel=1.2 * gm.Matern32(0.5))
    exact = Cholesky().factor(op).logdet()
    scores = []
    for seed in range(24):
        value, error = CG(preconditioner=name, rank=10, seed=seed, tol=1e-4).factor(op).logdet_estimate()
        scores.append((value - exact) / error)
    assert np.max(np.abs(scores)) < 4
    assert 0.3 < np.mean(np.square(scores)) < 2.5
    assert abs(np.mean(scores)) < 4 / np.sqrt(24)


def test_a_preconditioner_shrinks_the_standard_error():
    op = operator(300, 0.05)
    errors = {
        name: CG(preconditioner=name, rank=60).factor(op).logdet_estimate()[1]
        for name in ("none", "rpcholesky")
    }
    assert errors["rpcholesky"] < 0.1 * errors["none"]


def test_logdet_is_exact_at_full_rank_and_for_a_multiple_of_P():
    op = operator(150)
    assert_allclose(CG(rank=150).factor(op).logdet(), Cholesky().factor(op).logdet(), rtol=1e-9)
    far = GramOperator(gm.RBF(1.0), 100.0 * np.arange(50.0)[:, None], np.full(50, 0.5))  # 1.5 I
    value, error = CG(preconditioner="none").factor(far).logdet_estimate()
    assert_allclose(value, 50 * np.log(1.5), rtol=1e-12)
    assert error < 1e-10


def test_same_seed_same_numbers_and_another_seed_others():
    op = operator(200, 0.05)
    one, again, other = (CG(seed=s, rank=10).factor(op).logdet() for s in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize("name", ["jacobi", "rpcholesky"])
def test_common_random_numbers_make_a_smooth_function(name):
    """Slopes over steps of 1e-3 and 5e-4 agree to O(h^2) and the solver's 1e-10, where fresh probes would
    differ by 0.3 / 1e-3."""
    base = CG(tol=1e-10, preconditioner=name, rank=20, probes=4)
    fixed = dataclasses.replace(base, pivots=base.factor(operator(200, 0.05)).preconditioner.pivots)

    def at(lengthscale):
        return fixed.factor(operator(200, 0.05, kernel=1.2 * gm.RBF(lengthscale))).logdet()

    slopes = [(at(0.9 + h) - at(0.9 - h)) / (2 * h) for h in (1e-3, 5e-4)]
    assert_allclose(slopes[0], slopes[1], rtol=1e-3)
    # and not because there is nothing to estimate
    assert base.factor(operator(200, 0.05)).logdet_estimate()[1] > 1e-2


@pytest.mark.parametrize("name", ["none", "rpcholesky"])
def test_probe_pairs_estimate_traces_without_bias(name):
    """tr(A^-1 M) for a symmetric M and one that is not, over 25 seeds of 16 probes: within 4 standard
    errors."""
    op = operator(120, 0.1)
    inverse = np.linalg.inv(dense(op))
    for M in (op.kernel(op.X), np.random.default_rng(5).normal(size=(120, 120))):
        values = []
        for seed in range(25):
            U, V = CG(preconditioner=name, rank=15, seed=seed, tol=1e-8).factor(op).probe_pair()
            values.append(np.sum(U * (M @ V)) / U.shape[1])
        assert abs(np.mean(values) - np.trace(inverse @ M)) < 4 * np.std(values, ddof=1) / np.sqrt(25)


def test_probes_in_float32_give_the_same_log_determinant():
    """Kernel values off by 6e-8 move log det A by at most n 6e-8 |A^-1|, 3e-4 here; and probe solves are
    corrected to the tolerance."""
    op = operator(500, 0.05)
    low, high = (CG(preconditioner="jacobi", tol=1e-8, float32=f).factor(op) for f in (True, False))
    assert_allclose(low.logdet(), high.logdet(), atol=3e-4)
    assert low.probe_outcome.converged
    assert low.probe_outcome.residual <= 1e-8
    assert_allclose(
        low.probe_pair()[0], high.probe_pair()[0], atol=1e-6 * np.max(np.abs(high.probe_pair()[0]))
    )


def test_probes_that_miss_the_tolerance_are_said():
    factor = CG(preconditioner="none", max_iter=5).factor(operator(300, 1e-3))
    factor.logdet()
    assert not factor.probe_outcome.converged
    assert "all that were allowed" in factor.probe_outcome.note


def test_settings():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CG().tol = 1.0
    for bad in (
        {"tol": 0.0},
        {"tol": 1.5},
        {"tol": float("nan")},
        {"max_iter": 0},
        {"probes": 2.5},
        {"rank": 0},
        {"preconditioner": "ilu"},
    ):
        with pytest.raises(ParameterError, match=r"tol|max_iter|probes|rank|ilu"):
            CG(**bad)
