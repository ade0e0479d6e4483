"""What all tests share. Hypothesis draws the same examples in every run, so a test passes always or never."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# tests.reference, wherever pytest was started
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

settings.register_profile("gramian", deadline=None, derandomize=True, database=None)
settings.load_profile("gramian")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20240229)


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Matrices here are small: a second thread of BLAS gains nothing on them, and costs ten times the time
    where other work runs beside it."""
    with threadpool_limits(1, user_api="blas"):
        yield
