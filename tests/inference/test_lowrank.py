"""Inference with features: sums, bounds and gradients against dense references; the three objectives are
three different things."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.engines import Exact, Fourier, LowRank, Nystrom, Sparse, lowrank
from gramian.engines.base import Workspace
from gramian.engines.recipes import TREATED
from gramian.features.nystrom import NystromBasis
from gramian.inference import Data, Model, closed
from gramian.kernels import RBF, Matern32, Matern52
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean, ZeroMean
from gramian.params import fixed
from gramian.testing import check_inference, check_posterior


@pytest.fixture
def data() -> Data:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((180, 3))
    Y = np.column_stack([np.sin(X.sum(axis=1)), X[:, 0] * X[:, 1]]) + 0.1 * rng.standard_normal((180, 2))
    return Data(X, Y, np.array([1.0, 2.0]))


def model(noise: float = 0.05) -> Model:
    return Model(1.3 * Matern52([1.0, 2.0, 1.5]), ConstantMean([0.1, 0.2]), Gaussian(noise))


def dense(kind: str, m: Model, data: Data, Z: np.ndarray) -> float:
    """The objectives as their papers write them, by inverses and determinants."""
    K, C = m.kernel(data.X), m.kernel(data.X, Z)
    Q = C @ np.linalg.solve(m.kernel(Z) + 1e-12 * 1.3 * np.eye(len(Z)), C.T)
    total = 0.0
    for k, s in enumerate(data.scale):
        D = np.full(len(K), 0.05 / s**2) if data.noise_var is None else (0.05 + data.noise_var) / s**2
        gap = np.diag(K - Q)
        A = Q + np.diag(D + gap if kind == "fitc" else D)
        r = (data.Y[:, k] - m.mean.value.value[k]) / s
        total += -0.5 * r @ np.linalg.solve(A, r) - 0.5 * np.linalg.slogdet(2 * np.pi * A)[1]
        total -= 0.5 * np.sum(gap / D) if kind == "vfe" else 0.0
    return float(total)


@pytest.mark.parametrize("kind", ["dtc", "vfe", "fitc"])
@pytest.mark.parametrize("known", [False, True])
def test_objectives_as_in_the_papers(data, kind, known):
    noise_var = np.random.default_rng(0).uniform(0.01, 0.1, len(data.X)) if known else None
    data, Z = Data(data.X, data.Y, data.scale, noise_var), data.X[:25] + 0.1
    value = (
        closed(LowRank(NystromBasis(Z), TREATED[kind], kind, "")).evidence(model(), data, Workspace()).value
    )
    assert value == pytest.approx(dense(kind, model(), data, Z), rel=1e-9)


def test_three_objectives_are_three_things(data):
    values = {
        kind: closed(LowRank(NystromBasis(data.X[:20]), TREATED[kind], kind, "")).evidence(
            model(), data, Workspace()
        )
        for kind in ("dtc", "vfe", "fitc")
    }
    assert len({round(v.value, 3) for v in values.values()}) == 3
    assert values["vfe"].kind == "lower bound"
    assert values["fitc"].kind == values["dtc"].kind == "approximation"
    assert values["vfe"].value < values["dtc"].value  # the trace term


@pytest.mark.parametrize(
    "method",
    [Nystrom(12), Sparse(12), Sparse(12, "fitc"), Sparse(12, "dtc"), Sparse(9, optimize_inducing=True)],
)
def test_contract(method):
    check_inference(method)


@pytest.mark.parametrize("kind", ["rff", "orf", "qmc"])
def test_contract_of_fourier_features(kind):
    check_inference(Fourier(24, kind))


def test_landmarks_at_all_rows_give_the_exact_answer(data):
    exact = closed(Exact()).infer(model(), data)
    rng = np.random.default_rng(1)
    points = rng.standard_normal((40, 3))
    for kind in ("dtc", "vfe", "fitc"):
        found = closed(LowRank(NystromBasis(data.X), TREATED[kind], kind, "")).infer(model(), data)
        # K_zz gets 1e-12 of its diagonal, which moves Q by that and the evidence by n 1e-12 / noise.
        assert found.evidence.value == pytest.approx(exact.evidence.value, abs=1e-6)
        for ours, theirs in zip(
            found.posterior.moments(points), exact.posterior.moments(points), strict=True
        ):
            assert_allclose(ours, theirs, atol=1e-8)


def test_memory_of_the_second_pass_changes_nothing(data, monkeypatch):
    method = closed(Nystrom(20)).prepared(model(), data, np.random.default_rng(0))
    kept = method.evidence_and_gradient(model(), data, Workspace())
    monkeypatch.setattr(lowrank, "KEEP_BYTES", 0)
    again = method.evidence_and_gradient(model(), data, Workspace())
    assert kept[0].value == again[0].value
    for a, b in zip(kept[1], again[1], strict=True):
        assert_allclose(a, b, rtol=1e-14)


def test_blocks_add_up(data, monkeypatch):
    """Sums over many blocks are sums over one, to rounding."""
    method = closed(Sparse(20)).prepared(model(), data, np.random.default_rng(0))
    one = method.evidence_and_gradient(model(), data, Workspace())
    monkeypatch.setattr(lowrank, "chunk_rows", lambda m: 50)
    many = method.evidence_and_gradient(model(), data, Workspace())
    assert many[0].value == pytest.approx(one[0].value, rel=1e-12)
    for a, b in zip(one[1], many[1], strict=True):
        assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("noise", [1e-4, 1e-8, 1e-12, 0.0])
def test_variances_with_tiny_noise(noise):
    """Not negative, not far from the exact ones, and small at the data: differences of large numbers would
    show here."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 1))
    data = Data(X, np.sin(3 * X), np.ones(1))
    m = Model(1.0 * RBF(0.5), ZeroMean(), Gaussian(fixed(noise)))
    for method in (Sparse(40, "vfe"), Sparse(40, "fitc"), Nystrom(40)):
        posterior = closed(method).infer(m, data).posterior
        points = np.linspace(-2, 2, 50)[:, None]
        mean, var = posterior.moments(points)
        assert np.all(var >= 0)
        assert np.all(np.isfinite(var))
        # 40 landmarks of so smooth a kernel leave nothing out. A few hundred rows average the noise, but at
        # the edge hardly.
        assert np.max(var) < 0.5 * noise + 1e-7
        assert np.min(var) > 1e-3 * noise
        assert_allclose(mean, np.sin(3 * points), atol=4 * np.sqrt(np.max(var)) + 1e-4)
        # rows beside each other change the order of sums of 40 terms, of a prior of variance 1
        check_posterior(posterior, points[::5], rounding=40 * np.finfo(np.float64).eps)


