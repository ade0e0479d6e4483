"""Outputs that inform each other, and outputs in a chain, against dense formulas written out here.

Tolerance: condition numbers are below n k(x, x) / noise = 2,000, so that rounding is below 1e-11."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.choose.words import as_method
from gramian.engines import Exact, LowRank
from gramian.engines.base import Workspace
from gramian.features.nystrom import NystromBasis
from gramian.fitting.objective import Objective
from gramian.inference import Data, Model, closed
from gramian.inference.chained import chained
from gramian.inference.coregional import coregional, entries
from gramian.inference.model import Link
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean
from gramian.warps import SinhArcsinh

rng = np.random.default_rng(5)
N, Q = 13, 3
X = rng.normal(size=(N, 2))
P = rng.normal(size=(4, 2))
Y = rng.normal(size=(N, Q)) * [1.0, 2.0, 3.0] + [0.0, 5.0, 9.0]
Y[2:5, 1] = Y[4:9, 2] = np.nan
Y[6, 0] = np.nan
SCALE = np.array([1.1, 1.9, 2.8])
NOISE = np.array([0.1, 0.2, 0.3])
MEAN = np.array([0.1, 4.8, 9.3])
KNOWN = rng.uniform(0.05, 0.1, N)
DATA = Data(X, Y, SCALE, KNOWN)
ONE = gm.Coregion(3, 2, rng.normal(size=(3, 2)), [0.4, 0.2, 0.7])
TWO = gm.Coregion(3, 1, rng.normal(size=(3, 1)), [0.1, 0.6, 0.3])


def coupled_model(kernel: gm.Kernel, *outputs: gm.Coregion, **more: object) -> Model:
    return Model(kernel, ConstantMean(MEAN), Gaussian(gm.param(NOISE)), outputs=outputs, **more)


INTRINSIC = coupled_model(gm.Matern52([1.0, 0.7]), ONE)
LINEAR = coupled_model(1.3 * gm.RBF([1.0, 0.7]) + gm.Matern32(0.5), ONE, TWO)


def joint(model: Model, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Covariances of all outputs at two sets of rows, (n, q, m, q): sum of k(x, x') B."""
    terms = model.kernel.summands if len(model.outputs) > 1 else (model.kernel,)
    pairs = zip(terms, model.outputs, strict=True)
    K = sum(np.einsum("ij,kl->ikjl", term(A, B), between.matrix) for term, between in pairs)
    return K * SCALE[None, :, None, None] * SCALE


@pytest.mark.parametrize("model", [INTRINSIC, LINEAR], ids=["intrinsic", "linear"])
def test_coupled_outputs_are_one_gaussian(model):
    inferred = coregional(closed(Exact()), N, Q).infer(model, DATA)
    seen = np.isfinite(Y)
    A = joint(model, X, X).reshape(N * Q, -1)[np.ix_(seen.ravel(), seen.ravel())]
    A += np.diag((NOISE + KNOWN[:, None])[seen])
    r = (Y - MEAN)[seen]
    cross = joint(model, P, X).reshape(len(P) * Q, -1)[:, seen.ravel()]
    mean = MEAN + (cross @ np.linalg.solve(A, r)).reshape(len(P), Q)
    cov = joint(model, P, P).reshape(len(P) * Q, -1) - cross @ np.linalg.solve(A, cross.T)
    cov = cov.reshape(len(P), Q, len(P), Q)
    process = inferred.posterior
    assert_allclose(process.mean(P), mean, rtol=1e-9)
    assert_allclose(process.joint(P), np.einsum("ikil->ikl", cov), rtol=1e-7, atol=1e-9)
    assert_allclose(process.cov(P), np.einsum("ikjk->ijk", cov), rtol=1e-7, atol=1e-9)
    # of y / s, so that the density of y has s a time more
    log_p = -0.5 * (r @ np.linalg.solve(A, r) + np.linalg.slogdet(2 * np.pi * A)[1])
    assert_allclose(inferred.evidence.value, log_p + np.sum(np.log(np.broadcast_to(SCALE, Y.shape)[seen])))


def test_outputs_that_share_nothing_are_independent():
    alone = gm.Coregion(3, 1, np.zeros((3, 1)), np.ones(3))
    together = coregional(closed(Exact()), N, Q).infer(coupled_model(INTRINSIC.kernel, alone), DATA)
    plain = closed(Exact()).infer(Model(INTRINSIC.kernel, INTRINSIC.mean, INTRINSIC.likelihood), DATA)
    assert_allclose(together.evidence.value, plain.evidence.value, rtol=1e-12)
    for ours, theirs in zip(together.posterior.moments(P), plain.posterior.moments(P), strict=True):
        assert_allclose(ours, theirs, rtol=1e-9)


def warp() -> SinhArcsinh:
    return SinhArcsinh(skew=[0.1, 0.2, -0.1], tail=[0.9, 1.0, 1.1], shift=np.zeros(3), width=np.ones(3))


