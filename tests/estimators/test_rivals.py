"""Inducing points or neighbours: rows that are held out decide, with and without a time limit."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian import clock
from gramian.choose.plan import rates_for
from gramian.estimators import rivals
from gramian.fitting.budget import Budget
from gramian.fitting.progress import progress


def asked(monkeypatch, y, seconds=None):
    """What `nearer` says of 600 rows in two columns, of which y is a function."""
    monkeypatch.setattr(rivals, "FROM_ROWS", 500)
    X = np.random.default_rng(0).uniform(size=(600, 2))
    # at starting values: the searches are the rivals' own
    fitted = gm.GPRegressor("matern52", optimize=False).fit(X, y(X)).fitted_

    def budget(method, model, data):
        if seconds is None:
            return None
        size = (*data.X.shape, 1)
        rates = rates_for(method, size, clock.end() - clock.now())
        return Budget(clock.end(), rates.of(model.kernel, 2, method.at_points).seconds, size)

    with clock.until(None if seconds is None else clock.now() + seconds), progress(False) as report:
        rng = np.random.default_rng(0)
        return rivals.nearer(fitted.model, fitted.rows, 20, rng, report, budget)


def rough(X):
    return np.sin(60 * X[:, 0]) * np.cos(50 * X[:, 1])


@pytest.mark.parametrize("seconds", [None, 600.0])
def test_a_rough_function_is_known_by_its_neighbours(monkeypatch, seconds):
    method, reason = asked(monkeypatch, rough, seconds)
    assert method.name == "neighbours"
    assert "nats a row" in reason


def test_points_that_hold_a_function_stay(monkeypatch):
    assert asked(monkeypatch, lambda X: X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=len(X))) is None


def test_a_moment_is_not_spent_on_the_question(monkeypatch):
    monkeypatch.setattr(rivals.stages, "fit", lambda *_: pytest.fail("there is no time for a search"))
    assert asked(monkeypatch, rough, 10.0) is None
