"""Few rows: the NumPy forms of kernels and means equal their definitions in JAX."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import gramian as gm
from gramian.gram import few, programs, tiles
from gramian.kernels import Categorical, Kernel, Product, Sum, exp
from gramian.kernels.host import Pairs
from gramian.means import ConstantMean, LinearMean, ZeroMean
from gramian.params.tree import leaves

modest = settings(max_examples=80, deadline=None)
EPS = np.finfo(float).eps
numbers = st.floats(0.3, 5.0)
scales = st.one_of(numbers, st.lists(numbers, min_size=3, max_size=3))

SIMPLE = st.one_of(
    *(st.builds(kind, scales) for kind in (gm.RBF, gm.Matern12, gm.Matern32, gm.Matern52)),
    st.builds(gm.RationalQuadratic, scales, numbers),
    st.builds(gm.Periodic, scales, scales),
    st.builds(gm.Cosine, scales),
    st.builds(gm.Linear, scales),
    st.just(gm.Linear([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 3.0]])),
    st.builds(gm.Polynomial, st.integers(1, 3), scales, numbers),
    st.builds(gm.Constant, numbers),
    st.builds(Categorical, st.floats(0.1, 0.9)),
    st.builds(
        lambda kind, c, j: kind(c).on(j), st.sampled_from([gm.RBF, gm.Linear]), numbers, st.integers(0, 2)
    ),
)


def _composed(child):
    return st.one_of(
        st.builds(lambda a, b: a + b, child, child),
        st.builds(lambda a, b, c: a * b * c, child, child, child),
        st.builds(lambda a, c: c * a, child, numbers),
        st.builds(lambda a, p: a**p, child, st.integers(1, 3)),
        st.builds(lambda a: exp(a), st.builds(lambda a: 0.1 * a, SIMPLE)),
    )


kernels = st.recursive(SIMPLE, _composed, max_leaves=4)
sizes = st.integers(1, 12)


def _points(n: int, seed: int, d: int = 3) -> np.ndarray:
    """Some rows equal; either with equal cells or away from the origin."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[rng.integers(0, n)] = X[0]
    return np.round(X, 1) if seed % 2 else X + 3.0


def _by_jax(kernel: Kernel, X, Z, W):
    """K and its pullback, operation by operation: nothing to compile for each random kernel."""
    with jax.enable_x64(True):
        X, Z = jax.numpy.asarray(X), jax.numpy.asarray(Z)
        K, back = jax.vjp(lambda k: k.cross(X, Z), kernel.bare())
        return np.asarray(K), [np.asarray(v) for v in leaves(back(jax.numpy.asarray(W))[0])]


def _close(mine, theirs, K, W) -> None:
    """Sums of n m terms, each of at most |W| |K| times 1e4 (squares of scaled differences, degrees), rounded
    to eps of that. Of the gradient of a symmetric matrix only the symmetric part means something."""
    assert [part.shape for part in mine] == [part.shape for part in theirs]
    for a, b in zip(mine, theirs, strict=True):
        a, b = (a + a.T, b + b.T) if a.ndim == 2 and a.shape[0] == a.shape[1] else (a, b)
        assert_allclose(a, b, rtol=1e-11, atol=1e4 * EPS * np.sum(np.abs(W)) * max(1.0, np.max(np.abs(K))))


@modest
@given(kernels, sizes, sizes, st.integers(0, 2**31))
def test_values_and_pullbacks_are_those_of_the_definition(kernel, n, m, seed):
    X, Z = _points(n, seed), _points(m, seed + 2)
    W = np.random.default_rng(seed).normal(size=(n, m))
    K, slopes = _by_jax(kernel, X, Z, W)
    values = few.block(kernel, X, Z)
    # r^2 is up to 1000, an angle up to 100: rounded to eps of its size it changes K by 1e3 eps
    assert_allclose(values.K, K, rtol=1e4 * EPS, atol=1e3 * EPS * np.max(np.abs(K)))
    _close(few.pulled(values, W), slopes, K, W)


@modest
@given(kernels, sizes, st.integers(0, 2**31))
def test_symmetric_weights_and_diagonals(kernel, n, seed):
    X = _points(n, seed)
    rng = np.random.default_rng(seed)
    S, left, w = rng.normal(size=(n, n)), rng.normal(size=(n, 2)), rng.normal(size=n)
    S += S.T
    right = left @ np.array([[1.0, 0.3], [0.3, 2.0]])
    W = -0.5 * S + left @ right.T
    K, slopes = _by_jax(kernel, X, X, W)
    above = np.where(np.tri(n, k=-1, dtype=bool), np.nan, S)  # what lies below is not to be read
    _close(tiles.pullback(kernel, X, above, factor=-0.5, low_rank=(left, right)), slopes, K, W)
    assert_allclose(tiles.diagonal(kernel, X), np.diagonal(K), rtol=1e3 * EPS)
    _close(tiles.diagonal_pullback(kernel, X, w), _by_jax(kernel, X, X, np.diag(w))[1], K, w)


SMOOTH = [gm.RBF, gm.Matern12, gm.Matern32, gm.Matern52, gm.RationalQuadratic, gm.Periodic]


