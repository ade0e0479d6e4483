"""Progress: a bar on a terminal, lines on request, silence in a pipe."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from gramian.experiments.measures import peak_memory, resident_bytes
from gramian.experiments.progress import bar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch, file: io.StringIO, verbose: bool | None, left: int = 2, done: int = 0) -> str:
    monkeypatch.setattr(sys, "stderr", file)
    monkeypatch.setenv("TERM", "xterm")
    with bar(verbose, left, done) as step:
        for k in range(left):
            step(f"method {k}")
    return file.getvalue()


@pytest.mark.parametrize("verbose", [None, False])
def test_a_pipe_stays_silent(monkeypatch, verbose):
    assert shown(monkeypatch, io.StringIO(), verbose) == ""


def test_lines_on_request_count_what_is_left(monkeypatch):
    text = shown(monkeypatch, io.StringIO(), True, left=2, done=3)
    assert text.splitlines() == [
        "3 runs are there already; 2 to do",
        "run 1 of 2: method 0",
        "run 2 of 2: method 1",
    ]


def test_a_terminal_has_a_bar_unless_nothing_is_left_or_it_is_unwanted(monkeypatch):
    assert "method 1" in shown(monkeypatch, Terminal(), None)
    assert shown(monkeypatch, Terminal(), None, left=0, done=4) == ""
    assert shown(monkeypatch, Terminal(), False) == ""


@pytest.mark.skipif(np.isnan(resident_bytes()), reason="resident memory is read from /proc")
def test_peak_memory_sees_an_array_that_was_given_back():
    import time

    size = 80_000_000
    with peak_memory() as peak:
        held = bytearray(b"\x01") * size  # written, so resident
        time.sleep(0.05)  # ten looks
        del held
    # At least the array; other threads of the process may give back a little of theirs meanwhile.
    assert 0.9 * size < peak.bytes < 2 * size