def test_raised_noise_is_reported():
    X = np.linspace(0, 1, 100)[:, None]
    m = Model(1.0 * RBF(0.2), ZeroMean(), Gaussian(fixed(0.0)))
    assert closed(Sparse(20)).infer(m, Data(X, X, np.ones(1))).outcome.jitter == pytest.approx(1e-12)
    assert (
        closed(Sparse(20))
        .infer(Model(m.kernel, m.mean, Gaussian(0.1)), Data(X, X, np.ones(1)))
        .outcome.jitter
        == 0
    )


def test_function_space_is_the_same_posterior(data):
    posterior = closed(Sparse(20)).infer(model(), data).posterior
    points = np.random.default_rng(0).standard_normal((30, 3))
    for ours, theirs in zip(posterior.function_space.moments(points), posterior.moments(points), strict=True):
        assert_allclose(ours, theirs, atol=1e-10)


def test_leave_one_out_by_leaving_out(data):
    """The closed form against as many fits with the same landmarks: dtc leaves a row out of its sums."""
    few = Data(data.X[:30], data.Y[:30, :1], np.ones(1))
    m = Model(1.0 * Matern32(1.0), ZeroMean(), Gaussian(0.1))
    method = closed(Nystrom(8)).prepared(m, few, np.random.default_rng(0))
    cavities = method.cavities(m, few, method.infer(m, few).posterior)
    for i in (0, 7, 29):
        rest = np.delete(np.arange(30), i)
        posterior = method.infer(m, Data(few.X[rest], few.Y[rest], few.scale)).posterior
        mean, _ = posterior.moments(few.X[[i]])
        assert cavities.mean[i, 0] == pytest.approx(mean[0, 0], abs=1e-9)
        Phi = posterior.features.block(few.X[[i]])
        inside = float(np.sum((posterior.roots[0] @ Phi.T) ** 2))
        assert cavities.var[i, 0] == pytest.approx(inside, rel=1e-9)


def test_learned_points_raise_the_bound(data):
    X, y = data.X, data.Y[:, 0]
    held = gm.GPRegressor(1.0 * gm.RBF(1.0), method=gm.Sparse(8, inducing="uniform"), random_state=0).fit(
        X, y
    )
    moved = gm.GPRegressor(
        1.0 * gm.RBF(1.0), method=gm.Sparse(8, inducing="uniform", optimize_inducing=True), random_state=0
    ).fit(X, y)
    assert moved.evidence_.value > held.evidence_.value + 1
    assert moved.evidence_.kind == "lower bound"


@pytest.mark.parametrize("objective", ["vfe", "dtc"])
def test_gradient_where_noise_is_level_within_chunks_but_not_between(monkeypatch, objective):
    """A chunk with one noise beside others with another: only where all rows have one is the trace of A^-1
    known in closed form."""
    monkeypatch.setattr(lowrank, "chunk_rows", lambda m: 20)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    data = Data(X, np.sin(X[:, :1]), np.ones(1), noise_var=np.repeat([0.1, 0.3, 0.2], 20))
    method = closed(LowRank(NystromBasis(X[:8].copy()), TREATED[objective], objective, ""))
    _, gradients = method.evidence_and_gradient(
        Model(1.0 * RBF(1.0), ZeroMean(), Gaussian(0.05)), data, Workspace()
    )
    up, down = (
        method.evidence(Model(1.0 * RBF(1.0), ZeroMean(), Gaussian(0.05 + h)), data, Workspace()).value
        for h in (1e-5, -1e-5)
    )
    assert float(gradients[-1]) == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_features_by_product_are_those_by_division():
    """Within what the map itself says, and only where that is allowed."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    features = NystromBasis(X[:10].copy()).at(1.0 * RBF(1.0))
    exact, quick = features.block(X), features.block(X, tolerance=1.0)
    assert_allclose(np.sum(quick**2, axis=1), np.sum(exact**2, axis=1), atol=10 * features.product_error)
    assert not np.array_equal(exact, quick)
    assert np.array_equal(exact, features.block(X, tolerance=0.5 * features.product_error))
