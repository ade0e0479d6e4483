"""What CG and MINRES have in common: their settings, and rounds of steps with iterative refinement between
them.

The residual of a recurrence drifts away from b - A x, so a solve ends by that of a true product in float64,
and starts again on what is left while that helps. This also allows products in float32: they only make the
steps, the residual is corrected in float64, which takes over where float32 helps no more.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from gramian.arrays import Array, Indices, is_whole, plain_numbers
from gramian.errors import ParameterError, StateError
from gramian.gram import tiles
from gramian.gram.operator import GramOperator
from gramian.kernels.base import Kernel
from gramian.landmarks.pivoted import pivoted_cholesky
from gramian.linalg.cost import Cost
from gramian.linalg.state import Arrays
from gramian.linalg.threads import count
from gramian.solvers import preconditioners
from gramian.solvers.base import SolveOutcome, Solver
from gramian.solvers.preconditioners import Name, Preconditioner

Product = Callable[[Array], Array]

STRONGER = 4  # times the rank and the steps, for a second attempt
STEPS = 60  # of a solve with a good preconditioner, for predictions of time
# rows: below, a product takes a millisecond either way, and float32 would only take more steps
FLOAT32_FROM = 1024
# how far a round of float32 steps reduces the residual; further, its rounding errors would be what is reduced
ROUND_IN_FLOAT32 = 1e-3


@dataclass(frozen=True)
class KrylovSolver(Solver):
    """Parent of CG and MINRES."""

    tol: float = 1e-6  # |A x - b| / |b| of each column
    max_iter: int = 1000  # steps of a solve, each with one product
    preconditioner: Name = "rpcholesky"
    rank: int = 200  # of the preconditioner
    probes: int = 16  # random directions for the log determinant
    # of probes and preconditioner; None: from the estimator's random_state, 0 where there is none
    seed: int | None = None
    float32: bool | None = None  # products in float32, corrected in float64; None: where that is faster
    # of the preconditioner, as chosen before a search
    pivots: Indices | None = dataclasses.field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        plain_numbers(self)
        if not 0 < self.tol < 1:
            raise ParameterError(
                f"tol={self.tol!r} is a relative residual: give a number between 0 and 1, such as 1e-6."
            )
        for name, value in (("max_iter", self.max_iter), ("probes", self.probes)):
            if not is_whole(value):
                raise ParameterError(f"{name}={value!r} must be a positive whole number.")
        preconditioners.check(self.preconditioner, self.rank)
        if self.seed is not None and not is_whole(self.seed, 0):
            raise ParameterError(
                f"seed={self.seed!r} must be a whole number from 0 on, or None: from random_state."
            )

    def seeded(self, rng: np.random.Generator) -> Self:
        """With a seed from rng, unless it has its own."""
        drawn = int(rng.integers(2**31))
        return self if self.seed is not None else dataclasses.replace(self, seed=drawn)

    def stream(self, number: int) -> np.random.Generator:
        """Random numbers for one use: 0 for the probes, 1 for the preconditioner."""
        return np.random.default_rng([self.seed or 0, number])

    @property
    def described(self) -> str:
        ranked = f" of rank {self.rank}" if self._ranked else ""
        return f"{type(self).__name__} to {self.tol:g}, preconditioner {self.preconditioner}{ranked}"

    @property
    def label(self) -> str:
        return f"{self.name}, rank {self.rank}"

    @property
    def _ranked(self) -> bool:
        return self.preconditioner in ("pivoted", "rpcholesky")

    def prepared(self, kernel: Kernel, X: Array, rng: np.random.Generator) -> Self:
        pivots = None
        if self._ranked:
            rank, rng_own = min(self.rank, len(X)), self.stream(1)
            pivots = pivoted_cholesky(kernel, np.asarray(X), rank, rng_own, rule=self.preconditioner).pivots
        return dataclasses.replace(self.seeded(rng), pivots=pivots)

    @property
    def choices(self) -> Arrays:
        return {} if self.pivots is None else {"pivots": self.pivots.astype(np.int64)}

    def with_choices(self, choices: Arrays, n: int) -> Self:
        pivots = choices.get("pivots")
        if pivots is not None and (
            pivots.ndim != 1 or not len(pivots) or len(set(pivots.tolist()) & set(range(n))) != len(pivots)
        ):
            raise StateError(
                f"its pivots must be rows of the data, each once, but are {pivots.shape} numbers of {n} rows."
            )
        return dataclasses.replace(self, pivots=pivots)

    def stronger(self, n: int) -> Self:
        rank, steps = min(STRONGER * self.rank, n), STRONGER * self.max_iter
        return dataclasses.replace(self, preconditioner="rpcholesky", rank=rank, max_iter=steps, pivots=None)

    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Cost:
        """A solve, and another one for all probes."""
        columns, product = self.probes + q, STEPS * float(n) ** 2
        flops = 2 * product * columns + 6.0 * n * self.rank**2
        return Cost(flops, float(n) * self.rank, n * n / 2 if gradient else 0.0, 2 * product)

    def bytes_needed(self, n: int, d: int, q: int) -> int:
        rank = self.rank if self._ranked else 0
        # of the preconditioner: its factor, two arrays while that is made, and one of the parameters before
        own = n * (4 * min(rank, n) + 6 * (self.probes + q) + d)
        return 8 * (own + 8 * count() * tiles.LARGEST_TILE**2)

    def preconditioned(self, operator: GramOperator) -> Preconditioner:
        return preconditioners.build(self.preconditioner, operator, self.rank, self.stream(1), self.pivots)


class Round(NamedTuple):
    """What a round of steps gives back: the solution, and from CG the step lengths column by column."""

    X: Array
    iterations: int
    alphas: list[list[float]]
    betas: list[list[float]]
    note: str = ""  # why some column could not go on


Steps = Callable[[Product, Array, Array, int], Round]  # a product, right-hand sides, tolerances, most steps


def refined(
    A: GramOperator, solver: KrylovSolver, steps: Steps, B: Array, at_once: bool = False
) -> tuple[Array, SolveOutcome, Round | None]:
    """Rounds of steps on the true residual; and the first, which `at_once` runs down to the tolerance."""
    tol, max_iter = solver.tol, solver.max_iter
    low = solver.float32 if solver.float32 is not None else A.n >= FLOAT32_FROM
    size = np.linalg.norm(B, axis=0)
    size[size == 0] = 1.0  # a column of zeros is solved by zeros
    X, R = np.zeros(B.shape), B.copy()
    left = np.linalg.norm(R, axis=0) / size
    count, first, note = 0, None, ""
    while count < max_iter and np.any(left > tol):
        todo = np.flatnonzero(left > tol)
        goal = 0.9 * tol / left[todo]
        if low and not at_once:
            goal = np.maximum(goal, ROUND_IN_FLOAT32)
        product = (lambda V: A.matmul(V, np.float32)) if low else A.matmul
        run = steps(product, R[:, todo], goal, max_iter - count)
        first, at_once, count = first or run, False, count + run.iterations
        tried = X[:, todo] + run.X
        residual = B[:, todo] - A.matmul(tried)
        now = np.linalg.norm(residual, axis=0) / size[todo]
        better = now < left[todo]  # False for what is not a number
        helped = bool(np.all(now < 0.5 * left[todo]))
        at = todo[better]
        X[:, at], R[:, at], left[at] = tried[:, better], residual[:, better], now[better]
        note = run.note or note
        if not helped:
            if not low:
                break
            low = False
    worst = float(np.max(left, initial=0.0))
    note = "" if worst <= tol else _missed(worst, tol, count, max_iter, note)
    return X, SolveOutcome(count, worst, converged=worst <= tol, note=note), first


def _missed(worst: float, tol: float, steps: int, max_iter: int, reason: str) -> str:
    missed = (
        f"the relative residual is {worst:.2g}, {worst / tol:.2g} times the tolerance {tol:g}, after {steps}"
        " steps"
    )
    if steps >= max_iter:
        return (
            f"{missed}, all that were allowed. Raise max_iter or the rank of the preconditioner, let noise be"
            " larger, or use Cholesky."
        )
    reason = reason or "rounding allows no better. Accept a larger tol, let noise be larger, or use Cholesky."
    return f"{missed}: {reason}"
