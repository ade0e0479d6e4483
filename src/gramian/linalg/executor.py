"""Who does the pieces of a loop over rows: threads of this process, other processes, or the workers of a
cluster. One seam for all of them.

A piece of work is work(item, state): a function of a module, an item that is some rows or only says where
they lie (`Piece`), and a small state that all pieces share (parameters, landmarks, weights), which travels
once for a loop. What comes back is small: sums. Items do not depend on who works, BLAS has one thread in
each, and sums are added in the order of the items, here:

    total = ((p_1 + p_2) + p_3) + ...

so that any executor, with any number of workers, gives the same bits (on one kind of processor: a BLAS that
finds other instructions rounds otherwise). A piece that is lost with its worker is done again, with the same
result; what else goes wrong ends with a ClusterError that says so.

The executor of a call is a context variable, as the clock is (`using`), so that no signature carries it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import tempfile
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor as Futures
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextvars import ContextVar
from functools import lru_cache, partial, reduce
from typing import Any, NamedTuple, TypeVar

from gramian import clock
from gramian.arrays import Array
from gramian.errors import ClusterError, ParameterError
from gramian.linalg.threads import count, each, marked, one_blas_thread

R_ = TypeVar("R_")
Work = Callable[[Any, Any], R_]  # of an item and the state

AHEAD = 2  # pieces a worker that are handed out at a time: one at work, one that waits for it


class Piece(ABC):
    """Some rows that stay where they are: a description that travels in their place."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many."""

    @property
    def whole(self) -> int:
        """Rows that are read at once, where these are a part of them."""
        return self.rows

    @property
    def held(self) -> Any:
        """What a cluster keeps of them on its workers (a future of Dask's), where it does."""
        return None

    @abstractmethod
    def load(self, held: Any = None) -> tuple[Array, Array]:
        """X (rows, d) and Y (rows, q) in the memory of who asks; `held`: what the cluster has kept."""

    def described(self) -> Piece:
        """The same without what a cluster keeps."""
        return self


class Team(NamedTuple):
    """Who works for an executor."""

    threads: int  # of all workers together
    workers: int
    worker_bytes: int | None = None  # the memory that a worker may use, the least of all; None: not told
    worker_threads: int = 1  # the most that a worker has


class Executor(ABC):
    """Does pieces of work."""

    name: str  # for people
    remote: bool = True  # whether items have to travel

    @abstractmethod
    def each(self, work: Work[R_], items: Iterable[Any], state: Any = None) -> Generator[R_, None, None]:
        """work(item, state) of each item, in their order; few results are held at a time."""

    def kept(self, parts: list[Any]) -> list[Any]:
        """Parts of a Dask collection, which the workers keep from now on, where they can."""
        return parts

    def team(self) -> Team:
        """Who works."""
        return Team(count(), 1)


class Threads(Executor):
    """Threads of this process, as many as it may use (linalg/threads.py)."""

    name, remote = "threads", False

    def each(self, work: Work[R_], items: Iterable[Any], state: Any = None) -> Generator[R_, None, None]:
        with one_blas_thread():
            yield from each(partial(_here, work, state), items)


class Pool(Executor):
    """An executor of Python's own (concurrent.futures), of processes as a rule. Its state goes through a file
    that each process reads once."""

    name = "processes"

    def __init__(self, futures: Futures) -> None:
        self.futures = futures

    def team(self) -> Team:
        workers = int(getattr(self.futures, "_max_workers", 1))
        return Team(workers, workers)

    def each(self, work: Work[R_], items: Iterable[Any], state: Any = None) -> Generator[R_, None, None]:
        ahead = AHEAD * self.team().threads
        waiting = deque[Future[R_]]()
        with _as_file(state) as path:
            try:
                for item in items:
                    clock.check()
                    waiting.append(self.futures.submit(done, work, item, None, path))
                    if len(waiting) > ahead:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            except BrokenProcessPool as cause:
                raise ClusterError(
                    "A process of the pool has died in the middle of its work, as a rule for want of memory,"
                    " and with it the pool. Make a new one with fewer processes, and fit again."
                ) from cause
            finally:
                for future in waiting:
                    future.cancel()


class StateFile(str):
    """The path of a file with the state of a loop."""

    __slots__ = ()


@contextlib.contextmanager
def _as_file(state: Any) -> Iterator[StateFile]:
    handle, path = tempfile.mkstemp(prefix="gramian-state-")
    try:
        with os.fdopen(handle, "wb") as file:
            pickle.dump(state, file, pickle.HIGHEST_PROTOCOL)
        yield StateFile(path)
    finally:
        os.unlink(path)


@lru_cache(maxsize=2)
def _read(path: str) -> Any:
    with open(path, "rb") as file:
        return pickle.load(file)  # of this library's own, in a file that only this user can write


def _here(work: Work[R_], state: Any, item: Any) -> R_:
    return work(item, state)


def done(work: Work[R_], item: Any, held: Any, state: Any) -> R_:
    """A piece of work, where it is done: one thread, one thread of BLAS. `held`: what the cluster has kept of
    the item."""
    state = _read(state) if isinstance(state, StateFile) else state
    with one_blas_thread():
        return marked(partial(_here, work, state), item if held is None else Placed(item, held))


class Placed(Piece):
    """A piece at the worker that keeps its rows."""

    def __init__(self, piece: Piece, value: Any) -> None:
        self.piece, self.value = piece, value

    @property
    def rows(self) -> int:
        return self.piece.rows

    def load(self, held: Any = None) -> tuple[Array, Array]:
        return self.piece.load(self.value)


# Which one. -------------------------------------------------------------------------------------------------

_current: ContextVar[Executor] = ContextVar("executor", default=Threads())  # noqa: B039 it has no state


def current() -> Executor:
    """The executor of this call: threads, unless somebody has said otherwise."""
    return _current.get()


@contextlib.contextmanager
def using(executor: Executor) -> Iterator[Executor]:
    """Within it loops over rows are done by that one."""
    token = _current.set(executor)
    try:
        yield executor
    finally:
        _current.reset(token)


def as_executor(client: Any) -> Executor:
    """What a person gives as `client=`: None, a Client of Dask's, or an executor of concurrent.futures."""
    if client is None:
        return Threads()
    if isinstance(client, Executor):
        return client
    if isinstance(client, Futures):
        return Pool(client)
    if all(hasattr(client, name) for name in ("submit", "scatter", "status", "cancel")):
        from gramian.linalg.cluster import Dask  # which needs a package that is optional

        return Dask(client)
    raise ParameterError(
        f"client={client!r} is neither a dask.distributed.Client nor an executor of concurrent.futures. Give"
        " one of these, or None for the threads of this process."
    )


# Sums. ------------------------------------------------------------------------------------------------------


def added(total: list[Any], part: Sequence[Any]) -> list[Any]:
    """The sum of two lists of arrays and numbers, in the place of the first where that is possible."""
    if not total:
        return list(part)
    for k, value in enumerate(part):
        if getattr(total[k], "ndim", 0) >= 2:
            total[k] += value
        else:
            total[k] = total[k] + value
    return total


def summed(parts: Iterable[Sequence[Any]]) -> list[Any]:
    """The sum of lists of arrays, in their order."""
    return reduce(added, parts, [])
