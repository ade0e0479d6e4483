"""What a fit to rows in pieces would take, before it is begun: who works, what each of them holds, how long.

A worker's thread holds the features' root (and after the first pass the weights'), the sums of its piece
and of a chunk, the features of a chunk, and the cells of two parts of the table. The caller holds m x m
arrays and the rows that parameters are searched on; nothing there grows with the rows.

Seconds are those of this machine's rate a thread, divided by the threads of all workers: pieces do not wait
for each other. Sums that travel are counted at TRAVEL bytes a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.choose.plan import Rates, calibrate, show_seconds
from gramian.engines.lowrank import chunk_rows
from gramian.errors import MemoryLimitError
from gramian.fitting.budget import FIRST_EVALUATIONS, LATER_EVALUATIONS
from gramian.inference.base import Scheme
from gramian.linalg import memory
from gramian.linalg.executor import Team
from gramian.linalg.threads import count

PROGRAM = 450 * 10**6  # bytes of a worker with Dask, NumPy, JAX and compiled programs, before any rows
TRAVEL = 2e8  # bytes a second, serialised and sent: measured with two local workers
# of an evaluation on the rows that are brought, of which a search takes some hundred: a second or two, and
# where the pass over all rows takes long, up to a two-hundredth of it, or some seconds
SEARCH_FLOPS, MOST_FLOPS, OF_PASS = 3e10, 1e11, 1 / 200
WHOLE_FLOPS = 5e10  # the same on all rows, where they are
FEWEST, SHARE = 5000, 10  # rows that may be brought in any case; of more, one in so many
WHOLE_EVALUATIONS = 15  # of a search on all rows, which begins near its end


@dataclass(frozen=True)
class FarPlan:
    """A fit to rows in pieces."""

    rows: int
    columns: int
    outputs: int
    pieces: int
    part_rows: int  # that are brought here, to search parameters on
    features: int
    label: str
    team: Team
    worker_bytes: int  # that a worker needs
    caller_bytes: int
    pass_seconds: float  # of the final inference: one pass over all rows
    search_seconds: float
    whole: bool  # whether the search goes on with all rows

    @property
    def fit_seconds(self) -> float:
        return self.search_seconds + self.pass_seconds

    @property
    def fits(self) -> bool:
        """Whether each worker has the memory that it needs."""
        return self.team.worker_bytes is None or self.worker_bytes <= self.team.worker_bytes

    def __str__(self) -> str:
        who, has = f"{self.team.workers} workers, {self.team.threads} threads", "not limited"
        if self.team.worker_bytes is not None:
            has = f"of {memory.show_bytes(self.team.worker_bytes)}"
        on = f"{self.part_rows:,} rows that are brought here" + ", then all" * self.whole
        lines = [
            f"{self.rows:,} rows, {self.columns} columns in {self.pieces:,} pieces that stay where they are",
            f"method       {self.label}",
            f"who works    {who}",
            f"a worker     {memory.show_bytes(self.worker_bytes)} ({has})",
            f"this process {memory.show_bytes(self.caller_bytes)}, whatever the number of rows",
            f"search       {show_seconds(self.search_seconds)}, on {on}",
            f"all rows     {show_seconds(self.pass_seconds)}",
        ]
        if not self.fits:
            lines.append("A worker has too little memory, so that fit refuses to start.")
        return "\n".join(lines)

    __repr__ = __str__


def features_of(method: Scheme, n: int) -> int:
    """How many features, or inducing points, a method has on n rows."""
    engine: Any = getattr(method, "engine", None)  # SVGP is both
    own: Any = method
    return int(own.size(n) if engine is None else engine.features_for(n))


def bytes_of_worker(m: int, piece_cells: int, team: Team) -> int:
    """What a worker needs for m features; `piece_cells`: numbers of the largest part that is read at once."""
    thread = 8 * (9 * m * m + int(2.5 * chunk_rows(m) * m) + 5 * piece_cells)
    return PROGRAM + team.worker_threads * thread


def check_room(m: int, piece_cells: int, team: Team) -> None:
    """Refuses what would end worker after worker."""
    needed = bytes_of_worker(m, piece_cells, team)
    if team.worker_bytes is not None and needed > team.worker_bytes:
        raise MemoryLimitError(
            f"A worker with {team.worker_threads} threads would hold {memory.show_bytes(needed)} for {m:,}"
            f" features, but one of them has {memory.show_bytes(team.worker_bytes)}. Take fewer features,"
            " give workers fewer threads or more memory, or write smaller row groups."
        )


def part_rows(method: Scheme, n: int, d: int, q: int) -> int:
    """How many rows are brought here to search parameters on: as many as a short evaluation can have, at
    most one in SHARE."""
    m = features_of(method, n)
    each = method.work(n, d, q).flops / n if method.search == "steps" else 6.0 * m**2
    flops = np.clip(OF_PASS * method.work(n, d, q, gradient=False).flops, SEARCH_FLOPS, MOST_FLOPS)
    most = max(FEWEST, n // SHARE, 4 * m)
    return int(min(n, np.clip(flops / each, max(FEWEST, 4 * m), most)))


def goes_on(method: Scheme, n: int, d: int, q: int) -> bool:
    """Whether the search goes on with all rows."""
    return method.search == "steps" and method.work(n, d, q).flops <= WHOLE_FLOPS


def planned(
    method: Scheme, n: int, d: int, q: int, pieces: int, piece_cells: int, team: Team, optimize: bool
) -> FarPlan:
    """`piece_cells`: numbers of the largest part of the table that is read at once."""
    m = features_of(method, n)
    rates = calibrate(d)
    alone = Rates(rates.flops / count(), rates.values / count())
    part, whole = part_rows(method, n, d, q), goes_on(method, n, d, q)
    sent = 8.0 * m * m * pieces / TRAVEL
    final = alone.seconds(method.work(n, d, q, gradient=False)) / team.threads + sent
    search = 0.0
    if optimize and method.search == "steps":
        search = (FIRST_EVALUATIONS + LATER_EVALUATIONS) * rates.seconds(method.work(part, d, q))
        if whole and part < n:
            each = alone.seconds(method.work(n, d, q)) / team.threads + 2 * sent
            search += WHOLE_EVALUATIONS * each
    elif optimize:
        search = method.steps_for(part) * rates.seconds(method.work(part, d, q))
    here = method.bytes_needed(part, d, q) + 8 * part * (d + q)
    worker = bytes_of_worker(m, piece_cells, team)
    return FarPlan(n, d, q, pieces, part, m, method.label, team, worker, here, final, search, whole)
