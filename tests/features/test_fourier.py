"""Fourier features: unbiased, converging as theory says, each kind its own construction, gradients equal to
differences."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import hadamard
from scipy.special import gammainc, ive
from scipy.stats import kstest

import gramian as gm
from gramian.errors import ParameterError
from gramian.features.fourier import ROW_WISE, FourierBasis, _shares
from gramian.features.spectral import Orthogonal, QuasiMonteCarlo, Structured, orthogonal, structured_product
from gramian.kernels import (
    RBF,
    Constant,
    Cosine,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SpectralMixture,
)
from gramian.kernels.spectrum import GammaMixture

D = 3
X = np.random.default_rng(0).normal(size=(9, D))
MIXTURE = SpectralMixture([1.0, 0.5], [0.2, 0.5], [0.1, 0.2])
RANDOM = {
    "rbf": RBF(0.8),
    "ard": RBF([0.5, 1.0, 2.0]),
    "matern12": Matern12(1.0),
    "matern32": Matern32(0.7),
    "matern52": Matern52([1.0, 2.0, 0.5]),
    "rq": RationalQuadratic([1.0, 0.8, 2.0], 0.7),
    "mixture": MIXTURE,
    "mixture-ard": SpectralMixture(
        [1.0, 0.5], [[0.2, 0.5, 0.1], [0.1, -0.3, 0.6]], [[0.2, 0.1, 0.1], [0.1, 0.3, 0.2]]
    ),
    "periodic": Periodic([1.0, 0.6, 2.0], [2.0, 3.0, 4.0]),
    "scaled": 2.5 * RBF(1.0),
    "sum": 0.4 * RBF(1.0) + 1.5 * Matern32(2.0).on(1),
    "locally-periodic": RBF(1.0) * Periodic(0.9, 2.0).on(1),
    "product": RBF(1.0) * Matern32([1.0, 2.0, 3.0]),
    "expanded": (Cosine(3.0) + 0.5 * RBF(1.0)) * Cosine(2.0),
    "two-directed": MIXTURE * Cosine(3.0),
    "constant": Constant(2.0) + Matern52(1.0).on(0, 2),
    "power": (RBF(1.0) + Cosine(2.5).on(0)) ** 2,
}
EXACT = {
    "cosine": Cosine([2.0, 3.0, 4.0]),
    "two-cosines": Cosine(2.0) * Cosine([1.0, 3.0, 1.5]),
    "cosine-cubed": Cosine(1.5) ** 3,
    "series": 1.7 * Periodic(0.8, 2.0).on(1),
    "series-times-cosine": Periodic(0.8, 2.0).on(1) * Cosine(3.0),
    "constant": Constant(0.3) + Cosine(2.0).on(0),
}
PAIRS = ("rff", "orf", "sorf", "qmc", "qmc-sobol")


def approximate(kernel, n_features, kind, rng, rows=X):
    Phi = FourierBasis.draw(kernel, rows.shape[1], n_features, kind, rng).at(kernel).block(rows)
    assert Phi.shape == (len(rows), n_features)
    return Phi @ Phi.T


def deviations(kernel, kind, exact, n_features=40, repetitions=250, seed=1):
    """How many standard errors the average over draws lies from a matrix, entry by entry."""
    rng = np.random.default_rng(seed)
    draws = np.array([approximate(kernel, n_features, kind, rng) for _ in range(repetitions)])
    error = draws.std(axis=0, ddof=1) / np.sqrt(repetitions)
    return (draws.mean(axis=0) - exact) / np.maximum(error, 1e-9)


# Sixty or so tests of 45 entries each: beyond 5.5 standard errors one of them lies by chance with odds of 1
# to 10,000.
LIMIT = 5.5


@pytest.mark.parametrize("kind", ["rff", "rff-phase"])
@pytest.mark.parametrize("name", RANDOM)
def test_unbiased(name, kind):
    kernel = RANDOM[name]
    assert np.max(np.abs(deviations(kernel, kind, kernel(X)))) < LIMIT


@pytest.mark.parametrize("kind", ["orf", "qmc", "qmc-sobol"])
@pytest.mark.parametrize("name", ["rbf", "matern32", "rq", "locally-periodic", "mixture"])
def test_other_kinds_unbiased(name, kind):
    kernel = RANDOM[name]
    assert np.max(np.abs(deviations(kernel, kind, kernel(X)))) < LIMIT


@pytest.mark.parametrize(
    ("kernel", "lookalike"),
    [
        (RBF(0.8), Matern32(0.8)),
        (Matern12(1.0), Matern32(1.0)),
        (Matern52(1.0), RBF(1.0)),
        (RationalQuadratic(1.0, 0.7), RBF(1.0)),
    ],
)
def test_the_test_of_bias_tells_lookalikes_apart(kernel, lookalike):
    """Matern features from Gaussian frequencies would be features of another kernel, which lies far beyond
    the limit."""
    assert np.max(np.abs(deviations(kernel, "rff", lookalike(X)))) > 2 * LIMIT


@pytest.mark.parametrize("kind", [*PAIRS, "rff-phase"])
@pytest.mark.parametrize("name", EXACT)
def test_discrete_spectra_are_exact(name, kind):
    # exp(-a) I_k(a) for a = 1.6: beyond the first 20 frequencies 1e-20.
    assert_allclose(approximate(EXACT[name], 80, kind, np.random.default_rng(0)), EXACT[name](X), atol=1e-13)


def test_periodic_series_is_exact_to_truncation():
    """With n pairs what is missing is the rest of the series, and with it Phi Phi' <= K."""
    kernel = Periodic(0.5, 2.0)
    x = np.linspace(-1, 1, 12)[:, None]
    a, tau = 4.0, x - x.T
    for n in (2, 4, 7):
        rest = sum(2 * ive(k, a) * np.cos(2 * np.pi * k * tau / 2.0) for k in range(n, 60))
        gap = kernel(x) - approximate(kernel, 2 * n, "rff", np.random.default_rng(0), x)
        assert_allclose(gap, rest, atol=1e-13)
        assert np.linalg.eigvalsh(gap)[0] > -1e-13


