"""A later stage that loses the noise or the lengthscales, though there is a better optimum."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import gramian as gm
from gramian.fitting import stages
from gramian.fitting.guard import TRIAL, guarded, lost
from gramian.fitting.lbfgs import Search
from gramian.fitting.objective import Objective
from gramian.inference import Model
from gramian.likelihoods import Gaussian
from gramian.means import ZeroMean
from gramian.params import param


def model(noise, lengthscale):
    return Model(1.0 * gm.RBF([lengthscale, 1.0]), ZeroMean(), Gaussian(param(noise, bounds=(1e-8, 1e4))))


@pytest.mark.parametrize(
    ("noise", "lengthscale", "what"),
    [
        (0.01, 1.0, ""),
        (0.001, 0.2, ""),
        (1e-8, 1.0, "the noise"),
        (1e-6, 1.0, "the noise"),
        (0.01, 0.01, "lengthscales"),
        (1e-8, 0.01, "the noise and lengthscales"),
    ],
)
def test_what_is_lost(noise, lengthscale, what):
    assert lost(model(0.01, 1.0), model(noise, lengthscale), 2) == what


def test_noise_of_one_output_is_lost():
    before, same, after = (model(noise, 1.0) for noise in ([0.01, 1.0], [0.02, 0.9], [0.01, 1e-4]))
    assert lost(before, same, 2) == ""
    assert lost(before, after, 2) == "the noise"


def test_noise_that_was_never_there_is_not_lost():
    assert lost(model(1e-8, 1.0), model(1e-8, 1.0), 2) == ""


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (300, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)


def test_a_stage_that_went_astray_is_done_again(data, monkeypatch):
    """Its search is made to end without noise; that from the stage before finds it, and is kept."""
    plain, searches = stages.maximise, []
    monkeypatch.setattr(stages, "parts", lambda method, *size: [(method, 100), (method, 300)])

    def astray(objective, starts, *given, **settings):
        search = plain(objective, starts, *given, **settings)
        searches.append(search)
        if len(searches) != 2:
            return search
        theta = search.theta.copy()
        theta[-1] = np.log(1e-6)
        return dataclasses.replace(search, theta=theta, value=objective(theta)[0])

    monkeypatch.setattr(stages, "maximise", astray)
    gp = gm.GPRegressor("matern52", n_restarts=0, random_state=0).fit(*data)
    assert len(searches) == 3
    assert gp.noise_ == pytest.approx(0.01, rel=0.3)
    assert gp.outcome_.evaluations == sum(search.evaluations for search in searches)
    (note,) = (note for note in gp.outcome_.notes if "lost" in note)
    assert note.startswith("A search on 300 rows lost the noise; one from the stage before ended ")
    assert note.endswith(" nats higher, and was kept.")


def test_a_better_end_without_noise_stays(data, monkeypatch):
    """Where y is a smooth function: the evidence on the same rows decides, not what looks likely."""
    X = data[0]
    plain, searches = stages.maximise, []
    monkeypatch.setattr(stages, "parts", lambda method, *size: [(method, 100), (method, 300)])

    def noisy_first(objective, starts, *given, **settings):
        search = plain(objective, starts, *given, **settings)
        searches.append(search)
        if len(searches) > 1:
            return search
        theta = search.theta.copy()
        theta[-1] = np.log(0.1)
        return dataclasses.replace(search, theta=theta)

    monkeypatch.setattr(stages, "maximise", noisy_first)
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), noise=0.01, n_restarts=0, random_state=0).fit(X, np.sin(X[:, 0]))
    assert len(searches) == 4  # the second one in two parts
    assert gp.noise_ < 1e-4
    note = gp.outcome_.notes[0]
    assert note.startswith("A search on 300 rows ended without the noise; one from the stage before found no")


def test_nothing_is_done_twice_where_nothing_is_lost(data, monkeypatch):
    plain, searches = stages.maximise, []
    monkeypatch.setattr(stages, "parts", lambda method, *size: [(method, 100), (method, 300)])
    monkeypatch.setattr(stages, "maximise", lambda *a, **k: searches.append(1) or plain(*a, **k))
    gp = gm.GPRegressor(n_restarts=0, random_state=0).fit(*data)
    assert len(searches) == 2
    assert not gp.outcome_.notes


@pytest.mark.parametrize(("below", "searches"), [(50.0, 1), (5.0, 2)])
def test_a_second_search_far_below_the_first_is_given_up(data, below, searches):
    """After 20 iterations 300 rows may be 30 nats behind; nearer ones are searched to their end."""
    X, y = data
    fitted = gm.GPRegressor("matern52", optimize=False).fit(X, y).fitted_
    objective = Objective(fitted.model, fitted.rows, fitted.inference)
    lost_noise = fitted.theta.copy()
    lost_noise[-1] = np.log(1e-6)
    first = Search(lost_noise, 100.0, "converged", 7, 8, 1, 0)
    lengths = []

    def again(theta, iterations):
        lengths.append(iterations)
        value, stopped = (100.0 - below, "iteration limit") if iterations else (101.0, "converged")
        return Search(theta, value, stopped, 20, 25, 1, 0)

    found = guarded(objective, first, fitted.model, again)
    assert lengths == [TRIAL, None][:searches]
    assert found.search.value == (101.0 if searches == 2 else 100.0)
    assert found.search.iterations == 7 + 20 * searches
    assert ("lost the noise" in found.note) == (searches == 2)
