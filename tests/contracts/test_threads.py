"""Results do not depend on the number of threads, nor on what else runs in the process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

import gramian as gm
from gramian.linalg import threads
from gramian.linalg.threads import ONE_THREAD_UP_TO, threads_for

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


def test_one_thread_or_several(data, monkeypatch):
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(threads, "THREADS", count)
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


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_gets_its_threads_back_whatever_the_order():
    """The number belongs to the process: of two users that overlap, the last to leave gives it back."""
    before = blas_threads()
    first, second = threads_for(10), threads_for(20)
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) == {1}
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}
    second.__exit__(None, None, None)
    assert blas_threads() == before
    with threads_for(ONE_THREAD_UP_TO + 1):
        assert blas_threads() == before


def test_blas_gets_its_threads_back_after_an_error():
    before = blas_threads()
    with pytest.raises(RuntimeError, match="midway"), threads_for(10):
        raise RuntimeError("midway")
    assert blas_threads() == before
