"""The kernels of wide networks: the mean of many random networks, their formulas in NumPy, equal rows, and
what is said of columns that are no images."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.choose import plan
from gramian.errors import ParameterError
from gramian.gram import programs, tiles
from gramian.kernels.networks import fold, turn
from gramian.testing import check_kernel


@pytest.mark.parametrize(
    "kernel",
    [
        gm.DenseNet(2, [0.5, 1.0, 2.0], 1.5, 0.3),
        gm.DenseNet(1, 0.7, bias=gm.fixed(0.0)),
        2.0 * gm.ConvNet(2, (1, 3), bias=gm.fixed(0.0)) + gm.Linear(),
        gm.ResNet(3, (1, 1), channels=3),
        gm.ConvNet(2, (1, 3), pool=(1, 2)),
    ],
    ids=str,
)
def test_kernel_keeps_the_contract(kernel):
    check_kernel(kernel)


# Formulas in NumPy, with K(x, z) carried from layer to layer. -----------------------------------------------


def ramps(K_xz, K_xx, K_zz):
    """E max(0, u) max(0, v)."""
    size = np.sqrt(K_xx * K_zz)
    angle = np.arccos(np.clip(K_xz / size, -1.0, 1.0))
    return size * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)


def averaged(A, filter):
    """Over the filter around each position, with zeros outside, one by one."""
    H, W = A.shape
    total = np.zeros((H, W))
    for i in range(H):
        for j in range(W):
            for a in range(-((filter[0] - 1) // 2), filter[0] // 2 + 1):
                for b in range(-((filter[1] - 1) // 2), filter[1] // 2 + 1):
                    if 0 <= i + a < H and 0 <= j + b < W:
                        total[i, j] += A[i + a, j + b]
    return total / (filter[0] * filter[1])


def image_network(x, z, depth, filter, variance, bias, residual):
    """k of two images (height, width, channels)."""
    A = [np.mean(u * v, axis=2) for u, v in ((x, z), (x, x), (z, z))]
    K = [0.0, 0.0, 0.0]
    for _ in range(depth):
        K = [bias + variance * averaged(a, filter) + residual * k for a, k in zip(A, K, strict=True)]
        A = [ramps(*K), K[1] / 2, K[2] / 2]
    return bias + variance * np.mean(A[0])


@pytest.mark.parametrize("kind", [gm.ConvNet, gm.ResNet])
@pytest.mark.parametrize("filter", [(3, 3), (2, 4)])
def test_image_networks_are_their_formula(kind, filter, rng):
    X, Z = rng.standard_normal((4, 4, 5, 2)), rng.standard_normal((3, 4, 5, 2))
    kernel = kind(3, (4, 5), channels=2, filter=filter, variance=1.7, bias=0.3)
    settings = 3, filter, 1.7, 0.3, float(kind is gm.ResNet)
    expected = [[image_network(x, z, *settings) for z in Z] for x in X]
    assert_allclose(kernel(X.reshape(4, -1), Z.reshape(3, -1)), expected, rtol=1e-12)
    own = [image_network(x, x, *settings) for x in X]
    assert_allclose(kernel.diag(X.reshape(4, -1)), own, rtol=1e-12)


def pooled_network(x, z, depth, filter, variance, bias, residual, pool, stride, after):
    """k of two images with a pooling, from the covariances of all pairs of positions (p, q), one by one."""
    pair = ((x, z), (x, x), (z, z))
    A = [np.einsum("ijc,klc->ijkl", u, v) / x.shape[2] for u, v in pair]
    K = [0.0, 0.0, 0.0]
    for layer in range(1, depth + 1):
        K = [bias + variance * averaged_pairs(a, filter) + residual * k for a, k in zip(A, K, strict=True)]
        own = [np.einsum("ijij->ij", k) for k in K[1:]]
        sizes = [(own[0], own[1]), (own[0], own[0]), (own[1], own[1])]
        A = [ramps(k, v[:, :, None, None], w[None, None]) for k, (v, w) in zip(K, sizes, strict=True)]
        if layer == after:
            A, K = [pooled_pairs(a, pool, stride) for a in A], [0.0, 0.0, 0.0]
    return bias + variance * np.mean(np.einsum("ijij->ij", A[0]))


def averaged_pairs(A, filter):
    """Over the same step of the filter from p and from q, zeros where one of them leaves the image."""
    H, W = A.shape[:2]
    pads = [((f - 1) // 2, f // 2) for f in filter]
    padded = np.pad(A, pads + pads)
    steps = [(a, b) for a in range(filter[0]) for b in range(filter[1])]
    return sum(padded[a : a + H, b : b + W, a : a + H, b : b + W] for a, b in steps) / len(steps)


def pooled_pairs(A, pool, stride):
    places = [range(0, side - w + 1, t) for side, w, t in zip(A.shape, pool, stride, strict=False)]
    P = np.zeros((len(places[0]), len(places[1])) * 2)
    for i, j, k, m in np.ndindex(P.shape):
        a, b, c, d = places[0][i], places[1][j], places[0][k], places[1][m]
        P[i, j, k, m] = np.mean(A[a : a + pool[0], b : b + pool[1], c : c + pool[0], d : d + pool[1]])
    return P


@pytest.mark.parametrize("kind", [gm.ConvNet, gm.ResNet])
@pytest.mark.parametrize(
    ("depth", "pool", "stride", "after"),
    [(2, (2, 2), (2, 2), 1), (3, (2, 3), (1, 1), 2), (2, (3, 2), (1, 2), 2), (1, (4, 5), (1, 1), 1)],
)
def test_pooled_networks_are_their_formula(kind, depth, pool, stride, after, rng):
    X, Z = rng.standard_normal((3, 4, 5, 2)), rng.standard_normal((2, 4, 5, 2))
    X[0, :2] = 0.0  # a blank part
    kernel = kind(depth, (4, 5), 2, (3, 2), 1.7, 0.3, pool, stride, after)
    settings = depth, (3, 2), 1.7, 0.3, float(kind is gm.ResNet), pool, stride, after
    expected = [[pooled_network(x, z, *settings) for z in Z] for x in X]
    assert_allclose(kernel(X.reshape(3, -1), Z.reshape(2, -1)), expected, rtol=1e-12)
    own = [pooled_network(x, x, *settings) for x in X]
    assert_allclose(kernel.diag(X.reshape(3, -1)), own, rtol=1e-12)
    assert_allclose(np.diag(kernel(X.reshape(3, -1))), own, rtol=1e-12)


def test_a_window_of_one_position_pools_nothing(rng):
    X = rng.standard_normal((5, 20))
    plain = gm.ConvNet(3, (4, 5))
    assert_allclose(gm.ConvNet(3, (4, 5), pool=1, stride=1, after=2)(X), plain(X), rtol=0)
    # one position of all after the last layer is an image of that position: another way through the code
    alone = gm.ConvNet(3, (4, 5), pool=1, stride=(4, 5), after=3)
    settings = 3, (3, 3), 2.0, 0.1, 0.0, (1, 1), (4, 5), 3
    images = X.reshape(5, 4, 5, 1)
    assert_allclose(alone(X), [[pooled_network(x, z, *settings) for z in images] for x in images], rtol=1e-12)


def test_pooling_makes_of_a_shift_a_small_change(rng):
    """The correlation of an image with itself, a pixel to the right, by the window."""
    images = np.zeros((20, 12, 12))
    images[:, 3:9, 3:9] = rng.uniform(size=(20, 6, 6))
    X, moved = images.reshape(20, -1), np.roll(images, 1, axis=2).reshape(20, -1)
    found = []
    for pool in (1, 2, 3):
        kernel = gm.ConvNet(3, (12, 12), bias=gm.fixed(0.0), pool=pool)
        found.append(np.diag(kernel(X, moved)) / np.sqrt(kernel.diag(X) * kernel.diag(moved)))
    assert np.all(found[0] < found[1])
    assert np.all(found[1] < found[2])
    assert np.mean(1 - found[2]) < 0.5 * np.mean(1 - found[0])


def test_a_dense_network_of_one_layer_is_the_arc_cosine(rng):
    X = rng.standard_normal((20, 3))
    shallow = 0.2 + gm.ArcCosine(1, [0.5, 1.0, 2.0], 0.2) * 0.75  # ArcCosine is twice the product of ramps
    assert_allclose(gm.DenseNet(1, [0.5, 1.0, 2.0], 1.5, 0.2)(X), shallow(X), rtol=1e-12)


def test_an_image_of_one_pixel_is_a_table(rng):
    X = rng.standard_normal((20, 6))
    image = gm.ConvNet(4, (1, 1), channels=6, filter=1, variance=1.8, bias=0.4)
    assert_allclose(image(X), gm.DenseNet(4, 0.3, 1.8, 0.4)(X), rtol=1e-12)


# Random networks. -------------------------------------------------------------------------------------------

WIDTH, NETWORKS = 400, 600


def compare(drawn, kernel, X):
    """The mean of networks' covariances within six standard errors (odds 1 in 10^8 for ten entries), and what
    a finite width changes: some four parts in WIDTH."""
    drawn, expected = np.array(drawn), kernel(X)
    error = np.std(drawn, axis=0) / np.sqrt(len(drawn))
    assert np.all(np.abs(np.mean(drawn, axis=0) - expected) <= 6 * error + 4 / WIDTH * np.max(expected))
    # not a tolerance that lets anything pass
    assert np.max(6 * error + 4 / WIDTH * np.max(expected)) < 0.1 * np.max(expected)


def test_dense_network_is_the_mean_of_wide_ones(rng):
    X, inputs, variance, bias = rng.standard_normal((4, 3)), np.array([0.5, 1.0, 2.0]), 1.6, 0.3
    drawn = []
    for _ in range(NETWORKS):
        u = X @ (np.sqrt(inputs)[:, None] * rng.standard_normal((3, WIDTH)))
        u += np.sqrt(bias) * rng.standard_normal(WIDTH)
        W = np.sqrt(variance / WIDTH) * rng.standard_normal((WIDTH, WIDTH))
        u = np.maximum(u, 0) @ W + np.sqrt(bias) * rng.standard_normal(WIDTH)
        # the last weights and bias are averaged over by hand
        drawn.append(bias + variance / WIDTH * np.maximum(u, 0) @ np.maximum(u, 0).T)
    compare(drawn, gm.DenseNet(2, inputs, variance, bias), X)


@pytest.mark.parametrize("kind", [gm.ConvNet, gm.ResNet])
def test_convolutional_network_is_the_mean_of_wide_ones(kind, rng):
    (H, W, C), variance, bias = (3, 4, 2), 1.6, 0.3
    X = rng.standard_normal((3, H, W, C))

    def convolved(A):
        """3 x 3 filters with random weights, zeros outside: (n, H, W, inputs) -> (n, H, W, WIDTH)."""
        inputs = A.shape[3]
        weights = np.sqrt(variance / (9 * inputs)) * rng.standard_normal((9 * inputs, WIDTH))
        padded = np.pad(A, [(0, 0), (1, 1), (1, 1), (0, 0)])
        patches = [padded[:, a : a + H, b : b + W] for a in range(3) for b in range(3)]
        return np.concatenate(patches, axis=3) @ weights + np.sqrt(bias) * rng.standard_normal(WIDTH)

    drawn = []
    for _ in range(NETWORKS // 4):
        u = convolved(X)
        u = convolved(np.maximum(u, 0)) + (u if kind is gm.ResNet else 0.0)
        flat = np.maximum(u, 0).reshape(3, -1)
        drawn.append(bias + variance / flat.shape[1] * flat @ flat.T)
    compare(drawn, kind(2, (H, W), channels=C, variance=variance, bias=bias), X.reshape(3, -1))


@pytest.mark.parametrize("kind", [gm.ConvNet, gm.ResNet])
def test_pooled_network_is_the_mean_of_wide_ones(kind, rng):
    """Two layers, averages over 2 x 2 units at every other column, one more layer."""
    (H, W, C), variance, bias = (3, 4, 2), 1.6, 0.3
    X = rng.standard_normal((3, H, W, C))

    def convolved(A):
        """3 x 3 filters with random weights, zeros outside: (n, H, W, inputs) -> (n, H, W, WIDTH)."""
        (_, rows, columns, inputs) = A.shape
        weights = np.sqrt(variance / (9 * inputs)) * rng.standard_normal((9 * inputs, WIDTH))
        padded = np.pad(A, [(0, 0), (1, 1), (1, 1), (0, 0)])
        patches = [padded[:, a : a + rows, b : b + columns] for a in range(3) for b in range(3)]
        return np.concatenate(patches, axis=3) @ weights + np.sqrt(bias) * rng.standard_normal(WIDTH)

    drawn = []
    for _ in range(NETWORKS // 4):
        u = convolved(X)
        u = np.maximum(convolved(np.maximum(u, 0)) + (u if kind is gm.ResNet else 0.0), 0)
        pooled = (u[:, :-1, :-1] + u[:, 1:, :-1] + u[:, :-1, 1:] + u[:, 1:, 1:])[:, :, ::2] / 4
        flat = np.maximum(convolved(pooled), 0).reshape(3, -1)
        drawn.append(bias + variance / flat.shape[1] * flat @ flat.T)
    kernel = kind(3, (H, W), C, variance=variance, bias=bias, pool=2, stride=(1, 2), after=2)
    compare(drawn, kernel, X.reshape(3, -1))


# Numbers. ---------------------------------------------------------------------------------------------------


def test_the_arc_by_its_polynomial():
    angle = np.linspace(0.0, np.pi, 1001, dtype=np.longdouble)
    h = (np.sin(angle) - angle * np.cos(angle)) / np.longdouble(np.pi)
    with jax.enable_x64(True):
        t = np.sin(angle / 2).astype(np.float64) ** 2
        assert_allclose(np.asarray(fold(t)), h.astype(float), atol=1e-15)
        # at a half turn t has only the root of its digits
        assert_allclose(np.asarray(turn(t))[:-5], angle[:-5].astype(float) / np.pi, atol=1e-13)
        slope = jax.vmap(jax.grad(fold))(t[:-5])
    assert_allclose(np.asarray(slope), 2 * angle[:-5].astype(float) / np.pi, atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [gm.DenseNet(5), gm.ConvNet(3, (2, 3)), gm.ResNet(3, (2, 3)), gm.ConvNet(3, (2, 3), pool=2)],
    ids=str,
)
def test_rows_that_are_nearly_equal_lose_no_digits(kernel, rng):
    """k(x, x) + k(z, z) - 2 k(x, z) of neighbours is a square: it shrinks with the step's, to rounding."""
    x, step = rng.standard_normal(6), rng.standard_normal(6)
    rows = np.stack([x, x, *(x + size * step for size in (1e-3, 1e-6))])
    K = kernel(rows)
    assert K[0, 1] == K[0, 0] == K[1, 1]
    apart = [K[0, 0] + K[k, k] - 2 * K[0, k] for k in (2, 3)]
    assert apart[0] / apart[1] == pytest.approx(1e6, rel=1e-2)
    gradients = tiles.pullback(kernel, rows, np.ones((4, 4)))
    alone = tiles.diagonal_pullback(kernel, rows[:1], np.full(1, 16.0))
    for near, exact in zip(gradients, alone, strict=True):
        assert_allclose(near, exact, rtol=1e-2)


