"""Small tables, and the commands run in this process."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gramian.cli.main import app
from gramian.data.tables import write_table


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs `gramian ...` in an empty folder; expects the exit code `code`. Whatever is no exit (a bug, a
    traceback) is raised here."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: object, code: int = 0):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="gramian")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, (result.stdout, result.stderr)
        return result

    return command


def columns(n: int = 24) -> dict[str, np.ndarray]:
    """An id with leading zeros, two numbers, a category, a target; the values are exact in text."""
    rng = np.random.default_rng(7)
    a, b = np.round(rng.uniform(0, 6, n), 3), np.round(rng.normal(size=n), 3)
    site = np.array(["north", "south", "west"], dtype=object)[np.arange(n) % 3]
    level = np.array([0.0, 1.0, -1.0])[np.arange(n) % 3]
    y = np.round(np.sin(a) + 0.5 * b + level + 0.1 * rng.normal(size=n), 3)
    code = np.array([f"{7 * i % n:03d}" for i in range(n)], dtype=object)
    return {"code": code, "a": a, "site": site, "b": b, "y": y}


@pytest.fixture
def data(tmp_path) -> Path:
    """data.csv"""
    table = columns()
    write_table(tmp_path / "data.csv", list(table), table)
    return tmp_path / "data.csv"


@pytest.fixture(scope="session")
def model_bytes(tmp_path_factory) -> bytes:
    """The model file of y from a, b and site, fitted once by the command."""
    folder = tmp_path_factory.mktemp("model")
    table = columns()
    write_table(folder / "data.csv", list(table), table)
    arguments = [
        "fit",
        str(folder / "data.csv"),
        "-t",
        "y",
        "--id",
        "code",
        "--restarts",
        "0",
        "-o",
        str(folder / "model.gm"),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return (folder / "model.gm").read_bytes()


@pytest.fixture
def model(tmp_path, model_bytes) -> Path:
    """model.gm"""
    (tmp_path / "model.gm").write_bytes(model_bytes)
    return tmp_path / "model.gm"


def listing(folder: Path) -> dict[str, bytes]:
    """All files below a folder with their contents, hidden ones too."""
    return {
        os.path.join(root, name): Path(root, name).read_bytes()
        for root, _, names in os.walk(folder)
        for name in names
    }
