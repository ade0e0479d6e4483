"""The command reduce."""

from __future__ import annotations

import numpy as np
import pytest

import gramian as gm
from gramian.data.tables import read_table

QUICK = "--size", "8", "--components", "1"


@pytest.fixture
def sensors(tmp_path):
    rng = np.random.default_rng(0)
    t = rng.uniform(-1.5, 1.5, 30)
    Y = np.column_stack([t, np.tanh(2 * t), t + 0.5 * t**2]) + 0.03 * rng.standard_normal((30, 3))
    lines = ["kind,a,b,c", *(f"{'xy'[k % 2]},{a:.4f},{b:.4f},{c:.4f}" for k, (a, b, c) in enumerate(Y))]
    lines[4] = lines[4].rsplit(",", 1)[0] + ","  # a missing cell
    path = tmp_path / "sensors.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_places_stand_beside_the_columns(run, sensors, tmp_path):
    out, model = tmp_path / "places.csv", tmp_path / "model.gm"
    said = run("reduce", sensors, "--out", out, "--model", model, "--impute", *QUICK)
    assert "columns of text are left out: kind" in said.stderr
    assert "1 of 1 dimensions" in said.stdout
    table = read_table(out)
    assert table.names == ("kind", "a", "b", "c", "latent1", "latent1_std")
    filled = table.numbers("c")
    assert np.all(np.isfinite(filled))
    gp = gm.load(model)
    np.testing.assert_allclose(table.numbers("latent1"), gp.embedding_[:, 0])
    assert "places rows by: a, b, c" in run("show", model).stdout
    assert "latent places" in run("predict", model, sensors, code=2).stderr


def test_a_name_that_is_not_there(run, sensors):
    said = run("reduce", sensors, "--columns", "a,d", *QUICK, code=2)
    assert "no column 'd'" in said.stderr


def test_too_many_dimensions(run, sensors):
    said = run("reduce", sensors, "--components", "7", code=2)
    assert "n_components=7" in said.stderr
