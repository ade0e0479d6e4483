"""Feature maps in a file: the basis stands with the method, and beside it what was made of it at the fitted
parameters.

That is the root of the landmarks' kernel matrix, which another machine would round otherwise (and close
landmarks make much of that); frequencies and amplitudes, which a later version may compute in another way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gramian.engines import LowRank
from gramian.engines.base import Engine
from gramian.errors import ModelFileError
from gramian.features.base import FeatureMap
from gramian.features.fourier import KINDS, FourierBasis, FourierMap, row_wise
from gramian.features.nystrom import NystromBasis, NystromMap
from gramian.features.spectral import SMALLEST_SORF
from gramian.inference import Data, Scheme
from gramian.inference.svgp.inducing import SparseVariational
from gramian.kernels import Kernel
from gramian.kernels.spectrum import Draw
from gramian.linalg.hadamard import padded_size
from gramian.modelfile.arrays import LANDMARK_ROOT, Array, Arrays, root, taken
from gramian.report.facts import NoData


def describe(features: FeatureMap) -> Arrays:
    """What a map has computed at its parameters."""
    if isinstance(features, NystromMap):
        return {LANDMARK_ROOT: features.L}
    if isinstance(features, FourierMap):
        return {"frequencies": features.W, "amplitudes": features.A}
    raise ModelFileError(
        f"it has features of the type {type(features).__name__}, which this version does not store."
    )


def restore(
    engine: Engine | Scheme, arrays: Arrays, kernel: Kernel, k: int, data: Data, d: int
) -> NystromMap | FourierMap:
    """The map of the k-th kernel."""
    basis = _basis(engine, k, data, d)
    if isinstance(basis, NystromBasis):
        if basis.Z.ndim != 2 or basis.Z.shape[1] != d or not len(basis.Z):
            raise ModelFileError(f"its landmarks have the shape {basis.Z.shape}, but it has {d} columns.")
        landmarks = basis.at(kernel)
        vars(landmarks)["L"] = root(arrays, LANDMARK_ROOT, len(basis.Z))  # as if it had been computed already
        return landmarks
    check_fourier(basis, kernel, d)
    N = basis.take.size
    return replace(
        basis.at(kernel), W=taken(arrays, "frequencies", (d, N)), A=taken(arrays, "amplitudes", (N,))
    )


def _basis(engine: Engine | Scheme, k: int, data: Data, d: int) -> NystromBasis | FourierBasis:
    if isinstance(engine, (LowRank, SparseVariational)) and (
        {engine.centre.shape, engine.spread.shape} not in ({(0,)}, {(d,)}) or not np.all(engine.spread > 0)
    ):
        raise ModelFileError(
            f"its method has units of the shapes {engine.centre.shape} and {engine.spread.shape}, for {d}"
            " columns."
        )
    if isinstance(engine, SparseVariational):
        if len(engine.Z) <= k:
            raise ModelFileError(
                f"its method has {len(engine.Z)} sets of inducing points, but there are more kernels."
            )
        return NystromBasis(engine.Z[k], engine.learned)
    if isinstance(engine, LowRank):
        assert isinstance(engine.basis, (NystromBasis, FourierBasis))
        return engine.basis
    if isinstance(data, NoData):
        raise ModelFileError(f"its method {type(engine).__name__} has no features.")
    return NystromBasis(data.X)  # of all rows: exact inference in coordinates where the prior is white


def check_fourier(basis: FourierBasis, kernel: Kernel, d: int) -> None:
    """That draws, counts and columns belong to each other and to the kernel; sums first, so that nothing is
    as large as a count only says."""
    N, columns = sum(basis.counts), basis.take.size
    rows = 1 if basis.kind == "rff-phase" else 2
    shapes = (
        basis.d == d
        and basis.kind in KINDS
        and basis.centre.shape == (d,)
        and basis.shift.shape == (rows, columns)
    )
    if not (shapes and basis.take.shape == basis.gain.shape == (columns,)):
        raise ModelFileError(
            f"its Fourier features have impossible shapes for {d} columns: take {basis.take.shape}, shift"
            f" {basis.shift.shape}."
        )
    if (
        not 1 <= N <= columns
        or min(basis.counts) < 1
        or np.any(np.diff(basis.take) < 0)
        or not np.array_equal(np.unique(basis.take), np.arange(N))
    ):
        raise ModelFileError("its Fourier features must take each of their frequencies, in order.")
    waves = kernel.bare().waves(tuple(range(d)))
    if len(waves) != len(basis.counts):
        raise ModelFileError(
            f"its kernel has {len(waves)} waves, but its Fourier features have {len(basis.counts)} counts."
        )
    if basis.signs is not None:
        D = max(padded_size(d), SMALLEST_SORF)
        fits = basis.kind == "sorf" and row_wise(waves, d) and basis.signs.shape == (-(-N // D), 3, D)
        if not (fits and np.array_equal(np.abs(basis.signs), np.ones_like(basis.signs))):
            raise ModelFileError(
                f"its structured features have signs of the shape {basis.signs.shape}, which {N} frequencies"
                " of its kernel have not."
            )
    expected = [
        [_shapes(part.draw(_Blank(n))) for part in wave.parts]
        for wave, n in zip(waves, basis.counts, strict=True)
    ]
    if expected != [[_shapes(draw) for draw in drawn] for drawn in basis.draws]:
        raise ModelFileError("its Fourier features have draws of other shapes than its kernel needs.")


def _shapes(draw: Draw) -> list[tuple[int, ...]]:
    return [part.shape for part in draw]


class _Blank:
    """A source of numbers that are all the same, to see the shapes of what is made from them."""

    def __init__(self, n: int) -> None:
        self.n = n

    def normals(self, d: int) -> Array:
        return np.ones((self.n, d))

    def uniforms(self) -> Array:
        return np.full(self.n, 0.5)

    def strata(self) -> Array:
        return self.uniforms()


__all__ = ["check_fourier", "describe", "restore"]
