"""Numbers at the ends of their range: a fit works, or an error of ours names the column and the cure. There
is no warning of NumPy's."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import InputError

N = 20
HUGE = 10**400


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 2))
    return X, np.sin(X[:, 0])


def check(X, y, X_new=None, **settings):
    gp = gm.GPRegressor(**({"kernel": gm.RBF()} | settings)).fit(X, y)
    mean, std = gp.predict(X if X_new is None else X_new, return_std=True)
    assert np.isfinite(mean).all()
    assert np.isfinite(std).all()


def with_cell(X, value, dtype=float):
    changed = X.astype(dtype)
    changed[3, 1] = value
    return changed


@pytest.mark.parametrize("value", [1.7e308, -1.7e308, 5e301])
@pytest.mark.parametrize("estimator", [gm.GPRegressor(), gm.GPRegressor(gm.RBF()), gm.GPClassifier(gm.RBF())])
def test_a_cell_that_is_too_large(data, value, estimator):
    X, y = data
    with pytest.raises(InputError, match=r"Column 'x1' has .*e\+30\d in row 3, beyond 1e\+301.* x1 / 1e\+30"):
        estimator.fit(with_cell(X, value), y > 0 if hasattr(estimator, "predict_proba") else y)


def test_columns_that_are_too_large_or_too_narrow(data):
    X, y = data
    widest = X / np.max(np.abs(X)) * 1.7e308
    with pytest.raises(InputError, match=r"Column 'x0' has .*beyond 1e\+301.*other units: x0 / 1e\+308"):
        check(widest, y)
    with pytest.raises(InputError, match=r"Column 'x0' has 1\.7e\+308 in row 0"):
        check(np.full_like(X, 1.7e308), y)
    for scale in (1e-320, 1e-308):
        with pytest.raises(InputError, match=r"Column 'x0' has values that are .* apart, less than 1e-300"):
            check(X * scale, y)


def test_the_unit_of_the_message_is_one(data):
    """The cure that is given works."""
    X, y = data
    check(X / np.max(np.abs(X)) * 1.7e308 / 1e308, y)
    check(X * 1e-308 / 1e-308, y)


@pytest.mark.parametrize("scale", [1e-250, 1e-200, 1e-150, 1e150, 1e200, 1e250, 1e290])
def test_columns_within_the_range(data, scale):
    X, y = data
    one = X.copy()
    one[:, 0] *= scale
    check(X * scale, y, kernel=None)
    check(one, y, kernel=None)


def test_rows_to_predict_may_be_anywhere(data):
    X, y = data
    for value in (1.7e308, -1.7e308, 1e-320):
        check(X, y, with_cell(X, value))
    far = with_cell(X, 1.7e308)
    far[4, 1] = -1.7e308
    check(X, y, far)
    assert np.isfinite(gm.GPClassifier(gm.RBF()).fit(X, y > 0).predict_proba(far)).all()


@pytest.mark.parametrize("scale", [1e-320, 1e-308, 1e160, 1e308])
@pytest.mark.parametrize("likelihood", [None, "student_t", "heteroscedastic"])
def test_targets_at_the_ends_of_the_range(data, scale, likelihood):
    X, y = data
    with pytest.raises(InputError, match=r"y has values of size .* other units: y / 1e"):
        check(X, np.clip(y / np.max(np.abs(y)), -1, 1) * scale, likelihood=likelihood)


@pytest.mark.parametrize("as_list", [False, True])
def test_whole_numbers_beyond_all_floats(data, as_list):
    X, y = data
    table, targets = with_cell(X, HUGE, object), y.astype(object)
    targets[5] = -HUGE
    told = r"a number of about 1e\d{3,} is beyond the largest, 1\.8e308\. Give it in other units"
    with pytest.raises(InputError, match=f"Column 'x1', row 3: {told}"):
        check(table.tolist() if as_list else table, y)
    with pytest.raises(InputError, match=f"Column 'x1', row 3: {told}"):
        check(X, y, table.tolist() if as_list else table)
    with pytest.raises(InputError, match=f"Column 'y', row 5: {told}"):
        check(X, targets.tolist() if as_list else targets)
    with pytest.raises(InputError, match="beyond the largest"):
        gm.RBF()(table)
    with pytest.raises(InputError, match=f"Column 'x1', row 3: {told}"):
        check(with_cell(X, Fraction(HUGE), object), y)


def test_numbers_of_other_types(data):
    X, y = data
    for kind in (Decimal, Fraction):
        check([[kind(v) for v in row] for row in X.tolist()], [kind(v) for v in y.tolist()])
    with pytest.raises(InputError, match="NaN"):
        gm.GPRegressor(missing="error").fit(with_cell(X, Decimal("sNaN"), object), y)
    for dtype in (np.uint8, np.int64, np.uint64, np.float16, np.float32, np.longdouble):
        check((50 * np.abs(X)).astype(dtype), (50 * np.abs(y)).astype(dtype))


@pytest.mark.skipif(np.finfo(np.longdouble).max < np.longdouble("1e4000"), reason="longdouble is a double")
def test_long_numbers_beyond_all_floats(data):
    X, y = data
    with pytest.raises(InputError, match="X contains infinity: row 3, column 'x1'"):
        check(with_cell(X, np.longdouble("1e4000"), np.longdouble), y)
    with pytest.raises(InputError, match="y contains infinity"):
        check(X, y.astype(np.longdouble) * np.longdouble("1e4000"))


def test_complex_numbers_are_refused(data):
    X, y = data
    for table in (X + 1j, (X + 1j).astype(object), (X + 1j).astype(object).tolist()):
        with pytest.raises(InputError, match=r"[Cc]omplex"):
            check(table, y)
    for targets in (y + 1j, (y + 1j).astype(object)):
        with pytest.raises(InputError, match=r"[Cc]omplex"):
            check(X, targets)


@pytest.mark.parametrize(
    ("likelihood", "value", "told"),
    [
        ("gamma", 1e200, "numbers from 1e-100 to 1e100"),
        ("gamma", 1e-200, "numbers from 1e-100 to 1e100"),
        ("gamma", 1e308, "numbers from 1e-100 to 1e100"),
        ("gamma", 0.0, "positive numbers"),
        ("poisson", 1e300, r"counts end at 1e\+18"),
        ("negative_binomial", 1e300, r"counts end at 1e\+18"),
        ("beta", 0.0, "between 0 and 1"),
        ("beta", 1.0, "between 0 and 1"),
    ],
)
def test_observations_that_a_likelihood_has_no_numbers_for(data, likelihood, value, told):
    X, _ = data
    y = np.full(N, 0.5 if likelihood == "beta" else 1.0)
    y[3] = value
    with pytest.raises(InputError, match=rf"y has .* in row 3: .*{told}"):
        check(X, y, likelihood=likelihood)


def test_observations_close_to_the_ends(data):
    X, y = data
    check(X, np.exp(y) * 1e90, likelihood="gamma")
    check(X, np.round(np.exp(y) * 1e15), likelihood="poisson")
    check(X, np.full(N, 1e-300), likelihood="beta")


def test_a_student_with_hardly_any_degrees_of_freedom(data):
    """Mixing variances beyond all numbers are cut where they are as good as infinite."""
    X, y = data
    t = gm.likelihoods.StudentT(scale=0.1, df=0.05)
    gp = gm.GPRegressor(gm.RBF(), likelihood=t, optimize=False).fit(X, y)
    gp.predict(X, return_std=True)
    assert np.isfinite(gp.predict(X)).all()


# Kernels in other units than the columns. -------------------------------------------------------------------


def blocks_of(X, y):
    return lambda: iter([(X[:10], y[:10]), (X[10:], y[10:])])


def file_of(X, y, tmp_path):
    head = ",".join(f"x{j}" for j in range(X.shape[1]))
    np.savetxt(tmp_path / "d.csv", np.column_stack([X, y]), delimiter=",", header=f"{head},y", comments="")
    return tmp_path / "d.csv"


@pytest.mark.parametrize("scale", [1e155, 1e160, 1e300])
@pytest.mark.parametrize(
    "kernel", [gm.RBF(1.0), gm.Linear(1.0), gm.Matern32(1.0).on(0) + gm.RBF([1.0, 1.0, 1.0]).on(0, 1, 2)]
)
def test_values_that_a_given_kernel_cannot_square_are_told_by_their_column(scale, kernel, tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1, 2, (20, 3)), rng.normal(size=20)
    X[:, 1] *= scale
    told = r"Column 'x1' has .*e\+\d+ in row \d+, .* lengthscales of .*Give the column in other units \(x1 /"
    for method in ("exact", "vfe"):
        gp = gm.GPRegressor(kernel, method=method, optimize=False)
        for data in ((X, y), (blocks_of(X, y),), (file_of(X, y, tmp_path), "y")):
            with pytest.raises(InputError, match=told):
                gp.fit(*data)
    for many in ("softmax", "ovr"):
        with pytest.raises(InputError, match=told):
            gm.GPClassifier(kernel, multiclass=many, optimize=False).fit(X, np.arange(20) % 3)


def test_what_a_kernel_does_not_square_is_no_trouble():
    """A column that it does not see, and lengthscales of the column's size."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1, 2, (20, 2)), rng.normal(size=20)
    plain = gm.GPRegressor(gm.RBF(1.0).on(0), optimize=False).fit(X, y).predict(X)
    X[:, 1] *= 1e200
    assert_allclose(gm.GPRegressor(gm.RBF(1.0).on(0), optimize=False).fit(X, y).predict(X), plain)
    gp = gm.GPRegressor(gm.RBF([1.0, 1e200]), noise=0.1, optimize=False).fit(X, y)
    assert np.isfinite(gp.predict(X)).all()


