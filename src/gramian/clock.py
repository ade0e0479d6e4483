"""How much time there is: one clock for a fit, asked by whatever takes long.

A limit is kept by who works, not by who waits. What can end with what it has (a search, sweeps of a rule,
steps of CG, chains) asks `over()`: whether the time is used up. What is nothing before it is whole (a
factorisation by tiles, sums over chunks of rows) calls `check()` between its pieces, which raises `OutOfTime`
when the grace is used up, too: a search then keeps its best point, a final inference falls back on fewer
rows.

    with until(now() + 10.0, grace=1.0):
        ...

A clock inside another never ends later than that. It is the thread's own, as a context variable is: pieces of
work on other threads are short, and who has handed them out looks at the clock.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

now = time.monotonic


class OutOfTime(Exception):
    """Work that was given up, because its time was over."""


class Clock(NamedTuple):
    """When to end, in seconds of `now()`."""

    end: float = math.inf  # of what can end with what it has
    last: float = math.inf  # of everything else


ENDLESS = Clock()
_clock: ContextVar[Clock] = ContextVar("clock", default=ENDLESS)


@contextmanager
def until(end: float | None, grace: float = 0.0, anew: bool = False) -> Iterator[None]:
    """Within it the time ends at `end` (None: as without it), and `grace` seconds later for work that cannot
    be cut. `anew`: whatever clock there is around it."""
    around = ENDLESS if anew else _clock.get()
    end = math.inf if end is None else end
    token = _clock.set(Clock(min(around.end, end), min(around.last, end + grace)))
    try:
        yield
    finally:
        _clock.reset(token)


def end() -> float:
    """When the time ends; infinity without a limit."""
    return _clock.get().end


def over() -> bool:
    """Whether the time is used up."""
    end = _clock.get().end
    return end < math.inf and now() >= end


def check() -> None:
    """Raises OutOfTime when the time is used up, the grace included."""
    last = _clock.get().last
    if last < math.inf and now() >= last:
        raise OutOfTime
