"""Latent functions with independent priors N(0, K_c) whose sites couple them: at each row the site is exp(h'g
- 1/2 g'W g) with W of the softmax,

    W = diag(s^2 pi) - (s pi)(s pi)',   S = (K^-1 + W)^-1,   mean = S h,   alpha = K^-1 mean,
    log det(I + K W)

for C classes with probabilities pi and scales s. Dense, with D_c = diag(s_c^2 pi_c) and E_c = (K_c +
D_c^-1)^-1: since the probabilities of a row add up to one, W is D minus a term of rank n whose capacitance
matrix is M = sum_c E_c / s_c^2, and with V_c = E_c / s_c

    S = K - K R K,   R = E - V M^-1 V',   log det(I + K W) = sum_c log det(I + K_c D_c) + log det M

which takes C n^3 flops where a factor of all C n rows would take C^3 n^3 / 3, and C + 3 arrays of n^2.
Source: Rasmussen and Williams 2006, section 3.5 and algorithm 3.3. They leave the gradient and the
covariances S_i of a row's classes out; these need F_c = L_M^-1 E_c, a block of rows at a time:

    R_cc = E_c - F_c'F_c / s_c^2,     E_c K_c = I - E_c D_c^-1
    (S_i)_cc' = delta_cc' (K_c - K_c E_c K_c)_ii + (L_M^-1 E_c K_c)_i' (L_M^-1 E_c' K_c')_i / (s_c s_c')

With features K_c ~ Phi_c Phi_c' the weights of all classes have the precision B_cc' = delta_cc' I + Phi_c'
W_cc' Phi_c': (C m)^2 sums over blocks of rows, C^2 n m^2 + C^3 m^3 / 3 flops.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from gramian.arrays import Array
from gramian.engines.base import RowPrior
from gramian.inference.model import Model
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
    """The priors of all classes; classes that share a kernel share theirs."""

    def __init__(self, groups: Groups, scale: Array) -> None:
        self.groups: list[tuple[Any, list[int]]] = list(groups)
        self.scale = scale
        group_of = {c: k for k, (_, columns) in enumerate(groups) for c in columns}
        self.group_of = [group_of[c] for c in range(len(group_of))]
        self.priors: list[Any] = [groups[k][0] for k in self.group_of]  # of each class

    def times(self, b: Array) -> Array:
        """K b for b (n, C)."""
        return np.stack([prior.times(b[:, c]) for c, prior in enumerate(self.priors)], axis=1)

    @abstractmethod
    def condition(self, pi: Array, h: Array) -> Coupled:
        """With sites of probabilities pi and h."""

    def step(self, pi: Array, h: Array) -> tuple[Array, Array]:
        """Its mean and alpha alone, each (n, C)."""
        found = self.condition(pi, h)
        return found.mean, found.alpha


def curvature(pi: Array, scale: Array) -> Array:
    """W for each row: (b, C, C). Its rows add up to zero: 1 - pi would leave nothing of a sure class."""
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
