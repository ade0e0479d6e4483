"""Tables as people have them: each is fitted, predicted and shown, or refused for a stated reason."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gramian as gm
from gramian.cli.main import app
from gramian.data.tables import read_table, write_table
from gramian.errors import InputError
from gramian.modelfile import load

N = 12
DAYS = [datetime(2024, 1, 28) + timedelta(days=k) for k in range(N)]
STEPS = list(map(float, range(N)))


def csv(cells: list[str], separator: str = ",", name: str = "x", head: str = "") -> str:
    """A table of x and y."""
    rows = (separator.join([cell, str(k % 5)]) + "\n" for k, cell in enumerate(cells))
    return head + f"{name}{separator}y\n" + "".join(rows)


def dates(form: str) -> str:
    return csv([f'"{day.strftime(form)}"' for day in DAYS])


def workbook(rows: list[list[object]]) -> bytes:
    openpyxl = pytest.importorskip("openpyxl")
    book, file = openpyxl.Workbook(), io.BytesIO()
    for row in rows:
        book.active.append(row)
    book.create_sheet("notes")
    book.save(file)
    return file.getvalue()


SINCE = "x: dates as days since 2024-01-28"
# the file, what x becomes, and what is told
READ: dict[str, tuple[str | bytes, list[float], str]] = {
    "ISO dates": (dates("%Y-%m-%d"), STEPS, SINCE),
    "ISO times": (dates("%Y-%m-%dT%H:%M:%S"), STEPS, SINCE),
    "times with a zone": (dates("%Y-%m-%d 02:00:00+02:00"), STEPS, SINCE),
    "times in UTC": (dates("%Y-%m-%dT00:00Z"), STEPS, SINCE),
    "day.month.year": (dates("%d.%m.%Y"), STEPS, SINCE),
    "day/month/year": (dates("%d/%m/%Y %H:%M"), STEPS, SINCE),
    "month/day/year": (dates("%m/%d/%Y 12:00 AM"), STEPS, SINCE),
    "names of months": (dates("%d %b %Y"), STEPS, SINCE),
    "names of months first": (dates("%B %d, %Y"), STEPS, SINCE),
    "months": (
        csv([f"2024-{k + 1:02d}" for k in range(N)]),
        [float((datetime(2024, k + 1, 1) - datetime(2024, 1, 1)).days) for k in range(N)],
        "x: dates as days since 2024-01-01",
    ),
    "hours of a day": (
        csv([f"{k}:30" for k in range(N)]),
        [k + 0.5 for k in STEPS],
        "spans of time in hours",
    ),
    "per cent": (csv([f"{k} %" for k in range(N)]), STEPS, "x: numbers without %"),
    "dollars with thousands": (
        csv([f'"${1000 * k:,}.50"' for k in range(N)]),
        [1000 * k + 0.5 for k in STEPS],
        "x: numbers without $, with ',' between thousands",
    ),
    "euros after the number": (csv([f"{k} €" for k in range(N)]), STEPS, "x: numbers without €"),
    "a unit in each cell": (csv([f"{k} kg" for k in range(N)]), STEPS, "x: numbers without kg"),
    "what bookkeepers write below zero": (
        csv([f'"({1000 + k:,})"' for k in range(N)]),
        [-1000 - k for k in STEPS],
        "with ',' between thousands, those in brackets below zero",
    ),
    "areas": (csv([f"{k} m2" for k in range(N)]), STEPS, "x: numbers without m2"),
    "UTF-16 without a mark": (
        csv([f"{k},5" for k in range(N)], ";", name="größe").encode("utf-16-le"),
        [k + 0.5 for k in STEPS],
        "text in UTF-16",
    ),
    "UTF-16 of the other order": (
        csv([str(k) for k in range(N)]).encode("utf-16-be"),
        STEPS,
        "text in UTF-16",
    ),
    "empty cells above a sentence": (
        csv([str(k) for k in range(N)]) + ",\n,\nSource: own measurements\n",
        STEPS,
        "1 line below the rows left out ('Source: own measurements')",
    ),
    "a minus of typesetters": (csv([f"−{k} %" for k in range(N)]), [-k for k in STEPS], "without %"),
    "decimal commas": (
        csv([f"{k},5" for k in range(N)], ";"),
        [k + 0.5 for k in STEPS],
        "x: numbers with decimal commas",
    ),
    "points between thousands": (
        csv([f"1.00{k % 10},25" for k in range(N)], ";"),
        [1000.25 + k % 10 for k in range(N)],
        "x: numbers with decimal commas, with '.' between thousands",
    ),
    "pipes": (csv([str(k) for k in range(N)], "|"), STEPS, ""),
    "tabs": (csv([str(k) for k in range(N)], "\t"), STEPS, ""),
    "true and false": (csv(["TRUE", "False", "true"] * 4), [1.0, 0.0, 1.0] * 4, "true as 1, false as 0"),
    "yes and no": (csv(["yes", "no", "no"] * 4), [1.0, 0.0, 0.0] * 4, "yes as 1, no as 0"),
    "Latin-1": (
        csv([str(k) for k in range(N)], name="größe").encode("latin-1"),
        STEPS,
        "text in Windows-1252",
    ),
    "a byte order mark": (csv([str(k) for k in range(N)]).encode("utf-8-sig"), STEPS, ""),
    "UTF-16": (csv([str(k) for k in range(N)]).encode("utf-16"), STEPS, "text in UTF-16"),
    "an index of pandas": (
        pd.DataFrame({"x": STEPS, "y": np.arange(N) % 5}).to_csv(),
        STEPS,
        "the first column, which counts the rows, left out",
    ),
    "titles": (
        csv([str(k) for k in range(N)], head="Report of the year\nprinted on Monday, late\n\n"),
        STEPS,
        "2 lines above the column names left out",
    ),
    "titles of a spreadsheet": (
        csv([str(k) for k in range(N)], ";", head="Report;\n;\n"),
        STEPS,
        "1 line above the column names left out",
    ),
    "titles above cells that are no plain numbers": (
        "Sales of 2024;\n;\nday;y\n" + "".join(f"{k + 1:02d}.01.2024;{k % 5},5\n" for k in range(N)),
        STEPS,
        "1 line above the column names left out",
    ),
    "units in the names": (csv([str(k) for k in range(N)], name="Area (m2)"), STEPS, ""),
    "blank lines": (csv([str(k) for k in range(N)]).replace("\n5,", "\n\n\n5,"), STEPS, "2 empty lines"),
    "an empty last column": (
        "x,y,\n" + "".join(f"{k},{k % 5},\n" for k in range(N)),
        STEPS,
        "1 empty column without a name left out",
    ),
}


@pytest.mark.parametrize("name", READ)
def test_a_table_is_read_told_and_predicted(run, tmp_path, name):
    content, expected, told = READ[name]
    (tmp_path / "d.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    gp = gm.GPRegressor(noise=0.1, optimize=False).fit("d.csv", "y")
    assert gp.fitted_.columns.categories == {}
    # exact, but for what days in microseconds round
    np.testing.assert_allclose(gp.fitted_.rows.X[:, 0], expected, rtol=1e-12)
    gp.save("m.gm")
    assert told in run("show", "m.gm").stdout
    run("predict", "m.gm", "d.csv", "-o", "p.csv")
    np.testing.assert_allclose(read_table("p.csv").numbers("mean"), gp.predict("d.csv"), rtol=1e-12)


def test_a_workbook(run, tmp_path):
    rows = [
        ["A report"],
        [None, None, None],
        ["day", "ok", "y"],
        [DAYS[0], True, 1],
        *([day, k % 2 == 0, k % 5 + 0.5] for k, day in enumerate(DAYS)),
    ]
    (tmp_path / "d.xlsx").write_bytes(workbook(rows))
    shown = run("fit", "d.xlsx", "-t", "y", "--restarts", 0, "-o", "m.gm").stdout
    for told in ("day: dates as days since 2024-01-28", "ok: true as 1", "sheet 'Sheet', the first of 2"):
        assert told in shown
    assert "1 line above the column names left out" in shown
    assert "13 predictions" in run("predict", "m.gm", "d.xlsx", "-o", "p.csv").stderr


def sheet_of_an_open_document(rows):
    """The bytes of an .ods with one sheet."""

    def cell(value):
        if isinstance(value, str):
            return f'<table:table-cell office:value-type="string"><text:p>{value}</text:p></table:table-cell>'
        if isinstance(value, datetime):
            return f'<table:table-cell office:value-type="date" office:date-value="{value:%Y-%m-%d}"/>'
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'

    lines = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    kinds = "".join(f' xmlns:{name}="{urn}:{name}:1.0"' for name in ("office", "table", "text"))
    body = f'<table:table table:name="Sheet1">{lines}</table:table>'
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content{kinds}><office:body>'
        f"<office:spreadsheet>{body}</office:spreadsheet></office:body></office:document-content>"
    )
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        file.writestr("META-INF/manifest.xml", f'<manifest:manifest xmlns:manifest="{urn}:manifest:1.0"/>')
        file.writestr("content.xml", content)
    return made.getvalue()


def test_a_sheet_of_an_open_document(run, tmp_path):
    rows = [["day", "area", "y"], *([day, 2.5 * k, k % 5] for k, day in enumerate(DAYS))]
    (tmp_path / "d.ods").write_bytes(sheet_of_an_open_document(rows))
    shown = run("fit", "d.ods", "-t", "y", "--restarts", 0, "-o", "m.gm").stdout
    assert "day: dates as days since 2024-01-28" in shown
    assert "12 predictions" in run("predict", "m.gm", "d.ods", "-o", "p.csv").stderr


GAPS = ["", "NA", "N/A", "NaN", "null", "-", "?", "n/a"]


@pytest.mark.parametrize("rule", ["fill", "drop", "error"])
def test_missing_cells(run, tmp_path, rule):
    """Of a number, a category and the target."""
    number = [gap if k % 3 == 0 else str(k) for k, gap in enumerate(GAPS * 3)]
    kind = [gap if k % 5 == 0 else "uv"[k % 2] for k, gap in enumerate(GAPS * 3)]
    target = ["" if k == 7 else str(k % 4 + 0.5) for k in range(24)]
    rows = zip(number, kind, target, strict=True)
    (tmp_path / "d.csv").write_text("x,kind,y\n" + "".join(",".join(row) + "\n" for row in rows))
    command = ("fit", "d.csv", "-t", "y", "--missing", rule, "--restarts", 0, "-o", "m.gm")
    if rule == "error":
        assert "y contains NaN: row 7" in run(*command, code=2).stderr
        return
    shown = run(*command).stdout
    assert "1 of 24 rows has no target and was left out" in shown
    whole = [a not in GAPS and b not in GAPS for a, b in zip(number, kind, strict=True)]
    used = 23 if rule == "fill" else sum(whole) - whole[7]
    assert f"on {used} rows" in shown
    told = run("predict", "m.gm", "d.csv", "-o", "p.csv").stderr
    assert f"rows with missing cells ({24 - sum(whole)}) are predicted as the average" in told
    assert np.all(np.isfinite(read_table("p.csv").numbers("std")))


def test_a_gap_at_prediction_widens_the_interval_by_what_the_cell_tells(run, tmp_path):
    x, z = np.linspace(0, 3, 40), np.tile([0.0, 1.0], 20)
    write_table(tmp_path / "d.csv", ["x", "z", "y"], {"x": x, "z": z, "y": 5 * x + 0.001 * z})
    run("fit", "d.csv", "-t", "y", "--restarts", 0, "-o", "m.gm")
    (tmp_path / "n.csv").write_text("x,z\n1.5,0\n,0\n1.5,\n,\n")
    run("predict", "m.gm", "n.csv", "-o", "p.csv")
    whole, no_x, no_z, none = read_table("p.csv").numbers("std")
    assert no_x > 1 > 10 * whole
    assert no_z < 0.1
    # where nothing is known, the spread of y, up to that of a few rows of it
    assert none == pytest.approx(np.std(5 * x), rel=0.5)


def test_a_category_that_the_fit_has_not_seen(run, tmp_path):
    rng = np.random.default_rng(0)
    kind = np.array(["a", "b", "c"], dtype=object)[np.arange(30) % 3]
    y = np.array([0.0, 2.0, -3.0])[np.arange(30) % 3] + 0.1 * rng.normal(size=30)
    write_table(tmp_path / "d.csv", ["kind", "x", "y"], {"kind": kind, "x": rng.normal(size=30), "y": y})
    run("fit", "d.csv", "-t", "y", "--restarts", 0, "-o", "m.gm")
    (tmp_path / "n.csv").write_text("kind,x\na,0\nd,0\ne,0\n")
    told = run("predict", "m.gm", "n.csv", "-o", "p.csv").stderr
    assert "a category in 'kind' that the fit has not seen (2: 'd', 'e')" in told
    std = read_table("p.csv").numbers("std")
    assert std[1] > 3 * std[0]
    assert std[1] == std[2]


def test_categories_by_numbers_and_orders_by_name(run, tmp_path):
    size = ["small", "large", "medium", "large"] * 6
    rows = "".join(f"{k % 3 + 1},{word},{k % 4}\n" for k, word in enumerate(size))
    (tmp_path / "d.csv").write_text("zone,size,y\n" + rows)
    options = ("--categorical", "zone", "--ordered", "size=small,medium,large", "--restarts", 0)
    shown = run("fit", "d.csv", "-t", "y", *options, "-o", "m.gm").stdout
    assert "y from zone (3 categories), size" in shown
    assert "size: ranks of small < medium < large" in shown
    assert load("m.gm").fitted_.rows.X[:3].tolist() == [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]
    for order, said in (
        ("size=small,large", "'medium' is not in the order small < large"),
        ("size", "--ordered grade=low,mid,high"),
    ):
        assert said in run("fit", "d.csv", "-t", "y", "--ordered", order, "-o", "n.gm", code=2).stderr


def test_ids_are_refused_or_ignored(run, tmp_path):
    (tmp_path / "d.csv").write_text("who,x,y\n" + "".join(f"p{k},{k},{k % 3}\n" for k in range(9)))
    said = run("fit", "d.csv", "-t", "y", "-o", "m.gm", code=2).stderr
    assert "text that differs in every row ('p0', 'p1', ...) tells nothing" in said
    assert "--id 'who'" in said
    text = (tmp_path / "d.csv").read_text()
    (tmp_path / "e.csv").write_text(text + "p9,9,\n")  # a row that is left out has an id, too
    assert "tells nothing of new rows" in run("fit", "e.csv", "-t", "y", "-o", "m.gm", code=2).stderr
    assert (
        "left out: who"
        in run("fit", "d.csv", "-t", "y", "--ignore", "who", "--restarts", 0, "-o", "m.gm").stdout
    )


def test_dates_that_may_be_two_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("d.csv").write_text(csv([f"{k + 1}/{12 - k}/2024" for k in range(N)]))
    with pytest.raises(InputError, match=r"column 'x': '1/12/2024' may be a day and a month.*2024-12-31"):
        gm.GPRegressor().fit("d.csv", "y")


def test_standard_input(run, tmp_path):
    text = csv([str(k) for k in range(N)])
    (tmp_path / "d.csv").write_text(text)
    fit = ["fit", "-", "-t", "y", "--restarts", "0", "-o", "m.gm"]
    assert CliRunner().invoke(app, fit, input=text).exit_code == 0
    piped = CliRunner().invoke(app, ["predict", "m.gm", "-"], input=text)
    assert piped.stdout == run("predict", "m.gm", "d.csv").stdout


def test_a_folder_of_parquet_files(run, tmp_path):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"day": DAYS, "x": STEPS, "y": np.arange(N) % 5})
    (tmp_path / "parts").mkdir()
    for k in range(3):
        table.iloc[4 * k : 4 * k + 4].to_parquet(tmp_path / "parts" / f"{k}.parquet")
    shown = run("fit", "parts", "-t", "y", "--restarts", 0, "-o", "m.gm").stdout
    assert f"on {N} rows" in shown
    assert "day: dates as days since 2024-01-28" in shown


def test_a_target_with_signs_is_read(run, tmp_path):
    (tmp_path / "d.csv").write_text("x,price\n" + "".join(f'{k},"${1000 + 10 * k:,}"\n' for k in range(N)))
    assert (
        "price: numbers without $" in run("fit", "d.csv", "-t", "price", "--restarts", 0, "-o", "m.gm").stdout
    )
    assert load("m.gm").fitted_.rows.Y[:2, 0].tolist() == [1000.0, 1010.0]


def test_scores_read_targets_as_the_fit_does_and_leave_out_rows_without_one(run, tmp_path):
    rng = np.random.default_rng(2)
    x, label = rng.uniform(0, 3, 20), ["low", "high"] * 10
    rows = [f'{a},"${1000 + 100 * a:,.2f}",{word}\n' for a, word in zip(x, label, strict=True)]
    rows[4] = f"{x[4]},,\n"
    text = "x,price,label\n" + "".join(rows)
    (tmp_path / "t.csv").write_text(text)
    for target, score in (("price", "RMSE"), ("label", "accuracy")):
        fit = run("fit", "t.csv", "-t", target, "-c", "x", "-k", "rbf", "--restarts", 0, "-o", "m.gm")
        assert f" of {target} on 19 rows" in fit.stdout
        scored = run("score", "m.gm", "t.csv")
        assert f"Predictions of {target} at 19 rows" in scored.stdout
        assert score in scored.stdout
        assert f"rows without {target} (1) are left out" in scored.stderr
        piped = CliRunner().invoke(app, ["score", "m.gm", "-"], input=text)
        assert piped.stdout == scored.stdout
    (tmp_path / "none.csv").write_text("x,price,label\n1,,\n2,,\n")
    told = run("score", "m.gm", "none.csv", code=2).stderr
    assert "none.csv: no row has a value of label." in told


def test_the_word_of_a_kernel_has_a_place_for_gaps_as_the_default_has(run, tmp_path):
    (tmp_path / "t.csv").write_text(csv(["", *map(str, range(1, N))]))
    run("fit", "t.csv", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m.gm")
    assert load("m.gm").fitted_.columns.names == ("x", "x is missing")


def test_a_target_of_dates_is_scored_by_the_days_of_the_fit(run, tmp_path):
    """Days are counted from the first of the fit, which another table need not have."""
    rows = [f"{k},{day.isoformat()}\n" for k, day in enumerate(DAYS)]
    (tmp_path / "t.csv").write_text("x,day\n" + "".join(rows))
    (tmp_path / "late.csv").write_text("x,day\n" + "".join(rows[len(rows) // 2 :]))
    run("fit", "t.csv", "-t", "day", "-k", "1.0 * Linear() + 1.0 * RBF(3.0)", "--restarts", 0, "-o", "m.gm")
    scored = run("score", "m.gm", "late.csv").stdout
    rmse = float(re.search(r"RMSE +([\d.e-]+)", scored)[1])
    assert rmse < 5  # days; counted from another day it is the half of the span, of 100 and more
    told = run("predict", "m.gm", "late.csv", "-o", "p.csv").stderr
    assert "note: predictions of day: dates as days since 2024-01-28" in told


def test_lines_that_are_left_out_of_predictions_are_told(run, tmp_path):
    rows = "".join(f"{k},{k % 5 + 0.5}\n" for k in range(12))
    (tmp_path / "t.csv").write_text(f"x,y\n{rows}Total,30\n")
    shown = run("fit", "t.csv", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m.gm").stdout
    assert "1 line below the rows left out ('Total')" in shown
    told = run("predict", "m.gm", "t.csv", "-o", "p.csv").stderr
    assert "note: t.csv: 1 line below the rows left out ('Total')" in told
    assert read_table("p.csv").n_rows == 12


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        ([f"0{1000 + k % 4}" for k in range(N)], "x: read as numbers, though some begin with 0 (01000)"),
        ([f"202401{k + 1:02d}" for k in range(N)], "Dates are written as 2024-01-01"),
    ],
)
def test_numbers_that_seem_to_be_something_else(run, tmp_path, cells, told):
    (tmp_path / "t.csv").write_text(csv(cells))
    assert told in run("fit", "t.csv", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m.gm").stdout


def test_the_sheet_that_has_a_table(run, tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["The data are on the second sheet."])
    sheet = book.create_sheet("Data")
    for row in [["Survey"], [], ["day", "y"], *([day, k % 5] for k, day in enumerate(DAYS)), [], ["Sum", 9]]:
        sheet.append(row)
    book.save(tmp_path / "d.xlsx")
    shown = run("fit", "d.xlsx", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m.gm").stdout
    for told in ("sheet 'Data', the first of 2 that has a table", "day: dates as days", "left out ('Sum')"):
        assert told in shown


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (csv(["€5", "$7"] * 6), "its numbers have $ and €, which are not the same. Write them in one unit"),
        (csv(["5 kg", "300 g", "7 kg"] * 4), "its numbers have g and kg, which are not the same"),
        (
            csv(["1.234,50 €", "987,00 €", "2,345,10 €", "88,20 €"] * 4, ";"),
            "'2,345,10 €' is not written as most",
        ),
        (csv([f"48°{k}'N" for k in range(N)]), "text that differs in every row"),
        ("\n<!DOCTYPE html><html>Please log in</html>", "This is a web page"),
        ("%PDF-1.7", "it begins with '%PDF'. This is a PDF"),
    ],
)
def test_what_is_refused_says_why(run, tmp_path, content, said):
    (tmp_path / "d.csv").write_text(content)
    assert said in run("fit", "d.csv", "-t", "y", "-o", "m.gm", code=2).stderr


def test_a_column_without_a_value_is_left_out(run, tmp_path):
    """It would make every row one with a missing cell."""
    (tmp_path / "d.csv").write_text(
        "x,remarks,y\n" + "".join(f"{k},{'NA' * (k % 2)},{k % 5}\n" for k in range(N))
    )
    fit = run("fit", "d.csv", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m.gm")
    assert "note: 'remarks' has no value in any row and is left out" in fit.stderr
    assert load("m.gm").fitted_.columns.names == ("x",)
    assert "missing" not in run("predict", "m.gm", "d.csv", "-o", "p.csv").stderr


def test_rows_of_empty_cells_are_rows_unless_a_sentence_follows(tmp_path):
    (tmp_path / "d.csv").write_text("x,z,y\n1,2,3\n,,\n4,5,6\n,,\n")
    assert read_table(tmp_path / "d.csv").n_rows == 4


def test_numbers_that_stand_for_gaps_are_told(run, tmp_path):
    cells = ["-999" if k % 5 == 0 else str(k) for k in range(N)]
    (tmp_path / "t.csv").write_text(csv(cells))
    shown = run("fit", "t.csv", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m.gm").stdout
    assert "Column 'x' is -999 in 3 rows, far from all others (1 to 11). If that stands for" in shown
    # 999 among numbers like it is one of them
    (tmp_path / "t.csv").write_text(csv([str(999 - 90 * k) for k in range(N)]))
    assert (
        "stands for" not in run("fit", "t.csv", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m.gm").stdout
    )


def test_scores_say_what_they_mean_and_which_rows_the_fit_has_seen(run, tmp_path):
    (tmp_path / "t.csv").write_text(csv([str(k) for k in range(N)]))
    (tmp_path / "new.csv").write_text(csv([f"{k}.5" for k in range(N - 1)] + ["3"]))
    run("fit", "t.csv", "-t", "y", "-k", "rbf", "--restarts", 0, "-o", "m.gm")
    own, new = run("score", "m.gm", "t.csv"), run("score", "m.gm", "new.csv")
    assert "note: 12 of 12 rows have the inputs of a row of the fit" in own.stderr
    assert "note: 1 of 12 rows have" in new.stderr
    assert "less is better" in own.stdout
