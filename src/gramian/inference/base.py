"""The contracts of inference: what a process can be asked, what evidence is, and what an inference method
does.

The model, for each output:

    f(x) = m(x) + s g(x),   g ~ GP(0, k),   y = f(x) + e

with s the output's scale (its standard deviation when y is normalised, else 1), so that a kernel of unit
variance is a sensible prior in any units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from gramian.gram import tiles
from gramian.kernels.base import Kernel
from gramian.likelihoods import Gaussian, Likelihood
from gramian.linalg import memory
from gramian.means import Mean, ZeroMean
from gramian.params import Tree
from gramian.solvers.base import SolveOutcome

Array = NDArray[np.float64]
Share = Callable[[float], None]


class Model(Tree):
    """Everything that has parameters: the kernel, the mean, the likelihood. Paths: kernel.*, mean.*, and the
    likelihood's own names (noise).

    With several latent functions they share the kernel, unless `others` has one for each latent after the
    first.
    """

    kernel: Kernel
    mean: Mean
    likelihood: Likelihood
    others: tuple[Kernel, ...] = ()

    def label(self, field: str) -> str:
        return "" if field == "likelihood" else field

    @property
    def kernels(self) -> list[tuple[Kernel, list[int]]]:
        """Each kernel with the latents that it is for."""
        if not self.others:
            return [(self.kernel, list(range(self.likelihood.latents)))]
        return [(kernel, [k]) for k, kernel in enumerate((self.kernel, *self.others))]

    @property
    def gaussian(self) -> Gaussian:
        """The likelihood of the engines that condition on Gaussian noise in closed form."""
        assert isinstance(self.likelihood, Gaussian)
        return self.likelihood


@dataclass(frozen=True, eq=False)
class Data:
    """What was observed: n rows and q outputs."""

    X: Array  # (n, d)
    Y: Array  # (n, q)
    scale: Array  # (q,)
    # (n,): known noise variances, in the units of y squared, beside the likelihood's
    noise_var: Array | None = None
    offset: Array | None = None  # (n,): known, added to f inside the likelihood (the log of an exposure)


@dataclass(frozen=True)
class Evidence:
    """log p(y) in nats, of y divided by its scale, and what kind of number that is; "none" with a value of
    nan where it is not computed."""

    value: float
    kind: Literal[
        "exact", "lower bound", "upper bound", "approximation", "estimate", "none", "joint density"
    ] = "exact"
    standard_error: float = 0.0

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        if self.kind == "none":
            return "not computed"
        spread = f" +- {self.standard_error:.2g}" if self.standard_error else ""
        return f"{self.value:.6g}{spread} ({self.kind})"


class Process(ABC):
    """A Gaussian process, before or after data: mean, variance, covariance and draws of f at any points.

    Arrays have one column an output. Work is done in blocks of rows, so memory does not grow with the number
    of points (but for `cov`).
    """

    @abstractmethod
    def mean(self, X: Array) -> Array:
        """E f(x): (n, q)."""

    @abstractmethod
    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and variance of f(x): (n, q) each; a variance is never negative."""

    @abstractmethod
    def cov(self, X: Array) -> Array:
        """Covariance of f at all pairs of rows, (n, n, q); its diagonal is `var(X)` to the last bit."""

    def var(self, X: Array) -> Array:
        """The variance of f(x): (n, q)."""
        return self.moments(X)[1]

    def joint(self, X: Array) -> Array:
        """Covariance of the outputs with each other at each row, (n, q, q); diagonal unless a process says
        otherwise."""
        var = self.var(X)
        return var[:, :, None] * np.eye(var.shape[1])

    def sample(self, rng: np.random.Generator, X: Array, n_samples: int, noise: Array | None = None) -> Array:
        """Joint draws at the rows of X, (n, q, n_samples); `noise` (n, q) adds independent noise of these
        variances."""
        mean, cov = self.mean(X), self.cov(X)
        draws = np.empty((*mean.shape, n_samples))
        for k in range(mean.shape[1]):
            draws[:, k, :] = mean[:, [k]] + semidefinite_root(cov[:, :, k]) @ rng.standard_normal(
                (len(X), n_samples)
            )
        if noise is not None:
            draws += np.sqrt(noise)[:, :, None] * rng.standard_normal(draws.shape)
        return draws


