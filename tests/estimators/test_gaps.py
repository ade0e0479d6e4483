"""Rows with missing cells: a prediction is the mixture over what donors have there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.corrections import Calibration
from gramian.data.gaps import POOL, Donors
from gramian.errors import InputError, ParameterError

rng = np.random.default_rng(3)
X = rng.normal(size=(40, 3))
y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=40)
NEW = np.array([[0.3, 0.2, 0.1], [np.nan, 0.2, 0.1], [0.3, np.nan, np.nan], [0.1, -0.4, 0.9]])
MODELS = {
    "Gaussian noise": lambda: gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False).fit(X, y),
    "two outputs": lambda: gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False).fit(
        X, np.column_stack([y, -2 * y])
    ),
    "Nystrom": lambda: gm.GPRegressor(
        gm.RBF(1.0), noise=0.1, optimize=False, method=gm.Nystrom(20), random_state=0
    ).fit(X, y),
    "warped": lambda: gm.GPRegressor(
        gm.RBF(1.0), noise=0.1, optimize=False, warp=gm.SinhArcsinh(0.3, 0.8)
    ).fit(X, y),
    "calibrated": lambda: calibrated(gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False).fit(X, y)),
    "Student's t": lambda: gm.GPRegressor(gm.RBF(1.0), likelihood=gm.StudentT(), optimize=False).fit(X, y),
}


def calibrated(gp: gm.GPRegressor) -> gm.GPRegressor:
    gp.fitted_ = replace(gp.fitted_, calibration=Calibration(0.8, (0.1,), (4.0,)))
    return gp


def completed(gp: gm.GPRegressor) -> np.ndarray:
    """Each new row by each of its donors, (4, donors, 3)."""
    return Donors(gp.fitted_.some_rows()).completed(NEW)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("target", ["y", "f"])
def test_mean_and_variance_are_those_of_the_mixture(name, target):
    gp = MODELS[name]()
    mean, std = gp.predict(NEW, return_std=True, target=target)
    for k, rows in enumerate(completed(gp)):
        means, stds = gp.predict(rows, return_std=True, target=target)
        assert_allclose(mean[k], np.mean(means, axis=0), rtol=1e-9)
        # noise is the same for all donors, so it adds up
        assert_allclose(std[k] ** 2, np.mean(stds**2, axis=0) + np.var(means, axis=0), rtol=1e-8)


@pytest.mark.parametrize("name", ["Gaussian noise", "Nystrom"])
def test_covariances_draws_and_densities_agree_with_the_moments(name):
    gp = MODELS[name]()
    mean, std = gp.predict(NEW, return_std=True, target="f")
    m, cov = gp.predict(NEW, return_cov=True, target="f")
    assert_allclose(m, mean, rtol=1e-12)
    assert np.array_equal(np.sqrt(np.diag(cov)), std)
    assert np.all(np.linalg.eigvalsh(cov) > -1e-12)
    draws = gp.sample(NEW, 32_000, random_state=0)
    # standard errors: std / sqrt(32,000), and of the variance some kurtosis times 2 / 32,000; 6 of them
    assert_allclose(draws.mean(axis=1), mean, atol=6 * np.max(std) / np.sqrt(32_000))
    assert_allclose(draws.var(axis=1), std**2, rtol=0.1)
    density = gp.log_density(NEW, np.zeros(4))
    each = [gp.log_density(rows, np.zeros(len(rows))) for rows in completed(gp)]
    assert_allclose(density, [np.log(np.mean(np.exp(scores))) for scores in each], rtol=1e-9)


def test_gradients_and_components_are_averaged_too():
    gp = gm.GPRegressor(gm.RBF(1.0) + gm.Linear(0.5), noise=0.1, optimize=False).fit(X, y)
    slope, var = gp.predict_gradient(NEW)
    each = gp.predict_gradient(completed(gp)[1])
    assert_allclose(slope[1], np.mean(each[0], axis=0), rtol=1e-9)
    assert_allclose(var[1], np.mean(each[1], axis=0) + np.var(each[0], axis=0), rtol=1e-8)
    parts = gp.components(NEW)
    for name, (mean, _) in parts.items():
        assert_allclose(mean[1], np.mean(gp.components(completed(gp)[1])[name][0]), rtol=1e-8)


@pytest.mark.parametrize("multiclass", ["softmax", "ovr"])
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_add_up(multiclass, classes):
    labels = np.digitize(X[:, 0], [0.0] if classes == 2 else [-0.5, 0.5])
    gp = gm.GPClassifier(4.0 * gm.RBF(1.0), optimize=False, multiclass=multiclass).fit(X, labels)
    P = gp.predict_proba(NEW)
    assert P.shape == (4, classes)
    assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    # what decides is missing: less certain than with it
    assert P[1].max() < P[0].max() + 0.1
    if multiclass == "softmax" or classes == 2:  # others are no joint model
        assert gp.sample(NEW, 3, random_state=0).shape[0] == 4


@pytest.mark.parametrize("name", ["Gaussian noise", "Nystrom"])
def test_a_model_file_predicts_rows_with_gaps_as_the_model_does(name, tmp_path):
    gp = MODELS[name]()
    gp.save(tmp_path / "m.gm")
    loaded = gm.load(tmp_path / "m.gm")
    assert_allclose(loaded.predict(NEW), gp.predict(NEW), rtol=1e-12)


def test_nan_that_signals_is_a_gap_like_others():
    """Arithmetic with it warns, and warnings are errors here."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    X.view(np.uint64)[4, 1] = 0x7FF0000000000001
    other = np.where(np.isnan(X), np.nan, X)
    gp, known = (gm.GPRegressor("rbf", optimize=False).fit(rows, X[:, 0]) for rows in (X, other))
    assert_allclose(gp.predict(X), known.predict(other))