@pytest.mark.parametrize("kind", PAIRS)
@pytest.mark.parametrize("name", ["ard", "matern12", "rq", "mixture", "locally-periodic", "sum", "expanded"])
def test_pairs_have_the_kernels_variance(name, kind):
    kernel = RANDOM[name]
    assert_allclose(
        np.diagonal(approximate(kernel, 60, kind, np.random.default_rng(3))), kernel.diag(X), rtol=1e-12
    )


def mean_errors(kernel, kind, sizes, repetitions, rows):
    """Frobenius errors: (repetitions, sizes)."""
    K, rng = kernel(rows), np.random.default_rng(5)
    return np.array(
        [
            [np.linalg.norm(approximate(kernel, m, kind, rng, rows) - K) for m in sizes]
            for _ in range(repetitions)
        ]
    ) / np.linalg.norm(K)


@pytest.mark.parametrize("kind", ["rff", "rff-phase"])
def test_error_falls_as_one_over_root_m(kind):
    """The slope of log error over log m, by regression over 30 repetitions; within 4 of its own standard
    errors of -1/2."""
    rows = np.random.default_rng(6).normal(size=(40, 8))
    sizes = np.array([50, 100, 200, 400, 800]) * 2
    errors = np.log(mean_errors(RBF(2.5), kind, sizes, 30, rows))
    x = np.log(sizes) - np.mean(np.log(sizes))
    slopes = errors @ x / (x @ x)
    assert abs(slopes.mean() + 0.5) < 4 * slopes.std(ddof=1) / np.sqrt(30)
    assert slopes.std(ddof=1) / np.sqrt(30) < 0.02  # or the line above would say little


def test_orthogonal_frequencies_err_less():
    rows = np.random.default_rng(6).normal(size=(40, 8))
    plain, orf, sorf = (mean_errors(RBF(2.5), kind, [512], 30, rows)[:, 0] for kind in ("rff", "orf", "sorf"))
    for better in (orf, sorf):
        gap = plain.mean() - better.mean()
        assert gap > 3 * np.hypot(plain.std(), better.std()) / np.sqrt(30)


@pytest.mark.parametrize("kind", ["qmc", "qmc-sobol"])
@pytest.mark.parametrize("kernel", [RBF(1.0), Matern52(1.0), RationalQuadratic(1.0, 1.0)], ids=str)
def test_quasi_monte_carlo_errs_less_in_two_dimensions(kernel, kind):
    rows = np.random.default_rng(6).normal(size=(40, 2))
    plain, quasi = (mean_errors(kernel, name, [512], 20, rows)[:, 0] for name in ("rff", kind))
    assert quasi.mean() < 0.6 * plain.mean()


