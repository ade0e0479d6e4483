"""Progress: one line on a terminal after half a second, lines in a pipe only when asked for, otherwise
nothing."""

from __future__ import annotations

import io
import re
import sys

import numpy as np
import pytest

import gramian as gm
from gramian import clock
from gramian.fitting import progress as module
from gramian.fitting.progress import progress

X = np.linspace(0, 1, 12)[:, None]
y = np.sin(6 * X[:, 0])


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("verbose", [None, False])
def test_nothing_in_a_pipe(verbose, capsys):
    gm.GPRegressor(verbose=verbose, n_restarts=0).fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_lines_in_a_pipe_when_asked_for(capsys):
    gm.GPRegressor(verbose=True, n_restarts=0).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "start 1 of 1, evaluation 1, best" in err


def test_a_line_on_a_terminal(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "_QUIET_SECONDS", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress(None) as report:
        report.show()
        report(2, 3, 17, -12.5)
    assert "start 2 of 3, evaluation 17, best -12.5" in screen.getvalue()
    assert "Ctrl-C" in screen.getvalue()


def plain(text):
    """What a screen shows of it."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "\n")


def test_the_clock_goes_on_during_one_evaluation(monkeypatch):
    """Nothing is reported meanwhile; the line is drawn anew all the same, and fits a narrow terminal."""
    screen, times = Terminal(), [0.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(clock, "now", lambda: times[0])
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    with progress(None) as report:
        report.show()
        report.stage("exact on 6,000 of 50,000 rows", 25, 100.0)
        for times[0] in (10.0, 310.0):
            report.live.refresh()  # as its thread does twice a second
    text = plain(screen.getvalue())
    assert "10 s; fitting: exact on 6,000 of 50,000 rows" in text
    assert "5:10 min; fitting: exact on 6,000 of 50,000 rows" in text
    assert max(map(len, text.split("\n"))) <= 60


def test_what_remains(monkeypatch):
    """Of a search by its pace, of a final inference by its share, of a limited fit no more than its time."""
    times = [0.0]
    monkeypatch.setattr(clock, "now", lambda: times[0])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(True) as report:
        assert report.left() is None
        report.stage("exact on all rows", 45, ahead=10.0)
        times[0] = 22.0
        report(1, 1, 1, 0.0)  # which compiles
        times[0] = 50.0
        report(1, 1, 15, 0.0)  # two seconds each, thirty to come, and ten more
        assert report.left() == pytest.approx(80.0)
        times[0] = 51.0  # during the next
        assert report.left() == pytest.approx(79.0)
        report.final(1000)
        times[0] = 61.0
        report.share(0.25)
        assert report.left() == pytest.approx(30.0)
        assert "1:01 min, about 30 s left; final inference on all rows: 25%" in report.text()
    with clock.until(71.0), progress(True) as report:
        assert report.left() == pytest.approx(10.0)
        report.stage("exact on all rows", 45)
        times[0] = 70.0
        report(1, 1, 1, 0.0)
        assert report.left() == pytest.approx(1.0)


def test_what_remains_of_a_search_that_goes_on(monkeypatch):
    """Evaluations from a checkpoint take no time, and say nothing of those to come."""
    times = [0.0]
    monkeypatch.setattr(clock, "now", lambda: times[0])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress(True) as report:
        report.stage("exact on all rows", 45)
        times[0] = 0.1
        report(1, 1, 30, 0.0)  # the last that is known
        times[0] = 6.1
        report(1, 1, 33, 0.0)  # two seconds each, twelve to come
        assert report.left() == pytest.approx(24.0)


def test_a_log_has_whole_lines(capsys):
    with progress(True) as report:
        report.stage("exact on all rows", 45)
        report(1, 1, 15, -123456.789)
    assert capsys.readouterr().err.count("\n") == 1


def test_people_read_times():
    assert [module.shown(s) for s in (0.4, 59.4, 75, 3599, 7260)] == [
        "0 s",
        "59 s",
        "1:15 min",
        "59:59 min",
        "2:01 h",
    ]


@pytest.mark.parametrize("verbose", [None, False])
def test_nothing_on_a_terminal_for_a_quick_fit_or_when_unwanted(verbose, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "_QUIET_SECONDS", -1.0 if verbose is False else 1e9)
    with progress(verbose) as report:
        report(1, 1, 1, 0.0)
    assert screen.getvalue() == ""
