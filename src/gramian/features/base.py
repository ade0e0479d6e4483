"""The contract of feature maps: phi with K ~ Phi Phi'.

A `Basis` is what is chosen once for a fit: landmarks, or random frequencies of a standard law.
`basis.at(kernel)` makes the feature map for given parameters, so that a search over parameters sees one
smooth function. A `FeatureMap` gives a block of rows of Phi at a time, and takes gradients back the same way:
data of any length pass through it in blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from gramian.errors import ParameterError
from gramian.kernels.base import Kernel
from gramian.linalg.products import times

Array = NDArray[np.float64]
# X (b, d), Phi (b, m) and a (b, q) of a block -> its part of the gradient
Pull = Callable[[Array, Array, Array], list[Array]]


class FeatureMap(ABC):
    """phi(x) at fixed parameters."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of Phi."""

    @property
    def spans_prior(self) -> bool:
        """Whether the features are the prior, with nothing of it outside them (random features), or only
        approximate it (landmarks)."""
        return False

    @property
    def landmarks(self) -> Array | None:
        """The points (m, d) whose kernel functions the features are made of, where they are."""
        return None

    @property
    def L(self) -> Array:
        """The root of the landmarks' kernel matrix."""
        raise ParameterError(f"{type(self).__name__} has no landmarks.")

    def slopes(self, X: Array) -> tuple[Array, Array]:
        """S (n, m) and T (d, m) with d phi_j(x) / dx_c = S_j(x) T_cj, where features have that form."""
        raise ParameterError(f"{type(self).__name__} has no slopes in closed form.")

    def columns_of(self, terms: Sequence[Kernel]) -> list[NDArray[np.bool_]]:
        """For each summand of the kernel which features are its own, (m,) each, where they are told apart."""
        raise ParameterError(f"{type(self).__name__} does not tell the summands of a kernel apart.")

    def ready(self) -> None:  # noqa: B027 - most have nothing to prepare
        """Computes what all blocks share: once, before threads ask for blocks."""

    @abstractmethod
    def block(self, X: Array, tolerance: float = 0.0) -> Array:
        """Phi for some rows: (b, d) -> (b, m), row-major. `tolerance`: the error that |phi|^2 may have beside
        k(x, x), where that saves time."""

    @abstractmethod
    def pullback(self, X: Array, G: Array) -> list[Array]:
        """sum_ij G_ij dPhi_ij / dtheta over a block of rows, what all rows share held still: one array a
        parameter of the kernel, and a last one for the landmarks where they are learned. G may be
        overwritten."""

    def factored_pullback(self, C: Array, w: Array) -> Pull:
        """`pullback` for G = Phi C + a w', with C (m, m) and w (m, q), of any block: a map may do with less
        than all of G."""
        return lambda X, Phi, a: self.pullback(X, times(Phi, C) + a @ w.T)

    @abstractmethod
    def shared_pullback(self, T: Array) -> list[Array]:
        """The rest of the gradient, through what all rows share: T = G' Phi (m, m), summed over all blocks,
        of which the lower triangle is read."""


class Basis(ABC):
    """What is chosen once, before the parameters are known."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of Phi."""

    @property
    def whitened(self) -> bool:
        """Whether features are made from others by a root of a kernel matrix."""
        return False

    @property
    def points(self) -> Array | None:
        """The points that a search may move, (m, d), where there are any."""
        return None

    def with_points(self, Z: Array) -> Basis:
        """The same with its points elsewhere."""
        raise ParameterError(f"{type(self).__name__} has no points that could be moved.")

    @abstractmethod
    def at(self, kernel: Kernel) -> FeatureMap:
        """The feature map for a kernel with its parameters."""

    def for_chains(self, kernel: Kernel, jitter: float) -> FeatureMap:
        """The same as chains have it: with that much of its mean diagonal added to a matrix that is
        factored."""
        return self.at(kernel)
