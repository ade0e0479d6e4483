"""Products by addresses: every order of memory, arrays that may only be read, and empty ones."""

import numpy as np
import pytest

from gramian.linalg.products import TILE, squares, times, transposed_times, triangle_squares

SHAPES = [(5, 3, 4), (1, 3, 1), (5, 1, 1), (0, 3, 2), (3, 0, 2), (4, 4, 4)]


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize(("n", "k", "m"), SHAPES)
def test_equal_to_numpy(orders: str, n: int, k: int, m: int) -> None:
    rng = np.random.default_rng(0)
    A, B, C = (
        np.array(rng.standard_normal(shape), order=order)
        for shape, order in zip([(n, k), (k, m), (n, m)], orders + orders[1], strict=True)
    )
    A.flags.writeable = False
    np.testing.assert_allclose(times(A, B), A @ B, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(transposed_times(A, C), A.T @ C, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(squares(A), A.T @ A, rtol=1e-13, atol=1e-14)
    assert times(A, B).flags.c_contiguous


@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
def test_large_ones_in_tiles(orders: str) -> None:
    """More than a tile each way, none of them whole; each sum has 70 terms of about 1."""
    rng = np.random.default_rng(0)
    A, B = (
        np.array(rng.standard_normal(shape), order=order)
        for shape, order in zip([(TILE + 13, 70), (70, 2 * TILE + 7)], orders, strict=True)
    )
    np.testing.assert_allclose(times(A, B), A @ B, rtol=0, atol=1e-12)
    np.testing.assert_allclose(squares(B), B.T @ B, rtol=0, atol=1e-12)


def test_parts_of_larger_arrays() -> None:
    A = np.random.default_rng(1).standard_normal((6, 8))[::2, 1:]
    np.testing.assert_allclose(times(A, A.T), A @ A.T, rtol=1e-13)
    np.testing.assert_allclose(squares(A), A.T @ A, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("k", [0, 1, 5, 130, TILE + 1])
def test_squares_of_a_triangle(k: int) -> None:
    R = np.asfortranarray(np.tril(np.random.default_rng(2).standard_normal((k, k))))
    before = R.copy()
    np.testing.assert_allclose(triangle_squares(R), R.T @ R, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(R, before)
