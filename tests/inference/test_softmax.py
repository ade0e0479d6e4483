"""Laplace's approximation of a softmax: against one dense Gaussian of all latents, against binary
classification, and against differences."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gramian.engines import Exact, Fourier, Krylov, LowRank, Nystrom, Sparse
from gramian.engines.base import Use, Workspace
from gramian.errors import NumericalError, ParameterError
from gramian.features.nystrom import NystromBasis
from gramian.inference import Data, Model, RuleOnEngine
from gramian.inference.laplace import Laplace
from gramian.inference.softmax import dense
from gramian.inference.softmax.base import curvature, curved
from gramian.inference.softmax.laplace import SoftmaxLaplace, coupling, laplace_for
from gramian.kernels import RBF, Matern52
from gramian.likelihoods import Bernoulli, RobustMax, Softmax
from gramian.likelihoods.quadrature import NODES, WEIGHTS
from gramian.means import ConstantMean, ZeroMean
from gramian.processes import GaussianProcess
from gramian.processes.coupled import CoupledFeatures, CoupledPosterior
from gramian.solvers.cg import CG
from gramian.testing import check_posterior
from tests.reference import softmax as reference

C = 3
KERNEL = 1.5 * RBF([0.7, 1.1])
OTHERS = (Matern52(0.8), 0.3 * RBF([1.2, 0.9]))
MEAN = ConstantMean([0.3, -0.2, 0.5])
SCALE = np.array([1.0, 2.0, 0.5])


class Rootless(Exact):
    """As an engine of one's own that keeps the contract and no more."""

    def at(self, kernel, X, use, workspace=None):
        prior = super().at(kernel, X, use, workspace)
        prior.rooted = False
        return prior


def made(n: int = 24, classes: int = C, scale: np.ndarray | None = None, size: float = 1.0) -> Data:
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (n, 2))
    F = np.stack([np.sin(2 * X[:, 0] + c) + c * X[:, 1] * np.cos(c) for c in range(classes)], axis=1)
    y = np.argmax(size * F + rng.gumbel(size=F.shape), axis=1)
    return Data(X, y[:, None].astype(float), np.ones(classes) if scale is None else scale)


def dense_parts(model: Model, data: Data, Z: np.ndarray | None = None) -> list[np.ndarray]:
    """s_c^2 k_c at all pairs of rows."""
    kernels = [model.kernel] * model.likelihood.latents if not model.others else [model.kernel, *model.others]
    return [s**2 * k(data.X if Z is None else Z, data.X) for k, s in zip(kernels, data.scale, strict=True)]


def means(model: Model, X: np.ndarray) -> np.ndarray:
    return GaussianProcess(model.kernel, model.mean, np.ones(model.likelihood.latents)).mean(X)


MODELS = {
    "one kernel": (Model(KERNEL, MEAN, Softmax(C)), np.ones(C)),
    "a kernel each": (Model(KERNEL, MEAN, Softmax(C), OTHERS), SCALE),
}

# frequencies are of one kernel
ENGINES = [(name, engine) for name in MODELS for engine in (Exact(), Nystrom(9))] + [
    ("one kernel", Fourier(12))
]

