"""Tasks that depend on each other through the tiles they read and write, on several threads.

A program is a list of tasks in the order in which one thread would do them. A task may begin when the last
one before it that wrote a tile it reads is done, and so are those that read or wrote a tile it writes: every
tile sees the same operations in the same order on any number of threads, and so the same rounding.

A thread takes the most urgent task that may begin. There are no barriers: where the operating system takes
the core from a thread, the others wait for its one task at most, asleep, and only if they need it. `AHEAD`
tasks are known at a time; one costs about 20 microseconds, a thirtieth of a product of tiles of 256.

Source: Buttari, Langou, Kurzak and Dongarra 2009, A class of parallel tiled linear algebra algorithms for
multicore architectures.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import wait
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from gramian import clock
from gramian.linalg.threads import at_work, count, hand_out, one_blas_thread

Tile = tuple[int, int]
Report = Callable[[float], None]

AHEAD = 1024  # tasks that are known at a time
STEP = 1 / 64  # of the work: a report each


class Task(NamedTuple):
    """A piece of work."""

    work: Callable[[], None]
    writes: tuple[Tile, ...]
    reads: tuple[Tile, ...] = ()
    urgency: int = 0  # the lowest comes first
    flops: float = 0.0


def run(tasks: Iterable[Task], flops: float, report: Report | None = None) -> None:
    """Does all tasks. The thread that calls is one of those that work, and tells `report` the share done of
    so many flops; what a task or a report raises, or the clock, ends the work, once the tasks that have begun
    are done."""
    helpers = 0 if at_work() else count() - 1
    with one_blas_thread():
        if helpers == 0:
            told = done = 0.0
            for task in tasks:
                clock.check()
                task.work()
                done += task.flops / flops
                told = _told(report, told, done)
        else:
            _Program(iter(tasks), flops, report).run(helpers)
    if report is not None:
        report(1.0)


def _told(report: Report | None, told: float, done: float) -> float:
    if report is None or done < told + STEP:
        return told
    report(min(done, 1.0))
    return done


@dataclass(slots=True, eq=False)
class _Node:
    task: Task
    after: list[_Node] = field(default_factory=list)  # who waits for it
    missing: int = 0  # how many it waits for
    done: bool = False


class _Program:
    """The state of a run, which its lock guards."""

    def __init__(self, tasks: Iterator[Task], flops: float, report: Report | None) -> None:
        self.tasks, self.flops, self.report = tasks, flops, report
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.ready: list[tuple[int, int, _Node]] = []
        self.known, self.number, self.share = 0, 0, 0.0
        self.exhausted = False
        self.error: BaseException | None = None
        self.written: dict[Tile, _Node] = {}  # who writes a tile last,
        self.read: dict[Tile, list[_Node]] = {}  # and who reads it after that

    def run(self, helpers: int) -> None:
        others = [hand_out(self._work, False) for _ in range(helpers)]
        try:
            self._work(True)
        except BaseException as error:  # also Ctrl-C, and what a report raises
            self._stop(error)
            raise
        finally:
            wait([other for other in others if not other.cancel()])
        if self.error is not None:
            raise self.error

    def _work(self, reports: bool) -> None:
        node: _Node | None = None
        told = 0.0
        while True:
            with self.lock:
                if node is not None:
                    self._finish(node)
                node = self._next()
                share = self.share
            if reports:
                told = _told(self.report, told, share)
            if node is None:
                return
            if reports:
                clock.check()
            try:
                node.task.work()
            except BaseException as error:
                self._stop(error)
                if reports:
                    raise
                return

    def _next(self) -> _Node | None:
        """The most urgent task that may begin, when there is one; None at the end."""
        while self.error is None:
            while self.known < AHEAD and not self.exhausted:
                task = next(self.tasks, None)
                if task is None:
                    self.exhausted = True
                else:
                    self._enter(task)
            if self.ready:
                node = heappop(self.ready)[2]
                if self.ready:
                    self.changed.notify(len(self.ready))
                return node
            if not self.known:
                self.changed.notify_all()
                return None
            self.changed.wait()
        return None

    def _enter(self, task: Task) -> None:
        node = _Node(task)
        self.known += 1
        before: set[_Node] = set()
        for tile in task.reads:
            if tile in self.written:
                before.add(self.written[tile])
            self.read.setdefault(tile, []).append(node)
        for tile in task.writes:
            if tile in self.written:
                before.add(self.written[tile])
            before.update(self.read.pop(tile, ()))
            self.written[tile] = node
        for other in before:
            if not other.done and other is not node:
                other.after.append(node)
                node.missing += 1
        if not node.missing:
            self._begin(node)

    def _begin(self, node: _Node) -> None:
        heappush(self.ready, (node.task.urgency, self.number, node))
        self.number += 1

    def _finish(self, node: _Node) -> None:
        node.done = True
        self.known -= 1
        self.share += node.task.flops / self.flops
        for other in node.after:
            other.missing -= 1
            if not other.missing:
                self._begin(other)
        node.after = []

    def _stop(self, error: BaseException) -> None:
        with self.lock:
            self.error = self.error or error
            self.changed.notify_all()
