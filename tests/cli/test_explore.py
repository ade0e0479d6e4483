"""gramian explore: what it says before it serves anything."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import gramian as gm
from gramian.cli import explore
from gramian.explore.opening import opened
from gramian.explore.wire import MOST_POINTS


def test_a_missing_extra_is_told_before_anything_else(run, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(explore, "find_spec", lambda name: None if name == "starlette" else real(name))
    said = run("explore", "there-is-no-such.csv", code=2).stderr
    assert "starlette" in said
    assert 'pip install "gramian[explore]"' in said
    assert "there-is-no-such" not in said


def test_a_file_that_is_not_there(run):
    assert "nowhere.csv" in run("explore", "nowhere.csv", "--no-browser", code=2).stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x\n1\n2\n", "needs two"),
        ("a,b\n1,2\n3\n", "line 3"),
        ("", "empty"),
        ("a,b\nx,y\nz,w\nq,r\n", "column"),
    ],
    ids=["one column", "a short line", "empty", "words"],
)
def test_a_wrong_table_is_told(run, tmp_path, text, told):
    (tmp_path / "wrong.csv").write_text(text)
    said = run("explore", "wrong.csv", "--no-browser", code=2).stderr
    assert "wrong.csv" in said
    assert told in said


def test_options_of_tables_are_not_for_models(run, model):
    assert "knows its own" in run("explore", model, "-t", "y", "--no-browser", code=2).stderr


def test_a_port_out_of_range(run):
    run("explore", "--port", "70000", code=2)


def test_a_table_as_the_page_gets_it(tmp_path, data):
    lines = data.read_text().splitlines()
    data.write_text(
        "\n".join([f"name,{lines[0]}", *(f"plot {k},{line}" for k, line in enumerate(lines[1:]))])
    )
    found = opened(data, target="y").table
    assert found["target"] == "y"
    names = [column["name"] for column in found["columns"]]
    assert names == ["code", "a", "site", "b", "y"]  # the name, another word in each row, is left out
    assert found["columns"][2]["words"] == ["north", "south", "west"]
    with pytest.raises(gm.errors.InputError, match="no column 'z'"):
        opened(data, target="z")
    only = opened(data, target="b", columns=["a"]).table
    assert [column["name"] for column in only["columns"]] == ["a", "b"]
    rows = np.random.default_rng(0).normal(size=(MOST_POINTS + 500, 2)).round(3)
    np.savetxt(tmp_path / "many.csv", rows, delimiter=",", header="x,y", comments="", fmt="%.3f")
    many = opened(tmp_path / "many.csv").table
    assert len(many["columns"][0]["values"]) == MOST_POINTS
    assert "2,500" in many["note"]


def test_a_model_stands_beside_a_process_with_its_numbers(tmp_path):
    """Of one column and a kernel of known parts: the process of s^2 k, with the model's mean and noise,
    predicts what the model does."""
    x = np.linspace(0, 5, 20)[:, None]
    y = 30 + 8 * np.sin(x[:, 0]) + 0.3 * np.cos(40 * x[:, 0])
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), n_restarts=0, hyper="map").fit(x, y)
    gp.save(tmp_path / "model.gm")
    found = opened(tmp_path / "model.gm")
    assert found.table["model"] == [0]
    scene, (term,) = found.scene, found.scene["kernel"]["terms"]
    kernel = term["scale"] * gm.RBF(term["factors"][0]["values"]["lengthscale"])
    process = gm.GP(kernel, mean=scene["mean"]["value"], noise=scene["noise"]).condition(x, y)
    places = np.linspace(-1, 6, 9)[:, None]
    np.testing.assert_allclose(process.mean(places), gp.predict(places, target="f"), rtol=1e-4)
    mean, low, high = found.along.at((0,), places)
    expected = gp.predict(places, interval=0.95)
    for one, other in zip((mean, low, high), expected, strict=True):
        np.testing.assert_allclose(one, other)


def test_a_model_of_several_columns_is_asked_along_each(model):
    found = opened(model)
    assert found.scene is None
    assert [column["name"] for column in found.table["columns"]] == ["a", "b", "y"]
    mean, low, high = found.along.at((0,), np.array([[0.5], [3.0]]))
    assert np.all((low < mean) & (mean < high))
    with pytest.raises(gm.errors.InputError, match="columns"):
        found.along.at((7,), np.array([[0.5]]))
