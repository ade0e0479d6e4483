"""What a fit may take, and how large a search that pays for.

A search of typical length on some rows costs so many evaluations of so many flops and kernel values each; how
many seconds those take on this machine is predicted, and corrected by what the evaluations of the last search
have really taken. New programs are an item of their own: to compile them cannot be cut, and takes as much
longer as the machine is busy, which the clock knows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gramian import clock, journal
from gramian.inference.base import Scheme
from gramian.inference.model import Data
from gramian.linalg.cost import Cost

# of a search from the start, and of one that goes on from a part of the data
FIRST_EVALUATIONS, LATER_EVALUATIONS = 45, 25
MARGIN = 1.3  # times the prediction of what cannot be cut
COMPILING = 0.2  # seconds of a processor for a new program; on a busy machine it takes longer
MOST_SLOW = 10.0  # times: one that gives less than a tenth of a processor will give more again
MOMENT, MOST_OFF = 0.02, 5.0  # seconds that say something of more of them, and how much at most
MOST_FINAL = 0.5  # of the time, for the inference after a search
# that are left, however short the time is: values of so few are made without compiled programs
FEWEST_ROWS = 400
STEP = 100  # rows


@dataclass
class Budget:
    """The time of a fit to n rows with d columns and q outputs."""

    end: float  # of `clock.now()`
    seconds: Callable[[Cost], float]  # what work takes on this machine, predicted
    size: tuple[int, int, int]
    grace: float = 0.0  # seconds after the end that do no harm
    finals: float = 1.0  # how often the work of a final inference is done after a search
    pace: float = 1.0  # what evaluations have really taken, of what was predicted
    began: float = field(default_factory=lambda: clock.now())

    def left(self, method: Scheme) -> float:
        """What a search may take, if the final inference is to be done in time, too: that of all rows, or of
        as many as half of the time is enough for."""
        after = MARGIN * self._final(method, self.size[0]) + compiling(method, self.size[0])
        return max(self.end - min(after, MOST_FINAL * (self.end - self.began)) - clock.now(), 0.0)

    def rows(self, engine: Scheme, most: int, evaluations: int, seconds: float) -> int:
        """The most rows, up to `most`, that a search of so many evaluations can have in so much time."""

        def fits(rows: int) -> bool:
            return evaluations * self._predicted(engine, rows) <= seconds - compiling(engine, rows)

        return journal.chosen("rows of a search", int, lambda: _largest(most, fits))

    def rows_of_final(self, method: Scheme, seconds: float, compiled: bool = False) -> int:
        """The most rows whose final inference takes no longer; a few at least."""

        def fits(rows: int) -> bool:
            return self._final(method, rows) <= seconds - (0.0 if compiled else compiling(method, rows))

        n = self.size[0]
        most = journal.chosen("rows of the posterior", int, lambda: _largest(n, fits))
        return max(most, min(n, FEWEST_ROWS))

    def kept(self, method: Scheme, data: Data, rng: np.random.Generator) -> Data:
        """The rows that the final inference can have in what is left of the time: all, or some at random."""
        # predictions are no better than that: what takes a little longer is tried
        room = self.rows_of_final(method, max(self.end - clock.now(), 0.0) + self.grace / 2)
        return data if room >= len(data.X) else data.take(at_random(len(data.X), room, rng))

    def learn(self, engine: Scheme, rows: int, seconds: float) -> None:
        """Corrects the prediction by the seconds of an evaluation, where it was of more than a moment."""
        _, d, q = self.size
        predicted = self.seconds(engine.work(rows, d, q))
        if math.isfinite(seconds) and predicted >= MOMENT:
            self.pace = min(max(seconds / predicted, 1 / MOST_OFF), MOST_OFF)

    def passed(self, method: Scheme, seconds: float) -> None:
        """Corrects the prediction by a final inference that has not ended in so many seconds."""
        self.pace *= max(1.0, seconds / max(self._final(method, self.size[0]), 1e-9))

    def _predicted(self, engine: Scheme, rows: int) -> float:
        _, d, q = self.size
        return self.pace * self.seconds(engine.work(rows, d, q))

    def _final(self, method: Scheme, rows: int) -> float:
        _, d, q = self.size
        return self.finals * self.pace * self.seconds(method.shortest(rows, d, q))


def compiling(method: Scheme, rows: int) -> float:
    """Seconds of new programs, for a stage or an inference on so many rows, as the machine is now."""
    none = method.closed and rows <= FEWEST_ROWS
    return 0.0 if none else COMPILING * method.programs * min(clock.slowness(), MOST_SLOW)


def at_random(n: int, count: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Some of n rows, in their order."""
    return np.sort(rng.choice(n, count, replace=False))


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest count up to `most` that fits, in steps of STEP; 0 where none does."""
    if fits(most):
        return most
    low, high = 0, most // STEP
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle * STEP) else (low, middle - 1)
    return low * STEP
