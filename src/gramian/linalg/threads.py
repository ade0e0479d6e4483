"""How many threads BLAS takes for a small matrix: one.

Threads wait for each other at every block. Up to about 250 rows that costs more than it saves; up to 450 it saves little; and on a busy machine
it costs far more at any size: 51 ms instead of 0.2 ms for the inverse at n = 120, and 47 s instead of 3 s for a fit at n = 500, with others at work.

The number belongs to the process, so fits that overlap in several Python threads share one limit: the first sets it, the last takes it back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

ONE_THREAD_UP_TO = 448

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
