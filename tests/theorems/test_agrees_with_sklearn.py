"""The same models in scikit-learn's GaussianProcessRegressor give the same evidence, gradient, predictions,
and an optimum no better than ours.

Both factor the same matrix of condition number 1e3 or so, hence the tolerance of 1e-9 (see
test_slow_references).
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import gramian as gm
from gramian.kernels.convert import from_sklearn

# Sums are written with the noise last and scales in front, so that both libraries stack their logarithms in
# the same order; only the rational quadratic has its two the other way round.
KERNELS = {
    "constant * RBF + white": sk.ConstantKernel(1.7) * sk.RBF(0.8) + sk.WhiteKernel(0.06),
    "ARD": sk.ConstantKernel(0.6) * sk.RBF([0.8, 1.9]) + sk.WhiteKernel(0.1),
    "Matern 1/2": sk.Matern(1.1, nu=0.5) + sk.WhiteKernel(0.1),
    "Matern 3/2 ARD": sk.ConstantKernel(0.6) * sk.Matern([0.8, 1.9], nu=1.5) + sk.WhiteKernel(0.1),
    "Matern 5/2 + RBF": sk.Matern(1.1, nu=2.5) + sk.ConstantKernel(0.4) * sk.RBF(0.5) + sk.WhiteKernel(0.1),
    "rational quadratic": (
        sk.ConstantKernel(1.2) * sk.RationalQuadratic(length_scale=0.9, alpha=0.5) + sk.WhiteKernel(0.1)
    ),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    X = rng.uniform(-1, 2, (30, 2))
    y = 5 + 3 * np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=30)
    return X, y, rng.uniform(-1.5, 2.5, (8, 2))


@pytest.mark.parametrize("normalize_y", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_evidence_gradient_and_predictions(name, normalize_y, data):
    X, y, Z = data
    theirs = GaussianProcessRegressor(KERNELS[name], alpha=0.0, optimizer=None, normalize_y=normalize_y).fit(
        X, y
    )
    kernel, noise = from_sklearn(KERNELS[name])
    # scikit-learn's WhiteKernel is in units of the normalised y; noise is in the units of y here.
    variance = np.var(y) if normalize_y else 1.0
    ours = gm.GPRegressor(
        kernel, noise=float(noise) * variance, mean="zero", normalize_y=normalize_y, optimize=False
    ).fit(X, y)

    value, gradient = ours.log_evidence(return_grad=True)
    their_value, their_gradient = theirs.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True)
    assert_allclose(value, their_value, rtol=1e-9)
    if name == "rational quadratic":
        their_gradient = their_gradient[[0, 2, 1, 3]]
    assert_allclose(gradient, their_gradient, rtol=1e-8, atol=1e-8)
    for theirs_is, ours_is in zip(
        theirs.predict(Z, return_std=True), ours.predict(Z, return_std=True), strict=True
    ):
        assert_allclose(ours_is, theirs_is, rtol=1e-9)
    assert_allclose(
        ours.predict(Z, return_cov=True)[1], theirs.predict(Z, return_cov=True)[1], rtol=1e-9, atol=1e-10
    )


@pytest.mark.parametrize("normalize_y", [False, True])
def test_several_outputs(normalize_y, data):
    X, y, Z = data
    Y = np.column_stack([y, 100 * np.cos(y)])
    kernel = sk.ConstantKernel(0.6) * sk.RBF([0.8, 1.9])
    theirs = GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None, normalize_y=normalize_y).fit(X, Y)
    ours = gm.GPRegressor(
        0.6 * gm.RBF([0.8, 1.9]), noise=gm.fixed(0.1), mean="zero", normalize_y=normalize_y, optimize=False
    )
    if normalize_y:  # alpha is relative to each output's variance there: one noise an output here
        parts = [
            gm.GPRegressor(**(ours.get_params() | {"noise": gm.fixed(0.1 * np.var(Y[:, k]))})).fit(X, Y[:, k])
            for k in range(2)
        ]
        mean, std = (
            np.column_stack(columns)
            for columns in zip(*(part.predict(Z, return_std=True, target="f") for part in parts), strict=True)
        )
        evidence = sum(part.log_evidence() for part in parts)
    else:
        mean, std = ours.fit(X, Y).predict(Z, return_std=True, target="f")
        evidence = ours.log_evidence()
    expected, deviation = theirs.predict(Z, return_std=True)
    assert_allclose(evidence, theirs.log_marginal_likelihood_value_, rtol=1e-9)
    assert_allclose(mean, expected, rtol=1e-9)
    assert_allclose(std, deviation, rtol=1e-9)


def test_noise_row_by_row_is_their_vector_alpha(data):
    X, y, Z = data
    alpha = np.linspace(0.01, 1, len(y))
    theirs = GaussianProcessRegressor(sk.RBF(0.9), alpha=alpha, optimizer=None).fit(X, y)
    ours = gm.GPRegressor(gm.RBF(0.9), noise=gm.fixed(0), mean="zero", normalize_y=False, optimize=False).fit(
        X, y, noise_var=alpha
    )
    assert_allclose(ours.log_evidence(), theirs.log_marginal_likelihood_value_, rtol=1e-9)
    for theirs_is, ours_is in zip(
        theirs.predict(Z, return_std=True), ours.predict(Z, return_std=True), strict=True
    ):
        assert_allclose(ours_is, theirs_is, rtol=1e-9)


@pytest.mark.parametrize("name", ["constant * RBF + white", "Matern 3/2 ARD"])
def test_the_optimum_is_at_least_as_good(name, data):
    """Theirs stops at a relative gain of 2e-9, ours at a vanishing gradient: the same place, and never
    below."""
    X, y, _ = data
    theirs = GaussianProcessRegressor(KERNELS[name], alpha=0.0, normalize_y=True).fit(X, y)
    kernel, noise = from_sklearn(KERNELS[name])
    ours = gm.GPRegressor(kernel, noise=float(noise) * np.var(y), mean="zero", n_restarts=0).fit(X, y)
    assert ours.evidence_.value >= theirs.log_marginal_likelihood_value_ - 1e-9
    assert_allclose(ours.evidence_.value, theirs.log_marginal_likelihood_value_, rtol=1e-6)
    converted = from_sklearn(theirs.kernel_).kernel
    ours_at, theirs_at = ours.kernel_.parameters(), converted.parameters()
    for path, parameter in ours_at.items():
        assert_allclose(parameter.value, theirs_at[path].value, rtol=1e-2)


def test_a_converted_kernel_brings_its_noise_along(data):
    X, y, Z = data
    kernel = KERNELS["ARD"]
    theirs = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)
    ours = gm.GPRegressor(from_sklearn(kernel), mean="zero", normalize_y=False, optimize=False).fit(X, y)
    assert_allclose(ours.predict(Z, return_std=True)[1], theirs.predict(Z, return_std=True)[1], rtol=1e-9)
