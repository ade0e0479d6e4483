"""Progress: one line on a terminal after half a second, lines in a pipe only when asked for, otherwise
nothing."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import gramian as gm
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
        report(2, 3, 17, -12.5)
    assert "start 2 of 3, evaluation 17, best -12.5" in screen.getvalue()
    assert "Ctrl-C" in screen.getvalue()


@pytest.mark.parametrize("verbose", [None, False])
def test_nothing_on_a_terminal_for_a_quick_fit_or_when_unwanted(verbose, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(module, "_QUIET_SECONDS", -1.0 if verbose is False else 1e9)
    with progress(verbose) as report:
        report(1, 1, 1, 0.0)
    assert screen.getvalue() == ""
