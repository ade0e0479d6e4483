"""fit, predict and show: what they give is what the library gives, and tables keep their rows, ids and
order."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from gramian.cli import columns as reading
from gramian.cli import tasks, work
from gramian.cli.columns import TableOptions
from gramian.cli.speech import said_in
from gramian.cli.work import TOLD, check_output, free_names, print_summary
from gramian.data import filecolumns, sources
from gramian.data.tables import read_blocks, read_table, write_table
from gramian.fitting import Objective
from gramian.modelfile import load
from gramian.version import __version__

from .conftest import columns, listing


def frame() -> pd.DataFrame:
    return pd.DataFrame(columns())


# Round trips


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_fit_and_predict_give_what_python_gives(run, tmp_path, model, suffix):
    table = columns()
    order = np.random.default_rng(0).permutation(len(table["y"]))
    # other order of rows and columns, no target, an id
    new = {name: table[name][order] for name in ("b", "code", "site", "a")}
    write_table(tmp_path / f"new{suffix}", list(new), new)
    run("predict", model, f"new{suffix}", "--out", f"predicted{suffix}")
    found = read_table(f"predicted{suffix}")
    assert found.names == ("b", "code", "site", "a", "mean", "std", "lower95", "upper95")
    for name in new:
        assert list(found.text(name)) == list(read_table(f"new{suffix}").text(name))
    assert list(found.text("code")) == list(table["code"][order])  # 007 stays 007
    features = frame()[["a", "site", "b"]]
    gp = gm.GPRegressor(n_restarts=0, random_state=0).fit(features, table["y"])
    mean, std = gp.predict(features.iloc[order], return_std=True)
    # Text holds floats exactly, so the numbers are the library's to the last bit.
    np.testing.assert_array_equal(found.numbers("mean"), mean)
    np.testing.assert_array_equal(found.numbers("std"), std)
    lower, upper = gp.predict_dist(features.iloc[order]).interval(0.95)
    np.testing.assert_array_equal(found.numbers("lower95"), lower)
    np.testing.assert_array_equal(found.numbers("upper95"), upper)
    assert np.all((lower < mean) & (mean < upper))


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet"])
def test_fit_reads_every_kind_of_table_alike(run, tmp_path, model, suffix):
    table = columns()
    write_table(tmp_path / f"data{suffix}", list(table), table)
    run("fit", f"data{suffix}", "-t", "y", "--id", "code", "--restarts", 0, "-o", "same.gm")
    assert load("same.gm").kernel_ == load(model).kernel_


def test_standard_output_has_the_bytes_of_the_file(run, data, model):
    run("predict", model, data, "--out", "predictions.csv")
    assert run("predict", model, data).stdout_bytes == Path("predictions.csv").read_bytes()


def test_the_program_in_a_process_of_its_own(tmp_path, data):
    # this very package, from any folder
    environment = {**os.environ, "PYTHONPATH": str(Path(gm.__file__).parent.parent)}

    def gramian(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", "-m", "gramian", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )

    fitted = gramian(
        "fit", "data.csv", "--target", "y", "--id", "code", "--restarts", "0", "--out", "model.gm"
    )
    assert (fitted.returncode, fitted.stderr) == (0, "")
    assert "y from a, site (3 categories), b" in fitted.stdout
    assert "left out: code" in fitted.stdout
    predicted = gramian("predict", "model.gm", "data.csv")
    assert (predicted.returncode, predicted.stderr) == (0, "")
    assert predicted.stdout.startswith("code,a,site,b,y,mean,std,lower95,upper95\n000,")
    failed = gramian("predict", "model.gm", "absent.csv")
    assert (failed.returncode, failed.stdout) == (2, "")
    assert failed.stderr.startswith("error: absent.csv: there is no such file")
    assert "Traceback" not in failed.stderr


def test_show_prints_the_summary(run, model):
    shown = run("show", model).stdout
    assert said_in(load(model).summary(), TOLD) in shown
    assert "predicts y from: a, site (north, south, west), b" in shown


def test_the_table_on_a_terminal_has_all_parameters(model, monkeypatch, capsys):
    gp = load(model)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    print_summary(gp)
    shown = capsys.readouterr().out
    assert "─" in shown  # drawn by rich
    for row in gp.parameters_:
        assert any(row.name in line and f"{row.value:.5g}" in line for line in shown.splitlines())
    for line in said_in(gp.summary(), TOLD).splitlines()[:6]:
        assert line.strip() in shown


# Options


def test_options_reach_the_estimator(run, data):
    limits = ("--memory-limit", "2GB", "--time-limit", 60, "--restarts", 1, "--seed", 3)
    run(
        "fit",
        data,
        "-t",
        "y",
        "-c",
        "a",
        "--mean",
        "linear",
        "--noise",
        0.5,
        "--method",
        "exact",
        "-k",
        "2.0 * RBF(1.5)",
        *limits,
        "-o",
        "m.gm",
    )
    settings = load("m.gm").get_params()
    expected = {
        "mean": "linear",
        "noise": 0.5,
        "method": "exact",
        "memory_limit": "2GB",
        "time_limit": 60.0,
        "n_restarts": 1,
        "random_state": 3,
    }
    assert {name: settings[name] for name in expected} == expected
    assert settings["kernel"] == 2.0 * gm.RBF(1.5)


@pytest.mark.parametrize(
    ("options", "method"),
    [
        (("nystrom", "--size", 7, "--sampling", "kmeans"), gm.Nystrom(7, "kmeans")),
        (("fourier", "--size", 8, "--kind", "sorf"), gm.Fourier(8, "sorf")),
        (("fitc", "--sampling", "pivoted"), gm.Sparse(objective="fitc", inducing="pivoted")),
        (("minres", "--size", 5), gm.MINRES(rank=5)),
        (("neighbours", "--size", 12), gm.Neighbours(12)),
        (("cg",), "cg"),
    ],
)
def test_settings_of_methods_reach_the_estimator(run, data, monkeypatch, options, method):
    class Stop(Exception): ...

    def made(kernel, **settings):
        assert settings["method"] == method
        raise Stop

    monkeypatch.setattr(tasks, "GPRegressor", made)
    with pytest.raises(Stop):
        run("fit", data, "-t", "y", "--id", "code", "-o", "m.gm", "--method", *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("exact", "--size", 7),
            (
                "the method 'exact' has no size. Methods with a size: nystrom, fourier, vfe, svgp, fitc, dtc,"
                " neighbours, cg, minres"
            ),
        ),
        (("auto", "--size", 7), "the method 'auto' chooses its settings itself"),
        (("fourier", "--sampling", "rls"), "Methods with a sampling: nystrom, vfe, svgp, fitc, dtc"),
        (("nystrom", "--sampling", "best"), "--sampling best is not known"),
        (("nystrom", "--size", 0), "--size 0 must be a whole number from 1 on"),
        (("nistrom", "--size", 8), "the method 'nistrom' is not known"),
    ],
)
def test_settings_that_a_method_does_not_have_are_refused(run, data, options, message):
    assert (
        message
        in run("fit", data, "-t", "y", "--id", "code", "-o", "m.gm", "--method", *options, code=2).stderr
    )


def test_noise_zero_interpolates(run, tmp_path):
    write_table(
        tmp_path / "d.csv", ["x", "y"], {"x": np.arange(6.0), "y": np.array([0.0, 1.0, 0.5, -1.0, 0.0, 2.0])}
    )
    run("fit", "d.csv", "-t", "y", "--noise", 0, "--restarts", 0, "-k", "RBF(1.0)", "-o", "m.gm")
    run("predict", "m.gm", "d.csv", "-o", "p.csv")
    found = read_table("p.csv")
    # K of six points one lengthscale apart has condition about 1e3: rounding leaves 1e-12, far below 1e-8.
    np.testing.assert_allclose(found.numbers("mean"), found.numbers("y"), atol=1e-8)


def test_noise_of_each_target(run, tmp_path):
    lines = ["x,rain,wind", *(f"{x},{np.sin(x)},{100 * np.cos(x)}" for x in np.linspace(0, 3, 12))]
    (tmp_path / "d.csv").write_text("\n".join(lines))
    fit = ("fit", "d.csv", "-t", "rain", "-t", "wind", "-k", "RBF(1.0)", "--restarts", 0)
    run(*fit, "--noise", 0.1, "--noise", 50, "-o", "m.gm")
    gp = load("m.gm")
    assert tuple(gp.noise) == (0.1, 50.0)
    assert [name for name in gp.parameters_.names if "noise" in name] == ["noise[rain]", "noise[wind]"]
    run(*fit, "--noise", 0.1, "-o", "m.gm")
    assert load("m.gm").noise == 0.1
    refused = run(*fit, *("--noise", 0.1) * 3, "-o", "n.gm", code=2).stderr
    assert "noise has 3 variances, but y has 2 outputs" in refused


def test_target_kind_f_leaves_the_noise_out(run, data, model):
    run("predict", model, data, "-o", "y.csv")
    run("predict", model, data, "-o", "f.csv", "--target-kind", "f")
    with_noise, without = read_table("y.csv").numbers("std"), read_table("f.csv").numbers("std")
    fitted = load(model).fitted_
    noise = np.mean([member.noise for member in fitted.members])
    # variances of y are n / (n - 1) wider within each draw of the parameters, not between these
    few = fitted.n_rows / (fitted.n_rows - 1)
    assert np.all(with_noise**2 > (without**2 + noise) * (1 + 1e-10))
    assert np.all(with_noise**2 < few * (without**2 + noise) * (1 + 1e-10))


def test_other_levels_and_quantiles(run, data, model):
    found = run("predict", model, data, "--level", 0.9, "--quantiles", "0.1, 0.5", "-o", "out.csv")
    table = read_table("out.csv")
    assert table.names[-6:] == ("mean", "std", "lower90", "upper90", "q0.1", "q0.5")
    dist = load(model).predict_dist(frame()[["a", "site", "b"]])
    np.testing.assert_array_equal(table.numbers("upper90"), dist.interval(0.9)[1])
    np.testing.assert_array_equal(table.numbers("q0.1"), dist.quantile([0.1])[:, 0])
    assert "24 predictions" in found.stderr
    for wrong, part in (
        (("--level", 95), "--level 95 is no probability"),
        (("--quantiles", "a,b"), "'a,b' are no numbers"),
        (("--quantiles", "0.1,1.5"), "between 0 and 1"),
    ):
        assert part in run("predict", model, data, *wrong, code=2).stderr


def test_score_prints_the_evaluation(run, tmp_path, data, model):
    gp = load(model)
    assert gp.fitted_.columns.targets == ("y",)
    features, y = frame()[["a", "site", "b"]], columns()["y"]
    scored = run("score", model, data).stdout
    assert scored.startswith(f"{gp.evaluate(features, y)}\n")
    assert "R2 is the share of its variance that is foretold" in scored
    assert "Predictions of y at 24 rows" in run("score", model, data, "--target", "b").stdout
    gm.GPRegressor(optimize=False).fit(features, y).save(tmp_path / "nameless.gm")
    assert "Add --target NAME" in run("score", "nameless.gm", data, code=2).stderr
    assert "RMSE" in run("score", "nameless.gm", data, "-t", "y").stdout
    run("fit", data, "-t", "site", "-c", "a,b,y", "--restarts", 0, "--time-limit", 1, "-o", "labels.gm")
    assert "accuracy" in run("score", "labels.gm", data).stdout


def test_update_adds_rows_to_a_model(run, tmp_path, data, model):
    gp, rows = load(model), frame()[["a", "site", "b"]]
    said = run("update", model, data, "--out", "more.gm").stdout
    assert "24 rows of" in said
    assert "more.gm knows 48 rows, its parameters are as before" in said
    assert load(model).fitted_.n_rows == 24
    gp.update(rows, columns()["y"])
    np.testing.assert_array_equal(load("more.gm").predict(rows), gp.predict(rows))
    run("update", "more.gm", data, "--window", 30)
    assert load("more.gm").fitted_.n_rows == 30
    assert "48 added and 42 forgotten" in run("show", "more.gm").stdout
    said = run("update", "more.gm", data, "--refit", "always").stdout
    assert "searched for again" in said
    before = (tmp_path / "more.gm").read_bytes()
    assert "--refit often is not known" in run("update", "more.gm", data, "--refit", "often", code=2).stderr
    run("fit", data, "-t", "y", "-c", "a,b", "--method", "vfe", "--size", 5, "--restarts", 0, "-o", "few.gm")
    assert "holds no rows" in run("update", "few.gm", data, code=2).stderr
    assert (tmp_path / "more.gm").read_bytes() == before


def test_several_targets_are_several_outputs(run, tmp_path):
    x = np.linspace(0, 3, 15)
    table = {"x": x, "u": np.sin(x), "v": np.cos(2 * x)}
    write_table(tmp_path / "d.csv", list(table), table)
    run("fit", "d.csv", "--target", "u", "--target", "v", "--restarts", 0, "-o", "m.gm")
    run("predict", "m.gm", "d.csv", "-o", "p.csv")
    found = read_table("p.csv")
    names = ("mean_u", "std_u", "lower95_u", "upper95_u", "mean_v", "std_v", "lower95_v", "upper95_v")
    assert found.names == ("x", "u", "v", *names)
    gp = load("m.gm")
    assert gp.fitted_.columns.targets == ("u", "v")
    assert run("show", "m.gm").stdout.startswith("m.gm predicts u, v from: x\n")
    mean, std = gp.predict(pd.DataFrame({"x": read_table("d.csv").numbers("x")}), return_std=True)
    for k, name in enumerate("uv"):
        np.testing.assert_array_equal(found.numbers(f"mean_{name}"), mean[:, k])
        np.testing.assert_array_equal(found.numbers(f"std_{name}"), std[:, k])


def test_many_categories_are_shown_in_part(run, tmp_path):
    words = [f"s{k:02}" for k in range(15)] * 2
    y = np.sin(np.arange(30.0)).round(3)
    write_table(tmp_path / "d.csv", ["site", "y"], {"site": words, "y": y})
    run("fit", "d.csv", "--target", "y", "--categorical", "site", "--restarts", 0, "-o", "m.gm")
    shown = run("show", "m.gm").stdout
    assert "from: site (s00, s01, s02, s03, s04, s05, s06, s07, s08, s09 and 5 more)" in shown
    assert "s13, s14)" in run("show", "m.gm", "--all").stdout


def test_a_model_of_many_columns_is_shown_on_a_page(run, tmp_path):
    rng = np.random.default_rng(0)
    table = {f"c{j}": rng.normal(size=12) for j in range(60)}
    table["y"] = table["c7"] + 0.1 * rng.normal(size=12)
    write_table(tmp_path / "d.csv", list(table), table)
    run("fit", "d.csv", "--target", "y", "--restarts", 0, "-o", "m.gm")
    page, whole = run("show", "m.gm").stdout, run("show", "m.gm", "--all").stdout
    assert len(page.splitlines()) < 40
    assert "and 40 more" in page.splitlines()[0]
    assert "kernel.lengthscale[c7]" in page
    assert page.splitlines()[-1] == "All parameters: gramian show m.gm --all"
    assert all(f"kernel.lengthscale[c{j}]" in whole for j in range(60))


def test_columns_may_be_listed_or_repeated_and_may_have_commas(run, tmp_path):
    table = {"a,b": np.arange(8.0), "c": np.arange(8.0) ** 2, "d": np.ones(8), "y": np.sin(np.arange(8.0))}
    write_table(tmp_path / "d.csv", list(table), table)
    run("fit", "d.csv", "-t", "y", "-c", "a,b", "-c", "c", "--restarts", 0, "-o", "m.gm")
    assert load("m.gm").fitted_.columns.names == ("a,b", "c")
    run("fit", "d.csv", "-t", "y", "-c", "d, c", "--restarts", 0, "-o", "m.gm")
    assert load("m.gm").fitted_.columns.names == ("d", "c")


def test_predictions_give_way_to_columns_of_the_same_name(run, tmp_path, model):
    table = {**columns(), "mean": np.zeros(24), "predicted_std": np.array(["mine"] * 24, dtype=object)}
    write_table(tmp_path / "new.csv", list(table), table)
    result = run("predict", model, "new.csv", "-o", "p.csv")
    found = read_table("p.csv")
    assert found.names[-4:] == (
        "predicted2_mean",
        "predicted2_std",
        "predicted2_lower95",
        "predicted2_upper95",
    )
    assert list(found.text("mean")) == ["0.0"] * 24
    assert list(found.text("predicted_std")) == ["mine"] * 24
    assert "predicted2_mean" in result.stderr


def test_free_names_keep_names_that_nobody_has():
    assert free_names(["mean", "std"], ["a"]) == {"mean": "mean", "std": "std"}
    assert free_names(["mean", "std"], ["std"]) == {"mean": "predicted_mean", "std": "predicted_std"}


def test_text_that_differs_in_every_row_is_a_category_only_on_demand(run, tmp_path):
    table = {
        "name": np.array(["p", "q", "r", "s"], dtype=object),
        "x": np.arange(4.0),
        "y": np.array([0.0, 1.0, 0.0, 2.0]),
    }
    write_table(tmp_path / "d.csv", list(table), table)
    assert "--id 'name'" in run("fit", "d.csv", "-t", "y", "-o", "m.gm", code=2).stderr
    run("fit", "d.csv", "-t", "y", "-c", "name,x", "--restarts", 0, "-o", "m.gm")
    assert load("m.gm").fitted_.columns.categories == {0: ("p", "q", "r", "s")}


# Between Python and the command line (warnings are errors here, scikit-learn's of missing names too)


def test_a_model_of_the_command_predicts_a_data_frame(model):
    gp = load(model)
    assert list(gp.feature_names_in_) == ["a", "site", "b"]
    assert np.all(np.isfinite(gp.predict(frame()[["a", "site", "b"]])))


def test_a_model_of_a_data_frame_predicts_a_file(run, data):
    features = frame()[["b", "site"]]
    gp = gm.GPRegressor(n_restarts=0).fit(features, frame()["y"])
    gp.save("m.gm")
    run("predict", "m.gm", data, "-o", "p.csv")
    np.testing.assert_array_equal(
        read_table("p.csv").numbers("mean"), gp.predict(features, return_std=True)[0]
    )


def test_a_model_of_an_array_calls_its_columns_x0_x1(run, tmp_path):
    X = np.column_stack([np.arange(6.0), np.arange(6.0) ** 2])
    gp = gm.GPRegressor(n_restarts=0).fit(X, np.sin(X[:, 0]))
    gp.save("m.gm")
    write_table(tmp_path / "d.csv", ["x1", "x0"], {"x0": X[:, 0], "x1": X[:, 1]})
    run("predict", "m.gm", "d.csv", "-o", "p.csv")
    np.testing.assert_array_equal(read_table("p.csv").numbers("mean"), gp.predict(X, return_std=True)[0])
    write_table(tmp_path / "d.csv", ["u", "v"], {"u": X[:, 0], "v": X[:, 1]})
    assert "without names, so its columns are called x0, x1" in run("predict", "m.gm", "d.csv", code=2).stderr


def test_a_name_that_no_screen_can_show_is_written_out(run):
    X = pd.DataFrame(np.column_stack([np.arange(6.0), np.arange(6.0) ** 2]))
    X.columns = pd.Index(["a", "\ud800"], dtype=object)
    gm.GPRegressor(gm.RBF(1.0), optimize=False).fit(X, np.sin(X["a"])).save("m.gm")
    assert "from: a, \\ud800" in run("show", "m.gm").stdout


def test_a_missing_package_is_told_before_the_work(run, data, model, monkeypatch):
    """Of predictions that could not be written, none is made; nor is a table read for chains that could not
    be judged."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    for name in ("load", "write_predictions", "coded"):
        monkeypatch.setattr(work, name, None)
    told = run("predict", model, data, "-o", "p.parquet", code=2).stderr
    assert 'pip install "gramian[parquet]"' in told
    monkeypatch.setattr(TableOptions, "opened", None)
    told = run("fit", data, "-t", "y", "--hyper", "mcmc", "-o", "m.gm", code=2).stderr
    assert 'pip install "gramian[mcmc]"' in told


