"""Kernels of scikit-learn, converted, have the same values; noise, bounds and fixed hyperparameters come
along."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)

import gramian.kernels as gk
from gramian.errors import ParameterError
from gramian.kernels.convert import Converted, from_sklearn
from gramian.params import fixed, param
from gramian.testing import check_kernel

rng = np.random.default_rng(5)
X, Z = rng.standard_normal((9, 3)), rng.standard_normal((4, 3))

THEIRS = [
    RBF(0.7),
    RBF([0.7, 1.0, 2.0]),
    Matern(0.7, nu=0.5),
    Matern([0.7, 1.0, 2.0], nu=1.5),
    Matern(0.7, nu=2.5),
    Matern(0.7, nu=np.inf),
    RationalQuadratic(0.7, 1.5),
    DotProduct(1.5),
    DotProduct(0.0, "fixed"),
    ConstantKernel(2.0),
    2.0 * RBF(0.7),
    RBF(0.7) * 2.0,
    ConstantKernel(2.0) * ConstantKernel(3.0),
    2.0 * (3.0 * RBF(0.7) + DotProduct()),
    RBF(0.7) + 2.0,
    RBF(0.7) * DotProduct(0.5) + Matern(1.0) ** 2,
    Exponentiation(RBF(0.7) + 1.0, 3.0),
]


def assert_same_values(ours, theirs, X, Z):
    assert_allclose(ours(X), theirs(X), rtol=1e-12)
    assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12)
    assert_allclose(ours.diag(X), theirs.diag(X), rtol=1e-12)


@pytest.mark.parametrize("theirs", THEIRS, ids=str)
def test_values_agree(theirs):
    ours, noise = from_sklearn(theirs)
    assert noise is None
    assert_same_values(ours, theirs, X, Z)


def test_exp_sine_squared_agrees_on_one_column_only():
    theirs = ExpSineSquared(0.7, 1.3)
    ours = from_sklearn(theirs).kernel
    assert_same_values(ours, theirs, X[:, :1], Z[:, :1])
    assert np.abs(ours(X) - theirs(X)).max() > 0.01  # as the module says
    assert_allclose(ours.on(1)(X), theirs(X[:, 1:2]), rtol=1e-12)


@pytest.mark.parametrize(
    ("theirs", "variance"),
    [
        (2.0 * RBF(0.7) + WhiteKernel(0.3), 0.3),
        (WhiteKernel(0.3) + RBF(0.7) + DotProduct(), 0.3),
        (RBF(0.7) + 2.0 * WhiteKernel(0.3), 0.6),
        (RBF(0.7) + WhiteKernel(0.3) * 2.0, 0.6),
        (RBF(0.7) + 2.0 * (WhiteKernel(0.3) * 2.0), 1.2),
        ((RBF(0.7) + WhiteKernel(0.3)) + (WhiteKernel(0.1) + 1.0), 0.4),
    ],
    ids=str,
)
def test_white_noise_becomes_the_noise(theirs, variance):
    ours, noise = from_sklearn(theirs)
    assert float(noise) == pytest.approx(variance, rel=1e-15)
    assert_allclose(ours(X), theirs(X) - variance * np.eye(len(X)), rtol=1e-12, atol=1e-15)
    assert_allclose(ours(X, Z), theirs(X, Z), rtol=1e-12)


# What a hyperparameter carries with it


def test_bounds_and_fixed_hyperparameters_are_kept():
    theirs = ConstantKernel(2.0, (0.1, 10.0)) * RBF([0.7, 1.0, 2.0], (0.01, 100.0)) + RationalQuadratic(
        0.7, 1.5, "fixed", (0.5, 5.0)
    )
    expected = param(2.0, bounds=(0.1, 10.0)) * gk.RBF(param([0.7, 1.0, 2.0], bounds=(0.01, 100.0)))
    expected = expected + gk.RationalQuadratic(fixed(0.7), param(1.5, bounds=(0.5, 5.0)))
    assert from_sklearn(theirs) == Converted(expected, None)


def test_default_bounds_are_kept():
    assert from_sklearn(RBF()).kernel == gk.RBF(param(1.0, bounds=(1e-5, 1e5)))


def test_dot_product_squares_its_hyperparameter_and_bounds():
    assert from_sklearn(DotProduct(1.5, (0.5, 4.0))).kernel == gk.Constant(
        param(2.25, bounds=(0.25, 16.0))
    ) + gk.Linear(fixed(1.0))
    assert from_sklearn(DotProduct(1.5, "fixed")).kernel == gk.Constant(fixed(2.25)) + gk.Linear(fixed(1.0))
    assert from_sklearn(DotProduct(0.0, "fixed")).kernel == gk.Linear(fixed(1.0))


def test_bounds_that_exclude_the_value_are_dropped():
    assert from_sklearn(RBF(0.7, (1.0, 2.0))).kernel == gk.RBF(0.7)
    assert from_sklearn(RBF([0.7, 1.5, 1.5], (1.0, 2.0))).kernel == gk.RBF([0.7, 1.5, 1.5])


def test_equal_bounds_of_each_column_are_one_pair():
    assert from_sklearn(RBF([0.7, 1.5], [(0.1, 2.0), (0.1, 2.0)])).kernel == gk.RBF(
        param([0.7, 1.5], bounds=(0.1, 2.0))
    )


@pytest.mark.parametrize(
    ("white", "noise"),
    [
        (WhiteKernel(0.3, (0.1, 1.0)), param(0.3, bounds=(0.1, 1.0))),
        (WhiteKernel(0.3, "fixed"), fixed(0.3)),
        (WhiteKernel(0.3, (1.0, 2.0)), param(0.3)),
        (WhiteKernel(0.25, (0.125, 1.0)) + WhiteKernel(0.5, (0.25, 2.0)), param(0.75, bounds=(0.375, 3.0))),
        (WhiteKernel(0.25, "fixed") + WhiteKernel(0.5, (0.25, 2.0)), param(0.75, bounds=(0.5, 2.25))),
        (WhiteKernel(0.25, "fixed") + WhiteKernel(0.5, "fixed"), fixed(0.75)),
        (ConstantKernel(2.0, (0.5, 4.0)) * WhiteKernel(0.25, (0.125, 1.0)), param(0.5, bounds=(0.0625, 4.0))),
        (ConstantKernel(2.0, "fixed") * WhiteKernel(0.25, (0.125, 1.0)), param(0.5, bounds=(0.25, 2.0))),
    ],
    ids=str,
)
def test_ranges_of_noise(white, noise):
    ours = from_sklearn(RBF() + white).noise
    assert (float(ours), ours.bounds, ours.trainable) == (float(noise), noise.bounds, noise.trainable)


def test_a_converted_kernel_keeps_the_contract():
    check_kernel(from_sklearn(2.0 * Matern([0.7, 1.0, 2.0], nu=1.5) + DotProduct() + WhiteKernel()).kernel)


def test_our_own_kernel_stays_as_it_is():
    assert from_sklearn(gk.RBF(0.5)) == Converted(gk.RBF(0.5), None)


# Refusals


@pytest.mark.parametrize(
    ("theirs", "message"),
    [
        (
            Matern(1.0, nu=0.7),
            "Matern with nu=0.7 cannot be converted. This library has those with nu = 0.5, 1.5, 2.5 and inf",
        ),
        (
            RBF() * WhiteKernel(),
            (
                "WhiteKernel cannot be converted. It stands within another operation, but noise must be a"
                " term of the whole kernel"
            ),
        ),
        (
            2.0 * (RBF() + WhiteKernel()),
            "WhiteKernel cannot be converted. It stands within another operation",
        ),
        ((RBF() + WhiteKernel()) ** 2, "WhiteKernel cannot be converted. It stands within another operation"),
        (WhiteKernel(), "WhiteKernel(noise_level=1) is nothing but noise. Add a kernel to it"),
        (
            CompoundKernel([RBF(), RBF()]),
            "CompoundKernel cannot be converted. It holds several kernels for several outputs: convert each",
        ),
        (
            RBF() + PairwiseKernel(),
            (
                "PairwiseKernel cannot be converted. It names a function of sklearn.metrics: write that"
                " kernel with this library"
            ),
        ),
        (RBF() ** 0.5, "only whole powers of a kernel are always positive semi-definite"),
        (
            RBF([1.0, 1.0], [(0.1, 2.0), (0.5, 3.0)]),
            "Give one pair for all columns: length_scale_bounds=(0.1, 3).",
        ),
        (0.0 * RBF(), "Constant: variance must be positive, but is 0.0."),
        ("RBF()", "str cannot be converted. Those converted are ConstantKernel, RBF, Matern,"),
    ],
    ids=str,
)
def test_what_cannot_be_converted_is_refused(theirs, message):
    with pytest.raises(ParameterError) as caught:
        from_sklearn(theirs)
    assert message in str(caught.value)