# Against one Gaussian of all latents. -----------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_evidence_and_posterior_are_those_of_the_whole_matrix(name):
    model, scale = MODELS[name]
    data = made(scale=scale)
    found = RuleOnEngine(SoftmaxLaplace()).infer(model, data)
    K, m, y = dense_parts(model, data), means(model, data.X), data.Y[:, 0]
    # Both end at the mode to rounding; the whole matrix has a condition of about 1e3.
    assert found.evidence.value == pytest.approx(reference.evidence(K, m, y), rel=1e-10)
    assert found.evidence.kind == "approximation"
    assert found.outcome.converged

    Z = np.concatenate([data.X[:3], data.X[:3] + 0.4])
    prior = [
        s**2 * k(Z) for k, s in zip([model.kernel, *(model.others or [model.kernel] * 2)], scale, strict=True)
    ]
    mean, cov = reference.predict(K, dense_parts(model, data, Z), prior, m, y)
    assert_allclose(found.posterior.mean(Z), mean + means(model, Z), rtol=1e-8, atol=1e-9)
    blocks = cov.reshape(C, len(Z), C, len(Z))
    joint = np.einsum("aibi->iab", blocks)
    # the classes are correlated, so that a posterior without cross terms would fail here
    assert np.max(np.abs(joint[:, 0, 1])) > 0.01
    assert_allclose(found.posterior.joint(Z), joint, rtol=1e-8, atol=1e-9)
    assert_allclose(found.posterior.var(Z), np.einsum("icc->ic", joint), rtol=1e-8, atol=1e-9)
    assert_allclose(found.posterior.cov(Z), np.einsum("aiaj->ija", blocks), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("tiny", [False, True])
def test_sites_of_any_probabilities(features, tiny):
    """mean, alpha, log det, S and its blocks for probabilities that belong to no mode; with 1e-12 for a class
    at half of the rows."""
    scale = SCALE
    data, rng = made(scale=scale), np.random.default_rng(5)
    n = len(data.X)
    pi = rng.dirichlet(np.ones(C), n)
    if tiny:
        pi[: n // 2, 1] = 1e-12
        pi /= pi.sum(axis=1, keepdims=True)
    h = rng.standard_normal((n, C))
    engine = LowRank(NystromBasis(data.X), "nothing", "", "") if features else Exact()
    groups = [(engine.at(k, data.X, Use(again=True)), [c]) for c, k in enumerate((KERNEL, *OTHERS))]
    found = coupling(groups, scale).condition(pi, h)
    K = reference.stacked([k(data.X) for k in (KERNEL, *OTHERS)])
    s = np.repeat(scale, n)
    W = s[:, None] * reference.curvature(pi) * s
    S = K - K @ np.linalg.solve(np.eye(C * n) + W @ K, W @ K)
    tol = 1e-7 if features else 1e-9  # landmarks at all rows leave 1e-12 of k out, through the inverse of K
    assert found.logdet == pytest.approx(np.linalg.slogdet(np.eye(C * n) + K @ W)[1], rel=tol)
    assert_allclose(found.mean.T.ravel(), S @ h.T.ravel(), rtol=tol, atol=tol)
    assert_allclose(found.alpha.T.ravel(), h.T.ravel() - W @ S @ h.T.ravel(), rtol=tol, atol=tol)
    assert_allclose(
        curved(pi, scale, found.mean),
        np.einsum("icd,id->ic", curvature(pi, scale), found.mean),
        rtol=1e-12,
        atol=1e-12,
    )
    for once in (0, 1):  # before and after the arrays have changed their meaning
        assert_allclose(found.spread(h).T.ravel(), S @ h.T.ravel(), rtol=tol, atol=tol)
        if once == 0:
            assert_allclose(found.joint(), np.einsum("aibi->iab", S.reshape(C, n, C, n)), rtol=tol, atol=tol)


def test_cavities_leave_out_a_row():
    model, scale = MODELS["a kernel each"]
    data = made(12, scale=scale)
    mean, var = RuleOnEngine(SoftmaxLaplace(tol=1e-12)).cavities(model, data, None)
    n, K, m, y = len(data.X), dense_parts(model, data), means(model, data.X), data.Y[:, 0]
    f = reference.mode(K, m, y)
    pi, full = reference.probabilities(f), reference.stacked(K)
    W = reference.curvature(pi)
    h = W @ (f - m).T.ravel() + ((y[:, None] == np.arange(C)) - pi).T.ravel()
    for i in (0, 5):
        rest = np.tile(np.arange(n) != i, C)
        without = np.where(rest[:, None] & rest, W, 0.0)
        S = full - full @ np.linalg.solve(np.eye(C * n) + without @ full, without @ full)
        at = i + n * np.arange(C)
        assert_allclose(mean[i], m[i] + (S @ np.where(rest, h, 0.0))[at], rtol=1e-7)
        assert_allclose(var[i], np.diag(S)[at], rtol=1e-7)


# Against binary classification. -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "engine",
    [Exact(), LowRank(NystromBasis(made(40, 2).X[:15]), "nothing", "nystrom", "")],
    ids=["exact", "nystrom"],
)
def test_two_classes_are_a_logit_of_the_difference(engine):
    """f_1 - f_0 has the kernel 2 k, and what the two have in common plays no part."""
    data = made(40, 2)
    soft = RuleOnEngine(SoftmaxLaplace(), engine).infer(Model(KERNEL, ZeroMean(), Softmax(2)), data)
    logit = RuleOnEngine(Laplace(), engine).infer(
        Model(2 * KERNEL, ZeroMean(), Bernoulli("logit")), Data(data.X, data.Y, np.ones(1))
    )
    assert soft.evidence.value == pytest.approx(logit.evidence.value, rel=1e-8)
    Z = np.random.default_rng(3).uniform(-2, 2, (7, 2))
    mean, joint = soft.posterior.mean(Z), soft.posterior.joint(Z)
    difference, spread = mean[:, 1] - mean[:, 0], joint[:, 0, 0] + joint[:, 1, 1] - 2 * joint[:, 0, 1]
    other_mean, other_var = (v[:, 0] for v in logit.posterior.moments(Z))
    assert_allclose(difference, other_mean, rtol=1e-6, atol=1e-8)
    assert_allclose(spread, other_var, rtol=1e-6)

    def probability(mu: np.ndarray, v: np.ndarray) -> np.ndarray:
        return (1 / (1 + np.exp(-(mu[:, None] + np.sqrt(v)[:, None] * NODES)))) @ WEIGHTS

    assert_allclose(probability(difference, spread), probability(other_mean, other_var), atol=1e-8)


# Gradients. -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "engine"),
    [*ENGINES, *((name, Sparse(6, objective="dtc", optimize_inducing=True)) for name in MODELS)],
)
def test_gradient(name, engine):
    model, scale = MODELS[name]
    data = made(25, scale=scale)
    # Six points 3e-3 apart: an error of h^6 = 1e-15 of a seventh derivative, and 1e-13 / h of rounding.
    # Newton has to end at rounding, too.
    inference = RuleOnEngine(SoftmaxLaplace(tol=1e-12), engine).prepared(
        model, data, np.random.default_rng(0)
    )
    _, gradients = inference.evidence_and_gradient(model, data, Workspace())
    parameters, rng = model.parameters(), np.random.default_rng(2)
    assert len(gradients) == len(parameters) + (inference.free.size > 0)
    for part in ("kernel", "mean"):
        paths = [path for path in parameters if (path.split(".")[0] == "mean") == (part == "mean")]
        sizes = {path: 0.3 if part == "mean" else 0.3 * parameters[path].value for path in paths}
        along = {
            path: size * rng.standard_normal(parameters[path].value.shape) for path, size in sizes.items()
        }

        def value(t: float, along: dict[str, np.ndarray] = along) -> float:
            moved = model.with_values(
                {path: parameters[path].value + t * step for path, step in along.items()}
            )
            return inference.evidence(moved, data, Workspace()).value

        total = sum(
            float(np.sum(gradient * along[path]))
            for path, gradient in zip(parameters, gradients, strict=False)
            if path in along
        )
        assert abs(total) > 0.01
        assert _slope(value, 3e-3) == pytest.approx(total, abs=1e-8), part
    if inference.free.size:
        direction = 0.3 * rng.standard_normal(inference.free.size)
        slope = _slope(
            lambda t: (
                inference.with_free(inference.free + t * direction).evidence(model, data, Workspace()).value
            ),
            3e-3,
        )
        assert slope == pytest.approx(float(np.ravel(gradients[-1]) @ direction), abs=1e-8)


