"""Memory and disk while data are spooled."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

import gramian as gm
from gramian.data import spool
from gramian.data.spool import Room, Spool, is_in_memory
from gramian.errors import InputError, MemoryLimitError


def blocks(rows):
    rng = np.random.default_rng(0)
    return lambda: ((rng.standard_normal((rows, 2)), rng.standard_normal(rows)) for _ in range(4))


def test_a_block_beyond_the_memory_limit_is_refused_and_smaller_ones_are_not(monkeypatch):
    monkeypatch.setattr(spool, "is_in_memory", lambda folder: False)
    gp = gm.GPRegressor(method=gm.Nystrom(5), optimize=False, memory_limit="100 MB")
    monkeypatch.setattr(spool.memory, "allowed", lambda limit: 60_000 if limit == "100 MB" else 10**9)
    with pytest.raises(
        MemoryLimitError,
        match=(
            r"80 kB in memory with a block of 5,000 rows.*60 kB may be used \(memory_limit='100 MB'\).*on"
            r" disk.*smaller blocks"
        ),
    ):
        gp.fit(blocks(5000))
    room = Room("100 MB")
    with Spool(room) as rows:
        for _ in range(5):
            rows.add(np.ones((3000, 2)))
    assert room.spooled == 5 * 48_000


def test_what_is_spooled_counts_where_the_folder_lies_in_memory(monkeypatch):
    monkeypatch.setattr(spool, "is_in_memory", lambda folder: True)
    with Spool(Room(200_000)) as rows:
        rows.add(np.ones((3000, 2)))
        rows.add(np.ones((3000, 2)))
        with pytest.raises(
            MemoryLimitError,
            match=r"96 kB that were spooled .* lie in memory, too: the folder is a tmpfs.*TMPDIR",
        ):
            rows.add(np.ones((5000, 2)))


def test_a_disk_that_is_nearly_full_is_told_before_it_is(monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=spool.LEFT_FREE + 50_000))
    with Spool() as rows:
        rows.add(np.ones((3000, 2)))
        with pytest.raises(
            InputError,
            match=(
                r"nearly full: 16.8 MB are free, 48 kB of the data are spooled there.*next block takes 80"
                r" kB.*TMPDIR"
            ),
        ):
            rows.add(np.ones((5000, 2)))


def test_which_folders_lie_in_memory():
    assert is_in_memory("/dev/shm")
    assert not is_in_memory("/proc")


def test_mount_points_of_any_name(tmp_path):
    """Names of folders are bytes; blanks in them are escaped."""
    (tmp_path / "proc/self").mkdir(parents=True)
    own = str(tmp_path).encode()
    (tmp_path / "proc/self/mountinfo").write_bytes(
        b"1 0 0:1 / / rw - ext4 /dev/a rw\n"
        b"2 1 0:2 / /caf\xe9 rw - ext4 /dev/b rw\n"  # Latin-1
        b"3 1 0:3 / " + own + b"/with\\040blank rw shared:3 - tmpfs tmpfs rw\n"
        b"4 1 0:4 / " + own + b"/below rw - tmpfs tmpfs rw\n"
        b"5 1 0:5 / " + own + b"/below rw - xfs /dev/c rw\n"  # over the one before
    )
    assert is_in_memory(str(tmp_path / "with blank" / "x"), tmp_path)
    assert not is_in_memory(str(tmp_path / "with"), tmp_path)
    assert not is_in_memory(str(tmp_path / "below"), tmp_path)
    assert not is_in_memory(str(tmp_path), tmp_path / "nothing")
