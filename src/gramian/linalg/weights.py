"""The weights of features after Gaussian sites: the one place where I + Phi' Lam Phi is factored.

    v ~ N(0, I) before,   B = I + S = L_B L_B',   v ~ N(w, B^-1) after,   w = B^-1 b,   KL from the prior

Cost: m^3 / 3 for the factor, as much for its inverse root.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import blas

from gramian.arrays import Array
from gramian.errors import NumericalError
from gramian.linalg import factor
from gramian.linalg.products import times, transposed_times


@dataclass(frozen=True, eq=False)
class Weights:
    """N(w, B^-1)."""

    w: Array  # (m, q)
    root: Array  # L_B^-1, lower triangular, zeros above; Fortran-ordered
    logdet: float  # log det B
    explained: Array  # (q,): b'B^-1 b

    def covariance_times(self, V: Array) -> Array:
        """B^-1 V for V (m, k)."""
        half = blas.dtrmm(1.0, self.root, np.asfortranarray(V), lower=1)
        return np.ascontiguousarray(blas.dtrmm(1.0, self.root, half, lower=1, trans_a=1, overwrite_b=1))


def weights_of(S: Array, b: Array) -> Weights:
    """From the sums S = Phi' Lam Phi (m, m), of which the lower triangle is read, and b = Phi'h (m, q)."""
    root, logdet = inverse_root_of(S)
    half = times(root, b)
    w = transposed_times(np.ascontiguousarray(root), half)
    return Weights(w, root, logdet, np.einsum("ij,ij->j", half, half))


def inverse_root_of(S: Array, ones: float = 1.0) -> tuple[Array, float]:
    """L_B^-1 and log det B of B = ones I + S, from the lower triangle of S, which is left alone."""
    B = S.copy(order="F")
    B.T.reshape(-1)[:: len(B) + 1] += ones
    if not np.all(np.isfinite(B)):
        raise NumericalError(
            "The sums of the features are not finite: the kernel overflows on these data. Rescale the"
            " columns, or bound its parameters."
        )
    info = factor.factor_in_place(B)
    if info:
        raise NumericalError(
            f"I + Phi' Lam Phi is not positive definite: it fails at feature {info - 1}. The sites'"
            " curvatures are too negative for the prior, or the noise is too small: let it be learned, or"
            " larger."
        )
    logdet = factor.logdet(B)
    return factor.inverse_root_in_place(B), logdet
