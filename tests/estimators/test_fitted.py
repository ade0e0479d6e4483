"""A fit leaves one frozen value: the public attributes are read from it, and it answers what pictures, files
and comparisons ask."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from scipy.stats import norm, poisson
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import gramian as gm
from gramian.errors import InputError, ParameterError
from gramian.estimators.fitted import Fitted
from gramian.estimators.learned import Learned
from gramian.estimators.multiclass import BinaryModels

RNG = np.random.default_rng(5)
X = RNG.uniform(0, 3, (18, 2))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.standard_normal(18)
THREE = np.array(["a", "b", "c"])[np.arange(18) % 3]
K = 1.0 * gm.RBF(1.0)


def regressor(**settings) -> gm.GPRegressor:
    return gm.GPRegressor(K, **{"noise": 0.1, **settings}, optimize=False).fit(X, Y)


def pairs(scheme: str = "ovo", **settings) -> gm.GPClassifier:
    return gm.GPClassifier(K, multiclass=scheme, optimize=False, **settings).fit(X, THREE)


def test_attributes_are_those_of_the_value():
    gp = regressor()
    fitted = gp.fitted_
    assert isinstance(fitted, Fitted)
    assert gp.posterior_ is fitted.process
    assert gp.kernel_ is fitted.kernel
    assert gp.evidence_ is fitted.evidence
    assert gp.outcome_ is fitted.outcome
    assert gp.theta_ is fitted.theta
    assert gp.noise_ == fitted.noise == 0.1
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.evidence = None
    with pytest.raises(AttributeError):
        gp.evidence_ = None
    gp.fitted_ = dataclasses.replace(fitted, evidence=gm.GPRegressor(K).fit(X, Y).evidence_)
    assert gp.evidence_ is not fitted.evidence


def test_a_refit_leaves_nothing_of_the_fit_before():
    gp = gm.GPClassifier(K, multiclass="ovr", optimize=False)
    assert len(gp.fit(X, THREE).estimators_) == 3
    assert not hasattr(gp, "posterior_")
    gp.fit(X, Y > 0)
    assert hasattr(gp, "posterior_")
    assert not hasattr(gp, "estimators_")
    counts = regressor()
    counts.set_params(noise=None, likelihood=gm.Poisson()).fit(X, np.arange(18))
    assert not hasattr(counts, "noise_")


def test_before_a_fit_there_is_none():
    gp = gm.GPRegressor(K)
    assert not hasattr(gp, "fitted_")
    assert not hasattr(gp, "kernel_")
    for ask in (gp.loo, gp.summary, lambda: gp.parameters_, lambda: gp.log_density(X, Y), lambda: gp.read(X)):
        with pytest.raises(NotFittedError):
            ask()
    assert not hasattr(clone(regressor()), "fitted_")


def test_the_value_survives_a_pickle():
    for gp in (regressor(), pairs("ovr")):
        again = pickle.loads(pickle.dumps(gp))
        np.testing.assert_array_equal(again.predict(X), gp.predict(X))
        assert again.fitted_.columns == gp.fitted_.columns


def test_showing_an_estimator_computes_no_certificate(monkeypatch):
    gp, calls = regressor(method="vfe"), []
    made = Fitted.certified
    monkeypatch.setattr(Fitted, "certified", lambda *a: calls.append(a) or made(*a))
    assert "theta_" in gp._repr_html_()
    assert "certificate_" not in dir(gp)
    assert not hasattr(gp, "certificate_")
    assert repr(gp)
    assert not calls
    with pytest.raises(AttributeError, match=r"certificate\(\) computes it"):
        _ = gp.certificate_
    assert gp.certificate() is gp.certificate() is gp.certificate_
    assert len(calls) == 1
    assert "certificate_" in dir(gp)
    counts = gm.GPRegressor(K, likelihood=gm.Poisson(), optimize=False).fit(X, np.arange(18))
    assert "likelihood_" in counts._repr_html_()  # which has no certificate


def test_completion_has_public_names_that_have_a_value():
    gp, unfitted = regressor(), gm.GPRegressor()
    names = dir(gp)
    assert {"fit", "predict", "kernel", "kernel_", "noise_", "X_train_"} <= set(names)
    assert not [name for name in names if name.startswith("_") and not name.startswith("__")]
    assert "kernel_" not in dir(unfitted)
    counts = gm.GPRegressor(K, likelihood=gm.Poisson(), optimize=False).fit(X, np.arange(18))
    assert "noise_" not in dir(counts)


def test_binary_models_answer_what_one_model_answers():
    questions = {name for name in vars(Learned) if not name.startswith("_")}
    one, several = gm.GPClassifier(K, optimize=False).fit(X, THREE).fitted_, pairs().fitted_
    assert isinstance(several, BinaryModels)
    assert questions <= set(dir(one)) & set(dir(several))
    assert (several.n_rows, several.n_parameters) == (12, 9 - 3)  # scale and lengthscale of each pair
    assert pairs(shared=True).fitted_.n_parameters == 2
    assert several.pairwise
    assert not pairs("ovr").fitted_.pairwise
    for fitted in (one, several, pairs("ovr").fitted_):
        rows = fitted.labelled_rows()
        order = np.lexsort(rows.X.T)
        np.testing.assert_array_equal(rows.X[order], X[np.lexsort(X.T)])
        np.testing.assert_array_equal(fitted.classes[rows.codes[order]], THREE[np.lexsort(X.T)])
        P = fitted.probabilities(X)
        np.testing.assert_allclose(P.sum(axis=1), 1.0)
        assert fitted.latents(X)[0].shape == (18, 3)


def test_read_gives_the_table_of_the_model():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "site": np.where(X[:, 1] > 1, "north", "south")})
    gp = gm.GPRegressor(optimize=False).fit(frame, Y)
    np.testing.assert_array_equal(gp.read(frame), np.column_stack([X[:, 0], np.where(X[:, 1] > 1, 0, 1)]))
    mean, _ = gp.fitted_.latents(gp.read(frame))
    # a mean alone is summed in another order than one beside its variance
    np.testing.assert_array_equal(mean[:, 0], gp.predict(frame, return_std=True)[0])


def test_log_density_is_that_of_the_prediction():
    gp = regressor()
    mean, std = gp.predict(X[:5] + 0.1, return_std=True)
    np.testing.assert_allclose(gp.log_density(X[:5] + 0.1, Y[:5]), norm.logpdf(Y[:5], mean, std), rtol=1e-12)
    labels = pairs()
    P = labels.predict_proba(X)
    expected = np.log(P[np.arange(18), np.arange(18) % 3])
    np.testing.assert_allclose(labels.log_density(X, THREE), expected)
    with pytest.raises(InputError, match="'d' has rows to test on"):
        labels.log_density(X, np.full(18, "d"))
    with pytest.raises(ParameterError, match="labels have none"):
        labels.log_density(X, THREE, exposure=np.ones(18))


def test_quantiles_are_those_of_an_observation():
    gp = regressor()
    mean, std = gp.predict(X, return_std=True)
    found = gp.predict_quantiles(X, (0.1, 0.5, 0.9))
    np.testing.assert_allclose(found, mean[:, None] + std[:, None] * norm.ppf([0.1, 0.5, 0.9]), rtol=1e-12)
    table = gp.predict_table(X)
    np.testing.assert_allclose(
        np.stack([table["lower95"], table["upper95"]], 1), gp.predict_quantiles(X)[:, ::2]
    )
    two = gm.GPRegressor(K, optimize=False).fit(X, np.column_stack([Y, 2 * Y]))
    assert two.predict_quantiles(X, (0.1, 0.9)).shape == (18, 2, 2)
    assert list(two.predict_table(X)) == [f"{name}_{k}" for k in (0, 1) for name in table]


def test_quantiles_of_counts_are_whole_and_exact():
    """The least y whose cumulative probability reaches the level, with f averaged over many nodes."""
    gp = gm.GPRegressor(0.5 * gm.RBF(1.0), likelihood=gm.Poisson(), optimize=False).fit(X, np.arange(18) % 5)
    hours = np.full(4, 2.5)
    found = gp.predict_quantiles(X[:4], (0.025, 0.5, 0.975), exposure=hours)
    mean, var = gp.posterior_.moments(X[:4])
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    rates = 2.5 * np.exp(mean + np.sqrt(var) * z)  # (4, nodes)
    below = poisson.cdf(np.arange(200)[:, None, None], rates).mean(axis=2).T  # (4, 200)
    for k, level in enumerate((0.025, 0.5, 0.975)):
        np.testing.assert_array_equal(found[:, k], np.argmax(below >= level, axis=1))