@dataclass(frozen=True, eq=False)
class GaussianProcess(Process):
    """The prior: f = m + s g."""

    kernel: Kernel
    mean_function: Mean
    scale: Array  # (q,)

    def mean(self, X: Array) -> Array:
        return mean_block(self.mean_function, X, len(self.scale))

    def moments(self, X: Array) -> tuple[Array, Array]:
        return self.mean(X), np.maximum(tiles.diagonal(self.kernel, X), 0.0)[:, None] * self.scale**2

    def cov(self, X: Array) -> Array:
        K = tiles.cross(self.kernel, X, X)
        K = 0.5 * (K + K.T)
        np.fill_diagonal(K, np.maximum(tiles.diagonal(self.kernel, X), 0.0))
        return K[:, :, None] * self.scale**2


@dataclass(frozen=True, eq=False)
class Stacked(Process):
    """Independent processes side by side: `columns` says which outputs each of them is."""

    parts: tuple[Process, ...]
    columns: tuple[tuple[int, ...], ...]

    def mean(self, X: Array) -> Array:
        return self._together([part.mean(X) for part in self.parts])

    def moments(self, X: Array) -> tuple[Array, Array]:
        found = [part.moments(X) for part in self.parts]
        return self._together([mean for mean, _ in found]), self._together([var for _, var in found])

    def cov(self, X: Array) -> Array:
        return self._together([part.cov(X) for part in self.parts])

    def _together(self, arrays: list[Array]) -> Array:
        """Joined in the last axis, in the order of the outputs."""
        order = np.argsort([k for columns in self.columns for k in columns])
        return np.concatenate(arrays, axis=-1)[..., order]


class Inferred(NamedTuple):
    """What inference gives."""

    posterior: Process
    evidence: Evidence
    outcome: SolveOutcome


class Work(NamedTuple):
    """The cost of something, in units that can be measured on a machine."""

    flops: float  # in matrix products and factorisations
    values: float = 0.0  # kernel values, in tiles
    slopes: float = 0.0  # kernel values with their gradients
    products: float = 0.0  # kernel values inside matrix-free products, in float32


class LeftOut(NamedTuple):
    """What leave-one-out predictions are made of, in units of the scale: each (n, q)."""

    alpha: Array  # (K + D)^-1 r
    precision: Array  # the diagonal of (K + D)^-1


class Inference(ABC):
    """How to condition a model on data.

    Some methods choose something once, before parameters are searched for: landmarks, random frequencies,
    probes. `prepared` makes that choice, and what it returns does the work, so that a search sees one smooth
    function.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """As in `method=`."""

    @property
    @abstractmethod
    def solver_name(self) -> str:
        """What solves with K + D, for people."""

    @property
    def searched(self) -> Inference:
        """The method whose evidence its parameters are searched by."""
        return self

    def check_fits(self, model: Model, d: int) -> None:  # noqa: B027 most have nothing to refuse
        """Refuses, before anything is fitted, what it cannot do for such a kernel and d columns, whatever the
        parameters."""

    def prepared(self, model: Model, data: Data, rng: np.random.Generator) -> Inference:
        """The same method with its choices made for these data and, where it matters, these parameters."""
        return self

    @property
    def smooth(self) -> bool:
        """Whether value and gradient belong together to rounding, so that a search can be finished to the
        last digits; estimates do not."""
        return True

    @property
    def samples_parameters(self) -> bool:
        """Whether it draws the parameters from their posterior, so that there is nothing to search for."""
        return False

    def learns_from(self, n: int) -> bool:
        """Whether its evidence on n rows is a guide to parameters."""
        return True

    @property
    def free(self) -> Array:
        """What a search may move besides the model's parameters (learned landmarks, in units of their
        columns' spread), as one vector."""
        return np.zeros(0)

    def with_free(self, values: Array) -> Inference:
        """The same with `free` moved."""
        return self

    @abstractmethod
    def infer(self, model: Model, data: Data, report: Share | None = None) -> Inferred:
        """The posterior, the evidence and how it went. `report` is told the share of the work done, where it
        takes long."""

    @abstractmethod
    def evidence_and_gradient(
        self, model: Model, data: Data, workspace: Workspace
    ) -> tuple[Evidence, list[Array]]:
        """The evidence and its gradient, one array a parameter in the order of `model.parameters()`, and a
        last one for `free` where there is any."""

    @abstractmethod
    def evidence(self, model: Model, data: Data, workspace: Workspace) -> Evidence:
        """The evidence alone."""

    @abstractmethod
    def leave_one_out(self, model: Model, data: Data, posterior: Process) -> LeftOut:
        """For predictions of each row from all the others; `posterior` is what `infer` gave for the same
        model and data."""

    @abstractmethod
    def work(self, n: int, d: int, q: int, gradient: bool = True) -> Work:
        """What one evaluation with gradient costs, or the final inference."""

    @abstractmethod
    def bytes_needed(self, n: int, d: int, q: int) -> int:
        """Peak memory of fitting n rows, d columns and q outputs."""


