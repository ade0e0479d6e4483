"""Temporary files of processes that were killed are swept by the next one that writes beside them; those that
somebody is writing stay."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gramian.data import atomic
from gramian.data.atomic import atomic_write, temporary_folder

# writes a part, says so, and waits
WRITER = """
import sys
from gramian.data.atomic import atomic_write

with atomic_write(sys.argv[1]) as file:
    file.write(b"x" * 100_000)
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path / "theirs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def temporary(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


def write(path: Path) -> None:
    with atomic_write(path) as file:
        file.write(b"new")


locks = pytest.mark.skipif(atomic.fcntl is None, reason="no locks on this system")


@locks
def test_what_a_killed_process_leaves_is_swept(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    assert len(temporary(tmp_path)) == 1
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert len(temporary(tmp_path)) == 1
    write(tmp_path / "mine")
    assert os.listdir(tmp_path) == ["mine"]


@locks
def test_what_somebody_is_writing_stays(tmp_path: Path, writer: subprocess.Popen[str]) -> None:
    (name,) = temporary(tmp_path)
    os.utime(tmp_path / name, (0, 0))  # however old it looks
    write(tmp_path / "mine")
    assert temporary(tmp_path) == [name]
    writer.communicate("")
    assert writer.returncode == 0
    assert (tmp_path / "theirs").stat().st_size == 100_000
    assert sorted(os.listdir(tmp_path)) == ["mine", "theirs"]


# has a folder with a file in it, says so, and waits
HOLDER = """
import sys
from gramian.data.atomic import temporary_folder

with temporary_folder() as folder:
    (folder / "predictions.csv").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


@locks
@pytest.mark.parametrize("killed", [True, False])
def test_a_folder_is_swept_when_its_process_was_killed(
    killed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        theirs = Path(holder.stdout.readline().strip())
        assert theirs.parent == tmp_path
        assert stat.S_IMODE(theirs.stat().st_mode) == 0o700
        if killed:
            holder.kill()
            holder.wait()
        (tmp_path / ".gramian-of-another.tmp").mkdir()
        with temporary_folder() as folder:
            assert folder.is_dir()
            assert theirs.exists() is not killed
        assert not folder.exists()
        holder.communicate("")
    assert os.listdir(tmp_path) == [".gramian-of-another.tmp"]


def test_threads_that_write_side_by_side_do_not_sweep_each_other(tmp_path: Path) -> None:
    def work(k: int) -> None:
        for j in range(20):
            write(tmp_path / f"{k} {j}")

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(os.listdir(tmp_path)) == 80


@pytest.mark.parametrize("machine", ["01234567-", ""])
def test_what_another_machine_left_is_swept_after_a_day(machine: str, tmp_path: Path) -> None:
    left = tmp_path / f".gramian-{machine}0123456789abcdef.tmp"
    left.write_bytes(b"part")
    write(tmp_path / "mine")
    assert left.exists()
    now = (tmp_path / "mine").stat().st_mtime
    os.utime(left, (now - 23 * 3600, now - 23 * 3600))
    write(tmp_path / "mine")
    assert left.exists()
    os.utime(left, (now - 25 * 3600, now - 25 * 3600))
    write(tmp_path / "mine")
    assert os.listdir(tmp_path) == ["mine"]


@locks
def test_where_a_file_system_has_no_locks_only_age_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic.fcntl, "flock", lambda *_: (_ for _ in ()).throw(OSError("no locks")))
    left = tmp_path / f".gramian-{atomic._machine()}-0123456789abcdef.tmp"
    left.write_bytes(b"part")
    write(tmp_path / "mine")
    assert left.exists()
    os.utime(left, (0, 0))
    write(tmp_path / "mine")
    assert os.listdir(tmp_path) == ["mine"]


def test_files_of_other_names_and_kinds_stay(tmp_path: Path) -> None:
    names = [".gramian-notes.tmp", ".gramian-0123456789abcdeg.tmp", "gramian-0123456789abcdef.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
        os.utime(tmp_path / name, (0, 0))
    (tmp_path / ".gramian-0123456789abcdef.tmp").mkdir()
    (tmp_path / ".gramian-1123456789abcdef.tmp").symlink_to(tmp_path / names[0])
    os.utime(tmp_path / ".gramian-0123456789abcdef.tmp", (0, 0))
    write(tmp_path / "file")
    assert len(os.listdir(tmp_path)) == 6
