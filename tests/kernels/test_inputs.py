"""Kernels on some columns, by name and by index, and on a function of the inputs."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gramian.errors import InputError, ParameterError
from gramian.kernels import RBF, Categorical, Linear, Matern52, map_inputs, warp

rng = np.random.default_rng(6)
X = rng.standard_normal((8, 3))
table = pd.DataFrame(X, columns=["temp", "pressure", "flow"])


def test_columns_by_index_are_a_kernel_of_those_columns():
    assert_array_equal(RBF(0.5).on(2)(X), RBF(0.5)(X[:, [2]]))
    assert_array_equal(RBF([0.5, 2.0]).on(2, 0)(X), RBF([0.5, 2.0])(X[:, [2, 0]]))
    assert_array_equal(RBF(0.5).on(-1)(X), RBF(0.5).on(2)(X))
    assert_array_equal(RBF(0.5).on(np.int64(1))(X), RBF(0.5).on(1)(X))
    assert_array_equal(Linear().on(1).diag(X), X[:, 1] ** 2)


def test_columns_by_name_are_those_by_index():
    kernel = RBF([0.5, 2.0]).on("flow", "temp") * Matern52().on("pressure") + Linear()
    same = RBF([0.5, 2.0]).on(2, 0) * Matern52().on(1) + Linear()
    assert_array_equal(kernel(table), same(X))
    assert_array_equal(kernel(table, table[:3]), same(X, X[:3]))
    assert_array_equal(kernel.diag(table), same.diag(X))
    assert kernel.resolve(list(table.columns)) == same
    assert RBF().on(*np.array(["flow"])) == RBF().on("flow")


def test_columns_follow_their_names_in_any_order():
    kernel = RBF([0.5, 2.0]).on("flow", "temp")
    assert_array_equal(kernel(table[["flow", "pressure", "temp"]]), kernel(table))


def test_columns_of_columns():
    assert_array_equal(RBF().on(1).on(2, 0)(X), RBF()(X[:, [0]]))
    assert_array_equal(RBF().on("flow").on("temp", "flow")(table), RBF()(X[:, [2]]))
    with pytest.raises(ParameterError, match="there is no column 2; the data have 2"):
        RBF().on(2).on(0, 1)(X)


def test_categories_beside_numbers():
    mixed = table.assign(site=["north", "south"] * 4)
    K = (RBF(0.5).on("temp") * Categorical(0.3).on("site"))(mixed)
    alike = np.array(mixed.site)[:, None] == np.array(mixed.site)[None, :]
    assert_allclose(K, RBF(0.5)(X[:, [0]]) * np.where(alike, 1.0, 0.3), rtol=1e-15)
    # The codes of two tables are shared: a category of Z that X has not is none of X's.
    other = mixed[:2].assign(site=["west", "south"])
    assert_array_equal(Categorical(0.3).on("site")(mixed[:2], other), [[0.3, 0.3], [0.3, 1.0]])


def test_single_points_and_rows():
    x, z = X[0], X[1]
    value = RBF(0.5)(x, z)
    assert isinstance(value, float)
    assert value == RBF(0.5)(X)[1, 0]
    assert RBF(0.5)(X, z).shape == (8, 1)
    assert RBF(0.5)(np.empty((0, 3))).shape == (0, 0)


def test_functions_of_inputs():
    angle = np.linspace(0, 6, 8)[:, None]
    on_circle = map_inputs(RBF(0.5), lambda x: jnp.concatenate([jnp.sin(x), jnp.cos(x)]))
    assert_allclose(on_circle(angle), RBF(0.5)(np.hstack([np.sin(angle), np.cos(angle)])), rtol=1e-13)
    first = map_inputs(Linear(), lambda x: x[0])  # a single number is one column
    assert_array_equal(first(X), Linear()(X[:, :1]))
    assert_allclose(warp(RBF(0.5), lambda x: x[1])(X), X[:, 1:2] * RBF(0.5)(X) * X[:, 1], rtol=1e-14)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RBF().on(), ParameterError, "RBF().on() needs at least one column."),
        (lambda: RBF().on(1.5), ParameterError, "on(1.5): a column is a name or a whole number."),
        (lambda: RBF().on(True), ParameterError, "on(True): a column is a name or a whole number."),
        (lambda: RBF().on("a", "a"), ParameterError, "on('a', 'a') names a column twice."),
        (
            lambda: RBF().on(3)(X),
            ParameterError,
            "RBF().on(3): there is no column 3; the data have 3, numbered from 0.",
        ),
        (lambda: RBF().on(-4)(X), ParameterError, "RBF().on(-4): there is no column -4; the data have 3"),
        (
            lambda: RBF().on("wind")(table),
            ParameterError,
            "the data have no column 'wind'; they have temp, pressure, flow.",
        ),
        (
            lambda: RBF([1.0, 2.0]).on(0)(X),
            ParameterError,
            "lengthscale has 2 values, but the data have 1 columns (x0).",
        ),
        (
            lambda: RBF([1.0, 2.0])(table),
            ParameterError,
            "lengthscale has 2 values, but the data have 3 columns (temp, pressure, flow).",
        ),
        (
            lambda: RBF()(table.assign(site="n")),
            ParameterError,
            "RBF needs numbers, but column 'site' holds categories. Use Categorical().on",
        ),
        (
            lambda: RBF()(table, table[["flow", "temp", "pressure"]]),
            InputError,
            "X has the columns temp, pressure, flow, but Z has flow, temp,",
        ),
        (lambda: RBF()(table.assign(site="n"), X), InputError, "X has 4 columns, but Z has 3."),
    ],
)
def test_columns_that_do_not_fit_are_refused(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert message in str(caught.value)


def test_names_need_named_data():
    with pytest.raises(ParameterError, match="have no column"):
        RBF().on("temp")(X)
