"""What people ask of a fitted model: intervals, quantiles, distributions, and what tools made for
scikit-learn's GaussianProcessRegressor ask for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor

import gramian as gm
from gramian.errors import ParameterError

KERNEL = 1.0 * gm.RBF(1.0)
# whatever it draws, answers are of its draws: by slices, for which little is compiled
CHAIN = gm.MCMC(draws=40, warmup=40, chains=1, sampler="slices")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (40, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40)


@pytest.fixture(scope="module")
def gp(rows):
    return gm.GPRegressor(KERNEL, noise=0.01, optimize=False).fit(*rows)


@pytest.mark.parametrize("target", ["y", "f"])
@pytest.mark.parametrize("fitted", [True, False])
def test_intervals_and_quantiles_of_gaussians(gp, rows, target, fitted):
    X, _ = rows
    model = gp if fitted else gm.GPRegressor(KERNEL, noise=0.01)
    mean, std = model.predict(X, return_std=True, target=target)
    middle, lower, upper = model.predict(X, interval=0.9, target=target)
    exact = norm(mean, std)
    assert_allclose(middle, mean, rtol=1e-12)
    assert_allclose((lower, upper), exact.interval(0.9), rtol=1e-9)
    q = model.predict(X, quantiles=[0.1, 0.5], target=target)
    assert_allclose(q, np.stack([exact.ppf(0.1), exact.ppf(0.5)], axis=1), rtol=1e-9)
    frozen = model.predict_dist(X, target).scipy()
    assert_allclose(frozen.ppf(0.3), exact.ppf(0.3), rtol=1e-9)


def test_several_outputs(rows):
    X, y = rows
    for Y in (np.column_stack([y, 3 - y**2]), y[:, None]):
        gp = gm.GPRegressor(KERNEL, noise=0.01, optimize=False).fit(X, Y)
        mean, std = gp.predict(X[:5], return_std=True)
        found = gp.predict(X[:5], interval=0.8)
        assert all(part.shape == Y[:5].shape for part in found)
        assert_allclose(found[1:], norm(mean, std).interval(0.8), rtol=1e-9)
        assert gp.predict(X[:5], quantiles=[0.2, 0.3, 0.4]).shape == (5, 3, Y.shape[1])
        table = gp.predict_table(X[:5], level=0.8, quantiles=[0.25])
        names = [
            f"{name}_{k}"
            for k in range(Y.shape[1])
            for name in ("mean", "std", "lower80", "upper80", "q0.25")
        ]
        assert list(table) == names


def test_counts_are_whole_and_covered():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (300, 1))
    y = rng.poisson(np.exp(1 + np.sin(2 * X[:, 0])))
    gp = gm.GPRegressor(likelihood=gm.Poisson(), n_restarts=0).fit(X, y)
    mean, lower, upper = gp.predict(X, interval=0.8)
    assert_array_equal(lower, np.round(lower))
    # whole numbers hold more than the level; three standard errors of 300 rows are 0.07
    assert 0.73 < np.mean((lower <= y) & (y <= upper)) < 0.97
    assert np.all((lower <= mean) & (mean <= upper))
    _, low, high = gp.predict(X, interval=0.8, exposure=2.0)
    assert np.sum(high - low) > np.sum(upper - lower)
    dist = gp.predict_dist(X[:3])
    assert_allclose(dist.log_density(y[:3]), gp.log_density(X[:3], y[:3]))
    with pytest.raises(ParameterError, match="SciPy has no distribution"):
        dist.scipy()


def test_sampled_parameters_give_quantiles_of_the_mixture(rows):
    X, y = rows
    gp = gm.GPRegressor(KERNEL, hyper="mcmc", inference=CHAIN, random_state=0).fit(X, y)
    dist = gp.predict_dist(X[:4])
    q = gp.predict(X[:4], quantiles=[0.05, 0.95])
    assert_allclose(dist.cdf(q[:, 0]), 0.05, atol=1e-9)
    mean, std = gp.predict(X[:4], return_std=True)
    assert_allclose(dist.mean, mean, rtol=1e-6)
    assert_allclose(dist.std, std, rtol=1e-3)


def test_draws_of_sampled_parameters_have_the_noise_of_each(rows):
    """Noise that is far from known: draws with its average would have other ends than the quantiles."""
    X, y = rows[0][:8], rows[1][:8]
    gp = gm.GPRegressor(KERNEL, hyper="mcmc", inference=CHAIN, random_state=0).fit(X, y)
    at, n = np.array([[0.5]]), 100_000
    draws = gp.sample_y(at, n)
    for level in (0.01, 0.5, 0.99):
        below = np.mean(draws <= gp.predict(at, quantiles=[level])[0, 0])
        assert abs(below - level) < 4.5 * np.sqrt(level * (1 - level) / n)  # by chance once in 100,000 times


def test_one_question_at_a_time(gp, rows):
    for both in ({"return_std": True}, {"return_cov": True}, {"quantiles": [0.5]}):
        with pytest.raises(ParameterError, match="Ask for one of"):
            gp.predict(rows[0], interval=0.9, **both)
    with pytest.raises(ParameterError, match="between 0 and 1"):
        gp.predict(rows[0], interval=95)


def test_what_tools_for_scikit_learn_ask_for(gp, rows):
    X, y = rows
    other = GaussianProcessRegressor(optimizer=None, alpha=0.01).fit(X, y)
    assert_array_equal(gp.X_train_, other.X_train_)
    assert_array_equal(gp.y_train_, other.y_train_)
    assert gp.sample_y(X[:4], 3).shape == other.sample_y(X[:4], 3).shape == (4, 3)
    assert_array_equal(gp.sample_y(X[:4], 3), gp.sample_y(X[:4], 3, random_state=0))
    assert gp.log_marginal_likelihood_value_ == gp.evidence_.value
    value, slope = gp.log_marginal_likelihood(gp.theta_, eval_gradient=True)
    assert_allclose(value, gp.log_marginal_likelihood_value_, rtol=1e-9)
    assert slope.shape == gp.theta_.shape
    assert not hasattr(gm.GPRegressor(), "X_train_")


def test_heavy_tails_have_a_prior_and_finite_quantiles():
    """Noise of a Cauchy distribution, df = 1: without a prior the degrees of freedom follow it."""
    rng = np.random.default_rng(5)
    X = rng.uniform(-3, 3, (60, 1))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_cauchy(60)
    model = gm.GPRegressor(KERNEL, likelihood=gm.StudentT(), n_restarts=0)
    found = {hyper: clone(model).set_params(hyper=hyper).fit(X, y) for hyper in ("map", "ml")}
    df = {hyper: float(gp.likelihood_.df) for hyper, gp in found.items()}
    assert df["ml"] < df["map"]
    assert found["map"].likelihood_.df.prior == gm.Gamma(2.0, 0.1)
    assert found["ml"].likelihood_.df.prior is None
    own = gm.GPRegressor(likelihood=gm.StudentT(df=gm.fixed(1.0)), optimize=False, kernel=KERNEL).fit(X, y)
    assert own.likelihood_.df.prior is None
    assert np.all(np.isinf(own.predict(X, return_std=True)[1]))
    table = own.predict_table(X, quantiles=[0.001, 0.999])
    assert all(np.all(np.isfinite(table[name])) for name in ("lower95", "upper95", "q0.001", "q0.999"))
    assert any("y has no variance" in note for note in own.outcome_.notes)


def test_outputs_have_their_names(rows, tmp_path):
    X, y = rows
    frame = pd.DataFrame({"height": y, "weight": -2 * y})
    gp = gm.GPRegressor(KERNEL, noise=0.01, optimize=False).fit(X, frame)
    assert list(gp.predict_table(X)) == [
        f"{name}_{own}" for own in frame for name in ("mean", "std", "lower95", "upper95")
    ]
    gp.save(tmp_path / "m.gm")
    assert list(gm.load(tmp_path / "m.gm").predict_table(X)) == list(gp.predict_table(X))
    assert gm.GPRegressor(KERNEL, optimize=False).fit(X, frame["height"]).fitted_.columns.targets == (
        "height",
    )
    assert "mean" in gm.GPRegressor(KERNEL, optimize=False).fit(X, y).predict_table(X)


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_intervals_of_probabilities(rows, link):
    """The share of draws of f whose probability lies between the ends is the level: within four standard
    errors of 20,000 draws, 0.009."""
    X, y = rows
    labels = np.where(y > 0, "up", "down")
    gp = gm.GPClassifier(4.0 * gm.RBF(1.0), link=link, optimize=False).fit(X, labels)
    P, lower, upper = gp.predict_proba(X[:5], interval=0.9)
    np.testing.assert_array_equal(P, gp.predict_proba(X[:5]))
    draws = gp.sample(X[:5], 20_000, random_state=0)
    p = norm.cdf(draws) if link == "probit" else 1 / (1 + np.exp(-draws))
    for k, own in ((1, p), (0, 1 - p)):
        inside = (lower[:, [k]] <= own) & (own <= upper[:, [k]])
        assert_allclose(np.mean(inside, axis=1), 0.9, atol=0.009)
    three = np.where(y > 0.5, "c", labels)
    for multiclass in ("softmax", "ovr"):
        several = gm.GPClassifier(4.0 * gm.RBF(1.0), multiclass=multiclass, optimize=False).fit(X, three)
        with pytest.raises(ParameterError, match="which two classes have"):
            several.predict_proba(X[:2], interval=0.9)
