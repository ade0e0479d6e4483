"""Sums over patches by products, beside those of the compiled programs; equal patches, merged and not."""

import numpy as np
import pytest

import gramian as gm
from gramian.gram import patches, tiles
from gramian.kernels.base import Kernel

IMAGE, PATCH, CHANNELS = (7, 6), (3, 2), 2
RNG = np.random.default_rng(0)
WEIGHTS = RNG.standard_normal(25)

KERNELS = [
    gm.Convolutional(gm.RBF(1.3), PATCH, IMAGE, CHANNELS),
    2.5 * gm.Convolutional(gm.RBF(1.3), PATCH, IMAGE, CHANNELS, weights=WEIGHTS),
    3.0 * gm.Convolutional(0.5 * gm.Matern52(RNG.uniform(1, 2, 12)), PATCH, IMAGE, CHANNELS, weights="each"),
    1.5
    * gm.Convolutional(0.5 * gm.RBF(1.3), PATCH, IMAGE, CHANNELS, WEIGHTS, place=2.0 * gm.RBF([1.5, 3.0])),
]


def marked(n: int) -> np.ndarray:
    """Images that are blank but for a rectangle of random height and width; the last is all blank, and the
    first has no patch without a mark."""
    rng = np.random.default_rng(1)
    images = np.full((n, *IMAGE, CHANNELS), 0.25)
    for image in images[:-1]:
        height, width = rng.integers(1, 4, size=2)
        image[2 : 2 + height, 1 : 1 + width] = rng.standard_normal((height, width, CHANNELS))
    images[0] = rng.standard_normal(images[0].shape)
    return images.reshape(n, -1)


def all_of(kernel: Kernel, X: np.ndarray, *, low: bool = False) -> list[np.ndarray]:
    """Values with points, their gradients, and the same of k(x, x)."""
    rng = np.random.default_rng(2)
    Z, W, w = (
        rng.standard_normal((9, kernel.point_columns()[1])),
        rng.standard_normal((len(X), 9)),
        rng.standard_normal(len(X)),
    )
    W = W.astype(np.float32) if low else W
    cross = tiles.cross(kernel, X, Z, low=low, error=1e-12)
    by_cross = tiles.cross_pullback(kernel, X, Z, W, points=True)
    by_diagonal = tiles.diagonal_pullback(kernel, X, w, low=low)
    return [cross, *by_cross, tiles.diagonal(kernel, X, low=low), *by_diagonal]


@pytest.mark.parametrize("low", [False, True], ids=["64 bits", "32 bits"])
@pytest.mark.parametrize("kernel", KERNELS, ids=["alike", "weights", "matern", "places"])
def test_values_and_gradients_are_those_of_the_programs(kernel, low, monkeypatch):
    X = marked(37)  # several groups of images
    found = all_of(kernel, X, low=low)
    monkeypatch.setattr(patches, "taken", lambda *_, **__: None)
    expected = all_of(kernel, X)
    assert [v.shape for v in found] == [v.shape for v in expected]
    assert len(found) == 2 * len(kernel.parameters()) + 3
    for ours, theirs in zip(found, expected, strict=True):
        # sums of some hundred terms with squared distances up to 50
        atol = (1e-5 if low else 1e-13) * max(1.0, float(np.max(np.abs(theirs))))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


def test_equal_patches_are_cut_once_and_merging_changes_nothing(monkeypatch):
    X, kernel = marked(20), KERNELS[1]
    made = patches.taken(kernel, X, 1e-10)
    assert made is not None
    count = np.diff(made.start)
    assert count[0] == 25  # none without a mark
    assert count[-1] == 1  # none with one
    assert np.all(count[1:-1] < 25)
    np.testing.assert_allclose(np.bincount(made.owner[-1] - made.start[-2], WEIGHTS / 25), made.shares[-1:])
    merged = all_of(kernel, X)

    def apart(X, form):
        table, _, owner = real(X, form)
        return table[owner.ravel()], np.arange(len(X) + 1) * 25, np.arange(owner.size).reshape(owner.shape)

    real = patches._merged
    monkeypatch.setattr(patches, "_merged", apart)
    for ours, theirs in zip(merged, all_of(kernel, X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13 * max(1.0, float(np.max(np.abs(theirs)))))


def test_a_sum_is_made_term_by_term(monkeypatch):
    """Each in its own way, with its own columns of a point; one that is as wide as a row is made wider."""
    rng = np.random.default_rng(3)
    for kernel in (
        KERNELS[2] + 0.5 * gm.RBF(4.0) + gm.Linear(),
        gm.Convolutional(gm.RBF(1.0), (1, 2), (1, 4))
        + 2.0 * gm.Convolutional(gm.Matern32(1.0), (1, 2), (1, 4)),
    ):
        d, D = kernel.point_columns()
        X, Z, W = rng.standard_normal((21, d)), rng.standard_normal((6, D)), rng.standard_normal((21, 6))

        def all_of(kernel=kernel, X=X, Z=Z, W=W):
            cross, by_cross = tiles.cross(kernel, X, Z), tiles.cross_pullback(kernel, X, Z, W, points=True)
            square = tiles.cross_pullback(kernel, Z, Z, W[:6], points=True)
            diagonal = tiles.diagonal(kernel, X), *tiles.diagonal_pullback(kernel, X, W[:, 0])
            return [cross, *by_cross, *square, *diagonal]

        found = all_of()
        with monkeypatch.context() as patched:
            patched.setattr(type(kernel), "parted", Kernel.parted)
            expected = all_of()
        assert [v.shape for v in found] == [v.shape for v in expected]
        for ours, theirs in zip(found, expected, strict=True):
            atol = 1e-12 * max(1.0, float(np.max(np.abs(theirs))))
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)


def test_they_are_refused_where_distances_are_not_known_well_enough():
    X = marked(5)
    assert patches.taken(KERNELS[0], 1e6 * X, 1e-10) is None
    assert patches.taken(KERNELS[0], X, 0.0) is None
    assert patches.taken(gm.Convolutional(gm.DenseNet(1), PATCH, IMAGE, CHANNELS), X, 1e-10) is None


def test_rows_that_change_are_cut_again_unless_they_are_said_to_stay():
    X, kernel = marked(5), KERNELS[0]
    before = tiles.diagonal(kernel, X)
    X[-1] = X[0]
    assert tiles.diagonal(kernel, X)[-1] == pytest.approx(before[0], rel=1e-13)
    with patches.remembered():
        assert patches.taken(kernel, X, 1e-10) is patches.taken(kernel, X, 1e-10)
    assert patches.taken(kernel, X, 1e-10) is not patches.taken(kernel, X, 1e-10)