# Ctrl-C


def test_interrupting_a_fit_keeps_the_best_model(run, data, monkeypatch):
    original, calls = Objective.__call__, []

    def interrupted(self, theta):
        calls.append(theta)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, theta)

    monkeypatch.setattr(Objective, "__call__", interrupted)
    shown = run("fit", data, "-t", "y", "-c", "a", "-o", "m.gm").stdout
    assert "interrupted" in shown
    assert load("m.gm").outcome_.stopped == "interrupted"


def test_interrupting_elsewhere_is_130_and_leaves_no_file(run, tmp_path, data, model, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    before = listing(tmp_path)
    monkeypatch.setattr(gm.GPRegressor, "predict_dist", interrupted)
    result = run("predict", model, data, "-o", "p.csv", code=130)
    assert result.stderr.strip() == "interrupted"
    assert listing(tmp_path) == before


# Help


def test_version_and_bare_command(run):
    assert run("--version").stdout == f"gramian {__version__}\n"
    bare = run().stdout
    assert bare == run("--help").stdout
    assert all(command in bare for command in ("fit", "predict", "show", "demo"))


@pytest.mark.parametrize("command", ["fit", "predict", "show", "demo"])
def test_every_command_has_help_with_examples(run, command):
    shown = run(command, "--help").stdout
    assert f"Examples:\n    gramian {command}" in shown


def test_the_commands_are_declared_without_the_numerical_libraries():
    program = (
        "import sys, types; package = types.ModuleType('gramian'); package.__path__ = [sys.argv[1]];"
        " sys.modules['gramian'] = package; import gramian.cli.main; print(sorted({'jax', 'sklearn', 'scipy',"
        " 'numpy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(files("gramian"))], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_checking_an_output_leaves_nothing(tmp_path):
    (tmp_path / "old.gm").write_bytes(b"old")
    check_output(tmp_path / "old.gm")
    check_output(tmp_path / "new.gm")
    assert listing(tmp_path) == {str(tmp_path / "old.gm"): b"old"}


# Files that are not read as a whole


@pytest.fixture
def large_files(monkeypatch):
    """The blocks of files have 7 rows."""
    for module in (work, reading, sources, filecolumns):
        monkeypatch.setattr(module, "read_blocks", lambda path, **_: read_blocks(path, 7))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_a_large_file_gives_the_model_of_a_small_one(run, tmp_path, model, large_files, suffix):
    table = columns()
    write_table(tmp_path / f"data{suffix}", list(table), table)
    shown = run("fit", f"data{suffix}", "-t", "y", "--id", "code", "--restarts", 0, "-o", "large.gm").stdout
    assert "y from a, site (3 categories), b" in shown
    assert "left out: code" in shown
    large, small = load("large.gm"), load(model)
    assert large.fitted_.columns == small.fitted_.columns
    assert large.kernel_ == small.kernel_
    assert list(large.feature_names_in_) == ["a", "site", "b"]
    features = frame()[["a", "site", "b"]]
    np.testing.assert_array_equal(large.predict(features), small.predict(features))


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_predictions_in_blocks_are_those_of_the_whole(run, tmp_path, model, monkeypatch, suffix):
    table = columns()
    write_table(tmp_path / f"new{suffix}", list(table), table)
    run("predict", model, f"new{suffix}", "-o", f"whole{suffix}")
    monkeypatch.setattr(work, "read_blocks", lambda path, **_: read_blocks(path, 7))
    result = run("predict", model, f"new{suffix}", "-o", f"blocks{suffix}")
    assert "24 predictions are in" in result.stderr
    whole, blocks = read_table(f"whole{suffix}"), read_table(f"blocks{suffix}")
    assert blocks.names == whole.names
    for name in table:
        assert blocks.columns[name].tolist() == whole.columns[name].tolist()
    # Blocks of other sizes may sum in another order; 24 rows of values about 1 round to 1e-15 or so.
    for name in ("mean", "std", "lower95", "upper95"):
        np.testing.assert_allclose(blocks.numbers(name), whole.numbers(name), rtol=1e-10, atol=1e-10)


def test_standard_output_in_chunks_has_the_bytes_of_the_file(run, data, model, monkeypatch):
    monkeypatch.setattr(work, "CHUNK", 10)
    run("predict", model, data, "--out", "predictions.csv")
    assert run("predict", model, data).stdout_bytes == Path("predictions.csv").read_bytes()


def test_a_fault_in_a_late_block_leaves_the_old_predictions(run, tmp_path, model, monkeypatch):
    table = columns()
    table["a"] = table["a"].astype(object)
    table["a"][20] = "nowhere"
    write_table(tmp_path / "new.csv", list(table), table)
    (tmp_path / "p.csv").write_bytes(b"old")
    before = listing(tmp_path)
    monkeypatch.setattr(work, "read_blocks", lambda path, **_: read_blocks(path, 7))
    message = run("predict", model, "new.csv", "-o", "p.csv", code=2).stderr
    assert "new.csv, line 22, column 'a': 'nowhere' is not a number" in message
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("x,y\n" + "1,5\n" * 20, "column 'y': all 20 rows have the value 5"),
        (
            "name,x,y\n" + "".join(f"n{i},{i % 3},{i}\n" for i in range(20)),
            "text that differs in every row ('n0', 'n1', ...)",
        ),
        (
            "x,y\n" + "".join(f"{i},{i}\n" for i in range(20)) + "2o,3\n",
            "bad.csv, line 22, column 'x': '2o' is not a number",
        ),
        (
            "x,y\n" + "".join(f"{i},{i}\n" for i in range(20)) + "2,z\n",
            "bad.csv, line 22, column 'y': 'z' is not a number",
        ),
    ],
)
def test_large_tables_that_cannot_be_fitted(run, tmp_path, large_files, content, part):
    (tmp_path / "bad.csv").write_text(content)
    assert part in run("fit", "bad.csv", "-t", "y", "-o", "m.gm", code=2).stderr
    assert not (tmp_path / "m.gm").exists()
