"""Scores against their closed forms, and what a summary says about them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import beta, gammainc, ive
from sklearn.metrics import (
    brier_score_loss,
    log_loss,
    mean_absolute_error,
    r2_score,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.model_selection import cross_val_score

import gramian as gm
from gramian import likelihoods, scorers
from gramian.errors import InputError
from gramian.estimators.predictions import Latents, predictive
from gramian.predictive import Blend, Normals
from gramian.report.evaluation import calibration_of, of_classes, of_numbers
from gramian.report.quality import NEIGHBOURS, neighbours

Y = np.array([-1.3, 0.2, 0.9, 6.0])


def sure(likelihood, f, beside=()):
    """What a likelihood foretells where f is known."""
    n = len(Y)
    columns = np.tile(beside, (n, 1)).reshape(n, len(beside))
    return predictive([Latents(likelihood, np.full((n, 1), f), np.full((n, 1), 1e-14))], columns)


def test_crps_of_a_gaussian_is_its_integral():
    dist = Normals(np.full(4, 0.5), np.full(4, 2.0))
    assert_allclose(dist.crps(Y), super(Normals, dist).crps(Y), rtol=1e-4)
    for y, score in zip(Y, dist.crps(Y), strict=True):
        z = np.linspace(-30, 30, 200_001)
        assert_allclose(score, np.trapezoid((stats.norm(0.5, 2).cdf(z) - (z >= y)) ** 2, z), rtol=1e-3)


def test_crps_of_students_t():
    """Jordan, Krueger and Lerch 2019, appendix A: scale 1, df = 4."""
    df = 4.0
    z = Y - 0.3
    F, p = stats.t(df).cdf(z), stats.t(df).pdf(z)
    ratio = beta(0.5, df - 0.5) / beta(0.5, df / 2) ** 2
    exact = z * (2 * F - 1) + 2 * p * (df + z**2) / (df - 1) - 2 * np.sqrt(df) / (df - 1) * ratio
    # what lies beyond the quantiles of 1e-5 is left out
    assert_allclose(sure(gm.StudentT(1.0, df), 0.3).crps(Y), exact, rtol=2e-4)


def test_crps_of_the_gamma_distribution():
    """Moeller and Scheuerer 2015, equation in section 4.2: shape 2, mean exp(0.4)."""
    shape, scale, y = 2.0, np.exp(0.4) / 2, np.abs(Y)
    P, P1 = gammainc(shape, y / scale), gammainc(shape + 1, y / scale)
    exact = y * (2 * P - 1) - shape * scale * (2 * P1 - 1) - scale / beta(0.5, shape)
    assert_allclose(sure(likelihoods.Gamma(shape), 0.4).crps(y), exact, rtol=1e-3)


def test_crps_of_counts():
    """Wei and Held 2014: mean mu."""
    mu, y = 3.0, np.array([0.0, 2.0, 3.0, 9.0])
    P, p = stats.poisson(mu).cdf(y), stats.poisson(mu).pmf(np.floor(y))
    exact = (y - mu) * (2 * P - 1) + 2 * mu * p - mu * (ive(0, 2 * mu) + ive(1, 2 * mu))
    assert_allclose(sure(gm.Poisson(), np.log(mu), (1.0,)).crps(y), exact, rtol=1e-4)
    # of so many that they are integrated over instead of summed
    mu, y = 3000.0, np.array([2900.0, 2990.0, 3000.0, 3200.0])
    P, p = stats.poisson(mu).cdf(y), stats.poisson(mu).pmf(y)
    exact = (y - mu) * (2 * P - 1) + 2 * mu * p - mu * (ive(0, 2 * mu) + ive(1, 2 * mu))
    assert_allclose(sure(gm.Poisson(), np.log(mu), (1.0,)).crps(y), exact, rtol=0.02)


def test_crps_of_a_mixture_is_that_of_its_draws():
    """E |Y - y| - E |Y - Y'| / 2, of 100,000 draws: an error of about 1 %."""
    dist = Blend([Normals(np.zeros(4), np.ones(4)), Normals(np.full(4, 3.0), np.full(4, 0.2))], [0.3, 0.7])
    draws = dist.sample(np.random.default_rng(0), 100_000)
    other = dist.sample(np.random.default_rng(1), 100_000)
    exact = np.mean(np.abs(draws - Y[:, None]), axis=1) - 0.5 * np.mean(np.abs(draws - other), axis=1)
    assert_allclose(dist.crps(Y), exact, atol=0.02)


