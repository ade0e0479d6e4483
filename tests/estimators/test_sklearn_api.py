"""GPRegressor is a scikit-learn estimator: its checks, and the places where people put estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gramian as gm


@parametrize_with_checks([gm.GPRegressor(n_restarts=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (45, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=45)


def test_pipeline(data):
    """A scaler in front changes nothing: units do not matter."""
    X, y = data
    plain = gm.GPRegressor(n_restarts=0).fit(X, y)
    piped = make_pipeline(StandardScaler(), gm.GPRegressor(n_restarts=0)).fit(X, y)
    assert_allclose(piped.predict(X), plain.predict(X), atol=1e-6)
    assert_allclose(piped.predict(X, return_std=True)[1], plain.predict(X, return_std=True)[1], atol=1e-6)


def test_cross_validation(data):
    X, y = data
    folds = KFold(3)
    scores = cross_val_score(gm.GPRegressor(n_restarts=0), X, y, cv=folds)
    assert np.all(scores > 0.9)
    gp = gm.GPRegressor(
        gm.fixed(1.5) * gm.RBF(gm.fixed(0.9)), noise=gm.fixed(0.01), mean="zero", normalize_y=False
    )
    leave_one_out = cross_val_predict(gp, X, y, cv=len(y))
    assert_allclose(gp.fit(X, y).loo().mean, leave_one_out, rtol=1e-7, atol=1e-9)


def test_grid_search_over_kernels_and_settings(data):
    X, y = data
    kernels = [1.0 * gm.RBF(1.0), gm.Linear(1.0)]
    search = GridSearchCV(
        gm.GPRegressor(n_restarts=0), {"kernel": kernels, "mean": ["zero", "constant"]}, cv=KFold(3)
    ).fit(X, y)
    assert search.best_params_["kernel"] == kernels[0]
    assert search.best_estimator_.kernel is not search.best_estimator_.kernel_
    assert len(search.cv_results_["params"]) == 4


def test_target_transformer(data):
    X, y = data
    model = TransformedTargetRegressor(gm.GPRegressor(n_restarts=0), func=np.log, inverse_func=np.exp).fit(
        X, np.exp(y)
    )
    assert model.score(X, np.exp(y)) > 0.98


def test_clone_takes_settings_and_leaves_the_fit(data):
    X, y = data
    kernel = 1.5 * gm.Matern52(0.5)
    gp = gm.GPRegressor(
        kernel,
        mean="linear",
        noise=0.1,
        n_restarts=0,
        random_state=3,
        memory_limit="1GB",
        time_limit=60.0,
        verbose=False,
    ).fit(X, y)
    copy = clone(gp)
    assert copy.get_params() == gp.get_params()
    assert gp.kernel is kernel  # fitting changes no setting
    assert not hasattr(copy, "kernel_")
    assert_allclose(copy.fit(X, y).predict(X), gp.predict(X), rtol=1e-12)


def test_set_params():
    gp = gm.GPRegressor()
    assert gp.set_params(noise=0.5, mean="zero") is gp
    assert gp.noise == 0.5
    assert gp.mean == "zero"
    with pytest.raises(ValueError, match="Invalid parameter 'nois'"):
        gp.set_params(nois=1)


def test_pickle(data):
    X, y = data
    gp = gm.GPRegressor(n_restarts=0).fit(X, y)
    copy = pickle.loads(pickle.dumps(gp))
    for a, b in zip(gp.predict(X, return_cov=True), copy.predict(X, return_cov=True), strict=True):
        assert np.array_equal(a, b)
    assert copy.summary() == gp.summary()
    assert copy.log_evidence() == gp.log_evidence()
    assert np.array_equal(copy.sample(X[:3], 2, random_state=1), gp.sample(X[:3], 2, random_state=1))


def test_feature_names(data):
    X, y = data
    frame = pd.DataFrame(X, columns=["temp", "wind"])
    gp = gm.GPRegressor(n_restarts=0).fit(frame, y)
    assert list(gp.feature_names_in_) == ["temp", "wind"]
    assert gp.n_features_in_ == 2
    with pytest.warns(UserWarning, match="does not have valid feature names"):  # scikit-learn's own custom
        values = gp.predict(X)
    assert_allclose(values, gp.predict(frame))
    gp.fit(X, y)
    assert not hasattr(gp, "feature_names_in_")


@pytest.mark.parametrize(
    "method", ["loo", "summary", "components", "predict_gradient", "log_evidence", "save"]
)
def test_what_needs_a_fit_says_so(method):
    arguments = (
        [[[0.0]]]
        if method in ("components", "predict_gradient")
        else ["model.gm"]
        if method == "save"
        else []
    )
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(gm.GPRegressor(), method)(*arguments)
    with pytest.raises(NotFittedError):
        _ = gm.GPRegressor().parameters_


def test_fitting_again_forgets_the_first_fit(data):
    X, y = data
    gp = gm.GPRegressor(n_restarts=0, random_state=0).fit(X[:, :1], np.column_stack([y, y]))
    gp.fit(X, y)
    fresh = gm.GPRegressor(n_restarts=0, random_state=0).fit(X, y)
    assert np.array_equal(gp.predict(X), fresh.predict(X))
    assert gp.predict(X).shape == (45,)


def test_the_model_does_not_follow_later_changes_of_the_data(data):
    X, y = (array.copy() for array in data)
    noise = np.full(len(y), 0.01)
    gp = gm.GPRegressor(n_restarts=0).fit(X, y, noise_var=noise)
    before, evidence = gp.predict(data[0]), gp.log_evidence()
    X[:], y[:], noise[:] = 7.0, 8.0, 9.0
    assert np.array_equal(gp.predict(data[0]), before)
    assert gp.log_evidence() == evidence
    assert_allclose(gp.loo().mean, data[1], atol=0.5)


def test_inputs_are_left_alone(data):
    X, y = (array.copy() for array in data)
    for array in (X, y):
        array.setflags(write=False)
    gp = gm.GPRegressor(n_restarts=0).fit(X, y)
    gp.predict(X, return_cov=True)
    gp.sample(X[:5], 2)
    assert np.array_equal(X, data[0])
    assert np.array_equal(y, data[1])


@pytest.mark.parametrize(
    "kind", ["list", "float32", "Fortran", "strided", "int", "object", "text", "frame", "column of y"]
)
def test_the_same_numbers_in_any_container(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(-20, 20, (30, 2)).astype(float)
    y = np.round(np.sin(X[:, 0] / 5) * 8)
    expected = gm.GPRegressor(n_restarts=0).fit(X, y).predict(X)
    wide = np.zeros((60, 4))
    wide[::2, ::2] = X
    others = {
        "list": (X.tolist(), y.tolist()),
        "float32": (X.astype(np.float32), y.astype(np.float32)),
        "Fortran": (np.asfortranarray(X), y[::-1].copy()[::-1]),
        "strided": (wide[::2, ::2], y),
        "int": (X.astype(int), y.astype(np.int8)),
        "object": (X.astype(object), y.astype(object)),
        "text": (X.astype(str), y.astype(str)),
        "frame": (pd.DataFrame(X, columns=["a", "b"]), pd.Series(y, index=range(5, 35))),
        "column of y": (X, y[:, None]),
    }
    table, target = others[kind]
    mean = gm.GPRegressor(n_restarts=0).fit(table, target).predict(table)
    assert mean.dtype == np.float64
    assert np.array_equal(mean, expected[:, None] if kind == "column of y" else expected)
