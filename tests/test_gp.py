"""gm.GP: prior, data, posterior and evidence, against the formulas and against the estimators."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm

import gramian as gm
from gramian.errors import InputError, ParameterError
from gramian.testing import check_posterior

KERNEL = 1.4 * gm.Matern52([0.7, 1.1])


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(11)
    X = rng.uniform(-2, 2, (25, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(25), rng.uniform(-2, 2, (6, 2))


def formula(X, y, Z, noise, mean=0.0, kernel=KERNEL):
    """Mean and covariance of f at Z by the conditional Gaussian."""
    A, C = kernel(X) + np.diag(np.broadcast_to(noise, len(X))), kernel(Z, X)
    return mean + C @ np.linalg.solve(A, y - mean), kernel(Z) - C @ np.linalg.solve(A, C.T)


def test_posterior_and_evidence_are_the_formulas(data):
    X, y, Z = data
    post = gm.GP(KERNEL, mean=0.5, noise=0.1).condition(X, y)
    mean, cov = formula(X, y, Z, 0.1, 0.5)
    # cond(K + noise) is about 1e3, and so these agree to 1e-12
    assert_allclose(post.mean(Z), mean, rtol=1e-10)
    assert_allclose(post.cov(Z), cov, rtol=1e-9, atol=1e-12)
    assert_allclose(post.moments(Z)[1], np.diag(cov), rtol=1e-9)
    assert_allclose(post.var(Z), np.diag(cov), rtol=1e-9)
    assert_allclose(post.predict(Z)[1], np.diag(cov) + 0.1, rtol=1e-9)
    log_p = multivariate_normal(np.full(25, 0.5), KERNEL(X) + 0.1 * np.eye(25)).logpdf(y)
    assert post.evidence.kind == "exact"
    assert_allclose(float(post.evidence), log_p, rtol=1e-10)
    assert post.log_evidence() == float(post.evidence)
    check_posterior(post.process, Z)


def test_prior(data):
    _, _, Z = data
    prior = gm.GP(KERNEL, mean=0.5, noise=0.1)
    assert_allclose(prior.mean(Z), 0.5)
    assert_allclose(prior.cov(Z), KERNEL(Z), rtol=1e-12)
    assert_allclose(prior.gradient(Z)[0], 0.0)
    draws = prior.sample(Z, 4000)
    assert draws.shape == (6, 4000)
    assert np.array_equal(draws, prior.sample(Z, 4000))
    assert not np.array_equal(draws, prior.sample(Z, 4000, seed=1))
    # 7 standard errors of a covariance of 4,000 draws: sqrt(2 / 4000) 1.4
    assert_allclose(np.cov(draws), KERNEL(Z), atol=7 * 1.4 * np.sqrt(2 / 4000))
    noisy = prior.simulate(Z, 4000)
    assert_allclose(np.var(noisy, axis=1), 1.5, atol=7 * 1.5 * np.sqrt(2 / 4000))


def test_without_noise_f_itself_is_observed(data):
    X, y, _ = data
    prior = gm.GP(KERNEL)
    post = prior.condition(X, y)
    assert_allclose(post.mean(X), y, rtol=1e-9)
    assert np.max(post.var(X)) < 1e-9
    assert prior.fit(X, y).parameters["noise"] == 0.0


def test_gradient_of_the_evidence(data):
    X, y, _ = data
    post = gm.GP(KERNEL, mean=0.5, noise=0.1).condition(X, y)
    gradient = post.evidence_gradient()
    assert set(gradient) == set(post.prior.parameters)
    for path, value in post.prior.parameters.items():
        for index in np.ndindex(value.shape):
            up, down = (value.copy() for _ in range(2))
            up[index] += 1e-5
            down[index] -= 1e-5
            slope = (post.log_evidence({path: up}) - post.log_evidence({path: down})) / 2e-5
            # h^2 of a third derivative, and rounding of 1e-14 |log p| / h
            assert_allclose(gradient[path][index], slope, rtol=1e-6, atol=1e-6)
    moved = post.evidence_gradient({"noise": 0.3})["noise"]
    assert_allclose(moved, gm.GP(KERNEL, 0.5, 0.3).condition(X, y).evidence_gradient()["noise"], rtol=1e-10)


@pytest.mark.parametrize(
    "method", ["exact", gm.Nystrom(9), gm.Sparse(9), gm.Sparse(9, "fitc"), gm.Fourier(40)]
)
def test_methods_agree_with_the_estimator(data, method):
    X, y, Z = data
    post = gm.GP(KERNEL, noise=0.1).condition(X, y, method, seed=0)
    gp = gm.GPRegressor(
        KERNEL, noise=0.1, mean="zero", normalize_y=False, optimize=False, method=method, random_state=0
    ).fit(X, y)
    if method == "exact":
        mean, std = gp.predict(Z, return_std=True)
        assert_allclose(post.mean(Z), mean, rtol=1e-10)
        assert_allclose(post.predict(Z)[1], std**2, rtol=1e-8)
        assert_allclose(float(post.evidence), float(gp.evidence_), rtol=1e-10)
    else:  # landmarks and frequencies of their own
        assert post.evidence.kind == ("lower bound" if post.scheme.name == "vfe" else "approximation")
        check_posterior(post.process, Z)


def test_fit_finds_what_the_estimator_finds(data):
    X, y, _ = data
    fitted = gm.GP(KERNEL, noise=0.1).fit(X, y)
    gp = gm.GPRegressor(KERNEL, noise=0.1, mean="zero", normalize_y=False, n_restarts=0).fit(X, y)
    assert fitted.search.stopped == "converged"
    evidence = float(fitted.condition(X, y).evidence)
    # two searches from one start end where the gradient is 1e-5: 1e-7 of the evidence
    assert_allclose(evidence, float(gp.evidence_), atol=1e-5)
    assert evidence > float(gm.GP(KERNEL, noise=0.1).condition(X, y).evidence)
    still = gm.GP(KERNEL, noise=gm.fixed(0.1)).fit(X, y)
    assert still.parameters["noise"] == 0.1


def test_what_was_not_observed(data):
    X, y, Z = data
    gone = y.copy()
    gone[::4] = np.nan
    seen = ~np.isnan(gone)
    prior = gm.GP(KERNEL, noise=0.1)
    one, other = prior.condition(X, gone), prior.condition(X[seen], y[seen])
    assert_allclose(one.mean(Z), other.mean(Z), rtol=1e-10)
    assert_allclose(float(one.evidence), float(other.evidence), rtol=1e-10)
    left = one.loo()
    assert np.array_equal(np.isnan(left.mean), ~seen)
    assert_allclose(left.mean[seen], other.loo().mean, rtol=1e-8)
    counts = np.where(seen, np.floor(np.abs(3 * y)), np.nan)
    poisson = gm.GP(KERNEL, likelihood=gm.Poisson())
    assert_allclose(
        poisson.condition(X, counts).mean(Z), poisson.condition(X[seen], counts[seen]).mean(Z), rtol=1e-8
    )


def test_several_outputs_are_each_alone(data):
    X, y, Z = data
    Y = np.column_stack([y, 10 * y**2])
    prior = gm.GP(KERNEL, noise=0.1)
    both = prior.condition(X, Y, noise_var=np.linspace(0, 0.2, 25))
    assert both.mean(Z).shape == (6, 2)
    assert both.cov(Z).shape == (6, 6, 2)
    assert both.sample(Z, 3).shape == (6, 2, 3)
    assert both.loo().log_density.shape == (25, 2)
    total = 0.0
    for k in range(2):
        mean, cov = formula(X, Y[:, k], Z, 0.1 + np.linspace(0, 0.2, 25))
        assert_allclose(both.mean(Z)[:, k], mean, rtol=1e-9)
        assert_allclose(both.var(Z)[:, k], np.diag(cov), rtol=1e-8)
        total += float(prior.condition(X, Y[:, k], noise_var=np.linspace(0, 0.2, 25)).evidence)
    assert_allclose(float(both.evidence), total, rtol=1e-10)


def test_leave_one_out_is_what_it_says(data):
    X, y, _ = data
    prior = gm.GP(KERNEL, noise=0.1)
    left = prior.condition(X, y).loo()
    for i in (0, 7, 24):
        others = np.arange(25) != i
        mean, var = prior.condition(X[others], y[others]).predict(X[[i]])
        assert_allclose([left.mean[i], left.var[i]], [mean[0], var[0]], rtol=1e-8)
        assert_allclose(left.log_density[i], norm(mean[0], np.sqrt(var[0])).logpdf(y[i]), rtol=1e-8)


@pytest.mark.parametrize("inference", [None, "laplace", "ep", "vi", gm.EP(power=0.5)], ids=str)
def test_counts(data, inference):
    X, y, Z = data
    counts = np.random.default_rng(2).poisson(np.exp(y)).astype(float)
    prior = gm.GP(KERNEL, mean=0.2, likelihood=gm.Poisson())
    post = prior.condition(X, counts, inference=inference)
    check_posterior(post.process, Z)
    mean, var = post.predict(Z)
    assert np.all(var > mean)  # a Poisson variable whose rate is not known
    assert np.all(np.isfinite(post.loo().log_density))
    gradient = post.evidence_gradient()["mean.value"]
    slope = (post.log_evidence({"mean.value": 0.21}) - post.log_evidence({"mean.value": 0.19})) / 0.02
    assert_allclose(gradient, slope, rtol=1e-3)  # h^2 of a third derivative


def test_every_rule_is_exact_under_gaussian_noise(data):
    X, y, Z = data
    prior = gm.GP(KERNEL, noise=0.1)
    exact = prior.condition(X, y)
    for rule in ("laplace", "ep", "vi"):
        post = prior.condition(X, y, inference=rule)
        assert_allclose(post.mean(Z), exact.mean(Z), rtol=1e-6)
        assert_allclose(float(post.evidence), float(exact.evidence), rtol=1e-6)


def test_several_functions(data):
    X, y, Z = data
    prior = gm.GP([gm.RBF(0.8), gm.RBF(2.0)], likelihood=gm.Heteroscedastic())
    assert prior.mean(Z).shape == (6, 2)
    assert_allclose(prior.cov(Z)[:, :, 1], gm.RBF(2.0)(Z), rtol=1e-12)
    assert prior.simulate(Z, 5).shape == (6, 5)
    post = prior.condition(X, y)
    assert post.mean(Z).shape == (6, 2)
    assert post.predict(Z)[0].shape == (6,)
    classes = gm.GP(KERNEL, likelihood=gm.Softmax(3)).condition(X, np.arange(25) % 3, inference="laplace")
    assert classes.mean(Z).shape == (6, 3)


def test_columns_by_name(data):
    X, y, Z = data
    frame = pd.DataFrame(X, columns=["a", "b"])
    post = gm.GP(gm.RBF(0.7).on("b"), noise=0.1).condition(frame, y)
    index = gm.GP(gm.RBF(0.7).on(1), noise=0.1).condition(X, y)
    assert_allclose(post.mean(pd.DataFrame(Z, columns=["a", "b"])), index.mean(Z), rtol=1e-12)


def test_nothing_that_was_given_changes(data):
    X, y, Z = data
    before = X.copy(), y.copy()
    prior = gm.GP(KERNEL, noise=0.1)
    mine = X.copy()
    post = prior.condition(mine, y)
    mean = post.mean(Z)
    mine[:] = 0
    assert np.array_equal(post.mean(Z), mean)
    prior.fit(X, y)
    assert np.array_equal(before[0], X)
    assert np.array_equal(before[1], y)
    assert prior.with_values({"noise": 0.3}).parameters["noise"] == 0.3
    assert prior.parameters["noise"] == 0.1
    with pytest.raises(AttributeError):
        prior.model = None


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda X, y: gm.GP("rbf"), ParameterError, "is no gramian kernel"),
        (lambda X, y: gm.GP([gm.RBF(1.0)] * 2), ParameterError, "one for all, or one each"),
        (lambda X, y: gm.GP(KERNEL, noise=0.1, likelihood=gm.Poisson()), ParameterError, "Give one of them"),
        (lambda X, y: gm.GP(KERNEL, likelihood="poisson"), ParameterError, r"such as gm.Poisson\(\)"),
        (lambda X, y: gm.GP(KERNEL, mean="cubic"), ParameterError, "Use a number"),
        (lambda X, y: gm.GP(KERNEL).condition(X, y, "svgp"), ParameterError, "in one search"),
        (lambda X, y: gm.GP(KERNEL).condition(X, y, "lu"), ParameterError, "not known"),
        (lambda X, y: gm.GP(KERNEL).condition(X, y, inference="mcmc"), ParameterError, "not known"),
        (lambda X, y: gm.GP(KERNEL).condition(X[:, 0], y), InputError, r"X\[:, None\]"),
        (lambda X, y: gm.GP(KERNEL).condition(X, y[:-1]), InputError, "one value a row"),
        (lambda X, y: gm.GP(KERNEL).condition(X, np.nan * y), InputError, "without a single observed value"),
        (lambda X, y: gm.GP(KERNEL).condition(X, np.inf * y), InputError, "infinite"),
        (lambda X, y: gm.GP(KERNEL).condition(np.nan * X, y), InputError, "not finite"),
        (lambda X, y: gm.GP(KERNEL).condition(X, y, noise_var=-np.ones(25)), InputError, "from 0 on"),
        (lambda X, y: gm.GP(KERNEL).condition(X, y).mean(X[:, :1]), InputError, "1 columns"),
        (lambda X, y: gm.GP(KERNEL).condition(X, y).log_evidence({"nois": 1}), ParameterError, "There are"),
        (lambda X, y: gm.GP(KERNEL).sample(X, 0), ParameterError, "from 1 on"),
        (lambda X, y: gm.GP(KERNEL, likelihood=gm.Poisson()).condition(X, y), InputError, "y"),
        (
            lambda X, y: gm.GP(KERNEL, likelihood=gm.Poisson()).condition(X, y[:, None]),
            InputError,
            "the columns y, exposure",
        ),
    ],
)
def test_errors_teach(data, make, error, message):
    with pytest.raises(error, match=message):
        make(*data[:2])


def test_sites_that_curve_the_wrong_way_are_left_out_with_a_word(data):
    # Student's t with an outlier: CG has no answer for lam < 0, and says what was done instead
    X, y, _ = data
    far = y.copy()
    far[3] += 8.0
    prior = gm.GP(KERNEL, likelihood=gm.StudentT(0.2, 3.0))
    exact = prior.condition(X, far, inference="laplace")
    by_products = prior.condition(X, far, method="cg", inference="laplace")
    assert exact.outcome.note == ""
    assert "curves the wrong way" in by_products.outcome.note
    assert_allclose(by_products.mean(X), exact.mean(X), atol=1e-3)  # the mode is the same