def slopes(objective: Objective) -> np.ndarray:
    """By central differences: their error is 1e-5 of the gradient's third derivative, 1e-8 here."""
    v = objective.start
    return np.array([(objective(v + h)[0] - objective(v - h)[0]) / 2e-5 for h in 1e-5 * np.eye(len(v))])


ENGINES = {"exact": Exact()} | {
    name: LowRank(NystromBasis(entries(DATA).X[::3]), outside, name, "landmarks")
    for name, outside in (("vfe", "bound"), ("nystrom", "nothing"), ("fitc", "noise"))
}


@pytest.mark.parametrize("name", ENGINES)
def test_the_gradient_of_coupled_outputs(name):
    model = coupled_model(LINEAR.kernel, ONE, TWO, warp=warp().adapted(Y))
    objective = Objective(model, DATA, coregional(closed(ENGINES[name]), N, Q))
    gradient = objective(objective.start)[1]
    assert_allclose(gradient, slopes(objective), rtol=1e-6, atol=1e-6 * np.abs(gradient).max())


def test_landmarks_at_all_entries_are_exact():
    exact = coregional(closed(Exact()), N, Q)
    all_of = LowRank(NystromBasis(entries(DATA).X), "bound", "vfe", "landmarks")
    bound = coregional(closed(all_of), N, Q)
    values = [one.evidence(INTRINSIC, DATA, Workspace()).value for one in (exact, bound)]
    assert_allclose(*values, rtol=1e-7)  # the jitter of the landmarks' own matrix
    cavities = [one.cavities(INTRINSIC, DATA, one.infer(INTRINSIC, DATA).posterior) for one in (exact, bound)]
    assert_allclose(cavities[0].mean, cavities[1].mean, atol=1e-5)


def test_left_out_entries_are_those_of_a_fit_without_them():
    scheme = coregional(closed(Exact()), N, Q)
    seen = scheme.cavities(INTRINSIC, DATA, scheme.infer(INTRINSIC, DATA).posterior)
    for i, k in ((0, 0), (7, 1), (12, 2), (3, 1)):  # the last was not observed
        Y_left = Y.copy()
        Y_left[i, k] = np.nan
        mean, var = scheme.infer(INTRINSIC, Data(X, Y_left, SCALE, KNOWN)).posterior.moments(X[[i]])
        assert_allclose([seen.mean[i, k], seen.var[i, k]], [mean[0, k], var[0, k]], rtol=1e-8)


# A chain. ---------------------------------------------------------------------------------------------------

ORDER = (1, 0, 2)
LINKS = (Link(0.5 * gm.Linear(), 2), Link(0.5 * gm.Linear() + 0.3 * gm.Matern52(1.0), 3))
OTHERS = (1.3 * gm.RBF([1.0, 0.7]), gm.Matern32(0.5))


def chain_model(*links: Link, **more: object) -> Model:
    mean, likelihood = ConstantMean(MEAN), Gaussian(gm.param(NOISE))
    return Model(gm.Matern52([1.0, 0.7]), mean, likelihood, OTHERS, links=links, **more)


def own_model(kernel: gm.Kernel, k: int) -> Model:
    return Model(kernel, ConstantMean(MEAN[k]), Gaussian(NOISE[k]))


def test_a_chain_without_links_is_each_output_alone():
    model = chain_model()
    inferred = chained(closed(Exact()), ORDER).infer(model, DATA)
    mean, var = inferred.posterior.moments(P)
    value = 0.0
    for k, kernel in enumerate((model.kernel, *model.others)):
        seen = np.isfinite(Y[:, k])
        alone = Data(X[seen], Y[seen][:, [k]], SCALE[[k]], KNOWN[seen])
        own = closed(Exact()).infer(own_model(kernel, k), alone)
        value += own.evidence.value
        for ours, theirs in zip((mean, var), own.posterior.moments(P), strict=True):
            assert_allclose(ours[:, k], theirs[:, 0], rtol=1e-9)
    assert_allclose(inferred.evidence.value, value, rtol=1e-12)


def whole() -> np.ndarray:
    """Gaps in the last output of the chain alone."""
    full = np.where(np.isnan(Y), MEAN + 0.3, Y)
    full[4:9, 2] = np.nan
    return full


