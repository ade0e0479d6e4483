"""What is no number, or at the end of all numbers, at doors beside X and y: an error of ours that says what
to give, or an answer; no warning of NumPy's, and no error of whoever met it first."""

from __future__ import annotations

import contextlib
import copy
import datetime

import numpy as np
import pytest

import gramian as gm
from gramian.errors import GramianError, InputError, ParameterError
from gramian.predictive import Normals

SPAN = np.timedelta64(3, "D")  # an integer, says NumPy
HUGE, ZERO = 10**400, 0
ODD = [SPAN, np.datetime64("NaT"), 1 + 2j, [1, 2], {}, object(), "text", b"1.5", np.zeros(3), datetime]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    return X, np.sin(X[:, 0])


@pytest.fixture(scope="module")
def fitted(data):
    return gm.GPRegressor("rbf", optimize=False, noise=0.1).fit(*data)


@pytest.fixture(scope="module")
def warped(data):
    return gm.GPRegressor(gm.RBF(), warp=gm.SinhArcsinh(), optimize=False, noise=0.1).fit(*data)


@pytest.fixture(scope="module")
def labels(data):
    return gm.GPClassifier("rbf", optimize=False).fit(data[0], data[1] > 0)


@pytest.mark.parametrize("odd", [*ODD, HUGE, 2**70, -1, ZERO])
def test_counts(data, fitted, odd):
    X, y = data
    with pytest.raises(ParameterError, match="n_samples="):
        fitted.sample(X, odd)
    with pytest.raises(ParameterError, match="n_restarts="):
        gm.GPRegressor(n_restarts=-1 if odd is ZERO else odd).fit(X, y)
    with pytest.raises(GramianError, match=r"rows=|The relevance of 2 columns"):
        fitted.relevance(odd)


@pytest.mark.parametrize("odd", [*ODD, -1.0, 0.0, np.nan])
def test_limits(data, fitted, odd):
    for settings in ({"time_limit": odd}, {"memory_limit": odd}):
        with pytest.raises(ParameterError, match=r"(time|memory)_limit="):
            gm.GPRegressor("rbf", **settings).fit(*data)
    with pytest.raises(ParameterError, match="time_limit="):
        fitted.report(time_limit=odd)


@pytest.mark.parametrize("odd", [*ODD, HUGE, 1.7e308, np.inf, np.nan, -1.0])
def test_variances(data, odd):
    with pytest.raises(ParameterError, match=r"noise=.* must be a variance|is for one|has \d noises|noise"):
        gm.GPRegressor("rbf", noise=odd).fit(*data)
    if not isinstance(odd, np.ndarray):
        with pytest.raises(ParameterError, match="positive number"):
            _ = odd * gm.RBF() if not isinstance(odd, (str, bytes, list)) else gm.RBF() * odd


@pytest.mark.parametrize("odd", [*ODD, HUGE, 5e-324 - 1, 1.0, 0.0, np.nan])
def test_levels(data, fitted, odd):
    for ask in ({"interval": odd}, {"quantiles": odd}):
        with pytest.raises(ParameterError, match=r"no probability|no levels"):
            fitted.predict(data[0], **ask)


def test_a_level_next_to_zero(data):
    X, y = data
    gp = gm.GPRegressor("rbf", likelihood="poisson", optimize=False).fit(X, np.round(y + 1))
    assert np.all(gp.predict(X, quantiles=[5e-324]) == 0)


@pytest.mark.parametrize("odd", [1 + 2j, [1, 2], {}, object(), "text", HUGE, np.nan, -1.0, np.inf])
def test_weights_of_scores(data, fitted, labels, odd):
    X, y = data
    weights = np.ones(20, dtype=object)
    weights[3] = odd
    for gp, targets in ((fitted, y), (labels, y > 0)):
        with pytest.raises(InputError, match=r"sample_weight|number belongs|cell argument|beyond"):
            gp.score(X, targets, sample_weight=weights)
        with pytest.raises(InputError, match="sample_weight is 0 in all rows"):
            gp.score(X, targets, sample_weight=np.zeros(20))
        even = gp.score(X, targets)
        assert gp.score(X, targets, sample_weight=np.full(20, 1.7e308)) == pytest.approx(even, rel=1e-12)


@pytest.mark.parametrize("far", [1.7e308, -1e200, 1e160])
def test_far_targets(data, fitted, warped, far):
    X, y = data
    Y = y.copy()
    Y[3] = far
    for gp in (fitted, warped):
        for ask in (copy.deepcopy(gp).update, gp.evaluate):
            with pytest.raises(InputError, match=r"y has .* in row 3, whose square leaves"):
                ask(X, Y)
        foretold = gp.predict_dist(X)
        assert np.all(foretold.cdf(far) == (far > 0))
        assert np.all(foretold.log_density(far) < -1e10)
    for refused in (
        lambda: gm.compare(X, Y, kernel=gm.RBF(), noise=0.1, methods="exact", repeats=1),
        lambda: gm.GPForecaster(seasons=[]).fit(np.arange(20.0), Y),
    ):
        with pytest.raises(InputError, match=r"y has .* in row 3, whose square leaves"):
            refused()