def test_sorf_is_its_dense_construction():
    rng = np.random.default_rng(7)
    for size, d in ((4, 3), (64, 64), (256, 8)):
        signs = rng.choice([-1.0, 1.0], size=(3, size))
        H = hadamard(size) / np.sqrt(size)
        dense = np.sqrt(size) * H @ np.diag(signs[0]) @ H @ np.diag(signs[1]) @ H @ np.diag(signs[2])
        X = rng.standard_normal((5, d))
        assert_allclose(structured_product(X, signs[None]), X @ dense[:, :d].T, atol=1e-12)
    full = Structured(256, rng).normals(256)  # one block, a rotation times sqrt(D)
    assert_allclose(full @ full.T, 256 * np.eye(256), atol=1e-10)


@pytest.mark.parametrize(
    "kernel",
    [2.0 * RBF(np.linspace(20, 40, ROW_WISE)), Matern32(30.0), RationalQuadratic(30.0, 2.0)],
    ids=str,
)
def test_structured_features_of_many_columns_are_made_by_transforms(kernel, monkeypatch):
    """The same features as by a product with the frequencies, their slopes, and those of a file that does not
    know of signs."""
    rng = np.random.default_rng(9)
    X = 1 + rng.standard_normal((30, ROW_WISE))
    # two blocks of 1,024 frequencies, the second cut off
    basis = FourierBasis.draw(kernel, ROW_WISE, 2500, "sorf", rng, np.ones(ROW_WISE))
    assert basis.signs.shape == (2, 3, 1024)
    by_product = replace(basis, signs=None).at(kernel)
    monkeypatch.setattr("gramian.features.fourier._features", None)  # is not needed
    by_transforms = basis.at(kernel)
    found, slopes = by_transforms.block(X), by_transforms.slopes(X)[0]
    monkeypatch.undo()
    assert_allclose(found, by_product.block(X), atol=1e-12)
    assert_allclose(slopes, by_product.slopes(X)[0], atol=1e-12)


def test_structured_features_of_few_columns_or_several_waves_are_not():
    for kernel, d in (
        (RBF(1.0), 8),
        (RBF(20.0) + Matern32(20.0), ROW_WISE),
        (RBF(20.0) * Matern32(20.0), ROW_WISE),
    ):
        assert FourierBasis.draw(kernel, d, 64, "sorf", np.random.default_rng(0)).signs is None


def test_orf_has_orthogonal_directions_and_chi_lengths():
    rng = np.random.default_rng(8)
    for Q in orthogonal(3, 5, rng):
        assert_allclose(Q @ Q.T, np.eye(5), atol=1e-14)
    Z = Orthogonal(4000, rng).normals(8)
    for block in Z.reshape(500, 8, 8):
        assert_allclose(block @ block.T, np.diag(np.sum(block**2, axis=1)), atol=1e-12)
    assert kstest(np.sum(Z**2, axis=1), "chi2", args=(8,)).pvalue > 1e-6
    assert kstest(Z[::8, 3], "norm").pvalue > 1e-6  # one row a block: these are independent


@pytest.mark.parametrize("sobol", [False, True])
def test_qmc_has_even_normal_coordinates(sobol):
    """In 256 points each of 16 slices of equal probability has its 16, to one or two; independent ones would
    stray by 4."""
    Z = QuasiMonteCarlo(256, 4, sobol, np.random.default_rng(9)).normals(4)
    edges = np.quantile(np.random.default_rng(0).normal(size=10**6), np.arange(1, 16) / 16)
    counts = np.array([np.bincount(np.searchsorted(edges, column), minlength=16) for column in Z.T])
    assert np.max(np.abs(counts - 16)) <= 3


# Gradients. -------------------------------------------------------------------------------------------------


PULLED = [("rff", name) for name in RANDOM] + [("rff", f"exact-{name}") for name in EXACT]
PULLED += [("rff-phase", "sum"), ("rff-phase", "exact-series"), ("qmc", "rq"), ("sorf", "ard")]


