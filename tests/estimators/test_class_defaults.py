"""The model of labels that the data choose."""

import numpy as np
import pytest

import gramian as gm
from gramian.data.inputs import Columns
from gramian.engines.dense import Exact
from gramian.estimators.build import default_kernel
from gramian.estimators.classes import _Tied
from gramian.fitting.objective import Objective
from gramian.inference import Data, Model
from gramian.inference.base import on_engine
from gramian.inference.laplace import Laplace
from gramian.likelihoods import Bernoulli
from gramian.means import ZeroMean


def table(kind, n=200, seed=0):
    """Rows with labels of that kind."""
    rng = np.random.default_rng(seed)
    if kind == "rough":  # the sign of an Ornstein-Uhlenbeck process; other rows of the same for another seed
        rng = np.random.default_rng(1)
        x = np.sort(rng.uniform(0, 10, 800))[:, None]
        rng.normal(size=800)
        f = np.linalg.cholesky(np.exp(-np.abs(x - x.T) / 3) + 1e-8 * np.eye(800)) @ rng.normal(size=800)
        return x[seed::2], f[seed::2] > 0
    X = rng.normal(size=(n, 6))
    if kind == "one column":
        return X, (np.sin(3 * X[:, 0]) > 0) ^ (rng.random(n) < 0.02)
    if kind == "all columns":
        return X, (np.linalg.norm(X, axis=1) > 2.3) ^ (rng.random(n) < 0.02)
    return X[:, :2], X[:, 1] > np.sin(1.5 * X[:, 0])  # a smooth border


@pytest.fixture(scope="module")
def fitted():
    kinds = ("rough", "one column", "all columns", "smooth")
    return {kind: gm.GPClassifier(random_state=0).fit(*table(kind)) for kind in kinds}


@pytest.mark.parametrize(
    ("kind", "family", "alike"),
    [
        ("rough", "Matern12", None),
        ("one column", None, False),
        ("all columns", None, True),
        ("smooth", "RBF", None),
    ],
)
def test_chooses_what_the_labels_were_made_with(fitted, kind, family, alike):
    gp = fitted[kind]
    if family is not None:
        assert family in str(gp.kernel_)
    if alike is not None:
        lengths = gp.parameters_["kernel.lengthscale"]
        assert (lengths.max() / lengths.min() < 2) == alike
        assert ("lengthscales alike" in gp.outcome_.choice[0]) == alike


@pytest.mark.parametrize("kind", ["rough", "all columns", "smooth"])
def test_foretells_new_labels_better_than_the_plain_model(fitted, kind):
    X, y = table(kind, 600, seed=1)
    plain = gm.GPClassifier("matern52", random_state=0).fit(*table(kind))
    assert np.mean(fitted[kind].log_density(X, y)) > np.mean(plain.log_density(X, y))


def test_says_why(fitted):
    first, others = fitted["all columns"].outcome_.choice
    assert first.startswith("model by the height of its parameters' posterior, on all rows: ")
    assert first.endswith(" with lengthscales alike")
    assert "Matern-5/2 -" in others
    assert first in fitted["all columns"].summary()


def test_an_explicit_kernel_is_taken_as_it_is(fitted):
    gp = gm.GPClassifier("matern52", random_state=0).fit(*table("smooth"))
    assert gp.outcome_.choice == ()
    assert "Matern52" in str(gp.kernel_)


@pytest.mark.parametrize("settings", [{"hyper": "ml"}, {"optimize": False}])
def test_nothing_is_chosen_where_settings_leave_nothing_open(settings):
    assert gm.GPClassifier(n_restarts=0, **settings).fit(*table("smooth", 20)).outcome_.choice == ()


def test_rows_that_the_path_has_not_seen_judge_where_there_are_some(monkeypatch):
    monkeypatch.setattr("gramian.estimators.classes.ROWS", 100)
    X, y = table("smooth", 420)
    gp = gm.GPClassifier(random_state=0, method=gm.Nystrom(30), inference="laplace").fit(X, y)
    assert "the density it gives to 320 rows, from 100 of 420:" in gp.outcome_.choice[0]
    assert "in nats a row" in gp.outcome_.choice[1]


def test_several_classes_choose_once_for_all():
    X, _ = table("smooth", 60)
    gp = gm.GPClassifier(random_state=0, inference="laplace").fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    assert "model by the height" in gp.outcome_.choice[0]
    assert np.mean(gp.predict(X) == np.digitize(X[:, 0], [-0.5, 0.5])) > 0.9


def test_does_not_depend_on_units():
    X, y = table("all columns", 60)
    units = np.array([1.0, 1e3, 1e-3, 5.0, 0.2, 30.0])
    gp = gm.GPClassifier(random_state=0).fit(X, y)
    other = gm.GPClassifier(random_state=0).fit(units * X + 7, y)
    assert other.outcome_.choice[0] == gp.outcome_.choice[0]
    # where two searches end, that differ by rounding
    np.testing.assert_allclose(other.predict_proba(units * X + 7), gp.predict_proba(X), atol=1e-4)


def test_categories_have_a_part_in_it():
    pd = pytest.importorskip("pandas")
    X, y = table("smooth", 60)
    frame = pd.DataFrame({"a": X[:, 0], "site": np.where(X[:, 1] > 0, "n", "s"), "b": X[:, 1]})
    gp = gm.GPClassifier(random_state=0).fit(frame, y)
    assert gp.outcome_.choice
    assert "Categorical" in str(gp.kernel_)
    assert np.all(np.isfinite(gp.predict_proba(frame)))


def test_gradient_along_the_level_of_all_lengthscales_is_that_of_its_value():
    X, y = table("all columns", 40)
    kernel = default_kernel(X, Columns(tuple("abcdef")), 4.0)
    model = Model(kernel, ZeroMean(), Bernoulli())
    tied = _Tied(
        Objective(model, Data(X, y[:, None].astype(float), np.ones(1)), on_engine(Exact(), Laplace())), 6
    )
    assert tied.own.sum() == 6
    u, step = tied.start + 0.3, 1e-5
    _, gradient = tied(u)
    for k in range(len(u)):
        there = step * np.eye(len(u))[k]
        slope = (tied(u + there)[0] - tied(u - there)[0]) / (2 * step)
        # central differences err by step^2, and by the Newton steps' tolerance over the step
        assert gradient[k] == pytest.approx(slope, rel=1e-4, abs=1e-4)
