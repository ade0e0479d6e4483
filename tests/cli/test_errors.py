"""Whatever is wrong with what was given: exit code 2, one message with the place and the cure, and no file
written or changed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gramian.cli import columns as reading
from gramian.cli import work
from gramian.data.tables import read_table, write_table

from .conftest import columns, listing


@pytest.fixture
def refused(run, tmp_path, data, model):
    """Runs a command that must fail; gives its message. data.csv, model.gm and bad.csv (from `content`) are
    there."""

    def command(*arguments: object, content: str | bytes | None = None) -> str:
        if content is not None:
            (tmp_path / "bad.csv").write_bytes(content.encode() if isinstance(content, str) else content)
        before = listing(tmp_path)
        result = run(*arguments, code=2)
        assert result.stdout == ""
        assert "Traceback" not in result.stderr
        assert listing(tmp_path) == before
        return result.stderr

    return command


def said(message: str, *parts: str) -> None:
    assert message.startswith("error: ")
    for part in parts:
        assert part in message, message


# fit


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("x,y\n1,2\n3,4,5\n", ("bad.csv, line 3", "3 fields, but the header has 2")),
        ("x,y\n1,2\n\0,3\n", ("bad.csv, line 3", "a NUL byte")),
        ("x,y\n", ("bad.csv has a header (x, y) but no rows",)),
        ("", ("bad.csv is empty",)),
        ("x,y\n1,2\n2,abc\n3,4\n", ("bad.csv, line 3, column 'y'", "'abc' is not a number")),
        ("x,y\n1,\n2,\n3,\n", ("nothing to learn",)),
        ("x,y\n1,2\n2,inf\n3,4\n", ("bad.csv, line 3, column 'y'", "not a finite number")),
        # a typing error, not a category
        ("x,y\n1,2\n2o,3\n3,4\n", ("bad.csv, line 3, column 'x'", "'2o' is not a number")),
        ("d,y\n3/4/2024,2\n5/6/2024,3\n", ("column 'd': '3/4/2024' may be a day and a month", "2024-12-31")),
        (
            "x,y\n1,5\n2,5\n3,5\n",
            ("bad.csv, column 'y': all 3 rows have the value 5", "Is it the right column?"),
        ),
        ("x,y\n1,5\n", ("bad.csv, column 'y': there is a single row",)),
        (
            "name,x,y\np,1,5\nq,2,6\n",
            ("bad.csv, column 'name'", "differs in every row ('p', 'q', ...)", "--id 'name'"),
        ),
        ("y\n1\n2\n", ("no column left to learn from",)),
    ],
)
def test_tables_that_cannot_be_fitted(refused, content, parts):
    said(refused("fit", "bad.csv", "--target", "y", "--out", "new.gm", content=content), *parts)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("-t", "Y"), ("has no column 'Y'; did you mean 'y'?", "Its columns: code, a, site, b, y")),
        (("-t", "y", "-c", "a,bb"), ("has no column 'bb'",)),
        (("-t", "y", "--id", "cod"), ("has no column 'cod'; did you mean 'code'?",)),
        (("-t", "y", "-c", "a,y"), ("'y' is among --columns and is the target as well",)),
        (("-t", "y", "-c", "a", "--id", "a"), ("'a' is among --columns and is an id as well",)),
        (("-t", "y", "-t", "y"), ("--target names the column 'y' twice",)),
        (("-t", "y", "-c", "a,a"), ("--columns names the column 'a' twice",)),
        (("-t", "y", "-c", "a", "-k", "RFB(1.0)"), ("RFB", "^")),
        (("-t", "y", "-c", "a", "-k", "__import__('os')"), ("^",)),
        (
            ("-t", "y", "-c", "a", "-k", "RBF([1.0, 2.0])"),
            ("lengthscale has 2 values, but the data have 1 columns",),
        ),
        (
            ("-t", "y", "-c", "a,site", "-k", "RBF(1.0)"),
            ("RBF needs numbers, but column 'site' holds categories",),
        ),
        (("-t", "y", "-c", "a", "--method", "magic"), ("--method magic is not known",)),
        (("-t", "y", "-c", "a", "--mean", "cubic"), ("--mean cubic is not known",)),
        (("-t", "y", "-c", "a", "--noise", "-1"), ("--noise -1.0 must be a variance",)),
        (("-t", "y", "-c", "a", "--restarts", "-1"), ("--restarts -1",)),
        (("-t", "y", "-c", "a", "--time-limit", "0"), ("--time-limit 0.0",)),
        (("-t", "y", "-c", "a", "--memory-limit", "2XB"), ("--memory-limit 2XB is not a size",)),
        (("-t", "y", "-c", "a", "--memory-limit", "1kB"), ("on 24 rows needs", "--memory-limit 1kB")),
    ],
)
def test_options_that_cannot_be(refused, options, parts):
    said(refused("fit", "data.csv", *options, "--out", "new.gm"), *parts)


@pytest.mark.parametrize(
    ("out", "part"),
    [
        ("absent/new.csv", "there is no folder"),
        ("data.csv/new.csv", "there is no folder"),
        ("folder.csv", "folder.csv is a folder"),
        ("data.csv", "data.csv would be overwritten, but it is read from"),
        pytest.param(
            "/proc/new.csv",
            "/proc/new.csv cannot be written",
            marks=pytest.mark.skipif(sys.platform != "linux", reason="other systems have no /proc"),
        ),
    ],
)
@pytest.mark.parametrize(
    "command", [("fit", "data.csv", "-t", "y", "-c", "a"), ("predict", "model.gm", "data.csv")]
)
def test_outputs_that_cannot_be_written_are_refused_before_the_work(
    refused, tmp_path, monkeypatch, command, out, part
):
    def worked(*_, **__):
        raise AssertionError("the data were read, though the output cannot be written")

    for module in (work, reading):
        monkeypatch.setattr(module, "read_blocks", worked)
    (tmp_path / "folder.csv").mkdir()
    said(refused(*command, "--out", out), part)


def test_a_model_does_not_overwrite_itself_by_its_predictions(refused, tmp_path, model_bytes):
    (tmp_path / "model.csv").write_bytes(model_bytes)
    said(refused("predict", "model.csv", "data.csv", "--out", "model.csv"), "model.csv would be overwritten")


# predict


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("a,site\n1,north\n", ("bad.csv has no column 'b', which the model needs",)),
        ("a,Site,b\n1,north,2\n", ("bad.csv has no column 'site'", "Did you mean 'Site'?")),
        ("a,site,b\n1,north,2\n1,south,two\n", ("bad.csv, line 3, column 'b'", "'two' is not a number")),
        ("a,site,b\n1,north\n", ("bad.csv, line 2", "2 fields, but the header has 3")),
    ],
)
def test_tables_that_cannot_be_predicted(refused, content, parts):
    said(refused("predict", "model.gm", "bad.csv", "--out", "new.csv", content=content), *parts)


def test_new_categories_and_missing_cells_are_predicted_and_counted(run, tmp_path, model):
    table = columns()
    table["site"][5] = "east"
    table["a"][[3, 7]] = np.nan
    write_table(tmp_path / "new.parquet", list(table), table)
    told = run("predict", "model.gm", "new.parquet", "-o", "p.csv").stderr
    assert "rows with missing cells (2) are predicted as the average" in told
    assert (
        "rows with a category in 'site' that the fit has not seen (1: 'east') are predicted as unlike" in told
    )
    std = read_table(tmp_path / "p.csv").numbers("std")
    assert np.all(std[[3, 5, 7]] > 2 * np.median(std))


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_warning_is_a_note_without_the_line_of_code_that_it_came_from(run, tmp_path, model):
    table = columns()
    table["site"][5] = "east"
    write_table(tmp_path / "test.csv", list(table), table)
    told = run("score", "model.gm", "test.csv").stderr
    new = "note: rows with categories that the fit has not seen are predicted as unlike all others: site (1)"
    assert told.splitlines()[0] == new
    assert "Warning" not in told


def test_kinds_of_targets_and_names_of_tables(refused):
    said(
        refused("predict", "model.gm", "data.csv", "--target-kind", "z", "--out", "new.csv"),
        "--target-kind 'z' is not known",
    )
    said(
        refused("predict", "model.gm", "data.csv", "--out", "new.xlsx"),
        "new.xlsx: the name of a table ends in one of .csv",
    )
    said(refused("predict", "model.gm", "data.docx"), "data.docx: there is no such file")


@pytest.mark.parametrize("command", [("show",), ("predict",)])
@pytest.mark.parametrize("damage", ["cut", "altered", "table", "absent"])
def test_model_files_that_cannot_be_read(refused, tmp_path, model_bytes, command, damage):
    at = len(model_bytes) - 100
    contents = {
        "cut": model_bytes[:at],
        "altered": model_bytes[:at] + bytes([model_bytes[at] ^ 1]) + model_bytes[at + 1 :],
        "table": b"a,b\n1,2\n",
    }
    if damage in contents:
        (tmp_path / "other.gm").write_bytes(contents[damage])
    arguments = (*command, "other.gm", *(["data.csv", "--out", "new.csv"] if command == ("predict",) else []))
    reason = {"cut": "damaged", "altered": "checksum", "table": "not a model file", "absent": "no such file"}[
        damage
    ]
    said(refused(*arguments), "other.gm cannot be loaded", reason)


# All commands


@pytest.mark.parametrize(
    "command", [("fit", "absent.csv", "-t", "y", "-o", "new.gm"), ("predict", "model.gm", "absent.csv")]
)
def test_files_that_are_not_there(refused, command):
    said(refused(*command), "absent.csv: there is no such file")


@pytest.mark.parametrize(
    "command",
    [
        ("fit",),
        ("fit", "data.csv", "-o", "new.gm"),
        ("fit", "data.csv", "-t", "y"),
        ("predict", "model.gm"),
        ("show",),
        ("frobnicate",),
        ("fit", "--speed"),
    ],
)
def test_usage_errors(refused, command):
    assert "Error: " in refused(*command)


def test_a_full_memory_and_a_failing_disk_are_told_without_traceback(refused, monkeypatch):
    def failing(error):
        def load(*_):
            raise error

        return load

    for error in (MemoryError(), RuntimeError("can't start new thread")):
        monkeypatch.setattr(work, "load", failing(error))
        said(refused("show", "model.gm"), "needs more memory than the system gives. Use fewer rows")
    monkeypatch.setattr(work, "load", failing(OSError(5, "Input/output error", "model.gm")))
    said(refused("show", "model.gm"), "model.gm: Input/output error")


def test_the_demo_needs_a_folder(refused):
    said(refused("demo", "--out", "data.csv"), "data.csv")


def test_two_currencies_are_no_number(refused):
    content = "a;y\n" + "".join(f"{('$0.5', '€1', '$1.5')[i % 3]};{i}\n" for i in range(9))
    said(
        refused("fit", "bad.csv", "-t", "y", "-o", "new.gm", content=content),
        "bad.csv, column 'a'",
        "$ and €",
    )


@pytest.mark.parametrize(
    ("rows", "options", "parts"),
    [
        (
            "1,,3\n2,5,3\n3,-1,3\n4,2,3\n",
            ("poisson",),
            ("bad.csv, line 4, column 'y': -1", "counts are whole"),
        ),
        (
            "1,1,3\n2,5,3\n3,1,3\n4,2,3\n",
            ("binomial", "--trials", "n"),
            ("bad.csv, line 3, column 'y': 5", "successes are whole numbers from 0 to the trials"),
        ),
    ],
)
def test_a_number_that_a_likelihood_refuses_is_told_by_its_line(refused, rows, options, parts):
    """Of the file, whatever rows were left out above it."""
    command = ("fit", "bad.csv", "-t", "y", "-c", "x", "-o", "new.gm", "--likelihood", *options)
    said(refused(*command, content=f"x,y,n\n{rows}"), *parts)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("compare", "d.csv", "--target", "a", "-t", "b"), "--target"),
        (("fit", "d.csv", "-t", "y", "-o", "m.gm", "--out", "n.gm"), "--out"),
        (("predict", "m.gm", "d.csv", "--level", "0.9", "--level", "0.5"), "--level"),
        (("models", "d.csv", "-t", "y", "--seed", "1", "--seed", "2"), "--seed"),
    ],
)
def test_an_option_of_one_value_that_is_given_twice(run, arguments, option):
    assert f"{option} takes one value, but is given 2 times" in run(*arguments, code=2).stderr
