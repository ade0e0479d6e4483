"""Certificates hold: where the exact answer is computable, the error lies within what was certified, on easy
and on hopeless approximations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.certify import bounds
from gramian.certify import certificate as module
from gramian.errors import NumericalError
from gramian.features.nystrom import NystromBasis
from gramian.inference.model import Data, Model, noise_groups
from gramian.likelihoods import Gaussian
from gramian.means import ZeroMean


def problem(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    if kind == "smooth":
        X = rng.uniform(-2, 2, (300, 1))
        return X, 20 * np.sin(2 * X[:, 0]) + rng.standard_normal(300)
    if kind == "rough":
        X = rng.standard_normal((260, 4))
        return X, np.abs(X[:, 0]) + np.sign(X[:, 1]) + 0.1 * rng.standard_normal(260)
    X = np.repeat(rng.uniform(0, 1, (60, 2)), 4, axis=0)  # rows that repeat
    return X, np.cos(5 * X[:, 0]) + 0.3 * rng.standard_normal(240)


KERNELS = {"smooth": 1.0 * gm.RBF(0.7), "rough": 2.0 * gm.Matern12(1.0), "repeats": 1.0 * gm.Matern32(0.3)}


FEW = {"LANDMARKS": 20}
WAYS = {
    "factored": FEW,
    "solved": FEW | {"FACTORED_UP_TO": 0},
    "few steps": FEW | {"FACTORED_UP_TO": 0, "steps": lambda n: 2},
    "streamed": FEW | {"SOLVED_UP_TO": 0},
}


def within(monkeypatch, way):
    for name, value in WAYS[way].items():
        monkeypatch.setattr(bounds, name, value)


@pytest.mark.parametrize("kind", ["smooth", "rough", "repeats"])
@pytest.mark.parametrize(
    "method", [gm.Nystrom(15), gm.Sparse(30), gm.Sparse(10, "fitc"), gm.Fourier(60), gm.CG(tol=1e-3)]
)
def test_the_true_error_lies_within(kind, method, monkeypatch):
    X, y = problem(kind)
    settings = {"noise": 0.05 * np.var(y), "optimize": False, "random_state": 0}
    exact = gm.GPRegressor(KERNELS[kind], method="exact", **settings).fit(X, y)
    gp = gm.GPRegressor(KERNELS[kind], method=method, **settings).fit(X, y)
    (mean, std), (exact_mean, exact_std) = (
        model.predict(X, return_std=True, target="f") for model in (gp, exact)
    )
    monkeypatch.setattr(module, "POINTS", len(X))  # at all rows, so that the largest error is the largest
    monkeypatch.setattr(module, "PART", len(X))
    slack = 1e-6 * np.std(y)  # of rounding, and of the jitter in K_zz
    for way in WAYS:
        with monkeypatch.context() as patch:
            within(patch, way)
            gp.fitted_ = replace(gp.fitted_, certificate=None)
            given = gp.certificate()
        assert given.evidence_lower.value <= exact.evidence_.value + 1e-6
        assert given.evidence_upper.value >= exact.evidence_.value - 1e-6
        assert given.evidence_lower.kind == given.evidence_upper.kind == given.mean_error.kind == "bound"
        assert np.max(np.abs(mean - exact_mean)) <= given.mean_error.value + slack
        assert np.max(np.abs(std - exact_std)) <= given.std_error.value + slack
        # On all rows the part is the whole, so that the estimate is the error itself.
        assert given.mean_error_rms.kind == "estimate"
        assert_allclose(
            given.mean_error_rms.value, np.sqrt(np.mean((mean - exact_mean) ** 2)), rtol=1e-4, atol=slack
        )


@pytest.mark.parametrize(("kind", "way"), [("smooth", "solved"), ("rough", "solved"), ("rough", "factored")])
def test_solves_make_bounds_tight(kind, way, monkeypatch):
    """Errors of solves count squared, so that what is certified is the error itself to a few digits, however
    bad the landmarks."""
    X, y = problem(kind)
    settings = {"noise": 0.05 * np.var(y), "optimize": False, "random_state": 0}
    exact = gm.GPRegressor(KERNELS[kind], method="exact", **settings).fit(X, y)
    gp = gm.GPRegressor(KERNELS[kind], method=gm.Sparse(5), **settings).fit(X, y)
    monkeypatch.setattr(module, "POINTS", len(X))
    within(monkeypatch, way)
    (mean, std), (exact_mean, exact_std) = (
        model.predict(X, return_std=True, target="f") for model in (gp, exact)
    )
    assert_allclose(gp.certificate().mean_error.value, np.max(np.abs(mean - exact_mean)), rtol=1e-3)
    assert_allclose(gp.certificate().std_error.value, np.max(np.abs(std - exact_std)), rtol=1e-3)
    if way == "factored":
        assert_allclose(
            [gp.certificate().evidence_lower.value, gp.certificate().evidence_upper.value],
            exact.evidence_.value,
            rtol=1e-9,
        )


def test_a_log_determinant_lies_between(monkeypatch):
    """However small the noise is: the variational bound alone grows with 1 / noise, here beyond 1e7."""
    X, y = problem("rough")
    model = Model(KERNELS["rough"], ZeroMean(), Gaussian(1e-6))
    data = Data(X, y[:, None], np.ones(1))
    group, features = noise_groups(model, data)[0], NystromBasis(X[:30]).at(model.kernel)
    low, high = bounds._SharedNoise(model, data, features, group).log_determinants()
    exact = np.linalg.slogdet(model.kernel(X) + 1e-6 * np.eye(len(X)))[1]
    assert low < exact < high
    assert high - exact < 150 + 30  # fitc's own gap, and one a landmark


def test_bounds_close_in_as_landmarks_are_added(monkeypatch):
    monkeypatch.setattr(bounds, "SOLVED_UP_TO", 0)  # a posterior's own landmarks
    X, y = problem("smooth")
    gaps = []
    for m in (4, 8, 16, 32):
        gp = gm.GPRegressor(
            KERNELS["smooth"], method=gm.Sparse(m, inducing="pivoted"), noise=1.0, optimize=False
        ).fit(X, y)
        gaps.append(gp.certificate().evidence_upper.value - gp.certificate().evidence_lower.value)
    assert np.all(np.diff(gaps) < 0)
    assert gaps[-1] < 1e-3


def test_without_noise_there_is_none():
    X, y = problem("smooth")
    with pytest.raises(NumericalError, match="noise above zero"):
        _ = (
            gm.GPRegressor(KERNELS["rough"], noise=0.0, method=gm.Sparse(20), optimize=False)
            .fit(X, y)
            .certificate()
        )


def test_exact_is_exact():
    X, y = problem("smooth")
    given = gm.GPRegressor(method="exact").fit(X, y).certificate()
    assert given.mean_error.value == 0
    assert given.mean_error.kind == "exact"
    assert "exact" in str(given)


def test_it_says_what_each_number_is():
    X, y = problem("smooth")
    text = str(gm.GPRegressor(method=gm.Sparse(10), optimize=False).fit(X, y).certificate())
    assert text.count("(bound)") == 4
    assert text.count("(estimate)") == 2


@pytest.mark.parametrize("method", [gm.CG(rank=20), gm.MINRES(rank=20), gm.Sparse(20), gm.Fourier(40)])
def test_a_part_smaller_than_the_data(method, monkeypatch):
    """Preconditioners are made of rows of the data, which a part does not have; landmarks and frequencies
    serve a part as they are."""
    monkeypatch.setattr(module, "PART", 50)
    X, y = problem("smooth")
    given = (
        gm.GPRegressor(KERNELS["smooth"], method=method, noise=1.0, optimize=False, random_state=0)
        .fit(X, y)
        .certificate()
    )
    assert given.mean_error_rms.kind == "estimate"
    assert np.isfinite(given.mean_error_rms.value)


def test_certificates_keep_to_the_memory_limit(monkeypatch):
    """Where a factor of all rows does not fit, solves by CG do: bounds that hold, not the error itself."""
    X, y = problem("rough")
    gp = gm.GPRegressor(
        KERNELS["rough"], noise=0.1, method=gm.Sparse(20), optimize=False, random_state=0
    ).fit(X, y)
    monkeypatch.setattr(bounds, "LANDMARKS", 20)
    factored = gp.certificate()
    gp.fitted_, gp.memory_limit = replace(gp.fitted_, certificate=None), 8 * len(X) ** 2
    monkeypatch.setattr(bounds, "Cholesky", None)
    solved = gp.certificate()
    assert factored.evidence_upper.value - factored.evidence_lower.value < 1e-6
    assert solved.evidence_lower.value < factored.evidence_lower.value
    assert solved.mean_error.value == pytest.approx(factored.mean_error.value, rel=0.01)


@pytest.mark.parametrize("noise", [1e-8, 1e-10])
@pytest.mark.parametrize(
    "method",
    [gm.Sparse(10), gm.Sparse(30), gm.Nystrom(8), gm.CG()],
    ids=["vfe:10", "vfe:30", "nystrom:8", "cg"],
)
def test_bounds_hold_where_noise_comes_near_rounding(method, noise):
    """Against Cholesky in extended precision. y does not fit the model, so that weights are large and
    rounding is amplified."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(30, 1))
    y = np.sin(6 * X[:, 0]) + 0.3 * rng.normal(size=30)
    gp = gm.GPRegressor(
        gm.RBF(0.3),
        noise=gm.fixed(noise),
        mean="zero",
        normalize_y=False,
        optimize=False,
        method=method,
        random_state=0,
        n_restarts=0,
    ).fit(X, y)
    wide = X.astype(np.longdouble)
    K = np.exp(-((wide - wide.T) ** 2) / (2 * np.longdouble(0.3) ** 2))
    L = extended_cholesky(K + np.longdouble(noise) * np.eye(30))
    B = forward(L, np.column_stack([y.astype(np.longdouble), K]))
    evidence = float(-0.5 * B[:, 0] @ B[:, 0] - np.sum(np.log(np.diag(L))) - 15 * np.log(2 * np.pi))
    mean, std = (B[:, 1:].T @ B[:, 0]).astype(float), np.sqrt(1 - np.sum(B[:, 1:] ** 2, axis=0)).astype(float)
    found, (ours, spread) = gp.certificate(), gp.predict(X, return_std=True, target="f")
    assert found.evidence_lower.value <= evidence <= found.evidence_upper.value
    assert np.max(np.abs(ours - mean)) <= found.mean_error.value
    assert np.max(np.abs(spread - std)) <= found.std_error.value * (1 + 1e-6) + 1e-12


def extended_cholesky(A: np.ndarray) -> np.ndarray:
    L = np.zeros_like(A)
    for j in range(len(A)):
        L[j, j] = np.sqrt(A[j, j] - L[j, :j] @ L[j, :j])
        L[j + 1 :, j] = (A[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return L


def forward(L: np.ndarray, B: np.ndarray) -> np.ndarray:
    X = np.zeros_like(B)
    for i in range(len(L)):
        X[i] = (B[i] - L[i, :i] @ X[:i]) / L[i, i]
    return X