@pytest.mark.parametrize("end", [np.inf, -np.inf])
def test_the_ends_of_a_warped_distribution(data, warped, end):
    foretold = warped.predict_dist(data[0])
    assert np.all(foretold.cdf(end) == (end > 0))
    assert np.all(foretold.log_density(end) == -np.inf)


@pytest.mark.parametrize("method", ["vfe", "neighbours"])
@pytest.mark.parametrize("cell", [1e160, -1e200])
def test_far_cells(data, method, cell):
    X, y = data
    X = X.copy()
    X[3, 1] = cell
    gp = gm.GPRegressor("rbf", method=method, optimize=False).fit(X, y)
    assert np.isfinite(gp.predict(data[0])).all()


@pytest.mark.parametrize(
    ("cell", "method"), [(5e-324, "statespace"), (5e-324, "neighbours"), (1e-200, "exact")]
)
def test_columns_of_one_tiny_number(data, cell, method):
    gp = gm.GPRegressor("matern32", method=method, optimize=False).fit(np.full((20, 1), cell), data[1])
    assert np.isfinite(gp.predict([[cell], [0.0]])).all()


def test_known_variances_and_exposures(data):
    X, y = data
    values = np.ones(20)
    values[3] = 1.7e308
    with pytest.raises(InputError, match=r"noise_var is 1\.7e\+308 in row 3"):
        gm.GPRegressor("rbf").fit(X, y, noise_var=values)
    for odd in (1.7e308, 5e-324):
        values[3] = odd
        with pytest.raises(InputError, match=r"exposure is .* in row 3; it must be positive and finite"):
            gm.GPRegressor("rbf", likelihood="poisson").fit(X, np.round(y + 1), exposure=values)


@pytest.mark.parametrize("theta", [1.7e308, -1.7e308, 1e160, -1e200, 700.0])
def test_evidence_of_impossible_parameters(fitted, labels, theta):
    for gp in (fitted, labels):
        with contextlib.suppress(GramianError):
            assert isinstance(gp.log_evidence(np.full(len(gp.theta_), theta)), float)


@pytest.mark.parametrize("label", [[1], {}, {1}, np.zeros(3)], ids=["list", "dict", "set", "array"])
def test_labels_that_are_containers(data, labels, label):
    X, y = data
    told = np.array(y > 0, dtype=object)
    told[3] = label
    for ask in (gm.GPClassifier().fit, labels.score, labels.log_density, labels.evaluate):
        with pytest.raises(InputError, match=r"y has a \w+ in row 3, where a label belongs"):
            ask(X, told)
    with pytest.raises(InputError, match=r"a (list|dict|set|ndarray) in row 3, column 0"):
        gm.RBF()(told[:, None])


def test_latent_places(data):
    table = np.column_stack(data)
    far, gp = table.copy(), gm.GPLatent(1, n_inducing=3, max_iter=2, random_state=0)
    gp.fit(table)
    far[3, 1] = 1.7e308
    for ask in (gp.transform, gp.impute, gp.reconstruct, gp.score_samples):
        with pytest.raises(InputError, match=r"column 'x1' has 1\.7e\+308 in row 3.*mark it as missing"):
            ask(far)
    with pytest.raises(InputError, match="X_std holds"):
        gp.inverse_transform(np.zeros((2, 1)), X_std=1e160)
    for count in (2**70, SPAN):
        with pytest.raises(ParameterError, match="n_samples="):
            gp.sample(count)
    with pytest.raises(GramianError, match="rows drawn"):
        gp.sample(10**12)


@pytest.mark.parametrize("odd", [SPAN, np.datetime64("NaT"), 1 + 2j, {}, object(), "text", HUGE])
def test_values_of_a_process(data, odd):
    X, y = data
    for given in ((X, [odd] * 20), ([[odd, 0.0]] * 20, y)):
        with pytest.raises(InputError, match="no real numbers"):
            gm.GP(gm.RBF(), noise=0.1).condition(*given)
    with pytest.raises(InputError, match=r"y has|predictions have"):
        Normals(np.zeros(2), np.ones(2)).cdf([odd, odd, odd])


def test_designs_and_series():
    design = gm.Design({"x": (0.0, 1.0)})
    for point, value in (({"x": HUGE}, 1.0), ({"x": 0.5}, HUGE)):
        with pytest.raises(InputError, match="is no number"):
            design.tell(point, value)
    for odd in (HUGE, SPAN, -1, np.nan):
        with pytest.raises(ParameterError, match="no period"):
            gm.GPForecaster(seasons=[odd]).fit(np.arange(20.0), np.arange(20.0))
