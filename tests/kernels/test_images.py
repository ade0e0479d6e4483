"""The convolutional kernel: sums over patches, patches as inducing points, and what is said of images that
are none."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.engines.base import Workspace
from gramian.errors import ParameterError
from gramian.gram import programs, tiles
from gramian.inference import Data, Model
from gramian.inference.svgp.inducing import SparseVariational
from gramian.likelihoods import Bernoulli
from gramian.means import ZeroMean
from gramian.testing import check_kernel

IMAGE, PATCH, CHANNELS = (5, 4), (2, 3), 2
BASE = gm.RBF(1.5)


def patches(x, patch=PATCH):
    """Of an image (height, width, channels), one by one."""
    H, W = x.shape[0] - patch[0] + 1, x.shape[1] - patch[1] + 1
    return np.array([x[i : i + patch[0], j : j + patch[1]].ravel() for i in range(H) for j in range(W)])


@pytest.fixture
def images(rng):
    return rng.standard_normal((6, *IMAGE, CHANNELS))


@pytest.fixture
def weights(rng):
    return rng.standard_normal(8)


@pytest.mark.parametrize(
    "kernel",
    [
        gm.Convolutional(gm.RBF(0.8), (1, 2), (1, 3), weights=[0.5, 2.0]),
        2.0 * gm.Convolutional(gm.Matern32([0.5, 1.0]), (2, 1), (3, 1), weights="each") + gm.RBF(1.0),
        gm.Convolutional(gm.DenseNet(1), 1, (1, 1), channels=3),
        gm.Convolutional(gm.RBF(0.8), 1, (1, 3), weights="each", place=2.0 * gm.RBF([1.0, 2.0])),
        gm.Convolutional(gm.Matern32(0.8), (1, 2), (1, 3), place=gm.Matern52(1.0)) + gm.RBF(1.0),
    ],
    ids=str,
)
def test_kernel_keeps_the_contract(kernel):
    check_kernel(kernel)


def test_it_is_the_sum_over_all_pairs_of_patches(images, weights):
    kernel = gm.Convolutional(BASE, PATCH, IMAGE, CHANNELS, weights)
    X, w = images.reshape(6, -1), weights / 8
    expected = [[w @ BASE(patches(x), patches(z)) @ w for z in images] for x in images]
    assert_allclose(kernel(X), expected, rtol=1e-12)
    assert_allclose(kernel.diag(X), np.diag(expected), rtol=1e-12)
    alike = [[np.mean(BASE(patches(x), patches(z))) for z in images] for x in images]
    assert_allclose(gm.Convolutional(BASE, PATCH, IMAGE, CHANNELS)(X), alike, rtol=1e-12)
    learned = gm.Convolutional(BASE, PATCH, IMAGE, CHANNELS, "each")
    assert_allclose(learned(X), alike, rtol=1e-12)
    assert learned.parameters()["weights"].trainable


def test_what_a_patch_says_may_depend_on_its_place(images, weights, rng):
    """All images and points have the covariance of sums over patches with g ~ GP(0, base x place)."""
    place = gm.Matern32([1.0, 2.0])
    kernel = gm.Convolutional(BASE, PATCH, IMAGE, CHANNELS, weights, place)
    X = images.reshape(6, -1)
    U = np.hstack([rng.standard_normal((7, 12)), rng.uniform(0, 3, (7, 2))])
    at = np.array([[i, j] for i in range(4) for j in range(2)], dtype=float)  # of 5 x 4 pixels
    points = np.concatenate([*(np.hstack([patches(x), at]) for x in images), U])
    sums = np.zeros((13, len(points)))
    for i in range(6):
        sums[i, 8 * i : 8 * i + 8] = weights / 8
    sums[6:, 48:] = np.eye(7)
    joint = sums @ (BASE(points[:, :12]) * place(points[:, 12:])) @ sums.T
    assert kernel.point_columns() == (40, 14)
    assert_allclose(kernel(X), joint[:6, :6], rtol=1e-11, atol=1e-14)
    assert_allclose(tiles.cross(kernel, X, U), joint[:6, 6:], rtol=1e-11, atol=1e-14)
    assert_allclose(tiles.cross(kernel, U, U), joint[6:, 6:], rtol=1e-12)
    anywhere = gm.Convolutional(BASE, PATCH, IMAGE, CHANNELS, weights, gm.RBF(1e6))
    # to which places are 1 - 1e-11 alike
    assert_allclose(anywhere(X), gm.Convolutional(BASE, PATCH, IMAGE, CHANNELS, weights)(X), rtol=1e-9)
    found = kernel.points_among(X, 20, rng)
    for *pixels, i, j in found:
        own = [np.allclose(x[int(i) : int(i) + 2, int(j) : int(j) + 3].ravel(), pixels) for x in images]
        assert sum(own) == 1


@pytest.mark.parametrize("base", [BASE, gm.Matern32(np.linspace(0.5, 2.0, 40)), gm.DenseNet(2)], ids=str)
def test_one_patch_as_large_as_the_image_is_the_base(images, base):
    X = images.reshape(6, -1)
    assert_allclose(gm.Convolutional(base, IMAGE, IMAGE, CHANNELS)(X), base(X), rtol=1e-13)
    assert gm.Convolutional(base, IMAGE, IMAGE, CHANNELS).point_columns() is None


def test_an_image_and_a_patch_are_of_one_process(images, weights, rng):
    """All images and patches together have one covariance: that of sums with the patches' g."""
    kernel = gm.Convolutional(BASE, PATCH, IMAGE, CHANNELS, weights)
    X, U = images.reshape(6, -1), rng.standard_normal((7, 12))
    points = np.concatenate([*map(patches, images), U])
    sums = np.zeros((6 + 7, len(points)))  # f at each image, then g at each point, as sums of g
    for i in range(6):
        sums[i, 8 * i : 8 * i + 8] = weights / 8
    sums[6:, 48:] = np.eye(7)
    joint = sums @ BASE(points) @ sums.T
    assert_allclose(tiles.cross(kernel, X, U), joint[:6, 6:], rtol=1e-11, atol=1e-14)
    assert_allclose(tiles.cross(kernel, U, X), joint[6:, :6], rtol=1e-11, atol=1e-14)
    assert_allclose(tiles.cross(kernel, U, U), joint[6:, 6:], rtol=1e-12)
    assert_allclose(tiles.diagonal(kernel, U), np.ones(7), rtol=1e-12)


