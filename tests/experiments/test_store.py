"""Runs on a disk that is full: a line is there whole or not at all, and the folder goes on when there is
space."""

from __future__ import annotations

import dataclasses
import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gramian.errors import InputError
from gramian.experiments import store as module
from gramian.experiments.run import RunRecord
from gramian.experiments.store import RUNS, Store

# Appends runs until the file may grow no more, as where a disk is full: the last write is short.
FULL = """
import dataclasses, resource, signal, sys
from gramian.errors import InputError
from gramian.experiments.store import Store
from tests.experiments.test_store import a_run

from pathlib import Path

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
store, k = Store(Path(sys.argv[1])), 0
try:
    while True:
        store.append(a_run(k))
        k += 1
except InputError as error:
    print(k, error)
"""


def a_run(repeat: int) -> RunRecord:
    texts = {"method": "exact", "note": "a, b"}
    values = {field.name: texts.get(field.name, 0.5) for field in dataclasses.fields(RunRecord)}
    whole = dict.fromkeys(("size", "n_train", "n_test"), 7)
    return RunRecord(**{**values, **whole, "repeat": repeat})  # type: ignore[arg-type]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's length")
def test_a_full_disk_leaves_whole_lines_and_the_folder_goes_on(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path, "1000"],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode == 0, run.stderr
    count = int(run.stdout.split()[0])
    assert count >= 3
    assert "cannot be written: it is longer than a file may be there. Free some space" in run.stdout
    store = Store(tmp_path)
    assert (tmp_path / RUNS).read_bytes().endswith(b"\n")
    assert [found.repeat for found in store.read()] == list(range(count))
    store.append(a_run(count))
    assert [found.repeat for found in store.read()] == list(range(count + 1))


class Nearly:
    """A file on a disk that takes three bytes at a time, and in all no more than `room`."""

    def __init__(self, file: Any, room: int) -> None:
        self.file, self.room = file, room

    def __enter__(self) -> Nearly:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def write(self, text: bytes) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = self.file.write(text[: min(3, self.room)])
        self.room -= taken
        return int(taken)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


@pytest.mark.parametrize("room", [0, 1, 20, 10**6])
@pytest.mark.parametrize("before", [0, 2])
def test_short_writes_go_on_or_are_taken_back(
    room: int, before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    for k in range(before):
        store.append(a_run(k))
    opened = Path.open
    with monkeypatch.context() as patch:
        patch.setattr(module.Path, "open", lambda *a, **k: Nearly(opened(*a, **k), room))
        if room < 10**6:
            with pytest.raises(InputError, match=r"the disk is full\. Free some space; the same command"):
                store.append(a_run(before))
        else:
            store.append(a_run(before))
    if room < 10**6:
        store.append(a_run(before))
    assert store.read() == [a_run(k) for k in range(before + 1)]


def test_a_line_without_its_end_is_taken_out_and_told(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append(a_run(0))
    store.append(a_run(1))
    whole = (tmp_path / RUNS).read_bytes()
    for cut in range(1, 20):
        (tmp_path / RUNS).write_bytes(whole[:-cut])
        with pytest.warns(UserWarning, match="the last line was not whole and was taken out"):
            assert store.read() == [a_run(0)]
        store.append(a_run(1))
        assert (tmp_path / RUNS).read_bytes() == whole


def test_a_note_of_several_lines_is_one_line_in_the_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append(dataclasses.replace(a_run(0), note="first\nsecond"))
    assert len((tmp_path / RUNS).read_text().splitlines()) == 2
    assert store.read()[0].note == "first second"
