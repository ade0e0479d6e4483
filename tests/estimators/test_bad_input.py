"""Whatever is given, the answer is finite and sensible, or an error of the library's own that says what is
wrong, where, and what to do.

Warnings are errors in this suite, so none of NumPy's, JAX's or SciPy's leaks from any of these.
"""

from __future__ import annotations

import datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.utils.validation import has_fit_parameter

import gramian as gm
from gramian.errors import GramianError, InputError, InputTypeError, NumericalError, ParameterError

N = 20
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
y = X[:, 0] + 0.1 * rng.normal(size=N)


def changed(array, at, value):
    copy = np.array(array, dtype=object if isinstance(value, (str, dict, type(None))) else float)
    copy[at] = value
    return copy


def regressor(**settings):
    return gm.GPRegressor(**({"n_restarts": 0} | settings))


def answers(table, target, places=None, **settings):
    """Fits and asks for everything; each answer must be finite."""
    gp = regressor(**settings).fit(table, target)
    places = table if places is None else places
    mean, std = gp.predict(places, return_std=True)
    everything = [
        mean,
        std,
        *gp.loo(),
        gp.sample(places, 2, random_state=0),
        gp.predict(places, return_cov=True)[1],
        gp.log_evidence(),
    ]
    for answer in everything:
        assert np.all(np.isfinite(answer))
    assert np.isfinite(gp.evidence_.value)
    assert gp.summary()
    return gp, mean, std


# Refused, with what and where and how to cure it. -----------------------------------------------------------

