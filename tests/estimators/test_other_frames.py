"""Tables of polars, Arrow and DuckDB, and a target that is named: what they give is what pandas gives."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.errors import InputError

N = 24
COLUMNS = {
    "a": [float(k) if k % 7 else None for k in range(N)],
    "k": list(range(N)),
    "ok": [k % 3 == 0 for k in range(N)],
    "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=k) for k in range(N)],
    "at": [datetime.datetime(2024, 1, 1, 5) + datetime.timedelta(hours=7 * k) for k in range(N)],
    "site": ["uvw"[k % 3] if k != 5 else None for k in range(N)],
    "y": [float(k % 5) for k in range(N)],
}


def polars(lazy: bool = False) -> Any:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(COLUMNS)
    return frame.lazy() if lazy else frame


def arrow() -> Any:
    return pytest.importorskip("pyarrow").table(COLUMNS)


class Stream:
    """What has nothing but Arrow's stream."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return arrow().__arrow_c_stream__(requested_schema)


def dataset() -> Any:
    return pytest.importorskip("pyarrow.dataset").dataset(arrow())


def duckdb() -> Any:
    db = pytest.importorskip("duckdb")
    table = arrow()
    return db.from_arrow(table)


MADE = {
    "polars": polars,
    "polars, lazy": lambda: polars(True),
    "Arrow": arrow,
    "a stream of Arrow": Stream,
    "a data set of Arrow": dataset,
    "DuckDB": duckdb,
}


def model() -> gm.GPRegressor:
    return gm.GPRegressor(noise=0.1, optimize=False)


@pytest.mark.parametrize("name", MADE)
def test_other_frames_are_read_as_pandas_is(name):
    table = MADE[name]()
    expected = model().fit(pd.DataFrame(COLUMNS), "y")
    gp = model().fit(table, "y")
    assert gp.fitted_.columns == expected.fitted_.columns
    np.testing.assert_array_equal(gp.fitted_.rows.X, expected.fitted_.rows.X)
    np.testing.assert_array_equal(gp.predict(table), expected.predict(pd.DataFrame(COLUMNS)))


def test_categories_of_polars_and_arrow():
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    words = ["u", "v", None, "w"] * 3
    numbers = np.arange(12.0)
    tables = [
        pl.DataFrame({"s": pl.Series(words, dtype=pl.Categorical), "x": numbers}),
        pl.DataFrame({"s": pl.Series(words, dtype=pl.Enum(["w", "v", "u"])), "x": numbers}),
        pa.table({"s": pa.array(words).dictionary_encode(), "x": numbers}),
    ]
    for table in tables:
        gp = model().fit(table, np.arange(12.0))
        assert gp.fitted_.columns.categories == {0: ("u", "v", "w")}


def test_a_target_that_is_named_is_no_feature():
    frame = pd.DataFrame(COLUMNS).dropna()
    by_name = model().fit(frame, "y")
    given = model().fit(frame.drop(columns="y"), frame["y"])
    np.testing.assert_array_equal(by_name.fitted_.rows.X, given.fitted_.rows.X)
    np.testing.assert_array_equal(by_name.predict(frame), given.predict(frame.drop(columns="y")))
    assert by_name.fitted_.columns.targets == ("y",)
    assert by_name.plan(frame, "y").columns == 6
    both = model().fit(frame, ["y", "k"])
    assert both.predict(frame).shape == (len(frame), 2)
    with pytest.raises(InputError, match=r"X has no column 'z' for the target\. It has: a, k, ok"):
        model().fit(frame, "z")
    with pytest.raises(InputError, match="no column left to learn from"):
        model().fit(frame[["y"]], "y")
    with pytest.raises(InputError, match="The target 'site' holds 3 categories, where numbers belong"):
        model().fit(frame, "site")


def test_labels_by_name():
    frame = pd.DataFrame(COLUMNS)
    gp = gm.GPClassifier(gm.RBF(1.0).on("k"), optimize=False).fit(frame[["k", "site"]], "site")
    assert list(gp.classes_) == ["u", "v", "w"]
    assert gp.fitted_.n_rows == N - 1  # one has no label
    assert gp.predict(frame[["k", "site"]]).shape == (N,)


