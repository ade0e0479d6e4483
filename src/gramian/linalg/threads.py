"""Who works on several threads: the library, on pieces of its own. BLAS never does.

Threads of BLAS that share a product wait for each other actively at every block. Beside two busy neighbours
on two cores an evidence with gradient at n = 1,500 took 6.3 s that way and 0.21 s with one thread; under the
quota of a container it is as bad. So inside the library's calls BLAS has one thread (`one_blas_thread`), and
what is large is cut into tiles or chunks of rows that threads of the library take in turn, waiting asleep:
`each` for pieces that do not depend on each other, linalg/tasks.py for those that do. Pieces are the same
whoever works on them, and sums are made in one order: results do not depend on the threads.

How many: as many as the process may use (cores, affinity, the CPU quota of its container), at most 8, or as
GRAMIAN_NUM_THREADS and `set_threads` say. The number of BLAS threads belongs to the process: of fits that
overlap in several Python threads, the first sets the limit and the last takes it back.
"""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from gramian import clock
from gramian.errors import ParameterError

T_ = TypeVar("T_")
R_ = TypeVar("R_")

MOST = 8  # beyond it, tiles of a matrix of a few thousand rows are too few for all
VARIABLE = "GRAMIAN_NUM_THREADS"

_count = 0  # 0: not asked yet


def count() -> int:
    """How many threads the library works on."""
    global _count
    if not _count:
        _count = allowed()
    return _count


def set_threads(n: int | None) -> int:
    """Lets the library work on n threads from now on; None: as many as the machine and GRAMIAN_NUM_THREADS
    allow. Returns how many it were. Results do not depend on it."""
    global _count
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise ParameterError(f"set_threads({n!r}): give a whole number from 1 on, or None for the default.")
    before, _count = count(), allowed() if n is None else n
    return before


def allowed(root: Path = Path("/sys/fs/cgroup"), environment: dict[str, str] | None = None) -> int:
    """What this process may use: the variable, or the fewest of cores, quota and MOST."""
    named = (os.environ if environment is None else environment).get(VARIABLE, "").strip()
    if named:
        if not named.isdecimal() or int(named) < 1:
            raise ParameterError(f"{VARIABLE}={named!r} is not a number of threads: give 1, 2, ...")
        return int(named)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(MOST, cores, quota(root))))


def quota(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> float:
    """Cores that the container may use on average (cgroups of either version), or infinity."""
    places = [root, root / "cpu"]
    try:
        for line in own.read_text(encoding="ascii").splitlines():
            _, controllers, path = line.split(":", 2)
            if not controllers or "cpu" in controllers.split(","):
                group = (root if not controllers else root / "cpu") / path.lstrip("/")
                places += [group, *(up for up in group.parents if up.is_relative_to(root))]
    except (OSError, ValueError):  # not Linux, or a line of a form that is not known
        pass
    return min((_quota_at(place) for place in places), default=math.inf)


def _quota_at(place: Path) -> float:
    try:
        if (place / "cpu.max").exists():
            most, period = (place / "cpu.max").read_text(encoding="ascii").split()
        else:
            most = (place / "cpu.cfs_quota_us").read_text(encoding="ascii").strip()
            period = (place / "cpu.cfs_period_us").read_text(encoding="ascii")
        return float(most) / float(period) if most not in ("max", "-1") else math.inf
    except (OSError, ValueError, ZeroDivisionError):
        return math.inf


# One thread of BLAS. ----------------------------------------------------------------------------------------

_lock = threading.Lock()
_here = threading.local()  # how deep this thread is in it, and whether it works on a piece of somebody's
_users = 0  # threads within it
_before: list[tuple[Any, int]] = []


class one_blas_thread:
    """Within it BLAS works on the calling thread alone. Costs 5 microseconds; inside another of the same
    thread, half of one."""

    __slots__ = ()

    def __enter__(self) -> None:
        global _users
        depth = _here.depth = getattr(_here, "depth", 0) + 1
        if depth > 1:
            return
        with _lock:
            if _users == 0:
                for library in _libraries():
                    threads = library.get_num_threads()
                    if threads != 1:
                        _before.append((library, threads))
                        library.set_num_threads(1)
            _users += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _users
        _here.depth -= 1
        if _here.depth:
            return
        with _lock:
            _users -= 1
            if _users == 0:
                _restore()


def _restore() -> None:
    """BLAS has its threads again."""
    while _before:
        library, threads = _before.pop()
        library.set_num_threads(threads)


@cache
def _libraries() -> list[Any]:
    """NumPy's BLAS and SciPy's, which are loaded by now at the latest."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)  # 7 ms, once


# Pieces of work. --------------------------------------------------------------------------------------------


def at_work() -> bool:
    """Whether this thread works on a piece of somebody's: what that hands out in turn is done where it is."""
    return getattr(_here, "at_work", False)


def each(work: Callable[[T_], R_], items: Iterable[T_]) -> Generator[R_, None, None]:
    """work(item) for each item, in order, on several threads; few results are held at a time."""
    threads = count()
    if threads == 1 or at_work():
        for item in items:
            clock.check()
            yield work(item)
        return
    waiting = deque[Future[R_]]()
    try:
        for item in items:
            clock.check()
            waiting.append(hand_out(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:  # an error, or a caller that wants no more: nobody may go on writing into its arrays
        wait([task for task in waiting if not task.cancel()])


def for_each(work: Callable[[T_], object], items: Iterable[T_]) -> None:
    """The same for work that gives nothing back."""
    for _ in each(work, items):
        pass


def hand_out(work: Callable[[T_], R_], item: T_) -> Future[R_]:
    """work(item) on a thread of the pool, which the process keeps, with NumPy's warnings as the caller has
    them."""
    return _pool(count()).submit(np.errstate(**np.geterr())(marked), work, item)


def marked(work: Callable[[T_], R_], item: T_) -> R_:
    """work(item) on this thread alone, which is one of a pool's from now on."""
    _here.at_work = True
    return work(item)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="gramian")


def _in_child() -> None:
    """A fork has one thread, that which made it: no pool, and nobody else within `one_blas_thread`, who may
    have held the lock."""
    global _lock, _users
    _pool.cache_clear()
    _lock, _users = threading.Lock(), int(getattr(_here, "depth", 0) > 0)
    if not _users:
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