def test_a_sum_has_points_of_both_kinds(images, rng):
    """u = g(patch) + h(image), for f = conv + h."""
    conv, h = gm.Convolutional(BASE, PATCH, IMAGE, CHANNELS), gm.RBF(3.0)
    kernel = 2.0 * conv + 0.5 * h
    assert kernel.point_columns() == (40, 52)
    X, U, V = images.reshape(6, -1), rng.standard_normal((3, 12)), rng.standard_normal((3, 40))
    points = np.hstack([U, V])
    assert_allclose(tiles.cross(kernel, X, points), 2 * tiles.cross(conv, X, U) + 0.5 * h(X, V), rtol=1e-13)
    assert_allclose(tiles.cross(kernel, points, points), 2 * BASE(U) + 0.5 * h(V), rtol=1e-13)
    assert_allclose(kernel(X), 2 * conv(X) + 0.5 * h(X), rtol=1e-13)


def test_points_of_a_sum_never_look_like_rows():
    kernel = gm.Convolutional(BASE, (1, 2), (1, 4)) + gm.Convolutional(BASE, (1, 2), (1, 4), weights="each")
    assert kernel.point_columns() == (4, 5)
    X = np.random.default_rng(0).standard_normal((3, 4))
    assert kernel.points_among(X, 10, np.random.default_rng(0)).shape == (10, 5)


