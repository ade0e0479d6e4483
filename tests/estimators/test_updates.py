"""Rows that come and go: the posterior of a fit with the same parameters to the rows that are left."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.choose.words import as_method
from gramian.errors import InputError, ParameterError
from gramian.estimators import edits
from gramian.inference import Data
from gramian.inference.conjugate import closed

RNG = np.random.default_rng(0)
X = RNG.uniform(-3, 3, (160, 2))
F = np.sin(X[:, 0]) + 0.3 * X[:, 1]
Y = F + 0.1 * RNG.standard_normal(len(X))
Z = RNG.uniform(-3, 3, (20, 2))
KERNEL = 1.0 * gm.RBF([1.0, 2.0])


def anew(gp, rows: Data):
    """The posterior of these rows with the model's parameters, from the start."""
    fitted = gp.fitted_
    return fitted.inference.infer(fitted.model, rows)


def assert_as_anew(gp, tolerance: float) -> None:
    fitted = gp.fitted_
    wanted = anew(gp, Data(np.array(fitted.rows.X), fitted.rows.Y, fitted.rows.scale, fitted.rows.noise_var))
    for got, right in zip(gp.posterior_.moments(Z), wanted.posterior.moments(Z), strict=True):
        np.testing.assert_allclose(got, right, rtol=tolerance, atol=tolerance)
    assert gp.evidence_.value == pytest.approx(wanted.evidence.value, rel=tolerance, abs=tolerance)
    assert gp.evidence_.kind == wanted.evidence.kind


@pytest.fixture
def gp():
    return gm.GPRegressor(KERNEL, noise=0.01, optimize=False).fit(X[:50], Y[:50])


@pytest.mark.parametrize("inverted", [True, False])
def test_a_thousand_edits_in_random_order(gp, inverted, monkeypatch):
    """To 1e-9: A has a condition of some 1e4, and orthogonal rotations add up no more than that."""
    if not inverted:
        monkeypatch.setattr("gramian.engines.dense.ROOT_UP_TO", 0)
        gp.fit(X[:50], Y[:50])
    assert gp.posterior_.inverted is inverted
    rng, rows = np.random.default_rng(1), list(range(50))
    for _ in range(1000):
        outside = sorted(set(range(len(X))) - set(rows))
        if len(rows) > 55 or (len(rows) > 45 and rng.random() < 0.5):
            k = int(rng.integers(len(rows)))
            gp.forget(k)
            del rows[k]
        else:
            k = int(rng.choice(outside))
            gp.update(X[[k]], Y[[k]])
            rows.append(k)
    np.testing.assert_array_equal(gp.fitted_.rows.X, X[rows])
    np.testing.assert_array_equal(gp.fitted_.rows.Y[:, 0], Y[rows])
    assert gp.posterior_.stores  # edited, not made anew
    assert_as_anew(gp, 1e-9)


def test_one_edit_makes_no_factor(gp, monkeypatch):
    def refused(*_, **__):
        raise AssertionError("a factor was made")

    monkeypatch.setattr("gramian.engines.dense.factored", refused)
    gp.update(X[50:53], Y[50:53]).forget(0).forget(51)
    assert gp.fitted_.n_rows == 51


