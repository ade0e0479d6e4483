"""Control characters in names, cells, paths: shown as escapes at each door to a terminal, kept in files."""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pytest

import gramian as gm
from gramian.data.frames import Frame
from gramian.data.tables import read_table
from gramian.errors import GramianError, visible
from gramian.params.space import aligned, html_table, html_text

ESC, OVERRIDE, ISOLATE = "\x1b[31m", "\u202e", "\u2066"
NASTY = f"a{ESC}{OVERRIDE}b"
SHOWN = r"a\x1b[31m\u202eb"


def clean(text: str) -> str:
    """The text, which has nothing that a terminal would obey."""
    assert text.replace("\n", "").replace("\t", "").isprintable(), ascii(text)
    return text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [red] text\twith\nlines", "plain [red] text\twith\nlines"),
        ("Größe µ 気温 \N{GRINNING FACE}", "Größe µ 気温 \N{GRINNING FACE}"),
        (ESC, r"\x1b[31m"),
        ("a\rb\x07\x7f\x9b", r"a\x0db\x07\x7f\x9b"),
        (OVERRIDE + ISOLATE + "\u200f\u2028", r"\u202e\u2066\u200f\u2028"),
        ("lone \udcff half", r"lone \udcff half"),
    ],
)
def test_what_is_escaped(text, shown):
    assert visible(text) == visible(visible(text)) == shown


def test_errors_and_tables():
    assert str(GramianError(NASTY)) == SHOWN
    assert aligned([("name", "x"), (NASTY, "1")], ("name",))[1] == SHOWN + "  1"
    assert SHOWN in html_table([("name",), (NASTY,)])
    assert SHOWN in html_text(NASTY)


@pytest.fixture
def nasty(tmp_path):
    """A table whose name, columns and categories have control characters, and rich's marks."""
    rng = np.random.default_rng(0)
    folder = tmp_path / f"f{ESC}"
    folder.mkdir()
    path = folder / "d.csv"
    lines = [
        f"{x:.3f},{level},{x + k % 2:.3f}"
        for k, x in enumerate(rng.random(24))
        for level in [f"{ESC}l{k % 2}"]
    ]
    path.write_text(f"{NASTY}[red],place{OVERRIDE},y{ESC}\n" + "\n".join(lines) + "\n")
    return path


def test_the_commands(run, nasty, tmp_path, monkeypatch):
    target = f"y{ESC}"
    told = [run("fit", nasty, "-t", target, "--restarts", 0, "-o", nasty.with_name("m.gm"))]
    model = nasty.with_name("m.gm")
    told += [run("show", model), run("show", model, "--all"), run("score", model, nasty)]
    told += [run("predict", model, nasty, "-o", nasty.with_name("p.csv"))]
    told += [run("plan", nasty, "-t", target)]
    told += [run("fit", nasty, "-t", "z" + ESC, "-o", model, code=2)]
    told += [run("fit", nasty.with_name("none" + ESC + ".csv"), "-t", "y", "-o", model, code=2)]
    told += [run("predict", model, model.with_name(OVERRIDE + ".csv"), code=2)]
    for result in told:
        clean(result.stdout)
        clean(result.stderr)
    assert SHOWN + "[red]" in told[1].stdout
    # files keep names and cells as they are
    written = read_table(nasty.with_name("p.csv"))
    assert written.names[:3] == (f"{NASTY}[red]", f"place{OVERRIDE}", target)
    assert ESC in written.text(f"place{OVERRIDE}")[0]


def test_a_terminal(run, nasty, monkeypatch, capsys):
    """Where tables are drawn, with marks as they are."""
    from gramian.cli import work

    model = nasty.with_name("m.gm")
    run("fit", nasty, "-t", f"y{ESC}", "--restarts", 0, "-o", model)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    work.print_summary(gm.load(model))
    drawn = capsys.readouterr().out
    assert SHOWN + "[red]" in clean(drawn)


def test_what_python_shows(nasty):
    gp = gm.GPRegressor(n_restarts=0).fit(nasty, f"y{ESC}")
    clean(gp.summary())
    clean(str(gp.fitted_.parameters()))
    table = read_table(nasty)
    new = Frame({f"{NASTY}[red]": np.array([0.5]), f"place{OVERRIDE}": np.array([f"{ESC}new"], dtype=object)})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        gp.predict(new)
    assert any("place" in clean(str(warning.message)) for warning in told)
    clean(str(gp.evaluate(nasty, table.numbers(f"y{ESC}"))))
