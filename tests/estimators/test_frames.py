"""Tables with named columns: categories, dates, missing values, columns that moved or went missing between
fit and predict."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import InputError, InputTypeError, ParameterError

N = 30


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"temp": rng.normal(size=N), "count": rng.integers(0, 5, N), "site": rng.choice(["A", "B", "C"], N)}
    )


@pytest.fixture(scope="module")
def y(frame):
    return frame.temp.to_numpy() + 2.0 * (frame.site == "A").to_numpy()


@pytest.fixture(scope="module")
def gp(frame, y):
    return gm.GPRegressor(n_restarts=0).fit(frame, y)


def with_cell(frame, column, row, value, dtype=object):
    new = frame[column].astype(dtype).copy()
    new.iloc[row] = value
    return frame.assign(**{column: new})


def test_text_columns_become_categories(gp, frame, y):
    assert "Matern52" in str(gp.kernel_)
    assert ".on('temp', 'count')" in str(gp.kernel_)
    assert "Categorical" in str(gp.kernel_)
    assert ".on('site')" in str(gp.kernel_)
    assert_allclose(gp.predict(frame), y, atol=0.1)
    # A site is told from another: the same numbers at another site give another answer.
    moved = frame.assign(site=np.where(frame.site == "A", "B", "A"))
    assert np.all(np.abs(gp.predict(moved) - gp.predict(frame)) > 1)


def test_categories_are_coded_by_name_not_by_order(gp, frame):
    """A part of the table that lacks a category, or has them in another order, gets the same predictions."""
    whole = gp.predict(frame)
    for part in (frame[frame.site == "C"], frame.sort_values("site", ascending=False)):
        # rounding of sums over rows, times the condition of K + noise: noise is at its floor, 1e-8
        assert_allclose(gp.predict(part), whole[part.index], rtol=1e-8)


@pytest.mark.parametrize("kind", ["category", "category with an unused level", "string", "object"])
def test_text_of_any_type_is_the_same(kind, gp, frame, y):
    types = {
        "category": frame.site.astype("category"),
        "category with an unused level": (
            frame.site.astype("category").cat.add_categories("Z").cat.reorder_categories(["Z", "C", "B", "A"])
        ),
        "string": frame.site.astype("string"),
        "object": frame.site.astype(object),
    }
    other = frame.assign(site=types[kind])
    assert_allclose(gm.GPRegressor(n_restarts=0).fit(other, y).predict(other), gp.predict(frame), rtol=1e-9)
    assert_allclose(gp.predict(other), gp.predict(frame), rtol=1e-12)


@pytest.mark.parametrize(
    "kind", ["Int64", "Float64", "boolean", "bool", "float32", "int8", "text", "Decimal", "sparse"]
)
def test_numbers_of_any_type_are_the_same(kind, frame, y):
    values = (frame["count"] > 2) if kind in ("boolean", "bool") else frame["count"]
    types = {
        "text": lambda: values.astype(str),
        "Decimal": lambda: pd.Series([Decimal(int(v)) for v in values]),
        "sparse": lambda: pd.Series(pd.arrays.SparseArray(values.astype(float))),
    }
    plain = frame.assign(count=values.astype(float))
    other = frame.assign(count=types[kind]() if kind in types else values.astype(kind))
    settings = {"kernel": gm.RBF(1.0).on("temp", "count"), "noise": 0.1, "optimize": False}
    assert np.array_equal(
        gm.GPRegressor(**settings).fit(other, y).predict(other),
        gm.GPRegressor(**settings).fit(plain, y).predict(plain),
    )


def test_numbers_declared_as_categories(frame, y):
    table = frame[["temp"]].assign(month=(frame["count"] + 1).astype("category"))
    gp = gm.GPRegressor(n_restarts=0).fit(table, y)
    assert "Categorical" in str(gp.kernel_)
    told = r"rows with categories that the fit has not seen .*: month \(30\)"
    with pytest.warns(UserWarning, match=told):
        mean, std = gp.predict(table.assign(month=pd.Categorical([13] * N)), return_std=True)
    assert np.all(std > 1.5 * gp.predict(table, return_std=True)[1])
    assert np.all(np.isfinite(mean))


def test_only_categories(frame, y):
    gp = gm.GPRegressor(n_restarts=0).fit(frame[["site"]], y)
    by_site = pd.Series(gp.predict(frame[["site"]])).groupby(frame.site).mean()
    assert by_site["A"] > by_site["B"] + 1


MISSING = {
    "number": lambda f: with_cell(f, "temp", 4, np.nan, float),
    "whole number": lambda f: with_cell(f, "count", 4, pd.NA, "Int64"),
    "Float64": lambda f: with_cell(f, "temp", 4, pd.NA, "Float64"),
    "yes or no": lambda f: with_cell(f.assign(ok=True), "ok", 4, pd.NA, "boolean"),
    "category": lambda f: with_cell(f, "site", 4, None),
    "level": lambda f: with_cell(f, "site", 4, np.nan, "category"),
    "text among numbers": lambda f: with_cell(f, "temp", 4, "n/a"),
    "date": lambda f: f.assign(day=pd.date_range("2020", periods=N).where(np.arange(N) != 4)),
}


@pytest.mark.parametrize("name", MISSING)
def test_rows_with_missing_cells_are_used_left_out_or_refused(name, frame, y):
    table = MISSING[name](frame)
    settings = {"noise": 0.1, "optimize": False}
    gp = gm.GPRegressor(**settings).fit(table, y)
    assert gp.fitted_.n_rows == N
    assert gp.fitted_.columns.names[-1].endswith(" is missing")
    assert gp.n_features_in_ == table.shape[1]
    assert "1 of 30 rows has missing cells (" in gp.summary()
    assert np.all(np.isfinite(gp.predict(table, return_std=True)))
    dropped = gm.GPRegressor(missing="drop", **settings).fit(table, y)
    assert dropped.fitted_.n_rows == N - 1
    with pytest.raises(InputError, match="X contains NaN: row 4"):
        gm.GPRegressor(missing="error", **settings).fit(table, y)


def test_a_kernel_of_ones_own_sees_the_columns_that_were_given(frame, y):
    gp = gm.GPRegressor(gm.RBF([1.0, 2.0]).on("temp", "count"), noise=0.1, optimize=False)
    gp.fit(MISSING["number"](frame), y)
    assert gp.fitted_.columns.names == ("temp", "count", "site")


TIMES = {
    "dates": (lambda n: pd.date_range("2020", periods=n), "days since 2020-01-01", 1.0),
    "dates with a time zone": (
        lambda n: pd.date_range("2020", periods=n, tz="Europe/Berlin"),
        "days since 2019-12-31 23:00:00",
        1.0,
    ),
    "hours": (lambda n: pd.date_range("2020", periods=n, freq="h"), "hours since 2020-01-01", 1.0),
    "years": (lambda n: pd.date_range("2020", periods=n, freq="YS"), "years since 2020-01-01", None),
    "spans of time": (lambda n: pd.to_timedelta(np.arange(n), "D"), "spans of time in days", 1.0),
}


@pytest.mark.parametrize("name", TIMES)
def test_times_are_numbers_and_their_unit_is_told(name, frame, y):
    made, told, step = TIMES[name]
    table = frame.assign(day=made(N))
    gp = gm.GPRegressor(noise=0.1, optimize=False).fit(table, y)
    assert told in gp.summary()
    days = gp.read(table)[:, 3]
    if step is None:
        np.testing.assert_allclose(days, np.arange(N), atol=2 / 365)  # leap days
    else:
        np.testing.assert_array_equal(days, step * np.arange(N))
    # later rows are measured from the same start
    assert gp.read(table.iloc[5:])[0, 3] == days[5]


def test_ordered_categories_are_ranks(frame, y):
    kind = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
    table = frame.assign(level=pd.Series(["mid", "high", "low"] * 10, dtype=kind))
    gp = gm.GPRegressor(noise=0.1, optimize=False).fit(table, y)
    assert gp.read(table)[:3, 3].tolist() == [1.0, 2.0, 0.0]
    assert "level: ranks of low < mid < high" in gp.summary()


REFUSED = {
    "infinity": (
        lambda f: with_cell(f, "temp", 4, np.inf, float),
        ["X contains infinity", "row 4", "column 'temp'"],
    ),
    "text among numbers": (
        lambda f: with_cell(f, "temp", 7, "warm"),
        ["Row 7 of X, column 'temp'", "'warm' is not a number", "Correct it"],
    ),
    "complex numbers": (lambda f: f.assign(temp=f.temp + 1j), ["Column 'temp'", "complex"]),
    "two columns of one name": (
        lambda f: pd.concat([f, f[["temp"]]], axis=1),
        ["two columns named 'temp'", "Rename"],
    ),
    "no rows": (lambda f: f[:0], ["X has no rows"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_fit(name, frame, y):
    change, words = REFUSED[name]
    table = change(frame)
    with pytest.raises(InputError) as caught:
        gm.GPRegressor(n_restarts=0).fit(table, y[: len(table)])
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f.drop(columns="count"), ["no column 'count'", "temp, count, site"]),
        (lambda f: f.assign(extra=1.0), ["extra"]),
        (lambda f: f[["count", "temp", "site"]], ["same order"]),
        (lambda f: f.rename(columns={"temp": "Temp"}), ["no column 'temp'"]),
        (lambda f: with_cell(f, "temp", 2, "warm"), ["column 'temp'", "'warm'", "Row 2"]),
    ],
    ids=["a column missing", "a column more", "another order", "renamed", "text"],
)
def test_refused_in_predict(change, words, gp, frame):
    with pytest.raises(InputError) as caught:
        gp.predict(change(frame))
    for word in words:
        assert word in str(caught.value)


def test_names_that_are_not_all_text(frame, y):
    table = pd.DataFrame(frame[["temp", "count"]].to_numpy(dtype=float))
    assert gm.GPRegressor(gm.RBF(1.0), noise=0.1, optimize=False).fit(table, y).predict(table).shape == (N,)
    table.columns = ["temp", 1]
    with pytest.raises(InputTypeError, match="string"):
        gm.GPRegressor(gm.RBF(1.0)).fit(table, y)


def test_kernels_on_named_columns(frame, y):
    kernel = gm.RBF(1.0).on("temp") * gm.Categorical(0.3).on("site") + gm.Linear(0.1).on("count")
    gp = gm.GPRegressor(kernel, noise=0.1, optimize=False).fit(frame, y)
    codes = frame.assign(site=frame.site.map({"A": 0.0, "B": 1.0, "C": 2.0})).to_numpy(dtype=float)
    by_index = gm.GPRegressor(
        gm.RBF(1.0).on(0) * gm.Categorical(0.3).on(2) + gm.Linear(0.1).on(1), noise=0.1, optimize=False
    ).fit(codes, y)
    assert_allclose(gp.predict(frame), by_index.predict(codes), rtol=1e-12)
    assert "on('temp')" in str(gp.kernel_)
    assert list(gp.components(frame)) == [
        "RBF().on('temp') * Categorical(0.3).on('site')",
        "Linear(0.1).on('count')",
    ]


def test_kernels_that_do_not_fit_the_columns(frame, y):
    with pytest.raises(
        ParameterError,
        match=r"RBF needs numbers, but column 'site' holds categories.*Categorical\(\).on\(\"site\"\)",
    ):
        gm.GPRegressor(gm.RBF(1.0)).fit(frame, y)
    with pytest.raises(ParameterError, match="no column 'wind'; they have temp, count, site"):
        gm.GPRegressor(gm.RBF(1.0).on("wind")).fit(frame, y)


def test_an_array_of_text_after_a_frame(gp, frame):
    with pytest.warns(UserWarning, match="feature names"):
        values = gp.predict(frame.to_numpy(dtype=object))
    assert_allclose(values, gp.predict(frame), rtol=1e-12)


def test_y_as_a_series_or_a_frame(frame, y):
    settings = {"kernel": gm.RBF(1.0).on("temp"), "noise": 0.1, "optimize": False}
    expected = gm.GPRegressor(**settings).fit(frame, y).predict(frame)
    series = pd.Series(y, index=np.arange(100, 100 + N))
    assert np.array_equal(gm.GPRegressor(**settings).fit(frame, series).predict(frame), expected)
    both = gm.GPRegressor(**settings).fit(frame, pd.DataFrame({"u": y, "v": -y})).predict(frame)
    assert_allclose(both, np.column_stack([expected, -expected]), rtol=1e-9)
    gaps = series.astype("Float64").where(np.arange(N) != 4)
    assert gm.GPRegressor(**settings).fit(frame, gaps).fitted_.n_rows == N - 1
    with pytest.raises(InputError, match="y contains NaN: row 4"):
        gm.GPRegressor(missing="error", **settings).fit(frame, gaps)


def test_prior_on_a_frame(frame):
    mean, std = gm.GPRegressor().predict(frame, return_std=True)
    assert np.all(mean == 0)
    assert np.all(std > 0)
    draws = gm.GPRegressor(gm.RBF(1.0).on("temp") * gm.Categorical(0.5).on("site")).sample(
        frame, 2, random_state=0
    )
    assert draws.shape == (N, 2)


class Named:
    """What a library of tables other than pandas may give: an array with a name."""

    def __init__(self, values, name):
        self.values, self.name = values, name

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype, copy=copy)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (lambda y: pd.Series(y, name="price"), ("price",)),
        (lambda y: pd.DataFrame({"price": y}), ("price",)),
        (lambda y: pd.DataFrame({"price": y, "rent": 2 * y}), ("price", "rent")),
        (lambda y: Named(y, "price"), ("price",)),
        (lambda y: Named(y, ""), ()),
        (lambda y: pd.Series(y), ()),
        (lambda y: pd.Series(y, name="temp"), ()),  # that of a column which it was computed from
        (lambda y: pd.DataFrame(np.column_stack([y, y])), ()),
        (lambda y: y, ()),
        (lambda y: list(y), ()),
    ],
)
def test_the_names_of_targets_are_kept(given, names, frame, y, tmp_path):
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0).on("temp"), optimize=False).fit(frame, given(y))
    assert gp.fitted_.columns.targets == names
    gp.save(tmp_path / "m.gm")
    assert gm.load(tmp_path / "m.gm").fitted_.columns.targets == names
    assert gp.fit(frame, y).fitted_.columns.targets == ()  # none is left from the fit before


def test_a_target_is_the_first_of_a_likelihoods_columns(frame):
    both = pd.DataFrame({"accidents": np.arange(N) % 4, "days": 1.0 + np.arange(N)})
    gp = gm.GPRegressor(gm.RBF(1.0).on("temp"), likelihood=gm.Poisson(), optimize=False).fit(frame, both)
    assert gp.fitted_.columns.targets == ("accidents",)


def test_labels_of_files_and_of_binary_models_have_a_name(frame, tmp_path):
    label = pd.Series(["a", "b", "c"] * (N // 3), name="kind")
    for multiclass in ("softmax", "ovr"):
        gp = gm.GPClassifier(gm.RBF(1.0).on("temp"), multiclass=multiclass, optimize=False).fit(frame, label)
        gp.save(tmp_path / "m.gm")
        assert gm.load(tmp_path / "m.gm").fitted_.columns.targets == ("kind",)
    frame[["temp", "count"]].assign(level=1.0 + frame.temp).to_csv(tmp_path / "t.csv", index=False)
    gp = gm.GPRegressor(gm.RBF(1.0), optimize=False).fit(tmp_path / "t.csv", "level")
    assert gp.fitted_.columns.targets == ("level",)
