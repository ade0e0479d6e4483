"""The contract of features: what the library has keeps it, and what breaks a promise is found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from gramian.features.base import Basis, FeatureMap
from gramian.features.fourier import KINDS, FourierBasis, FourierMap
from gramian.features.nystrom import NystromBasis, NystromMap
from gramian.gram import tiles
from gramian.testing import check_features

D = 2
Z = np.random.default_rng(0).uniform(-2, 2, (12, D))
STATIONARY = {
    "rbf": 1.3 * gm.RBF([0.8, 1.1]),
    "matern32": gm.Matern32(0.9),
    "rational quadratic": gm.RationalQuadratic(0.9, 1.5),
    "sum": 0.5 * gm.RBF(0.7) + 1.5 * gm.Matern52([1.0, 0.6]).on(1, 0) + gm.Constant(0.3),
    "mixture": gm.SpectralMixture([1.0, 0.5], [0.2, 0.5], [0.1, 0.2]),
    "product": gm.RBF(1.0) * gm.Cosine(2.0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_fourier_features_of_every_kind(kind):
    kernel = STATIONARY["sum"]
    check_features(FourierBasis.draw(kernel, D, 302, kind, np.random.default_rng(1)), kernel, D)


@pytest.mark.parametrize("kernel", STATIONARY.values(), ids=STATIONARY)
def test_fourier_features_of_every_law(kernel):
    check_features(FourierBasis.draw(kernel, D, 300, "orf", np.random.default_rng(1)), kernel, D)


def test_a_series_is_exact_up_to_what_is_cut_off():
    kernel = 2.0 * gm.Periodic(0.9, 1.7)
    basis = FourierBasis.draw(kernel, 1, 40, "rff", np.random.default_rng(1))
    assert basis.at(kernel).entry_error < 1e-12
    check_features(basis, kernel, 1)
    assert FourierBasis.draw(kernel, 1, 4, "rff").at(kernel).entry_error > 0.01


@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize(
    "kernel",
    [
        1.3 * gm.RBF([0.8, 1.1]),  # by products in NumPy
        gm.Matern32(0.9) + 0.4 * gm.Linear([1.0, 0.5]),  # by compiled programs
        gm.Matern12(0.7),
    ],
    ids=str,
)
def test_landmarks(kernel, learned):
    check_features(NystromBasis(Z, learned), kernel, D)


def test_many_columns_by_transforms_of_the_rows():
    """Phases by Hadamard transforms, whose gradients go by the product with W."""
    d = 600
    kernel = gm.RBF(30.0)
    basis = FourierBasis.draw(kernel, d, 256, "sorf", np.random.default_rng(1))
    assert basis.signs is not None
    X, G = np.random.default_rng(2).normal(size=(2, 5, d))[0], np.random.default_rng(3).normal(size=(5, 256))
    features, h, V = basis.at(kernel), 1e-4, np.random.default_rng(4).normal(size=(5, d))
    slope = np.sum(G * (features.block(X + h * V) - features.block(X - h * V))) / (2 * h)
    assert_allclose(np.sum(V * features.input_pullback(X, G)), slope, rtol=1e-5)


def test_who_has_landmarks_says_so():
    kernel = gm.RBF(0.8)
    points, waves = NystromBasis(Z, learned=True), FourierBasis.draw(kernel, D, 20)
    assert points.landmarks is Z
    assert points.at(kernel).landmarks is Z
    assert points.learned
    assert points.moved(Z + 1.0).learned
    assert waves.landmarks is None
    assert waves.at(kernel).landmarks is None
    assert not waves.learned
    with pytest.raises(ParameterError, match="FourierBasis has no landmarks to move"):
        waves.moved(Z)
    with pytest.raises(ParameterError, match="FourierMap has no landmarks"):
        _ = waves.at(kernel).L


def test_what_features_cannot_is_refused_with_what_can():
    features = NystromBasis(Z).at(gm.RBF(0.8))
    with pytest.raises(ParameterError, match=r"NystromMap does not tell the summands.*Fourier features do"):
        features.columns_of((gm.RBF(0.8),))
    with pytest.raises(ParameterError, match=r"slopes of NystromMap.*input_pullback"):
        features.slopes(Z)


# A basis of one's own, and what breaks a promise. -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lines(Basis):
    """The features of a linear kernel, x itself: exact, with no more than the contract asks for."""

    n_features = D

    def at(self, kernel):
        return LineMap(kernel)


@dataclass(frozen=True, eq=False)
class LineMap(FeatureMap):
    kernel: gm.kernels.Kernel
    n_features = D
    spans_prior = True

    @property
    def _root(self):
        return np.sqrt(self.kernel.variance.value)

    def block(self, X, tolerance=0.0):
        return X * self._root

    def pullback(self, X, G):
        return [np.sum(G * X, axis=0) / (2 * self._root)]

    def shared_pullback(self, T):
        return [np.zeros(D)]

    def slopes(self, X):
        return np.ones(X.shape), np.diag(self._root)


def test_a_basis_of_ones_own():
    check_features(Lines(), gm.Linear([0.7, 2.0]), D)


class Broken(NystromMap):
    """Landmarks with one promise broken."""

    promise = ""

    def block(self, X, tolerance=0.0):
        Phi = super().block(X, tolerance)
        if self.promise == "depends on the others":
            Phi += 1e-3 * np.mean(X)
        if self.promise == "above K":
            Phi *= 1.01
        if self.promise == "below K":
            Phi *= 0.99
        if self.promise == "too rough" and tolerance:
            Phi *= 1.001
        if self.promise == "another root":
            Phi = Phi[:, ::-1]
        if self.promise == "not finite":
            Phi[0, 0] = np.nan
        return Phi[:, :-1] if self.promise == "a feature missing" else Phi

    def pullback(self, X, G):
        *rest, by_Z = super().pullback(X, G)
        if self.promise == "a gradient missing":
            return rest
        if self.promise == "half a gradient":
            return [0.5 * rest[0], *rest[1:], by_Z]
        return [*rest, 1.01 * by_Z] if self.promise == "points" else [*rest, by_Z]

    def shared_pullback(self, T):
        found = super().shared_pullback(T)
        return [0 * v for v in found] if self.promise == "nothing shared" else found

    def factored_pullback(self, C, w):
        return super().factored_pullback(C, 2 * w if self.promise == "factored" else w)

    def input_pullback(self, X, G):
        return super().input_pullback(X, G) * (-1 if self.promise == "inputs" else 1)


@dataclass(frozen=True, eq=False)
class BrokenBasis(Basis):
    kind: type[Broken]
    Z: np.ndarray
    learned: bool = True

    @property
    def n_features(self):
        return len(self.Z)

    @property
    def landmarks(self):
        return self.Z

    def moved(self, Z):
        return replace(self, Z=Z)

    def at(self, kernel):
        return self.kind(kernel, self.Z, True)


def broken(promise):
    return BrokenBasis(type("Broken", (Broken,), {"promise": promise}), Z)


@pytest.mark.parametrize(
    ("promise", "message"),
    [
        ("a feature missing", "Phi has the shape"),
        ("not finite", "not of finite numbers"),
        ("depends on the others", "depends on the rows beside it"),
        ("too rough", "tolerance of 1e-6"),
        ("above K", "is no covariance"),
        ("below K", "at the landmarks"),
        ("another root", "must be the root L"),
        ("a gradient missing", "arrays come back for 3 gradients"),
        ("half a gradient", r"gradient of sum\(G \* Phi\) by"),
        ("nothing shared", r"gradient of sum\(G \* Phi\) by"),
        ("points", "by landmarks"),
        ("factored", "factored_pullback is not"),
        ("inputs", "input_pullback in column 0"),
    ],
)
def test_broken_features_are_found(promise, message):
    with pytest.raises(AssertionError, match=message):
        check_features(broken(promise), 1.2 * gm.RBF(0.6), D)


def test_features_with_no_promise_broken_pass():
    check_features(broken("none"), 1.2 * gm.RBF(0.6), D)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gain": lambda basis: 1.2 * basis.gain}, "is off by .* from K"),
        ({"draws": lambda basis: (((0.8 * basis.draws[0][0][0],),),)}, "is off by .* from K"),
    ],
    ids=["louder", "slower"],
)
def test_frequencies_that_are_not_the_kernels(change, message):
    kernel = gm.RBF(0.8)
    basis = FourierBasis.draw(kernel, D, 4000, "rff", np.random.default_rng(1))
    changed = replace(basis, **{name: value(basis) for name, value in change.items()})
    with pytest.raises(AssertionError, match=message):
        check_features(changed, kernel, D)


def test_summands_that_are_taken_for_each_other(monkeypatch):
    kernel = 3.0 * gm.RBF(0.8) + 0.2 * gm.Matern52(2.0)
    basis = FourierBasis.draw(kernel, D, 2000, "orf", np.random.default_rng(1))
    columns_of = FourierMap.columns_of
    monkeypatch.setattr(FourierMap, "columns_of", lambda self, terms: columns_of(self, terms)[::-1])
    with pytest.raises(AssertionError, match="by columns_of are off"):
        check_features(basis, kernel, D)


def test_the_gradient_of_inputs_at_any_number_of_rows():
    """Several tiles of rows and of landmarks, by both ways to make them."""
    rng = np.random.default_rng(5)
    X, far, W = rng.normal(size=(700, D)), rng.normal(size=(520, D)), rng.normal(size=(700, 520))
    for kernel in (1.3 * gm.RBF([0.8, 1.1]), gm.RationalQuadratic(0.8)):
        by_X = tiles.cross_pullback(kernel, X, far, W.copy(), inputs=True)[-1]
        slopes = tiles.gradients(kernel, X, far)
        assert_allclose(by_X, np.einsum("ij,ijc->ic", W, slopes), rtol=1e-9, atol=1e-9)