METHODS = {
    "exact": {},
    "nystrom": {"method": gm.Nystrom(30)},
    "vfe": {"method": gm.Sparse(30)},
    "fitc": {"method": gm.Sparse(30, "fitc")},
    "fourier": {"method": gm.Fourier(64)},
    "cg": {"method": gm.Krylov(gm.CG(tol=1e-10), cholesky_up_to=0)},
    "laplace": {"likelihood": "poisson", "inference": "laplace"},
    "ep": {"likelihood": gm.StudentT(), "inference": "vi"},
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_the_posterior_of_a_refit(name):
    settings = METHODS[name]
    y = np.round(3 * np.abs(Y)) if settings.get("likelihood") == "poisson" else Y
    noise = {} if "likelihood" in settings else {"noise": 0.01}
    gp = gm.GPRegressor(KERNEL, optimize=False, random_state=0, **noise, **settings).fit(X[:80], y[:80])
    gp.update(X[80:120], y[80:120]).forget(range(3, 20)).update(X[120:], y[120:])
    assert gp.fitted_.n_rows == 143
    np.testing.assert_array_equal(gp.fitted_.rows.X, np.delete(X, range(3, 20), axis=0))
    assert_as_anew(gp, 1e-8)


@pytest.mark.parametrize("method", ["statespace", gm.Neighbours(10)])
def test_engines_that_choose_by_their_rows_choose_again(method):
    """Also where there are as many rows as before, but others."""
    x, kernel = np.sort(X[:, :1], axis=0), 1.0 * gm.Matern32(1.0)
    y = np.sin(x[:, 0])
    gp = gm.GPRegressor(kernel, noise=0.01, optimize=False, method=method).fit(x[::2], y[::2])
    gp.update(x[1:40:2], y[1:40:2]).forget(range(3, 23))
    assert gp.fitted_.n_rows == 80
    rows, points = gp.fitted_.rows, np.linspace(-3, 3, 30)[:, None]
    fitted = gp.fitted_
    fresh = closed(as_method(method)).prepared(fitted.model, rows, RNG).infer(fitted.model, rows)
    for got, right in zip(gp.posterior_.moments(points), fresh.posterior.moments(points), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-9, atol=1e-9)
    assert gp.evidence_.value == pytest.approx(fresh.evidence.value, rel=1e-9)


def test_outputs_noises_gaps_and_known_variances():
    two = np.column_stack([Y, 5 * np.cos(X[:, 1])])
    gp = gm.GPRegressor(KERNEL, noise=[0.01, 0.3], optimize=False).fit(X[:60], two[:60])
    gp.update(X[60:90], two[60:90]).forget([0, 5])
    assert len(gp.posterior_.roots) == 2
    assert_as_anew(gp, 1e-9)
    two[90, 1] = np.nan  # not observed: from the start, then
    assert_as_anew(gp.update(X[90:92], two[90:92]), 1e-9)
    known = RNG.uniform(0.01, 0.1, len(X))
    gp = gm.GPRegressor(KERNEL, optimize=False).fit(X[:60], Y[:60], noise_var=known[:60])
    assert_as_anew(gp.update(X[60:], Y[60:], noise_var=known[60:]), 1e-9)
    with pytest.raises(InputError, match="known noise variances"):
        gp.update(X[:1], Y[:1])


def test_classes_and_labels():
    labels = np.where(F > 0, "up", "down")
    gp = gm.GPClassifier(KERNEL, optimize=False).fit(X[:60], labels[:60])
    gp.update(X[60:100], labels[60:100]).forget(slice(0, 10))
    assert_as_anew(gp, 1e-8)
    with pytest.raises(InputError, match="'left', but the model tells down, up apart"):
        gp.update(X[:1], ["left"])
    three = gm.GPClassifier(KERNEL, multiclass="ovr", optimize=False)
    three.fit(X[:60], np.digitize(F[:60], [-0.5, 0.5]))
    with pytest.raises(ParameterError, match="softmax"):
        three.update(X[:1], [0])


def test_a_window_keeps_the_last_rows(gp):
    for k in range(50, 70):
        gp.update(X[[k]], Y[[k]], window=40)
    np.testing.assert_array_equal(gp.fitted_.rows.X, X[30:70])
    assert_as_anew(gp, 1e-9)


def test_tables_by_name_with_gaps_and_categories():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(X[:, 0] > 0, "p", "q"), "y": Y})
    gp = gm.GPRegressor(random_state=0, time_limit=20).fit(frame[:80], "y")
    more = frame[80:100].copy()
    more.iloc[3, 0] = np.nan
    more.iloc[4, 3] = np.nan  # no target
    gp.update(more)
    assert gp.fitted_.n_rows == 99
    assert np.all(np.isfinite(gp.fitted_.rows.X))
    assert "19 added" in gp.summary()


def test_averages_over_parameters_and_calibration_stay():
    gp = gm.GPRegressor(random_state=0).fit(X[:40], Y[:40])
    assert gp.fitted_.draws is not None
    before = gp.predict(Z, return_std=True)[1]
    gp.update(X[40:], Y[40:])
    assert gp.fitted_.draws is not None
    assert np.mean(gp.predict(Z, return_std=True)[1]) < np.mean(before)


