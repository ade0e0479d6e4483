"""What all tests share. Hypothesis draws the same examples in every run, so a test passes always or never.

What XLA has compiled is kept in a folder (`COMPILED`): the two processes of one run share their programs, and
the next run begins with all of them. JAX finds a program by a digest of its text, the options and the version
of XLA, so that an old one is never taken for a new one; `make clean` removes them.
"""

from __future__ import annotations

import gc
import platform
import re
import signal
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # tests.reference, wherever pytest was started

settings.register_profile("gramian", deadline=None, derandomize=True, database=None)
settings.load_profile("gramian")


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # as at a terminal: what a script has begun in its background ignores Ctrl-C, and so do its children
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _processor() -> str:
    """What a program is compiled for: instructions of one processor need not be there in another."""
    cpuinfo = Path("/proc/cpuinfo")
    told = cpuinfo.read_text() if cpuinfo.exists() else ""
    instructions = re.search(r"^(flags|Features).*$", told, re.MULTILINE)
    known = instructions[0] if instructions else platform.processor()
    return f"{platform.machine()}-{zlib.crc32(known.encode()):08x}"


COMPILED = ROOT / ".jax_cache" / _processor()


@pytest.fixture(scope="session", autouse=True)
def compiled_once():
    """Set here and not in the environment, so that processes which tests start are as a user's would be. A
    program that is read while the other process writes it is compiled once more, and JAX warns of it, which
    pyproject.toml allows."""
    import jax

    jax.config.update("jax_compilation_cache_dir", str(COMPILED))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


@pytest.fixture(scope="module", autouse=True)
def room_for_programs():
    """Each program of XLA takes some seven places in the table of a process's memory, of which Linux has
    65,530; without one more, XLA ends the process. Thousands of tests come near that: programs are then let
    go, and read again from the folder."""
    yield
    table = Path("/proc/self/maps")
    if table.exists() and table.read_bytes().count(b"\n") > 25_000:
        import jax

        jax.clear_caches()
        gc.collect()


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Matrices here are small: a second thread of BLAS gains nothing on them, and costs ten times the time
    where other work runs beside it."""
    with threadpool_limits(1, user_api="blas"):
        yield
