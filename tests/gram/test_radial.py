"""Kernel values by products, beside those of the compiled programs, and where they are refused."""

import jax
import numpy as np
import pytest

import gramian as gm
from gramian.gram import radial, tiles
from gramian.kernels.base import Kernel

KERNELS = [
    gm.RBF(0.7),
    2.5 * gm.RBF([0.5, 1.0, 2.0]),
    gm.Matern32([0.5, 1.0, 2.0]),
    3.0 * (2.0 * gm.Matern52(np.array([1.3]))),
]


def points(seed: int, n: int, d: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
class TestEqualToCompiledPrograms:
    def test_values(self, kernel: Kernel) -> None:
        X, Z = points(0, 700), points(1, 90)  # several strips of rows
        expected = tiles.cross(kernel, X, Z)
        found = tiles.cross(kernel, X, Z, error=1e-10)
        assert radial.taken(kernel, X, Z, 1e-10) is not None
        # Rounding of squared distances up to 200.
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * expected.max())

    def test_values_of_32_bits_come_from_distances_of_64(self, kernel: Kernel) -> None:
        X, Z = points(0, 50) + 1e4, points(1, 20) + 1e4
        found = tiles.cross(kernel, X, Z, low=True, error=1e-7)
        assert found.dtype == np.float32
        expected = tiles.cross(kernel, X, Z)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * expected.max())

    def test_square_matrices(self, kernel: Kernel) -> None:
        X = points(2, 60)
        slow, fast = (
            tiles.fill(kernel, X, np.zeros((60, 60), order="F"), error=error) for error in (0.0, 1e-12)
        )
        np.testing.assert_allclose(np.tril(fast), np.tril(slow), rtol=0, atol=1e-13 * slow.max())

    @pytest.mark.parametrize("asked", [(False, False), (True, False), (False, True), (True, True)], ids=str)
    def test_gradients(
        self, kernel: Kernel, asked: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of the parameters, and of Z and X where they are asked for."""
        also = dict(zip(("points", "inputs"), asked, strict=True))
        X, Z, W = points(0, 700), points(1, 90), points(3, 700, 90)
        left, right = points(4, 700, 2), points(5, 90, 2)
        found = tiles.cross_pullback(kernel, X, Z, W.copy(), low_rank=(left, right), **also)
        monkeypatch.setattr(tiles, "PULLBACK_ERROR", 0.0)
        expected = tiles.cross_pullback(kernel, X, Z, W, low_rank=(left, right), **also)
        assert [v.shape for v in found] == [v.shape for v in expected]
        assert len(found) == len(kernel.parameters()) + sum(asked)
        for one, other in zip(found, expected, strict=True):
            # Sums of 63,000 terms, whose rounding is relative to their absolute values.
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)

    def test_gradients_of_32_bits(self, kernel: Kernel) -> None:
        X, Z, W = points(0, 100), points(1, 40), points(3, 100, 40)
        found = tiles.cross_pullback(kernel, X, Z, W.astype(np.float32), points=True, inputs=True)
        expected = tiles.cross_pullback(kernel, X, Z, W, points=True, inputs=True)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == np.float64
            # 4,000 terms of size 1, each rounded at 6e-8, beside sums that may cancel.
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max() + 1e-3)

    def test_the_diagonal(self, kernel: Kernel) -> None:
        X, w = points(0, 30), points(1, 30, 1)[:, 0]
        np.testing.assert_allclose(
            tiles.diagonal(kernel, X), tiles.rowwise(kernel, "diagonal", X), rtol=1e-15
        )
        for one, other in zip(
            tiles.diagonal_pullback(kernel, X, w),
            tiles.rowwise_pullback(kernel, "diagonal", X, w),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


class TestRefused:
    @pytest.mark.parametrize(
        "kernel",
        [gm.Matern12(1.0), gm.RationalQuadratic(1.0), gm.RBF(1.0) + gm.Linear(), gm.RBF(1.0).on(0, 1, 2)],
        ids=str,
    )
    def test_other_kernels(self, kernel: Kernel) -> None:
        assert radial.taken(kernel, points(0, 5), points(1, 4), 1.0) is None

    def test_a_kernel_of_ones_own_that_extends_one_of_these(self) -> None:
        class Wider(gm.RBF):
            def profile(self, r2: jax.Array) -> jax.Array:
                return super().profile(r2 / 4)

        X, Z = points(0, 5), points(1, 4)
        assert radial.taken(Wider(1.0), X, Z, 1.0) is None
        np.testing.assert_allclose(
            tiles.cross(Wider(1.0), X, Z, error=1.0), tiles.cross(gm.RBF(2.0), X, Z), rtol=1e-12
        )

    def test_points_whose_distances_would_drown(self) -> None:
        """Two clusters 1e5 lengthscales apart: their squared distance knows nothing below 1e-6."""
        kernel, X = gm.RBF(1.0), np.array([[0.0], [1e-3], [1e5]])
        assert radial.taken(kernel, X, X, 1e-7) is None
        assert radial.taken(kernel, X[:2], X[:2], 1e-7) is not None
        np.testing.assert_array_equal(np.diagonal(tiles.cross(kernel, X, X, error=1e-7)), 1.0)

    @pytest.mark.parametrize("value", [np.inf, 1e200])
    def test_distances_that_overflow(self, value: float) -> None:
        assert radial.taken(gm.RBF(1.0), np.array([[value]]), np.array([[0.0], [1.0]]), 1e-7) is None

    def test_where_nothing_is_forgiven(self) -> None:
        assert radial.taken(gm.RBF(1.0), points(0, 5), points(1, 4), 0.0) is None