def test_fits_with_gaps_are_filled_from_similar_rows():
    """A column that repeats another is filled with what neighbours have, which is nearly its own value."""
    twin = np.column_stack([X[:, 0], X[:, 0] + 0.01])
    table = twin.copy()
    table[::4, 1] = np.nan
    gp = gm.GPRegressor(noise=0.1, optimize=False).fit(table, y)
    filled = gp.fitted_.rows.X
    assert gp.fitted_.columns.names == ("x0", "x1", "x1 is missing")
    assert np.array_equal(filled[:, 2], np.isnan(table[:, 1]))
    inner = np.abs(twin[:, 0]) < 1.2  # at the edges all neighbours lie on one side
    assert np.max(np.abs(filled[inner, 1] - twin[inner, 1])) < 0.5
    assert np.corrcoef(filled[::4, 1], twin[::4, 1])[0, 1] > 0.95
    # filled cells are nobody's to give
    pool = gp.fitted_.some_rows()
    assert len(pool) == 40 <= POOL


def test_rows_of_a_fit_that_go_with_others():
    """Known noise and exposures lose the same rows as y."""
    table, target = X.copy(), y.copy()
    table[3, 0], target[5] = np.nan, np.nan
    noise = np.linspace(0.1, 0.2, 40)
    gp = gm.GPRegressor(gm.RBF(1.0), optimize=False, missing="drop").fit(table, target, noise_var=noise)
    kept = np.setdiff1d(np.arange(40), [3, 5])
    assert np.array_equal(gp.fitted_.rows.noise_var, noise[kept])
    assert np.array_equal(gp.fitted_.rows.X, X[kept])
    counts = gm.GPRegressor(gm.RBF(1.0), likelihood=gm.Poisson(), optimize=False)
    counts.fit(table, np.where(np.isnan(target), np.nan, 2.0), exposure=1 + noise)
    assert np.array_equal(counts.fitted_.rows.Y[:, 1], np.delete(1 + noise, 5))


def test_a_column_without_a_value_and_rules_that_are_none():
    table = np.column_stack([X[:, 0], np.full(40, np.nan)])
    gp = gm.GPRegressor(noise=0.1, optimize=False).fit(table, y)
    assert "x1 has no value in any row" in gp.summary()
    with pytest.raises(InputError, match="Every row has a missing cell: column 'x1' has 40 of 40 missing"):
        gm.GPRegressor(missing="drop").fit(table, y)
    with pytest.raises(ParameterError, match="missing='guess' is not known"):
        gm.GPRegressor(missing="guess").fit(X, y)


def test_donors_give_sets_of_cells_that_fit_together():
    """Of two columns that are equal, both missing, no completion has two different values."""
    pool = np.column_stack([X[:, 0], X[:, 1], X[:, 1]])
    found = Donors(pool).completed(np.array([[0.2, np.nan, np.nan]]))
    assert np.array_equal(found[0, :, 1], found[0, :, 2])
    apart = pool.copy()
    apart[::2, 1], apart[1::2, 2] = np.nan, np.nan  # no row has both: then one by one
    found = Donors(apart).completed(np.array([[0.2, np.nan, np.nan]]))
    assert np.all(np.isfinite(found))