def test_columns_beyond_the_range_of_files_and_blocks(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.uniform(1, 2, (20, 2)), rng.normal(size=20)
    X[:, 1] *= 1e302
    for data in ((blocks_of(X, y),), (file_of(X, y, tmp_path), "y")):
        with pytest.raises(InputError, match=r"Column 'x1' has .* in row \d+, beyond 1e\+301"):
            gm.GPRegressor().fit(*data)


@pytest.mark.parametrize("noise", [HUGE, [0.1, HUGE], float("inf"), float("nan"), -HUGE])
def test_a_noise_beyond_all_numbers(data, noise):
    with pytest.raises(gm.errors.ParameterError, match="must be a variance"):
        gm.GPRegressor("rbf", noise=noise).fit(*data)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
def test_labels_of_binary_models_are_shown_without_control_characters(data, multiclass):
    labels = np.array(["a\x1b[1m", "b", "c"])[np.arange(N) % 3]
    gp = gm.GPClassifier(gm.RBF(), multiclass=multiclass, optimize=False).fit(data[0], labels)
    assert "\x1b" not in f"{gp.summary()}{gp.parameters_}"
    assert "a\\x1b[1m against" in gp.summary()


def test_a_cell_of_a_page_is_not_repeated_whole(data):
    X, y = data
    cells = y.astype(object)
    cells[3] = "a" * 300_000
    with pytest.raises(
        InputError, match=r"Column 'y' has the text.* \.\.\. .*Give one number a row"
    ) as caught:
        check(X, cells)
    assert len(str(caught.value)) < 5000


def test_longer_numbers_beyond_all_floats_are_infinite(data):
    X, y = data
    with pytest.raises(InputError, match="infinity"):
        check(with_cell(X, np.longdouble("1e4000"), object), y)


def test_spans_of_time_among_numbers_are_refused(data):
    X, y = data
    with pytest.raises(InputError, match=r"row 3.*timedelta64"):
        check(with_cell(X, np.timedelta64(2, "h"), object), y)


def test_neighbours_of_far_columns_fill_gaps(data):
    X, y = data
    gappy = 1e160 * X
    gappy[3, 0] = np.nan
    check(gappy, y, kernel=None)


@pytest.mark.parametrize("likelihood", [None, "student_t"])
def test_who_is_sure_is_scored_too(likelihood):
    """Of no noise, or of a target far away: scores are the nearest numbers, without warnings."""
    X = np.linspace(0, 1, 5)[:, None]
    sure = gm.GPRegressor(gm.RBF(), noise=0.0, likelihood=likelihood, optimize=False)
    if likelihood is None:
        gp = sure.fit(X, X[:, 0])
        assert gp.evaluate(X, X[:, 0])["rmse"] < 1e-6
    else:
        gp = sure.set_params(noise=None).fit(X, X[:, 0])
    far = X[:, 0] + [0, 0, 1e149, 0, 0]
    assert gp.evaluate(X, far)["coverage95"] <= 0.8
