"""`gramian fit --layers`: a deep model in a file that other commands read; what does not go with it."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.data.tables import read_table
from gramian.deep import scheme
from gramian.fitting import layers


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Searches of a few steps, whose models are taken whatever their bound."""
    monkeypatch.setattr(scheme, "FEWEST_STEPS", 3)
    monkeypatch.setattr(scheme, "MOST_STEPS", 3)
    monkeypatch.setattr(layers, "_better", lambda fewer, deep, by=0.0: True)


def test_a_deep_model_goes_through_all_commands(run, data):
    told = run("fit", data, "-t", "y", "--id", "code", "--layers", 2, "--size", 6, "-o", "deep.gm")
    assert "DeepGPRegressor of y on 24 rows" in told.stdout
    model = gm.load("deep.gm")
    assert model.n_layers_ == 2
    assert model.n_inducing == 6
    run("predict", "deep.gm", data, "--out", "predicted.csv", "--quantiles", "0.1")
    found = read_table("predicted.csv")
    mean, std = model.predict(data, return_std=True)
    # of a mixture: sums in another order
    np.testing.assert_allclose(found.numbers("mean"), mean, rtol=1e-10)
    np.testing.assert_allclose(found.numbers("std"), std, rtol=1e-10)
    assert np.all(found.numbers("q0.1") < found.numbers("upper95"))
    assert "layer 2" in run("show", "deep.gm").stdout
    assert "RMSE" in run("score", "deep.gm", data).stdout


def test_labels_are_classified(run, data):
    run("fit", data, "-t", "site", "--id", "code", "--layers", 2, "--size", 6, "-o", "deep.gm")
    model = gm.load("deep.gm")
    assert type(model) is gm.DeepGPClassifier
    assert list(model.classes_) == ["north", "south", "west"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--layers", "two"), "--layers 'two' must be a whole number from 1 to 10, or auto"),
        (("--layers", "0"), "--layers '0' must be a whole number from 1 to 10, or auto"),
        (("--layers", "2", "--method", "vfe"), "--method is for models of one layer"),
        (("--layers", "2", "--restarts", "3"), "--restarts is for models of one layer"),
        (("--layers", "2", "--inference", "ep"), "--inference is for models of one layer"),
        (("--layers", "2", "--hyper", "mcmc"), "--hyper is for models of one layer"),
    ],
)
def test_what_does_not_go_with_layers_is_refused(run, data, options, message):
    told = run("fit", data, "-t", "y", "--id", "code", *options, "-o", "deep.gm", code=2)
    assert message in " ".join(told.stderr.split())