REFUSED = {
    "infinity in X": (changed(X, (3, 1), np.inf), y, ["X contains infinity", "row 3", "column 'x1'"]),
    "minus infinity in X": (changed(X, (7, 2), -np.inf), y, ["X contains infinity", "row 7", "column 'x2'"]),
    "nothing but NaN in y": (X, np.full(N, np.nan), ["y contains NaN", "row 0", "Drop these rows"]),
    "infinity in y": (X, changed(y, 4, np.inf), ["y contains infinity", "row 4"]),
    "nothing but NaN in the second output": (
        X,
        np.column_stack([y, np.full(len(y), np.nan)]),
        ["y contains NaN in all rows of output 1"],
    ),
    "infinity in the second output": (
        X,
        changed(np.column_stack([y, y]), (4, 1), np.inf),
        ["y contains infinity", "row 4, output 1"],
    ),
    "no rows": (X[:0], y[:0], ["0 sample(s)", "X has no rows"]),
    "no columns": (X[:, :0], y, ["0 feature(s)", "X has no columns"]),
    "no X": (None, y, ["X is None", "give a table"]),
    "no y": (X, None, ["y is None"]),
    "one dimension": (X[:, 0], y, ["1D array", "shape (20,)", "reshape(-1, 1)"]),
    "three dimensions": (X[None], y, ["3D array"]),
    "a number": (3.0, y, ["scalar array"]),
    "ragged rows": ([[1, 2], [3, 4], [5]], [1, 2, 3], ["row 0 has 2 values, row 2 has 1"]),
    "unequal lengths": (X, y[:5], ["inconsistent numbers of samples: [20, 5]"]),
    "text": ([["a", "b"], ["c", "d"]], [1, 2], ["Column 'x0'", "text 'a'", "row 0", "DataFrame"]),
    "text among numbers": (changed(X, (3, 1), "hello"), y, ["Column 'x1'", "text 'hello'", "row 3"]),
    "text in y": (X, changed(y, 2, "high"), ["Column 'y'", "text 'high'", "row 2", "one number a row"]),
    "dates in y": (X, np.arange(N).astype("M8[D]"), ["Column 'y'", "dates or times", "days since"]),
    "sparse X": (sparse.csr_matrix(X), y, ["sparse", "X.toarray()"]),
    "sparse y": (X, sparse.csr_matrix(y[:, None]), ["sparse", "y.toarray()"]),
    "complex X": (X + 1j, y, ["Complex data not supported", "X"]),
    "complex y": (X, y + 1j, ["Complex data not supported", "y"]),
    "masked X": (
        np.ma.masked_array(X, np.isin(X, [X[12, 2], X[15, 0]])),
        y,
        ["2 cells masked out", "row 12, column 2"],
    ),
    "masked y": (X, np.ma.masked_array(y, np.arange(N) == 3), ["masked out", "row 3"]),
    "y with three dimensions": (X, np.ones((N, 1, 1)), ["y has shape (20, 1, 1)"]),
    "y with no columns": (X, np.ones((N, 0)), ["y has no columns"]),
    "y beyond squares": (X, y * 1e300, ["size 2.29e+300", "y / 1e+300"]),
    "y below squares": (X, y * 1e-300, ["size 2.29e-300", "y / 1e-300"]),
    "the second output beyond squares": (X, np.column_stack([y, 1e200 * y]), ["Output 1 of y"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_fit(name):
    table, target, words = REFUSED[name]
    with pytest.raises(InputError) as caught:
        regressor().fit(table, target)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("table", "target", "words"),
    [
        (changed(X, (3, 1), np.nan), y, ["X contains NaN", "row 3", "column 'x1'", "Drop these rows"]),
        (changed(X, (3, 1), None), y, ["X contains NaN", "row 3", "column 'x1'"]),
        (X, changed(y, 4, np.nan), ["y contains NaN", "row 4", "Drop these rows"]),
    ],
    ids=["NaN in X", "a missing cell", "NaN in y"],
)
def test_gaps_are_refused_on_request(table, target, words):
    with pytest.raises(InputError) as caught:
        regressor(missing="error").fit(table, target)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "dates",
    [
        np.array([["2020-01-01"], ["2020-01-02"], ["2020-01-05"]], dtype="M8[D]"),
        np.array([[datetime.date(2020, 1, day)] for day in (1, 2, 5)]),
    ],
    ids=["datetime64", "objects"],
)
def test_arrays_of_dates_are_days(dates):
    gp = regressor(kernel=gm.RBF(1.0), noise=0.1, optimize=False).fit(dates, [1.0, 2.0, 3.0])
    assert gp.read(dates)[:, 0].tolist() == [0.0, 1.0, 4.0]
    assert "x0: dates as days since 2020-01-01" in gp.summary()


def test_an_object_in_a_cell_is_a_type_error_too():
    with pytest.raises(InputTypeError, match=r"Column 'x1', row 3.*dict") as caught:
        regressor().fit(changed(X, (3, 1), {}), y)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, GramianError)


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (X[:, :2], ["2 features", "expecting 3"]),
        (changed(X, (2, 0), np.inf), ["X contains infinity", "row 2"]),
        (X[:0], ["X has no rows"]),
        (X[0], ["1D array", "reshape(1, -1)"]),
        ([["a", "b", "c"]], ["Column 'x0'", "text 'a'", "row 0"]),
        (sparse.csr_matrix(X), ["sparse"]),
        (None, ["X is None"]),
    ],
    ids=["a column missing", "infinity", "no rows", "one dimension", "text", "sparse", "None"],
)
@pytest.mark.parametrize("question", ["predict", "sample", "components", "predict_gradient"])
def test_refused_in_questions(places, words, question):
    gp = regressor(kernel=gm.RBF(1.0), noise=0.01, optimize=False).fit(X, y)
    with pytest.raises(InputError) as caught:
        getattr(gp, question)(places)
    for word in words:
        assert word in str(caught.value)


# Accepted, with finite and sensible answers. ----------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows(n):
    gp, mean, std = answers(X[:n], y[:n])
    assert_allclose(mean, y[:n], atol=3 * std.max() + 0.1 * np.abs(y[:n]).max())
    far = gp.predict([[50.0, 50.0, 50.0]], return_std=True)[1]
    assert far[0] > 0.1 * np.abs(y[:n]).max()  # a row or three say little of what lies far away