def test_scores_of_numbers_are_those_of_scikit_learn_and_scipy():
    rng = np.random.default_rng(0)
    mean, std = rng.standard_normal(500), rng.uniform(0.5, 2, 500)
    y = mean + std * rng.standard_normal(500)
    found = of_numbers(Normals(mean, std), y[:, None], (np.array([0.3]), np.array([4.0])))
    assert_allclose(found["rmse"], root_mean_squared_error(y, mean))
    assert_allclose(found["mae"], mean_absolute_error(y, mean))
    assert_allclose(found["r2"], r2_score(y, mean))
    densities = stats.norm(mean, std).logpdf(y)
    assert_allclose(found["nlpd"], -np.mean(densities))
    assert_allclose(found["msll"], np.mean(stats.norm(0.3, 2).logpdf(y) - densities))
    low, high = stats.norm(mean, std).interval(0.8)
    assert_allclose(found["coverage80"], np.mean((low <= y) & (y <= high)))
    assert_allclose(found["width80"], np.mean(high - low))
    assert_allclose(found.pit, stats.norm(mean, std).cdf(y))
    # predictions are right: four standard errors of 500 rows
    assert abs(found["coverage80"] - 0.8) < 4 * 0.4 / np.sqrt(500)
    assert found["calibration"] < 0.04
    assert of_numbers(Normals(mean + 2, std), y[:, None])["calibration"] > 0.2
    assert np.isnan(of_numbers(Normals(mean, std), y[:, None])["msll"])


def test_calibration_of_even_and_of_constant_values():
    assert calibration_of((np.arange(10) + 0.5) / 10) == pytest.approx(0)
    assert calibration_of(np.full(1000, 0.5)) == pytest.approx(0.25)


def test_scores_of_classes_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1.0, 2.0, 1.0], 200)
    codes = np.array([rng.choice(3, p=p) for p in P])
    found = of_classes(P, codes)
    assert_allclose(found["log_loss"], log_loss(codes, P))
    assert_allclose(found["accuracy"], np.mean(np.argmax(P, axis=1) == codes))
    assert_allclose(found["auc"], roc_auc_score(codes, P, multi_class="ovr", average="macro"))
    two = P[:, 1] / (P[:, 1] + P[:, 0])
    labels = (rng.random(200) < two).astype(int)
    pair = of_classes(np.column_stack([1 - two, two]), labels)
    assert_allclose(pair["brier"], 2 * brier_score_loss(labels, two))
    assert_allclose(pair["auc"], roc_auc_score(labels, two))
    assert np.isnan(of_classes(P[:3], np.zeros(3, dtype=int))["auc"])  # nobody else to tell from


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (80, 2))
    return X, np.sin(X[:, 0]) + 0.1 * X[:, 1] + 0.1 * rng.standard_normal(80)


@pytest.fixture(scope="module")
def gp(rows):
    return gm.GPRegressor(1.0 * gm.RBF([1.0, 3.0]), noise=0.01, optimize=False).fit(*rows)


def test_evaluate_a_regressor(gp, rows):
    X, y = rows
    found = gp.evaluate(X, y)
    assert_allclose(found["r2"], gp.score(X, y))
    assert_allclose(found["nlpd"], -np.mean(gp.log_density(X, y)))
    text = str(found)
    assert "at 80 rows" in text
    assert "95 % intervals hold" in text
    assert found.to_dict()["crps"] == found["crps"]
    assert "<table>" in found._repr_html_()
    with pytest.raises(KeyError, match="there are rmse"):
        found["error"]
    with pytest.raises(InputError, match="fitted to one number a row"):
        gp.evaluate(X, np.column_stack([y, y]))


def test_evaluate_several_outputs_with_gaps(rows):
    X, y = rows
    frame = pd.DataFrame({"a": y, "b": 100 * y})
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 3.0]), optimize=False).fit(X, frame)
    gaps = frame.copy()
    gaps.loc[:39, "b"] = np.nan
    found = gp.evaluate(X, gaps)
    assert found.outputs == ("a", "b")
    assert_allclose(found["rmse"][0], gp.evaluate(X, frame)["rmse"][0])
    half = gp.evaluate(X[40:], frame[40:])
    assert_allclose(found["crps"][1], half["crps"][1])
    assert np.sum(np.isnan(found.pit)) == 40
    assert set(found.to_dict()) == {"a", "b"}


def test_evaluate_counts_and_labels(rows):
    X, y = rows
    counts = np.random.default_rng(0).poisson(np.exp(y))
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), likelihood=gm.Poisson(), optimize=False).fit(X, counts)
    found = gp.evaluate(X, counts)
    assert np.isnan(found["msll"])  # a density beside a probability
    assert found["coverage95"] > 0.9
    assert_allclose(found["nlpd"], -np.mean(gp.log_density(X, counts)))
    labels = np.where(y > 0, "up", "down")
    classifier = gm.GPClassifier(4.0 * gm.RBF(1.0), optimize=False).fit(X, labels)
    scores = classifier.evaluate(X, labels)
    assert_allclose(scores["accuracy"], classifier.score(X, labels))
    assert_allclose(scores["log_loss"], -np.mean(classifier.log_density(X, labels)))


