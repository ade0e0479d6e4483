"""Who works on several threads: BLAS on one large matrix, or the library on many small pieces.

`threads_for`: how many threads BLAS takes for a small matrix: one. Threads wait for each other at every
block. Up to about 250 rows that costs more than it saves; up to 450 it saves little; and on a busy machine it
costs far more at any size: 51 ms instead of 0.2 ms for the inverse at n = 120, and 47 s instead of 3 s for a
fit at n = 500, with others at work.

The number belongs to the process, so fits that overlap in several Python threads share one limit: the first
sets it, the last takes it back.

`each`: pieces of work (tiles, chunks of rows) on a pool of threads that the process keeps. What a piece hands
out in turn is done where it is.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T_ = TypeVar("T_")
R_ = TypeVar("R_")

ONE_THREAD_UP_TO = 448
THREADS = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

_lock = threading.Lock()
_users = 0
_limit: Any = None


def threads_for(n: int) -> AbstractContextManager[None]:
    """Within it, BLAS works on an n x n matrix with as many threads as that deserves."""
    return _one_thread() if n <= ONE_THREAD_UP_TO else nullcontext()


@contextmanager
def _one_thread() -> Iterator[None]:
    global _users, _limit
    with _lock:
        if _users == 0:
            _limit = _controller().limit(limits=1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.restore_original_limits()


@cache
def _controller() -> Any:
    return ThreadpoolController().select(user_api="blas")  # looks through the loaded libraries: 7 ms, once


_here = threading.local()


def each(work: Callable[[T_], R_], items: Iterable[T_]) -> Iterator[R_]:
    """work(item) for each item, in their order, on several threads. Little more than is being worked on is
    held at a time."""
    if THREADS == 1 or getattr(_here, "at_work", False):
        yield from map(work, items)
        return
    pool, waiting = _pool(THREADS), deque[Future[R_]]()
    try:
        for item in items:
            waiting.append(pool.submit(_marked, work, item))
            if len(waiting) > THREADS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # an error, or a caller that wants no more
        for task in waiting:
            task.cancel()


def _marked(work: Callable[[T_], R_], item: T_) -> R_:
    _here.at_work = True
    return work(item)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="gramian")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has none of the threads