def _slope(function, h: float) -> float:
    v = {k: function(k * h) for k in (-3, -2, -1, 1, 2, 3)}
    return (45 * (v[1] - v[-1]) - 9 * (v[2] - v[-2]) + (v[3] - v[-3])) / (60 * h)


# Features, starts, extremes. --------------------------------------------------------------------------------


def test_landmarks_at_all_rows_are_exact():
    for model, scale in MODELS.values():
        data = made(scale=scale)
        exact = RuleOnEngine(SoftmaxLaplace()).infer(model, data)
        low_rank = RuleOnEngine(
            SoftmaxLaplace(), LowRank(NystromBasis(data.X), "nothing", "nystrom", "")
        ).infer(model, data)
        assert isinstance(exact.posterior, CoupledPosterior)
        assert isinstance(low_rank.posterior, CoupledFeatures)
        assert low_rank.evidence.value == pytest.approx(exact.evidence.value, rel=1e-8)
        Z = data.X[:6] + 0.2
        # 1e-12 of k is added to the landmarks' matrix, whose condition here is 1e6 or so.
        assert_allclose(low_rank.posterior.mean(Z), exact.posterior.mean(Z), atol=1e-5)
        assert_allclose(low_rank.posterior.joint(Z), exact.posterior.joint(Z), atol=1e-5)


