"""Experiments by name: each runs and shows what it measured, goes on after a kill, and takes its data by
checksum."""

from __future__ import annotations

import csv
import dataclasses
import functools
import hashlib
import http.server
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from typer.testing import CliRunner

from gramian.cli.main import app
from gramian.errors import InputError, ParameterError
from gramian.experiments.studies import approximations, models, runner, teaching
from gramian.experiments.studies.base import Experiment, Results, Shown
from gramian.experiments.studies.registry import EXPERIMENTS, named
from gramian.experiments.studies.runner import CELLS, PAGE, RESULTS, run
from gramian.experiments.studies.sets import SETS, DataFolder, DataSet
from gramian.kernels.text import parse_kernel

# what is made smaller in the first cell of an experiment, so that its test takes a moment
SMALLER = {
    "posterior-covariance": {"observations": 3, "points": 5},
    "kernel-approximation": {"rows": 60, "size": 10},
    "approximate-prediction": {"rows": 60, "fit_rows": 20, "method": "nystrom:uniform", "size": 8},
    "krylov-prediction": {"rows": 60, "method": "cg:none", "steps": 60},
    "weight-and-function-space": {"basis": "10 bumps"},
    "binary-synthetic": {"rows": 12, "parameters": "true"},
    "multiclass-synthetic": {"rows": 20},
    "jass": {"rows": 60, "model": "GP, RBF"},
    "deep": {"rows": 15, "points": 4, "steps": 2, "layers": 2, "search": "naive", "data": models.THREE},
    "latent": {"rows": 20, "points": 4, "iterations": 2, "model": "GPLatent"},
    "images-by-labels": {"labels": 12, "model": "GP, RBF"},
    "seasons-of-crops": {"draws": 10},
}


