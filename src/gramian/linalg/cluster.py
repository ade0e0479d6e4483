"""Pieces of work on the workers of a Dask cluster.

The state of a loop is scattered to all workers once. A piece is a task of its own, with a key of its own:

    a worker dies                   the scheduler gives its pieces to another; what was read is read again
    all that had the state die      it is scattered again, and the pieces that waited for it handed out anew
    a piece kills worker by worker  after some tries a ClusterError says so: as a rule they want memory
    nobody is left to work          after PATIENCE seconds a ClusterError
    the client goes away            a ClusterError at once

A result is the same whoever made it, so none of this can be seen in it. Two pieces a thread are handed out at
a time: the memory of a worker holds two pieces, two results and one state, whatever the number of rows.

Measured where it is used: benchmarks/cluster.py. Costs about 2 ms a piece, which is why one has many rows.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, TypeVar

from gramian import clock
from gramian.errors import ClusterError
from gramian.linalg.executor import AHEAD, Executor, Team, Work, done

R_ = TypeVar("R_")

LOOK = 1.0  # seconds between two looks at the clock and at the client, while nothing arrives
LOOK_AT_WORKERS = 5.0  # the same at how many workers there are
PATIENCE = 60.0  # seconds without a single worker
KILLS = 3  # times that a piece may end as many workers as the scheduler allows
LOSSES = 100  # times that a piece may be lost with what it needs
SENDINGS = 20  # tries to send the state, however long each takes, before workers that are there count as deaf
GONE = (
    "The Dask client was closed, or has lost its scheduler, before all rows were done. What was fitted before"
    " is as it was. Make a new client and fit again; rows that lie in files need not be brought anywhere."
)


@dataclass(eq=False)
class _Waiting:
    item: Any
    future: Any
    sent: int  # which copy of the state it has
    kills: int = 0
    losses: int = 0


class Dask(Executor):
    """The workers of a Dask client."""

    name = "dask"

    def __init__(self, client: Any) -> None:
        self.client = client
        self._asked, self._threads, self._worked = 0.0, 1, time.monotonic()

    def kept(self, parts: list[Any]) -> list[Any]:
        """As futures, which hold them; one that is lost with its worker is made again from its graph."""
        return list(self.client.compute(parts))

    def team(self) -> Team:
        self._check()
        known = self.client.scheduler_info(n_workers=-1)["workers"].values()
        threads = [int(one["nthreads"]) for one in known]
        if not threads:
            return Team(1, 1)
        room = [int(one["memory_limit"]) for one in known if one["memory_limit"]]
        return Team(sum(threads), len(threads), min(room, default=None), max(threads))

    def each(self, work: Work[R_], items: Iterable[Any], state: Any = None) -> Generator[R_, None, None]:
        waiting = deque[_Waiting]()
        todo, more = iter(items), True
        sent, self._worked = 0, time.monotonic()
        scattered = self._scattered(state)
        try:
            while more or waiting:
                while more and len(waiting) < AHEAD * self._workers():
                    item = next(todo, todo)
                    more = item is not todo
                    if more:
                        waiting.append(_Waiting(item, self._submitted(work, item, scattered), sent))
                if not waiting:
                    return
                first = waiting[0]
                clock.check()
                try:
                    result = first.future.result(timeout=LOOK)
                except TimeoutError:
                    self._check()
                    continue
                except UnboundLocalError:
                    # Distributed's own, where its wait is cancelled at the moment that it ends: asked again.
                    # Met once, after 110 pieces of a minute each on a busy machine.
                    if first.future.status == "error":
                        raise
                    self._check()
                    continue
                except Exception as error:
                    if not self._lost(first, error):
                        raise
                    if first.sent == sent and first.losses:  # nobody has the state any more
                        scattered, sent = self._scattered(state), sent + 1
                    first.future, first.sent = self._submitted(work, first.item, scattered), sent
                    continue
                waiting.popleft()
                first.future.release()
                yield result
        finally:
            self._let_go([one.future for one in waiting], scattered)

    def _scattered(self, state: Any) -> Any:
        """The state on the workers. In a list: scattering a dict would make futures of its values."""
        if state is None:
            return None
        end, tries = time.monotonic() + PATIENCE, 0
        while True:
            self._check()
            try:
                return self.client.scatter([state], broadcast=True, hash=False)[0]
            except Exception as error:  # a worker that dies meanwhile, or none that is there
                clock.check()
                self._check()
                # to a worker that has died a try may take half a minute, and the next worker dies in the next
                tries += 1
                if time.monotonic() > end and tries >= SENDINGS:
                    raise ClusterError(_nobody() if not self._threads else _refused(error)) from error
                time.sleep(0.2)

    def _submitted(self, work: Work[Any], item: Any, state: Any) -> Any:
        self._check()
        held = getattr(item, "held", None)
        described = item if held is None else item.described()
        try:
            return self.client.submit(done, work, described, held, state, pure=False)
        except Exception as error:
            self._check()
            raise ClusterError(f"The cluster takes no work: {error}") from error

    def _lost(self, one: _Waiting, error: Exception) -> bool:
        """Whether a piece was lost without a fault of its own; counted."""
        self._check(error)
        if type(error).__name__ == "KilledWorker":
            one.kills += 1
            if one.kills >= KILLS:
                raise ClusterError(
                    "A piece of the rows has ended one worker after the other, as a rule for want of memory:"
                    " give workers more of it (memory_limit=), fewer threads each, or take fewer features."
                ) from error
            return True
        # a file that a worker does not find is no loss of Dask's
        if isinstance(error, CancelledError) or type(error).__module__.startswith("distributed."):
            one.losses += 1
            if one.losses >= LOSSES:
                raise ClusterError(
                    "A piece of the rows was lost with its workers again and again."
                ) from error
            return True
        return False

    def _check(self, cause: Exception | None = None) -> None:
        """Refuses to wait for a client that is gone, or for workers that nobody starts."""
        if self.client.status not in ("running", "connecting"):
            raise ClusterError(GONE) from cause
        self._workers()

    def _workers(self) -> int:
        """Threads of all workers, as of a few seconds ago; an error where there have been none for long."""
        now = time.monotonic()
        if now - self._asked > LOOK_AT_WORKERS:
            with contextlib.suppress(Exception):  # the scheduler does not answer now
                self._threads = sum(self.client.nthreads().values())
                self._asked = now
        if self._threads:
            self._worked = now
        elif now - self._worked > PATIENCE:
            raise ClusterError(_nobody())
        return max(self._threads, 1)

    def _let_go(self, futures: list[Any], scattered: Any) -> None:
        """Nobody waits for these any more."""
        with contextlib.suppress(Exception):  # a client that is closed has nothing left to let go
            if futures:
                self.client.cancel(futures, force=True)
            if scattered is not None:
                scattered.release()


def _nobody() -> str:
    return (
        f"The cluster has had no worker for {PATIENCE:.0f} seconds. Start some (dask worker ADDRESS), or give"
        " LocalCluster(n_workers=2), and fit again."
    )


def _refused(error: Exception) -> str:
    return (
        f"The workers do not take what they need for their work: {type(error).__name__}: {error}. As a rule"
        " they have another version of gramian, or of Python, than this process: start them anew."
    )
