"""Unwarped targets: the map, its slopes and gradients, and what is foretold of y."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

import gramian as gm
from gramian.choose.words import as_method
from gramian.corrections import Calibration, Unwarped
from gramian.errors import ParameterError
from gramian.fitting import Objective
from gramian.inference import Data, Model
from gramian.inference.conjugate import closed
from gramian.likelihoods import Gaussian
from gramian.means import ConstantMean
from gramian.predictive import Normals


def bent(outputs=1):
    rng = np.random.default_rng(3)
    warp = gm.SinhArcsinh(skew=0.3, tail=0.7, shift=-0.2, width=0.6)
    units = rng.normal(size=outputs), rng.uniform(0.5, 3, outputs)
    return dataclasses.replace(warp, loc=tuple(units[0]), unit=tuple(units[1]))


def skewed(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.exp(X[:, 0] + 0.3 * X[:, 1] ** 2 + 0.2 * rng.normal(size=n))


def test_is_the_identity_before_it_is_fitted():
    Y = np.array([[-3.0, 40.0], [0.1, 2.0]])
    warp = gm.SinhArcsinh().adapted(10 * Y)
    assert_allclose(warp.forward(Y), Y, rtol=1e-14)
    assert_allclose(warp.log_slope(Y), 0.0, atol=1e-14)


def test_inverse_and_slope():
    Y, warp = np.random.default_rng(0).normal(0, 5, (200, 2)), bent(2)
    assert_allclose(warp.inverse(warp.forward(Y)), Y, rtol=1e-12)
    h = 1e-6  # a central difference of a smooth map: h^2 and eps / h
    numeric = (warp.forward(Y + h) - warp.forward(Y - h)) / (2 * h)
    assert_allclose(np.exp(warp.log_slope(Y)), numeric, rtol=1e-7)


@pytest.mark.parametrize("noise", [0.1, [0.1, 0.3]], ids=["one noise", "one an output"])
@pytest.mark.parametrize("method", ["exact", "vfe", "fitc", "nystrom"])
def test_gradient_of_the_evidence_of_y(method, noise):
    X, y = skewed(40)
    Y = np.column_stack([y, np.where(np.arange(40) % 7 == 0, np.nan, y[::-1] ** 2)])
    warp = bent().adapted(Y)
    model = Model(1.0 * gm.RBF([1.0, 1.0]), ConstantMean(np.array([1.0, 2.0])), Gaussian(noise), (), warp)
    data = Data(X, Y, np.nanstd(Y, axis=0))
    scheme = closed(as_method(method, None)).prepared(model, data, np.random.default_rng(0))
    objective = Objective(model, data, scheme)
    theta, h = objective.start, 1e-5
    steps = h * np.eye(len(theta))
    numeric = [
        (objective.evidence(theta + e)[0].value - objective.evidence(theta - e)[0].value) / (2 * h)
        for e in steps
    ]
    assert_allclose(objective.evidence(theta)[1], numeric, atol=2e-6 * np.abs(numeric).max())


def test_evidence_is_the_density_of_y():
    """log p(y) of three rows, by the change of variables written out."""
    X, y = skewed(3)
    warp = bent().adapted(y[:, None])
    model = Model(1.0 * gm.RBF(1.0), ConstantMean(1.0), Gaussian(0.1), (), warp)
    data, scheme = Data(X, y[:, None], np.ones(1)), closed(as_method("exact", None))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1)) + 0.1 * np.eye(3)
    t = warp.forward(y[:, None])[:, 0]
    expected = -0.5 * (t - 1) @ np.linalg.solve(K, t - 1) - 0.5 * np.linalg.slogdet(2 * np.pi * K)[1]
    expected += warp.log_slope(y[:, None]).sum()
    assert_allclose(scheme.infer(model, data).evidence.value, expected, rtol=1e-12)


def test_finds_a_logarithm():
    X, y = skewed(120, seed=1)
    plain = gm.GPRegressor(gm.Matern52([1.0, 1.0])).fit(X, y)
    gp = gm.GPRegressor(gm.Matern52([1.0, 1.0]), warp=gm.SinhArcsinh()).fit(X, y)
    assert gp.evidence_.value > plain.evidence_.value + 100
    at = np.quantile(y, [0.1, 0.5, 0.9])
    slopes = np.exp(gp.fitted_.model.warp.log_slope(at[:, None]))[:, 0]
    assert_allclose(slopes * at / (slopes[1] * at[1]), 1.0, rtol=0.3)  # w' = 1 / y, but for a factor


def test_does_not_depend_on_units():
    X, y = skewed()
    gp = gm.GPRegressor(gm.Matern52([1.0, 1.0]), warp=gm.SinhArcsinh(), n_restarts=0).fit(X, y)
    other = gm.GPRegressor(gm.Matern52([1.0, 1.0]), warp=gm.SinhArcsinh(), n_restarts=0).fit(X, 1e4 * y - 7)
    assert_allclose(gp.evidence_.value, other.evidence_.value, rtol=1e-7)
    assert_allclose(1e4 * gp.predict(X) - 7, other.predict(X), rtol=1e-5)


@pytest.fixture(scope="module")
def fitted():
    X, y = skewed(120, seed=1)
    return gm.GPRegressor(gm.Matern52([1.0, 1.0]), warp=gm.SinhArcsinh(), random_state=0).fit(X, y)


@pytest.mark.parametrize("target", ["y", "f"])
def test_moments_and_quantiles_are_those_of_draws(fitted, target):
    """To within 3 standard errors each, with a seed that is fixed."""
    X, count = skewed(6, seed=9)[0], 40_000
    draws = fitted.sample(X, count, target=target, random_state=1)
    mean, std = fitted.predict(X, return_std=True, target=target)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 3 * std / np.sqrt(count))
    fourth = np.mean((draws - mean[:, None]) ** 4, axis=1)
    error = np.sqrt((fourth - std**4) / count)  # of an empirical variance
    assert np.all(np.abs(draws.var(axis=1) - std**2) < 3 * error)
    _, cov = fitted.predict(X, return_cov=True, target=target)
    assert_allclose(np.diagonal(cov), std**2, rtol=1e-10)
    centred = draws - mean[:, None]
    products = centred[:, None] * centred[None]
    error = products.std(axis=2) / np.sqrt(count)
    assert np.all(np.abs(products.mean(axis=2) - cov) < 3 * error)
    table = fitted.predict_table(X, target=target)
    for name, level in (("lower95", 0.025), ("upper95", 0.975)):
        share = np.mean(draws < table[name][:, None], axis=1)
        assert np.all(np.abs(share - level) < 3 * np.sqrt(level * (1 - level) / count))


def test_the_gradient_is_that_of_the_predicted_mean(fitted):
    X, h = skewed(7, seed=9)[0], 1e-4
    mean, var = fitted.predict_gradient(X)
    for j, step in enumerate(h * np.eye(2)):
        ahead, behind = (fitted.predict(X + s * step, target="f") for s in (1, -1))
        assert_allclose(mean[:, j], (ahead - behind) / (2 * h), rtol=1e-5, atol=1e-5)
    # and its variance that of difference quotients of draws: 3 standard errors of a variance, of a kurtosis
    # that the draws have themselves
    count, row = 20_000, X[:1]
    for j, step in enumerate(1e-3 * np.eye(2)):
        pair = np.concatenate([row - step, row + step])
        draws = fitted.sample(pair, count, target="f", random_state=3)
        slopes = (draws[1] - draws[0]) / 2e-3
        error = np.sqrt((np.mean((slopes - slopes.mean()) ** 4) - slopes.var() ** 2) / count)
        assert abs(slopes.var() - var[0, j]) < 3 * error + 1e-3 * var[0, j]


def test_the_gradient_of_two_outputs_and_of_a_calibrated_model():
    X, y = skewed(120, seed=1)
    both = gm.GPRegressor(gm.Matern52([1.0, 1.0]), warp=gm.SinhArcsinh()).fit(X, np.column_stack([y, 3 - y]))
    auto = gm.GPRegressor(random_state=0).fit(X, y)
    assert auto.fitted_.model.warp is not None
    for gp in (both, auto):
        if not gp.kernel_.differentiable:
            continue
        mean, var = gp.predict_gradient(X[:5])
        assert np.all(var > 0)
        step = np.array([1e-4, 0.0])
        ahead, behind = (gp.predict(X[:5] + s * step, target="f") for s in (1, -1))
        assert_allclose(mean[:, 0], (ahead - behind) / 2e-4, rtol=1e-4, atol=1e-4)


def test_foretold_distribution_is_consistent():
    """P(Y <= q_p) = p, and the density is the slope of P, for two outputs."""
    rng, warp = np.random.default_rng(0), bent(2)
    seen = Unwarped(Normals(rng.normal(size=(5, 2)), rng.uniform(0.2, 1.0, (5, 2))), warp)
    levels = np.array([0.05, 0.5, 0.9])
    for k, level in enumerate(levels):
        assert_allclose(seen.cdf(seen.quantile(levels)[:, k]), level, rtol=1e-12)
    y, h = seen.quantile([0.4])[:, 0], 1e-6
    slopes = (seen.cdf(y + h) - seen.cdf(y - h)) / (2 * h)
    assert_allclose(seen.log_density(y), np.log(slopes).sum(axis=1), atol=1e-6)
    assert_allclose(seen.at(slice(1, 3)).mean, seen.mean[1:3], rtol=1e-14)


def test_far_ends_of_a_steep_warp_do_not_run_away_with_the_mean():
    """With a tail of 0.05 the inverse is a power of 20: at t = 3 it is beyond 1e13."""
    Y = np.random.default_rng(0).lognormal(size=(50, 1))
    warp = gm.SinhArcsinh(tail=0.05).adapted(Y)
    seen = Unwarped(Normals(np.full(1, Y.mean()), np.full(1, 3 * Y.std())), warp)
    low, high = warp.counted()
    assert warp.inverse(np.array([[Y.mean() + 3 * Y.std()]])) > 1e6 * high
    assert low[0] < seen.mean[0] < high[0]
    assert seen.std[0] < high[0] - low[0]


def test_leave_one_out_is_refitting_without_a_row(fitted):
    X, y = skewed(120, seed=1)
    left_out, model = fitted.loo(), fitted.fitted_.model
    for i in (0, 50):
        rest = np.arange(120) != i
        data = Data(X[rest], y[rest, None], fitted.fitted_.rows.scale)
        mean, var = closed(as_method("exact", None)).infer(model, data).posterior.moments(X[[i]])
        std = np.sqrt(var + model.gaussian.variances())
        t, slope = model.warp.forward(y[[i], None]), model.warp.log_slope(y[[i], None])
        assert_allclose(left_out.log_density[i], (norm.logpdf(t, mean, std) + slope)[0, 0], rtol=1e-6)
        assert_allclose(
            left_out.mean[i], Unwarped(Normals(mean[:, 0], std[:, 0]), model.warp).mean[0], rtol=1e-6
        )


def test_file_holds_the_warp(fitted, tmp_path):
    fitted.save(tmp_path / "warped.gm")
    again = gm.load(tmp_path / "warped.gm")
    X = skewed(5, seed=4)[0]
    assert_allclose(again.predict(X), fitted.predict(X), rtol=0)
    assert repr(again.fitted_.model.warp) == repr(fitted.fitted_.model.warp)


def test_pictures_and_certificates_of_warped_targets(fitted):
    fitted.plot()
    fitted.plot(target="f")
    sparse = gm.GPRegressor(gm.RBF([1.0, 1.0]), warp=gm.SinhArcsinh(), method="vfe").fit(*skewed())
    assert sparse.certificate() is not None


@pytest.mark.parametrize("settings", [{"likelihood": gm.StudentT()}, {"hyper": "mcmc"}, {"inference": "vi"}])
def test_is_refused_without_a_closed_form(settings):
    with pytest.raises(ParameterError, match="warp"):
        gm.GPRegressor(gm.RBF(1.0), warp=gm.SinhArcsinh(), **settings).fit(*skewed(10))


def test_other_refusals():
    with pytest.raises(ParameterError, match="SinhArcsinh"):
        gm.GPRegressor(gm.RBF(1.0), warp="log").fit(*skewed(10))
    with pytest.raises(ParameterError, match="noise_var"):
        gm.GPRegressor(gm.RBF(1.0), warp=gm.SinhArcsinh()).fit(*skewed(10), noise_var=np.ones(10))


def test_parameters_of_a_warp_can_be_fixed():
    X, y = skewed(30)
    warp = dataclasses.replace(gm.SinhArcsinh(), tail=gm.fixed(0.5), shift=gm.fixed(0.0))
    gp = gm.GPRegressor(gm.RBF(1.0), warp=warp).fit(X, y)
    values = gp.fitted_.model.warp.parameters()
    assert float(values["tail"].value) == 0.5
    assert float(values["skew"].value) != 0.0


@pytest.mark.parametrize("shares", [(), (0.004,), (0.05,), (0.3, 0.4, 0.02)])
def test_a_mean_lies_within_its_interval_whatever_the_warp(shares):
    """A mixture whose wide part is sent anywhere: 0.475 + 0.025 OUT < 1."""
    rng, calibration = (
        np.random.default_rng(0),
        Calibration(1.1, shares, (6.0, 20.0, 60.0)[: len(shares)]).at(np.zeros((1, 1)), np.zeros(1)),
    )
    for tail in (0.1, 0.3, 1.0, 2.0):
        warp = dataclasses.replace(gm.SinhArcsinh(skew=1.5, tail=tail, width=0.01), reach=(1e12,))
        part = Normals(rng.normal(size=50), rng.uniform(0.01, 1.0, 50))
        dist = calibration.observed(part).mapped(
            lambda p, w=warp, c=part: Unwarped(p, w, calibration.usual(c))
        )
        low, high = dist.interval(0.95)
        assert np.all((low < dist.mean) & (dist.mean < high))
        assert np.all(np.isfinite(dist.std))


def test_one_gross_mistake_in_y_leaves_means_where_their_intervals_are():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (301, 1))
    y = np.sin(2 * X[:, 0]) + 3 + 0.1 * rng.normal(size=301)
    new = np.linspace(0.2, 4.8, 40)[:, None]
    plain = gm.GPRegressor(random_state=0).fit(X, y).predict(new)
    y[150] *= 1e3
    mean, low, high = gm.GPRegressor(random_state=0).fit(X, y).predict(new, interval=0.95)
    assert np.all((low < mean) & (mean < high))
    assert np.median(np.abs(mean - plain)) < 0.2


def test_quantiles_of_a_warped_and_calibrated_model_are_those_of_its_draws():
    """100,000 draws of y at 3 rows: as many below as the level says, to within 4 standard errors (12
    comparisons: 1 in 1,300 by chance, and the seed is fixed)."""
    X, y = skewed(120)
    y[::17] *= 3
    gp = gm.GPRegressor(random_state=0).fit(X, y)
    assert gp.fitted_.model.warp is not None
    levels, count = np.array([0.05, 0.25, 0.5, 0.95]), 100_000
    draws = gp.sample(X[:3], count, target="y", random_state=1)
    below = np.mean(draws[:, None, :] <= gp.predict(X[:3], quantiles=levels)[:, :, None], axis=2)
    assert np.all(np.abs(below - levels) < 4 * np.sqrt(levels * (1 - levels) / count))


def test_a_logarithm_keeps_units_and_signs():
    Y = np.exp(np.random.default_rng(0).standard_normal((60, 1))) * 1e5
    warp = gm.Log().adapted(Y)
    T = warp.forward(Y)
    np.testing.assert_allclose([T.mean(), T.std()], [Y.mean(), Y.std()])
    np.testing.assert_allclose(warp.inverse(T), Y)
    h = 1e-6 * Y
    slope = (warp.forward(Y + h) - warp.forward(Y - h)) / (2 * h)
    np.testing.assert_allclose(warp.log_slope(Y), np.log(slope), rtol=1e-6)
    assert np.all(warp.inverse(T - 100 * T.std()) >= 0)
    assert np.isnan(warp.forward(np.array([[np.nan]])))
    assert warp.forward(np.array([[-1.0]])) == -np.inf
    with pytest.raises(gm.GramianError, match="above 0, but y has -1"):
        gm.Log().adapted(np.array([[1.0], [-1.0]]))


def test_a_logarithm_is_the_model_of_log_y():
    """Evidence with the Jacobian, and quantiles, of the same kernel fitted to log y by hand."""
    rng = np.random.default_rng(1)
    X = np.linspace(0, 3, 40)[:, None]
    y = np.exp(np.sin(X[:, 0]) + 0.1 * rng.standard_normal(40))
    kernel, settings = gm.RBF(gm.fixed(1.0)), {"optimize": True, "n_restarts": 0, "random_state": 0}
    warped = gm.GPRegressor(1.0 * kernel, warp=gm.Log(), **settings).fit(X, y)
    by_hand = gm.GPRegressor(1.0 * kernel, warp=None, **settings).fit(X, np.log(y))
    ours, theirs = warped.fitted_.evidence_of_y()[0], by_hand.fitted_.evidence_of_y()[0]
    np.testing.assert_allclose(ours, theirs - np.sum(np.log(y)), rtol=1e-5)
    levels = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(
        warped.predict_quantiles(X, levels), np.exp(by_hand.predict_quantiles(X, levels)), rtol=1e-3
    )
    foretold = warped.predict_dist(X[:2])
    np.testing.assert_allclose(foretold.cdf(np.array([-1.0, 0.0])), 0.0)
