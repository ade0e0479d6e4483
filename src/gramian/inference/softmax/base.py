"""The contract: the priors of all classes, what they become with sites, and the curvature W of the sites."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from gramian.engines.base import RowPrior
from gramian.inference.model import Array, Model
from gramian.processes.base import Process

Groups = list[tuple[RowPrior, list[int]]]


class Coupled(ABC):
    """The prior of all classes with sites."""

    mean: Array  # (n, C)
    alpha: Array  # (n, C)
    logdet: float

    @abstractmethod
    def joint(self) -> Array:
        """The covariance of the classes at each row of the data: (n, C, C)."""

    @abstractmethod
    def spread(self, b: Array) -> Array:
        """S b for b (n, C)."""

    @abstractmethod
    def pullback(self, alpha: Array, u: Array) -> list[list[Array]]:
        """The gradient by each prior's parameters of the weights 1/2 a_c a_c' - 1/2 R_cc + 1/2 (u_c a_c' +
        a_c u_c') on K_c. Uses it up."""

    @abstractmethod
    def posterior(self, model: Model, scale: Array) -> Process:
        """Uses it up."""


class Coupling(ABC):
    """The priors of all classes."""

    @abstractmethod
    def times(self, b: Array) -> Array:
        """K b for b (n, C)."""

    @abstractmethod
    def step(self, pi: Array, h: Array) -> tuple[Array, Array]:
        """mean and alpha, each (n, C), with sites of probabilities pi and h."""

    @abstractmethod
    def condition(self, pi: Array, h: Array) -> Coupled:
        """The same, with all that can be asked of it."""


def curvature(pi: Array, scale: Array) -> Array:
    """W for each row: (b, C, C). Its rows add up to zero to the last bit that counts: 1 - pi would leave
    nothing of a sure class."""
    W = -pi[:, :, None] * pi[:, None, :]
    diagonal = np.einsum("icc->ic", W)
    diagonal[...] = 0.0
    diagonal[...] = -np.sum(W, axis=2)
    W *= np.multiply.outer(scale, scale)
    return W


def curved(pi: Array, scale: Array, g: Array) -> Array:
    """W g for g (n, C)."""
    x = scale * g
    return scale * pi * (x - np.sum(pi * x, axis=1, keepdims=True))


def mirror(A: Array) -> None:
    """The lower triangle of A into the upper one, by panels."""
    for start in range(0, len(A), 128):
        stop = start + 128
        A[start:stop, stop:] = A[stop:, start:stop].T
        block = np.tril(A[start:stop, start:stop])
        A[start:stop, start:stop] = block + np.tril(block, -1).T
