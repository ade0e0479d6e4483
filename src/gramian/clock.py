"""How much time there is: one clock for a fit, asked by whatever takes long.

A limit is kept by who works, not by who waits. What can end with what it has (a search, sweeps of a rule,
steps of CG, chains) asks `over()`: whether the time is used up. What is nothing before it is whole (a
factorisation by tiles, sums over chunks of rows) calls `check()` between its pieces, which raises `OutOfTime`
when the grace is used up, too: a search then keeps its best point, a final inference falls back on fewer
rows.

    with until(now() + 10.0, grace=1.0):
        ...

How busy the machine is shows in what it has given to this process since the limit was set: `slowness()`. A
program that is being compiled cannot be cut, so it is what foresees that, too (`fitting/budget.py`).

A clock inside another never ends later than that. It is the thread's own, as a context variable is: pieces of
work on other threads are short, and who has handed them out looks at the clock.

Ctrl-C is heard by the main thread alone. Where that waits for whole fits on other threads, it rings a `Bell`:
a thread that looks at its clock (`over`, `check` and `heed`) hears it as a KeyboardInterrupt of its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

now = time.monotonic
busy = time.process_time  # seconds of a processor, of all threads
SOON = 0.05  # seconds that say nothing of a machine yet


class OutOfTime(Exception):
    """Work that was given up, because its time was over."""


class Clock(NamedTuple):
    """When to end, in seconds of `now()`."""

    end: float = math.inf  # of what can end with what it has
    last: float = math.inf  # of everything else
    began: tuple[float, float] | None = None  # when the outermost limit was set, and the processor's seconds


ENDLESS = Clock()
_clock: ContextVar[Clock] = ContextVar("clock", default=ENDLESS)


@contextmanager
def until(end: float | None, grace: float = 0.0, anew: bool = False) -> Iterator[None]:
    """Within it the time ends at `end` (None: as without it), and `grace` seconds later for work that cannot
    be cut. `anew`: whatever clock there is around it."""
    around = ENDLESS if anew else _clock.get()
    end = math.inf if end is None else end
    began = _clock.get().began
    if began is None and end < math.inf:
        began = now(), busy()
    token = _clock.set(Clock(min(around.end, end), min(around.last, end + grace), began))
    try:
        yield
    finally:
        _clock.reset(token)


def slowness() -> float:
    """Seconds for each that a processor has worked for this process, since the limit was set: 1 on an idle
    machine, more beside others who want it, too."""
    began = _clock.get().began
    if began is None or now() - began[0] < SOON:
        return 1.0
    return max((now() - began[0]) / max(busy() - began[1], 1e-9), 1.0)


@dataclass
class Bell:
    """For threads at work: how often it was rung."""

    rung: int = 0


@dataclass
class _Ear:
    """Of a thread, with how often it has heard the bell."""

    bell: Bell
    heard: int


_ear: ContextVar[_Ear | None] = ContextVar("ear", default=None)


@contextmanager
def listening(bell: Bell) -> Iterator[None]:
    """Within it this thread hears what is rung from now on."""
    token = _ear.set(_Ear(bell, bell.rung))
    try:
        yield
    finally:
        _ear.reset(token)


def heed() -> None:
    """Raises KeyboardInterrupt where the bell was rung, once for each time."""
    ear = _ear.get()
    if ear is not None and ear.heard < ear.bell.rung:
        ear.heard = ear.bell.rung
        raise KeyboardInterrupt


def end() -> float:
    """When the time ends; infinity without a limit."""
    return _clock.get().end


def over() -> bool:
    """Whether the time is used up."""
    heed()
    end = _clock.get().end
    return end < math.inf and now() >= end


def check() -> None:
    """Raises OutOfTime when the time is used up, the grace included."""
    heed()
    last = _clock.get().last
    if last < math.inf and now() >= last:
        raise OutOfTime
