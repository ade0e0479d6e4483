"""Kernel features as scikit-learn transformers: `transform(X)` gives Phi with K(X, Z) ~ Phi(X) Phi(Z)', for
any linear model to follow.

    make_pipeline(gm.FourierFeatures(gm.Matern52(0.5), 500), Ridge(1e-2)).fit(X, y)

`NystromFeatures` takes any kernel and adapts to the data; `FourierFeatures` takes stationary kernels and
needs nothing of the data but the number of columns. Without a kernel, both take an RBF with lengthscale_j =
sd_j sqrt(d), of which distances grow with the number of columns as they do in data.
"""

from __future__ import annotations

import numbers
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.data.inputs import Columns, is_frame, read_features, remember_columns, spread
from gramian.errors import InputError, ParameterError
from gramian.estimators.build import read_kernel
from gramian.features.base import FeatureMap
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.kernels import RBF, Categorical, Kernel
from gramian.kernels.convert import Converted
from gramian.landmarks.base import LandmarkRule
from gramian.landmarks.rules import landmarks

Array = NDArray[np.float64]


class _KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn is not typed
    """What the two have in common: columns, the kernel, and the map that `fit` makes."""

    kernel: Kernel | Converted | None
    _columns: Columns
    features_: FeatureMap

    def _read(self, X: Any) -> tuple[Array, Kernel]:
        """The rows of X, and the kernel with its columns as indices."""
        if not is_frame(X) and hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        table, columns = read_features(X)
        remember_columns(self, X, table, reset=True)
        written = read_kernel(self.kernel).one("features are of one kernel.")
        kernel = _default_kernel(table, columns) if written is None else written
        kernel.check_columns(columns.described())
        self._columns, self.kernel_ = columns, kernel
        return table, kernel.resolve(columns.names)

    def transform(self, X: Any) -> Array:
        """Phi (n, number of features), with kernel(X, Z) ~ Phi(X) Phi(Z)'."""
        check_is_fitted(self, "features_")
        table = None if is_frame(X) else read_features(X, self._columns)[0]
        remember_columns(self, X, table, reset=False)
        Phi = self.features_.block(read_features(X, self._columns)[0] if table is None else table)
        if not np.all(np.isfinite(Phi)):
            row = int(np.argmin(np.all(np.isfinite(Phi), axis=1)))
            raise InputError(f"The features of row {row} of X leave the range of numbers. Check its units.")
        return Phi

    @property
    def _n_features_out(self) -> int:
        return self.features_.n_features


class NystromFeatures(_KernelFeatures):
    """Nystrom features of a kernel: Phi Phi' = K_xz K_zz^-1 K_zx for landmarks Z chosen among the rows of
    `fit`.

    Parameters
    ----------
    kernel : Kernel, optional
        Any kernel. None: an RBF with lengthscales from the data (times a Categorical for text columns).
    rank : int
        How many landmarks, and features. More than there are rows are cut to their number; `rank_` tells.
    sampling : str or LandmarkRule
        How landmarks are chosen: a rule of `gramian.landmarks`, or one of your own.
    random_state : int, RandomState or None
        For the choice.

    Attributes
    ----------
    kernel_ : the kernel; landmarks_ : Z, coded as numbers (rank_, d); rank_ : the number of features;
        features_ : the map itself
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        rank: int = 100,
        *,
        sampling: str | LandmarkRule = "rpcholesky",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.rank = rank
        self.sampling = sampling
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Chooses landmarks among the rows of X; y is not used."""
        if isinstance(self.rank, bool) or not isinstance(self.rank, numbers.Integral) or self.rank < 1:
            raise ParameterError(f"rank={self.rank!r} must be a whole number from 1 on.")
        table, kernel = self._read(X)
        chosen = landmarks(
            kernel, table, min(int(self.rank), len(table)), self.sampling, self.random_state
        ).distinct()
        self.landmarks_ = chosen.Z
        self.rank_ = len(chosen.Z)
        self.features_ = NystromBasis(chosen.Z).at(kernel)
        return self


class FourierFeatures(_KernelFeatures):
    """Random Fourier features of a stationary kernel.

    Parameters
    ----------
    kernel : Kernel, optional
        A kernel with a known spectral measure: RBF, Matern, RationalQuadratic, SpectralMixture, Periodic,
        Cosine, Constant, and sums, products and multiples of these. None: an RBF with lengthscales from the
        data.
    n_features : int
        Columns of Phi; even, except with kind="rff-phase".
    kind : "rff", "rff-phase", "orf", "sorf", "qmc" (or "qmc-halton"), "qmc-sobol"
        Independent frequencies with cosine and sine, or with a random phase; orthogonal ones; structured
        orthogonal ones; quasi-Monte Carlo.
    random_state : int, RandomState or None
        For the frequencies.

    Attributes
    ----------
    kernel_ : the kernel; features_ : the map itself
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        n_features: int = 100,
        *,
        kind: str = "rff",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.n_features = n_features
        self.kind = kind
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Draws frequencies for the columns of X; y is not used. The rows serve for the default kernel, and
        as the place where phases are zero."""
        table, kernel = self._read(X)
        try:
            rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError as error:
            cure = "Give a whole number from 0 on, a RandomState, or None."
            raise ParameterError(f"random_state={self.random_state!r}: {error}. {cure}") from None
        basis = FourierBasis.draw(
            kernel, table.shape[1], self.n_features, self.kind, rng, centre=np.median(table, axis=0)
        )
        self.features_ = basis.at(kernel)
        return self


def _default_kernel(X: Array, columns: Columns) -> Kernel:
    numeric = [j for j in range(X.shape[1]) if j not in columns.categories]
    parts: list[Kernel] = []
    if numeric:
        rbf = RBF(spread(X[:, numeric]) * np.sqrt(len(numeric)))
        parts.append(rbf.on(*(columns.names[j] for j in numeric)) if columns.categories else rbf)
    if columns.categories:
        parts.append(
            Categorical(np.full(len(columns.categories), 0.5)).on(
                *(columns.names[j] for j in columns.categories)
            )
        )
    return parts[0] if len(parts) == 1 else parts[0] * parts[1]


__all__ = ["FourierFeatures", "NystromFeatures"]