def test_networks_are_positive_definite(rng):
    X = rng.standard_normal((60, 12))
    for kernel in (
        gm.DenseNet(6),
        gm.ConvNet(4, (3, 4)),
        gm.ResNet(4, (2, 2), 3),
        gm.ConvNet(3, (3, 4), pool=2),
    ):
        values = np.linalg.eigvalsh(kernel(X))
        assert values[0] > 1e-6 * values[-1]


@pytest.mark.parametrize("pool", [1, 3])
@pytest.mark.parametrize("program", ["tile", "tile_pullback"])
def test_a_tile_of_images_holds_few_pairs_at_a_time(program, pool):
    """All pairs of a tile at all positions would be 512 x 512 x 784 numbers, 1.6 GB; XLA says before it runs
    what it holds."""
    X = np.zeros((512, 784))
    more = {"tile": (), "tile_pullback": (np.zeros((512, 512)), 1.0, X[:, :1], X[:, :1])}[program]
    kernel = gm.ConvNet(7, (28, 28), pool=pool)
    with jax.enable_x64(True):
        lowered = jax.jit(getattr(programs, program)).lower(kernel.bare(), X, X, *more)
        held = lowered.compile().memory_analysis().temp_size_in_bytes
    # with a pooling also the 25 shifts of the 512 rows beside themselves: 0.9 GB with the gradient
    assert held < (400e6 if pool == 1 else 1e9)


