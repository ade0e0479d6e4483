"""compare and plan: tables in, tables out, and a comparison that goes on after Ctrl-C."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from gramian import clock
from gramian.choose.plan import plan
from gramian.cli.planning import count_rows
from gramian.data.tables import write_table
from gramian.experiments import compare as module

from .conftest import columns

GIVEN = (
    "--kernel",
    "RBF(2.0).on('a', 'b') * Categorical().on('site')",
    "--noise",
    0.05,
    "--id",
    "code",
    "--repeats",
    2,
)


def test_compare_prints_the_table_and_keeps_table_runs_and_picture(run, data, tmp_path):
    result = run(
        "compare",
        data,
        "-t",
        "y",
        "--methods",
        "nystrom:uniform, exact",
        "--sizes",
        "5,10",
        *GIVEN,
        "-o",
        "kept",
    )
    folder = tmp_path / "kept"
    assert sorted(path.name for path in folder.iterdir()) == [
        "comparison.png",
        "runs.csv",
        "settings.json",
        "table.txt",
    ]
    assert (folder / "table.txt").read_text().strip() == result.stdout.strip()
    assert (folder / "comparison.png").read_bytes()[:4] == b"\x89PNG"
    runs = pd.read_csv(folder / "runs.csv")
    assert list(zip(runs["method"], runs["size"], runs["repeat"], strict=True)) == [
        (method, size, repeat)
        for repeat in (0, 1)
        for method, size in (("nystrom:uniform", 5), ("nystrom:uniform", 10), ("exact", 0))
    ]
    assert "24 rows, 3 columns, of which 20% to test" in result.stdout


def test_after_ctrl_c_the_same_command_does_the_rest(run, data, tmp_path, monkeypatch):
    command = (
        "compare",
        data,
        "-t",
        "y",
        "--methods",
        "nystrom:uniform,exact",
        "--sizes",
        "5",
        *GIVEN,
        "-o",
        "kept",
    )
    real, tasks = module.measure, []

    def interrupted(problem, task):
        if len(tasks) == 3:
            raise KeyboardInterrupt
        tasks.append(task)
        return real(problem, task)

    monkeypatch.setattr(module, "measure", interrupted)
    stopped = run(*command, code=130)
    assert "3 runs are in" in stopped.stderr
    assert "the same command does the rest" in stopped.stderr
    monkeypatch.setattr(module, "measure", lambda problem, task: tasks.append(task) or real(problem, task))
    run(*command)
    assert len(tasks) == len(pd.read_csv(tmp_path / "kept" / "runs.csv")) == 4
    refused = run(*command[:-2], "-o", "kept", "--seed", 1, code=2)
    assert "begun with --seed 0, and now it is 1" in refused.stderr


def test_after_a_time_limit_the_same_command_does_the_rest(run, data, tmp_path, monkeypatch):
    command = ("compare", data, "-t", "y", "--methods", "nystrom:uniform,exact", "--sizes", "5", *GIVEN)
    kept = (*command, "-o", "kept")
    real, now = module.measure, [1e6]

    def slow(problem, task):
        now[0] += 10
        return real(problem, task)

    with monkeypatch.context() as patched:
        patched.setattr(module, "measure", slow)
        patched.setattr(clock, "now", lambda: now[0])
        stopped = run(*kept, "--time-limit", 25)
    assert "Left out, since the time was over: nystrom:uniform 5 (1 of 2), exact (1 of 2)." in stopped.stdout
    assert "the same command does the rest" in stopped.stderr
    assert len(pd.read_csv(tmp_path / "kept" / "runs.csv")) == 2
    assert "Left out" not in run(*kept).stdout
    assert len(pd.read_csv(tmp_path / "kept" / "runs.csv")) == 4


def test_without_a_target_kernel_matrices_are_compared(run, data):
    result = run(
        "compare",
        data,
        "-c",
        "a,b",
        "--kernel",
        "RBF(1.0)",
        "--standardize",
        "--methods",
        "nystrom:pivoted",
        "--sizes",
        8,
        "--repeats",
        1,
    )
    assert "K: Frobenius" in result.stdout
    assert "MSE" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--methods", "nystrom:best"), "After the colon comes one of uniform"),
        (("--sizes", "10,many"), "--sizes has 'many'"),
        (("--sizes", ","), "sizes is empty"),
        (("--kernel", "RBF("), "RBF("),
        (("--repeats", 0), "--repeats 0"),
    ],
)
def test_mistakes_are_one_sentence(run, data, arguments, message):
    result = run("compare", data, "-t", "y", "--id", "code", *arguments, code=2)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


# plan


def test_plan_prints_the_plan_of_the_shape(run, data):
    printed = run("plan", data, "-t", "y", "--id", "code", "--memory-limit", "1GB", "--time-limit", 60).stdout
    expected = str(plan((24, 3), None, "1GB", 60.0))
    # Times are measured anew in the same process only once, so the whole text is the same.
    assert printed.strip() == expected.strip().replace('method="auto"', "--method auto")
    assert "24 rows, 3 columns" in printed


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_plan_counts_rows_of_every_kind_of_table(run, tmp_path, suffix):
    table = columns(1500)
    write_table(tmp_path / f"long{suffix}", list(table), table)
    assert "1,500 rows, 3 columns" in run("plan", f"long{suffix}", "-t", "y", "--id", "code").stdout


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3,4\n",
        "a,b\r\n1,2\r\n3,4",
        "a,b\n1,2\n3,4\n\n \n",
        'a,b\n1,"two\nlines\n"\n"3, ""x""\n",4\n',
        'a,"b\nb"\n1,2\n3,"\n"',
        "a,b\r1,2\r3,4\r",
    ],
)
def test_lines_are_counted_as_a_reader_of_tables_counts_them(tmp_path, text, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    for chunk in (2**20, 3, 1):  # boundaries of chunks anywhere
        monkeypatch.setattr("gramian.cli.planning.CHUNK", chunk)
        assert count_rows(path) == 2
    with gzip.open(tmp_path / "t.csv.gz", "wb") as file:
        file.write(text.encode())
    assert count_rows(tmp_path / "t.csv.gz") == 2


def test_plan_prices_a_method_with_settings_of_its_own(run, data):
    printed = run(
        "plan", data, "-t", "y", "--id", "code", "--method", "nystrom", "--size", 12, "--sampling", "rls"
    ).stdout
    assert "nystrom, rank 12 by rls" in printed
    assert "name it with --method" in run("plan", data, "-t", "y", "--size", 12, code=2).stderr


def test_plan_says_what_the_limits_mean(run, data):
    assert (
        "--time-limit -3.0 must be a positive number"
        in run("plan", data, "-t", "y", "--id", "code", "--time-limit", -3, code=2).stderr
    )
    printed = run("plan", data, "-t", "y", "--id", "code", "--memory-limit", "1kB").stdout
    assert "Nothing fits within the memory limit" in printed
    assert "fit refuses to start" in printed


def test_plan_refuses_a_column_that_is_not_there(run, data):
    assert "has no column 'yy'" in run("plan", data, "-t", "yy", code=2).stderr


def test_help_names_methods_and_examples(run):
    text = run("compare", "--help").stdout
    for word in ("nystrom", "recursive-rls", "qmc-sobol", "Examples:"):
        assert word in text
    assert "minres" in run("fit", "--help").stdout
    assert np.all(
        [word in run("plan", "--help").stdout for word in ("--memory-limit", "--time-limit", "Examples:")]
    )