# Inducing patches. ------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(rng):
    """Images with a bright bar somewhere, or without one."""
    X = 0.3 * rng.standard_normal((40, 6, 6))
    y = np.arange(40) % 2
    for k in np.flatnonzero(y):
        i, j = rng.integers(6), rng.integers(4)
        X[k, i, j : j + 3] += 1.5
    return X.reshape(40, -1), y


KERNEL = 2.0 * gm.Convolutional(gm.RBF(1.0), (1, 3), (6, 6))


def test_the_bound_with_patches_is_what_dense_algebra_gives(rng, labelled):
    """Titsias' bound, from the joint covariance of f and of g at the patches as plain matrices."""
    X, _ = labelled
    y, noise = np.sin(X @ rng.standard_normal(36)), 0.3
    U = rng.standard_normal((9, 3))
    base, scale = KERNEL.kernel.base, 2.0
    A = np.array([patches(x.reshape(6, 6, 1), (1, 3)) for x in X])  # (n, P, 3)
    K_xx = scale * np.mean(base(A.reshape(-1, 3)).reshape(40, 24, 40, 24), axis=(1, 3))
    K_xu = scale * np.mean(base(A.reshape(-1, 3), U).reshape(40, 24, 9), axis=1)
    K_uu = scale * base(U)
    Q = K_xu @ np.linalg.solve(K_uu, K_xu.T)
    S = Q + noise * np.eye(40)
    expected = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(S)[1] + 40 * np.log(2 * np.pi))
    expected -= np.trace(K_xx - Q) / (2 * noise)
    given = {"noise": gm.fixed(noise), "mean": "zero", "normalize_y": False, "optimize": False}
    for method in (gm.Sparse(inducing=U), gm.SVGP(inducing=U, optimize_inducing=False)):
        gp = gm.GPRegressor(KERNEL, method=method, **given).fit(X, y)
        assert gp.evidence_.value == pytest.approx(expected, rel=1e-6)


def test_the_gradient_of_the_bound_by_patches_weights_and_base(labelled):
    X, y = labelled
    kernel = 2.0 * gm.Convolutional(gm.RBF(1.0), (1, 3), (6, 6), weights="each") + 0.3 * gm.RBF(4.0)
    model = Model(kernel, ZeroMean(), Bernoulli())
    data = Data(X, y[:, None].astype(float), np.ones(1))
    Z = kernel.points_among(X, 5, np.random.default_rng(3))
    Z = Z + 0.1 * np.random.default_rng(4).standard_normal(Z.shape)
    rule = SparseVariational((Z,), True, np.zeros(Z.shape[1]), np.ones(Z.shape[1]))
    _, gradients = rule.evidence_and_gradient(model, data, Workspace())
    rng, h = np.random.default_rng(5), 1e-4
    way = [rng.standard_normal(p.value.shape) for p in kernel.parameters().values()]
    free = rng.standard_normal(Z.size)

    def at(step):
        moved = kernel.with_parameters(
            [p.with_value(p.value + step * w) for p, w in zip(kernel.parameters().values(), way, strict=True)]
        )
        there = rule.with_free(rule.free + step * free)
        return there.evidence(Model(moved, ZeroMean(), Bernoulli()), data, Workspace()).value

    slope = sum(float(np.sum(g * w)) for g, w in zip(gradients, [*way, free], strict=False))
    assert slope == pytest.approx((at(h) - at(-h)) / (2 * h), rel=1e-4)


PLACED = 100.0 * gm.Convolutional(gm.RBF(1.0), (1, 3), (6, 6), weights="each", place=gm.RBF(3.0))