# What people meet. ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        gm.DenseNet(),
        gm.DenseNet(4, [1.0, 2.0], bias=gm.fixed(0.0)),
        0.5 * gm.ConvNet(2, (28, 28), filter=7) + gm.RBF(3.0),
        gm.ConvNet(3, (14, 14), pool=2, stride=(1, 2), after=2),
        gm.ResNet(3, (8, 6), 3, (2, 5), gm.param(1.5, prior=gm.LogNormal(0, 1))),
    ],
    ids=str,
)
def test_text_reads_back(kernel):
    assert gm.parse_kernel(repr(kernel)) == kernel


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gm.DenseNet(0), "DenseNet: depth must be a whole number from 1 to 1000, but is 0."),
        (lambda: gm.ConvNet(2.5, (4, 4)), "ConvNet: depth must be a whole number from 1 to 1000"),
        (lambda: gm.ConvNet(2, (4, 4, 3)), r"ConvNet: image must be \(height, width\)"),
        (lambda: gm.ConvNet(2, (0, 4)), "ConvNet: image must be a whole number from 1 on, but is 0."),
        (lambda: gm.ConvNet(2, (4, 4), variance=[1.0, 2.0]), "variance must be one number"),
        (lambda: gm.ResNet(2, (4, 4), bias=-1.0), "ResNet: bias"),
        (lambda: gm.ConvNet(2, (4, 4))(np.zeros((3, 15))), "images of 4 x 4 pixels with 1 channel, 16 col"),
        (lambda: gm.ConvNet(2, (4, 4), 3)(np.zeros((3, 16))), "with 3 channels, 48 columns, but the data"),
        (lambda: gm.ConvNet(2, (4, 4), pool=0), "ConvNet: pool must be a whole number from 1 on, but is 0."),
        (lambda: gm.ConvNet(2, (4, 4), pool=(2, 5)), "a pool of 2 x 5 positions is larger than the image"),
        (lambda: gm.ConvNet(2, (4, 4), pool=2, after=3), "after must be a whole number from 1 to 2"),
        (lambda: gm.DenseNet(2, [1.0, 2.0])(np.zeros((3, 3))), "inputs has 2 values, but the data have 3"),
    ],
)
def test_impossible_networks_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_fitted_network_is_saved_and_loaded(tmp_path, rng):
    X = rng.standard_normal((30, 6))
    y = np.maximum(X[:, 0] + X[:, 1], 0) + 0.05 * rng.standard_normal(30)
    gp = gm.GPRegressor(1.0 * gm.DenseNet(2) + 0.1 * gm.ConvNet(1, (2, 3)), random_state=0).fit(X, y)
    gp.save(tmp_path / "net.gp")
    again = gm.load(tmp_path / "net.gp")
    assert again.kernel_ == gp.kernel_
    assert np.array_equal(again.predict(X), gp.predict(X))


def test_a_plan_knows_that_image_networks_take_long():
    """A value of it takes as long as thousands of others: 7 layers of 784 positions."""
    network, usual = (
        gm.plan((2000, 784), kernel, optimize=False).options[0] for kernel in (gm.ConvNet(7, (28, 28)), None)
    )
    assert network.fit_seconds > 20 * usual.fit_seconds


def test_a_plan_times_the_values_of_a_slow_kernel(monkeypatch):
    """Its own values a second, not those of a usual kernel on as many columns."""
    monkeypatch.setattr(plan, "_values", lambda kernel, d: 1e3)
    slow, usual = (
        gm.plan((1000, 196), kernel, optimize=False).options[0].fit_seconds
        for kernel in (gm.ConvNet(4, (14, 14), pool=2), gm.RBF())
    )
    assert slow == pytest.approx(1000**2 / 2 / 1e3, rel=0.2)
    assert usual < 100
