"""One cluster for all tests of it: two processes on this machine, reached through loopback alone."""

from __future__ import annotations

import logging
import os

import numpy as np
import pytest

from tests.conftest import COMPILED

dask = pytest.importorskip("dask", reason="a cluster is Dask's: pip install 'gramian[dask]'")
distributed = pytest.importorskip("distributed", reason="a cluster is Dask's: pip install 'gramian[dask]'")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """Workers that read compiled programs from where the other tests have them."""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(COMPILED),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update(settings)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # workers are killed on purpose
    folder = tmp_path_factory.mktemp("workers")
    made = distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        memory_limit=0,  # other tests may have little to spare
        local_directory=str(folder),
        silence_logs=logging.CRITICAL,
    )
    yield made
    made.close()
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture
def client(cluster):
    made = distributed.Client(cluster)
    made.wait_for_workers(2)
    yield made
    made.close()


@pytest.fixture(scope="session")
def rows():
    """X (n, 3) and y of a function with noise."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (12_000, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * np.cos(X[:, 2]) + 0.1 * rng.standard_normal(len(X))
    return X, y


NAMES = ("a", "b", "c")


@pytest.fixture(scope="session")
def folder(rows, tmp_path_factory):
    """The same as a folder of Parquet files: 3 of them, in row groups of 1,500 rows."""
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = rows
    where = tmp_path_factory.mktemp("parquet")
    for k, part in enumerate(np.array_split(np.arange(len(X)), 3)):
        columns = {name: X[part, j] for j, name in enumerate(NAMES)} | {"y": y[part]}
        parquet.write_table(pa.table(columns), where / f"part{k}.parquet", row_group_size=1500)
    return where
