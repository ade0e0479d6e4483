"""Kernels with names of their own: the same kernels, and what `components` calls their functions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gramian as gm
from gramian.errors import KernelTextError, ParameterError
from gramian.testing import check_kernel


def test_a_name_changes_no_value():
    X = np.random.default_rng(0).standard_normal((7, 2))
    for kernel in (gm.RBF(0.5), 2.0 * gm.Matern52([0.5, 1.0]), gm.Linear().on(1), gm.RBF() * gm.Linear()):
        named = kernel.named("it")
        check_kernel(named, X)
        assert_array_equal(named(X), kernel(X))
        assert named.parameters().keys() == kernel.parameters().keys()
        assert named.resolve(["a", "b"]) == kernel.resolve(["a", "b"])


def test_the_title_is_that_of_the_only_part_that_has_one():
    trend = gm.Linear().named("trend")
    assert trend.title == "trend"
    assert (2.0 * trend).title == trend.on(0).title == (trend * gm.RBF()).title == "trend"
    assert (trend * gm.RBF().named("slow")).title == gm.RBF().title == ""


def test_text_has_the_name():
    kernel = (1.0 * gm.RBF(2.0)).named("slow's") + 0.5 * gm.Periodic().named("season").on("t")
    assert gm.parse_kernel(repr(kernel)) == kernel
    with pytest.raises(KernelTextError, match=r"one name in quotes"):
        gm.parse_kernel("RBF().named('a', 'b')")
    with pytest.raises(KernelTextError, match="a name is text"):
        gm.parse_kernel("RBF().named(3)")
    with pytest.raises(KernelTextError, match=r"Only .on\(columns\) and .named\(text\)"):
        gm.parse_kernel("RBF().called('a')")


def test_a_sum_has_a_name_for_each_summand():
    with pytest.raises(ParameterError, match="Name its summands"):
        (gm.RBF() + gm.Linear()).named("both")
    with pytest.raises(ParameterError, match="a name is text"):
        gm.RBF().named("")


@pytest.fixture(scope="module")
def rows():
    t = np.linspace(0, 4, 40)
    return pd.DataFrame({"t": t}), 0.5 * t + np.sin(2 * np.pi * t)


def kernel(named: bool):
    parts = gm.Linear(), gm.RBF(0.5), gm.RBF(0.5)
    trend, wave, rest = (k.named(name) for k, name in zip(parts, "abb", strict=True)) if named else parts
    return 1.0 * trend + 2.0 * wave.on("t") + rest


def test_components_have_their_names(rows, tmp_path):
    X, y = rows
    named, plain = (
        gm.GPRegressor(kernel(which), noise=0.01, n_restarts=0).fit(X, y) for which in (True, False)
    )
    assert_allclose(named.predict(X), plain.predict(X), rtol=1e-9)
    assert named.parameters_.names == plain.parameters_.names
    assert list(named.components(X)) == ["a", "b", "b #2"]
    for own, other in zip(named.components(X).values(), plain.components(X).values(), strict=True):
        assert_allclose(own, other, rtol=1e-9, atol=1e-12)
    table = named.components_table(X)
    assert list(table) == ["a", "a_std", "b", "b_std", "b #2", "b #2_std"]
    assert_array_equal(table["b_std"], named.components(X)["b"][1])
    named.save(tmp_path / "m.gm")
    again = gm.load(tmp_path / "m.gm")
    assert again.kernel_ == named.kernel_
    assert list(again.components(X)) == list(named.components(X))


def test_components_of_several_outputs(rows):
    X, y = rows
    gp = gm.GPRegressor(kernel(True), noise=0.01, optimize=False)
    table = gp.fit(X, pd.DataFrame({"u": y, "v": -y})).components_table(X)
    assert list(table)[:4] == ["a_u", "a_v", "a_std_u", "a_std_v"]
    assert "a_0" in gp.fit(X, np.column_stack([y, -y])).components_table(X)