@pytest.mark.parametrize("value", [0.0, 3.0, -1e12, 1e-12])
def test_constant_y(value):
    gp, mean, std = answers(X, np.full(N, value))
    assert_allclose(mean, value, rtol=1e-6, atol=1e-12)
    assert np.all(std <= 0.01 * max(abs(value), 1.0 if value == 0 else 0.0))
    assert any("y is constant" in note for note in gp.outcome_.notes)


def test_constant_columns():
    gp, mean, _ = answers(np.column_stack([X, np.full(N, 5.0), np.zeros(N)]), y)
    assert any("Constant columns tell nothing: x3, x4" in note for note in gp.outcome_.notes)
    assert np.corrcoef(mean, y)[0, 1] > 0.9


def test_nothing_but_constant_columns():
    _, mean, std = answers(np.ones((N, 2)), y)
    assert_allclose(mean, y.mean(), atol=0.2 * y.std())
    assert_allclose(std, y.std(), rtol=0.2)


def test_duplicate_columns():
    _, mean, _ = answers(X[:, [0, 0, 1]], y)
    assert np.corrcoef(mean, y)[0, 1] > 0.9


def test_fewer_rows_than_columns():
    wide = np.random.default_rng(1).normal(size=(6, 40))
    answers(wide, wide[:, 0])


def test_a_column_of_yes_and_no():
    _, mean, _ = answers(np.column_stack([X > 0]), X[:, 0] > 0)
    assert_allclose(mean, X[:, 0] > 0, atol=0.2)


@pytest.mark.parametrize("scale", [1e12, 1e-12, 1e100, 1e-100, 1e300, 1e-300])
@pytest.mark.parametrize("mean", ["constant", "linear"])
def test_columns_of_extreme_scale_change_nothing(scale, mean):
    """Squares of 1e300 overflow and those of 1e-300 vanish, unless they are taken after scaling. Rounding
    differs with the scale, and with it where a search within a tenth of a nat of the top ends."""
    expected = regressor(mean=mean).fit(X, y).predict(X, return_std=True)
    factors = np.array([scale, 1.0, 1.0])
    _, values, std = answers(X * factors, y, mean=mean)
    assert_allclose(values, expected[0], atol=1e-4)
    assert_allclose(std, expected[1], atol=1e-4)


@pytest.mark.parametrize("scale", [1e12, 1e-12, 1e100, 1e-100])
def test_y_of_extreme_scale_changes_nothing_else(scale):
    expected = regressor().fit(X, y).predict(X, return_std=True)
    _, mean, std = answers(X, y * scale)
    assert_allclose(mean / scale, expected[0], atol=1e-6)
    assert_allclose(std / scale, expected[1], atol=1e-6)


def test_columns_far_from_the_origin():
    """At 1e12 neighbours still differ by 1e-4 of a unit, which is all that is lost."""
    expected = regressor().fit(X, y).predict(X)
    _, mean, _ = answers(X + 1e12, y)
    assert_allclose(mean, expected, atol=1e-2)


@pytest.mark.parametrize(
    "kernel",
    [gm.RBF(1.0), gm.Matern12(1.0), gm.Matern32(1.0), gm.Matern52(1.0), gm.RationalQuadratic(1.0)],
    ids=str,
)
def test_points_beyond_all_measure_get_the_prior(kernel):
    """The square of 1e300 is infinite, and infinity times exp(-infinity) no number."""
    gp = regressor(
        kernel=2.0 * kernel, noise=0.1, mean=gm.ConstantMean(5.0), normalize_y=False, optimize=False
    ).fit(X, y)
    mean, std = gp.predict([[1e300, -1e300, 0.0], [1e200, 0.0, 0.0]], return_std=True, target="f")
    assert_allclose(mean, 5.0)
    assert_allclose(std**2, 2.0)


