"""Kernel features as scikit-learn transformers: Phi with K(X, Z) ~ Phi(X) Phi(Z)', for any linear model.

    make_pipeline(gm.FourierFeatures(gm.Matern52(0.5), 500), Ridge(1e-2)).fit(X, y)

`NystromFeatures` takes any kernel and adapts to the data; `FourierFeatures` takes stationary kernels and
needs nothing of the data but the number of columns. Without a kernel, both take an RBF with lengthscale_j =
sd_j sqrt(d), of which distances grow with the number of columns as they do in data.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.arrays import Array
from gramian.data.inputs import Columns, read_named
from gramian.errors import InputError, ParameterError
from gramian.estimators.build import FURTHER, read_kernel, times_categories
from gramian.estimators.resuming import generator
from gramian.features.base import FeatureMap
from gramian.features.fourier import FourierBasis
from gramian.features.nystrom import NystromBasis
from gramian.kernels import RBF, Kernel, Stationary
from gramian.kernels.convert import Converted
from gramian.landmarks.base import LandmarkRule
from gramian.landmarks.rules import landmarks
from gramian.linalg import memory

FEATURES_SHORT = "Features", "Give fewer rows at a time, or ask for fewer features."


# scikit-learn is not typed
@dataclass(eq=False, repr=False)
# scikit-learn is not typed
class _KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the two have in common: columns, the kernel, and the map that `fit` makes."""

    kernel: Kernel | Converted | str | None = None
    _columns: Columns = field(init=False)
    features_: FeatureMap = field(init=False)

    def _read(self, X: Any) -> tuple[Array, Kernel]:
        """The rows of X, and the kernel with its columns as indices."""
        table, columns = read_named(self, X)
        setting = read_kernel(self.kernel)
        written = setting.one("features are of one kernel.")
        kernel = self._default(table, columns, setting.families or (RBF,)) if written is None else written
        kernel.check_columns(columns.described())
        self._columns, self.kernel_ = columns, kernel
        return table, kernel.resolve(columns.names)

    def _default(self, table: Array, columns: Columns, families: Sequence[type[Stationary]]) -> Kernel:
        """Of these families, of variance 1 and, where there are several, a little of the further ones."""
        kernel, *further = (times_categories(table, columns, family) for family in families)
        for more in further:
            kernel = kernel + FURTHER * more
        return kernel

    @memory.translated(*FEATURES_SHORT)
    def transform(self, X: Any) -> Array:
        """Phi (n, number of features), with kernel(X, Z) ~ Phi(X) Phi(Z)'."""
        check_is_fitted(self, "features_")
        Phi = self.features_.block(read_named(self, X, self._columns)[0])
        if not np.all(np.isfinite(Phi)):
            row = int(np.argmin(np.all(np.isfinite(Phi), axis=1)))
            raise InputError(f"The features of row {row} of X leave the range of numbers. Check its units.")
        return Phi

    @property
    def _n_features_out(self) -> int:
        return self.features_.n_features


@dataclass(eq=False, repr=False)
class NystromFeatures(_KernelFeatures):
    """Nystrom features of a kernel: Phi Phi' = K_xz K_zz^-1 K_zx, with landmarks Z among the rows of `fit`.

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

    rank: int = 100
    sampling: str | LandmarkRule = field(default="rpcholesky", kw_only=True)
    random_state: Any = field(default=None, kw_only=True)

    @memory.translated(*FEATURES_SHORT)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Chooses landmarks among the rows of X; y is not used."""
        if isinstance(self.rank, bool) or not isinstance(self.rank, numbers.Integral) or self.rank < 1:
            raise ParameterError(f"rank={self.rank!r} must be a whole number from 1 on.")
        table, kernel = self._read(X)
        rank = min(int(self.rank), len(table))
        chosen = landmarks(kernel, table, rank, self.sampling, self.random_state).distinct()
        self.landmarks_ = chosen.Z
        self.rank_ = len(chosen.Z)
        self.features_ = NystromBasis(chosen.Z).at(kernel)
        return self


@dataclass(eq=False, repr=False)
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

    n_features: int = 100
    kind: str = field(default="rff", kw_only=True)
    random_state: Any = field(default=None, kw_only=True)

    @memory.translated(*FEATURES_SHORT)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draws frequencies for the columns of X; y is not used. The rows serve for the default kernel, and
        as the place where phases are zero."""
        table, kernel = self._read(X)
        rng, centre = generator(self.random_state), np.median(table, axis=0)
        basis = FourierBasis.draw(kernel, table.shape[1], self.n_features, self.kind, rng, centre=centre)
        self.features_ = basis.at(kernel)
        return self


__all__ = ["FourierFeatures", "NystromFeatures"]
