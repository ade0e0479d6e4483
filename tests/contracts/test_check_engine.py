"""`check_engine`: every engine of the library passes, a solver of one's own too, and what breaks a promise
does not."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gramian as gm
from gramian.engines.dense import DensePrior
from gramian.engines.lowrank import LowRank
from gramian.linalg.cost import Cost
from gramian.testing import check_engine
from tests.contracts.solvers import Direct, UnitProbes

ENGINES = {
    "exact": gm.Exact(),
    "nystrom": gm.Nystrom(8),
    "nystrom of all rows": gm.Nystrom(1000, "uniform"),
    "fourier": gm.Fourier(12),
    "fourier, sorf": gm.Fourier(16, "sorf"),
    "vfe": gm.Sparse(7),
    "fitc": gm.Sparse(7, "fitc"),
    "dtc": gm.Sparse(7, "dtc"),
    "vfe, learned": gm.Sparse(5, "vfe", "kmeans", optimize_inducing=True),
    "fitc, learned": gm.Sparse(5, "fitc", "kmeans", optimize_inducing=True),
    "dtc, learned": gm.Sparse(5, "dtc", "kmeans", optimize_inducing=True),
    "neighbours, all rows": gm.Neighbours(100),
    "points as given": gm.Sparse(inducing=[[0.0, 1.0], [-1.0, 0.5], [1.0, -0.7]]),
}


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_engines(engine):
    check_engine(engine)


@pytest.mark.parametrize(
    "engine", [gm.Exact(), gm.Nystrom(6), gm.Sparse(6, "fitc"), gm.Neighbours(40)], ids=str
)
def test_engines_with_another_kernel(engine):
    check_engine(engine, gm.Periodic(1.3, 0.9) * gm.RBF(2.0) + 0.3 * gm.Linear(1.0), n=21, d=1)


# The solver's own tolerance; variances, one solve each, keep it with a factor of ten.
@pytest.mark.parametrize("solver", [gm.CG(tol=1e-9), gm.MINRES(tol=1e-9)], ids=lambda solver: solver.name)
def test_krylov(solver):
    check_engine(gm.Krylov(solver), rtol=1e-7, probes=16)


def test_krylov_with_a_weak_preconditioner():
    check_engine(gm.Krylov(gm.CG(tol=1e-9, rank=3, probes=16)), rtol=1e-7, probes=16)


def test_krylov_with_a_solver_of_ones_own():
    check_engine(gm.Krylov(Direct()), probes=32)
    check_engine(gm.Krylov(UnitProbes()), probes=10**12)  # its traces are exact


# What does not pass. ----------------------------------------------------------------------------------------


class Told:
    """A Conditioned whose answer to one question is off."""

    def __init__(self, one, question):
        self.one, self.question = one, question

    def __getattr__(self, name):
        value = getattr(self.one, name)
        if name != self.question:
            return value
        if name == "outcome":
            return dataclasses.replace(value, converged=False)
        if not callable(value):
            return 1.001 * value
        return lambda *args, **more: 1.001 * value(*args, **more)

    def pullback(self, *args, **more):
        found = self.one.pullback(*args, **more)
        if self.question == "by_kernel":
            return found._replace(by_kernel=found.by_kernel[::-1])
        if self.question == "by_level":
            return found._replace(by_level=1.001 * found.by_level)
        return found


class StrangePrior(DensePrior):
    promise = ""

    def times(self, b):
        if self.promise == "changes b":
            b[0] += 1e-15 * (b.shape[1:] == (3,))
        if self.promise == "a column for a vector":
            return super().times(b).reshape(len(b), -1)
        out = super().times(b)
        return out * 1.0001 if self.promise == "another kernel" else out

    def observe(self, D, r, report=None):
        if self.promise == "much noise for rows not observed":
            D = np.minimum(D, 1e3)
        if self.promise == "changes r":
            r *= 1 + 1e-14
        return Told(super().observe(D, r, report), self.promise)

    def condition(self, lam, h, report=None):
        if self.promise == "changes h":
            h *= 1 + 1e-14
        if self.promise == "drops slopes without curvature":
            h = np.where(lam[:, None] == 0, 0.0, h)
        return super().condition(lam, h, report)

    def pullback(self, terms):
        if self.promise == "forgets u":
            terms = [term._replace(u=None) for term in terms]
        if self.promise == "its own alpha always":
            terms = [term._replace(alpha=None) for term in terms]
        if self.promise == "log determinant always":
            terms = [term._replace(logdet=True) for term in terms]
        return super().pullback(terms)

    def together(self, prior, conditioned, columns, sides=None):
        found = super().together(prior, conditioned, columns, sides)
        if self.promise == "another mean at new points":
            return dataclasses.replace(found, alpha=1.001 * found.alpha)
        if self.promise == "too certain at new points":
            return dataclasses.replace(found, roots=tuple(1.001 * root for root in found.roots))
        if self.promise == "outputs exchanged":
            return dataclasses.replace(found, alpha=found.alpha[:, ::-1])
        return found


class Strange(gm.Exact):
    """Exact inference with one promise broken."""

    def __init__(self, promise):
        super().__init__()
        object.__setattr__(self, "promise", promise)

    def at(self, kernel, X, use, workspace=None):
        if self.promise == "changes X":
            X[0] += 1e-9
        if self.promise == "keeps its sign":
            use = use._replace(signed=False)
        if use.signed:
            return super().at(kernel, X, use, workspace)
        prior = StrangePrior(kernel, X, self.solver, use.again, workspace)
        prior.promise = self.promise
        return prior

    def work(self, n, d, q, gradient=True):
        return Cost(1e9, 1e6) if self.promise == "no idea of work" else super().work(n, d, q, gradient)

    def bytes_needed(self, n, d, q):
        return 5 if self.promise == "no idea of memory" else super().bytes_needed(n, d, q)


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        ("changes b", "changed B"),
        ("a column for a vector", "another shape"),
        ("another kernel", "not the kernel's"),
        ("changes r", "changed what it was given"),
        ("changes h", "changed what it was given"),
        ("mean", "mean"),
        ("alpha", "alpha"),
        ("logdet", "logdet is"),
        ("logdet_noisy", "logdet_noisy is"),
        ("quad", "quad"),
        ("var", r"var\(\)"),
        ("precision", r"precision\(\)"),
        ("spread", "spread"),
        ("covariance", r"covariance\(\)"),
        ("outcome", "did not converge"),
        ("much noise for rows not observed", "D = inf"),
        ("drops slopes without curvature", "lam = 0"),
        ("keeps its sign", "lam < 0"),
        ("by_kernel", "slope by"),
        ("by_level", "by_level"),
        ("forgets u", r"pullback \(u\): the slope"),
        ("its own alpha always", "another alpha.*slope"),
        ("log determinant always", "without the log determinant"),
        ("another mean at new points", "process .*mean"),
        ("too certain at new points", "process .*variances"),
        ("outputs exchanged", "process .*mean"),
        ("changes X", "X was changed|depends on|K is not|mean|other choices"),
        ("no idea of work", "flops do not grow"),
        ("no idea of memory", "bytes do not grow"),
    ],
)
def test_broken_engines(promise, message):
    with pytest.raises(AssertionError, match=message):
        check_engine(Strange(promise))


def test_an_engine_with_no_promise_broken_passes():
    check_engine(Strange("none"))


class OtherChoices(gm.Sparse):
    """Inducing points with one promise about choices broken."""

    promise = ""

    def prepared(self, kernel, X, rng):
        rng = np.random.default_rng() if self.promise == "no seed" else rng
        found = super().prepared(kernel, X, rng)
        fields = {f.name: getattr(found, f.name) for f in dataclasses.fields(found)}
        return type("Moved", (MovedPoints,), {"promise": self.promise})(**fields)


class MovedPoints(LowRank):
    promise = ""

    @property
    def exact(self):
        return self.promise == "says it is exact"

    def free_gradient(self, by_points):
        return by_points if self.promise == "other units" else super().free_gradient(by_points)

    def with_free(self, values):
        moved = super().with_free(values)
        return dataclasses.replace(moved, centre=moved.centre + 0.1) if self.promise == "drifts" else moved

    def at(self, kernel, X, use, workspace=None):
        prior = super().at(kernel, X, use, workspace)
        if self.promise == "forgets what is outside":
            prior._row_by_row = lambda terms: type(prior)._row_by_row(
                prior, [term._replace(by_outside=None) for term in terms]
            )
        return prior


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        ("no seed", "same seed"),
        ("says it is exact", "says that it is exact"),
        ("other units", r"slope by free"),
        ("drifts", r"with_free\(free\)"),
        ("forgets what is outside", "another alpha.*slope"),
    ],
)
def test_broken_choices(promise, message):
    broken = type("Broken", (OtherChoices,), {"promise": promise})
    with pytest.raises(AssertionError, match=message):
        check_engine(broken(5, "vfe", "kmeans", optimize_inducing=True))


def test_choices_with_no_promise_broken_pass():
    check_engine(OtherChoices(5, "vfe", "kmeans", optimize_inducing=True))


def test_an_estimate_that_is_wrong_fails():
    with pytest.raises(AssertionError, match="slope by"):
        check_engine(gm.Krylov(UnitProbes(1.5)), probes=1000)
