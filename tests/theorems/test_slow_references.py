"""Log evidence, its gradient, predictions, leave-one-out, components and gradients of f equal slow textbook
versions.

The matrices here have condition numbers up to 1e3 (noise 0.05 of a variance near 1, 25 rows), so two ways to
an answer may differ by 1e3 * 25 * 2e-16 = 5e-12 of its size. 1e-9 leaves room for the sums in between, and
would still show a wrong term anywhere.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from tests.reference import gp as slow
from tests.reference import kernels as ref

TIGHT = {"rtol": 1e-9, "atol": 1e-10}
KERNELS = {
    "RBF ARD": (1.3 * gm.RBF([0.7, 1.4]), lambda x, z: 1.3 * ref.rbf([0.7, 1.4])(x, z)),
    "Matern12": (gm.Matern12(0.9), ref.matern(0.5, 0.9)),
    "Matern52 + Linear": (
        0.8 * gm.Matern52([0.6, 1.1]) + gm.Linear([0.3, 0.2]),
        lambda x, z: 0.8 * ref.matern(2.5, [0.6, 1.1])(x, z) + ref.linear([0.3, 0.2])(x, z),
    ),
    "Periodic * RBF on a column": (
        (gm.Periodic(1.2, 0.8) * gm.RBF(2.0)).on(1) + gm.Constant(0.5),
        lambda x, z: ref.periodic(1.2, 0.8)(x[1:], z[1:]) * ref.rbf(2.0)(x[1:], z[1:]) + 0.5,
    ),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 2, (25, 2))
    y = np.sin(2 * X[:, 0]) + 0.4 * X[:, 1] + 0.2 * rng.normal(size=25) + 0.7
    return X, y, rng.uniform(-1.5, 2.5, (9, 2))


def fitted(kernel, X, y, **settings):
    settings = {"noise": gm.fixed(0.05), "normalize_y": False, "mean": "zero", "optimize": False} | settings
    noise_var = settings.pop("noise_var", None)
    return gm.GPRegressor(kernel, **settings).fit(X, y, noise_var)


@pytest.mark.parametrize("name", KERNELS)
def test_evidence_predictions_and_leave_one_out(name, data):
    kernel, k = KERNELS[name]
    X, y, Z = data
    noise = np.full(len(y), 0.05)
    gp = fitted(kernel, X, y)
    assert_allclose(gp.log_evidence(), slow.evidence(k, X, y, noise), **TIGHT)
    assert gp.evidence_.kind == "exact"
    assert gp.log_evidence() == gp.evidence_.value

    mean, cov = slow.condition(k, X, y, noise, Z)
    assert_allclose(gp.predict(Z), mean, **TIGHT)
    assert_allclose(gp.predict(Z, return_std=True, target="f")[1] ** 2, np.diag(cov), **TIGHT)
    assert_allclose(gp.predict(Z, return_std=True)[1] ** 2, np.diag(cov) + 0.05, **TIGHT)
    assert_allclose(gp.predict(Z, return_cov=True, target="f")[1], cov, **TIGHT)
    assert_allclose(gp.predict(Z, return_cov=True)[1], cov + 0.05 * np.eye(len(Z)), **TIGHT)

    for ours, theirs in zip(gp.loo(), slow.leave_one_out(k, X, y, noise), strict=True):
        assert_allclose(ours, theirs, **TIGHT)


def test_noise_that_differs_row_by_row(data):
    kernel, k = KERNELS["RBF ARD"]
    X, y, Z = data
    known = np.linspace(0.01, 0.5, len(y))
    gp = fitted(kernel, X, y, noise_var=known)
    noise = 0.05 + known
    assert_allclose(gp.log_evidence(), slow.evidence(k, X, y, noise), **TIGHT)
    mean, cov = slow.condition(k, X, y, noise, Z)
    assert_allclose(gp.predict(Z), mean, **TIGHT)
    assert_allclose(gp.predict(Z, return_cov=True, target="f")[1], cov, **TIGHT)
    for ours, theirs in zip(gp.loo(), slow.leave_one_out(k, X, y, noise), strict=True):
        assert_allclose(ours, theirs, **TIGHT)


@pytest.mark.parametrize(
    ("mean", "m"),
    [
        ("zero", lambda x: 0.0),
        (gm.ConstantMean(0.6), lambda x: 0.6),
        (gm.LinearMean(0.3, [0.5, -0.2]), lambda x: 0.3 + 0.5 * x[0] - 0.2 * x[1]),
    ],
    ids=["zero", "constant", "linear"],
)
def test_mean_functions(mean, m, data):
    kernel, k = KERNELS["RBF ARD"]
    X, y, Z = data
    noise = np.full(len(y), 0.05)
    if isinstance(mean, gm.LinearMean):  # fitting measures from the average of X unless a centre is given
        mean = gm.LinearMean(0.3, [0.5, -0.2], centre=(0.0, 0.0))
    gp = fitted(kernel, X, y, mean=mean)
    assert_allclose(gp.log_evidence(), slow.evidence(k, X, y, noise, m), **TIGHT)
    expected, cov = slow.condition(k, X, y, noise, Z, m)
    assert_allclose(gp.predict(Z), expected, **TIGHT)
    assert_allclose(gp.predict(Z, return_cov=True, target="f")[1], cov, **TIGHT)
    for ours, theirs in zip(gp.loo(), slow.leave_one_out(k, X, y, noise, m), strict=True):
        assert_allclose(ours, theirs, **TIGHT)


def test_a_linear_mean_is_measured_from_the_average_of_X(data):
    X, y, Z = data
    gp = fitted(gm.RBF([0.7, 1.4]), X, y, mean=gm.LinearMean(0.3, [0.5, -0.2]))
    centre = X.mean(axis=0)
    mean, _ = slow.condition(
        ref.rbf([0.7, 1.4]),
        X,
        y,
        np.full(len(y), 0.05),
        Z,
        lambda x: 0.3 + 0.5 * (x[0] - centre[0]) - 0.2 * (x[1] - centre[1]),
    )
    assert_allclose(gp.predict(Z), mean, **TIGHT)


def test_normalised_y_means_a_kernel_in_units_of_its_variance(data):
    """f = m + s g: the reference sees s^2 k and the noise in the units of y."""
    kernel, k = KERNELS["RBF ARD"]
    X, y, Z = data
    y = 40 + 12 * y
    s, average = y.std(), y.mean()
    noise = np.full(len(y), 3.0)
    gp = fitted(kernel, X, y, noise=gm.fixed(3.0), normalize_y=True)

    def scaled(x, z):
        return s**2 * k(x, z)

    mean, cov = slow.condition(scaled, X, y, noise, Z, lambda x: average)
    assert_allclose(gp.predict(Z), mean, **TIGHT)
    assert_allclose(gp.predict(Z, return_cov=True)[1], cov + 3.0 * np.eye(len(Z)), **TIGHT)
    for ours, theirs in zip(
        gp.loo(), slow.leave_one_out(scaled, X, y, noise, lambda x: average), strict=True
    ):
        assert_allclose(ours, theirs, **TIGHT)
    # The evidence is that of y / s: a change of variables adds n log s to the log density.
    assert_allclose(
        gp.log_evidence(), slow.evidence(scaled, X, y, noise, lambda x: average) + len(y) * np.log(s), **TIGHT
    )


def test_several_outputs_are_independent_and_share_the_kernel(data):
    kernel, k = KERNELS["RBF ARD"]
    X, y, Z = data
    Y = np.column_stack([y, 3 - 2 * y**2, np.cos(y)])
    noise = np.full(len(y), 0.05)
    gp = fitted(kernel, X, Y)
    mean, std = gp.predict(Z, return_std=True)
    cov = gp.predict(Z, return_cov=True, target="f")[1]
    loo = gp.loo()
    assert mean.shape == std.shape == (9, 3)
    assert cov.shape == (9, 9, 3)
    total = 0.0
    for j in range(3):
        expected, covariance = slow.condition(k, X, Y[:, j], noise, Z)
        assert_allclose(mean[:, j], expected, **TIGHT)
        assert_allclose(cov[:, :, j], covariance, **TIGHT)
        assert_allclose(std[:, j] ** 2, np.diag(covariance) + 0.05, **TIGHT)
        for ours, theirs in zip(loo, slow.leave_one_out(k, X, Y[:, j], noise), strict=True):
            assert_allclose(ours[:, j], theirs, **TIGHT)
        total += slow.evidence(k, X, Y[:, j], noise)
    assert_allclose(gp.log_evidence(), total, **TIGHT)


def test_several_outputs_of_different_spread_when_normalised(data):
    """Each output has its own scale; noise that is given in the units of y then differs between them, and so
    do their factors."""
    kernel, k = KERNELS["RBF ARD"]
    X, y, Z = data
    Y = np.column_stack([y, 1000 * np.cos(3 * y)])
    gp = fitted(kernel, X, Y, noise=gm.fixed(0.3), normalize_y=True)
    mean, std = gp.predict(Z, return_std=True)
    total = 0.0
    for j in range(2):
        s, average = Y[:, j].std(), Y[:, j].mean()
        expected, cov = slow.condition(
            lambda x, z: s**2 * k(x, z),  # noqa: B023
            X,
            Y[:, j],
            np.full(25, 0.3),
            Z,
            lambda x: average,  # noqa: B023
        )
        # The second output has next to no noise (0.3 of 5e5), hence a condition number of 1e7.
        assert_allclose(mean[:, j], expected, rtol=1e-6, atol=1e-8 * s)
        assert_allclose(std[:, j], np.sqrt(np.diag(cov) + 0.3), rtol=1e-6)
        total += slow.evidence(
            lambda x, z: s**2 * k(x, z),  # noqa: B023
            X,
            Y[:, j],
            np.full(25, 0.3),
            lambda x: average,  # noqa: B023
        ) + 25 * np.log(s)
    assert_allclose(gp.log_evidence(), total, rtol=1e-7)


def test_components_are_the_conditional_of_each_summand(data):
    X, y, Z = data
    kernel, _ = KERNELS["Matern52 + Linear"]
    parts = [lambda x, z: 0.8 * ref.matern(2.5, [0.6, 1.1])(x, z), ref.linear([0.3, 0.2])]
    gp = fitted(kernel, X, y, mean=gm.ConstantMean(0.6))
    found = gp.components(Z)
    assert list(found) == ["0.8 * Matern52([0.6, 1.1])", "Linear([0.3, 0.2])"]
    inverse = np.linalg.inv(sum(ref.gram(k, X, X) for k in parts) + 0.05 * np.eye(len(y)))
    for k, (mean, std) in zip(parts, found.values(), strict=True):
        cross = ref.gram(k, Z, X)
        assert_allclose(mean, cross @ inverse @ (y - 0.6), **TIGHT)
        assert_allclose(std**2, np.diag(ref.gram(k, Z, Z) - cross @ inverse @ cross.T), **TIGHT)
    assert_allclose(sum(mean for mean, _ in found.values()) + 0.6, gp.predict(Z), **TIGHT)


def test_components_of_equal_terms_and_of_a_single_kernel(data):
    X, y, Z = data
    gp = fitted(gm.RBF([1.0, 1.0]) + gm.RBF([1.0, 1.0]), X, y)
    found = gp.components(Z)
    assert list(found) == ["RBF([1, 1])", "RBF([1, 1]) #2"]
    assert_allclose(sum(mean for mean, _ in found.values()), gp.predict(Z), **TIGHT)
    gp = fitted(gm.RBF([1.0, 1.0]), X, y)
    ((mean, std),) = gp.components(Z).values()
    assert_allclose(mean, gp.predict(Z), **TIGHT)
    assert_allclose(std, gp.predict(Z, return_std=True, target="f")[1], **TIGHT)


@pytest.mark.parametrize(
    ("kernel", "k", "slopes"),
    [
        (gm.RBF([0.7, 1.4]), ref.rbf([0.7, 1.4]), slow.rbf_slopes),
        (gm.Matern32([0.7, 1.4]), ref.matern(1.5, [0.7, 1.4]), slow.matern32_slopes),
        (gm.Matern52([0.7, 1.4]), ref.matern(2.5, [0.7, 1.4]), slow.matern52_slopes),
    ],
    ids=["RBF", "Matern32", "Matern52"],
)
def test_gradient_of_f(kernel, k, slopes, data):
    X, y, Z = data
    Z = np.concatenate([Z, X[:2]])  # at training rows too, where distances are zero
    gp = fitted(kernel, X, y)
    mean, var = gp.predict_gradient(Z)
    expected, variance = slow.gradient_moments(k, *slopes([0.7, 1.4]), X, y, np.full(len(y), 0.05), Z)
    assert_allclose(mean, expected, **TIGHT)
    assert_allclose(var, variance, **TIGHT)


def test_gradient_of_f_is_the_slope_of_the_mean(data):
    """Central differences of four points: an error of h^4 = 1e-12 times a fifth derivative, and 1e-15 / h =
    1e-12."""
    X, y, Z = data
    Y = np.column_stack([y, 5 + 100 * y**2])
    kernel = 0.8 * gm.Matern52([0.6, 1.1]) + gm.Linear([0.3, 0.2]) + gm.NeuralNetwork(2.0)
    gp = fitted(kernel, X, Y, normalize_y=True, mean="linear", optimize=False)
    mean, var = gp.predict_gradient(Z)
    assert mean.shape == var.shape == (9, 2, 2)
    assert np.all(var >= 0)
    h = 1e-3
    for j in range(2):
        step = h * np.eye(2)[j]
        slope = (
            8 * (gp.predict(Z + step) - gp.predict(Z - step))
            - (gp.predict(Z + 2 * step) - gp.predict(Z - 2 * step))
        ) / (12 * h)
        assert_allclose(mean[:, j, :], slope, rtol=1e-7, atol=1e-8 * np.abs(slope).max())


@pytest.mark.parametrize(
    "kernel", [gm.Matern12(1.0), gm.RBF(1.0) + gm.Matern12(1.0), gm.Brownian(), gm.ArcCosine(0)], ids=str
)
def test_rough_functions_have_no_gradient(kernel, data):
    X, y, Z = data
    gp = fitted(kernel, X, y)
    with pytest.raises(ParameterError, match="have no gradient") as caught:
        gp.predict_gradient(Z)
    assert str(kernel) in str(caught.value)
    assert "Matern32" in str(caught.value)


def test_gradient_of_the_evidence_by_a_double_loop(data):
    """Each entry by 1/2 tr((alpha alpha' - A^-1) dA/dtheta), with dA/dtheta derived by hand.

    theta holds logarithms of positive parameters, and a mean in units of the spread of y.
    """
    X, y, _ = data
    lengthscale, scale, noise, level = np.array([0.7, 1.4]), 1.3, 0.05, 0.6
    gp = fitted(scale * gm.RBF(lengthscale), X, y, mean=gm.ConstantMean(level), noise=noise)
    value, gradient = gp.log_evidence(return_grad=True)
    K = ref.gram(lambda x, z: scale * ref.rbf(lengthscale)(x, z), X, X)
    A, r = K + noise * np.eye(len(y)), y - level
    squares = [
        np.array([[(a - b) ** 2 / lengthscale[j] ** 2 for b in X[:, j]] for a in X[:, j]]) for j in range(2)
    ]
    by_name = {
        "kernel.scale": slow.evidence_slope(K, A, r),
        "kernel.lengthscale[0]": slow.evidence_slope(K * squares[0], A, r),
        "kernel.lengthscale[1]": slow.evidence_slope(K * squares[1], A, r),
        "mean.value": y.std() * float(np.sum(np.linalg.inv(A) @ r)),
        "noise": slow.evidence_slope(noise * np.eye(len(y)), A, r),
    }
    names = [row.name for row in gp.parameters_ if row.trainable]
    assert sorted(names) == sorted(by_name)
    assert value == gp.log_evidence()
    assert_allclose(gradient, [by_name[name] for name in names], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("kernel", "settings"),
    [
        (
            0.8 * gm.Matern52([0.6, 1.1]) + gm.Linear([0.3, 0.2]),
            {"mean": "linear", "noise": 0.1, "normalize_y": True},
        ),
        (
            (gm.Periodic(1.2, 0.8) * gm.RationalQuadratic(2.0, 0.7)).on(1) + 0.5,
            {"mean": "constant", "noise": 0.1},
        ),
        (None, {"mean": "constant", "normalize_y": True, "noise": None}),
    ],
    ids=["Matern52 + Linear, linear mean", "Periodic * RQ, constant mean", "default, three outputs"],
)
def test_gradient_of_the_evidence_by_differences(kernel, settings, data):
    """Four points a derivative at h = 1e-4: an error of 1e-16 / 30 times a fifth derivative (1e9 for a
    period), and 1e-13 / h = 1e-9 of rounding."""
    X, y, _ = data
    Y = np.column_stack([y, 3 - 2 * y**2, 50 * np.cos(y)]) if kernel is None else y
    gp = fitted(kernel, X, Y, **settings)
    rng = np.random.default_rng(8)
    at = gp.theta_ + 0.3 * rng.normal(size=gp.theta_.shape)
    value, gradient = gp.log_evidence(at, return_grad=True)
    assert value == gp.log_evidence(at)
    h = 1e-4
    for j in range(len(at)):
        e = h * np.eye(len(at))[j]
        slope = (
            8 * (gp.log_evidence(at + e) - gp.log_evidence(at - e))
            - (gp.log_evidence(at + 2 * e) - gp.log_evidence(at - 2 * e))
        ) / (12 * h)
        assert_allclose(gradient[j], slope, rtol=1e-7, atol=1e-7)


def test_known_noise_in_the_gradient_with_outputs_of_their_own_factor(data):
    X, y, _ = data
    Y = np.column_stack([y, 20 * np.cos(y)])
    gp = fitted(gm.RBF([0.7, 1.4]), X, Y, noise=0.2, normalize_y=True, noise_var=np.linspace(0.1, 2, len(y)))
    value, gradient = gp.log_evidence(return_grad=True)
    h = 1e-4
    for j in range(len(gp.theta_)):
        e = h * np.eye(len(gp.theta_))[j]
        at = gp.theta_
        slope = (
            8 * (gp.log_evidence(at + e) - gp.log_evidence(at - e))
            - (gp.log_evidence(at + 2 * e) - gp.log_evidence(at - 2 * e))
        ) / (12 * h)
        assert_allclose(gradient[j], slope, rtol=1e-7, atol=1e-7)
    assert np.isfinite(value)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 255, 257, 511, 513, 1030])
def test_evidence_at_sizes_around_the_edges_of_tiles(n):
    """Rows are padded to whole tiles; what is padded must not show. n = 1030 has condition 2e4: rounding of
    1030 * 2e4 * 2e-16 = 4e-9."""
    rng = np.random.default_rng(n)
    X = rng.uniform(-2, 2, (n, 3))
    y = np.sin(X.sum(axis=1)) + 0.1 * rng.normal(size=n)
    gp = fitted(gm.RBF(1.5), X, y, noise=0.05)
    value, gradient = gp.log_evidence(return_grad=True)
    r2 = sum((X[:, [j]] - X[:, j]) ** 2 for j in range(3)) / 1.5**2
    K = np.exp(-r2 / 2)
    A = K + 0.05 * np.eye(n)
    assert_allclose(value, slow.log_normal(y, np.zeros(n), A), rtol=1e-9)
    inverse = np.linalg.inv(A)
    W = 0.5 * (np.outer(inverse @ y, inverse @ y) - inverse)
    assert_allclose(gradient, [np.sum(W * K * r2), 0.05 * np.trace(W)], rtol=1e-8, atol=1e-8)
