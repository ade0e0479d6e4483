"""The same summary as text, page and JSON: nothing from a file gets out of its place, nothing is loaded, and
the same model gives the same bytes."""

from __future__ import annotations

import json
import pickle
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gramian as gm
from gramian.cli.main import app
from gramian.errors import GramianError, ParameterError
from gramian.plots.health import DRAWN, svg
from gramian.report.document import Fact, Grid, Picture, Section, number, plain, show
from gramian.report.summary import Summary

EVIL = "<script>alert(1)</script>"
MOST_BYTES = 1_000_000


def table(n=60, seed=0):
    rng = np.random.default_rng(seed)
    data = pd.DataFrame(
        {
            EVIL: rng.normal(size=n),
            '"><img src=x onerror=alert(2)>': rng.normal(size=n),
            "kind": np.array(["</style><b>", "$a_b$ & c", "\x1b[31mred"])[np.arange(n) % 3],
        }
    )
    y = np.sin(2 * data[EVIL]) + (data["kind"] == "$a_b$ & c") + 0.1 * rng.normal(size=n)
    return data, y.rename("<i>y</i>")


@pytest.fixture(scope="module")
def gp():
    kernel = 1.0 * gm.Matern52([1.0, 1.0]).on(0, 1) + 1.0 * gm.Categorical().on("kind")
    return gm.GPRegressor(kernel, noise=0.02, optimize=False).fit(*table())


@pytest.fixture(scope="module")
def labelled():
    X, y = table()
    kinds = np.array([EVIL, "b & c", "d"])[np.digitize(y, [-0.3, 0.6])]
    return gm.GPClassifier(4.0 * gm.RBF([1.0, 1.0]), optimize=False).fit(X.iloc[:, :2], kinds)


class Seen(HTMLParser):
    """The elements of a page, and whether each ends where it should."""

    VOID = ("meta", "img", "br", "hr", "link", "input")

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.attributes, self.text = [], [], [], []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("which", ["gp", "labelled"])
def test_names_from_files_stay_text(which, request):
    summary = request.getfixturevalue(which).report()
    for page in (summary.html(), summary._repr_html_()):
        seen = Seen(page)
        assert seen.open == []
        assert not {"script", "img", "iframe", "object", "link", "i"} & set(seen.tags)
        assert not [name for name, _ in seen.attributes if name.startswith("on")]
        assert EVIL in " ".join(seen.text)  # as what it is, a name
        assert "\x1b" not in page


def test_a_page_loads_nothing(gp):
    page = gp.report().html()
    seen = Seen(page)
    policy = next(value for name, value in seen.attributes if name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    links = [
        value for name, value in seen.attributes if name in ("src", "href", "xlink:href", "data", "action")
    ]
    assert links
    assert all(value.startswith("#") for value in links)
    assert "http" not in re.sub(r'http-equiv|xmlns(:\w+)?="[^"]*"', "", page)
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert len(page.encode()) < MOST_BYTES
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_what_a_page_refers_to_is_there_once(gp):
    page = gp.report().html()
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]*)', page)) <= set(ids)


def test_the_same_model_gives_the_same_bytes(gp, tmp_path):
    first = gp.report(tmp_path / "a.html", json=tmp_path / "a.json")
    gp.save(tmp_path / "m.gm")
    again = gm.load(tmp_path / "m.gm").report(tmp_path / "b.html", json=tmp_path / "b.json")
    assert first == again
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_json_is_what_the_page_says(gp):
    summary = gp.report()
    read = json.loads(summary.json())
    assert read == summary.to_dict()
    assert [found["code"] for found in read["findings"]] == [found.code for found in summary.findings]
    assert set(read["sections"]) == {"next", "good", "learned", "columns", "rows", "sound", "fitted"}
    scores = read["sections"]["good"]["tables"][0]["rows"]
    assert ["RMSE", f"{gp.fitted_.quality.scores['rmse']:.4g}"] in scores
    text = " ".join(Seen(summary.html()).text)
    for _, value in scores:
        assert value in text
        assert value in summary


def test_a_summary_is_text_and_more(gp):
    summary = gp.summary()
    assert isinstance(summary, str)
    assert summary.splitlines()[0] == summary.heading
    assert summary[:4] == summary.heading[:4]
    assert summary["fitted"].facts[0].name == "kernel"
    with pytest.raises(KeyError, match="no section 'nonsense'; there are fitted"):
        summary["nonsense"]
    again = pickle.loads(pickle.dumps(summary))
    assert (again, again.sections) == (summary, summary.sections)
    assert summary in gp.report()  # the report is the same, with more
    assert "<table>" in summary._repr_html_()
    assert json.loads(summary.json())["findings"] == []
    assert Seen(summary.html()).open == []