@pytest.mark.parametrize("engine", [Exact(), Nystrom(10)], ids=["exact", "nystrom"])
def test_a_start_from_neighbouring_parameters_saves_steps(engine):
    model, data = Model(KERNEL, MEAN, Softmax(C)), made(60)
    near = Model(1.51 * RBF([0.7, 1.1]), MEAN, Softmax(C))
    inference = RuleOnEngine(SoftmaxLaplace(), engine).prepared(model, data, np.random.default_rng(0))
    workspace, steps = Workspace(), []
    inference.evidence(model, data, workspace)
    for start in (None, workspace.start):
        engine = inference.engine
        _, _, outcome = inference.inference._ran(
            near, data, engine, None if start is None else workspace, None
        )
        steps.append(outcome.iterations)
    assert steps[1] < steps[0]
    assert inference.evidence(near, data, workspace).value == pytest.approx(
        inference.evidence(near, data, Workspace()).value, rel=1e-10
    )
    workspace.start = np.full((60, C), 1e6)  # a start that is worse than none
    assert inference.evidence(near, data, workspace).value == pytest.approx(
        inference.evidence(near, data, Workspace()).value, rel=1e-10
    )


@pytest.mark.parametrize("engine", [Exact(), Nystrom(20)], ids=["exact", "nystrom"])
@pytest.mark.parametrize("shift", [-30.0, -800.0])
def test_a_class_that_is_all_but_impossible(engine, shift):
    """With probability 1e-13, or one that no float holds, at all rows a class changes nothing: the evidence
    is that of the other classes."""
    data = made(40, 2)
    two = RuleOnEngine(SoftmaxLaplace(), engine).prepared(
        Model(KERNEL, ZeroMean(), Softmax(2)), data, np.random.default_rng(0)
    )
    three = Model(KERNEL, ConstantMean([0.0, 0.0, shift]), Softmax(3))
    wide = Data(data.X, data.Y, np.ones(3))
    evidence, gradients = two.evidence_and_gradient(three, wide, Workspace())
    expected, others = two.evidence_and_gradient(Model(KERNEL, ZeroMean(), Softmax(2)), data, Workspace())
    assert evidence.value == pytest.approx(expected.value, rel=1e-9)
    for ours, theirs in zip(gradients[: len(others)], others, strict=True):
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)
    joint = two.infer(three, wide).posterior.joint(data.X[:5])
    assert_allclose(joint[:, 2, 2], 1.5, rtol=1e-9)  # nothing was learned about it
    assert_allclose(joint[:, 2, :2], 0.0, atol=1e-9)


def test_wide_latents_and_a_class_without_rows():
    """Probabilities down to 1e-13 and less, and one class that never occurs."""
    data = made(40, 3, np.ones(4), size=20.0)
    model = Model(1e4 * RBF(1.0), ZeroMean(), Softmax(4))
    found = RuleOnEngine(SoftmaxLaplace()).infer(model, data)
    assert found.outcome.converged
    assert np.min(reference.probabilities(found.posterior.mean(data.X))) < 1e-12
    expected = reference.evidence(dense_parts(model, data), np.zeros((40, 4)), data.Y[:, 0])
    # the whole matrix has a condition of 1e5
    assert found.evidence.value == pytest.approx(expected, rel=1e-7)
    _, gradients = RuleOnEngine(SoftmaxLaplace()).evidence_and_gradient(model, data, Workspace())
    assert all(np.all(np.isfinite(gradient)) for gradient in gradients)


def test_steps_that_overshoot_are_halved(monkeypatch):
    """A mean that is sure of the wrong classes leaves no curvature at the start, and the first step leads far
    beyond the mode."""
    data, model = made(size=5.0), Model(400.0 * RBF(1.0), ConstantMean([30.0, -30.0, 0.0]), Softmax(C))
    found = RuleOnEngine(SoftmaxLaplace()).infer(model, data)
    slope = (np.arange(C) == data.Y) - reference.probabilities(found.posterior.mean(data.X))
    assert isinstance(found.posterior, CoupledPosterior)
    assert_allclose(found.posterior.alpha, slope, atol=1e-7)  # the gradient vanishes
    monkeypatch.setattr("gramian.inference.laplace.HALVINGS", 1)
    without = RuleOnEngine(SoftmaxLaplace()).infer(model, data)
    assert not without.outcome.converged
    assert "uphill" in without.outcome.note