def test_periods_are_their_first_days_and_arrow_may_name_its_zone_as_it_likes():
    y = COLUMNS["y"]
    months = pd.period_range("2024-01", periods=N, freq="M")
    gp = model().fit(pd.DataFrame({"month": months, "y": y}), "y")
    assert gp.fitted_.rows.X[:3, 0].tolist() == [0.0, 31.0, 60.0]
    pa = pytest.importorskip("pyarrow")
    for zone in ("utc", "Europe/Berlin"):
        at = pa.array(COLUMNS["at"], pa.timestamp("ns", tz=zone))
        gp = model().fit(pa.table({"at": at, "y": y}), "y")
        np.testing.assert_allclose(np.diff(gp.fitted_.rows.X[:, 0]), 7 / 24)


@pytest.mark.parametrize(
    ("columns", "target"), [([0, 1], 1), (pd.MultiIndex.from_tuples([("a", "x"), ("a", "y")]), ("a", "y"))]
)
def test_a_target_may_be_called_by_a_number_or_several_words(columns, target):
    table = np.column_stack([COLUMNS["k"], COLUMNS["y"]])
    frame = pd.DataFrame(table, columns=columns)
    gp = model().fit(frame, target)
    expected = model().fit(table[:, :1], table[:, 1]).predict(table[:, :1])
    np.testing.assert_allclose(gp.predict(frame), expected, rtol=1e-12)


def test_what_is_no_table_is_answered_with_one():
    twice = pd.DataFrame(np.zeros((3, 3)), columns=["a", "a", "y"])
    frame = pd.DataFrame({"x": COLUMNS["k"], "y": ["u", "v"] * (N // 2)})
    records = np.zeros(3, dtype=[("x", "f8"), ("y", "f8")])
    for X, y, told in (
        (twice, "y", "X has two columns named 'a'"),
        (frame, "y", "The target 'y' holds 2 categories, where numbers belong. .* GPClassifier"),
        ({"x": [1.0, 2.0]}, [1.0, 2.0], r"X is a dict of named columns. Give a table: pandas.DataFrame\(X\)"),
        ([{"x": 1.0}, {"x": 2.0}], [1.0, 2.0], "X is a list of records"),
        (records, [1.0, 2.0, 3.0], "X is a ndarray of named columns"),
        (frame["x"], frame["x"], "Expected 2D array, got 1D array"),
    ):
        with pytest.raises(InputError, match=told):
            model().fit(X, y)


def test_what_is_held_against_predictions_may_be_named_as_in_fit(tmp_path):
    frame = pd.DataFrame(COLUMNS).dropna()
    frame["label"] = np.where(frame["y"] > 2, "high", "low")
    frame.to_csv(tmp_path / "t.csv", index=False)
    for made, target in ((model(), "day"), (model(), "y"), (gm.GPClassifier(optimize=False), "label")):
        gp = made.fit(frame[["k", "ok", target]], target)
        late = frame[["k", "ok", target]].iloc[5:]
        if target == "day":
            y = (pd.to_datetime(late["day"]) - pd.Timestamp(frame["day"].min())).dt.days
        else:
            y = late[target]
        expected = gp.evaluate(late[["k", "ok"]], y)
        assert str(gp.evaluate(late, target)) == str(expected)
        np.testing.assert_array_equal(gp.log_density(late, target), gp.log_density(late[["k", "ok"]], y))
        late.to_csv(tmp_path / "late.csv", index=False)
        assert str(gp.evaluate(tmp_path / "late.csv", target)) == str(expected)


def test_tab_completion_shows_public_names():
    names = {name for name in dir(gm) if not name.startswith("__")} | {"__version__"}
    assert names == set(gm.__all__)


def test_kernels_to_compare_may_be_words():
    frame = pd.DataFrame({"k": COLUMNS["k"]})
    table = gm.compare_models(["rbf", gm.Matern32(1.0)], frame, COLUMNS["y"])
    assert "rbf" in str(table).lower()
