"""Tables of very many columns: no step takes time with the square of their number. Such steps took minutes
for what takes seconds, so that a wide guard tells them."""

from __future__ import annotations

import time

import numpy as np
import pytest

from gramian.data.frames import Frame, without
from gramian.data.sources import open_source
from gramian.data.tables import closest, repeated
from gramian.data.tables.shared import check_names
from gramian.errors import TableError
from gramian.kernels import RBF
from gramian.params import Parameter
from gramian.params.priors import LogNormal
from gramian.params.space import ParameterSpace, ParameterTable

COLUMNS = 100_000


class Name(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_names_are_compared_about_once_each():
    names = [Name(f"x{j}") for j in range(3000)]
    Name.compared = 0
    assert repeated([*names, Name("x7")]) == ["x7"]
    assert Name.compared < 100
    without(Frame(dict.fromkeys(names, np.zeros(1))), names[:2999])
    assert Name.compared < 10_000


def test_names_that_are_there_twice_are_told():
    with pytest.raises(TableError, match=r"d\.csv: a, b is the name of more than one column"):
        check_names("d.csv", ["b", "a", "c", " a", "b"])


def test_a_table_of_many_columns_is_read_in_seconds(tmp_path):
    """Lines are longer than what is usually looked at to find the names."""
    path = tmp_path / "wide.csv"
    names = ",".join(f"x{j}" for j in range(COLUMNS))
    row = ",".join(str(j % 10) for j in range(COLUMNS))
    path.write_text(f"{names},y\n" + "".join(f"{row},{k}\n" for k in range(20)))
    began = time.monotonic()
    source = open_source(path, "y")
    assert source.X.shape == (20, COLUMNS)
    assert source.columns.names[-1] == f"x{COLUMNS - 1}"
    np.testing.assert_array_equal(source.X[7], np.arange(COLUMNS) % 10)
    with pytest.raises(TableError, match=r"no column 'X99999'; did you mean 'x99999'"):
        open_source(path, "X99999")
    assert time.monotonic() - began < 120  # it takes 10 s; a square of names took minutes


def test_a_suggestion_does_not_compare_long_texts():
    began = time.monotonic()
    assert closest("a" * 50_000, ["a" * 49_999, "b"]) is None
    assert time.monotonic() - began < 10


def test_parameters_of_many_entries_are_listed():
    began = time.monotonic()
    lengths = Parameter(np.ones(COLUMNS), prior=LogNormal(tuple(np.arange(float(COLUMNS))), 1.0))
    rows = ParameterTable.of({"lengthscale": lengths}).rows
    assert rows[-1].prior == "LogNormal(1e+05, 1)"
    assert rows[7].prior == "LogNormal(7, 1)"
    assert time.monotonic() - began < 60  # it takes 1 s; each entry read all 100,000 medians


def test_starting_points_of_more_parameters_than_sobol_points_have_dimensions():
    """More than 21,201."""
    space = ParameterSpace(RBF(np.ones(30_000)).parameters())
    first, second = space.restarts(2, np.random.default_rng(0))
    assert np.all(np.abs(first - space.theta) <= 2.0)
    assert not np.array_equal(first, second)
