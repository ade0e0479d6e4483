"""Loops over rows by threads, processes and a Dask cluster: the same results, in order, whoever dies."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from gramian.errors import ClusterError, MemoryLimitError, ParameterError
from gramian.linalg import cluster as clusters
from gramian.linalg.cluster import Dask
from gramian.linalg.executor import Threads, as_executor, current, summed, using


def product(item, state):
    return [item @ state]


def slowly(item, state):
    time.sleep(0.2)
    return item + state["one"], os.getpid()


def fails(item, state):
    if item == 3:
        raise ParameterError("three")
    return item


def unbound(item, state):
    raise UnboundLocalError("of the work")


def dies(item, state):
    os.kill(os.getpid(), signal.SIGKILL)


TABLES = [np.random.default_rng(k).standard_normal((40, 40)) for k in range(6)]


def totals(executor):
    return summed(executor.each(product, TABLES, np.eye(40) / 3))[0]


def test_all_executors_give_the_same_bits(client):
    here = totals(Threads())
    assert np.array_equal(here, totals(as_executor(client)))
    with ThreadPoolExecutor(2) as pool:
        assert np.array_equal(here, totals(as_executor(pool)))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert np.array_equal(here, totals(as_executor(pool)))


def test_the_tree_of_sums_does_not_depend_on_how_many_work(client):
    (one,) = (list(client.nthreads())[:1],)
    few = Dask(client)
    submit = client.submit
    client.submit = lambda *given, **named: submit(*given, workers=one, **named)  # one worker alone
    try:
        assert np.array_equal(totals(few), totals(Threads()))
    finally:
        del client.submit


def test_who_works_is_of_the_call():
    assert not current().remote
    with ThreadPoolExecutor(1) as pool, using(as_executor(pool)) as executor:
        assert current() is executor
    assert not current().remote
    with pytest.raises(ParameterError, match="neither a dask"):
        as_executor("tcp://somewhere")


@pytest.mark.parametrize("where", ["threads", "dask"])
def test_an_error_in_a_piece_is_told(client, where):
    executor = as_executor(client if where == "dask" else None)
    with pytest.raises(ParameterError, match="three"):
        list(executor.each(fails, range(6)))
    assert list(executor.each(fails, range(3))) == [0, 1, 2]  # and nothing is left behind


def test_a_killed_worker_costs_time_alone(client):
    found, pids = [], set()
    for k, (value, pid) in enumerate(as_executor(client).each(slowly, range(10), {"one": 1})):
        found.append(value)
        pids.add(pid)
        if k == 1:
            os.kill(pid, signal.SIGKILL)
    assert found == list(range(1, 11))
    assert len(pids) > 1


def test_a_wait_that_distributed_cancels_is_no_loss(client, monkeypatch):
    """Its `sync` then ends with an UnboundLocalError of its own; one of the work is an error as any other."""
    distributed = pytest.importorskip("distributed")
    asked, result = [], distributed.Future.result

    def cancelled(future, timeout=None):
        asked.append(future)
        if len(asked) == 2:
            raise UnboundLocalError("cannot access local variable 'result'")
        return result(future, timeout=timeout)

    monkeypatch.setattr(distributed.Future, "result", cancelled)
    found = [value for value, _ in as_executor(client).each(slowly, range(3), {"one": 1})]
    assert found == [1, 2, 3]
    assert len(asked) >= 4
    with pytest.raises(UnboundLocalError, match="of the work"):
        list(as_executor(client).each(unbound, [0]))


def test_a_state_that_died_with_all_workers_is_sent_again(client):
    found = []
    for k, (value, _) in enumerate(as_executor(client).each(slowly, range(8), {"one": 1})):
        found.append(value)
        if k == 1:
            for pid in client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
    assert found == list(range(1, 9))
    client.wait_for_workers(2)


def test_a_piece_that_ends_its_workers_is_given_up(client, monkeypatch):
    monkeypatch.setattr(clusters, "KILLS", 1)
    with no_failures(client), pytest.raises(ClusterError, match="want of memory"):
        list(as_executor(client).each(dies, [0]))
    client.wait_for_workers(2)


@contextlib.contextmanager
def no_failures(client):
    """A scheduler that gives a task to one worker alone."""
    scheduler = client.cluster.scheduler
    before, scheduler.allowed_failures = scheduler.allowed_failures, 0
    yield
    scheduler.allowed_failures = before


def test_a_client_that_goes_away_is_told(cluster):
    import distributed

    client = distributed.Client(cluster)
    found = as_executor(client).each(slowly, range(10), {"one": 1})
    assert next(found)[0] == 1
    client.close()
    with pytest.raises(ClusterError, match="Make a new client"):
        list(found)
    with pytest.raises(ClusterError, match="Make a new client"):
        next(as_executor(client).each(slowly, range(10), {"one": 1}))


class Nobody:
    """A client of a cluster without workers."""

    status = "running"

    def nthreads(self):
        return {}

    def scatter(self, *given, **named):
        raise TimeoutError("No valid workers found")

    submit = cancel = None


def test_a_cluster_without_workers_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 0.2)
    with pytest.raises(ClusterError, match="no worker"):
        list(as_executor(Nobody()).each(slowly, range(2), {"one": 1}))


class Older(Nobody):
    """Of one whose workers cannot read what they are sent."""

    def nthreads(self):
        return {"there": 1}

    tries = 0

    def scatter(self, *given, **named):
        self.tries += 1
        if self.tries == 3:
            return ["the state"]
        raise ImportError("cannot import name 'newer'")


def test_a_state_is_sent_again_where_a_try_takes_long(monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 0.0)
    monkeypatch.setattr(clusters, "SENDINGS", 3)
    assert as_executor(Older())._scattered({"one": 1}) == "the state"


def test_workers_that_cannot_read_their_work_are_told_so(monkeypatch):
    monkeypatch.setattr(clusters, "PATIENCE", 0.0)
    monkeypatch.setattr(clusters, "SENDINGS", 2)
    with pytest.raises(ClusterError, match=r"cannot import name 'newer'.*another version"):
        list(as_executor(Older()).each(slowly, range(2), {"one": 1}))


def test_a_plan_refuses_workers_with_too_little_memory():
    from gramian.choose.far import check_room, planned
    from gramian.engines.recipes import Sparse
    from gramian.inference import closed
    from gramian.linalg.executor import Team

    given = closed(Sparse(1000)), 10_000_000, 8, 1, 160, 10 * 2**20
    plan = planned(*given, Team(2, 2, 2 * 10**9), False)
    assert plan.fits
    assert "2 workers" in str(plan)
    assert plan.part_rows <= plan.rows // 10
    check_room(1000, 10 * 2**20, Team(2, 2, 2 * 10**9))
    poor = planned(*given, Team(2, 2, 5 * 10**8), False)
    assert not poor.fits
    with pytest.raises(MemoryLimitError, match="fewer features"):
        check_room(1000, 10 * 2**20, poor.team)