@pytest.mark.parametrize("kind", SMOOTH)
def test_equal_rows_get_exactly_the_diagonal_and_slopes_are_finite(kind):
    X = np.array([[1e6 + 0.1, 2.0], [1e6 + 0.1, 2.0], [1e6, -3.0]])
    kernel = 1.7 * kind([0.3, 0.7])
    values = few.block(kernel, X, X)
    assert values.K[0, 1] == values.K[0, 0] == 1.7
    assert all(np.all(np.isfinite(part)) for part in few.pulled(values, np.ones((3, 3))))


@pytest.mark.parametrize("kind", SMOOTH[:-1])
def test_rows_beyond_the_range_of_squares_are_far_away(kind):
    X = np.array([[0.0], [1.0], [1e160]])
    K = few.block(kind(1.0), X, X).K
    assert np.all(np.isfinite(K))
    assert K[0, 2] <= 1e-70
    assert K[2, 2] == 1.0


@pytest.mark.parametrize("d", [1, 24, 25, 60])
def test_any_number_of_columns(d):
    X, Z = _points(30, 0, d), _points(7, 4, d)
    W = np.random.default_rng(1).normal(size=(30, 7))
    K, slopes = _by_jax(gm.Matern32(2.0 + d), X, Z, W)
    values = few.block(gm.Matern32(2.0 + d), X, Z)
    assert_allclose(values.K, K, rtol=1e-13)
    _close(few.pulled(values, W), slopes, K, W)


@pytest.mark.parametrize(
    "mean",
    [
        ZeroMean(),
        ConstantMean(0.3),
        ConstantMean([0.3, -1.0]),
        LinearMean(0.3, 0.5, centre=(1.0, 2.0, 3.0)),
        LinearMean(0.3, [0.5, 1.0, -2.0]),
        LinearMean(0.3, [0.5, -2.0], columns=(0, 2), centre=(0.1, 0.2)),
        LinearMean([0.3, 1.0], [[0.5, 1.0], [1.0, 2.0], [-2.0, 0.0]]),
        LinearMean([0.3, 1.0], 0.4),
        LinearMean(0.3, [[0.5, 1.0], [1.0, 2.0], [-2.0, 0.0]]),
    ],
    ids=str,
)
def test_means(mean):
    X = _points(9, 3)
    with jax.enable_x64(True):
        values, back = jax.vjp(lambda m: m.block(jax.numpy.asarray(X)), mean.bare())
        w = np.random.default_rng(0).normal(size=values.shape)
        slopes = [np.asarray(v) for v in leaves(back(jax.numpy.asarray(w))[0])]
    assert_allclose(tiles.rowwise(mean, "block", X), values, rtol=1e-14, atol=1e-14)
    _close(tiles.rowwise_pullback(mean, "block", X, w), slopes, np.ones(1), w)


class Rough(gm.RBF):
    """A subclass with another formula."""

    def profile(self, r2):
        return jax.numpy.exp(-r2)


class Sloping(ConstantMean):
    """Another formula, again."""

    def at(self, x):
        return self.value * x[0]


def test_a_subclass_with_another_formula_goes_through_jax():
    X = _points(5, 1)
    assert few.block(Rough(1.0), X, X) is None
    assert few.block(2.0 * Rough(1.0) + gm.Constant(1.0), X, X) is None
    assert_allclose(Rough(1.0)(X), gm.RBF(1.0)(X) ** 2, rtol=1e-12)
    assert_allclose(tiles.rowwise(Sloping(2.0), "block", X), 2 * X[:, 0])


def test_few_rows_call_no_program(monkeypatch):
    for name in ("tile", "tile_pullback", "cross_pullback", "rows", "rows_pullback", "product"):
        monkeypatch.setattr(programs, name, lambda *_: pytest.fail("a compiled program was called"))
    X = np.random.default_rng(0).uniform(-2, 2, (60, 3))
    kernel = Sum((1.5 * gm.Matern52([1.0, 1.0, 1.0]), Product((gm.Linear(0.1), gm.Periodic(1.0, 3.0)))))
    gp = gm.GPRegressor(kernel, n_restarts=0, mean="linear").fit(X, np.sin(X[:, 0]))
    assert gp.predict(X[:7], return_std=True)[1].shape == (7,)
    assert gp.predict(X).shape == (60,)
    assert len(gp.loo().mean) == 60


@pytest.mark.parametrize("kind", [gm.RBF, gm.Matern12, gm.Matern32, gm.Matern52, gm.RationalQuadratic])
@pytest.mark.parametrize("d", [1, 3])
def test_what_is_kept_of_points_gives_the_same(kind, d):
    """A search keeps the squared differences of its rows, in units of each column."""
    rng = np.random.default_rng(d)
    units = np.logspace(-170, 170, d)  # whose squares are no numbers
    X = rng.normal(size=(30, d)) * units
    X[7] = X[4]
    kernel = 2.0 * kind(0.7 * units).on(*range(d)) + kind(units)
    W = rng.normal(size=(30, 30))
    plain, points = few.block(kernel, X, X), Pairs(X, X, kept=True)
    assert points.kept
    for _ in range(2):
        kept = few.block(kernel, X, X, points)
        assert_allclose(kept.K, plain.K, rtol=1e-12)
        assert kept.K[4, 7] == kept.K[4, 4]
        for ours, other in zip(few.pulled(kept, W), few.pulled(plain, W), strict=True):
            assert_allclose(ours, other, rtol=1e-9)
    assert not Pairs(np.zeros((400, 3)), np.zeros((400, 3)), kept=True).kept  # too large for a cache