def arrays(name):
    """A small set of the form of the real one."""
    rng = np.random.default_rng(0)
    if name == "jass_trump":
        X, y = rng.integers(0, 2, (1600, 37)), np.arange(1600) % 6
        return {"X_train": X, "y_train": y, "X_test": X[:20], "y_test": y[:20]}
    if name == "oil_flow":
        t = rng.uniform(-1, 1, (120, 1))
        Y = np.sin(t * np.arange(1, 13)) + 0.1 * rng.standard_normal((120, 12))
        return {"X_train": Y, "y_train": np.arange(120) % 3, "X_test": Y[:10]}
    if name == "breastmnist":
        split = np.repeat([0, 1, 2], [30, 4, 10])
        return {"X": rng.integers(0, 255, (44, 28, 28)), "y": np.arange(44) % 2, "split": split}
    if name == "ndvi_field_dtwsat":
        days = np.arange(14_500, 15_900, 16)
        phase = 2 * np.pi * (days - 14_590) / 365.25
        ndvi = 0.5 + 0.3 * np.cos(phase) + 0.02 * rng.standard_normal(len(days))
        return {"days": days, "Y": ndvi[:, None], "bands": np.array(["ndvi"])}
    X = rng.standard_normal((90, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(90)
    return {"X": X, "y": (y > 0).astype(int) if name == "magic04" else y}


def described(path, name):
    content = path.read_bytes()
    return DataSet(name, len(content), hashlib.sha256(content).hexdigest(), "made up")


@pytest.fixture
def made_up(tmp_path, monkeypatch):
    """A folder with all sets, small, in the place of the real ones."""
    folder = tmp_path / "sets"
    folder.mkdir()
    for name in SETS:
        np.savez(folder / f"{name}.npz", **arrays(name))
        monkeypatch.setitem(SETS, name, described(folder / f"{name}.npz", name))
    return folder


def small(name):
    """An experiment of one small cell."""
    experiment = named(name)
    cell = {**experiment.grid(True)[0], **SMALLER.get(name, {})}
    return dataclasses.replace(experiment, grid=lambda quick: [cell])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_small_cell_of_each(name, tmp_path, made_up):
    experiment = small(name)
    finished = run(experiment, tmp_path / "out", DataFolder(made_up), quick=True)
    assert (finished.cells, finished.missing, finished.notes) == (1, 0, ())
    rows = list(csv.DictReader((tmp_path / "out" / RESULTS).read_text(encoding="utf-8").splitlines()))
    assert rows
    assert set(experiment.columns) <= set(rows[0])
    page = (tmp_path / "out" / PAGE).read_text(encoding="utf-8")
    assert page.count("<figure>") == len(finished.shown.pictures) > 0
    assert "nan" not in " ".join(finished.shown.words)
    # by itself: nothing runs, nothing is loaded
    assert "<script" not in page
    assert not re.search(r"""(src|href)=["'](?!#|data:)""", page)
    for picture in finished.shown.pictures:
        assert (tmp_path / "out" / f"{picture.name}.svg").read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("quick", [True, False])
def test_cells_are_different_and_name_their_data(name, quick):
    cells = named(name).grid(quick)
    assert len({runner.key_of(cell) for cell in cells}) == len(cells)
    assert set(named(name).needs(quick)) <= set(SETS)


# What is measured. ------------------------------------------------------------------------------------------


def test_weights_and_functions_are_one():
    rows = Results(teaching.WEIGHT_AND_FUNCTION_SPACE.measure({"basis": "cubic"}, DataFolder()))
    for what in ("mean", "std"):
        first, second = (teaching.read(rows, f"{view}: {what}")[1] for view in ("weights", "process"))
        # condition of I + Phi'Phi / s^2, some 1e5, times the machine's precision
        np.testing.assert_allclose(first, second, atol=1e-9)
    np.testing.assert_allclose(
        teaching.read(rows, "weights: mean")[1], teaching.read(rows, "ridge")[1], atol=1e-9
    )


def test_many_bumps_are_an_rbf_kernel():
    x, z = 0.3, -0.1
    bumps = [teaching.basis("80 bumps", np.array([place]), np) for place in (x, z)]
    # Poisson's summation: a trapezoid rule on bumps of width 0.35 with steps of 0.1 is exact to 1e-15
    assert bumps[0] @ bumps[1] == pytest.approx(np.exp(-((x - z) ** 2) / (2 * teaching.BUMP**2)), abs=1e-12)


def test_bishops_kernel():
    x, z, (t0, t1, t2, t3) = 0.4, -0.7, (1.5, 4.0, 10.0, 5.0)
    value = parse_kernel(teaching.bishop(t0, t1, t2, t3))(np.array([[x]]), np.array([[z]]))[0, 0]
    assert value == pytest.approx(t0 * np.exp(-t1 / 2 * (x - z) ** 2) + t2 + t3 * x * z, rel=1e-10)


def test_as_many_landmarks_as_rows_are_the_matrix(made_up):
    cell = {"set": "abalone", "rows": 40, "sigma": 1.0, "method": "nystrom:uniform", "size": 40, "repeat": 0}
    (row,) = approximations.KERNEL_APPROXIMATION.measure(cell, DataFolder(made_up))
    assert row["frobenius"] < 1e-6  # the root of the machine's precision: K_zz is nearly singular


@pytest.mark.parametrize("method", ["cg:none", "minres:none", "cg:rpcholesky"])
def test_enough_steps_are_exact(made_up, method):
    cell = {"set": "magic04", "rows": 60, "repeat": 0}
    experiment, data = approximations.KRYLOV_PREDICTION, DataFolder(made_up)
    (exact,) = experiment.measure({**cell, "method": "exact", "steps": 0}, data)
    (few,) = experiment.measure({**cell, "method": method, "steps": 1}, data)
    (many,) = experiment.measure({**cell, "method": method, "steps": 300}, data)
    assert many["away"] < 1e-6
    assert many["score"] == exact["score"]
    assert few["residual"] > many["residual"]


def test_the_guess_has_less_evidence_than_the_optimum():
    experiment = named("binary-synthetic")
    cells = [{"rows": 30, "parameters": which, "repeat": 1} for which in ("baseline", "optimised")]
    guess, best = (experiment.measure(cell, DataFolder())[0]["log_evidence"] for cell in cells)
    assert best >= guess


# Going on. --------------------------------------------------------------------------------------------------


def counted(cell, data):
    return [{"value": cell["k"] / 3}]


def nothing(results):
    return Shown(words=[f"{len(results.rows)} rows"])


COUNTING = Experiment(
    "counting",
    "How far?",
    "By ones.",
    lambda quick: [{"k": k} for k in range(5)],
    counted,
    ("value",),
    nothing,
)
KILLED = """
import os, signal, sys
from pathlib import Path
from tests.experiments.test_studies import COUNTING, DataFolder, counted, dataclasses, run
def measure(cell, data):
    if cell["k"] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return counted(cell, data)
run(dataclasses.replace(COUNTING, measure=measure), Path(sys.argv[1]), DataFolder())
"""


def watched(seen):
    def measure(cell, data):
        seen.append(cell["k"])
        return counted(cell, data)

    return dataclasses.replace(COUNTING, measure=measure)


def test_after_a_kill_the_same_table(tmp_path):
    run(COUNTING, tmp_path / "whole", DataFolder())
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "killed")])
    assert ended.returncode == -signal.SIGKILL
    seen = []
    finished = run(watched(seen), tmp_path / "killed", DataFolder())
    assert seen == [3, 4]
    assert finished.cells == 5
    assert (tmp_path / "killed" / RESULTS).read_bytes() == (tmp_path / "whole" / RESULTS).read_bytes()


def test_a_line_without_its_end_is_done_again(tmp_path):
    run(COUNTING, tmp_path, DataFolder())
    whole, path = (tmp_path / RESULTS).read_bytes(), tmp_path / CELLS
    path.write_bytes(path.read_bytes()[:-9])
    seen = []
    with pytest.warns(UserWarning, match="not whole"):
        run(watched(seen), tmp_path, DataFolder())
    assert seen == [4]
    assert (tmp_path / RESULTS).read_bytes() == whole


