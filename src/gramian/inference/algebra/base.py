"""The contract: a prior, and what it becomes with sites."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gramian.inference.base import GaussianProcess, Process

Array = NDArray[np.float64]


class Sited(ABC):
    """The prior of one latent function with sites: what `Prior.condition` gives."""

    lam: Array  # (n,), as used
    mean: Array  # (n,)
    alpha: Array  # (n,)
    logdet: float
    logdet_error: float = 0.0  # a standard error, where it is an estimate
    solves: int = 0  # steps of an iterative solver
    note: str = ""

    @property
    @abstractmethod
    def var(self) -> Array:
        """The diagonal of S, (n,)."""

    @abstractmethod
    def spread(self, b: Array) -> Array:
        """S b for b (n,)."""

    def release(self) -> None:
        """Gives its memory back for the next one, where that helps; nothing but mean and alpha can be asked
        afterwards."""
        return


class Term(NamedTuple):
    """What one latent function adds to the gradient of an evidence by K."""

    sited: Sited
    u: Array | None = None  # (n,)
    logdet: bool = True  # whether -1/2 R belongs to it
    by_outside: Array | None = None  # (n,): the weight of k(x, x) - |phi|^2, where variances count it


class Prior(ABC):
    """N(0, K) at the rows of X."""

    @abstractmethod
    def condition(self, lam: Array, h: Array) -> Sited:
        """With the sites lam, h, each (n,)."""

    @abstractmethod
    def times(self, b: Array) -> Array:
        """K b for b (n,)."""

    @abstractmethod
    def pullback(self, terms: Sequence[Term]) -> list[Array]:
        """The gradient by the kernel's parameters (and by learned landmarks, a last array) of the sum of
        these terms. Uses them up."""

    @abstractmethod
    def posterior(self, prior: GaussianProcess, sited: Sequence[Sited]) -> Process:
        """One output a latent. Uses them up."""

    @property
    def outside(self) -> Array | float:
        """The part of k(x, x) that the prior leaves out at the rows, where variances of the data count it."""
        return 0.0
