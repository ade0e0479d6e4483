"""The Gram tiles: whatever the number of rows, the numbers are those of the kernel, pair by pair."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.means import LinearMean
from tests.reference import kernels as ref

KERNEL = 0.7 * gm.RBF([0.8, 1.6]) + gm.Linear([0.2, 0.1])
SIZES = [1, 2, 63, 64, 65, 129, 300]


def dense(X, Z):
    """KERNEL by NumPy alone."""
    r2 = sum(((X[:, [j]] - Z[:, j]) / scale) ** 2 for j, scale in enumerate([0.8, 1.6]))
    return 0.7 * np.exp(-r2 / 2) + (X * [0.2, 0.1]) @ Z.T


@pytest.fixture
def table(rng):
    return lambda n: rng.uniform(-2, 2, (n, 2))


def test_the_dense_version_here_is_the_kernel_pair_by_pair(table):
    X, Z = table(4), table(3)
    expected = 0.7 * ref.gram(ref.rbf([0.8, 1.6]), X, Z) + ref.gram(ref.linear([0.2, 0.1]), X, Z)
    assert_allclose(dense(X, Z), expected, rtol=1e-13)


@pytest.mark.parametrize("n", [*SIZES, 1025, 1100])
def test_fill_writes_the_lower_triangle(n, table):
    X = table(n)
    out = np.full((n, n), np.nan, order="F")
    assert tiles.fill(KERNEL, X, out) is out
    assert_allclose(np.tril(out), np.tril(dense(X, X)), rtol=1e-12, atol=1e-14)


def test_fill_needs_fortran_order(table):
    with pytest.raises(AssertionError):
        tiles.fill(KERNEL, table(3), np.empty((3, 3), order="C"))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (65, 3), (3, 300), (129, 64), (1100, 70)])
def test_cross_and_products(n, m, table, rng):
    X, Z, V = table(n), table(m), rng.normal(size=(m, 3))
    K = dense(X, Z)
    assert_allclose(tiles.cross(KERNEL, X, Z), K, rtol=1e-12, atol=1e-14)
    assert_allclose(tiles.matmul(KERNEL, X, Z, V), K @ V, rtol=1e-10, atol=1e-11)
    out = np.empty((n, m))
    assert tiles.cross(KERNEL, X, Z, out) is out


@pytest.mark.parametrize("n", [*SIZES, 1100, 5000])
def test_functions_of_single_rows(n, table, rng):
    X, w = table(n), rng.normal(size=n)
    assert_allclose(tiles.diagonal(KERNEL, X), 0.7 + X**2 @ [0.2, 0.1], rtol=1e-13)
    mean = LinearMean(0.5, [2.0, -1.0])
    assert_allclose(tiles.rowwise(mean, "block", X), 0.5 + X @ [2.0, -1.0], rtol=1e-12, atol=1e-14)
    level, slope = tiles.rowwise_pullback(mean, "block", X, w)
    assert_allclose(level, w.sum(), rtol=1e-11, atol=1e-11)
    assert_allclose(slope, w @ X, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("n", [*SIZES, 1100])
def test_pullback_is_the_sum_of_weights_times_slopes(n, table, rng):
    """W = factor dense + left right', read from the upper triangle alone; slopes of KERNEL by hand."""
    X = table(n)
    S = rng.normal(size=(n, n))
    S = S + S.T
    left = rng.normal(size=(n, 2))
    W = -0.3 * S + left @ left.T
    upper = np.where(np.tri(n, k=-1), np.nan, S)  # what lies below the diagonal may be anything
    gradients = tiles.pullback(KERNEL, X, upper, factor=-0.3, low_rank=(left, left))
    K = dense(X, X) - (X * [0.2, 0.1]) @ X.T
    squares = [((X[:, [j]] - X[:, j]) / scale) ** 2 for j, scale in enumerate([0.8, 1.6])]
    by_name = {
        "rbf.scale": np.sum(W * K) / 0.7,
        "rbf.lengthscale": [np.sum(W * K * squares[j]) / scale for j, scale in enumerate([0.8, 1.6])],
        "linear.variance": [np.sum(W * np.outer(X[:, j], X[:, j])) for j in range(2)],
    }
    assert list(KERNEL.parameters()) == list(by_name)
    for ours, theirs in zip(gradients, by_name.values(), strict=True):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * n)


def test_pullback_without_low_rank_weights(table):
    X = table(70)
    (gradient,) = tiles.pullback(gm.Constant(2.0), X, np.ones((70, 70)))
    assert_allclose(gradient, 70**2)