def test_a_search_is_due_when_rows_are_foretold_badly():
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), random_state=0).fit(X[:60], Y[:60])
    gp.update(X[60:90], Y[60:90], refit="auto")
    assert gp.fitted_.edits == edits.Edits(30, 0, *gp.fitted_.edits[2:])
    theta = gp.theta_
    gp.update(X[90:150], 5 * Y[90:150], refit="never")
    np.testing.assert_array_equal(gp.theta_, theta)
    assert gp.fitted_.edits.fell_off
    gp.update(X[150:], 5 * Y[150:], refit="auto")
    assert gp.fitted_.edits is None
    assert gp.evidence_.value > gp.log_evidence(theta) + 100
    gp.update(X[:1], Y[:1], refit="always")
    assert gp.outcome_.evaluations > 0


def test_the_foretold_density_is_that_of_the_new_rows(gp):
    mean, cov = gp.predict(X[50:53], return_cov=True, target="y")
    gap = Y[50:53] - mean
    wanted = -0.5 * (gap @ np.linalg.solve(cov, gap) + np.linalg.slogdet(2 * np.pi * cov)[1])
    gp.update(X[50:53], Y[50:53])
    assert gp.fitted_.edits.foretold == pytest.approx(wanted, rel=1e-9)


def test_copies_do_not_see_each_others_rows(gp):
    import copy

    other = copy.copy(gp)
    gp.update(X[50:52], Y[50:52])
    other.update(X[60:62], Y[60:62])
    assert_as_anew(gp, 1e-9)
    assert_as_anew(other, 1e-9)
    third = copy.copy(gp)
    third.forget([0, 1])
    assert_as_anew(gp, 1e-9)


def test_a_file_has_the_rows_and_what_happened(gp, tmp_path):
    gp.update(X[50:60], Y[50:60]).forget(0)
    gp.save(tmp_path / "m.gm")
    loaded = gm.load(tmp_path / "m.gm")
    assert loaded.fitted_.edits[:3] == gp.fitted_.edits[:3]
    np.testing.assert_array_equal(loaded.predict(Z), gp.predict(Z))
    np.testing.assert_array_equal(
        loaded.update(X[60:62], Y[60:62]).predict(Z), gp.update(X[60:62], Y[60:62]).predict(Z)
    )
    sparse = gm.GPRegressor(KERNEL, method=gm.Sparse(10), noise=0.01, optimize=False).fit(X, Y)
    sparse.save(tmp_path / "s.gm")
    with pytest.raises(InputError, match="holds no rows"):
        gm.load(tmp_path / "s.gm").update(X[:1], Y[:1])


@pytest.mark.parametrize("rows", [50, [0, -51], [True] * 3, "a", 0.5, slice(None)])
def test_rows_that_are_not_there_are_refused(gp, rows):
    with pytest.raises(InputError, match="forget"):
        gp.forget(rows)
    assert gp.fitted_.n_rows == 50


def test_settings_that_make_no_sense_are_refused(gp):
    with pytest.raises(ParameterError, match=r"refit='often' is not known\. Use"):
        gp.update(X[:1], Y[:1], refit="often")
    with pytest.raises(ParameterError, match="window=0"):
        gp.update(X[:1], Y[:1], window=0)
    with pytest.raises(InputError, match="y has 2 columns"):
        gp.update(X[:1], np.ones((1, 2)))
    with pytest.raises(InputError, match="target y is missing"):
        gp.update(X[:1])
    svgp = gm.GPRegressor(KERNEL, method=gm.SVGP(10, steps=2)).fit(X, Y)
    with pytest.raises(ParameterError, match=r"kernel=model\.kernel_"):
        svgp.update(X[:1], Y[:1])


def test_many_rows_that_go_are_a_factor_of_the_rest(gp):
    assert gp.forget(0).posterior_.stores
    gp.forget(range(30))
    assert not gp.posterior_.stores
    assert_as_anew(gp, 1e-9)
