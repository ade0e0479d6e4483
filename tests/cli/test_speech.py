"""Errors and notes on the command line speak of options, not of Python."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer

import gramian as gm
from gramian.cli.main import app
from gramian.cli.speech import OPTIONS, said
from gramian.cli.voice import folded

PYTHON = re.compile(
    r"\b[a-z]\w*=\S|\bgramian\.\w|\bgp\.|\bgm\.|fit\(|predict\(|np\.|\bNone\b|\bRandomState\b"
)
FIT = "fit t.csv -t y -o m.gm"
REFUSED = {
    f"{FIT} --mean quadratic": '--mean quadratic is not known. Use "zero", "constant" or "linear".',
    f"{FIT} --method magic": "--method magic is not known",
    f"{FIT} --method nystrom --size 0": "--size 0 must be a whole number",
    f"{FIT} --method nystrom --sampling magic": "--sampling magic is not known",
    f"{FIT} -c a --method fourier --size 7": "Use 8, or --kind rff-phase, which takes any number",
    f"{FIT} --method exact --size 7": "--size 7 was given, but",
    f"{FIT} --memory-limit lots": "--memory-limit lots is not a size",
    f"{FIT} --memory-limit 10kB": "(--memory-limit 10kB). Raise --memory-limit, or fit fewer rows",
    f"{FIT} --time-limit -3": "--time-limit -3.0 must be a positive number",
    f"{FIT} --restarts -3": "--restarts -3 must be a whole number",
    f"{FIT} --seed -3": "--seed -3: ",
    f"{FIT} --noise -3": "--noise -3.0 must be a variance",
    "fit twice.csv -t y -o m.gm --noise 0": "Let noise be learned (--noise 0.01)",
    f"{FIT} -c a --likelihood heteroscedastic --inference ep": "use --inference vi or mcmc",
    f"{FIT} --likelihood student-t --method svgp --inference ep": "Use --inference vi, or another method",
    f"{FIT} --hyper mcmc --method svgp": "Chains cannot move through --method svgp",
    "fit t.csv -t site -o m.gm -c a --inference laplace --method cg": "Use --method exact, nystrom or",
    "plan t.csv -t y --memory-limit x": "--memory-limit x is not a size",
    "compare t.csv -t y -c a --repeats 0": "--repeats 0 must be",
    "compare t.csv -t y -c a --test-size 3": "--test-size 3.0 must be a share",
    "compare t.csv -t y -c a --tol 3": "--tol 3.0 is a relative residual",
    "compare t.csv -t y -c a --max-rows 0": "--max-rows 0 must be",
    "compare t.csv -t y -c a --seed -1": "--seed -1 must be",
    "compare t.csv -c a": 'Give one, --kernel "RBF(1.0)", or a target',
    "predict t.csv t.csv": "it is not a model file. One is written by save, or by gramian fit",
}


@pytest.fixture
def tables(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=12), "site": ["n", "s", "w"] * 4, "y": rng.normal(size=12)})
    table.to_csv(tmp_path / "t.csv", index=False)
    pd.concat([table, table.assign(y=table["y"] + 1)]).to_csv(tmp_path / "twice.csv", index=False)


@pytest.mark.parametrize("command", REFUSED)
def test_errors_name_options(run, tables, command):
    told = run(*command.split(), code=2).stderr
    assert REFUSED[command] in told
    assert not PYTHON.search(told), told


def test_notes_and_plans_name_options(run, tmp_path):
    counts = np.random.default_rng(1).poisson(1.5, 30)
    pd.DataFrame({"x": np.arange(30) / 7, "k": counts}).to_csv(tmp_path / "k.csv", index=False)
    printed = run("fit", "k.csv", "-t", "k", "--restarts", 0, "-o", "m.gm").stdout
    assert "give --likelihood poisson, or --likelihood negative-binomial where" in printed
    assert "give --likelihood poisson" in run("show", "m.gm").stdout
    assert any('give likelihood="poisson"' in note for note in gm.load("m.gm").outcome_.notes)
    assert "--method auto takes exact" in run("plan", "k.csv", "-t", "k").stdout


@pytest.mark.parametrize(
    ("python", "spoken"),
    [
        ("Give noise=..., or keep one of each.", "Give --noise, or keep one of each."),
        ('Use inference="ep", "vi" or "mcmc".', "Use --inference ep, vi or mcmc."),
        ("likelihood=Poisson() or NegativeBinomial()", "--likelihood poisson or NegativeBinomial()"),
        ("kernel=RBF(1.0).", '--kernel "RBF(1.0)".'),
        ("Nystrom: rank=0 must be more.", "Nystrom: --size 0 must be more."),
        ("Raise memory_limit.", "Raise --memory-limit."),
        ("memory_limit='2XB' is not a size.", "--memory-limit 2XB is not a size."),
        ("Have them used: missing='fill'.", "Have them used: --missing fill."),
        ("Use likelihood=gramian.StudentT() here.", "Use --likelihood student-t here."),
        ("Leave it out: columns=[...], or on the command line --id.", "Leave it out: --id."),
        ("n_restarts=-1 must be a whole number.", "--restarts -1 must be a whole number."),
        ("hold it there: gramian.fixed(0.5).", "hold it there: fixed(0.5)."),
        ('Use "a". In Python a gramian.Mean will do, too.', 'Use "a".'),
        ("the kind 'orf' has a mean and a size", "the kind 'orf' has a mean and a size"),
        ("StudentT(df=4, scale=0.3)", "StudentT(df=4, scale=0.3)"),
    ],
)
def test_settings_become_options(python, spoken):
    assert said(python) == spoken


def test_every_option_that_is_named_exists():
    commands = typer.main.get_command(app).commands.values()
    there = {name for command in commands for parameter in command.params for name in parameter.opts}
    assert set(OPTIONS.values()) <= there
    # and those that give a setting of an estimator are named
    settings = set(gm.GPRegressor().get_params()) | set(gm.GPClassifier().get_params())
    fit = next(command for command in commands if command.name == "fit")
    assert settings & {parameter.name for parameter in fit.params} <= set(OPTIONS)


@pytest.mark.parametrize(
    ("words", "number", "found"), [("gramian fi", 1, "fit"), ("gramian show --a", 2, "--all")]
)
def test_a_shell_completes_commands_and_options(words, number, found):
    environment = {**os.environ, "PYTHONPATH": str(Path(gm.__file__).parent.parent)}
    environment |= {"_GRAMIAN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}
    command = [sys.executable, "-m", "gramian"]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert completed.stdout.split() == [found]


def test_summaries_speak_of_options(run, tmp_path):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(14, 3)), columns=["time_limit", "b", "y"]).to_csv(
        tmp_path / "t.csv", index=False
    )
    averaged = run("fit", "t.csv", "-t", "y", "-o", "m").stdout
    assert "(--hyper map predicts by these alone)" in averaged
    searched = run("fit", "t.csv", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m").stdout
    assert "gramian score takes rows that were held back." in searched
    for shown in (averaged, searched, run("show", "m").stdout):
        assert not PYTHON.search(shown)
        assert "time_limit" in shown  # a column of that name keeps it


def test_lines_end_between_words_on_a_terminal_alone(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    text = "  quality   Predicts left-out rows with an error of 3.2\n"
    text += "  - a note that is longer than a terminal is wide\n"
    text += "name             value  prior of it\nnote: something that takes a bit more than a line"

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert folded(text, io.StringIO()) == text
    lines = folded(text, Screen()).split("\n")
    assert max(map(len, lines)) <= 40
    assert lines[:4] == [
        "  quality   Predicts left-out rows with",
        "            an error of 3.2",
        "  - a note that is longer than a",
        "    terminal is wide",
    ]
    assert lines[4] == "name             value  prior of it"
    assert " ".join(folded(text, Screen()).split()) == " ".join(text.split())