@pytest.mark.parametrize(("kind", "name"), PULLED)
def test_pullback_equals_differences(name, kind):
    given = EXACT[name.removeprefix("exact-")] if name.startswith("exact-") else RANDOM[name]
    # not where it was drawn
    kernel = given.with_parameters([p.with_value(1.1 * p.value) for p in given.parameters().values()])
    rng = np.random.default_rng(11)
    basis = FourierBasis.draw(given, D, 30, kind, rng, centre=np.full(D, 0.2))
    G = rng.normal(size=(len(X), 30))
    found = basis.at(kernel).pullback(X, G)
    assert len(found) == len(kernel.parameters())
    for slope, (path, p) in zip(found, kernel.parameters().items(), strict=True):
        assert slope.shape == p.value.shape
        for at in np.ndindex(p.value.shape):
            step = 1e-5 * abs(p.value[at])
            ends = []
            for sign in (1, -1):
                value = p.value.copy()
                value[at] += sign * step
                ends.append(np.sum(G * basis.at(kernel.with_values({path: value})).block(X)))
            # Central differences: an error of step^2 times a third derivative, for frequencies that reach a
            # hundred.
            assert_allclose(slope[at], (ends[0] - ends[1]) / (2 * step), rtol=1e-5, atol=1e-5)


def test_pullback_sums_over_rows_in_tiles():
    rng = np.random.default_rng(12)
    rows, kernel = rng.normal(size=(1300, 2)), 1.3 * Matern52([0.5, 1.0])  # three tiles of 512
    features = FourierBasis.draw(kernel, 2, 20, "rff", rng).at(kernel)
    G = rng.normal(size=(1300, 20))
    parts = [features.pullback(rows[i : i + 100], G[i : i + 100]) for i in range(0, 1300, 100)]
    for k, whole in enumerate(features.pullback(rows, G)):
        assert_allclose(whole, sum(part[k] for part in parts), rtol=1e-10)


def test_nothing_is_shared_between_rows():
    kernel = RBF([1.0, 2.0, 3.0]) + Matern32(1.0)
    shared = (
        FourierBasis.draw(kernel, D, 8, "rff", np.random.default_rng(0))
        .at(kernel)
        .shared_pullback(np.ones((8, 8)))
    )
    assert [v.shape for v in shared] == [p.value.shape for p in kernel.parameters().values()]
    assert not any(np.any(v) for v in shared)


# Contracts. -------------------------------------------------------------------------------------------------


def test_cosines_are_those_of_numpy():
    """Phases of thousands of turns included; the error is that of the product with the frequency, of size eps
    times the phase."""
    rng = np.random.default_rng(13)
    rows = rng.normal(size=(600, 2)) * np.logspace(-8, 4, 600)[:, None]
    features = FourierBasis.draw(RBF(1.0), 2, 12, "rff", rng).at(RBF(1.0))
    phase = np.pi * rows @ features.W
    expected = np.concatenate([np.cos(phase), np.sin(phase)], axis=1) / np.sqrt(6)
    limit = 1e-15 + 4 * np.finfo(float).eps * np.max(np.abs(phase), axis=1)
    assert np.all(np.max(np.abs(features.block(rows) - expected), axis=1) < limit)


def test_same_seed_same_features_whatever_the_block():
    kernel = 2.0 * Matern32(1.0) + Periodic(1.0, 2.0).on(0)
    rows = np.random.default_rng(1).normal(size=(1100, D))
    one, two = (
        FourierBasis.draw(kernel, D, 24, "orf", np.random.default_rng(4)).at(kernel).block(rows)
        for _ in range(2)
    )
    assert_array_equal(one, two)
    features = FourierBasis.draw(kernel, D, 24, "orf", np.random.default_rng(4)).at(kernel)
    assert_allclose(
        np.concatenate([features.block(rows[:37]), features.block(rows[37:])]), one, rtol=1e-12, atol=1e-14
    )
    assert one.flags.c_contiguous
    assert one.dtype == np.float64
    assert features.block(rows[:0]).shape == (0, 24)


def test_a_centre_turns_the_features_but_not_the_kernel():
    far = X + 1e6
    with_centre = (
        FourierBasis.draw(RBF(1.0), D, 64, "rff", np.random.default_rng(4), centre=np.full(D, 1e6))
        .at(RBF(1.0))
        .block(far)
    )
    near = FourierBasis.draw(RBF(1.0), D, 64, "rff", np.random.default_rng(4)).at(RBF(1.0)).block(X)
    assert_allclose(with_centre, near, atol=1e-8)  # X + 1e6 has 10 digits of X


