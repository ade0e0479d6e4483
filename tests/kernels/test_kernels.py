"""Each kernel keeps the contract, equals its published formula and scikit-learn's version, and refuses
impossible values."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import kernels as sk

from gramian.errors import InputError, ParameterError
from gramian.gram import tiles
from gramian.kernels import (
    RBF,
    ArcCosine,
    Brownian,
    Categorical,
    Constant,
    Cosine,
    IntegratedBrownian,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    NeuralNetwork,
    Periodic,
    Polynomial,
    RationalQuadratic,
    SpectralMixture,
    exp,
    map_inputs,
    poly,
    warp,
)
from gramian.params import LogNormal, fixed, param
from gramian.testing import check_kernel
from tests.reference import kernels as reference

ARD = [0.5, 1.0, 2.0]
MATRIX = [[2.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]]


def height(x):
    return 1.0 + x[0] ** 2


def circle(x):
    return jnp.stack([jnp.sin(x[0]), jnp.cos(x[0]), x[1]])


# The contract

KERNELS = [
    *(
        RBF(0.8),
        RBF(ARD),
        Matern12(ARD),
        Matern32(ARD),
        Matern52(0.8),
        Matern52(ARD),
        RationalQuadratic(0.8, 1.5),
        RationalQuadratic(ARD, 1.5),
    ),
    *(Periodic(0.8, 1.3), Periodic(ARD, [1.0, 2.0, 3.0]), Cosine(1.7), Cosine(ARD)),
    SpectralMixture([1.0, 0.5], [0.3, -0.2], [0.4, 0.1]),
    SpectralMixture([1.0, 0.5], [[0.3, 0.0, 1.0], [-0.2, 0.1, 0.2]], [[0.4, 0.1, 0.2], [0.1, 0.2, 0.3]]),
    *(
        Linear(0.7),
        Linear(ARD),
        Linear(MATRIX),
        Polynomial(3, 0.5, 2.0),
        Polynomial(2, ARD, fixed(0.0)),
        Constant(2.0),
        Brownian(),
        IntegratedBrownian(),
    ),
    *(
        ArcCosine(0),
        ArcCosine(1),
        ArcCosine(2, ARD),
        ArcCosine(1, 0.7, fixed(0.0)),
        NeuralNetwork(ARD, 0.6),
        NeuralNetwork(ARD, fixed(0.0)),
    ),
    *(Categorical(0.3), Categorical([0.1, 0.5, 0.9])),
    2.0 * RBF(0.8) + Linear() + 0.5,
    (RBF(0.8) + Brownian()) * Matern52(ARD),
    fixed(2.0) * Matern32(0.8) ** 3,
    exp(0.3 * RBF(param(0.8, prior=LogNormal(0, 1), bounds=(0.1, 10.0)))),
    poly(Matern52(0.8), [1.0, 0.0, 3.0]),
    poly(RBF(0.8), param([1.0, 2.0])),
    RBF([0.5, 2.0]).on(0, 2) * Categorical(0.4).on(1) + Linear().on(-1),
    warp(RBF(0.8), height),
    map_inputs(Matern52([1.0, 1.0, 2.0]), circle),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernel_keeps_the_contract(kernel):
    check_kernel(kernel)


def test_wide_inputs_keep_the_contract():
    X = np.random.default_rng(1).standard_normal((20, 40))
    check_kernel(Matern52(6.0), X)


@pytest.mark.parametrize("d", [24, 25, 40, 300])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_equal_rows_have_exactly_the_variance_however_wide(d, offset):
    # Each of 4 x 2 cases holds 120 pairs of equal rows; one that is off by a rounding error fails.
    X = np.random.default_rng(2).standard_normal((60, d)) + offset
    X = np.concatenate([X, X])
    same = np.arange(60)
    for kernel in (Matern12(3.0), RBF(3.0)):
        assert np.all(kernel(X)[same + 60, same] == 1.0)
        assert np.all(kernel(X[:60], X[60:])[same, same] == 1.0)


# Published formulas

REFERENCES = [
    (RBF(0.8), reference.rbf(0.8)),
    (RBF(ARD), reference.rbf(ARD)),
    (Matern12(ARD), reference.matern(0.5, ARD)),
    (Matern32(ARD), reference.matern(1.5, ARD)),
    (Matern52(ARD), reference.matern(2.5, ARD)),
    (RationalQuadratic(ARD, 0.7), reference.rational_quadratic(ARD, 0.7)),
    (Periodic(0.8, 1.3), reference.periodic(0.8, 1.3)),
    (Periodic(ARD, [1.0, 2.0, 3.0]), reference.periodic(ARD, [1.0, 2.0, 3.0])),
    (Cosine(ARD), reference.cosine(np.array(ARD))),
    (
        SpectralMixture([1.0, 0.5], [0.3, -0.2], [0.4, 0.1]),
        reference.spectral_mixture([1.0, 0.5], [0.3, -0.2], [0.4, 0.1]),
    ),
    (
        SpectralMixture([1.0, 0.5], [[0.3, 0.0, 1.0], [-0.2, 0.1, 0.2]], [[0.4, 0.1, 0.2], [0.1, 0.2, 0.3]]),
        reference.spectral_mixture(
            [1.0, 0.5], [[0.3, 0.0, 1.0], [-0.2, 0.1, 0.2]], [[0.4, 0.1, 0.2], [0.1, 0.2, 0.3]]
        ),
    ),
    (Linear(0.7), reference.linear(0.7)),
    (Linear(ARD), reference.linear(ARD)),
    (Linear(MATRIX), reference.linear(MATRIX)),
    (Polynomial(3, ARD, 2.0), reference.polynomial(3, ARD, 2.0)),
    (ArcCosine(0, ARD, 0.6), reference.arc_cosine(0, ARD, 0.6)),
    (ArcCosine(1, ARD, 0.6), reference.arc_cosine(1, ARD, 0.6)),
    (ArcCosine(2, ARD, 0.6), reference.arc_cosine(2, ARD, 0.6)),
    (Brownian(), reference.brownian),
    (Categorical([0.1, 0.5, 0.9]), reference.categorical([0.1, 0.5, 0.9])),
    (Constant(2.5), lambda x, z: 2.5),
]


def points(seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X, Z = rng.standard_normal((7, 3)), rng.standard_normal((5, 3))
    X[0, 1] = Z[0, 1]  # equal in one column, for categories
    return X, Z


@pytest.mark.parametrize(
    ("kernel", "pair"),
    REFERENCES,
    ids=lambda value: str(value) if not callable(value) or hasattr(value, "formula") else "",
)
def test_kernel_equals_its_published_formula(kernel, pair):
    X, Z = points()
    # Both sides take some tens of operations on numbers of order one: 1e-12 is thousands of rounding errors,
    # and far below any wrong constant.
    assert_allclose(kernel(X, Z), reference.gram(pair, X, Z), rtol=1e-12, atol=1e-13)
    # arccos(1 - eps)
    assert_allclose(
        kernel(X),
        reference.gram(pair, X, X),
        rtol=1e-12,
        atol=1e-13 if not isinstance(kernel, ArcCosine) else 1e-7,
    )


def test_neural_network_is_the_expectation_over_its_weights():
    X, Z = points()
    K = NeuralNetwork(ARD, 0.6)(X, Z)
    with_120 = reference.gram(reference.neural_network(ARD, 0.6), X, Z)
    with_160 = reference.gram(reference.neural_network(ARD, 0.6, nodes=160), X, Z)
    # of the quadrature; the kernel may differ from the finer one by about as much
    error = np.abs(with_120 - with_160).max()
    assert error < 1e-5
    assert np.abs(K - with_160).max() < max(2 * error, 1e-12)


def test_neural_network_keeps_its_digits_far_away():
    # k(x, x) = (2/pi) arcsin(1 - delta) with delta = 1 / (1 + 2 s), and arcsin(1 - delta) = pi/2 - 2
    # arcsin(sqrt(delta / 2)), which cancels nothing.
    X = np.array([[1.0], [1e3], [1e6], [1e9]])
    delta = 1 / (1 + 2 * (X[:, 0] ** 2 + 1.0))
    expected = 1 - 4 / np.pi * np.arcsin(np.sqrt(delta / 2))
    assert_allclose(NeuralNetwork().diag(X), expected, rtol=4e-16 * 4)
    assert_allclose(np.diag(NeuralNetwork()(X)), expected, rtol=4e-16 * 4)


SKLEARN = [
    (RBF(0.8), sk.RBF(0.8)),
    (RBF(ARD), sk.RBF(ARD)),
    (Matern12(ARD), sk.Matern(ARD, nu=0.5)),
    (Matern32(ARD), sk.Matern(ARD, nu=1.5)),
    (Matern52(ARD), sk.Matern(ARD, nu=2.5)),
    (RationalQuadratic(0.8, 1.5), sk.RationalQuadratic(0.8, 1.5)),
    (Linear() + 2.25, sk.DotProduct(1.5)),
    (Constant(2.0), sk.ConstantKernel(2.0)),
]


@pytest.mark.parametrize(("ours", "theirs"), SKLEARN, ids=str)
def test_kernel_equals_that_of_scikit_learn(ours, theirs):
    X, Z = points()
    assert_allclose(ours(X), theirs(X), rtol=1e-12)
    assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12)
    assert_allclose(ours.diag(X), theirs.diag(X), rtol=1e-12)


def test_periodic_equals_exp_sine_squared_on_one_column():
    x = np.linspace(-2, 2, 9)[:, None]
    assert_allclose(Periodic(0.8, 1.3)(x), sk.ExpSineSquared(0.8, 1.3)(x), rtol=1e-12)


def test_rbf_from_bandwidth_has_no_one_half():
    X, Z = points()
    distance2 = np.sum((X[:, None] - Z[None]) ** 2, axis=2)
    assert_allclose(RBF.from_bandwidth(2.1)(X, Z), np.exp(-distance2 / 2.1**2), rtol=1e-13)
    assert_allclose(RBF.from_bandwidth([2.1, 2.1, 2.1])(X, Z), np.exp(-distance2 / 2.1**2), rtol=1e-13)
    assert not RBF.from_bandwidth(fixed(2.1)).lengthscale.trainable


# Derivatives


@pytest.mark.parametrize(
    ("kernel", "curvature"),
    [
        (Matern32(0.5), 3.0 / 0.25),
        (Matern52(0.5), 5 / 3 / 0.25),
        (RBF(0.5), 1.0 / 0.25),
        (RationalQuadratic(0.5, 0.7), 1.0 / 0.25),
    ],
    ids=str,
)
def test_curvature_at_distance_zero(kernel, curvature):
    # d^2 k(x, z) / dx_j dz_j at z = x is minus the second derivative of the profile at 0: 3, 5/3, 1 and 1,
    # over the squared lengthscale.
    X, _ = points()
    assert_allclose(tiles.gradient_variances(kernel, X), np.full(X.shape, curvature), rtol=1e-14)


@pytest.mark.parametrize(
    "kernel", [Matern12(ARD), Matern32(ARD), Matern52(ARD), ArcCosine(0), ArcCosine(1)], ids=str
)
def test_gradients_at_distance_zero_are_finite(kernel):
    X = np.repeat(points()[0][:1], 4, axis=0)  # all rows equal
    slopes = tiles.gradients(kernel, X, X)
    assert np.all(np.isfinite(slopes))
    for gradient in tiles.pullback(kernel, X, np.ones((4, 4))):
        assert np.all(np.isfinite(gradient))
    if not isinstance(kernel, ArcCosine):
        assert np.all(slopes == 0)  # k is even in x - z


@pytest.mark.parametrize(
    "kernel",
    [RBF(ARD), Matern32(ARD), NeuralNetwork(ARD), ArcCosine(2), 2.0 * Periodic(0.9, 1.3) * Linear()],
    ids=str,
)
def test_gradients_with_respect_to_inputs_equal_differences(kernel):
    X, Z = points()
    h = 1e-5  # central differences: h^2 / 6 plus eps / h, both about 1e-11 times a few
    slopes = tiles.gradients(kernel, X, Z)
    for j in range(3):
        step = h * np.eye(3)[j]
        assert_allclose(
            slopes[:, :, j], (kernel(X + step, Z) - kernel(X - step, Z)) / (2 * h), rtol=1e-7, atol=1e-8
        )


# Refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RBF(-1.0), "RBF: lengthscale must be positive, but is -1.0."),
        (lambda: RBF([1.0, 0.0]), "RBF: lengthscale must be positive, but is [1.0, 0.0]."),
        (lambda: Matern52(math.nan), "Matern52: lengthscale: A parameter must be finite, but nan is not."),
        (
            lambda: Matern12("long"),
            "Matern12: lengthscale must be a number or an array of numbers, not 'long'.",
        ),
        (lambda: RBF(None), "RBF: lengthscale must be a number or an array of numbers, not None."),
        (lambda: RBF.from_bandwidth(-1.0), "RBF.from_bandwidth: sigma must be positive, but is -1.0."),
        (
            lambda: RBF.from_bandwidth(param(1.0, bounds=(0.1, 2))),
            "from_bandwidth takes a number or fixed(number): bounds and priors are of the",
        ),
        (
            lambda: RationalQuadratic(1.0, [1.0, 2.0]),
            "RationalQuadratic: alpha must be one number, but has shape (2,).",
        ),
        (lambda: Constant([1.0, 2.0]), "Constant: variance must be one number, but has shape (2,)."),
        (lambda: fixed([1.0, 2.0]) * RBF(), "Scaled: scale must be one number, but has shape (2,)."),
        (lambda: Categorical(1.5), "Categorical: similarity must lie between 0 and 1, but is 1.5."),
        (
            lambda: Categorical(1.0),
            "Categorical: similarity is 1.0, on the edge of its range, from where fitting cannot move.",
        ),
        (lambda: Polynomial(0), "Polynomial: degree must be a whole number from 1 on, but is 0."),
        (lambda: Polynomial(2, offset=0.0), "hold it there: gramian.fixed(0.0)."),
        (lambda: Polynomial(2, offset=-1.0), "Polynomial: offset must not be negative, but is -1.0."),
        (lambda: ArcCosine(3), "ArcCosine: order must be a whole number from 0 to 2, but is 3."),
        (
            lambda: Linear([[1.0, 2.0], [2.0, 1.0]]),
            "must be positive semi-definite, but has the eigenvalue -1",
        ),
        (lambda: Linear([[1.0, 2.0], [0.0, 1.0]]), "must be a symmetric matrix"),
        (
            lambda: Linear([[1.0, 2.0], [3.0]]),
            "Linear: variance: A parameter must be a number or an array of numbers",
        ),
        (
            lambda: SpectralMixture([1.0, 1.0], [0.1], [1.0, 1.0]),
            "SpectralMixture: means has shape (1,), but with 2 weights must be (2,)",
        ),
        (
            lambda: RBF([1.0, 2.0])(np.zeros((2, 3))),
            "lengthscale has 2 values, but the data have 3 columns (x0, x1, x2). Give one value, or 3,",
        ),
        (
            lambda: RBF([[1.0, 2.0]])(np.zeros((2, 2))),
            "RBF: lengthscale has shape (1, 2), but must be one number, or a list with one a column.",
        ),
        (
            lambda: Linear(MATRIX)(np.zeros((2, 2))),
            "Linear: the matrix is 3 x 3, but the data have 2 columns.",
        ),
    ],
)
def test_impossible_values_are_refused(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("X", "Z", "message"),
    [
        (np.zeros((2, 2, 2)), None, "X has 3 dimensions; give one point (d,) or a table (n, d)."),
        (np.zeros((2, 3)), np.zeros((2, 2)), "X has 3 columns, but Z has 2."),
        ([[1.0, np.nan]], None, "The value in row 0, column 1 is nan; a kernel needs finite numbers."),
    ],
)
def test_impossible_inputs_are_refused(X, Z, message):
    with pytest.raises(InputError) as caught:
        RBF()(X, Z)
    assert message in str(caught.value)
