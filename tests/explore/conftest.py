"""The page's mathematics in Node, the explorer as a process, each skipped where it is absent."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gramian.explore

STATIC = Path(gramian.explore.__file__).parent / "static"
DRIVER = Path(__file__).parent / "drive.mjs"


def ask_node(*questions: tuple[str, dict[str, Any]]) -> list[Any]:
    """Answers of the page's own modules, run by Node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("Node is not installed: the page's mathematics is tried in the browser alone")
    done = subprocess.run(
        [node, str(DRIVER), str(STATIC)], input=json.dumps(questions), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Running:
    """`gramian explore` as a process of its own."""

    def __init__(self, *arguments: object) -> None:
        command = [sys.executable, "-m", "gramian", "explore", "--no-browser", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise AssertionError(self.process.communicate()[1])
        self.address = line.split()[-1]  # http://127.0.0.1:PORT/TOKEN/
        self.port = int(self.address.split(":")[2].split("/")[0])
        self.token = self.address.rstrip("/").split("/")[-1]

    def end(self) -> tuple[int, str]:
        """Ctrl-C, and what it came to."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said


@pytest.fixture(scope="session")
def running() -> Iterator[Running]:
    explorer = Running()
    yield explorer
    explorer.end()
