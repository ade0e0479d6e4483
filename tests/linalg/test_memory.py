"""Bytes: what people write, what is free, and how many rows of a block fit."""

from __future__ import annotations

import errno

import numpy as np
import pytest

import gramian as gm
from gramian.errors import MemoryLimitError, ParameterError
from gramian.linalg import memory


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GB", 2 * 10**9),
        ("2 gb", 2 * 10**9),
        ("1.5 GiB", 3 * 2**29),
        ("512MiB", 2**29),
        ("100k", 10**5),
        ("3e3", 3000),
        (".5 kB", 500),
        (" 7 ", 7),
        ("1TB", 10**12),
        (2000, 2000),
        (2.5e6, 2_500_000),
        (np.int64(5), 5),
    ],
)
def test_sizes(text, size):
    assert memory.parse_bytes(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "GB", "2XB", "two GB", "-1GB", "1 2GB", "1e400", 0, -1, float("inf"), float("nan"), True, None, [1]],
)
def test_what_is_no_size(text):
    with pytest.raises(ParameterError, match=r"is not a size.*2GB"):
        memory.parse_bytes(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (512, "512 bytes"),
        (1500, "1.5 kB"),
        (2_340_000, "2.34 MB"),
        (8e9, "8 GB"),
        (2e12, "2 TB"),
        (3e15, "more than a petabyte"),
    ],
)
def test_sizes_for_people(size, text):
    assert memory.show_bytes(size) == text


def test_free_memory_is_a_sensible_number():
    assert 10**7 < memory.free_bytes() < 10**15


def test_limits():
    memory.check_memory(1000, "1kB", "This", "Cure.")
    with pytest.raises(
        MemoryLimitError,
        match=r"This needs 1 kB, but only 999 bytes may be used \(memory_limit=999\)\. Cure\.",
    ):
        memory.check_memory(1000, 999, "This", "Cure.")


def test_without_a_limit_a_share_of_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 10**9)
    memory.check_memory(8 * 10**8, None, "This", "Cure.")
    with pytest.raises(MemoryLimitError, match="80% of the free memory"):
        memory.check_memory(8 * 10**8 + 1, None, "This", "Cure.")


def test_rows_of_a_block():
    assert memory.block_rows(8 * 1000, 512) % 512 == 0
    assert memory.block_rows(8 * 1000, 512) * 8 * 1000 <= memory.BLOCK_BYTES
    assert memory.block_rows(10**12, 512) == 512  # at least one tile
    assert memory.block_rows(0, 64) % 64 == 0


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 8 GiB"),
        RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 8 bytes."),
        RuntimeError("can't start new thread"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        ImportError("libx.so: failed to map segment from shared object"),
    ],
    ids=str,
)
def test_a_shortage_is_one_error_in_whoevers_words(error):
    @memory.translated("This work", "Do less.")
    def work(given):
        raise given

    with pytest.raises(
        MemoryLimitError, match=r"This work needs more memory than the system gives\. Do less"
    ):
        work(error)


@pytest.mark.parametrize(
    "error", [RuntimeError("no"), OSError(errno.ENOENT, "no"), ImportError("no"), KeyError(1)]
)
def test_other_errors_stay_what_they_are(error):
    with pytest.raises(type(error)), memory.translated("This work", "Do less."):
        raise error


def test_a_limit_on_the_address_space_counts_as_memory(monkeypatch):
    resource = pytest.importorskip("resource")
    before = memory.free_bytes()
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2**50, 2**50))
    assert memory.free_bytes() == pytest.approx(before, rel=0.5)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (1, 1))
    assert memory.free_bytes() == 0


def test_where_the_compiler_has_no_room_nothing_is_compiled(monkeypatch, rng):
    """It would end the process, or wait for ever."""
    monkeypatch.setattr(memory, "_address_space", lambda: [10**8])
    monkeypatch.setattr(memory, "_compiled", False)
    X = rng.normal(size=(500, 3))
    prior = gm.GP(gm.RBF(), noise=0.1)
    for fit in (gm.GPRegressor("rbf").fit, gm.GPLatent(1).fit, prior.fit, prior.condition):
        with pytest.raises(MemoryLimitError, match=r"leaves 100 MB; to compile programs takes up to 1\.5 GB"):
            fit(X, X[:, 0])
    monkeypatch.setattr(memory, "_address_space", lambda: [10**10])
    memory.check_compiler()
    monkeypatch.setattr(memory, "_address_space", lambda: [10**8])
    memory.check_compiler(anew=False)