@pytest.mark.parametrize("value", [1e6, 1e12, 1e20, 1e300])
@pytest.mark.parametrize("kernel", [gm.RBF(1.0), gm.Cosine(3.0) + gm.Matern12(1.0)], ids=str)
def test_a_row_far_away_does_not_disturb_its_neighbours(kernel, value):
    """Rows are computed together, in tiles; one at 1e20 must not make the others round to one place."""
    gp = regressor(kernel=kernel, noise=0.1, optimize=False).fit(X, y)
    places = np.random.default_rng(1).normal(size=(7, 3))
    mean, cov = gp.predict(places, return_cov=True)
    for far in range(7):
        others = np.arange(7) != far
        moved = places.copy()
        moved[far] = value
        disturbed, disturbed_cov = gp.predict(moved, return_cov=True)
        assert_allclose(disturbed[others], mean[others], rtol=1e-10, atol=1e-12)
        assert_allclose(
            disturbed_cov[np.ix_(others, others)], cov[np.ix_(others, others)], rtol=1e-10, atol=1e-12
        )


def test_predictions_that_overflow_are_refused_with_their_row():
    gp = regressor(kernel=gm.Polynomial(2), noise=0.1, optimize=False).fit(X, y)
    for settings in ({}, {"return_std": True}, {"return_cov": True}):
        with pytest.raises(InputError, match=r"row 1 of X.*size 1e\+300.*units"):
            gp.predict([[0.0, 0.0, 0.0], [1e300, 1e300, -1e300]], **settings)


def test_a_kernel_that_overflows_on_the_data_is_refused_with_the_row():
    with pytest.raises(InputError, match=r"Column 'x0' has 1e\+200 in row 2.*other units"):
        regressor(kernel=gm.Linear(1.0), noise=0.1, optimize=False).fit(changed(X, (2, 0), 1e200), y)


@pytest.mark.parametrize("container", ["numbers as text", "fractions", "huge whole numbers"])
def test_objects_that_are_numbers(container):
    tables = {
        "numbers as text": X.astype(str),
        "fractions": np.array([[Fraction(float(v)) for v in row] for row in X], dtype=object),
        "huge whole numbers": np.array([[int(v * 1e15) * 10**20 for v in row] for row in X], dtype=object),
    }
    answers(tables[container], y)


# Equal rows and no noise. -----------------------------------------------------------------------------------


def test_equal_rows_with_equal_y_and_no_noise():
    table, target = X[[0, 1, 2, 0, 0]], y[[0, 1, 2, 0, 0]]
    _, mean, std = answers(table, target, noise=gm.fixed(0))
    assert_allclose(mean, target, rtol=1e-4, atol=1e-5)
    assert np.all(std < 1e-3)


def test_equal_rows_with_different_y_and_no_noise_are_refused():
    with pytest.raises(
        InputError, match=r"Rows 1 and 4 of X are equal but y differs by 0\.5 while noise is fixed at 0"
    ) as caught:
        regressor(noise=gm.fixed(0)).fit(X[[0, 1, 2, 3, 1]], [0.0, 1.0, 2.0, 3.0, 1.5])
    assert "noise=0.01" in str(caught.value)


def test_equal_rows_with_different_y_are_explained_by_known_noise():
    gp = regressor(kernel=gm.RBF(1.0), noise=gm.fixed(0), optimize=False)
    mean = gp.fit(X[[0, 1, 1]], [0.0, 1.0, 2.0], noise_var=[0.0, 0.1, 0.1]).predict(X[[1]])
    assert 1.0 < mean[0] < 2.0
    with pytest.raises(InputError, match="Rows 0 and 2"):
        gp.fit(X[[1, 0, 1]], [0.0, 1.0, 2.0], noise_var=[0.0, 0.1, 0.0])


def test_equal_rows_with_different_y_when_noise_is_learned():
    table = np.repeat(X[:6], 4, axis=0)
    target = np.repeat(y[:6], 4) + np.random.default_rng(2).normal(size=24)
    gp, _, _ = answers(table, target)
    assert 0.2 < gp.noise_ < 5


def test_noise_of_zero_means_no_noise():
    gp = regressor(noise=0).fit(X, y)
    assert gp.noise_ == 0
    assert_allclose(gp.predict(X), y, rtol=1e-5, atol=1e-6)


