"""What a process is built on again from its state: the model, the rows, what the method has chosen.

A process leaves out of its state what the context says. `Context.process` builds the process of any kind; the
kinds are those of the subclasses of `Process` in this package, each of which names its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gramian.arrays import Array
from gramian.errors import StateError
from gramian.features.base import Basis, FeatureMap
from gramian.kernels.base import Kernel
from gramian.linalg.state import Arrays, ObjectState, taken, typed
from gramian.means import OneOutput
from gramian.processes.base import Process
from gramian.processes.prior import GaussianProcess
from gramian.solvers.base import Solver


@dataclass(frozen=True, eq=False)
class Context:
    """What belongs to a process and is not its own."""

    method: str  # its name, for messages
    kinds: tuple[str, ...]  # of process that the method gives
    prior: GaussianProcess  # of all functions; where they have kernels of their own, with the first of these
    others: tuple[Kernel, ...]  # then those after the first
    X: Array | None  # (n, d): the rows, where predictions need them
    d: int
    basis: Callable[[int], Basis | None] = lambda k: None  # of the features of the k-th kernel
    solver: Solver | None = None  # of systems with K + D
    model: Any = None  # the Model and the Data, of a layer above, for processes of that layer
    data: Any = None
    first: int = 0  # which kernel of all that of `prior` is
    scheme: Any = None  # the method itself, where its choices are all that a process consists of
    inner: Context | None = None  # of the process that this one is made of
    links: tuple[Context, ...] = ()  # the same of several, one after the other

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        return (self.prior.kernel, *self.others)

    @property
    def q(self) -> int:
        """Functions."""
        return len(self.prior.scale)

    def of_output(self, k: int) -> Context:
        """That of a process for one of the functions."""
        if not self.others:
            return replace(self, prior=self.prior.of_output(k))
        mean, scale = OneOutput(self.prior.mean_function, k), self.prior.scale[[k]]
        return replace(self, prior=GaussianProcess(self.kernels[k], mean, scale), others=(), first=k)

    def process(self, described: Any, arrays: Arrays) -> Process:
        """The process with this state, of whichever kind it says."""
        kind = typed(described, dict, "posterior").get("kind")
        if not (isinstance(kind, str) and kind in Process.kinds):
            raise StateError(
                f"its posterior is of the kind {str(kind)[:40]!r}, but must be one of"
                f" {', '.join(Process.kinds)}."
            )
        cls = Process.kinds[kind]
        if kind not in self.kinds:
            raise StateError(
                f"its posterior is of the kind {kind!r}, which the method {self.method} does not give."
            )
        if self.others and not cls.many_kernels:
            raise StateError(
                f"its posterior is of the kind {kind!r}, but functions with kernels of their own are stacked."
            )
        return cls.from_state(ObjectState(described, arrays), self)

    def features(self, arrays: Arrays, k: int = 0) -> FeatureMap:
        """The features of the k-th kernel."""
        basis = self.basis(self.first + k)
        if basis is None:
            raise StateError(f"its method {self.method} has no features.")
        return basis.from_state(ObjectState({}, arrays), self.kernels[k], self.d)

    def own_rows(self, Z: Array) -> Arrays:
        """The rows Z that a process stands on, where outputs are observed at rows of their own."""
        return {} if self.X is not None and np.array_equal(Z, self.X) else {"Z": Z}

    def rows(self, arrays: Arrays) -> Array:
        """The same, from what `own_rows` left."""
        if "Z" in arrays:
            return taken(arrays, "Z", (None, self.d))
        if self.X is None:
            raise StateError("its posterior stands on the rows of the data, which are not there.")
        return self.X