@pytest.mark.parametrize(
    "kernel", [50.0 * KERNEL, 50.0 * KERNEL + 0.5 * gm.RBF(4.0), PLACED], ids=["conv", "sum", "place"]
)
def test_a_classifier_with_patches(tmp_path, kernel, labelled):
    X, y = labelled
    svgp = gm.SVGP(12, batch_size=40, steps=30)
    gp = gm.GPClassifier(kernel, method=svgp, random_state=0).fit(X, y)
    assert gp.score(X, y) > 0.7  # by chance 0.5, with a standard error of 0.08
    columns = kernel.point_columns()
    assert gp.fitted_.process.landmarks.shape == (12, columns[1])
    gp.save(tmp_path / "patches.gp")
    again = gm.load(tmp_path / "patches.gp")
    assert np.array_equal(again.predict_proba(X), gp.predict_proba(X))
    assert "12 inducing points" in gp.summary()
    with pytest.raises(ParameterError, match="neither training rows nor landmarks"):
        again.fitted_.relevance()


def test_an_entry_with_a_patch_costs_one_value_a_patch():
    """Counted by XLA, before anything runs: 576 patches times, against an image."""
    kernel, X, Z = gm.Convolutional(gm.RBF(1.0)).bare(), np.zeros((1, 784)), np.zeros((8, 784))

    def exponentials(others):
        with jax.enable_x64(True):
            text = jax.jit(programs.tile).lower(kernel, X, others).as_text()
        shapes = [line for line in text.splitlines() if "stablehlo.exponential" in line]
        return [line.split("tensor<")[1].split("xf64")[0] for line in shapes]

    assert exponentials(np.zeros((8, 25))) == ["576x8"]
    assert exponentials(Z) == ["576x576"]  # in a loop over the 8 images


# What people meet. ------------------------------------------------------------------------------------------


def test_text_reads_back():
    for kernel in (
        gm.Convolutional(gm.RBF(0.5) + gm.Linear()),
        0.5 * gm.Convolutional(gm.Matern52(1.0), 3, (4, 5), 3, "each") + gm.RBF(2.0),
        gm.Convolutional(gm.RBF(1.0), (1, 2), (1, 3), weights=gm.fixed([0.5, 1.5])),
        gm.Convolutional(gm.RBF(1.0), 3, (4, 5), place=0.5 * gm.RBF([1.0, 2.0])),
    ):
        assert gm.parse_kernel(repr(kernel)) == kernel
    learned = gm.Convolutional(gm.RBF(1.0), weights="each")
    assert "weights=[1, 1, 1, ..., 1, 1, 1]" in str(learned)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gm.Convolutional(1.0), "Convolutional needs a kernel for patches, not 1.0"),
        (lambda: gm.Convolutional(BASE, (30, 5)), "a patch of 30 x 5 pixels is larger than the image"),
        (lambda: gm.Convolutional(BASE, weights=[1.0, 2.0]), "there are 576 patches"),
        (lambda: gm.Convolutional(BASE, weights="all"), "weights must be a number"),
        (lambda: gm.Convolutional(BASE, place=3.0), "place=3.0 is no kernel"),
        (lambda: gm.Convolutional(BASE, place=gm.RBF([1.0] * 3)), "3 values, but the data have 2"),
        (lambda: gm.Convolutional(gm.RBF([1.0, 2.0])), "lengthscale has 2 values, but the data have 25"),
        (lambda: gm.Convolutional(BASE)(np.zeros((2, 25))), "784 columns, but the data have 25"),
        (
            lambda: gm.GPRegressor(KERNEL, method=gm.SVGP(inducing=np.zeros((4, 36)))).fit(
                np.random.default_rng(0).standard_normal((20, 36)), np.arange(20.0)
            ),
            "have 36 columns, but points of this kernel have 3",
        ),
    ],
)
def test_impossible_images_are_refused(make, message):
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_plan_counts_patches_where_points_are_patches():
    kernel = gm.Convolutional(gm.RBF(1.0))
    assert kernel.effort(784) == 576**2
    assert kernel.effort(784, points=True) == 576
    options = {o.method.name: o for o in gm.plan((3000, 784), kernel, also=["vfe"]).options}
    assert options["vfe"].final_seconds < 0.2 * options["exact"].final_seconds