def test_a_kernel_beyond_rounding_is_refused_in_words():
    with pytest.raises(NumericalError, match="Bound the kernel"):
        RuleOnEngine(SoftmaxLaplace()).evidence(
            Model(1e30 * RBF(50.0), ZeroMean(), Softmax(C)), made(), Workspace()
        )


# Posteriors. ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "engine"), ENGINES)
def test_posteriors_keep_the_contract(name, engine):
    model, scale = MODELS[name]
    data = made(scale=scale)
    posterior = RuleOnEngine(SoftmaxLaplace(), engine).infer(model, data).posterior
    X = np.concatenate([data.X[:4], data.X[:3] + 0.3])
    check_posterior(posterior, X)
    joint = posterior.joint(X)
    assert np.array_equal(np.einsum("icc->ic", joint), posterior.var(X))
    assert np.array_equal(joint, np.swapaxes(joint, 1, 2))
    draws = posterior.sample(np.random.default_rng(4), X, 4000)
    for i in range(len(X)):
        var = np.diag(joint[i])
        off = np.abs(np.cov(draws[i]) - joint[i]) - 7 * np.sqrt((np.outer(var, var) + joint[i] ** 2) / 4000)
        assert np.all(off < 1e-6)  # draws are joint over classes too


def test_points_in_blocks(monkeypatch):
    model, scale = MODELS["one kernel"]
    data = made(scale=scale)
    X = np.random.default_rng(0).uniform(-2, 2, (1100, 2))
    for engine in (Exact(), Nystrom(8)):
        posterior = RuleOnEngine(SoftmaxLaplace(), engine).infer(model, data).posterior
        whole = posterior.joint(X)
        monkeypatch.setattr("gramian.linalg.memory.BLOCK_BYTES", 8 * 2**10)
        assert_allclose(posterior.joint(X), whole, rtol=1e-10, atol=1e-12)
        monkeypatch.undo()


def test_independent_outputs_have_a_diagonal_joint():
    prior = GaussianProcess(KERNEL, ZeroMean(), np.array([1.0, 2.0]))
    X = made(5).X
    assert_allclose(prior.joint(X), prior.var(X)[:, :, None] * np.eye(2))


# What it costs, and what it refuses. ------------------------------------------------------------------------


def test_memory_is_that_of_one_matrix_a_class(monkeypatch):
    """C + 3 arrays of n^2 and small change; a factor of all latents would be C^2 of them."""
    monkeypatch.setattr(dense, "BLOCK", 16)
    n, classes = 480, 6  # more rows than NumPy makes a Gram matrix of
    data, model = made(n, classes), Model(KERNEL, ZeroMean(), Softmax(classes))
    inference = RuleOnEngine(SoftmaxLaplace())
    inference.evidence_and_gradient(model, data, Workspace())
    for work in (
        lambda: inference.evidence_and_gradient(model, data, Workspace()),
        lambda: inference.infer(model, data),
    ):
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1] / (8 * n * n)
        tracemalloc.stop()
        assert peak < classes + 5


def test_refusals():
    assert isinstance(laplace_for(Softmax(3)), SoftmaxLaplace)
    assert isinstance(laplace_for(Bernoulli("logit")), Laplace)
    data, model = made(), Model(KERNEL, ZeroMean(), Softmax(C))
    with pytest.raises(ParameterError, match="one against the rest"):
        RuleOnEngine(SoftmaxLaplace(), Krylov(CG(), 0)).prepared(model, data, np.random.default_rng(0))
    # one that has variances, and neither features nor roots
    with pytest.raises(ParameterError, match="one against the rest"):
        RuleOnEngine(SoftmaxLaplace(), Rootless()).evidence(model, data, Workspace())
    with pytest.raises(ParameterError, match="no derivatives"):
        RuleOnEngine(SoftmaxLaplace()).evidence(Model(KERNEL, ZeroMean(), RobustMax(C)), data, Workspace())
    with pytest.raises(ParameterError, match="laplace_for"):
        RuleOnEngine(SoftmaxLaplace()).evidence(
            Model(KERNEL, ZeroMean(), Bernoulli("logit")), Data(data.X, data.Y, np.ones(1)), Workspace()
        )


def test_a_search_that_does_not_end_is_told():
    found = RuleOnEngine(SoftmaxLaplace(max_iter=1)).infer(Model(KERNEL, MEAN, Softmax(C)), made())
    assert not found.outcome.converged
    assert "1 steps" in found.outcome.note