def test_a_notebook_does_not_wait(gp, monkeypatch):
    """What a cell shows was known when the summary was made: no picture is drawn, nothing is predicted."""
    summary = gp.summary()
    monkeypatch.setattr("gramian.plots.health.svg", None)
    monkeypatch.setattr(gm.GPRegressor, "predict", None)
    assert summary._repr_html_()


def test_labels_have_their_sections(labelled):
    summary = labelled.report()
    grids = {grid.title: grid for grid in summary["good"].grids}
    confusion = grids["Labels (rows) and what they were taken for (columns)"]
    assert confusion.head == ("label", *map(str, labelled.classes_))
    assert sum(sum(row[1:]) for row in confusion.rows) == 60
    assert [row[0] for row in grids["Scores"].rows][:5] == [
        "accuracy",
        "log loss",
        "Brier score",
        "ECE",
        "AUC",
    ]
    assert [picture.kind for picture in summary["good"].pictures] == ["reliability"]
    assert {picture.kind for picture in summary["learned"].pictures} == {"probabilities"}


def test_given_rows_are_scored_as_evaluate_scores_them(gp):
    X, y = table(40, seed=1)
    summary = gp.report(None, X, y)
    scores = dict(summary["good"].grids[0].rows)
    assert scores["NLPD"] == f"{gp.evaluate(X, y)['nlpd']:.4g}"
    assert "40 rows that came with the report, which the fit has not seen" in summary["good"].sentences[0]
    own, y_own = table()
    again = gp.report(None, pd.concat([own[:5], X]), pd.concat([y_own[:5], y]))
    assert "45 rows that came with the report, of which 5 have the" in again["good"].sentences[0]
    with pytest.raises(ParameterError, match="y was given without X"):
        gp.report(y=y)
    with pytest.raises(ParameterError, match="exposure: there are no rows"):
        gp.report(exposure=[1.0])


def test_dates_and_words_are_shown_as_such():
    days = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=40)})
    gp = gm.GPRegressor(1.0 * gm.RBF(5.0), noise=0.1, optimize=False).fit(days, np.sin(np.arange(40) / 5))
    summary = gp.report()
    assert re.search(r"2024-0\d-\d\d", summary["rows"].grids[0].rows[0][6])
    assert summary["learned"].pictures[0].data["origin"].startswith("2024-01-01")
    assert "2024" in svg(summary["learned"].pictures[0])


def test_models_without_rows_say_so(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(2, 80, 1))
    gp = gm.GPRegressor(1.0 * gm.RBF(1.0), noise=0.1, method=gm.Sparse(10), optimize=False).fit(X, y[:, 0])
    gp.save(tmp_path / "m.gm")
    summary = gm.load(tmp_path / "m.gm").report()
    assert "the file holds no training rows" in summary["good"].sentences[0]
    assert Seen(summary.html()).open == []
    given = gm.load(tmp_path / "m.gm").report(None, X[:30], y[:30, 0])
    assert "30 rows that came with the report" in given["good"].sentences[0]


@pytest.mark.parametrize("kind", [gm.GPForecaster, gm.GPLatent])
def test_others_are_refused_with_what_they_have(kind):
    with pytest.raises(ParameterError, match=r"has no report: .*summary\(\)"):
        kind().report("report.html")


# Cells and pictures. ----------------------------------------------------------------------------------------


def test_cells():
    cells = (None, True, 12345, 0.000123456, float("nan"), np.float64(2.0), "a\x00")
    assert [show(cell) for cell in cells] == ["-", "yes", "12,345", "0.0001235", "-", "2", "a\\x00"]
    assert plain({"a": np.array([1.0, np.inf]), "b": (np.int64(2), "c")}) == {"a": [1.0, None], "b": [2, "c"]}


def test_a_long_table_is_cut_for_people_alone():
    grid = Grid("many", ("name", "value"), tuple((f"c{k}", k) for k in range(40)), shown=5)
    lines = Section("s", "S", ("Well.",), (Fact("a", "b"),), (grid,)).lines()
    assert lines[:3] == ["S", "  Well.", "  a: b"]
    assert lines[-1] == "    and 35 more"
    assert len(grid.to_json()["rows"]) == 40
    summary = Summary("text", "title", [Section("s", "S", grids=(grid,))])
    assert "and 35 more, which the JSON has" in summary.html()


