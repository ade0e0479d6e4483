"""Standard draws for random frequencies, each row (nearly) standard normal: plain, orthogonal, structured
orthogonal, quasi-Monte Carlo.

    plain   independent rows                                                       Rahimi and Recht 2007
    orf     blocks of d orthogonal rows: Q of the QR of a Gaussian matrix, rows    Yu et al. 2016, section 3
            scaled by chi_d lengths
    sorf    rows of sqrt(D) H D1 H D2 H D3, H the Hadamard matrix / sqrt(D), D_i   Yu et al. 2016, section 4
            random signs
    qmc     a scrambled Halton or Sobol sequence through the normal quantile       Avron et al. 2016

Cost for n rows of d: O(n d); orf O(n d^2); sorf O(n log D) a column. The rows of sorf all have the same
length and their law tends to the normal one as D grows; so D is the next power of two, but not below 256, of
which the first d columns are kept (a point with zeros appended).
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from gramian.arrays import Array
from gramian.errors import ParameterError
from gramian.kernels.spectrum import inside
from gramian.linalg.hadamard import chunks, padded_size, transform

# of an RBF in 8 columns, 256 frequencies: rms bias 0.047 at D = 8, 0.023 at 16, 0.006 at 64, 0.002 at 256
SMALLEST_SORF = 256
KINDS = ("rff", "rff-phase", "orf", "sorf", "qmc", "qmc-halton", "qmc-sobol")


def source(kind: str, n: int, dimension: int, rng: np.random.Generator) -> IndependentDraws | QuasiMonteCarlo:
    """Standard draws for n frequencies, each of `dimension` uniform numbers in all."""
    if kind in ("qmc", "qmc-halton", "qmc-sobol"):
        return QuasiMonteCarlo(n, dimension, kind == "qmc-sobol", rng)
    return {"rff": IndependentDraws, "rff-phase": IndependentDraws, "orf": Orthogonal, "sorf": Structured}[
        kind
    ](n, rng)


class IndependentDraws:
    """Independent draws."""

    signs: Array | None = None  # (blocks, 3, D) that the last normals are made of, where they are

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n, self.rng = n, rng

    def normals(self, d: int) -> Array:
        return self.rng.normal(size=(self.n, d))

    def uniforms(self) -> Array:
        return self.rng.uniform(size=self.n)

    def strata(self) -> Array:
        """One number in each of n equal intervals, at one place, in random order (systematic sampling)."""
        return self.rng.permutation((np.arange(self.n) + self.rng.uniform()) / self.n)


class Orthogonal(IndependentDraws):
    """Orthogonal directions, independent lengths."""

    def normals(self, d: int) -> Array:
        directions = orthogonal(-(-self.n // d), d, self.rng).reshape(-1, d)[: self.n]
        return directions * np.sqrt(self.rng.chisquare(d, size=self.n))[:, None]


class Structured(IndependentDraws):
    """Products of Hadamard matrices and random signs."""

    def normals(self, d: int) -> Array:
        D = max(padded_size(d), SMALLEST_SORF)
        self.signs = np.stack([self.rng.choice((-1.0, 1.0), size=(3, D)) for _ in range(-(-self.n // D))])
        return structured_product(np.eye(d), self.signs).T[: self.n]


class QuasiMonteCarlo:
    """The coordinates of one low-discrepancy sequence, handed out in turn."""

    signs: Array | None = None

    def __init__(self, n: int, dimension: int, sobol: bool, rng: np.random.Generator) -> None:
        if sobol and dimension > qmc.Sobol.MAXDIM:
            raise ParameterError(
                f'kind="qmc-sobol" reaches to {qmc.Sobol.MAXDIM} dimensions, but {dimension} are needed. Use'
                ' "qmc-halton" or "orf".'
            )
        if sobol:
            sequence = qmc.Sobol(max(dimension, 1), scramble=True, seed=rng)
            points = sequence.random_base2(max(n - 1, 0).bit_length())[:n]
        else:
            points = qmc.Halton(max(dimension, 1), scramble=True, seed=rng).random(n)
        self.rest = iter(np.ascontiguousarray(points.T))

    def normals(self, d: int) -> Array:
        return np.column_stack([ndtri(inside(next(self.rest))) for _ in range(d)])

    def uniforms(self) -> Array:
        return next(self.rest)

    strata = uniforms


def orthogonal(blocks: int, d: int, rng: np.random.Generator) -> Array:
    """Rotations (blocks, d, d), uniform over all: Q of a Gaussian matrix, signed so that diag R > 0."""
    Q, R = np.linalg.qr(rng.normal(size=(blocks, d, d)))
    return Q * np.where(np.diagonal(R, axis1=1, axis2=2) < 0, -1.0, 1.0)[:, None, :]


def structured_product(X: Array, signs: Array) -> Array:
    """X S' (n, blocks D) for rows X (n, d), where S is the blocks sqrt(D) H D1 H D2 H D3 of signs (blocks, 3,
    D), one above the other, and a row has zeros appended: O(log D) an entry, instead of d."""
    (n, d), (blocks, _, D) = X.shape, signs.shape
    out = np.empty((n, blocks, D))
    signs = signs / [[1.0], [1.0], [D]]  # three times 1 / sqrt(D), once sqrt(D)
    for rows in chunks(n, D):  # which stay in cache from one transform to the next
        here, there = np.zeros((2, rows.stop - rows.start, D))
        for k, (first, second, third) in enumerate(signs):
            np.multiply(X[rows], third[:d], out=here[:, :d])
            here[:, d:] = 0.0
            transform(here, there)
            there *= second
            transform(there, here)
            here *= first
            transform(here, there)
            out[rows, k] = there
    return out.reshape(n, blocks * D)
