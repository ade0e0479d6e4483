"""How many threads BLAS takes for a small matrix: one.

Threads that wait for each other at every block cost more than they save up to about 250 rows, and on a busy machine far more: 51 ms instead of
0.2 ms for the inverse at n = 120, with four processes on two cores.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

ONE_THREAD_UP_TO = 256


def threads_for(n: int) -> AbstractContextManager[Any]:
    """Within it, BLAS works on an n x n matrix with as many threads as that deserves."""
    return _controller().limit(limits=1) if n <= ONE_THREAD_UP_TO else nullcontext()


@cache
def _controller() -> Any:
    return ThreadpoolController().select(user_api="blas")  # looks through the loaded libraries: 7 ms, once