def test_every_picture_is_drawn_in_colours_of_the_page(gp, labelled):
    pictures = [p for own in (gp, labelled) for section in own.report().sections for p in section.pictures]
    assert {picture.kind for picture in pictures} == set(DRAWN)
    for picture in pictures:
        drawn = svg(picture)
        assert not re.findall(r"#[0-9a-fA-F]{6}\b(?![-\w])", re.sub(r'(href="|url\()#[^")]*', "", drawn))
        assert "var(--" in drawn
        assert 'role="img"' in drawn


def test_a_column_of_few_values_is_drawn_value_by_value():
    """Nothing lies between 0 and 1 of an indicator, and dots of one value stand side by side."""
    from matplotlib.figure import Figure

    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"x": rng.normal(size=60), "inside": rng.integers(0, 2, 60).astype(float)})
    y = np.sin(rows["x"]) + rows["inside"] + 0.1 * rng.normal(size=60)
    own = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), noise=0.01, optimize=False).fit(rows, y)
    along = {}
    for section in own.report().sections:
        for picture in section.pictures:
            if picture.data.get("column") in rows:
                along[picture.kind, picture.data["column"]] = picture.data
    assert list(along["curve", "inside"]["x"]) == [0.0, 1.0]
    assert "values" not in along["curve", "x"]
    at = rows[:2].assign(x=rows["x"].median(), inside=[0.0, 1.0])
    np.testing.assert_allclose(along["curve", "inside"]["mean"], own.predict(at), rtol=1e-9)
    curve, dots = Figure().subplots(1, 2)
    DRAWN["curve"](curve, along["curve", "inside"])
    DRAWN["residuals"](dots, along["residuals", "inside"])
    assert not [line for line in curve.lines if line.get_linestyle() == "-" and len(line.get_xdata()) > 2]
    assert [label.get_text() for label in dots.get_xticklabels()] == ["0", "1"]
    x = next(line for line in dots.lines if line.get_marker() == "o").get_xdata()
    given = along["residuals", "inside"]["x"]
    assert len(np.unique(x)) == len(x)
    assert np.max(np.abs(x - given)) <= 0.25


def test_many_dots_stay_small():
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=400), "z": rng.normal(size=400), "column": "a"}
    assert len(svg(Picture("residuals", "t", "s", data))) < 60_000


# The command. -----------------------------------------------------------------------------------------------


def test_the_command_writes_page_and_json(tmp_path):
    rng = np.random.default_rng(0)
    data = pd.DataFrame(rng.normal(size=(60, 2)).round(4), columns=["a", "b"])
    data["y"] = (np.sin(data["a"]) + 0.2 * rng.normal(size=60)).round(4)
    data[:40].to_csv(tmp_path / "train.csv", index=False)
    data[40:].add([8, 8, 0]).to_csv(tmp_path / "far.csv", index=False)
    gp = gm.GPRegressor(1.0 * gm.RBF([1.0, 1.0]), noise=0.04, optimize=False)
    gp.fit(data[["a", "b"]][:40], data["y"][:40]).save(tmp_path / "m.gm")

    def run(*arguments):
        return CliRunner().invoke(app, ["report", str(tmp_path / "m.gm"), *map(str, arguments)])

    out, found = tmp_path / "r.html", tmp_path / "r.json"
    done = run("--data", tmp_path / "far.csv", "--out", out, "--json", found)
    assert done.exit_code == 0, done.output
    assert "X001  rows beyond the data of the fit" in done.stdout
    assert out.read_text().startswith("<!DOCTYPE html>")
    assert "X001" in [own["code"] for own in json.loads(found.read_text())["findings"]]
    done = run("--data", tmp_path / "far.csv", "--out", out, "--ignore", "X001,Q001", "--ignore", "q002")
    assert "X001" not in done.stdout
    for arguments, said in (
        (("--ignore", "Z1"), "which is no code"),
        (("--target", "y"), "which was not given"),
        (("--json", out), "are the same file"),
        (("--out", tmp_path / "none" / "r.html"), "none"),
    ):
        done = run("--out", out, *arguments) if "--out" not in arguments else run(*arguments)
        assert done.exit_code == 2
        assert said in done.stderr


def test_a_page_is_written_whole_or_not_at_all(gp, tmp_path):
    with pytest.raises(GramianError):
        gp.report(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (-3.14159, "-3.142"),
        (999.96, "1,000"),
        (1234.5, "1,234"),
        (-712_834.0, "-712,800"),
        (1e9, "1e+09"),
        (1.23456e-7, "1.235e-07"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, shown):
    assert number(value) == shown
