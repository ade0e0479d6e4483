"""Lengthscales that a part of the rows sent away."""

import numpy as np
import pytest

import gramian as gm
from gramian.fitting.progress import Report
from gramian.fitting.reach import FAR, within_reach
from gramian.inference import Model, closed
from gramian.likelihoods import Gaussian
from gramian.means import ZeroMean

X = np.random.default_rng(0).standard_normal((200, 3)) * [1.0, 10.0, 0.0]


def reached(kernel):
    return within_reach(Model(kernel, ZeroMean(), Gaussian(0.1)), X).kernel


def test_only_far_ones_come_back_each_in_the_units_of_its_column():
    limit = FAR * np.sqrt(3) * np.std(X, axis=0)
    found = reached(2.0 * gm.RBF([1e6, 3.0, 1e6])).parameters()["lengthscale"].value
    np.testing.assert_allclose(found, [limit[0], 3.0, 1e6])  # a constant column says nothing, and stays


def test_columns_of_sums_and_products():
    kernel = gm.Matern52([1e6]).on(1) * gm.RBF([1e6, 1e6]).on(0, 1) + gm.Linear()
    found = [v.value for path, v in reached(kernel).parameters().items() if "lengthscale" in path]
    spread = np.std(X, axis=0)
    np.testing.assert_allclose(np.concatenate(found), [FAR * spread[1], *(FAR * np.sqrt(2) * spread[:2])])


def test_a_column_that_is_constant_but_for_rounding_stays():
    """As a column that is zero in these rows is after it was standardised."""
    rows = np.column_stack([X[:, 0], 0.3 + 1e-16 * np.sign(X[:, 1])])
    assert np.std(rows[:, 1]) > 0
    found = within_reach(Model(gm.RBF([1.0, 4.0]), ZeroMean(), Gaussian(0.1)), rows).kernel
    assert found.parameters()["lengthscale"].value[1] == 4.0


@pytest.mark.parametrize(
    "kernel",
    [gm.RBF([1.0, 2.0, 3.0]), gm.RBF(gm.fixed([1e6, 1e6, 1e6])), gm.RBF(1e6)],
    ids=["near", "fixed", "one for all"],
)
def test_the_rest_stays(kernel):
    model = Model(kernel, ZeroMean(), Gaussian(0.1))
    assert within_reach(model, X) is model


def test_bounds_are_kept():
    bounded = gm.RBF(gm.param([1e6, 1e6, 1e6], bounds=(1e3, 1e7)))
    np.testing.assert_allclose(reached(bounded).parameters()["lengthscale"].value, [1e3, 1e3, 1e6])


def test_a_search_on_more_rows_finds_a_column_that_few_did_not(monkeypatch):
    """A weak effect of one column, lost on 40 rows; starting from a lengthscale of 1e8 the search on 400
    would never see it."""
    from gramian.fitting import stages

    rng = np.random.default_rng(3)
    Z = rng.standard_normal((400, 2))
    y = np.sin(2 * Z[:, 0]) + 0.3 * np.sin(2 * Z[:, 1]) + 0.1 * rng.standard_normal(400)
    model = Model(1.0 * gm.RBF([1.0, 1e8]), ZeroMean(), Gaussian(0.1))
    data = stages.Data(Z, y[:, None], np.ones(1))
    monkeypatch.setattr(stages, "parts", lambda *_: [(closed(gm.Exact()), 40), (closed(gm.Exact()), 400)])
    fitted = stages.fit(model, data, closed(gm.Exact()), 0, rng, Report())
    assert fitted.model.kernel.parameters()["lengthscale"].value[1] < 5
    monkeypatch.setattr(stages, "within_reach", lambda model, _: model)
    lost = stages.fit(model, data, closed(gm.Exact()), 0, rng, Report())
    assert lost.model.kernel.parameters()["lengthscale"].value[1] > 1e3


def test_columns_whose_squares_leave_the_range_of_numbers():
    limit = FAR * np.sqrt(3) * np.std(X, axis=0)
    far = within_reach(Model(gm.RBF([1e206, 3e200, 1e206]), ZeroMean(), Gaussian(0.1)), 1e200 * X).kernel
    found = far.parameters()["lengthscale"].value / 1e200
    np.testing.assert_allclose(found, [limit[0], 3.0, 1e6])
