"""The fast transform equals the dense matrix, at every size and in every order of its passes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import hadamard

from gramian.linalg.hadamard import hadamard_transform, padded_size


@pytest.mark.parametrize("d", [1, 2, 8, 64, 128, 1024])
def test_equals_the_dense_product(d):
    X = np.random.default_rng(d).normal(size=(5, d))
    # Sums of d numbers of size 1: rounding grows as their root.
    assert_allclose(hadamard_transform(X), X @ hadamard(d).astype(float), rtol=0, atol=1e-14 * d)


def test_whole_numbers_are_exact_so_signs_and_order_are_right():
    X = np.random.default_rng(0).integers(-50, 50, size=(3, 512)).astype(float)
    assert_array_equal(hadamard_transform(X), X @ hadamard(512).astype(float))


@pytest.mark.parametrize("d", [4096, 8192])
def test_three_passes(d):
    """Against the definition H_ij = (-1)^(number of common bits of i and j), for some columns."""
    X = np.random.default_rng(5).normal(size=(3, d))
    columns = np.array([0, 1, 63, 64, 4095, d - 1])
    signs = 1.0 - 2.0 * (np.bitwise_count(np.arange(d)[:, None] & columns[None, :]) % 2)
    assert_allclose(hadamard_transform(X)[:, columns], X @ signs, atol=1e-14 * d)


def test_twice_is_a_multiple_of_the_identity():
    X = np.random.default_rng(1).normal(size=(300, 256))  # several chunks of rows
    assert_allclose(hadamard_transform(hadamard_transform(X)), 256 * X, atol=1e-11)


@pytest.mark.parametrize(("d", "D"), [(1, 1), (2, 2), (3, 4), (5, 8), (64, 64), (65, 128), (1000, 1024)])
def test_pads_to_the_next_power_of_two(d, D):
    X = np.random.default_rng(2).normal(size=(4, d))
    padded = np.pad(X, [(0, 0), (0, D - d)])
    assert padded_size(d) == D
    assert_allclose(hadamard_transform(X), padded @ hadamard(D).astype(float), atol=1e-11)


def test_leaves_its_input_alone_and_takes_no_rows():
    X = np.random.default_rng(3).normal(size=(2, 128))
    before = X.copy()
    hadamard_transform(X)
    assert_array_equal(X, before)
    assert hadamard_transform(np.empty((0, 16))).shape == (0, 16)


def test_strided_input():
    X = np.random.default_rng(4).normal(size=(128, 6))
    assert_allclose(hadamard_transform(X.T), hadamard_transform(np.ascontiguousarray(X.T)), atol=0)