def test_scorers_are_taken_by_scikit_learn(gp, rows):
    X, y = rows
    found = gp.evaluate(X, y)
    assert_allclose(scorers.log_density(gp, X, y), -found["nlpd"])
    assert_allclose(scorers.neg_crps(gp, X, y), -found["crps"])
    assert_allclose(scorers.coverage95(gp, X, y), found["coverage95"])
    assert cross_val_score(gp, X, y, scoring=gm.scorers.neg_crps, cv=2).shape == (2,)


# What a summary says. ---------------------------------------------------------------------------------------


def test_a_summary_says_how_good_left_out_rows_are_foretold(gp, rows):
    _, y = rows
    loo = gp.loo()
    rmse = np.sqrt(np.mean((y - loo.mean) ** 2))
    inside = np.mean(np.abs(y - loo.mean) <= 1.959964 * loo.std)
    text = gp.summary()
    assert f"error of {rmse:.3g} (R2 {1 - rmse**2 / np.var(y):.2f})" in text
    assert "times better than 5 nearest neighbours" in text
    assert f"95 % intervals hold {100 * inside:.0f} %" in text
    assert f"NLPD {-np.mean(loo.log_density):.4g}" in text


def test_a_bad_model_is_told_to_be_worse_than_its_neighbours(rows):
    X, y = rows
    bad = gm.GPRegressor(1.0 * gm.RBF([0.01, 0.01]), noise=0.01, optimize=False).fit(X, y)
    assert "times worse than 5 nearest neighbours" in bad.summary()


def test_a_model_that_foretells_nothing_is_told_so(rows, gp):
    X, _ = rows
    noise = np.random.default_rng(3).normal(size=len(X))
    text = gm.GPRegressor(1.0 * gm.RBF([0.3, 0.3]), noise=0.01, optimize=False).fit(X, noise).summary()
    assert "(R2 -" in text
    assert "worse than the average of y for all rows" in text
    assert "average of y" not in gp.summary()


def test_a_summary_of_labels(rows):
    X, y = rows
    labels = np.where(y > 0, "up", "down")
    text = gm.GPClassifier(4.0 * gm.RBF(1.0), optimize=False).fit(X, labels).summary()
    assert "of left-out labels right (log loss" in text
    assert "5 nearest neighbours for" in text


def test_where_rows_cannot_be_left_out_a_summary_says_why(rows, tmp_path):
    X, y = rows
    cg = gm.GPRegressor(1.0 * gm.RBF(1.0), noise=0.1, method="cg", optimize=False).fit(X, y)
    assert "Not measured on left-out rows: leaving rows out would take a solve for each" in cg.summary()
    few = gm.GPRegressor(1.0 * gm.RBF(1.0), method="vfe", optimize=False).fit(X, y)
    few.save(tmp_path / "m.gm")
    assert "the file holds no training rows" in gm.load(tmp_path / "m.gm").summary()
    assert "left-out rows with an error" in few.summary()


@pytest.mark.parametrize(("n", "said"), [(70, True), (150, False)])
def test_few_rows_for_many_parameters_are_said_to_be_kind(n, said):
    """A Matern-5/2 of eight columns has eleven numbers with scale, mean and noise."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 8)), rng.standard_normal(n)
    searched = gm.GPRegressor("matern52", random_state=0).fit(X, y)
    kind = f"New rows may do worse: 11 parameters were searched on these {n} rows"
    assert (kind in searched.summary()) == said
    assert "New rows may do worse" not in gm.GPRegressor("matern52", optimize=False).fit(X, y).summary()
    assert "New rows may do worse" not in gm.GPRegressor("matern52", hyper="average").fit(X, y).summary()


def test_fit_does_not_pay_for_the_summary(gp, rows, monkeypatch):
    from gramian.estimators import fitted

    monkeypatch.setattr(fitted, "quality", None)
    gm.GPRegressor(1.0 * gm.RBF(1.0), optimize=False).fit(*rows)


@pytest.mark.parametrize("d", [2, 15])
def test_neighbours_are_the_nearest_others(d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, d)) * 10.0 ** np.arange(d)
    X[7] = X[3] = X[9]
    at = np.array([3, 20, 59])
    Z = X / X.std(axis=0)
    found = neighbours(X, gm.GPRegressor().fit(X, X[:, 0]).fitted_.columns, at)
    for row, near in zip(at, found, strict=True):
        apart = np.linalg.norm(Z - Z[row], axis=1)
        apart[row] = np.inf
        assert_allclose(np.sort(apart[near]), np.sort(apart)[:NEIGHBOURS])
        assert row not in near