def test_an_output_of_a_chain_is_a_process_of_x_and_those_before_it():
    full = whole()
    data, model = Data(X, full, SCALE, KNOWN), chain_model(*LINKS)
    scheme = chained(closed(Exact()), ORDER).prepared(model, data, np.random.default_rng(0))
    inferred = scheme.infer(model, data)
    assert inferred.evidence.kind == "exact"
    before = list(ORDER[:2])
    Z = ((full - np.nanmean(full, axis=0)) / SCALE)[:, before]
    kernel = OTHERS[1].on(0, 1) + LINKS[1].kernel.on(2, 3)
    seen, gone = np.isfinite(full[:, 2]), np.isnan(full[:, 2])
    table = np.hstack([X, Z])
    own = closed(Exact()).infer(
        own_model(kernel, 2), Data(table[seen], full[seen][:, [2]], SCALE[[2]], KNOWN[seen])
    )
    # at rows where those before it were observed, they are what was observed
    mean, var = inferred.posterior.moments(X[gone])
    for ours, theirs in zip((mean, var), own.posterior.moments(table[gone]), strict=True):
        assert_allclose(ours[:, 2], theirs[:, 0], rtol=1e-9)
    left = scheme.cavities(model, data, inferred.posterior)
    i = int(np.flatnonzero(seen)[3])
    keep = seen & (np.arange(N) != i)
    rest = Data(table[keep], full[keep][:, [2]], SCALE[[2]], KNOWN[keep])
    without = closed(Exact()).infer(own_model(kernel, 2), rest).posterior.moments(table[[i]])
    assert_allclose([left.mean[i, 2], left.var[i, 2]], [without[0][0, 0], without[1][0, 0]], rtol=1e-8)


@pytest.mark.parametrize("name", ["exact", "nystrom"])
def test_the_gradient_of_a_chain(name):
    engine = Exact() if name == "exact" else as_method("nystrom", None)
    model = chain_model(*LINKS)
    scheme = chained(closed(engine), ORDER).prepared(model, DATA, np.random.default_rng(0))
    objective = Objective(model, DATA, scheme)
    gradient = objective(objective.start)[1]
    assert_allclose(gradient, slopes(objective), rtol=1e-6, atol=1e-6 * np.abs(gradient).max())
    assert scheme.evidence(model, DATA, Workspace()).kind == "approximation"  # gaps before others were filled


def test_draws_of_a_chain_have_its_moments():
    model = chain_model(*LINKS)
    process = chained(closed(Exact()), ORDER).infer(model, DATA).posterior
    mean, var = process.moments(P)
    draws = process.sample(np.random.default_rng(0), P, 1500)
    # 12 averages of 1,500 draws: five standard errors fail once in 140,000 times; 64 even draws beside that
    assert np.all(np.abs(draws.mean(axis=2) - mean) < 5 * np.sqrt(var / 1500) + 0.05 * np.sqrt(var))
    assert_allclose(draws.var(axis=2), var, rtol=0.25)
    corner = process.joint(P)
    assert_allclose(np.einsum("ikk->ik", corner), var)
    cov = process.cov(P)
    assert_allclose(np.einsum("iik->ik", cov), var)
    assert np.all(np.linalg.eigvalsh(np.moveaxis(cov, 2, 0)) > -0.1 * var.max())


def test_filling_gaps_is_done_once_more_where_parameters_moved_it():
    model = chain_model(*LINKS)
    scheme = chained(closed(Exact()), ORDER).prepared(model, DATA, np.random.default_rng(0))
    assert not scheme.stale(model, DATA)
    assert scheme.stale(model.with_values({"kernel.lengthscale": [30.0, 0.1], "rbf.scale": 20.0}), DATA)
    full = Data(X, whole(), SCALE)
    assert (
        not chained(closed(Exact()), ORDER)
        .prepared(model, full, np.random.default_rng(0))
        .stale(model.with_values({"kernel.lengthscale": [30.0, 0.1]}), full)
    )


# Gaps on other engines. -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["statespace", "neighbours", "cg"])
def test_gaps_are_rows_that_are_not_there(method):
    """CG stops at 1e-6 of a residual; neighbours with all rows, and filters, are exact."""
    x = np.sort(rng.uniform(0, 5, 40))[:, None]
    Y = np.column_stack([np.sin(2 * x[:, 0]), x[:, 0], np.cos(x[:, 0])]) + 0.1 * rng.normal(size=(40, 3))
    Y[5:15, 0] = Y[10:30, 1] = np.nan
    scale, points = np.array([0.7, 1.4, 0.8]), np.linspace(-0.5, 5.5, 9)[:, None]
    model = Model(0.9 * gm.Matern32(0.8), ConstantMean(np.zeros(3)), Gaussian([0.1, 0.2, 0.05]))
    engine = gm.Neighbours(39) if method == "neighbours" else as_method(method, None)
    together = closed(engine).infer(model, Data(x, Y, scale)).posterior.moments(points)
    for k, noise in enumerate((0.1, 0.2, 0.05)):
        seen = np.isfinite(Y[:, k])
        own = Model(model.kernel, ConstantMean(0.0), Gaussian(noise))
        alone = closed(Exact()).infer(own, Data(x[seen], Y[seen][:, [k]], scale[[k]])).posterior
        for ours, theirs in zip(together, alone.moments(points), strict=True):
            assert_allclose(ours[:, k], theirs[:, 0], atol=1e-4 if method == "cg" else 1e-8)
