"""Predictive distributions: quantiles, cumulative probabilities, densities and draws of every likelihood say
the same."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

import gramian as gm
from gramian import likelihoods
from gramian.errors import InputError, ParameterError
from gramian.estimators.predictions import Counted, Drawn, Latents, predictive
from gramian.inference.asked import ask
from gramian.predictive import Blend, NoisyNormals, Normals

LEVELS = np.array([0.01, 0.1, 0.5, 0.9, 0.99])
DRAWS, SEED = 50_000, 2


class Laplacian(gm.Likelihood):
    """Knows how to draw, and nothing of probabilities below a number."""

    def log_prob(self, y, f):
        return -jnp.abs(y - f) - jnp.log(2.0)

    def conditional_moments(self, f):
        return f, jnp.full(f.shape, 2.0)

    def draw(self, rng, f):
        return f + rng.laplace(size=np.shape(f))


class Geometric(gm.Likelihood):
    """Whole numbers, with nothing but their probabilities."""

    discrete = True

    def log_prob(self, y, f):
        return -y * jnp.logaddexp(0.0, -f) - jnp.logaddexp(0.0, f)

    def conditional_moments(self, f):
        mu = jnp.exp(f)
        return mu, mu + mu**2

    def draw(self, rng, f):
        return rng.geometric(1 / (1 + np.exp(f))) - 1.0


KINDS = {
    "gaussian": (gm.Gaussian(0.3), ()),
    "student": (gm.StudentT(0.2, 4.0), ()),
    "student without a variance": (gm.StudentT(0.5, 1.1), ()),
    "student, nearly gaussian": (gm.StudentT(0.5, 1e4), ()),
    "heteroscedastic": (gm.Heteroscedastic(), ()),
    "gamma": (likelihoods.Gamma(2.0), ()),
    "gamma, narrow": (likelihoods.Gamma(3000.0), ()),
    "beta": (gm.Beta(5.0), ()),
    "poisson": (gm.Poisson(), (3.0,)),
    "poisson, many": (gm.Poisson(), (1e5,)),
    "negative binomial": (gm.NegativeBinomial(0.7), (20.0,)),
    "binomial": (gm.Binomial(), (30.0,)),
    "bernoulli": (gm.Bernoulli("probit"), ()),
    "ordinal": (gm.Ordinal(5), ()),
    "one's own": (Laplacian(), ()),
    "one's own, whole numbers": (Geometric(), ()),
}


# A likelihood of the library that has no case above is among them by itself, with its own defaults.
CLASSES = {name: getattr(likelihoods, name) for name in likelihoods.__all__ if name != "Likelihood"}
UNORDERED = {"Softmax", "RobustMax"}  # classes, which have probabilities in place of quantiles
for _name in set(CLASSES) - {type(known).__name__ for known, _ in KINDS.values()} - UNORDERED:
    _made = CLASSES[_name]()
    KINDS[_name] = (_made, tuple(_made.column_defaults.get(column, 1.0) for column in _made.columns[1:]))


def foretold(name, parts=1):
    likelihood, beside = KINDS[name]
    L = likelihood.latents
    seen = []
    for k in range(parts):
        mean = np.array([-1.0, 0.3, 0.8])[:, None] + np.array([0.0, -1.0])[:L] + 0.1 * k
        var = np.array([1e-6, 0.2, 1.5])[:, None] * np.ones(L)
        seen.append(Latents(likelihood, mean, var))
    return predictive(seen, np.tile(beside, (3, 1)).reshape(3, len(beside)))


@pytest.mark.parametrize("parts", [1, 12])
@pytest.mark.parametrize("name", KINDS)
def test_quantiles_are_those_of_draws(name, parts):
    """Of 50,000 draws as many as the level says lie below, to within 3 standard errors, sqrt(p (1 - p) /
    draws) each. The seed is fixed, and one of those with which none of the 480 comparisons misses by chance.
    A likelihood that only draws has the error of its own 4,000 instead."""
    dist = foretold(name, parts)
    draws, q = dist.sample(np.random.default_rng(SEED), DRAWS), dist.quantile(LEVELS)
    assert q.shape == (3, len(LEVELS))
    assert np.all(np.diff(q, axis=1) >= 0)
    reached = np.mean(draws[:, None, :] <= q[:, :, None], axis=2)
    error = 3 * np.sqrt(LEVELS * (1 - LEVELS) / (4000 if name == "one's own" else DRAWS))
    if dist.discrete:
        assert_allclose(q, np.round(q))
        assert np.all(reached > LEVELS - error)
        assert np.all(np.mean(draws[:, None, :] < q[:, :, None], axis=2) < LEVELS + error)
    else:
        assert np.all(np.abs(reached - LEVELS) < error)


@pytest.mark.parametrize("name", KINDS)
def test_intervals_hold_as_many_draws_as_they_say(name):
    """To within 3 standard errors, as above; of whole numbers no fewer."""
    dist = foretold(name)
    draws = dist.sample(np.random.default_rng(SEED + 1), DRAWS)
    for level in (0.5, 0.95):
        low, high = (end[:, None] for end in dist.interval(level))
        held = np.mean((draws >= low) & (draws <= high), axis=1)
        error = 3 * np.sqrt(level * (1 - level) / (4000 if name == "one's own" else DRAWS))
        assert np.all(held > level - error)
        assert dist.discrete or np.all(held < level + error)


@pytest.mark.parametrize("name", sorted(UNORDERED))
def test_probabilities_of_classes_are_those_of_draws(name):
    likelihood, n = CLASSES[name](3), 200_000
    mean, var = np.array([0.3, -0.5, 1.0]), np.array([0.2, 1.5, 1e-6])
    rng = np.random.default_rng(SEED)
    f = mean + np.sqrt(var) * rng.standard_normal((n, 3))
    shares = np.bincount(likelihood.bare().draw(rng, f).astype(int), minlength=3) / n
    p = ask(likelihood, "probabilities", mean[None], var[None])[0]
    assert np.all(np.abs(shares - p) < 3 * np.sqrt(p * (1 - p) / n))


@pytest.mark.parametrize("name", KINDS)
def test_cdf_of_a_quantile_is_its_level(name):
    dist = foretold(name)
    for level in LEVELS:
        q = dist.quantile([level])[:, 0]
        if dist.discrete:
            assert np.all(dist.cdf(q) >= level)
            assert np.all(dist.cdf(q - 1) < level)
        else:
            assert_allclose(dist.cdf(q), level, atol=1 / 4000 if name == "one's own" else 1e-9)


@pytest.mark.parametrize("name", [k for k, (it, _) in KINDS.items() if not it.discrete and k != "one's own"])
def test_cdf_is_the_integral_of_the_density(name):
    """Between the quartiles of the third row; the density is averaged over f by another quadrature."""
    dist = foretold(name).at(slice(2, 3))
    ((low, high),) = dist.quantile([0.25, 0.75])
    area, _ = quad(lambda y: float(np.exp(dist.log_density(np.array([y])))[0]), low, high, epsrel=1e-8)
    assert_allclose(area, 0.5, atol=1e-5)


@pytest.mark.parametrize("name", [k for k, (it, _) in KINDS.items() if it.discrete])
def test_cdf_is_the_sum_of_the_probabilities(name):
    dist = foretold(name)
    y = dist.quantile([0.6])[:, 0]
    with np.errstate(divide="ignore"):
        here = np.exp(dist.log_density(y))
    assert_allclose(dist.cdf(y) - dist.cdf(y - 1), here, rtol=1e-4, atol=1e-9)
    assert_allclose(dist.cdf(y + 0.5), dist.cdf(y), atol=1e-12)
    assert np.all(dist.cdf(-1.0) == 0)


def test_students_t_without_uncertainty_of_f_is_scipys():
    for df in (0.7, 1.1, 3.0, 30.0, 3000.0):
        dist = gm.StudentT(2.0, df).distribution(np.array([0.5]), np.array([0.0]))
        exact = stats.t(df, 0.5, 2.0)
        assert_allclose(dist.quantile(LEVELS)[0], exact.ppf(LEVELS), rtol=1e-6)
        assert_allclose(dist.log_density(np.array([3.0]))[0], exact.logpdf(3.0), rtol=1e-7)
        assert_allclose(dist.std[0], exact.std() if df > 2 else np.inf)


def test_a_gaussian_is_closed_form_for_several_outputs():
    rng = np.random.default_rng(0)
    mean, std = rng.standard_normal((4, 2)), rng.uniform(0.5, 2, (4, 2))
    dist, exact = Normals(mean, std), stats.norm(mean, std)
    assert_allclose(dist.quantile(LEVELS), np.stack([exact.ppf(p) for p in LEVELS], axis=1))
    assert_allclose(dist.cdf(0.3), exact.cdf(0.3))
    y = rng.standard_normal((4, 2))
    assert_allclose(dist.log_density(y), exact.logpdf(y).sum(axis=1))
    lower, upper = dist.interval(0.9)
    assert_allclose(exact.cdf(upper) - exact.cdf(lower), 0.9)
    assert dist.sample(rng, 7).shape == (4, 2, 7)
    assert_allclose(dist.at(slice(1, 3)).mean, mean[1:3])


def test_a_mixture_of_several_models_is_the_average_of_their_probabilities():
    rng = np.random.default_rng(0)
    parts = [Normals(rng.standard_normal((3, 2)), np.full((3, 2), s)) for s in (0.5, 1.0, 2.0)]
    weights = np.array([1.0, 2.0, 5.0])
    dist = Blend(parts, weights)
    y = rng.standard_normal((3, 2))
    shares = weights / 8
    assert_allclose(dist.cdf(y), sum(w * part.cdf(y) for w, part in zip(shares, parts, strict=True)))
    # a row is from one of the models, with all of its outputs
    joint = sum(w * np.exp(part.log_density(y)) for w, part in zip(shares, parts, strict=True))
    assert_allclose(np.exp(dist.log_density(y)), joint)
    q = dist.quantile([0.2, 0.7])
    assert_allclose(dist.cdf(q[:, 1]), 0.7, atol=1e-10)
    draws = dist.sample(rng, 100_000)
    assert_allclose(draws.mean(axis=2), dist.mean, atol=5 * dist.std.max() / np.sqrt(100_000))
    assert_allclose(draws.std(axis=2), dist.std, rtol=0.02)


def test_the_kind_is_what_a_likelihood_can_tell():
    assert isinstance(foretold("gaussian"), Normals)
    assert isinstance(foretold("student"), NoisyNormals)
    assert isinstance(foretold("one's own"), Drawn)
    assert isinstance(foretold("one's own, whole numbers"), Counted)


def test_a_row_has_the_same_quantiles_in_whatever_table_it_stands():
    for name in ("one's own", "gamma", "poisson"):
        dist = foretold(name)
        assert_allclose(dist.at(slice(1, 2)).quantile(LEVELS)[0], dist.quantile(LEVELS)[1], rtol=1e-9)


def test_what_is_no_level_or_has_another_shape_is_refused():
    dist = foretold("gaussian")
    for wrong in ([0.0], [0.5, 1.2], [[0.1]], []):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            dist.quantile(wrong)
    for wrong in (0.0, 1.0, "0.9", [0.9], True):
        with pytest.raises(ParameterError, match="between 0 and 1"):
            dist.interval(wrong)
    with pytest.raises(InputError, match=r"shape \(2,\).*\(3,\)"):
        dist.cdf([1.0, 2.0])
    with pytest.raises(ParameterError, match="one number from 0 on for each part"):
        Blend([dist, dist], [1.0])


def test_a_blend_whose_weights_differ_by_row_is_one_blend_a_row() -> None:
    rng = np.random.default_rng(3)
    parts = [Normals(rng.normal(size=(4, 2)), rng.uniform(0.1, 2, size=(4, 2))) for _ in range(3)]
    weights = rng.uniform(size=(3, 4))
    together, y, levels = Blend(parts, weights), rng.normal(size=(4, 2)), [0.01, 0.5, 0.9]
    for row in range(4):
        alone = Blend([part.at(slice(row, row + 1)) for part in parts], weights[:, row])
        some = together.at(slice(row, row + 1))
        for one in (alone, some):
            assert_allclose(together.mean[row], one.mean[0], rtol=1e-12)
            assert_allclose(together.std[row], one.std[0], rtol=1e-12)
            assert_allclose(together.cdf(y)[row], one.cdf(y[[row]])[0], rtol=1e-12)
            assert_allclose(together.log_density(y)[row], one.log_density(y[[row]])[0], rtol=1e-12)
            assert_allclose(together.quantile(levels)[row], one.quantile(levels)[0], rtol=1e-10, atol=1e-12)
            assert_allclose(one.output(1).cdf(y[[row], 1]), one.cdf(y[[row]])[:, 1], rtol=1e-12)
    # 20,000 draws: a standard error of 0.0035
    drawn = together.sample(rng, 20_000)
    assert_allclose(np.mean(drawn <= y[..., None], axis=2), together.cdf(y), atol=0.02)


def test_quantiles_of_a_blend_of_gaussians_reach_their_levels() -> None:
    """Also where one part is a thousand times as wide as another, or nearly sure."""
    rng = np.random.default_rng(4)
    stds = np.array([1e-3, 1e-12, 1.0, 1e3])
    parts = [Normals(rng.normal(size=5), np.full(5, std)) for std in stds]
    blend, levels = Blend(parts, [1, 1, 2, 3]), np.array([1e-6, 0.025, 0.3, 0.6, 0.975])
    found = blend.quantile(levels)
    for k, level in enumerate(levels):
        above, below = (blend.cdf(found[:, k] + side * 1e-6 * (1 + np.abs(found[:, k]))) for side in (1, -1))
        assert np.all(below <= level + 1e-9)
        assert np.all(above >= level - 1e-9)