# Settings that cannot be. -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "nystroem"}, ["method='nystroem'", '"exact"']),
        ({"method": 3}, ["method=3"]),
        ({"mean": "quadratic"}, ["mean='quadratic'", '"linear"']),
        ({"mean": 3}, ["mean=3"]),
        ({"mean": gm.LinearMean(0.0, [1.0, 2.0])}, ["mean.slope has shape (2,)", "(3,)"]),
        ({"mean": gm.ConstantMean([1.0, 2.0])}, ["mean.value has shape (2,)", "one number"]),
        ({"noise": -1}, ["noise=-1 must be a variance", "gramian.fixed(0.01)"]),
        ({"noise": np.nan}, ["noise=nan must be a variance"]),
        ({"noise": "loud"}, ["noise='loud' must be a variance"]),
        ({"noise": True}, ["noise=True must be a variance"]),
        ({"noise": gm.fixed(-1)}, ["must not be negative", "-1"]),
        ({"noise": gm.fixed([0.1, 0.2])}, ["noise has 2 variances", "1 output", "noise_var"]),
        ({"kernel": {"RBF"}}, ["kernel must be a gramian kernel", "{'RBF'}", "from_sklearn", '"rbf"']),
        ({"kernel": "RFB"}, ["'RFB' is no word for a kernel", 'Did you mean "rbf"?']),
        ({"kernel": gm.RBF}, ["kernel must be a gramian kernel"]),
        ({"kernel": [gm.RBF(1.0), gm.RBF(2.0)]}, ["2 kernels were given", "k1 + k2", "Heteroscedastic()"]),
        ({"kernel": gm.RBF([1.0, 2.0])}, ["lengthscale has 2 values", "3 columns (x0, x1, x2)", ".on("]),
        ({"kernel": gm.RBF(1.0).on("wind")}, ["'wind'", "x0, x1, x2"]),
        ({"kernel": gm.RBF(1.0).on(5)}, ["no column 5", "3"]),
        ({"n_restarts": -1}, ["n_restarts=-1"]),
        ({"n_restarts": 1.5}, ["n_restarts=1.5"]),
        ({"n_restarts": "many"}, ["n_restarts='many'"]),
        ({"time_limit": 0}, ["time_limit=0", "positive"]),
        ({"time_limit": -1.0}, ["time_limit=-1.0"]),
        ({"time_limit": "1 s"}, ["time_limit='1 s'"]),
        ({"time_limit": np.nan}, ["time_limit=nan"]),
        ({"memory_limit": "2XB"}, ["memory_limit='2XB'", '"2GB"']),
        ({"memory_limit": "lots"}, ["memory_limit='lots'"]),
        ({"memory_limit": -5}, ["memory_limit=-5"]),
        ({"memory_limit": [1]}, ["memory_limit=[1]"]),
        ({"memory_limit": True}, ["memory_limit=True"]),
        ({"random_state": "a", "n_restarts": 1}, ["random_state='a'", "whole number"]),
        ({"random_state": -1, "n_restarts": 1}, ["random_state=-1"]),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, dict) else "",
)
def test_impossible_settings(settings, words):
    with pytest.raises(ParameterError) as caught:
        regressor(**settings).fit(X, y)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("noise_var", "words"),
    [
        (-1.0, ["-1.0 in row 0"]),
        (changed(np.ones(N), 3, -2), ["-2.0 in row 3"]),
        (changed(np.ones(N), 3, np.nan), ["nan in row 3"]),
        (changed(np.ones(N), 3, np.inf), ["inf in row 3"]),
        ([1.0, 2.0], ["shape (2,)", "(20,)"]),
        (np.ones((N, 1)), ["shape (20, 1)"]),
        ("loud", ["text 'loud'", "one variance a row"]),
    ],
)
def test_impossible_noise_of_rows(noise_var, words):
    with pytest.raises(InputError, match="noise_var") as caught:
        regressor().fit(X, y, noise_var=noise_var)
    for word in words:
        assert word in str(caught.value)


