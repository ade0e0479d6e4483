"""What pictures read of a model after data, whoever has made it: an estimator, or a process on paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gramian.arrays import Array
from gramian.data.columns import Columns
from gramian.errors import ParameterError
from gramian.fitting import Objective, SearchPath
from gramian.params import ParameterSpace
from gramian.params.space import entry_names
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess
from gramian.report.notes import labels


@dataclass(frozen=True, eq=False)
class Insides:
    """The model with its rows and its rule, f after them, and how its parameters were found."""

    objective: Objective
    scale: Array  # of each function, (q,)
    process: Process
    columns: Columns
    trace: tuple[SearchPath, ...]
    read: Callable[[Any], Array]  # rows as people have them, to the model's own table

    def prior(self, output: int) -> tuple[GaussianProcess, int]:
        """f before the rows, of the function with this number, and which one it is there."""
        model = self.objective.model
        if model.deeper or model.outputs:
            what = "several layers" if model.deeper else "outputs that inform each other"
            raise ParameterError(f"A model with {what} has no prior covariance of one kernel to draw.")
        if not 0 <= output < len(self.scale):
            raise ParameterError(
                f"output={output} does not exist: there are {len(self.scale)}, numbered from 0."
            )
        prior, own = next((prior, own) for prior, own in model.priors(self.scale) if output in own)
        return prior, own.index(output)

    def names(self, space: ParameterSpace) -> list[str]:
        """One an entry of theta, with the names of columns instead of their numbers."""
        known = labels(self.objective.model, self.columns)
        return [
            name
            for path, parameter in space.trainable.items()
            for name in entry_names(path, parameter, known.get(path, ()))
        ]
