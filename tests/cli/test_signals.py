"""SIGTERM ends a command as Ctrl-C does: temporary files go, and the exit code says why."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

# `gramian predict` that tells when it is at its second block of rows, and stays there
STOPS = """
import sys, time
from gramian.cli import work
from gramian.cli.main import main

read = work.read_blocks

def blocks(path, **how):
    yield from read(path, **how)
    print("at work", file=sys.stderr, flush=True)
    while True:  # a signal just before a long sleep begins is answered when it ends
        time.sleep(0.05)

work.read_blocks = blocks
sys.argv[0] = "gramian"
main()
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows ends a process without a signal")
@pytest.mark.parametrize("out", [(), ("--out", "predictions.csv"), ("-",)])
def test_sigterm_leaves_no_predictions_behind(
    out: tuple[str, ...], tmp_path: Path, data: Path, model: Path
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    before = sorted(os.listdir(tmp_path))
    from_stdin = out == ("-",)
    source = ("-",) if from_stdin else (str(data), *out)
    process = subprocess.Popen(
        [sys.executable, "-c", STOPS, "predict", str(model), *source],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    with process:
        process.stdin.write(data.read_text() if from_stdin else "")
        process.stdin.close()
        while (line := process.stderr.readline()) != "at work\n":
            assert line, "ended before"
        assert os.listdir(temporary) or out[:1] == ("--out",)
        for _ in range(2):  # as `timeout` does: to the process, and to its group, in the same moment
            os.kill(process.pid, signal.SIGTERM)
        assert process.wait(60) == 143
        assert process.stdout is not None
        assert process.stdout.read() == ""
    assert os.listdir(temporary) == []
    assert sorted(os.listdir(tmp_path)) == before
