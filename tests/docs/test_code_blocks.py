"""What the pages show runs: every block of Python, page by page, in order and in one module; every `gramian`
command; every kernel as text. A line `print(...)  # prints: text` prints that text,
and one that ends with `# warns of text` warns of that.

Data, names and files that a reader has are prepared here, small. Where a page takes many runs, a few do the
same (`SMALLER`), and a search stops after a few steps: what a fit finds is the matter of other tests.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gramian as gm
from gramian.cli.main import app
from gramian.deep import scheme
from gramian.estimators import fitter
from gramian.fitting import lbfgs, stages
from tests.docs.pages import pages

ROOT = Path(gm.__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *pages(ROOT / "docs")]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTS = re.compile(r"^print\((.*)\)  # prints: (.*)$", re.MULTILINE)
WARNS = re.compile(r"  # warns of (.*)$", re.MULTILINE)
SMALLER = {
    "repeats=15": "repeats=1",
    'by="cv"': 'by="cv", cv=2',
    "sizes=(100, 200, 400)": "sizes=(6,)",
    'methods=("nystrom:uniform", "nystrom:rpcholesky", "fourier:orf", "vfe", "cg", "exact")': (
        'methods=("nystrom:uniform", "exact")'
    ),
}
FEW_RUNS = ("--repeats", "1", "--sizes", "4", "--methods", "nystrom:uniform,exact")
N = 24


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [code for kind, code in BLOCK.findall(text) if kind == language]


def table(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    temp, rain = rng.uniform(0, 3, n).round(3), rng.uniform(0, 3, n).round(3)
    site = np.array(["north", "south"])[np.arange(n) % 2]
    amount = np.sin(2 * temp) + 0.5 * rain + 0.05 * rng.standard_normal(n)
    return pd.DataFrame({"temp": temp, "rain": rain, "site": site, "yield": amount.round(3)})


@pytest.fixture
def prepared(tmp_path, monkeypatch) -> dict[str, object]:
    """What a reader has: names, and in the working folder the files of the pages."""
    monkeypatch.chdir(tmp_path)
    df = table()
    X, y = df[["temp", "rain"]].to_numpy(), df["yield"].to_numpy()
    counts, days = np.random.default_rng(0).poisson(np.exp(X[:, 0] - 1)), 1.0 + np.arange(N) % 3
    kinds = np.array(["setosa", "virginica", "versicolor"])[(2 * X[:, 0]).astype(int) % 3]
    numeric = df[["temp", "rain", "yield"]]
    numeric.to_parquet("million.parquet")
    numeric.to_parquet("data.parquet")
    numeric.assign(y=y).to_csv("data.csv", index=False)
    for name in ("plots", "test_plots"):
        df.assign(plot=np.arange(N)).to_csv(f"{name}.csv", index=False)
    df.drop(columns="yield").assign(plot=np.arange(N)).to_csv("new_plots.csv", index=False)
    for name in ("flowers", "test_flowers"):
        numeric.drop(columns="yield").assign(species=kinds).to_csv(f"{name}.csv", index=False)
    numeric.drop(columns="yield").assign(ill=(y > np.median(y)).astype(int)).to_csv(
        "patients.csv", index=False
    )
    numeric.drop(columns="yield").assign(count=counts, days=days).to_csv("accidents.csv", index=False)
    numeric.drop(columns="yield").assign(**{"class": np.where(y > np.median(y), "g", "h")}).to_csv(
        "magic04.csv", index=False
    )
    numeric.assign(y=y, both=X.sum(axis=1)).to_csv("sensors.csv", index=False)
    when = np.datetime64("2024-01-01") + np.arange(120)
    pd.DataFrame({"ds": when, "y": 9 + np.sin(2 * np.pi * np.arange(120) / 7)}).to_csv(
        "sales.csv", index=False
    )
    np.save("X.npy", X)
    Path("measurements").mkdir()
    rows = np.random.default_rng(1).uniform(-1, 1, (120, 3)).round(3)
    for k, part in enumerate((rows[:70], rows[70:])):
        measured = pd.DataFrame({"a": part[:, 0], "b": part[:, 1], "y": part[:, 0] + 0.1 * part[:, 2]})
        measured.to_parquet(f"measurements/part{k}.parquet")
    return {
        "X": X,
        "y": y,
        "X_new": X[:5] + 0.1,
        "y_new": y[:5],
        "Z": X[:3],
        "df": df[["temp", "rain", "site"]],
        "labels": np.where(y > np.median(y), "up", "down"),
        "counts": counts,
        "hours": days,
        "successes": np.minimum(counts, 4),
        "trials": np.minimum(counts, 4) + np.arange(N) % 3,
        "read_my_blocks": lambda: iter([(X[:10], y[:10]), (X[10:], y[10:])]),
    }


@pytest.fixture
def quick(monkeypatch) -> None:
    """Searches of few steps from one start."""
    real = lbfgs.maximise

    def maximise(*arguments, **settings):
        return real(*arguments, **{**settings, "iterations": 3, "finish": False})

    monkeypatch.setattr(stages, "maximise", maximise)
    monkeypatch.setattr(fitter, "FEW_ROWS", 0)
    monkeypatch.setattr(scheme, "FEWEST_STEPS", 3)
    monkeypatch.setattr(scheme, "MOST_STEPS", 3)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: str(page.relative_to(ROOT))
)
def test_python(page, prepared, quick, monkeypatch, capsys):
    module = types.ModuleType("page")  # whose classes can be pickled
    monkeypatch.setitem(sys.modules, "page", module)
    vars(module).update(prepared)
    for code in blocks(page, "python"):
        for much, few in SMALLER.items():
            code = code.replace(much, few)
        warned = [pytest.warns(UserWarning, match=of) for of in WARNS.findall(code)]
        with warned[0] if warned else contextlib.nullcontext():
            exec(compile(code, str(page), "exec"), vars(module))
        printed = capsys.readouterr().out.splitlines()
        for _, shown in PRINTS.findall(code):
            assert shown in printed


def replaced(arguments: list[str], pairs: list[str]) -> list[str]:
    """Arguments with these options and their values in the place of theirs."""
    for option, value in zip(pairs[::2], pairs[1::2], strict=True):
        if option in arguments:
            at = arguments.index(option)
            arguments = arguments[:at] + arguments[at + 2 :]
        arguments = [*arguments, option, value]
    return arguments


def commands(page: Path) -> list[str]:
    lines = "".join(blocks(page, "")).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.startswith("gramian ")]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if commands(page)], ids=lambda page: str(page.relative_to(ROOT))
)
@pytest.mark.usefixtures("prepared", "quick")
def test_commands(page):
    for k, command in enumerate(commands(page)):
        arguments = shlex.split(command, comments=True)[1:]
        if arguments[0] == "demo":
            continue  # tests/cli/test_demo.py
        if arguments[0] == "compare":
            arguments = replaced(arguments, [*FEW_RUNS, "--out", f"comparison{k}"])
        result = CliRunner().invoke(app, arguments, prog_name="gramian")
        assert result.exit_code == 0, (command, result.output, result.exception)


def test_kernels_as_text():
    page = ROOT / "docs" / "command-line.md"
    lines = [line for code in blocks(page, "") for line in code.splitlines() if "gramian" not in line]
    assert len(lines) == 3
    for line in lines:
        kernel = gm.parse_kernel(line)
        assert gm.parse_kernel(repr(kernel)) == kernel


def test_a_series_of_the_pages_is_forecast():
    """A season that drifts, a trend and what lasts for weeks, each with its scale: two years are forecast to
    within three times the noise of 0.1."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    code = next(code for kind, code in BLOCK.findall(page) if "Periodic" in code)
    names: dict[str, object] = {"gm": gm}
    exec(code[code.index("kernel = (") : code.index("\n)\n") + 3], names)
    t = np.arange(120) / 12
    y = 10 + 0.5 * t**1.5 + np.sin(2 * np.pi * t) + 0.1 * np.random.default_rng(1).standard_normal(120)
    gp = gm.GPRegressor(names["kernel"], n_restarts=0).fit(t[:96, None], y[:96])
    mean, std = gp.predict(t[96:, None], return_std=True)
    assert np.sqrt(np.mean((mean - y[96:]) ** 2)) < 0.3
    assert np.mean(np.abs(mean - y[96:]) < 2 * std) > 0.8


def test_the_reading_of_blocks_sees_something():
    assert sum(len(blocks(page, "python")) for page in PAGES) > 10
    assert sum(len(commands(page)) for page in PAGES) > 8
