"""Results do not depend on the number of threads, nor on what else runs in the process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import gramian as gm
from gramian.errors import ParameterError
from gramian.linalg import threads
from gramian.linalg.factor import factor_in_place
from gramian.linalg.threads import one_blas_thread

N = 1300  # several tiles each way


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (N, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=N)


def answers(data):
    X, y = data
    gp = gm.GPRegressor(1.2 * gm.Matern52([0.6, 0.9]), noise=0.1, mean="linear", optimize=False).fit(X, y)
    value, gradient = gp.log_evidence(return_grad=True)
    mean, std = gp.predict(X, return_std=True)
    return [
        value,
        gradient,
        mean,
        std,
        gp.predict(X),
        gp.predict(X[:600], return_cov=True)[1],
        gp.predict_gradient(X[:700])[1],
        gp.kernel_(X[:600]),
    ]


@pytest.fixture
def as_before():
    """Threads may be set inside."""
    before = threads.count()
    yield
    threads.set_threads(before)


@pytest.mark.usefixtures("as_before")
def test_one_thread_or_several(data):
    found = []
    for count in (1, 2, 5):
        gm.set_threads(count)
        found.append(answers(data))
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            assert np.asarray(b).dtype == np.float64
            assert np.array_equal(a, b)


def test_fits_side_by_side_are_the_fits_alone(data):
    """Several estimators in several threads: 64-bit mode is a property of a thread, and nothing is shared."""
    X, y = data[0][:60], data[1][:60]

    def fit(k):
        return gm.GPRegressor(n_restarts=1, random_state=k).fit(X[: 40 + k], y[: 40 + k]).predict(X)

    alone = [fit(k) for k in range(4)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(fit, range(4)))
    for a, b in zip(alone, together, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.usefixtures("as_before")
def test_set_threads_says_how_many_it_were():
    gm.set_threads(3)
    assert gm.set_threads(2) == 3
    assert threads.count() == 2
    gm.set_threads(None)
    assert threads.count() == threads.allowed()
    for wrong in (0, -1, 1.5, True, "2"):
        with pytest.raises(ParameterError, match="whole number"):
            gm.set_threads(wrong)


def test_the_environment_says_how_many():
    assert threads.allowed(environment={"GRAMIAN_NUM_THREADS": " 5 "}) == 5
    assert 1 <= threads.allowed(environment={}) <= threads.MOST
    with pytest.raises(ParameterError, match="GRAMIAN_NUM_THREADS='many'"):
        threads.allowed(environment={"GRAMIAN_NUM_THREADS": "many"})


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, np.inf),
        ({"cpu.max": "max 100000\n"}, np.inf),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, np.inf),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        (
            {"cpu.max": "400000 100000\n", "pod/cpu.max": "max 100000", "pod/a/cpu.max": "200000 100000\n"},
            2.0,
        ),
        ({"cpu.max": "nonsense"}, np.inf),
    ],
)
def test_the_quota_of_a_container(files, cores, tmp_path):
    """Of either version of cgroups; the lowest of those above this process."""
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    own = tmp_path / "own"
    own.write_text("0::/pod/a\n")
    assert threads.quota(tmp_path, own) == cores
    assert threads.quota(tmp_path, tmp_path / "none") >= cores
    if cores < 1:
        assert threads.allowed(tmp_path, {}) == 1


def test_blas_has_one_thread_while_the_library_works(data):
    """Also beyond a few hundred rows: threads that share a product wait for each other actively."""
    seen = []

    def look(share):
        seen.append(set(blas_threads()))

    factor_in_place(np.asfortranarray(np.eye(N)), look)
    assert set().union(*seen) == {1}


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_gets_its_threads_back_whatever_the_order():
    """The number belongs to the process: of two users that overlap, the last to leave gives it back."""
    before = blas_threads()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) == {1}
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before


def test_blas_gets_its_threads_back_after_an_error():
    before = blas_threads()
    with pytest.raises(RuntimeError, match="midway"), one_blas_thread():
        raise RuntimeError("midway")
    assert blas_threads() == before