def test_impossible_questions():
    gp = regressor(kernel=1.0 * gm.RBF(1.0), noise=0.01, optimize=False).fit(X, y)
    with pytest.raises(ParameterError, match="not both"):
        gp.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ParameterError, match=r"target='z'.*f"):
        gp.predict(X, target="z")
    with pytest.raises(ParameterError, match=r"theta has shape \(2,\), but this model has 4.*kernel\.scale"):
        gp.log_evidence([1.0, 2.0])
    with pytest.raises(ParameterError, match="number"):
        gp.log_evidence("a")
    with pytest.raises(ParameterError, match="finite"):
        gp.log_evidence(np.full(4, np.nan))
    with pytest.raises(ParameterError, match="finite"):
        gp.log_evidence(np.full(4, 800.0))  # exp(800) is beyond all numbers
    with pytest.raises(ParameterError, match="outside its bounds"):
        gp.log_evidence([0.0, 0.0, 0.0, 50.0])
    with pytest.raises(ParameterError, match="kernel must be a gramian kernel"):
        gm.GPRegressor({"RBF"}).predict(X)  # from the prior


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (pd.Series(["a", "b", pd.NA, "a"] * 5, dtype="string"), "NaN"),
        (pd.Series([0, 1, pd.NA, 1] * 5, dtype="Int64"), "NaN"),
        (pd.Series([True, False, pd.NA, True] * 5, dtype="boolean"), "NaN"),
        (["a", "b", None, "a"] * 5, "NaN"),
        (np.array([pd.NaT if i % 4 == 2 else "ab"[i % 2] for i in range(N)], dtype=object), "NaN"),
        (np.array(["2024-01-01", "2024-01-02", "NaT", "2024-01-01"] * 5, dtype="datetime64[D]"), "NaN"),
        ([0.0, 1.0, np.nan, 1.0] * 5, "NaN"),
        ([0.0, 1.0, np.inf, 1.0] * 5, "infinity"),
    ],
    ids=["string", "Int64", "boolean", "None", "NaT", "datetime64", "nan", "inf"],
)
def test_a_missing_label_is_named_by_its_row(labels, kind):
    with pytest.raises(InputError, match=rf"{kind}: row 2 has no label \(5 such in all\)"):
        gm.GPClassifier(missing="error").fit(X, labels)
    if kind == "NaN":
        gp = gm.GPClassifier(gm.RBF(1.0), optimize=False).fit(X, labels)
        assert gp.fitted_.n_rows == 15
        assert "5 of 20 rows have no target and were left out" in gp.summary()


@pytest.mark.parametrize(
    ("exposure", "message"),
    [
        ("days", r"exposure='days' is text.*exposure=table\['days'\]"),
        (
            ["1"] * 3 + ["long"] + ["2"] * (N - 4),
            r"'exposure' has the text 'long' in row 3.*one number a row",
        ),
        ([[1.0, 2.0], [3.0]], "exposure is no table"),
        (np.full(N, np.datetime64("2024-01-01")), "'exposure' holds dates"),
        (np.full(N, 1j), "'exposure' has complex numbers"),
        (changed(np.ones(N), 4, None), "exposure is nan in row 4; it must be positive"),
        (np.ones(3), r"exposure has shape \(3,\)"),
    ],
    ids=["name", "word", "ragged", "dates", "complex", "missing", "length"],
)
def test_an_exposure_that_is_none(exposure, message):
    with pytest.raises(InputError, match=message):
        regressor(likelihood=gm.Poisson()).fit(X, np.arange(N) % 3, exposure=exposure)


def test_weights_are_refused_and_no_one_is_told_that_they_are_supported():
    weights = np.ones(N)
    with pytest.raises(ParameterError, match=r"sample_weight is not supported.*Repeat a row.*noise_var"):
        regressor().fit(X, y, sample_weight=weights)
    with pytest.raises(ParameterError, match=r"sample_weight is not supported.*several times\.$"):
        regressor(likelihood=gm.StudentT()).fit(X, y, sample_weight=weights)
    with pytest.raises(
        ParameterError, match="fit does not know 'weights'; it takes X, y, noise_var and exposure"
    ):
        regressor().fit(X, y, weights=weights)
    regressor(kernel=1.0 * gm.RBF(1.0), noise=0.01, optimize=False).fit(X, y, sample_weight=None)
    assert not has_fit_parameter(gm.GPRegressor(), "sample_weight")