@pytest.mark.parametrize("error", [0.0, tiles.PULLBACK_ERROR], ids=["compiled", "by products"])
@pytest.mark.parametrize(
    "kernel",
    [1.3 * gm.Matern52([0.8, 1.6]), KERNEL, gm.RBF(0.7).on(1) * gm.Periodic(0.9, 2.0), gm.ArcCosine(2)],
    ids=str,
)
def test_slopes_of_points_and_of_inputs_by_differences(kernel, error, table, rng, monkeypatch):
    """sum_ij W_ij k(x_i, z_j) along random directions of Z and of X, with low-rank weights beside W; some x
    are some z."""
    monkeypatch.setattr(tiles, "PULLBACK_ERROR", error)
    X, Z = table(70), table(9)
    X[:3] = Z[:3]
    W, left, right = rng.normal(size=(70, 9)), rng.normal(size=(70, 2)), rng.normal(size=(9, 2))
    total, U, V = W + left @ right.T, rng.normal(size=X.shape), rng.normal(size=Z.shape)
    *_, by_Z, by_X = tiles.cross_pullback(
        kernel, X, Z, W.copy(), low_rank=(left, right), points=True, inputs=True
    )

    def slope(to_X, to_Z):
        # the twice differentiable Matern has an error of h |third derivative| at its own points
        h = 1e-5
        there, back = (
            float(np.sum(total * tiles.cross(kernel, X + s * h * to_X, Z + s * h * to_Z))) for s in (1, -1)
        )
        return (there - back) / (2 * h)

    assert_allclose(np.sum(U * by_X), slope(U, 0 * V), rtol=1e-6, atol=1e-6)
    assert_allclose(np.sum(V * by_Z), slope(0 * U, V), rtol=1e-6, atol=1e-6)
    (again,) = tiles.cross_pullback(kernel, X, Z, total.copy(), inputs=True)[-1:]
    assert_allclose(again, by_X, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [gm.Matern52(0.7), gm.Periodic(1.0, 2.0), gm.NeuralNetwork(1.5), gm.RationalQuadratic(0.7, 0.4)],
    ids=str,
)
def test_pullback_by_differences(kernel, table, rng):
    """Four points a derivative at h = 1e-4: the error of the formula is 1e-17 of a fifth derivative, that of
    rounding 1e-12 of the sum."""
    X = table(70)
    W = rng.normal(size=(70, 70))
    W = W + W.T
    gradients = tiles.pullback(kernel, X, W)
    size = np.sum(np.abs(W))
    for (path, parameter), gradient in zip(kernel.parameters().items(), gradients, strict=True):
        h = 1e-4

        def total(k, path=path, parameter=parameter, h=h):
            return np.sum(W * tiles.cross(kernel.with_values({path: parameter.value + k * h}), X, X))

        slope = (8 * (total(1) - total(-1)) - (total(2) - total(-2))) / (12 * h)
        assert_allclose(gradient, slope, atol=1e-9 * size)


def test_gradients_with_respect_to_points(table):
    """d k(x, z) / dx by hand, and the variance of a gradient, d^2 k / dx dz at z = x."""
    X, Z = table(70), table(5)
    K = dense(X, Z) - (X * [0.2, 0.1]) @ Z.T
    expected = np.stack(
        [
            -(X[:, [j]] - Z[:, j]) / scale**2 * K + v * Z[:, j]
            for j, (scale, v) in enumerate([(0.8, 0.2), (1.6, 0.1)])
        ],
        axis=2,
    )
    assert_allclose(tiles.gradients(KERNEL, X, Z), expected, rtol=1e-10, atol=1e-12)
    assert_allclose(
        tiles.gradient_variances(KERNEL, X),
        np.tile([0.7 / 0.64 + 0.2, 0.7 / 2.56 + 0.1], (70, 1)),
        rtol=1e-12,
    )


def test_equal_rows_have_exactly_the_value_of_the_diagonal(rng):
    """Also far from the origin, across tiles, and for many columns, where distances come from products."""
    for d in (1, 3, 30):
        X = 1e6 + rng.normal(size=(40, d))
        X = np.concatenate([X, X, X])
        for kernel in (gm.Matern12(0.5), gm.RBF(0.5), gm.Matern52(2.0)):
            K = tiles.cross(kernel, X, X)
            assert np.all(K[np.arange(40), np.arange(40) + 80] == 1.0)
            assert np.all(np.diag(K) == 1.0)


def test_close_rows_far_from_the_origin_keep_their_distance():
    """Powers of two, so that the points are exact: at 2^30 a distance of 2^-10 is still 2^-10."""
    near = np.array([[0.0, 0.0], [2.0**-10, 0.0], [0.0, 2.0**-10]])
    for kernel in (gm.Matern12(0.003), gm.RBF(0.003), gm.Cosine(0.003)):
        assert np.array_equal(
            tiles.cross(kernel, near + 2.0**30, near + 2.0**30), tiles.cross(kernel, near, near)
        )


def test_padding_never_shows(table):
    """Fewer rows beside a row change nothing of its values, to rounding; and fewer before z nothing at all
    where distances alone matter."""
    X = table(100)
    K, D = tiles.cross(KERNEL, X, X), tiles.cross(gm.Matern32([0.4, 0.9]), X, X)
    for n in (1, 30, 64, 99):
        assert_allclose(tiles.cross(KERNEL, X[:n], X), K[:n], rtol=1e-13, atol=1e-15)
        assert_allclose(tiles.cross(KERNEL, X, X[:n]), K[:, :n], rtol=1e-13, atol=1e-15)
        assert np.array_equal(tiles.cross(gm.Matern32([0.4, 0.9]), X[:n], X), D[:n])


def test_results_are_float64_without_a_word_to_jax(table):
    assert not jax.config.jax_enable_x64
    assert tiles.cross(KERNEL, table(3), table(3)).dtype == np.float64
    assert all(gradient.dtype == np.float64 for gradient in tiles.pullback(KERNEL, table(3), np.eye(3)))


def test_operator(table, rng):
    X, noise = table(70), rng.uniform(0.1, 1, 70)
    operator = GramOperator(KERNEL, X, noise)
    A = dense(X, X) + np.diag(noise)
    assert operator.n == 70
    assert_allclose(np.tril(operator.fill(np.empty((70, 70), order="F"))), np.tril(A), rtol=1e-12, atol=1e-14)
    assert_allclose(operator.diagonal(), np.diag(A), rtol=1e-13)
    V = rng.normal(size=(70, 2))
    assert_allclose(operator.matmul(V), A @ V, rtol=1e-10, atol=1e-12)
