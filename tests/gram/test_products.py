"""Products with a Gram matrix that is never stored, in float64 and in float32."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.gram import few, tiles
from gramian.gram.operator import GramOperator
from gramian.linalg import threads
from tests.contracts.test_memory import measured

KERNELS = [
    1.3 * gm.RBF(0.5),
    gm.Matern12([0.5, 1.0, 2.0]),
    gm.Matern52(0.3) + 0.5 * gm.RBF(1.0).on(0),
    gm.RationalQuadratic(1.0) * gm.Periodic(1.0, 2.0),
    gm.Cosine(3.0),
    gm.Linear(0.5) + gm.Polynomial(2),
    gm.ArcCosine(1),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize(("n", "m", "k"), [(1, 1, 1), (40, 130, 5), (700, 600, 2)])
def test_products(kernel, n, m, k):
    """float64 to rounding; float32 to 1e-5 of |K| |V| (Frobenius), more than 100 times its unit roundoff and
    less than any real mistake."""
    rng = np.random.default_rng(0)
    X, Z, V = rng.normal(size=(n, 3)), rng.normal(size=(m, 3)), rng.normal(size=(m, k))
    K = kernel(X, Z)
    size = np.linalg.norm(K) * np.linalg.norm(V)
    assert np.linalg.norm(tiles.matmul(kernel, X, Z, V) - K @ V) <= 1e-14 * size
    low = tiles.matmul(kernel, X, Z, V, np.float32)
    assert low.dtype == np.float64
    assert np.linalg.norm(low - K @ V) <= 1e-5 * size
    # it was float32, unless few rows stayed in NumPy, where float64 costs no more
    assert few.block(kernel, X, Z) is not None or n == 1 or np.linalg.norm(low - K @ V) > 1e-12 * size


@pytest.mark.parametrize("kernel", KERNELS[:5], ids=str)
def test_float32_far_from_the_origin(kernel):
    """At 1e6 float32 has steps of 0.06, a tenth of a lengthscale: the inputs are moved before they are
    rounded."""
    rng = np.random.default_rng(0)
    X, V = 1e6 + rng.normal(size=(600, 3)), rng.normal(size=(600, 2))
    K = kernel(X)
    assert np.linalg.norm(tiles.matmul(kernel, X, X, V, np.float32) - K @ V) <= 1e-5 * np.linalg.norm(
        K
    ) * np.linalg.norm(V)


def test_float32_of_any_size_of_values():
    """Columns of 1e-60 and 1e60, which float32 does not have, and one of zeros."""
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(100, 2)), rng.normal(size=(100, 3)) * [1e-60, 1e60, 0.0]
    low, exact = tiles.matmul(gm.RBF(1.0), X, X, V, np.float32), gm.RBF(1.0)(X) @ V
    assert_allclose(low[:, :2], exact[:, :2], atol=0, rtol=1e-4)
    assert np.all(low[:, 2] == 0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_and_widths_do_not_change_the_result(dtype):
    rng = np.random.default_rng(0)
    X, V = rng.normal(size=(2100, 2)), rng.normal(size=(2100, 300))
    before = threads.set_threads(1)
    one = tiles.matmul(gm.RBF(1.0), X, X, V[:, :3], dtype)
    threads.set_threads(4)
    assert np.array_equal(tiles.matmul(gm.RBF(1.0), X, X, V[:, :3], dtype), one)
    threads.set_threads(before)
    wide = tiles.matmul(gm.RBF(1.0), X, X, V, dtype)  # more columns than any program takes at once
    assert_allclose(wide[:, :3], one, atol=1e-12 if dtype == np.float64 else 1e-4)
    assert_allclose(wide, gm.RBF(1.0)(X) @ V, atol=1e-11 if dtype == np.float64 else 1e-3)


def test_more_rows_than_a_stack_of_tiles():
    rng = np.random.default_rng(0)
    Z, V = rng.normal(size=(tiles.STACK * 512 + 77, 1)), rng.normal(size=(tiles.STACK * 512 + 77, 1))
    X = rng.normal(size=(3, 1))
    assert_allclose(tiles.matmul(gm.RBF(1.0), X, Z, V), gm.RBF(1.0)(X, Z) @ V, rtol=1e-11)
    assert tiles.matmul(gm.RBF(1.0), X[:0], Z, V).shape == (0, 1)
    assert np.all(tiles.matmul(gm.RBF(1.0), X, Z[:0], V[:0]) == 0)


def test_operator():
    rng = np.random.default_rng(0)
    op = GramOperator(gm.RBF(1.0), rng.normal(size=(50, 2)), rng.uniform(1, 2, 50))
    V = rng.normal(size=(50, 2))
    exact = op.kernel(op.X) @ V + op.noise[:, None] * V
    assert_allclose(op.matmul(V), exact, rtol=1e-12)
    assert_allclose(op.matmul(V, np.float32), exact, atol=1e-5 * np.max(np.abs(exact)))


def test_no_matrix_is_stored():
    """n = 12,000: the matrix would take 0.58 GB in float32 and twice that in float64; vectors, two stacks and
    tiles take less than 60 MB."""
    low, high = measured("""
        X = np.random.default_rng(0).normal(size=(12_000, 3))
        V = np.random.default_rng(1).normal(size=(12_000, 4))
        peaks = []
        for dtype in (np.float32, np.float64):
            tiles.matmul(gm.RBF(1.0), X[:1200], X[:1200], V[:1200], dtype)  # compiled
            with Peak() as peak:
                tiles.matmul(gm.RBF(1.0), X, X, V, dtype)
            peaks.append(peak.bytes)
        print(*peaks)
    """)
    assert low < 60e6
    assert high < 60e6
