"""Which columns matter: shares of functions whose variances are known."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gramian as gm
from gramian.errors import ParameterError
from gramian.report.relevance import ROWS, affordable, relevance


def test_shares_of_a_function_with_an_interaction():
    """m = 3 a + b + 2 a b + 0 c of independent columns with mean 0 and variance 1: V = 9 + 1 + 4. With 20,000
    rows five standard errors are 0.04."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-np.sqrt(3), np.sqrt(3), (5000, 3))
    found = relevance(lambda Z: 3 * Z[:, :1] + Z[:, 1:2] + 2 * Z[:, :1] * Z[:, 1:2], X, "abc", 20_000)
    assert [row.name for row in found] == ["a", "b", "c"]
    assert_allclose([row.total for row in found], [13 / 14, 5 / 14, 0], atol=0.04)
    assert_allclose([row.first for row in found], [9 / 14, 1 / 14, 0], atol=0.04)
    assert found["c"] == 0


def test_columns_that_go_together_are_taken_apart():
    """Equal columns have half of a sum each, though each tells the other in the data."""
    x = np.random.default_rng(0).standard_normal(3000)
    found = relevance(lambda Z: Z[:, :1] + Z[:, 1:], np.column_stack([x, x]), "ab", 10_000)
    assert_allclose(list(found.to_dict().values()), 0.5, atol=0.05)


def test_a_constant_has_no_shares():
    found = relevance(lambda Z: np.ones((len(Z), 1)), np.random.default_rng(0).random((20, 2)), "ab")
    assert list(found.to_dict().values()) == [0, 0]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.uniform(-2, 2, (60, 3)), columns=["much", "little", "none"])
    table["site"] = np.array(["north", "south"])[np.arange(60) % 2]
    return table, np.sin(table["much"]) + 0.1 * table["little"] + 0.3 * (table["site"] == "south")


def test_a_regressor_says_which_columns_matter(frame):
    X, y = frame
    gp = gm.GPRegressor(n_restarts=0).fit(X, y)
    found = gp.relevance()
    assert found.rows[0].name == "much"
    assert found["much"] > 0.6 > found["site"] > 0.02 > found["none"]
    assert "much" in str(found).splitlines()[1]
    assert "<td>much</td>" in found._repr_html_()
    line = next(line for line in gp.summary().splitlines() if line.startswith("  columns"))
    assert line.startswith("  columns   much ")
    with pytest.raises(KeyError, match="there are much"):
        found["else"]
    with pytest.raises(ParameterError, match="from 2 on"):
        gp.relevance(1)


def test_classifiers_and_models_without_rows(frame, tmp_path):
    X, y = frame
    X, labels = X[["much", "little"]], np.where(y > 0.5, "a", np.where(y < -0.5, "b", "c"))
    for multiclass in ("softmax", "ovr"):
        gp = gm.GPClassifier(4.0 * gm.RBF([1.0, 1.0]), multiclass=multiclass, optimize=False).fit(X, labels)
        assert gp.relevance().rows[0].name == "much"
    sparse = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), method="nystrom", optimize=False).fit(X, y)
    sparse.save(tmp_path / "m.gm")
    assert gm.load(tmp_path / "m.gm").relevance().rows[0].name == "much"  # from its landmarks


def test_one_column_needs_no_line(frame):
    X, y = frame
    assert "  columns" not in gm.GPRegressor(optimize=False).fit(X[["much"]], y).summary()


def test_the_picture_has_a_bar_for_each_column(frame):
    X, y = frame
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), optimize=False).fit(X[["little", "much"]], y)
    figure = gp.plot_relevance()
    (axis,) = figure.axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["much", "little"]
    assert len(axis.patches) == 4
    assert gp.plot_relevance(axis) is figure


def test_memory_does_not_grow_with_the_square_of_the_columns():
    """Points of one column at a time: all at once took rows x columns^2 numbers, 33 MB here."""
    X = np.random.default_rng(0).normal(size=(50, 180))
    tracemalloc.start()
    try:
        relevance(lambda Z: Z[:, :1].copy(), X, [f"x{j}" for j in range(180)], 128)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6


def test_a_summary_of_very_many_columns_does_without():
    assert affordable(2, 100) == ROWS
    assert affordable(2, 3000) == 0
