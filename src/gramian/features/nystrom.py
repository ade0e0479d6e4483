"""Nystrom features: K ~ Q = K_xz K_zz^-1 K_zx = Phi Phi' with Phi = K_xz L^-T, K_zz = L L'.

Cost of b rows: b m kernel values and b m^2 flops. Source: Williams and Seeger 2001; Quinonero-Candela and
Rasmussen 2005.

K_zz gets a small multiple of its mean diagonal: landmarks are often close to each other, and 1e-12 keeps the
rounding error of Phi at 1e-10. Q only becomes smaller by that, so that bounds that rest on Q <= K still hold.

Gradient. Everything made from Phi here depends on Q alone. With G = df/dPhi,

    df/dK_xz = G L^-1,      df/dK_zz = -1/2 L^-T (Phi' G) L^-1.

What depends on Phi itself, because the coordinates of its weights are held still, also depends on which root
of K_zz L is. Since dPhi = dK_xz L^-T - Phi dL' L^-T, df/dL = -L^-T G' Phi, and through the Cholesky
factorisation (Murray 2016)

    df/dK_zz = -1/2 L^-T sym(G' Phi) L^-1,      sym: the lower triangle, mirrored

which is the same where Phi' G is symmetric, as it is for functions of Q.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.arrays import AnyArray, Array
from gramian.errors import StateError
from gramian.features.base import Basis, FeatureMap, Pull
from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.linalg import panels
from gramian.linalg.blas import block_of, multiply_triangle, square_between
from gramian.linalg.factor import factored, zeros_above
from gramian.linalg.products import times
from gramian.linalg.state import TRIANGLE, ObjectState, root

Low = NDArray[np.float32]

LANDMARKS = "landmarks"  # the name of L in a state
LEAST_JITTER = 1e-12  # of the mean diagonal, added to K_zz; more where that is not positive definite
FILL_ERROR = 1e-6


@dataclass(frozen=True, eq=False)
class NystromBasis(Basis):
    """Landmarks, the same for all parameters. `learned`: gradients come with that of Z, as a last array."""

    Z: Array  # (m, d)
    learned: bool = False
    whitened = True

    @property
    def n_features(self) -> int:
        return len(self.Z)

    @property
    def landmarks(self) -> Array:
        return self.Z

    def moved(self, Z: Array) -> NystromBasis:
        return NystromBasis(Z, self.learned)

    def at(self, kernel: Kernel) -> NystromMap:
        return NystromMap(kernel, self.Z, self.learned)

    def traced(self, kernel: Kernel, several: bool) -> tuple[str, tuple[Any, ...], tuple[int, ...]]:
        return "landmarks", (self.Z,), ()

    def check(self, kernel: Kernel, d: int) -> None:
        columns = kernel.point_columns()
        d = d if columns is None else columns[1]
        if self.Z.ndim != 2 or self.Z.shape[1] != d or not len(self.Z):
            raise StateError(f"its landmarks have the shape {self.Z.shape}, but it has {d} columns.")

    def from_state(self, state: ObjectState, kernel: Kernel, d: int) -> NystromMap:
        self.check(kernel, d)
        landmarks = self.at(kernel)
        vars(landmarks)["L"] = root(state.arrays, LANDMARKS, len(self.Z))  # as if it had been computed
        return landmarks

    def for_chains(self, kernel: Kernel, jitter: float) -> NystromMap:
        return NystromMap(kernel, self.Z, self.learned, least=jitter, fill_error=0.0)


@dataclass(frozen=True, eq=False)
class NystromMap(FeatureMap):
    """phi(x) = L^-1 k(Z, x)."""

    kernel: Kernel
    Z: Array
    learned: bool = False
    least: float = LEAST_JITTER  # of the mean diagonal, added to K_zz
    fill_error: float = FILL_ERROR  # of that: what values of K_zz may be wrong by

    @property
    def n_features(self) -> int:
        return len(self.Z)

    @property
    def landmarks(self) -> Array:
        return self.Z

    @cached_property
    def L(self) -> Array:
        """(m, m), Fortran-ordered, zeros above the diagonal."""
        return self._factored[0]

    def state(self) -> ObjectState:
        """L: close landmarks make much of its rounding."""
        return ObjectState({}, {TRIANGLE + LANDMARKS: self.L})

    @cached_property
    def _factored(self) -> tuple[Array, float]:
        """L, and what was added to K_zz in units of its mean diagonal."""

        def fill(A: Array, jitter: float) -> None:
            tiles.fill(self.kernel, self.Z, A, error=self.fill_error * jitter)

        what, cure = f"The kernel matrix of the {len(self.Z)} landmarks", "Choose them further apart."
        L, jitter = factored(fill, len(self.Z), least=self.least, what=what, cure=cure)
        return zeros_above(L), jitter

    @cached_property
    def inverse_root(self) -> Array:
        """L^-1 (m, m), Fortran-ordered, zeros above: products take half the time of divisions by L."""
        root = self.L.copy(order="F")
        panels.inverse_root(root)
        return root

    @cached_property
    def product_error(self) -> float:
        """Of |phi|^2 beside k(x, x), where phi is made with L^-1: the condition of L times rounding."""
        return float(np.finfo(float).eps) * _row_sum(self.L) * _row_sum(self.inverse_root)

    @cached_property
    def amplified(self) -> float:
        """What L^-1 makes of an error of k(x, z), beside k(x, x), in phi beside its root."""
        # the last row of L: the root of k(z, z)
        return _row_sum(self.inverse_root) * float(np.linalg.norm(self.L[-1]))

    def ready(self) -> None:
        _ = self.product_error, self.amplified

    def block(self, X: Array, tolerance: float = 0.0) -> Array:
        forgiven = 0.5 * tolerance / self.amplified if tolerance else 0.0
        return self.whitened(tiles.cross(self.kernel, X, self.Z, error=forgiven), tolerance)

    def whitened(self, K: Array, tolerance: float = 0.0) -> Array:
        """K L^-T for K (b, m), row-major, overwritten.

        Division is exact to what interpolation weights are, 1e-14 as a rule. A product with L^-1 takes half
        the time.
        """
        if tolerance and self.product_error <= tolerance:
            multiply_triangle(block_of(self.inverse_root), block_of(K.T))
        else:
            panels.divide(self.L, K.T)
        return K

    def pullback(self, X: Array, G: Array) -> list[Array]:
        multiply_triangle(block_of(self.inverse_root), block_of(G.T), transpose=True)  # G <- G L^-1
        return tiles.cross_pullback(self.kernel, X, self.Z, G, points=self.learned)

    def input_pullback(self, X: Array, G: Array) -> Array:
        multiply_triangle(block_of(self.inverse_root), block_of(G.T), transpose=True)  # G <- G L^-1
        return tiles.cross_pullback(self.kernel, X, self.Z, G, inputs=True)[-1]

    def factored_pullback(self, C: Array, w: Array) -> Pull:
        # G L^-1 = Phi (C L^-1) + a (L^-T w)': the triangle is multiplied by once, instead of for each block.
        quotient, weights = C.copy(), w.copy(order="F")
        multiply_triangle(block_of(self.inverse_root), block_of(quotient.T), transpose=True)
        multiply_triangle(block_of(self.inverse_root), block_of(weights), transpose=True)

        def pull(X: Array, Phi: Array, a: Array) -> list[Array]:
            W, pair = times(Phi, quotient), (a, weights)
            return tiles.cross_pullback(self.kernel, X, self.Z, W, low_rank=pair, points=self.learned)

        return pull

    @cached_property
    def low_root(self) -> Low:
        """L^-1 in 32 bits."""
        return self.inverse_root.astype(np.float32)

    def shared_pullback(self, T: Array | Low) -> list[Array]:
        if T.dtype == np.float32:
            return self._low_shared_pullback(T.astype(np.float32, copy=False))
        W = -0.5 * np.asfortranarray(T, dtype=np.float64)
        square_between(block_of(self.inverse_root), block_of(W))  # L^-T T L^-1, the lower triangle
        # what was added moves with the diagonal
        W.T.reshape(-1)[:: len(W) + 1] += self._factored[1] * float(np.trace(W)) / len(W)
        if not self.learned:
            return tiles.pullback(self.kernel, self.Z, W.T)
        upper = np.triu(W.T)
        return self._zz_pullback(upper + np.triu(upper, 1).T)

    def _low_shared_pullback(self, T: Low) -> list[Array]:
        """In 32 bits, with products of all of W: half the time of one triangle in 64."""
        half = T * _half_triangle(len(T))
        W, root = np.asfortranarray(half + half.T), block_of(self.low_root)
        multiply_triangle(root, block_of(W), transpose=True)
        multiply_triangle(root, block_of(W), right=True)
        W.T.reshape(-1)[:: len(W) + 1] += np.float32(self._factored[1] * float(np.trace(W)) / len(W))
        return self._zz_pullback(W.T)

    def _zz_pullback(self, W: AnyArray) -> list[Array]:
        """Through K_zz, for symmetric weights."""
        found = tiles.cross_pullback(self.kernel, self.Z, self.Z, W, points=self.learned)
        return [*found[:-1], 2 * found[-1]] if self.learned else found  # Z is on both sides


@lru_cache(maxsize=4)
def _half_triangle(m: int) -> Low:
    """M with M * T + (M * T)' = -1/2 sym(T): -1/2 below the diagonal, -1/4 on it."""
    mask = np.asfortranarray(np.tri(m, dtype=np.float32))
    mask *= -0.5
    np.fill_diagonal(mask, -0.25)
    return mask


def _row_sum(A: Array) -> float:
    """The largest, of absolute values."""
    return float(np.max(np.sum(np.abs(A), axis=1)))
