"""The transformers: scikit-learn's checks, pipelines, names, and Phi Phi' ~ K."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from gramian.errors import InputError, ParameterError
from gramian.estimators.transformers import FourierFeatures, NystromFeatures
from gramian.kernels import RBF, Linear, Matern52

BOTH = [FourierFeatures(n_features=60, random_state=3), NystromFeatures(rank=25, random_state=3)]


@parametrize_with_checks([FourierFeatures(random_state=0), NystromFeatures(random_state=0)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, (200, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.05 * rng.normal(size=200)


@pytest.mark.parametrize(
    "features",
    [FourierFeatures(n_features=300, kind="qmc"), NystromFeatures(rank=60)],
    ids=["fourier", "nystrom"],
)
def test_ridge_on_features_learns_what_ridge_on_columns_cannot(data, features):
    X, y = data
    features = clone(features).set_params(kernel=RBF(1.0), random_state=0)
    piped = make_pipeline(features, Ridge(1e-2)).fit(X[:150], y[:150])
    assert piped.score(X[150:], y[150:]) > 0.98
    assert Ridge(1e-2).fit(X[:150], y[:150]).score(X[150:], y[150:]) < 0.5


def test_features_approximate_the_kernel(data):
    X, _ = data
    kernel = 2.0 * Matern52([1.0, 0.7])
    fourier = FourierFeatures(kernel, 8000, kind="orf", random_state=0).fit(X).transform(X[:30])
    # 4000 pairs, each cosine of variance below 1/2 times the scale: 5 standard errors.
    assert_allclose(fourier @ fourier.T, kernel(X[:30]), atol=5 * 2.0 * np.sqrt(0.5 / 4000))
    nystrom = NystromFeatures(kernel, 150, random_state=0).fit(X)
    Phi = nystrom.transform(X)
    gap = kernel(X) - Phi @ Phi.T
    assert np.linalg.eigvalsh(gap)[0] > -1e-9
    assert np.trace(gap) < 0.01 * np.trace(kernel(X))
    assert nystrom.landmarks_.shape == (150, 2)


def test_all_rows_as_landmarks_give_the_kernel_itself(data):
    X, _ = data
    features = NystromFeatures(Matern52(1.0), 500, sampling="uniform", random_state=0).fit(X[:40])
    Phi = features.transform(X[:40])
    assert features.rank_ == Phi.shape[1] == 40
    assert_allclose(Phi @ Phi.T, Matern52(1.0)(X[:40]), atol=1e-9)


@pytest.mark.parametrize("estimator", BOTH, ids=["fourier", "nystrom"])
def test_seed_clone_and_pickle(data, estimator):
    X, _ = data
    one = clone(estimator).fit(X)
    Phi = one.transform(X)
    assert_array_equal(clone(estimator).fit(X).transform(X), Phi)
    assert_array_equal(pickle.loads(pickle.dumps(one)).transform(X), Phi)
    assert not np.allclose(clone(estimator).set_params(random_state=4).fit(X).transform(X), Phi)
    assert_allclose(np.concatenate([one.transform(X[:7]), one.transform(X[7:])]), Phi, atol=1e-12)


@pytest.mark.parametrize("estimator", BOTH, ids=["fourier", "nystrom"])
def test_units_do_not_matter(data, estimator):
    """The default kernel measures in standard deviations, around a centre."""
    X, _ = data
    moved = X * [1e-3, 50.0] + [300.0, -7.0]
    one, two = (clone(estimator).fit(table).transform(table) for table in (X, moved))
    # 300 + 0.001 x leaves 11 digits of x; Nystrom amplifies what is lost
    assert_allclose(one @ one.T, two @ two.T, atol=1e-6)
    assert_allclose(clone(estimator).fit(X).kernel_.lengthscale.value, np.std(X, axis=0) * np.sqrt(2))


@pytest.mark.parametrize("estimator", BOTH, ids=["fourier", "nystrom"])
def test_frames_and_names(data, estimator):
    X, _ = data
    frame = pd.DataFrame(X, columns=["left", "right"])
    kernel = RBF(0.8).on("right")
    fitted = clone(estimator).set_params(kernel=kernel).fit(frame)
    Phi = fitted.transform(frame)
    assert_array_equal(clone(estimator).set_params(kernel=RBF(0.8).on(1)).fit(X).transform(X), Phi)
    names = fitted.get_feature_names_out()
    stem = type(estimator).__name__.lower()
    assert list(names) == [f"{stem}{j}" for j in range(Phi.shape[1])]
    table = fitted.set_output(transform="pandas").transform(frame)
    assert list(table.columns) == list(names)
    with pytest.raises(InputError, match="feature names"):
        fitted.transform(frame.rename(columns={"left": "other"}))


def test_categories_with_nystrom_but_not_with_fourier(data):
    X, _ = data
    frame = pd.DataFrame({"a": X[:, 0], "kind": np.where(X[:, 1] > 0, "up", "down")})
    Phi = NystromFeatures(rank=60, random_state=0).fit(frame).transform(frame)
    same = (frame["kind"].to_numpy()[:, None] == frame["kind"].to_numpy()[None, :]) * 1.0
    kernel = RBF(np.std(X[:, 0]))(X[:, :1]) * np.where(same == 1, 1.0, 0.5)
    assert_allclose(Phi @ Phi.T, kernel, atol=1e-4)
    with pytest.raises(ParameterError, match="Categorical"):
        FourierFeatures().fit(frame)


def test_grid_search_over_sizes(data):
    X, y = data
    search = GridSearchCV(
        make_pipeline(FourierFeatures(RBF(1.0), random_state=0), Ridge(1e-2)),
        {"fourierfeatures__n_features": [2, 200]},
        cv=3,
    )
    assert search.fit(X, y).best_params_ == {"fourierfeatures__n_features": 200}


@pytest.mark.parametrize(
    ("estimator", "words"),
    [
        (FourierFeatures(Linear()), r"Linear\(\) has no known spectral measure"),
        (FourierFeatures(n_features=11), "Use 12"),
        (FourierFeatures(kind="fast"), "'sorf'"),
        (FourierFeatures(3.0), "gramian kernel"),
        (FourierFeatures(random_state=-1), "random_state"),
        (FourierFeatures(RBF([1.0, 2.0, 3.0])), "3 values, but the data have 2 columns"),
        (NystromFeatures(rank=0), "rank=0"),
        (NystromFeatures(rank=2.5), "rank=2.5"),
        (NystromFeatures(sampling="best"), "best"),
    ],
)
def test_errors_say_the_cure(data, estimator, words):
    with pytest.raises(ParameterError, match=words):
        estimator.fit(data[0])


def test_before_fit(data):
    for estimator in BOTH:
        with pytest.raises(NotFittedError):
            clone(estimator).transform(data[0])
