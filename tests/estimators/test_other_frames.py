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
    with pytest.raises(InputError, match="column 'site': 'v' is not a number"):
        model().fit(frame, "site")


def test_labels_by_name():
    frame = pd.DataFrame(COLUMNS)
    gp = gm.GPClassifier(gm.RBF(1.0).on("k"), optimize=False).fit(frame[["k", "site"]], "site")
    assert list(gp.classes_) == ["u", "v", "w"]
    assert gp.fitted_.n_rows == N - 1  # one has no label
    assert gp.predict(frame[["k", "site"]]).shape == (N,)
