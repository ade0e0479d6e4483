"""The algebra of kernels: laws, structure, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gramian.errors import ParameterError
from gramian.kernels import (
    RBF,
    Constant,
    Exp,
    Linear,
    Matern32,
    Matern52,
    Poly,
    Power,
    Product,
    Scaled,
    Sum,
    exp,
    map_inputs,
    poly,
    warp,
)
from gramian.params import LogNormal, fixed, param
from tests.kernels.strategies import composed, numbers, simple, values

a, b, c = RBF(0.5), Linear(2.0), Matern52([1.0, 2.0, 3.0])
few = settings(max_examples=15, deadline=None)
X, Z = np.random.default_rng(4).standard_normal((2, 6, 3))

# The two sides of a law do the same few operations on the same kernel values in another order, so they agree
# to some rounding errors of the largest term; kernels of dot products have terms of both signs, and cancel up
# to a few digits.
RTOL, ATOL = 1e-12, 1e-12


def assert_same(left, right):
    K = values(right, X, Z)
    assert_allclose(values(left, X, Z), K, rtol=RTOL, atol=ATOL * max(1.0, np.abs(K).max()))


# Laws


@few
@given(simple(), simple(), simple())
def test_product_distributes_over_sum(a, b, c):
    assert_same((a + b) * c, a * c + b * c)
    assert_same(c * (a + b), c * a + c * b)


@few
@given(simple(), simple(), numbers)
def test_operations_are_those_of_their_values(a, b, s):
    A, B = values(a, X, Z), values(b, X, Z)
    for kernel, K in (
        (a + b, A + B),
        (a * b, A * B),
        (s * a, s * A),
        (a + s, A + s),
        (a**3, A**3),
        (poly(a, [1.0, 0.0, s]), 1 + s * A**2),
    ):
        assert_allclose(values(kernel, X, Z), K, rtol=RTOL, atol=ATOL * max(1.0, np.abs(K).max()))
    small = 0.1 / max(1.0, np.abs(A).max()) * a
    assert_allclose(values(exp(small), X, Z), np.exp(values(small, X, Z)), rtol=RTOL)


@few
@given(simple(), numbers)
def test_scalars_stand_on_either_side(k, s):
    assert s * k == k * s
    assert_same(s + k, k + s)
    assert np.float64(s) * k == s * k == k * np.float64(s) == np.array(s) * k
    assert np.float32(2) * k == 2 * k
    assert np.int64(3) + k == 3 + k
    assert 2 * (s * k) == (2 * s) * k  # plain numbers are one number


@few
@given(composed())
def test_every_kernel_prints_hashes_and_equals_itself(k):
    assert repr(k)
    assert str(k)
    assert k == k.with_values({path: p.value for path, p in k.parameters().items()})
    assert hash(k) == hash(k.with_parameters(list(k.parameters().values())))
    first = next(iter(k.parameters().items()), None)
    if first is not None:
        assert (
            k != k.with_values({first[0]: np.nextafter(first[1].value, 0.0)}) or first[1].bounds is not None
        )


# Structure


def test_sums_and_products_are_flat_and_distinct():
    assert (a + b) + c == a + (b + c) == Sum((a, b, c))
    assert (a * b) * c == a * (b * c) == Product((a, b, c))
    assert Sum((Sum((a, b)), c)).terms == (a, b, c)
    assert Product((a, Product((b, c)))).factors == (a, b, c)
    assert (a + b) * c == Product((Sum((a, b)), c))
    assert a + b != a * b
    assert Sum((a, b)) != Product((a, b))
    assert a + b != b + a  # equal in value, not in structure: parameters have another order


@pytest.mark.parametrize(
    ("kernel", "text"),
    [
        ((a + b) * c, "(RBF(0.5) + Linear(2.0)) * Matern52([1.0, 2.0, 3.0])"),
        (a + b * c, "RBF(0.5) + Linear(2.0) * Matern52([1.0, 2.0, 3.0])"),
        (2 * a * b, "2.0 * RBF(0.5) * Linear(2.0)"),
        (2 * (a * b), "2.0 * (RBF(0.5) * Linear(2.0))"),
        (a * (2 * b), "RBF(0.5) * (2.0 * Linear(2.0))"),
        (2 * (a + b), "2.0 * (RBF(0.5) + Linear(2.0))"),
        (2 * a**3, "2.0 * RBF(0.5) ** 3"),
        ((2 * a) ** 3, "(2.0 * RBF(0.5)) ** 3"),
        ((a**2) ** 3, "(RBF(0.5) ** 2) ** 3"),
        ((a + b).on(0, "temp"), "(RBF(0.5) + Linear(2.0)).on(0, 'temp')"),
        (fixed(2) * (3 * a), "fixed(2.0) * (3.0 * RBF(0.5))"),
        (3 * (fixed(2) * a), "3.0 * (fixed(2.0) * RBF(0.5))"),
        (param(3) * (2 * a), "param(3.0) * (2.0 * RBF(0.5))"),
        (1 + a, "Constant() + RBF(0.5)"),
        (exp(a + 1), "exp(RBF(0.5) + Constant())"),
        (poly(a, [1, 2]), "poly(RBF(0.5), [1.0, 2.0])"),
        (poly(a, param([1, 2])), "poly(RBF(0.5), param([1.0, 2.0]))"),
        (RBF(fixed(1)), "RBF(fixed(1.0))"),
        (RBF(param(0.5, bounds=(0.123456789, 2))), "RBF(param(0.5, bounds=(0.123456789, 2.0)))"),
        (
            RBF(param(0.5, prior=LogNormal(0, 1), trainable=False)),
            "RBF(param(0.5, prior=LogNormal(mu=0.0, sigma=1.0), trainable=False))",
        ),
        (warp(a, abs), "warp(RBF(0.5), abs)"),
        (map_inputs(a, np.sin), "map_inputs(RBF(0.5), sin)"),
    ],
)
def test_formula(kernel, text):
    assert repr(kernel) == text


def test_str_rounds():
    assert str(1 / 3 * RBF([1 / 3, 2 / 3])) == "0.3333 * RBF([0.3333, 0.6667])"


def test_a_fixed_scale_is_never_merged_with_a_free_one():
    kernel = 3.0 * (fixed(2.0) * a)
    assert [p.trainable for p in kernel.parameters().values()] == [True, False, True]
    assert (3.0 * (2.0 * a)).parameters().keys() == {"scale", "lengthscale"}


def test_paths_of_parameters():
    kernel = 2.0 * RBF(0.5) + Linear() * RBF().on(0) + 3.0 * RBF()
    first, second = ["rbf.scale", "rbf.lengthscale"], ["rbf_2.scale", "rbf_2.lengthscale"]
    assert list(kernel.parameters()) == [
        *first,
        "product.linear.variance",
        "product.rbf.lengthscale",
        *second,
    ]


def test_types_of_the_operations():
    kernels = (a + b, a * b, 2 * a, a**2, exp(a), poly(a, [1]))
    assert [type(k) for k in kernels] == [Sum, Product, Scaled, Power, Exp, Poly]
    assert isinstance((a + 2).terms[1], Constant)


# Refusals


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: -1.0 * a, "A kernel can be multiplied with a positive number only, not -1.0."),
        (lambda: a * 0, "A kernel can be multiplied with a positive number only, not 0."),
        (lambda: a + (-1), "A kernel can be added to a positive number only, not -1."),
        (lambda: a + float("nan"), "A kernel can be added to a positive number only, not nan."),
        (lambda: a * "2", "A kernel can be multiplied with a kernel or a positive number, not '2'."),
        (lambda: True * a, "A kernel can be multiplied with a kernel or a positive number, not True."),
        (
            lambda: a * np.array([1.0, 2.0]),
            "A kernel can be multiplied with a kernel or a positive number, not array([1., 2.]).",
        ),
        (
            lambda: np.array([1.0, 2.0]) + a,
            "A kernel can be added to a kernel or a positive number, not array([1., 2.]).",
        ),
        (lambda: a**0.5, "The power of a kernel must be a whole number from 1 on, but is 0.5."),
        (lambda: a**0, "The power of a kernel must be a whole number from 1 on, but is 0."),
        (lambda: a**-1, "The power of a kernel must be a whole number from 1 on, but is -1."),
        (lambda: a**True, "The power of a kernel must be a whole number from 1 on, but is True."),
        (lambda: poly(a, [1.0, -2.0]), "poly: each coefficient must not be negative, but is [1.0, -2.0]."),
        (
            lambda: poly(a, [0.0, 0.0]),
            "poly: coefficients must be a list [c0, c1, ...] with a positive one among them",
        ),
        (lambda: poly(a, 2.0), "poly: coefficients must be a list [c0, c1, ...]"),
        (lambda: poly(2.0, [1.0]), "poly needs a kernel, not 2.0."),
        (lambda: exp(2.0), "exp needs a kernel, not 2.0."),
        (lambda: warp(a, 2.0), "warp needs a function of one point, not 2.0."),
        (lambda: map_inputs(a, None), "map_inputs needs a function of one point, not None."),
        (
            lambda: warp(a, lambda x: x)(np.zeros((2, 3))),
            "warp: the function must give one number for a point, but gives shape (3,).",
        ),
        (lambda: Sum((a,)), "Sum needs two kernels or more, but got 1."),
        (lambda: Product((a, 2.0)), "Product needs a kernel, not 2.0."),
    ],
)
def test_impossible_compositions_are_refused(make, message):
    with pytest.raises(ParameterError) as caught:
        make()
    assert message in str(caught.value)


@few
@given(st.integers(1, 5))
def test_powers_are_repeated_products(p):
    k = Matern32(0.7)
    assert_same(k**p, k if p == 1 else Product((k,) * p))