@pytest.mark.parametrize("kind", [*PAIRS, "rff-phase"])
@pytest.mark.parametrize("n_features", [6, 10, 64])
def test_columns_are_exactly_those_asked_for(kind, n_features):
    for kernel in (*RANDOM.values(), *EXACT.values()):
        if n_features >= 10:
            basis = FourierBasis.draw(kernel, D, n_features, kind, np.random.default_rng(0))
            assert (
                basis.n_features
                == basis.at(kernel).n_features
                == n_features
                == basis.at(kernel).block(X[:2]).shape[1]
            )
            assert basis.at(kernel).spans_prior
    assert (
        FourierBasis.draw(RBF(1.0), D, n_features + 1, "rff-phase", np.random.default_rng(0)).n_features
        == n_features + 1
    )


def test_features_are_shared_out_half_evenly_half_by_weight():
    waves = (3.0 * RBF(1.0) + 1.0 * Matern32(1.0) + Cosine(1.0)).bare().waves((0,))
    # 100 pairs, one for the cosine; of the other 99 a half evenly, the rest 3 to 1.
    assert _shares(waves, 200, True) == [62, 37, 1]
    assert sum(_shares(MIXTURE.bare().waves((0,)), 100, True)) == 50


def test_gamma_mixture_tends_to_the_rbf():
    """The same draws with alpha = 1e8 are those of an RBF to 1e-4: s has a standard deviation of 1 /
    sqrt(alpha)."""
    basis = FourierBasis.draw(RationalQuadratic(1.0, 1.0), D, 200, "rff", np.random.default_rng(2))
    F = basis.at(RationalQuadratic(1.0, 1e8))
    assert_allclose(F.W, basis.draws[0][0][0].T / np.pi, rtol=2e-3)


def test_slope_of_the_gamma_quantile():
    """Against implicit differentiation: dx/dalpha = -(dP(alpha, x)/dalpha) / density(x), which JAX has for
    its gamma draws."""
    u, alphas = np.array([0.01, 0.2, 0.5, 0.9, 0.999]), np.array([0.05, 0.7, 3.0, 400.0])
    found = [GammaMixture((0,), 1.0, alpha).host((np.zeros((5, 1)), u)) for alpha in alphas]
    x, slope = (np.array([pair[k] for pair in found]) for k in (0, 1))
    assert_allclose(gammainc(alphas[:, None], x), np.tile(u, (4, 1)), rtol=1e-12)
    with jax.enable_x64(True):
        assert_allclose(
            slope, jax.jit(jax.lax.random_gamma_grad)(np.repeat(alphas[:, None], 5, axis=1), x), rtol=1e-8
        )


@pytest.mark.parametrize(
    ("kernel", "named"),
    [
        (gm.Linear(), "Linear()"),
        (RBF(1.0) + 2.0 * gm.Linear().on(0), "Linear()"),
        (RBF(1.0) * gm.exp(RBF(2.0)), "exp(RBF(2))"),
        (gm.Brownian() + RBF(1.0), "Brownian()"),
    ],
)
def test_a_kernel_without_spectrum_is_named(kernel, named):
    with pytest.raises(ParameterError) as info:
        FourierBasis.draw(kernel, 2, 10, "rff", np.random.default_rng(0))
    assert str(info.value).startswith(f"{named} has no known spectral measure")
    assert "Matern32" in str(info.value)
    assert "Nystrom" in str(info.value)


def test_errors_name_the_cure():
    rng = np.random.default_rng(0)
    for kernel, n_features, kind, words in (
        (RBF(1.0), 7, "rff", 'Use 8, or kind="rff-phase"'),
        (RBF(1.0), 10, "fourier", "'qmc-sobol'"),
        (RBF(1.0), 0, "rff", "whole number"),
        (RBF(1.0), 2.5, "rff", "whole number"),
        (RBF(1.0) + RBF(2.0) + RBF(3.0), 4, "rff", "needs 6 features"),
        (Cosine(1.0), 5, "rff-phase", "Use 6"),
        (RBF([1.0, 2.0, 3.0]), 4, "rff", "3 values, but the data have 2 columns"),
        (RBF(1.0).on("age"), 4, "rff", "age"),
    ):
        with pytest.raises(ParameterError, match=words):
            FourierBasis.draw(kernel, 2, n_features, kind, rng)


def test_another_structure_is_refused():
    basis = FourierBasis.draw(RBF(1.0), 2, 10, "rff", np.random.default_rng(0))
    with pytest.raises(ParameterError, match="another structure"):
        basis.at(RBF(1.0) + RBF(2.0))
