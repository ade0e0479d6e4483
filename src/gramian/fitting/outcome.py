"""What became of a fit, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field

from gramian.fitting.trace import SearchPath


@dataclass(frozen=True)
class FitOutcome:
    """How a fit went. `notes` are sentences with a cure where one is needed; an empty tuple means nothing to
    report."""

    method: str  # the inference method that ran
    reason: str  # why that one
    solver: str
    # "converged", "time limit", "interrupted", "iteration limit", "not optimised", "nothing to optimise",
    # "sampled"
    stopped: str
    iterations: int  # of L-BFGS-B, over all starts
    evaluations: int
    starts: int  # starting points tried
    jitter: float  # added to the diagonal in the final factorisation, as a share of its mean
    seconds: float
    notes: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()  # what was searched on what, one sentence each
    choice: tuple[str, ...] = ()  # how the kind of model was chosen, where that was left to the data
    # what the search has seen, for `plots.plot_search`; a model file does not hold it
    trace: tuple[SearchPath, ...] = field(default=(), repr=False, compare=False, metadata={"saved": False})

    @property
    def converged(self) -> bool:
        """Whether the search ended by itself."""
        return self.stopped in ("converged", "not optimised", "nothing to optimise")