def test_a_cell_that_was_cut_short_by_ctrl_c_is_not_kept(tmp_path):
    """A fit hears Ctrl-C, and gives the best model so far."""

    def measure(cell, data):
        if cell["k"] == 2:
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        return counted(cell, data)

    with pytest.raises(KeyboardInterrupt):
        run(dataclasses.replace(COUNTING, measure=measure), tmp_path, DataFolder())
    assert "Unfinished: 2 of 5" in (tmp_path / PAGE).read_text(encoding="utf-8")
    assert len((tmp_path / RESULTS).read_text().splitlines()) == 3
    assert run(COUNTING, tmp_path, DataFolder()).missing == 0


def test_sizes_that_are_not_done_are_not_in_words():
    scores = {"error": 0.5, "least_error": 0.4, "nlpd": 1.3, "least_nlpd": 1.0, "ece": 0.1, "repeat": 0}
    cells = [{"columns": 1, "rows": 60}, {"columns": 1, "rows": 150}, {"columns": 2, "rows": 60}]
    shown = EXPERIMENTS["multiclass-synthetic"].show(Results([{**cell, **scores} for cell in cells]))
    assert len(shown.words) == 2
    assert "nan" not in f"{shown.words} {[table.lines for table in shown.tables]}"
    assert "with 60 rows 50.0% of the labels are wrong, with 60 50.0%" in shown.words[1]


def test_the_time_is_kept(tmp_path):
    assert run(COUNTING, tmp_path, DataFolder(), time_limit=1e-9).missing == 5
    assert run(COUNTING, tmp_path, DataFolder()).missing == 0


def test_a_cell_that_cannot_be_measured_says_why(tmp_path):
    def measure(cell, data):
        if cell["k"] == 1:
            raise ParameterError("too odd")
        return counted(cell, data)

    finished = run(dataclasses.replace(COUNTING, measure=measure), tmp_path, DataFolder())
    assert finished.notes == ("too odd",)
    assert "too odd" in (tmp_path / PAGE).read_text(encoding="utf-8")


def test_another_experiment_does_not_go_on_in_the_folder(tmp_path):
    run(COUNTING, tmp_path, DataFolder())
    with pytest.raises(InputError, match="begun with quick=false, and now it is true"):
        run(COUNTING, tmp_path, DataFolder(), quick=True)


# Data. ------------------------------------------------------------------------------------------------------


@pytest.fixture
def server(tmp_path):
    """A server on this machine, and its folder."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield folder, f"http://127.0.0.1:{serving.server_port}/"
        serving.shutdown()
        thread.join()


def test_a_set_is_fetched_once(tmp_path, server):
    folder, address = server
    np.savez(folder / "digits.npz", X=np.eye(3))
    known = {"digits": described(folder / "digits.npz", "digits")}
    data = DataFolder(tmp_path / "kept", address)
    assert data.prepare(["digits"], known) == {"digits": known["digits"].sha256}
    np.testing.assert_array_equal(data.load("digits")["X"], np.eye(3))
    (folder / "digits.npz").unlink()
    data.prepare(["digits"], known)


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:-1] + b"?", lambda b: b + b"?"])
def test_a_damaged_set_is_refused(tmp_path, server, damage):
    folder, address = server
    path = folder / "digits.npz"
    np.savez(path, X=np.eye(3))
    known = {"digits": described(path, "digits")}
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=r"digits\.npz is not the file that it should be"):
        DataFolder(tmp_path / "kept", address).prepare(["digits"], known)
    assert not (tmp_path / "kept").exists()
    with pytest.raises(InputError, match="damaged"):  # in a folder, too
        DataFolder(folder).prepare(["digits"], known)


def test_what_a_server_does_not_have(tmp_path, server):
    with pytest.raises(InputError, match=r"could not be fetched: (?i:(file )?not found)"):
        DataFolder(tmp_path / "kept", server[1]).prepare(["abalone"])


def test_an_address_is_of_a_server(tmp_path):
    with pytest.raises(ParameterError, match="begins with https"):
        DataFolder(tmp_path, "file:///etc")


# The command. -----------------------------------------------------------------------------------------------


def command(*arguments):
    return CliRunner().invoke(app, ["experiment", *map(str, arguments)], prog_name="gramian")


def test_the_list():
    told = command("--list")
    assert told.exit_code == 0
    for name, experiment in EXPERIMENTS.items():
        assert name in told.output
        assert experiment.question in told.output


def test_an_unknown_name():
    told = command("kernel-aproximation")
    assert told.exit_code == 2
    assert "Did you mean kernel-approximation?" in told.output
    assert command().exit_code == 2


def test_missing_data_is_told_before_any_work(tmp_path, monkeypatch):
    for name in ("GRAMIAN_DATA", "GRAMIAN_DATA_URL"):
        monkeypatch.delenv(name, raising=False)
    told = command("jass", "--data", tmp_path, "--out", tmp_path / "out")
    assert told.exit_code == 2
    assert "does not have jass_trump.npz" in told.output
    assert "--data FOLDER" in told.output
    assert not (tmp_path / "out").exists()


def test_a_run(tmp_path):
    told = command("prior-draws", "--quick", "--out", tmp_path / "out")
    assert told.exit_code == 0, told.output
    assert "draws turn" in told.output
    assert "A quick run" in (tmp_path / "out" / PAGE).read_text(encoding="utf-8")