def test_all_errors_are_value_errors():
    for error in (InputError, ParameterError, NumericalError, gm.errors.MemoryLimitError):
        assert issubclass(error, GramianError)
        assert issubclass(error, ValueError)


# What predictions are held against. -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned():
    return gm.GPRegressor(gm.RBF(), noise=0.1, optimize=False).fit(X, y)


@pytest.fixture(scope="module")
def told_apart():
    return gm.GPClassifier(gm.RBF(), optimize=False).fit(X, LABELS)


@pytest.mark.parametrize("question", ["evaluate", "log_density", "score"])
@pytest.mark.parametrize(
    ("known", "words"),
    [
        (changed(y, 3, 1e200), r"1e\+200 in row 3, whose square"),
        (changed(y, 3, np.inf), "infinity: row 3"),
        (changed(y, 3, None), "NaN: row 3"),
        ([*y[:3], pd.NaT, *y[4:]], "NaN: row 3"),
        (changed(y, 3, "x"), "'x' in row 3"),
        (y + 1j, "Complex"),
        (y[:3], r"\[20, 3\]"),
        (np.column_stack([y, y]), r"y has shape \(20, 2\)"),
        ([[1.0, 2.0], [3.0]] * 10, "row 0 has 2 values, row 1 has 1"),
        (np.ma.masked_array(y, y > 0), "masked"),
        (None, "y is None"),
        ([], r"\[20, 0\]"),
    ],
)
def test_targets_that_nothing_can_be_held_against(learned, known, words, question):
    with pytest.raises(InputError, match=words):
        getattr(learned, question)(X, known)


LABELS = np.where(y > 0, "a", "b")


def relabelled(label):
    """Row 3 has another label."""
    labels = LABELS.astype(object)
    labels[3] = label
    return labels


@pytest.mark.parametrize("question", ["evaluate", "log_density", "score"])
@pytest.mark.parametrize(
    ("known", "words"),
    [
        (relabelled(None), "row 3 has no label"),
        (relabelled(pd.NaT), "row 3 has no label"),
        (relabelled(pd.NA), "row 3 has no label"),
        ([*LABELS[:3], ["a", "b"], *LABELS[4:]], "row 3 has 2"),
        (LABELS[:3], r"\[20, 3\]"),
        (np.column_stack([LABELS, LABELS]), r"y has shape \(20, 2\)"),
        (None, "y is None"),
        ([], r"\[20, 0\]"),
    ],
)
def test_labels_that_nothing_can_be_held_against(told_apart, known, words, question):
    with pytest.raises(InputError, match=words):
        getattr(told_apart, question)(X, known)


@pytest.mark.parametrize("label", ["c", 1, True, b"c", np.datetime64("2020-01-01"), object()])
def test_a_label_that_was_never_seen_is_never_right(told_apart, label):
    right = told_apart.predict(X) == LABELS
    right[3] = False
    assert told_apart.score(X, relabelled(label)) == np.mean(right)
    with pytest.raises(InputError, match="none to train on"):
        told_apart.evaluate(X, relabelled(label))


def test_a_target_far_from_all_has_a_density_too(learned):
    """1e149 under a standard deviation of about 1: its logarithm is near -1e298, and no warning is told."""
    density = learned.log_density(X, changed(y, 3, 1e149))
    assert np.argmin(density) == 3
    assert density[3] < -1e290


def test_labels_too_large_for_whole_numbers_are_labels():
    large = np.where(y > 0, 1e300, -1e300)
    assert set(gm.GPClassifier(gm.RBF(), optimize=False).fit(X, large).predict(X)) <= {1e300, -1e300}
