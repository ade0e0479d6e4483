"""The command forecast."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import gramian as gm
from gramian.cli import work
from gramian.data.tables import read_table


@pytest.fixture
def sales(tmp_path):
    rng, t = np.random.default_rng(0), np.arange(90)
    y = 50 + 0.1 * t + 5 * np.sin(2 * np.pi * t / 7) + rng.standard_normal(90)
    dates = np.datetime64("2024-01-01") + t
    path = tmp_path / "sales.csv"
    path.write_text("\n".join(["ds,y", *(f"{d},{v:.3f}" for d, v in zip(dates, y, strict=True))]) + "\n")
    return path


def test_the_files_that_it_writes(run, sales, tmp_path):
    out, picture, parts, model = (tmp_path / name for name in ("f.csv", "f.png", "parts.csv", "f.gm"))
    said = run(
        *("forecast", sales, "--date", "ds", "--target", "y", "--horizon", "14d"),
        *("--out", out, "--plot", picture, "--components", parts, "--model", model),
    )
    assert "parts: trend, week, short-term" in said.stdout
    table = read_table(out)
    assert table.names == ("ds", "mean", "median", "lower", "upper")
    assert table.n_rows == 14
    assert table.text("ds")[0] == "2024-03-31"
    assert np.all(table.numbers("lower") < table.numbers("upper"))
    assert picture.read_bytes()[:4] == b"\x89PNG"
    whole = read_table(parts)
    assert whole.n_rows == 90 + 14
    assert {"trend", "week", "week_lower"} <= set(whole.names)
    again = gm.load(model).forecast("14d")
    np.testing.assert_allclose(table.numbers("mean"), again["mean"])
    assert "forecasts y by ds" in run("show", model).stdout
    assert "gramian forecast" in run("predict", model, sales, code=2).stderr


def test_to_a_pipe_and_with_regressors(run, sales, tmp_path):
    lines = sales.read_text().splitlines()
    rng = np.random.default_rng(1)
    promo = rng.random(95) < 0.3
    past = [f"{line},{int(p)}" for line, p in zip(lines[1:], promo, strict=False)]
    data, future = tmp_path / "promo.csv", tmp_path / "future.csv"
    data.write_text("\n".join(["ds,y,promo", *past]) + "\n")
    future.write_text("ds,promo\n2024-03-31,1\n2024-04-01,0\n")
    said = run("forecast", data, "--regressors", "promo", "--future", future, "--seasons", "week")
    assert said.stdout.startswith("ds,mean,median,lower,upper\n2024-03-31,")
    assert len(said.stdout.splitlines()) == 3
    assert (
        "promo at the dates ahead"
        in run(
            "forecast", data, "--regressors", "promo", "--horizon", "7", "--seasons", "none", code=2
        ).stderr
    )


def test_mistakes_are_told_with_their_line(run, sales, tmp_path):
    assert "Say how far" in run("forecast", sales, code=2).stderr
    assert "no column 'when'" in run("forecast", sales, "--date", "when", "--horizon", "5", code=2).stderr
    text = sales.read_text().replace("2024-01-05", "someday")
    broken = tmp_path / "broken.csv"
    broken.write_text(text)
    assert "line 6" in run("forecast", broken, "--horizon", "5", code=2).stderr
    broken.write_text(sales.read_text() + "2024-01-05,3\n")
    assert "2024-01-05 is there twice" in run("forecast", broken, "--horizon", "5", code=2).stderr
    assert "For months write M" in run("forecast", sales, "--horizon", "12m", code=2).stderr


def test_a_picture_is_written_whole_or_not_at_all(run, sales, tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    def full(figure, file, **settings):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    picture = tmp_path / "f.png"
    picture.write_bytes(b"before")
    monkeypatch.setattr(Figure, "savefig", full)
    asked = ("forecast", sales, "--horizon", "3", "--seasons", "none", "--out", tmp_path / "f.csv", "--plot")
    assert "f.png cannot be written: the disk is full" in run(*asked, picture, code=2).stderr
    assert picture.read_bytes() == b"before"
    assert not list(tmp_path.glob(".gramian-*"))
    assert "pictures are .png" in run(*asked, tmp_path / "f.xyz", code=2).stderr


def test_a_table_for_a_pipe_lies_where_it_is_swept(run, sales, monkeypatch):
    """What is left of a process that was killed, the next one takes away."""
    seen = []
    whole = work.write_table

    def kept(path, *given):
        seen.append(path.parent.name)
        whole(path, *given)

    monkeypatch.setattr(work, "write_table", kept)
    run("forecast", sales, "--horizon", "3", "--seasons", "none")
    assert seen[0].startswith(".gramian-")
    assert seen[0].endswith(".tmp")
