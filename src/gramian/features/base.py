"""The contract of feature maps: phi with K ~ Phi Phi'.

A `Basis` is what is chosen once for a fit: landmarks, or random frequencies of a standard law.
`basis.at(kernel)` makes the feature map for given parameters, so that a search over parameters sees one
smooth function. A `FeatureMap` gives a block of rows of Phi at a time, and takes gradients back the same way:
data of any length pass through it in blocks.

    block(X)                     Phi for some rows
    pullback(X, G)               sum_ij G_ij dPhi_ij / dtheta, what all rows share held still
    factored_pullback(C, w)      the same for G = Phi C + a w', for any block
    shared_pullback(G'Phi)       the rest of it, through what all rows share; once, for all blocks together
    input_pullback(X, G)         sum_j G_ij dPhi_ij / dx_i

What only some features have, they say by a property (`landmarks`, `spans_prior`) or by a method that the base
class refuses (`slopes`, `columns_of`, `L`), so that nobody needs to ask which map it is.

`gramian.testing.check_features(basis, kernel, d)` checks all of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import Array
from gramian.errors import ParameterError, StateError
from gramian.kernels.base import Kernel
from gramian.linalg.products import times
from gramian.linalg.state import ObjectState

# X (b, d), Phi (b, m) and a (b, q) of a block -> its part of the gradient
Pull = Callable[[Array, Array, Array], list[Array]]


class FeatureMap(ABC):
    """phi(x) at fixed parameters."""

    # whether the features are the prior (random ones), or only approximate it (landmarks)
    spans_prior: bool = False

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of Phi."""

    @property
    def entry_error(self) -> float:
        """Where features span the prior, what an entry of Phi Phi' is off by, beside k(x, x), at the
        parameters of the draw: a standard deviation where they are random, 0 where they are exact."""
        return 0.0

    @property
    def landmarks(self) -> Array | None:
        """The points (m, d) of whose kernel functions it is made, if so: Phi Phi' <= K, equal there."""
        return None

    @property
    def L(self) -> Array:
        """The root (m, m) of the landmarks' kernel matrix, Phi = K_xz L^-T."""
        raise ParameterError(f"{type(self).__name__} has no landmarks, and so no root of their matrix.")

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
        """`pullback` for G = Phi C + a w', C (m, m), w (m, q), of any block: G need not be made."""
        return lambda X, Phi, a: self.pullback(X, times(Phi, C) + a @ w.T)

    @abstractmethod
    def shared_pullback(self, T: Array) -> list[Array]:
        """The rest, through what all rows share: T = G' Phi (m, m), lower triangle, of all blocks."""

    def input_pullback(self, X: Array, G: Array) -> Array:
        """sum_j G_ij dphi_j(x_i) / dx_i: (b, d), (b, m) -> (b, d). G may be overwritten."""
        S, T = self.slopes(X)
        return (G * S) @ T.T

    def slopes(self, X: Array) -> tuple[Array, Array]:
        """S (b, m) and T (d, m) with d phi_j(x) / dx_c = S_j(x) T_cj, where features have that form."""
        raise ParameterError(
            f"The slopes of {type(self).__name__} are no products of a number a row and a number a column."
            " Those of Fourier features are; of any features, `input_pullback` gives a weighted sum."
        )

    def columns_of(self, terms: Sequence[Kernel]) -> list[NDArray[np.bool_]]:
        """For each summand of the kernel which features are its own, (m,) each, where they are told apart."""
        raise ParameterError(
            f"{type(self).__name__} does not tell the summands of a kernel apart. Fourier features do; with"
            " landmarks, take k(x, Z) of each summand."
        )

    def state(self) -> ObjectState:
        """What it has computed at its parameters that another machine, or version, may compute otherwise."""
        raise StateError(f"it has features of the type {type(self).__name__}, which do not say their state.")


class Basis(ABC):
    """What is chosen once, before the parameters are known."""

    whitened: bool = False  # whether features are made from others by a root of a kernel matrix
    # whether a search moves the landmarks: gradients then come with theirs, as a last array
    learned: bool = False

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of Phi."""

    @property
    def landmarks(self) -> Array | None:
        """The points (m, d) that it consists of, where it does."""
        return None

    def moved(self, Z: Array) -> Basis:
        """The same with landmarks Z (m, d)."""
        raise ParameterError(
            f"{type(self).__name__} has no landmarks to move. Points are learned with"
            " Sparse(optimize_inducing=True)."
        )

    @abstractmethod
    def at(self, kernel: Kernel) -> FeatureMap:
        """The feature map for a kernel with its parameters."""

    def check(self, kernel: Kernel, d: int) -> None:
        """Refuses, with a StateError, a basis that was made for other columns or another kernel."""
        raise StateError(f"{type(self).__name__} cannot be built from a state.")

    def from_state(self, state: ObjectState, kernel: Kernel, d: int) -> FeatureMap:
        """The feature map that had this state, after a check that all belongs together."""
        raise StateError(f"{type(self).__name__} cannot be built from a state.")

    def traced(self, kernel: Kernel, several: bool) -> tuple[str, tuple[Any, ...], tuple[int, ...]]:
        """What a program in which parameters move is made of: its kind, arrays and counts. `several`: whether
        the model has other kernels, too."""
        raise ParameterError(
            "MCMC takes the features of landmarks (Nystrom) and of random frequencies (Fourier), not"
            f" {type(self).__name__}."
        )

    def for_chains(self, kernel: Kernel, jitter: float) -> FeatureMap:
        """The same for chains: that much of its mean diagonal is added to a matrix that is factored."""
        return self.at(kernel)