class Workspace:
    """The large array of an evaluation, kept for the next one instead of asked from the system and given back
    each time."""

    def __init__(self) -> None:
        self._array: Array | None = None
        # where an iterative inference may begin: what it found for the last parameters
        self.start: Array | None = None

    def square(self, n: int) -> Array:
        """An uninitialised Fortran-ordered (n, n) array."""
        if self._array is None or self._array.shape != (n, n):
            self._array = np.empty((n, n), order="F")
        return self._array

    def release(self) -> None:
        """Gives the memory back."""
        self._array = None


@dataclass(frozen=True, eq=False)
class NoiseGroup:
    """Outputs that share their noise D = level + share * noise_var, in units of the scale squared."""

    outputs: list[int]
    level: float
    share: float
    noise_var: Array | None

    def noise(self, at: slice, n: int) -> Array:
        """D for some of n rows."""
        if self.noise_var is None:
            return np.full(len(range(n)[at]), self.level)
        return self.level + self.share * self.noise_var[at]


def noise_groups(model: Model, data: Data) -> list[NoiseGroup]:
    """The outputs, gathered by what their D is: noise / s^2, plus the known variances / s^2."""
    noise = np.broadcast_to(model.gaussian.variances(), data.scale.shape) / data.scale**2
    known = np.zeros_like(noise) if data.noise_var is None else 1 / data.scale**2
    keys: dict[tuple[float, float], list[int]] = {}
    for k, key in enumerate(zip(noise, known, strict=True)):
        keys.setdefault((float(key[0]), float(key[1])), []).append(k)
    return [NoiseGroup(outputs, level, share, data.noise_var) for (level, share), outputs in keys.items()]


def noise_gradient(model: Model, data: Data, outputs: list[int], by_level: Array) -> float:
    """d/dnoise from d/dD, one number an output: outputs of a group share D but not the noise's unit."""
    unit = np.broadcast_to(np.asarray(model.gaussian.unit), data.scale.shape)[outputs]
    return float(np.sum(by_level * unit / data.scale[outputs] ** 2))


def mean_gradient(model: Model, X: Array, by_mean: Array) -> list[Array]:
    """The gradient of the mean's parameters from that of m(x), (n, q)."""
    if not model.mean.parameters():
        return []
    shared = tiles.rowwise(model.mean, "block", X[:1]).ndim == 1
    return tiles.rowwise_pullback(model.mean, "block", X, by_mean.sum(axis=1) if shared else by_mean)


def mean_block(mean: Mean, X: Array, q: int) -> Array:
    """m(x) for each row and output: (n, q)."""
    if type(mean) is ZeroMean:
        return np.zeros((len(X), q))
    values = tiles.rowwise(mean, "block", X)
    return np.broadcast_to(values.reshape(len(X), -1), (len(X), q)).copy()


def blocks_of(n: int, row_bytes: int, size: int | None = None) -> list[slice]:
    """Consecutive rows that fit into the memory of a block."""
    rows = memory.block_rows(row_bytes, tiles.LARGEST_TILE, memory.BLOCK_BYTES if size is None else size)
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def semidefinite_root(A: Array) -> Array:
    """R with R R' = A for a positive semi-definite A, by Cholesky with pivoting (LAPACK dpstrf): exact where
    A is singular, with nothing added."""
    L, pivots, rank, _ = lapack.dpstrf(np.asfortranarray(A), lower=1)
    root: Array = np.zeros_like(L)
    root[pivots - 1, :rank] = np.tril(L)[:, :rank]
    return root
