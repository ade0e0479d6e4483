"""The demo: its data are the published ones, it writes what it says, and the commands it ends with work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gramian as gm
from gramian.cli.demo import KERNEL, PARTS, TRAINING, airline, passengers
from gramian.cli.main import app
from gramian.data.tables import read_table, write_table
from gramian.kernels import Sum
from gramian.kernels.text import parse_kernel
from gramian.modelfile import load

from .conftest import columns


def test_the_series_is_the_published_one():
    table = airline()
    y = table.numbers("passengers")
    assert y.sum() == 40363
    assert list(y[:12]) == [112, 118, 132, 129, 121, 135, 148, 148, 136, 119, 104, 118]
    assert list(y[-12:]) == [417, 391, 419, 461, 472, 535, 622, 606, 508, 461, 390, 432]
    # The sums of the years, so that a wrong digit in between shows (all values were compared with public
    # copies once).
    assert list(y.reshape(12, 12).sum(axis=1)) == [
        1520,
        1676,
        2042,
        2364,
        2700,
        2867,
        3408,
        3939,
        4421,
        4572,
        5140,
        5714,
    ]
    months = [f"{year}-{month:02d}" for year in range(1949, 1961) for month in range(1, 13)]
    assert list(table.text("month")) == months
    np.testing.assert_allclose(table.numbers("years"), np.arange(144) / 12, atol=5e-7)  # six decimals


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Path, str]:
    """The folder that the demo made, and what it said."""
    folder = tmp_path_factory.mktemp("demo") / "some" / "folder"
    result = CliRunner().invoke(app, ["demo", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result.stdout


def test_the_demo_writes_model_predictions_and_picture(demo):
    folder, shown = demo
    assert sorted(path.name for path in folder.iterdir()) == ["forecast.png", "model.gm", "predictions.csv"]
    assert all(str(path) in shown for path in folder.iterdir())
    table = read_table(folder / "predictions.csv")
    assert table.names == ("month", "years", "passengers", "part", "mean", "std", "lower95", "upper95")
    assert list(table.text("part")) == ["fitted"] * TRAINING + ["held out"] * (144 - TRAINING)
    truth, mean = table.numbers("passengers")[TRAINING:], table.numbers("mean")[TRAINING:]
    inside = (table.numbers("lower95")[TRAINING:] <= truth) & (truth <= table.numbers("upper95")[TRAINING:])
    rmse = float(np.sqrt(np.mean((mean - truth) ** 2)))
    # What it says is what the file has; and the forecast is far better than repeating the last year (77.0).
    assert f"error      {rmse:.1f} thousand" in shown
    assert f"coverage   {inside.sum()} of 24 months" in shown
    assert rmse < 30
    assert inside.sum() >= 20
    gp = load(folder / "model.gm")
    assert gp.summary() in shown
    again = passengers(*gp.predict(pd.DataFrame({"years": table.numbers("years")}), return_std=True))
    for name in again:
        np.testing.assert_array_equal(table.numbers(name), again[name])
    png = (folder / "forecast.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = (int.from_bytes(png[at : at + 4], "big") for at in (16, 20))
    assert (width, height) == (1500, 1050)


def test_each_part_of_the_kernel_is_one_component():
    kernel = parse_kernel(KERNEL)
    assert isinstance(kernel, Sum)
    assert kernel.terms == tuple(parse_kernel(part) for part in PARTS)


def test_log_normal_moments(rng):
    mean, std = np.array([5.0]), np.array([0.3])
    found = passengers(mean, std)
    draws = np.exp(5.0 + 0.3 * rng.standard_normal(1_000_000))
    # The standard error of the mean is 0.05, of the standard deviation 0.06, of a quantile 0.2: five of them
    # (odds below 1e-6).
    assert found["mean"][0] == pytest.approx(draws.mean(), abs=0.3)
    assert found["std"][0] == pytest.approx(draws.std(), abs=0.35)
    assert [found["lower95"][0], found["upper95"][0]] == pytest.approx(
        list(np.quantile(draws, [0.025, 0.975])), abs=1.5
    )


def test_the_commands_at_the_end_work(demo, run, tmp_path):
    shown = demo[1]
    ending = shown[shown.index("5. The same") :]
    table = {name: column for name, column in columns().items() if name != "code"}
    for name in ("your.csv", "new.csv"):
        write_table(tmp_path / name, list(table), table)
    commands = re.findall(r"^gramian (.*)$", ending, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        run(*shlex.split(command))
    assert "mean" in read_table("predictions.csv").names
    code = ending[ending.index("import gramian") : ending.index("\n\nA kernel of your own")]
    X = np.column_stack([table["a"], table["b"]])
    names = {"X": X, "y": table["y"], "X_new": X[:3]}
    exec(code, names)
    assert names["mean"].shape == names["std"].shape == (3,)
    assert names["gm"] is gm
